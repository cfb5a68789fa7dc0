/* held_lock_test.c - another process holds a transaction on the file: the write lock, or a snapshot.
 *
 * Goal: a write lock that is held beyond the store timeout makes callers hear BUSY after that timeout, with
 * nothing stored; handlers go on, their outcomes are written when the lock is free, and nobody has lost a
 * lease by it; nothing spins meanwhile. Held for less, it reaches no caller (R2). A reader that keeps its
 * snapshot stops nobody; the log of the file grows, is said to have grown once, and is small again after it
 * (I22). PAWL_TEST_READER_MS is how long it reads; the default is ten seconds. */
#include "check.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "child.h"
#include "gate.h"
#include "look.h"
#include "patience.h"

#define LIMIT_MS 20000
#define MIB (1 << 20)

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SLOWER 4
#else
#define SLOWER 1
#endif

static void start_holder(const temp *t, child *holder, const char *how)
{
    child_join(holder, (const char *const[]){ "hold", t->path, how, NULL });
    assert_true(child_says(holder, "ready", NULL, 0, LIMIT_MS));
}

static void take(child *holder)
{
    child_tell(holder, "hold\n");
    assert_true(child_says(holder, "held", NULL, 0, LIMIT_MS));
}

static void give(child *holder)
{
    child_tell(holder, "let go\n");
    assert_true(child_says(holder, "free", NULL, 0, LIMIT_MS));
}

static int64_t cpu_ms(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

/* ------------------------------------------------------------------- for longer than that */

#define STORE_TIMEOUT_MS 300
#define HELD_MS 3000
#define LEASE_MS 4500 /* its third falls into the time that the lock is held, its end does not */
#define CALLERS 4

typedef struct caller {
    pawl_pool *pool;
    pawl_status status[3];
    int64_t took_ms[3];
} caller;

static void *call(void *arg)
{
    caller *c = arg;
    for (int i = 0; i < 3; i++) {
        int64_t began = steady_ms(), id = 0;
        c->status[i] = pawl_enqueue(c->pool, PAWL_JOB(.kind = "none"), &id);
        c->took_ms[i] = steady_ms() - began;
    }
    return NULL;
}

static void call_in_vain(pawl_pool *pool)
{
    caller callers[CALLERS];
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (caller){ .pool = pool };
        assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < CALLERS; i++)
        for (int k = 0; k < 3; k++) {
            assert_int_equal(callers[i].status[k], PAWL_ERR_BUSY);
            assert_in_range(callers[i].took_ms[k], STORE_TIMEOUT_MS - 5, STORE_TIMEOUT_MS + 250 * SLOWER);
        }
}

typedef struct held {
    gate started, short_ones, long_ones;
    _Atomic int told_to_stop;
} held;

static int hold_short(pawl_job *job, void *arg)
{
    held *h = arg;
    gate_add(&h->started, 1);
    (void)gate_await(&h->short_ones, 1);
    (void)atomic_fetch_add(&h->told_to_stop, pawl_job_should_stop(job));
    return PAWL_SUCCEEDED;
}

static int hold_long(pawl_job *job, void *arg)
{
    held *h = arg;
    gate_add(&h->started, 1);
    (void)gate_await(&h->long_ones, 1);
    (void)atomic_fetch_add(&h->told_to_stop, pawl_job_should_stop(job));
    return PAWL_SUCCEEDED;
}

static void note_answer(pawl_status status, int64_t id, void *arg)
{
    (void)id;
    if (status == PAWL_ERR_BUSY)
        gate_add(arg, 1);
}

static pawl_pool *start_holding(const temp *t, held *h)
{
    pawl_pool *pool = open_pool(t, .executors = 4, .lease_ms = LEASE_MS,
                                .store_timeout_ms = STORE_TIMEOUT_MS);
    assert_ok(pawl_register(pool, "short", hold_short, h, NULL));
    assert_ok(pawl_register(pool, "long", hold_long, h, NULL));
    assert_ok(pawl_start(pool));
    for (int i = 0; i < 2; i++) {
        (void)put(pool, .kind = "short");
        (void)put(pool, .kind = "long");
    }
    assert_true(gate_await(&h->started, 4));
    return pool;
}

static bool short_ones_are_written(void *arg)
{
    return look(arg, "SELECT count(*) FROM pawl_jobs WHERE kind = 'short' AND status = 'succeeded'") == 2;
}

static void longer_than_the_store_timeout(void **state)
{
    const temp *t = *state;
    static held h = { GATE_INIT, GATE_INIT, GATE_INIT, 0 };
    gate busy = GATE_INIT;
    child holder, other;
    pawl_pool *pool = start_holding(t, &h);
    /* Another pool would rescue what has lost its lease. */
    child_join(&other, (const char *const[]){ "serve", t->path, "60000", "1", NULL });
    assert_true(child_says(&other, "ready", NULL, 0, LIMIT_MS));
    start_holder(t, &holder, "write");
    take(&holder);
    int64_t began = steady_ms(), cpu = cpu_ms();
    gate_add(&h.short_ones, 1); /* two outcomes that cannot be written */
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "none"), note_answer, &busy));
    call_in_vain(pool);
    assert_true(gate_await(&busy, 1));
    nap_ms(began + HELD_MS - steady_ms());
    cpu = cpu_ms() - cpu;
    int64_t took = steady_ms() - began;
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'running'"), 4);
    give(&holder);
    assert_true(eventually(short_ones_are_written, (void *)(uintptr_t)t->path, 2000 * SLOWER));
    print_message("%" PRId64 " ms of processor time in %" PRId64 " ms\n", cpu, took);
    assert_in_range(cpu * 100 / took, 0, 10 * SLOWER);
    nap_ms(began + LEASE_MS + 1500 - steady_ms()); /* the first leases have run out by now */
    gate_add(&h.long_ones, 1);
    assert_ok(pawl_wait_idle(pool, LIMIT_MS));
    assert_int_equal(atomic_load(&h.told_to_stop), 0);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs"), 4); /* BUSY: nothing was stored */
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"
                                   " AND attempts = 1"), 4);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_attempts"), 0);
    (void)put(pool, .kind = "none");
    assert_ok(pawl_close(pool));
    child_close(&holder);
    child_close(&other);
    assert_counters_are_right(t->path);
}

/* ------------------------------------------------------------------ for less than that */

typedef struct flow {
    pawl_pool *pool;
    gate answered;
    _Atomic bool ends;
    _Atomic int calls, refused, unanswered, ran;
    size_t payload_bytes;
    int64_t pause_us; /* between two calls of a thread */
    bool pours;       /* all of them asynchronous, as many as the channel takes */
} flow;

static int count_run(pawl_job *job, void *arg)
{
    (void)job;
    (void)atomic_fetch_add(&((flow *)arg)->ran, 1);
    return PAWL_SUCCEEDED;
}

static void count_answer(pawl_status status, int64_t id, void *arg)
{
    flow *f = arg;
    (void)id;
    (void)atomic_fetch_add(&f->refused, status != PAWL_OK);
    (void)atomic_fetch_sub(&f->unanswered, 1);
}

#define POURED_MAX 8000

static void *enqueue_on(void *arg)
{
    flow *f = arg;
    char *payload = calloc(1, f->payload_bytes + 1);
    while (payload != NULL && !atomic_load(&f->ends)) {
        const pawl_job_spec *spec = PAWL_JOB(.kind = "flow", .payload = payload,
                                             .payload_bytes = f->payload_bytes);
        if (atomic_fetch_add(&f->calls, 1) % 4 == 0 || f->pours) {
            while (atomic_fetch_add(&f->unanswered, 1) > POURED_MAX) {
                (void)atomic_fetch_sub(&f->unanswered, 1);
                nap_us(500);
            }
            if (pawl_enqueue_async(f->pool, spec, count_answer, f) != PAWL_OK)
                count_answer(PAWL_ERR_BUSY, 0, f);
        } else if (pawl_enqueue(f->pool, spec, NULL) != PAWL_OK) {
            (void)atomic_fetch_add(&f->refused, 1);
        }
        nap_us(f->pause_us);
    }
    free(payload);
    return NULL;
}

static void start_flow(flow *f, pthread_t *threads, int count)
{
    assert_ok(pawl_register(f->pool, "flow", count_run, f, NULL));
    assert_ok(pawl_start(f->pool));
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, enqueue_on, f), 0);
}

static bool all_are_answered(void *arg)
{
    return atomic_load(&((flow *)arg)->unanswered) == 0;
}

static void end_flow(flow *f, pthread_t *threads, int count)
{
    atomic_store(&f->ends, true);
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_ok(pawl_wait_idle(f->pool, LIMIT_MS * SLOWER));
    assert_true(eventually(all_are_answered, f, LIMIT_MS)); /* their callbacks have another thread */
}

static void for_less_than_the_store_timeout(void **state)
{
    const temp *t = *state;
    flow f = { .payload_bytes = 64 };
    pthread_t threads[3];
    child holder;
    f.pool = open_pool(t, .executors = 2, .store_timeout_ms = 2000 * SLOWER);
    start_flow(&f, threads, 3);
    start_holder(t, &holder, "write");
    for (int i = 0; i < 6; i++) {
        take(&holder);
        nap_ms(i < 5 ? 150 : 1000);
        give(&holder);
        nap_ms(50);
    }
    end_flow(&f, threads, 3);
    assert_int_equal(atomic_load(&f.refused), 0);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"),
                     atomic_load(&f.calls));
    child_close(&holder);
    assert_ok(pawl_close(f.pool));
    assert_counters_are_right(t->path);
}

/* ------------------------------------------------------------------- a reader that stays */

typedef struct sayings {
    _Atomic int about_the_log;
} sayings;

static void hear(pawl_log_level level, const char *line, void *arg)
{
    (void)level;
    if (strstr(line, "the write-ahead log has grown") != NULL)
        (void)atomic_fetch_add(&((sayings *)arg)->about_the_log, 1);
}

static int64_t wal_bytes(const temp *t)
{
    char path[400];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s-wal", t->path);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

typedef struct wal_limit {
    const temp *t;
    int64_t bytes;
} wal_limit;

static bool is_within(void *arg)
{
    const wal_limit *limit = arg;
    return wal_bytes(limit->t) <= limit->bytes;
}

static int64_t reads_for_ms(void)
{
    const char *given = getenv("PAWL_TEST_READER_MS");
    return given != NULL ? strtoll(given, NULL, 10) : 10000;
}

/* How many jobs ran within the time. */
static int ran_within(flow *f, int64_t ms)
{
    int before = atomic_load(&f->ran);
    nap_ms(ms);
    return atomic_load(&f->ran) - before;
}

static void a_reader_that_stays(void **state)
{
    const temp *t = *state;
    sayings said = { 0 };
    flow f = { .payload_bytes = 1000, .pause_us = 2000 }; /* the log grows, but not the disk full */
    pthread_t threads[3];
    child reader;
    f.pool = check_open(PAWL_OPTIONS(.store = t->path, .executors = 2, .log = hear, .log_arg = &said,
                                     .wal_bytes_max = 4 * MIB, .synchronous = PAWL_SYNCHRONOUS_NORMAL));
    start_flow(&f, threads, 3);
    start_holder(t, &reader, "read");
    int alone = ran_within(&f, 1000), slowest = INT32_MAX;
    assert_int_equal(atomic_load(&said.about_the_log), 0);
    take(&reader);
    for (int64_t end = steady_ms() + reads_for_ms(); steady_ms() < end;) {
        int ran = ran_within(&f, 1000);
        slowest = ran < slowest ? ran : slowest;
    }
    int64_t grown = wal_bytes(t);
    print_message("%d jobs in a second alone, %d in the slowest beside the reader; the log grew to %" PRId64
                  " MiB\n", alone, slowest, grown / MIB);
    assert_true(grown > 4 * MIB); /* or the reader held nothing up */
    assert_true(slowest * 5 >= alone);
    assert_int_equal(atomic_load(&said.about_the_log), 1);
    give(&reader);
    end_flow(&f, threads, 3);
    assert_int_equal(atomic_load(&f.refused), 0);
    /* At rest it is within its bound, of its own accord. */
    assert_true(eventually(is_within, &(wal_limit){ t, 4 * MIB }, 5000));
    assert_int_equal(atomic_load(&said.about_the_log), 1);
    assert_ok(pawl_close(f.pool));
    child_close(&reader);
    assert_counters_are_right(t->path);
}

/* Pools that are busy do not keep each other from the checkpoint until the log is over its bound, nor does one
 * take the others' transactions for somebody's that was left open. */
static void several_pools_keep_the_log_small(void **state)
{
    const temp *t = *state;
    sayings said = { 0 };
    static flow flows[3];
    pthread_t threads[3][1];
    int64_t largest = 0;
    for (int i = 0; i < 3; i++) {
        flows[i] = (flow){ .payload_bytes = 500, .pours = true };
        flows[i].pool = check_open(PAWL_OPTIONS(.store = t->path, .executors = 2, .log = hear, .log_arg = &said,
                                                .wal_bytes_max = 8 * MIB));
        start_flow(&flows[i], threads[i], 1);
    }
    for (int i = 0; i < 100; i++) {
        nap_ms(30);
        largest = wal_bytes(t) > largest ? wal_bytes(t) : largest;
    }
    for (int i = 0; i < 3; i++)
        end_flow(&flows[i], threads[i], 1);
    print_message("the log grew to %" PRId64 " KiB\n", largest / 1024);
    assert_true(largest <= 16 * MIB); /* a batch of each beyond it, at most */
    assert_int_equal(atomic_load(&said.about_the_log), 0);
    assert_true(eventually(is_within, &(wal_limit){ t, 8 * MIB }, 5000));
    for (int i = 0; i < 3; i++)
        assert_ok(pawl_close(flows[i].pool));
    assert_counters_are_right(t->path);
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    in_a_directory(longer_than_the_store_timeout),
    in_a_directory(for_less_than_the_store_timeout),
    in_a_directory(a_reader_that_stays),
    in_a_directory(several_pools_keep_the_log_small),
};

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
