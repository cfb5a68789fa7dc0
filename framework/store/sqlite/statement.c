/* statement.c - the store's SQL, prepared once for the writer's connection; see statement.h.
 * Threads: the writer's role.
 * Keeps:   R3 every statement is reset and its bindings are cleared after every use. */
#include "statement.h"

#include <string.h>

#include "sqlite_store.h"

/* Status codes: 2 ready, 3 running, 4 succeeded, 5 failed, 6 cancelled, 7 blocked, 8 later. */
static const char *const texts[PAWLI_SQL_COUNT] = {
    [PAWLI_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [PAWLI_SQL_COMMIT] = "COMMIT",
    [PAWLI_SQL_ROLLBACK] = "ROLLBACK",
    [PAWLI_SQL_ITEM_BEGIN] = "SAVEPOINT pawl_item",
    [PAWLI_SQL_ITEM_RELEASE] = "RELEASE pawl_item",
    [PAWLI_SQL_ITEM_ROLLBACK] = "ROLLBACK TO pawl_item",
    [PAWLI_SQL_EFFECT_BEGIN] = "SAVEPOINT pawl_effect",
    [PAWLI_SQL_EFFECT_RELEASE] = "RELEASE pawl_effect",
    [PAWLI_SQL_EFFECT_ROLLBACK] = "ROLLBACK TO pawl_effect",

    [PAWLI_SQL_DATA_VERSION] = "PRAGMA data_version",
    [PAWLI_SQL_META_READ] = "SELECT value FROM pawl_meta WHERE key = ?1",
    [PAWLI_SQL_META_WRITE] = "UPDATE pawl_meta SET value = ?2 WHERE key = ?1",
    [PAWLI_SQL_SCHEMA_VERSION] = "PRAGMA schema_version",
    /* Pawl has none on its tables. An action of a foreign key may begin at one of ours, and fire triggers. */
    [PAWLI_SQL_TRIGGERED] =
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'trigger'"
        " AND tbl_name LIKE 'pawl\\_%' ESCAPE '\\' AND tbl_name <> 'pawl_jobs')"
        " OR EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table'"
        " AND name NOT LIKE 'pawl\\_%' ESCAPE '\\' AND sql LIKE '%references%pawl\\_%' ESCAPE '\\')",
    /* The highest one counts, as for SQLite's own AUTOINCREMENT: somebody may have emptied sqlite_sequence, and a
     * trigger's INSERT inside our own may leave it behind. */
    [PAWLI_SQL_LAST_ID] = "SELECT max(ifnull((SELECT max(seq) FROM sqlite_sequence WHERE name = 'pawl_job'), 0),"
                          " ifnull((SELECT max(id) FROM pawl_job), 0))",
    [PAWLI_SQL_NEXT_DUE] = "SELECT available_at FROM pawl_job INDEXED BY pawl_job_later"
                           " WHERE status = 8 ORDER BY available_at LIMIT 1",

    [PAWLI_SQL_LANES] = "SELECT l.id, l.queue, k.name, l.kind, l.ready, l.later, l.running,"
                        " l.succeeded, l.failed, l.cancelled, l.blocked, l.enqueued, l.pruned,"
                        " EXISTS (SELECT 1 FROM pawl_paused p WHERE p.queue = l.queue)"
                        " FROM pawl_lane l JOIN pawl_kind k ON k.id = l.kind",
    [PAWLI_SQL_LANE_FIND] = "SELECT id FROM pawl_lane WHERE queue = ?1 AND kind = ?2",
    [PAWLI_SQL_LANE_ADD] = "INSERT INTO pawl_lane (queue, kind) VALUES (?1, ?2)",
    [PAWLI_SQL_LANE_COUNT] = "UPDATE pawl_lane SET ready = ready + ?2, later = later + ?3,"
                             " running = running + ?4, succeeded = succeeded + ?5,"
                             " failed = failed + ?6, cancelled = cancelled + ?7,"
                             " blocked = blocked + ?8, enqueued = enqueued + ?9,"
                             " pruned = pruned + ?10 WHERE id = ?1",
    [PAWLI_SQL_LANE_ERROR] = "UPDATE pawl_lane SET last_error = ?2, last_error_at = ?3 WHERE id = ?1",
    [PAWLI_SQL_LANE_RECOUNT] =
        "UPDATE pawl_lane SET ready = r.ready, later = r.later, running = r.running,"
        " succeeded = r.succeeded, failed = r.failed, cancelled = r.cancelled, blocked = r.blocked,"
        " enqueued = r.stored + pruned + ?2, pruned = pruned + ?2 FROM (SELECT count(*) AS stored,"
        " count(*) FILTER (WHERE status = 2) AS ready, count(*) FILTER (WHERE status = 8) AS later,"
        " count(*) FILTER (WHERE status = 3) AS running, count(*) FILTER (WHERE status = 4) AS succeeded,"
        " count(*) FILTER (WHERE status = 5) AS failed, count(*) FILTER (WHERE status = 6) AS cancelled,"
        " count(*) FILTER (WHERE status = 7) AS blocked FROM pawl_job WHERE lane = ?1) AS r"
        " WHERE pawl_lane.id = ?1",
    [PAWLI_SQL_KIND_FIND] = "SELECT id FROM pawl_kind WHERE name = ?1",
    [PAWLI_SQL_KIND_ADD] = "INSERT INTO pawl_kind (name) VALUES (?1)",
    [PAWLI_SQL_IS_PAUSED] = "SELECT 1 FROM pawl_paused WHERE queue = ?1",
    [PAWLI_SQL_PAUSE] = "INSERT INTO pawl_paused (queue, paused_at) VALUES (?1, ?2)"
                        " ON CONFLICT DO NOTHING",
    [PAWLI_SQL_RESUME] = "DELETE FROM pawl_paused WHERE queue = ?1",

    [PAWLI_SQL_JOB_BY_KEY] = "SELECT id FROM pawl_job WHERE kind = ?1 AND idempotency_key = ?2",
    [PAWLI_SQL_JOBS_INSERT] =
        "INSERT INTO pawl_job (id, lane, kind, status, priority, attempts, max_attempts, cancel,"
        " bystander, holder, fence, timeout_ms, available_at, created_at, updated_at, claimed_at,"
        " lease_until, lease_boot, idempotency_key, last_error, payload)"
        " SELECT id, lane, kind, status, priority, attempts, max_attempts, 0, 0, holder, fence,"
        " timeout_ms, available_at, now, now, now, lease_until, lease_boot, idempotency_key, NULL,"
        " payload FROM pawl_new_jobs",

    [PAWLI_SQL_HEADS] = "SELECT id, priority FROM pawl_job INDEXED BY pawl_job_ready"
                        " WHERE lane = ?1 AND status = 2 AND priority <= ?2"
                        " AND (priority < ?2 OR id > ?3) ORDER BY priority DESC, id LIMIT ?4",
    [PAWLI_SQL_CLAIM_READ] = "SELECT attempts, max_attempts, timeout_ms,"
                             " ifnull(length(payload) > 268435456, 0), payload FROM pawl_job"
                             " WHERE id = ?1 AND status = 2",
    [PAWLI_SQL_CLAIM] = "UPDATE pawl_job SET status = 3, attempts = attempts + 1, holder = ?2,"
                        " fence = ?3, claimed_at = ?4, updated_at = ?4, lease_until = ?5,"
                        " lease_boot = ?6, cancel = 0 WHERE id = ?1 AND status = 2",
    [PAWLI_SQL_REFUSE] = "UPDATE pawl_job SET status = 5, updated_at = ?2, last_error = ?3"
                         " WHERE id = ?1 AND status IN (2, 3, 8)",
    [PAWLI_SQL_SUCCEED] = "UPDATE pawl_job SET status = 4, updated_at = ?3"
                          " WHERE id = ?1 AND fence = ?2 AND status = 3",
    [PAWLI_SQL_HEARTBEAT] = "UPDATE pawl_job SET lease_until = ?3, lease_boot = ?4"
                            " WHERE id = ?1 AND fence = ?2 AND status = 3",
    [PAWLI_SQL_HELD] = "SELECT attempts, max_attempts, cancel, bystander, holder, claimed_at"
                       " FROM pawl_job WHERE id = ?1 AND fence = ?2 AND status = 3",
    [PAWLI_SQL_AFTERMATH] = "UPDATE pawl_job SET status = ?3, available_at = ?4, updated_at = ?5,"
                            " attempts = ?6, bystander = ?7, cancel = 0,"
                            " last_error = ifnull(?8, last_error)"
                            " WHERE id = ?1 AND fence = ?2 AND status = 3",
    [PAWLI_SQL_ATTEMPT_ADD] = "INSERT OR REPLACE INTO pawl_attempts (job, fence, attempt, outcome,"
                              " charged, holder, claimed_at, ended_at, error)"
                              " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [PAWLI_SQL_ATTEMPTS_TRIM] = "DELETE FROM pawl_attempts WHERE job = ?1 AND fence <= (SELECT fence FROM"
                                " pawl_attempts WHERE job = ?1 ORDER BY fence DESC LIMIT 1 OFFSET ?2)",
    [PAWLI_SQL_ATTEMPTS_DELETE] = "DELETE FROM pawl_attempts WHERE job = ?1",

    [PAWLI_SQL_STATE_READ] = "SELECT status, lane, holder, cancel FROM pawl_job WHERE id = ?1",
    [PAWLI_SQL_CANCEL_PENDING] = "UPDATE pawl_job SET status = 6, updated_at = ?2"
                                 " WHERE id = ?1 AND status IN (2, 7, 8)",
    [PAWLI_SQL_CANCEL_RUNNING] = "UPDATE pawl_job SET cancel = 1 WHERE id = ?1 AND status = 3",
    [PAWLI_SQL_HOLDER_CANCELS] = "UPDATE pawl_holder SET cancels = cancels + 1 WHERE id = ?1",
    [PAWLI_SQL_REQUEUE] = "UPDATE pawl_job SET status = 2, attempts = 0, bystander = 0, cancel = 0,"
                          " available_at = ?2, updated_at = ?2 WHERE id = ?1 AND status IN (5, 6)",

    [PAWLI_SQL_PROMOTABLE] = "SELECT id, lane FROM pawl_job INDEXED BY pawl_job_later"
                             " WHERE status = 8 AND available_at <= ?1"
                             " ORDER BY available_at LIMIT ?2",
    [PAWLI_SQL_PROMOTE] = "UPDATE pawl_job SET status = 2 WHERE id = ?1 AND status = 8",

    [PAWLI_SQL_CLAIMS_OF] = "SELECT id, fence, lane FROM pawl_job INDEXED BY pawl_job_running"
                            " WHERE status = 3 AND holder = ?1 LIMIT ?2",
    [PAWLI_SQL_ORPHANS] = "SELECT id, fence, lane FROM pawl_job INDEXED BY pawl_job_running"
                          " WHERE status = 3 AND holder = ?1 AND fence BETWEEN ?2 AND ?3 LIMIT ?4",
    /* A lease far in the future is broken, not valid (R13). */
    [PAWLI_SQL_CLAIMS_EXPIRED] = "SELECT id, fence, lane FROM pawl_job INDEXED BY pawl_job_running"
                                 " WHERE status = 3 AND holder <> ?1"
                                 " AND (lease_boot <= ?2 OR lease_boot > ?3) LIMIT ?4",

    [PAWLI_SQL_FIRST_EXPIRY] = "SELECT ifnull(min(iif(lease_boot > ?2, 0, lease_boot)), ?3)"
                               " FROM pawl_job INDEXED BY pawl_job_running"
                               " WHERE status = 3 AND holder <> ?1",

    [PAWLI_SQL_PRUNE_WALK] = "SELECT id, lane, status, updated_at, created_at FROM pawl_job"
                             " WHERE id > ?1 ORDER BY id LIMIT ?2",
    [PAWLI_SQL_PRUNE] = "DELETE FROM pawl_job WHERE id = ?1 AND status IN (4, 5, 6)",

    [PAWLI_SQL_HOLDER_ADD] = "INSERT INTO pawl_holder (name, side, pid, started, boot, pid_space,"
                             " joined_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [PAWLI_SQL_HOLDER_LEFT] = "UPDATE pawl_holder SET left_at = ?2 WHERE id = ?1 AND left_at IS NULL",
    [PAWLI_SQL_HOLDERS_FORGET] = "DELETE FROM pawl_holder WHERE left_at IS NOT NULL AND id < ?1",
    [PAWLI_SQL_HOLDERS] = "SELECT id, name, side, pid, started, boot, pid_space FROM pawl_holder"
                          " WHERE left_at IS NULL AND id <> ?1 AND id > ?3 ORDER BY id LIMIT ?2",
    [PAWLI_SQL_CANCELS_COUNT] = "SELECT cancels FROM pawl_holder WHERE id = ?1",
    [PAWLI_SQL_CANCELS] = "SELECT id FROM pawl_job INDEXED BY pawl_job_running"
                          " WHERE status = 3 AND holder = ?1 AND cancel = 1 LIMIT ?2",
};

static sqlite3_stmt *prepared(pawli_sqlite *s, pawli_sql sql, int *rc)
{
    sqlite3_stmt **slot = &s->statements[sql];
    *rc = SQLITE_OK;
    if (*slot == NULL)
        *rc = sqlite3_prepare_v3(s->db, texts[sql], -1, SQLITE_PREPARE_PERSISTENT, slot, NULL);
    return *slot;
}

int pawli_bind(sqlite3_stmt *statement, int at, const pawli_value *value)
{
    switch (value->type) {
    case PAWLI_VALUE_INT: return sqlite3_bind_int64(statement, at, value->integer);
    case PAWLI_VALUE_TEXT:
        return sqlite3_bind_text64(statement, at, value->bytes, value->count, SQLITE_STATIC,
                                   SQLITE_UTF8);
    case PAWLI_VALUE_BLOB:
        return sqlite3_bind_blob64(statement, at, value->bytes, value->count, SQLITE_STATIC);
    case PAWLI_VALUE_NULL:
    default: return sqlite3_bind_null(statement, at);
    }
}

pawli_value pawli_text_value(const char *text)
{
    return TEXTN(text, text != NULL ? strlen(text) : 0);
}

sqlite3_stmt *pawli_query_values(pawli_sqlite *s, pawli_sql sql, const pawli_value *values,
                                 size_t count, int *rc)
{
    sqlite3_stmt *statement = prepared(s, sql, rc);
    for (size_t i = 0; *rc == SQLITE_OK && i < count; i++)
        *rc = pawli_bind(statement, (int)i + 1, &values[i]);
    if (*rc == SQLITE_OK)
        return statement;
    if (statement != NULL)
        (void)pawli_done(statement, *rc);
    return NULL;
}

int pawli_done(sqlite3_stmt *statement, int rc)
{
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int pawli_run_values(pawli_sqlite *s, pawli_sql sql, const pawli_value *values, size_t count)
{
    int rc;
    sqlite3_stmt *statement = pawli_query_values(s, sql, values, count, &rc);
    if (statement == NULL)
        return rc;
    do
        rc = sqlite3_step(statement);
    while (rc == SQLITE_ROW);
    return pawli_done(statement, rc);
}

int pawli_change_values(pawli_sqlite *s, pawli_sql sql, const pawli_value *values, size_t count)
{
    int rc = pawli_run_values(s, sql, values, count);
    return rc == SQLITE_OK && sqlite3_changes(s->db) != 1 ? SQLITE_CONSTRAINT_TRIGGER : rc;
}

int pawli_read_integer(pawli_sqlite *s, pawli_sql sql, const pawli_value *values, size_t count,
                       int64_t *out, bool *found)
{
    int rc;
    *found = false;
    sqlite3_stmt *statement = pawli_query_values(s, sql, values, count, &rc);
    if (statement == NULL)
        return rc;
    rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        *found = true;
        *out = sqlite3_column_int64(statement, 0);
    }
    return pawli_done(statement, rc);
}

void pawli_statements_finalize(pawli_sqlite *s)
{
    for (size_t i = 0; i < PAWLI_SQL_COUNT; i++) {
        (void)sqlite3_finalize(s->statements[i]);
        s->statements[i] = NULL;
    }
}
