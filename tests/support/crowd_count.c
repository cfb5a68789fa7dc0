/* crowd_count.c - crowd count DB LOG EXECUTORS JOBS: notes each start, and enqueues so many jobs beside.
 *
 * A start is one write of sixteen bytes to an append-only file: the job's id, and its fence. */
#include "crowd.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "patience.h"

#define OPEN_MAX 8000 /* below the channel's bound */

static _Atomic int64_t unanswered;

static int note_start(pawl_job *job, void *arg)
{
    const uint64_t record[2] = { (uint64_t)pawl_job_id(job), pawl_job_fence(job) };
    if (write(*(int *)arg, record, sizeof record) != sizeof record)
        _exit(4); /* a history with a hole proves nothing */
    return PAWL_SUCCEEDED;
}

static void told(pawl_status status, int64_t id, void *arg)
{
    (void)id;
    (void)arg;
    crowd_must(status, "enqueue");
    (void)atomic_fetch_sub(&unanswered, 1);
}

static void enqueue_all(pawl_pool *pool, int64_t jobs)
{
    for (int64_t i = 0; i < jobs; i++) {
        (void)atomic_fetch_add(&unanswered, 1);
        while (atomic_load(&unanswered) > OPEN_MAX)
            nap_ms(1);
        crowd_must(pawl_enqueue_async(pool, PAWL_JOB(.kind = "count", .payload = &i, .payload_bytes = sizeof i),
                                      told, NULL), "enqueue");
    }
    while (atomic_load(&unanswered) > 0)
        nap_ms(1);
}

int crowd_count(int argc, char **argv)
{
    pawl_pool *pool;
    (void)argc;
    int log = crowd_log(argv[3]);
    crowd_must(pawl_open(PAWL_OPTIONS(.store = argv[2], .executors = (uint32_t)atoi(argv[4]),
                                      .store_timeout_ms = 60000, .lease_ms = 600000), &pool), "open");
    crowd_must(pawl_register(pool, "count", note_start, &log, NULL), "register");
    crowd_say("ready\n");
    crowd_await("go");
    crowd_must(pawl_start(pool), "start");
    enqueue_all(pool, strtoll(argv[5], NULL, 10));
    crowd_say("enqueued\n");
    crowd_await("stop");
    crowd_must(pawl_close(pool), "close");
    return 0;
}
