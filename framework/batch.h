/* batch.h - a batch in the making: the store's view of it, and the requests that wait for it. */
#ifndef PAWLI_BATCH_H
#define PAWLI_BATCH_H

#include "writer.h"

typedef struct pawli_making {
    pawli_batch batch;
    pawli_queue taken; /* requests; each is answered when the batch has ended */
    pawli_ending **ending_tail;
    pawli_heartbeat **heartbeat_tail;
    pawli_new_jobs **enqueue_tail;
    pawli_operation **operation_tail;
    size_t jobs;
} pawli_making;

/* After the transaction has begun: takes what the writer has gathered. */
void pawli_batch_form(pawl_pool *pool, pawli_making *m);
/* After the commit: ends jobs, dispatches claims, answers. */
void pawli_batch_settle(pawl_pool *pool, pawli_making *m);
/* Answers every request that was taken: with `failed`, or if that is PAWL_OK with its own status. */
void pawli_batch_answer(pawl_pool *pool, pawli_queue *taken, pawl_status failed);

#endif
