/* last_attempt_test.c - a process that dies in the last attempt that its job has.
 *
 * Goal: the job ends failed, with the reason, after exactly max_attempts charged starts, and is never started
 * again (I9): whether it kills its process itself, is killed from outside, or is frozen beyond its lease;
 * whether the attempts before ended in death too or in an ordinary failure. */
#include "check.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "child.h"
#include "look.h"
#include "patience.h"

#define LIMIT_MS 20000
#define LEASE_MS "60000"

static void put_one(const temp *t, const char *kind, uint32_t max_attempts)
{
    pawl_pool *pool = open_pool(t, .executors = 1);
    (void)put(pool, .kind = kind, .max_attempts = max_attempts);
    assert_ok(pawl_close(pool));
}

static void join(child *c, const temp *t, const char *lease_ms)
{
    child_join(c, (const char *const[]){ "serve", t->path, lease_ms, "2", NULL });
}

static bool has_failed(void *arg)
{
    return look(arg, "SELECT count(*) FROM pawl_jobs WHERE status = 'failed'") == 1;
}

/* Somebody who serves the kind comes, and has nothing to start; a second job shows that it works. */
static void assert_over(const temp *t, const char *kind, uint32_t max_attempts, const char *reason)
{
    char line[128], text[128], start[64];
    child after;
    join(&after, t, LEASE_MS);
    assert_true(child_says(&after, "ready", NULL, 0, LIMIT_MS));
    assert_true(eventually(has_failed, (void *)(uintptr_t)t->path, LIMIT_MS));
    put_one(t, "tell", 1);
    (void)snprintf(start, sizeof start, "start %s", kind);
    while (child_line(&after, line, sizeof line, LIMIT_MS) && strncmp(line, "start tell", 10) != 0)
        assert_int_not_equal(strncmp(line, start, strlen(start)), 0);
    assert_int_equal(strncmp(line, "start tell", 10), 0);
    child_tell(&after, "stop\n");
    assert_true(child_says(&after, "closed", NULL, 0, LIMIT_MS));
    child_close(&after);
    look_text(t->path, text, sizeof text, "SELECT status FROM pawl_jobs WHERE kind = '%s'", kind);
    assert_string_equal(text, "failed");
    look_text(t->path, text, sizeof text, "SELECT last_error FROM pawl_jobs WHERE kind = '%s'", kind);
    assert_text_has(text, reason);
    assert_int_equal(look(t->path, "SELECT attempts FROM pawl_jobs WHERE kind = '%s'", kind), max_attempts);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_attempts a JOIN pawl_jobs j ON j.id = a.job"
                                   " WHERE j.kind = '%s' AND charged = 1", kind), max_attempts);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_attempts WHERE charged = 0"), 0);
    assert_counters_are_right(t->path);
}

/* Starts processes until it has started so many times; each time it kills its process. */
static void die_so_often(const temp *t, int times)
{
    char line[128];
    for (int starts = 0; starts < times; starts++) {
        child worker;
        join(&worker, t, LEASE_MS);
        assert_true(child_says(&worker, "start die", line, sizeof line, LIMIT_MS));
        (void)child_reap(&worker); /* it died of it */
        child_close(&worker);
    }
}

static void by_its_own_hand(const temp *t, uint32_t max_attempts)
{
    put_one(t, "die", max_attempts);
    die_so_often(t, (int)max_attempts);
    assert_over(t, "die", max_attempts, "its process died");
}

static void it_kills_its_process_once(void **state)
{
    by_its_own_hand(*state, 1);
}

static void it_kills_its_process_three_times(void **state)
{
    by_its_own_hand(*state, 3);
}

/* Two attempts end in an ordinary failure, the third in a death from outside. */
static void from_outside(const temp *t, uint32_t max_attempts)
{
    char line[128];
    child worker;
    put_one(t, "late-retry", max_attempts);
    join(&worker, t, LEASE_MS);
    for (uint32_t i = 1; i < max_attempts; i++) {
        assert_true(child_says(&worker, "start late-retry", line, sizeof line, LIMIT_MS));
        child_tell(&worker, "go\n");
    }
    assert_true(child_says(&worker, "start late-retry", line, sizeof line, LIMIT_MS));
    child_kill(&worker);
    child_close(&worker);
    assert_over(t, "late-retry", max_attempts, "its process died");
}

static void it_is_killed_in_its_only_attempt(void **state)
{
    from_outside(*state, 1);
}

static void it_is_killed_after_two_failures(void **state)
{
    from_outside(*state, 3);
}

/* Frozen beyond its lease in the last attempt: failed, and what it says later changes nothing. */
static void out_of_its_lease(const temp *t, uint32_t max_attempts)
{
    char line[128];
    child worker;
    put_one(t, "late-retry", max_attempts);
    join(&worker, t, "1000");
    for (uint32_t i = 1; i < max_attempts; i++) {
        assert_true(child_says(&worker, "start late-retry", line, sizeof line, LIMIT_MS));
        child_tell(&worker, "go\n");
    }
    assert_true(child_says(&worker, "start late-retry", line, sizeof line, LIMIT_MS));
    child_freeze(&worker, t->path);
    assert_over(t, "late-retry", max_attempts, "its lease ran out");
    child_signal(&worker, SIGCONT);
    child_tell(&worker, "go\n");
    assert_true(child_says(&worker, "end late-retry", line, sizeof line, LIMIT_MS));
    child_tell(&worker, "stop\n");
    assert_true(child_says(&worker, "closed", NULL, 0, LIMIT_MS));
    child_close(&worker);
    assert_over(t, "late-retry", max_attempts, "its lease ran out");
}

static void it_is_frozen_in_its_only_attempt(void **state)
{
    out_of_its_lease(*state, 1);
}

static void it_is_frozen_after_two_failures(void **state)
{
    out_of_its_lease(*state, 3);
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    in_a_directory(it_kills_its_process_once),
    in_a_directory(it_kills_its_process_three_times),
    in_a_directory(it_is_killed_in_its_only_attempt),
    in_a_directory(it_is_killed_after_two_failures),
    in_a_directory(it_is_frozen_in_its_only_attempt),
    in_a_directory(it_is_frozen_after_two_failures),
};

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
