/* clock_set_test.c - the wall clock is set six hours forth and back while processes work.
 *
 * Goal: no lease is robbed and nothing is stranded (R13, I11, I12); a job that waits for a time starts within
 * two seconds once the clock says so, however it came to say so, and not before (I13). The clock is that of
 * support/clock_shift.h: the test and its workers share one, and the test sets it while they live. */
#include "check.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "child.h"
#include "clock_shift.h"
#include "look.h"
#include "patience.h"

#define LIMIT_MS 20000
#define HOUR_MS INT64_C(3600000)
#define SOON_MS 2000  /* what is due starts within so long … */
#define SLACK_MS 1000 /* … on a machine that has nothing else to do */

static int64_t wall_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void begin(const temp *t)
{
    clock_shift_create(temp_file(t, "clock"));
    clock_shift_set(0);
}

static void join(const temp *t, child *c, const char *lease_ms)
{
    child_join(c, (const char *const[]){ "serve", t->path, lease_ms, "4", NULL });
    assert_true(child_says(c, "ready", NULL, 0, LIMIT_MS));
}

static void leave(child *c)
{
    child_tell(c, "stop\n");
    assert_true(child_says(c, "closed", NULL, 0, LIMIT_MS));
    child_close(c);
}

/* --------------------------------------------------------------------------- leases */

static bool three_have_succeeded(void *arg)
{
    return look(arg, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded' AND attempts = 1") == 3;
}

/* A process holds a job beyond several leases, and another would rob it. */
static void hold_through(const temp *t, int64_t first_ms, int64_t second_ms)
{
    child holders[2];
    begin(t);
    clock_shift_set(first_ms);
    pawl_pool *pool = open_pool(t, .executors = 1);
    join(t, &holders[0], "900");
    (void)put(pool, .kind = "late-success");
    assert_true(child_says(&holders[0], "start", NULL, 0, LIMIT_MS));
    join(t, &holders[1], "900");
    clock_shift_set(second_ms);
    (void)put(pool, .kind = "tell"); /* both write, and look at each other */
    nap_ms(2500);
    (void)put(pool, .kind = "tell");
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE kind = 'late-success'"
                                   " AND status = 'running' AND attempts = 1"), 1);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_attempts"), 0);
    child_tell(&holders[0], "go\n");
    assert_true(eventually(three_have_succeeded, (void *)(uintptr_t)t->path, LIMIT_MS));
    leave(&holders[0]);
    leave(&holders[1]);
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
}

static void forth_robs_nobody(void **state)
{
    hold_through(*state, 0, 6 * HOUR_MS);
}

static void back_robs_nobody(void **state)
{
    hold_through(*state, 6 * HOUR_MS, 0);
}

/* A frozen holder's lease still runs out in its own time, and a dead one's jobs still come back. */
static void rescue_through(const temp *t, int64_t first_ms, int64_t second_ms, int signal)
{
    child holder, heir;
    char line[128];
    begin(t);
    clock_shift_set(first_ms);
    pawl_pool *pool = open_pool(t, .executors = 1);
    join(t, &holder, "900");
    (void)put(pool, .kind = "late-success");
    assert_true(child_says(&holder, "start", NULL, 0, LIMIT_MS));
    join(t, &heir, "900");
    if (signal == SIGSTOP)
        child_freeze(&holder, t->path);
    else
        child_signal(&holder, signal);
    clock_shift_set(second_ms);
    assert_true(child_says(&heir, "start late-success", line, sizeof line, 900 + SOON_MS + SLACK_MS));
    child_tell(&heir, "go\n");
    assert_true(child_says(&heir, "end", NULL, 0, LIMIT_MS));
    leave(&heir);
    child_close(&holder);
    assert_ok(pawl_close(pool));
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"
                                   " AND attempts = 2"), 1);
    assert_counters_are_right(t->path);
}

static void forth_and_the_frozen_are_rescued(void **state)
{
    rescue_through(*state, 0, 6 * HOUR_MS, SIGSTOP);
}

static void back_and_the_frozen_are_rescued(void **state)
{
    rescue_through(*state, 6 * HOUR_MS, 0, SIGSTOP);
}

static void back_and_the_dead_are_rescued(void **state)
{
    rescue_through(*state, 6 * HOUR_MS, 0, SIGKILL);
}

/* ------------------------------------------------------------------------- due times */

/* The next start, and when it was by the steady clock; nothing within the time: false. */
static bool next_start(child *c, int64_t id, int64_t limit_ms)
{
    char line[128], expected[64];
    if (!child_says(c, "start", line, sizeof line, limit_ms))
        return false;
    (void)snprintf(expected, sizeof expected, "start tell %" PRId64 " ", id);
    if (strncmp(line, expected, strlen(expected)) != 0)
        fail_msg("not \"%s\" but \"%s\"", expected, line);
    return true;
}

/* Jobs that are due in the hours to come start when the clock jumps over their time, in an idle pool and
 * in one that was never waiting for anything else; those beyond do not. */
static void forth_starts_what_is_due_then(void **state)
{
    const temp *t = *state;
    child worker;
    begin(t);
    pawl_pool *pool = open_pool(t, .executors = 1);
    join(t, &worker, "60000");
    int64_t three = put(pool, .kind = "tell", .delay_ms = 3 * HOUR_MS);
    int64_t seven = put(pool, .kind = "tell", .delay_ms = 7 * HOUR_MS);
    assert_false(next_start(&worker, three, 1000));
    int64_t set = steady_ms();
    clock_shift_set(6 * HOUR_MS);
    assert_true(next_start(&worker, three, SOON_MS + SLACK_MS));
    print_message("started %" PRId64 " ms after the clock was set\n", steady_ms() - set);
    assert_false(next_start(&worker, seven, SOON_MS + SLACK_MS)); /* not early */
    clock_shift_set(8 * HOUR_MS);
    assert_true(next_start(&worker, seven, SOON_MS + SLACK_MS));
    leave(&worker);
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
}

/* After it was set back what is due is due later, by the new clock; what is enqueued now is due now. */
static void back_starts_nothing_early(void **state)
{
    const temp *t = *state;
    child worker;
    begin(t);
    clock_shift_set(6 * HOUR_MS);
    pawl_pool *pool = open_pool(t, .executors = 1);
    join(t, &worker, "60000");
    int64_t later = put(pool, .kind = "tell", .delay_ms = 1500);
    int64_t due_at = look(t->path, "SELECT available_at FROM pawl_job WHERE id = %" PRId64, later);
    clock_shift_set(0);
    int64_t now = put(pool, .kind = "tell");
    assert_true(next_start(&worker, now, SOON_MS + SLACK_MS)); /* I10: it is not stranded */
    int64_t in_a_second = put(pool, .kind = "tell", .delay_ms = 1000), began = steady_ms();
    assert_true(next_start(&worker, in_a_second, 1000 + SOON_MS + SLACK_MS));
    assert_true(steady_ms() - began >= 990);
    assert_false(next_start(&worker, later, 2000)); /* I13: 1.5 s are over, but not by this clock */
    assert_true(wall_ms() < due_at);
    clock_shift_set(6 * HOUR_MS);
    assert_true(next_start(&worker, later, SOON_MS + SLACK_MS));
    assert_true(wall_ms() >= due_at);
    leave(&worker);
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
}

/* A retry waits by the same clock. */
static void a_retry_is_not_stranded(void **state)
{
    const temp *t = *state;
    char line[128];
    child worker;
    begin(t);
    pawl_pool *pool = open_pool(t, .executors = 1);
    join(t, &worker, "60000");
    (void)put(pool, .kind = "again");
    assert_true(child_says(&worker, "start again", line, sizeof line, LIMIT_MS));
    clock_shift_set(6 * HOUR_MS); /* over its second */
    assert_true(child_says(&worker, "start again", line, sizeof line, SOON_MS + SLACK_MS));
    leave(&worker);
    assert_ok(pawl_close(pool));
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"
                                   " AND attempts = 2"), 1);
    assert_counters_are_right(t->path);
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    in_a_directory(forth_robs_nobody),
    in_a_directory(back_robs_nobody),
    in_a_directory(forth_and_the_frozen_are_rescued),
    in_a_directory(back_and_the_frozen_are_rescued),
    in_a_directory(back_and_the_dead_are_rescued),
    in_a_directory(forth_starts_what_is_due_then),
    in_a_directory(back_starts_nothing_early),
    in_a_directory(a_retry_is_not_stranded),
};

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
