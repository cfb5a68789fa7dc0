/* bench.c - what the scenarios share: the clock, a fresh file, a pool with a handler that does nothing, a
 * producer that is held back. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

double bench_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void bench_pause(int64_t ms)
{
    (void)nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_sort(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
}

void bench_check(pawl_status status, const char *doing)
{
    if (status >= 0)
        return;
    fprintf(stderr, "pawl-bench: %s: %s: %s\n", doing, pawl_status_name(status), pawl_error_message());
    exit(1);
}

void bench_fresh(const bench *b)
{
    static const char *const suffixes[] = { "", "-wal", "-shm" };
    char path[sizeof b->path + 8];
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        (void)snprintf(path, sizeof path, "%s%s", b->path, suffixes[i]);
        (void)unlink(path);
    }
}

static int do_nothing(pawl_job *job, void *arg)
{
    (void)job;
    (void)arg;
    return PAWL_SUCCEEDED;
}

pawl_pool *bench_open(const bench *b)
{
    pawl_pool *pool;
    bench_fresh(b);
    bench_check(pawl_open(PAWL_OPTIONS(.store = b->path, .synchronous = b->synchronous), &pool), "open");
    bench_check(pawl_register(pool, "noop", do_nothing, NULL, NULL), "register");
    return pool;
}

void bench_close(pawl_pool *pool)
{
    bench_check(pawl_close(pool), "close");
}

/* ---------------------------------------------------------------------------- the gate */

#define OPEN_MAX 16000 /* below the channel's bound */

void bench_gate_answered(pawl_status status, int64_t id, void *arg)
{
    bench_gate *g = arg;
    (void)id;
    bench_check(status, "enqueue");
    if (atomic_fetch_sub(&g->open, 1) - 1 != OPEN_MAX / 2)
        return;
    (void)pthread_mutex_lock(&g->lock);
    (void)pthread_cond_signal(&g->answered);
    (void)pthread_mutex_unlock(&g->lock);
}

void bench_gate_pass(bench_gate *g)
{
    if (atomic_fetch_add(&g->open, 1) < OPEN_MAX)
        return;
    (void)pthread_mutex_lock(&g->lock);
    while (atomic_load(&g->open) > OPEN_MAX / 2)
        (void)pthread_cond_wait(&g->answered, &g->lock);
    (void)pthread_mutex_unlock(&g->lock);
}
