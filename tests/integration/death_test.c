/* death_test.c - the death of a process that holds claims: kill -9 in the middle of handlers.
 *
 * Goal: its jobs come back as soon as the kernel proves the death, not after the lease (I11); only what
 * had started is charged (I9); and nobody who lives is ever robbed (I12). The workers are processes of
 * their own (support/worker.c), killed by their own pid; leases are long, so that no lease can be what
 * brought a job back. */
#include "check.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "look.h"
#include "patience.h"

#define LEASE_MS "60000"
#define AT_ONCE_MS 2000
#define READY_MS 20000 /* for a slow machine under a sanitizer */

static const temp *of(void **state)
{
    return *state;
}

static void start_worker(child *c, const temp *t, const char *lease_ms, const char *executors)
{
    child_start(c, (const char *const[]){ "work", t->path, lease_ms, executors, NULL });
    assert_true(child_says(c, "ready", NULL, 0, READY_MS));
}

/* The workers serve every kind that is put here; the pool of the test serves none. */
static void put_jobs(const temp *t, const char *kind, int count, uint32_t max_attempts)
{
    pawl_pool *pool = open_pool(t, .executors = 1);
    for (int i = 0; i < count; i++)
        (void)put(pool, .kind = kind, .max_attempts = max_attempts);
    assert_ok(pawl_close(pool));
}

static int64_t running(const temp *t)
{
    return look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'running'");
}

static bool none_runs(void *arg)
{
    return running(arg) == 0;
}

/* Starts a pool without handlers: it can rescue, and start nothing. How long until nothing runs? */
static int64_t rescue_takes(const temp *t, pawl_pool **out)
{
    *out = open_pool(t, .executors = 1);
    int64_t began = steady_ms();
    assert_ok(pawl_start(*out));
    (void)eventually(none_runs, (void *)(uintptr_t)t, 2 * AT_ONCE_MS);
    return steady_ms() - began;
}

static void assert_rescued_at_once(const temp *t)
{
    pawl_pool *pool;
    int64_t took = rescue_takes(t, &pool);
    assert_int_equal(running(t), 0);
    assert_in_range(took, 0, AT_ONCE_MS);
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
}

/* ------------------------------------------------------------------- charged and uncharged */

/* A job that was running is charged, says why, and is due at once the first time. */
static void started_jobs_are_charged(void **state)
{
    const temp *t = of(state);
    char text[64], line[128];
    child worker;
    put_jobs(t, "hang", 2, 5);
    start_worker(&worker, t, LEASE_MS, "2");
    assert_true(child_says(&worker, "start hang", line, sizeof line, READY_MS));
    assert_true(child_says(&worker, "start hang", line, sizeof line, READY_MS));
    child_kill(&worker);
    assert_rescued_at_once(t);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'pending'"
                                   " AND attempts = 1 AND last_error = 'its process died'"), 2);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_job WHERE status = 2"
                                   " AND available_at <= updated_at"), 2);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_attempts WHERE charged = 1"), 2);
    look_text(t->path, text, sizeof text, "SELECT DISTINCT outcome FROM pawl_attempts");
    assert_string_equal(text, "rescued");
    child_close(&worker);
}

/* Jobs start in the order of their fences. */
#define FENCE_OF_HANG "(SELECT fence FROM pawl_job WHERE lane IN (SELECT l.id FROM pawl_lane l" \
                      " JOIN pawl_kind k ON k.id = l.kind WHERE k.name = 'hang'))"

static int64_t running_behind(const temp *t)
{
    return look(t->path, "SELECT count(*) FROM pawl_job WHERE status = 3 AND fence > " FENCE_OF_HANG);
}

/* One executor runs a job that hangs, after short ones that made the window grow: behind it wait claims
 * that never start. */
static bool killed_with_claims_that_wait(const temp *t)
{
    char line[128];
    child worker;
    put_jobs(t, "quick", 400, 5);
    put_jobs(t, "hang", 1, 5);
    put_jobs(t, "quick", 400, 5);
    start_worker(&worker, t, LEASE_MS, "1");
    assert_true(child_says(&worker, "start hang", line, sizeof line, READY_MS));
    child_kill(&worker);
    child_close(&worker);
    return running_behind(t) > 0;
}

/* Short ones before it may have run without a commit of that: those are charged. */
static void claims_that_never_started_are_uncharged(void **state)
{
    const temp *t = of(state);
    int64_t waiting = 0;
    for (int i = 0; i < 20 && waiting == 0; i++) {
        if (killed_with_claims_that_wait(t))
            waiting = running_behind(t);
        else
            assert_rescued_at_once(t);
        if (waiting == 0)
            change(t->path, "DELETE FROM pawl_job; UPDATE pawl_lane SET ready = 0, later = 0,"
                            " running = 0, succeeded = 0, enqueued = 0");
    }
    assert_true(waiting > 0);
    assert_rescued_at_once(t);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_job WHERE status = 2 AND fence > " FENCE_OF_HANG
                                   " AND (attempts <> 0 OR last_error IS NOT NULL)"), 0);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_job WHERE status = 2 AND attempts = 0"
                                   " AND fence > 0 AND fence < " FENCE_OF_HANG " AND id IN"
                                   " (SELECT job FROM pawl_attempts)"), 0);
    assert_int_equal(look(t->path, "SELECT attempts FROM pawl_jobs WHERE kind = 'hang'"), 1);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_attempts WHERE outcome = 'rescued'"
                                   " AND charged = 0"), waiting);
}

/* A detached job has no executor any more, but it had started. */
static void a_detached_job_is_charged(void **state)
{
    const temp *t = of(state);
    child worker;
    put_jobs(t, "detached", 1, 5);
    start_worker(&worker, t, LEASE_MS, "1");
    assert_true(child_says(&worker, "start detached", NULL, 0, READY_MS));
    nap_ms(50); /* the handler returns just after it has said so */
    child_kill(&worker);
    assert_rescued_at_once(t);
    assert_int_equal(look(t->path, "SELECT attempts FROM pawl_jobs"), 1);
    child_close(&worker);
}

/* Goal: a handler that has returned has run, also while its outcome waits for the write lock, which is held here. */
static void a_returned_handler_is_charged(void **state)
{
    const temp *t = of(state);
    char line[128];
    put_jobs(t, "wait", 1, 3);
    for (int64_t attempt = 1; attempt <= 3; attempt++) {
        child worker;
        start_worker(&worker, t, LEASE_MS, "1");
        assert_true(child_says(&worker, "start wait", NULL, 0, READY_MS));
        struct sqlite3 *db = sql_open(t->path);
        sql_run(db, "BEGIN IMMEDIATE");
        child_tell(&worker, "go\n");
        assert_true(child_says(&worker, "end wait", line, sizeof line, READY_MS));
        nap_ms(100); /* the handler returns just after it has said so */
        child_kill(&worker);
        sql_run(db, "ROLLBACK");
        sql_close(db);
        assert_rescued_at_once(t);
        assert_int_equal(look(t->path, "SELECT attempts FROM pawl_jobs"), attempt);
        change(t->path, "UPDATE pawl_job SET available_at = 0"); /* the backoff is no matter here */
        child_close(&worker);
    }
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'failed'"), 1);
    assert_counters_are_right(t->path);
}

/* I9: a job that kills its process each time is started exactly max_attempts times. */
static void a_deadly_job_fails_after_its_attempts(void **state)
{
    const temp *t = of(state);
    char line[128], text[64];
    int starts = 0;
    put_jobs(t, "die", 1, 3);
    for (int i = 0; i < 6; i++) {
        child worker;
        child_start(&worker, (const char *const[]){ "work", t->path, LEASE_MS, "2", NULL });
        while (child_line(&worker, line, sizeof line, starts < 3 ? READY_MS : 1500))
            starts += strncmp(line, "start die", 9) == 0;
        child_close(&worker);
        if (look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'failed'") == 1)
            break;
    }
    assert_int_equal(starts, 3);
    look_text(t->path, text, sizeof text, "SELECT status FROM pawl_jobs");
    assert_string_equal(text, "failed");
    look_text(t->path, text, sizeof text, "SELECT last_error FROM pawl_jobs");
    assert_string_equal(text, "its process died");
    assert_int_equal(look(t->path, "SELECT attempts FROM pawl_jobs"), 3);
    assert_counters_are_right(t->path);
}

/* Goal: a job whose deaths leave no record of what had started is not charged at first, but not for ever: ten
 * times, and then as any other (I9). */
static void a_deadly_job_without_a_trace_fails_too(void **state)
{
    const temp *t = of(state);
    char line[128];
    int starts = 0;
    put_jobs(t, "traceless", 1, 3);
    while (starts < 20 && look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'failed'") == 0) {
        child worker;
        child_start(&worker, (const char *const[]){ "work", t->path, LEASE_MS, "1", NULL });
        while (child_line(&worker, line, sizeof line, starts < 13 ? READY_MS : 1500))
            starts += strncmp(line, "start traceless", 15) == 0;
        child_close(&worker);
        if (starts == 1)
            assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_attempts WHERE charged = 1"), 0);
    }
    assert_int_equal(starts, 13);
    assert_int_equal(look(t->path, "SELECT attempts FROM pawl_jobs"), 3);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_attempts WHERE charged = 0"), 10);
    assert_counters_are_right(t->path);
}

static int never_called(pawl_job *job, void *arg)
{
    (void)job;
    (void)arg;
    return PAWL_FAILED;
}

/* Goal: a backoff of any length ends a rescue at the latest time there is (T2), and nothing is stuck (I11). */
static void the_longest_backoff_does_not_stop_a_rescue(void **state)
{
    const temp *t = of(state);
    static const int64_t longest[] = { INT64_MAX };
    put_jobs(t, "hang", 1, 5);
    for (int i = 0; i < 2; i++) { /* a second death waits for a step of the backoff */
        child worker;
        start_worker(&worker, t, LEASE_MS, "1");
        assert_true(child_says(&worker, "start hang", NULL, 0, READY_MS));
        child_kill(&worker);
        child_close(&worker);
    }
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_register(pool, "hang", never_called, NULL,
                            PAWL_HANDLER(.backoff_ms = longest, .backoff_count = 1)));
    assert_ok(pawl_start(pool));
    assert_true(eventually(none_runs, (void *)(uintptr_t)t, AT_ONCE_MS));
    assert_ok(pawl_stop(pool, READY_MS));
    assert_ok(pawl_close(pool));
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'pending' AND attempts = 2"), 1);
    assert_int_equal(look(t->path, "SELECT available_at - updated_at > 31536000000 FROM pawl_job"), 1);
    assert_counters_are_right(t->path);
}

/* -------------------------------------------------------------------------- what is proof */

/* A dead process that its parent has not reaped yet is dead: it holds no lock, and runs nothing. */
static void death_is_proven_before_the_parent_reaps(void **state)
{
    const temp *t = of(state);
    child worker;
    put_jobs(t, "hang", 1, 5);
    start_worker(&worker, t, LEASE_MS, "1");
    assert_true(child_says(&worker, "start hang", NULL, 0, READY_MS));
    child_kill_unreaped(&worker);
    assert_rescued_at_once(t);
    (void)child_reap(&worker);
    child_close(&worker);
}

/* A program that replaces itself has the pid and the start time of what it was, and holds none of its jobs. */
static void a_program_that_replaces_itself_is_another(void **state)
{
    const temp *t = of(state);
    char line[128];
    child worker;
    put_jobs(t, "replace", 1, 5);
    start_worker(&worker, t, LEASE_MS, "2");
    assert_true(child_says(&worker, "start replace", line, sizeof line, READY_MS));
    assert_true(child_says(&worker, "ready", NULL, 0, READY_MS));
    assert_true(child_says(&worker, "start replace", line, sizeof line, READY_MS));
    child_tell(&worker, "stop\n");
    assert_int_equal(child_reap(&worker), 0);
    child_close(&worker);
    assert_int_equal(look(t->path, "SELECT attempts FROM pawl_jobs WHERE status = 'succeeded'"), 2);
    assert_int_equal(look(t->path, "SELECT charged FROM pawl_attempts WHERE error = 'its process died'"), 1);
    assert_counters_are_right(t->path);
}

/* A pool that runs already notices the death too. */
static void a_running_pool_notices(void **state)
{
    const temp *t = of(state);
    child worker;
    put_jobs(t, "hang", 1, 5);
    start_worker(&worker, t, LEASE_MS, "1");
    assert_true(child_says(&worker, "start hang", NULL, 0, READY_MS));
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_start(pool)); /* it has looked at the others … */
    assert_ok(pawl_enqueue(pool, PAWL_JOB(.kind = "other"), NULL)); /* … and written what it would take back */
    assert_int_equal(running(t), 1);
    child_kill(&worker);
    assert_true(eventually(none_runs, (void *)(uintptr_t)t, AT_ONCE_MS));
    assert_ok(pawl_close(pool));
    child_close(&worker);
}

/* A child of the dead holder has its descriptors open, and is not the holder. */
static void a_child_of_the_dead_does_not_count(void **state)
{
    const temp *t = of(state);
    char line[128];
    child worker;
    put_jobs(t, "hang", 1, 5);
    child_start(&worker, (const char *const[]){ "work", t->path, LEASE_MS, "1", "fork", NULL });
    int pid = 0;
    bool started = false;
    while ((pid == 0 || !started) && child_line(&worker, line, sizeof line, READY_MS)) {
        if (sscanf(line, "fork %d", &pid) != 1)
            started = started || strncmp(line, "start hang", 10) == 0;
    }
    assert_true(pid > 0 && started);
    child_kill(&worker);
    assert_int_equal(kill((pid_t)pid, 0), 0); /* it lives */
    assert_rescued_at_once(t);
    assert_int_equal(kill((pid_t)pid, 0), 0);
    child_close(&worker); /* the end of its input ends it */
}

/* ---------------------------------------------------------------------- the side directory */

static void side_path(const temp *t, char *out, size_t capacity, const char *name)
{
    (void)snprintf(out, capacity, "%s-pawl%s%s", t->path, name[0] != '\0' ? "/" : "", name);
}

static void remove_side_directory(const temp *t)
{
    char path[600], name[128];
    look_text(t->path, name, sizeof name, "SELECT side FROM pawl_holder WHERE left_at IS NULL");
    side_path(t, path, sizeof path, name);
    assert_int_equal(unlink(path), 0);
    side_path(t, path, sizeof path, "turn");
    assert_int_equal(unlink(path), 0);
    side_path(t, path, sizeof path, "");
    assert_int_equal(rmdir(path), 0);
}

/* A row from another boot of the machine: nothing of it lives, whatever has its pid now (R13). */
static void another_boot_is_dead(void **state)
{
    const temp *t = of(state);
    char line[128];
    child worker;
    put_jobs(t, "wait", 1, 5);
    start_worker(&worker, t, LEASE_MS, "1");
    assert_true(child_says(&worker, "start wait", NULL, 0, READY_MS));
    change(t->path, "UPDATE pawl_holder SET boot = '00000000-0000-0000-0000-000000000000'"
                    " WHERE left_at IS NULL");
    remove_side_directory(t); /* its lock would prove that it lives */
    assert_rescued_at_once(t);
    child_tell(&worker, "go\n");
    assert_true(child_says(&worker, "end wait", line, sizeof line, READY_MS));
    child_close(&worker);
}

/* Without its file a living process is still no dead one; and a dead one still is. */
static void a_removed_side_directory_kills_nobody(void **state)
{
    const temp *t = of(state);
    child worker;
    put_jobs(t, "hang", 1, 5);
    start_worker(&worker, t, LEASE_MS, "1");
    assert_true(child_says(&worker, "start hang", NULL, 0, READY_MS));
    remove_side_directory(t);
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_start(pool));
    nap_ms(1500); /* more than one look at the other pools */
    assert_int_equal(running(t), 1);
    child_kill(&worker);
    assert_true(eventually(none_runs, (void *)(uintptr_t)t, AT_ONCE_MS));
    assert_ok(pawl_close(pool));
    child_close(&worker);
}

static void strays_in_the_side_directory_do_no_harm(void **state)
{
    const temp *t = of(state);
    char path[600];
    child worker;
    static const char *const names[] = { "stray", "1-1-0", "999999999-5-0", "-", "0-0-0" };
    put_jobs(t, "hang", 1, 5);
    side_path(t, path, sizeof path, "");
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        side_path(t, path, sizeof path, names[i]);
        temp_write(path, "not a record", i * 3);
    }
    side_path(t, path, sizeof path, "12-34-0");
    assert_int_equal(mkdir(path, 0700), 0);
    side_path(t, path, sizeof path, "12-35-0");
    assert_int_equal(mkfifo(path, 0600), 0);
    /* Rows that name them, as anybody could write them. */
    change(t->path, "INSERT INTO pawl_holder (name, side, pid, started, boot, pid_space, joined_at)"
                    " VALUES ('a', 'stray', 1, 1, 'x', 1, 1), ('b', '../../x', 1, 1, '', 1, 1),"
                    " ('c', '12-34-0', 999999999, 5, '', 0, 1), ('d', '12-35-0', 999999999, 5, '', 0, 1),"
                    " ('e', '1-1-0', 999999999, 5, '', 0, 1)");
    start_worker(&worker, t, LEASE_MS, "1");
    assert_true(child_says(&worker, "start hang", NULL, 0, READY_MS));
    child_kill(&worker);
    assert_rescued_at_once(t);
    child_close(&worker);
}

/* Who died before its row was stored, or after its rescue and before its file was removed, is in no
 * survey; its file goes all the same, with the directory. */
static void files_without_a_holder_are_cleared_away(void **state)
{
    const temp *t = of(state);
    char path[600];
    child worker;
    put_jobs(t, "hang", 1, 5);
    start_worker(&worker, t, LEASE_MS, "1");
    child_kill(&worker);
    change(t->path, "UPDATE pawl_holder SET left_at = joined_at");
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_start(pool));
    assert_ok(pawl_close(pool));
    side_path(t, path, sizeof path, "");
    assert_int_not_equal(access(path, F_OK), 0);
    child_close(&worker);
}

/* A record that was cut short is not believed, and nobody dies of it. */
static void a_damaged_record_still_proves_the_death(void **state)
{
    const temp *t = of(state);
    char path[600], name[128];
    child worker;
    put_jobs(t, "hang", 1, 5);
    start_worker(&worker, t, LEASE_MS, "1");
    assert_true(child_says(&worker, "start hang", NULL, 0, READY_MS));
    child_kill(&worker);
    look_text(t->path, name, sizeof name, "SELECT side FROM pawl_holder WHERE left_at IS NULL");
    side_path(t, path, sizeof path, name);
    assert_int_equal(truncate(path, 40), 0);
    assert_rescued_at_once(t);
    child_close(&worker);
}

/* --------------------------------------------------------------------------- the living */

/* I12: whoever opens, starts, stops and closes beside it, a living holder keeps its claims. */
static void the_living_are_not_touched(void **state)
{
    const temp *t = of(state);
    char before[64], after[64];
    child first, second;
    put_jobs(t, "hang", 4, 5);
    start_worker(&first, t, LEASE_MS, "2");
    start_worker(&second, t, LEASE_MS, "2");
    for (int i = 0; i < 2; i++) {
        assert_true(child_says(&first, "start hang", NULL, 0, READY_MS));
        assert_true(child_says(&second, "start hang", NULL, 0, READY_MS));
    }
    look_text(t->path, before, sizeof before, "SELECT group_concat(fence) FROM pawl_job");
    for (int i = 0; i < 3; i++) {
        pawl_pool *pool = open_pool(t, .executors = 1);
        assert_ok(pawl_start(pool));
        nap_ms(i * 500);
        assert_ok(pawl_close(pool));
    }
    look_text(t->path, after, sizeof after, "SELECT group_concat(fence) FROM pawl_job");
    assert_string_equal(before, after);
    assert_int_equal(running(t), 4);
    child_kill(&first);
    pawl_pool *pool;
    (void)rescue_takes(t, &pool); /* the first one's two, and no more */
    assert_int_equal(running(t), 2);
    assert_ok(pawl_close(pool));
    child_tell(&second, "stop\n");
    child_close(&first);
    child_close(&second);
}

/* A frozen process is no dead one: its lease decides. What it says later is refused. */
static void a_frozen_holder_is_robbed_after_its_lease(void **state)
{
    const temp *t = of(state);
    char line[128], fence[64], later[64];
    child worker;
    put_jobs(t, "wait", 1, 5);
    start_worker(&worker, t, "1500", "1");
    assert_true(child_says(&worker, "start wait", NULL, 0, READY_MS));
    child_signal(&worker, SIGSTOP);
    int64_t stopped = steady_ms();
    int64_t left = look(t->path, "SELECT lease_boot FROM pawl_job");
    struct timespec boot;
    (void)clock_gettime(CLOCK_BOOTTIME, &boot);
    left -= (int64_t)boot.tv_sec * 1000 + boot.tv_nsec / 1000000;
    look_text(t->path, fence, sizeof fence, "SELECT fence FROM pawl_job");
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_start(pool));
    assert_true(eventually(none_runs, (void *)(uintptr_t)t, 10000));
    assert_true(steady_ms() - stopped >= left - 10); /* I12: not before its lease ended */
    assert_int_equal(look(t->path, "SELECT attempts FROM pawl_jobs"), 1);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs"
                                   " WHERE last_error = 'its lease ran out'"), 1);
    assert_ok(pawl_close(pool));
    change(t->path, "INSERT INTO pawl_paused VALUES ('default', 0)"); /* nobody starts it again */
    child_signal(&worker, SIGCONT);
    child_tell(&worker, "go\n");
    assert_true(child_says(&worker, "end wait", line, sizeof line, READY_MS));
    child_tell(&worker, "stop\n"); /* it writes what it has to write, and leaves */
    int status = child_reap(&worker);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'pending'"), 1);
    look_text(t->path, later, sizeof later, "SELECT fence FROM pawl_job");
    assert_string_equal(fence, later); /* I6: nothing was changed */
    assert_counters_are_right(t->path);
    child_close(&worker);
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    in_a_directory(started_jobs_are_charged),
    in_a_directory(claims_that_never_started_are_uncharged),
    in_a_directory(a_detached_job_is_charged),
    in_a_directory(a_returned_handler_is_charged),
    in_a_directory(a_deadly_job_fails_after_its_attempts),
    in_a_directory(a_deadly_job_without_a_trace_fails_too),
    in_a_directory(the_longest_backoff_does_not_stop_a_rescue),
    in_a_directory(death_is_proven_before_the_parent_reaps),
    in_a_directory(a_program_that_replaces_itself_is_another),
    in_a_directory(a_running_pool_notices),
    in_a_directory(a_child_of_the_dead_does_not_count),
    in_a_directory(another_boot_is_dead),
    in_a_directory(a_removed_side_directory_kills_nobody),
    in_a_directory(strays_in_the_side_directory_do_no_harm),
    in_a_directory(files_without_a_holder_are_cleared_away),
    in_a_directory(a_damaged_record_still_proves_the_death),
    in_a_directory(the_living_are_not_touched),
    in_a_directory(a_frozen_holder_is_robbed_after_its_lease),
};

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
