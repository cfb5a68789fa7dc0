/* rescue.c - takes back claims whose holder is dead, or whose lease ran out.
 * Threads: the writer's role, inside its transaction: what is taken is looked at again in it.
 * Keeps:   I9 a crash is charged to the jobs that were running; I11 rescue happens; I12 never early;
 *          I23 a slice at a time, and what cannot be rescued does not stop the rest. */
#include <stdio.h>
#include <string.h>

#include "sqlite_store.h"

typedef struct claim_row {
    int64_t job, lane;
    uint64_t fence;
} claim_row;

static int read_claims(sqlite3_stmt *row, claim_row *claims, size_t *count)
{
    int rc;
    *count = 0;
    while ((rc = sqlite3_step(row)) == SQLITE_ROW)
        claims[(*count)++] = (claim_row){ sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 2),
                                          (uint64_t)sqlite3_column_int64(row, 1) };
    return pawli_done(row, rc);
}

static int64_t attempt_of(pawli_sqlite *s, const claim_row *claim, int *rc)
{
    int64_t attempts = 1;
    bool found;
    *rc = pawli_read_integer(s, PAWLI_SQL_HELD, PAWLI_VALUES(NUM(claim->job), NUM(claim->fence)),
                             &attempts, &found);
    return attempts;
}

typedef enum blame {
    NOT_CHARGED, /* it did not start */
    BYSTANDER,   /* it may have: not charged, but not more than ten times */
    CHARGED
} blame;

static int take_back(pawli_sqlite *s, const claim_row *claim, blame charge, const char *why)
{
    int rc;
    pawli_lane *lane = pawli_lane_by_id(s, claim->lane);
    int64_t attempts = attempt_of(s, claim, &rc);
    if (rc != SQLITE_OK)
        return rc;
    if (lane == NULL) /* somebody's SQL: it must not stop the others (I23) */
        return pawli_refuse(s, claim->job, "its lane does not exist");
    /* A first death is most often not the job's doing, and its work has waited already: due at once. From
     * the second on one step of the backoff less than after a failure. */
    int64_t wait = charge == CHARGED && attempts > 1
                       ? s->host.backoff(s->host.arg, lane->kind, (uint32_t)attempts - 1)
                       : 0;
    const pawli_aftermath after = {
        .job = claim->job,
        .fence = claim->fence,
        .lane = lane,
        .to = PAWL_STATE_PENDING,
        .available_at_ms = pawli_add(s->batch->now_ms, wait),
        .charged = charge == CHARGED,
        .bystander = charge == BYSTANDER,
        .outcome = "rescued",
        .error = charge != NOT_CHARGED ? why : NULL, /* what did not start has no error of its own */
        .error_bytes = charge != NOT_CHARGED ? strlen(why) : 0,
    };
    rc = pawli_aftermath_write(s, &after);
    if (rc == SQLITE_OK)
        s->batch->rescued++;
    return rc == SQLITE_NOTFOUND ? SQLITE_OK : rc;
}

static bool was_spared(const pawli_rescue *rescue, uint64_t fence)
{
    size_t i = 0;
    while (i < rescue->spared_count && rescue->started[rescue->started_count + i] != fence)
        i++;
    return i < rescue->spared_count;
}

/* It runs in no slot: it was taken back unstarted, or waited for an executor, or has returned, and its
 * outcome was not committed. */
static blame blame_of_unlisted(const pawli_rescue *rescue, uint64_t fence)
{
    if (was_spared(rescue, fence))
        return NOT_CHARGED;
    if (rescue->is_stale)
        return BYSTANDER;
    if (fence > rescue->last_started)
        return NOT_CHARGED;
    return rescue->signal != 0 && rescue->culprit != 0 ? BYSTANDER : CHARGED;
}

/* The job on whose thread the fatal signal came is to blame, and nobody else; be it another pool's. A signal on a
 * thread of the application leaves those in doubt that run on such threads, the detached ones. Without a note all
 * that ran may have done it. */
static blame blame_of(const pawli_rescue *rescue, uint64_t fence)
{
    size_t at = 0;
    if (!rescue->has_record)
        return BYSTANDER;
    while (at < rescue->started_count && rescue->started[at] != fence)
        at++;
    if (at == rescue->started_count)
        return blame_of_unlisted(rescue, fence);
    if (rescue->signal == 0)
        return CHARGED;
    if (rescue->culprit != 0)
        return rescue->culprit == fence ? CHARGED : BYSTANDER;
    return at < rescue->on_threads ? BYSTANDER : CHARGED;
}

/* Becomes last_error. */
static void explain(const pawli_rescue *rescue, uint64_t fence, char *out, size_t capacity)
{
    const char *name = rescue->signal != 0 ? sigabbrev_np(rescue->signal) : NULL;
    if (name == NULL)
        (void)snprintf(out, capacity, "its process died");
    else
        (void)snprintf(out, capacity, "its process died of SIG%s %s", name,
                       rescue->culprit == fence ? "in this job's handler"
                       : rescue->culprit != 0   ? "in another job's handler"
                                                : "outside of the handlers");
}

static int take_back_from_dead(pawli_sqlite *s, const pawli_rescue *rescue, const claim_row *claim)
{
    char why[64];
    explain(rescue, claim->fence, why, sizeof why);
    return take_back(s, claim, blame_of(rescue, claim->fence), why);
}

int pawli_rescue_apply(pawli_sqlite *s, pawli_rescue *rescue)
{
    claim_row claims[PAWLI_SLICE];
    size_t count;
    int rc;
    rescue->complete = false;
    sqlite3_stmt *row = pawli_query(s, PAWLI_SQL_CLAIMS_OF, &rc, NUM(rescue->holder), NUM(PAWLI_SLICE));
    if (row == NULL)
        return rc;
    rc = read_claims(row, claims, &count);
    for (size_t i = 0; rc == SQLITE_OK && i < count; i++)
        rc = take_back_from_dead(s, rescue, &claims[i]);
    if (rc == SQLITE_OK && count < PAWLI_SLICE)
        rc = pawli_run(s, PAWLI_SQL_HOLDER_LEFT, NUM(rescue->holder), NUM(s->batch->now_ms));
    else
        s->more = true;
    rescue->complete = rc == SQLITE_OK && count < PAWLI_SLICE;
    return rc;
}

/* This pool holds them and does not know it: no death would free them, and no lease of its own is swept. Whose
 * handler was never called is not charged. */
int pawli_rescue_orphans(pawli_sqlite *s)
{
    claim_row claims[PAWLI_SLICE];
    size_t count;
    int rc;
    if (s->orphan_last == 0)
        return SQLITE_OK;
    sqlite3_stmt *row = pawli_query(s, PAWLI_SQL_ORPHANS, &rc, NUM(s->holder), NUM(s->orphan_first),
                                    NUM(s->orphan_last), NUM(PAWLI_SLICE));
    if (row == NULL)
        return rc;
    rc = read_claims(row, claims, &count);
    for (size_t i = 0; rc == SQLITE_OK && i < count; i++)
        rc = take_back(s, &claims[i], NOT_CHARGED, "");
    s->orphans_left = count == PAWLI_SLICE;
    s->more |= s->orphans_left;
    return rc;
}

int pawli_rescue_sweep(pawli_sqlite *s)
{
    claim_row claims[PAWLI_SLICE];
    size_t count;
    int rc;
    int64_t boot = s->batch->boot_ms;
    sqlite3_stmt *row = pawli_query(s, PAWLI_SQL_CLAIMS_EXPIRED, &rc, NUM(s->holder), NUM(boot),
                                    NUM(boot + PAWLI_LEASE_MAX_MS), NUM(PAWLI_SLICE));
    if (row == NULL)
        return rc;
    rc = read_claims(row, claims, &count);
    for (size_t i = 0; rc == SQLITE_OK && i < count; i++)
        rc = take_back(s, &claims[i], CHARGED, "its lease ran out");
    s->batch->sweep_left = count == PAWLI_SLICE;
    s->more |= s->batch->sweep_left;
    return rc;
}
