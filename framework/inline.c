/* inline.c - a pool without threads, for tests of applications: driven step by step, on a virtual clock.
 * Threads: the caller's; it plays the writer, the timers and one executor in turn. */
#include "pool.h"
#include "status.h"

/* As far as nanoseconds in 64 bits reach, with room for what lies ahead of the present. */
#define ADVANCED_MAX_MS (INT64_C(250) * 365 * 86400000)

static pawl_status enter(pawl_pool *pool, const char *call)
{
    pawl_status st = pawli_pool_enter(pool, PAWLI_WAITS);
    if (st != PAWL_OK)
        return st;
    if ((pool->options.flags & PAWL_OPEN_INLINE) == 0)
        return pawli_fail(PAWL_ERR_STATE, "%s: the pool was not opened with PAWL_OPEN_INLINE", call);
    if (pawli_pool_in_handler(pool))
        return pawli_fail(PAWL_ERR_STATE, "%s: not from inside a handler", call);
    return PAWL_OK;
}

static bool step_writer(pawl_pool *pool, pawl_status *trouble)
{
    (void)pthread_mutex_lock(&pool->role_lock);
    pawli_role before = pawli_role_set(PAWLI_ROLE_WRITER);
    pool->writer.may_claim = true;
    atomic_store(&pool->writer.trouble, PAWL_OK);
    pool->writer.retry_at_ns = 0; /* the caller decides when to try again */
    atomic_store(&pool->writer.look_wanted, true); /* no loop watches for what others commit */
    bool progress = pawli_writer_step(pool);
    pool->writer.may_claim = false;
    *trouble = atomic_load(&pool->writer.trouble);
    (void)pawli_role_set(before);
    (void)pthread_mutex_unlock(&pool->role_lock);
    pawli_loop_deliver(&pool->loop);
    return progress;
}

pawl_status pawl_step(pawl_pool *pool, bool *progress)
{
    pawl_status st = enter(pool, "pawl_step");
    if (st != PAWL_OK)
        return st;
    if (!pool->started)
        return pawli_fail(PAWL_ERR_STATE, "pawl_step: the pool is not started");
    if (atomic_load(&pool->stopping))
        return pawli_fail(PAWL_ERR_STATE, "pawl_step: the pool is stopping; call pawl_stop() until it answers "
                                          "PAWL_OK");
    bool wrote = step_writer(pool, &st);
    bool ran = pawli_executor_step(pool, 0, false);
    if (pawli_fork_mark_is_child(&pool->fork_mark)) /* forked in the handler */
        return pawli_pool_enter(pool, 0);
    if (progress != NULL)
        *progress = wrote || ran;
    return st;
}

pawl_status pawl_run_until_idle(pawl_pool *pool)
{
    bool progress = true;
    pawl_status st = PAWL_OK;
    while (st == PAWL_OK && progress)
        st = pawl_step(pool, &progress);
    return st;
}

pawl_status pawl_clock_advance(pawl_pool *pool, int64_t ms)
{
    pawl_status st = pawli_pool_enter(pool, 0);
    if (st != PAWL_OK)
        return st;
    if ((pool->options.flags & PAWL_OPEN_INLINE) == 0)
        return pawli_fail(PAWL_ERR_STATE, "pawl_clock_advance: the pool was not opened with "
                                          "PAWL_OPEN_INLINE");
    if (ms < 0)
        return pawli_fail(PAWL_ERR_INVALID, "pawl_clock_advance: time does not go back");
    if (pawli_add(atomic_load(&pool->clock.advanced_ms), ms) > ADVANCED_MAX_MS)
        return pawli_fail(PAWL_ERR_INVALID, "pawl_clock_advance: more than 250 years in all");
    pawli_clock_advance(&pool->clock, ms);
    return PAWL_OK;
}

int64_t pawl_clock_now(pawl_pool *pool)
{
    return pawli_pool_enter(pool, 0) == PAWL_OK ? pawli_clock_wall_ms(&pool->clock) : 0;
}
