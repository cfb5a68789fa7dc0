/* executor.c - takes a claimed job, runs its handler outside any transaction and lock, posts the outcome
 * and goes on to the next one without waiting for the commit.
 * Threads: pawl-exec-N; in an inline pool the caller of pawl_step(). */
#include "executor.h"

#include <stdlib.h>

#include "pool.h"
#include "status.h"
#include "thread.h"

static int call_handler(pawl_job *job)
{
    const pawli_handler *handler = pawli_handler_of(job->claim.service);
    pawli_role role = pawli_role_set(PAWLI_ROLE_EXECUTOR);
    pawli_handler_job_set(job);
    int returned = handler->fn(job, handler->arg);
    (void)pawli_role_set(role);
    return returned;
}

/* Between its claim and now it was cancelled, or its lease has run out, as this process was frozen: another may
 * be running it. Its handler need not run at all. */
static bool is_over(const pawl_job *job, int *outcome)
{
    pawl_stop_reason reason = pawl_job_stop_reason(job);
    *outcome = reason == PAWL_STOP_CANCEL ? PAWL_CANCELLED : PAWL_RELEASED;
    return reason == PAWL_STOP_CANCEL || reason == PAWL_STOP_LEASE_LOST;
}

static int call_or_skip(pawl_job *job)
{
    int outcome;
    return is_over(job, &outcome) ? outcome : call_handler(job);
}

/* False: this is a forked child, in which the handler, or the backoff function, returned as well. The job is the
 * parent's, and so is the mapped record of it (R10): the thread ends, and with it, being the only one, the child. */
static bool run(pawl_pool *pool, pawl_job *job, uint32_t number)
{
    /* Before the handler is called: if it kills the process, this says which job it was. */
    pawli_presence_start(&pool->presence, number, job->claim.fence);
    pawli_crash_mark(pool->presence.crash, job->claim.fence);
    atomic_store(&job->started_ns, pawli_clock_steady_ns(&pool->clock));
    atomic_store(&job->phase, PAWLI_PHASE_STARTED);
    int returned = call_or_skip(job);
    if (pawli_fork_mark_is_child(&pool->fork_mark))
        return false;
    pawli_dispatch_done(&pool->dispatch);
    pawli_job_returned(job, returned);
    if (pawli_fork_mark_is_child(&pool->fork_mark))
        return false;
    /* After it: a backoff function still belongs to the job, and a detached one takes a slot of its own. */
    pawli_handler_job_set(NULL);
    pawli_crash_mark(NULL, 0);
    pawli_presence_set(&pool->presence, number, 0);
    return true;
}

bool pawli_executor_step(pawl_pool *pool, uint32_t number, bool wait)
{
    pawl_job *job = wait ? pawli_dispatch_get(&pool->dispatch) : pawli_dispatch_try(&pool->dispatch);
    if (job == NULL)
        return false;
    return run(pool, job, number);
}

static void *executor_main(void *arg)
{
    pawli_executor *executor = arg;
    pawli_thread_name("pawl-exec-%u", executor->number + 1);
    void *stack = executor->pool->options.note_crashes ? pawli_crash_stack_open() : NULL;
    while (pawli_executor_step(executor->pool, executor->number, true)) {
    }
    pawli_crash_stack_close(stack);
    return NULL;
}

pawl_status pawli_executors_start(pawl_pool *pool)
{
    uint32_t count = pool->options.executors;
    pool->executors.running = 0;
    pool->executors.all = calloc(count, sizeof *pool->executors.all);
    if (pool->executors.all == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "no memory for %u executors", count);
    pawli_dispatch_open(&pool->dispatch);
    for (uint32_t i = 0; i < count; i++) {
        pawli_executor *executor = &pool->executors.all[i];
        *executor = (pawli_executor){ .pool = pool, .number = i };
        pawl_status st = pawli_thread_start(&executor->thread, pool->options.stack_bytes, executor_main,
                                            executor);
        if (st != PAWL_OK)
            return st;
        pool->executors.running++;
    }
    return PAWL_OK;
}

void pawli_executors_stop(pawl_pool *pool)
{
    pawli_dispatch_close(&pool->dispatch);
    for (uint32_t i = 0; i < pool->executors.running; i++)
        (void)pthread_join(pool->executors.all[i].thread, NULL);
    free(pool->executors.all);
    pool->executors.all = NULL;
    pool->executors.running = 0;
}
