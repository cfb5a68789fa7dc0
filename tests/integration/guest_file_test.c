/* guest_file_test.c - a host that opens and closes the database file behind SQLite's back, and a file that is
 * taken away from under a pool (R8, R9): what was acknowledged is there, and what cannot be kept is refused and
 * said once.
 *
 * A POSIX lock of a process falls when the process closes any descriptor of the file. After that another
 * process's SQLite may take itself for the last user of the file, move the log into it and delete the log. (And
 * if the lock of the -shm file fell: cut that file, under the mapping of whoever is just writing. A host that
 * does this while a transaction is open may get SIGBUS from SQLite; no library above it can help.) */
#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate.h"
#include "look.h"
#include "patience.h"

#define LONG_MS 20000 /* the test has failed */

/* -------------------------------------------------------------------------- another process */

/* Forked before this process has a connection. It visits the file when it is told to. */
typedef struct neighbour {
    pid_t pid;
    int to, from;
} neighbour;

static bool visit(const char *path, bool writes)
{
    sqlite3 *db;
    bool ok = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK;
    (void)sqlite3_busy_timeout(db, 5000);
    ok = ok && sqlite3_exec(db, "PRAGMA wal_autocheckpoint = 0; SELECT count(*) FROM pawl_job", NULL, NULL, NULL)
                   == SQLITE_OK;
    if (writes)
        ok = ok && sqlite3_exec(db, "CREATE TABLE IF NOT EXISTS visits (at); INSERT INTO visits VALUES (1)", NULL,
                                NULL, NULL) == SQLITE_OK;
    return sqlite3_close(db) == SQLITE_OK && ok;
}

static void be_the_neighbour(int in, int out, const char *path)
{
    char what;
    (void)alarm(60);
    while (read(in, &what, 1) == 1) {
        char answer = visit(path, what == 'w') ? 'y' : 'n';
        if (write(out, &answer, 1) != 1)
            break;
    }
    _exit(0);
}

static neighbour neighbour_start(const char *path)
{
    int to[2], from[2];
    neighbour n = { 0 };
    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    n.pid = fork();
    assert_true(n.pid >= 0);
    if (n.pid == 0) {
        (void)close(to[1]);
        be_the_neighbour(to[0], from[1], path);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    n.to = to[1];
    n.from = from[0];
    return n;
}

static void neighbour_visits(const neighbour *n, bool writes)
{
    char answer = 0;
    assert_int_equal(write(n->to, writes ? "w" : "r", 1), 1);
    assert_int_equal(read(n->from, &answer, 1), 1);
    assert_int_equal(answer, 'y');
}

static void neighbour_end(neighbour *n)
{
    (void)close(n->to);
    (void)close(n->from);
    assert_int_equal(waitpid(n->pid, NULL, 0), n->pid);
}

/* ------------------------------------------------------------------------- stray closes */

static const char *file_of(const temp *t, const char *suffix)
{
    static char paths[4][400];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s%s", t->path, suffix);
    return path;
}

/* What a backup tool inside the host, or one that counts its bytes, does. */
static void open_and_close(const temp *t, const char *suffix)
{
    int file = open(file_of(t, suffix), O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(close(file), 0);
}

enum { BEFORE = 50, AFTER = 1 };

/* Tells how many were acknowledged; another answer than OK is that the log was taken away. */
static int enqueue_some(pawl_pool *pool, int count)
{
    int stored = 0;
    for (int i = 0; i < count; i++) {
        pawl_status st = pawl_enqueue(pool, PAWL_JOB(.kind = "nobody"), NULL);
        if (st == PAWL_OK)
            stored++;
        else
            assert_status(st, PAWL_ERR_STORE), assert_text_has(pawl_error_message(), "deleted or replaced");
    }
    return stored;
}

static void assert_all_there(const temp *t, int64_t stored)
{
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_job"), stored);
    assert_int_equal(look(t->path, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    assert_counters_are_right(t->path);
}

/* Goal: whichever files the host opens and closes, and whether the process that comes then reads or writes:
 * all that was acknowledged, before and after, is stored, once. The pool goes on, or it says that its log was
 * deleted and acknowledges nothing more; a new pool works on (I1, I2, R8). */
static void stray_closes_lose_nothing_acknowledged(void **state)
{
    temp *t = *state;
    static const char *const files[][3] = { { "" }, { "-wal" }, { "", "-wal" },
                                            { "-shm" }, { "", "-shm" }, { "", "-wal", "-shm" } };
    enum { WITH_INDEX = 3 }; /* from here on no thread of the pool may look while the neighbour comes: SIGBUS */
    int64_t stored = 0;
    int went_on = 0, refused = 0;
    neighbour n = neighbour_start(t->path);
    for (unsigned i = 0; i < 2 * sizeof files / sizeof files[0]; i++) {
        bool writes = i % 2 == 0, started = i / 2 < WITH_INDEX && i % 4 < 2;
        pawl_pool *pool = open_pool(t, .executors = 1, .store_timeout_ms = 2000);
        if (started)
            assert_ok(pawl_start(pool));
        int got = enqueue_some(pool, BEFORE);
        assert_int_equal(got, BEFORE);
        for (int k = 0; k < 3 && files[i / 2][k] != NULL; k++)
            open_and_close(t, files[i / 2][k]);
        neighbour_visits(&n, writes);
        int more = enqueue_some(pool, AFTER);
        neighbour_visits(&n, writes);
        more += enqueue_some(pool, AFTER);
        *(more == 2 * AFTER ? &went_on : &refused) += 1;
        stored += got + more;
        assert_ok(pawl_close(pool));
        assert_all_there(t, stored);
    }
    neighbour_end(&n);
    print_message("went on: %d; refused: %d\n", went_on, refused);
    assert_true(went_on > 0);
}

/* ---------------------------------------------------------------------------- taken away */

typedef struct lines {
    _Atomic int bad; /* warnings and errors */
    _Atomic int told; /* of them: that a file was deleted or replaced */
} lines;

static void listen(pawl_log_level level, const char *line, void *arg)
{
    lines *l = arg;
    if (level > PAWL_LOG_WARNING)
        return;
    (void)atomic_fetch_add(&l->bad, 1);
    if (strstr(line, "deleted or replaced") != NULL)
        (void)atomic_fetch_add(&l->told, 1);
}

static bool has_told(void *arg)
{
    return atomic_load(&((lines *)arg)->told) > 0;
}

static int64_t cpu_ms(void)
{
    struct rusage r;
    (void)getrusage(RUSAGE_SELF, &r);
    return (int64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000
           + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1000;
}

typedef struct inside {
    gate began, go;
} inside;

static int hold(pawl_job *job, void *arg)
{
    inside *in = arg;
    (void)job;
    gate_add(&in->began, 1);
    return gate_await(&in->go, 1) ? PAWL_SUCCEEDED : PAWL_FAILED;
}

/* What is done to a database at DIRECTORY/jobs.db. */
typedef void (*take_away_fn)(const char *directory);

static const char *within(const char *directory, const char *name)
{
    static char paths[2][600];
    static unsigned next;
    char *path = paths[next++ % 2];
    (void)snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static void delete_the_file(const char *directory)
{
    assert_int_equal(unlink(within(directory, "jobs.db")), 0);
}

static void replace_the_file(const char *directory)
{
    assert_int_equal(sql_ask(within(directory, "other.db"), "SELECT 1"), 1);
    assert_int_equal(rename(within(directory, "other.db"), within(directory, "jobs.db")), 0);
}

static void delete_the_log(const char *directory)
{
    assert_int_equal(unlink(within(directory, "jobs.db-wal")), 0);
}

static void delete_the_index(const char *directory)
{
    assert_int_equal(unlink(within(directory, "jobs.db-shm")), 0);
}

static void rename_the_directory(const char *directory)
{
    char away[600];
    (void)snprintf(away, sizeof away, "%s-away", directory);
    assert_int_equal(rename(directory, away), 0);
}

/* Each call says what is wrong, also one that does not wait long enough for the next try. */
static void assert_tells_the_trouble(pawl_pool *pool)
{
    for (int i = 0; i < 3; i++) {
        assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_STORE);
        if (strstr(pawl_error_message(), "deleted or replaced") == NULL)
            assert_text_has(pawl_error_message(), "the store cannot be written at present");
    }
}

/* A running pool with a handler inside, whose file is then taken away. */
static void lose_the_file(take_away_fn take_away, const char *directory)
{
    lines told = { 0, 0 };
    inside in = { GATE_INIT, GATE_INIT };
    pawl_pool *pool = check_open(PAWL_OPTIONS(.store = within(directory, "jobs.db"), .executors = 1,
                                              .store_timeout_ms = 200, .log = listen, .log_arg = &told));
    assert_ok(pawl_register(pool, "k", hold, &in, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "k");
    assert_true(gate_await(&in.began, 1));
    take_away(directory);
    assert_true(eventually(has_told, &told, LONG_MS)); /* nobody has asked it for anything */
    assert_tells_the_trouble(pool);
    assert_true(pawl_cancel(pool, id) == PAWL_ERR_STORE);
    gate_add(&in.go, 1); /* its outcome cannot be written */
    int64_t before = cpu_ms();
    nap_ms(1000);
    assert_in_range(cpu_ms() - before, 0, 300);
    assert_tells_the_trouble(pool); /* the tries are rare by now */
    pawl_status st = pawl_stop(pool, 0);
    if (st != PAWL_OK)
        assert_status(st, PAWL_ERR_TIMEOUT);
    assert_int_equal(atomic_load(&told.told), 1);
    assert_true(atomic_load(&told.bad) <= 3);
}

/* Goal: a running pool notices by itself that its file, or a companion of it, was deleted, replaced or moved
 * away with its directory. It says so once, acknowledges nothing, does not spin, and a stop answers (R8). */
static void a_running_pool_notices_that_its_file_is_gone(void **state)
{
    temp *t = *state;
    static const take_away_fn ways[] = { delete_the_file, replace_the_file, delete_the_log, delete_the_index,
                                         rename_the_directory };
    enum { WAYS = sizeof ways / sizeof ways[0] };
    pid_t children[WAYS];
    (void)fflush(NULL);
    for (int i = 0; i < WAYS; i++) { /* in children: such a pool cannot be closed while its outcome waits */
        char directory[400];
        (void)snprintf(directory, sizeof directory, "%s/%d", t->directory, i);
        assert_int_equal(mkdir(directory, 0700), 0);
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            (void)alarm(50);
            (void)setenv("CMOCKA_TEST_ABORT", "1", 1); /* an assertion that fails ends the child, there */
            lose_the_file(ways[i], directory);
            _exit(0);
        }
    }
    int failed = 0;
    for (int i = 0; i < WAYS; i++) {
        int status = -1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        if (status != 0)
            print_error("way %d: status %d\n", i, status);
        failed += status != 0;
    }
    assert_int_equal(failed, 0);
}

typedef struct mover {
    char there[400], away[420];
    int moves;
    pthread_t back;
    gate ran;
} mover;

static void *move_back(void *arg)
{
    const mover *m = arg;
    nap_ms(300);
    return rename(m->away, m->there) == 0 ? NULL : arg;
}

/* Inside the transaction that also claims the next job. */
static pawl_status move_away(void *db, pawl_job *job, void *arg)
{
    mover *m = arg;
    (void)db;
    (void)job;
    if (m->moves++ > 0)
        return PAWL_OK;
    return rename(m->there, m->away) == 0 && pthread_create(&m->back, NULL, move_back, m) == 0 ? PAWL_OK
                                                                                                : PAWL_ERR_STORE;
}

static int end_with_a_move(pawl_job *job, void *arg)
{
    return pawl_job_on_success(job, move_away, arg, NULL) == PAWL_OK ? PAWL_SUCCEEDED : PAWL_FAILED;
}

static int note_run(pawl_job *job, void *arg)
{
    gate_add(&((mover *)arg)->ran, (int)pawl_job_attempt(job));
    return PAWL_SUCCEEDED;
}

/* Goal: what was claimed in a commit whose outcome was not known, because the file's name was away for a moment, runs
 * when the name is back: the pool takes back what it holds and does not know, uncharged (I11, R8). */
static void a_claim_of_an_unknown_commit_is_taken_back(void **state)
{
    const temp *t = *state;
    static mover m;
    m.ran = (gate)GATE_INIT;
    (void)snprintf(m.there, sizeof m.there, "%s/d", t->directory);
    (void)snprintf(m.away, sizeof m.away, "%s.away", m.there);
    assert_int_equal(mkdir(m.there, 0700), 0);
    lines told = { 0, 0 };
    pawl_pool *pool = check_open(PAWL_OPTIONS(.store = within(m.there, "jobs.db"), .executors = 1, .log = listen,
                                              .log_arg = &told));
    assert_ok(pawl_register(pool, "moves", end_with_a_move, &m, NULL));
    assert_ok(pawl_register(pool, "next", note_run, &m, NULL));
    (void)put(pool, .kind = "moves");
    (void)put(pool, .kind = "next");
    assert_ok(pawl_start(pool));
    assert_true(gate_await(&m.ran, 1));
    assert_int_equal(gate_count(&m.ran), 1); /* its first attempt */
    void *failed;
    assert_int_equal(pthread_join(m.back, &failed), 0);
    assert_null(failed);
    assert_int_equal(atomic_load(&told.told), 1); /* the name was away at the right moment */
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    assert_ok(pawl_close(pool));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    TEST(stray_closes_lose_nothing_acknowledged),
    TEST(a_running_pool_notices_that_its_file_is_gone),
    TEST(a_claim_of_an_unknown_commit_is_taken_back),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
