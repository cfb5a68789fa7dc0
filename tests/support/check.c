/* check.c - see check.h. */
#include "check.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

void check_status(pawl_status is, pawl_status expected, const char *call, const char *file, int line)
{
    if (is == expected)
        return;
    print_error("%s\n  answered %s, not %s%s%s\n", call, pawl_status_name(is),
                pawl_status_name(expected), is < 0 ? ": " : "", is < 0 ? pawl_error_message() : "");
    _fail(file, line);
}

void check_text_has(const char *text, const char *part, const char *file, int line)
{
    if (text != NULL && strstr(text, part) != NULL)
        return;
    print_error("\"%s\"\n  does not have \"%s\" in it\n", text != NULL ? text : "(null)", part);
    _fail(file, line);
}

void check_quiet(pawl_log_level level, const char *line, void *arg)
{
    (void)level;
    (void)line;
    if (arg != NULL)
        (void)__atomic_fetch_add((int *)arg, 1, __ATOMIC_SEQ_CST);
}

pawl_pool *check_open(const pawl_options *options)
{
    pawl_pool *pool = NULL;
    assert_ok(pawl_open(options, &pool));
    assert_non_null(pool);
    return pool;
}

int64_t check_put(pawl_pool *pool, const pawl_job_spec *spec)
{
    int64_t id = 0;
    assert_ok(pawl_enqueue(pool, spec, &id));
    assert_true(id > 0);
    return id;
}

pawl_job_info job_of(pawl_pool *pool, int64_t id)
{
    pawl_job_info info = PAWL_JOB_INFO_INIT;
    assert_ok(pawl_get(pool, id, &info));
    return info;
}

pawl_state state_of(pawl_pool *pool, int64_t id)
{
    pawl_job_info info = job_of(pool, id);
    pawl_state state = info.state;
    pawl_job_info_clear(&info);
    return state;
}

uint32_t attempts_of(pawl_pool *pool, int64_t id)
{
    pawl_job_info info = job_of(pool, id);
    uint32_t attempts = info.attempts;
    pawl_job_info_clear(&info);
    return attempts;
}

pawl_stats_info stats_of(pawl_pool *pool)
{
    pawl_stats_info stats = PAWL_STATS_INIT;
    assert_ok(pawl_stats(pool, &stats));
    return stats;
}

sqlite3 *sql_open(const char *path)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL),
                     SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 5000);
    sql_run(db, "PRAGMA wal_autocheckpoint = 0");
    return db;
}

void sql_close(sqlite3 *db)
{
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

void sql_run(sqlite3 *db, const char *sql)
{
    char *error = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &error) == SQLITE_OK)
        return;
    print_error("%s\n  answered: %s\n", sql, error);
    fail();
}

int64_t sql_integer(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) != SQLITE_OK || sqlite3_step(row) != SQLITE_ROW) {
        print_error("%s\n  answered: %s\n", sql, sqlite3_errmsg(db));
        fail();
    }
    int64_t value = sqlite3_column_int64(row, 0);
    (void)sqlite3_finalize(row);
    return value;
}

int64_t sql_ask(const char *path, const char *sql)
{
    sqlite3 *db = sql_open(path);
    int64_t value = sql_integer(db, sql);
    sql_close(db);
    return value;
}
