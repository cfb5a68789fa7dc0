/* first_open_test.c - sixteen processes that open one file in the same moment.
 *
 * Goal: all of them succeed, they agree on one schema, each one's job is stored, and when all have left
 * there is one complete file and nothing beside it (R9): where there was no file, where there was an empty
 * one, and where there was an application's own database, which keeps what it has. */
#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "look.h"

#define PROCESSES 16
#define LIMIT_MS 60000

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS 6
#else
#define ROUNDS 20
#endif

/* All are started, and wait; then all go. */
static void open_together(const temp *t, const char *path, child *openers)
{
    char barrier[512], line[256];
    (void)snprintf(barrier, sizeof barrier, "%s", temp_file(t, "barrier"));
    assert_int_equal(mkfifo(barrier, 0600), 0);
    int end = open(barrier, O_RDWR | O_CLOEXEC);
    assert_true(end >= 0);
    for (int i = 0; i < PROCESSES; i++)
        child_join(&openers[i], (const char *const[]){ "open", path, barrier, NULL });
    for (int i = 0; i < PROCESSES; i++)
        assert_true(child_says(&openers[i], "ready", NULL, 0, LIMIT_MS));
    assert_int_equal(close(end), 0);
    for (int i = 0; i < PROCESSES; i++) {
        assert_true(child_says(&openers[i], "opened", line, sizeof line, LIMIT_MS));
        if (strncmp(line, "opened PAWL_OK", 14) != 0)
            fail_msg("process %d: %s", i, line);
        assert_true(child_says(&openers[i], "enqueued", NULL, 0, LIMIT_MS));
    }
    assert_int_equal(unlink(barrier), 0);
}

static void leave_together(child *openers)
{
    for (int i = 0; i < PROCESSES; i++)
        child_tell(&openers[i], "stop\n");
    for (int i = 0; i < PROCESSES; i++) {
        int status = child_reap(&openers[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        child_close(&openers[i]);
    }
}

/* V3: also what SQLite made beside it, whoever made it. */
static void assert_private(const char *path)
{
    static const char *const suffixes[] = { "", "-wal", "-shm" };
    char name[600];
    struct stat st;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        assert_int_equal(stat(name, &st), 0);
        if ((st.st_mode & 0777) != 0600)
            fail_msg("%s has the mode %o", name, (unsigned)(st.st_mode & 0777));
    }
}

static void assert_alone(const temp *t, const char *name)
{
    char *listing = temp_listing(t);
    if (strncmp(listing, name, strlen(name)) != 0 || strchr(listing, '\n') != listing + strlen(listing) - 1)
        fail_msg("not one file, %s, was left:\n%s", name, listing);
    free(listing);
}

/* Of two that close in the same moment each may take the other for one that stays, and leave the log. */
static void close_alone(const char *path)
{
    pawl_pool *pool;
    assert_ok(pawl_open(PAWL_OPTIONS(.store = path), &pool));
    assert_ok(pawl_close(pool));
}

static void open_once(const temp *t, const char *name, bool is_new)
{
    child openers[PROCESSES];
    char path[512];
    (void)snprintf(path, sizeof path, "%s", temp_file(t, name));
    open_together(t, path, openers);
    if (is_new)
        assert_private(path);
    leave_together(openers);
    close_alone(path);
    assert_alone(t, name);
    assert_int_equal(look(path, "SELECT count(*) FROM pawl_jobs WHERE status = 'pending'"), PROCESSES);
    assert_int_equal(look(path, "SELECT count(DISTINCT id) FROM pawl_jobs"), PROCESSES);
    assert_int_equal(look(path, "SELECT count(*) FROM pawl_kind"), 1);
    assert_int_equal(look(path, "SELECT count(*) FROM pawl_holder WHERE left_at IS NULL"), 0);
    assert_int_equal(look(path, "SELECT count(*) FROM pragma_integrity_check"
                                " WHERE integrity_check <> 'ok'"), 0);
    assert_counters_are_right(path);
}

/* The same objects, whoever made them. */
static int64_t objects_alone(const temp *t)
{
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_close(pool));
    int64_t objects = look(t->path, "SELECT count(*) FROM sqlite_schema");
    assert_int_equal(unlink(t->path), 0);
    return objects;
}

static void where_there_is_no_file(void **state)
{
    const temp *t = *state;
    int64_t objects = objects_alone(t);
    for (int i = 0; i < ROUNDS; i++) {
        open_once(t, "jobs.db", true);
        assert_int_equal(look(t->path, "SELECT count(*) FROM sqlite_schema"), objects);
        assert_int_equal(unlink(t->path), 0);
    }
}

static void where_there_is_an_empty_file(void **state)
{
    const temp *t = *state;
    for (int i = 0; i < 3; i++) {
        temp_write(t->path, "", 0);
        open_once(t, "jobs.db", false);
        assert_int_equal(unlink(t->path), 0);
    }
}

static void where_there_is_an_application(void **state)
{
    const temp *t = *state;
    for (int i = 0; i < 3; i++) {
        struct sqlite3 *db = sql_open(t->path);
        sql_run(db, "CREATE TABLE orders (id INTEGER PRIMARY KEY, what TEXT);"
                    " INSERT INTO orders (what) VALUES ('a'), ('b'); PRAGMA user_version = 7");
        sql_close(db);
        open_once(t, "jobs.db", false);
        assert_int_equal(look(t->path, "SELECT count(*) FROM orders"), 2);
        assert_int_equal(look(t->path, "PRAGMA user_version"), 7);
        assert_int_equal(unlink(t->path), 0);
    }
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    in_a_directory(where_there_is_no_file),
    in_a_directory(where_there_is_an_empty_file),
    in_a_directory(where_there_is_an_application),
};

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
