/* writer.c - the one writer: gathers commands, writes them in one transaction, then answers.
 *
 * A step collects what waits in the channel, lets the clock have its say (supervise.c), and, if there is
 * anything to write, begins a transaction, forms a batch (batch.c), hands it to the store, and after the
 * commit answers callers and dispatches claims. While one commit waits for the disk the next batch gathers.
 * Threads: the writer's role: pawl-writer, or a caller under the role lock while no such thread runs.
 * Keeps:   W1 only this role opens a write transaction, one at a time;
 *          W2 a command is answered exactly once, after the commit that contains it;
 *          W3 outcomes of handlers are never dropped: they wait until the store takes them (R5);
 *          W4 no lock is held, and no transaction is open, while an executor or a callback runs. */
#include "writer.h"

#include <string.h>

#include "batch.h"
#include "pool.h"
#include "status.h"
#include "thread.h"

#define BEGIN_SLICE_MS 20     /* the writer looks up between two tries to get the write lock */
#define RETRY_MIN_NS (1 * PAWLI_NS_PER_MS)
#define RETRY_MAX_NS (1000 * PAWLI_NS_PER_MS)
#define TIDY_AGAIN_NS (1000 * PAWLI_NS_PER_MS)
#define CLOCK_CHECK_NS (2000 * PAWLI_NS_PER_MS) /* the wall clock may be set while a job waits for it */

void pawli_writer_init(pawli_writer *w)
{
    memset(w, 0, sizeof *w);
    w->next_supervise_ns = w->next_tidy_ns = PAWLI_NEVER;
}

/* ------------------------------------------------------------------------------- queues */

void pawli_queue_push(pawli_queue *q, pawli_command *command)
{
    command->next = NULL;
    if (q->first == NULL)
        q->first = command;
    else
        q->last->next = command;
    q->last = command;
    q->count++;
}

pawli_command *pawli_queue_pop(pawli_queue *q)
{
    pawli_command *command = q->first;
    if (command != NULL) {
        q->first = command->next;
        q->count--;
    }
    return command;
}

static void drop_withdrawn_waiters(pawli_writer *w)
{
    pawli_queue waiters = w->waiters;
    pawli_command *command;
    w->waiters = (pawli_queue){ NULL, NULL, 0 };
    while ((command = pawli_queue_pop(&waiters)) != NULL)
        if (atomic_load(&pawli_request_of(command)->state) == PAWLI_REQUEST_WITHDRAWN)
            pawli_request_release(pawli_request_of(command));
        else
            pawli_queue_push(&w->waiters, command);
}

static void collect_one(pawli_writer *w, pawli_command *command)
{
    switch (command->type) {
    case PAWLI_COMMAND_FINALIZE:
        PAWLI_CONTAINER(command, pawl_job, finalize)->ending_queued = true;
        pawli_queue_push(&w->endings, command);
        break;
    case PAWLI_COMMAND_HEARTBEAT: pawli_queue_push(&w->heartbeats, command); break;
    case PAWLI_COMMAND_IDLE:
        drop_withdrawn_waiters(w);
        pawli_queue_push(&w->waiters, command);
        break;
    case PAWLI_COMMAND_ENQUEUE:
    case PAWLI_COMMAND_OPERATE:
    default: pawli_queue_push(&w->requests, command); break;
    }
}

static void collect(pawl_pool *pool)
{
    pawli_command *command = pool->writer.takes_no_more ? NULL : pawli_channel_take(&pool->channel);
    if (command != NULL)
        pool->writer.claims_dry = false;
    while (command != NULL) {
        pawli_command *next = command->next;
        collect_one(&pool->writer, command);
        command = next;
    }
}

/* ------------------------------------------------------------------- what there is to do */

/* A borrowed role does what was asked for, nothing else, and so does a pool that stops; after an error the
 * pool's own work waits. */
bool pawli_writer_does_own_work(const pawl_pool *pool)
{
    const pawli_writer *w = &pool->writer;
    return w->may_claim && pool->started && !atomic_load(&pool->stopping)
           && w->own_work_at_ns <= pawli_steady_now_ns();
}

/* How many more jobs may be claimed: one per executor, growing to what the executors finished during
 * the last two commits, so that short handlers never wait for a commit. */
size_t pawli_writer_claim_room(pawl_pool *pool)
{
    pawli_writer *w = &pool->writer;
    uint32_t detached = atomic_load(&pool->dispatch.detached);
    if (!pawli_writer_does_own_work(pool) || detached >= pool->options.detached_max)
        return 0;
    size_t window = pool->options.executors;
    size_t finished = (size_t)w->finished_before + w->finished_last;
    if (w->finished_last > 0 && finished > window)
        window = finished < PAWLI_CLAIMS_MAX ? finished : PAWLI_CLAIMS_MAX;
    size_t may_detach = (size_t)pool->options.detached_max - detached; /* any of them may do so */
    if (window > may_detach)
        window = may_detach > pool->options.executors ? may_detach : pool->options.executors;
    size_t occupied = (size_t)atomic_load(&pool->dispatch.length) + atomic_load(&pool->dispatch.busy);
    return window > occupied ? window - occupied : 0;
}

static pawli_outlook outlook(pawl_pool *pool)
{
    pawli_outlook out;
    pool->store->ops->outlook(pool->store, &out);
    return out;
}

static bool is_due(const pawl_pool *pool, const pawli_outlook *out)
{
    return out->next_due_ms <= pawli_clock_wall_ms(&pool->clock);
}

static bool has_commands(const pawli_writer *w)
{
    return w->requests.first != NULL || w->endings.first != NULL || w->heartbeats.first != NULL
           || w->renewals > 0 || w->evicted != NULL;
}

bool pawli_writer_owes(const pawl_pool *pool)
{
    const pawli_writer *w = &pool->writer;
    return w->requests.first != NULL || w->endings.first != NULL || w->deferred.first != NULL;
}

static bool has_work(pawl_pool *pool)
{
    const pawli_writer *w = &pool->writer;
    if (has_commands(w))
        return true;
    if (!pawli_writer_does_own_work(pool))
        return false;
    pawli_outlook out = outlook(pool);
    return w->rescues != NULL || w->sweep || is_due(pool, &out) || out.more || out.prune_wanted
           || out.next_prune_ms <= pawli_clock_wall_ms(&pool->clock)
           || (out.claimable > 0 && !w->claims_dry && pawli_writer_claim_room(pool) > 0);
}

/* -------------------------------------------------------------------------------- trouble */

/* Asynchronous requests have nobody to withdraw them; withdrawn ones are let go. */
void pawli_writer_expire(pawl_pool *pool, pawl_status status, bool all)
{
    pawli_queue waiting = pool->writer.requests;
    pool->writer.requests = (pawli_queue){ NULL, NULL, 0 };
    int64_t now = pawli_steady_now_ns();
    pawli_command *command;
    while ((command = pawli_queue_pop(&waiting)) != NULL) {
        pawli_request *request = pawli_request_of(command);
        bool withdrawn = atomic_load(&request->state) == PAWLI_REQUEST_WITHDRAWN;
        bool expired = all || (!request->awaited && request->deadline_ns <= now);
        if (!withdrawn && !expired) {
            pawli_queue_push(&pool->writer.requests, command);
            continue;
        }
        pawli_channel_free(&pool->channel, 1, request->bytes);
        if (pawli_request_take(request))
            pawli_request_answer(pool, request, status);
    }
    pawli_loop_notify(&pool->loop);
}

static void tell_trouble(pawl_pool *pool)
{
    if (!pool->writer.trouble_told)
        pawli_log_line(&pool->log, PAWL_LOG_ERROR, "%s", pawl_error_message());
    pool->writer.trouble_told = true;
}

static int64_t longer(int64_t delay_ns)
{
    return delay_ns < RETRY_MAX_NS / 2 ? 2 * delay_ns + RETRY_MIN_NS : RETRY_MAX_NS;
}

static bool stumble(pawl_pool *pool, pawl_status status)
{
    pawli_writer *w = &pool->writer;
    if (status == PAWL_ERR_BUSY) { /* somebody else writes: normal */
        w->retry_delay_ns = RETRY_MIN_NS;
    } else {
        tell_trouble(pool);
        w->retry_delay_ns = longer(w->retry_delay_ns);
    }
    atomic_store(&w->trouble, status);
    pawli_writer_expire(pool, status, status != PAWL_ERR_BUSY);
    w->retry_at_ns = pawli_add(pawli_steady_now_ns(), w->retry_delay_ns);
    return false;
}

/* A batch was written; is all well? */
static void recovered(pawl_pool *pool, bool refused)
{
    pawli_writer *w = &pool->writer;
    atomic_store(&w->trouble, PAWL_OK);
    w->retry_at_ns = 0;
    w->retry_delay_ns = RETRY_MIN_NS;
    if (refused || w->deferred.first != NULL || w->own_work_at_ns > pawli_steady_now_ns())
        return;
    w->deferred_delay_ns = 0;
    if (w->trouble_told)
        pawli_log_line(&pool->log, PAWL_LOG_WARNING, "%s: the store works again", pool->path);
    w->trouble_told = false;
}

void pawli_writer_defer(pawl_pool *pool, pawl_job *job)
{
    pawli_writer *w = &pool->writer;
    tell_trouble(pool);
    if (w->deferred.first == NULL) {
        w->deferred_delay_ns = longer(w->deferred_delay_ns);
        w->deferred_at_ns = pawli_add(pawli_steady_now_ns(), w->deferred_delay_ns);
    }
    job->is_deferred = true;
    pawli_queue_push(&w->deferred, &job->finalize);
    pawli_supervise_by(pool, 0); /* its lease is to be renewed meanwhile */
}

/* Those that were deferred join the next batch, all together. */
static void take_deferred(pawl_pool *pool)
{
    pawli_writer *w = &pool->writer;
    pawli_command *command;
    if (w->deferred.first == NULL || w->deferred_at_ns > pawli_steady_now_ns())
        return;
    while ((command = pawli_queue_pop(&w->deferred)) != NULL) {
        PAWLI_CONTAINER(command, pawl_job, finalize)->is_deferred = false;
        pawli_queue_push(&w->endings, command);
    }
}

/* The batch was written, but the pool's own work met an error: no hot loop over it. */
static void put_off_own_work(pawl_pool *pool)
{
    tell_trouble(pool);
    pool->writer.own_work_at_ns = pawli_add(pawli_steady_now_ns(), RETRY_MAX_NS);
}

/* -------------------------------------------------------------------------------- a step */

/* What another pool might act upon: jobs that are ready and were not taken here, what an operator did. A pool
 * that is not started does not know who else there is. */
static bool concerns_others(const pawl_pool *pool, const pawli_batch *batch)
{
    if (pool->started && !pool->writer.others)
        return false;
    return batch->operations != NULL || batch->stored > batch->handed_off || batch->rescued > 0
           || batch->promoted > 0 || batch->by_triggers;
}

static bool tidy(pawl_pool *pool, bool idle)
{
    bool wrote, more = pool->store->ops->tidy(pool->store, idle, &wrote);
    if (wrote)
        pawli_watch_ended(pool); /* only then: what others have written is not to be taken for it */
    return more;
}

static bool write_batch(pawl_pool *pool)
{
    const pawli_store_ops *ops = pool->store->ops;
    pawli_making m;
    pawl_status st = ops->recover(pool->store);
    if (st == PAWL_OK)
        st = ops->begin(pool->store, BEGIN_SLICE_MS);
    if (st != PAWL_OK)
        return stumble(pool, st);
    collect(pool); /* what came while the lock was somebody else's */
    pawli_watch_begun(pool);
    pawli_batch_form(pool, &m);
    st = ops->write(pool->store, &m.batch);
    pawli_watch_ended(pool);
    if (st != PAWL_OK) {
        pool->writer.blanks = m.batch.blanks;
        pawli_batch_answer(pool, &m.taken, st);
        return stumble(pool, st);
    }
    if (m.batch.refused)
        put_off_own_work(pool);
    bool for_others = concerns_others(pool, &m.batch);
    pawli_batch_settle(pool, &m);
    if (for_others)
        pawli_watch_tell_others(pool);
    recovered(pool, m.batch.refused);
    if (outlook(pool).foreign)
        atomic_store(&pool->writer.look_wanted, true);
    pool->writer.next_tidy_ns = tidy(pool, false) ? 0 : PAWLI_NEVER;
    return true;
}

void pawli_writer_look_for_cancels(pawl_pool *pool)
{
    int64_t jobs[PAWLI_CLAIMS_MAX];
    size_t found;
    if (pool->writer.in_hand == NULL
        || pool->store->ops->cancels(pool->store, jobs, PAWLI_CLAIMS_MAX, &found) != PAWL_OK)
        return;
    for (size_t i = 0; i < found; i++)
        for (pawl_job *job = pool->writer.in_hand; job != NULL; job = job->after)
            if (job->claim.job == jobs[i])
                atomic_store(&job->stop_reason, PAWL_STOP_CANCEL);
}

static void look_around(pawl_pool *pool)
{
    pawli_writer *w = &pool->writer;
    bool changed = false;
    if (w->retry_at_ns > pawli_steady_now_ns() || !atomic_exchange(&w->look_wanted, false))
        return;
    pawl_status st = pool->store->ops->look(pool->store, &changed);
    if (st != PAWL_OK) {
        (void)stumble(pool, st);
        atomic_store(&w->look_wanted, true); /* not seen yet */
        return;
    }
    if (!changed)
        return;
    (void)atomic_fetch_add(&pool->tide.found, 1);
    w->claims_dry = false;
    pawli_survey_soon(pool);
    pawli_writer_look_for_cancels(pool);
}

/* No claim is held, no outcome is to be written, no handler runs. */
static bool nothing_in_hand(pawl_pool *pool)
{
    const pawli_writer *w = &pool->writer;
    return w->in_hand == NULL && w->lost == NULL && w->endings.first == NULL && w->deferred.first == NULL
           && atomic_load(&pool->dispatch.length) == 0 && atomic_load(&pool->dispatch.busy) == 0;
}

static bool nothing_to_claim(pawl_pool *pool)
{
    if (!pool->started || atomic_load(&pool->stopping))
        return true;
    atomic_store(&pool->writer.look_wanted, true);
    look_around(pool);
    pawli_outlook out = outlook(pool);
    return (out.claimable == 0 || pool->writer.claims_dry) && !is_due(pool, &out) && !out.more;
}

static pawl_status not_idle(const pawl_pool *pool)
{
    return pawli_fail(PAWL_ERR_TIMEOUT, "%s: there is work", pool->path);
}

/* Those who only glance have their answer now; the others when it is yes. */
static void answer_waiters(pawl_pool *pool)
{
    pawli_queue waiters = pool->writer.waiters;
    pawli_command *command;
    if (waiters.first == NULL)
        return;
    bool idle = !has_commands(&pool->writer) && nothing_in_hand(pool) && nothing_to_claim(pool);
    pool->writer.waiters = (pawli_queue){ NULL, NULL, 0 };
    while ((command = pawli_queue_pop(&waiters)) != NULL) {
        pawli_request *request = pawli_request_of(command);
        if (!idle && !request->glance)
            pawli_queue_push(&pool->writer.waiters, command);
        else if (pawli_request_take(request))
            pawli_request_answer(pool, request, idle ? PAWL_OK : not_idle(pool));
    }
}

static void tidy_at_rest(pawl_pool *pool)
{
    pawli_writer *w = &pool->writer;
    int64_t now = pawli_clock_steady_ns(&pool->clock);
    if (w->next_tidy_ns != PAWLI_NEVER && now < w->next_tidy_ns)
        return;
    w->next_tidy_ns = tidy(pool, true) ? now + TIDY_AGAIN_NS : PAWLI_NEVER;
}

/* A stop waits for claims, not for callers: under a flood of them it would wait for ever. Those who have
 * posted by then are answered when the writer ends. */
static void tell_if_quiet(pawl_pool *pool)
{
    if (atomic_load(&pool->stopping) && nothing_in_hand(pool))
        pawli_pool_tell_quiet(pool);
}

bool pawli_writer_step(pawl_pool *pool)
{
    PAWLI_ASSERT_ROLE(PAWLI_ROLE_WRITER);
    collect(pool);
    look_around(pool);
    pawli_supervise(pool, pawli_clock_steady_ns(&pool->clock));
    take_deferred(pool);
    bool progress = false;
    if (!has_work(pool))
        tidy_at_rest(pool);
    else if (pool->writer.retry_at_ns <= pawli_steady_now_ns())
        progress = write_batch(pool);
    answer_waiters(pool);
    tell_if_quiet(pool);
    return progress || (pool->writer.retry_at_ns == 0 && has_work(pool)); /* a waiter's look may find some */
}

bool pawli_writer_step_as_caller(pawl_pool *pool)
{
    pawli_role before = pawli_role_set(PAWLI_ROLE_WRITER);
    bool may_claim = pool->writer.may_claim;
    pool->writer.may_claim = false;
    bool progress = pawli_writer_step(pool);
    pool->writer.may_claim = may_claim;
    (void)pawli_role_set(before);
    return progress;
}

/* -------------------------------------------------------------------------------- the thread */

/* When the wall clock will say `at_ms`, looked at again after `check_ns` at the latest: it may be set. */
static int64_t wall_to_steady(const pawl_pool *pool, int64_t at_ms, int64_t check_ns)
{
    if (at_ms == PAWLI_NEVER)
        return PAWLI_NEVER;
    int64_t wait_ms = at_ms - pawli_clock_wall_ms(&pool->clock);
    int64_t wait_ns = wait_ms > 0 ? pawli_ms_to_ns(wait_ms) : 0;
    return pawli_add(pawli_clock_steady_ns(&pool->clock), pawli_earlier(wait_ns, check_ns));
}

int64_t pawli_writer_next_ns(pawl_pool *pool)
{
    pawli_writer *w = &pool->writer;
    int64_t now = pawli_clock_steady_ns(&pool->clock);
    if (w->retry_at_ns > now && (has_work(pool) || atomic_load(&w->look_wanted)))
        return w->retry_at_ns; /* nothing else can be done before */
    pawli_outlook out = outlook(pool);
    int64_t next = pawli_earlier(w->next_tidy_ns, pawli_supervise_next_ns(pool));
    if (w->deferred.first != NULL)
        next = pawli_earlier(next, w->deferred_at_ns);
    if (w->own_work_at_ns > now)
        return pawli_earlier(next, w->own_work_at_ns);
    if (!pawli_writer_does_own_work(pool))
        return next;
    next = pawli_earlier(next, wall_to_steady(pool, out.next_due_ms, CLOCK_CHECK_NS));
    return pawli_earlier(next, wall_to_steady(pool, out.next_prune_ms, PAWLI_NEVER));
}

void *pawli_writer_main(void *arg)
{
    pawl_pool *pool = arg;
    (void)pawli_role_set(PAWLI_ROLE_WRITER);
    pawli_thread_name("pawl-writer");
    while (!atomic_load(&pool->writer_exits))
        if (!pawli_writer_step(pool))
            pawli_channel_park(&pool->channel, pawli_writer_next_ns(pool));
    return NULL;
}

/* A start that failed while the store could not be written: the claims are left to their lease. */
static void drop_outcomes(pawl_pool *pool)
{
    pawli_writer *w = &pool->writer;
    pawli_command *command;
    w->deferred_at_ns = 0;
    take_deferred(pool);
    while ((command = pawli_queue_pop(&w->endings)) != NULL) {
        pawl_job *job = PAWLI_CONTAINER(command, pawl_job, finalize);
        pawli_in_hand_remove(pool, job);
        pawli_job_destroy(job);
    }
}

void pawli_writer_fini(pawl_pool *pool)
{
    pawli_writer *w = &pool->writer;
    drop_withdrawn_waiters(w);
    drop_outcomes(pool);
    pawli_survey_drop(pool);
    PAWLI_ASSERT(w->requests.first == NULL && w->waiters.first == NULL);
    PAWLI_ASSERT(w->in_hand == NULL && w->endings.first == NULL);
    while (w->blanks != NULL) {
        pawl_job *job = pawli_job_of(w->blanks);
        w->blanks = w->blanks->next;
        pawli_job_destroy(job);
    }
    w->blank_count = 0;
}
