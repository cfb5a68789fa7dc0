/* guest_fork_test.c - fork and exec around a pool that works: the child is told and harms nobody (R10), and a
 * program that it becomes inherits nothing of ours. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate.h"
#include "look.h"
#include "pool.h"
#include "patience.h"

#define LONG_MS 20000 /* the test has failed */

/* A child that hangs is the failure; its signal ends it. On a thread of pawl's it would be blocked. */
static void bound_the_child(void)
{
    sigset_t alarm_alone;
    (void)sigemptyset(&alarm_alone);
    (void)sigaddset(&alarm_alone, SIGALRM);
    (void)pthread_sigmask(SIG_UNBLOCK, &alarm_alone, NULL);
    (void)alarm(15);
}

static int exit_code_of(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        print_error("the child was ended by signal %d\n", WTERMSIG(status));
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* ------------------------------------------------------------------------ from a handler */

typedef struct forker {
    gate done;
    _Atomic pid_t child;
    bool goes_on; /* the child returns from the handler as well */
} forker;

static pawl_status apply(void *db, pawl_job *job, void *arg)
{
    (void)db;
    (void)job;
    (void)arg;
    return PAWL_OK;
}

/* The number of the call that did not say it; 0: all did. */
static int ask_as_a_child(pawl_job *job)
{
    int64_t began = steady_ms();
    const pawl_status answers[] = {
        pawl_job_heartbeat(job),
        pawl_job_then(job, PAWL_JOB(.kind = "k")),
        pawl_job_on_success(job, apply, NULL, NULL),
        pawl_enqueue(pawl_job_pool(job), PAWL_JOB(.kind = "k"), NULL),
        pawl_stop(pawl_job_pool(job), 0),
        pawl_close(pawl_job_pool(job)),
        pawl_job_finish(job, PAWL_FAILED),
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        if (answers[i] != PAWL_ERR_FORKED)
            return (int)i + 1;
    return steady_ms() - began < 2000 ? 0 : 100; /* none of them waited */
}

static int fork_inside(pawl_job *job, void *arg)
{
    forker *f = arg;
    pid_t child = fork();
    if (child == 0) {
        bound_the_child();
        if (f->goes_on)
            return PAWL_DETACHED;
        _exit(ask_as_a_child(job));
    }
    atomic_store(&f->child, child);
    gate_add(&f->done, 1);
    return child > 0 ? PAWL_SUCCEEDED : PAWL_FAILED;
}

/* Goal: a child that a handler forks is told by the calls of its job as well, and at once. */
static void a_handlers_child_is_told(void **state)
{
    forker f = { .done = GATE_INIT };
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    assert_ok(pawl_register(pool, "k", fork_inside, &f, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "k");
    assert_true(gate_await(&f.done, 1));
    assert_int_equal(exit_code_of(atomic_load(&f.child)), 0);
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_close(pool));
}

/* Goal: a child that returns from the handler ends, instead of hanging as the half of a pool, and takes no
 * part in the parent's pool. */
static void a_handlers_child_that_returns_ends(void **state)
{
    forker f = { .done = GATE_INIT, .goes_on = true };
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    assert_ok(pawl_register(pool, "k", fork_inside, &f, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "k");
    assert_true(gate_await(&f.done, 1));
    int status = -1;
    assert_int_equal(waitpid(atomic_load(&f.child), &status, 0), atomic_load(&f.child));
    assert_true(WIFEXITED(status)); /* and not by its alarm */
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_close(pool));
}

static int abort_in_a_child(pawl_job *job, void *arg)
{
    forker *f = arg;
    (void)job;
    pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_DUMPABLE, 0); /* no core file */
        abort();
    }
    atomic_store(&f->child, child);
    gate_add(&f->done, 1);
    return child > 0 ? PAWL_SUCCEEDED : PAWL_FAILED;
}

/* Goal: a fatal signal in a child is the child's: it is not noted as the end of the parent's job, nor does it keep
 * the parent's own from being noted. */
static void a_childs_crash_is_not_the_parents(void **state)
{
    forker f = { .done = GATE_INIT };
    int status = 0;
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1, .note_crashes = true);
    assert_ok(pawl_register(pool, "k", abort_in_a_child, &f, NULL));
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "k");
    assert_true(gate_await(&f.done, 1));
    assert_int_equal(waitpid(atomic_load(&f.child), &status, 0), atomic_load(&f.child));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_int_equal(atomic_load(&pool->presence.crash->signal), 0);
    assert_ok(pawl_close(pool));
}

/* -------------------------------------------------------------- from any other function */

/* The functions of one job, of which one forks, once; its child returns from it. */
typedef struct returner {
    pid_t parent;
    gate forked, told;
    _Atomic bool armed;
    _Atomic pid_t child;
    pawl_job *job;
} returner;

#define RETURNER_INIT { .parent = getpid(), .forked = GATE_INIT, .told = GATE_INIT, .armed = true }

static void fork_once(returner *r)
{
    if (!atomic_exchange(&r->armed, false))
        return;
    pid_t child = fork();
    if (child == 0) {
        bound_the_child();
        return;
    }
    atomic_store(&r->child, child);
    gate_add(&r->forked, 1);
}

static pawl_status forking_effect(void *db, pawl_job *job, void *arg)
{
    returner *r = arg;
    (void)job;
    fork_once(r);
    if (getpid() != r->parent)
        return PAWL_OK;
    return sqlite3_exec(db, "INSERT INTO applied VALUES (1)", NULL, NULL, NULL) == SQLITE_OK ? PAWL_OK : PAWL_ERR_STORE;
}

/* Slow enough for the log. */
static pawl_status slow_effect(void *db, pawl_job *job, void *arg)
{
    (void)db;
    (void)job;
    (void)arg;
    nap_ms(80);
    return PAWL_OK;
}

static void forking_drop(void *arg)
{
    fork_once(arg);
}

static int64_t forking_backoff(uint32_t attempt, const char *error, void *arg)
{
    (void)attempt;
    (void)error;
    fork_once(arg);
    return 3600000;
}

static void forking_done(pawl_status status, int64_t id, void *arg)
{
    returner *r = arg;
    (void)id;
    fork_once(r);
    gate_add(&r->told, status == PAWL_OK);
}

static void forking_log(pawl_log_level level, const char *line, void *arg)
{
    (void)level;
    if (strstr(line, "on_success") != NULL)
        fork_once(arg);
}

static pawl_status forking_db_open(void *db, void *arg)
{
    (void)db;
    fork_once(arg);
    return PAWL_OK;
}

static int succeed_by_forking_effect(pawl_job *job, void *arg)
{
    return pawl_job_on_success(job, forking_effect, arg, NULL) == PAWL_OK ? PAWL_SUCCEEDED : PAWL_FAILED;
}

static int succeed_by_forking_drop(pawl_job *job, void *arg)
{
    return pawl_job_on_success(job, apply, arg, forking_drop) == PAWL_OK ? PAWL_SUCCEEDED : PAWL_FAILED;
}

static int succeed_slowly(pawl_job *job, void *arg)
{
    return pawl_job_on_success(job, slow_effect, arg, NULL) == PAWL_OK ? PAWL_SUCCEEDED : PAWL_FAILED;
}

static int retry(pawl_job *job, void *arg)
{
    (void)job;
    (void)arg;
    return PAWL_RETRY;
}

static int detach(pawl_job *job, void *arg)
{
    returner *r = arg;
    r->job = job;
    gate_add(&r->told, 1);
    return PAWL_DETACHED;
}

/* In the child: it should not have come so far. */
static void assert_parent(const returner *r)
{
    if (getpid() != r->parent)
        _exit(1);
}

static void assert_child_ended(returner *r)
{
    assert_parent(r);
    assert_true(gate_await(&r->forked, 1));
    assert_int_equal(exit_code_of(atomic_load(&r->child)), 0);
}

static void serve_returner(pawl_pool *pool, pawl_handler_fn fn, returner *r)
{
    pawl_handler_options options = PAWL_HANDLER_OPTIONS_INIT;
    if (fn == retry || fn == detach) { /* it is asked before an effect, too */
        options.backoff_fn = forking_backoff;
        options.backoff_arg = r;
    }
    assert_ok(pawl_register(pool, "k", fn, r, &options));
    assert_ok(pawl_start(pool));
}

/* The pool is the parent's alone, and works. */
static void assert_works_and_closes(pawl_pool *pool, const temp *t, const returner *r)
{
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    for (int i = 0; i < 20; i++)
        (void)put(pool, .kind = "other");
    assert_ok(pawl_close(pool));
    assert_parent(r);
    char text[16];
    assert_string_equal(look_text(t->path, text, sizeof text, "PRAGMA integrity_check"), "ok");
    assert_counters_are_right(t->path);
}

static void assert_returner_ends(const temp *t, unsigned flags, pawl_handler_fn fn, pawl_state becomes)
{
    returner r = RETURNER_INIT;
    pawl_pool *pool = check_open(PAWL_OPTIONS(.store = t->path, .flags = flags, .executors = 1, .log = forking_log,
                                              .log_arg = &r));
    change(t->path, "CREATE TABLE applied (x)");
    serve_returner(pool, fn, &r);
    int64_t id = put(pool, .kind = "k");
    pawl_status st = pawl_wait_idle(pool, LONG_MS);
    assert_child_ended(&r);
    assert_ok(st);
    assert_int_equal(state_of(pool, id), becomes);
    assert_works_and_closes(pool, t, &r);
    assert_int_equal(look(t->path, "SELECT count(*) FROM applied"), fn == succeed_by_forking_effect);
}

/* Goal: a child that is forked inside of the parent's transaction, and returns there, does not end that beside the
 * parent: it ends itself (R10, I1, I19). */
static void an_effects_child_that_returns_ends(void **state)
{
    assert_returner_ends(*state, 0, succeed_by_forking_effect, PAWL_STATE_SUCCEEDED);
}

static void an_effects_child_ends_in_an_inline_pool(void **state)
{
    assert_returner_ends(*state, PAWL_OPEN_INLINE, succeed_by_forking_effect, PAWL_STATE_SUCCEEDED);
}

static void a_drop_functions_child_that_returns_ends(void **state)
{
    assert_returner_ends(*state, 0, succeed_by_forking_drop, PAWL_STATE_SUCCEEDED);
}

static void a_backoff_functions_child_that_returns_ends(void **state)
{
    assert_returner_ends(*state, 0, retry, PAWL_STATE_PENDING);
}

static void a_log_hooks_child_that_returns_ends(void **state)
{
    assert_returner_ends(*state, 0, succeed_slowly, PAWL_STATE_SUCCEEDED);
}

/* Goal: the child of a callback does not go back into the loop, where it would take the parent's wake-ups. */
static void a_callbacks_child_that_returns_ends(void **state)
{
    temp *t = *state;
    returner r = RETURNER_INIT;
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_start(pool));
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "other"), forking_done, &r));
    assert_child_ended(&r);
    for (int i = 2; i <= 50; i++) {
        assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "other"), forking_done, &r));
        assert_true(gate_await(&r.told, i));
    }
    assert_works_and_closes(pool, t, &r);
}

/* Goal: likewise where the application's own thread calls it. */
static void a_callbacks_child_ends_in_an_inline_pool(void **state)
{
    temp *t = *state;
    returner r = RETURNER_INIT;
    pawl_pool *pool = open_inline(t, .executors = 1);
    assert_ok(pawl_start(pool));
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "other"), forking_done, &r));
    pawl_status st = pawl_run_until_idle(pool);
    assert_child_ended(&r);
    assert_ok(st);
    assert_int_equal(gate_count(&r.told), 1);
    assert_works_and_closes(pool, t, &r);
}

static void a_child_of_db_open_that_returns_ends(void **state)
{
    temp *t = *state;
    returner r = RETURNER_INIT;
    pawl_pool *pool = open_pool(t, .executors = 1, .db_open = forking_db_open, .db_open_arg = &r);
    assert_child_ended(&r);
    assert_ok(pawl_start(pool));
    assert_works_and_closes(pool, t, &r);
}

/* Goal: the child of a handler of an inline pool is told by the very call that ran it. */
static void an_inline_handlers_child_is_told(void **state)
{
    temp *t = *state;
    pid_t parent = getpid();
    forker f = { .done = GATE_INIT, .goes_on = true };
    pawl_pool *pool = open_inline(t, .executors = 1);
    assert_ok(pawl_register(pool, "k", fork_inside, &f, NULL));
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "k");
    pawl_status st = PAWL_OK;
    for (int i = 0; i < 10 && st == PAWL_OK && getpid() == parent; i++)
        st = pawl_step(pool, NULL);
    if (getpid() != parent)
        _exit(st == PAWL_ERR_FORKED && pawl_step(pool, NULL) == PAWL_ERR_FORKED ? 0 : 1);
    assert_ok(st);
    assert_int_equal(exit_code_of(f.child), 0);
    assert_ok(pawl_close(pool));
}

/* Goal: the child of a backoff function that the application's own thread calls, as it finishes a detached job, is
 * told there, and the job is the parent's. */
static void a_finishers_child_is_told(void **state)
{
    temp *t = *state;
    returner r = RETURNER_INIT;
    pawl_pool *pool = open_pool(t, .executors = 1);
    serve_returner(pool, detach, &r);
    int64_t id = put(pool, .kind = "k");
    assert_true(gate_await(&r.told, 1));
    pawl_status st = pawl_job_finish(r.job, PAWL_RETRY);
    if (getpid() != r.parent)
        _exit(st == PAWL_ERR_FORKED && pawl_close(pool) == PAWL_ERR_FORKED ? 0 : 1);
    assert_ok(st);
    assert_child_ended(&r);
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    assert_int_equal(attempts_of(pool, id), 1);
    assert_works_and_closes(pool, t, &r);
}

/* ------------------------------------------------------------ while handlers come and go */

static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
#define FATAL_COUNT (sizeof fatal / sizeof fatal[0])

typedef void (*any_handler)(int, siginfo_t *, void *);

/* How many of them have another handler than that. */
static int count_others(const any_handler *handlers)
{
    int others = 0;
    for (size_t i = 0; i < FATAL_COUNT; i++) {
        struct sigaction now;
        (void)sigaction(fatal[i], NULL, &now);
        others += now.sa_sigaction != handlers[i];
    }
    return others;
}

static _Atomic bool may_end;

/* As pools with note_crashes do that start and stop. */
static void *come_and_go(void *arg)
{
    pawli_crash_note note = { .signal = 0 };
    while (!atomic_load(&may_end)) {
        if (pawli_crash_note_add(&note) != PAWL_OK)
            return NULL;
        pawli_crash_note_remove(&note);
    }
    return arg;
}

static void come_and_go_as_a_child(const any_handler *before)
{
    pawli_crash_note note = { .signal = 0 };
    (void)alarm(10);
    if (pawli_crash_note_add(&note) != PAWL_OK)
        _exit(1);
    if (count_others(before) != FATAL_COUNT)
        _exit(2);
    pawli_crash_note_remove(&note);
    _exit(count_others(before) == 0 ? 0 : 3);
}

/* Goal: a child that is forked while another thread puts the handlers of note_crashes in place, or takes them away,
 * can do so as well, and finds them as they were. */
static void a_child_may_note_crashes_of_its_own(void **state)
{
    any_handler before[FATAL_COUNT];
    pthread_t thread;
    (void)state;
    for (size_t i = 0; i < FATAL_COUNT; i++) {
        struct sigaction now;
        assert_int_equal(sigaction(fatal[i], NULL, &now), 0);
        before[i] = now.sa_sigaction;
    }
    atomic_store(&may_end, false);
    assert_int_equal(pthread_create(&thread, NULL, come_and_go, before), 0);
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            come_and_go_as_a_child(before);
        int answer = exit_code_of(child);
        assert_int_equal(answer, 0);
    }
    void *ended;
    atomic_store(&may_end, true);
    assert_int_equal(pthread_join(thread, &ended), 0);
    assert_non_null(ended);
}

/* ------------------------------------------------------------------------ while all works */

enum { JOBS = 3000, PRODUCERS = 2, CHILDREN = 40 };

typedef struct storm {
    pawl_pool *pool;
    gate ran;
    _Atomic int starts[JOBS];
    _Atomic int next;
    _Atomic int refused;
} storm;

static int count_start(pawl_job *job, void *arg)
{
    storm *s = arg;
    int number = *(const int *)pawl_job_payload(job, NULL);
    (void)atomic_fetch_add(&s->starts[number], 1);
    gate_add(&s->ran, 1);
    return PAWL_SUCCEEDED;
}

static void *produce(void *arg)
{
    storm *s = arg;
    for (int i; (i = atomic_fetch_add(&s->next, 1)) < JOBS;)
        if (pawl_enqueue(s->pool, PAWL_JOB(.kind = "k", .payload = &i, .payload_bytes = sizeof i), NULL) != PAWL_OK)
            (void)atomic_fetch_add(&s->refused, 1);
    return NULL;
}

/* A sanitizer looks for leaks at an exit; in a child everything seems to leak. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LEAVE _exit
#else
#define LEAVE exit
#endif

static void be_a_child(pawl_pool *pool)
{
    bound_the_child();
    bool told = pawl_enqueue(pool, PAWL_JOB(.kind = "k"), NULL) == PAWL_ERR_FORKED
                && pawl_stop(pool, 0) == PAWL_ERR_FORKED && pawl_close(pool) == PAWL_ERR_FORKED;
    LEAVE(told ? 0 : 1);
}

/* Goal: children that are forked while handlers run and the writer writes, and that exit as programs do, take
 * nothing along: each job starts exactly once, and all is in order afterwards (I4, R10). */
static void children_of_a_working_process_harm_nothing(void **state)
{
    static storm s;
    temp *t = *state;
    pthread_t threads[PRODUCERS];
    s = (storm){ .ran = GATE_INIT };
    s.pool = open_pool(t, .executors = 4);
    assert_ok(pawl_register(s.pool, "k", count_start, &s, NULL));
    assert_ok(pawl_start(s.pool));
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, produce, &s), 0);
    for (int i = 0; i < CHILDREN; i++) {
        (void)fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            be_a_child(s.pool);
        assert_int_equal(exit_code_of(child), 0);
    }
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&s.refused), 0);
    assert_true(gate_await(&s.ran, JOBS));
    assert_ok(pawl_wait_idle(s.pool, LONG_MS));
    assert_ok(pawl_close(s.pool));
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(atomic_load(&s.starts[i]), 1);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded' AND attempts = 1"),
                     JOBS);
    assert_counters_are_right(t->path);
}

/* Goal: a child that lives on does not keep the parent's pool alive, nor its file: the parent closes, and a
 * pool of the child's own works on the same file. */
static void a_child_may_open_a_pool_of_its_own(void **state)
{
    temp *t = *state;
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "k");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bound_the_child();
        pawl_pool *own;
        forker f = { .done = GATE_INIT };
        (void)read(ready[0], &byte, 1); /* the parent's pool is closed */
        bool ok = pawl_open(PAWL_OPTIONS(.store = t->path, .flags = PAWL_OPEN_INLINE, .log = check_quiet), &own)
                      == PAWL_OK
                  && pawl_register(own, "k", fork_inside, &f, NULL) == PAWL_OK && pawl_start(own) == PAWL_OK
                  && pawl_run_until_idle(own) == PAWL_OK && waitpid(f.child, NULL, 0) == f.child
                  && pawl_close(own) == PAWL_OK;
        _exit(ok ? 0 : 1);
    }
    assert_ok(pawl_close(pool));
    assert_int_equal(write(ready[1], &byte, 1), 1);
    assert_int_equal(exit_code_of(child), 0);
    (void)close(ready[0]);
    (void)close(ready[1]);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE id = %d AND status = 'succeeded'", (int)id),
                     1);
}

/* ----------------------------------------------------------------------------- another program */

static int spawn_listing(const char *out)
{
    char command[512];
    pid_t child;
    (void)snprintf(command, sizeof command, "ls -l /proc/self/fd/ >'%s'", out);
    char sh[] = "sh", option[] = "-c";
    char *argv[] = { sh, option, command, NULL };
    assert_int_equal(posix_spawn(&child, "/bin/sh", NULL, NULL, argv, environ), 0);
    return exit_code_of(child);
}

/* Goal: a program that the host starts while the pool works gets no descriptor of ours: not the database and
 * its companions, not the side file, nothing of the loop's. */
static void a_program_inherits_nothing(void **state)
{
    temp *t = *state;
    char line[1024];
    const char *listing = temp_file(t, "listing.txt");
    pawl_pool *pool = open_pool(t, .executors = 2);
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "k");
    pawl_stats_info stats = stats_of(pool); /* a reader's connection */
    pawl_stats_info_clear(&stats);
    assert_int_equal(spawn_listing(listing), 0);
    FILE *file = fopen(listing, "re");
    assert_non_null(file);
    int lines = 0;
    for (; fgets(line, sizeof line, file) != NULL; lines++) {
        bool ours = strstr(line, "jobs.db") != NULL || strstr(line, "eventpoll") != NULL
                    || strstr(line, "eventfd") != NULL || strstr(line, "inotify") != NULL
                    || strstr(line, "pidfd") != NULL;
        if (ours)
            print_error("inherited: %s", line);
        assert_false(ours);
    }
    assert_true(lines >= 4); /* it is a listing */
    (void)fclose(file);
    assert_ok(pawl_close(pool));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    TEST(a_handlers_child_is_told),
    TEST(a_handlers_child_that_returns_ends),
    TEST(an_effects_child_that_returns_ends),
    TEST(an_effects_child_ends_in_an_inline_pool),
    TEST(a_drop_functions_child_that_returns_ends),
    TEST(a_backoff_functions_child_that_returns_ends),
    TEST(a_log_hooks_child_that_returns_ends),
    TEST(a_callbacks_child_that_returns_ends),
    TEST(a_callbacks_child_ends_in_an_inline_pool),
    TEST(a_child_of_db_open_that_returns_ends),
    TEST(an_inline_handlers_child_is_told),
    TEST(a_finishers_child_is_told),
    TEST(a_childs_crash_is_not_the_parents),
    TEST(a_child_may_note_crashes_of_its_own),
    TEST(children_of_a_working_process_harm_nothing),
    TEST(a_child_may_open_a_pool_of_its_own),
    TEST(a_program_inherits_nothing),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
