/* wakeup.c - how long a job that another process enqueues waits for its handler, when all is idle.
 *
 * One process has a started pool without work. Another enqueues one job at a time, notes the time before
 * the call in its payload, and goes on when the job has run and some time has passed, which is drawn anew
 * for each, so that no timer of the pool is met in step. The monotonic clock is one for all processes.
 * So a figure holds all of it: the commit of the enqueue, the news of it, the claim, its commit. */
#include "bench.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAUSE_MIN_MS 20
#define PAUSE_MAX_MS 200

/* Shared by the two processes. */
typedef struct samples {
    _Atomic bool ready, ends;
    _Atomic int count;
    double seconds[BENCH_SAMPLES_MAX];
} samples;

/* ----------------------------------------------------------------------------- the worker */

static int note(pawl_job *job, void *arg)
{
    samples *s = arg;
    double now = bench_now(), asked;
    memcpy(&asked, pawl_job_payload(job, NULL), sizeof asked);
    s->seconds[atomic_load(&s->count)] = now - asked;
    (void)atomic_fetch_add(&s->count, 1);
    return PAWL_SUCCEEDED;
}

static void be_worker(const bench *b, samples *s)
{
    pawl_pool *pool;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench_check(pawl_open(PAWL_OPTIONS(.store = b->path, .synchronous = b->synchronous, .executors = 4),
                          &pool), "open");
    bench_check(pawl_register(pool, "note", note, s, NULL), "register");
    bench_check(pawl_start(pool), "start");
    atomic_store(&s->ready, true);
    while (!atomic_load(&s->ends))
        bench_pause(50);
    bench_close(pool);
    exit(0);
}

static pid_t start_worker(const bench *b, samples *s)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        be_worker(b, s);
    if (pid < 0) {
        perror("pawl-bench: fork");
        exit(1);
    }
    while (!atomic_load(&s->ready) && waitpid(pid, NULL, WNOHANG) == 0)
        bench_pause(5);
    return pid;
}

/* --------------------------------------------------------------------------- the producer */

static void await(const samples *s, int count)
{
    double began = bench_now();
    while (atomic_load(&s->count) < count) {
        if (bench_now() - began > 30) {
            fprintf(stderr, "pawl-bench: a job was not started within 30 s\n");
            exit(1);
        }
        bench_pause(1);
    }
}

/* Spread over the span, so that no timer of the pool's beats in time with it. */
static int pause_ms(int i)
{
    return PAUSE_MIN_MS + i * 37 % (PAUSE_MAX_MS - PAUSE_MIN_MS);
}

static void produce_by_pool(const bench *b, samples *s, int count)
{
    pawl_pool *pool;
    bench_check(pawl_open(PAWL_OPTIONS(.store = b->path, .synchronous = b->synchronous), &pool), "open");
    for (int i = 0; i < count; i++) {
        bench_pause(pause_ms(i));
        double now = bench_now();
        bench_check(pawl_enqueue(pool, PAWL_JOB(.kind = "note", .payload = &now,
                                                .payload_bytes = sizeof now), NULL), "enqueue");
        await(s, i + 1);
    }
    bench_close(pool);
}

/* A connection of the application's own, of which no pool knows. */
static void produce_by_connection(const bench *b, samples *s, int count)
{
    sqlite3 *db;
    if (sqlite3_open_v2(b->path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK
        || sqlite3_exec(db, "PRAGMA wal_autocheckpoint = 0; PRAGMA busy_timeout = 5000", NULL, NULL, NULL)
               != SQLITE_OK)
        bench_check(PAWL_ERR_STORE, "open a connection");
    for (int i = 0; i < count; i++) {
        bench_pause(pause_ms(i));
        double now = bench_now();
        bench_check(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "note", .payload = &now,
                                                       .payload_bytes = sizeof now), NULL), "enqueue");
        await(s, i + 1);
    }
    (void)sqlite3_close(db);
}

void bench_wakeup(const bench *b, bool by_connection, int count, double *p50, double *p99)
{
    samples *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED || count > BENCH_SAMPLES_MAX)
        bench_check(PAWL_ERR_NOMEM, "map");
    bench_fresh(b);
    pid_t worker = start_worker(b, s);
    bench_pause(1500); /* let it come to rest */
    if (by_connection)
        produce_by_connection(b, s, count);
    else
        produce_by_pool(b, s, count);
    atomic_store(&s->ends, true);
    (void)waitpid(worker, NULL, 0);
    bench_sort(s->seconds, count);
    *p50 = s->seconds[count / 2];
    *p99 = s->seconds[(count * 99 + 99) / 100 - 1];
    (void)munmap(s, sizeof *s);
}
