/* detached_test.c - jobs that go on after their handler has returned, finished by other threads: in what limits,
 * and in every order with the end of a lease, a stop and a close. (On the virtual clock: inline_test.c; when the
 * process dies: death_test.c.) */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "gate.h"
#include "look.h"
#include "patience.h"

#define LONG_MS 20000 /* the test has failed */

/* Handles on their way from the handlers to those who finish them. */
typedef struct handles {
    pthread_mutex_t lock;
    pawl_job *all[4096];
    int count, taken; /* under it */
    gate detached;
} handles;
#define HANDLES_INIT { .lock = PTHREAD_MUTEX_INITIALIZER, .detached = GATE_INIT }

static int detach(pawl_job *job, void *arg)
{
    handles *h = arg;
    (void)pthread_mutex_lock(&h->lock);
    h->all[h->count++] = job;
    (void)pthread_mutex_unlock(&h->lock);
    gate_add(&h->detached, 1);
    return PAWL_DETACHED;
}

/* The next handle; NULL: there is none yet. */
static pawl_job *take(handles *h)
{
    (void)pthread_mutex_lock(&h->lock);
    pawl_job *job = h->taken < h->count ? h->all[h->taken++] : NULL;
    (void)pthread_mutex_unlock(&h->lock);
    return job;
}

static bool all_detached(void *arg)
{
    pawl_stats_info stats = PAWL_STATS_INIT;
    bool so = pawl_stats(arg, &stats) == PAWL_OK && stats.executors_busy == 0;
    pawl_stats_info_clear(&stats);
    return so;
}

/* ---------------------------------------------------------------------------------- limits */

/* A table of the application's in which the store itself notes, at each claim, how many are held. */
static void note_claims(const temp *t)
{
    change(t->path,
           "CREATE TABLE held (kind TEXT, count INTEGER);"
           "CREATE TRIGGER held_by_update AFTER UPDATE ON pawl_job WHEN new.status = 3 BEGIN"
           " INSERT INTO held SELECT k.name, (SELECT count(*) FROM pawl_job WHERE lane = new.lane AND status = 3)"
           "  FROM pawl_lane l JOIN pawl_kind k ON k.id = l.kind WHERE l.id = new.lane; END;"
           "CREATE TRIGGER held_by_insert AFTER INSERT ON pawl_job WHEN new.status = 3 BEGIN"
           " INSERT INTO held SELECT k.name, (SELECT count(*) FROM pawl_job WHERE lane = new.lane AND status = 3)"
           "  FROM pawl_lane l JOIN pawl_kind k ON k.id = l.kind WHERE l.id = new.lane; END");
}

enum { LIMIT = 3, LIMITED = 300, FREE = 60 };

static void *finish_the_limited(void *arg)
{
    for (int finished = 0; finished < LIMITED;) {
        pawl_job *job = take(arg);
        if (job == NULL)
            nap_ms(1);
        else if (pawl_job_finish(job, PAWL_SUCCEEDED) == PAWL_OK)
            finished++;
        else
            break;
    }
    return NULL;
}

/* Goal: the limit of a kind counts its detached jobs, in the store and at every commit, whether they were waiting
 * or handed off; a kind without a limit goes on beside it (I15). */
static void a_limited_kind_counts_its_detached_jobs(void **state)
{
    temp *t = *state;
    handles limited = HANDLES_INIT, free_ones = HANDLES_INIT;
    pthread_t finisher;
    pawl_pool *pool = open_pool(t, .executors = 4);
    note_claims(t);
    assert_ok(pawl_register(pool, "limited", detach, &limited, PAWL_HANDLER(.in_flight_max = LIMIT)));
    assert_ok(pawl_register(pool, "free", detach, &free_ones, NULL));
    for (int i = 0; i < LIMITED / 2; i++) /* half of them wait, half come while the pool works */
        (void)put(pool, .kind = "limited");
    assert_ok(pawl_start(pool));
    assert_true(gate_await(&limited.detached, LIMIT));
    for (int i = 0; i < FREE; i++)
        (void)put(pool, .kind = "free");
    assert_true(gate_await(&free_ones.detached, FREE)); /* past those of the limited kind that may not */
    assert_int_equal(gate_count(&limited.detached), LIMIT);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE kind = 'limited' AND status = 'running'"), LIMIT);
    assert_int_equal(pthread_create(&finisher, NULL, finish_the_limited, &limited), 0);
    for (int i = LIMITED / 2; i < LIMITED; i++)
        (void)put(pool, .kind = "limited");
    assert_int_equal(pthread_join(finisher, NULL), 0);
    for (pawl_job *job; (job = take(&free_ones)) != NULL;)
        assert_ok(pawl_job_finish(job, PAWL_SUCCEEDED));
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    assert_ok(pawl_close(pool));
    assert_int_equal(look(t->path, "SELECT max(count) FROM held WHERE kind = 'limited'"), LIMIT);
    assert_int_equal(look(t->path, "SELECT count(*) FROM held WHERE kind = 'limited'"), LIMITED);
    assert_true(look(t->path, "SELECT max(count) FROM held WHERE kind = 'free'") > LIMIT);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded' AND attempts = 1"),
                     LIMITED + FREE);
    assert_counters_are_right(t->path);
}

/* Goal: claims pause when detached_max jobs are in flight, and go on when some have been finished. */
static void claims_pause_at_the_pools_limit(void **state)
{
    enum { MOST = 10, JOBS = 100, EXECUTORS = 2 };
    temp *t = *state;
    handles h = HANDLES_INIT;
    pawl_pool *pool = open_pool(t, .executors = EXECUTORS, .detached_max = MOST);
    assert_ok(pawl_register(pool, "k", detach, &h, NULL));
    assert_ok(pawl_start(pool));
    for (int i = 0; i < JOBS; i++)
        (void)put(pool, .kind = "k");
    int finished = 0;
    while (finished < JOBS) {
        assert_true(gate_await(&h.detached, finished + (JOBS - finished < MOST ? JOBS - finished : MOST)));
        assert_true(eventually(all_detached, pool, LONG_MS));
        assert_true(gate_count(&h.detached) - finished <= MOST + EXECUTORS); /* some are between busy and detached */
        for (pawl_job *job; (job = take(&h)) != NULL; finished++)
            assert_ok(pawl_job_finish(job, PAWL_SUCCEEDED));
    }
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    assert_ok(pawl_close(pool));
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"), JOBS);
}

/* ------------------------------------------------------------------------- leases and stops */

/* One detached job; the pool's lease and the job's timeout are short. */
static pawl_job *detach_one(pawl_pool *pool, handles *h, int64_t *id)
{
    int before = gate_count(&h->detached);
    *id = put(pool, .kind = "k");
    assert_true(gate_await(&h->detached, before + 1));
    assert_true(eventually(all_detached, pool, LONG_MS));
    return take(h);
}

/* Goal: a detached job is held for as long as it takes, several leases, by the pool's heartbeats; its own
 * heartbeat, from the thread that finishes it, is confirmed as well. No other pool takes it (I12). */
static void a_detached_job_is_held_past_its_lease(void **state)
{
    temp *t = *state;
    handles h = HANDLES_INIT, others = HANDLES_INIT;
    int64_t id;
    pawl_pool *pool = open_pool(t, .executors = 1, .lease_ms = 300), *other = open_pool(t, .executors = 1);
    assert_ok(pawl_register(pool, "k", detach, &h, NULL));
    assert_ok(pawl_register(other, "k", detach, &others, NULL));
    assert_ok(pawl_start(pool));
    pawl_job *job = detach_one(pool, &h, &id);
    assert_ok(pawl_start(other));
    int64_t until = steady_ms() + 1500; /* five leases */
    while (steady_ms() < until) {
        assert_int_equal(pawl_job_stop_reason(job), PAWL_STOP_NONE);
        assert_ok(pawl_job_heartbeat(job));
        nap_ms(300);
    }
    assert_int_equal(gate_count(&others.detached), 0);
    assert_ok(pawl_job_finish(job, PAWL_SUCCEEDED));
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    assert_int_equal(attempts_of(pool, id), 1);
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_close(other));
    assert_ok(pawl_close(pool));
}

static bool is_lost(void *arg)
{
    return pawl_job_stop_reason(arg) == PAWL_STOP_LEASE_LOST;
}

static bool is_let_go(void *arg)
{
    pawl_stats_info stats = PAWL_STATS_INIT;
    bool so = pawl_stats(arg, &stats) == PAWL_OK && stats.detached == 0;
    pawl_stats_info_clear(&stats);
    return so;
}

/* Goal: a job that was not finished in its time is charged and runs again; its handle stays good: a finish answers
 * LEASE_LOST while the pool is open and CLOSED after it, changes nothing, and frees it (I6). */
static void a_finish_that_comes_too_late_changes_nothing(void **state)
{
    temp *t = *state;
    for (int closed = 0; closed <= 1; closed++) {
        handles h = HANDLES_INIT;
        int64_t id;
        static const int64_t never[] = { 100000 };
        pawl_pool *pool = open_pool(t, .executors = 1, .lease_ms = 200);
        assert_ok(pawl_register(pool, "k", detach, &h,
                                PAWL_HANDLER(.timeout_ms = 100, .backoff_ms = never, .backoff_count = 1)));
        assert_ok(pawl_start(pool));
        pawl_job *job = detach_one(pool, &h, &id);
        assert_true(eventually(is_lost, job, LONG_MS));
        assert_true(eventually(is_let_go, pool, LONG_MS));
        if (closed) {
            assert_ok(pawl_close(pool)); /* nothing is held any more */
            assert_status(pawl_job_finish(job, PAWL_SUCCEEDED), PAWL_ERR_CLOSED);
        } else {
            assert_status(pawl_job_finish(job, PAWL_SUCCEEDED), PAWL_ERR_LEASE_LOST);
            assert_ok(pawl_close(pool));
        }
        assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE id = %d AND status = 'pending' AND attempts"
                                       " = 1 AND last_error = 'timed out after 100 ms and was not finished'", (int)id), 1);
    }
}

typedef struct stopper {
    pawl_pool *pool;
    _Atomic int answer;
} stopper;

static void *stop_patiently(void *arg)
{
    stopper *s = arg;
    atomic_store(&s->answer, pawl_stop(s->pool, PAWL_FOREVER));
    return NULL;
}

static bool has_refused_to_start(void *arg)
{
    return pawl_start(arg) == PAWL_ERR_STATE; /* it is stopping */
}

/* Goal: a finish while the pool stops is recorded, and the stop, which has waited for it, answers OK (I21). A stop
 * with a limit times out before that and changes nothing. */
static void a_finish_during_a_stop_is_recorded(void **state)
{
    temp *t = *state;
    static const int outcomes[] = { PAWL_SUCCEEDED, PAWL_FAILED, PAWL_RETRY };
    static const pawl_state states[] = { PAWL_STATE_SUCCEEDED, PAWL_STATE_FAILED, PAWL_STATE_PENDING };
    for (int i = 0; i < 3; i++) {
        handles h = HANDLES_INIT;
        int64_t id;
        pthread_t thread;
        stopper s = { .answer = 99 };
        pawl_pool *pool = s.pool = open_pool(t, .executors = 1);
        assert_ok(pawl_register(pool, "k", detach, &h, NULL));
        assert_ok(pawl_start(pool));
        pawl_job *job = detach_one(pool, &h, &id);
        assert_int_equal(pthread_create(&thread, NULL, stop_patiently, &s), 0);
        assert_true(eventually(has_refused_to_start, pool, LONG_MS));
        assert_int_equal(atomic_load(&s.answer), 99); /* it waits */
        assert_ok(pawl_job_finish(job, outcomes[i]));
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(atomic_load(&s.answer), PAWL_OK);
        assert_int_equal(state_of(pool, id), states[i]);
        assert_int_equal(attempts_of(pool, id), outcomes[i] == PAWL_RETRY ? 0 : 1); /* given back */
        assert_ok(pawl_cancel(pool, put(pool, .kind = "k")));
        if (outcomes[i] == PAWL_RETRY)
            assert_ok(pawl_cancel(pool, id));
        assert_ok(pawl_close(pool));
    }
}

/* --------------------------------------------------------------- before the handler returned */

static int finish_inside(pawl_job *job, void *arg)
{
    pawl_status st = pawl_job_finish(job, *(const int *)pawl_job_payload(job, NULL));
    if (st == PAWL_OK)
        gate_add(arg, 1);
    return PAWL_DETACHED;
}

/* Goal: a job may be finished before its handler has returned, by the handler itself; what was said then counts. */
static void a_handler_may_finish_its_own_job(void **state)
{
    temp *t = *state;
    gate finished = GATE_INIT;
    pawl_pool *pool = open_pool(t, .executors = 2);
    assert_ok(pawl_register(pool, "k", finish_inside, &finished, NULL));
    assert_ok(pawl_start(pool));
    for (int i = 0; i < 50; i++) {
        int outcome = i % 2 == 0 ? PAWL_SUCCEEDED : PAWL_FAILED;
        (void)put(pool, .kind = "k", .payload = &outcome, .payload_bytes = sizeof outcome);
    }
    assert_true(gate_await(&finished, 50));
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    pawl_stats_info stats = stats_of(pool);
    assert_int_equal(stats.detached, 0);
    assert_int_equal(stats.in_hand, 0);
    pawl_stats_info_clear(&stats);
    assert_ok(pawl_close(pool));
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"), 25);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'failed'"), 25);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    TEST(a_limited_kind_counts_its_detached_jobs),
    TEST(claims_pause_at_the_pools_limit),
    TEST(a_detached_job_is_held_past_its_lease),
    TEST(a_finish_that_comes_too_late_changes_nothing),
    TEST(a_finish_during_a_stop_is_recorded),
    TEST(a_handler_may_finish_its_own_job),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
