/* bench.h - what the scenarios share: the run's settings, the clock, how a figure is printed. */
#ifndef PAWL_BENCH_H
#define PAWL_BENCH_H

#include <pawl/pawl.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BENCH_PAYLOAD_BYTES 64
#define BENCH_PROCESSES_MAX 16
#define BENCH_SAMPLES_MAX 1000

typedef struct bench {
    char path[4096]; /* of the database file; each scenario starts with none */
    int64_t jobs;
    pawl_synchronous synchronous;
    const char *durability; /* its name */
} bench;

/* One thread, raw SQLite, no framework: three row writes a job. Returns jobs per second. */
double bench_floor(const bench *b, int batch);
/* One producer, asynchronous, with the workers beside it; from the first enqueue to the last success. */
double bench_steady(const bench *b);
/* A backlog of `backlog` jobs that is claimed and finished. Returns jobs per second. */
double bench_drain(const bench *b, int64_t backlog);
/* A started pool without work: wake-ups a second of the whole process, and bytes written. */
void bench_idle(const bench *b, int seconds, double *wakeups, long long *bytes);

/* So many processes on one file, each producing and working, for so long. */
typedef struct bench_shares {
    double total;   /* jobs per second of all together */
    double least;   /* what the slowest did of its fair share, which is 1 / processes of the total */
    double longest; /* seconds that an enqueue took at most, where producers wait for each answer */
} bench_shares;
bench_shares bench_processes(const bench *b, int processes, bool waits, int seconds);
/* From an enqueue in another process (by a pool that was never started, or by pawl_enqueue_in on a
 * connection of its own) to the start of the handler in an idle pool: seconds. */
void bench_wakeup(const bench *b, bool by_connection, int count, double *p50, double *p99);

double bench_now(void); /* seconds, monotonic; one clock for all processes */
void bench_pause(int64_t ms);
void bench_sort(double *values, int count);
void bench_fresh(const bench *b);
pawl_pool *bench_open(const bench *b);
void bench_close(pawl_pool *pool);

/* Holds an asynchronous producer back while the channel is nearly full: it waits for an answer, and not for a
 * while. Pass before each call, and hand `bench_gate_answered` and the gate along. */
typedef struct bench_gate {
    _Atomic int64_t open; /* enqueues without an answer */
    pthread_mutex_t lock; /* for a producer that waits */
    pthread_cond_t answered;
} bench_gate;
#define BENCH_GATE_INIT { 0, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER }
void bench_gate_pass(bench_gate *g);
void bench_gate_answered(pawl_status status, int64_t id, void *arg);

/* Ends the program with the message unless the status is a success. */
void bench_check(pawl_status status, const char *doing);

#endif
