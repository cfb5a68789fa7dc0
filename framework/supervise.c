/* supervise.c - what the clock has to say of the jobs in hand: leases to extend, handlers that are stuck, claims that
 * did not start. Of the other pools survey.c tells.
 * Threads: the writer's role.
 * Keeps:   the leases of what runs here are renewed every third. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "pool.h"

#define UNSTARTED_MAX_NS (100 * PAWLI_NS_PER_MS) /* then a claim is given back uncharged */
#define DETACHED_MAX_MS INT64_C(3600000)         /* without a timeout */

/* ---------------------------------------------------------------------- the jobs in hand */

static void link_into(pawl_job **list, pawl_job *job)
{
    job->before = NULL;
    job->after = *list;
    if (job->after != NULL)
        job->after->before = job;
    *list = job;
}

void pawli_in_hand_add(pawl_pool *pool, pawl_job *job)
{
    pawli_writer *w = &pool->writer;
    link_into(&w->in_hand, job);
    w->in_hand_count++;
    atomic_store_explicit(&w->in_hand_now, (uint32_t)w->in_hand_count, memory_order_relaxed);
    job->claim.service->in_flight++;
    int64_t third_ns = pawli_ms_to_ns(pool->options.lease_ms) / 3;
    pawli_supervise_by(pool, pawli_add(job->claimed_ns, pawli_earlier(third_ns, UNSTARTED_MAX_NS)));
}

void pawli_supervise_by(pawl_pool *pool, int64_t steady_ns)
{
    pool->writer.next_supervise_ns = pawli_earlier(pool->writer.next_supervise_ns, steady_ns);
}

static void unlink_from(pawl_job **list, pawl_job *job)
{
    if (job->before != NULL)
        job->before->after = job->after;
    else
        *list = job->after;
    if (job->after != NULL)
        job->after->before = job->before;
    job->before = job->after = NULL;
}

static void leave_hand(pawl_pool *pool, pawl_job *job)
{
    pawli_writer *w = &pool->writer;
    unlink_from(&w->in_hand, job);
    w->in_hand_count--;
    atomic_store_explicit(&w->in_hand_now, (uint32_t)w->in_hand_count, memory_order_relaxed);
    job->claim.service->in_flight--;
    job->in_hand = false;
}

void pawli_in_hand_remove(pawl_pool *pool, pawl_job *job)
{
    if (job->in_hand) {
        leave_hand(pool, job);
        return;
    }
    unlink_from(&pool->writer.lost, job);
    (void)atomic_fetch_sub(&pool->writer.stuck, 1);
}

/* Until its handler, or the application that has detached it, is done with it. */
static void keep_lost(pawl_pool *pool, pawl_job *job)
{
    link_into(&pool->writer.lost, job);
    (void)atomic_fetch_add(&pool->writer.stuck, 1);
}

/* The application holds the handle of a detached job: from here on it is its to free. */
static void abandon_if_detached(pawl_pool *pool, pawl_job *job)
{
    int idle = PAWLI_BEAT_IDLE;
    if (atomic_load(&job->phase) != PAWLI_PHASE_DETACHED)
        return;
    if (!atomic_compare_exchange_strong(&job->heartbeat_state, &idle, PAWLI_BEAT_CLOSED)
        && idle == PAWLI_BEAT_POSTED) {
        atomic_store(&pool->writer.detached_some, true); /* its node is on the way: look again */
        return;
    }
    bool held_slot = job->holds_slot;
    uint32_t slot = job->detached_slot;
    pawli_in_hand_remove(pool, job);
    job->names = pawli_names_hold(pool->names);
    int detached = PAWLI_PHASE_DETACHED;
    if (atomic_compare_exchange_strong(&job->phase, &detached, PAWLI_PHASE_ABANDONED)) {
        if (held_slot)
            pawli_presence_let_go(&pool->presence, slot);
        (void)atomic_fetch_sub(&pool->dispatch.detached, 1);
        return;
    }
    pawli_names_release(job->names); /* finished just now: its command is on the way */
    job->names = NULL;
    keep_lost(pool, job);
}

void pawli_claim_lost(pawl_pool *pool, pawl_job *job)
{
    leave_hand(pool, job);
    atomic_store(&job->lost, true);
    keep_lost(pool, job);
    abandon_if_detached(pool, job);
}

/* --------------------------------------------------------------------- claims that wait */

static void give_back(pawl_pool *pool, pawl_job *job)
{
    pawli_job_give_back(job);
    job->ending_queued = true;
    pawli_queue_push(&pool->writer.endings, &job->finalize);
}

static int64_t give_back_unstarted(pawl_pool *pool, int64_t now_ns)
{
    bool all = atomic_load(&pool->stopping);
    pawl_job *job;
    while ((job = pawli_dispatch_take_back(&pool->dispatch, all ? INT64_MAX : now_ns - UNSTARTED_MAX_NS))
           != NULL)
        give_back(pool, job);
    return atomic_load(&pool->dispatch.length) > 0 ? now_ns + UNSTARTED_MAX_NS / 2 : PAWLI_NEVER;
}

/* ---------------------------------------------------------------------- claims that run */

/* How long the job may run before its claim is not extended any more; 0: for ever. */
static int64_t limit_ms(const pawl_job *job, int phase)
{
    if (job->timeout_ms > 0)
        return job->timeout_ms;
    return phase == PAWLI_PHASE_DETACHED ? DETACHED_MAX_MS : 0;
}

static void evict(pawl_pool *pool, pawl_job *job, int64_t limit)
{
    const pawli_handler *handler = pawli_handler_of(job->claim.service);
    const pawli_trial trial = {
        .returned = PAWL_RETRY,
        .unknown = PAWL_RETRY,
        .attempt = job->claim.attempt,
        .max_attempts = job->claim.max_attempts,
        .timed_out = true,
        .retry_in_ms = -1,
        .backoff_ms = pawli_job_backoff(pool, handler, job->claim.attempt),
    };
    int length = snprintf(job->eviction_error, sizeof job->eviction_error,
                          "timed out after %" PRId64 " ms and %s", limit,
                          atomic_load(&job->phase) == PAWLI_PHASE_DETACHED ? "was not finished"
                                                                           : "did not return");
    job->eviction.verdict = pawli_judge(&trial);
    job->eviction.effects = NULL;
    job->eviction.error = job->eviction_error;
    job->eviction.error_bytes = (size_t)length;
    if (job->renewal_queued) {
        job->renewal_queued = false;
        pool->writer.renewals--;
    }
    job->next_evicted = pool->writer.evicted;
    pool->writer.evicted = job;
}

/* Extends the lease when a third of it has passed. Returns when to look at it again. */
static int64_t renew(pawl_pool *pool, pawl_job *job, int64_t now_ns, int64_t boot_ms)
{
    int64_t third = pool->options.lease_ms / 3;
    int64_t due_in = atomic_load(&job->lease_boot_ms) - boot_ms - (pool->options.lease_ms - third);
    if (due_in > 0)
        return now_ns + due_in * PAWLI_NS_PER_MS;
    if (!job->renewal_queued) {
        job->renewal_queued = true;
        pool->writer.renewals++;
    }
    return now_ns + (third > 1 ? third : 1) * PAWLI_NS_PER_MS;
}

static int64_t watch_over(pawl_pool *pool, pawl_job *job, int64_t now_ns, int64_t boot_ms)
{
    if (job->is_deferred)
        return renew(pool, job, now_ns, boot_ms); /* its outcome waits for the store: nobody is to run it again */
    if (job->ending_queued)
        return PAWLI_NEVER;
    int phase = atomic_load(&job->phase);
    int64_t started = atomic_load(&job->started_ns), limit = started > 0 ? limit_ms(job, phase) : 0;
    if (limit == 0)
        return renew(pool, job, now_ns, boot_ms);
    int64_t ends = pawli_add(started, pawli_ms_to_ns(limit));
    int64_t stuck = pawli_add(ends, pawli_ms_to_ns(pool->options.lease_ms));
    if (now_ns >= stuck) {
        evict(pool, job, limit);
        return PAWLI_NEVER;
    }
    if (phase == PAWLI_PHASE_DETACHED && now_ns >= ends)
        return stuck; /* its lease runs out */
    return pawli_earlier(renew(pool, job, now_ns, boot_ms), now_ns < ends ? ends : stuck);
}

static int64_t watch_over_all(pawl_pool *pool, int64_t now_ns)
{
    int64_t next = PAWLI_NEVER, boot_ms = pawli_clock_boot_ms(&pool->clock);
    pool->writer.evicted = NULL;
    for (pawl_job *job = pool->writer.in_hand; job != NULL; job = job->after)
        next = pawli_earlier(next, watch_over(pool, job, now_ns, boot_ms));
    return next;
}

/* ------------------------------------------------------------------------------ the step */

static void let_go_of_detached(pawl_pool *pool)
{
    if (pool->writer.lost == NULL || !atomic_exchange(&pool->writer.detached_some, false))
        return;
    for (pawl_job *job = pool->writer.lost, *next; job != NULL; job = next) {
        next = job->after;
        abandon_if_detached(pool, job);
    }
}

void pawli_supervise(pawl_pool *pool, int64_t now_ns)
{
    pawli_writer *w = &pool->writer;
    let_go_of_detached(pool);
    pawli_survey_if_due(pool, now_ns);
    if (now_ns < w->next_supervise_ns && !atomic_load(&pool->stopping))
        return;
    int64_t next = give_back_unstarted(pool, now_ns);
    w->next_supervise_ns = pawli_earlier(next, watch_over_all(pool, now_ns));
}

int64_t pawli_supervise_next_ns(const pawl_pool *pool)
{
    return pawli_earlier(pool->writer.next_supervise_ns, pawli_survey_next_ns(pool));
}
