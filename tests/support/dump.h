/* dump.h - everything that pawl's tables hold, as one text: what a statement must not have changed is the same
 * text before and after. In the test's own thread, as all of check.h. */
#ifndef TESTS_DUMP_H
#define TESTS_DUMP_H

#include <stdbool.h>

struct sqlite3;

/* Every row of every table, values with their types. With `notes`, also pawl_meta's sql_last and sql_writer,
 * which a statement through pawl_jobs may move though it changes no job. The caller frees it with sqlite3_free. */
char *dump_tables(struct sqlite3 *db, bool notes);
/* Fails, and prints the rows that differ, unless it is so. Frees both. */
void assert_same_dump(char *before, char *after, const char *what);

#endif
