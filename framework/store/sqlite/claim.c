/* claim.c - takes jobs in the order (priority high first, id) over all lanes served here.
 *
 * The order is a merge of streams: the heads of each lane that has ready rows, and the batch's own
 * new jobs. A new job that is taken is inserted as already running (the hand-off): exactly when no
 * ready row stands before it.
 * Threads: the writer's role, inside its transaction.
 * Keeps:   I4 one live claim, I5 growing fences, I13 nothing early, I14 order, I23 nobody starves. */
#include <stdlib.h>
#include <string.h>

#include "sqlite_store.h"

typedef struct head {
    int64_t id;
    int64_t priority;
} head;

/* The next ready rows of a lane, read by the index alone. */
typedef struct stream {
    pawli_lane *lane;
    head *heads;
    size_t count, at;
    bool ended;
} stream;

typedef struct merge {
    pawli_sqlite *s;
    stream *streams;
    size_t stream_count, page;
    head *heads;              /* all streams' pages */
    pawli_new_job **fresh;    /* candidates for the hand-off, in claim order */
    size_t fresh_count, fresh_at;
    pawli_claim **tail;
} merge;

static bool has_room(const pawli_service *service)
{
    return service->in_flight_max == 0
           || (int64_t)service->in_flight + service->picked < service->in_flight_max;
}

static bool is_open(pawli_sqlite *s, pawli_lane *lane)
{
    pawli_service *service = pawli_lane_service(s, lane);
    return service != NULL && has_room(service);
}

/* ------------------------------------------------------------------------- the streams */

static int read_page(merge *m, stream *st)
{
    head last = { 0, INT64_MAX };
    if (st->count > 0)
        last = st->heads[st->count - 1];
    int rc;
    st->count = st->at = 0;
    sqlite3_stmt *row = pawli_query(m->s, PAWLI_SQL_HEADS, &rc, NUM(st->lane->id), NUM(last.priority),
                                    NUM(last.id), NUM(m->page));
    if (row == NULL)
        return rc;
    while ((rc = sqlite3_step(row)) == SQLITE_ROW)
        st->heads[st->count++] =
            (head){ sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1) };
    st->ended = st->count < m->page;
    return pawli_done(row, rc);
}

static size_t count_streams(pawli_sqlite *s)
{
    size_t count = 0;
    for (pawli_lane *lane = s->lanes.all; lane != NULL; lane = lane->next)
        count += lane->counts[PAWLI_COUNT_READY] > 0 && is_open(s, lane);
    return count;
}

static int open_streams(merge *m)
{
    size_t wanted = m->s->batch->claim_max;
    m->stream_count = count_streams(m->s);
    if (m->stream_count == 0)
        return SQLITE_OK;
    m->page = m->stream_count == 1 ? wanted : wanted / m->stream_count + 8;
    m->streams = calloc(m->stream_count, sizeof *m->streams);
    m->heads = calloc(m->stream_count * m->page, sizeof *m->heads);
    if (m->streams == NULL || m->heads == NULL)
        return SQLITE_NOMEM;
    size_t i = 0;
    int rc = SQLITE_OK;
    for (pawli_lane *lane = m->s->lanes.all; lane != NULL && rc == SQLITE_OK; lane = lane->next)
        if (lane->counts[PAWLI_COUNT_READY] > 0 && is_open(m->s, lane)) {
            m->streams[i] = (stream){ .lane = lane, .heads = m->heads + i * m->page };
            rc = read_page(m, &m->streams[i++]);
        }
    return rc;
}

/* The lane's next row, or NULL when it has none, or its kind no room. */
static int peek(merge *m, stream *st, const head **out)
{
    *out = NULL;
    if (st->at == st->count && !st->ended) {
        int rc = read_page(m, st);
        if (rc != SQLITE_OK)
            return rc;
    }
    /* No more than the counter says, whatever rows somebody's SQL has added. */
    if (st->at < st->count && has_room(st->lane->service) && st->lane->counts[PAWLI_COUNT_READY] > 0)
        *out = &st->heads[st->at];
    return SQLITE_OK;
}

static bool goes_before(const head *a, const head *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->id < b->id;
}

static int first_stored(merge *m, stream **out)
{
    const head *best = NULL;
    *out = NULL;
    for (size_t i = 0; i < m->stream_count; i++) {
        const head *candidate;
        int rc = peek(m, &m->streams[i], &candidate);
        if (rc != SQLITE_OK)
            return rc;
        if (candidate != NULL && (best == NULL || goes_before(candidate, best))) {
            best = candidate;
            *out = &m->streams[i];
        }
    }
    return SQLITE_OK;
}

/* ------------------------------------------------------------------------ the new jobs */

static bool may_start(pawli_sqlite *s, const pawli_new_job *job)
{
    return !job->exists && job->available_at_ms <= s->batch->now_ms && is_open(s, job->lane);
}

static int by_priority(const void *a, const void *b)
{
    const pawli_new_job *const *x = a, *const *y = b;
    if ((*x)->priority != (*y)->priority)
        return (*x)->priority > (*y)->priority ? -1 : 1;
    return (*x)->order < (*y)->order ? -1 : 1;
}

/* Producers rarely mix priorities: then this only looks. */
static void sort_by_priority(pawli_new_job **jobs, size_t count)
{
    bool sorted = true;
    for (size_t i = 0; i < count; i++) {
        jobs[i]->order = i;
        sorted = sorted && (i == 0 || jobs[i - 1]->priority >= jobs[i]->priority);
    }
    if (!sorted)
        qsort(jobs, count, sizeof(pawli_new_job *), by_priority);
}

static int gather_fresh(merge *m)
{
    size_t total = 0;
    for (pawli_new_jobs *group = m->s->batch->enqueues; group != NULL; group = group->next)
        total += group->count;
    if (total == 0)
        return SQLITE_OK;
    m->fresh = malloc(total * sizeof *m->fresh); /* NOLINT(bugprone-sizeof-expression): pointers are meant */
    if (m->fresh == NULL)
        return SQLITE_NOMEM;
    for (pawli_new_jobs *group = m->s->batch->enqueues; group != NULL; group = group->next)
        for (size_t i = 0; i < group->count; i++)
            if (may_start(m->s, &group->jobs[i]))
                m->fresh[m->fresh_count++] = &group->jobs[i];
    sort_by_priority(m->fresh, m->fresh_count);
    return SQLITE_OK;
}

static pawli_new_job *first_fresh(merge *m)
{
    while (m->fresh_at < m->fresh_count && !has_room(m->fresh[m->fresh_at]->lane->service))
        m->fresh_at++;
    return m->fresh_at < m->fresh_count ? m->fresh[m->fresh_at] : NULL;
}

/* -------------------------------------------------------------------------- the claims */

static pawli_claim *take_blank(merge *m, pawli_lane *lane)
{
    pawli_batch *batch = m->s->batch;
    pawli_claim *claim = batch->blanks;
    batch->blanks = claim->next;
    claim->next = NULL;
    *m->tail = claim;
    m->tail = &claim->next;
    batch->claimed_count++;
    claim->lane = lane;
    claim->service = lane->service;
    claim->service->picked++;
    claim->queue = lane->queue;
    claim->kind = lane->kind;
    claim->fence = (uint64_t)(m->s->fence_base + ++m->s->fence);
    m->s->fence_moved = true;
    claim->source = NULL;
    return claim;
}

static void hand_off(merge *m, pawli_new_job *job)
{
    pawli_claim *claim = take_blank(m, job->lane);
    m->fresh_at++;
    job->claim = claim;
    claim->source = job;
    claim->attempt = 1;
    claim->max_attempts = job->max_attempts;
    claim->timeout_ms = job->timeout_ms;
    claim->payload = job->payload;
    claim->payload_bytes = job->payload_bytes;
    m->s->batch->handed_off++;
}

/* Text stays text: numbers that SQL put there are read as their digits. */
static int copy_payload(pawli_claim *claim, sqlite3_stmt *row, int column)
{
    const void *from = sqlite3_column_type(row, column) == SQLITE_BLOB
                           ? sqlite3_column_blob(row, column)
                           : sqlite3_column_text(row, column);
    size_t bytes = (size_t)sqlite3_column_bytes(row, column);
    if (from == NULL && bytes > 0)
        return SQLITE_NOMEM;
    if (bytes + 1 > claim->buffer_bytes) {
        size_t room = bytes + 1 < 256 ? 256 : bytes + 1;
        char *grown = realloc(claim->buffer, room);
        if (grown == NULL)
            return SQLITE_NOMEM;
        claim->buffer = grown;
        claim->buffer_bytes = room;
    }
    if (bytes > 0)
        memcpy(claim->buffer, from, bytes);
    claim->buffer[bytes] = '\0';
    claim->payload = claim->buffer;
    claim->payload_bytes = bytes;
    return SQLITE_OK;
}

/* Reads what the handler needs; false in *usable: a row that no claim may be made of. */
static int read_job(pawli_sqlite *s, int64_t id, pawli_claim *claim, bool *usable)
{
    int rc;
    *usable = false;
    sqlite3_stmt *row = pawli_query(s, PAWLI_SQL_CLAIM_READ, &rc, NUM(id));
    if (row == NULL)
        return rc;
    rc = sqlite3_step(row);
    if (rc == SQLITE_ROW) {
        int64_t attempts = sqlite3_column_int64(row, 0), most = sqlite3_column_int64(row, 1);
        *usable = attempts < most && most <= UINT32_MAX && sqlite3_column_int(row, 3) == 0;
        claim->attempt = (uint32_t)attempts + 1;
        claim->max_attempts = (uint32_t)most;
        claim->timeout_ms = sqlite3_column_int64(row, 2);
        int copied = *usable ? copy_payload(claim, row, 4) : SQLITE_OK;
        if (copied != SQLITE_OK)
            rc = copied;
    }
    return pawli_done(row, rc);
}

int pawli_refuse(pawli_sqlite *s, int64_t job, const char *why)
{
    return pawli_run(s, PAWLI_SQL_REFUSE, NUM(job), NUM(s->batch->now_ms), TEXT(why));
}

static int refuse(pawli_sqlite *s, pawli_lane *lane, int64_t id)
{
    int rc = pawli_refuse(s, id, "no attempts left, or its payload is too large");
    if (rc == SQLITE_OK && sqlite3_changes(s->db) > 0)
        pawli_lane_move(s, lane, PAWLI_DB_READY, PAWLI_DB_FAILED);
    return rc;
}

static int take_stored(merge *m, stream *from)
{
    pawli_sqlite *s = m->s;
    const pawli_batch *batch = s->batch;
    int64_t id = from->heads[from->at++].id;
    bool usable;
    int rc = read_job(s, id, batch->blanks, &usable);
    if (rc != SQLITE_OK)
        return rc;
    if (!usable)
        return refuse(s, from->lane, id);
    pawli_claim *claim = take_blank(m, from->lane);
    claim->job = id;
    rc = pawli_change(s, PAWLI_SQL_CLAIM, NUM(id), NUM(s->holder), NUM(claim->fence), NUM(batch->now_ms),
                      NUM(batch->now_ms + s->host.options->lease_ms),
                      NUM(batch->boot_ms + s->host.options->lease_ms));
    if (rc == SQLITE_OK)
        pawli_lane_move(s, from->lane, PAWLI_DB_READY, PAWLI_DB_RUNNING);
    return rc;
}

static int take_all(merge *m)
{
    const pawli_batch *batch = m->s->batch;
    while (batch->claimed_count < batch->claim_max && batch->blanks != NULL) {
        stream *stored;
        int rc = first_stored(m, &stored);
        if (rc != SQLITE_OK)
            return rc;
        pawli_new_job *fresh = first_fresh(m);
        if (stored == NULL && fresh == NULL)
            return SQLITE_OK;
        /* At equal priority the stored row is older: its id is smaller. */
        if (stored != NULL
            && (fresh == NULL || stored->heads[stored->at].priority >= fresh->priority))
            rc = take_stored(m, stored);
        else
            hand_off(m, fresh);
        if (rc != SQLITE_OK)
            return rc;
    }
    return SQLITE_OK;
}

int pawli_claim_apply(pawli_sqlite *s, bool with_fresh)
{
    pawli_batch *batch = s->batch;
    if (batch->claim_max == 0)
        return SQLITE_OK;
    merge m = { .s = s, .tail = &batch->claimed };
    int rc = open_streams(&m);
    if (rc == SQLITE_OK && with_fresh)
        rc = gather_fresh(&m);
    if (rc == SQLITE_OK)
        rc = take_all(&m);
    free(m.streams);
    free(m.heads);
    free(m.fresh);
    return rc;
}

/* The transaction is undone: what was claimed are blanks again. */
void pawli_claim_undo(pawli_sqlite *s)
{
    pawli_batch *batch = s->batch;
    while (batch->claimed != NULL) {
        pawli_claim *claim = batch->claimed;
        batch->claimed = claim->next;
        claim->next = batch->blanks;
        batch->blanks = claim;
        claim->service->picked--;
        if (claim->source != NULL)
            claim->source->claim = NULL;
        claim->source = NULL;
    }
    batch->claimed_count = batch->handed_off = 0;
}
