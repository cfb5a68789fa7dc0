/* migrate.c - brings the tables of an older pawl up to date, in the transaction that schema.c has begun.
 *
 * From version 1 to 2: a key that is valid UTF-8 becomes text (it was a blob, which no SQL finds by its
 * words), names are counted in bytes whatever the database's encoding is, failed jobs get an index, and
 * pawl_jobs becomes writable. No table is copied: the columns' declarations are edited in the schema, as
 * SQLite's documentation describes for constraints, since what is stored in a row does not depend on them.
 * So the application's own triggers stay, and what takes room and time are the rows whose key becomes text: each
 * is written anew, and so is its place in the index. With keys on most jobs that may be as much as the file once
 * more in the log, and half a minute for two million; meanwhile nobody else can write, or open the file.
 * Threads: the writer's role, at open, before anything else has used the connection.
 * Keeps:   R9 once and whole, however many processes open at the same moment; I20, ids and fences: no row
 *          is added, moved or counted. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sql_text.h"
#include "sqlite_store.h"

/* ------------------------------------------------------------------- pools that still run */

/* A pool of the older version would go on writing in the old way: its side file is locked while it lives,
 * see presence.c. What cannot be looked at counts as alive. */
static bool is_locked(const char *path)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return errno != ENOENT && errno != ENOTDIR;
    bool locked = fcntl(file, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
    (void)close(file);
    return locked;
}

static pawl_status check_holder(const pawli_sqlite *s, const char *name, const char *side, int64_t pid)
{
    char path[PATH_MAX + 128];
    if (side == NULL || side[0] == '\0' || strchr(side, '/') != NULL)
        return PAWL_OK;
    (void)snprintf(path, sizeof path, "%s-pawl/%s", s->path, side);
    if (!is_locked(path))
        return PAWL_OK;
    return pawli_fail(PAWL_ERR_STATE, "%s: has the schema of an older pawl, and a pool of that version still "
                                      "runs on it (%s, process %" PRId64 "): stop every program that uses the "
                                      "file, and open it again", s->path, name != NULL ? name : "", pid);
}

static pawl_status refuse_while_others_run(pawli_sqlite *s)
{
    sqlite3_stmt *row;
    pawl_status st = PAWL_OK;
    int rc = sqlite3_prepare_v2(s->db, "SELECT name, side, pid FROM pawl_holder WHERE left_at IS NULL", -1, &row,
                                NULL);
    if (rc != SQLITE_OK)
        return pawli_sqlite_failed(s, s->db, rc, "look for pools that run");
    while (st == PAWL_OK && (rc = sqlite3_step(row)) == SQLITE_ROW)
        st = check_holder(s, (const char *)sqlite3_column_text(row, 0),
                          (const char *)sqlite3_column_text(row, 1), sqlite3_column_int64(row, 2));
    (void)sqlite3_finalize(row);
    return st != PAWL_OK || rc == SQLITE_DONE ? st
                                              : pawli_sqlite_failed(s, s->db, rc, "look for pools that run");
}

/* ------------------------------------------------------------------------- declarations */

#define CHECK_OF_NAME_1(column) "length(CAST(" column " AS BLOB)) BETWEEN 1 AND 255"

typedef struct edit {
    const char *table, *from, *to;
} edit;

static const edit edits[] = {
    { "pawl_kind", CHECK_OF_NAME_1("name"), PAWLI_CHECK_OF_NAME("name") },
    { "pawl_lane", CHECK_OF_NAME_1("queue"), PAWLI_CHECK_OF_NAME("queue") },
    { "pawl_paused", CHECK_OF_NAME_1("queue"), PAWLI_CHECK_OF_NAME("queue") },
    { "pawl_job", "idempotency_key BLOB CHECK (length(idempotency_key) BETWEEN 1 AND 255)",
      PAWLI_COLUMN_OF_KEY },
};

static int bind_edit(sqlite3_stmt *statement, const edit *e)
{
    const char *const texts[] = { e->table, e->from, e->to };
    int rc = SQLITE_OK;
    for (int i = 0; rc == SQLITE_OK && i < 3; i++)
        rc = sqlite3_bind_text(statement, i + 1, texts[i], -1, SQLITE_STATIC);
    return rc;
}

/* SQLITE_MISMATCH: the declaration is not there. */
static int apply_edit(sqlite3 *db, const edit *e)
{
    sqlite3_stmt *statement;
    int rc = sqlite3_prepare_v2(db, "UPDATE sqlite_schema SET sql = replace(sql, ?2, ?3) WHERE type = 'table'"
                                    " AND name = ?1 AND instr(sql, ?2) > 0", -1, &statement, NULL);
    if (rc != SQLITE_OK)
        return rc;
    rc = bind_edit(statement, e);
    if (rc == SQLITE_OK)
        (void)sqlite3_step(statement);
    int finished = sqlite3_finalize(statement);
    if (rc == SQLITE_OK)
        rc = finished;
    return rc == SQLITE_OK && sqlite3_changes(db) != 1 ? SQLITE_MISMATCH : rc;
}

/* The connection reads the edited schema at its next statement; the others when the cookie has moved, as it
 * does with the views and the index that are created after this. */
static pawl_status edit_declarations(pawli_sqlite *s)
{
    int rc = sqlite3_exec(s->db, "PRAGMA writable_schema = ON", NULL, NULL, NULL);
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof edits / sizeof edits[0]; i++) {
        rc = apply_edit(s->db, &edits[i]);
        if (rc == SQLITE_MISMATCH)
            return pawli_fail(PAWL_ERR_INVALID, "%s: its table %s was altered, so that it cannot be upgraded; use "
                                                "another file, or enqueue its jobs anew there", s->path,
                              edits[i].table);
    }
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(s->db, "PRAGMA writable_schema = RESET", NULL, NULL, NULL);
    return rc == SQLITE_OK ? PAWL_OK : pawli_sqlite_failed(s, s->db, rc, "upgrade pawl's tables");
}

/* -------------------------------------------------------------------------------- rows */

/* The key as it is stored from version 2 on. */
static void key_function(sqlite3_context *out, int count, sqlite3_value **values)
{
    (void)count;
    const void *bytes = sqlite3_value_blob(values[0]);
    const pawli_value key = pawli_key_value(bytes, (size_t)sqlite3_value_bytes(values[0]));
    if (key.type == PAWLI_VALUE_TEXT)
        sqlite3_result_text64(out, key.bytes, key.count, SQLITE_TRANSIENT, SQLITE_UTF8);
    else
        sqlite3_result_value(out, values[0]);
}

static int convert_keys(sqlite3 *db)
{
    static const char name[] = "pawl_key";
    int rc = sqlite3_create_function_v2(db, name, 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, key_function, NULL,
                                        NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, "UPDATE pawl_job SET idempotency_key = pawl_key(idempotency_key)"
                              " WHERE typeof(idempotency_key) = 'blob'"
                              " AND typeof(pawl_key(idempotency_key)) = 'text'", NULL, NULL, NULL);
    (void)sqlite3_create_function_v2(db, name, 1, SQLITE_UTF8, NULL, NULL, NULL, NULL, NULL);
    return rc;
}

static pawl_status upgrade_rows_and_views(pawli_sqlite *s)
{
    int rc = convert_keys(s->db);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(s->db, "DROP VIEW pawl_jobs;" PAWLI_CREATE_INDEX_DEAD PAWLI_INSERT_SQL_META
                                 "UPDATE pawl_meta SET value = 2 WHERE key = 'schema';", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = pawli_sqlite_create_views(s->db);
    return rc == SQLITE_OK ? PAWL_OK : pawli_sqlite_failed(s, s->db, rc, "upgrade pawl's tables");
}

#define MANY_JOBS 100000

/* Before it begins, as it may take a while. The counters are near enough. */
static void tell_of_it(pawli_sqlite *s)
{
    sqlite3_stmt *row = NULL;
    int64_t count = 0;
    if (sqlite3_prepare_v2(s->db, "SELECT sum(enqueued - pruned) FROM pawl_lane", -1, &row, NULL) == SQLITE_OK
        && sqlite3_step(row) == SQLITE_ROW)
        count = sqlite3_column_int64(row, 0);
    (void)sqlite3_finalize(row);
    pawli_log_line(s->host.log, count >= MANY_JOBS ? PAWL_LOG_WARNING : PAWL_LOG_INFO,
                   "%s: upgrading the tables of an older pawl, with %" PRId64 " jobs%s", s->path, count,
                   count >= MANY_JOBS ? ": this may take minutes, and beside the file as much room as it has; nobody "
                                        "else can write to it until then"
                                      : "");
}

pawl_status pawli_sqlite_migrate(pawli_sqlite *s)
{
    pawl_status st = refuse_while_others_run(s);
    if (st != PAWL_OK)
        return st;
    tell_of_it(s);
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL); /* or the schema cannot be edited */
    st = edit_declarations(s);
    (void)sqlite3_exec(s->db, "PRAGMA writable_schema = OFF", NULL, NULL, NULL);
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return st == PAWL_OK ? upgrade_rows_and_views(s) : st;
}
