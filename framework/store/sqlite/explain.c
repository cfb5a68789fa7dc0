/* explain.c - the facts behind pawl_explain(), read in one moment, and who holds a claim.
 * Threads: any, one at a time under the reader lock.
 * Keeps:   R3 no read transaction outlives the request; everything goes through an index, and is bounded. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sqlite_store.h"

#define COUNTER_MASK ((INT64_C(1) << PAWLI_FENCE_EPOCH_SHIFT) - 1)

static void copy_text(char *out, size_t capacity, sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    (void)pawli_text_clean(out, capacity, text != NULL ? text : "", (size_t)sqlite3_column_bytes(row, column));
}

void pawli_sqlite_read_holder(sqlite3_stmt *row, int first, pawli_holder *out)
{
    memset(out, 0, sizeof *out);
    out->id = sqlite3_column_int64(row, first);
    copy_text(out->name, sizeof out->name, row, first + 1);
    copy_text(out->side, sizeof out->side, row, first + 2);
    out->pid = sqlite3_column_int64(row, first + 3);
    out->started = sqlite3_column_int64(row, first + 4);
    copy_text(out->boot, sizeof out->boot, row, first + 5);
    out->pid_space = sqlite3_column_int64(row, first + 6);
}

/* ----------------------------------------------------------------------------- the job */

static const char job_sql[] =
    "SELECT j.status, j.cancel, j.fence, j.attempts, j.max_attempts, j.available_at, j.updated_at, j.claimed_at,"
    " j.lease_until, j.lease_boot, l.queue, k.name, j.last_error, ifnull(p.paused_at, 0), ifnull(l.running, 0),"
    " h.left_at IS NOT NULL, h.id, h.name, h.side, h.pid, h.started, h.boot, h.pid_space,"
    " j.timeout_ms"
    " FROM pawl_job j LEFT JOIN pawl_lane l ON l.id = j.lane LEFT JOIN pawl_kind k ON k.id = l.kind"
    " LEFT JOIN pawl_paused p ON p.queue = l.queue LEFT JOIN pawl_holder h ON h.id = j.holder WHERE j.id = ?1";

enum { COLUMN_HOLDER = 16, COLUMN_TIMEOUT = 23 };

static void read_job(sqlite3_stmt *row, pawli_reasons *out)
{
    int status = sqlite3_column_int(row, 0);
    out->state = pawli_db_state(status);
    out->later = status == PAWLI_DB_LATER;
    out->cancel_requested = sqlite3_column_int(row, 1) != 0;
    out->is_claimed_once = (sqlite3_column_int64(row, 2) & COUNTER_MASK) != 0;
    out->attempts = sqlite3_column_int64(row, 3);
    out->max_attempts = sqlite3_column_int64(row, 4);
    out->available_at_ms = sqlite3_column_int64(row, 5);
    out->updated_at_ms = sqlite3_column_int64(row, 6);
    out->claimed_at_ms = sqlite3_column_int64(row, 7);
    out->lease_until_ms = sqlite3_column_int64(row, 8);
    out->lease_boot_ms = sqlite3_column_int64(row, 9);
    out->timeout_ms = sqlite3_column_int64(row, COLUMN_TIMEOUT);
    copy_text(out->queue, sizeof out->queue, row, 10);
    copy_text(out->kind, sizeof out->kind, row, 11);
    copy_text(out->error, sizeof out->error, row, 12);
    out->paused_at_ms = sqlite3_column_int64(row, 13);
    out->lane_running = sqlite3_column_int64(row, 14);
    out->holder_left = sqlite3_column_int(row, 15) != 0;
    out->has_holder = sqlite3_column_type(row, COLUMN_HOLDER) != SQLITE_NULL;
    if (out->has_holder)
        pawli_sqlite_read_holder(row, COLUMN_HOLDER, &out->holder);
}

/* ------------------------------------------------------------------- those around it */

static const char before_sql[] =
    "SELECT count(*) FROM (SELECT 1 FROM pawl_job j INDEXED BY pawl_job_ready,"
    " (SELECT lane, priority, id FROM pawl_job WHERE id = ?1) AS me WHERE j.status = 2 AND j.lane = me.lane"
    " AND j.priority >= me.priority"
    " AND (j.priority > me.priority OR j.id < me.id) LIMIT ?2)";

static const char pools_sql[] = "SELECT id, name, side, pid, started, boot, pid_space FROM pawl_holder"
                                " WHERE left_at IS NULL ORDER BY id DESC LIMIT ?1";

typedef void (*take_fn)(sqlite3_stmt *row, pawli_reasons *out);

static void take_before(sqlite3_stmt *row, pawli_reasons *out)
{
    out->before = sqlite3_column_int64(row, 0);
}

static void take_pool(sqlite3_stmt *row, pawli_reasons *out)
{
    pawli_sqlite_read_holder(row, 0, &out->pools[out->pool_count++]);
}

/* Steps through all rows; *rows tells how many there were. */
static int ask(sqlite3 *db, const char *sql, int64_t first, int64_t second, take_fn take, pawli_reasons *out,
               size_t *rows)
{
    sqlite3_stmt *row;
    *rows = 0;
    int rc = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
    if (rc != SQLITE_OK)
        return rc;
    (void)sqlite3_bind_int64(row, 1, first);
    if (sqlite3_bind_parameter_count(row) > 1)
        (void)sqlite3_bind_int64(row, 2, second);
    for (; (rc = sqlite3_step(row)) == SQLITE_ROW; (*rows)++)
        take(row, out);
    (void)sqlite3_finalize(row);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int read_reasons(sqlite3 *db, int64_t id, pawli_reasons *out, bool *found)
{
    size_t rows;
    int rc = ask(db, job_sql, id, 0, read_job, out, &rows);
    *found = rc == SQLITE_OK && rows > 0;
    if (*found && out->state == PAWL_STATE_PENDING)
        rc = ask(db, before_sql, id, PAWLI_REASONS_BEFORE_MAX + 1, take_before, out, &rows);
    if (*found && rc == SQLITE_OK)
        rc = ask(db, pools_sql, PAWLI_REASONS_POOLS, 0, take_pool, out, &rows);
    return rc;
}

static void take_seen(sqlite3_stmt *row, pawli_reasons *out)
{
    (void)row;
    (void)out;
}

static pawl_status not_there(pawli_sqlite *s, int64_t id)
{
    size_t once = 0;
    if (id > 0)
        (void)ask(s->reader, "SELECT 1 FROM sqlite_sequence WHERE name = 'pawl_job' AND seq >= ?1", id,
                  0, take_seen, NULL, &once);
    return pawli_fail(PAWL_ERR_NOT_FOUND, "%s: has no job %" PRId64 "%s", s->path, id,
                      once > 0 ? " any more: it was pruned with the old history, or deleted by hand" : "");
}

pawl_status pawli_sqlite_explain(pawli_store *store, int64_t id, pawli_reasons *out)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    bool found = false;
    memset(out, 0, sizeof *out);
    (void)pthread_mutex_lock(&s->reader_lock);
    pawl_status st = pawli_sqlite_open_reader(s);
    if (st == PAWL_OK) {
        int rc = sqlite3_exec(s->reader, "BEGIN", NULL, NULL, NULL); /* one moment for all of it */
        if (rc == SQLITE_OK)
            rc = read_reasons(s->reader, id, out, &found);
        if (rc != SQLITE_OK)
            st = pawli_sqlite_failed(s, s->reader, rc, "read it");
        else if (!found)
            st = not_there(s, id);
        if (!sqlite3_get_autocommit(s->reader))
            (void)sqlite3_exec(s->reader, "ROLLBACK", NULL, NULL, NULL);
    }
    (void)pthread_mutex_unlock(&s->reader_lock);
    return st;
}

/* ----------------------------------------------------------------------------- the holder */

static const char holder_sql[] =
    "SELECT h.id, h.name, h.side, h.pid, h.started, h.boot, h.pid_space FROM pawl_job j JOIN pawl_holder h"
    " ON h.id = j.holder WHERE j.id = ?1 AND j.fence = ?2 AND j.status = 3 AND h.left_at IS NULL";

static int read_holder_of(sqlite3 *db, int64_t id, uint64_t fence, pawli_holder *out)
{
    sqlite3_stmt *row;
    int rc = sqlite3_prepare_v2(db, holder_sql, -1, &row, NULL);
    if (rc != SQLITE_OK)
        return rc;
    (void)sqlite3_bind_int64(row, 1, id);
    (void)sqlite3_bind_int64(row, 2, (int64_t)fence);
    rc = sqlite3_step(row);
    if (rc == SQLITE_ROW)
        pawli_sqlite_read_holder(row, 0, out);
    (void)sqlite3_finalize(row);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

pawl_status pawli_sqlite_holder_of(pawli_store *store, int64_t id, uint64_t fence, pawli_holder *out)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    memset(out, 0, sizeof *out);
    (void)pthread_mutex_lock(&s->reader_lock);
    pawl_status st = pawli_sqlite_open_reader(s);
    int rc = st == PAWL_OK ? read_holder_of(s->reader, id, fence, out) : SQLITE_OK;
    if (rc != SQLITE_OK)
        st = pawli_sqlite_failed(s, s->reader, rc, "read it");
    (void)pthread_mutex_unlock(&s->reader_lock);
    return st;
}
