/* names.h - strings that live as long as a pool or the last job handle that an application holds. */
#ifndef PAWLI_NAMES_H
#define PAWLI_NAMES_H

#include <pawl/pawl.h>

typedef struct pawli_names pawli_names;

pawli_names *pawli_names_create(void); /* held once; NULL: no memory */
pawli_names *pawli_names_hold(pawli_names *names);
void pawli_names_close(pawli_names *names); /* the pool is gone; NULL is nothing */
bool pawli_names_closed(const pawli_names *names);
void pawli_names_release(pawli_names *names); /* any thread; NULL is nothing */
/* Copies `text`; NULL: no memory. Not for several threads at a time. */
const char *pawli_names_add(pawli_names *names, const char *text);

#endif
