/* turn.h - turns at the write lock among the pools of one file; part of struct pawli_sqlite. */
#ifndef PAWLI_SQLITE_TURN_H
#define PAWLI_SQLITE_TURN_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pawli_turn_words;

typedef struct pawli_turn {
    char path[PATH_MAX + 16];
    struct pawli_turn_words *words; /* shared with the other pools; NULL: there are none, or it cannot be had */
    dev_t device;
    ino_t inode;
    uint32_t mine;       /* the number of this pool's last turn */
    uint32_t slept_seen; /* by the last turn that ended */
    bool waited;         /* for the turn that is about to begin */
    int64_t waits_until_ns; /* what this pool said last */
    uint64_t random; /* for pauses */
} pawli_turn;

void pawli_turn_init(pawli_turn *turn, const char *store_path, uint64_t seed);
/* Joins those who take turns, or finds that they have moved on to another file. `create`: this pool has a
 * side directory. Cheap enough for once a second. */
void pawli_turn_join(pawli_turn *turn, bool create);
void pawli_turn_fini(pawli_turn *turn);

/* Before the lock is asked for: lets somebody who waits go first, if the last turn was this pool's. */
void pawli_turn_yield(pawli_turn *turn);
/* While another connection holds it: waits until it may be free, a few milliseconds at most. */
void pawli_turn_wait(pawli_turn *turn);
void pawli_turn_taken(pawli_turn *turn);
void pawli_turn_over(pawli_turn *turn);

#endif
