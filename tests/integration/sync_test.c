/* sync_test.c - pawl_sync(): what was committed so far, by anybody, is on the disk once it has answered.
 *
 * Goal: R12 it really flushes, also where commits do not, and where nothing else is to be written; it answers in every
 * state of the pool, and says what is in its way. The flushes are counted in front of SQLite (support/slow_log.h). */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "gate.h"
#include "look.h"
#include "patience.h"
#include "slow_log.h"

#define READY_MS 20000

static const temp *of(void **state)
{
    return *state;
}

static const pawl_synchronous modes[] = { PAWL_SYNCHRONOUS_FULL, PAWL_SYNCHRONOUS_NORMAL };

static sqlite3 *unflushed(const temp *t)
{
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "PRAGMA synchronous = NORMAL; CREATE TABLE IF NOT EXISTS app (x)");
    return db;
}

/* Goal: a commit that was not flushed is, in each kind of pool, at rest, several times, and behind a checkpoint. */
static void it_flushes_what_others_have_committed(void **state)
{
    const temp *t = of(state);
    for (int started = 0; started <= 1; started++)
        for (size_t mode = 0; mode < 2; mode++) {
            pawl_pool *pool = open_pool(t, .executors = 1, .synchronous = modes[mode]);
            if (started)
                assert_ok(pawl_start(pool));
            sqlite3 *db = unflushed(t);
            sql_run(db, "INSERT INTO app VALUES (0)"); /* the first one in a log is flushed */
            for (int i = 0; i < 5; i++) {
                nap_ms(i % 2 == 0 ? 0 : 60);
                int64_t before = slow_log_flushes();
                sql_run(db, "INSERT INTO app VALUES (randomblob(3000))");
                if (!started) /* a pool that runs may write something of its own */
                    assert_int_equal(slow_log_flushes(), before); /* or it would prove nothing */
                before = slow_log_flushes();
                assert_ok(pawl_sync(pool));
                assert_true(slow_log_flushes() > before);
            }
            sql_close(db);
            assert_ok(pawl_close(pool));
        }
}

/* Goal: the flush ends before the answer does: a slow one is waited for. */
static void it_waits_for_the_flush(void **state)
{
    const temp *t = of(state);
    for (size_t mode = 0; mode < 2; mode++) {
        pawl_pool *pool = open_pool(t, .executors = 1, .synchronous = modes[mode]);
        assert_ok(pawl_start(pool));
        slow_log_delay(200);
        int64_t began = steady_ms(), before = slow_log_flushes();
        assert_ok(pawl_sync(pool));
        slow_log_delay(0);
        assert_true(steady_ms() - began >= 200);
        assert_true(slow_log_flushes() > before);
        assert_ok(pawl_close(pool));
    }
}

/* Goal: after it commits are as before: a NORMAL pool does not flush them. */
static void it_changes_nothing_for_later_commits(void **state)
{
    const temp *t = of(state);
    pawl_pool *pool = open_pool(t, .executors = 1, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    (void)put(pool, .kind = "k");
    assert_ok(pawl_sync(pool));
    int64_t before = slow_log_flushes();
    for (int i = 0; i < 20; i++)
        (void)put(pool, .kind = "k");
    assert_int_equal(slow_log_flushes(), before);
    assert_ok(pawl_close(pool));
}

/* ------------------------------------------------------------------------------- from where */

typedef struct said {
    gate ended;
    pawl_status inside, applying;
    int64_t flushes;
} said;

static pawl_status sync_applying(void *db, pawl_job *job, void *arg)
{
    (void)db;
    ((said *)arg)->applying = pawl_sync(pawl_job_pool(job));
    return PAWL_OK;
}

static int sync_inside(pawl_job *job, void *arg)
{
    said *s = arg;
    int64_t before = slow_log_flushes();
    s->inside = pawl_sync(pawl_job_pool(job));
    s->flushes = slow_log_flushes() - before;
    int outcome = pawl_job_on_success(job, sync_applying, s, NULL) == PAWL_OK ? PAWL_SUCCEEDED : PAWL_FAILED;
    gate_add(&s->ended, 1);
    return outcome;
}

static void in_a_handler_and_in_its_effect(void **state)
{
    const temp *t = of(state);
    for (size_t mode = 0; mode < 2; mode++) {
        said s = { GATE_INIT, PAWL_ERR_CLOSED, PAWL_ERR_CLOSED, 0 };
        pawl_pool *pool = open_pool(t, .executors = 1, .synchronous = modes[mode]);
        assert_ok(pawl_register(pool, "sync", sync_inside, &s, NULL));
        assert_ok(pawl_start(pool));
        int64_t id = put(pool, .kind = "sync");
        assert_ok(pawl_wait_idle(pool, READY_MS));
        assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
        assert_status(s.inside, PAWL_OK);
        assert_true(s.flushes > 0);
        assert_int_equal(s.applying, PAWL_ERR_STATE);
        assert_ok(pawl_close(pool));
    }
}

static void when_the_pool_has_stopped_or_cannot_write(void **state)
{
    const temp *t = of(state);
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_start(pool));
    assert_ok(pawl_stop(pool, READY_MS));
    assert_ok(pawl_sync(pool));
    assert_ok(pawl_close(pool));
    pool = open_pool(t, .flags = PAWL_OPEN_READ_ONLY);
    assert_status(pawl_sync(pool), PAWL_ERR_STATE);
    assert_ok(pawl_close(pool));
    assert_status(pawl_sync(NULL), PAWL_ERR_INVALID);
    pool = open_inline(t, .executors = 1);
    assert_ok(pawl_sync(pool));
    assert_ok(pawl_start(pool));
    assert_ok(pawl_sync(pool));
    assert_ok(pawl_close(pool));
}

/* ------------------------------------------------------------------------------- in its way */

static void while_somebody_holds_the_lock(void **state)
{
    const temp *t = of(state);
    for (int started = 0; started <= 1; started++)
        for (size_t mode = 0; mode < 2; mode++) {
            pawl_pool *pool = open_pool(t, .executors = 1, .synchronous = modes[mode], .store_timeout_ms = 300);
            if (started)
                assert_ok(pawl_start(pool));
            sqlite3 *db = unflushed(t);
            sql_run(db, "BEGIN IMMEDIATE; INSERT INTO app VALUES (1)");
            int64_t began = steady_ms();
            assert_status(pawl_sync(pool), PAWL_ERR_BUSY);
            assert_in_range(steady_ms() - began, 290, 2000);
            sql_run(db, "COMMIT");
            assert_ok(pawl_sync(pool));
            sql_close(db);
            assert_ok(pawl_close(pool));
        }
}

/* Goal: under load of another process it is answered, each time, and soon. */
static void while_another_process_writes(void **state)
{
    const temp *t = of(state);
    child c;
    pawl_pool *pool = open_pool(t, .executors = 1, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    assert_ok(pawl_start(pool));
    child_start(&c, (const char *const[]){ "press", t->path, "1500", "1", "0", NULL });
    assert_true(child_says(&c, "ready", NULL, 0, READY_MS));
    child_tell(&c, "go\n");
    int64_t until = steady_ms() + 1300, worst = 0;
    int count = 0;
    for (; steady_ms() < until; count++) {
        int64_t began = steady_ms(), before = slow_log_flushes();
        assert_ok(pawl_sync(pool));
        assert_true(slow_log_flushes() > before);
        worst = steady_ms() - began > worst ? steady_ms() - began : worst;
    }
    print_message("%d calls, worst %d ms\n", count, (int)worst);
    assert_in_range(worst, 0, 1000);
    child_tell(&c, "stop\n");
    assert_int_equal(child_reap(&c), 0);
    child_close(&c);
    assert_ok(pawl_close(pool));
}

/* Goal: a follower in an operator's batch keeps its answer: syncs of several threads share one flush or have each
 * theirs, and each is told OK after one. */
static void *sync_often(void *arg)
{
    for (int i = 0; i < 50; i++)
        if (pawl_sync(arg) != PAWL_OK)
            return arg;
    return NULL;
}

static void from_several_threads(void **state)
{
    const temp *t = of(state);
    for (size_t mode = 0; mode < 2; mode++) {
        pawl_pool *pool = open_pool(t, .executors = 1, .synchronous = modes[mode]);
        pthread_t threads[4];
        assert_ok(pawl_start(pool));
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, sync_often, pool), 0);
        for (int i = 0; i < 100; i++)
            (void)put(pool, .kind = "k");
        for (int i = 0; i < 4; i++) {
            void *failed;
            assert_int_equal(pthread_join(threads[i], &failed), 0);
            assert_null(failed);
        }
        assert_ok(pawl_close(pool));
    }
    assert_counters_are_right(t->path);
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    in_a_directory(it_flushes_what_others_have_committed),
    in_a_directory(it_waits_for_the_flush),
    in_a_directory(it_changes_nothing_for_later_commits),
    in_a_directory(in_a_handler_and_in_its_effect),
    in_a_directory(when_the_pool_has_stopped_or_cannot_write),
    in_a_directory(while_somebody_holds_the_lock),
    in_a_directory(while_another_process_writes),
    in_a_directory(from_several_threads),
};

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    slow_log_watch();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
