/* fork_mark.h - tells whether this process is the one that opened the pool, and ends one that is not (R10). */
#ifndef PAWLI_FORK_MARK_H
#define PAWLI_FORK_MARK_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct pawli_fork_mark {
    unsigned char *page; /* emptied by the kernel in a child; NULL: compare the pid */
    pid_t pid;
} pawli_fork_mark;

void pawli_fork_mark_init(pawli_fork_mark *mark);
void pawli_fork_mark_fini(pawli_fork_mark *mark);
bool pawli_fork_mark_is_child(const pawli_fork_mark *mark);

/* After every function of the application's that runs in the middle of pawl's own work. If it has forked, and this
 * is the child, it does not return: what would come next belongs to the parent, its transaction first of all.
 * NULL: there is no pool. */
void pawli_end_if_child(const pawli_fork_mark *mark);

#endif
