/* beside_test.c - what others do to the file of a pool that runs: their commits, their deaths, a log that they
 * delete, rows that they bend, triggers that refuse.
 *
 * Goal: a pool that is busy itself still sees what others commit (I11); one that has no descriptors left declares
 * nobody dead (I12); nothing is acknowledged into a file that is gone (I1, R8); what the store refuses alone waits
 * alone, and nothing spins (I23); counters that somebody's SQL has bent are counted again (I20). */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "child.h"
#include "gate.h"
#include "look.h"
#include "patience.h"

#define LEASE_MS "60000"
#define READY_MS 20000 /* for a slow machine under a sanitizer */
#define SEEN_MS 5000   /* well within the lease: nothing else can have brought it about */

static const temp *of(void **state)
{
    return *state;
}

static void start_worker(child *c, const temp *t)
{
    child_start(c, (const char *const[]){ "work", t->path, LEASE_MS, "2", NULL });
    assert_true(child_says(c, "ready", NULL, 0, READY_MS));
}

static bool none_runs(void *arg)
{
    const temp *t = arg;
    return look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'running'") == 0;
}

static int succeed(pawl_job *job, void *arg)
{
    (void)job;
    if (arg != NULL)
        gate_add(arg, 1);
    return PAWL_SUCCEEDED;
}

/* ------------------------------------------------------------------- a pool that is busy */

/* Keeps a pool's writer in transactions of its own, so that these see first what others commit. */
typedef struct producer {
    pawl_pool *pool;
    pthread_t thread;
    _Atomic bool end;
    _Atomic int refused;
} producer;

static void *produce(void *arg)
{
    producer *p = arg;
    while (!atomic_load(&p->end))
        if (pawl_enqueue(p->pool, PAWL_JOB(.kind = "nobody"), NULL) != PAWL_OK)
            (void)atomic_fetch_add(&p->refused, 1);
    return NULL;
}

static void producer_start(producer *p, pawl_pool *pool)
{
    p->pool = pool;
    atomic_init(&p->end, false);
    atomic_init(&p->refused, 0);
    assert_int_equal(pthread_create(&p->thread, NULL, produce, p), 0);
}

static void producer_end(producer *p)
{
    atomic_store(&p->end, true);
    assert_int_equal(pthread_join(p->thread, NULL), 0);
    assert_int_equal(atomic_load(&p->refused), 0);
}

/* Goal: who joins, claims and dies beside a pool that never rests is found dead all the same (I11). */
static void a_busy_pool_rescues_from_others(void **state)
{
    const temp *t = of(state);
    child worker;
    producer p;
    pawl_pool *pool = open_pool(t, .executors = 1, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "hang");
    producer_start(&p, pool);
    start_worker(&worker, t);
    assert_true(child_says(&worker, "start hang", NULL, 0, READY_MS));
    child_kill(&worker);
    bool rescued = eventually(none_runs, *state, SEEN_MS);
    producer_end(&p);
    assert_true(rescued);
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
    child_close(&worker);
}

typedef struct patient {
    gate started, told;
} patient;

static int wait_to_be_told(pawl_job *job, void *arg)
{
    patient *p = arg;
    gate_add(&p->started, 1);
    while (!pawl_job_should_stop(job))
        nap_ms(1);
    if (pawl_job_stop_reason(job) == PAWL_STOP_CANCEL)
        gate_add(&p->told, 1);
    return PAWL_CANCELLED;
}

static bool was_told(void *arg)
{
    return gate_count(arg) > 0;
}

/* Goal: a cancel through another connection reaches the handler while its own pool never rests (I10). */
static void a_busy_pool_hears_cancels_of_others(void **state)
{
    const temp *t = of(state);
    patient job = { GATE_INIT, GATE_INIT };
    producer p;
    pawl_pool *pool = open_pool(t, .executors = 1, .synchronous = PAWL_SYNCHRONOUS_NORMAL), *other;
    assert_ok(pawl_register(pool, "k", wait_to_be_told, &job, NULL));
    assert_ok(pawl_start(pool));
    other = open_pool(t, .executors = 1);
    int64_t id = put(pool, .kind = "k");
    assert_true(gate_await(&job.started, 1));
    producer_start(&p, pool);
    assert_status(pawl_cancel(other, id), PAWL_ACCEPTED);
    bool told = eventually(was_told, &job.told, SEEN_MS);
    producer_end(&p);
    assert_true(told);
    assert_ok(pawl_close(other));
    assert_ok(pawl_close(pool));
}

/* ------------------------------------------------------------------------ no descriptors */

/* Goal: who cannot look declares nobody dead (I12). */
static void a_pool_without_descriptors_robs_nobody(void **state)
{
    const temp *t = of(state);
    char before[64], after[64];
    child worker;
    struct rlimit limit, none;
    pawl_pool *pool = open_pool(t, .executors = 1);
    (void)put(pool, .kind = "wait");
    start_worker(&worker, t);
    assert_true(child_says(&worker, "start wait", NULL, 0, READY_MS));
    look_text(t->path, before, sizeof before, "SELECT status || fence FROM pawl_job");
    assert_ok(pawl_start(pool));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){ .rlim_cur = 0, .rlim_max = limit.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    nap_ms(2500); /* more than one look at the other pools; there is no other sign of them */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    look_text(t->path, after, sizeof after, "SELECT status || fence FROM pawl_job");
    assert_string_equal(before, after);
    child_tell(&worker, "go\n");
    assert_true(child_says(&worker, "end wait", NULL, 0, READY_MS));
    child_tell(&worker, "stop\n");
    (void)child_reap(&worker);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"), 1);
    assert_ok(pawl_close(pool));
    child_close(&worker);
}

/* ------------------------------------------------------------------------- a file is gone */

static const char *file_of(const temp *t, const char *suffix)
{
    static char paths[4][400];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s%s", t->path, suffix);
    return path;
}

static bool is_stored(void *arg)
{
    return pawl_enqueue(arg, PAWL_JOB(.kind = "k"), NULL) == PAWL_OK;
}

/* Goal: nothing is acknowledged while a file of the database is away or another one is in its place; once it is
 * back the pool works again, and all that was acknowledged is there (I1, R8). */
static void nothing_is_acknowledged_into_nowhere(void **state)
{
    const temp *t = of(state);
    static const struct {
        const char *suffix;
        bool started, replaced;
    } table[] = { { "-wal", true, false }, { "-wal", false, false }, { "", true, false }, { "", false, false },
                  { "", true, true },      { "-wal", false, true } };
    int64_t stored = 0;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *path = file_of(t, table[i].suffix), *aside = file_of(t, "-aside");
        pawl_pool *pool = open_pool(t, .executors = 1, .store_timeout_ms = 2000);
        if (table[i].started)
            assert_ok(pawl_start(pool));
        (void)put(pool, .kind = "k");
        assert_int_equal(rename(path, aside), 0);
        if (table[i].replaced)
            temp_write(path, "", 0);
        for (int k = 0; k < 3; k++) {
            pawl_status st = pawl_enqueue(pool, PAWL_JOB(.kind = "k"), NULL);
            if (st != PAWL_ERR_STORE)
                print_error("case %zu\n", i);
            assert_status(st, PAWL_ERR_STORE);
            assert_text_has(pawl_error_message(), "deleted or replaced");
        }
        assert_int_equal(rename(aside, path), 0);
        assert_true(eventually(is_stored, pool, SEEN_MS));
        stored += 2;
        assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_job"), stored);
        assert_ok(pawl_close(pool));
    }
    assert_counters_are_right(t->path);
}

/* Goal: the same where it cannot be put back: refused to the end, the pool can be stopped and closed (I21),
 * and a new one works on what is left. */
static void a_deleted_log_is_the_end_of_the_pool(void **state)
{
    const temp *t = of(state);
    for (int started = 0; started <= 1; started++) {
        pawl_pool *pool = open_pool(t, .executors = 1, .store_timeout_ms = 1000);
        if (started)
            assert_ok(pawl_start(pool));
        assert_int_equal(unlink(file_of(t, "-wal")), 0);
        for (int k = 0; k < 3; k++)
            assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_STORE);
        assert_ok(pawl_stop(pool, 0));
        assert_ok(pawl_close(pool));
        (void)unlink(file_of(t, "-shm"));
        pool = open_pool(t, .executors = 1);
        (void)put(pool, .kind = "k");
        assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_job"), started + 1);
        assert_ok(pawl_close(pool));
    }
}

/* --------------------------------------------------------------- what is refused, and spins */

/* A log hook that counts what is worse than information. */
static void listen(pawl_log_level level, const char *line, void *arg)
{
    (void)line;
    if (level <= PAWL_LOG_WARNING)
        (void)atomic_fetch_add((_Atomic int *)arg, 1);
}

static int64_t cpu_ms(void)
{
    struct rusage r;
    (void)getrusage(RUSAGE_SELF, &r);
    return (int64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000
           + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1000;
}

/* A thread that spins takes all of the time. */
static void assert_nothing_spins(void)
{
    int64_t before = cpu_ms();
    nap_ms(1000);
    assert_in_range(cpu_ms() - before, 0, 400);
}

typedef struct follower {
    _Atomic int applied;
    gate ended;
} follower;

static pawl_status count_apply(void *db, pawl_job *job, void *arg)
{
    (void)db;
    (void)job;
    (void)atomic_fetch_add(&((follower *)arg)->applied, 1);
    return PAWL_OK;
}

/* A follow-on job that a trigger of the application's refuses: no fault of the job. */
static int follow(pawl_job *job, void *arg)
{
    follower *f = arg;
    bool accepted = pawl_job_on_success(job, count_apply, f, NULL) == PAWL_OK
                    && pawl_job_then(job, PAWL_JOB(.kind = "next", .priority = 666)) == PAWL_OK;
    gate_add(&f->ended, 1);
    return accepted ? PAWL_SUCCEEDED : PAWL_FAILED;
}

/* Goal: an outcome that the store refuses alone waits for itself alone: it is tried again slowly, said once, holds up
 * nobody and no stop; and it is written when the cause is gone (I23, W3, G2). */
static void a_refused_outcome_waits_alone(void **state)
{
    const temp *t = of(state);
    follower f = { .ended = GATE_INIT };
    gate others = GATE_INIT;
    _Atomic int lines = 0;
    pawl_pool *pool;
    assert_ok(pawl_open(PAWL_OPTIONS(.store = t->path, .executors = 2, .log = listen, .log_arg = (void *)&lines),
                        &pool));
    assert_ok(pawl_register(pool, "follow", follow, &f, NULL));
    assert_ok(pawl_register(pool, "good", succeed, &others, NULL));
    change(t->path, "CREATE TRIGGER app_refuses BEFORE INSERT ON pawl_job WHEN NEW.priority = 666"
                    " BEGIN SELECT RAISE(ABORT, 'not here'); END");
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "follow");
    assert_true(gate_await(&f.ended, 1));
    assert_nothing_spins();
    assert_in_range(atomic_load(&f.applied), 1, 40);
    for (int i = 1; i <= 20; i++) {
        (void)put(pool, .kind = "good");
        assert_true(gate_await(&others, i));
    }
    assert_int_equal(atomic_load(&lines), 1);
    int64_t began = steady_ms();
    assert_status(pawl_stop(pool, 0), PAWL_ERR_TIMEOUT);
    assert_in_range(steady_ms() - began, 0, 10000); /* the grace, and 5 s more */
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE kind = 'good'"
                                   " AND status = 'succeeded'"), 20);
    assert_int_equal(state_of(pool, id), PAWL_STATE_RUNNING);
    change(t->path, "DROP TRIGGER app_refuses");
    assert_ok(pawl_stop(pool, READY_MS));
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_int_equal(gate_count(&f.ended), 1);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE kind = 'next'"), 1);
    assert_int_equal(atomic_load(&lines), 2); /* and that it works again */
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
}

/* Goal: a rescue that the database refuses is tried again slowly, is said, and holds up nobody; when the cause is gone
 * it happens (I11, I23). */
static void a_refused_rescue_waits(void **state)
{
    const temp *t = of(state);
    child worker;
    gate others = GATE_INIT;
    _Atomic int lines = 0;
    pawl_pool *pool;
    assert_ok(pawl_open(PAWL_OPTIONS(.store = t->path, .executors = 1, .log = listen, .log_arg = (void *)&lines),
                        &pool));
    assert_ok(pawl_register(pool, "good", succeed, &others, NULL));
    (void)put(pool, .kind = "hang");
    start_worker(&worker, t);
    assert_true(child_says(&worker, "start hang", NULL, 0, READY_MS));
    change(t->path, "CREATE TRIGGER app_refuses BEFORE UPDATE ON pawl_job WHEN OLD.status = 3 AND OLD.id = 1"
                    " BEGIN SELECT RAISE(ABORT, 'not here'); END");
    child_kill(&worker);
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "good");
    assert_true(gate_await(&others, 1));
    assert_nothing_spins();
    assert_int_equal(atomic_load(&lines), 1);
    change(t->path, "DROP TRIGGER app_refuses");
    assert_true(eventually(none_runs, *state, SEEN_MS));
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
    child_close(&worker);
}

/* Goal: a write that somebody's trigger swallows is not acknowledged, and a claim that it swallows calls no handler; it
 * is tried again slowly, said once, and happens when the trigger is gone (I1, I4, I23). */
static void a_swallowed_write_is_not_acknowledged(void **state)
{
    const temp *t = of(state);
    gate ran = GATE_INIT;
    _Atomic int lines = 0;
    int64_t id;
    pawl_pool *pool;
    assert_ok(pawl_open(PAWL_OPTIONS(.store = t->path, .executors = 1, .log = listen, .log_arg = (void *)&lines),
                        &pool));
    assert_ok(pawl_register(pool, "good", succeed, &ran, NULL));
    (void)put(pool, .kind = "good");
    change(t->path, "CREATE TRIGGER app_swallows BEFORE INSERT ON pawl_job BEGIN SELECT RAISE(IGNORE); END");
    assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "good"), &id), PAWL_ERR_STORE);
    assert_text_has(pawl_error_message(), "pawl doctor names it");
    change(t->path, "DROP TRIGGER app_swallows");
    change(t->path, "CREATE TRIGGER app_swallows BEFORE UPDATE ON pawl_job BEGIN SELECT RAISE(IGNORE); END");
    assert_ok(pawl_start(pool));
    assert_nothing_spins();
    assert_int_equal(gate_count(&ran), 0);
    assert_int_equal(atomic_load(&lines), 1);
    change(t->path, "DROP TRIGGER app_swallows");
    assert_true(gate_await(&ran, 1));
    assert_ok(pawl_wait_idle(pool, READY_MS));
    assert_ok(pawl_close(pool));
    assert_int_equal(look(t->path, "SELECT group_concat(attempts) FROM pawl_job"), 1);
    assert_counters_are_right(t->path);
}

typedef struct deaf {
    gate started, may_end;
} deaf;

static int ignore_the_timeout(pawl_job *job, void *arg)
{
    deaf *d = arg;
    gate_add(&d->started, 1);
    (void)job;
    return gate_await(&d->may_end, 1) ? PAWL_SUCCEEDED : PAWL_FAILED;
}

/* Goal: the end of a stuck job's claim that the database refuses is tried again slowly, and is written when the cause is
 * gone; the late outcome is refused (I6, I23). */
static void a_refused_eviction_waits(void **state)
{
    const temp *t = of(state);
    deaf d = { GATE_INIT, GATE_INIT };
    pawl_pool *pool = open_pool(t, .executors = 1, .lease_ms = 200);
    assert_ok(pawl_register(pool, "deaf", ignore_the_timeout, &d, PAWL_HANDLER(.timeout_ms = 50)));
    change(t->path, "CREATE TRIGGER app_refuses BEFORE UPDATE ON pawl_job WHEN OLD.status = 3 AND NEW.status <> 3"
                    " BEGIN SELECT RAISE(ABORT, 'not here'); END");
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "deaf", .max_attempts = 1);
    assert_true(gate_await(&d.started, 1));
    nap_ms(400); /* past its timeout and its lease: there is no other sign of what is refused */
    assert_nothing_spins();
    assert_int_equal(state_of(pool, id), PAWL_STATE_RUNNING);
    change(t->path, "DROP TRIGGER app_refuses");
    assert_true(eventually(none_runs, *state, SEEN_MS));
    assert_int_equal(state_of(pool, id), PAWL_STATE_FAILED);
    gate_add(&d.may_end, 1);
    assert_ok(pawl_wait_idle(pool, READY_MS));
    assert_int_equal(state_of(pool, id), PAWL_STATE_FAILED);
    pawl_stats_info stats = PAWL_STATS_INIT;
    assert_ok(pawl_stats(pool, &stats));
    assert_int_equal(stats.late_refused, 1);
    assert_int_equal(stats.executors_stuck, 0);
    pawl_stats_info_clear(&stats);
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
}

typedef struct beaten {
    pawl_status first, second;
    char message[256];
    gate said, may_go_on;
} beaten;

static int beat_twice(pawl_job *job, void *arg)
{
    beaten *b = arg;
    b->first = pawl_job_heartbeat(job);
    (void)snprintf(b->message, sizeof b->message, "%s", pawl_error_message());
    gate_add(&b->said, 1);
    if (!gate_await(&b->may_go_on, 1))
        return PAWL_FAILED;
    b->second = pawl_job_heartbeat(job);
    return PAWL_SUCCEEDED;
}

/* Goal: a heartbeat that the database refuses says so, by its own name; the claim is not lost by it. */
static void a_refused_heartbeat_says_so(void **state)
{
    const temp *t = of(state);
    beaten b = { .said = GATE_INIT, .may_go_on = GATE_INIT };
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_register(pool, "beat", beat_twice, &b, NULL));
    change(t->path, "CREATE TRIGGER app_refuses BEFORE UPDATE OF lease_until ON pawl_job WHEN OLD.status = 3"
                    " BEGIN SELECT RAISE(ABORT, 'not here'); END");
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "beat");
    assert_true(gate_await(&b.said, 1));
    assert_status(b.first, PAWL_ERR_STORE);
    assert_text_has(b.message, "heartbeat");
    change(t->path, "DROP TRIGGER app_refuses");
    gate_add(&b.may_go_on, 1);
    assert_ok(pawl_wait_idle(pool, READY_MS));
    assert_ok(b.second);
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
}

static int run_on(pawl_job *job, void *arg)
{
    gate_add(arg, 1);
    while (!pawl_job_should_stop(job))
        nap_ms(5);
    return PAWL_RELEASED;
}

/* Goal: a stop that waits for a handler costs nothing, whatever falls due meanwhile (nothing at rest). */
static void a_stop_that_waits_does_not_spin(void **state)
{
    const temp *t = of(state);
    gate started = GATE_INIT;
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_register(pool, "run", run_on, &started, NULL));
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "run");
    assert_true(gate_await(&started, 1));
    (void)put(pool, .kind = "run", .delay_ms = 50);
    int64_t before = cpu_ms();
    assert_ok(pawl_stop(pool, 1000));
    assert_in_range(cpu_ms() - before, 0, 400);
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
}

static void count_answer(pawl_status status, int64_t id, void *arg)
{
    (void)status;
    (void)id;
    (void)atomic_fetch_add((_Atomic int *)arg, 1);
}

/* Goal: each asynchronous enqueue is answered exactly once, before the close returns, also when somebody else holds
 * the write lock through it (I17). */
static void a_close_under_a_lock_answers_all(void **state)
{
    const temp *t = of(state);
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_close(pool));
    for (int i = 0; i < 24; i++) {
        _Atomic int answers = 0;
        pool = open_pool(t, .executors = 1, .store_timeout_ms = 40 + i);
        sqlite3 *db = sql_open(t->path);
        sql_run(db, "BEGIN IMMEDIATE");
        assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), count_answer, (void *)&answers));
        assert_ok(pawl_close(pool));
        assert_int_equal(atomic_load(&answers), 1);
        sql_run(db, "ROLLBACK");
        sql_close(db);
    }
}

/* --------------------------------------------------------------------------- rows by SQL */

typedef struct bent {
    pawl_pool *pool;
    gate good;
    _Atomic int lines;
} bent;

static int fail_for_good(pawl_job *job, void *arg)
{
    (void)job;
    gate_add(arg, 1);
    return PAWL_FAILED;
}

static void bent_open(bent *b, const temp *t, gate *bad)
{
    *b = (bent){ .good = GATE_INIT };
    assert_ok(pawl_open(PAWL_OPTIONS(.store = t->path, .executors = 2, .log = listen,
                                     .log_arg = (void *)&b->lines), &b->pool));
    assert_ok(pawl_register(b->pool, "good", succeed, &b->good, NULL));
    assert_ok(pawl_register(b->pool, "bad", fail_for_good, bad, NULL));
    assert_ok(pawl_start(b->pool));
}

static void assert_others_run(bent *b)
{
    int before = gate_count(&b->good);
    int64_t began = steady_ms();
    for (int i = 1; i <= 20; i++) {
        (void)put(b->pool, .kind = "good");
        assert_true(gate_await(&b->good, before + i));
    }
    assert_in_range(steady_ms() - began, 0, SEEN_MS);
}

/* Nothing spins either, and the pool stops as it should. */
static void assert_the_rest_goes_on(bent *b, int lines_max)
{
    assert_others_run(b);
    assert_nothing_spins();
    assert_in_range(atomic_load(&b->lines), 0, lines_max);
    assert_ok(pawl_stop(b->pool, READY_MS));
    assert_ok(pawl_close(b->pool));
}

static void a_delayed_row_without_a_lane_stops_nobody(void **state)
{
    const temp *t = of(state);
    gate bad = GATE_INIT;
    bent b;
    bent_open(&b, t, &bad);
    int64_t id = put(b.pool, .kind = "good", .delay_ms = 3600000);
    change(t->path, "UPDATE pawl_job SET lane = 9999, available_at = 1000 WHERE id = %lld", (long long)id);
    assert_the_rest_goes_on(&b, 2);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_job WHERE status IN (2, 3)"), 0);
}

static bool one_runs(void *arg)
{
    const temp *t = arg;
    return look(t->path, "SELECT count(*) FROM pawl_job WHERE status = 3 AND lane <> 9999") == 0;
}

/* A dead process held it: its other claims are rescued all the same. */
static void a_running_row_without_a_lane_stops_nobody(void **state)
{
    const temp *t = of(state);
    gate bad = GATE_INIT;
    child worker;
    bent b;
    pawl_pool *pool = open_pool(t, .executors = 1);
    int64_t id = put(pool, .kind = "hang");
    (void)put(pool, .kind = "hang");
    assert_ok(pawl_close(pool));
    start_worker(&worker, t);
    assert_true(child_says(&worker, "start hang", NULL, 0, READY_MS));
    assert_true(child_says(&worker, "start hang", NULL, 0, READY_MS));
    child_kill(&worker);
    change(t->path, "UPDATE pawl_job SET lane = 9999 WHERE id = %lld", (long long)id);
    bent_open(&b, t, &bad);
    assert_true(eventually(one_runs, *state, SEEN_MS));
    assert_the_rest_goes_on(&b, 2);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_job WHERE status = 3"), 0);
    child_close(&worker);
}

/* Goal: rows whose states were changed by SQL run, and their lane is counted again, with one warning (I20). */
static void bent_counters_are_counted_again(void **state)
{
    const temp *t = of(state);
    gate bad = GATE_INIT;
    bent b;
    bent_open(&b, t, &bad);
    for (int i = 0; i < 3; i++)
        (void)put(b.pool, .kind = "bad");
    assert_true(gate_await(&bad, 3));
    assert_ok(pawl_wait_idle(b.pool, READY_MS));
    change(t->path, "UPDATE pawl_job SET status = 2, attempts = 0 WHERE status = 5");
    (void)put(b.pool, .kind = "bad", .delay_ms = 50); /* touches the lane, where nothing is ready by its counters */
    assert_true(gate_await(&bad, 4));
    assert_others_run(&b);
    assert_nothing_spins();
    int64_t failed = look(t->path, "SELECT min(id) FROM pawl_job WHERE status = 5");
    change(t->path, "UPDATE pawl_lane SET failed = 0");
    assert_ok(pawl_requeue(b.pool, failed)); /* one less than none: counted again */
    assert_true(gate_await(&bad, 8));
    assert_the_rest_goes_on(&b, 1);
    assert_int_equal(atomic_load(&b.lines), 1);
    assert_counters_are_right(t->path);
}

/* Goal: many claims whose lease is over are taken back slice by slice, and not a slice a second (I11, I23). */
static void many_expired_claims_come_back_at_once(void **state)
{
    enum { CLAIMS = 2000 };
    const temp *t = of(state);
    static pawl_job_spec specs[CLAIMS];
    gate ran = GATE_INIT;
    pawl_pool *pool = open_pool(t, .executors = 4);
    for (int i = 0; i < CLAIMS; i++)
        specs[i] = *PAWL_JOB(.kind = "good");
    assert_ok(pawl_enqueue_many(pool, specs, CLAIMS, NULL, NULL));
    change(t->path, "BEGIN IMMEDIATE; UPDATE pawl_job SET status = 3, attempts = 1, holder = 999, lease_boot = 1;"
                    "UPDATE pawl_lane SET running = ready, ready = 0; COMMIT");
    assert_ok(pawl_register(pool, "good", succeed, &ran, NULL));
    int64_t began = steady_ms();
    assert_ok(pawl_start(pool));
    assert_true(gate_await(&ran, CLAIMS));
    assert_in_range(steady_ms() - began, 0, 2000); /* four slices */
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
}

/* Goal: jobs that rows of the application's refer to are kept, whether the key is deferred or not; the others are pruned,
 * claims go on, and it is said once (I10, I23). */
static void what_is_referred_to_is_kept_and_holds_up_nobody(void **state)
{
    enum { JOBS = 200, KEPT_MAX = 10, REFERRED = 4 };
    const temp *t = of(state);
    gate ran = GATE_INIT;
    _Atomic int lines = 0;
    pawl_pool *pool;
    assert_ok(pawl_open(PAWL_OPTIONS(.store = t->path, .executors = 2, .keep_succeeded_max = KEPT_MAX, .log = listen,
                                     .log_arg = (void *)&lines), &pool));
    assert_ok(pawl_register(pool, "good", succeed, &ran, NULL));
    for (int i = 0; i < REFERRED; i++)
        (void)put(pool, .kind = "good");
    change(t->path, "CREATE TABLE orders (job INTEGER REFERENCES pawl_job (id));"
                    "CREATE TABLE later (job INTEGER REFERENCES pawl_job (id) DEFERRABLE INITIALLY DEFERRED);"
                    "INSERT INTO orders VALUES (1), (2); INSERT INTO later VALUES (3), (4)");
    assert_ok(pawl_start(pool));
    for (int i = 0; i < JOBS; i++)
        (void)put(pool, .kind = "good");
    assert_ok(pawl_wait_idle(pool, READY_MS));
    assert_int_equal(gate_count(&ran), JOBS + REFERRED);
    assert_nothing_spins();
    assert_ok(pawl_close(pool));
    assert_in_range(atomic_load(&lines), 0, 1);
    assert_in_range(look(t->path, "SELECT count(*) FROM pawl_job"), KEPT_MAX, KEPT_MAX + REFERRED);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_job WHERE id <= %d", REFERRED), REFERRED);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
    assert_counters_are_right(t->path);
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    in_a_directory(a_busy_pool_rescues_from_others),
    in_a_directory(a_busy_pool_hears_cancels_of_others),
    in_a_directory(a_pool_without_descriptors_robs_nobody),
    in_a_directory(nothing_is_acknowledged_into_nowhere),
    in_a_directory(a_deleted_log_is_the_end_of_the_pool),
    in_a_directory(a_refused_outcome_waits_alone),
    in_a_directory(a_refused_rescue_waits),
    in_a_directory(a_swallowed_write_is_not_acknowledged),
    in_a_directory(a_refused_eviction_waits),
    in_a_directory(a_refused_heartbeat_says_so),
    in_a_directory(a_stop_that_waits_does_not_spin),
    in_a_directory(a_close_under_a_lock_answers_all),
    in_a_directory(a_delayed_row_without_a_lane_stops_nobody),
    in_a_directory(a_running_row_without_a_lane_stops_nobody),
    in_a_directory(bent_counters_are_counted_again),
    in_a_directory(many_expired_claims_come_back_at_once),
    in_a_directory(what_is_referred_to_is_kept_and_holds_up_nobody),
};

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
