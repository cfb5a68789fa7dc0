/* crash_note_test.c - who is charged when a process dies, and what a process with note_crashes keeps of its own.
 *
 * Goal: with a note the culprit alone is charged, and its last_error names the signal; neighbours keep their attempts
 * and are due at once; a job that kills its process each time is started exactly max_attempts times (I9). Without a
 * note all that ran are charged. And the process dies as it would have died without, its own handlers are called, and
 * its dispositions are what they were (G1). The processes that crash are of support/crasher.c; where this suite is
 * built with a sanitizer, that one's own handlers are switched off in them. */
#include "check.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "look.h"
#include "patience.h"

#define READY_MS 20000 /* for a slow machine under a sanitizer */

static const temp *of(void **state)
{
    return *state;
}

static void put_jobs(const temp *t, const char *kind, int count, uint32_t max_attempts)
{
    pawl_pool *pool = open_pool(t, .executors = 1);
    for (int i = 0; i < count; i++)
        (void)put(pool, .kind = kind, .max_attempts = max_attempts);
    assert_ok(pawl_close(pool));
}

static void start_crasher(child *c, const temp *t, const char *notes, const char *neighbours, const char *host)
{
    child_start_program(c, PAWL_TEST_CRASHER,
                        (const char *const[]){ t->path, notes, "4", neighbours, host, NULL });
}

static bool none_runs(void *arg)
{
    const temp *t = arg;
    return look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'running'") == 0;
}

/* By a pool that can rescue, and start nothing. */
static void rescue(const temp *t)
{
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_start(pool));
    assert_true(eventually(none_runs, (void *)(uintptr_t)t, 5000));
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
}

static int64_t attempts(const temp *t, const char *kind)
{
    return look(t->path, "SELECT ifnull(sum(attempts), -1) FROM pawl_jobs WHERE kind = '%s'", kind);
}

static void assert_error(const temp *t, const char *kind, const char *part)
{
    char text[256];
    assert_text_has(look_text(t->path, text, sizeof text, "SELECT last_error FROM pawl_jobs WHERE kind = '%s'"
                                                          " ORDER BY id LIMIT 1", kind), part);
}

static void assert_neighbours_are_not_charged(const temp *t, int count)
{
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_job j JOIN pawl_kind k ON k.id = j.kind"
                                   " WHERE k.name = 'beside' AND j.attempts = 0 AND j.status = 2"
                                   " AND j.available_at <= j.updated_at"), count);
}

static void await_neighbours(child *c, int count)
{
    for (int i = 0; i < count; i++)
        assert_true(child_says(c, "start beside", NULL, 0, READY_MS));
}

/* Its wait status, once it is dead; a crasher that does not die of itself is killed, and answers so. */
static int death_of(child *c)
{
    char line[64];
    while (child_line(c, line, sizeof line, 5000)) { /* to the end of what it says */
    }
    int status = 0;
    int64_t until = steady_ms() + 3000;
    while (waitpid(c->pid, &status, WNOHANG) == 0) {
        if (steady_ms() > until) {
            child_kill(c);
            fail_msg("the process lives on");
        }
        nap_ms(2);
    }
    c->pid = 0;
    child_close(c);
    return status;
}

static void assert_dies_of(child *c, int signal_number)
{
    int status = death_of(c);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), signal_number);
}

/* ------------------------------------------------------------------------- the culprit known */

static void assert_culprit_alone_is_charged(const temp *t, const char *notes, const char *kind, int signal_number,
                                            const char *name)
{
    child c;
    put_jobs(t, "beside", 3, 5);
    put_jobs(t, kind, 1, 5);
    start_crasher(&c, t, notes, "3", "");
    assert_dies_of(&c, signal_number);
    rescue(t);
    assert_int_equal(attempts(t, kind), 1);
    assert_error(t, kind, name);
    assert_error(t, kind, "in this job's handler");
    assert_neighbours_are_not_charged(t, 3);
}

#define CULPRIT(kind, signal_number, name)                                                          \
    static void culprit_by_##kind(void **state)                                                     \
    {                                                                                               \
        assert_culprit_alone_is_charged(of(state), "1", #kind, signal_number, name);                \
    }
CULPRIT(null, SIGSEGV, "SIGSEGV")
CULPRIT(abort, SIGABRT, "SIGABRT")
CULPRIT(division, SIGFPE, "SIGFPE")
CULPRIT(file, SIGBUS, "SIGBUS")
CULPRIT(stack, SIGSEGV, "SIGSEGV")
CULPRIT(raise, SIGSEGV, "SIGSEGV")
CULPRIT(breakpoint, SIGTRAP, "SIGTRAP")
CULPRIT(illegal, SIGILL, "SIGILL")

/* The other pool of that process has nothing to do with it. */
static void culprit_among_two_pools(void **state)
{
    assert_culprit_alone_is_charged(of(state), "2", "null", SIGSEGV, "SIGSEGV");
}

/* Nor has what the other pool runs on a thread of the application: the culprit is known, if not to that pool. */
static void a_detached_job_of_the_other_pool_is_not_charged(void **state)
{
    const temp *t = of(state);
    child c;
    put_jobs(t, "apart", 1, 5);
    put_jobs(t, "null", 1, 5);
    start_crasher(&c, t, "2", "1", "");
    assert_dies_of(&c, SIGSEGV);
    rescue(t);
    assert_int_equal(attempts(t, "null"), 1);
    assert_error(t, "null", "SIGSEGV in this job's handler");
    assert_int_equal(attempts(t, "apart"), 0);
    assert_error(t, "apart", "SIGSEGV in another job's handler");
}

static bool has_failed(const temp *t, const char *kind)
{
    return look(t->path, "SELECT count(*) FROM pawl_jobs WHERE kind = '%s' AND status = 'failed'", kind) == 1;
}

static bool all_run(const temp *t, const char *kind)
{
    return look(t->path, "SELECT count(*) FROM pawl_jobs WHERE kind = '%s' AND status <> 'running'", kind) == 0;
}

static bool is_alive(const child *c)
{
    siginfo_t info = { .si_pid = 0 };
    return waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

/* Starts the process again and again, as whoever looks after it would. How often was a job of the kind started? */
static int crash_until_it_fails(const temp *t, const char *notes, const char *neighbours, const char *kind, int limit)
{
    char line[128] = "", start[64];
    int starts = 0;
    (void)snprintf(start, sizeof start, "start %s ", kind);
    for (int i = 0; i < limit && !has_failed(t, kind); i++) {
        child c;
        start_crasher(&c, t, notes, neighbours, "");
        /* The last one finds it failed and lives on: the neighbours may end. */
        bool told = false;
        while (child_line(&c, line, sizeof line, told ? READY_MS : 300) || (!told && is_alive(&c))) {
            starts += strncmp(line, start, strlen(start)) == 0;
            line[0] = '\0';
            if (!told && has_failed(t, kind) && all_run(t, "beside")) {
                child_tell(&c, "go\nstop\n");
                told = true;
            }
        }
        (void)child_reap(&c);
        child_close(&c);
    }
    return starts;
}

/* Goal: three that run beside it each time finish in the end, without a charge. */
static void a_killer_fails_and_its_neighbours_finish(void **state)
{
    const temp *t = of(state);
    put_jobs(t, "null", 1, 4);
    put_jobs(t, "beside", 3, 2);
    assert_int_equal(crash_until_it_fails(t, "1", "3", "null", 10), 4);
    assert_int_equal(attempts(t, "null"), 4);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE kind = 'beside' AND status = 'succeeded'"), 3);
    assert_int_equal(attempts(t, "beside"), 3); /* the one that succeeded, each */
    assert_counters_are_right(t->path);
}

/* Goal: there is time between the deaths: the first is due at once, from the second on it waits (I9). */
static void a_killer_waits_between_its_deaths(void **state)
{
    const temp *t = of(state);
    put_jobs(t, "null", 1, 5);
    for (int i = 1; i <= 2; i++) {
        child c;
        start_crasher(&c, t, "1", "0", "");
        assert_dies_of(&c, SIGSEGV);
        rescue(t); /* its pool has the default backoff */
        assert_int_equal(look(t->path, "SELECT available_at > updated_at FROM pawl_job"), i - 1);
        change(t->path, "UPDATE pawl_job SET available_at = 1 WHERE status = 8");
    }
}

static void assert_deadly(const temp *t, const char *notes, const char *kind)
{
    put_jobs(t, kind, 1, 3);
    assert_int_equal(crash_until_it_fails(t, notes, "0", kind, 8), 3);
    assert_int_equal(attempts(t, kind), 3);
    assert_error(t, kind, notes[0] == '1' ? "SIGSEGV" : "its process died");
    assert_counters_are_right(t->path);
}

static void a_deadly_effect_with_notes(void **state)
{
    assert_deadly(of(state), "1", "effect");
}

static void a_deadly_effect_without(void **state)
{
    assert_deadly(of(state), "0", "effect");
}

static void a_deadly_backoff_with_notes(void **state)
{
    assert_deadly(of(state), "1", "backoff");
}

static void a_deadly_backoff_without(void **state)
{
    assert_deadly(of(state), "0", "backoff");
}

static void assert_neighbours_survive(const temp *t, const char *kind)
{
    child c;
    put_jobs(t, "beside", 3, 5);
    put_jobs(t, kind, 1, 5);
    start_crasher(&c, t, "1", "3", "");
    assert_dies_of(&c, SIGSEGV);
    rescue(t);
    assert_int_equal(attempts(t, kind), 1);
    assert_neighbours_are_not_charged(t, 3);
}

static void an_effect_is_the_culprit_alone(void **state)
{
    assert_neighbours_survive(of(state), "effect");
}

static void a_backoff_is_the_culprit_alone(void **state)
{
    assert_neighbours_survive(of(state), "backoff");
}

/* ---------------------------------------------------------------------- the culprit not known */

static void assert_all_are_charged(const temp *t, const char *notes, const char *kind, int signal_number)
{
    child c;
    put_jobs(t, "beside", 3, 5);
    put_jobs(t, kind, 1, 5);
    start_crasher(&c, t, notes, "3", "");
    assert_dies_of(&c, signal_number);
    rescue(t);
    assert_int_equal(attempts(t, kind), 1);
    assert_int_equal(attempts(t, "beside"), 3);
    assert_error(t, kind, "its process died");
}

static void without_notes_all_are_charged(void **state)
{
    assert_all_are_charged(of(state), "0", "null", SIGSEGV);
}

static void nothing_is_noted_of_a_kill(void **state)
{
    assert_all_are_charged(of(state), "1", "kill", SIGKILL);
}

/* On a thread that runs no job: those that run on the pool's threads have nothing to do with it; a detached one may. */
static void assert_bystanders(const temp *t, const char *word, int sent)
{
    child c;
    put_jobs(t, "beside", 3, 5);
    put_jobs(t, "detached", 1, 5);
    start_crasher(&c, t, "1", "3", "");
    for (int i = 0; i < 4; i++)
        assert_true(child_says(&c, "start", NULL, 0, READY_MS));
    nap_ms(50); /* a handler that detaches returns just after it has said so */
    if (word != NULL)
        child_tell(&c, word);
    else
        child_signal(&c, sent);
    assert_dies_of(&c, SIGSEGV);
    rescue(t);
    assert_neighbours_are_not_charged(t, 3);
    assert_int_equal(attempts(t, "detached"), 1);
    assert_error(t, "detached", "SIGSEGV outside of the handlers");
}

static void a_crash_of_the_applications_own_thread(void **state)
{
    assert_bystanders(of(state), "null\n", 0);
}

static void a_signal_from_outside(void **state)
{
    assert_bystanders(of(state), NULL, SIGSEGV);
}

/* Such a signal comes on any thread, so that the job that it meets there has nothing to do with it. */
static void a_signal_to_the_process_that_comes_on_a_jobs_thread(void **state)
{
    const temp *t = of(state);
    child c;
    put_jobs(t, "beside", 3, 5);
    put_jobs(t, "queued", 1, 5);
    start_crasher(&c, t, "1", "3", "");
    assert_dies_of(&c, SIGSEGV);
    rescue(t);
    assert_neighbours_are_not_charged(t, 3);
    assert_int_equal(attempts(t, "queued"), 0);
    assert_error(t, "queued", "SIGSEGV outside of the handlers");
}

/* ------------------------------------------------------------------- what was survived */

/* Three neighbours run; the process is killed with SIGKILL: nobody is known to be the culprit. */
static void assert_a_kill_is_a_kill(child *c, const temp *t)
{
    char text[128];
    child_kill(c);
    child_close(c);
    rescue(t);
    assert_int_equal(attempts(t, "beside"), 3);
    look_text(t->path, text, sizeof text, "SELECT DISTINCT last_error FROM pawl_jobs WHERE kind = 'beside'");
    assert_string_equal(text, "its process died");
}

static void survive_on_main(child *c, const temp *t, const char *notes, const char *host, const char *word,
                            const char *answer)
{
    put_jobs(t, "beside", 3, 5);
    start_crasher(c, t, notes, "3", host);
    await_neighbours(c, 3);
    child_tell(c, word);
    assert_true(child_says(c, answer, NULL, 0, READY_MS));
}

static void a_fault_that_was_mended_in_a_job(void **state)
{
    const temp *t = of(state);
    child c;
    put_jobs(t, "page", 1, 5);
    put_jobs(t, "beside", 3, 5);
    start_crasher(&c, t, "1", "3", "mend");
    await_neighbours(&c, 3);
    assert_true(child_says(&c, "start page", NULL, 0, READY_MS));
    nap_ms(50); /* the end of the job is written */
    assert_a_kill_is_a_kill(&c, t);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"), 1);
}

static void a_fault_that_was_mended_elsewhere(void **state)
{
    child c;
    survive_on_main(&c, of(state), "1", "mend", "page\n", "lives");
    assert_a_kill_is_a_kill(&c, of(state));
}

static void a_crash_of_a_forked_child(void **state)
{
    child c;
    survive_on_main(&c, of(state), "1", "", "fork\n", "child 11");
    assert_a_kill_is_a_kill(&c, of(state));
}

static void a_crash_of_a_child_that_a_job_forked(void **state)
{
    const temp *t = of(state);
    char text[128];
    child c;
    put_jobs(t, "fork", 1, 5);
    put_jobs(t, "beside", 3, 5);
    start_crasher(&c, t, "1", "4", "");
    await_neighbours(&c, 3);
    (void)child_says(&c, "child 11", NULL, 0, 1000); /* it may have said so among the neighbours */
    assert_a_kill_is_a_kill(&c, t);
    assert_int_equal(attempts(t, "fork"), 1);
    look_text(t->path, text, sizeof text, "SELECT last_error FROM pawl_jobs WHERE kind = 'fork'");
    assert_string_equal(text, "its process died");
}

/* Goal: a note of what was survived is not in the way of the one that matters. */
static void assert_the_next_note_is_right(const temp *t, const char *host, const char *word, const char *answer)
{
    child c;
    survive_on_main(&c, t, "1", host, word, answer);
    put_jobs(t, "abort", 1, 5);
    assert_dies_of(&c, SIGABRT);
    rescue(t);
    assert_int_equal(attempts(t, "abort"), 1);
    assert_error(t, "abort", "SIGABRT in this job's handler");
    assert_neighbours_are_not_charged(t, 3);
}

static void a_crash_after_one_that_was_mended(void **state)
{
    assert_the_next_note_is_right(of(state), "mend", "page\n", "lives");
}

static void a_crash_after_one_that_was_jumped_out_of(void **state)
{
    assert_the_next_note_is_right(of(state), "jump", "null\n", "lives");
}

static void a_crash_after_one_of_a_child(void **state)
{
    assert_the_next_note_is_right(of(state), "", "fork\n", "child 11");
}

/* Goal: what is mended on one thread does not unsay what another has crashed of, while that one's handler is still
 * busy with it. */
static void a_fault_that_is_mended_beside_a_crash(void **state)
{
    const temp *t = of(state);
    child c;
    put_jobs(t, "beside", 3, 5);
    put_jobs(t, "null", 1, 5);
    start_crasher(&c, t, "1", "3", "linger");
    assert_true(child_says(&c, "handler", NULL, 0, READY_MS));
    child_tell(&c, "page\n");
    assert_true(child_says(&c, "lives", NULL, 0, READY_MS));
    child_kill(&c);
    child_close(&c);
    rescue(t);
    assert_int_equal(attempts(t, "null"), 1);
    assert_error(t, "null", "SIGSEGV in this job's handler");
    assert_neighbours_are_not_charged(t, 3);
}

static bool has_succeeded(void *arg)
{
    const temp *t = arg;
    return look(t->path, "SELECT count(*) FROM pawl_jobs WHERE kind = 'page' AND status = 'succeeded'") == 1;
}

static void a_fault_that_is_mended_in_a_job_beside_a_crash(void **state)
{
    const temp *t = of(state);
    child c;
    put_jobs(t, "beside", 2, 5);
    put_jobs(t, "null", 1, 5);
    start_crasher(&c, t, "1", "2", "linger");
    assert_true(child_says(&c, "handler", NULL, 0, READY_MS));
    put_jobs(t, "page", 1, 5);
    assert_true(eventually(has_succeeded, (void *)(uintptr_t)t, READY_MS));
    child_kill(&c);
    child_close(&c);
    rescue(t);
    assert_int_equal(attempts(t, "null"), 1);
    assert_error(t, "null", "SIGSEGV in this job's handler");
    assert_neighbours_are_not_charged(t, 2);
}

/* A job goes on after a fault that its host's handler has jumped out of; then another one kills the process. */
static void a_crash_beside_a_job_that_was_jumped_out_of(void **state)
{
    const temp *t = of(state);
    child c;
    put_jobs(t, "jumps", 1, 5);
    start_crasher(&c, t, "1", "1", "jump");
    assert_true(child_says(&c, "start jumps", NULL, 0, READY_MS));
    put_jobs(t, "abort", 1, 5);
    assert_dies_of(&c, SIGABRT);
    rescue(t);
    assert_int_equal(attempts(t, "abort"), 1);
    assert_error(t, "abort", "SIGABRT in this job's handler");
    assert_int_equal(attempts(t, "jumps"), 0);
}

/* ----------------------------------------------------------------- the application's handlers */

/* Returns the wait status; counts how often the host's handler spoke. */
static int crash_with_host(const temp *t, const char *host, const char *kind, int *calls)
{
    char line[64];
    child c;
    put_jobs(t, "beside", 3, 5);
    put_jobs(t, kind, 1, 5);
    start_crasher(&c, t, "1", "3", host);
    *calls = 0;
    while (child_line(&c, line, sizeof line, 3000))
        *calls += strcmp(line, "handler") == 0;
    int status = death_of(&c);
    rescue(t);
    assert_int_equal(attempts(t, kind), 1);
    assert_error(t, kind, "SIGSEGV in this job's handler");
    assert_neighbours_are_not_charged(t, 3);
    return status;
}

static void a_host_that_exits(void **state)
{
    int calls;
    int status = crash_with_host(of(state), "leave", "null", &calls);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

#define HOST(name, kind)                                                                            \
    static void a_host_of_kind_##name##_for_##kind(void **state)                                    \
    {                                                                                               \
        int calls;                                                                                  \
        int status = crash_with_host(of(state), #name, #kind, &calls);                              \
        assert_int_equal(calls, 1);                                                                 \
        assert_true(WIFSIGNALED(status));                                                           \
        assert_int_equal(WTERMSIG(status), SIGSEGV);                                                \
    }
HOST(once, null)
HOST(simple, null)
HOST(chain, null)
HOST(note, null)
HOST(chain, raise)

/* Goal: a crash reporter that ends the process from elsewhere does not talk the culprit out of it. */
static void assert_the_culprit_stays(const temp *t, const char *host)
{
    int calls;
    int status = crash_with_host(t, host, "null", &calls);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void a_host_that_ends_by_another_signal(void **state)
{
    assert_the_culprit_stays(of(state), "report");
}

static void a_host_whose_thread_aborts(void **state)
{
    assert_the_culprit_stays(of(state), "reporter");
}

/* Goal: while it runs, that is blocked which it asked for, and no more. */
static void a_host_with_a_mask_of_its_own(void **state)
{
    const temp *t = of(state);
    child c;
    put_jobs(t, "null", 1, 5);
    start_crasher(&c, t, "1", "0", "mask");
    assert_true(child_says(&c, "its own mask", NULL, 0, READY_MS));
    assert_dies_of(&c, SIGSEGV);
}

/* SIGSEGV that is sent to a process that ignores it does nothing. */
static void what_was_ignored_stays_ignored(void **state)
{
    const temp *t = of(state);
    child c;
    put_jobs(t, "raise", 1, 5);
    start_crasher(&c, t, "1", "0", "ignore");
    assert_true(child_says(&c, "start raise", NULL, 0, READY_MS));
    child_tell(&c, "raise\n");
    assert_true(child_says(&c, "lives", NULL, 0, READY_MS));
    child_signal(&c, SIGSEGV);
    child_tell(&c, "stop\n");
    assert_int_equal(child_reap(&c), 0);
    child_close(&c);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"), 1);
}

static void a_pool_comes_and_goes_among_mended_faults(void **state)
{
    child c;
    start_crasher(&c, of(state), "1", "0", "mend");
    assert_true(child_says(&c, "ready", NULL, 0, READY_MS));
    child_tell(&c, "storm\n");
    if (!child_says(&c, "lives", NULL, 0, 3 * READY_MS))
        fail_msg("the process died: %x", (unsigned)death_of(&c));
    child_close(&c);
}

/* ------------------------------------------------------------------------------ dispositions */

static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
#define FATAL_COUNT (sizeof fatal / sizeof fatal[0])

typedef struct dispositions {
    struct sigaction all[FATAL_COUNT];
} dispositions;

static dispositions dispositions_now(void)
{
    dispositions d;
    memset(&d, 0, sizeof d);
    for (size_t i = 0; i < FATAL_COUNT; i++)
        assert_int_equal(sigaction(fatal[i], NULL, &d.all[i]), 0);
    return d;
}

#define SET_BY_LIBC 0x04000000 /* SA_RESTORER, once a disposition has been set */

static bool is_same(const dispositions *a, const dispositions *b, size_t i)
{
    const struct sigaction *x = &a->all[i], *y = &b->all[i];
    if (x->sa_handler == SIG_DFL && y->sa_handler == SIG_DFL)
        return true; /* then the rest says nothing */
    bool same = (x->sa_flags | SET_BY_LIBC) == (y->sa_flags | SET_BY_LIBC) && x->sa_sigaction == y->sa_sigaction;
    for (int signal_number = 1; signal_number < SIGRTMAX; signal_number++)
        same = same && sigismember(&x->sa_mask, signal_number) == sigismember(&y->sa_mask, signal_number);
    return same;
}

static void assert_same(const dispositions *a, const dispositions *b)
{
    for (size_t i = 0; i < FATAL_COUNT; i++) {
        if (!is_same(a, b, i))
            print_error("signal %d: flags %x, now %x\n", fatal[i], (unsigned)a->all[i].sa_flags,
                        (unsigned)b->all[i].sa_flags);
        assert_true(is_same(a, b, i));
    }
}

static void nothing(int signal_number)
{
    (void)signal_number;
}

/* The host's handler for one of them, with a mask and flags of its own. */
static void set_own(struct sigaction *before)
{
    struct sigaction own = { .sa_handler = nothing, .sa_flags = SA_RESTART | SA_NODEFER };
    (void)sigemptyset(&own.sa_mask);
    (void)sigaddset(&own.sa_mask, SIGUSR1);
    assert_int_equal(sigaction(SIGTRAP, &own, before), 0);
}

static void without_notes_nothing_is_changed(void **state)
{
    dispositions before = dispositions_now();
    pawl_pool *pool = open_pool(of(state), .executors = 1);
    assert_ok(pawl_start(pool));
    dispositions now = dispositions_now();
    assert_same(&before, &now);
    assert_ok(pawl_close(pool));
}

static void dispositions_come_back(void **state)
{
    const temp *t = of(state);
    struct sigaction trap;
    set_own(&trap);
    dispositions before = dispositions_now();
    pawl_pool *pool = open_pool(t, .executors = 1, .note_crashes = true);
    pawl_pool *second = open_pool(t, .executors = 1, .note_crashes = true);
    for (int i = 0; i < 100; i++) {
        assert_ok(pawl_start(pool));
        dispositions now = dispositions_now();
        for (size_t k = 0; k < FATAL_COUNT; k++)
            assert_false(is_same(&before, &now, k));
        if (i % 10 == 0) { /* the last one takes them away */
            assert_ok(pawl_start(second));
            assert_ok(pawl_stop(pool, 0));
            dispositions still = dispositions_now();
            assert_same(&now, &still);
            assert_ok(pawl_stop(second, 0));
        }
        assert_ok(pawl_stop(pool, 0));
        now = dispositions_now();
        assert_same(&before, &now);
    }
    assert_ok(pawl_close(pool));
    assert_ok(pawl_close(second));
    assert_int_equal(sigaction(SIGTRAP, &trap, NULL), 0);
}

/* Goal: of what was there at an earlier start nothing is remembered, be it that only the mask has changed since. */
static void a_changed_mask_comes_back(void **state)
{
    struct sigaction trap, own;
    pawl_pool *pool = open_pool(of(state), .executors = 1, .note_crashes = true);
    set_own(&trap);
    assert_ok(pawl_start(pool));
    assert_ok(pawl_stop(pool, 0));
    assert_int_equal(sigaction(SIGTRAP, NULL, &own), 0);
    (void)sigaddset(&own.sa_mask, SIGUSR2);
    assert_int_equal(sigaction(SIGTRAP, &own, NULL), 0);
    dispositions before = dispositions_now();
    assert_ok(pawl_start(pool));
    assert_ok(pawl_stop(pool, 0));
    dispositions now = dispositions_now();
    assert_same(&before, &now);
    assert_int_equal(sigaction(SIGTRAP, &trap, NULL), 0);
    assert_ok(pawl_close(pool));
}

/* What the host has put there since is its own. */
static void a_later_handler_is_left_alone(void **state)
{
    const temp *t = of(state);
    dispositions before = dispositions_now();
    pawl_pool *pool = open_pool(t, .executors = 1, .note_crashes = true);
    struct sigaction ours;
    assert_ok(pawl_start(pool));
    set_own(&ours);
    dispositions own = dispositions_now();
    assert_ok(pawl_stop(pool, 0));
    dispositions now = dispositions_now();
    for (size_t i = 0; i < FATAL_COUNT; i++)
        assert_true(is_same(fatal[i] == SIGTRAP ? &own : &before, &now, i));
    assert_ok(pawl_start(pool));
    assert_ok(pawl_stop(pool, 0));
    now = dispositions_now();
    for (size_t i = 0; i < FATAL_COUNT; i++)
        assert_true(is_same(fatal[i] == SIGTRAP ? &own : &before, &now, i));
    assert_int_equal(sigaction(SIGTRAP, &ours, NULL), 0); /* as it found it: it called ours, perhaps */
    assert_ok(pawl_start(pool));
    assert_ok(pawl_stop(pool, 0));
    now = dispositions_now();
    assert_same(&before, &now);
    assert_ok(pawl_close(pool));
}

/* It may be called whether or not there is anything to note. */
static void a_note_without_pools_is_nothing(void **state)
{
    const temp *t = of(state);
    pawl_note_crash(SIGSEGV);
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_start(pool));
    pawl_note_crash(SIGSEGV);
    assert_ok(pawl_close(pool));
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    in_a_directory(culprit_by_null),
    in_a_directory(culprit_by_abort),
    in_a_directory(culprit_by_division),
    in_a_directory(culprit_by_file),
    in_a_directory(culprit_by_stack),
    in_a_directory(culprit_by_raise),
    in_a_directory(culprit_by_breakpoint),
    in_a_directory(culprit_by_illegal),
    in_a_directory(culprit_among_two_pools),
    in_a_directory(a_detached_job_of_the_other_pool_is_not_charged),
    in_a_directory(a_killer_fails_and_its_neighbours_finish),
    in_a_directory(a_killer_waits_between_its_deaths),
    in_a_directory(a_deadly_effect_with_notes),
    in_a_directory(a_deadly_effect_without),
    in_a_directory(a_deadly_backoff_with_notes),
    in_a_directory(a_deadly_backoff_without),
    in_a_directory(an_effect_is_the_culprit_alone),
    in_a_directory(a_backoff_is_the_culprit_alone),
    in_a_directory(without_notes_all_are_charged),
    in_a_directory(nothing_is_noted_of_a_kill),
    in_a_directory(a_crash_of_the_applications_own_thread),
    in_a_directory(a_signal_from_outside),
    in_a_directory(a_signal_to_the_process_that_comes_on_a_jobs_thread),
    in_a_directory(a_fault_that_was_mended_in_a_job),
    in_a_directory(a_fault_that_was_mended_elsewhere),
    in_a_directory(a_crash_of_a_forked_child),
    in_a_directory(a_crash_of_a_child_that_a_job_forked),
    in_a_directory(a_crash_after_one_that_was_mended),
    in_a_directory(a_crash_after_one_that_was_jumped_out_of),
    in_a_directory(a_crash_after_one_of_a_child),
    in_a_directory(a_fault_that_is_mended_beside_a_crash),
    in_a_directory(a_fault_that_is_mended_in_a_job_beside_a_crash),
    in_a_directory(a_crash_beside_a_job_that_was_jumped_out_of),
    in_a_directory(a_host_that_exits),
    in_a_directory(a_host_that_ends_by_another_signal),
    in_a_directory(a_host_whose_thread_aborts),
    in_a_directory(a_host_with_a_mask_of_its_own),
    in_a_directory(a_host_of_kind_once_for_null),
    in_a_directory(a_host_of_kind_simple_for_null),
    in_a_directory(a_host_of_kind_chain_for_null),
    in_a_directory(a_host_of_kind_note_for_null),
    in_a_directory(a_host_of_kind_chain_for_raise),
    in_a_directory(what_was_ignored_stays_ignored),
    in_a_directory(a_pool_comes_and_goes_among_mended_faults),
    in_a_directory(without_notes_nothing_is_changed),
    in_a_directory(dispositions_come_back),
    in_a_directory(a_changed_mask_comes_back),
    in_a_directory(a_later_handler_is_left_alone),
    in_a_directory(a_note_without_pools_is_nothing),
};

/* The children's: a sanitizer's handlers are not what is looked at here. */
static void switch_off(const char *variable)
{
    char value[1024];
    const char *given = getenv(variable);
    (void)snprintf(value, sizeof value,
                   "%s:handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0:handle_sigill=0:handle_sigtrap=0"
                   ":use_sigaltstack=0:detect_leaks=0:die_after_fork=0:report_signal_unsafe=0",
                   given != NULL ? given : "");
    (void)setenv(variable, value, 1);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    switch_off("ASAN_OPTIONS");
    switch_off("TSAN_OPTIONS");
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    return cmocka_run_group_tests(tests, NULL, NULL);
}
