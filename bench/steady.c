/* steady.c - one thread enqueues without waiting while the executors work: the usual state of a pool that
 * keeps up. A full channel makes the producer wait, for an answer and not for a while. */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct gate {
    _Atomic int64_t open; /* enqueues without an answer */
    pthread_mutex_t lock; /* for a producer that waits */
    pthread_cond_t answered;
} gate;

#define OPEN_MAX 16000 /* below the channel's bound */

static void on_enqueued(pawl_status status, int64_t id, void *arg)
{
    gate *g = arg;
    (void)id;
    bench_check(status, "enqueue");
    if (atomic_fetch_sub(&g->open, 1) - 1 != OPEN_MAX / 2)
        return;
    (void)pthread_mutex_lock(&g->lock);
    (void)pthread_cond_signal(&g->answered);
    (void)pthread_mutex_unlock(&g->lock);
}

static void pass(gate *g)
{
    if (atomic_fetch_add(&g->open, 1) < OPEN_MAX)
        return;
    (void)pthread_mutex_lock(&g->lock);
    while (atomic_load(&g->open) > OPEN_MAX / 2)
        (void)pthread_cond_wait(&g->answered, &g->lock);
    (void)pthread_mutex_unlock(&g->lock);
}

double bench_steady(const bench *b)
{
    char payload[BENCH_PAYLOAD_BYTES];
    gate g = { 0, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER };
    memset(payload, 'x', sizeof payload);
    pawl_pool *pool = bench_open(b);
    bench_check(pawl_start(pool), "start");
    double start = bench_now();
    for (int64_t i = 0; i < b->jobs; i++) {
        pass(&g);
        bench_check(pawl_enqueue_async(pool, PAWL_JOB(.kind = "noop", .payload = payload,
                                                      .payload_bytes = sizeof payload),
                                       on_enqueued, &g),
                    "enqueue");
    }
    bench_check(pawl_wait_idle(pool, PAWL_FOREVER), "wait");
    double rate = (double)b->jobs / (bench_now() - start);
    bench_close(pool);
    return rate;
}
