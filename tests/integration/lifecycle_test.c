/* lifecycle_test.c - a pool with its threads, from open to close, and its manners as a guest: what it leaves
 * behind (nothing), what it changes in the process (nothing), and who may call what from where. */
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gate.h"

#define FOREVER_MS 20000 /* the test has failed */

static int succeed(pawl_job *job, void *arg)
{
    (void)job;
    if (arg != NULL)
        gate_add(arg, 1);
    return PAWL_SUCCEEDED;
}

static int count_entries(const char *directory)
{
    int count = 0;
    DIR *d = opendir(directory);
    assert_non_null(d);
    while (readdir(d) != NULL)
        count++;
    (void)closedir(d);
    return count;
}

static int threads(void)
{
    return count_entries("/proc/self/task");
}

static int descriptors(void)
{
    return count_entries("/proc/self/fd");
}

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t count(void **state, const char *where)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM pawl_jobs WHERE %s", where);
    return sql_ask(((temp *)*state)->path, sql);
}

/* ------------------------------------------------------------------------- open to close */

/* Goal: open and close without a start leave no thread and no descriptor, and one private file. */
static void open_and_close(void **state)
{
    temp *t = *state;
    int threads_before = threads(), descriptors_before = descriptors();
    for (int i = 0; i < 3; i++) {
        pawl_pool *pool = open_pool(t, .executors = 2);
        assert_int_equal(threads(), threads_before);
        assert_ok(pawl_close(pool));
        assert_int_equal(descriptors(), descriptors_before);
    }
    struct stat st;
    assert_int_equal(stat(t->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600); /* V3 */
    char *listing = temp_listing(t);
    assert_true(strncmp(listing, "jobs.db ", 8) == 0);
    assert_ptr_equal(strchr(listing, '\n'), strrchr(listing, '\n')); /* that file alone */
    free(listing);
    assert_ok(pawl_close(NULL));
    assert_int_equal(sql_ask(t->path, "SELECT count(*) FROM pawl_jobs"), 0);
}

/* Goal: a pool may be started, stopped and started again; each call may be repeated (G2). */
static void start_stop_start(void **state)
{
    gate done = GATE_INIT;
    int threads_before = threads();
    pawl_pool *pool = open_pool((temp *)*state, .executors = 3);
    assert_ok(pawl_register(pool, "k", succeed, &done, NULL));
    assert_ok(pawl_stop(pool, 0));
    for (int i = 1; i <= 3; i++) {
        assert_ok(pawl_start(pool));
        assert_ok(pawl_start(pool));
        pawl_stats_info stats = stats_of(pool);
        assert_int_equal(stats.executors, 3);
        pawl_stats_info_clear(&stats);
        assert_int_equal(threads(), threads_before + 5);
        assert_status(pawl_register(pool, "other", succeed, NULL, NULL), PAWL_ERR_STATE);
        (void)put(pool, .kind = "k");
        assert_true(gate_await(&done, i));
        assert_ok(pawl_stop(pool, FOREVER_MS));
        assert_ok(pawl_stop(pool, 0));
        assert_int_equal(threads(), threads_before);
        stats = stats_of(pool);
        assert_int_equal(stats.executors, 0);
        assert_int_equal(stats.in_hand, 0);
        pawl_stats_info_clear(&stats);
    }
    assert_int_equal(count(state, "status = 'succeeded'"), 3);
    assert_status(pawl_register(pool, "k", succeed, NULL, NULL), PAWL_ERR_STATE);
    assert_status(pawl_stop(pool, -2), PAWL_ERR_INVALID);
    assert_ok(pawl_close(pool));
}

/* Goal: a stopped pool still takes every call that only stores (the caller plays the writer). */
static void a_stopped_pool_still_stores(void **state)
{
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    assert_ok(pawl_start(pool));
    assert_ok(pawl_stop(pool, 0));
    int64_t id = put(pool, .kind = "k");
    assert_ok(pawl_cancel(pool, id));
    assert_ok(pawl_requeue(pool, id));
    assert_ok(pawl_pause(pool, "default"));
    assert_ok(pawl_resume(pool, "default"));
    assert_ok(pawl_wait_idle(pool, FOREVER_MS));
    assert_int_equal(state_of(pool, id), PAWL_STATE_PENDING);
    assert_ok(pawl_close(pool));
}

/* Goal: after work, reads, a stop and a close nothing is left: no thread, no descriptor, no side file (I21). */
static void nothing_is_left_after_close(void **state)
{
    temp *t = *state;
    gate done = GATE_INIT;
    pawl_pool *pool = open_pool(t, .executors = 2); /* what the process keeps for itself comes first */
    assert_ok(pawl_start(pool));
    assert_ok(pawl_close(pool));
    int threads_before = threads(), descriptors_before = descriptors();
    for (int i = 0; i < 3; i++) {
        static const char payload[200000];
        pool = open_pool(t, .executors = 4, .wal_bytes_max = 1 << 20);
        assert_ok(pawl_register(pool, "k", succeed, &done, NULL));
        assert_ok(pawl_start(pool));
        for (int j = 0; j < 40; j++) /* enough for checkpoints */
            (void)put(pool, .kind = "k", .payload = payload, .payload_bytes = sizeof payload);
        assert_true(gate_await(&done, 40 * (i + 1)));
        assert_ok(pawl_wait_idle(pool, FOREVER_MS));
        assert_ok(pawl_stop(pool, FOREVER_MS));
        assert_int_equal(threads(), threads_before);
        assert_ok(pawl_close(pool));
        assert_int_equal(descriptors(), descriptors_before);
    }
    char *listing = temp_listing(t);
    assert_null(strstr(listing, "-pawl"));
    assert_null(strstr(listing, "-wal"));
    free(listing);
}

/* ------------------------------------------------------------------------------------ stop */

typedef struct inside {
    gate at;
    pawl_status stop, close, wait, start;
    _Atomic int reason; /* pawl_stop_reason */
    int returns;
    bool polls; /* until it should stop */
    pawl_pool *pool;
    gate more;
} inside;

static int stop_inside(pawl_job *job, void *arg)
{
    inside *in = arg;
    pawl_pool *pool = pawl_job_pool(job);
    in->close = pawl_close(pool);
    in->wait = pawl_wait_idle(pool, 0);
    in->stop = pawl_stop(pool, 0);
    in->start = pawl_start(pool);
    gate_add(&in->at, 1);
    return in->returns;
}

/* Goal: stop inside a handler begins the stop and answers ACCEPTED; close and wait are refused there; the
 * outside then finds the pool at rest (G2). */
static void stop_inside_a_handler_only_begins(void **state)
{
    inside in = { .at = GATE_INIT };
    pawl_pool *pool = open_pool((temp *)*state, .executors = 2);
    assert_ok(pawl_register(pool, "k", stop_inside, &in, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "k");
    assert_true(gate_await(&in.at, 1));
    int64_t later = put(pool, .kind = "k"); /* the pool stops: it is stored, not run */
    assert_ok(pawl_stop(pool, FOREVER_MS));
    assert_int_equal(in.close, PAWL_ERR_STATE);
    assert_int_equal(in.wait, PAWL_ERR_STATE);
    assert_int_equal(in.stop, PAWL_ACCEPTED);
    assert_int_equal(in.start, PAWL_ERR_STATE);
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_int_equal(state_of(pool, later), PAWL_STATE_PENDING);
    assert_int_equal(attempts_of(pool, later), 0);
    assert_ok(pawl_start(pool)); /* and may go on */
    assert_true(gate_await(&in.at, 2));
    assert_ok(pawl_close(pool));
}

static void count_callback(pawl_status status, int64_t id, void *arg)
{
    (void)status;
    (void)id;
    gate_add(arg, 1);
}

static void stop_in_callback(pawl_status status, int64_t id, void *arg)
{
    inside *in = arg;
    (void)status;
    (void)id;
    in->close = pawl_close(in->pool);
    in->stop = pawl_stop(in->pool, 0);
    gate_add(&in->at, 1);
}

/* Goal: the same from a callback on the loop thread. */
static void stop_inside_a_callback_only_begins(void **state)
{
    inside in = { .at = GATE_INIT };
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    in.pool = pool;
    assert_ok(pawl_start(pool));
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), stop_in_callback, &in));
    assert_true(gate_await(&in.at, 1));
    assert_int_equal(in.close, PAWL_ERR_STATE);
    assert_int_equal(in.stop, PAWL_ACCEPTED);
    assert_ok(pawl_close(pool));
}

static void stop_in_late_callback(pawl_status status, int64_t id, void *arg)
{
    inside *in = arg;
    stop_in_callback(status, id, arg);
    in->wait = pawl_enqueue_async(in->pool, PAWL_JOB(.kind = "k"), count_callback, &in->more);
}

/* Goal: the same when pawl_close() itself delivers the callback; what is enqueued from there is refused as
 * CLOSED, or answered exactly once (I17, G2). */
static void close_delivers_callbacks_that_call_back(void **state)
{
    for (int started = 0; started < 2; started++) {
        inside in = { .at = GATE_INIT, .more = GATE_INIT };
        pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
        in.pool = pool;
        if (started)
            assert_ok(pawl_start(pool));
        int64_t before = count(state, "kind = 'k'");
        assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), stop_in_late_callback, &in));
        pawl_status st = pawl_close(pool);
        assert_ok(st);
        assert_int_equal(gate_count(&in.at), 1);
        /* While it closes, CLOSED is as good an answer as those of a pool that is open. */
        assert_true(in.close == PAWL_ERR_STATE || in.close == PAWL_ERR_CLOSED);
        assert_true(in.stop == PAWL_ACCEPTED || in.stop == PAWL_ERR_CLOSED);
        assert_true(in.wait == PAWL_OK || in.wait == PAWL_ERR_CLOSED);
        assert_int_equal(gate_count(&in.more), in.wait == PAWL_OK);
        assert_int_equal(count(state, "kind = 'k'"), before + 1 + (in.wait == PAWL_OK));
    }
}

static void *stop_for_ever(void *arg)
{
    inside *in = arg;
    in->stop = pawl_stop(in->pool, PAWL_FOREVER);
    return NULL;
}

static int hold(pawl_job *job, void *arg)
{
    inside *in = arg;
    gate_add(&in->at, 1);
    if (in->polls)
        while (!pawl_job_should_stop(job))
            (void)sched_yield();
    else
        (void)gate_await(&in->at, 1000);
    in->reason = pawl_job_stop_reason(job);
    return in->returns;
}

/* What becomes of a job whose handler returns that when it is told that the grace is over. */
static void stop_under_a_handler(void **state, int returns)
{
    inside in = { .at = GATE_INIT, .polls = true, .returns = returns };
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    assert_ok(pawl_register(pool, "k", hold, &in, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "k", .max_attempts = 1);
    assert_true(gate_await(&in.at, 1));
    int64_t began = now_ms();
    assert_ok(pawl_stop(pool, 50));
    assert_true(now_ms() - began >= 50); /* undisturbed for the grace */
    assert_int_equal(in.reason, PAWL_STOP_POOL);
    pawl_job_info info = job_of(pool, id);
    assert_int_equal(info.state, PAWL_STATE_PENDING);
    assert_int_equal(info.attempts, 0);
    assert_true(info.available_at_ms <= pawl_clock_now(pool));
    assert_true(info.claimed_at_ms > 0); /* it was this one that ran */
    pawl_job_info_clear(&info);
    assert_ok(pawl_cancel(pool, id)); /* out of the way of the next one */
    assert_ok(pawl_close(pool));
}

/* Goal: when the grace is over handlers are told (reason pool); one that then returns RETRY, or takes it for a
 * cancel, is given back uncharged, without a backoff (I9, I21). */
static void a_handler_is_told_when_the_grace_is_over(void **state)
{
    stop_under_a_handler(state, PAWL_RETRY);
    stop_under_a_handler(state, PAWL_CANCELLED);
}

/* Goal: a handler that does not listen makes stop answer TIMEOUT after 5 s more; its claim is kept, the pool
 * goes on stopping, and when it has returned the stop is OK (I21). */
static void a_handler_that_does_not_listen_times_the_stop_out(void **state)
{
    inside in = { .at = GATE_INIT };
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    assert_ok(pawl_register(pool, "k", hold, &in, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "k"), next = put(pool, .kind = "k");
    assert_true(gate_await(&in.at, 1));
    assert_status(pawl_stop(pool, 0), PAWL_ERR_TIMEOUT);
    assert_int_equal(state_of(pool, id), PAWL_STATE_RUNNING);
    assert_status(pawl_start(pool), PAWL_ERR_STATE);
    gate_add(&in.at, 1000);
    assert_ok(pawl_stop(pool, FOREVER_MS));
    assert_int_equal(in.reason, PAWL_STOP_POOL);
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_int_equal(state_of(pool, next), PAWL_STATE_PENDING);
    assert_int_equal(attempts_of(pool, next), 0);
    assert_ok(pawl_close(pool));
}

/* Goal: each caller of stop waits for its own time, whoever else waits (G2). */
static void a_stop_does_not_wait_for_another_stop(void **state)
{
    inside in = { .at = GATE_INIT };
    pthread_t other;
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    in.pool = pool;
    assert_ok(pawl_register(pool, "k", hold, &in, NULL));
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "k");
    assert_true(gate_await(&in.at, 1));
    assert_int_equal(pthread_create(&other, NULL, stop_for_ever, &in), 0);
    int64_t began = now_ms();
    while (pawl_start(pool) == PAWL_OK) /* until the other one has begun */
        (void)sched_yield();
    pawl_status st = pawl_stop(pool, 0);
    int64_t took = now_ms() - began;
    gate_add(&in.at, 1000); /* the handler returns in any case: after 20 s by itself */
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_status(st, PAWL_ERR_TIMEOUT);
    assert_in_range(took, 0, 12000); /* its grace, and 5 s more */
    assert_int_equal(in.stop, PAWL_OK);
    assert_ok(pawl_stop(pool, 0));
    assert_ok(pawl_close(pool));
}

static int hold_the_fiftieth(pawl_job *job, void *arg)
{
    inside *in = arg;
    gate_add(&in->at, 1);
    if (gate_count(&in->at) == 50)
        while (!pawl_job_should_stop(job))
            (void)sched_yield();
    return PAWL_SUCCEEDED;
}

/* Goal: what was claimed but not started is given back uncharged; nothing is left as running (I9, I21). */
static void unstarted_claims_are_given_back(void **state)
{
    enum { COUNT = 400 };
    inside in = { .at = GATE_INIT };
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    assert_ok(pawl_register(pool, "k", hold_the_fiftieth, &in, NULL));
    pawl_job_spec specs[COUNT];
    for (int i = 0; i < COUNT; i++)
        specs[i] = *PAWL_JOB(.kind = "k");
    assert_ok(pawl_enqueue_many(pool, specs, COUNT, NULL, NULL));
    assert_ok(pawl_start(pool));
    assert_true(gate_await(&in.at, 50));
    assert_ok(pawl_stop(pool, 0));
    int64_t ran = gate_count(&in.at);
    assert_int_equal(count(state, "status = 'succeeded' AND attempts = 1"), ran);
    assert_int_equal(count(state, "status = 'pending' AND attempts = 0 AND last_error IS NULL"), COUNT - ran);
    assert_true(ran < COUNT);
    assert_ok(pawl_start(pool));
    assert_ok(pawl_wait_idle(pool, FOREVER_MS));
    assert_int_equal(count(state, "status = 'succeeded' AND attempts = 1"), COUNT);
    assert_int_equal(gate_count(&in.at), COUNT);
    assert_ok(pawl_close(pool));
}

/* ------------------------------------------------------------------------------- wait_idle */

/* Goal: idle is when nothing is due, claimed or on its way; delayed jobs, kinds without a handler and other
 * queues do not count; a running job does, until the time given. */
static void wait_idle_means_what_it_says(void **state)
{
    inside in = { .at = GATE_INIT };
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    assert_ok(pawl_wait_idle(pool, FOREVER_MS));
    assert_ok(pawl_register(pool, "k", hold, &in, NULL));
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "nobody");
    (void)put(pool, .kind = "k", .delay_ms = 3600000);
    assert_ok(pawl_pause(pool, "paused"));
    (void)put(pool, .kind = "k", .queue = "paused");
    assert_ok(pawl_wait_idle(pool, FOREVER_MS));
    int64_t id = put(pool, .kind = "k");
    assert_true(gate_await(&in.at, 1));
    int64_t began = now_ms();
    assert_status(pawl_wait_idle(pool, 100), PAWL_ERR_TIMEOUT);
    assert_true(now_ms() - began >= 100);
    gate_add(&in.at, 1000);
    assert_ok(pawl_wait_idle(pool, FOREVER_MS));
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED); /* committed, not only returned */
    for (int i = 0; i < 200; i++)
        assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), NULL, NULL));
    assert_ok(pawl_wait_idle(pool, PAWL_FOREVER)); /* all earlier calls included */
    assert_int_equal(count(state, "status = 'succeeded'"), 201);
    assert_status(pawl_wait_idle(pool, -2), PAWL_ERR_INVALID);
    assert_ok(pawl_close(pool));
}

/* Goal: a time of 0 looks once: an idle pool says OK. */
static void wait_idle_without_time_looks_once(void **state)
{
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    assert_ok(pawl_wait_idle(pool, 0));
    assert_ok(pawl_close(pool));
}

/* Goal: a kind with a limit goes on by itself as soon as there is room; every job of it runs (I10, I15). */
typedef struct limited {
    _Atomic int now, most, runs;
} limited;

static int count_in_flight(pawl_job *job, void *arg)
{
    limited *l = arg;
    (void)job;
    int now = atomic_fetch_add(&l->now, 1) + 1, most = atomic_load(&l->most);
    while (now > most && !atomic_compare_exchange_weak(&l->most, &most, now)) {
    }
    (void)sched_yield();
    atomic_fetch_add(&l->runs, 1);
    atomic_fetch_sub(&l->now, 1);
    return PAWL_SUCCEEDED;
}

static void a_limited_kind_goes_on_by_itself(void **state)
{
    static limited l; /* static: should the test fail, the pool goes on without it */
    pawl_pool *pool = open_pool((temp *)*state, .executors = 4);
    assert_ok(pawl_register(pool, "k", count_in_flight, &l, PAWL_HANDLER(.in_flight_max = 2)));
    for (int i = 0; i < 100; i++)
        (void)put(pool, .kind = "k");
    assert_ok(pawl_start(pool));
    assert_ok(pawl_wait_idle(pool, FOREVER_MS));
    assert_int_equal(l.runs, 100);
    assert_in_range(l.most, 1, 2);
    assert_int_equal(count(state, "status = 'succeeded'"), 100);
    assert_ok(pawl_close(pool));
}

/* ---------------------------------------------------------------------------- several pools */

static int count_run(pawl_job *job, void *arg)
{
    _Atomic int *runs = arg;
    atomic_fetch_add(&runs[pawl_job_id(job)], 1);
    return PAWL_SUCCEEDED;
}

/* Goal: two pools of one process on one file share the work: every job runs once (I4). */
static void two_pools_on_one_file(void **state)
{
    enum { COUNT = 300 };
    static _Atomic int runs[COUNT + 1];
    memset((void *)runs, 0, sizeof runs);
    pawl_pool *a = open_pool((temp *)*state, .executors = 2, .store_timeout_ms = FOREVER_MS, .name = "a");
    pawl_pool *b = open_pool((temp *)*state, .executors = 2, .store_timeout_ms = FOREVER_MS, .name = "b");
    assert_ok(pawl_register(a, "k", count_run, (void *)runs, NULL));
    assert_ok(pawl_register(b, "k", count_run, (void *)runs, NULL));
    assert_ok(pawl_start(a));
    assert_ok(pawl_start(b));
    for (int i = 0; i < COUNT; i++)
        (void)put(i % 2 ? a : b, .kind = "k");
    assert_ok(pawl_wait_idle(a, FOREVER_MS));
    assert_ok(pawl_wait_idle(b, FOREVER_MS));
    for (int i = 1; i <= COUNT; i++)
        assert_int_equal(runs[i], 1);
    assert_int_equal(count(state, "status = 'succeeded' AND attempts = 1"), COUNT);
    assert_int_equal(count(state, "claimed_by NOT IN ('a', 'b')"), 0);
    assert_ok(pawl_close(a));
    assert_int_equal(sql_ask(((temp *)*state)->path, "SELECT sum(succeeded) - sum(enqueued) FROM pawl_lane"), 0);
    assert_ok(pawl_close(b));
}

/* Goal: a pool finds what another one enqueued for it, without being told (I10). */
static void a_pool_finds_what_another_enqueued(void **state)
{
    gate done = GATE_INIT;
    pawl_pool *enqueues = open_pool((temp *)*state, .executors = 1);
    pawl_pool *works = open_pool((temp *)*state, .executors = 1);
    assert_ok(pawl_register(works, "k", succeed, &done, NULL));
    assert_ok(pawl_start(works));
    for (int i = 1; i <= 3; i++) {
        int64_t began = now_ms();
        (void)put(enqueues, .kind = "k");
        assert_true(gate_await(&done, i));
        assert_true(now_ms() - began < 5000);
    }
    assert_ok(pawl_close(works));
    assert_ok(pawl_close(enqueues));
}

/* Goal: pools on two files have nothing to do with each other; a handler of one may use the other (G2). */
static int use_the_other(pawl_job *job, void *arg)
{
    pawl_pool *other = *(pawl_pool **)arg;
    (void)job;
    pawl_status st = pawl_enqueue(other, PAWL_JOB(.kind = "from a handler"), NULL);
    if (st == PAWL_OK)
        st = pawl_wait_idle(other, FOREVER_MS);
    return st == PAWL_OK ? PAWL_SUCCEEDED : PAWL_FAILED;
}

static void two_pools_on_two_files(void **state)
{
    temp *t = *state;
    pawl_pool *a = open_pool(t, .executors = 1), *b = NULL;
    assert_ok(pawl_open(PAWL_OPTIONS(.store = temp_file(t, "other.db"), .executors = 1), &b));
    assert_ok(pawl_register(a, "k", use_the_other, &b, NULL));
    assert_ok(pawl_start(a));
    assert_ok(pawl_start(b));
    int64_t id = put(a, .kind = "k");
    assert_ok(pawl_wait_idle(a, FOREVER_MS));
    assert_int_equal(state_of(a, id), PAWL_STATE_SUCCEEDED);
    assert_int_equal(count(state, "1"), 1);
    assert_int_equal(sql_ask(temp_file(t, "other.db"), "SELECT count(*) FROM pawl_jobs"), 1);
    assert_ok(pawl_close(a));
    assert_ok(pawl_close(b));
}

/* ---------------------------------------------------------------------------------- a guest */

static int in_the_child(pawl_pool *pool)
{
    pawl_job_info info = PAWL_JOB_INFO_INIT;
    pawl_stats_info stats = PAWL_STATS_INIT;
    int64_t id = 1;
    size_t found;
    const pawl_status answers[] = {
        pawl_enqueue(pool, PAWL_JOB(.kind = "k"), NULL),
        pawl_enqueue_many(pool, PAWL_JOB(.kind = "k"), 1, NULL, NULL),
        pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), NULL, NULL),
        pawl_register(pool, "l", succeed, NULL, NULL),
        pawl_start(pool),
        pawl_wait_idle(pool, 0),
        pawl_stop(pool, 0),
        pawl_cancel(pool, id),
        pawl_requeue(pool, id),
        pawl_requeue_many(pool, &id, 1, NULL),
        pawl_pause(pool, "q"),
        pawl_resume(pool, "q"),
        pawl_get(pool, id, &info),
        pawl_list(pool, NULL, &info, 1, &found),
        pawl_stats(pool, &stats),
        pawl_step(pool, NULL),
        pawl_close(pool),
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        if (answers[i] != PAWL_ERR_FORKED)
            return (int)i + 1;
    return pawl_error_message()[0] != '\0' ? 0 : 100;
}

/* Goal: in a forked child every call answers FORKED, and the parent's pool is unharmed (R10). */
static void a_forked_child_is_told(void **state)
{
    for (int started = 0; started < 2; started++) {
        gate done = GATE_INIT;
        pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
        assert_ok(pawl_register(pool, "k", succeed, &done, NULL));
        if (started)
            assert_ok(pawl_start(pool));
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(in_the_child(pool));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0); /* else the number of the call that did not say it */
        int64_t id = put(pool, .kind = "k");
        if (started)
            assert_true(gate_await(&done, 1));
        assert_ok(pawl_wait_idle(pool, FOREVER_MS));
        assert_int_equal(state_of(pool, id), started ? PAWL_STATE_SUCCEEDED : PAWL_STATE_PENDING);
        assert_ok(pawl_cancel(pool, put(pool, .kind = "nobody")));
        assert_ok(pawl_close(pool));
    }
}

/* Calls fn(name, path of the thread's directory) for every thread named pawl-…; tells how many. */
static int each_pawl_thread(void (*fn)(const char *name, const char *directory, void *arg), void *arg)
{
    int found = 0;
    DIR *d = opendir("/proc/self/task");
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        char path[300], comm[300], name[32] = "";
        (void)snprintf(path, sizeof path, "/proc/self/task/%s", entry->d_name);
        (void)snprintf(comm, sizeof comm, "%.280s/comm", path);
        FILE *file = fopen(comm, "re");
        if (file == NULL)
            continue;
        if (fgets(name, sizeof name, file) != NULL)
            name[strcspn(name, "\n")] = '\0';
        (void)fclose(file);
        if (strncmp(name, "pawl-", 5) != 0)
            continue;
        found++;
        fn(name, path, arg);
    }
    (void)closedir(d);
    return found;
}

static void note_name(const char *name, const char *directory, void *arg)
{
    static const char *const names[] = { "pawl-writer", "pawl-loop", "pawl-exec-1", "pawl-exec-2",
                                         "pawl-exec-3" };
    (void)directory;
    for (int i = 0; i < 5; i++)
        if (strcmp(name, names[i]) == 0)
            *(unsigned *)arg |= 1u << i;
}

static void check_mask(const char *name, const char *directory, void *arg)
{
    char path[320], line[256];
    unsigned long long blocked = 0;
    (void)name;
    (void)arg;
    (void)snprintf(path, sizeof path, "%s/status", directory);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "SigBlk:", 7) == 0)
            blocked = strtoull(line + 7, NULL, 16);
    (void)fclose(file);
    static const int asynchronous[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGALRM, SIGPIPE };
    static const int synchronous[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS };
    for (int i = 0; i < 7; i++) {
        assert_true((blocked >> (asynchronous[i] - 1) & 1) == 1);
        assert_true((blocked >> (synchronous[i] - 1) & 1) == 0);
    }
}

/* Goal: the pool's threads are named, block the asynchronous signals and leave the synchronous ones open; a
 * handler has been run by each executor before the look, so that all have named themselves (G1). */
static void threads_are_named_and_deaf(void **state)
{
    inside in = { .at = GATE_INIT };
    pawl_pool *pool = open_pool((temp *)*state, .executors = 3);
    assert_ok(pawl_register(pool, "k", hold, &in, NULL));
    assert_ok(pawl_start(pool));
    for (int i = 0; i < 3; i++)
        (void)put(pool, .kind = "k");
    assert_true(gate_await(&in.at, 3));
    unsigned names = 0;
    assert_int_equal(each_pawl_thread(note_name, &names), 5);
    assert_int_equal(names & ~2u, 0x1D); /* the loop may not have named itself yet */
    (void)each_pawl_thread(check_mask, NULL);
    gate_add(&in.at, 1000);
    assert_ok(pawl_close(pool));
    assert_int_equal(each_pawl_thread(note_name, &names), 0);
}

static void read_dispositions(struct sigaction *all)
{
    memset(all, 0, 65 * sizeof *all);
    for (int i = 1; i <= 64; i++)
        (void)sigaction(i, NULL, &all[i]);
}

/* Goal: no signal disposition, no mask of the caller, no working directory is changed (G1). */
static void the_process_is_left_as_it_was(void **state)
{
    static struct sigaction before[65], during[65], after[65];
    sigset_t mask_before, mask_after;
    char cwd_before[4096], cwd_after[4096];
    gate done = GATE_INIT;
    read_dispositions(before);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask_before);
    assert_non_null(getcwd(cwd_before, sizeof cwd_before));
    pawl_pool *pool = open_pool((temp *)*state, .executors = 2);
    assert_ok(pawl_register(pool, "k", succeed, &done, NULL));
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "k");
    assert_true(gate_await(&done, 1));
    read_dispositions(during);
    assert_ok(pawl_close(pool));
    read_dispositions(after);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
    assert_non_null(getcwd(cwd_after, sizeof cwd_after));
    for (int i = 1; i <= 64; i++) {
        assert_ptr_equal(before[i].sa_handler, during[i].sa_handler);
        assert_ptr_equal(before[i].sa_handler, after[i].sa_handler);
        assert_int_equal(before[i].sa_flags, after[i].sa_flags);
    }
    for (int i = 1; i <= 64; i++)
        assert_int_equal(sigismember(&mask_before, i), sigismember(&mask_after, i));
    assert_string_equal(cwd_before, cwd_after);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_A_STACK_OF_ITS_OWN 0 /* a sanitizer needs a larger one */
#else
#define HAS_A_STACK_OF_ITS_OWN 1
#endif

static int use_some_stack(pawl_job *job, void *arg)
{
    pawl_pool *pool = pawl_job_pool(job);
    pawl_job_info info = PAWL_JOB_INFO_INIT;
    pawl_stats_info stats = PAWL_STATS_INIT;
    bool ok = pawl_enqueue(pool, PAWL_JOB(.kind = "l"), NULL) == PAWL_OK;
    ok = pawl_get(pool, pawl_job_id(job), &info) == PAWL_OK && ok;
    ok = pawl_stats(pool, &stats) == PAWL_OK && ok;
    ok = pawl_job_heartbeat(job) == PAWL_OK && ok;
    ok = pawl_job_then(job, PAWL_JOB(.kind = "l")) == PAWL_OK && ok;
    pawl_job_info_clear(&info);
    pawl_stats_info_clear(&stats);
    char text[9000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    pawl_job_error(job, "%s", text);
    gate_add(arg, 1);
    return ok ? PAWL_SUCCEEDED : PAWL_FAILED;
}

/* Goal: the smallest stack that is accepted is enough for every call of the API in a handler (G1). */
static void the_smallest_stack_is_enough(void **state)
{
    if (!HAS_A_STACK_OF_ITS_OWN)
        skip();
    gate done = GATE_INIT;
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1, .stack_bytes = 64 << 10);
    assert_ok(pawl_register(pool, "k", use_some_stack, &done, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "k");
    assert_true(gate_await(&done, 1));
    assert_ok(pawl_wait_idle(pool, FOREVER_MS));
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_close(pool));
}

static int get_stuck(pawl_job *job, void *arg)
{
    (void)arg;
    pawl_status st = pawl_clock_advance(pawl_job_pool(job), 61000);
    if (st == PAWL_OK)
        st = pawl_enqueue(pawl_job_pool(job), PAWL_JOB(.kind = "nobody"), NULL);
    return st == PAWL_OK ? PAWL_SUCCEEDED : PAWL_FAILED;
}

static void note_lines(pawl_log_level level, const char *line, void *arg)
{
    (void)level;
    if (strchr(line, '\n') == NULL && line[0] != '\0')
        ++*(int *)arg;
}

/* Lets a pool warn; tells how many bytes came to standard error. */
static int64_t bytes_on_stderr(temp *t, pawl_log_fn log, int *lines)
{
    const char *path = temp_file(t, "stderr");
    int saved = dup(STDERR_FILENO), file = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(saved >= 0 && file >= 0);
    assert_true(dup2(file, STDERR_FILENO) >= 0);
    pawl_pool *pool = NULL;
    pawl_status opened = pawl_open(PAWL_OPTIONS(.store = t->path, .flags = PAWL_OPEN_INLINE, .log = log,
                                                .log_arg = lines), &pool);
    pawl_status st = opened;
    if (st == PAWL_OK)
        st = pawl_register(pool, "k", get_stuck, NULL, PAWL_HANDLER(.timeout_ms = 1000));
    if (st == PAWL_OK)
        st = pawl_start(pool);
    if (st == PAWL_OK)
        st = pawl_enqueue(pool, PAWL_JOB(.kind = "k"), NULL);
    if (st == PAWL_OK)
        st = pawl_run_until_idle(pool);
    if (opened == PAWL_OK)
        (void)pawl_close(pool);
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    struct stat stat_of_file;
    assert_int_equal(fstat(file, &stat_of_file), 0);
    (void)close(file);
    assert_ok(st);
    return stat_of_file.st_size;
}

/* Goal: with a hook the library is silent but for the hook, one line a call; without one a warning is a line
 * on standard error. */
static void the_log_hook_is_the_only_output(void **state)
{
    int lines = 0;
    assert_int_equal(bytes_on_stderr(*state, note_lines, &lines), 0);
    assert_true(lines >= 1);
    assert_true(bytes_on_stderr(*state, NULL, NULL) > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    TEST(open_and_close),
    TEST(start_stop_start),
    TEST(a_stopped_pool_still_stores),
    TEST(nothing_is_left_after_close),
    TEST(stop_inside_a_handler_only_begins),
    TEST(stop_inside_a_callback_only_begins),
    TEST(close_delivers_callbacks_that_call_back),
    TEST(a_handler_is_told_when_the_grace_is_over),
    TEST(a_handler_that_does_not_listen_times_the_stop_out),
    TEST(a_stop_does_not_wait_for_another_stop),
    TEST(unstarted_claims_are_given_back),
    TEST(wait_idle_means_what_it_says),
    TEST(wait_idle_without_time_looks_once),
    TEST(a_limited_kind_goes_on_by_itself),
    TEST(two_pools_on_one_file),
    TEST(a_pool_finds_what_another_enqueued),
    TEST(two_pools_on_two_files),
    TEST(a_forked_child_is_told),
    TEST(threads_are_named_and_deaf),
    TEST(the_process_is_left_as_it_was),
    TEST(the_smallest_stack_is_enough),
    TEST(the_log_hook_is_the_only_output),
};

static void *nothing(void *arg)
{
    return arg;
}

/* With a first thread a sanitizer starts one of its own: before anything is counted. */
static int warm_up(void **state)
{
    pthread_t thread;
    (void)state;
    return pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0;
}

int main(void)
{
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
