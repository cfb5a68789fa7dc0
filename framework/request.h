/* request.h - a command that a caller made, and may be waiting for. */
#ifndef PAWLI_REQUEST_H
#define PAWLI_REQUEST_H

#include <pawl/pawl.h>

#include <semaphore.h>
#include <stdatomic.h>

#include "command.h"
#include "store/store.h"

typedef enum pawli_request_state {
    PAWLI_REQUEST_WAITING = 0, /* may be withdrawn */
    PAWLI_REQUEST_TAKEN,       /* its transaction has begun: it will be answered */
    PAWLI_REQUEST_ANSWERED,
    PAWLI_REQUEST_WITHDRAWN    /* the caller has gone; the writer frees it */
} pawli_request_state;

typedef struct pawli_request {
    pawli_command command; /* first */
    size_t bytes;          /* reserved in the channel */
    int64_t deadline_ns;   /* system's monotonic clock: to be taken until then */
    bool awaited;          /* a caller waits on `answered` */
    bool glance;           /* IDLE: to be answered at once, yes or no */
    _Atomic int state;     /* pawli_request_state */
    /* The answer: the writer's until ANSWERED. */
    pawl_status status;
    char *message; /* owned; NULL: none */
    sem_t answered;
} pawli_request;

/* New jobs, in one block with all their bytes. Counted: the request itself holds it, and so does each
 * claim that was handed off from it, because the payload is in it. */
typedef struct pawli_enqueue_request {
    pawli_request request; /* first */
    _Atomic uint32_t holders;
    pawl_enqueued_fn done; /* async only */
    void *done_arg;
    pawli_new_jobs group;
    pawli_new_job jobs[];
} pawli_enqueue_request;

typedef struct pawli_operate_request {
    pawli_request request; /* first */
    pawli_operation operation;
    char queue[PAWLI_NAME_BYTES_MAX + 1];
    /* ids, then answers, follow */
} pawli_operate_request;

static inline pawli_request *pawli_request_of(pawli_command *command)
{
    return (pawli_request *)(void *)command;
}

void pawli_request_init(pawli_request *request, pawli_command_type type, size_t bytes);
/* Reserves room in the channel until the request's deadline. */
bool pawli_request_reserve(pawl_pool *pool, pawli_request *request);
/* Posts and waits for the answer. True: answered, and the request is the caller's again. False: it was
 * withdrawn, *status says why, and it is not the caller's any more. */
bool pawli_request_call(pawl_pool *pool, pawli_request *request, pawl_status *status);
/* The writer's: may it be begun? False: it was withdrawn, and has been freed. */
bool pawli_request_take(pawli_request *request);
/* The writer's: answers, by waking the caller or through the loop. */
void pawli_request_answer(pawl_pool *pool, pawli_request *request, pawl_status status);
/* Gives a request up: frees it, or for new jobs lets go of one hold. */
void pawli_request_release(pawli_request *request);
void pawli_enqueue_release(pawli_enqueue_request *enqueue);

#endif
