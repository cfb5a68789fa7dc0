/* watch.h - notices what other processes do to the store: by file events, by their deaths, by a slow poll. */
#ifndef PAWLI_WATCH_H
#define PAWLI_WATCH_H

#include <pawl/pawl.h>

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <uv.h>

/* What the writer and the watch know of each other. */
typedef struct pawli_tide {
    /* The writer stores, the loop loads. */
    _Atomic uint64_t turns; /* odd while a transaction of this pool is open */
    _Atomic uint64_t found; /* looks that found a commit of somebody else */
    _Atomic int64_t log_bytes, log_time_ns; /* the log's file after this pool's last commit */
} pawli_tide;

/* In the writer's role: its transaction has begun; it is over. */
void pawli_watch_begun(pawl_pool *pool);
void pawli_watch_ended(pawl_pool *pool);
/* After a commit that others care about: every other pool looks at once. One system call. */
void pawli_watch_tell_others(pawl_pool *pool);

typedef enum pawli_watch_phase {
    PAWLI_WATCH_LOOKS, /* a series is under way, or nothing is */
    PAWLI_WATCH_FOUND, /* the last looks of it */
    PAWLI_WATCH_DEAF,  /* to the events of the log, because this pool writes */
    PAWLI_WATCH_RESTS  /* one look more */
} pawli_watch_phase;

/* The loop's part: handles that live in its thread. */
typedef struct pawli_watch {
    pawl_pool *pool;
    uv_fs_event_t log, side;
    uv_timer_t series, poll;
    bool polls_only;       /* there are no file events to be had */
    pawli_watch_phase phase;
    size_t step;           /* of the series */
    unsigned polls_unseen; /* so many polls look whether or not the log's file has changed */
    uint64_t turns, found; /* when it began */
    char log_path[PATH_MAX + 8];
    struct stat log_seen, db_seen; /* by the poll */
} pawli_watch;

/* Before the loop runs. 0, or libuv's error. */
int pawli_watch_open(pawli_watch *watch, uv_loop_t *loop, pawl_pool *pool);
void pawli_watch_close(pawli_watch *watch);

#endif
