/* migrate_test.c - a file that the first version of the schema wrote is brought up to date at its first open:
 * whole or not at all, once, whatever happens meanwhile (R9). */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dump.h"
#include "look.h"
#include "patience.h"

/* ----------------------------------------------------------------------- the old schema */

#define TIME_CHECK(column) " CHECK (" column " BETWEEN 0 AND 253402300799999)"
#define NAME_CHECK(column) " CHECK (length(CAST(" column " AS BLOB)) BETWEEN 1 AND 255)"
#define TIME_TEXT(column) "strftime('%Y-%m-%d %H:%M:%f', " column " / 1000.0, 'unixepoch')"
#define EVER_CLAIMED "(j.fence & 1099511627775) <> 0"

/* To the letter. */
static const char *const old_schema[] = {
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
    " cancels INTEGER NOT NULL DEFAULT 0) STRICT;",

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
    " idempotency_key BLOB CHECK (length(idempotency_key) BETWEEN 1 AND 255),"
    " last_error TEXT,"
    " payload ANY,"
    " CHECK (attempts BETWEEN 0 AND max_attempts)) STRICT;"
    "CREATE INDEX pawl_job_ready ON pawl_job (lane, priority DESC, id) WHERE status = 2;"
    "CREATE INDEX pawl_job_later ON pawl_job (available_at) WHERE status = 8;"
    "CREATE INDEX pawl_job_running ON pawl_job (holder) WHERE status = 3;"
    "CREATE UNIQUE INDEX pawl_job_key ON pawl_job (kind, idempotency_key)"
    " WHERE idempotency_key IS NOT NULL;"

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

    "INSERT INTO pawl_meta (key, value) VALUES ('schema', 1), ('epoch', 1), ('fence', 0),"
    " ('restarts', 0);",

    "CREATE VIEW pawl_jobs AS SELECT j.id AS id, l.queue AS queue, k.name AS kind,"
    " j.payload AS payload,"
    " CASE j.status WHEN 2 THEN 'pending' WHEN 8 THEN 'pending' WHEN 3 THEN 'running'"
    " WHEN 4 THEN 'succeeded' WHEN 5 THEN 'failed' WHEN 6 THEN 'cancelled'"
    " WHEN 7 THEN 'blocked' END AS status,"
    " j.priority AS priority,"
    " " TIME_TEXT("j.available_at") " AS available_at,"
    " CASE WHEN " EVER_CLAIMED " THEN " TIME_TEXT("j.claimed_at") " END AS claimed_at,"
    " CASE WHEN " EVER_CLAIMED " THEN (SELECT h.name FROM pawl_holder h WHERE h.id = j.holder)"
    " END AS claimed_by,"
    " CASE WHEN j.status = 3 THEN " TIME_TEXT("j.lease_until") " END AS lease_until,"
    " j.attempts AS attempts, j.max_attempts AS max_attempts, j.last_error AS last_error,"
    " j.idempotency_key AS idempotency_key,"
    " " TIME_TEXT("j.created_at") " AS created_at,"
    " " TIME_TEXT("j.updated_at") " AS updated_at,"
    " CASE WHEN j.status IN (4, 5, 6) THEN " TIME_TEXT("j.updated_at") " END AS finished_at"
    " FROM pawl_job j JOIN pawl_lane l ON l.id = j.lane JOIN pawl_kind k ON k.id = j.kind;",
};

/* Jobs in every state, three lanes, a paused queue, a pool that died with two claims, ended claims. Keys: none,
 * text, and bytes that are no text. Of each state `count` jobs. */
static const char old_rows[] =
    "INSERT INTO pawl_kind (name) VALUES ('mail'), ('gr\xC3\xB6\xC3\x9F" "er');"
    "INSERT INTO pawl_lane (queue, kind) VALUES ('default', 1), ('q', 1), ('q', 2);"
    "INSERT INTO pawl_paused VALUES ('q', 1700000000000);"
    "INSERT INTO pawl_holder (name, side, pid, started, boot, pid_space, joined_at)"
    " VALUES ('gone', '99999999-1-0', 99999999, 1, 'another boot', 1, 1700000000000);"
    "UPDATE pawl_meta SET value = 500000 WHERE key = 'fence';"
    "WITH RECURSIVE c (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i + 1 < %lld)"
    " INSERT INTO pawl_job (lane, kind, status, priority, attempts, max_attempts, cancel, bystander, holder,"
    " fence, timeout_ms, available_at, created_at, updated_at, claimed_at, lease_until, lease_boot,"
    " idempotency_key, last_error, payload)"
    " SELECT 1 + i %% 3, 1 + (i %% 3 = 2), s, i %% 7 - 3, s IN (3, 4, 5), 5, 0, 0, s NOT IN (2, 6, 7, 8),"
    " (1 << 40) + iif(s IN (3, 4, 5), i + 1, 0), 0, iif(s = 8, 4102444800000, 1700000000000 + i),"
    " 1700000000000 + i, 1700000000001 + i, 1700000000000 + i, 1700000060000, 60000,"
    " CASE i %% 4 WHEN 0 THEN NULL WHEN 1 THEN CAST('order-' || s || '-' || i AS BLOB)"
    " WHEN 2 THEN CAST('schl\xC3\xBCssel-' || s || '-' || i AS BLOB)"
    " ELSE CAST(x'ff00' || CAST(s || '-' || i AS BLOB) AS BLOB) END,"
    " iif(s = 5, 'no such mailbox', NULL), iif(i %% 2, 'text ' || i, randomblob(200))"
    " FROM c, (SELECT 2 AS s UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6"
    " UNION ALL SELECT 7 UNION ALL SELECT 8) ORDER BY i, s;"
    "DELETE FROM pawl_job WHERE id = (SELECT max(id) FROM pawl_job);" /* its id is not given again */
    "INSERT INTO pawl_attempts SELECT id, fence, 1, 'failed', 1, 1, claimed_at, updated_at, last_error"
    " FROM pawl_job WHERE status = 5;"
    "UPDATE pawl_lane SET ready = (SELECT count(*) FROM pawl_job j WHERE j.lane = pawl_lane.id AND status = 2),"
    " running = (SELECT count(*) FROM pawl_job j WHERE j.lane = pawl_lane.id AND status = 3),"
    " succeeded = (SELECT count(*) FROM pawl_job j WHERE j.lane = pawl_lane.id AND status = 4),"
    " failed = (SELECT count(*) FROM pawl_job j WHERE j.lane = pawl_lane.id AND status = 5),"
    " cancelled = (SELECT count(*) FROM pawl_job j WHERE j.lane = pawl_lane.id AND status = 6),"
    " blocked = (SELECT count(*) FROM pawl_job j WHERE j.lane = pawl_lane.id AND status = 7),"
    " later = (SELECT count(*) FROM pawl_job j WHERE j.lane = pawl_lane.id AND status = 8), pruned = 3,"
    " last_error = 'no such mailbox', last_error_at = 1700000000009;"
    "UPDATE pawl_lane SET enqueued = ready + later + running + succeeded + failed + cancelled + blocked + pruned;";

/* Whole in one file, without sidecars, with an application's tables around ours. */
static void make_old_file(const char *path, int64_t count, const char *first)
{
    sqlite3 *db = sql_open(path);
    sql_run(db, first);
    sql_run(db, "PRAGMA journal_mode = WAL; PRAGMA user_version = 77; PRAGMA application_id = 78;"
                "CREATE TABLE orders (id INTEGER PRIMARY KEY, job INTEGER); BEGIN");
    for (size_t i = 0; i < sizeof old_schema / sizeof old_schema[0]; i++)
        sql_run(db, old_schema[i]);
    char *sql = sqlite3_mprintf(old_rows, (long long)count);
    assert_non_null(sql);
    sql_run(db, sql);
    sqlite3_free(sql);
    sql_run(db, "CREATE TRIGGER theirs AFTER UPDATE OF status ON pawl_job WHEN NEW.status = 4 AND OLD.status = 3"
                " BEGIN UPDATE orders SET job = NEW.id WHERE job IS NULL; END; COMMIT");
    sql_close(db);
}

/* ----------------------------------------------------------------------------- judging */

/* Every row, the same for both versions: keys by their bytes, and without the notes of the versions. */
static char *rows_of(const char *path)
{
    sqlite3 *db = sql_open(path);
    sqlite3_stmt *row;
    sqlite3_str *out = sqlite3_str_new(NULL);
    sql_run(db, "BEGIN; CREATE TEMP TABLE t AS SELECT *, CAST(idempotency_key AS BLOB) AS bytes FROM pawl_job;"
                "CREATE TEMP TABLE m AS SELECT * FROM pawl_meta WHERE key NOT LIKE 'sql%' AND key <> 'schema';"
                "UPDATE temp.t SET idempotency_key = NULL; COMMIT");
    static const char *const tables[] = { "temp.t", "temp.m", "pawl_kind", "pawl_lane", "pawl_paused",
                                          "pawl_holder", "pawl_attempts", "sqlite_sequence", "orders" };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        char sql[128];
        (void)snprintf(sql, sizeof sql, "SELECT * FROM %s ORDER BY 1, 2", tables[i]);
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
        while (sqlite3_step(row) == SQLITE_ROW) {
            for (int column = 0; column < sqlite3_column_count(row); column++)
                sqlite3_str_appendf(out, " %s%.*s", sqlite3_column_type(row, column) == SQLITE_NULL ? "-" : "",
                                    sqlite3_column_bytes(row, column), sqlite3_column_text(row, column));
            sqlite3_str_appendall(out, "\n");
        }
        (void)sqlite3_finalize(row);
    }
    sql_close(db);
    return sqlite3_str_finish(out);
}

static char *schema_of(const char *path)
{
    sqlite3 *db = sql_open(path);
    sqlite3_stmt *row;
    sqlite3_str *out = sqlite3_str_new(NULL);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name LIKE"
                                            " 'pawl\\_%' ESCAPE '\\' ORDER BY type, name", -1, &row, NULL), SQLITE_OK);
    while (sqlite3_step(row) == SQLITE_ROW)
        for (int i = 0; i < 4; i++)
            sqlite3_str_appendf(out, "%s\n", (const char *)sqlite3_column_text(row, i));
    (void)sqlite3_finalize(row);
    sql_close(db);
    return sqlite3_str_finish(out);
}

static int64_t version_of(const char *path)
{
    return look(path, "SELECT value FROM pawl_meta WHERE key = 'schema'");
}

static void hear(const pawl_finding *finding, void *arg)
{
    char *worst = arg;
    if (finding->severity >= PAWL_FINDING_WARNING && strcmp(finding->check, "schema") == 0)
        (void)snprintf(worst, 1024, "%s", finding->text);
}

static void assert_sound(const char *path)
{
    char worst[1024] = "";
    assert_ok(pawl_diagnose(path, hear, worst)); /* it compares each object with what is compiled in */
    assert_string_equal(worst, "");
    char text[64];
    assert_string_equal(look_text(path, text, sizeof text, "PRAGMA integrity_check"), "ok");
    assert_int_equal(look(path, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
    assert_counters_are_right(path);
    assert_int_equal(look(path, "PRAGMA user_version"), 77);
    assert_int_equal(look(path, "PRAGMA application_id"), 78);
}

/* Version 2, with the schema of a file that was new today, and every row of the old one. */
static void assert_upgraded(const temp *t, const char *path, const char *old_rows_text)
{
    const char *fresh = temp_file(t, "fresh.db");
    pawl_pool *pool = check_open(PAWL_OPTIONS(.store = fresh, .log = check_quiet, .executors = 1));
    assert_ok(pawl_close(pool));
    assert_same_dump(schema_of(fresh), schema_of(path), "the upgrade: its schema");
    assert_same_dump(sqlite3_mprintf("%s", old_rows_text), rows_of(path), "the upgrade: its rows");
    assert_int_equal(version_of(path), 2);
    assert_int_equal(look(path, "SELECT count(*) FROM pawl_job WHERE typeof(idempotency_key) <> CASE"
                                " WHEN idempotency_key IS NULL THEN 'null' WHEN substr(CAST(idempotency_key AS BLOB),"
                                " 1, 1) = x'ff' THEN 'blob' ELSE 'text' END"), 0);
    assert_int_equal(look(path, "SELECT count(*) FROM pawl_meta WHERE key LIKE 'sql%%' AND value = 0"), 2);
    assert_sound(path);
}

static void assert_untouched(const char *path, const char *old_rows_text)
{
    assert_int_equal(version_of(path), 1);
    assert_same_dump(sqlite3_mprintf("%s", old_rows_text), rows_of(path), "an upgrade that did not happen");
    assert_int_equal(look(path, "SELECT count(*) FROM pawl_job WHERE typeof(idempotency_key) = 'text'"), 0);
    assert_int_equal(look(path, "SELECT count(*) FROM sqlite_schema WHERE name IN ('pawl_last', 'pawl_job_dead')"), 0);
    assert_sound(path);
}

/* -------------------------------------------------------------------------- the upgrade */

static int succeed(pawl_job *job, void *arg)
{
    (void)job;
    (void)arg;
    return PAWL_SUCCEEDED;
}

static void assert_key_is_known(pawl_pool *pool, const void *key, size_t bytes)
{
    int64_t id = 0;
    assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "mail", .idempotency_key = key,
                                              .idempotency_key_bytes = bytes), &id), PAWL_EXISTS);
    pawl_job_info info = job_of(pool, id);
    assert_int_equal(info.idempotency_key_bytes, bytes);
    assert_memory_equal(info.idempotency_key, key, bytes);
    pawl_job_info_clear(&info);
}

static bool nothing_runs(void *path)
{
    return look(path, "SELECT count(*) FROM pawl_job WHERE status = 3 OR status = 2 AND lane = 1") == 0;
}

/* Goal: every row is there as it was, keys that are text are text, the schema is that of a new file, the
 * application's own things are left alone; and the pool goes on from there, rescues included. */
static void an_old_file_is_upgraded(void **state)
{
    temp *t = *state;
    make_old_file(t->path, 40, "");
    char *rows = rows_of(t->path);
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_upgraded(t, t->path, rows);
    sqlite3_free(rows);
    assert_key_is_known(pool, "order-2-1", 9);
    assert_key_is_known(pool, "schl\xC3\xBCssel-5-10", 15);
    assert_key_is_known(pool, "\xFF\0" "4-3", 5);
    int64_t id = put(pool, .kind = "mail");
    assert_int_equal(id, 7 * 40 + 1); /* the id of the job that was deleted is not given again */
    assert_ok(pawl_register(pool, "mail", succeed, NULL, NULL));
    assert_ok(pawl_start(pool));
    assert_true(eventually(nothing_runs, t->path, 20000));
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
    assert_int_equal(look(t->path, "SELECT min(status) FROM pawl_job WHERE lane = 1"), 4);
    assert_true(look(t->path, "SELECT min(fence) FROM pawl_job WHERE status = 4 AND updated_at > 1790000000000")
                > (INT64_C(1) << 40) + 500000); /* I5 */
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_job WHERE status = 2 AND lane = 2") > 0, 1); /* paused */
    change(t->path, "INSERT INTO pawl_jobs (kind, idempotency_key) VALUES ('mail', 'order-2-1')");
    assert_int_equal(look(t->path, "SELECT id = (SELECT id FROM pawl_jobs WHERE idempotency_key = 'order-2-1')"
                                   " FROM pawl_last"), 1);
}

/* Goal: the same in a database of UTF-16. */
static void an_old_file_of_utf_16_is_upgraded(void **state)
{
    temp *t = *state;
    make_old_file(t->path, 4, "PRAGMA encoding = 'UTF-16'");
    change(t->path, "UPDATE pawl_job SET idempotency_key = x'6f726465722d3137' WHERE id = 1;"
                    "UPDATE pawl_job SET idempotency_key = x'ff' WHERE id = 2;"
                    "UPDATE pawl_job SET idempotency_key = x'c3a4' WHERE id = 3;"
                    "UPDATE pawl_job SET idempotency_key = x'41' WHERE id = 4");
    pawl_pool *pool = open_pool(t, .executors = 1);
    static const char *const keys[] = { "order-17", "\xFF", "\xC3\xA4", "A" };
    for (int i = 0; i < 4; i++) {
        pawl_job_info info = job_of(pool, i + 1);
        assert_string_equal(info.idempotency_key, keys[i]);
        pawl_job_info_clear(&info);
    }
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE id IN (1, 3, 4)"
                                   " AND typeof(idempotency_key) = 'text'"), 3);
    assert_int_equal(look(t->path, "SELECT id FROM pawl_jobs WHERE idempotency_key = 'order-17'"), 1);
    assert_ok(pawl_close(pool));
    assert_sound(t->path);
}

/* Goal: who only reads, and pawl_enqueue_in(), which needs no pool, say what to do; nothing is changed. */
static void readers_ask_for_the_upgrade(void **state)
{
    temp *t = *state;
    pawl_pool *pool = NULL;
    make_old_file(t->path, 4, "");
    char *rows = rows_of(t->path);
    assert_status(pawl_open(PAWL_OPTIONS(.store = t->path, .flags = PAWL_OPEN_READ_ONLY), &pool),
                  PAWL_ERR_VERSION);
    assert_text_has(pawl_error_message(), "older pawl");
    assert_text_has(pawl_error_message(), "pawl init");
    sqlite3 *db = sql_open(t->path);
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_VERSION);
    assert_text_has(pawl_error_message(), "older pawl");
    sql_close(db);
    assert_untouched(t->path, rows);
    assert_ok(pawl_open(PAWL_OPTIONS(.store = t->path, .flags = PAWL_OPEN_EXISTING), &pool));
    assert_ok(pawl_close(pool));
    assert_upgraded(t, t->path, rows);
    sqlite3_free(rows);
    assert_ok(pawl_open(PAWL_OPTIONS(.store = t->path, .flags = PAWL_OPEN_READ_ONLY), &pool));
    assert_ok(pawl_close(pool));
}

/* Goal: a table that somebody has altered is not edited by guesswork, and a version that no pawl wrote is
 * no version. */
static void what_is_not_understood_is_left_alone(void **state)
{
    temp *t = *state;
    pawl_pool *pool = NULL;
    make_old_file(t->path, 4, "");
    change(t->path, "ALTER TABLE pawl_job RENAME COLUMN idempotency_key TO theirs");
    int64_t before = look(t->path, "PRAGMA schema_version");
    assert_status(pawl_open(PAWL_OPTIONS(.store = t->path), &pool), PAWL_ERR_INVALID);
    assert_text_has(pawl_error_message(), "pawl_job was altered");
    assert_int_equal(version_of(t->path), 1);
    assert_int_equal(look(t->path, "PRAGMA schema_version"), before);
    change(t->path, "ALTER TABLE pawl_job RENAME COLUMN theirs TO idempotency_key;"
                    "UPDATE pawl_meta SET value = 0 WHERE key = 'schema'");
    assert_status(pawl_open(PAWL_OPTIONS(.store = t->path), &pool), PAWL_ERR_INVALID);
    assert_text_has(pawl_error_message(), "no pawl has written");
    change(t->path, "UPDATE pawl_meta SET value = 1 WHERE key = 'schema'; CREATE VIEW pawl_dead AS SELECT 1");
    assert_status(pawl_open(PAWL_OPTIONS(.store = t->path), &pool), PAWL_ERR_STORE);
    assert_text_has(pawl_error_message(), "pawl_dead");
    assert_int_equal(version_of(t->path), 1);
    change(t->path, "DROP VIEW pawl_dead");
    assert_ok(pawl_open(PAWL_OPTIONS(.store = t->path, .log = check_quiet), &pool));
    assert_ok(pawl_close(pool));
    assert_sound(t->path);
}

/* Goal: after the upgrade the INSERT of the older version cannot store a text key in its old form, beside which
 * the same key would find room (I16). */
static void the_old_form_of_a_key_is_refused(void **state)
{
    temp *t = *state;
    make_old_file(t->path, 4, "");
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_close(pool));
    sqlite3 *db = sql_open(t->path);
    assert_int_equal(sqlite3_exec(db, "UPDATE pawl_job SET idempotency_key = CAST('order-99' AS BLOB) WHERE id = 1",
                                  NULL, NULL, NULL), SQLITE_CONSTRAINT);
    sql_close(db);
    change(t->path, "UPDATE pawl_job SET idempotency_key = x'ff99' WHERE id = 1");
}

/* ---------------------------------------------------------------------- pools that still run */

/* A process that holds the lock of a side file, as a pool does; it ends when `*end` is closed. */
static pid_t hold_side_file(const char *path, int *end)
{
    int hold[2], ready[2];
    char byte;
    assert_int_equal(pipe(hold), 0);
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        int file = open(path, O_RDWR | O_CREAT, 0600);
        (void)close(hold[1]);
        if (file < 0 || fcntl(file, F_SETLK, &lock) != 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        _exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
    }
    (void)close(hold[0]);
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    *end = hold[1];
    return pid;
}

/* Goal: while a pool of the older version lives, the file is not upgraded under it; a side file that nobody
 * locks is no pool. */
static void a_living_pool_of_the_old_version_is_respected(void **state)
{
    temp *t = *state;
    pawl_pool *pool = NULL;
    char side[400];
    int end, status;
    make_old_file(t->path, 4, "");
    char *rows = rows_of(t->path);
    (void)snprintf(side, sizeof side, "%s-pawl", t->path);
    assert_int_equal(mkdir(side, 0700), 0);
    (void)snprintf(side, sizeof side, "%s-pawl/99999999-1-0", t->path);
    pid_t pid = hold_side_file(side, &end);
    assert_status(pawl_open(PAWL_OPTIONS(.store = t->path), &pool), PAWL_ERR_STATE);
    assert_text_has(pawl_error_message(), "a pool of that version still runs");
    assert_untouched(t->path, rows);
    (void)close(end);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(access(side, F_OK), 0);
    assert_ok(pawl_open(PAWL_OPTIONS(.store = t->path, .log = check_quiet), &pool));
    assert_ok(pawl_close(pool));
    assert_upgraded(t, t->path, rows);
    sqlite3_free(rows);
}

/* ------------------------------------------------------------------------------- at once */

static void count_upgrades(pawl_log_level level, const char *line, void *arg)
{
    int *counts = arg;
    if (strstr(line, "upgrading the tables of an older pawl") == NULL)
        return;
    counts[0]++;
    counts[1] += level == PAWL_LOG_INFO && strstr(line, "with 27 jobs") != NULL;
    counts[2] += level == PAWL_LOG_WARNING && strstr(line, "with 2000027 jobs: this may take minutes") != NULL;
}

/* Goal: an upgrade is announced before it begins, with the jobs there are; loudly if it may take long. */
static void an_upgrade_is_announced(void **state)
{
    temp *t = *state;
    int counts[3] = { 0, 0, 0 };
    for (int i = 0; i < 2; i++) {
        pawl_pool *pool = NULL;
        const char *path = temp_file(t, i == 0 ? "few.db" : "many.db");
        make_old_file(path, 4, "");
        if (i == 1) /* as the counters say */
            change(path, "UPDATE pawl_lane SET succeeded = succeeded + 2000000, enqueued = enqueued + 2000000"
                         " WHERE id = 1");
        for (int again = 0; again < 2; again++) {
            assert_ok(pawl_open(PAWL_OPTIONS(.store = path, .log = count_upgrades, .log_arg = counts), &pool));
            assert_ok(pawl_close(pool));
        }
    }
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1], 1);
    assert_int_equal(counts[2], 1);
}

/* Goal: who cannot upgrade because of a lock hears that somebody else may be doing it. */
static void who_meets_an_upgrade_is_told(void **state)
{
    temp *t = *state;
    pawl_pool *pool = NULL;
    make_old_file(t->path, 4, "");
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "BEGIN IMMEDIATE");
    assert_status(pawl_open(PAWL_OPTIONS(.store = t->path, .log = check_quiet, .store_timeout_ms = 50), &pool),
                  PAWL_ERR_BUSY);
    assert_text_has(pawl_error_message(), "may be upgrading them");
    assert_text_has(pawl_error_message(), "try again later");
    sql_run(db, "ROLLBACK");
    sql_close(db);
    assert_ok(pawl_close(open_pool(t, .executors = 1)));
}

#define OPENERS 16

/* Goal: sixteen processes that open the old file at the same moment all succeed, and it is upgraded once. */
static void sixteen_open_it_at_once(void **state)
{
    temp *t = *state;
    int barrier[2], status;
    pid_t pids[OPENERS];
    make_old_file(t->path, 500, "");
    char *rows = rows_of(t->path);
    int64_t before = look(t->path, "PRAGMA schema_version");
    assert_int_equal(pipe(barrier), 0);
    for (int i = 0; i < OPENERS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] != 0)
            continue;
        pawl_pool *pool = NULL;
        char byte;
        (void)close(barrier[1]);
        if (read(barrier[0], &byte, 1) != 0)
            _exit(2);
        pawl_status st = pawl_open(PAWL_OPTIONS(.store = t->path, .store_timeout_ms = 50000), &pool);
        if (st != PAWL_OK)
            (void)fprintf(stderr, "open: %s\n", pawl_error_message());
        _exit(st == PAWL_OK && pawl_close(pool) == PAWL_OK ? 0 : 1);
    }
    (void)close(barrier[0]);
    (void)close(barrier[1]);
    for (int i = 0; i < OPENERS; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_upgraded(t, t->path, rows);
    sqlite3_free(rows);
    int64_t moved = look(t->path, "PRAGMA schema_version") - before;
    const char *alone = temp_file(t, "alone.db");
    make_old_file(alone, 4, "");
    before = look(alone, "PRAGMA schema_version");
    pawl_pool *pool = check_open(PAWL_OPTIONS(.store = alone, .log = check_quiet));
    assert_ok(pawl_close(pool));
    assert_int_equal(moved, look(alone, "PRAGMA schema_version") - before); /* once */
}

/* --------------------------------------------------------------------------- interrupted */

static void copy_file(const char *from, const char *to)
{
    char buffer[65536];
    size_t bytes;
    FILE *in = fopen(from, "rbe"), *out = fopen(to, "wbe");
    assert_non_null(in);
    assert_non_null(out);
    while ((bytes = fread(buffer, 1, sizeof buffer, in)) > 0)
        assert_int_equal(fwrite(buffer, 1, bytes, out), bytes);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

/* Opens the file in a process of its own, with files limited to so many bytes (0: no limit); it exits with the
 * negated status. */
static pid_t open_elsewhere(const char *path, rlim_t file_bytes)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid != 0)
        return pid;
    pawl_pool *pool = NULL;
    (void)signal(SIGXFSZ, SIG_IGN);
    if (file_bytes > 0)
        (void)setrlimit(RLIMIT_FSIZE, &(struct rlimit){ file_bytes, file_bytes });
    pawl_status st = pawl_open(PAWL_OPTIONS(.store = path, .log = check_quiet), &pool);
    _exit(st == PAWL_OK ? (pawl_close(pool) == PAWL_OK ? 0 : 99) : -st);
}

/* Goal: kill -9 at any moment leaves the old file or the new one, and the next open finishes. */
static void killed_in_the_middle(void **state)
{
    temp *t = *state;
    uint64_t seed = test_seed();
    const char *path = t->path;
    char old[400];
    int status, old_left = 0, new_left = 0;
    (void)snprintf(old, sizeof old, "%s/old.db", t->directory);
    make_old_file(old, 1000, "");
    char *rows = rows_of(old);
    copy_file(old, path);
    int64_t start = steady_ms();
    assert_int_equal(waitpid(open_elsewhere(path, 0), &status, 0) > 0 && status == 0, 1);
    int64_t takes_us = (steady_ms() - start) * 1000;
    for (int round = 0; round < 20; round++) {
        char wal[400], shm[400];
        (void)snprintf(wal, sizeof wal, "%s-wal", path);
        (void)snprintf(shm, sizeof shm, "%s-shm", path);
        (void)unlink(wal);
        (void)unlink(shm);
        copy_file(old, path);
        pid_t pid = open_elsewhere(path, 0);
        nap_us((int64_t)(next_random(&seed) % (uint64_t)(takes_us + takes_us / 5 + 1)));
        (void)kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (version_of(path) == 1) {
            old_left++;
            assert_untouched(path, rows);
            pawl_pool *pool = check_open(PAWL_OPTIONS(.store = path, .log = check_quiet));
            assert_ok(pawl_close(pool));
        } else {
            new_left++;
        }
        assert_upgraded(t, path, rows);
    }
    print_message("killed within %" PRId64 " us: %d old, %d new\n", takes_us, old_left, new_left);
    assert_true(old_left > 0);
    sqlite3_free(rows);
}

/* Goal: an upgrade that finds no room is refused with a reason, leaves the old file whole, and succeeds when
 * there is room again. */
static void an_upgrade_without_room_leaves_the_old_file(void **state)
{
    temp *t = *state;
    int status;
    make_old_file(t->path, 1500, "");
    char *rows = rows_of(t->path);
    for (rlim_t bytes = 40000; bytes < 1000000; bytes += 300000) {
        pid_t pid = open_elsewhere(t->path, bytes);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) != -PAWL_ERR_FULL && WEXITSTATUS(status) != -PAWL_ERR_STORE)
            fail_msg("files of %llu bytes: answered %d", (unsigned long long)bytes, WEXITSTATUS(status));
        assert_untouched(t->path, rows);
    }
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_close(pool));
    assert_upgraded(t, t->path, rows);
    sqlite3_free(rows);
}

static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)
    TEST(an_old_file_is_upgraded),
    TEST(an_old_file_of_utf_16_is_upgraded),
    TEST(readers_ask_for_the_upgrade),
    TEST(what_is_not_understood_is_left_alone),
    TEST(the_old_form_of_a_key_is_refused),
    TEST(a_living_pool_of_the_old_version_is_respected),
    TEST(an_upgrade_is_announced),
    TEST(who_meets_an_upgrade_is_told),
    TEST(sixteen_open_it_at_once),
    TEST(killed_in_the_middle),
    TEST(an_upgrade_without_room_leaves_the_old_file),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
