/* feed.h - turns every file that a walk finds into a job. */
#ifndef INGEST_FEED_H
#define INGEST_FEED_H

#include "progress.h"
#include "walk.h"

#include <pawl/pawl.h>
#include <pthread.h>
#include <stdatomic.h>

struct feed {
    /* Set by feed_start(), then read-only. */
    pawl_pool *pool;
    struct progress *progress; /* shows what could not be walked */
    char *const *dirs;
    const char *database;
    pthread_t thread;

    /* The walking thread; others once feed_finished() was true. */
    struct walk_totals walked;

    atomic_bool stop;
    atomic_bool finished;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t answered;
    unsigned in_flight;  /* enqueued, and not answered yet */
    uint64_t added;      /* jobs that are new */
    uint64_t known;      /* jobs that were there already */
    pawl_status failure; /* the first that came; PAWL_OK: none */
};

/** Starts a thread that walks and enqueues. False: no thread could be had; nothing to stop then. */
bool feed_start(struct feed *feed, pawl_pool *pool, struct progress *progress, char *const *dirs,
                const char *database);

/** True once the walk has ended and every job it enqueued is in the store, or refused. */
bool feed_finished(struct feed *feed);

/** Ends the walk if it is still under way, and waits for the thread. */
void feed_stop(struct feed *feed);

#endif
