/* steady.c - one thread enqueues without waiting while the executors work: the usual state of a pool that
 * keeps up. */
#include "bench.h"

#include <string.h>

double bench_steady(const bench *b)
{
    char payload[BENCH_PAYLOAD_BYTES];
    bench_gate gate = BENCH_GATE_INIT;
    memset(payload, 'x', sizeof payload);
    pawl_pool *pool = bench_open(b);
    bench_check(pawl_start(pool), "start");
    double start = bench_now();
    for (int64_t i = 0; i < b->jobs; i++) {
        bench_gate_pass(&gate);
        bench_check(pawl_enqueue_async(pool, PAWL_JOB(.kind = "noop", .payload = payload,
                                                      .payload_bytes = sizeof payload),
                                       bench_gate_answered, &gate),
                    "enqueue");
    }
    bench_check(pawl_wait_idle(pool, PAWL_FOREVER), "wait");
    double rate = (double)b->jobs / (bench_now() - start);
    bench_close(pool);
    return rate;
}
