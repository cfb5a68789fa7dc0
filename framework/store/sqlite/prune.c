/* prune.c - deletes history that is over its retention, in bounded slices and without an index.
 *
 * Ids grow with time, so the oldest history stands first: a walk from the smallest id looks at a slice
 * of rows, deletes what has ended and is over its bound, and goes on from there the next time. A walk
 * by age ends at the first row that is younger than every bound.
 * Threads: the writer's role, inside its transaction.
 * Keeps:   I20 what is deleted is counted as pruned; keys are freed by this only. */
#include "sqlite_store.h"

#define WALK_EVERY_MS INT64_C(600000)

typedef struct walk_row {
    int64_t id, lane, updated_at, created_at;
    int status;
} walk_row;

static int64_t over(int64_t rows, int64_t most)
{
    return most >= 0 && rows > most ? rows - most : 0;
}

static int64_t succeeded_over(const pawli_sqlite *s)
{
    return over(pawli_lanes_total(s, PAWLI_COUNT_SUCCEEDED), s->host.options->keep_succeeded_max);
}

static int64_t failed_over(const pawli_sqlite *s)
{
    return over(pawli_lanes_total(s, PAWLI_COUNT_FAILED) + pawli_lanes_total(s, PAWLI_COUNT_CANCELLED),
                s->host.options->keep_failed_max);
}

static bool keeps_for_ever(const pawli_options *o)
{
    return o->keep_succeeded_ms < 0 && o->keep_failed_ms < 0;
}

bool pawli_prune_wanted(pawli_sqlite *s)
{
    return s->prune_walking || succeeded_over(s) + failed_over(s) > s->prune_stuck;
}

int64_t pawli_prune_next_ms(const pawli_sqlite *s)
{
    return keeps_for_ever(s->host.options) && s->prune_stuck == 0 ? PAWLI_NEVER : s->prune_again_ms;
}

static bool is_old(const walk_row *row, int64_t keep_ms, int64_t now_ms)
{
    return keep_ms >= 0 && row->updated_at < now_ms - keep_ms;
}

static bool is_over(const pawli_sqlite *s, const walk_row *row, int64_t *succeeded, int64_t *failed)
{
    const pawli_options *o = s->host.options;
    int64_t *excess = row->status == PAWLI_DB_SUCCEEDED ? succeeded : failed;
    int64_t keep_ms = row->status == PAWLI_DB_SUCCEEDED ? o->keep_succeeded_ms : o->keep_failed_ms;
    if (!pawli_state_is_final(pawli_db_state(row->status)))
        return false;
    if (*excess > 0) {
        (*excess)--;
        return true;
    }
    return is_old(row, keep_ms, s->batch->now_ms);
}

static int delete_row(pawli_sqlite *s, const walk_row *row)
{
    int rc = pawli_run(s, PAWLI_SQL_PRUNE, NUM(row->id));
    return rc == SQLITE_OK ? pawli_run(s, PAWLI_SQL_ATTEMPTS_DELETE, NUM(row->id)) : rc;
}

/* A deferred foreign key would refuse the commit of the whole batch. */
static bool breaks_a_reference(const pawli_sqlite *s)
{
    int broken = 0, ignored = 0;
    return sqlite3_db_status(s->db, SQLITE_DBSTATUS_DEFERRED_FKS, &broken, &ignored, 0) == SQLITE_OK && broken != 0;
}

/* Where tables of the application refer to ours: a row that is referred to stays, and holds up nothing else. */
static int delete_if_free(pawli_sqlite *s, const walk_row *row, bool *kept)
{
    int rc = pawli_run_plain(s, PAWLI_SQL_ITEM_BEGIN);
    if (rc != SQLITE_OK)
        return rc;
    rc = delete_row(s, row);
    *kept = (rc & 0xFF) == SQLITE_CONSTRAINT || (rc == SQLITE_OK && breaks_a_reference(s));
    if (rc != SQLITE_OK && !*kept)
        return rc; /* the batch is rolled back */
    rc = *kept ? pawli_run_plain(s, PAWLI_SQL_ITEM_ROLLBACK) : SQLITE_OK;
    return rc == SQLITE_OK ? pawli_run_plain(s, PAWLI_SQL_ITEM_RELEASE) : rc;
}

static int prune_row(pawli_sqlite *s, const walk_row *row)
{
    pawli_lane *lane = pawli_lane_by_id(s, row->lane);
    bool kept = false;
    int rc = s->triggered ? delete_if_free(s, row, &kept) : delete_row(s, row);
    if (rc == SQLITE_OK && kept)
        *(row->status == PAWLI_DB_SUCCEEDED ? &s->prune_kept_succeeded : &s->prune_kept_failed) += 1;
    if (rc != SQLITE_OK || kept || lane == NULL)
        return rc;
    pawli_lane_count(s, lane, pawli_count_of(row->status), -1);
    pawli_lane_count(s, lane, PAWLI_COUNT_PRUNED, 1);
    return SQLITE_OK;
}

static int read_slice(pawli_sqlite *s, walk_row *rows, size_t most, size_t *count)
{
    int rc;
    *count = 0;
    sqlite3_stmt *row = pawli_query(s, PAWLI_SQL_PRUNE_WALK, &rc, NUM(s->prune_after), NUM(most));
    if (row == NULL)
        return rc;
    while ((rc = sqlite3_step(row)) == SQLITE_ROW)
        rows[(*count)++] = (walk_row){ .id = sqlite3_column_int64(row, 0),
                                       .lane = sqlite3_column_int64(row, 1),
                                       .status = sqlite3_column_int(row, 2),
                                       .updated_at = sqlite3_column_int64(row, 3),
                                       .created_at = sqlite3_column_int64(row, 4) };
    return pawli_done(row, rc);
}

/* Nothing behind this row can be old enough, and no bound on rows is passed. */
static bool is_too_young(const pawli_sqlite *s, const walk_row *row)
{
    const pawli_options *o = s->host.options;
    int64_t now = s->batch->now_ms;
    return (o->keep_succeeded_ms < 0 || row->created_at >= now - o->keep_succeeded_ms)
           && (o->keep_failed_ms < 0 || row->created_at >= now - o->keep_failed_ms);
}

/* Said once, until a walk has met none. */
static void tell_kept(pawli_sqlite *s)
{
    int64_t kept = s->prune_kept_succeeded + s->prune_kept_failed;
    if (kept > 0 && !s->prune_kept_told)
        pawli_log_line(s->host.log, PAWL_LOG_WARNING,
                       "%s: finished jobs past their retention that cannot be deleted, as foreign keys of the "
                       "application's tables refer to them: %lld; delete those rows first, or declare the keys ON "
                       "DELETE SET NULL or CASCADE",
                       s->path, (long long)kept);
    s->prune_kept_told = kept > 0;
}

static void end_walk(pawli_sqlite *s)
{
    tell_kept(s);
    bool kept_some = s->prune_kept_succeeded + s->prune_kept_failed > 0;
    s->prune_stuck = kept_some ? succeeded_over(s) + failed_over(s) : 0;
    s->prune_kept_succeeded = s->prune_kept_failed = 0;
    s->prune_walking = false;
    s->prune_after = 0;
    s->prune_again_ms = pawli_add(s->batch->now_ms, WALK_EVERY_MS);
}

int pawli_prune_apply(pawli_sqlite *s)
{
    walk_row rows[PAWLI_SLICE];
    size_t count, most = s->batch->prune_max;
    if (most > PAWLI_SLICE)
        most = PAWLI_SLICE;
    if (s->batch->now_ms >= s->prune_again_ms) {
        s->prune_walking |= !keeps_for_ever(s->host.options);
        s->prune_stuck = 0; /* it is tried again */
    }
    if (most == 0 || !pawli_prune_wanted(s))
        return SQLITE_OK;
    /* What this walk has kept before counts, and no younger row goes in its place. */
    int64_t succeeded = succeeded_over(s) - s->prune_kept_succeeded, failed = failed_over(s) - s->prune_kept_failed;
    int rc = read_slice(s, rows, most, &count);
    bool ended = count < most;
    for (size_t i = 0; rc == SQLITE_OK && i < count; i++) {
        if (succeeded <= 0 && failed <= 0 && is_too_young(s, &rows[i])) {
            ended = true;
            break;
        }
        if (is_over(s, &rows[i], &succeeded, &failed))
            rc = prune_row(s, &rows[i]);
        if (rc == SQLITE_OK)
            s->prune_after = rows[i].id;
    }
    if (rc == SQLITE_OK && ended)
        end_walk(s);
    return rc;
}
