/* write.c - one batch, one transaction: begin, apply, commit.
 *
 * A batch is applied at full speed first. If anything in it fails, the transaction is rolled back and
 * the batch replayed item by item, each under its own savepoint, so that one command's failure changes
 * no other (I17). After FULL, IOERR or NOMEM SQLite may have rolled back by itself (R4); then the
 * replay starts again without the item that met it.
 * Threads: the writer's role.
 * Keeps:   R1 BEGIN IMMEDIATE, R4 never in autocommit by accident, R5 a failed COMMIT is unknown until
 *          the store is in a known state; I17. */
#include "sqlite_store.h"

#define REPLAY_WAIT_MS 100 /* its callers are past withdrawing: they wait rather than hear BUSY */
#define FLUSH_WAIT_MS 500
#define REPLAYS_MAX 16 /* more failures of the whole transaction than that are not one item's fault */

/* ------------------------------------------------------------------------------- begin */

static int read_meta(pawli_sqlite *s, const char *key, int64_t *out)
{
    bool found;
    int rc = pawli_read_integer(s, PAWLI_SQL_META_READ, PAWLI_VALUES(TEXT(key)), out, &found);
    return rc == SQLITE_OK && !found ? SQLITE_CORRUPT : rc;
}

static int read_or(pawli_sqlite *s, pawli_sql sql, int64_t otherwise, int64_t *out)
{
    bool found;
    int rc = pawli_read_integer(s, sql, NULL, 0, out, &found);
    if (!found)
        *out = otherwise;
    return rc;
}

int pawli_read_last_id(pawli_sqlite *s)
{
    return read_or(s, PAWLI_SQL_LAST_ID, 0, &s->last_id);
}

/* Do triggers of somebody's, on pawl's tables or behind a foreign key, take part in our transactions? */
static int look_for_triggers(pawli_sqlite *s)
{
    int64_t version = 0, triggered = 0;
    int rc = read_or(s, PAWLI_SQL_SCHEMA_VERSION, 0, &version);
    if (rc != SQLITE_OK || version == s->schema_version)
        return rc;
    rc = read_or(s, PAWLI_SQL_TRIGGERED, 0, &triggered);
    if (rc != SQLITE_OK)
        return rc;
    s->triggered = triggered != 0;
    s->schema_version = version;
    return SQLITE_OK;
}

static int reload(pawli_sqlite *s)
{
    int64_t epoch;
    int rc = look_for_triggers(s);
    if (rc == SQLITE_OK)
        rc = read_meta(s, "epoch", &epoch);
    if (rc == SQLITE_OK)
        rc = read_meta(s, "fence", &s->fence);
    if (rc == SQLITE_OK)
        rc = pawli_read_last_id(s);
    if (rc == SQLITE_OK)
        rc = read_or(s, PAWLI_SQL_NEXT_DUE, PAWLI_NEVER, &s->next_due_ms);
    if (rc == SQLITE_OK)
        rc = pawli_lanes_load(s);
    if (rc != SQLITE_OK)
        return rc;
    s->fence_base = epoch << PAWLI_FENCE_EPOCH_SHIFT;
    s->stale = false;
    return SQLITE_OK;
}

/* Reads again what another connection may have changed, if one has committed. */
int pawli_sqlite_refresh(pawli_sqlite *s)
{
    int64_t version = 0;
    int rc = read_or(s, PAWLI_SQL_DATA_VERSION, 0, &version);
    if (rc != SQLITE_OK || (version == s->data_version && !s->stale))
        return rc;
    s->foreign |= version != s->data_version;
    s->stale = true;
    s->data_version = version;
    return reload(s);
}

static void roll_back(pawli_sqlite *s)
{
    if (!sqlite3_get_autocommit(s->db))
        (void)pawli_run_plain(s, PAWLI_SQL_ROLLBACK);
    pawli_turn_over(&s->turn);
    pawli_lanes_forget(s);
    s->fence_moved = false;
    s->stale = true;
    s->more = false;
}

static int begin(pawli_sqlite *s)
{
    pawli_turn_yield(&s->turn);
    int rc = pawli_run_plain(s, PAWLI_SQL_BEGIN); /* R1 */
    if (rc != SQLITE_OK)
        return rc;
    pawli_turn_taken(&s->turn);
    rc = pawli_sqlite_refresh(s);
    if (rc != SQLITE_OK)
        roll_back(s);
    return rc;
}

pawl_status pawli_sqlite_begin(pawli_store *store, int64_t wait_ms)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    PAWLI_ASSERT_ROLE(PAWLI_ROLE_WRITER);
    PAWLI_ASSERT(sqlite3_get_autocommit(s->db));
    if (s->down)
        return pawli_fail(PAWL_ERR_STORE, "%s: a commit failed; the store is being recovered", s->path);
    if (pawli_sqlite_same_file(s) != PAWL_OK)
        return PAWL_ERR_STORE; /* R8 */
    s->busy_until_ns = pawli_add(pawli_steady_now_ns(), pawli_ms_to_ns(wait_ms));
    if (s->holder == 0)
        pawli_turn_join(&s->turn, false); /* a holder looks at each survey */
    int rc = begin(s);
    return rc == SQLITE_OK ? PAWL_OK : pawli_sqlite_failed(s, s->db, rc, "begin a transaction");
}

/* ------------------------------------------------------------------------------- items */

typedef enum item_type {
    ITEM_ENDING,
    ITEM_HEARTBEAT,
    ITEM_OPERATION,
    ITEM_RESCUE,
    ITEM_ORPHANS,
    ITEM_SWEEP,
    ITEM_PROMOTE,
    ITEM_ENQUEUE,
    ITEM_CLAIM,
    ITEM_PRUNE
} item_type;

static int apply(pawli_sqlite *s, item_type type, void *item)
{
    switch (type) {
    case ITEM_ENDING: return pawli_finalize_apply(s, item);
    case ITEM_HEARTBEAT: return pawli_heartbeat_apply(s, item);
    case ITEM_OPERATION: return pawli_operate_apply(s, item);
    case ITEM_RESCUE: return pawli_rescue_apply(s, item);
    case ITEM_ORPHANS: return pawli_rescue_orphans(s);
    case ITEM_SWEEP: return pawli_rescue_sweep(s);
    case ITEM_PROMOTE: return pawli_promote_apply(s);
    case ITEM_ENQUEUE: return pawli_enqueue_one(s, item);
    case ITEM_CLAIM: return pawli_claim_apply(s, false);
    case ITEM_PRUNE:
    default: return pawli_prune_apply(s);
    }
}

/* An item that was refused in an earlier pass of the replay; LEASE_LOST is an answer, not a refusal. */
static bool is_refused(pawl_status status)
{
    return status < 0 && status != PAWL_ERR_LEASE_LOST;
}

static int undo_item(pawli_sqlite *s, item_type type)
{
    pawli_lanes_forget(s);
    if (type == ITEM_CLAIM)
        pawli_claim_undo(s);
    int64_t fence = s->fence; /* what this transaction has given away already */
    int rc = pawli_run_plain(s, PAWLI_SQL_ITEM_ROLLBACK);
    if (rc == SQLITE_OK)
        rc = pawli_run_plain(s, PAWLI_SQL_ITEM_RELEASE);
    if (rc == SQLITE_OK)
        rc = reload(s);
    if (fence > s->fence)
        s->fence = fence; /* I5 */
    return rc;
}

static bool is_own_work(item_type type)
{
    return type == ITEM_RESCUE || type == ITEM_ORPHANS || type == ITEM_SWEEP || type == ITEM_PROMOTE
           || type == ITEM_CLAIM || type == ITEM_PRUNE;
}

/* Of jobs that run here, by others than the pool's callers. */
static bool has_new_cancels(pawli_sqlite *s)
{
    int64_t count = 0;
    bool found;
    return s->holder != 0
           && pawli_read_integer(s, PAWLI_SQL_CANCELS_COUNT, PAWLI_VALUES(NUM(s->holder)), &count, &found) == SQLITE_OK
           && found && count != s->cancels_seen;
}

/* What triggers of somebody's have written in this transaction has changed neither the counters in memory nor the
 * last id: their jobs would wait for another connection's next commit (I10), and their lanes be added twice. */
static int see_triggers_work(pawli_sqlite *s)
{
    if (!s->triggered)
        return SQLITE_OK;
    int64_t fence = s->fence, ready = pawli_lanes_total(s, PAWLI_COUNT_READY),
            later = pawli_lanes_total(s, PAWLI_COUNT_LATER);
    int rc = pawli_lanes_flush(s, s->batch->now_ms);
    if (rc == SQLITE_OK)
        rc = reload(s);
    if (fence > s->fence)
        s->fence = fence; /* I5: it is written last */
    s->batch->by_triggers |= pawli_lanes_total(s, PAWLI_COUNT_READY) != ready
                             || pawli_lanes_total(s, PAWLI_COUNT_LATER) != later || has_new_cancels(s);
    return rc;
}

/* Applies one item under its own savepoint and writes its counters. SQLITE_OK: applied or refused. */
static int apply_carefully(pawli_sqlite *s, item_type type, void *item, pawl_status *status)
{
    if (is_refused(*status))
        return SQLITE_OK;
    int rc = pawli_run_plain(s, PAWLI_SQL_ITEM_BEGIN);
    if (rc != SQLITE_OK)
        return rc;
    rc = apply(s, type, item);
    if (rc == SQLITE_OK)
        rc = pawli_lanes_flush(s, s->batch->now_ms);
    if (rc == SQLITE_OK) {
        rc = pawli_run_plain(s, PAWLI_SQL_ITEM_RELEASE);
        return rc == SQLITE_OK ? see_triggers_work(s) : rc;
    }
    *status = pawli_sqlite_failed(s, s->db, rc, "apply a command");
    s->batch->refused |= is_own_work(type);
    return sqlite3_get_autocommit(s->db) ? rc : undo_item(s, type);
}

static int apply_item(pawli_sqlite *s, item_type type, void *item, pawl_status *status)
{
    return s->careful ? apply_carefully(s, type, item, status) : apply(s, type, item);
}

/* ------------------------------------------------------------------------------- batch */

/* The pool's own work needs no answer, but in a replay a refusal must be remembered. */
typedef struct own_work {
    pawl_status orphans, sweep, promote, claim, prune;
} own_work;

static int apply_commands(pawli_sqlite *s, pawli_batch *b)
{
    int rc = SQLITE_OK;
    for (pawli_ending *e = b->endings; e != NULL && rc == SQLITE_OK; e = e->next)
        rc = apply_item(s, ITEM_ENDING, e, &e->status);
    for (pawli_heartbeat *h = b->heartbeats; h != NULL && rc == SQLITE_OK; h = h->next)
        rc = apply_item(s, ITEM_HEARTBEAT, h, &h->status);
    for (pawli_operation *o = b->operations; o != NULL && rc == SQLITE_OK; o = o->next)
        rc = apply_item(s, ITEM_OPERATION, o, &o->status);
    for (pawli_rescue *r = b->rescues; r != NULL && rc == SQLITE_OK; r = r->next)
        rc = apply_item(s, ITEM_RESCUE, r, &r->status);
    return rc;
}

static int enqueue_and_claim_fast(pawli_sqlite *s, pawli_batch *b)
{
    int rc = SQLITE_OK;
    for (pawli_new_jobs *g = b->enqueues; g != NULL && rc == SQLITE_OK; g = g->next)
        rc = pawli_enqueue_prepare(s, g);
    if (rc == SQLITE_OK)
        rc = pawli_claim_apply(s, true);
    return rc == SQLITE_OK && b->enqueues != NULL ? pawli_enqueue_insert(s, b->enqueues) : rc;
}

static int enqueue_and_claim(pawli_sqlite *s, pawli_batch *b, own_work *own)
{
    if (!s->careful)
        return enqueue_and_claim_fast(s, b);
    int rc = SQLITE_OK;
    for (pawli_new_jobs *g = b->enqueues; g != NULL && rc == SQLITE_OK; g = g->next)
        rc = apply_item(s, ITEM_ENQUEUE, g, &g->status);
    return rc == SQLITE_OK ? apply_item(s, ITEM_CLAIM, NULL, &own->claim) : rc;
}

static int write_fence(pawli_sqlite *s)
{
    if (!s->fence_moved)
        return SQLITE_OK;
    return pawli_change(s, PAWLI_SQL_META_WRITE, TEXT("fence"), NUM(s->fence));
}

static int apply_all(pawli_sqlite *s, own_work *own)
{
    pawli_batch *b = s->batch;
    int rc = apply_item(s, ITEM_ORPHANS, NULL, &own->orphans);
    if (rc == SQLITE_OK)
        rc = apply_commands(s, b);
    if (rc == SQLITE_OK && !b->commands_only && b->sweep)
        rc = apply_item(s, ITEM_SWEEP, NULL, &own->sweep);
    if (rc == SQLITE_OK && !b->commands_only)
        rc = apply_item(s, ITEM_PROMOTE, NULL, &own->promote);
    if (rc == SQLITE_OK)
        rc = see_triggers_work(s); /* the claims see it (I14) */
    if (rc == SQLITE_OK)
        rc = enqueue_and_claim(s, b, own);
    if (rc == SQLITE_OK && !b->commands_only)
        rc = apply_item(s, ITEM_PRUNE, NULL, &own->prune);
    if (rc == SQLITE_OK)
        rc = pawli_lanes_flush(s, b->now_ms);
    if (rc == SQLITE_OK)
        rc = write_fence(s);
    return rc == SQLITE_OK ? see_triggers_work(s) : rc;
}

static void reset_picked(pawli_sqlite *s)
{
    for (pawli_lane *lane = s->lanes.all; lane != NULL; lane = lane->next)
        if (lane->service != NULL)
            lane->service->picked = 0;
}

static void start_over(pawli_sqlite *s)
{
    pawli_claim_undo(s);
    reset_picked(s);
    roll_back(s);
    s->batch->rescued = s->batch->stored = s->batch->promoted = 0;
}

static int replay(pawli_sqlite *s)
{
    own_work own = { .orphans = PAWL_OK };
    int rc = SQLITE_ERROR;
    for (int pass = 0; pass < REPLAYS_MAX; pass++) {
        s->busy_until_ns = pawli_add(pawli_steady_now_ns(), pawli_ms_to_ns(REPLAY_WAIT_MS));
        rc = begin(s);
        if (rc != SQLITE_OK)
            return rc;
        s->careful = true;
        rc = apply_all(s, &own);
        s->careful = false;
        if (rc == SQLITE_OK)
            return SQLITE_OK;
        start_over(s);
    }
    return rc;
}

static void reset_answers(pawli_batch *b)
{
    for (pawli_ending *e = b->endings; e != NULL; e = e->next)
        e->status = PAWL_OK;
    for (pawli_heartbeat *h = b->heartbeats; h != NULL; h = h->next)
        h->status = PAWL_OK;
    for (pawli_operation *o = b->operations; o != NULL; o = o->next)
        o->status = PAWL_OK;
    for (pawli_rescue *r = b->rescues; r != NULL; r = r->next)
        r->status = PAWL_OK;
    for (pawli_new_jobs *g = b->enqueues; g != NULL; g = g->next)
        g->status = PAWL_OK;
    b->claimed = NULL;
    b->refused = b->by_triggers = false;
    b->claimed_count = b->handed_off = b->rescued = b->stored = b->promoted = 0;
}

/* ------------------------------------------------------------------------------ commit */

/* The commit failed and was rolled back. If the store can be brought to a known state at once, then
 * it is a fact that nothing was stored; else the outcome is unknown until it can (R5). */
static pawl_status commit_failed(pawli_sqlite *s, int rc)
{
    pawl_status st = pawli_sqlite_failed(s, s->db, rc, "commit");
    pawli_log_line(s->host.log, PAWL_LOG_ERROR, "%s", pawl_error_message());
    start_over(s);
    if (pawli_sqlite_recover(&s->base) == PAWL_OK)
        return st;
    return pawli_fail(PAWL_ERR_UNKNOWN, "%s: the commit failed (%s) and it is not known what was stored; "
                                        "ask again with the same idempotency key", s->path,
                      sqlite3_errstr(rc));
}

int pawli_sqlite_commit(pawli_sqlite *s)
{
    int rc = pawli_run_plain(s, PAWLI_SQL_COMMIT);
    if (rc != SQLITE_OK && (rc & 0xFF) != SQLITE_BUSY)
        s->down = true; /* R5 */
    return rc;
}

/* What is committed and will not be known: taken back as soon as the store works again. Fences are given out in
 * their order. */
static void remember_orphans(pawli_sqlite *s)
{
    const pawli_claim *claim = s->batch->claimed;
    if (claim != NULL && s->orphan_last == 0)
        s->orphan_first = (int64_t)claim->fence;
    for (; claim != NULL; claim = claim->next)
        s->orphan_last = (int64_t)claim->fence;
}

/* R8: it may have gone into files that nobody will open again; or the name is back the next moment. */
static pawl_status commit_succeeded(pawli_sqlite *s)
{
    s->fence_moved = false;
    pawli_turn_over(&s->turn);
    if (pawli_sqlite_same_file(s) == PAWL_OK) {
        if (!s->orphans_left && !s->batch->refused)
            s->orphan_last = 0; /* the next claims may have their fences, if that commit was lost */
        return PAWL_OK;
    }
    remember_orphans(s);
    start_over(s);
    s->more = s->orphan_last != 0;
    return pawli_fail(PAWL_ERR_UNKNOWN, "%s; it is not known whether the last commit is in it",
                      pawl_error_message());
}

static pawl_status commit(pawli_sqlite *s)
{
    int rc;
    do
        rc = pawli_sqlite_commit(s);
    while (rc == SQLITE_BUSY && pawli_steady_now_ns() < s->busy_until_ns);
    if (rc == SQLITE_OK)
        return commit_succeeded(s);
    if ((rc & 0xFF) != SQLITE_BUSY)
        return commit_failed(s, rc);
    pawl_status st = pawli_sqlite_failed(s, s->db, rc, "commit");
    start_over(s);
    return st;
}

/* What the others have committed is flushed by a flushed commit behind it. Without SYNCHRONOUS_FULL the batch
 * was not one: one more follows. */
static int flush_log(pawli_sqlite *s)
{
    if (s->host.options->flush_commits)
        return SQLITE_OK;
    int rc = sqlite3_exec(s->db, "PRAGMA synchronous = FULL", NULL, NULL, NULL);
    s->busy_until_ns = pawli_add(pawli_steady_now_ns(), pawli_ms_to_ns(FLUSH_WAIT_MS));
    if (rc == SQLITE_OK)
        rc = pawli_commit_a_byte(s);
    (void)sqlite3_exec(s->db, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL);
    return rc;
}

static void sync_if_wanted(pawli_sqlite *s, pawli_batch *b)
{
    pawl_status st = PAWL_OK;
    bool flushed = false;
    for (pawli_operation *o = b->operations; o != NULL; o = o->next) {
        if (o->type != PAWLI_SYNC || o->status != PAWL_OK)
            continue;
        if (!flushed) {
            int rc = flush_log(s);
            st = rc == SQLITE_OK ? PAWL_OK : pawli_sqlite_failed(s, s->db, rc, "flush the log");
        }
        flushed = true;
        o->status = st;
    }
}

pawl_status pawli_sqlite_write(pawli_store *store, pawli_batch *batch)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    PAWLI_ASSERT_ROLE(PAWLI_ROLE_WRITER);
    PAWLI_ASSERT(!sqlite3_get_autocommit(s->db)); /* begun */
    s->batch = batch;
    s->more = false;
    reset_answers(batch);
    reset_picked(s);
    int rc = apply_all(s, &(own_work){ .orphans = PAWL_OK });
    if (rc != SQLITE_OK) {
        start_over(s);
        rc = replay(s);
    }
    pawl_status st = rc == SQLITE_OK ? commit(s) : pawli_sqlite_failed(s, s->db, rc, "write");
    if (rc != SQLITE_OK)
        start_over(s);
    if (st == PAWL_OK)
        sync_if_wanted(s, batch);
    reset_picked(s);
    s->batch = NULL;
    return st;
}
