/* loop.h - the libuv thread: tells the ends of asynchronous enqueues and watches for other processes. */
#ifndef PAWLI_LOOP_H
#define PAWLI_LOOP_H

#include <pawl/pawl.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "command.h"

struct pawli_request;
struct pawli_loop_handles;

typedef struct pawli_loop {
    /* Under the life lock. */
    struct pawli_loop_handles *handles; /* NULL: the loop does not run */
    pthread_t thread;
    /* Any thread. */
    _Atomic(pawli_command *) answered; /* a stack of requests whose callback is to be called */
    _Atomic bool runs;
} pawli_loop;

void pawli_loop_init(pawli_loop *loop);
pawl_status pawli_loop_start(pawl_pool *pool);
void pawli_loop_stop(pawl_pool *pool);
/* The writer's: an asynchronous request has its answer. */
void pawli_loop_answer(pawli_loop *loop, struct pawli_request *request);
/* Wakes the loop for what was answered since. One system call a batch. */
void pawli_loop_notify(pawli_loop *loop);
/* Any thread that keeps the loop from stopping meanwhile. */
void pawli_loop_wake(pawli_loop *loop);
/* Calls the callbacks that wait; for pools without a loop thread. */
void pawli_loop_deliver(pawli_loop *loop);

#endif
