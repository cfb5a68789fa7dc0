/* finalize.c - ends claims: success with its effects, and every other ending.
 * Threads: the writer's role, inside its transaction.
 * Keeps:   I6 only where status = running and the fence matches, checked in the write itself;
 *          I7 one ending; I9 attempts; I19 effects exactly with the success;
 *          R10 a child that a function forks leaves the connection alone. */
#include <stdio.h>

#include "sqlite_store.h"

#define BYSTANDER_MAX 10
#define SLOW_EFFECT_NS (50 * PAWLI_NS_PER_MS)

static const char *outcome_name(pawl_outcome outcome)
{
    switch (outcome) {
    case PAWL_SUCCEEDED: return "succeeded";
    case PAWL_FAILED: return "failed";
    case PAWL_CANCELLED: return "cancelled";
    case PAWL_SNOOZED: return "snoozed";
    case PAWL_RELEASED: return "released";
    case PAWL_RETRY:
    case PAWL_UNKNOWN:
    case PAWL_DETACHED:
    default: return "retry";
    }
}

/* ------------------------------------------------------------- endings without success */

/* The row of a claim, as far as an ending must look at it. */
typedef struct held_row {
    int64_t attempts, max_attempts, bystander, holder, claimed_at;
    bool cancel;
} held_row;

static int read_held(pawli_sqlite *s, int64_t job, uint64_t fence, held_row *out, bool *held)
{
    int rc;
    *held = false;
    sqlite3_stmt *row = pawli_query(s, PAWLI_SQL_HELD, &rc, NUM(job), NUM(fence));
    if (row == NULL)
        return rc;
    rc = sqlite3_step(row);
    if (rc == SQLITE_ROW) {
        *held = true;
        *out = (held_row){ .attempts = sqlite3_column_int64(row, 0),
                           .max_attempts = sqlite3_column_int64(row, 1),
                           .cancel = sqlite3_column_int(row, 2) != 0,
                           .bystander = sqlite3_column_int64(row, 3),
                           .holder = sqlite3_column_int64(row, 4),
                           .claimed_at = sqlite3_column_int64(row, 5) };
    }
    return pawli_done(row, rc);
}

#define ATTEMPTS_KEPT 100 /* of one job: a job may snooze for ever */

static int add_attempt(pawli_sqlite *s, const pawli_aftermath *a, const held_row *row, bool charged)
{
    int rc = pawli_run(s, PAWLI_SQL_ATTEMPT_ADD, NUM(a->job), NUM(a->fence), NUM(row->attempts),
                     TEXT(a->outcome), NUM(charged), NUM(row->holder), NUM(row->claimed_at),
                     NUM(s->batch->now_ms), TEXTN(a->error, a->error_bytes));
    if (rc == SQLITE_OK && (!charged || row->attempts > ATTEMPTS_KEPT))
        rc = pawli_run(s, PAWLI_SQL_ATTEMPTS_TRIM, NUM(a->job), NUM(ATTEMPTS_KEPT));
    return rc;
}

static pawl_state next_state(const pawli_aftermath *a, const held_row *row, int64_t attempts)
{
    if (row->cancel)
        return PAWL_STATE_CANCELLED; /* every end but success */
    if (a->to == PAWL_STATE_PENDING && attempts >= row->max_attempts)
        return PAWL_STATE_FAILED;
    return a->to;
}

static void note_due(pawli_sqlite *s, int status, int64_t available_at_ms)
{
    if (status == PAWLI_DB_LATER && available_at_ms < s->next_due_ms)
        s->next_due_ms = available_at_ms;
}

/* Writes the end of a claim that did not succeed. SQLITE_NOTFOUND: the claim is not held any more.
 * On SQLITE_OK *settled is what the job has become. */
static int write_aftermath(pawli_sqlite *s, const pawli_aftermath *a, pawl_state *settled)
{
    held_row row = { 0 };
    bool held;
    int rc = read_held(s, a->job, a->fence, &row, &held);
    if (rc != SQLITE_OK)
        return rc;
    if (!held)
        return SQLITE_NOTFOUND;
    bool charged = a->charged || (a->bystander && row.bystander >= BYSTANDER_MAX);
    int64_t attempts = charged || row.attempts == 0 ? row.attempts : row.attempts - 1;
    *settled = next_state(a, &row, attempts);
    PAWLI_ASSERT(pawli_state_may_move(PAWL_STATE_RUNNING, *settled));
    int64_t now = s->batch->now_ms;
    int64_t due = *settled == PAWL_STATE_PENDING && a->available_at_ms > now ? a->available_at_ms : now;
    if (due > PAWLI_TIME_MAX_MS)
        due = PAWLI_TIME_MAX_MS;
    int status = pawli_db_status(*settled, due <= now);
    rc = pawli_change(s, PAWLI_SQL_AFTERMATH, NUM(a->job), NUM(a->fence), NUM(status), NUM(due), NUM(now),
                      NUM(attempts), NUM(row.bystander + (a->bystander && !charged)),
                      TEXTN(a->error, a->error_bytes));
    if (rc == SQLITE_OK)
        rc = add_attempt(s, a, &row, charged);
    if (rc != SQLITE_OK)
        return rc;
    pawli_lane_move(s, a->lane, PAWLI_DB_RUNNING, status);
    if (a->error != NULL)
        pawli_lane_error(s, a->lane, a->error, a->error_bytes);
    note_due(s, status, due);
    return SQLITE_OK;
}

int pawli_aftermath_write(pawli_sqlite *s, const pawli_aftermath *after)
{
    pawl_state settled;
    return write_aftermath(s, after, &settled);
}

static int end_without_success(pawli_sqlite *s, pawli_ending *e, const pawli_verdict *verdict)
{
    const pawli_aftermath after = {
        .job = e->claim->job,
        .fence = e->claim->fence,
        .lane = e->claim->lane,
        .to = verdict->to,
        .available_at_ms = pawli_add(s->batch->now_ms, verdict->delay_ms),
        .charged = verdict->charged,
        .outcome = outcome_name(verdict->outcome),
        .error = e->error,
        .error_bytes = e->error_bytes,
    };
    int rc = write_aftermath(s, &after, &e->settled);
    e->status = rc == SQLITE_NOTFOUND ? PAWL_ERR_LEASE_LOST : PAWL_OK;
    return rc == SQLITE_NOTFOUND ? SQLITE_OK : rc;
}

/* ------------------------------------------------------------------------------ effects */

/* How an application's function failed. */
typedef struct failure {
    pawl_status status;
    int rc; /* SQLite's, when the function returned */
    char reason[256];
} failure;

/* What the application left half done. None of ours is under way here. */
static void reset_open_statements(sqlite3 *db)
{
    sqlite3_stmt *open = NULL;
    while ((open = sqlite3_next_stmt(db, open)) != NULL)
        if (sqlite3_stmt_busy(open))
            (void)sqlite3_reset(open);
}

static pawl_status call_effect(pawli_sqlite *s, pawl_job *job, const pawli_effect *effect, failure *f)
{
    int64_t began = pawli_steady_now_ns();
    pawli_role before = pawli_role_set(PAWLI_ROLE_APPLY);
    s->host.applying(s->host.arg, pawl_job_fence(job));
    s->in_user_code = true;
    pawl_status st = effect->fn(s->db, job, effect->arg);
    pawli_end_if_child(s->host.fork_mark); /* before anything else: the transaction is the parent's */
    s->in_user_code = false;
    s->host.applying(s->host.arg, 0);
    (void)pawli_role_set(before);
    f->status = st;
    f->rc = sqlite3_errcode(s->db);
    if (st != PAWL_OK && f->rc != SQLITE_OK && f->rc != SQLITE_DONE && f->rc != SQLITE_ROW)
        (void)snprintf(f->reason, sizeof f->reason, ": %s%s", sqlite3_errmsg(s->db),
                       (f->rc & 0xFF) != SQLITE_AUTH
                           ? ""
                           : " (no transaction control, ATTACH, PRAGMA, ALTER TABLE or writes to pawl_ tables "
                             "in an on_success function)");
    reset_open_statements(s->db);
    int64_t took = pawli_steady_now_ns() - began;
    if (took > SLOW_EFFECT_NS)
        pawli_log_line(s->host.log, PAWL_LOG_WARNING,
                       "an on_success function of kind \"%s\" took %lld ms; every write of the pool "
                       "waited for it",
                       pawl_job_kind(job), (long long)(took / PAWLI_NS_PER_MS));
    return st;
}

/* The database's trouble, also in a function's own statements; any other error there is the function's. */
static bool is_environment(int rc)
{
    return (rc & 0xFF) == SQLITE_FULL || (rc & 0xFF) == SQLITE_IOERR || (rc & 0xFF) == SQLITE_NOMEM;
}

/* SQLITE_OK and f->status, or the database's own trouble, which is not the job's fault. */
static int run_functions(pawli_sqlite *s, pawli_ending *e, failure *f)
{
    for (const pawli_effect *effect = e->effects; effect != NULL; effect = effect->next) {
        if (effect->fn == NULL)
            continue;
        (void)call_effect(s, e->job, effect, f);
        bool environment = is_environment(f->rc), undone = sqlite3_get_autocommit(s->db) != 0;
        if (environment && (undone || f->status != PAWL_OK))
            return f->rc;
        if (undone) { /* by the function itself, say INSERT OR ROLLBACK: the replay takes the fallback */
            e->effects_failed = true;
            return SQLITE_ABORT;
        }
        if (f->status != PAWL_OK)
            return SQLITE_OK;
    }
    return SQLITE_OK;
}

static int insert_followers(pawli_sqlite *s, const pawli_ending *e)
{
    int rc = SQLITE_OK;
    for (const pawli_effect *effect = e->effects; effect != NULL && rc == SQLITE_OK;
         effect = effect->next)
        if (effect->then != NULL)
            rc = pawli_enqueue_one(s, effect->then);
    return rc;
}

static int write_success(pawli_sqlite *s, pawli_ending *e)
{
    int rc = pawli_run(s, PAWLI_SQL_SUCCEED, NUM(e->claim->job), NUM(e->claim->fence),
                       NUM(s->batch->now_ms));
    if (rc != SQLITE_OK)
        return rc;
    bool held = sqlite3_changes(s->db) == 1; /* I6 */
    e->status = held ? PAWL_OK : PAWL_ERR_LEASE_LOST;
    e->settled = PAWL_STATE_SUCCEEDED;
    return SQLITE_OK;
}

static int fail_effect(pawli_sqlite *s, pawli_ending *e, const failure *f)
{
    char text[384], clean[384];
    int length = f->status < 0 && f->status >= PAWL_ERR_VERSION
                     ? snprintf(text, sizeof text, "an on_success function answered %s%s",
                                pawl_status_name(f->status), f->reason)
                     : snprintf(text, sizeof text, "an on_success function answered %d%s", (int)f->status,
                                f->reason);
    const char *own = e->error; /* the function may have called pawl_job_error() */
    size_t own_bytes = e->error_bytes;
    if (own == NULL) {
        size_t bytes = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
        e->error_bytes = pawli_text_clean(clean, sizeof clean, text, bytes);
        e->error = clean;
    }
    int rc = end_without_success(s, e, &e->fallback);
    e->error = own;
    e->error_bytes = own_bytes;
    return rc;
}

static int succeed_with_effects(pawli_sqlite *s, pawli_ending *e)
{
    failure f = { PAWL_OK, SQLITE_OK, "" };
    if (e->effects_failed)
        return fail_effect(s, e, &(failure){ PAWL_ERR_STATE, SQLITE_ABORT,
                                             ": it rolled the whole transaction back" });
    int rc = pawli_run_plain(s, PAWLI_SQL_EFFECT_BEGIN);
    if (rc == SQLITE_OK)
        rc = write_success(s, e);
    if (rc == SQLITE_OK && e->status == PAWL_OK)
        rc = run_functions(s, e, &f);
    if (rc == SQLITE_OK && e->status == PAWL_OK && f.status == PAWL_OK)
        rc = insert_followers(s, e);
    if (rc != SQLITE_OK)
        return rc;
    if (f.status == PAWL_OK)
        return pawli_run_plain(s, PAWLI_SQL_EFFECT_RELEASE);
    rc = pawli_run_plain(s, PAWLI_SQL_EFFECT_ROLLBACK);
    if (rc == SQLITE_OK)
        rc = pawli_run_plain(s, PAWLI_SQL_EFFECT_RELEASE);
    return rc == SQLITE_OK ? fail_effect(s, e, &f) : rc;
}

static int apply_ending(pawli_sqlite *s, pawli_ending *e)
{
    if (e->verdict.to != PAWL_STATE_SUCCEEDED)
        return end_without_success(s, e, &e->verdict);
    int rc = e->effects != NULL ? succeed_with_effects(s, e) : write_success(s, e);
    if (rc == SQLITE_OK && e->status == PAWL_OK && e->settled == PAWL_STATE_SUCCEEDED)
        pawli_lane_move(s, e->claim->lane, PAWLI_DB_RUNNING, PAWLI_DB_SUCCEEDED);
    return rc;
}

int pawli_finalize_apply(pawli_sqlite *s, pawli_ending *e)
{
    int rc = apply_ending(s, e);
    /* Its place is free for a claim of this very batch (I15); a replay leaves it to the next one. */
    if (rc == SQLITE_OK && e->status == PAWL_OK && !s->careful)
        e->claim->service->picked--;
    return rc;
}
