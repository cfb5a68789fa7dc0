/* many_processes_test.c - eight processes with four executors each, on one file.
 *
 * Goal: every job starts exactly once (I4), whoever enqueued it and whenever: half of them wait before the
 * start, half come from two of the processes while all eight work. The starts are counted in an append-only
 * file beside the database, one write each, and never from the job table. PAWL_TEST_JOBS sets how many; the
 * default is 200 000, and a tenth under a sanitizer. */
#include "check.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "child.h"
#include "look.h"
#include "patience.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define JOBS 20000
#else
#define JOBS 200000
#endif

#define PROCESSES 8
#define PRODUCERS 2
#define LIMIT_MS 300000
#define GROUP 1000

static int64_t jobs_wanted(void)
{
    const char *given = getenv("PAWL_TEST_JOBS");
    int64_t jobs = given != NULL ? strtoll(given, NULL, 10) : JOBS;
    assert_true(jobs >= 4 * GROUP && jobs % (2 * GROUP) == 0);
    return jobs;
}

static void put_before(const temp *t, int64_t jobs)
{
    pawl_job_spec specs[GROUP];
    pawl_pool *pool = open_pool(t, .executors = 1);
    for (int64_t i = 0; i < jobs; i += GROUP) {
        for (int k = 0; k < GROUP; k++)
            specs[k] = *PAWL_JOB(.kind = "count", .payload = &i, .payload_bytes = sizeof i);
        assert_ok(pawl_enqueue_many(pool, specs, GROUP, NULL, NULL));
    }
    assert_ok(pawl_close(pool));
}

static void start_all(const temp *t, const char *log, child *workers, int64_t jobs)
{
    char own[32];
    for (int i = 0; i < PROCESSES; i++) {
        (void)snprintf(own, sizeof own, "%" PRId64, i < PRODUCERS ? jobs / PRODUCERS : 0);
        child_join(&workers[i], (const char *const[]){ "count", t->path, log, "4", own, NULL });
    }
    for (int i = 0; i < PROCESSES; i++)
        assert_true(child_says(&workers[i], "ready", NULL, 0, 60000));
    for (int i = 0; i < PROCESSES; i++)
        child_tell(&workers[i], "go\n");
    for (int i = 0; i < PRODUCERS; i++)
        assert_true(child_says(&workers[i], "enqueued", NULL, 0, LIMIT_MS));
}

static void stop_all(child *workers)
{
    for (int i = 0; i < PROCESSES; i++)
        child_tell(&workers[i], "stop\n");
    for (int i = 0; i < PROCESSES; i++) {
        int status = child_reap(&workers[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        child_close(&workers[i]);
    }
}

static bool none_waits(void *arg)
{
    return sql_ask(arg, "SELECT sum(ready + later + running) FROM pawl_lane") == 0;
}

/* How often each job was started; by its id. */
static int count_starts(const char *log, int64_t jobs, int64_t *most, int64_t *never)
{
    uint64_t record[2];
    int strangers = 0;
    uint32_t *starts = calloc((size_t)jobs + 1, sizeof *starts);
    FILE *file = fopen(log, "re");
    assert_non_null(starts);
    assert_non_null(file);
    while (fread(record, sizeof record, 1, file) == 1)
        if (record[0] >= 1 && record[0] <= (uint64_t)jobs)
            starts[record[0]]++;
        else
            strangers++;
    (void)fclose(file);
    *most = *never = 0;
    for (int64_t i = 1; i <= jobs; i++) {
        *most = starts[i] > *most ? starts[i] : *most;
        *never += starts[i] == 0;
    }
    free(starts);
    return strangers;
}

static void every_job_starts_exactly_once(void **state)
{
    const temp *t = *state;
    child workers[PROCESSES];
    int64_t jobs = jobs_wanted(), most, never;
    const char *log = temp_file(t, "starts");
    put_before(t, jobs / 2);
    int64_t began = steady_ms();
    start_all(t, log, workers, jobs / 2);
    assert_true(eventually(none_waits, (void *)(uintptr_t)t->path, LIMIT_MS));
    int64_t took = steady_ms() - began;
    stop_all(workers);
    print_message("%" PRId64 " jobs in %" PRId64 " ms\n", jobs, took);
    assert_int_equal(count_starts(temp_file(t, "starts"), jobs, &most, &never), 0);
    assert_int_equal(never, 0);
    assert_int_equal(most, 1);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs"), jobs);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status <> 'succeeded'"
                                   " OR attempts <> 1"), 0);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_attempts WHERE charged"), 0);
    assert_counters_are_right(t->path);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pragma_integrity_check"
                                   " WHERE integrity_check <> 'ok'"), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(every_job_starts_exactly_once, temp_setup, temp_teardown),
};

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
