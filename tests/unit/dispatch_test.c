/* dispatch_test.c - claimed jobs between the writer and the executors: each got or taken back, once. */
#include "dispatch.h"

#include <sched.h>
#include <stdlib.h>

#include "check.h"

#define JOBS 4000
#define EXECUTORS 4

typedef struct desk {
    pawli_dispatch dispatch;
    pawl_job *jobs; /* JOBS of them; their ids count from 0 */
} desk;

static int open_desk(void **state)
{
    static desk d;
    pawli_dispatch_init(&d.dispatch);
    d.jobs = calloc(JOBS, sizeof *d.jobs);
    if (d.jobs == NULL)
        return -1;
    for (size_t i = 0; i < JOBS; i++) {
        d.jobs[i].claim.job = (int64_t)i;
        d.jobs[i].claimed_ns = (int64_t)i;
    }
    *state = &d;
    return 0;
}

static int close_desk(void **state)
{
    desk *d = *state;
    pawli_dispatch_fini(&d->dispatch);
    free(d->jobs);
    return 0;
}

/* Puts the jobs from `from` to before `to`, as one list. */
static void put_jobs(desk *d, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        d->jobs[i].claim.next = i + 1 < to ? &d->jobs[i + 1].claim : NULL;
    pawli_dispatch_put(&d->dispatch, from < to ? &d->jobs[from].claim : NULL, to - from);
}

/* Goal: jobs start in the order of their claims, over several commits (D2). */
static void gets_in_the_order_of_the_claims(void **state)
{
    desk *d = *state;
    assert_null(pawli_dispatch_try(&d->dispatch));
    put_jobs(d, 0, 0);
    put_jobs(d, 0, 3);
    put_jobs(d, 3, 4);
    assert_int_equal(atomic_load(&d->dispatch.length), 4);
    assert_ptr_equal(pawli_dispatch_try(&d->dispatch), &d->jobs[0]);
    put_jobs(d, 4, 6);
    for (size_t i = 1; i < 6; i++) {
        pawl_job *job = pawli_dispatch_get(&d->dispatch);
        assert_ptr_equal(job, &d->jobs[i]);
        assert_null(job->claim.next);
    }
    assert_null(pawli_dispatch_try(&d->dispatch));
    put_jobs(d, 6, 7); /* after it was empty */
    assert_ptr_equal(pawli_dispatch_try(&d->dispatch), &d->jobs[6]);
}

/* Goal: who got a job is busy until it is done; who got none is not. */
static void counts_what_waits_and_who_is_busy(void **state)
{
    desk *d = *state;
    put_jobs(d, 0, 2);
    assert_int_equal(atomic_load(&d->dispatch.busy), 0);
    assert_non_null(pawli_dispatch_get(&d->dispatch));
    assert_int_equal(atomic_load(&d->dispatch.length), 1);
    assert_int_equal(atomic_load(&d->dispatch.busy), 1);
    assert_non_null(pawli_dispatch_take_back(&d->dispatch, INT64_MAX));
    assert_null(pawli_dispatch_try(&d->dispatch));
    assert_int_equal(atomic_load(&d->dispatch.length), 0);
    assert_int_equal(atomic_load(&d->dispatch.busy), 1);
    pawli_dispatch_done(&d->dispatch);
    assert_int_equal(atomic_load(&d->dispatch.busy), 0);
}

/* Goal: taken back are the oldest claims, up to the time given, and nothing younger. */
static void takes_back_only_old_claims(void **state)
{
    desk *d = *state;
    assert_null(pawli_dispatch_take_back(&d->dispatch, INT64_MAX));
    put_jobs(d, 5, 9); /* claimed at 5, 6, 7, 8 */
    assert_null(pawli_dispatch_take_back(&d->dispatch, 4));
    assert_ptr_equal(pawli_dispatch_take_back(&d->dispatch, 6), &d->jobs[5]);
    assert_ptr_equal(pawli_dispatch_take_back(&d->dispatch, 6), &d->jobs[6]);
    assert_null(pawli_dispatch_take_back(&d->dispatch, 6));
    put_jobs(d, 9, 10);
    assert_ptr_equal(pawli_dispatch_try(&d->dispatch), &d->jobs[7]);
    assert_ptr_equal(pawli_dispatch_take_back(&d->dispatch, INT64_MAX), &d->jobs[8]);
    assert_ptr_equal(pawli_dispatch_take_back(&d->dispatch, INT64_MAX), &d->jobs[9]);
    assert_null(pawli_dispatch_take_back(&d->dispatch, INT64_MAX));
}

/* ------------------------------------------------------------------------------ threads */

typedef struct executor {
    pthread_t thread;
    desk *desk;
    _Atomic unsigned *hits; /* by job */
    int64_t newest;
    bool out_of_order;
} executor;

static void *execute(void *arg)
{
    executor *e = arg;
    pawl_job *job;
    e->newest = -1;
    while ((job = pawli_dispatch_get(&e->desk->dispatch)) != NULL) {
        e->out_of_order = e->out_of_order || job->claim.job <= e->newest;
        e->newest = job->claim.job;
        (void)atomic_fetch_add(&e->hits[job->claim.job], 1);
        pawli_dispatch_done(&e->desk->dispatch);
    }
    return NULL;
}

static void start(executor *executors, desk *d, _Atomic unsigned *hits)
{
    for (size_t i = 0; i < EXECUTORS; i++) {
        executors[i] = (executor){ .desk = d, .hits = hits };
        assert_int_equal(pthread_create(&executors[i].thread, NULL, execute, &executors[i]), 0);
    }
}

static void join(executor *executors)
{
    for (size_t i = 0; i < EXECUTORS; i++) {
        assert_int_equal(pthread_join(executors[i].thread, NULL), 0);
        assert_false(executors[i].out_of_order); /* D2, as far as one thread can see */
    }
}

/* Goal: with several executors and a writer that takes back, each job is got or taken back, never both
 * (D1); what was put before the close is still got; and the close ends every executor. */
static void each_job_is_got_or_taken_back_once(void **state)
{
    static _Atomic unsigned hits[JOBS];
    desk *d = *state;
    executor executors[EXECUTORS];
    unsigned taken_back = 0;
    start(executors, d, hits);
    for (size_t i = 0; i < JOBS; i += 8) {
        put_jobs(d, i, i + 8);
        pawl_job *job = i % 64 == 0 ? pawli_dispatch_take_back(&d->dispatch, INT64_MAX) : NULL;
        if (job != NULL) {
            (void)atomic_fetch_add(&hits[job->claim.job], 1);
            taken_back++;
        }
    }
    pawli_dispatch_close(&d->dispatch);
    join(executors);
    for (size_t i = 0; i < JOBS; i++)
        assert_int_equal(atomic_load(&hits[i]), 1);
    assert_true(taken_back <= JOBS / 64 + 1);
    assert_int_equal(atomic_load(&d->dispatch.length), 0);
    assert_int_equal(atomic_load(&d->dispatch.busy), 0);
}

static unsigned sleepers(desk *d)
{
    (void)pthread_mutex_lock(&d->dispatch.lock);
    unsigned count = d->dispatch.sleepers;
    (void)pthread_mutex_unlock(&d->dispatch.lock);
    return count;
}

/* Goal: sleeping executors are all woken by the close, and after a new opening they wait again. A
 * wake-up that is lost hangs this test. */
static void close_wakes_all_and_open_begins_anew(void **state)
{
    static _Atomic unsigned hits[JOBS];
    desk *d = *state;
    executor executors[EXECUTORS];
    for (size_t round = 0; round < 3; round++) {
        start(executors, d, hits);
        while (sleepers(d) < EXECUTORS)
            (void)sched_yield();
        put_jobs(d, round * EXECUTORS, (round + 1) * EXECUTORS);
        while (atomic_load(&d->dispatch.length) > 0 || sleepers(d) < EXECUTORS)
            (void)sched_yield();
        pawli_dispatch_close(&d->dispatch);
        join(executors);
        assert_null(pawli_dispatch_get(&d->dispatch)); /* closed: does not wait */
        pawli_dispatch_open(&d->dispatch);
    }
    for (size_t i = 0; i < 3 * EXECUTORS; i++)
        assert_int_equal(atomic_load(&hits[i]), 1);
}

#define DESK_TEST(name) cmocka_unit_test_setup_teardown(name, open_desk, close_desk)

static const struct CMUnitTest tests[] = {
    DESK_TEST(gets_in_the_order_of_the_claims),
    DESK_TEST(counts_what_waits_and_who_is_busy),
    DESK_TEST(takes_back_only_old_claims),
    DESK_TEST(each_job_is_got_or_taken_back_once),
    DESK_TEST(close_wakes_all_and_open_begins_anew),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
