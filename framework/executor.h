/* executor.h - the threads that run handlers. */
#ifndef PAWLI_EXECUTOR_H
#define PAWLI_EXECUTOR_H

#include <pawl/pawl.h>

#include <pthread.h>

typedef struct pawli_executor {
    pawl_pool *pool;
    uint32_t number; /* from 0: its slot in the side file */
    pthread_t thread;
} pawli_executor;

typedef struct pawli_executors {
    pawli_executor *all;
    uint32_t running; /* threads that were started */
} pawli_executors;

pawl_status pawli_executors_start(pawl_pool *pool);
/* Joins the threads; the dispatch is closed and no handler runs. */
void pawli_executors_stop(pawl_pool *pool);
/* One step: runs one job if one waits. True: a handler was called. Inline pools call it too. */
bool pawli_executor_step(pawl_pool *pool, uint32_t number, bool wait);

#endif
