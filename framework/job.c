/* job.c - a claimed job, as its handler sees it and as it ends.
 *
 * Threads: the handler's executor; for a detached job the application's thread that finishes it; the
 *          writer's role where said.
 * Keeps:   J1 a finalize command is posted exactly once, by whoever comes last: the handler's return or
 *             pawl_job_finish(); J2 after it is posted the job is the writer's alone. */
#include "job.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "enqueue.h"
#include "pool.h"
#include "status.h"

#define PAYLOAD_KEPT_MAX 4096 /* a blank keeps its buffer up to this size */

/* ------------------------------------------------------------------------------- memory */

pawl_job *pawli_job_create(pawl_pool *pool)
{
    pawl_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return NULL;
    job->pool = pool;
    job->pid = pool->fork_mark.pid;
    job->finalize.type = PAWLI_COMMAND_FINALIZE;
    job->heartbeat.type = PAWLI_COMMAND_HEARTBEAT;
    job->ending.claim = job->eviction.claim = &job->claim;
    job->ending.job = job->eviction.job = job;
    job->beat.claim = job->renewal.claim = &job->claim;
    return job;
}

static void drop_effects(pawl_job *job)
{
    while (job->effects != NULL) {
        pawli_effect *gone = job->effects;
        job->effects = gone->next;
        if (gone->drop != NULL)
            gone->drop(gone->arg);
        if (pawli_role_now() == PAWLI_ROLE_WRITER) /* else the job is abandoned, and the pool may be gone */
            pawli_end_if_child(&job->pool->fork_mark);
        if (gone->then != NULL)
            pawli_enqueue_release(PAWLI_CONTAINER(gone->then, pawli_enqueue_request, group));
        free(gone);
    }
}

static void let_go(pawl_job *job)
{
    drop_effects(job);
    free(job->error);
    free(job->timeout_text);
    job->error = job->timeout_text = NULL;
    job->error_bytes = 0;
    if (job->claim.source != NULL)
        pawli_enqueue_release(job->claim.source->owner);
    job->claim.source = NULL;
}

void pawli_job_destroy(pawl_job *job)
{
    if (job == NULL)
        return;
    let_go(job);
    free(job->claim.buffer);
    pawli_names_release(job->names);
    free(job);
}

void pawli_job_recycle(pawl_job *job)
{
    let_go(job);
    if (job->claim.buffer_bytes > PAYLOAD_KEPT_MAX) {
        free(job->claim.buffer);
        job->claim.buffer = NULL;
        job->claim.buffer_bytes = 0;
    }
}

static int64_t effective_timeout(const pawl_job *job)
{
    if (job->claim.timeout_ms > 0)
        return job->claim.timeout_ms;
    return job->claim.timeout_ms == 0 ? pawli_handler_of(job->claim.service)->timeout_ms : 0;
}

void pawli_job_prepare(pawl_job *job, int64_t now_ns, int64_t lease_boot_ms)
{
    job->claimed_ns = now_ns;
    job->in_hand = true;
    job->ending_queued = job->is_deferred = job->renewal_queued = job->holds_slot = false;
    job->timeout_ms = effective_timeout(job);
    job->retry_in_ms = -1;
    job->effects = NULL;
    job->effects_tail = &job->effects;
    job->ending.error = NULL;
    job->ending.effects_failed = false;
    atomic_store_explicit(&job->started_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&job->lease_boot_ms, lease_boot_ms, memory_order_relaxed);
    atomic_store_explicit(&job->stop_reason, PAWL_STOP_NONE, memory_order_relaxed);
    atomic_store_explicit(&job->lost, false, memory_order_relaxed);
    atomic_store_explicit(&job->heartbeat_state, PAWLI_BEAT_IDLE, memory_order_relaxed);
    atomic_store_explicit(&job->phase, PAWLI_PHASE_CLAIMED, memory_order_release);
}

/* --------------------------------------------------------------------------- what it is */

int64_t pawl_job_id(const pawl_job *job)
{
    return job->claim.job;
}

const char *pawl_job_kind(const pawl_job *job)
{
    return job->claim.kind;
}

const char *pawl_job_queue(const pawl_job *job)
{
    return job->claim.queue;
}

pawl_pool *pawl_job_pool(const pawl_job *job)
{
    return job->pool;
}

const void *pawl_job_payload(const pawl_job *job, size_t *bytes)
{
    if (bytes != NULL)
        *bytes = job->claim.payload_bytes;
    return job->claim.payload;
}

uint32_t pawl_job_attempt(const pawl_job *job)
{
    return job->claim.attempt;
}

uint32_t pawl_job_max_attempts(const pawl_job *job)
{
    return job->claim.max_attempts;
}

uint64_t pawl_job_fence(const pawl_job *job)
{
    return job->claim.fence;
}

/* Is this a forked child, where the job is the parent's (R10)? The pool is not asked: it may be gone. */
static bool is_in_child(const pawl_job *job)
{
    return job->pid != getpid();
}

static pawl_status forked(const pawl_job *job)
{
    return pawli_fail(PAWL_ERR_FORKED, "job %" PRId64 ": is being run by the parent of this process", job->claim.job);
}

/* ---------------------------------------------------------------------------- stopping */

bool pawli_job_timed_out(const pawl_job *job)
{
    int64_t started = atomic_load(&job->started_ns);
    return job->timeout_ms > 0 && started > 0
           && pawli_clock_steady_ns(&job->pool->clock)
                  >= pawli_add(started, pawli_ms_to_ns(job->timeout_ms));
}

/* Timeout and lease are judged here, on the clock, so that they are told even while the writer waits
 * for a lock. */
pawl_stop_reason pawl_job_stop_reason(const pawl_job *job)
{
    if (atomic_load(&job->lost))
        return PAWL_STOP_LEASE_LOST;
    int told = atomic_load(&job->stop_reason);
    if (told != PAWL_STOP_NONE)
        return (pawl_stop_reason)told;
    if (pawli_clock_boot_ms(&job->pool->clock) >= atomic_load(&job->lease_boot_ms))
        return PAWL_STOP_LEASE_LOST;
    if (pawli_job_timed_out(job))
        return PAWL_STOP_TIMEOUT;
    return atomic_load(&job->pool->grace_over) ? PAWL_STOP_POOL : PAWL_STOP_NONE;
}

bool pawl_job_should_stop(const pawl_job *job)
{
    return pawl_job_stop_reason(job) != PAWL_STOP_NONE;
}

/* --------------------------------------------------------------------- what it may say */

void pawl_job_error(pawl_job *job, const char *format, ...)
{
    char text[PAWLI_ERROR_BYTES_MAX];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (job->error == NULL)
        job->error = malloc(PAWLI_ERROR_BYTES_MAX);
    if (job->error == NULL || length < 0)
        return;
    size_t bytes = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    job->error_bytes = pawli_text_clean(job->error, PAWLI_ERROR_BYTES_MAX, text, bytes);
    job->ending.error = job->error; /* an on_success function may say why it failed */
    job->ending.error_bytes = job->error_bytes;
}

void pawl_job_retry_in(pawl_job *job, int64_t delay_ms)
{
    job->retry_in_ms = delay_ms < 0 ? 0 : delay_ms < PAWLI_TIME_MAX_MS ? delay_ms : PAWLI_TIME_MAX_MS;
}

static pawl_status append_effect(pawl_job *job, const pawli_effect *effect)
{
    if (pawli_role_now() == PAWLI_ROLE_APPLY)
        return pawli_fail(PAWL_ERR_STATE, "job %" PRId64 ": its success is being written; say it in the handler",
                          job->claim.job);
    pawli_effect *added = malloc(sizeof *added);
    if (added == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "job %" PRId64 ": no memory", job->claim.job);
    *added = *effect;
    *job->effects_tail = added;
    job->effects_tail = &added->next;
    return PAWL_OK;
}

pawl_status pawl_job_on_success(pawl_job *job, pawl_apply_fn fn, void *arg, void (*drop)(void *arg))
{
    if (fn == NULL)
        return pawli_fail(PAWL_ERR_INVALID, "pawl_job_on_success: the function is NULL");
    if (is_in_child(job))
        return forked(job);
    return append_effect(job, &(pawli_effect){ .fn = fn, .arg = arg, .drop = drop });
}

pawl_status pawl_job_then(pawl_job *job, const pawl_job_spec *spec)
{
    pawli_enqueue_request *request;
    if (is_in_child(job))
        return forked(job);
    if (atomic_load(&job->lost)) /* and the pool may be gone */
        return pawli_fail(PAWL_ERR_LEASE_LOST, "job %" PRId64 ": its claim was lost", job->claim.job);
    pawl_status st = pawli_enqueue_build(job->pool, spec, 1, NULL, &request);
    if (st != PAWL_OK)
        return st;
    st = append_effect(job, &(pawli_effect){ .then = &request->group });
    if (st != PAWL_OK)
        pawli_enqueue_release(request);
    return st;
}

/* --------------------------------------------------------------------------- heartbeat */

pawl_status pawl_job_heartbeat(pawl_job *job)
{
    pawl_pool *pool = job->pool;
    int idle = PAWLI_BEAT_IDLE;
    if (pawli_role_now() == PAWLI_ROLE_APPLY)
        return pawli_fail(PAWL_ERR_STATE, "pawl_job_heartbeat: not from an on_success function");
    if (is_in_child(job))
        return forked(job);
    if (!atomic_load(&job->lost)
        && atomic_compare_exchange_strong(&job->heartbeat_state, &idle, PAWLI_BEAT_POSTED))
        pawli_channel_post(&pool->channel, &job->heartbeat);
    if (atomic_load(&job->lost))
        return pawli_fail(PAWL_ERR_LEASE_LOST, "job %" PRId64 ": its claim was lost", job->claim.job);
    if (!pawli_pool_await(pool, &job->heartbeat_state))
        return pawli_fail(PAWL_ERR_BUSY, "job %" PRId64 ": the heartbeat was not confirmed within %lld ms",
                          job->claim.job, (long long)pool->options.store_timeout_ms);
    if (job->beat.status == PAWL_ERR_LEASE_LOST)
        return pawli_fail(PAWL_ERR_LEASE_LOST, "job %" PRId64 ": its claim was lost", job->claim.job);
    if (job->beat.status != PAWL_OK)
        return pawli_fail(job->beat.status, "job %" PRId64 ": the store refused its heartbeat; the lease holds until "
                                            "it ends: try again", job->claim.job);
    return PAWL_OK;
}

/* --------------------------------------------------------------------------- the ending */

int64_t pawli_job_backoff(pawl_pool *pool, const pawli_handler *handler, uint32_t failure)
{
    const pawli_backoff *backoff = handler != NULL ? &handler->backoff : &pawli_backoff_default;
    uint64_t seed = atomic_fetch_add(&pool->random, UINT64_C(0x9E3779B97F4A7C15));
    return pawli_backoff_jitter(pawli_backoff_delay(backoff, failure), pawli_random_next(&seed));
}

static int64_t backoff_for(pawl_job *job)
{
    const pawli_handler *handler = pawli_handler_of(job->claim.service);
    int64_t delay = -1;
    if (handler->backoff_fn != NULL)
        delay = handler->backoff_fn(job->claim.attempt, job->error != NULL ? job->error : "",
                                    handler->backoff_arg);
    return delay >= 0 ? delay : pawli_job_backoff(job->pool, handler, job->claim.attempt);
}

static void say(pawl_job *job, const char *text, size_t bytes)
{
    job->ending.error = text;
    job->ending.error_bytes = bytes;
}

/* "timed out after N ms: what the handler said of it" */
static void explain_timeout(pawl_job *job)
{
    int length = snprintf(job->error_text, sizeof job->error_text, "timed out after %" PRId64 " ms",
                          job->timeout_ms);
    say(job, job->error_text, (size_t)length);
    if (job->error == NULL || (job->timeout_text = malloc(PAWLI_ERROR_BYTES_MAX)) == NULL)
        return;
    char *text = job->timeout_text;
    length = snprintf(text, PAWLI_ERROR_BYTES_MAX, "%s: ", job->error_text);
    size_t bytes = pawli_text_clean(text + length, PAWLI_ERROR_BYTES_MAX - (size_t)length, job->error,
                                    job->error_bytes);
    say(job, text, (size_t)length + bytes);
}

/* A text for last_error where the handler gave none: never an invisible failure. */
static void explain(pawl_job *job, const pawli_trial *trial, const pawli_verdict *verdict)
{
    int length = 0;
    say(job, job->error, job->error_bytes);
    if (verdict->outcome != PAWL_RETRY && verdict->outcome != PAWL_FAILED)
        return;
    if (trial->timed_out && trial->returned != PAWL_FAILED) {
        explain_timeout(job);
        return;
    }
    if (job->error != NULL)
        return;
    if (!pawli_outcome_is_known(trial->returned))
        length = snprintf(job->error_text, sizeof job->error_text, "the handler returned %d",
                          trial->returned);
    else
        length = snprintf(job->error_text, sizeof job->error_text, "the handler gave no reason");
    say(job, job->error_text, (size_t)length);
}

static void decide(pawl_job *job, int returned)
{
    pawli_trial trial = {
        .returned = returned,
        .unknown = pawli_handler_of(job->claim.service)->unknown,
        .attempt = job->claim.attempt,
        .max_attempts = job->claim.max_attempts,
        .retry_in_ms = job->retry_in_ms,
    };
    if (returned != PAWL_SUCCEEDED) {
        trial.timed_out = pawli_job_timed_out(job);
        trial.pool_stopping = atomic_load(&job->pool->stopping);
        trial.told_pool = atomic_load(&job->pool->grace_over)
                          && atomic_load(&job->stop_reason) != PAWL_STOP_CANCEL;
    }
    if ((returned != PAWL_SUCCEEDED && returned != PAWL_FAILED) || job->effects != NULL)
        trial.backoff_ms = backoff_for(job);
    job->ending.verdict = pawli_judge(&trial);
    explain(job, &trial, &job->ending.verdict);
    job->ending.effects = job->ending.verdict.to == PAWL_STATE_SUCCEEDED ? job->effects : NULL;
    if (job->ending.effects == NULL)
        return;
    trial.returned = PAWL_RETRY; /* what it comes to if an effect fails */
    trial.retry_in_ms = -1;
    trial.pool_stopping = trial.told_pool = false;
    job->ending.fallback = pawli_judge(&trial);
}

/* In a child that the backoff function forks it is not posted: the parent does that. */
static void post_finalize(pawl_job *job, int returned)
{
    decide(job, returned);
    if (!pawli_fork_mark_is_child(&job->pool->fork_mark))
        pawli_channel_post(&job->pool->channel, &job->finalize); /* J2 */
}

static bool detach(pawl_job *job)
{
    pawl_pool *pool = job->pool;
    int started = PAWLI_PHASE_STARTED;
    job->holds_slot = pawli_presence_hold(&pool->presence, job->claim.fence, &job->detached_slot);
    (void)atomic_fetch_add(&pool->dispatch.detached, 1);
    if (!atomic_compare_exchange_strong(&job->phase, &started, PAWLI_PHASE_DETACHED)) {
        (void)atomic_fetch_sub(&pool->dispatch.detached, 1);
        if (job->holds_slot)
            pawli_presence_let_go(&pool->presence, job->detached_slot);
        return false; /* finished before the handler returned */
    }
    /* From here on the application may finish and free it. If its claim was lost before, the writer has
     * looked at its phase already: it looks again at the lost ones that were detached since. */
    atomic_store(&pool->writer.detached_some, true);
    pawli_channel_wake(&pool->channel); /* an executor is free (I10) */
    return true;
}

void pawli_job_returned(pawl_job *job, int returned)
{
    if (returned == PAWL_DETACHED && detach(job))
        return;
    if (atomic_exchange(&job->phase, PAWLI_PHASE_ENDED) == PAWLI_PHASE_FINISHING)
        returned = job->returned; /* J1: the application has said how it ends */
    post_finalize(job, returned);
}

void pawli_job_give_back(pawl_job *job)
{
    pawli_presence_spare(&job->pool->presence, job->claim.fence);
    job->ending.verdict = (pawli_verdict){ PAWL_RELEASED, PAWL_STATE_PENDING, 0, false };
    job->ending.effects = NULL;
    job->ending.error = NULL;
}

static pawl_status finish_detached(pawl_job *job, int outcome)
{
    pawl_pool *pool = job->pool;
    bool lost = atomic_load(&job->lost);
    if (job->holds_slot)
        pawli_presence_let_go(&pool->presence, job->detached_slot);
    post_finalize(job, outcome);
    if (pawli_fork_mark_is_child(&pool->fork_mark))
        return forked(job);
    (void)atomic_fetch_sub(&pool->dispatch.detached, 1); /* last: a close waits for it */
    return lost ? pawli_fail(PAWL_ERR_LEASE_LOST, "the claim was lost") : PAWL_OK;
}

pawl_status pawl_job_finish(pawl_job *job, int outcome)
{
    if (job == NULL)
        return pawli_fail(PAWL_ERR_INVALID, "pawl_job_finish: the job is NULL");
    if (is_in_child(job)) /* before anything that the parent shares */
        return forked(job);
    job->returned = outcome;
    int phase = PAWLI_PHASE_STARTED;
    bool lost = atomic_load(&job->lost);
    if (atomic_compare_exchange_strong(&job->phase, &phase, PAWLI_PHASE_FINISHING))
        return lost ? pawli_fail(PAWL_ERR_LEASE_LOST, "the claim was lost") : PAWL_OK;
    if (phase == PAWLI_PHASE_DETACHED
        && atomic_compare_exchange_strong(&job->phase, &phase, PAWLI_PHASE_ENDED))
        return finish_detached(job, outcome);
    if (phase != PAWLI_PHASE_ABANDONED)
        return pawli_fail(PAWL_ERR_STATE, "pawl_job_finish: the job has been finished already");
    bool closed = pawli_names_closed(job->names);
    pawli_job_destroy(job);
    return closed ? pawli_fail(PAWL_ERR_CLOSED, "the pool was closed before the job was finished")
                  : pawli_fail(PAWL_ERR_LEASE_LOST, "the claim was lost before the job was finished");
}
