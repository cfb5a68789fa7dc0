/* pool.c - a pool's life: open, register, start, wait, stop, close.
 *
 * Threads: any caller; start, stop, close and register take turns under the life lock. While a writer
 *          thread runs it has the writer's role; otherwise a caller takes it under the role lock.
 * Keeps:   I21 after a stop that returned OK this process holds no claim, thread or descriptor of it;
 *          R10 in a forked child every call answers FORKED; G2 stop from inside a handler only begins. */
#include "pool.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "status.h"
#include "store/sqlite.h"
#include "thread.h"

#define CLOSE_GRACE_MS 15000
#define AFTER_GRACE_MS 5000 /* for handlers that look at pawl_job_should_stop() */

/* -------------------------------------------------------------------------------- checks */

/* In a function of the application that the writer calls. */
static bool is_writing(void)
{
    return pawli_role_now() == PAWLI_ROLE_APPLY || pawli_role_now() == PAWLI_ROLE_WRITER;
}

int64_t pawli_pool_deadline(const pawl_pool *pool)
{
    return pawli_add(pawli_steady_now_ns(), pawli_ms_to_ns(pool->options.store_timeout_ms));
}

pawl_status pawli_pool_enter(pawl_pool *pool, unsigned what)
{
    if (pool == NULL)
        return pawli_fail(PAWL_ERR_INVALID, "the pool is NULL");
    if (pawli_fork_mark_is_child(&pool->fork_mark))
        return pawli_fail(PAWL_ERR_FORKED, "%s: was opened by the parent of this process; open it again "
                                           "here", pool->path);
    if (atomic_load(&pool->closing))
        return pawli_fail(PAWL_ERR_CLOSED, "%s: the pool is being closed", pool->path);
    if ((what & PAWLI_WAITS) != 0 && is_writing())
        return pawli_fail(PAWL_ERR_STATE, "%s: this call would wait for the writer, which is running this "
                                          "on_success or drop function; use pawl_job_then() in the handler",
                          pool->path);
    if ((what & PAWLI_WRITES) != 0 && (pool->options.flags & PAWL_OPEN_READ_ONLY) != 0)
        return pawli_fail(PAWL_ERR_STATE, "%s: was opened with PAWL_OPEN_READ_ONLY", pool->path);
    return PAWL_OK;
}

const char *pawli_pool_path(const pawl_pool *pool)
{
    return pool->path;
}

bool pawli_pool_in_handler(const pawl_pool *pool)
{
    const pawl_job *job = pawli_handler_job();
    return job != NULL && job->pool == pool;
}

/* Stop and close wait for these threads: they cannot wait for themselves. */
static pawl_status enter_from_outside(pawl_pool *pool, const char *call)
{
    pawl_status st = pawli_pool_enter(pool, PAWLI_WAITS);
    if (st == PAWL_OK && (pawli_pool_in_handler(pool) || pawli_role_now() == PAWLI_ROLE_LOOP))
        st = pawli_fail(PAWL_ERR_STATE, "%s: not from inside a handler or a callback", call);
    return st;
}

static bool is_inline(const pawl_pool *pool)
{
    return (pool->options.flags & PAWL_OPEN_INLINE) != 0;
}

/* ---------------------------------------------------------------------------------- open */

static pawli_service *serve(void *arg, const char *queue, const char *kind)
{
    pawl_pool *pool = arg;
    if (!pool->started || !pawli_options_serve(&pool->options, queue))
        return NULL;
    (void)pthread_mutex_lock(&pool->registry_lock);
    pawli_handler *handler = pawli_registry_find(&pool->registry, kind);
    (void)pthread_mutex_unlock(&pool->registry_lock);
    return handler != NULL ? &handler->service : NULL;
}

static int64_t backoff(void *arg, const char *kind, uint32_t failure)
{
    pawl_pool *pool = arg;
    (void)pthread_mutex_lock(&pool->registry_lock);
    const pawli_handler *handler = pawli_registry_find(&pool->registry, kind);
    (void)pthread_mutex_unlock(&pool->registry_lock);
    return pawli_job_backoff(pool, handler, failure);
}

/* If the function kills the process, these say which job it was. */
static void applying(void *arg, uint64_t fence)
{
    pawl_pool *pool = arg;
    if (!pool->started)
        return; /* it holds no claims; its side file is not the writer's to look at */
    pawli_presence_set_effect(&pool->presence, fence);
    pawli_crash_mark(fence != 0 ? pool->presence.crash : NULL, fence);
}

static pawl_status open_store(pawl_pool *pool)
{
    const pawli_store_host host = {
        .options = &pool->options,
        .log = &pool->log,
        .fork_mark = &pool->fork_mark,
        .names = pool->names,
        .serve = serve,
        .backoff = backoff,
        .applying = applying,
        .arg = pool,
    };
    pawli_role before = pawli_role_set(PAWLI_ROLE_WRITER);
    pawl_status st = pawli_sqlite_open(&host, &pool->store);
    (void)pawli_role_set(before);
    if (st == PAWL_OK)
        pool->path = pawli_sqlite_path(pool->store);
    return st;
}

static void init_locks(pawl_pool *pool)
{
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&pool->life_lock, NULL);
    (void)pthread_mutex_init(&pool->role_lock, NULL);
    (void)pthread_mutex_init(&pool->registry_lock, NULL);
    (void)pthread_mutex_init(&pool->quiet_lock, NULL);
    (void)pthread_cond_init(&pool->quiet, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

static void free_pool(pawl_pool *pool)
{
    pawli_writer_fini(pool);
    if (pool->store != NULL)
        pool->store->ops->close(pool->store);
    pawli_registry_fini(&pool->registry);
    pawli_dispatch_fini(&pool->dispatch);
    pawli_channel_fini(&pool->channel);
    pawli_names_close(pool->names);
    pawli_names_release(pool->names);
    pawli_peers_fini(&pool->peers);
    pawli_fork_mark_fini(&pool->fork_mark);
    pawli_options_fini(&pool->options);
    (void)pthread_cond_destroy(&pool->quiet);
    (void)pthread_mutex_destroy(&pool->quiet_lock);
    (void)pthread_mutex_destroy(&pool->registry_lock);
    (void)pthread_mutex_destroy(&pool->role_lock);
    (void)pthread_mutex_destroy(&pool->life_lock);
    free(pool);
}

static pawl_status build(pawl_pool *pool)
{
    pool->path = pool->options.store; /* until the store has made it absolute */
    pawli_clock_init(&pool->clock, is_inline(pool));
    pawli_fork_mark_init(&pool->fork_mark);
    pool->log = (pawli_log){ pool->options.log, pool->options.log_arg, &pool->fork_mark };
    atomic_init(&pool->random, pool->options.seed);
    init_locks(pool);
    pawli_dispatch_init(&pool->dispatch);
    pawli_loop_init(&pool->loop);
    pawli_peers_init(&pool->peers);
    pawli_writer_init(&pool->writer);
    if (pawli_channel_init(&pool->channel, pool->options.command_max, pool->options.command_bytes_max) != 0
        || (pool->names = pawli_names_create()) == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "%s: no memory to open it", pool->path);
    return open_store(pool);
}

pawl_status pawl_open(const pawl_options *options, pawl_pool **out)
{
    if (options == NULL || out == NULL)
        return pawli_fail(PAWL_ERR_INVALID, "pawl_open: options and out must not be NULL");
    if (is_writing())
        return pawli_fail(PAWL_ERR_STATE, "pawl_open: not from an on_success or drop function");
    pawl_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "pawl_open: no memory");
    pawl_status st = pawli_options_init(&pool->options, options);
    if (st != PAWL_OK) {
        free(pool);
        return st;
    }
    st = build(pool);
    if (st != PAWL_OK) {
        free_pool(pool);
        return st;
    }
    *out = pool;
    return PAWL_OK;
}

pawl_status pawl_register(pawl_pool *pool, const char *kind, pawl_handler_fn handler, void *arg,
                          const pawl_handler_options *options)
{
    pawl_status st = enter_from_outside(pool, "pawl_register");
    if (st == PAWL_OK)
        st = pawli_pool_enter(pool, PAWLI_WRITES);
    if (st != PAWL_OK)
        return st;
    (void)pthread_mutex_lock(&pool->life_lock);
    if (pool->started) {
        st = pawli_fail(PAWL_ERR_STATE, "handler \"%s\": the pool runs; register before pawl_start()",
                        kind != NULL ? kind : "");
    } else {
        (void)pthread_mutex_lock(&pool->registry_lock);
        st = pawli_registry_add(&pool->registry, kind, handler, arg, options);
        (void)pthread_mutex_unlock(&pool->registry_lock);
    }
    (void)pthread_mutex_unlock(&pool->life_lock);
    return st;
}

/* --------------------------------------------------------------------------------- start */

static void become_absent(pawl_pool *pool)
{
    if (pool->options.note_crashes && pool->presence.crash != NULL)
        pawli_crash_note_remove(pool->presence.crash);
    pawli_presence_close(&pool->presence);
}

static pawl_status become_present(pawl_pool *pool)
{
    (void)snprintf(pool->holder.name, sizeof pool->holder.name, "%s", pool->options.name);
    pawl_status st = pawli_presence_open(&pool->presence, pool->path, pool->options.executors,
                                         (size_t)pool->options.detached_max + PAWLI_CLAIMS_MAX,
                                         &pool->holder);
    if (st == PAWL_OK && pool->options.note_crashes) {
        st = pawli_crash_note_add(pool->presence.crash);
        if (st != PAWL_OK)
            pawli_presence_close(&pool->presence);
    }
    return st;
}

/* Becomes a holder that others can see, in the writer's role, which the writer thread then takes over. */
static pawl_status join(pawl_pool *pool)
{
    pawl_status st = become_present(pool);
    if (st != PAWL_OK)
        return st;
    (void)pthread_mutex_lock(&pool->role_lock);
    pawli_role before = pawli_role_set(PAWLI_ROLE_WRITER);
    st = pool->store->ops->join(pool->store, &pool->holder, pawli_clock_wall_ms(&pool->clock));
    if (st == PAWL_OK) {
        pool->store->ops->unserve(pool->store);
        pool->started = true;
        pool->writer.may_claim = !is_inline(pool);
        pool->writer.finished_before = pool->writer.finished_last = 0;
        pawli_survey_first(pool);
        atomic_store(&pool->writer_runs, !is_inline(pool));
    }
    (void)pawli_role_set(before);
    (void)pthread_mutex_unlock(&pool->role_lock);
    if (st != PAWL_OK)
        become_absent(pool);
    return st;
}

/* What was posted while the writer ran is answered here; whoever posts later sees that it does not run any
 * more. So a flood of callers cannot hold up the stop. */
static void finish_what_was_posted(pawl_pool *pool)
{
    int64_t until_ns = pawli_pool_deadline(pool);
    bool progress = pawli_writer_step_as_caller(pool); /* takes them */
    pool->writer.takes_no_more = true;
    while (progress || (pawli_writer_owes(pool) && pawli_steady_now_ns() < until_ns)) {
        progress = pawli_writer_step_as_caller(pool);
        if (!progress && pawli_writer_owes(pool)) /* the store is busy */
            (void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    if (pawli_writer_owes(pool)) /* else the caller's last message stands */
        (void)pawli_fail(PAWL_ERR_BUSY, "%s: the store was busy until the pool had to stop; nothing was stored",
                         pool->path);
    pawli_writer_expire(pool, PAWL_ERR_BUSY, true); /* exactly one answer each, and before the stop returns */
    (void)pawli_writer_step_as_caller(pool);
    pawli_survey_drop(pool); /* the next start looks again */
    pool->writer.takes_no_more = false;
}

static void end_writer(pawl_pool *pool, bool has_thread)
{
    atomic_store(&pool->writer_exits, true);
    pawli_channel_wake(&pool->channel);
    if (has_thread)
        (void)pthread_join(pool->writer_thread, NULL);
    (void)pthread_mutex_lock(&pool->role_lock);
    pool->started = false;
    pool->writer.may_claim = false;
    atomic_store(&pool->writer_runs, false); /* before the last look: later callers play the writer */
    finish_what_was_posted(pool);
    (void)pthread_mutex_unlock(&pool->role_lock);
}

static void leave(pawl_pool *pool)
{
    (void)pthread_mutex_lock(&pool->role_lock);
    pawli_role before = pawli_role_set(PAWLI_ROLE_WRITER);
    pawl_status st = pool->store->ops->leave(pool->store, pawli_clock_wall_ms(&pool->clock));
    if (st != PAWL_OK) /* harmless: it holds no claims, and once this process is gone it is found dead */
        pawli_log_line(&pool->log, PAWL_LOG_WARNING, "%s", pawl_error_message());
    (void)pawli_role_set(before);
    (void)pthread_mutex_unlock(&pool->role_lock);
    become_absent(pool);
}

/* Executors first: they finish what they have. Then the writer, which writes that; then the loop, which
 * tells the last answers. */
static void tear_down(pawl_pool *pool, bool has_writer)
{
    pawli_executors_stop(pool);
    end_writer(pool, has_writer);
    pawli_loop_stop(pool);
    pawli_loop_deliver(&pool->loop);
    leave(pool);
    atomic_store(&pool->stopping, false);
    atomic_store(&pool->grace_over, false);
}

static pawl_status start_threads(pawl_pool *pool)
{
    pawl_status st = pawli_loop_start(pool);
    if (st == PAWL_OK)
        st = pawli_executors_start(pool);
    if (st == PAWL_OK) /* last: nothing is claimed before all is there */
        st = pawli_thread_start(&pool->writer_thread, PAWLI_STACK_BYTES, pawli_writer_main, pool);
    if (st == PAWL_OK)
        return st;
    char why[1024]; /* what tears it down may have messages of its own */
    (void)snprintf(why, sizeof why, "%s", pawl_error_message());
    tear_down(pool, false);
    return pawli_fail(st, "%s", why);
}

static pawl_status start(pawl_pool *pool)
{
    if (pool->started)
        return atomic_load(&pool->stopping)
                   ? pawli_fail(PAWL_ERR_STATE, "%s: the pool is stopping; call pawl_stop() until it answers "
                                                "PAWL_OK", pool->path)
                   : PAWL_OK;
    atomic_store(&pool->writer_exits, false);
    atomic_store(&pool->is_quiet, false); /* first: what a late stop of the last run still says is one of this */
    atomic_store(&pool->stopping, false);
    atomic_store(&pool->grace_over, false);
    pawl_status st = join(pool);
    return st == PAWL_OK && !is_inline(pool) ? start_threads(pool) : st;
}

pawl_status pawl_start(pawl_pool *pool)
{
    pawl_status st = enter_from_outside(pool, "pawl_start");
    if (st == PAWL_OK)
        st = pawli_pool_enter(pool, PAWLI_WRITES);
    if (st != PAWL_OK)
        return st;
    (void)pthread_mutex_lock(&pool->life_lock);
    st = start(pool);
    (void)pthread_mutex_unlock(&pool->life_lock);
    return st;
}

/* ---------------------------------------------------------------------------------- wait */

pawl_status pawl_wait_idle(pawl_pool *pool, int64_t timeout_ms)
{
    pawl_status st = enter_from_outside(pool, "pawl_wait_idle");
    if (st == PAWL_OK)
        st = pawli_pool_enter(pool, PAWLI_WRITES);
    if (st != PAWL_OK)
        return st;
    if (timeout_ms < PAWL_FOREVER)
        return pawli_fail(PAWL_ERR_INVALID, "pawl_wait_idle: timeout_ms is negative (PAWL_FOREVER: -1)");
    if (is_inline(pool) && pool->started) {
        st = pawl_run_until_idle(pool);
        return st == PAWL_OK && atomic_load(&pool->writer.in_hand_now) > 0
                   ? pawli_fail(PAWL_ERR_TIMEOUT, "%s: detached jobs are not finished", pool->path)
                   : st;
    }
    pawli_request *request = malloc(sizeof *request);
    if (request == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "pawl_wait_idle: no memory");
    pawli_request_init(request, PAWLI_COMMAND_IDLE, 0);
    request->glance = timeout_ms == 0;
    request->deadline_ns = timeout_ms == PAWL_FOREVER || request->glance
                               ? PAWLI_NEVER
                               : pawli_add(pawli_steady_now_ns(), pawli_ms_to_ns(timeout_ms));
    if (pawli_request_call(pool, request, &st))
        pawli_request_release(request);
    return st;
}

/* Under the role lock while no writer thread runs: the caller plays the writer. */
static void play_writer_for(pawl_pool *pool, _Atomic int *posted, int64_t until_ns)
{
    (void)pthread_mutex_lock(&pool->role_lock);
    while (!atomic_load(&pool->writer_runs) && atomic_load(posted) == PAWLI_BEAT_POSTED
           && pawli_steady_now_ns() < until_ns)
        if (!pawli_writer_step_as_caller(pool))
            (void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL); /* the store is busy */
    (void)pthread_mutex_unlock(&pool->role_lock);
}

bool pawli_pool_await(pawl_pool *pool, _Atomic int *posted)
{
    int64_t until_ns = pawli_pool_deadline(pool);
    const struct timespec until = pawli_timespec(until_ns);
    int error = 0;
    if (!atomic_load(&pool->writer_runs))
        play_writer_for(pool, posted, until_ns);
    (void)pthread_mutex_lock(&pool->quiet_lock);
    while (atomic_load(posted) == PAWLI_BEAT_POSTED && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&pool->quiet, &pool->quiet_lock, &until);
    bool answered = atomic_load(posted) != PAWLI_BEAT_POSTED;
    (void)pthread_mutex_unlock(&pool->quiet_lock);
    return answered;
}

void pawli_pool_answer_beat(pawl_pool *pool, _Atomic int *posted)
{
    (void)pthread_mutex_lock(&pool->quiet_lock);
    atomic_store(posted, PAWLI_BEAT_IDLE); /* the job is not looked at after this */
    (void)pthread_cond_broadcast(&pool->quiet);
    (void)pthread_mutex_unlock(&pool->quiet_lock);
}

/* ---------------------------------------------------------------------------------- stop */

void pawli_pool_tell_quiet(pawl_pool *pool)
{
    if (atomic_exchange(&pool->is_quiet, true))
        return;
    (void)pthread_mutex_lock(&pool->quiet_lock);
    (void)pthread_cond_broadcast(&pool->quiet);
    (void)pthread_mutex_unlock(&pool->quiet_lock);
}

static bool wait_for_quiet(pawl_pool *pool, int64_t wait_ms)
{
    const struct timespec until =
        pawli_timespec(pawli_add(pawli_steady_now_ns(), pawli_ms_to_ns(wait_ms)));
    int error = 0;
    (void)pthread_mutex_lock(&pool->quiet_lock);
    while (!atomic_load(&pool->is_quiet) && error != ETIMEDOUT)
        error = wait_ms == PAWL_FOREVER ? pthread_cond_wait(&pool->quiet, &pool->quiet_lock)
                                        : pthread_cond_timedwait(&pool->quiet, &pool->quiet_lock, &until);
    (void)pthread_mutex_unlock(&pool->quiet_lock);
    return atomic_load(&pool->is_quiet);
}

/* An inline pool's handlers run inside pawl_step() only: nothing but detached jobs can be in hand. */
static bool quiet_inline(pawl_pool *pool, int64_t grace_ms)
{
    int64_t until_ns = pawli_add(pawli_steady_now_ns(), pawli_ms_to_ns(grace_ms));
    (void)pthread_mutex_lock(&pool->role_lock);
    atomic_store(&pool->writer.trouble, PAWL_OK);
    pool->writer.retry_at_ns = 0;
    while (pawli_writer_step_as_caller(pool)
           || (atomic_load(&pool->writer.trouble) != PAWL_OK && !atomic_load(&pool->is_quiet)
               && (grace_ms == PAWL_FOREVER || pawli_steady_now_ns() < until_ns)))
        if (atomic_load(&pool->writer.trouble) != PAWL_OK) /* the store is busy */
            (void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    (void)pthread_mutex_unlock(&pool->role_lock);
    return atomic_load(&pool->is_quiet);
}

static void begin_stop(pawl_pool *pool)
{
    if (!pool->started)
        return;
    atomic_store(&pool->stopping, true);
    pawli_channel_wake(&pool->channel);
}

static bool become_quiet(pawl_pool *pool, int64_t grace_ms)
{
    begin_stop(pool);
    if (is_inline(pool))
        return quiet_inline(pool, grace_ms);
    if (wait_for_quiet(pool, grace_ms))
        return true;
    atomic_store(&pool->grace_over, true);
    return wait_for_quiet(pool, AFTER_GRACE_MS);
}

static pawl_status still_busy(const pawl_pool *pool)
{
    return pawli_fail(PAWL_ERR_TIMEOUT, "%s: still busy after the grace time: %u handlers run, %u detached jobs are "
                                        "not finished, %u claims are held in all; call pawl_stop() again",
                      pool->path, atomic_load(&pool->dispatch.busy), atomic_load(&pool->dispatch.detached),
                      atomic_load(&pool->writer.in_hand_now));
}

/* Waits without the life lock, so that each caller's own grace time counts. */
static pawl_status stop(pawl_pool *pool, int64_t grace_ms)
{
    if (!pool->started)
        return PAWL_OK;
    if (!become_quiet(pool, grace_ms))
        return still_busy(pool);
    (void)pthread_mutex_lock(&pool->life_lock);
    if (pool->started && atomic_load(&pool->is_quiet)) /* else another caller has stopped it */
        tear_down(pool, !is_inline(pool));
    (void)pthread_mutex_unlock(&pool->life_lock);
    return PAWL_OK;
}

pawl_status pawl_stop(pawl_pool *pool, int64_t grace_ms)
{
    pawl_status st = pawli_pool_enter(pool, PAWLI_WAITS);
    if (st != PAWL_OK)
        return st;
    if (grace_ms < PAWL_FOREVER)
        return pawli_fail(PAWL_ERR_INVALID, "pawl_stop: grace_ms is negative (PAWL_FOREVER: -1)");
    if (pawli_pool_in_handler(pool) || pawli_role_now() == PAWLI_ROLE_LOOP) {
        begin_stop(pool);
        return PAWL_ACCEPTED;
    }
    return stop(pool, grace_ms);
}

/* A detached job's finish leaves its last trace in the pool after its command: it is gone in a moment. */
static void wait_for_finishers(pawl_pool *pool)
{
    while (atomic_load(&pool->dispatch.detached) != 0)
        (void)sched_yield();
}

pawl_status pawl_close(pawl_pool *pool)
{
    if (pool == NULL)
        return PAWL_OK;
    pawl_status st = enter_from_outside(pool, "pawl_close");
    if (st == PAWL_OK)
        st = pawl_stop(pool, CLOSE_GRACE_MS);
    if (st != PAWL_OK)
        return st;
    pawli_attachments_end(pool);
    atomic_store(&pool->closing, true);
    if ((pool->options.flags & PAWL_OPEN_READ_ONLY) == 0)
        end_writer(pool, false); /* jobs that wait since before a start are stored now */
    pawli_loop_deliver(&pool->loop);
    wait_for_finishers(pool);
    free_pool(pool);
    return PAWL_OK;
}
