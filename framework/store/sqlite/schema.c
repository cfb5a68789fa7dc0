/* schema.c - pawl's tables in the application's file: created once, however many open at a time.
 *
 * The views stand in views.c, their triggers in triggers.c; migrate.c brings an older file up to this.
 * Threads: the writer's role at open; any thread for the check.
 * Keeps:   R9 foreign objects under our names are refused; user_version and application_id are the
 *          application's; R11 STRICT tables, CHECKs, ids never reused. */
#include <stdio.h>
#include <string.h>

#include "sql_text.h"
#include "sqlite_store.h"

#define TIME_CHECK(column) " CHECK (" column " BETWEEN 0 AND 253402300799999)"
#define NAME_CHECK(column) " CHECK (" PAWLI_CHECK_OF_NAME(column) ")"

static const char tables[] =
    "CREATE TABLE pawl_meta ("
    " key TEXT PRIMARY KEY NOT NULL,"
    " value INTEGER NOT NULL) STRICT, WITHOUT ROWID;"

    "CREATE TABLE pawl_kind ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " name TEXT NOT NULL UNIQUE" NAME_CHECK("name") ") STRICT;"

    "CREATE TABLE pawl_lane ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " queue TEXT NOT NULL" NAME_CHECK("queue") ","
    " kind INTEGER NOT NULL REFERENCES pawl_kind (id),"
    " ready INTEGER NOT NULL DEFAULT 0 CHECK (ready >= 0),"
    " later INTEGER NOT NULL DEFAULT 0 CHECK (later >= 0),"
    " running INTEGER NOT NULL DEFAULT 0 CHECK (running >= 0),"
    " succeeded INTEGER NOT NULL DEFAULT 0 CHECK (succeeded >= 0),"
    " failed INTEGER NOT NULL DEFAULT 0 CHECK (failed >= 0),"
    " cancelled INTEGER NOT NULL DEFAULT 0 CHECK (cancelled >= 0),"
    " blocked INTEGER NOT NULL DEFAULT 0 CHECK (blocked >= 0),"
    " enqueued INTEGER NOT NULL DEFAULT 0 CHECK (enqueued >= 0),"
    " pruned INTEGER NOT NULL DEFAULT 0 CHECK (pruned >= 0),"
    " last_error TEXT,"
    " last_error_at INTEGER,"
    " UNIQUE (queue, kind)) STRICT;"

    "CREATE TABLE pawl_paused ("
    " queue TEXT PRIMARY KEY NOT NULL" NAME_CHECK("queue") ","
    " paused_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;"

    "CREATE TABLE pawl_holder ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " name TEXT NOT NULL,"
    " side TEXT NOT NULL,"
    " pid INTEGER NOT NULL,"
    " started INTEGER NOT NULL,"
    " boot TEXT NOT NULL,"
    " pid_space INTEGER NOT NULL,"
    " joined_at INTEGER NOT NULL,"
    " left_at INTEGER,"
    " cancels INTEGER NOT NULL DEFAULT 0) STRICT;"

    /* The payload stands last: what is rewritten often does not lie behind it. */
    "CREATE TABLE pawl_job ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " lane INTEGER NOT NULL,"
    " kind INTEGER NOT NULL,"
    " status INTEGER NOT NULL CHECK (status BETWEEN 2 AND 8),"
    " priority INTEGER NOT NULL CHECK (priority BETWEEN -2147483648 AND 2147483647),"
    " attempts INTEGER NOT NULL,"
    " max_attempts INTEGER NOT NULL CHECK (max_attempts BETWEEN 1 AND 4294967295),"
    " cancel INTEGER NOT NULL CHECK (cancel IN (0, 1)),"
    " bystander INTEGER NOT NULL CHECK (bystander >= 0),"
    " holder INTEGER NOT NULL,"
    " fence INTEGER NOT NULL CHECK (fence >= 0),"
    " timeout_ms INTEGER NOT NULL CHECK (timeout_ms >= -1),"
    " available_at INTEGER NOT NULL" TIME_CHECK("available_at") ","
    " created_at INTEGER NOT NULL" TIME_CHECK("created_at") ","
    " updated_at INTEGER NOT NULL" TIME_CHECK("updated_at") ","
    " claimed_at INTEGER NOT NULL" TIME_CHECK("claimed_at") ","
    " lease_until INTEGER NOT NULL,"
    " lease_boot INTEGER NOT NULL,"
    " " PAWLI_COLUMN_OF_KEY ","
    " last_error TEXT,"
    " payload ANY,"
    " CHECK (attempts BETWEEN 0 AND max_attempts)) STRICT;"
    "CREATE INDEX pawl_job_ready ON pawl_job (lane, priority DESC, id) WHERE status = 2;"
    "CREATE INDEX pawl_job_later ON pawl_job (available_at) WHERE status = 8;"
    "CREATE INDEX pawl_job_running ON pawl_job (holder) WHERE status = 3;"
    "CREATE UNIQUE INDEX pawl_job_key ON pawl_job (kind, idempotency_key)"
    " WHERE idempotency_key IS NOT NULL;"
    PAWLI_CREATE_INDEX_DEAD

    "CREATE TABLE pawl_attempts ("
    " job INTEGER NOT NULL,"
    " fence INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    " outcome TEXT NOT NULL,"
    " charged INTEGER NOT NULL,"
    " holder INTEGER NOT NULL,"
    " claimed_at INTEGER NOT NULL,"
    " ended_at INTEGER NOT NULL,"
    " error TEXT,"
    " PRIMARY KEY (job, fence)) STRICT, WITHOUT ROWID;"

    "INSERT INTO pawl_meta (key, value) VALUES ('schema', 2), ('epoch', 1), ('fence', 0),"
    " ('restarts', 0);" PAWLI_INSERT_SQL_META;

static int read_number(sqlite3 *db, const char *sql, int64_t *out, bool *found)
{
    sqlite3_stmt *row;
    *found = false;
    int rc = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(row);
    if (rc == SQLITE_ROW) {
        *found = true;
        *out = sqlite3_column_int64(row, 0);
    }
    (void)sqlite3_finalize(row);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static pawl_status judge(int64_t version, const char *path)
{
    if (version > PAWLI_SCHEMA_VERSION)
        return pawli_fail(PAWL_ERR_VERSION, "%s: was written by a newer pawl (schema %lld; this is pawl "
                                            "%s with schema %d); upgrade this program", path,
                          (long long)version, PAWL_VERSION, PAWLI_SCHEMA_VERSION);
    if (version < 1)
        return pawli_fail(PAWL_ERR_INVALID, "%s: pawl_meta names schema %lld, which no pawl has written; "
                                            "restore a backup, or use another file", path,
                          (long long)version);
    return PAWL_OK;
}

static pawl_status cannot_read(sqlite3 *db, const char *path, int rc)
{
    return pawli_fail(pawli_sqlite_status(rc), "%s: cannot read the schema: %s%s", path, sqlite3_errmsg(db),
                      pawli_sqlite_remedy(rc));
}

/* No version is to be found. That the objects are not ours is said only if it is so: who renames the tables of a
 * file that is damaged, or busy, has done harm. */
static pawl_status explain_no_version(sqlite3 *db, const char *path)
{
    int64_t ours = 0;
    bool found;
    int rc = read_number(db, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('pawl_kind',"
                             " 'pawl_lane', 'pawl_job', 'pawl_holder')", &ours, &found);
    if (rc != SQLITE_OK)
        return cannot_read(db, path, rc);
    if (ours == 4)
        return pawli_fail(PAWL_ERR_STORE, "%s: holds pawl's tables, but their version is missing: somebody has emptied "
                                          "or dropped pawl_meta; restore a backup", path);
    return pawli_fail(PAWL_ERR_INVALID, "%s: has objects named pawl_… that are not pawl's; rename them, or use "
                                        "another file", path);
}

/* Which schema of ours the file holds: 0 for none. An older one is for pawli_sqlite_schema_prepare(). */
pawl_status pawli_sqlite_schema_check(sqlite3 *db, const char *path, int64_t *version)
{
    int64_t objects = 0;
    bool found;
    *version = 0;
    int rc = read_number(db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'pawl\\_%' ESCAPE '\\'",
                         &objects, &found);
    if (rc != SQLITE_OK)
        return cannot_read(db, path, rc);
    if (objects == 0)
        return PAWL_OK;
    rc = read_number(db, "SELECT value FROM pawl_meta WHERE key = 'schema'", version, &found);
    if (rc == SQLITE_OK && found)
        return judge(*version, path);
    return rc == SQLITE_OK || rc == SQLITE_ERROR /* no such table or column */ ? explain_no_version(db, path)
                                                                               : cannot_read(db, path, rc);
}

/* The same for a reader, which cannot bring it up to date. */
pawl_status pawli_sqlite_schema_readable(sqlite3 *db, const char *path)
{
    int64_t version;
    pawl_status st = pawli_sqlite_schema_check(db, path, &version);
    if (st == PAWL_OK && version == 0)
        return pawli_sqlite_to_init(PAWL_ERR_NOT_FOUND, path, "holds no pawl tables; create them with");
    if (st != PAWL_OK || version >= PAWLI_SCHEMA_VERSION)
        return st;
    char finding[200];
    (void)snprintf(finding, sizeof finding,
                   "was written by an older pawl (schema %lld; this is pawl %s with schema %d); open it once for "
                   "writing to upgrade it", (long long)version, PAWL_VERSION, PAWLI_SCHEMA_VERSION);
    return pawli_sqlite_to_init(PAWL_ERR_VERSION, path, finding);
}

static int run_pieces(sqlite3 *db, const char *const *pieces)
{
    sqlite3_str *text = sqlite3_str_new(db);
    for (; *pieces != NULL; pieces++)
        sqlite3_str_appendall(text, *pieces);
    char *sql = sqlite3_str_finish(text);
    int rc = sql != NULL ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc;
}

int pawli_sqlite_create_views(sqlite3 *db)
{
    int rc = run_pieces(db, pawli_sqlite_views);
    return rc == SQLITE_OK ? run_pieces(db, pawli_sqlite_triggers) : rc;
}

int pawli_sqlite_create_all(sqlite3 *db)
{
    int rc = sqlite3_exec(db, tables, NULL, NULL, NULL);
    return rc == SQLITE_OK ? pawli_sqlite_create_views(db) : rc;
}

static pawl_status prepare_in_transaction(pawli_sqlite *s)
{
    int64_t version; /* another process may have been first */
    pawl_status st = pawli_sqlite_schema_check(s->db, s->path, &version);
    if (st != PAWL_OK || version == PAWLI_SCHEMA_VERSION)
        return st;
    if (version != 0)
        return pawli_sqlite_migrate(s);
    int rc = pawli_sqlite_create_all(s->db);
    return rc == SQLITE_OK ? PAWL_OK : pawli_sqlite_failed(s, s->db, rc, "create pawl's tables");
}

/* Who holds the lock is probably doing the same, and with many jobs that takes its time. */
static pawl_status cannot_begin(pawli_sqlite *s, int rc, const char *doing)
{
    int64_t version = 0;
    pawl_status st = pawli_sqlite_failed(s, s->db, rc, doing);
    if (st != PAWL_ERR_BUSY || pawli_sqlite_schema_check(s->db, s->path, &version) != PAWL_OK || version == 0)
        return st;
    return pawli_fail(PAWL_ERR_BUSY, "%s: has the tables of an older pawl, and another process holds the write lock: "
                                     "it may be upgrading them, which with many jobs takes minutes; try again later",
                      s->path);
}

/* Creates the tables, or brings older ones up to date, in one transaction: whole or not at all (R9). */
pawl_status pawli_sqlite_schema_prepare(pawli_sqlite *s)
{
    static const char doing[] = "create or upgrade pawl's tables";
    int rc = sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL); /* R1 */
    if (rc != SQLITE_OK)
        return cannot_begin(s, rc, doing);
    pawl_status st = prepare_in_transaction(s);
    if (st == PAWL_OK) {
        rc = sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
        if (rc != SQLITE_OK)
            st = pawli_sqlite_failed(s, s->db, rc, doing);
    }
    if (!sqlite3_get_autocommit(s->db))
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return st;
}
