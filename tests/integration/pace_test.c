/* pace_test.c - work that must not take long: bounds for what was quadratic, or waited for nothing.
 *
 * Goal: a detach frees its executor at once (I10); the time of a bulk grows with its size alone, whatever its
 * priorities. The limits are loose: they tell a wrong shape from a slow machine. */
#include "check.h"

#include <pthread.h>
#include <stdlib.h>

#include "gate.h"
#include "patience.h"

#define DETACHED 200

typedef struct detachments {
    pthread_mutex_t lock;
    pawl_job *jobs[DETACHED];
    int count;
    gate started;
} detachments;

static int detach_soon(pawl_job *job, void *arg)
{
    detachments *d = arg;
    nap_ms(3); /* the writer has gone to sleep */
    (void)pthread_mutex_lock(&d->lock);
    d->jobs[d->count++] = job;
    (void)pthread_mutex_unlock(&d->lock);
    gate_add(&d->started, 1);
    return PAWL_DETACHED;
}

/* One executor, and handlers that detach soon: nothing but the writer's being woken brings the next (I10). */
static void detaching_handlers_wait_for_nothing(void **state)
{
    detachments d = { .lock = PTHREAD_MUTEX_INITIALIZER, .started = GATE_INIT };
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    assert_ok(pawl_register(pool, "k", detach_soon, &d, NULL));
    pawl_job_spec specs[DETACHED];
    for (int i = 0; i < DETACHED; i++)
        specs[i] = *PAWL_JOB(.kind = "k");
    assert_ok(pawl_enqueue_many(pool, specs, DETACHED, NULL, NULL));
    assert_ok(pawl_start(pool));
    int64_t began = steady_ms();
    assert_true(gate_await(&d.started, DETACHED));
    assert_in_range(steady_ms() - began, 0, 5000); /* one look of the loop each: 18 s */
    for (int i = 0; i < DETACHED; i++)
        assert_ok(pawl_job_finish(d.jobs[i], PAWL_SUCCEEDED));
    assert_ok(pawl_wait_idle(pool, 20000));
    assert_ok(pawl_close(pool));
}

#define MANY 100000

static int hold(pawl_job *job, void *arg)
{
    (void)job;
    return gate_await(arg, 1) ? PAWL_RELEASED : PAWL_FAILED;
}

/* Into a pool whose executors are free: some of the jobs are claimed in the very commit that stores them. */
static int64_t enqueue_takes_ms(const temp *t, bool ascending)
{
    gate go = GATE_INIT;
    pawl_pool *pool = open_pool(t, .executors = 4, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    const char *kind = ascending ? "ascending" : "equal";
    pawl_job_spec *specs = calloc(MANY, sizeof *specs);
    assert_non_null(specs);
    for (int i = 0; i < MANY; i++) {
        specs[i] = *PAWL_JOB(.kind = kind);
        specs[i].priority = ascending ? i : 0;
    }
    assert_ok(pawl_register(pool, kind, hold, &go, NULL));
    assert_ok(pawl_start(pool));
    int64_t began = steady_ms();
    assert_ok(pawl_enqueue_many(pool, specs, MANY, NULL, NULL));
    int64_t took = steady_ms() - began;
    free(specs);
    assert_ok(pawl_pause(pool, "default")); /* the rest stays */
    gate_add(&go, 1);
    assert_ok(pawl_close(pool));
    assert_ok(pawl_open(PAWL_OPTIONS(.store = t->path), &pool));
    assert_ok(pawl_resume(pool, "default"));
    assert_ok(pawl_close(pool));
    return took;
}

static void priorities_do_not_slow_a_bulk(void **state)
{
    int64_t equal = enqueue_takes_ms(*state, false), ascending = enqueue_takes_ms(*state, true);
    print_message("%d jobs: %lld ms with one priority, %lld ms with ascending ones\n", MANY, (long long)equal,
                  (long long)ascending);
    assert_in_range(ascending, 0, 4 * equal + 1000);
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    in_a_directory(detaching_handlers_wait_for_nothing),
    in_a_directory(priorities_do_not_slow_a_bulk),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
