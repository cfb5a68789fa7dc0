/* crowd_storm.c - crowd storm: handlers that end in every way; crowd ask: a producer. Both tell the log that
 * all processes of the storm share what they do (support/history.h), so that it can be judged at the end.
 *
 * What a handler does follows from its fence: no two claims do the same, and a run can be repeated. */
#include "crowd.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "history.h"
#include "patience.h"

static int storm_log;

static const int64_t soon[] = { 1, 20 };

/* ------------------------------------------------------------------------------- handlers */

static int choose(uint64_t *seed)
{
    uint64_t dice = next_random(seed) % 100;
    return dice < 78   ? PAWL_SUCCEEDED
           : dice < 82 ? PAWL_RETRY
           : dice < 86 ? PAWL_FAILED
           : dice < 91 ? PAWL_SNOOZED
           : dice < 94 ? PAWL_RELEASED
           : dice < 96 ? PAWL_CANCELLED
                       : PAWL_DETACHED;
}

static void *finish(void *arg)
{
    pawl_job *job = arg;
    uint64_t seed = pawl_job_fence(job);
    nap_ms((int64_t)(next_random(&seed) % 20));
    history_end(storm_log, job, PAWL_SUCCEEDED);
    (void)pawl_job_finish(job, PAWL_SUCCEEDED);
    return NULL;
}

static int detach(pawl_job *job)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, finish, job) != 0)
        _exit(4);
    (void)pthread_detach(thread);
    return PAWL_DETACHED;
}

/* Most are short; one in a hundred is there when its process is frozen, and when it goes on; and of those that
 * were tried before, half: so that the late word of a frozen one finds the next one at work. */
static void take_time(uint64_t *seed, bool tried)
{
    uint64_t dice = next_random(seed) % 100;
    if (dice == 0 || (tried && dice < 50))
        nap_ms((int64_t)(300 + next_random(seed) % 1200));
    else if (dice < 15)
        nap_ms((int64_t)(next_random(seed) % 30));
}

static int handle(pawl_job *job, void *arg)
{
    uint64_t seed = pawl_job_fence(job) * 31;
    (void)arg;
    history_start(storm_log, job);
    take_time(&seed, pawl_job_attempt(job) > 1);
    if (next_random(&seed) % 10 == 0)
        history_beat(storm_log, job, pawl_job_heartbeat(job));
    int outcome = choose(&seed);
    if (outcome == PAWL_DETACHED)
        return detach(job);
    if (outcome == PAWL_SNOOZED)
        pawl_job_retry_in(job, (int64_t)(next_random(&seed) % 50));
    if (outcome == PAWL_RETRY)
        pawl_job_error(job, "once more");
    history_end(storm_log, job, outcome);
    return outcome;
}

int crowd_storm(int argc, char **argv)
{
    pawl_pool *pool;
    (void)argc;
    storm_log = crowd_log(argv[3]);
    crowd_must(pawl_open(PAWL_OPTIONS(.store = argv[2], .lease_ms = atoi(argv[4]),
                                      .executors = (uint32_t)atoi(argv[5]), .store_timeout_ms = 20000),
                         &pool), "open");
    crowd_must(pawl_register(pool, "storm", handle, NULL,
                             PAWL_HANDLER(.backoff_ms = soon, .backoff_count = 2)), "register");
    crowd_must(pawl_start(pool), "start");
    crowd_say("ready\n");
    crowd_await("stop");
    crowd_must(pawl_close(pool), "close");
    return 0;
}

/* ------------------------------------------------------------------------------- producers */

typedef struct producer {
    pawl_pool *pool;
    const char *run; /* no other producer has this word in its keys */
    bool async;
    int64_t pause_us;
    size_t bytes_max;
    _Atomic bool *ends;
} producer;

static void told(pawl_status status, int64_t id, void *arg)
{
    history_answer(storm_log, status, id, arg);
    free(arg);
}

static void ask_one(const producer *p, const pawl_job_spec *spec, const char *key)
{
    int64_t id = 0;
    history_ask(storm_log, key);
    if (!p->async) {
        pawl_status st = pawl_enqueue(p->pool, spec, &id);
        history_answer(storm_log, st, id, key);
        return;
    }
    char *copy = strdup(key);
    if (copy == NULL)
        _exit(4);
    pawl_status st = pawl_enqueue_async(p->pool, spec, told, copy);
    if (st == PAWL_OK)
        return;
    history_answer(storm_log, st, 0, key);
    free(copy);
}

static void *produce(void *arg)
{
    const producer *p = arg;
    char *payload = calloc(1, HISTORY_PAYLOAD_BYTES + p->bytes_max);
    if (payload == NULL)
        _exit(4);
    for (uint64_t n = 0; !atomic_load(p->ends); n++) {
        char key[HISTORY_KEY_BYTES];
        uint64_t seed = n;
        (void)snprintf(key, sizeof key, "%s-%c-%" PRIu64, p->run, p->async ? 'a' : 's', n);
        size_t bytes = history_payload(key, payload);
        if (p->bytes_max > 0) { /* a tail that is not looked at, to fill a disk with */
            bytes += next_random(&seed) % p->bytes_max;
            memset(payload + strlen(payload), ' ', bytes - strlen(payload));
        }
        ask_one(p, PAWL_JOB(.kind = "storm", .payload = payload, .payload_bytes = bytes,
                            .idempotency_key = key, .idempotency_key_bytes = strlen(key),
                            .priority = (int32_t)(next_random(&seed) % 3),
                            .delay_ms = next_random(&seed) % 10 == 0 ? 100 : 0,
                            .max_attempts = 1 + (uint32_t)(next_random(&seed) % 5)), key);
        memset(payload, 0, bytes);
        nap_us(p->pause_us);
    }
    free(payload);
    return NULL;
}

/* It serves another queue only; but whom it rescues is to wait as its handler says, and not as the default. */
static int never_called(pawl_job *job, void *arg)
{
    (void)job;
    (void)arg;
    _exit(4);
}

/* Its patience is shorter than somebody who holds the write lock may be frozen: so that the history has calls that
 * were refused. But it has to begin. */
static pawl_pool *begin_to_ask(const char *path)
{
    static const char *const nowhere[] = { "nowhere" };
    pawl_pool *pool;
    pawl_status st;
    do
        st = pawl_open(PAWL_OPTIONS(.store = path, .store_timeout_ms = 2000, .queues = nowhere, .queue_count = 1),
                       &pool);
    while (st == PAWL_ERR_BUSY);
    crowd_must(st, "open");
    crowd_must(pawl_register(pool, "storm", never_called, NULL,
                             PAWL_HANDLER(.backoff_ms = soon, .backoff_count = 2)), "register");
    do
        st = pawl_start(pool); /* for the answers of the asynchronous ones */
    while (st == PAWL_ERR_BUSY);
    crowd_must(st, "start");
    return pool;
}

int crowd_ask(int argc, char **argv)
{
    static _Atomic bool ends;
    pthread_t threads[2];
    (void)argc;
    storm_log = crowd_log(argv[3]);
    pawl_pool *pool = begin_to_ask(argv[2]);
    crowd_say("ready\n");
    producer producers[2];
    for (int i = 0; i < 2; i++) {
        producers[i] = (producer){ pool, argv[4], i == 1, 1000000 / atoi(argv[5]),
                                   (size_t)atoi(argv[6]), &ends };
        if (pthread_create(&threads[i], NULL, produce, &producers[i]) != 0)
            crowd_give_up("thread");
    }
    crowd_await("stop");
    atomic_store(&ends, true);
    for (int i = 0; i < 2; i++)
        (void)pthread_join(threads[i], NULL);
    crowd_must(pawl_close(pool), "close"); /* all are answered */
    return 0;
}
