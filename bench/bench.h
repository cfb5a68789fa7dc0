/* bench.h - what the scenarios share: the run's settings, the clock, how a figure is printed. */
#ifndef PAWL_BENCH_H
#define PAWL_BENCH_H

#include <pawl/pawl.h>

#include <stdbool.h>
#include <stdint.h>

#define BENCH_PAYLOAD_BYTES 64

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

double bench_now(void); /* seconds, monotonic */
void bench_fresh(const bench *b);
pawl_pool *bench_open(const bench *b);
void bench_close(pawl_pool *pool);
/* Ends the program with the message unless the status is a success. */
void bench_check(pawl_status status, const char *doing);

#endif
