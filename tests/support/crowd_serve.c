/* crowd_serve.c - crowd serve DB LEASE_MS EXECUTORS: handlers that wait for the test.
 *
 * Kinds: "tell" says its start and succeeds. "again" says its start; its first attempt wants to be tried
 * again after a second. "die" kills the process, "freeze" stops it. Those that begin with "late-" say their
 * start, wait for "go", and end as their name says; a "late-heartbeat" then says the heartbeat's status, and waits for
 * "end", so that it takes nobody's "go". Told "numbers" it says "numbers LATE_REFUSED RESCUED". Told "stop"
 * it closes the pool. */
#include "crowd.h"

#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sem_t go, end;

static const int64_t soon[] = { 1 };

static void say_start(const pawl_job *job)
{
    crowd_say("start %s %" PRId64 " %" PRIu32 " %" PRIu64 "\n", pawl_job_kind(job), pawl_job_id(job),
              pawl_job_attempt(job), pawl_job_fence(job));
}

static void await(sem_t *word)
{
    while (sem_wait(word) != 0) {
    }
}

static int tell(pawl_job *job, void *arg)
{
    (void)arg;
    say_start(job);
    return PAWL_SUCCEEDED;
}

static int again(pawl_job *job, void *arg)
{
    (void)arg;
    say_start(job);
    if (pawl_job_attempt(job) > 1)
        return PAWL_SUCCEEDED;
    pawl_job_retry_in(job, 1000);
    return PAWL_RETRY;
}

static int die(pawl_job *job, void *arg)
{
    (void)arg;
    say_start(job);
    (void)kill(getpid(), SIGKILL);
    return PAWL_RETRY;
}

static int freeze(pawl_job *job, void *arg)
{
    (void)arg;
    say_start(job);
    (void)raise(SIGSTOP); /* this thread goes no further */
    return PAWL_SUCCEEDED;
}

static int late(pawl_job *job, void *arg)
{
    say_start(job);
    await(&go);
    if (pawl_job_should_stop(job))
        crowd_say("told %d\n", (int)pawl_job_stop_reason(job));
    pawl_job_error(job, "too late");
    pawl_job_retry_in(job, 1);
    crowd_say("end %s %" PRId64 "\n", pawl_job_kind(job), pawl_job_id(job));
    return *(const int *)arg;
}

static int late_heartbeat(pawl_job *job, void *arg)
{
    (void)arg;
    say_start(job);
    await(&go);
    crowd_say("heartbeat %s\n", pawl_status_name(pawl_job_heartbeat(job)));
    await(&end);
    crowd_say("end %s %" PRId64 "\n", pawl_job_kind(job), pawl_job_id(job));
    return PAWL_SUCCEEDED;
}

static void *finish_late(void *arg)
{
    pawl_job *job = arg;
    await(&go);
    crowd_say("finish %s\n", pawl_status_name(pawl_job_finish(job, PAWL_SUCCEEDED)));
    return NULL;
}

static int late_detached(pawl_job *job, void *arg)
{
    pthread_t thread;
    (void)arg;
    say_start(job);
    if (pthread_create(&thread, NULL, finish_late, job) != 0)
        return PAWL_RETRY;
    (void)pthread_detach(thread);
    return PAWL_DETACHED;
}

static void register_all(pawl_pool *pool)
{
    static const int succeeded = PAWL_SUCCEEDED, failed = PAWL_FAILED, retry = PAWL_RETRY,
                     snoozed = PAWL_SNOOZED, released = PAWL_RELEASED;
    static const struct {
        const char *kind;
        pawl_handler_fn fn;
        const int *outcome;
    } kinds[] = { { "tell", tell, NULL },
                  { "again", again, NULL },
                  { "die", die, NULL },
                  { "freeze", freeze, NULL },
                  { "late-success", late, &succeeded },
                  { "late-failure", late, &failed },
                  { "late-retry", late, &retry },
                  { "late-snooze", late, &snoozed },
                  { "late-release", late, &released },
                  { "late-heartbeat", late_heartbeat, NULL },
                  { "late-detached", late_detached, NULL } };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        crowd_must(pawl_register(pool, kinds[i].kind, kinds[i].fn, (void *)(uintptr_t)kinds[i].outcome,
                                 PAWL_HANDLER(.backoff_ms = soon, .backoff_count = 1)), "register");
}

static void say_numbers(pawl_pool *pool)
{
    pawl_stats_info stats = PAWL_STATS_INIT;
    crowd_must(pawl_stats(pool, &stats), "stats");
    crowd_say("numbers %" PRIu64 " %" PRIu64 "\n", stats.late_refused, stats.rescued);
    pawl_stats_info_clear(&stats);
}

int crowd_serve(int argc, char **argv)
{
    pawl_pool *pool;
    char line[64];
    (void)argc;
    (void)sem_init(&go, 0, 0);
    (void)sem_init(&end, 0, 0);
    crowd_must(pawl_open(PAWL_OPTIONS(.store = argv[2], .lease_ms = atoi(argv[3]),
                                      .executors = (uint32_t)atoi(argv[4])), &pool), "open");
    register_all(pool);
    crowd_must(pawl_start(pool), "start");
    crowd_say("ready\n");
    while (crowd_hear(line, sizeof line) && strcmp(line, "stop") != 0) {
        if (strcmp(line, "go") == 0)
            (void)sem_post(&go);
        else if (strcmp(line, "end") == 0)
            (void)sem_post(&end);
        else if (strcmp(line, "numbers") == 0)
            say_numbers(pool);
    }
    crowd_must(pawl_close(pool), "close");
    crowd_say("closed\n");
    return 0;
}
