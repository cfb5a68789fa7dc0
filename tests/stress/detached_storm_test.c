/* detached_storm_test.c - thousands of detached jobs: all in flight at once, and finished while their handlers are
 * still returning. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "gate.h"
#include "look.h"
#include "patience.h"

enum { JOBS = 5000, FINISHERS = 8, BATCH = 500 };
#define LONG_MS 60000 /* the test has failed */

typedef struct crowd {
    _Atomic(pawl_job *) all[JOBS];
    _Atomic int starts[JOBS];
    _Atomic int next;  /* to be finished */
    _Atomic int count; /* detached so far */
    _Atomic int refused;
    gate detached;
    int order[JOBS];
} crowd;

static int outcome_of(int number)
{
    return number % 3 == 0 ? PAWL_FAILED : PAWL_SUCCEEDED;
}

static int detach(pawl_job *job, void *arg)
{
    crowd *c = arg;
    int number;
    memcpy(&number, pawl_job_payload(job, NULL), sizeof number);
    (void)atomic_fetch_add(&c->starts[number], 1);
    atomic_store(&c->all[atomic_fetch_add(&c->count, 1)], job);
    gate_add(&c->detached, 1);
    return PAWL_DETACHED;
}

static void finish(crowd *c, pawl_job *job)
{
    int number;
    memcpy(&number, pawl_job_payload(job, NULL), sizeof number);
    if (number % 7 == 0)
        pawl_job_error(job, "job %d has something to say", number);
    if (pawl_job_finish(job, outcome_of(number)) != PAWL_OK)
        (void)atomic_fetch_add(&c->refused, 1);
}

static void *finish_in_order(void *arg)
{
    crowd *c = arg;
    for (int i; (i = atomic_fetch_add(&c->next, 1)) < JOBS;) {
        pawl_job *job;
        while ((job = atomic_load(&c->all[c->order[i]])) == NULL)
            nap_ms(1); /* it has not begun yet */
        finish(c, job);
    }
    return NULL;
}

static void put_all(pawl_pool *pool)
{
    static int numbers[JOBS];
    static pawl_job_spec specs[BATCH];
    for (int first = 0; first < JOBS; first += BATCH) {
        for (int i = 0; i < BATCH; i++) {
            numbers[first + i] = first + i;
            specs[i] = *PAWL_JOB(.kind = "k", .payload = &numbers[first + i], .payload_bytes = sizeof(int));
        }
        assert_ok(pawl_enqueue_many(pool, specs, BATCH, NULL, NULL));
    }
}

static void prepare(crowd *c, bool shuffled)
{
    uint64_t seed = test_seed();
    memset(c, 0, sizeof *c);
    c->detached = (gate)GATE_INIT;
    for (int i = 0; i < JOBS; i++)
        c->order[i] = i;
    for (int i = JOBS - 1; shuffled && i > 0; i--) {
        int with = (int)(next_random(&seed) % (uint64_t)(i + 1)), kept = c->order[i];
        c->order[i] = c->order[with];
        c->order[with] = kept;
    }
}

static void start_finishers(crowd *c, pthread_t *threads)
{
    for (int i = 0; i < FINISHERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, finish_in_order, c), 0);
}

static void assert_all_ended(const temp *t, crowd *c)
{
    assert_int_equal(atomic_load(&c->refused), 0);
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(atomic_load(&c->starts[i]), 1);
    int failed = (JOBS + 2) / 3;
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'failed' AND attempts = 1"), failed);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded' AND attempts = 1"),
                     JOBS - failed);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'failed' AND last_error LIKE '%%to say'"),
                     (JOBS + 20) / 21);
    assert_counters_are_right(t->path);
}

/* Goal: 5 000 jobs are detached and in flight at once, held past their lease, and then finished by eight threads in
 * random order: each ended as its finisher said, none was run twice. */
static void thousands_in_flight_are_finished_in_any_order(void **state)
{
    static crowd c;
    pthread_t threads[FINISHERS];
    temp *t = *state;
    prepare(&c, true);
    pawl_pool *pool = open_pool(t, .executors = 4, .detached_max = JOBS, .lease_ms = 3000);
    assert_ok(pawl_register(pool, "k", detach, &c, NULL));
    assert_ok(pawl_start(pool));
    put_all(pool);
    assert_true(gate_await(&c.detached, JOBS));
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'running'"), JOBS);
    pawl_stats_info stats = stats_of(pool);
    assert_int_equal(stats.in_hand, JOBS);
    pawl_stats_info_clear(&stats);
    int64_t claimed = look(t->path, "SELECT min(lease_boot) FROM pawl_job");
    nap_ms(3200); /* a lease */
    assert_true(look(t->path, "SELECT min(lease_boot) FROM pawl_job") > claimed);
    start_finishers(&c, threads);
    for (int i = 0; i < FINISHERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    assert_ok(pawl_close(pool));
    assert_all_ended(t, &c);
}

/* Goal: the same while they come in: a finish meets its handler before, at, and after its return. */
static void finishes_race_with_returns(void **state)
{
    static crowd c;
    pthread_t threads[FINISHERS];
    temp *t = *state;
    prepare(&c, false);
    pawl_pool *pool = open_pool(t, .executors = 4, .detached_max = 64);
    assert_ok(pawl_register(pool, "k", detach, &c, PAWL_HANDLER(.in_flight_max = 200)));
    assert_ok(pawl_start(pool));
    start_finishers(&c, threads);
    put_all(pool);
    for (int i = 0; i < FINISHERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    pawl_stats_info stats = stats_of(pool);
    assert_int_equal(stats.detached, 0);
    pawl_stats_info_clear(&stats);
    assert_ok(pawl_close(pool));
    assert_all_ended(t, &c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    TEST(thousands_in_flight_are_finished_in_any_order),
    TEST(finishes_race_with_returns),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
