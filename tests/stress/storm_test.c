/* storm_test.c - four working processes and two that enqueue, on one file, while they are killed and frozen.
 *
 * Goal: I1 to I9, I12 and I16 hold over a history that all of them write beside the database. Any of the six
 * is killed (and another takes its place), or frozen beyond its lease and let go, also in the middle of a
 * transaction; then the store is drained and judged (support/history_judge.h). Chance comes from a printed
 * seed. PAWL_TEST_STORM_MS is how long it goes; the default is thirty seconds, and ten under a sanitizer. */
#include "check.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "history.h"
#include "history_judge.h"
#include "look.h"
#include "patience.h"

#define WORKERS 4
#define PRODUCERS 2
#define MEMBERS (WORKERS + PRODUCERS)
#define LEASE_MS 1000
#define FROZEN_MAX 2
#define DRAIN_MS 20000 /* I10, I11: leases, backoffs and the looks at the others are a second or less */

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define STORM_MS 10000
#define RATE "60"
#else
#define STORM_MS 30000
#define RATE "120"
#endif

typedef struct member {
    child process;
    int64_t thaws_at; /* 0: it is not frozen */
} member;

typedef struct storm {
    const temp *t;
    char log_path[400];
    int log;
    uint64_t seed;
    member members[MEMBERS];
    int births, kills, freezes;
} storm;

static bool is_worker(const storm *s, const member *m)
{
    return m - s->members < WORKERS;
}

static void give_birth(storm *s, member *m)
{
    char run[32], lease[16];
    (void)snprintf(run, sizeof run, "p%d", s->births++);
    (void)snprintf(lease, sizeof lease, "%d", LEASE_MS);
    m->thaws_at = 0;
    if (is_worker(s, m))
        child_join(&m->process, (const char *const[]){ "storm", s->t->path, s->log_path, lease, "4", NULL });
    else
        child_join(&m->process, (const char *const[]){ "ask", s->t->path, s->log_path, run, RATE, "0", NULL });
}

static void kill_one(storm *s, member *m)
{
    history_note(s->log, "kill %d", (int)m->process.pid);
    child_close(&m->process);
    s->kills++;
    give_birth(s, m);
}

static void thaw(storm *s, member *m)
{
    history_note(s->log, "go-on %d", (int)m->process.pid);
    child_signal(&m->process, SIGCONT);
    m->thaws_at = 0;
}

static void freeze(storm *s, member *m)
{
    history_note(s->log, "stop %d", (int)m->process.pid);
    child_signal(&m->process, SIGSTOP);
    m->thaws_at = steady_ms() + LEASE_MS + (int64_t)(next_random(&s->seed) % (2 * LEASE_MS));
    s->freezes++;
}

static int thaw_those_due(storm *s, bool all)
{
    int frozen = 0;
    for (int i = 0; i < MEMBERS; i++) {
        member *m = &s->members[i];
        if (m->thaws_at > 0 && (all || m->thaws_at <= steady_ms()))
            thaw(s, m);
        frozen += m->thaws_at > 0;
    }
    return frozen;
}

static void rage(storm *s, int64_t ms)
{
    for (int64_t end = steady_ms() + ms; steady_ms() < end;) {
        nap_ms((int64_t)(20 + next_random(&s->seed) % 400));
        int frozen = thaw_those_due(s, false);
        member *m = &s->members[next_random(&s->seed) % MEMBERS];
        uint64_t dice = next_random(&s->seed) % 8;
        if (m->thaws_at > 0 ? dice == 0 : dice < 3) /* most of the frozen are to have their late word */
            kill_one(s, m);
        else if (m->thaws_at == 0 && frozen < FROZEN_MAX)
            freeze(s, m);
    }
    (void)thaw_those_due(s, true);
}

static void stop_member(member *m)
{
    child_tell(&m->process, "stop\n");
    int status = child_reap(&m->process);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("a process of the storm ended with status %x", status);
    child_close(&m->process);
}

static bool is_drained(void *arg)
{
    return sql_ask(arg, "SELECT sum(ready + later + running) FROM pawl_lane") == 0;
}

static void nothing_is_lost_and_nothing_runs_twice(void **state)
{
    static storm s;
    s.t = *state;
    s.seed = test_seed();
    const char *given = getenv("PAWL_TEST_STORM_MS");
    (void)snprintf(s.log_path, sizeof s.log_path, "%s", temp_file(s.t, "history"));
    s.log = open(s.log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    assert_true(s.log >= 0);
    for (int i = 0; i < MEMBERS; i++)
        give_birth(&s, &s.members[i]);
    rage(&s, given != NULL ? strtoll(given, NULL, 10) : STORM_MS);
    for (int i = WORKERS; i < MEMBERS; i++)
        stop_member(&s.members[i]);
    int64_t began = steady_ms();
    assert_true(eventually(is_drained, (void *)(uintptr_t)s.t->path, DRAIN_MS));
    print_message("%d kills, %d freezes; drained in %" PRId64 " ms\n", s.kills, s.freezes, steady_ms() - began);
    for (int i = 0; i < WORKERS; i++)
        stop_member(&s.members[i]);
    (void)close(s.log);
    history_judge(s.t->path, s.log_path, LEASE_MS);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(nothing_is_lost_and_nothing_runs_twice, temp_setup, temp_teardown),
};

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
