/* pool.h - the pool: one open runtime, and what its parts share. */
#ifndef PAWLI_POOL_H
#define PAWLI_POOL_H

#include <pawl/pawl.h>

#include <pthread.h>
#include <stdatomic.h>

#include "channel.h"
#include "clock.h"
#include "dispatch.h"
#include "executor.h"
#include "fork_mark.h"
#include "loop.h"
#include "names.h"
#include "options.h"
#include "peers.h"
#include "presence.h"
#include "registry.h"
#include "role.h"
#include "store/store.h"
#include "watch.h"
#include "writer.h"


struct pawl_pool {
    /* Set by pawl_open(), then read-only. */
    pawli_options options;
    pawli_log log;
    pawli_clock clock;
    pawli_fork_mark fork_mark;
    pawli_names *names;
    const char *path;

    /* The writer's role; the readers' operations have their own lock. */
    pawli_store *store;
    pawli_writer writer;

    /* Under the life lock; read-only while the pool runs. */
    pawli_registry registry;
    pawli_presence presence;
    pawli_executors executors;
    pthread_t writer_thread;
    pawli_holder holder;

    /* Any thread. */
    pawli_channel channel;
    pawli_dispatch dispatch;
    pawli_loop loop;
    pawli_tide tide;
    pawli_peers peers;
    pthread_mutex_t life_lock; /* start, stop, close, register */
    pthread_mutex_t registry_lock;
    pthread_mutex_t role_lock; /* to play the writer while no thread does */
    _Atomic bool started; /* threads run, or, inline, may step; changed under life and role lock */
    _Atomic bool closing;
    _Atomic bool writer_runs;
    _Atomic bool writer_exits;
    _Atomic bool stopping;
    _Atomic bool grace_over; /* pawl_job_should_stop() is true for all */
    _Atomic uint64_t random;
    pthread_mutex_t quiet_lock; /* a stop waits for the last claim to end, a handler for its heartbeat */
    pthread_cond_t quiet;
    _Atomic bool is_quiet;
};

enum {
    PAWLI_WAITS = 1,  /* not from an on_success function */
    PAWLI_WRITES = 2  /* not on a pool that only reads */
};
/* The checks of every public call. */
pawl_status pawli_pool_enter(pawl_pool *pool, unsigned what);
const char *pawli_pool_path(const pawl_pool *pool);
/* When a call that begins now may not wait any more to be taken up: steady ns. */
int64_t pawli_pool_deadline(const pawl_pool *pool);
/* Waits for a heartbeat's answer, at most store_timeout_ms; and the writer's answer. */
bool pawli_pool_await(pawl_pool *pool, _Atomic int *posted);
void pawli_pool_answer_beat(pawl_pool *pool, _Atomic int *posted);
/* Is this thread inside a handler of this pool? */
bool pawli_pool_in_handler(const pawl_pool *pool);
/* The writer's: nothing is in hand any more. */
void pawli_pool_tell_quiet(pawl_pool *pool);

/* attach.c: the pool lets go of its attached connections. */
void pawli_attachments_end(const pawl_pool *pool);

#endif
