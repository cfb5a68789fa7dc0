/* attach_test.c - an application's own connection that is attached to pools. The pools are not started, so that
 * nothing but the connection's hook asks them to look at the file. */
#include "check.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>

#include "pool.h"

static bool is_woken(pawl_pool *pool)
{
    return atomic_exchange(&pool->writer.look_wanted, false);
}

/* Goal: every commit of an attached connection wakes the pool, until it is detached; attached twice is attached
 * once. */
static void commits_wake_the_pool(void **state)
{
    temp *t = *state;
    pawl_pool *pool = open_pool(t, .executors = 1);
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "CREATE TABLE app (x)");
    (void)is_woken(pool);
    sql_run(db, "INSERT INTO app VALUES (0)");
    assert_false(is_woken(pool));
    for (int i = 0; i < 2; i++) {
        assert_ok(pawl_attach(pool, db));
        sql_run(db, "INSERT INTO app VALUES (1)");
        assert_true(is_woken(pool));
    }
    assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL));
    assert_true(is_woken(pool));
    assert_ok(pawl_detach_db(pool, db));
    sql_run(db, "INSERT INTO app VALUES (2)");
    assert_false(is_woken(pool));
    assert_status(pawl_detach_db(pool, db), PAWL_ERR_NOT_FOUND);
    assert_int_equal(sql_integer(db, "PRAGMA wal_autocheckpoint"), 0); /* it stays as safe as it was */
    sql_close(db);
    assert_ok(pawl_close(pool));
}

/* Goal: a connection wakes each pool that it is attached to, whichever is detached or closed first. */
static void two_pools_are_woken(void **state)
{
    temp *t = *state;
    for (int first = 0; first < 2; first++) {
        pawl_pool *pools[2] = { open_pool(t, .executors = 1), open_pool(t, .executors = 1) };
        sqlite3 *db = sql_open(t->path);
        sql_run(db, "CREATE TABLE IF NOT EXISTS app (x)");
        assert_ok(pawl_attach(pools[0], db));
        assert_ok(pawl_attach(pools[1], db));
        sql_run(db, "INSERT INTO app VALUES (1)");
        assert_true(is_woken(pools[0]));
        assert_true(is_woken(pools[1]));
        assert_ok(pawl_detach_db(pools[first], db));
        sql_run(db, "INSERT INTO app VALUES (2)");
        assert_false(is_woken(pools[first]));
        assert_true(is_woken(pools[1 - first]));
        assert_ok(pawl_attach(pools[first], db));
        assert_ok(pawl_close(pools[first]));
        sql_run(db, "INSERT INTO app VALUES (3)");
        assert_true(is_woken(pools[1 - first]));
        assert_ok(pawl_close(pools[1 - first]));
        sql_run(db, "INSERT INTO app VALUES (4)"); /* for nobody */
        sql_close(db);
    }
}

/* Goal: while a statement runs SQLite changes no function; the connection is detached, and attached again, all the
 * same. */
static void a_statement_that_runs_is_no_obstacle(void **state)
{
    temp *t = *state;
    pawl_pool *pool = open_pool(t, .executors = 1);
    sqlite3 *db = sql_open(t->path);
    sqlite3_stmt *row = NULL;
    sql_run(db, "CREATE TABLE app (x); INSERT INTO app VALUES (1), (2)");
    assert_ok(pawl_attach(pool, db));
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT x FROM app", -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    assert_ok(pawl_attach(pool, db));
    sql_run(db, "INSERT INTO app VALUES (3)");
    assert_true(is_woken(pool));
    assert_ok(pawl_detach_db(pool, db));
    sql_run(db, "INSERT INTO app VALUES (4)");
    assert_false(is_woken(pool));
    assert_ok(pawl_attach(pool, db));
    sql_run(db, "INSERT INTO app VALUES (5)");
    assert_true(is_woken(pool));
    assert_int_equal(sqlite3_finalize(row), SQLITE_OK);
    sql_close(db); /* without being detached */
    assert_ok(pawl_close(pool));
}

/* Goal: a connection to another file is refused, one that has ATTACHed the pool's is not. */
static void another_file_is_refused(void **state)
{
    temp *t = *state;
    pawl_pool *pool = open_pool(t, .executors = 1);
    sqlite3 *db = sql_open(temp_file(t, "own.db"));
    sql_run(db, "CREATE TABLE app (x)");
    assert_status(pawl_attach(pool, db), PAWL_ERR_INVALID);
    assert_text_has(pawl_error_message(), t->path);
    assert_text_has(pawl_error_message(), "ATTACH");
    assert_status(pawl_detach_db(pool, db), PAWL_ERR_NOT_FOUND);
    char *sql = sqlite3_mprintf("ATTACH %Q AS jobs", t->path);
    sql_run(db, sql);
    sqlite3_free(sql);
    assert_ok(pawl_attach(pool, db));
    assert_ok(pawl_enqueue_in(db, "jobs", PAWL_JOB(.kind = "k"), NULL));
    assert_true(is_woken(pool));
    assert_ok(pawl_detach_db(pool, db));
    sql_close(db);
    assert_ok(pawl_close(pool));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    TEST(commits_wake_the_pool),
    TEST(two_pools_are_woken),
    TEST(a_statement_that_runs_is_no_obstacle),
    TEST(another_file_is_refused),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
