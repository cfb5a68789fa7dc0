/* dispatch.h - claimed jobs on their way from the writer to the executors. */
#ifndef PAWLI_DISPATCH_H
#define PAWLI_DISPATCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "job.h"

typedef struct pawli_dispatch {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    /* Under the lock. */
    pawl_job *first, *newest;
    uint32_t sleepers;
    bool closed;
    /* Written under the lock, read by any. */
    _Atomic uint32_t length;
    _Atomic uint32_t busy;     /* executors inside a handler */
    _Atomic uint32_t detached; /* jobs that go on without an executor */
} pawli_dispatch;

void pawli_dispatch_init(pawli_dispatch *dispatch);
void pawli_dispatch_fini(pawli_dispatch *dispatch);
/* The writer: appends a list of claims, in order, and wakes as many executors as there are jobs. */
void pawli_dispatch_put(pawli_dispatch *dispatch, pawli_claim *claims, size_t count);
/* The writer: takes back the first job if it was claimed at or before `claimed_ns`; or NULL. */
pawl_job *pawli_dispatch_take_back(pawli_dispatch *dispatch, int64_t claimed_ns);
/* An executor: waits for a job and counts itself busy. NULL: closed. */
pawl_job *pawli_dispatch_get(pawli_dispatch *dispatch);
pawl_job *pawli_dispatch_try(pawli_dispatch *dispatch); /* does not wait */
void pawli_dispatch_done(pawli_dispatch *dispatch);     /* not busy any more */
void pawli_dispatch_open(pawli_dispatch *dispatch);
void pawli_dispatch_close(pawli_dispatch *dispatch);

#endif
