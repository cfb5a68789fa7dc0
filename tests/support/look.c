/* look.c - see look.h. */
#include "look.h"

#include <sqlite3.h>
#include <stdio.h>

#include "check.h"

#define SQL_BYTES 2048

static void format_sql(char *sql, const char *format, va_list args)
{
    int length = vsnprintf(sql, SQL_BYTES, format, args);
    assert_in_range(length, 1, SQL_BYTES - 1);
}

int64_t look(const char *path, const char *format, ...)
{
    char sql[SQL_BYTES];
    va_list args;
    va_start(args, format);
    format_sql(sql, format, args);
    va_end(args);
    return sql_ask(path, sql);
}

const char *look_text(const char *path, char *out, size_t capacity, const char *format, ...)
{
    char sql[SQL_BYTES];
    sqlite3_stmt *row;
    va_list args;
    va_start(args, format);
    format_sql(sql, format, args);
    va_end(args);
    sqlite3 *db = sql_open(path);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    const unsigned char *text = sqlite3_column_text(row, 0);
    (void)snprintf(out, capacity, "%s", text != NULL ? (const char *)text : "");
    (void)sqlite3_finalize(row);
    sql_close(db);
    return out;
}

void change(const char *path, const char *format, ...)
{
    char sql[SQL_BYTES];
    va_list args;
    va_start(args, format);
    format_sql(sql, format, args);
    va_end(args);
    sqlite3 *db = sql_open(path);
    sql_run(db, sql);
    sql_close(db);
}

void assert_counters_are_right(const char *path)
{
    static const struct {
        const char *column;
        int status;
    } counted[] = { { "ready", 2 },     { "running", 3 }, { "succeeded", 4 }, { "failed", 5 },
                    { "cancelled", 6 }, { "blocked", 7 }, { "later", 8 } };
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
        int64_t off = look(path,
                           "SELECT count(*) FROM pawl_lane l WHERE l.%s <> (SELECT count(*)"
                           " FROM pawl_job j WHERE j.lane = l.id AND j.status = %d)",
                           counted[i].column, counted[i].status);
        if (off != 0)
            print_error("%s is not what a recount gives\n", counted[i].column);
        assert_int_equal(off, 0);
    }
    assert_int_equal(look(path, "SELECT count(*) FROM pawl_lane l WHERE l.enqueued <> l.pruned +"
                                " (SELECT count(*) FROM pawl_job j WHERE j.lane = l.id)"), 0);
}
