/* guest_fork_test.c - fork and exec around a pool that works: the child is told and harms nobody (R10), and a
 * program that it becomes inherits nothing of ours. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
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

/* A child that hangs is the failure; its signal ends it. */
static void bound_the_child(void)
{
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
    TEST(a_childs_crash_is_not_the_parents),
    TEST(children_of_a_working_process_harm_nothing),
    TEST(a_child_may_open_a_pool_of_its_own),
    TEST(a_program_inherits_nothing),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
