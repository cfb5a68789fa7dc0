/* tiny_limits_test.c - pools with every limit at its least, and handlers that use them from inside.
 *
 * Goal: nothing deadlocks (G2), no wake-up is lost (I10), limits hold (I15), and every count is right at
 * the end (I20). Each wait has a time; a hang is a failure that says where. */
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "gate.h"
#include "look.h"
#include "patience.h"

#define LONG_MS 30000

static const int64_t soon[] = { 1 };

static const temp *of(void **state)
{
    return *state;
}

static int64_t count(const temp *t, const char *status)
{
    return look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = '%s'", status);
}

/* ------------------------------------------------------- handlers that call into the pool */

typedef struct tree {
    _Atomic int64_t ran, refused;
    int depth;
} tree;

/* Each job enqueues two more and waits for the commit of both, cancels one of them now and then,
 * heartbeats, and looks at itself. */
static int grow(pawl_job *job, void *arg)
{
    tree *here = arg;
    pawl_pool *pool = pawl_job_pool(job);
    size_t bytes;
    int depth = *(const unsigned char *)pawl_job_payload(job, &bytes);
    (void)atomic_fetch_add(&here->ran, 1);
    for (int i = 0; i < 2 && depth < here->depth; i++) {
        char next = (char)(depth + 1);
        int64_t id;
        pawl_status st = pawl_enqueue(pool, PAWL_JOB(.kind = "grow", .payload = &next,
                                                     .payload_bytes = 1), &id);
        if (st != PAWL_OK)
            (void)atomic_fetch_add(&here->refused, 1);
    }
    if (pawl_job_heartbeat(job) != PAWL_OK)
        (void)atomic_fetch_add(&here->refused, 1);
    pawl_job_info info = PAWL_JOB_INFO_INIT;
    if (pawl_get(pool, pawl_job_id(job), &info) != PAWL_OK || info.state != PAWL_STATE_RUNNING)
        (void)atomic_fetch_add(&here->refused, 1);
    pawl_job_info_clear(&info);
    if (pawl_wait_idle(pool, 0) != PAWL_ERR_STATE)
        (void)atomic_fetch_add(&here->refused, 1);
    return PAWL_SUCCEEDED;
}

static void handlers_enqueue_through_a_channel_of_one(void **state)
{
    const temp *t = of(state);
    for (uint32_t executors = 1; executors <= 8; executors *= 8) {
        tree here = { .depth = 7 };
        pawl_pool *pool = open_pool(t, .executors = executors, .command_max = 1,
                                    .synchronous = PAWL_SYNCHRONOUS_NORMAL,
                                    .store_timeout_ms = LONG_MS);
        assert_ok(pawl_register(pool, "grow", grow, &here, NULL));
        assert_ok(pawl_start(pool));
        (void)put(pool, .kind = "grow", .payload = "", .payload_bytes = 1);
        assert_ok(pawl_wait_idle(pool, LONG_MS));
        assert_int_equal(atomic_load(&here.refused), 0);
        assert_int_equal(atomic_load(&here.ran), 255);
        assert_ok(pawl_close(pool));
    }
    assert_int_equal(count(t, "succeeded"), 510);
    assert_counters_are_right(t->path);
}

/* ------------------------------------------------------------------- one claim at a time */

typedef struct meter {
    _Atomic int inside, most, ran;
} meter;

static int measure(pawl_job *job, void *arg)
{
    meter *m = arg;
    (void)job;
    int inside = atomic_fetch_add(&m->inside, 1) + 1, most = atomic_load(&m->most);
    while (inside > most && !atomic_compare_exchange_weak(&m->most, &most, inside)) {
    }
    nap_ms(1);
    (void)atomic_fetch_add(&m->ran, 1);
    (void)atomic_fetch_sub(&m->inside, 1);
    return PAWL_SUCCEEDED;
}

/* I15 and I10: one job of the kind at a time, and the next one starts when it has ended. */
static void a_limit_of_one_holds_and_starves_nobody(void **state)
{
    const temp *t = of(state);
    meter m = { 0 };
    pawl_job_spec specs[20];
    for (size_t i = 0; i < 20; i++)
        specs[i] = *PAWL_JOB(.kind = "measure");
    pawl_pool *pool = open_pool(t, .executors = 4);
    assert_ok(pawl_register(pool, "measure", measure, &m, PAWL_HANDLER(.in_flight_max = 1)));
    assert_ok(pawl_start(pool));
    assert_ok(pawl_enqueue_many(pool, specs, 20, NULL, NULL));
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    assert_int_equal(atomic_load(&m.ran), 20); /* idle means that nothing is left */
    assert_int_equal(atomic_load(&m.most), 1);
    assert_ok(pawl_close(pool));
}

/* --------------------------------------------------------------------------- detached jobs */

typedef struct detachment {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pawl_job *waiting[256]; /* to be finished */
    size_t count;
    bool ends;
} detachment;

static int detach(pawl_job *job, void *arg)
{
    detachment *d = arg;
    (void)pthread_mutex_lock(&d->lock);
    d->waiting[d->count++] = job;
    (void)pthread_cond_signal(&d->changed);
    (void)pthread_mutex_unlock(&d->lock);
    return PAWL_DETACHED;
}

static void *finish_them(void *arg)
{
    detachment *d = arg;
    (void)pthread_mutex_lock(&d->lock);
    while (!d->ends || d->count > 0) {
        if (d->count == 0) {
            (void)pthread_cond_wait(&d->changed, &d->lock);
            continue;
        }
        pawl_job *job = d->waiting[--d->count];
        (void)pthread_mutex_unlock(&d->lock);
        (void)pawl_job_finish(job, PAWL_SUCCEEDED);
        (void)pthread_mutex_lock(&d->lock);
    }
    (void)pthread_mutex_unlock(&d->lock);
    return NULL;
}

static void one_detached_job_at_a_time(void **state)
{
    const temp *t = of(state);
    detachment d = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, finish_them, &d), 0);
    pawl_pool *pool = open_pool(t, .executors = 1, .detached_max = 1, .command_max = 1,
                                .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    assert_ok(pawl_register(pool, "detach", detach, &d, NULL));
    assert_ok(pawl_start(pool));
    for (int i = 0; i < 200; i++)
        (void)put(pool, .kind = "detach");
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    assert_ok(pawl_close(pool));
    (void)pthread_mutex_lock(&d.lock);
    d.ends = true;
    (void)pthread_cond_signal(&d.changed);
    (void)pthread_mutex_unlock(&d.lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(count(t, "succeeded"), 200);
    assert_counters_are_right(t->path);
}

/* ------------------------------------------------------------------------- a tiny lease */

static int work_on(pawl_job *job, void *arg)
{
    (void)arg;
    for (int i = 0; i < 60 && !pawl_job_should_stop(job); i++)
        nap_ms(5);
    return pawl_job_stop_reason(job) == PAWL_STOP_NONE ? PAWL_SUCCEEDED : PAWL_FAILED;
}

/* Handlers that outlast the least lease three times are kept alive by the pool: none is lost. */
static void the_least_lease_is_kept_alive(void **state)
{
    const temp *t = of(state);
    pawl_pool *pool = open_pool(t, .executors = 4, .lease_ms = 1000,
                                .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    pawl_pool *other = open_pool(t, .executors = 1, .lease_ms = 1000); /* it would take what expires */
    assert_ok(pawl_register(pool, "work", work_on, NULL, NULL));
    assert_ok(pawl_start(pool));
    assert_ok(pawl_start(other));
    for (int i = 0; i < 12; i++)
        (void)put(pool, .kind = "work", .max_attempts = 1);
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    assert_ok(pawl_close(other));
    assert_ok(pawl_close(pool));
    assert_int_equal(count(t, "succeeded"), 12);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_attempts"), 0);
}

static int beat_on(pawl_job *job, void *arg)
{
    (void)arg;
    while (pawl_job_heartbeat(job) == PAWL_OK) /* and never looks at pawl_job_should_stop() */
        (void)sched_yield();
    return PAWL_SUCCEEDED;
}

/* A handler that ignores its timeout and heartbeats on: its claim ends once, as timed out, although
 * ending and heartbeat meet in one batch; what it says later is refused. */
static void stuck_handlers_that_heartbeat_are_evicted_once(void **state)
{
    const temp *t = of(state);
    pawl_pool *pool = open_pool(t, .executors = 4, .lease_ms = 100,
                                .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    assert_ok(pawl_register(pool, "beat", beat_on, NULL,
                            PAWL_HANDLER(.timeout_ms = 20, .backoff_ms = soon, .backoff_count = 1)));
    assert_ok(pawl_start(pool));
    for (int i = 0; i < 6; i++)
        (void)put(pool, .kind = "beat", .max_attempts = 2);
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    while (count(t, "failed") < 6) { /* retries that were not due yet */
        nap_ms(10);
        assert_ok(pawl_wait_idle(pool, LONG_MS));
    }
    pawl_stats_info stats = stats_of(pool);
    assert_int_equal(stats.in_hand, 0);
    assert_int_equal(stats.executors_stuck, 0);
    assert_int_equal(stats.executors_busy, 0);
    pawl_stats_info_clear(&stats);
    assert_ok(pawl_close(pool));
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_attempts WHERE charged = 1"), 12);
    assert_counters_are_right(t->path);
}

/* Detached, past its timeout, and heartbeating on: the claim ends under its feet, and the handle is its
 * own to free. */
static void *beat_and_finish(void *arg)
{
    pawl_job *job = arg;
    while (pawl_job_heartbeat(job) == PAWL_OK)
        (void)sched_yield();
    (void)pawl_job_finish(job, PAWL_SUCCEEDED);
    return NULL;
}

typedef struct beaters {
    pthread_t threads[64];
    _Atomic int count;
} beaters;

static int detach_and_beat(pawl_job *job, void *arg)
{
    beaters *b = arg;
    int at = atomic_fetch_add(&b->count, 1);
    return pthread_create(&b->threads[at], NULL, beat_and_finish, job) == 0 ? PAWL_DETACHED : PAWL_FAILED;
}

static void detached_jobs_that_lose_their_claim_are_freed_once(void **state)
{
    const temp *t = of(state);
    beaters b = { .count = 0 };
    pawl_pool *pool = open_pool(t, .executors = 4, .lease_ms = 100,
                                .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    assert_ok(pawl_register(pool, "beat", detach_and_beat, &b, PAWL_HANDLER(.timeout_ms = 10)));
    assert_ok(pawl_start(pool));
    for (int i = 0; i < 40; i++)
        (void)put(pool, .kind = "beat", .max_attempts = 1);
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    assert_int_equal(atomic_load(&b.count), 40);
    for (int i = 0; i < 40; i++)
        assert_int_equal(pthread_join(b.threads[i], NULL), 0);
    assert_ok(pawl_close(pool));
    assert_int_equal(count(t, "failed"), 40);
    assert_counters_are_right(t->path);
}

/* --------------------------------------------------------------------- a full channel */

typedef struct asked {
    _Atomic int64_t ok, failed;
} asked;

static void told(pawl_status status, int64_t id, void *arg)
{
    asked *a = arg;
    (void)id;
    (void)atomic_fetch_add(status == PAWL_OK ? &a->ok : &a->failed, 1);
}

/* What is taken is answered exactly once; what is over the bound is refused and leaves nothing. */
static void a_full_channel_refuses_and_recovers(void **state)
{
    const temp *t = of(state);
    asked a = { 0 };
    int64_t taken = 0, refused = 0;
    pawl_pool *pool = open_pool(t, .executors = 1, .command_max = 1, .command_bytes_max = 1,
                                .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    assert_ok(pawl_start(pool));
    for (int i = 0; i < 3000; i++) {
        pawl_status st = pawl_enqueue_async(pool, PAWL_JOB(.kind = "none"), told, &a);
        assert_true(st == PAWL_OK || st == PAWL_ERR_FULL);
        taken += st == PAWL_OK;
        refused += st == PAWL_ERR_FULL;
    }
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    assert_ok(pawl_close(pool));
    assert_true(taken > 0 && refused > 0);
    assert_int_equal(atomic_load(&a.ok), taken);
    assert_int_equal(atomic_load(&a.failed), 0);
    assert_int_equal(count(t, "pending"), taken);
    assert_counters_are_right(t->path);
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    in_a_directory(handlers_enqueue_through_a_channel_of_one),
    in_a_directory(a_limit_of_one_holds_and_starves_nobody),
    in_a_directory(one_detached_job_at_a_time),
    in_a_directory(the_least_lease_is_kept_alive),
    in_a_directory(stuck_handlers_that_heartbeat_are_evicted_once),
    in_a_directory(detached_jobs_that_lose_their_claim_are_freed_once),
    in_a_directory(a_full_channel_refuses_and_recovers),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
