/* wal_test.c - the write-ahead log: bounded, silent at rest, checkpointed only under the guard, and what
 * happens when there is no room for it.
 *
 * Goal: I22 (bounded at rest and at work, and said when a reader lingers), R6 (no checkpoint without the
 * guard), the idle pool writes nothing and hardly wakes up, R5 and W3 (on a full disk nothing is
 * acknowledged, and outcomes of handlers wait in memory until there is room again). */
#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate.h"
#include "look.h"
#include "patience.h"

#define MIB (INT64_C(1) << 20)
#define BIG_BYTES 100000

static char big[BIG_BYTES];

static const temp *of(void **state)
{
    return *state;
}

static int64_t size_of(const char *path, const char *suffix)
{
    char name[400];
    struct stat st;
    (void)snprintf(name, sizeof name, "%s%s", path, suffix);
    return stat(name, &st) == 0 ? (int64_t)st.st_size : 0;
}

static int64_t wal_bytes(const temp *t)
{
    return size_of(t->path, "-wal");
}

/* Kind "none" has no handler here: the rows stay. Returns the largest log on the way. */
static int64_t write_much(const temp *t, pawl_pool *pool, int64_t bytes)
{
    int64_t most = 0;
    for (int64_t written = 0; written < bytes; written += BIG_BYTES) {
        (void)put(pool, .kind = "none", .payload = big, .payload_bytes = BIG_BYTES);
        int64_t now = wal_bytes(t);
        most = now > most ? now : most;
    }
    return most;
}

static sqlite3 *linger(const temp *t)
{
    sqlite3 *reader = sql_open(t->path);
    sql_run(reader, "BEGIN");
    (void)sql_integer(reader, "SELECT count(*) FROM pawl_job");
    return reader;
}

/* ------------------------------------------------------------------------------- bounded */

static void bounded_under_sustained_load(void **state)
{
    const temp *t = of(state);
    pawl_pool *pool = open_pool(t, .wal_bytes_max = MIB, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    assert_ok(pawl_start(pool));
    int64_t most = write_much(t, pool, 24 * MIB);
    assert_in_range(most, 1, 2 * MIB); /* the limit, and what one commit adds */
    assert_ok(pawl_close(pool));
}

/* The bound is in bytes, whatever the size of a page is. */
static void bounded_with_the_largest_pages(void **state)
{
    const temp *t = of(state);
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "PRAGMA page_size = 65536");
    sql_run(db, "PRAGMA journal_mode = WAL");
    sql_run(db, "CREATE TABLE app (x)");
    sql_close(db);
    pawl_pool *pool = open_pool(t, .wal_bytes_max = 4 * MIB, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    assert_ok(pawl_start(pool));
    assert_int_equal(look(t->path, "PRAGMA page_size"), 65536);
    assert_in_range(write_much(t, pool, 24 * MIB), 1, 6 * MIB);
    pawl_stats_info stats = stats_of(pool);
    assert_in_range(stats.wal_bytes, 1, 6 * MIB);
    pawl_stats_info_clear(&stats);
    assert_ok(pawl_close(pool));
}

typedef struct alarm_log {
    _Atomic int lines, about_the_log;
} alarm_log;

static void listen(pawl_log_level level, const char *line, void *arg)
{
    alarm_log *log = arg;
    if (level > PAWL_LOG_WARNING)
        return;
    (void)atomic_fetch_add(&log->lines, 1);
    if (strstr(line, "reader") != NULL || strstr(line, "write-ahead log") != NULL
        || strstr(line, "WAL") != NULL)
        (void)atomic_fetch_add(&log->about_the_log, 1);
}

static bool log_is_small(void *arg)
{
    return wal_bytes(arg) <= 2 * MIB;
}

/* Goal: an attached connection leaves its checkpoints to the pool: it makes them, busy or idle (I22). */
static void an_idle_pool_keeps_the_log_of_an_attached_connection_small(void **state)
{
    const temp *t = of(state);
    pawl_pool *pool = open_pool(t, .wal_bytes_max = MIB, .executors = 1);
    assert_ok(pawl_start(pool));
    sqlite3 *db = sql_open(t->path);
    assert_ok(pawl_attach(pool, db));
    sql_run(db, "CREATE TABLE app (x)");
    for (int round = 0; round < 3; round++) {
        sql_run(db, "WITH n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 600)"
                    " INSERT INTO app SELECT randomblob(8000) FROM n");
        assert_true(wal_bytes(t) > 4 * MIB);
        assert_true(eventually(log_is_small, *state, 5000));
    }
    assert_ok(pawl_detach_db(pool, db));
    sql_close(db);
    assert_ok(pawl_close(pool));
}

static void small_again_when_the_reader_has_left(void **state)
{
    const temp *t = of(state);
    pawl_pool *pool = open_pool(t, .wal_bytes_max = MIB, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    assert_ok(pawl_start(pool));
    sqlite3 *reader = linger(t);
    (void)write_much(t, pool, 16 * MIB);
    sql_close(reader);
    assert_true(eventually(log_is_small, (void *)(uintptr_t)t, 5000)); /* at rest: nobody enqueues */
    assert_ok(pawl_close(pool));
}

static void a_reader_that_lingers_is_told_of(void **state)
{
    const temp *t = of(state);
    alarm_log log = { 0 };
    pawl_pool *pool;
    assert_ok(pawl_open(PAWL_OPTIONS(.store = t->path, .wal_bytes_max = MIB, .log = listen,
                                     .log_arg = &log, .synchronous = PAWL_SYNCHRONOUS_NORMAL), &pool));
    assert_ok(pawl_start(pool));
    sqlite3 *reader = linger(t);
    (void)write_much(t, pool, 8 * MIB);
    nap_ms(1100); /* it lingers for a second at least */
    (void)write_much(t, pool, 8 * MIB);
    int told = atomic_load(&log.about_the_log);
    sql_close(reader);
    assert_ok(pawl_close(pool));
    assert_in_range(told, 1, 5); /* said, and not at every commit */
}

/* --------------------------------------------------------------------------------- idle */

/* Bytes that this process had written to disks; -1: the kernel does not say. */
static int64_t bytes_written(void)
{
    FILE *file = fopen("/proc/self/io", "re");
    char line[128];
    int64_t bytes = -1;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        (void)sscanf(line, "write_bytes: %" SCNd64, &bytes);
    if (file != NULL)
        (void)fclose(file);
    return bytes;
}

static int64_t switches_of(const char *task)
{
    char path[128], line[128];
    int64_t switches = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
    FILE *file = fopen(path, "re");
    bool ours = false;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        ours = ours || strncmp(line, "Name:\tpawl-", 11) == 0;
        (void)sscanf(line, "voluntary_ctxt_switches: %" SCNd64, &switches);
    }
    if (file != NULL)
        (void)fclose(file);
    return ours ? switches : 0;
}

/* Of the pool's threads together. */
static int64_t wake_ups(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int64_t total = 0;
    assert_non_null(tasks);
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;)
        if (entry->d_name[0] != '.')
            total += switches_of(entry->d_name);
    (void)closedir(tasks);
    return total;
}

static void describe_file(const char *path, const char *suffix, struct stat *out)
{
    char name[400];
    (void)snprintf(name, sizeof name, "%s%s", path, suffix);
    memset(out, 0, sizeof *out);
    (void)stat(name, out);
}

static bool same_file_content(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec
           && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int quick(pawl_job *job, void *arg)
{
    (void)job;
    (void)arg;
    return PAWL_SUCCEEDED;
}

static void an_idle_pool_writes_nothing_and_sleeps(void **state)
{
    const temp *t = of(state);
    struct stat db[2], wal[2];
    pawl_pool *pool = open_pool(t, .executors = 4);
    assert_ok(pawl_register(pool, "quick", quick, NULL, NULL));
    assert_ok(pawl_start(pool));
    for (int i = 0; i < 100; i++)
        (void)put(pool, .kind = "quick");
    (void)put(pool, .kind = "quick", .delay_ms = 3600000); /* a later job is no reason to wake up */
    (void)put(pool, .kind = "none");                       /* nor is one that nobody here serves */
    assert_ok(pawl_wait_idle(pool, 20000));
    nap_ms(1200); /* its last look at its own writes */
    int64_t bytes = bytes_written(), switches = wake_ups(), began = steady_ms();
    describe_file(t->path, "", &db[0]);
    describe_file(t->path, "-wal", &wal[0]);
    nap_ms(3000);
    int64_t took = steady_ms() - began;
    assert_int_equal(bytes_written(), bytes);
    switches = wake_ups() - switches;
    describe_file(t->path, "", &db[1]);
    describe_file(t->path, "-wal", &wal[1]);
    assert_true(same_file_content(&db[0], &db[1]) && same_file_content(&wal[0], &wal[1]));
    print_message("%" PRId64 " wake-ups in %" PRId64 " ms\n", switches, took);
    assert_true(switches * 1000 < 3 * took);
    assert_ok(pawl_close(pool));
}

/* ---------------------------------------------------------------------------- the guard */

static pawl_status note_autocheckpoint(void *db, void *arg)
{
    *(int64_t *)arg = sql_integer(db, "PRAGMA wal_autocheckpoint");
    return PAWL_OK;
}

static void automatic_checkpoints_are_off(void **state)
{
    const temp *t = of(state);
    int64_t frames = -1;
    pawl_pool *pool = open_pool(t, .db_open = note_autocheckpoint, .db_open_arg = &frames);
    assert_int_equal(frames, 0);
    assert_ok(pawl_close(pool));
}

/* R6: while another connection could commit, there is no checkpoint, however large the log. */
static void no_checkpoint_while_another_writes(void **state)
{
    const temp *t = of(state);
    char wal[400];
    struct stat db[2];
    pawl_pool *pool = open_pool(t, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    assert_ok(pawl_start(pool));
    sqlite3 *reader = linger(t);
    (void)write_much(t, pool, 6 * MIB); /* more than the pool leaves in the log when idle */
    sqlite3 *writer = sql_open(t->path);
    sql_run(writer, "BEGIN IMMEDIATE");
    sql_close(reader);
    describe_file(t->path, "", &db[0]);
    (void)snprintf(wal, sizeof wal, "%s-wal", t->path);
    for (int i = 0; i < 3; i++) { /* each time the pool wakes up and has a look */
        assert_int_equal(utimensat(AT_FDCWD, wal, NULL, 0), 0);
        nap_ms(600);
    }
    describe_file(t->path, "", &db[1]);
    assert_true(same_file_content(&db[0], &db[1]));
    sql_run(writer, "ROLLBACK");
    sql_close(writer);
    assert_ok(pawl_close(pool));
}

/* ------------------------------------------------------------------------- a full disk */

/* A small file system of the test's own, in a mount namespace of its own: it ends with the process. */
static bool mount_small(const char *directory)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0
        || mount("none", directory, "tmpfs", 0, "size=4m") != 0) {
        print_message("a small file system cannot be mounted here: %s\n", strerror(errno));
        return false;
    }
    return true;
}

static const char *ballast(const temp *t)
{
    return temp_file(t, "small/ballast");
}

static void fill_the_disk(const temp *t)
{
    int file = open(ballast(t), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    size_t bytes = sizeof big;
    while (bytes > 0)
        if (write(file, big, bytes) <= 0)
            bytes /= 2;
    (void)close(file);
}

typedef struct held {
    gate started, go;
} held;

static int hold(pawl_job *job, void *arg)
{
    held *h = arg;
    (void)job;
    gate_add(&h->started, 1);
    (void)gate_await(&h->go, 1);
    return PAWL_SUCCEEDED;
}

static bool all_have_succeeded(void *arg)
{
    pawl_stats_info stats = stats_of(arg);
    bool so = true;
    for (size_t i = 0; i < stats.lane_count; i++)
        so = so && stats.lanes[i].running == 0 && stats.lanes[i].pending_due == 0;
    pawl_stats_info_clear(&stats);
    return so;
}

static void a_full_disk_loses_nothing(void **state)
{
    const temp *t = of(state);
    held h = { GATE_INIT, GATE_INIT };
    char directory[400], path[400];
    (void)snprintf(directory, sizeof directory, "%s", temp_file(t, "small"));
    (void)snprintf(path, sizeof path, "%s", temp_file(t, "small/jobs.db"));
    assert_int_equal(mkdir(directory, 0700), 0);
    if (!mount_small(directory))
        skip();
    int ignored = 0;
    pawl_pool *pool = check_open(PAWL_OPTIONS(.store = path, .executors = 4, .log = check_quiet,
                                              .log_arg = &ignored, .store_timeout_ms = 2000));
    assert_ok(pawl_register(pool, "hold", hold, &h, NULL));
    assert_ok(pawl_start(pool));
    for (int i = 0; i < 4; i++)
        (void)put(pool, .kind = "hold", .max_attempts = 1);
    assert_true(gate_await(&h.started, 4));
    fill_the_disk(t);
    int full = 0;
    for (int i = 0; i < 5; i++) {
        pawl_status st = pawl_enqueue(pool, PAWL_JOB(.kind = "hold", .payload = big,
                                                     .payload_bytes = sizeof big), NULL);
        /* Where the failed commit cannot be cleared away at once, its answer is that nobody knows. */
        assert_true(st == PAWL_ERR_FULL || (st == PAWL_ERR_UNKNOWN && i == 0));
        full += st == PAWL_ERR_FULL;
    }
    assert_true(full >= 4);
    gate_add(&h.go, 1); /* four outcomes, and no room for them */
    nap_ms(300);
    assert_int_equal(pawl_enqueue(pool, PAWL_JOB(.kind = "hold", .payload = big,
                                                 .payload_bytes = sizeof big), NULL), PAWL_ERR_FULL);
    assert_int_equal(unlink(ballast(t)), 0);
    assert_true(eventually(all_have_succeeded, pool, 10000)); /* without a restart */
    (void)put(pool, .kind = "hold");
    assert_ok(pawl_wait_idle(pool, 20000));
    assert_ok(pawl_close(pool));
    assert_int_equal(sql_ask(path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"), 5);
    assert_int_equal(sql_ask(path, "SELECT count(*) FROM pawl_jobs"), 5); /* what was FULL is not there */
    assert_int_equal(sql_ask(path, "SELECT count(*) FROM pawl_attempts"), 0);
    assert_counters_are_right(path);
    (void)umount2(directory, MNT_DETACH);
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    /* First: it counts the switches of every pool's threads. */
    in_a_directory(an_idle_pool_writes_nothing_and_sleeps),
    in_a_directory(bounded_under_sustained_load),
    in_a_directory(bounded_with_the_largest_pages),
    in_a_directory(an_idle_pool_keeps_the_log_of_an_attached_connection_small),
    in_a_directory(small_again_when_the_reader_has_left),
    in_a_directory(a_reader_that_lingers_is_told_of),
    in_a_directory(automatic_checkpoints_are_off),
    in_a_directory(no_checkpoint_while_another_writes),
    in_a_directory(a_full_disk_loses_nothing),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
