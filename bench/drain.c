/* drain.c - a backlog that waits already is claimed and finished: what a claim costs as it grows. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#define GROUP 1000

static void fill(pawl_pool *pool, int64_t backlog)
{
    char payload[BENCH_PAYLOAD_BYTES];
    memset(payload, 'x', sizeof payload);
    static pawl_job_spec specs[GROUP];
    for (int i = 0; i < GROUP; i++)
        specs[i] = *PAWL_JOB(.kind = "noop", .payload = payload, .payload_bytes = sizeof payload);
    for (int64_t done = 0; done < backlog; done += GROUP)
        bench_check(pawl_enqueue_many(pool, specs, GROUP, NULL, NULL), "fill");
}

double bench_drain(const bench *b, int64_t backlog)
{
    pawl_pool *pool = bench_open(b);
    fill(pool, backlog);
    double start = bench_now();
    bench_check(pawl_start(pool), "start");
    bench_check(pawl_wait_idle(pool, PAWL_FOREVER), "wait");
    double rate = (double)backlog / (bench_now() - start);
    bench_close(pool);
    return rate;
}
