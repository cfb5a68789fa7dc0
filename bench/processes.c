/* processes.c - several processes on one file, each of which produces and works at once.
 *
 * Each process opens a pool of its own, enqueues without an end, and works on what it has enqueued: its
 * jobs have a kind of their own, so that what it does is its own share and nobody else's. Asynchronous
 * producers fill their channels, so that each transaction is a large one; producers that wait for each
 * answer make many small ones, and the lock changes hands between them. After a second the parent reads how
 * many handlers each has run, twice, over one and the same stretch of time. Nothing is counted before or
 * after it, when some of them run alone. */
#include "bench.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WARM_UP_MS 1000

/* Shared by all processes of a round. */
typedef struct member {
    _Alignas(128) _Atomic int64_t ran; /* handlers, since its start */
    _Atomic bool ready;
    double longest; /* seconds that an enqueue took */
} member;

typedef struct round_state {
    _Atomic bool starts, measured, ends;
    member members[BENCH_PROCESSES_MAX];
} round_state;

/* ------------------------------------------------------------------------------ a member */

static int count(pawl_job *job, void *arg)
{
    member *m = arg;
    (void)job;
    (void)atomic_fetch_add_explicit(&m->ran, 1, memory_order_relaxed);
    return PAWL_SUCCEEDED;
}

static void produce_async(pawl_pool *pool, const pawl_job_spec *spec, const round_state *r)
{
    bench_gate gate = BENCH_GATE_INIT;
    while (!atomic_load_explicit(&r->ends, memory_order_relaxed)) {
        bench_gate_pass(&gate);
        bench_check(pawl_enqueue_async(pool, spec, bench_gate_answered, &gate), "enqueue");
    }
    bench_close(pool); /* it answers what is open: the gate lives until then */
}

static void produce_waiting(pawl_pool *pool, const pawl_job_spec *spec, const round_state *r, member *m)
{
    while (!atomic_load_explicit(&r->ends, memory_order_relaxed)) {
        double start = bench_now();
        bench_check(pawl_enqueue(pool, spec, NULL), "enqueue");
        double took = bench_now() - start;
        if (atomic_load_explicit(&r->measured, memory_order_relaxed) && took > m->longest)
            m->longest = took;
    }
    bench_close(pool);
}

static void be_member(const bench *b, round_state *r, int index, bool waits)
{
    char kind[32], payload[BENCH_PAYLOAD_BYTES];
    member *m = &r->members[index];
    pawl_pool *pool;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)snprintf(kind, sizeof kind, "noop-%d", index);
    memset(payload, 'x', sizeof payload);
    const pawl_job_spec *spec = PAWL_JOB(.kind = kind, .payload = payload, .payload_bytes = sizeof payload);
    bench_check(pawl_open(PAWL_OPTIONS(.store = b->path, .synchronous = b->synchronous,
                                       .store_timeout_ms = 60000), &pool), "open");
    bench_check(pawl_register(pool, kind, count, m, NULL), "register");
    bench_check(pawl_start(pool), "start");
    atomic_store(&m->ready, true);
    while (!atomic_load(&r->starts))
        bench_pause(1);
    if (waits)
        produce_waiting(pool, spec, r, m);
    else
        produce_async(pool, spec, r);
    exit(0);
}

/* ------------------------------------------------------------------------------- a round */

static void start_members(const bench *b, round_state *r, pid_t *pids, int processes,
                          bool waits)
{
    (void)fflush(NULL);
    for (int i = 0; i < processes; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            be_member(b, r, i, waits);
        if (pids[i] < 0) {
            perror("pawl-bench: fork");
            exit(1);
        }
    }
    for (int i = 0; i < processes; i++)
        while (!atomic_load(&r->members[i].ready) && waitpid(pids[i], NULL, WNOHANG) == 0)
            bench_pause(1);
    atomic_store(&r->starts, true);
}

static void stop_members(round_state *r, const pid_t *pids, int processes)
{
    atomic_store(&r->ends, true);
    for (int i = 0; i < processes; i++) {
        int status = 0;
        if (waitpid(pids[i], &status, 0) != pids[i] || status != 0) {
            fprintf(stderr, "pawl-bench: a process of the round failed\n");
            exit(1);
        }
    }
}

static void read_counts(round_state *r, int64_t *counts, int processes)
{
    for (int i = 0; i < processes; i++)
        counts[i] = atomic_load(&r->members[i].ran);
}

bench_shares bench_processes(const bench *b, int processes, bool waits, int seconds)
{
    int64_t before[BENCH_PROCESSES_MAX], after[BENCH_PROCESSES_MAX], sum = 0, least = INT64_MAX;
    pid_t pids[BENCH_PROCESSES_MAX];
    bench_shares shares = { 0 };
    round_state *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r == MAP_FAILED)
        bench_check(PAWL_ERR_NOMEM, "map");
    bench_fresh(b);
    start_members(b, r, pids, processes, waits);
    bench_pause(WARM_UP_MS);
    double start = bench_now();
    atomic_store(&r->measured, true);
    read_counts(r, before, processes);
    bench_pause(seconds * INT64_C(1000));
    read_counts(r, after, processes);
    atomic_store(&r->measured, false);
    double took = bench_now() - start;
    stop_members(r, pids, processes);
    for (int i = 0; i < processes; i++) {
        int64_t own = after[i] - before[i];
        sum += own;
        least = own < least ? own : least;
        shares.longest = r->members[i].longest > shares.longest ? r->members[i].longest : shares.longest;
    }
    shares.total = (double)sum / took;
    shares.least = sum > 0 ? (double)least * processes / (double)sum : 0;
    (void)munmap(r, sizeof *r);
    return shares;
}
