/* stalled_holder_test.c - a holder that is frozen beyond its lease, and then goes on as if nothing was.
 *
 * Goal: whatever it says late (success, failure, retry, snooze, release, a heartbeat, the end of a detached
 * job) is refused and counted, and the job is what the next holder makes of it (I6, I7), whether that one has
 * ended the job meanwhile, well or badly, or still runs it. */
#include "check.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "child.h"
#include "gate.h"
#include "look.h"
#include "patience.h"

#define LIMIT_MS 20000
#define LEASE_MS 1000

static const char *const kinds[] = { "late-success", "late-failure",   "late-retry",   "late-snooze",
                                     "late-release", "late-heartbeat", "late-detached" };
#define KINDS (sizeof kinds / sizeof kinds[0])

static void put_one_of_each(const temp *t)
{
    pawl_pool *pool = open_pool(t, .executors = 1);
    for (size_t i = 0; i < KINDS; i++)
        (void)put(pool, .kind = kinds[i], .max_attempts = 5);
    assert_ok(pawl_close(pool));
}

/* It holds all of them, and is frozen. */
static void start_and_freeze(const temp *t, child *holder)
{
    put_one_of_each(t);
    child_join(holder, (const char *const[]){ "serve", t->path, "1000", "8", NULL });
    for (size_t i = 0; i < KINDS; i++)
        assert_true(child_says(holder, "start", NULL, 0, LIMIT_MS));
    nap_ms(50); /* the detached one's handler returns just after it has said so */
    child_freeze(holder, t->path);
}

/* It hears that its heartbeat is refused, ends all of its handlers, and counts what was refused. The end of the
 * detached job is either told to be too late, or counted as the others. */
static void go_on(child *holder, uint64_t *late_refused)
{
    char line[256], finish[64] = "";
    uint64_t counted = 0;
    child_signal(holder, SIGCONT);
    for (size_t i = 0; i < KINDS; i++)
        child_tell(holder, "go\n");
    for (bool heard = false; !heard || finish[0] == '\0';) {
        assert_true(child_line(holder, line, sizeof line, LIMIT_MS));
        if (strncmp(line, "heartbeat", 9) == 0) {
            assert_string_equal(line, "heartbeat PAWL_ERR_LEASE_LOST");
            heard = true;
        } else if (strncmp(line, "finish", 6) == 0) {
            (void)snprintf(finish, sizeof finish, "%.60s", line);
        }
    }
    child_tell(holder, "end\n");
    uint64_t told = strcmp(finish, "finish PAWL_ERR_LEASE_LOST") == 0;
    for (int64_t end = steady_ms() + LIMIT_MS; counted < KINDS - told && steady_ms() < end; nap_ms(5)) {
        child_tell(holder, "numbers\n");
        assert_true(child_says(holder, "numbers", line, sizeof line, LIMIT_MS));
        assert_int_equal(sscanf(line, "numbers %" SCNu64, &counted), 1);
    }
    *late_refused = counted < KINDS ? counted + told : counted;
}

static void close_holder(child *holder)
{
    child_tell(holder, "stop\n");
    assert_true(child_says(holder, "closed", NULL, 0, LIMIT_MS));
    child_close(holder);
}

/* ---------------------------------------------------------------------- the next holder */

typedef struct heir {
    gate started, go;
    int outcome;
} heir;

static int take_over(pawl_job *job, void *arg)
{
    heir *h = arg;
    gate_add(&h->started, 1);
    (void)gate_await(&h->go, 1);
    if (h->outcome != PAWL_SUCCEEDED)
        pawl_job_error(job, "the heir says so");
    return h->outcome;
}

static pawl_pool *inherit(const temp *t, heir *h)
{
    pawl_pool *pool = open_pool(t, .executors = KINDS, .lease_ms = 60000);
    for (size_t i = 0; i < KINDS; i++)
        assert_ok(pawl_register(pool, kinds[i], take_over, h, NULL));
    assert_ok(pawl_start(pool));
    assert_true(gate_await(&h->started, KINDS));
    return pool;
}

/* What the rows say that the late one could have changed. */
static void read_rows(const temp *t, char *out, size_t capacity)
{
    look_text(t->path, out, capacity,
              "SELECT group_concat(id || status || fence || ' ' || attempts || coalesce(last_error, '-')"
              " || available_at || ' ' || updated_at, ',') FROM pawl_job");
}

static void assert_ended(const temp *t, const char *status)
{
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = '%s' AND attempts = 2",
                          status), KINDS);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_attempts WHERE outcome = 'rescued'"
                                   " AND charged = 1 AND error = 'its lease ran out'"), KINDS);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_attempts WHERE error = 'too late'"), 0);
    assert_counters_are_right(t->path);
}

static void after_the_heir_has_ended(const temp *t, int outcome, const char *status)
{
    char before[1024], after[1024];
    heir h = { GATE_INIT, GATE_INIT, outcome };
    uint64_t late_refused;
    child holder;
    start_and_freeze(t, &holder);
    pawl_pool *pool = inherit(t, &h);
    gate_add(&h.go, 1);
    assert_ok(pawl_wait_idle(pool, LIMIT_MS));
    assert_ended(t, status);
    read_rows(t, before, sizeof before);
    go_on(&holder, &late_refused);
    read_rows(t, after, sizeof after);
    assert_string_equal(before, after);
    close_holder(&holder);
    read_rows(t, after, sizeof after);
    assert_string_equal(before, after);
    assert_int_equal(late_refused, KINDS);
    assert_ok(pawl_close(pool));
    assert_ended(t, status);
}

static void it_is_late_for_a_success(void **state)
{
    after_the_heir_has_ended(*state, PAWL_SUCCEEDED, "succeeded");
}

static void it_is_late_for_a_failure(void **state)
{
    after_the_heir_has_ended(*state, PAWL_FAILED, "failed");
}

/* The row is running then, as it was for the late one: the fence alone tells them apart. */
static void it_is_late_while_the_heir_runs(void **state)
{
    const temp *t = *state;
    heir h = { GATE_INIT, GATE_INIT, PAWL_SUCCEEDED };
    uint64_t late_refused;
    child holder;
    start_and_freeze(t, &holder);
    pawl_pool *pool = inherit(t, &h);
    go_on(&holder, &late_refused);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'running'"), KINDS);
    close_holder(&holder);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'running'"), KINDS);
    assert_int_equal(late_refused, KINDS);
    gate_add(&h.go, 1);
    assert_ok(pawl_wait_idle(pool, LIMIT_MS));
    assert_ok(pawl_close(pool));
    assert_ended(t, "succeeded");
}

#define BEHIND 200

/* It has claimed some of the short ones behind the one that freezes it. */
static void freeze_with_claims(const temp *t, child *holder)
{
    pawl_pool *pool = open_pool(t, .executors = 1);
    pawl_job_spec all[BEHIND];
    for (int i = 0; i < BEHIND; i++)
        all[i] = *PAWL_JOB(.kind = i == BEHIND / 4 ? "freeze" : "tell");
    child_join(holder, (const char *const[]){ "serve", t->path, "1000", "1", NULL });
    for (bool frozen = false; !frozen;) {
        assert_ok(pawl_enqueue_many(pool, all, BEHIND, NULL, NULL));
        assert_true(child_says(holder, "start freeze", NULL, 0, LIMIT_MS));
        frozen = child_is_frozen(holder, t->path);
        if (frozen && look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'running'") < 2) {
            child_signal(holder, SIGCONT); /* nothing was claimed behind it */
            frozen = false;
        }
    }
    assert_ok(pawl_close(pool));
}

static bool all_have_succeeded(void *arg)
{
    const temp *t = arg;
    return look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status <> 'succeeded'") == 0;
}

static void run_all_elsewhere(const temp *t)
{
    heir h = { GATE_INIT, GATE_INIT, PAWL_SUCCEEDED };
    gate_add(&h.go, 1);
    pawl_pool *pool = open_pool(t, .executors = 2);
    assert_ok(pawl_register(pool, "freeze", take_over, &h, NULL));
    assert_ok(pawl_register(pool, "tell", take_over, &h, NULL));
    assert_ok(pawl_start(pool));
    assert_true(eventually(all_have_succeeded, (void *)(uintptr_t)t, LIMIT_MS)); /* leases run out one by one */
    assert_ok(pawl_close(pool));
}

/* Goal: what was claimed, and not started before the holder was frozen, is not started by it afterwards: somebody
 * else has had it. */
static void what_was_not_started_is_not_started_late(void **state)
{
    const temp *t = *state;
    char line[256];
    child holder;
    freeze_with_claims(t, &holder);
    run_all_elsewhere(t);
    child_signal(&holder, SIGCONT);
    child_tell(&holder, "stop\n");
    do {
        assert_true(child_line(&holder, line, sizeof line, LIMIT_MS));
        assert_int_not_equal(strncmp(line, "start", 5), 0);
    } while (strcmp(line, "closed") != 0);
    child_close(&holder);
    assert_true(all_have_succeeded((void *)(uintptr_t)t));
    assert_counters_are_right(t->path);
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    in_a_directory(it_is_late_for_a_success),
    in_a_directory(it_is_late_for_a_failure),
    in_a_directory(it_is_late_while_the_heir_runs),
    in_a_directory(what_was_not_started_is_not_started_late),
};

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
