/* results.c - the table ingest_file: what is known of each file, in the same database as the jobs.
 *
 * Rows are written by results_record() only, which pawl calls on its writer thread, inside the
 * transaction that records the job's success. The program's own connection makes the table before
 * the pool starts, and reads it at the end.
 *
 * A path is stored as text where it is valid UTF-8, so that it can be asked for by name, and as a
 * blob where it is not. */
#include "results.h"
#include "text.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `job` is the id in pawl_jobs of the job that wrote the row. */
static const char create_sql[] =
    "CREATE TABLE IF NOT EXISTS ingest_file ("
    " path ANY NOT NULL PRIMARY KEY, job INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " mtime_ns INTEGER NOT NULL, sha256 BLOB NOT NULL CHECK (length(sha256) = 32),"
    " lines INTEGER NOT NULL, words INTEGER NOT NULL) STRICT, WITHOUT ROWID";

/* A file that has changed since it was read last is the same row. */
static const char record_sql[] =
    "REPLACE INTO ingest_file (path, job, bytes, mtime_ns, sha256, lines, words)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/* ---------------------------------------------------------------------------------- writing */

struct result *result_create(const char *path, int64_t mtime_ns, const struct scan_result *scan)
{
    size_t bytes = strlen(path);
    struct result *result = malloc(sizeof *result + bytes);
    if (result == NULL)
        return NULL;
    result->scan = *scan;
    result->mtime_ns = mtime_ns;
    result->path_bytes = bytes;
    memcpy(result->path, path, bytes); /* NOLINT(bugprone-not-null-terminated-result): counted */
    return result;
}

void result_drop(void *result)
{
    free(result);
}

static void bind(sqlite3_stmt *statement, int64_t job, const struct result *result)
{
    int path_bytes = (int)result->path_bytes;
    if (text_is_utf8(result->path, result->path_bytes))
        sqlite3_bind_text(statement, 1, result->path, path_bytes, SQLITE_STATIC);
    else
        sqlite3_bind_blob(statement, 1, result->path, path_bytes, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, job);
    sqlite3_bind_int64(statement, 3, result->scan.bytes);
    sqlite3_bind_int64(statement, 4, result->mtime_ns);
    sqlite3_bind_blob(statement, 5, result->scan.sha256, SCAN_SHA256_BYTES, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 6, result->scan.lines);
    sqlite3_bind_int64(statement, 7, result->scan.words);
}

/* Prepares its statement each time. That costs microseconds, which reading a file outweighs; one
 * that is kept would have to be finalized before pawl closes or reopens its connection. */
pawl_status results_record(void *db, pawl_job *job, void *arg)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, record_sql, sizeof record_sql, &statement, NULL) != SQLITE_OK)
        return PAWL_ERR_STORE;
    bind(statement, pawl_job_id(job), arg);
    sqlite3_step(statement);
    return sqlite3_finalize(statement) == SQLITE_OK ? PAWL_OK : PAWL_ERR_STORE;
}

/* ------------------------------------------------------------------- the program's connection */

/* The two pragmas are what pawl asks of every connection that writes beside it: wait for the other
 * writer, and leave checkpoints to the pool. */
static bool prepare_database(sqlite3 *db)
{
    return sqlite3_busy_timeout(db, 10000) == SQLITE_OK &&
           sqlite3_exec(db, "PRAGMA wal_autocheckpoint = 0", NULL, NULL, NULL) == SQLITE_OK &&
           sqlite3_exec(db, create_sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* A table of that name that is not ours is found out now, not in the first job. */
static bool can_record(sqlite3 *db)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, record_sql, sizeof record_sql, &statement, NULL);
    sqlite3_finalize(statement);
    return code == SQLITE_OK;
}

struct sqlite3 *results_open(const char *database)
{
    sqlite3 *db;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(database, &db, flags, NULL) == SQLITE_OK && prepare_database(db) &&
        can_record(db))
        return db;
    fprintf(stderr, "pawl-ingest: cannot use the table ingest_file: %s\n", sqlite3_errmsg(db));
    sqlite3_close(db);
    return NULL;
}

void results_close(struct sqlite3 *db)
{
    sqlite3_close(db);
}

bool results_totals(struct sqlite3 *db, struct results_totals *totals)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db,
                           "SELECT count(*), coalesce(sum(bytes), 0), coalesce(sum(lines), 0),"
                           " coalesce(sum(words), 0) FROM ingest_file",
                           -1, &statement, NULL) != SQLITE_OK)
        return false;
    if (sqlite3_step(statement) == SQLITE_ROW) {
        totals->files = sqlite3_column_int64(statement, 0);
        totals->bytes = sqlite3_column_int64(statement, 1);
        totals->lines = sqlite3_column_int64(statement, 2);
        totals->words = sqlite3_column_int64(statement, 3);
    }
    return sqlite3_finalize(statement) == SQLITE_OK;
}

bool results_largest(struct sqlite3 *db, int count, results_file_fn fn, void *arg)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db,
                           "SELECT path, bytes, lines FROM ingest_file"
                           " ORDER BY bytes DESC, path LIMIT ?1",
                           -1, &statement, NULL) != SQLITE_OK)
        return false;
    sqlite3_bind_int(statement, 1, count);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const char *path = sqlite3_column_blob(statement, 0);
        fn(path, (size_t)sqlite3_column_bytes(statement, 0), sqlite3_column_int64(statement, 1),
           sqlite3_column_int64(statement, 2), arg);
    }
    return sqlite3_finalize(statement) == SQLITE_OK;
}
