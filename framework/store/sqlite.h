/* sqlite.h - opens the SQLite store; everything else about it stays in sqlite/. */
#ifndef PAWLI_STORE_SQLITE_H
#define PAWLI_STORE_SQLITE_H

#include "store.h"

pawl_status pawli_sqlite_open(const pawli_store_host *host, pawli_store **out);
/* The absolute path of the open store's file. */
const char *pawli_sqlite_path(const pawli_store *store);

#endif
