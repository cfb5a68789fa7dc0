/* batch.c - what one transaction is made of, and what follows from its answers.
 *
 * Threads: the writer's role. Forming happens after the transaction has begun, so what is taken here is
 *          answered for sure; settling after the commit, with no transaction open: the application's
 *          drop functions may be called.
 * Keeps:   W2 a command is answered exactly once, after the commit that contains it;
 *          W3 outcomes of handlers are never dropped: those that were not written are queued again. */
#include "batch.h"

#include <string.h>

#include "pool.h"

#define BATCH_JOBS_MAX 1024 /* new jobs in one transaction, unless one call brings more */
#define BATCH_JOBS_MIN 256
#define BLANKS_KEPT ((size_t)2 * PAWLI_CLAIMS_MAX)
#define PRUNE_BASE 100
#define EVICT_AGAIN_NS (1000 * PAWLI_NS_PER_MS)

/* ------------------------------------------------------------------------------ forming */

static void add_ending(pawli_making *m, pawli_ending *ending)
{
    ending->next = NULL;
    *m->ending_tail = ending;
    m->ending_tail = &ending->next;
    m->batch.commands++;
}

static void add_heartbeat(pawli_making *m, pawli_heartbeat *heartbeat)
{
    heartbeat->next = NULL;
    *m->heartbeat_tail = heartbeat;
    m->heartbeat_tail = &heartbeat->next;
    m->batch.commands++;
}

static void add_job_commands(pawli_writer *w, pawli_making *m)
{
    for (pawli_command *c = w->endings.first; c != NULL; c = c->next)
        add_ending(m, &PAWLI_CONTAINER(c, pawl_job, finalize)->ending);
    for (pawl_job *job = w->evicted; job != NULL; job = job->next_evicted)
        if (!job->ending_queued) /* it came back after all */
            add_ending(m, &job->eviction);
    for (pawli_command *c = w->heartbeats.first; c != NULL; c = c->next)
        add_heartbeat(m, &PAWLI_CONTAINER(c, pawl_job, heartbeat)->beat);
    if (w->renewals > 0)
        for (pawl_job *job = w->in_hand; job != NULL; job = job->after)
            if (job->renewal_queued)
                add_heartbeat(m, &job->renewal);
}

static void add_request(pawli_making *m, pawli_request *request)
{
    pawli_queue_push(&m->taken, &request->command);
    m->batch.commands++;
    if (request->command.type == PAWLI_COMMAND_ENQUEUE) {
        pawli_new_jobs *group = &((pawli_enqueue_request *)(void *)request)->group;
        group->next = NULL;
        *m->enqueue_tail = group;
        m->enqueue_tail = &group->next;
        m->jobs += group->count;
    } else {
        pawli_operation *operation = &((pawli_operate_request *)(void *)request)->operation;
        operation->next = NULL;
        *m->operation_tail = operation;
        m->operation_tail = &operation->next;
    }
}

/* While the executors outrun the commits, a new job that is handed off costs two row writes and one that
 * waits as a ready row three: so what waits already is let go first, and new jobs come in as fast as they
 * can be started. When handlers are slow all is stored that there is. */
static size_t intake(const pawl_pool *pool, const pawli_making *m)
{
    pawli_outlook out;
    if (m->batch.claim_max <= pool->options.executors)
        return BATCH_JOBS_MAX;
    pool->store->ops->outlook(pool->store, &out);
    int64_t room = (int64_t)m->batch.claim_max - out.claimable;
    return room > BATCH_JOBS_MIN ? (size_t)room : BATCH_JOBS_MIN;
}

/* The transaction has begun: from here on a caller waits for the end. */
static void add_requests(pawl_pool *pool, pawli_making *m)
{
    uint32_t commands = 0;
    size_t bytes = 0, most = intake(pool, m);
    while (pool->writer.requests.first != NULL && m->jobs < most) {
        pawli_request *request = pawli_request_of(pawli_queue_pop(&pool->writer.requests));
        commands++;
        bytes += request->bytes;
        if (pawli_request_take(request))
            add_request(m, request);
    }
    if (commands > 0)
        pawli_channel_free(&pool->channel, commands, bytes);
}

static void add_blanks(pawl_pool *pool, pawli_making *m)
{
    pawli_writer *w = &pool->writer;
    m->batch.claim_max = pawli_writer_claim_room(pool);
    while (w->blank_count < m->batch.claim_max) {
        pawl_job *job = pawli_job_create(pool);
        if (job == NULL) {
            m->batch.claim_max = w->blank_count; /* fewer claims; the next batch tries again */
            break;
        }
        job->claim.next = w->blanks;
        w->blanks = &job->claim;
        w->blank_count++;
    }
    m->batch.blanks = w->blanks;
}

void pawli_batch_form(pawl_pool *pool, pawli_making *m)
{
    pawli_writer *w = &pool->writer;
    memset(m, 0, sizeof *m);
    m->ending_tail = &m->batch.endings;
    m->heartbeat_tail = &m->batch.heartbeats;
    m->enqueue_tail = &m->batch.enqueues;
    m->operation_tail = &m->batch.operations;
    m->batch.now_ms = pawli_clock_wall_ms(&pool->clock);
    m->batch.boot_ms = pawli_clock_boot_ms(&pool->clock);
    add_job_commands(w, m);
    m->batch.commands_only = !pawli_writer_does_own_work(pool);
    m->batch.rescues = m->batch.commands_only ? NULL : w->rescues;
    m->batch.sweep = w->sweep;
    m->batch.prune_max = PRUNE_BASE + 2 * w->endings.count;
    add_blanks(pool, m);
    add_requests(pool, m);
}

/* ----------------------------------------------------------------------------- settling */

static void keep_blank(pawl_pool *pool, pawl_job *job)
{
    pawli_writer *w = &pool->writer;
    if (w->blank_count >= BLANKS_KEPT) {
        pawli_job_destroy(job);
        return;
    }
    pawli_job_recycle(job);
    job->claim.next = w->blanks;
    w->blanks = &job->claim;
    w->blank_count++;
}

/* The application's drop functions are called here: the transaction is over. */
static void end_job(pawl_pool *pool, pawl_job *job, pawl_status status)
{
    pawli_writer *w = &pool->writer;
    if (status == PAWL_ERR_LEASE_LOST)
        (void)atomic_fetch_add(&w->late_refused, 1);
    pawli_in_hand_remove(pool, job);
    keep_blank(pool, job);
}

/* Only marked here: other nodes of the job, another heartbeat or its eviction, may stand in this very
 * batch, and a detached job may be the application's to free from the moment that it is let go of. */
static void lose_claim(pawl_pool *pool, pawl_job *job)
{
    atomic_store(&job->lost, true);
    pool->writer.lost_some = true;
}

static void let_go_of_lost(pawl_pool *pool)
{
    if (!pool->writer.lost_some)
        return;
    pool->writer.lost_some = false;
    for (pawl_job *job = pool->writer.in_hand, *next; job != NULL; job = next) {
        next = job->after;
        if (atomic_load(&job->lost))
            pawli_claim_lost(pool, job);
    }
}

static void end_eviction(pawl_pool *pool, pawl_job *job)
{
    pawli_log_line(&pool->log, PAWL_LOG_WARNING,
                   "job %lld of kind \"%s\" is stuck: it %s; its claim has ended, an outcome that comes later "
                   "will be refused",
                   (long long)job->claim.job, job->claim.kind, job->eviction_error);
    lose_claim(pool, job);
}

/* The store refused it alone: it is tried again, but not in a hot loop. */
static void evict_later(pawl_pool *pool)
{
    pawli_supervise_by(pool, pawli_add(pawli_clock_steady_ns(&pool->clock), EVICT_AGAIN_NS));
}

static bool is_settled(pawl_status status)
{
    return status == PAWL_OK || status == PAWL_ERR_LEASE_LOST;
}

static void settle_endings(pawl_pool *pool, pawli_making *m)
{
    pawli_writer *w = &pool->writer;
    w->finished_before = w->finished_last;
    w->finished_last = 0;
    w->endings = (pawli_queue){ NULL, NULL, 0 };
    w->evicted = NULL;
    for (pawli_ending *e = m->batch.endings, *next; e != NULL; e = next) {
        pawl_job *job = e->job;
        next = e->next;
        if (e == &job->eviction) {
            if (is_settled(e->status))
                end_eviction(pool, job);
            else
                evict_later(pool);
        } else if (is_settled(e->status)) {
            w->finished_last++;
            end_job(pool, job, e->status);
        } else {
            pawli_writer_defer(pool, job); /* W3 */
        }
    }
}

static void settle_heartbeat(pawl_pool *pool, pawli_heartbeat *h)
{
    pawl_job *job = pawli_job_of((pawli_claim *)(uintptr_t)h->claim);
    if (h->status == PAWL_OK)
        atomic_store(&job->lease_boot_ms, h->lease_boot_ms);
    else if (h->status == PAWL_ERR_LEASE_LOST && job->in_hand && !job->ending_queued)
        lose_claim(pool, job);
    if (h == &job->renewal)
        return;
    pawli_pool_answer_beat(pool, &job->heartbeat_state);
}

/* Before the endings: a job must not be a blank again while its heartbeat is looked at. */
static void settle_heartbeats(pawl_pool *pool, pawli_making *m)
{
    pawli_writer *w = &pool->writer;
    w->heartbeats = (pawli_queue){ NULL, NULL, 0 };
    for (pawl_job *job = w->renewals > 0 ? w->in_hand : NULL; job != NULL; job = job->after)
        job->renewal_queued = false;
    w->renewals = 0;
    for (pawli_heartbeat *h = m->batch.heartbeats, *next; h != NULL; h = next) {
        next = h->next;
        settle_heartbeat(pool, h);
    }
}

static pawl_status status_of(const pawli_request *request)
{
    if (request->command.type == PAWLI_COMMAND_ENQUEUE)
        return ((const pawli_enqueue_request *)(const void *)request)->group.status;
    return ((const pawli_operate_request *)(const void *)request)->operation.status;
}

void pawli_batch_answer(pawl_pool *pool, pawli_queue *taken, pawl_status failed)
{
    pawli_command *command;
    while ((command = pawli_queue_pop(taken)) != NULL) {
        pawli_request *request = pawli_request_of(command);
        pawli_request_answer(pool, request, failed != PAWL_OK ? failed : status_of(request));
    }
    pawli_loop_notify(&pool->loop);
}

/* Claims become jobs in hand; one that was handed off holds the request that owns its payload. */
static void adopt_claims(pawl_pool *pool, pawli_making *m)
{
    int64_t now = pawli_clock_steady_ns(&pool->clock);
    int64_t lease_boot = m->batch.boot_ms + pool->options.lease_ms;
    for (pawli_claim *claim = m->batch.claimed; claim != NULL; claim = claim->next) {
        pawl_job *job = pawli_job_of(claim);
        if (claim->source != NULL)
            (void)atomic_fetch_add(&((pawli_enqueue_request *)claim->source->owner)->holders, 1);
        pawli_job_prepare(job, now, lease_boot);
        pawli_in_hand_add(pool, job);
    }
}

static void count(pawl_pool *pool, const pawli_making *m)
{
    pawli_writer *w = &pool->writer;
    (void)atomic_fetch_add(&w->commits, 1);
    (void)atomic_fetch_add(&w->commands, m->batch.commands);
    (void)atomic_fetch_add(&w->handed_off, m->batch.handed_off);
    (void)atomic_fetch_add(&w->rescued, m->batch.rescued);
}

static bool has_claimable(pawl_pool *pool)
{
    pawli_outlook out;
    pool->store->ops->outlook(pool->store, &out);
    return out.claimable > 0;
}

void pawli_batch_settle(pawl_pool *pool, pawli_making *m)
{
    pawli_writer *w = &pool->writer;
    bool found_none = m->batch.claim_max > 0 && m->batch.claimed_count == 0 && m->batch.commands == 0;
    w->blanks = m->batch.blanks;
    w->blank_count -= m->batch.claimed_count;
    count(pool, m);
    adopt_claims(pool, m);
    settle_heartbeats(pool, m);
    settle_endings(pool, m);
    let_go_of_lost(pool);
    if (!m->batch.commands_only)
        pawli_survey_done(pool, m->batch.sweep_left);
    bool operated = m->batch.operations != NULL;
    pawli_dispatch_put(&pool->dispatch, m->batch.claimed, m->batch.claimed_count);
    pawli_batch_answer(pool, &m->taken, PAWL_OK);
    if (operated || m->batch.by_triggers)
        pawli_writer_look_for_cancels(pool);
    w->claims_dry = found_none && !m->batch.by_triggers && has_claimable(pool);
}
