/* enqueue_in.c - pawl_enqueue_in: a job stored through the application's own connection and transaction.
 *
 * Threads: the application's, which owns the connection; no pool is needed.
 * Keeps:   I18 the job exists exactly if the application's transaction commits; I16, I20 as in a pool:
 *          everything stands under one savepoint, so a failure leaves the transaction as it was; R4 nothing
 *          is rolled back that was not begun here. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../enqueue.h"
#include "race_probe.h"
#include "sqlite_store.h"

#define PAYLOAD_MAX (256 << 20)

typedef struct insertion {
    sqlite3 *db;
    const char *schema;
    pawli_new_job job;
    bool own; /* no transaction of the application's is open */
    int64_t now_ms;
    int64_t fence_base, kind, lane, last_rowid;
} insertion;

/* A snapshot that is older than the last commit cannot be written on, however long one waits. */
static const char *busy_remedy(const insertion *in, int rc)
{
    if (!in->own)
        return "; begin a transaction that enqueues with BEGIN IMMEDIATE, and set a busy_timeout";
    if (rc == SQLITE_BUSY_SNAPSHOT)
        return "; finish or reset the SELECT that is under way on this connection: others have written since it began";
    return "; another connection holds the write lock: set a busy_timeout";
}

static const char *remedy(const insertion *in, int rc)
{
    if ((rc & 0xFF) == SQLITE_BUSY)
        return busy_remedy(in, rc);
    if (rc != SQLITE_READONLY)
        return pawli_sqlite_remedy(rc);
    return sqlite3_db_readonly(in->db, in->schema) == 0
               ? "; this connection only reads: say PRAGMA query_only = OFF, or enqueue on another one"
               : "; this connection opened it for reading only: enqueue on another one";
}

static pawl_status failed(const insertion *in, int rc)
{
    int full = sqlite3_extended_errcode(in->db); /* the application may not have asked for extended codes */
    bool is_last = (full & 0xFF) == (rc & 0xFF);
    return pawli_fail(pawli_sqlite_status(rc), "pawl_enqueue_in: %s%s",
                      is_last ? sqlite3_errmsg(in->db) : sqlite3_errstr(rc), remedy(in, is_last ? full : rc));
}

/* Prepares with %w replaced by the schema. */
static int prepare(const insertion *in, const char *format, sqlite3_stmt **out)
{
    char *sql = sqlite3_mprintf(format, in->schema);
    if (sql == NULL)
        return SQLITE_NOMEM;
    int rc = sqlite3_prepare_v2(in->db, sql, -1, out, NULL);
    sqlite3_free(sql);
    return rc;
}

static int bind_all(sqlite3_stmt *statement, const pawli_value *values, size_t count)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < count && rc == SQLITE_OK; i++)
        rc = pawli_bind(statement, (int)i + 1, &values[i]);
    return rc;
}

/* Runs one statement; the first column of its first row goes to *out (or NULL). */
static int run(const insertion *in, const char *format, const pawli_value *values, size_t count,
               int64_t *out, bool *found)
{
    sqlite3_stmt *statement;
    int rc = prepare(in, format, &statement);
    if (rc != SQLITE_OK)
        return rc;
    rc = bind_all(statement, values, count);
    if (found != NULL)
        *found = false;
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW && out != NULL)
        *out = sqlite3_column_int64(statement, 0);
    if (rc == SQLITE_ROW && found != NULL)
        *found = true;
    int finished = sqlite3_finalize(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : finished != SQLITE_OK ? finished : rc;
}

static pawl_status check_schema(insertion *in)
{
    int64_t version = 0, epoch = 0;
    bool found;
    int rc = run(in, "SELECT value FROM \"%w\".pawl_meta WHERE key = 'schema'", NULL, 0, &version, &found);
    if (rc != SQLITE_OK && sqlite3_db_readonly(in->db, in->schema) < 0)
        return pawli_fail(PAWL_ERR_INVALID, "pawl_enqueue_in: no database is attached as \"%s\"", in->schema);
    if ((rc & 0xFF) == SQLITE_ERROR || (rc == SQLITE_OK && !found))
        return pawli_fail(PAWL_ERR_INVALID, "pawl_enqueue_in: \"%s\" holds no pawl tables; open a pool on "
                                            "the file once, or run: pawl init FILE", in->schema);
    if (rc != SQLITE_OK)
        return failed(in, rc);
    if (version > PAWLI_SCHEMA_VERSION)
        return pawli_fail(PAWL_ERR_VERSION, "pawl_enqueue_in: \"%s\" was written by a newer pawl; upgrade "
                                            "this program", in->schema);
    if (version < PAWLI_SCHEMA_VERSION)
        return pawli_fail(PAWL_ERR_VERSION, "pawl_enqueue_in: \"%s\" was written by an older pawl; open a pool on "
                                            "the file once to upgrade it, or run: pawl init FILE", in->schema);
    rc = run(in, "SELECT value FROM \"%w\".pawl_meta WHERE key = 'epoch'", NULL, 0, &epoch, &found);
    in->fence_base = epoch << PAWLI_FENCE_EPOCH_SHIFT;
    return rc == SQLITE_OK ? PAWL_OK : failed(in, rc);
}

static int find_kind(insertion *in)
{
    const pawli_value kind = TEXT(in->job.kind);
    int rc = run(in, "INSERT INTO \"%w\".pawl_kind (name) VALUES (?1) ON CONFLICT DO NOTHING", &kind, 1,
                 NULL, NULL);
    if (rc == SQLITE_OK)
        rc = run(in, "SELECT id FROM \"%w\".pawl_kind WHERE name = ?1", &kind, 1, &in->kind, NULL);
    return rc;
}

static int find_lane(insertion *in)
{
    const pawli_value lane[] = { TEXT(in->job.queue), NUM(in->kind) };
    int rc = run(in, "INSERT INTO \"%w\".pawl_lane (queue, kind) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                 lane, 2, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = run(in, "SELECT id FROM \"%w\".pawl_lane WHERE queue = ?1 AND kind = ?2", lane, 2, &in->lane,
                 NULL);
    return rc;
}

static int find_key(insertion *in)
{
    if (in->job.key == NULL)
        return SQLITE_OK;
    const pawli_value key[] = { NUM(in->kind), pawli_key_value(in->job.key, in->job.key_bytes) };
    return run(in, "SELECT id FROM \"%w\".pawl_job WHERE kind = ?1 AND idempotency_key = ?2", key, 2,
               &in->job.id, &in->job.exists);
}

static int insert(insertion *in)
{
    pawli_new_job *job = &in->job;
    if (job->delay_ms > 0)
        job->available_at_ms = in->now_ms + job->delay_ms;
    bool later = job->available_at_ms > in->now_ms;
    const pawli_value row[] = { NUM(in->lane),
                                NUM(in->kind),
                                NUM(later ? PAWLI_DB_LATER : PAWLI_DB_READY),
                                NUM(job->priority),
                                NUM(job->max_attempts),
                                NUM(in->fence_base),
                                NUM(job->timeout_ms),
                                NUM(later ? job->available_at_ms : in->now_ms),
                                NUM(in->now_ms),
                                pawli_key_value(job->key, job->key_bytes),
                                BLOB(job->payload, job->payload_bytes) };
    int rc = run(in,
                 "INSERT INTO \"%w\".pawl_job (lane, kind, status, priority, attempts, max_attempts,"
                 " cancel, bystander, holder, fence, timeout_ms, available_at, created_at, updated_at,"
                 " claimed_at, lease_until, lease_boot, idempotency_key, payload)"
                 " VALUES (?1, ?2, ?3, ?4, 0, ?5, 0, 0, 0, ?6, ?7, ?8, ?9, ?9, ?9, ?9, ?9, ?10, ?11)",
                 row, sizeof row / sizeof row[0], NULL, NULL);
    if (rc == SQLITE_OK && sqlite3_changes(in->db) != 1)
        rc = SQLITE_CONSTRAINT_TRIGGER; /* see pawli_change() */
    if (rc != SQLITE_OK)
        return rc;
    in->job.id = sqlite3_last_insert_rowid(in->db);
    const pawli_value counts[] = { NUM(in->lane), NUM(!later), NUM(later) };
    return run(in,
               "UPDATE \"%w\".pawl_lane SET ready = ready + ?2, later = later + ?3,"
               " enqueued = enqueued + 1 WHERE id = ?1",
               counts, 3, NULL, NULL);
}

/* A connection with automatic checkpoints is a danger to all (R6): the pools' log tells of it. Attached ones
 * have none, and neither has one whose WAL hook is the application's. The application's authorizer may keep us
 * from asking or from noting it: a job is not refused for that. */
static int note_checkpoints(insertion *in)
{
    int64_t frames = 0;
    if (!pawli_race_version_has_it(sqlite3_libversion_number()))
        return SQLITE_OK;
    int rc = run(in, "PRAGMA \"%w\".wal_autocheckpoint", NULL, 0, &frames, NULL);
    if (rc == SQLITE_OK && frames != 0)
        rc = run(in, "UPDATE \"%w\".pawl_meta SET value = ?1 WHERE key = 'sql_writer'", &NUM(in->now_ms), 1, NULL,
                 NULL);
    return (rc & 0xFF) == SQLITE_AUTH ? SQLITE_OK : rc;
}

static pawl_status store(insertion *in)
{
    pawl_status st = check_schema(in);
    if (st != PAWL_OK)
        return st;
    int rc = find_kind(in);
    if (rc == SQLITE_OK)
        rc = find_key(in);
    if (rc == SQLITE_OK && in->job.exists)
        return PAWL_EXISTS; /* nothing is written */
    if (rc == SQLITE_OK)
        rc = find_lane(in);
    if (rc == SQLITE_OK)
        rc = insert(in);
    if (rc == SQLITE_OK)
        rc = note_checkpoints(in);
    return rc == SQLITE_OK ? PAWL_OK : failed(in, rc);
}

/* ------------------------------------------------------------------- whole or not at all */

/* Beside a statement that writes SQLite begins no savepoint and commits nothing, and a rollback would undo what
 * that statement has written: it is the application's. Outside a transaction a lock for writing is another sign:
 * a blob is open, or a backup is copied into this database. */
static bool is_writing(const insertion *in)
{
    sqlite3_stmt *statement = NULL;
    if (in->own && sqlite3_txn_state(in->db, NULL) == SQLITE_TXN_WRITE)
        return true;
    while ((statement = sqlite3_next_stmt(in->db, statement)) != NULL)
        if (sqlite3_stmt_busy(statement) && !sqlite3_stmt_readonly(statement))
            return true;
    return false;
}

static pawl_status begin(const insertion *in)
{
    if (is_writing(in))
        return pawli_fail(PAWL_ERR_STATE, "pawl_enqueue_in: a statement that writes is under way on this "
                                          "connection; finish or reset it first");
    int rc = sqlite3_exec(in->db, in->own ? "BEGIN IMMEDIATE" : "SAVEPOINT pawl_enqueue_in", NULL, NULL, NULL);
    return rc == SQLITE_OK ? PAWL_OK : failed(in, rc);
}

static pawl_status commit(const insertion *in)
{
    int rc = sqlite3_exec(in->db, in->own ? "COMMIT" : "RELEASE pawl_enqueue_in", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        return PAWL_OK;
    pawl_status st = failed(in, rc);
    bool is_known = !in->own || !sqlite3_get_autocommit(in->db) /* it is still open */
                    || (rc & 0xFF) == SQLITE_CONSTRAINT;        /* the application's commit hook refused */
    return is_known ? st
                    : pawli_fail(PAWL_ERR_UNKNOWN, "%s; it is not known whether the job was stored: ask again with "
                                                   "the same idempotency key", pawl_error_message()); /* R5 */
}

/* R4: SQLite may have rolled back by itself, and then there is no transaction any more whose rest could commit. */
static pawl_status undo(const insertion *in, pawl_status st)
{
    if (!sqlite3_get_autocommit(in->db))
        (void)sqlite3_exec(in->db, in->own ? "ROLLBACK"
                                           : "ROLLBACK TO pawl_enqueue_in; RELEASE pawl_enqueue_in",
                           NULL, NULL, NULL);
    else if (!in->own)
        return pawli_fail(st, "%s; SQLite has rolled back your whole transaction: begin it anew",
                          pawl_error_message());
    return st;
}

/* Inside the application's transaction a savepoint; without one a transaction of its own (R1). */
static pawl_status store_whole(insertion *in)
{
    pawl_status st = begin(in);
    if (st != PAWL_OK)
        return st;
    st = store(in);
    if (st >= 0) {
        pawl_status committed = commit(in);
        st = committed != PAWL_OK ? committed : st;
    }
    if (st < 0)
        st = undo(in, st);
    sqlite3_set_last_insert_rowid(in->db, in->last_rowid); /* the application's own */
    return st;
}

pawl_status pawl_enqueue_in(sqlite3 *db, const char *schema, const pawl_job_spec *spec, int64_t *id_out)
{
    if (db == NULL)
        return pawli_fail(PAWL_ERR_INVALID, "pawl_enqueue_in: db is NULL");
    insertion in = { .db = db, .schema = schema != NULL ? schema : "main",
                     .own = sqlite3_get_autocommit(db) != 0,
                     .now_ms = pawli_wall_now_ms(),
                     .last_rowid = sqlite3_last_insert_rowid(db) };
    const pawli_spec_bounds bounds = { PAYLOAD_MAX, PAWLI_MAX_ATTEMPTS_DEFAULT, in.now_ms };
    pawl_status st = pawli_spec_read(spec, &bounds, &in.job);
    if (st != PAWL_OK)
        return st;
    st = store_whole(&in);
    if (st >= 0 && id_out != NULL)
        *id_out = in.job.id;
    return st;
}
