/* watch_test.c - how soon a pool that is at rest notices what others commit, and that it rests otherwise.
 *
 * Goal: I10 in time: whoever commits a job, and in whatever way, its handler starts within milliseconds, and what is
 * at rest stays at rest. The pool that is woken lives in a process of its own (support/worker.c); the time is taken
 * here, from the call that commits to the line that the handler says. Bounds are wide enough for a machine that is
 * busy with something else, and too narrow for the slow poll, which is there for what no event told. */
#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "gate.h"
#include "look.h"
#include "patience.h"
#include "slow_log.h"
#include "wake_ups.h"

#define LEASE_MS "60000"
#define READY_MS 20000 /* for a slow machine under a sanitizer */
#define ROUNDS 20
#define SOON_MS 50     /* all but one in twenty */
#define SLOW_POLL_MS 800

static const temp *of(void **state)
{
    return *state;
}

static void start_worker(child *c, const temp *t)
{
    child_start(c, (const char *const[]){ "work", t->path, LEASE_MS, "2", NULL });
    assert_true(child_says(c, "ready", NULL, 0, READY_MS));
}

static void stop_worker(child *c)
{
    child_tell(c, "stop\n");
    int status = child_reap(c);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    child_close(c);
}

/* ----------------------------------------------------------------------------- the times */

typedef struct times {
    int64_t ms[ROUNDS];
    int count;
} times;

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Since `began_ms`, until the worker said that the handler of a job "say" started. */
static void note_start(times *ts, child *worker, int64_t began_ms)
{
    if (!child_says(worker, "start say", NULL, 0, READY_MS))
        fail_msg("a job was not started within %d ms", READY_MS);
    ts->ms[ts->count++] = steady_ms() - began_ms;
}

static void assert_soon(times *ts, const char *what)
{
    qsort(ts->ms, (size_t)ts->count, sizeof ts->ms[0], by_size);
    print_message("%s: median %" PRId64 " ms, worst %" PRId64 " and %" PRId64 " ms\n", what,
                  ts->ms[ts->count / 2], ts->ms[ts->count - 2], ts->ms[ts->count - 1]);
    assert_in_range(ts->ms[ts->count - 2], 0, SOON_MS);
    assert_in_range(ts->ms[ts->count - 1], 0, SLOW_POLL_MS);
}

/* A time for the pool to come to rest, drawn anew each time, so that no timer is met in step. */
static void rest(uint64_t *seed)
{
    nap_ms(20 + (int64_t)(next_random(seed) % 180));
}

/* ------------------------------------------------------------------------------ enqueues */

static void a_pool_that_is_not_started_wakes_another(void **state)
{
    const temp *t = of(state);
    uint64_t seed = test_seed();
    times ts = { .count = 0 };
    child worker;
    start_worker(&worker, t);
    pawl_pool *pool = open_pool(t, .executors = 1);
    while (ts.count < ROUNDS) {
        rest(&seed);
        int64_t began = steady_ms();
        (void)put(pool, .kind = "say");
        note_start(&ts, &worker, began);
    }
    assert_ok(pawl_close(pool));
    stop_worker(&worker);
    assert_soon(&ts, "by a pool that is not started");
}

static void an_applications_connection_wakes_a_pool(void **state)
{
    const temp *t = of(state);
    uint64_t seed = test_seed();
    times ts = { .count = 0 };
    child worker;
    start_worker(&worker, t);
    sqlite3 *db = sql_open(t->path);
    while (ts.count < ROUNDS) {
        rest(&seed);
        int64_t began = steady_ms();
        assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "say"), NULL));
        note_start(&ts, &worker, began);
    }
    sql_close(db);
    stop_worker(&worker);
    assert_soon(&ts, "by a connection of the application's");
}

/* Another job like the last one, as any program in any language could write it. */
static void insert_by_sql(sqlite3 *db)
{
    sql_run(db, "INSERT INTO pawl_job (lane, kind, status, priority, attempts, max_attempts, cancel, bystander, holder,"
                " fence, timeout_ms, available_at, created_at, updated_at, claimed_at, lease_until, lease_boot)"
                " SELECT lane, kind, 2, 0, 0, 5, 0, 0, 0, fence, 0, created_at, created_at, created_at, created_at,"
                " created_at, 0 FROM pawl_job WHERE status IN (2, 3, 4) ORDER BY id DESC LIMIT 1;"
                "UPDATE pawl_lane SET ready = ready + 1, enqueued = enqueued + 1"
                " WHERE id = (SELECT lane FROM pawl_job ORDER BY id DESC LIMIT 1)");
}

/* The first job of the kind, which the others are made after. */
static void say_once(const temp *t, child *worker)
{
    times ts = { .count = 0 };
    pawl_pool *pool = open_pool(t, .executors = 1);
    (void)put(pool, .kind = "say");
    note_start(&ts, worker, steady_ms());
    assert_ok(pawl_close(pool));
}

/* Goal: a transaction that spills into the log long before it commits: its events are over when the pool could first see
 * something, but for those of the commit itself. */
static void a_long_transaction_by_sql_wakes_a_pool(void **state)
{
    const temp *t = of(state);
    uint64_t seed = test_seed();
    times ts = { .count = 0 };
    child worker;
    start_worker(&worker, t);
    say_once(t, &worker);
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "CREATE TABLE app (x); PRAGMA cache_size = 5; PRAGMA cache_spill = 1");
    while (ts.count < ROUNDS) {
        rest(&seed);
        sql_run(db, "BEGIN IMMEDIATE");
        insert_by_sql(db);
        sql_run(db, "WITH n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 50)"
                    " INSERT INTO app SELECT randomblob(8000) FROM n; DELETE FROM app");
        nap_ms(ts.count % 2 == 0 ? 300 : (int64_t)(next_random(&seed) % 300));
        int64_t began = steady_ms();
        sql_run(db, "COMMIT");
        note_start(&ts, &worker, began);
    }
    sql_close(db);
    stop_worker(&worker);
    assert_soon(&ts, "by a long transaction in SQL");
}

/* Goal: what is committed just when the pool is deaf because of its own writes is heard all the same. */
static void a_commit_behind_an_own_one_wakes_a_pool(void **state)
{
    const temp *t = of(state);
    uint64_t seed = test_seed();
    times ts = { .count = 0 };
    child worker;
    start_worker(&worker, t);
    say_once(t, &worker);
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "PRAGMA synchronous = NORMAL"); /* its commit takes no time: it falls where it is meant to */
    while (ts.count < ROUNDS) {
        rest(&seed);
        times own = { .count = 0 };
        assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "say"), NULL));
        note_start(&own, &worker, steady_ms()); /* its end is committed in a moment */
        int64_t until = steady_ms() + (int64_t)(next_random(&seed) % 16);
        while (steady_ms() < until) { /* not a nap: at the very moment */
        }
        int64_t began = steady_ms();
        sql_run(db, "BEGIN IMMEDIATE");
        insert_by_sql(db);
        sql_run(db, "COMMIT");
        note_start(&ts, &worker, began);
    }
    sql_close(db);
    stop_worker(&worker);
    assert_soon(&ts, "right behind a commit of the pool's own");
}

/* Goal: the log is written long before the commit can be seen, because the disk is slow: the job starts all the same,
 * and soon after the commit returned. Nothing else happens that could wake the pool. */
static void a_commit_to_a_slow_disk_wakes_a_pool(void **state)
{
    const temp *t = of(state);
    static const int64_t delays_ms[] = { 40, 130, 160, 300, 700, 1100, 1500, 2500 };
    child worker;
    int late = 0;
    start_worker(&worker, t);
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "PRAGMA synchronous = FULL");
    for (size_t i = 0; i < sizeof delays_ms / sizeof delays_ms[0]; i++) {
        nap_ms(200);
        slow_log_delay(delays_ms[i]);
        assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "say"), NULL));
        slow_log_delay(0);
        int64_t began = steady_ms();
        bool started = child_says(&worker, "start say", NULL, 0, 4000);
        print_message("a flush of %" PRId64 " ms: %s after %" PRId64 " ms\n", delays_ms[i],
                      started ? "started" : "not started", steady_ms() - began);
        late += !started || steady_ms() - began > 2000;
        if (!started) { /* an event, so that the next case begins at rest */
            assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "quick"), NULL));
            assert_true(child_says(&worker, "start say", NULL, 0, READY_MS));
        }
    }
    sql_close(db);
    stop_worker(&worker);
    assert_int_equal(late, 0);
}

/* ------------------------------------------------------------------ what operators do */

static void a_requeue_wakes_a_pool(void **state)
{
    const temp *t = of(state);
    uint64_t seed = test_seed();
    times ts = { .count = 0 };
    child worker;
    pawl_pool *pool = open_pool(t, .executors = 1);
    int64_t ids[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        ids[i] = put(pool, .kind = "say");
        assert_ok(pawl_cancel(pool, ids[i]));
    }
    start_worker(&worker, t);
    while (ts.count < ROUNDS) {
        rest(&seed);
        int64_t began = steady_ms();
        assert_ok(pawl_requeue(pool, ids[ts.count]));
        note_start(&ts, &worker, began);
    }
    assert_ok(pawl_close(pool));
    stop_worker(&worker);
    assert_soon(&ts, "by a requeue");
}

static void a_resume_wakes_a_pool(void **state)
{
    const temp *t = of(state);
    uint64_t seed = test_seed();
    times ts = { .count = 0 };
    child worker;
    start_worker(&worker, t);
    pawl_pool *pool = open_pool(t, .executors = 1);
    while (ts.count < ROUNDS) {
        assert_ok(pawl_pause(pool, "default"));
        (void)put(pool, .kind = "say");
        rest(&seed);
        int64_t began = steady_ms();
        assert_ok(pawl_resume(pool, "default"));
        note_start(&ts, &worker, began);
    }
    assert_ok(pawl_close(pool));
    stop_worker(&worker);
    assert_soon(&ts, "by a resume");
}

/* Goal: a running job's cancel from another process is told to its handler within 1 s; it takes milliseconds. */
static void a_cancel_is_told_across_processes(void **state)
{
    const temp *t = of(state);
    uint64_t seed = test_seed();
    times ts = { .count = 0 };
    child worker;
    start_worker(&worker, t);
    pawl_pool *pool = open_pool(t, .executors = 1);
    while (ts.count < ROUNDS) {
        int64_t id = put(pool, .kind = "hang");
        assert_true(child_says(&worker, "start hang", NULL, 0, READY_MS));
        rest(&seed);
        int64_t began = steady_ms();
        assert_status(pawl_cancel(pool, id), PAWL_ACCEPTED);
        assert_true(child_says(&worker, "told", NULL, 0, READY_MS));
        ts.ms[ts.count++] = steady_ms() - began;
        assert_in_range(ts.ms[ts.count - 1], 0, 1000);
    }
    assert_ok(pawl_close(pool));
    stop_worker(&worker);
    assert_soon(&ts, "a cancel");
}

/* Two pools of one process tell each other as any two. */
static int note_run(pawl_job *job, void *arg)
{
    (void)job;
    gate_add(arg, 1);
    return PAWL_SUCCEEDED;
}

static void two_pools_of_one_process_wake_each_other(void **state)
{
    const temp *t = of(state);
    uint64_t seed = test_seed();
    gate ran = GATE_INIT;
    times ts = { .count = 0 };
    pawl_pool *first = open_pool(t, .executors = 1), *second = open_pool(t, .executors = 1);
    assert_ok(pawl_register(first, "first", note_run, &ran, NULL));
    assert_ok(pawl_register(second, "second", note_run, &ran, NULL));
    assert_ok(pawl_start(first));
    assert_ok(pawl_start(second));
    while (ts.count < ROUNDS) {
        rest(&seed);
        int64_t began = steady_ms();
        if (ts.count % 2 == 0)
            (void)put(first, .kind = "second");
        else
            (void)put(second, .kind = "first");
        assert_true(gate_await(&ran, ts.count + 1));
        ts.ms[ts.count++] = steady_ms() - began;
    }
    assert_ok(pawl_close(first));
    assert_ok(pawl_close(second));
    assert_soon(&ts, "between two pools of one process");
}

/* -------------------------------------------------------------------------------- at rest */

/* Goal: a pool does not wake itself again and again because of its own commits. Without flushes, which are sleeps too. */
static void an_own_commit_is_no_news(void **state)
{
    const temp *t = of(state);
    int64_t worst = 0;
    pawl_pool *pool = open_pool(t, .executors = 1, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    assert_ok(pawl_start(pool));
    nap_ms(1500);
    for (int i = 0; i < 5; i++) {
        int64_t before = wake_ups_of(0);
        (void)put(pool, .kind = "none");
        nap_ms(1000);
        int64_t here = wake_ups_of(0) - before;
        worst = here > worst ? here : worst;
    }
    print_message("%" PRId64 " wake-ups at most in the second of an own commit\n", worst);
    assert_ok(pawl_close(pool));
    assert_in_range(worst, 1, 10);
}

static void idle_beside_an_idle_pool(void **state)
{
    const temp *t = of(state);
    child worker;
    start_worker(&worker, t);
    pawl_pool *pool = open_pool(t, .executors = 4);
    assert_ok(pawl_start(pool));
    nap_ms(2500); /* they have seen each other */
    int64_t here = wake_ups_of(0), there = wake_ups_of(worker.pid), began = steady_ms();
    nap_ms(5000);
    int64_t took = steady_ms() - began;
    here = wake_ups_of(0) - here;
    there = wake_ups_of(worker.pid) - there;
    print_message("%" PRId64 " and %" PRId64 " wake-ups in %" PRId64 " ms\n", here, there, took);
    assert_true(here * 1000 <= 3 * took);
    assert_true(there * 1000 <= 3 * took);
    assert_ok(pawl_close(pool));
    stop_worker(&worker);
}

/* ------------------------------------------------------------------------ without events */

typedef struct warnings {
    _Atomic int polling, others;
} warnings;

static void listen(pawl_log_level level, const char *line, void *arg)
{
    warnings *w = arg;
    if (level <= PAWL_LOG_WARNING)
        (void)atomic_fetch_add(strstr(line, "inotify") != NULL ? &w->polling : &w->others, 1);
}

static bool write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0)
        (void)close(file);
    return ok;
}

/* A user namespace of its own has limits of its own. */
static bool forbid_inotify(void)
{
    char map[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER) != 0)
        return false;
    (void)snprintf(map, sizeof map, "%d %d 1", (int)uid, (int)uid);
    if (!write_text("/proc/self/uid_map", map))
        return false;
    (void)write_text("/proc/self/setgroups", "deny");
    (void)snprintf(map, sizeof map, "%d %d 1", (int)gid, (int)gid);
    (void)write_text("/proc/self/gid_map", map);
    return write_text("/proc/sys/user/max_inotify_instances", "0");
}

enum { NOT_ALLOWED = 77, REFUSED = 1, NOT_ONE_WARNING = 2, TOO_LATE = 3, NEVER_STARTED = 4 };

static int64_t run_takes(sqlite3 *db, gate *ran, int64_t flush_ms)
{
    int before = gate_count(ran);
    slow_log_delay(flush_ms);
    if (pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "note"), NULL) != PAWL_OK)
        return -1;
    slow_log_delay(0);
    int64_t began = steady_ms();
    while (gate_count(ran) == before && steady_ms() - began < 4000)
        nap_ms(1);
    return gate_count(ran) == before ? -1 : steady_ms() - began;
}

/* In a child that has one thread, which a namespace asks for. Exits with what went wrong. */
static void be_without_events(const char *path, int64_t flush_ms)
{
    warnings w = { 0 };
    gate ran = GATE_INIT;
    pawl_pool *pool;
    sqlite3 *db;
    int late = 0;
    if (!forbid_inotify())
        _exit(NOT_ALLOWED);
    if (pawl_open(PAWL_OPTIONS(.store = path, .executors = 1, .log = listen, .log_arg = &w), &pool) != PAWL_OK
        || pawl_register(pool, "note", note_run, &ran, NULL) != PAWL_OK || pawl_start(pool) != PAWL_OK
        || sqlite3_open(path, &db) != SQLITE_OK
        || sqlite3_exec(db, "PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = FULL", NULL, NULL, NULL) != SQLITE_OK)
        _exit(REFUSED);
    for (int i = 0; i < 10; i++) {
        nap_ms(70 + 13 * i);
        int64_t took = run_takes(db, &ran, flush_ms);
        if (took < 0)
            _exit(NEVER_STARTED);
        late += took > 200;
    }
    if (sqlite3_close(db) != SQLITE_OK || pawl_close(pool) != PAWL_OK)
        _exit(REFUSED);
    _exit(late > 1 ? TOO_LATE : atomic_load(&w.polling) != 1 || atomic_load(&w.others) != 0 ? NOT_ONE_WARNING : 0);
}

static void run_without_events(const temp *t, int64_t flush_ms)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        be_without_events(t->path, flush_ms);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_ALLOWED) {
        print_message("user namespaces are not allowed here: it is not tested what a pool without inotify does\n");
        skip();
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void without_file_events_the_pool_polls(void **state)
{
    run_without_events(of(state), 0);
}

/* Goal: a poll that comes between the write and the commit does not take the one for the other. */
static void a_poll_during_a_slow_flush_is_no_answer(void **state)
{
    run_without_events(of(state), 120);
}

/* --------------------------------------------------------------------- the side directory */

static void remove_side_directory(const temp *t)
{
    char path[400];
    (void)snprintf(path, sizeof path, "%s-pawl", t->path);
    DIR *side = opendir(path);
    assert_non_null(side);
    for (struct dirent *entry; (entry = readdir(side)) != NULL;)
        if (entry->d_name[0] != '.')
            assert_int_equal(unlinkat(dirfd(side), entry->d_name, 0), 0);
    (void)closedir(side);
    assert_int_equal(rmdir(path), 0);
}

static void without_its_side_directory_a_pool_goes_on(void **state)
{
    const temp *t = of(state);
    gate ran = GATE_INIT;
    warnings w = { 0 };
    pawl_pool *pool, *other;
    assert_ok(pawl_open(PAWL_OPTIONS(.store = t->path, .executors = 1, .log = listen, .log_arg = &w), &pool));
    assert_ok(pawl_register(pool, "note", note_run, &ran, NULL));
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "note");
    assert_true(gate_await(&ran, 1));
    remove_side_directory(t);
    other = open_pool(t, .executors = 1);
    times ts = { .count = 0 };
    while (ts.count < 10) {
        nap_ms(50);
        int64_t began = steady_ms();
        (void)put(other, .kind = "note");
        assert_true(gate_await(&ran, 2 + ts.count));
        ts.ms[ts.count++] = steady_ms() - began;
    }
    assert_ok(pawl_close(other));
    (void)put(pool, .kind = "note");
    assert_true(gate_await(&ran, 12));
    assert_ok(pawl_stop(pool, READY_MS));
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "note");
    assert_true(gate_await(&ran, 13));
    assert_ok(pawl_close(pool));
    assert_soon(&ts, "without the side directory");
    assert_int_equal(atomic_load(&w.polling) + atomic_load(&w.others), 0);
    assert_counters_are_right(t->path);
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    in_a_directory(without_file_events_the_pool_polls), /* first: their children have one thread */
    in_a_directory(a_poll_during_a_slow_flush_is_no_answer),
    in_a_directory(an_own_commit_is_no_news),
    in_a_directory(idle_beside_an_idle_pool),
    in_a_directory(a_pool_that_is_not_started_wakes_another),
    in_a_directory(an_applications_connection_wakes_a_pool),
    in_a_directory(a_long_transaction_by_sql_wakes_a_pool),
    in_a_directory(a_commit_behind_an_own_one_wakes_a_pool),
    in_a_directory(a_commit_to_a_slow_disk_wakes_a_pool),
    in_a_directory(a_requeue_wakes_a_pool),
    in_a_directory(a_resume_wakes_a_pool),
    in_a_directory(a_cancel_is_told_across_processes),
    in_a_directory(two_pools_of_one_process_wake_each_other),
    in_a_directory(without_its_side_directory_a_pool_goes_on),
};

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    slow_log_watch();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
