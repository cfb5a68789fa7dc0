/* enqueue_test.c - the ways into the pool: blocking, many, asynchronous; idempotency keys; and what is said
 * when the channel or the store is not free. */
#include "check.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gate.h"

#define THREADS 8

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int succeed(pawl_job *job, void *arg)
{
    (void)job;
    if (arg != NULL)
        gate_add(arg, 1);
    return PAWL_SUCCEEDED;
}

static int64_t count(void **state, const char *where)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM pawl_jobs WHERE %s", where);
    return sql_ask(((temp *)*state)->path, sql);
}

/* -------------------------------------------------------------------------------- blocking */

/* Goal: OK means committed: another connection sees the job at once, with all that was asked (I1, I2). */
static void ok_is_committed(void **state)
{
    for (int started = 0; started < 2; started++) {
        pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
        if (started)
            assert_ok(pawl_start(pool));
        int64_t first = 0, id = 0;
        assert_ok(pawl_enqueue(pool, PAWL_JOB(.kind = "kïnd", .queue = "qüeue", .payload = "a\0b",
                                              .payload_bytes = 3, .priority = -7, .delay_ms = 60000,
                                              .max_attempts = 3, .timeout_ms = 1234), &first));
        assert_int_equal(count(state, "kind = 'kïnd' AND queue = 'qüeue' AND payload = X'610062'"
                                      " AND priority = -7 AND max_attempts = 3 AND status = 'pending'"),
                         started + 1);
        assert_ok(pawl_enqueue(pool, PAWL_JOB(.kind = "k"), NULL));
        assert_ok(pawl_enqueue(pool, PAWL_JOB(.kind = "k"), &id));
        assert_int_equal(id, first + 2); /* ids grow in the order of the calls */
        pawl_job_info info = job_of(pool, first);
        assert_int_equal(info.timeout_ms, 1234);
        assert_int_equal(info.available_at_ms - info.created_at_ms, 60000);
        pawl_job_info_clear(&info);
        assert_ok(pawl_close(pool));
    }
}

/* Goal: many jobs are stored in one transaction, with ids in order; each one's answer is told. */
static void many_are_stored_together(void **state)
{
    enum { COUNT = 3000 };
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    pawl_job_spec *specs = calloc(COUNT, sizeof *specs);
    int64_t *ids = calloc(COUNT, sizeof *ids);
    pawl_status *each = calloc(COUNT, sizeof *each);
    char keys[COUNT][16];
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "%d", i / 2); /* every key twice */
        specs[i] = *PAWL_JOB(.kind = "k", .idempotency_key = keys[i], .payload = keys[i],
                             .payload_bytes = strlen(keys[i]));
        specs[i].idempotency_key_bytes = strlen(keys[i]);
        each[i] = PAWL_ERR_STATE;
    }
    pawl_stats_info before = stats_of(pool);
    assert_ok(pawl_enqueue_many(pool, specs, COUNT, ids, each));
    pawl_stats_info after = stats_of(pool);
    assert_int_equal(after.commits, before.commits + 1);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(each[i], i % 2 == 0 ? PAWL_OK : PAWL_EXISTS);
        if (i % 2 == 1)
            assert_int_equal(ids[i], ids[i - 1]);
        else if (i > 1)
            assert_int_equal(ids[i], ids[i - 2] + 1);
    }
    assert_int_equal(count(state, "1"), COUNT / 2);
    assert_int_equal(count(state, "CAST(payload AS TEXT) = '1499'"), 1);
    pawl_stats_info_clear(&before);
    pawl_stats_info_clear(&after);
    assert_ok(pawl_enqueue_many(pool, specs, 0, NULL, NULL));
    assert_ok(pawl_enqueue_many(pool, NULL, 0, NULL, NULL));
    assert_ok(pawl_close(pool));
    free(specs);
    free(ids);
    free(each);
}

/* Goal: one bad spec and nothing is stored; each spec's own fault is told, and the message names which. */
static void many_are_all_or_none(void **state)
{
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    const pawl_job_spec specs[] = { *PAWL_JOB(.kind = "k"), *PAWL_JOB(.kind = "k"), *PAWL_JOB(.kind = ""),
                                    *PAWL_JOB(.kind = "k", .delay_ms = -5) };
    int64_t ids[4] = { -1, -1, -1, -1 };
    pawl_status each[4];
    assert_status(pawl_enqueue_many(pool, specs, 4, ids, each), PAWL_ERR_INVALID);
    assert_text_has(pawl_error_message(), "specs[2]");
    assert_int_equal(each[2], PAWL_ERR_INVALID);
    assert_int_equal(each[3], PAWL_ERR_INVALID);
    assert_int_equal(ids[0], -1);
    assert_int_equal(count(state, "1"), 0);
    assert_status(pawl_enqueue_many(pool, NULL, 2, NULL, NULL), PAWL_ERR_INVALID);
    assert_status(pawl_enqueue_many(pool, specs, SIZE_MAX, NULL, NULL), PAWL_ERR_INVALID);
    assert_ok(pawl_close(pool));
}

/* Goal: the stride of an array is its first element's struct_size, so an older caller's array works. */
static void many_step_by_the_callers_size(void **state)
{
    struct {
        pawl_job_spec spec;
        char more[16]; /* what a newer header would have appended */
    } newer[3];
    memset(newer, 0x5A, sizeof newer);
    for (int i = 0; i < 3; i++) {
        newer[i].spec = *PAWL_JOB(.kind = "k", .priority = i);
        newer[i].spec.struct_size = sizeof newer[0];
    }
    size_t older_bytes = offsetof(pawl_job_spec, delay_ms);
    char *older = calloc(3, older_bytes);
    for (int i = 0; i < 3; i++) {
        pawl_job_spec spec = { .struct_size = older_bytes, .kind = "k", .priority = 10 + i };
        memcpy(older + (size_t)i * older_bytes, &spec, older_bytes);
    }
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    assert_ok(pawl_enqueue_many(pool, &newer[0].spec, 3, NULL, NULL));
    assert_ok(pawl_enqueue_many(pool, (const pawl_job_spec *)(const void *)older, 3, NULL, NULL));
    assert_int_equal(count(state, "priority IN (0, 1, 2, 10, 11, 12)"), 6);
    free(older);
    assert_ok(pawl_close(pool));
}

/* ------------------------------------------------------------------------------------ keys */

/* Goal: one job per (kind, key) in every queue, whatever its state; other kinds are free (I16). */
static void a_key_is_unique_per_kind(void **state)
{
    pawl_pool *pool = open_inline((temp *)*state, .executors = 1);
    int64_t id = put(pool, .kind = "k", .idempotency_key = "x", .idempotency_key_bytes = 1), again = 0;
    assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "k", .queue = "elsewhere", .priority = 9,
                                              .payload = "other", .payload_bytes = 5,
                                              .idempotency_key = "x", .idempotency_key_bytes = 1), &again),
                  PAWL_EXISTS);
    assert_int_equal(again, id);
    assert_true(put(pool, .kind = "l", .idempotency_key = "x", .idempotency_key_bytes = 1) != id);
    assert_true(put(pool, .kind = "k", .idempotency_key = "xx", .idempotency_key_bytes = 2) != id);
    assert_true(put(pool, .kind = "k") != id);
    assert_ok(pawl_register(pool, "k", succeed, NULL, NULL));
    assert_ok(pawl_start(pool));
    assert_ok(pawl_run_until_idle(pool));
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "k", .idempotency_key = "x",
                                              .idempotency_key_bytes = 1), &again), PAWL_EXISTS);
    assert_int_equal(again, id);
    int64_t cancelled = put(pool, .kind = "k", .idempotency_key = "c", .idempotency_key_bytes = 1,
                            .delay_ms = 1000);
    assert_ok(pawl_cancel(pool, cancelled));
    assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "k", .idempotency_key = "c",
                                              .idempotency_key_bytes = 1), &again), PAWL_EXISTS);
    assert_int_equal(again, cancelled);
    assert_int_equal(state_of(pool, cancelled), PAWL_STATE_CANCELLED);
    assert_ok(pawl_close(pool));
}

/* Goal: keys are bytes: NUL, invalid UTF-8, all 256 lengths up to 255; each stands for itself (I16). */
static void keys_are_any_bytes(void **state)
{
    unsigned char key[256];
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    pawl_job_spec spec = PAWL_JOB_INIT;
    spec.kind = "k";
    spec.idempotency_key = key;
    int64_t id;
    for (int byte = 0; byte < 256; byte += 51) {
        memset(key, byte, sizeof key);
        for (size_t bytes = 1; bytes <= 255; bytes += 127) {
            spec.idempotency_key_bytes = bytes;
            assert_status(pawl_enqueue(pool, &spec, &id), PAWL_OK);
            pawl_job_info info = job_of(pool, id);
            assert_int_equal(info.idempotency_key_bytes, bytes);
            assert_memory_equal(info.idempotency_key, key, bytes);
            pawl_job_info_clear(&info);
            int64_t again;
            assert_status(pawl_enqueue(pool, &spec, &again), PAWL_EXISTS);
            assert_int_equal(again, id);
        }
    }
    assert_int_equal(count(state, "1"), 6 * 3);
    spec.idempotency_key_bytes = 256;
    assert_status(pawl_enqueue(pool, &spec, &id), PAWL_ERR_INVALID);
    spec.idempotency_key_bytes = 0;
    assert_status(pawl_enqueue(pool, &spec, &id), PAWL_ERR_INVALID);
    spec.idempotency_key = NULL;
    spec.idempotency_key_bytes = 3;
    assert_status(pawl_enqueue(pool, &spec, &id), PAWL_ERR_INVALID);
    assert_ok(pawl_close(pool));
}

typedef struct producer {
    pawl_pool *pool;
    gate *ready;
    int number, ok, exists, other;
    int64_t ids[100];
} producer;

static void *produce(void *arg)
{
    producer *p = arg;
    gate_add(p->ready, 1);
    (void)gate_await(p->ready, THREADS);
    for (int i = 0; i < 100; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "key %d", i);
        pawl_status st = pawl_enqueue(p->pool, PAWL_JOB(.kind = "k", .idempotency_key = key,
                                                        .idempotency_key_bytes = strlen(key)),
                                      &p->ids[i]);
        p->ok += st == PAWL_OK;
        p->exists += st == PAWL_EXISTS;
        p->other += st != PAWL_OK && st != PAWL_EXISTS;
    }
    return NULL;
}

/* Goal: eight threads that ask for the same keys get one row each and the same ids (I3, I16, I17). */
static void concurrent_enqueues_of_a_key_give_one_row(void **state)
{
    for (int started = 0; started < 2; started++) {
        gate ready = GATE_INIT;
        producer producers[THREADS];
        pthread_t threads[THREADS];
        pawl_pool *pool = open_pool((temp *)*state, .executors = 2, .store_timeout_ms = 60000);
        assert_ok(pawl_register(pool, "k", succeed, NULL, NULL));
        if (started)
            assert_ok(pawl_start(pool));
        int ok = 0;
        for (int i = 0; i < THREADS; i++) {
            producers[i] = (producer){ .pool = pool, .ready = &ready, .number = i };
            assert_int_equal(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_int_equal(producers[i].other, 0);
            assert_memory_equal(producers[i].ids, producers[0].ids, sizeof producers[0].ids);
            ok += producers[i].ok;
        }
        assert_int_equal(ok, started ? 0 : 100); /* the second round finds those of the first */
        assert_int_equal(count(state, "1"), 100);
        assert_ok(pawl_close(pool));
    }
}

/* -------------------------------------------------------------------------- asynchronous */

typedef struct answers {
    gate done;
    _Atomic int calls[600], exists, failed;
    _Atomic int64_t last_id;
    _Atomic pawl_status last;
    _Atomic int others_thread;
    pthread_t caller;
} answers;

typedef struct ticket {
    answers *all;
    int number;
} ticket;

static void note(pawl_status status, int64_t id, void *arg)
{
    ticket *t = arg;
    atomic_fetch_add(&t->all->calls[t->number], 1);
    atomic_fetch_add(&t->all->exists, status == PAWL_EXISTS);
    atomic_fetch_add(&t->all->failed, status < 0);
    atomic_fetch_add(&t->all->others_thread, !pthread_equal(pthread_self(), t->all->caller));
    atomic_store(&t->all->last_id, id);
    atomic_store(&t->all->last, status);
    gate_add(&t->all->done, 1);
}

typedef struct flood {
    pawl_pool *pool;
    ticket *tickets;
    int count, refused;
} flood;

static void *pour(void *arg)
{
    flood *f = arg;
    for (int i = 0; i < f->count; i++)
        if (pawl_enqueue_async(f->pool, PAWL_JOB(.kind = "k"), note, &f->tickets[i]) != PAWL_OK)
            f->refused++;
    return NULL;
}

/* Goal: from several threads, each OK is answered exactly once, after its commit, on the loop thread, before
 * the stop returns (I1, I17). */
static void async_is_answered_exactly_once(void **state)
{
    enum { EACH = 150, FLOODS = 4 };
    static answers all;
    static ticket tickets[FLOODS * EACH];
    memset(&all, 0, sizeof all);
    all.done = (gate)GATE_INIT;
    all.caller = pthread_self();
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    assert_ok(pawl_start(pool));
    flood floods[FLOODS];
    pthread_t threads[FLOODS];
    for (int i = 0; i < FLOODS * EACH; i++)
        tickets[i] = (ticket){ &all, i };
    for (int i = 0; i < FLOODS; i++) {
        floods[i] = (flood){ .pool = pool, .tickets = &tickets[i * EACH], .count = EACH };
        assert_int_equal(pthread_create(&threads[i], NULL, pour, &floods[i]), 0);
    }
    for (int i = 0; i < FLOODS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(floods[i].refused, 0);
    }
    assert_ok(pawl_stop(pool, 0));
    assert_int_equal(gate_count(&all.done), FLOODS * EACH);
    for (int i = 0; i < FLOODS * EACH; i++)
        assert_int_equal(all.calls[i], 1);
    assert_int_equal(all.failed, 0);
    assert_int_equal(count(state, "1"), FLOODS * EACH);
    assert_ok(pawl_close(pool));
}

/* Goal: without a start the job waits for a call that blocks, or for the close, which tells its end. */
static void async_before_a_start(void **state)
{
    static answers all;
    memset(&all, 0, sizeof all);
    all.done = (gate)GATE_INIT;
    all.caller = pthread_self();
    ticket tickets[3] = { { &all, 0 }, { &all, 1 }, { &all, 2 } };
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), note, &tickets[0]));
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), NULL, NULL));
    assert_int_equal(gate_count(&all.done), 0);
    (void)put(pool, .kind = "k");
    assert_int_equal(all.calls[0], 1);
    assert_int_equal(count(state, "1"), 3);
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k", .idempotency_key = "a",
                                                .idempotency_key_bytes = 1), note, &tickets[1]));
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k", .idempotency_key = "a",
                                                .idempotency_key_bytes = 1), note, &tickets[2]));
    assert_ok(pawl_close(pool));
    assert_int_equal(all.calls[1], 1);
    assert_int_equal(all.calls[2], 1);
    assert_int_equal(all.exists, 1);
    assert_true(all.last_id > 0);
    assert_int_equal(count(state, "1"), 4);
}

/* Goal: a job that waited for the start is stored by it, and its end is told by the loop. */
static void async_is_taken_up_by_a_start(void **state)
{
    static answers all;
    memset(&all, 0, sizeof all);
    all.done = (gate)GATE_INIT;
    all.caller = pthread_self();
    ticket first = { &all, 0 };
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), note, &first));
    assert_ok(pawl_start(pool));
    assert_true(gate_await(&all.done, 1));
    assert_int_equal(all.last, PAWL_OK);
    assert_int_equal(all.others_thread, 1);
    assert_ok(pawl_close(pool));
    assert_int_equal(all.calls[0], 1);
}

/* Goal: a bad spec is refused at once, and done is not called. */
static void async_refuses_bad_specs_at_once(void **state)
{
    static answers all;
    memset(&all, 0, sizeof all);
    all.done = (gate)GATE_INIT;
    ticket first = { &all, 0 };
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    assert_status(pawl_enqueue_async(pool, PAWL_JOB(.kind = ""), note, &first), PAWL_ERR_INVALID);
    assert_status(pawl_enqueue_async(pool, NULL, note, &first), PAWL_ERR_INVALID);
    assert_status(pawl_enqueue_async(NULL, PAWL_JOB(.kind = "k"), note, &first), PAWL_ERR_INVALID);
    assert_ok(pawl_close(pool));
    assert_int_equal(all.calls[0], 0);
}

/* -------------------------------------------------------------------------------- bounds */

/* Goal: a full channel refuses an asynchronous job at once, with nothing stored of it. */
static void async_is_full_on_a_tiny_channel(void **state)
{
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1, .command_max = 2);
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), NULL, NULL));
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), NULL, NULL));
    int64_t began = now_ms();
    assert_status(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), NULL, NULL), PAWL_ERR_FULL);
    assert_true(now_ms() - began < 1000);
    assert_text_has(pawl_error_message(), ((temp *)*state)->path);
    assert_ok(pawl_close(pool));
    assert_int_equal(count(state, "1"), 2);
}

/* Goal: bytes are bounded as well; a single job larger than the bound passes alone. */
static void bytes_bound_the_channel(void **state)
{
    static const char big[4096];
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1, .command_bytes_max = 6000);
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k", .payload = big, .payload_bytes = 4096), NULL,
                                 NULL));
    assert_status(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k", .payload = big, .payload_bytes = 4096),
                                     NULL, NULL), PAWL_ERR_FULL);
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), NULL, NULL));
    assert_ok(pawl_close(pool));
    pool = open_pool((temp *)*state, .executors = 1, .command_bytes_max = 100);
    assert_ok(pawl_enqueue(pool, PAWL_JOB(.kind = "k", .payload = big, .payload_bytes = 4096), NULL));
    assert_ok(pawl_close(pool));
    assert_int_equal(count(state, "1"), 3);
}

/* Goal: in a pool without a writer thread a channel that asynchronous jobs have filled is emptied by the next
 * call that blocks: it plays the writer. */
static void a_full_channel_is_emptied_by_a_blocking_call(void **state)
{
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1, .command_max = 2, .store_timeout_ms = 300);
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), NULL, NULL));
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), NULL, NULL));
    assert_ok(pawl_enqueue(pool, PAWL_JOB(.kind = "k"), NULL));
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), NULL, NULL));
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), NULL, NULL));
    assert_ok(pawl_pause(pool, "q"));
    assert_ok(pawl_close(pool));
    assert_int_equal(count(state, "1"), 5);
}

/* Goal: while another connection holds the write lock, every call is BUSY after the store timeout and not
 * before, with nothing stored, and never UNKNOWN; afterwards all works again (I1, I2, R2). */
static void a_held_write_lock_is_busy(void **state)
{
    for (int started = 0; started < 2; started++) {
        static answers all;
        memset(&all, 0, sizeof all);
        all.done = (gate)GATE_INIT;
        all.caller = pthread_self();
        ticket first = { &all, 0 };
        pawl_pool *pool = open_pool((temp *)*state, .executors = 1, .store_timeout_ms = 250);
        if (started)
            assert_ok(pawl_start(pool));
        int64_t stored = count(state, "1");
        int64_t pending = put(pool, .kind = "k", .delay_ms = 3600000);
        sqlite3 *db = sql_open(((temp *)*state)->path);
        sql_run(db, "BEGIN IMMEDIATE");
        int64_t began = now_ms(), id = -1;
        assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "k", .idempotency_key = "b",
                                                  .idempotency_key_bytes = 1), &id), PAWL_ERR_BUSY);
        int64_t took = now_ms() - began;
        assert_true(took >= 250 && took < 5000);
        assert_int_equal(id, -1);
        assert_text_has(pawl_error_message(), ((temp *)*state)->path);
        assert_text_has(pawl_error_message(), "lock");
        const pawl_job_spec two[] = { *PAWL_JOB(.kind = "k"), *PAWL_JOB(.kind = "k") };
        assert_status(pawl_enqueue_many(pool, two, 2, NULL, NULL), PAWL_ERR_BUSY);
        assert_status(pawl_cancel(pool, pending), PAWL_ERR_BUSY);
        assert_status(pawl_pause(pool, "q"), PAWL_ERR_BUSY);
        if (started) {
            assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), note, &first));
            assert_true(gate_await(&all.done, 1));
            assert_int_equal(all.last, PAWL_ERR_BUSY);
            assert_int_equal(all.last_id, 0);
        }
        assert_int_equal(count(state, "1"), stored + 1); /* reads go on */
        assert_int_equal(state_of(pool, pending), PAWL_STATE_PENDING);
        sql_run(db, "ROLLBACK");
        sql_close(db);
        assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "k", .idempotency_key = started ? "s" : "n",
                                                  .idempotency_key_bytes = 1), &id), PAWL_OK);
        assert_ok(pawl_cancel(pool, pending));
        assert_ok(pawl_close(pool));
        assert_int_equal(count(state, "1"), stored + 2);
        assert_int_equal(count(state, "idempotency_key = X'62'"), 0);
        assert_int_equal(all.calls[0], started);
    }
}

/* Goal: with the writer held up and the channel full, a blocking call waits for room, then BUSY, nothing
 * stored; what stood in the channel is not lost. */
static void a_full_channel_is_busy_after_the_timeout(void **state)
{
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1, .command_max = 1, .store_timeout_ms = 250);
    assert_ok(pawl_start(pool));
    sqlite3 *db = sql_open(((temp *)*state)->path);
    sql_run(db, "BEGIN IMMEDIATE");
    static answers all;
    memset(&all, 0, sizeof all);
    all.done = (gate)GATE_INIT;
    ticket first = { &all, 0 };
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), note, &first));
    int64_t began = now_ms();
    pawl_status st = pawl_enqueue(pool, PAWL_JOB(.kind = "k"), NULL);
    int64_t took = now_ms() - began;
    assert_status(st, PAWL_ERR_BUSY);
    assert_true(took >= 200 && took < 5000);
    sql_run(db, "ROLLBACK");
    sql_close(db);
    assert_true(gate_await(&all.done, 1));
    assert_int_equal(count(state, "1"), all.failed ? 0 : 1);
    (void)put(pool, .kind = "k");
    assert_ok(pawl_close(pool));
}

/* Goal: outcomes of handlers that ended while the store was busy are written when it is free, without a
 * restart; no job is lost or run twice (W3, R2). */
static int hold_lock_while_running(pawl_job *job, void *arg)
{
    gate *running = arg;
    gate_add(running, 1);
    (void)gate_await(running, 2);
    (void)job;
    return PAWL_SUCCEEDED;
}

static void outcomes_wait_for_the_store(void **state)
{
    gate running = GATE_INIT;
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1, .store_timeout_ms = 200);
    assert_ok(pawl_register(pool, "k", hold_lock_while_running, &running, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "k");
    assert_true(gate_await(&running, 1));
    sqlite3 *db = sql_open(((temp *)*state)->path);
    sql_run(db, "BEGIN IMMEDIATE");
    gate_add(&running, 1);
    assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "l"), NULL), PAWL_ERR_BUSY); /* 200 ms pass */
    assert_int_equal(state_of(pool, id), PAWL_STATE_RUNNING);
    sql_run(db, "ROLLBACK");
    sql_close(db);
    assert_ok(pawl_wait_idle(pool, 20000));
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_int_equal(attempts_of(pool, id), 1);
    assert_ok(pawl_close(pool));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)

static int count_aligned(pawl_job *job, void *arg)
{
    if ((uintptr_t)pawl_job_payload(job, NULL) % _Alignof(max_align_t) == 0)
        (void)atomic_fetch_add((_Atomic int *)arg, 1);
    return PAWL_SUCCEEDED;
}

/* Goal: a payload can be looked at as at a struct, handed off or read from the file, whatever stands beside it. */
static void payloads_are_aligned(void **state)
{
    _Atomic int good = 0;
    char names[12][16];
    pawl_job_spec specs[12];
    for (int i = 0; i < 12; i++) {
        (void)snprintf(names[i], sizeof names[i], "%.*s", i + 1, "queue-of-any-name");
        specs[i] = *PAWL_JOB(.kind = "aligned", .queue = names[i], .payload = names[i], .payload_bytes = (size_t)i,
                             .idempotency_key = names[i], .idempotency_key_bytes = (size_t)i + 1);
    }
    const temp *t = *state;
    pawl_pool *pool = open_pool(t, .executors = 2);
    assert_ok(pawl_register(pool, "aligned", count_aligned, &good, NULL));
    assert_ok(pawl_enqueue_many(pool, specs, 12, NULL, NULL)); /* to be read */
    assert_ok(pawl_start(pool));
    for (int i = 0; i < 12; i++) {
        specs[i].idempotency_key = NULL;
        specs[i].idempotency_key_bytes = 0;
    }
    assert_ok(pawl_enqueue_many(pool, specs, 12, NULL, NULL)); /* to be handed off */
    assert_ok(pawl_wait_idle(pool, 20000));
    assert_ok(pawl_close(pool));
    assert_int_equal(good, 24);
}

static const struct CMUnitTest tests[] = {
    TEST(ok_is_committed),
    TEST(many_are_stored_together),
    TEST(many_are_all_or_none),
    TEST(many_step_by_the_callers_size),
    TEST(a_key_is_unique_per_kind),
    TEST(keys_are_any_bytes),
    TEST(concurrent_enqueues_of_a_key_give_one_row),
    TEST(async_is_answered_exactly_once),
    TEST(async_before_a_start),
    TEST(async_is_taken_up_by_a_start),
    TEST(async_refuses_bad_specs_at_once),
    TEST(async_is_full_on_a_tiny_channel),
    TEST(bytes_bound_the_channel),
    TEST(a_full_channel_is_emptied_by_a_blocking_call),
    TEST(a_held_write_lock_is_busy),
    TEST(a_full_channel_is_busy_after_the_timeout),
    TEST(outcomes_wait_for_the_store),
    TEST(payloads_are_aligned),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
