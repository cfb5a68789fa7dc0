/* sql_test.c - plain SQL as an interface: what an SQLite client reads and writes through pawl's views, every
 * sentence that refuses, and that no form of a statement gets past the triggers. */
#include "check.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "gate.h"
#include "look.h"
#include "patience.h"

/* ------------------------------------------------------------------------------ a file */

static sqlite3 *file_with_tables(void **state)
{
    temp *t = *state;
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_close(pool));
    return sql_open(t->path);
}

static void end_file(void **state, sqlite3 *db)
{
    sql_close(db);
    assert_counters_are_right(((temp *)*state)->path);
}

static const char *text_of(sqlite3 *db, const char *sql)
{
    static char texts[4][512];
    static unsigned next;
    sqlite3_stmt *row;
    char *out = texts[next++ % 4];
    if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) != SQLITE_OK || sqlite3_step(row) != SQLITE_ROW)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    const char *text = (const char *)sqlite3_column_text(row, 0);
    (void)snprintf(out, sizeof texts[0], "%s", text != NULL ? text : "NULL");
    (void)sqlite3_finalize(row);
    return out;
}

/* The statement is refused with a sentence of pawl's, and has changed nothing at all. */
static void assert_refused(sqlite3 *db, const char *sql, const char *sentence)
{
    char *before = dump_tables(db, true), *message = NULL;
    int rc = sqlite3_exec(db, sql, NULL, NULL, &message);
    if (rc != SQLITE_CONSTRAINT || strncmp(message, "pawl: ", 6) != 0 || strstr(message, sentence) == NULL)
        fail_msg("%s\n  answered %d: %s\n  not: pawl: %s", sql, rc, message != NULL ? message : "done", sentence);
    sqlite3_free(message);
    assert_same_dump(before, dump_tables(db, true), sql);
}

/* The statement is done, and no job, lane or kind is other than before. */
static void assert_changes_nothing(sqlite3 *db, const char *sql)
{
    char *before = dump_tables(db, false);
    sql_run(db, sql);
    assert_same_dump(before, dump_tables(db, false), sql);
}

static void assert_holds(sqlite3 *db, const char *condition)
{
    char sql[1024];
    (void)snprintf(sql, sizeof sql, "SELECT %s", condition);
    if (sql_integer(db, sql) != 1)
        fail_msg("it does not hold that %s", condition);
}

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

/* ------------------------------------------------------------------------------- insert */

/* Goal: what an INSERT may not say is refused with a sentence, and leaves no trace. */
static void an_insert_that_is_wrong_is_refused(void **state)
{
    static const struct {
        const char *columns, *values, *sentence;
    } cases[] = {
        { "id", "7", "id is written by pawl" },
        { "claimed_at", "'2026-01-01'", "claimed_at is written by pawl" },
        { "claimed_by", "'me'", "claimed_by is written by pawl" },
        { "lease_until", "1", "lease_until is written by pawl" },
        { "attempts", "0", "attempts is written by pawl" },
        { "last_error", "'x'", "last_error is written by pawl" },
        { "created_at", "'2026-01-01'", "created_at is written by pawl" },
        { "updated_at", "'2026-01-01'", "updated_at is written by pawl" },
        { "finished_at", "'2026-01-01'", "finished_at is written by pawl" },
        { "status", "'running'", "a new job is pending" },
        { "status", "2", "a new job is pending" },
        { "status", "x'70656e64696e67'", "a new job is pending" },
        { "queue", "''", "queue must be text" },
        { "queue", "5", "queue must be text" },
        { "queue", "x'61'", "queue must be text" },
        { "queue", "'a' || char(10)", "queue must be text" },
        { "queue", "'a' || char(0) || 'b'", "queue must be text" },
        { "queue", "CAST(x'ff' AS TEXT)", "queue must be text" },
        { "queue", "printf('%.*c', 256, 'x')", "queue must be text" },
        { "payload", "zeroblob(1048577)", "the payload is over 1 MiB" },
        { "payload", "printf('%.*c', 1048577, 'x')", "the payload is over 1 MiB" },
        { "priority", "'5'", "priority must be an integer" },
        { "priority", "1.5", "priority must be an integer" },
        { "priority", "2147483648", "priority must be an integer" },
        { "priority", "-2147483649", "priority must be an integer" },
        { "priority", "9e999", "priority must be an integer" },
        { "priority", "x'35'", "priority must be an integer" },
        { "max_attempts", "0", "max_attempts must be an integer" },
        { "max_attempts", "-1", "max_attempts must be an integer" },
        { "max_attempts", "4294967296", "max_attempts must be an integer" },
        { "max_attempts", "'5'", "max_attempts must be an integer" },
        { "max_attempts", "2.5", "max_attempts must be an integer" },
        { "idempotency_key", "''", "idempotency_key must be text" },
        { "idempotency_key", "x'6b'", "idempotency_key is a blob" },
        { "idempotency_key", "1.5", "idempotency_key is a number that is not whole" },
        { "idempotency_key", "1e300", "idempotency_key is a number that is not whole" },
        { "idempotency_key", "'a' || char(0)", "idempotency_key must be text" },
        { "idempotency_key", "CAST(x'6b80' AS TEXT)", "idempotency_key must be text" },
        { "idempotency_key", "CAST(x'eda080' AS TEXT)", "idempotency_key must be text" },
        { "idempotency_key", "CAST(x'efbfbe' AS TEXT)", "idempotency_key must be text" },
        { "idempotency_key", "CAST(x'61efbfbf' AS TEXT)", "idempotency_key must be text" },
        { "queue", "CAST(x'61efbfbf' AS TEXT)", "queue must be text" },
        { "idempotency_key", "printf('%.*c', 256, 'x')", "idempotency_key must be text" },
        { "idempotency_key", "replace(hex(zeroblob(64)), '0', 'ä')", "idempotency_key must be text" },
    };
    static const char *const kinds[] = { "NULL", "''", "5", "x'61'", "'a' || char(9)", "'a' || char(127)",
                                         "'a' || char(133)", "char(0)", "CAST(x'c3' AS TEXT)", "CAST(x'efbfbe' AS TEXT)",
                                         "printf('%.*c', 256, 'x')" };
    char sql[512];
    sqlite3 *db = file_with_tables(state);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        (void)snprintf(sql, sizeof sql, "INSERT INTO pawl_jobs (kind, %s) VALUES ('new', %s)", cases[i].columns,
                       cases[i].values);
        assert_refused(db, sql, cases[i].sentence);
    }
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        (void)snprintf(sql, sizeof sql, "INSERT INTO pawl_jobs (kind) VALUES (%s)", kinds[i]);
        assert_refused(db, sql, i == 0 ? "kind is missing" : "kind must be text");
    }
    assert_refused(db, "INSERT INTO pawl_jobs DEFAULT VALUES", "kind is missing");
    end_file(state, db);
}

/* Goal: times are Unix milliseconds or UTC text of one form, that exist; everything else is refused. */
static void only_real_times_are_taken(void **state)
{
    static const char *const wrong[] = {
        "''", "'now'", "'2030'", "'2030-01'", "'2030-1-1'", "'2030-01-01T00:00:00'", "'2030-01-01 00:00:00Z'",
        "'2030-01-01 00:00:00+01:00'", "'2030-01-01 1:00'", "'2030-01-01 00:00:00.1'", "'2030-01-01 00:00:0'",
        "' 2030-01-01'", "'2030-01-01 '", "'2026-02-29'", "'2026-02-31'", "'2026-04-31'", "'2100-02-29'",
        "'2026-13-01'", "'2026-00-10'", "'2026-01-00'", "'2026-01-32'", "'2026-01-01 24:00'",
        "'2026-01-01 23:60'", "'2026-01-01 23:59:60'", "'2026-01-01 23:59:60.500'", "'1969-12-31'",
        "'0000-01-01'", "'10000-01-01'", "'2030-01-01' || char(0) || '5'", "'1900000000000'", "x'00'", "-1",
        "253402300800000", "9223372036854775807", "1900000000000.5", "1e300", "-1e300",
    };
    static const char *const seconds[] = { "0", "1", "1900000000", "1900000000.0", "99999999999" };
    static const struct {
        const char *value;
        int64_t ms;
    } right[] = {
        { "4102444800000", 4102444800000 },
        { "4102444800000.0", 4102444800000 },
        { "253402300799999", 253402300799999 },
        { "'2100-01-01'", 4102444800000 },
        { "'2100-01-01 00:00'", 4102444800000 },
        { "'2100-01-01 01:02:03'", 4102448523000 },
        { "'2100-01-01 01:02:03.004'", 4102448523004 },
        { "'2099-12-31 23:59:59.999'", 4102444799999 },
        { "'2096-02-29'", 3981312000000 },
        { "'9999-12-31 23:59:59.999'", 253402300799999 },
    };
    static const char *const past[] = { "100000000000", "'1970-01-01'", "'2000-02-29 12:00'", "NULL",
                                        "datetime('now', '-1 hour')" };
    char sql[256];
    sqlite3 *db = file_with_tables(state);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        (void)snprintf(sql, sizeof sql, "INSERT INTO pawl_jobs (kind, available_at) VALUES ('k', %s)", wrong[i]);
        assert_refused(db, sql, "available_at must be text in UTC");
    }
    for (size_t i = 0; i < COUNT_OF(seconds); i++) {
        (void)snprintf(sql, sizeof sql, "INSERT INTO pawl_jobs (kind, available_at) VALUES ('k', %s)", seconds[i]);
        assert_refused(db, sql, "looks like seconds");
    }
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        (void)snprintf(sql, sizeof sql, "INSERT INTO pawl_jobs (kind, available_at) VALUES ('k', %s)",
                       right[i].value);
        sql_run(db, sql);
        if (sql_integer(db, "SELECT available_at FROM pawl_job WHERE id = (SELECT id FROM pawl_last)")
                != right[i].ms
            || sql_integer(db, "SELECT status FROM pawl_job WHERE id = (SELECT id FROM pawl_last)") != 8)
            fail_msg("%s: is not stored as later, %" PRId64, right[i].value, right[i].ms);
    }
    for (size_t i = 0; i < COUNT_OF(past); i++) { /* due now, and not since 1973 */
        (void)snprintf(sql, sizeof sql, "INSERT INTO pawl_jobs (kind, available_at) VALUES ('k', %s)", past[i]);
        sql_run(db, sql);
        assert_holds(db, "status = 2 AND available_at = created_at AND abs(created_at - 1000 *"
                         " CAST(strftime('%s', 'now') AS INTEGER)) < 60000"
                         " FROM pawl_job WHERE id = (SELECT id FROM pawl_last)");
    }
    end_file(state, db);
}

/* Everything about a job but its id, kind and time. */
#define ROW_OF(kind_name)                                                                           \
    "SELECT group_concat(quote(l.queue) || ' ' || j.status || ' ' || priority || ' ' || attempts"   \
    " || ' ' || max_attempts || ' ' || cancel || ' ' || bystander || ' ' || holder || ' ' || fence" \
    " || ' ' || timeout_ms || ' ' || iif(j.status = 8, available_at, available_at - created_at)"    \
    " || ' ' || (updated_at - created_at) || ' ' || (claimed_at - created_at) || ' ' ||"            \
    " (lease_until - created_at) || ' ' || (lease_boot - created_at) || ' ' ||"                     \
    " quote(idempotency_key) || ' ' || quote(j.last_error) || ' ' || quote(payload), char(10))"     \
    " FROM pawl_job j JOIN pawl_lane l ON l.id = j.lane AND l.kind = j.kind"                        \
    " WHERE j.kind = (SELECT id FROM pawl_kind WHERE name = '" kind_name "')"

/* Goal: a row that SQL enqueued is the row that pawl_enqueue_in() writes, down to the columns that no view
 * shows, and so are the lane's counters. */
static void rows_are_those_of_enqueue_in(void **state)
{
    sqlite3 *db = file_with_tables(state);
    sql_run(db, "UPDATE pawl_meta SET value = 3 WHERE key = 'epoch'");
    const pawl_job_spec *const specs[] = {
        PAWL_JOB(.kind = "c", .payload = "p", .payload_bytes = 1),
        PAWL_JOB(.kind = "c", .queue = "q", .priority = -7, .max_attempts = 9, .payload = "\0\xFF",
                 .payload_bytes = 2),
        PAWL_JOB(.kind = "c", .idempotency_key = "order-17", .idempotency_key_bytes = 8, .payload = "x",
                 .payload_bytes = 1, .available_at_ms = 4102444800000),
        PAWL_JOB(.kind = "c", .idempotency_key = "größer", .idempotency_key_bytes = 8, .payload = "y",
                 .payload_bytes = 1, .priority = 2147483647, .max_attempts = 4294967295),
    };
    for (size_t i = 0; i < COUNT_OF(specs); i++)
        assert_ok(pawl_enqueue_in(db, NULL, specs[i], NULL));
    sql_run(db, "INSERT INTO pawl_jobs (kind, payload) VALUES ('s', x'70');"
                "INSERT INTO pawl_jobs (kind, queue, priority, max_attempts, payload, status)"
                " VALUES ('s', 'q', -7, 9, x'00ff', 'pending');"
                "INSERT INTO pawl_jobs (kind, idempotency_key, payload, available_at)"
                " VALUES ('s', 'order-17', x'78', '2100-01-01');"
                "INSERT INTO pawl_jobs (kind, idempotency_key, payload, priority, max_attempts)"
                " VALUES ('s', 'größer', x'79', 2147483647, 4294967295)");
    assert_string_equal(text_of(db, ROW_OF("s")), text_of(db, ROW_OF("c")));
    assert_non_null(strstr(text_of(db, ROW_OF("s")), "'order-17'")); /* text, not a blob */
    assert_holds(db, "group_concat(ready || ' ' || later || ' ' || enqueued) = '2 1 3,1 0 1,2 1 3,1 0 1'"
                     " FROM pawl_lane");
    end_file(state, db);
}

/* Goal: payloads keep their type, whole floats count as integers (Node sends nothing else), and a payload of
 * exactly 1 MiB is taken. */
static void values_are_taken_as_they_are_meant(void **state)
{
    sqlite3 *db = file_with_tables(state);
    sql_run(db, "INSERT INTO pawl_jobs (kind, payload) VALUES ('k', 'text'), ('k', x'00ff'), ('k', 42),"
                " ('k', 1.5), ('k', NULL), ('k', ''), ('k', zeroblob(1048576))");
    assert_string_equal(text_of(db, "SELECT group_concat(typeof(payload)) FROM pawl_jobs"),
                        "text,blob,integer,real,null,text,blob");
    sql_run(db, "INSERT INTO pawl_jobs (kind, priority, max_attempts, idempotency_key) VALUES ('f', 3.0, 2.0, 17.0)");
    assert_holds(db, "typeof(priority) = 'integer' AND priority = 3 AND max_attempts = 2 AND"
                     " idempotency_key = '17' AND typeof(idempotency_key) = 'text' FROM pawl_jobs WHERE kind = 'f'");
    sql_run(db, "INSERT INTO pawl_jobs (kind, queue) VALUES (replace(hex(zeroblob(51)), '0', 'ä') || 'x' ||"
                " replace(hex(zeroblob(25)), '0', 'y'), replace(hex(zeroblob(127)), '0', 'z') || 'x')");
    assert_int_equal(sql_integer(db, "SELECT max(length(CAST(kind AS BLOB))) FROM pawl_jobs"), 255);
    end_file(state, db);
}

/* Goal: the bound is asked of a payload that is new, and only there: a job that C stored with a larger one can be
 * given another priority. */
static void only_a_new_payload_is_measured(void **state)
{
    static const char big[1048577];
    sqlite3 *db = file_with_tables(state);
    assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k", .payload = big, .payload_bytes = sizeof big), NULL));
    sql_run(db, "UPDATE pawl_jobs SET priority = 9, available_at = '2100-01-01'");
    assert_holds(db, "priority = 9 AND length(payload) = 1048577 FROM pawl_jobs");
    assert_refused(db, "UPDATE pawl_jobs SET payload = payload || 'x'", "the payload is over 1 MiB");
    assert_refused(db, "UPDATE pawl_jobs SET payload = CAST(payload AS TEXT)", "the payload is over 1 MiB");
    sql_run(db, "UPDATE pawl_jobs SET payload = 'small'");
    assert_holds(db, "payload = 'small' FROM pawl_jobs");
    end_file(state, db);
}

/* Goal: text is measured as handlers get it, in UTF-8, however the database stores it. */
static void a_payload_is_measured_as_utf_8(void **state)
{
    static const struct {
        const char *value;
        bool fits;
    } cases[] = {
        { "printf('%.*c', 1048576, 'x')", true },
        { "printf('%.*c', 1048577, 'x')", false },
        { "replace(hex(zeroblob(174762)), '0', '€')", true }, /* 1048572 bytes, and fewer in UTF-16 */
        { "replace(hex(zeroblob(174763)), '0', '€')", false },
        { "zeroblob(1048576)", true },
        { "zeroblob(1048577)", false },
        { "char(0) || printf('%.*c', 2097152, 'x')", false },
        { "char(0) || printf('%.*c', 1000000, 'x')", true },
    };
    static const char *const encodings[] = { "UTF-8", "UTF-16le", "UTF-16be" };
    temp *t = *state;
    for (size_t i = 0; i < COUNT_OF(encodings) * COUNT_OF(cases); i++) {
        char path[512], sql[256];
        size_t at = i % COUNT_OF(cases);
        (void)snprintf(path, sizeof path, "%s", temp_file(t, encodings[i / COUNT_OF(cases)]));
        sqlite3 *db = sql_open(path);
        (void)snprintf(sql, sizeof sql, "PRAGMA encoding = '%s'; CREATE TABLE IF NOT EXISTS application (x)",
                       encodings[i / COUNT_OF(cases)]);
        sql_run(db, sql);
        assert_ok(pawl_close(check_open(PAWL_OPTIONS(.store = path, .log = check_quiet, .executors = 1))));
        (void)snprintf(sql, sizeof sql, "INSERT INTO pawl_jobs (kind, payload) VALUES ('k', %s)", cases[at].value);
        if (cases[at].fits)
            sql_run(db, sql);
        else
            assert_refused(db, sql, "the payload is over 1 MiB");
        sql_close(db);
    }
}

/* --------------------------------------------------------------------------------- keys */

/* Goal: a known key stores nothing, makes no lane, and pawl_last tells the job that has it (I16). */
static void a_known_key_is_found(void **state)
{
    sqlite3 *db = file_with_tables(state);
    assert_string_equal(text_of(db, "SELECT id FROM pawl_last"), "NULL");
    sql_run(db, "INSERT INTO pawl_jobs (kind, idempotency_key) VALUES ('mail', 'order-17')");
    int64_t id = sql_integer(db, "SELECT id FROM pawl_last");
    sql_run(db, "INSERT INTO pawl_jobs (kind) VALUES ('other')");
    assert_true(sql_integer(db, "SELECT id FROM pawl_last") > id);
    assert_changes_nothing(db, "INSERT INTO pawl_jobs (kind, queue, payload, idempotency_key)"
                               " VALUES ('mail', 'a queue that is not there', 'else', 'order-17')");
    assert_int_equal(sql_integer(db, "SELECT id FROM pawl_last"), id);
    sql_run(db, "INSERT INTO pawl_jobs (kind, idempotency_key) VALUES ('other', 'order-17'), ('mail', 17),"
                " ('mail', '17'), ('mail', 17.0)");
    assert_int_equal(sql_integer(db, "SELECT count(*) FROM pawl_jobs"), 4);
    assert_int_equal(sql_integer(db, "SELECT id FROM pawl_jobs WHERE kind = 'mail' AND idempotency_key = 'order-17'"),
                     id);
    end_file(state, db);
}

static void check_keys_between(const char *path)
{
    static const struct {
        const char *bytes;
        size_t count;
        const char *literal; /* NULL: cannot be written in SQL */
    } keys[] = {
        { "order-17", 8, "'order-17'" },
        { "17", 2, "17" },
        { "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", 9, "'ä€😀'" },
        { "\x01\x7F\n", 3, "char(1, 127, 10)" },
        { "a\0b", 3, NULL },
        { "\0", 1, NULL },
        { "\xFF", 1, NULL },
        { "k\x80", 2, NULL },
        { "\xED\xA0\x80", 3, NULL },
        /* One to the database, if it were text in UTF-16: */
        { "\xEF\xBF\xBD", 3, "char(65533)" },
        { "\xEF\xBF\xBE", 3, NULL },
        { "\xEF\xBF\xBF", 3, NULL },
        { "\xEF\xBB\xBF" "bom", 6, "char(65279) || 'bom'" },
        { "\xF0\x9F\xBF\xBE", 4, "char(131070)" },
        { "\xF4\x8F\xBF\xBF", 4, "char(1114111)" },
    };
    pawl_pool *pool = check_open(PAWL_OPTIONS(.store = path, .log = check_quiet, .executors = 1));
    sqlite3 *db = sql_open(path);
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        char sql[256];
        int64_t id = put(pool, .kind = "k", .idempotency_key = keys[i].bytes,
                         .idempotency_key_bytes = keys[i].count), again = 0;
        pawl_job_info info = job_of(pool, id);
        assert_int_equal(info.idempotency_key_bytes, keys[i].count);
        assert_memory_equal(info.idempotency_key, keys[i].bytes, keys[i].count);
        pawl_job_info_clear(&info);
        const pawl_job_spec *spec = PAWL_JOB(.kind = "k", .idempotency_key = keys[i].bytes,
                                             .idempotency_key_bytes = keys[i].count);
        assert_status(pawl_enqueue(pool, spec, &again), PAWL_EXISTS);
        assert_int_equal(again, id);
        assert_status(pawl_enqueue_in(db, NULL, spec, &again), PAWL_EXISTS);
        assert_int_equal(again, id);
        (void)snprintf(sql, sizeof sql, "SELECT typeof(idempotency_key) FROM pawl_jobs WHERE id = %" PRId64, id);
        assert_string_equal(text_of(db, sql), keys[i].literal != NULL ? "text" : "blob");
        if (keys[i].literal == NULL)
            continue;
        (void)snprintf(sql, sizeof sql, "INSERT INTO pawl_jobs (kind, idempotency_key) VALUES ('k', %s)",
                       keys[i].literal);
        assert_changes_nothing(db, sql);
        assert_int_equal(sql_integer(db, "SELECT id FROM pawl_last"), id);
        (void)snprintf(sql, sizeof sql, "INSERT INTO pawl_jobs (kind, idempotency_key) VALUES ('sql', %s)",
                       keys[i].literal);
        sql_run(db, sql);
        id = sql_integer(db, "SELECT id FROM pawl_last");
        assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "sql", .idempotency_key = keys[i].bytes,
                                                  .idempotency_key_bytes = keys[i].count), &again), PAWL_EXISTS);
        assert_int_equal(again, id);
    }
    sql_close(db);
    assert_ok(pawl_close(pool));
}

/* Goal: C and SQL mean the same key by the same bytes, and C reads exactly the bytes that it wrote. */
static void keys_are_the_same_in_c_and_sql(void **state)
{
    temp *t = *state;
    check_keys_between(t->path);
    assert_counters_are_right(t->path);
}

/* Goal: the same in a database that stores its text as UTF-16, where bytes are not what SQLite counts. */
static void a_utf_16_database_is_no_different(void **state)
{
    temp *t = *state;
    char name[256], key[256];
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "PRAGMA encoding = 'UTF-16'; CREATE TABLE application (x)");
    sql_close(db);
    check_keys_between(t->path);
    memset(name, 'n', 255);
    memset(key, 'k', 255);
    name[255] = key[255] = '\0';
    pawl_pool *pool = open_pool(t, .executors = 1);
    int64_t id = put(pool, .kind = name, .queue = name, .idempotency_key = key, .idempotency_key_bytes = 255);
    assert_ok(pawl_pause(pool, name));
    pawl_job_info info = job_of(pool, id);
    assert_string_equal(info.kind, name);
    assert_string_equal(info.idempotency_key, key);
    pawl_job_info_clear(&info);
    assert_ok(pawl_close(pool));
    db = sql_open(t->path);
    char sql[2048];
    (void)snprintf(sql, sizeof sql, "INSERT INTO pawl_jobs (kind, queue, idempotency_key) VALUES ('%s', '%s', '%s')",
                   name, name, key);
    assert_changes_nothing(db, sql);
    assert_refused(db, "INSERT INTO pawl_jobs (kind) VALUES (replace(hex(zeroblob(64)), '0', 'ä'))",
                   "kind must be text");
    /* U+FFFE and U+FFFF, in either order of the bytes: C stores no such text. */
    assert_refused(db, "INSERT INTO pawl_jobs (kind, idempotency_key) VALUES ('k', CAST(x'feff6100' AS TEXT) || 'a' ||"
                       " CAST(x'fffe6100' AS TEXT))", "idempotency_key must be text");
    assert_refused(db, "INSERT INTO pawl_jobs (kind, idempotency_key) VALUES ('k', CAST(x'6100ffff6100' AS TEXT))",
                   "idempotency_key must be text");
    sql_run(db, "INSERT INTO pawl_jobs (kind, available_at) VALUES ('größer', '2100-01-01 01:02:03.004')");
    assert_holds(db, "available_at = 4102448523004 FROM pawl_job WHERE id = (SELECT id FROM pawl_last)");
    end_file(state, db);
}

/* -------------------------------------------------------------------------------- update */

/* Goal: a job that waits can be given another priority, payload and time; it moves between ready and later with
 * the counters. */
static void a_pending_job_can_be_changed(void **state)
{
    sqlite3 *db = file_with_tables(state);
    sql_run(db, "INSERT INTO pawl_jobs (kind, payload) VALUES ('k', 'a'), ('k', 'b')");
    sql_run(db, "UPDATE pawl_jobs SET priority = 5, payload = x'00' WHERE id = 1");
    assert_holds(db, "priority = 5 AND payload = x'00' AND status = 2 FROM pawl_job WHERE id = 1");
    assert_holds(db, "priority = 0 AND payload = 'b' FROM pawl_job WHERE id = 2");
    sql_run(db, "UPDATE pawl_jobs SET available_at = '2100-01-01', priority = -1.0");
    assert_holds(db, "count(*) = 2 FROM pawl_job WHERE status = 8 AND available_at = 4102444800000"
                     " AND priority = -1 AND typeof(priority) = 'integer'");
    assert_holds(db, "ready = 0 AND later = 2 AND enqueued = 2 FROM pawl_lane");
    sql_run(db, "UPDATE pawl_jobs SET available_at = 4102444800001 WHERE id = 2");
    assert_holds(db, "status = 8 AND available_at = 4102444800001 FROM pawl_job WHERE id = 2");
    sql_run(db, "UPDATE pawl_jobs SET available_at = datetime('now') WHERE id = 2");
    assert_holds(db, "status = 2 AND available_at = updated_at FROM pawl_job WHERE id = 2");
    assert_holds(db, "ready = 1 AND later = 1 AND enqueued = 2 FROM pawl_lane");
    sql_run(db, "UPDATE pawl_jobs SET payload = CAST(payload AS TEXT) WHERE id = 1");
    assert_string_equal(text_of(db, "SELECT typeof(payload) FROM pawl_job WHERE id = 1"), "text");
    sql_run(db, "UPDATE pawl_jobs SET payload = NULL WHERE id = 1");
    assert_holds(db, "payload IS NULL FROM pawl_job WHERE id = 1");
    end_file(state, db);
}

/* Goal: an UPDATE that changes nothing does nothing, not even a note. */
static void an_update_that_changes_nothing_does_nothing(void **state)
{
    static const char *const statements[] = {
        "UPDATE pawl_jobs SET priority = priority, payload = payload, available_at = available_at",
        "UPDATE pawl_jobs SET status = status, id = id, kind = kind, queue = queue, created_at = created_at",
        "UPDATE pawl_jobs SET priority = 0.0",
        "UPDATE pawl_jobs SET available_at = '2100-01-01' WHERE id = 2",
        "UPDATE pawl_jobs SET available_at = '2100-01-01 00:00' WHERE id = 2",
        "UPDATE pawl_jobs SET available_at = 4102444800000 WHERE id = 2",
        "UPDATE pawl_jobs SET status = 'pending'",
        "UPDATE pawl_jobs SET status = 'cancelled' WHERE id = 99",
        "DELETE FROM pawl_jobs WHERE id = 99",
    };
    sqlite3 *db = file_with_tables(state);
    sql_run(db, "INSERT INTO pawl_jobs (kind, payload) VALUES ('k', 'a');"
                "INSERT INTO pawl_jobs (kind, payload, available_at) VALUES ('k', x'00', '2100-01-01')");
    for (size_t i = 0; i < COUNT_OF(statements); i++) {
        char *before = dump_tables(db, true);
        sql_run(db, statements[i]);
        assert_same_dump(before, dump_tables(db, true), statements[i]);
    }
    end_file(state, db);
}

/* Goal: what cannot be changed is refused with a sentence that names the column. */
static void an_update_that_is_wrong_is_refused(void **state)
{
    static const struct {
        const char *set, *sentence;
    } cases[] = {
        { "id = 7", "id cannot be changed" },
        { "id = NULL", "id cannot be changed" },
        { "queue = 'q'", "queue cannot be changed" },
        { "kind = 'other'", "kind cannot be changed" },
        { "claimed_at = '2026-01-01'", "claimed_at cannot be changed" },
        { "claimed_by = 'me'", "claimed_by cannot be changed" },
        { "lease_until = 'x'", "lease_until cannot be changed" },
        { "attempts = 1", "attempts cannot be changed" },
        { "max_attempts = 9", "max_attempts cannot be changed" },
        { "last_error = 'x'", "last_error cannot be changed" },
        { "idempotency_key = 'new'", "idempotency_key cannot be changed" },
        { "idempotency_key = NULL", "idempotency_key cannot be changed" },
        { "created_at = '2026-01-01'", "created_at cannot be changed" },
        { "updated_at = '2026-01-01'", "updated_at cannot be changed" },
        { "finished_at = '2026-01-01'", "finished_at cannot be changed" },
        { "priority = 1, kind = 'other'", "kind cannot be changed" },
        { "priority = NULL", "priority must be an integer" },
        { "priority = 'high'", "priority must be an integer" },
        { "priority = 2147483648", "priority must be an integer" },
        { "payload = zeroblob(1048577)", "the payload is over 1 MiB" },
        { "available_at = NULL", "available_at must be text in UTC" },
        { "available_at = 'tomorrow'", "available_at must be text in UTC" },
        { "available_at = '2026-02-31'", "available_at must be text in UTC" },
        { "available_at = 1900000000", "looks like seconds" },
        { "priority = 1, available_at = ''", "available_at must be text in UTC" },
        { "status = 'running'", "status can be set to" },
        { "status = 'succeeded'", "status can be set to" },
        { "status = 'failed'", "status can be set to" },
        { "status = 'blocked'", "status can be set to" },
        { "status = 'canceled'", "status can be set to" },
        { "status = NULL", "status can be set to" },
        { "status = 6", "status can be set to" },
        { "status = x'63616e63656c6c6564'", "status can be set to" },
        { "status = 'cancelled', priority = 1", "the status changes alone" },
        { "status = 'cancelled', payload = 'x'", "the status changes alone" },
        { "status = 'cancelled', available_at = '2100-01-01'", "the status changes alone" },
        { "status = 'cancelled', last_error = 'by hand'", "the status changes alone" },
        { "status = 'cancelled', id = 8", "the status changes alone" },
    };
    char sql[256];
    sqlite3 *db = file_with_tables(state);
    sql_run(db, "INSERT INTO pawl_jobs (kind, idempotency_key) VALUES ('k', 'key')");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        (void)snprintf(sql, sizeof sql, "UPDATE pawl_jobs SET %s WHERE id = 1", cases[i].set);
        assert_refused(db, sql, cases[i].sentence);
    }
    assert_refused(db, "DELETE FROM pawl_jobs", "jobs are not deleted by hand");
    end_file(state, db);
}

/* ------------------------------------------------------------------------- in every state */

/* A pool that has brought jobs into every state: ids[state] and, waiting for long, ids[LATER]. */
enum { LATER = PAWL_STATE_CANCELLED + 1, STATES };
static const char *const state_names[STATES] = { "pending", "running", "succeeded", "failed", "cancelled",
                                                 "pending" };

typedef struct stage {
    temp *t;
    pawl_pool *pool;
    sqlite3 *db;
    int64_t ids[STATES], twins[STATES];
    pawl_job *held[2];
    int held_count;
    gate holding;
} stage;

static int end_well(pawl_job *job, void *arg)
{
    (void)job;
    (void)arg;
    return PAWL_SUCCEEDED;
}

static int end_badly(pawl_job *job, void *arg)
{
    (void)arg;
    pawl_job_error(job, "no such mailbox");
    return PAWL_FAILED;
}

static int hold(pawl_job *job, void *arg)
{
    stage *s = arg;
    s->held[s->held_count++] = job; /* one executor */
    gate_add(&s->holding, 1);
    return PAWL_DETACHED;
}

/* A job for the state, with a key; its lane is its own. */
static int64_t put_for(stage *s, int state, const char *queue)
{
    static const char *const kinds[STATES] = { "unserved", "hold", "good", "bad", "unserved", "unserved" };
    char key[16];
    int bytes = snprintf(key, sizeof key, "%s-%d", queue, state);
    return put(s->pool, .kind = kinds[state], .queue = queue, .idempotency_key = key,
               .idempotency_key_bytes = (size_t)bytes,
               .available_at_ms = state == LATER ? 4102444800000 : 0);
}

static bool all_are_there(void *arg)
{
    stage *s = arg;
    for (int state = 0; state < STATES; state++)
        if (state_of(s->pool, s->ids[state]) != (state == LATER ? PAWL_STATE_PENDING : (pawl_state)state)
            || state_of(s->pool, s->twins[state]) != (state == LATER ? PAWL_STATE_PENDING : (pawl_state)state))
            return false;
    return true;
}

static void set_stage(stage *s, void **state)
{
    *s = (stage){ .t = *state, .holding = GATE_INIT };
    s->pool = open_pool(s->t, .executors = 1);
    assert_ok(pawl_register(s->pool, "good", end_well, NULL, NULL));
    assert_ok(pawl_register(s->pool, "bad", end_badly, NULL, NULL));
    assert_ok(pawl_register(s->pool, "hold", hold, s, NULL));
    for (int i = 0; i < STATES; i++) {
        s->ids[i] = put_for(s, i, "a");
        s->twins[i] = put_for(s, i, "b");
    }
    assert_ok(pawl_cancel(s->pool, s->ids[PAWL_STATE_CANCELLED]));
    assert_ok(pawl_cancel(s->pool, s->twins[PAWL_STATE_CANCELLED]));
    assert_ok(pawl_start(s->pool));
    assert_true(gate_await(&s->holding, 2));
    assert_true(eventually(all_are_there, s, 20000));
    s->db = sql_open(s->t->path);
}

static void strike_stage(stage *s)
{
    sql_close(s->db);
    for (int i = 0; i < s->held_count; i++)
        assert_ok(pawl_job_finish(s->held[i], PAWL_SUCCEEDED));
    assert_ok(pawl_close(s->pool));
    assert_counters_are_right(s->t->path);
}

static const char *const or_forms[] = { "", "OR ABORT", "OR FAIL", "OR IGNORE", "OR REPLACE", "OR ROLLBACK" };

/* Goal: no OR form of an INSERT gets past the triggers, whatever the job that has the key does: it is found
 * and not touched, an explicit id is refused, and a transaction that was open stays open. */
static void no_insert_touches_a_stored_job(void **state)
{
    stage s;
    char sql[512];
    set_stage(&s, state);
    for (size_t f = 0; f < COUNT_OF(or_forms); f++)
        for (int i = 0; i < STATES; i++) {
            (void)snprintf(sql, sizeof sql, "INSERT %s INTO pawl_jobs (kind, queue, payload, priority, idempotency_key)"
                                            " SELECT kind, 'elsewhere', 'new', 9, idempotency_key FROM pawl_jobs"
                                            " WHERE id = %" PRId64, or_forms[f], s.ids[i]);
            assert_changes_nothing(s.db, sql);
            assert_int_equal(sql_integer(s.db, "SELECT id FROM pawl_last"), s.ids[i]);
            (void)snprintf(sql, sizeof sql, "INSERT %s INTO pawl_jobs (id, kind) VALUES (%" PRId64 ", 'new')",
                           or_forms[f], s.ids[i]);
            sql_run(s.db, "BEGIN IMMEDIATE");
            assert_refused(s.db, sql, "id is written by pawl");
            assert_false(sqlite3_get_autocommit(s.db));
            sql_run(s.db, "ROLLBACK");
            (void)snprintf(sql, sizeof sql, "INSERT %s INTO pawl_jobs SELECT * FROM pawl_jobs WHERE id = %" PRId64,
                           or_forms[f], s.ids[i]);
            assert_refused(s.db, sql, "id is written by pawl");
        }
    assert_refused(s.db, "REPLACE INTO pawl_jobs (id, kind) VALUES (1, 'new')", "id is written by pawl");
    char *before = dump_tables(s.db, true);
    assert_int_equal(sqlite3_exec(s.db, "INSERT INTO pawl_jobs (kind) VALUES ('k') ON CONFLICT DO UPDATE SET"
                                        " priority = 1", NULL, NULL, NULL), SQLITE_ERROR); /* SQLite's own refusal */
    assert_same_dump(before, dump_tables(s.db, true), "an upsert");
    before = dump_tables(s.db, true);
    sql_run(s.db, "BEGIN"); /* some versions of SQLite take a view's rowid, and make nothing of it */
    if (sqlite3_exec(s.db, "INSERT OR REPLACE INTO pawl_jobs (rowid, kind) VALUES (1, 'k')", NULL, NULL, NULL)
        == SQLITE_OK)
        assert_holds(s.db, "id > 12 FROM pawl_last");
    assert_holds(s.db, "kind = 'unserved' FROM pawl_jobs WHERE id = 1");
    sql_run(s.db, "ROLLBACK");
    assert_same_dump(before, dump_tables(s.db, true), "an INSERT with a rowid");
    strike_stage(&s);
}

/* Goal: and no OR form of an UPDATE or a DELETE. */
static void no_update_touches_what_it_must_not(void **state)
{
    stage s;
    char sql[512];
    set_stage(&s, state);
    for (size_t f = 0; f < COUNT_OF(or_forms); f++)
        for (int i = 0; i < STATES; i++) {
            bool waits = i == PAWL_STATE_PENDING || i == LATER;
            (void)snprintf(sql, sizeof sql, "UPDATE %s pawl_jobs SET id = %" PRId64 " WHERE id = %" PRId64,
                           or_forms[f], s.ids[(i + 1) % STATES], s.ids[i]);
            assert_refused(s.db, sql, "id cannot be changed");
            (void)snprintf(sql, sizeof sql, "UPDATE %s pawl_jobs SET idempotency_key = 'a-%d' WHERE id = %" PRId64,
                           or_forms[f], (i + 1) % STATES, s.ids[i]);
            assert_refused(s.db, sql, "idempotency_key cannot be changed");
            (void)snprintf(sql, sizeof sql, "UPDATE %s pawl_jobs SET priority = %zu WHERE id = %" PRId64,
                           or_forms[f], f + 1, s.ids[i]);
            if (!waits) {
                assert_refused(s.db, sql, "only a pending job can be changed");
                (void)snprintf(sql, sizeof sql, "UPDATE %s pawl_jobs SET available_at = '2100-01-01',"
                                                " payload = 'x' WHERE id = %" PRId64, or_forms[f], s.ids[i]);
                assert_refused(s.db, sql, "only a pending job can be changed");
            } else {
                sql_run(s.db, sql);
                assert_int_equal(look(s.t->path, "SELECT priority FROM pawl_job WHERE id = %" PRId64, s.ids[i]),
                                 (int)f + 1);
            }
            (void)snprintf(sql, sizeof sql, "UPDATE %s pawl_jobs SET status = 'succeeded' WHERE id = %" PRId64,
                           or_forms[f], s.ids[i]);
            if (i == PAWL_STATE_SUCCEEDED)
                assert_changes_nothing(s.db, sql);
            else
                assert_refused(s.db, sql, "status can be set to");
            (void)snprintf(sql, sizeof sql, "DELETE FROM pawl_jobs WHERE id = %" PRId64, s.ids[i]);
            assert_refused(s.db, sql, "jobs are not deleted by hand");
            assert_counters_are_right(s.t->path);
        }
    strike_stage(&s);
}

/* A job's row and its lane's counters, without ids and times. */
static const char *effect_on(const stage *s, int64_t id, char *out, size_t capacity)
{
    return look_text(s->t->path, out, capacity,
                     "SELECT j.status || ' ' || j.attempts || ' ' || j.cancel || ' ' || bystander || ' ' ||"
                     " (holder = 0) || ' ' || (j.status <> 2 OR available_at = j.updated_at) || ' ' ||"
                     " (created_at <= j.updated_at)"
                     " || ' ' || (fence & 1099511627775 <> 0) || ' ' || quote(j.last_error) || ' ' || l.ready || ' '"
                     " || later || ' ' || running || ' ' || succeeded || ' ' || failed || ' ' || cancelled || ' ' ||"
                     " blocked || ' ' || enqueued FROM pawl_job j JOIN pawl_lane l ON l.id = j.lane"
                     " WHERE j.id = %" PRId64, id);
}

static void assert_same_effect(const stage *s, int i, const char *sql)
{
    char by_c[512], by_sql[512];
    (void)effect_on(s, s->twins[i], by_c, sizeof by_c);
    (void)effect_on(s, s->ids[i], by_sql, sizeof by_sql);
    if (strcmp(by_c, by_sql) != 0)
        fail_msg("%s, a %s job:\n  C:   %s\n  SQL: %s", sql, state_names[i], by_c, by_sql);
}

/* Sets the status through the view and through C on two jobs in the same state: both do the same. */
static void compare_with_c(stage *s, const char *form, const char *status, int i,
                           pawl_status (*call)(pawl_pool *pool, int64_t id), const char *sentence)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql, "UPDATE %s pawl_jobs SET status = '%s' WHERE id = %" PRId64, form, status,
                   s->ids[i]);
    pawl_status st = call(s->pool, s->twins[i]);
    if (sentence == NULL) {
        sql_run(s->db, sql);
        assert_true(st >= 0);
    } else {
        assert_refused(s->db, sql, sentence);
        assert_status(st, PAWL_ERR_STATE);
    }
    assert_same_effect(s, i, sql);
    assert_counters_are_right(s->t->path);
}

/* Goal: cancel and requeue through the view do exactly what pawl_cancel() and pawl_requeue() do, in every
 * state, in every OR form, and once. */
static void status_changes_do_what_c_does(void **state)
{
    for (size_t f = 0; f < COUNT_OF(or_forms); f++) {
        stage s;
        void *own;
        assert_int_equal(temp_setup(&own), 0);
        set_stage(&s, &own);
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < STATES; i++)
                compare_with_c(&s, or_forms[f], "cancelled", i, pawl_cancel,
                               i == PAWL_STATE_SUCCEEDED || i == PAWL_STATE_FAILED
                                   ? "has succeeded or failed cannot be cancelled" : NULL);
            assert_int_equal(sql_integer(s.db, "SELECT sum(cancels) FROM pawl_holder"), 2); /* once each */
        }
        compare_with_c(&s, or_forms[f], "pending", PAWL_STATE_RUNNING, pawl_requeue,
                       "a running job cannot be requeued");
        compare_with_c(&s, or_forms[f], "pending", PAWL_STATE_SUCCEEDED, pawl_requeue,
                       "does not run again");
        compare_with_c(&s, or_forms[f], "pending", PAWL_STATE_CANCELLED, pawl_requeue, NULL);
        compare_with_c(&s, or_forms[f], "pending", LATER, pawl_requeue, NULL);
        strike_stage(&s);
        assert_int_equal(temp_teardown(&own), 0);
    }
    (void)state;
}

/* Goal: a failed job that was requeued in SQL runs again, and fails anew as the first time. */
static void a_requeued_job_runs_again(void **state)
{
    stage s;
    char sql[256];
    set_stage(&s, state);
    (void)snprintf(sql, sizeof sql, "UPDATE pawl_jobs SET status = 'pending' WHERE id = %" PRId64,
                   s.ids[PAWL_STATE_FAILED]);
    int64_t fence = look(s.t->path, "SELECT fence FROM pawl_job WHERE id = %" PRId64, s.ids[PAWL_STATE_FAILED]);
    sql_run(s.db, sql);
    assert_true(eventually(all_are_there, &s, 20000));
    assert_int_equal(attempts_of(s.pool, s.ids[PAWL_STATE_FAILED]), 1);
    assert_true(look(s.t->path, "SELECT fence FROM pawl_job WHERE id = %" PRId64, s.ids[PAWL_STATE_FAILED]) > fence);
    strike_stage(&s);
}

static bool is_told(void *job)
{
    return pawl_job_stop_reason(job) == PAWL_STOP_CANCEL;
}

/* Goal: a running job whose cancel came as SQL is told, and its success stands. */
static void a_running_job_is_told_of_its_cancel(void **state)
{
    stage s;
    set_stage(&s, state);
    int which = pawl_job_id(s.held[0]) == s.ids[PAWL_STATE_RUNNING] ? 0 : 1;
    change(s.t->path, "UPDATE pawl_jobs SET status = 'cancelled' WHERE id = %" PRId64, s.ids[PAWL_STATE_RUNNING]);
    assert_true(eventually(is_told, s.held[which], 5000));
    assert_false(is_told(s.held[1 - which]));
    strike_stage(&s);
    assert_int_equal(look(s.t->path, "SELECT status FROM pawl_job WHERE id = %" PRId64, s.ids[PAWL_STATE_RUNNING]),
                     4);
}

/* ------------------------------------------------------------------------ who the client is */

/* Goal: the triggers work for a client that trusts no schema, that is defensive, that has recursive triggers
 * and foreign keys on or off; one that is lax gets no further. */
static void any_client_can_use_them(void **state)
{
    static const char *const settings[] = {
        "PRAGMA trusted_schema = OFF", "PRAGMA trusted_schema = ON",     "PRAGMA recursive_triggers = ON",
        "PRAGMA recursive_triggers = OFF", "PRAGMA foreign_keys = ON",   "PRAGMA foreign_keys = OFF",
        "PRAGMA defer_foreign_keys = ON",  "PRAGMA ignore_check_constraints = ON",
        "PRAGMA case_sensitive_like = ON", "PRAGMA cell_size_check = ON", "PRAGMA count_changes = ON",
        "PRAGMA legacy_alter_table = ON",  "PRAGMA reverse_unordered_selects = ON", "PRAGMA writable_schema = ON",
    };
    for (size_t i = 0; i < COUNT_OF(settings); i++)
        for (int defensive = 0; defensive < 2; defensive++) {
            void *own;
            assert_int_equal(temp_setup(&own), 0);
            sqlite3 *db = file_with_tables(&own);
            (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, defensive, NULL);
            (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, !defensive, NULL);
            sql_run(db, settings[i]);
            sql_run(db, "INSERT INTO pawl_jobs (kind, idempotency_key) VALUES ('k', 'a'), ('k', 'a'), ('k', 'ä')");
            sql_run(db, "UPDATE pawl_jobs SET priority = 3, available_at = '2100-01-01' WHERE id = 1;"
                        "UPDATE pawl_jobs SET status = 'cancelled';"
                        "UPDATE pawl_jobs SET status = 'pending' WHERE id = 2");
            assert_string_equal(text_of(db, "SELECT group_concat(status) FROM (SELECT status FROM pawl_jobs"
                                            " ORDER BY id)"), "cancelled,pending");
            assert_refused(db, "INSERT OR REPLACE INTO pawl_jobs (kind, priority) VALUES ('k', 2147483648)",
                           "priority must be");
            assert_refused(db, "UPDATE OR REPLACE pawl_jobs SET kind = ''", "kind cannot be changed");
            assert_int_equal(sql_integer(db, "SELECT count(*) FROM pawl_queues, pawl_last"), 1);
            end_file(&own, db);
            assert_int_equal(temp_teardown(&own), 0);
        }
    (void)state;
}

/* Goal: a job exists exactly if the client's transaction commits, and its savepoint was released (I18). */
static void jobs_follow_the_clients_transaction(void **state)
{
    sqlite3 *db = file_with_tables(state);
    sql_run(db, "CREATE TABLE orders (id INTEGER PRIMARY KEY, job INTEGER)");
    sql_run(db, "BEGIN IMMEDIATE; INSERT INTO pawl_jobs (kind, idempotency_key) VALUES ('mail', 'a');"
                "INSERT INTO orders (job) SELECT id FROM pawl_last; COMMIT");
    assert_holds(db, "job = 1 FROM orders");
    char *before = dump_tables(db, true);
    sql_run(db, "BEGIN IMMEDIATE; INSERT INTO pawl_jobs (kind, queue) VALUES ('new kind', 'new queue');"
                "UPDATE pawl_jobs SET priority = 9; UPDATE pawl_jobs SET status = 'cancelled'; ROLLBACK");
    assert_same_dump(before, dump_tables(db, true), "a transaction that was rolled back");
    before = dump_tables(db, true);
    sql_run(db, "SAVEPOINT outer; SAVEPOINT inner; INSERT INTO pawl_jobs (kind) VALUES ('new kind');"
                "UPDATE pawl_jobs SET available_at = '2100-01-01'; ROLLBACK TO inner; RELEASE inner; RELEASE outer");
    assert_same_dump(before, dump_tables(db, true), "a savepoint that was rolled back");
    sql_run(db, "BEGIN; INSERT INTO pawl_jobs (kind) VALUES ('mail')");
    assert_refused(db, "INSERT INTO pawl_jobs (kind) VALUES ('x'), ('y'), ('')", "kind must be text");
    sql_run(db, "COMMIT"); /* what was refused is undone, what was stored before it stays */
    assert_string_equal(text_of(db, "SELECT group_concat(kind) FROM pawl_jobs"), "mail,mail");
    assert_refused(db, "INSERT OR FAIL INTO pawl_jobs (kind, priority) SELECT 'z', 1 UNION ALL SELECT 'z', 'x'",
                   "priority must be");
    end_file(state, db);
}

/* Goal: the client's last_insert_rowid() is its own, whatever the triggers store. */
static void the_clients_last_rowid_is_left_alone(void **state)
{
    sqlite3 *db = file_with_tables(state);
    sql_run(db, "CREATE TABLE mine (id INTEGER PRIMARY KEY); INSERT INTO mine VALUES (12345)");
    sql_run(db, "INSERT INTO pawl_jobs (kind) VALUES ('k'), ('l')");
    assert_int_equal(sqlite3_last_insert_rowid(db), 12345);
    end_file(state, db);
}

/* Goal: pawl's tables may stand in an attached database, beside tables of the same names elsewhere. */
static void an_attached_database_is_written(void **state)
{
    temp *t = *state;
    sql_close(file_with_tables(state));
    sqlite3 *db = sql_open(temp_file(t, "application.db"));
    char sql[512];
    (void)snprintf(sql, sizeof sql, "CREATE TABLE pawl_meta (mine); CREATE TABLE pawl_job (mine);"
                                    "CREATE TEMP TABLE pawl_lane (mine);"
                                    "CREATE TABLE other (id INTEGER PRIMARY KEY AUTOINCREMENT);"
                                    "ATTACH '%s' AS jobs", t->path);
    sql_run(db, sql);
    sql_run(db, "INSERT INTO jobs.pawl_jobs (kind, idempotency_key) VALUES ('k', 'a'), ('k', 'a');"
                "UPDATE jobs.pawl_jobs SET priority = 4; UPDATE jobs.pawl_jobs SET status = 'cancelled'");
    assert_int_equal(sql_integer(db, "SELECT id FROM jobs.pawl_last"), 1);
    assert_string_equal(text_of(db, "SELECT status || priority FROM jobs.pawl_jobs"), "cancelled4");
    sql_close(db);
    assert_counters_are_right(t->path);
}

/* Goal: an application's own trigger that keeps the row out without an error does not make a job of nothing. */
static void a_job_that_was_kept_out_is_not_acknowledged(void **state)
{
    sqlite3 *db = file_with_tables(state);
    sql_run(db, "CREATE TRIGGER theirs BEFORE INSERT ON pawl_job WHEN NEW.priority = 66"
                " BEGIN SELECT RAISE(IGNORE); END");
    assert_refused(db, "INSERT INTO pawl_jobs (kind, priority) VALUES ('k', 66)", "the job was not stored");
    assert_refused(db, "INSERT INTO pawl_jobs (kind, priority) VALUES ('k', 1), ('k', 66)", "the job was not stored");
    sql_run(db, "INSERT INTO pawl_jobs (kind, priority) VALUES ('k', 67)");
    end_file(state, db);
}

/* Goal: nor is it taken for a job that has the number of the application's own last row. */
static void a_job_that_was_kept_out_is_not_another_one(void **state)
{
    static const struct {
        const char *obstacle, *insert;
    } cases[] = {
        { "CREATE TRIGGER theirs BEFORE INSERT ON pawl_job BEGIN SELECT RAISE(IGNORE); END",
          "INSERT INTO pawl_jobs (kind) VALUES ('k')" },
        { "CREATE TRIGGER theirs BEFORE UPDATE ON pawl_meta WHEN NEW.key = 'sql_last'"
          " BEGIN SELECT RAISE(IGNORE); END", "INSERT INTO pawl_jobs (kind) VALUES ('k')" },
        { "CREATE TRIGGER theirs BEFORE UPDATE ON pawl_lane BEGIN SELECT RAISE(IGNORE); END",
          "INSERT INTO pawl_jobs (kind) VALUES ('k')" },
        { "DELETE FROM pawl_meta WHERE key = 'epoch'", "INSERT OR IGNORE INTO pawl_jobs (kind) VALUES ('k')" },
    };
    sqlite3 *db = file_with_tables(state);
    sql_run(db, "CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO pawl_jobs (kind) VALUES ('k')");
    assert_int_equal(sql_integer(db, "SELECT id FROM pawl_last"), 1);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        sql_run(db, cases[i].obstacle);
        sql_run(db, "DELETE FROM orders; INSERT INTO orders VALUES (1)");
        assert_int_equal(sqlite3_last_insert_rowid(db), 1);
        assert_refused(db, cases[i].insert, "the job was not stored");
        sql_run(db, "DROP TRIGGER IF EXISTS theirs");
    }
    end_file(state, db);
}

/* Goal: each statement that writes leaves the time for the pool to see, in a row that was there (no growth). */
static void a_writer_leaves_a_note(void **state)
{
    static const char *const writes[] = {
        "INSERT INTO pawl_jobs (kind, idempotency_key) VALUES ('k', 'a')",
        "INSERT INTO pawl_jobs (kind, idempotency_key) VALUES ('k', 'a')", /* found */
        "UPDATE pawl_jobs SET priority = 1",
        "UPDATE pawl_jobs SET status = 'cancelled'",
        "UPDATE pawl_jobs SET status = 'pending'",
    };
    sqlite3 *db = file_with_tables(state);
    assert_int_equal(sql_integer(db, "SELECT value FROM pawl_meta WHERE key = 'sql_writer'"), 0);
    for (size_t i = 0; i < COUNT_OF(writes); i++) {
        sql_run(db, "UPDATE pawl_meta SET value = 0 WHERE key = 'sql_writer'");
        sql_run(db, writes[i]);
        assert_holds(db, "abs(value - 1000 * CAST(strftime('%s', 'now') AS INTEGER)) < 60000 FROM pawl_meta"
                         " WHERE key = 'sql_writer'");
    }
    assert_int_equal(sql_integer(db, "SELECT count(*) FROM pawl_meta"), 6);
    end_file(state, db);
}

static void count_warnings(pawl_log_level level, const char *line, void *arg)
{
    if (level == PAWL_LOG_WARNING && strstr(line, "writes jobs on a connection of its own") != NULL)
        ++*(int *)arg;
}

/* Goal: the pool tells of a writer although an earlier one's note is from the future: its clock stood ahead. */
static void a_writer_is_told_of_whatever_the_clocks_say(void **state)
{
    temp *t = *state;
    int told = 0;
    sqlite3 *db = file_with_tables(state);
    if (sqlite3_libversion_number() >= 3044006) { /* it need not be told of where SQLite has no WAL-reset race */
        sql_close(db);
        skip();
    }
    sql_run(db, "UPDATE pawl_meta SET value = 4102444800000 WHERE key = 'sql_writer'");
    pawl_pool *pool = check_open(PAWL_OPTIONS(.store = t->path, .log = count_warnings, .log_arg = &told, .executors = 1,
                                              .flags = PAWL_OPEN_INLINE));
    assert_ok(pawl_start(pool));
    sql_run(db, "UPDATE pawl_meta SET value = value WHERE key = 'fence'");
    assert_ok(pawl_run_until_idle(pool));
    assert_int_equal(told, 0);
    sql_run(db, "INSERT INTO pawl_jobs (kind) VALUES ('k')");
    assert_ok(pawl_run_until_idle(pool));
    assert_int_equal(told, 1);
    sql_run(db, "INSERT INTO pawl_jobs (kind) VALUES ('k')");
    assert_ok(pawl_run_until_idle(pool));
    assert_int_equal(told, 1);
    assert_ok(pawl_close(pool));
    end_file(state, db);
}

/* -------------------------------------------------------------------------- helper views */

/* Goal: pawl_queues tells what pawl_stats() tells. */
static void the_queues_are_those_of_stats(void **state)
{
    stage s;
    set_stage(&s, state);
    assert_ok(pawl_pause(s.pool, "b"));
    pawl_stats_info stats = stats_of(s.pool);
    assert_int_equal(sql_integer(s.db, "SELECT count(*) FROM pawl_queues"), stats.lane_count);
    for (size_t i = 0; i < stats.lane_count; i++) {
        const pawl_lane_stats *l = &stats.lanes[i];
        char expected[512], is[512];
        (void)snprintf(expected, sizeof expected, "%d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
                       " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %d", l->paused,
                       l->pending_due + l->pending_later, l->pending_due, l->pending_later, l->running,
                       l->succeeded, l->failed, l->cancelled, l->blocked, l->enqueued, l->pruned,
                       l->pending_due > 0);
        (void)look_text(s.t->path, is, sizeof is,
                        "SELECT paused || ' ' || pending || ' ' || due || ' ' || later || ' ' || running || ' ' ||"
                        " succeeded || ' ' || failed || ' ' || cancelled || ' ' || blocked || ' ' || enqueued || ' '"
                        " || pruned || ' ' || (oldest_due_age_ms IS NOT NULL) FROM pawl_queues"
                        " WHERE queue = '%s' AND kind = '%s'", l->queue, l->kind);
        assert_string_equal(is, expected);
    }
    pawl_stats_info_clear(&stats);
    change(s.t->path, "UPDATE pawl_job SET available_at = available_at - 5000 WHERE status = 2");
    assert_holds(s.db, "count(*) = 2 FROM pawl_queues WHERE oldest_due_age_ms BETWEEN 5000 AND 60000");
    strike_stage(&s);
}

/* Goal: the dead, newest first; the last error of each kind; the claims past their lease. */
static void helper_views_answer(void **state)
{
    stage s;
    set_stage(&s, state);
    int64_t dead = s.ids[PAWL_STATE_FAILED], twin = s.twins[PAWL_STATE_FAILED];
    assert_int_equal(sql_integer(s.db, "SELECT count(*) FROM pawl_dead"), 2);
    change(s.t->path, "UPDATE pawl_job SET updated_at = 1900000000001 WHERE id = %" PRId64, dead);
    assert_int_equal(sql_integer(s.db, "SELECT id FROM pawl_dead LIMIT 1"), dead);
    change(s.t->path, "UPDATE pawl_job SET updated_at = 1900000000002 WHERE id = %" PRId64, twin);
    assert_int_equal(sql_integer(s.db, "SELECT id FROM pawl_dead LIMIT 1"), twin);
    assert_string_equal(text_of(s.db, "SELECT queue || kind || attempts || last_error || failed_at FROM pawl_dead"),
                        "bbad1no such mailbox2030-03-17 17:46:40.002");
    assert_string_equal(text_of(s.db, "SELECT kind || ' ' || last_error FROM pawl_errors"), "bad no such mailbox");
    change(s.t->path, "UPDATE pawl_lane SET last_error = 'newer', last_error_at = 1900000000000 WHERE queue = 'a'"
                      " AND failed = 1");
    assert_string_equal(text_of(s.db, "SELECT queue || ' ' || last_error || ' ' || at FROM pawl_errors"),
                        "a newer 2030-03-17 17:46:40.000");
    assert_int_equal(sql_integer(s.db, "SELECT count(*) FROM pawl_errors"), 1);
    assert_int_equal(sql_integer(s.db, "SELECT count(*) FROM pawl_expired"), 0);
    change(s.t->path, "UPDATE pawl_job SET lease_until = claimed_at - 1000 WHERE id = %" PRId64,
           s.ids[PAWL_STATE_RUNNING]);
    assert_holds(s.db, "count(*) = 1 AND overdue_ms BETWEEN 1000 AND 60000 AND kind = 'hold' AND attempts = 1"
                       " AND claimed_by IS NOT NULL AND claimed_at > lease_until FROM pawl_expired");
    assert_int_equal(sql_integer(s.db, "SELECT id FROM pawl_expired"), s.ids[PAWL_STATE_RUNNING]);
    strike_stage(&s);
}

/* The plan of a statement: each step must not read the whole of the jobs. */
static void assert_no_scan(sqlite3 *db, const char *sql, const char *must_have)
{
    char explain[1024], plan[2048] = "";
    sqlite3_stmt *row;
    (void)snprintf(explain, sizeof explain, "EXPLAIN QUERY PLAN %s", sql);
    if (sqlite3_prepare_v2(db, explain, -1, &row, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    while (sqlite3_step(row) == SQLITE_ROW) {
        const char *step = (const char *)sqlite3_column_text(row, 3);
        size_t used = strlen(plan);
        (void)snprintf(plan + used, sizeof plan - used, "  %s\n", step);
        bool partial = strstr(step, "pawl_job_dead") != NULL || strstr(step, "pawl_job_running") != NULL;
        if ((strcmp(step, "SCAN j") == 0 || strncmp(step, "SCAN j ", 7) == 0 || strstr(step, "AUTOMATIC") != NULL)
            && !partial)
            fail_msg("%s\n  reads all of the history: %s", sql, step);
    }
    (void)sqlite3_finalize(row);
    if (must_have != NULL && strstr(plan, must_have) == NULL)
        fail_msg("%s\n  does not use %s:\n%s", sql, must_have, plan);
}

/* Goal: the helper views, a job by its id and a job by its key stay fast however long the history is: nothing
 * of theirs walks all jobs, without ANALYZE and with it. */
static void nothing_walks_the_history(void **state)
{
    static const struct {
        const char *sql, *index;
    } cases[] = {
        { "SELECT * FROM pawl_queues", "pawl_job_ready" },
        { "SELECT * FROM pawl_queues WHERE queue = 'mail'", "pawl_job_ready" },
        { "SELECT sum(failed) FROM pawl_queues", NULL },
        { "SELECT * FROM pawl_expired", "pawl_job_running" },
        { "SELECT count(*) FROM pawl_expired", "pawl_job_running" },
        { "SELECT * FROM pawl_expired WHERE kind = 'mail'", "pawl_job_running" },
        { "SELECT * FROM pawl_dead", "pawl_job_dead" },
        { "SELECT * FROM pawl_dead LIMIT 20", "pawl_job_dead" },
        { "SELECT count(*) FROM pawl_dead", "pawl_job_dead" },
        { "SELECT * FROM pawl_dead WHERE kind = 'mail' LIMIT 20", "pawl_job_dead" },
        { "SELECT kind, count(*) FROM pawl_dead GROUP BY kind", "pawl_job_dead" },
        { "SELECT * FROM pawl_errors", NULL },
        { "SELECT * FROM pawl_last", NULL },
        { "SELECT * FROM pawl_jobs WHERE id = (SELECT id FROM pawl_last)", "INTEGER PRIMARY KEY" },
        { "SELECT * FROM pawl_jobs WHERE kind = 'mail' AND idempotency_key = 'order-17'", "pawl_job_key" },
        { "UPDATE pawl_jobs SET priority = 1 WHERE id = 1", "INTEGER PRIMARY KEY" },
        { "UPDATE pawl_jobs SET status = 'cancelled' WHERE kind = 'mail' AND idempotency_key = 'order-17'",
          "pawl_job_key" },
    };
    sqlite3 *db = file_with_tables(state);
    for (int analyzed = 0; analyzed < 2; analyzed++) {
        for (size_t i = 0; i < COUNT_OF(cases); i++)
            assert_no_scan(db, cases[i].sql, cases[i].index);
        sql_run(db, "WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 2000)"
                    " INSERT INTO pawl_jobs (kind, queue, idempotency_key) SELECT 'mail', 'q' || (i % 3), i FROM c;"
                    "UPDATE pawl_jobs SET status = 'cancelled' WHERE id % 10 <> 0; ANALYZE");
    }
    end_file(state, db);
}

/* ------------------------------------------------------------------------------ a pool runs */

static int count_run(pawl_job *job, void *arg)
{
    gate_add(arg, (int)strtol(pawl_job_payload(job, NULL), NULL, 10));
    return PAWL_SUCCEEDED;
}

/* Goal: a running pool finds what SQL has enqueued, changed and requeued, and runs it in the right order. */
static void a_running_pool_takes_what_sql_enqueues(void **state)
{
    temp *t = *state;
    gate ran = GATE_INIT;
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_register(pool, "count", count_run, &ran, NULL));
    assert_ok(pawl_start(pool));
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "INSERT INTO pawl_jobs (kind, payload) VALUES ('count', 1), ('count', '10'), ('count', x'313030')");
    assert_true(gate_await(&ran, 111));
    sql_run(db, "INSERT INTO pawl_jobs (kind, queue, payload, available_at)"
                " VALUES ('count', 'a new queue', 1000, '2100-01-01')");
    sql_run(db, "UPDATE pawl_jobs SET available_at = datetime('now') WHERE id = (SELECT id FROM pawl_last)");
    assert_true(gate_await(&ran, 1111));
    sql_run(db, "INSERT INTO pawl_jobs (kind, payload, available_at)"
                " VALUES ('count', 10000, strftime('%Y-%m-%d %H:%M:%f', 'now', '+0.2 seconds'))");
    assert_true(gate_await(&ran, 11111));
    int64_t mine = put(pool, .kind = "count", .payload = "100000", .payload_bytes = 6); /* ids do not collide */
    assert_true(gate_await(&ran, 111111));
    assert_true(mine > sql_integer(db, "SELECT id FROM pawl_last"));
    assert_ok(pawl_wait_idle(pool, 10000));
    sql_close(db);
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"), 6);
}

/* Goal: a claim takes SQL's priorities as it takes those of C (I14). */
static void priorities_of_sql_are_kept(void **state)
{
    temp *t = *state;
    char order[64];
    gate ran = GATE_INIT;
    pawl_pool *pool = open_inline(t, .executors = 1);
    assert_ok(pawl_register(pool, "count", count_run, &ran, NULL));
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "INSERT INTO pawl_jobs (kind, priority) VALUES ('count', 1), ('count', 3), ('count', 0), ('count', 2);"
                "UPDATE pawl_jobs SET priority = 9 WHERE id = 3");
    assert_ok(pawl_start(pool));
    assert_ok(pawl_run_until_idle(pool));
    (void)look_text(t->path, order, sizeof order,
                    "SELECT group_concat(id) FROM (SELECT id FROM pawl_job ORDER BY fence)");
    assert_string_equal(order, "3,2,4,1");
    sql_close(db);
    assert_ok(pawl_close(pool));
}

/* Goal: an inline pool, which nobody wakes, finds at its next step what SQL has enqueued since the last. */
static void an_inline_pool_finds_what_sql_enqueues(void **state)
{
    temp *t = *state;
    gate ran = GATE_INIT;
    bool progress;
    pawl_pool *pool = open_inline(t, .executors = 1);
    assert_ok(pawl_register(pool, "count", count_run, &ran, NULL));
    assert_ok(pawl_start(pool));
    assert_ok(pawl_run_until_idle(pool));
    change(t->path, "INSERT INTO pawl_jobs (kind, payload) VALUES ('count', 1)");
    assert_ok(pawl_step(pool, &progress));
    assert_true(progress);
    assert_int_equal(gate_count(&ran), 1);
    assert_ok(pawl_close(pool));
}

/* ------------------------------------------------------------- triggers of the application */

/* A job of priority 7 that succeeds has a follow-up, worth 10 to count_run(). */
#define FOLLOWS_UP                                                                                  \
    "CREATE TRIGGER theirs AFTER UPDATE OF status ON pawl_job WHEN NEW.status = 4 AND NEW.priority = 7 BEGIN" \
    " INSERT INTO pawl_jobs (kind, queue, payload) VALUES ('count', 'next', 10); END"

/* Goal: what an application's trigger enqueues in the pool's own transaction runs, with nobody else's commit to
 * wake the pool (I10), and its id harms no other call (I17). */
static void a_triggers_job_runs(void **state)
{
    temp *t = *state;
    gate ran = GATE_INIT;
    sqlite3 *db = file_with_tables(state);
    sql_run(db, FOLLOWS_UP);
    sql_close(db); /* nobody but the pool */
    pawl_pool *pool = open_pool(t, .executors = 2);
    assert_ok(pawl_register(pool, "count", count_run, &ran, NULL));
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "count", .payload = "1", .payload_bytes = 1, .priority = 7);
    assert_true(gate_await(&ran, 11));
    for (int i = 0; i < 100; i++) /* beside what the executors report, in one batch now and then */
        (void)put(pool, .kind = "count", .payload = "1", .payload_bytes = 1, .priority = i % 2 == 0 ? 7 : 0);
    assert_true(gate_await(&ran, 11 + 100 + 500));
    assert_ok(pawl_wait_idle(pool, 10000));
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"), 152);
}

/* Goal: the same where the trigger is made while the pool runs, and stands on the jobs' INSERT, so that the
 * follow-up's id lies between those of one call. */
static void a_triggers_job_beside_new_ones(void **state)
{
    temp *t = *state;
    gate ran = GATE_INIT;
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_register(pool, "count", count_run, &ran, NULL));
    assert_ok(pawl_start(pool));
    change(t->path, "CREATE TRIGGER theirs AFTER INSERT ON pawl_job WHEN NEW.priority = 7 BEGIN"
                    " INSERT INTO pawl_jobs (kind, queue, payload) VALUES ('count', 'next', 10); END");
    pawl_job_spec specs[5];
    int64_t ids[5];
    for (int i = 0; i < 5; i++)
        specs[i] = *PAWL_JOB(.kind = i == 4 ? "nobody's" : "count", .payload = "1", .payload_bytes = 1, .priority = 7);
    assert_ok(pawl_enqueue_many(pool, specs, 5, ids, NULL));
    assert_true(gate_await(&ran, 54));
    assert_ok(pawl_enqueue(pool, &specs[4], NULL)); /* nothing for this pool but what the trigger adds */
    assert_true(gate_await(&ran, 64));
    assert_ok(pawl_wait_idle(pool, 10000));
    for (int i = 1; i < 5; i++)
        assert_true(ids[i] > ids[i - 1]);
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs"), 12);
}

static int run_then_next(pawl_job *job, void *arg)
{
    (void)arg;
    assert_ok(pawl_job_then(job, PAWL_JOB(.kind = "count", .queue = "next", .payload = "100", .payload_bytes = 3)));
    return PAWL_SUCCEEDED;
}

/* Goal: trigger and pool may add the same lane in one transaction. */
static void a_triggers_lane_is_the_pools(void **state)
{
    temp *t = *state;
    gate ran = GATE_INIT;
    pawl_pool *pool = open_inline(t, .executors = 1);
    assert_ok(pawl_register(pool, "first", run_then_next, NULL, NULL));
    assert_ok(pawl_register(pool, "count", count_run, &ran, NULL));
    assert_ok(pawl_start(pool));
    change(t->path, FOLLOWS_UP);
    (void)put(pool, .kind = "first", .priority = 7);
    assert_ok(pawl_run_until_idle(pool));
    assert_int_equal(gate_count(&ran), 110);
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
}

static bool must_stop(void *arg)
{
    return pawl_job_should_stop(arg);
}

static int run_until_cancelled(pawl_job *job, void *arg)
{
    gate_add(arg, 1);
    if (eventually(must_stop, job, 20000) && pawl_job_stop_reason(job) == PAWL_STOP_CANCEL)
        gate_add(arg, 1);
    return PAWL_CANCELLED;
}

/* Goal: a job that an application's trigger cancels is told of it, while it runs. */
static void a_triggers_cancel_is_told(void **state)
{
    temp *t = *state;
    gate runs = GATE_INIT, ran = GATE_INIT;
    sqlite3 *db = file_with_tables(state);
    sql_run(db, "CREATE TRIGGER theirs AFTER UPDATE OF status ON pawl_job WHEN NEW.status = 4 BEGIN"
                " UPDATE pawl_jobs SET status = 'cancelled' WHERE kind = 'long'; END");
    sql_close(db);
    pawl_pool *pool = open_pool(t, .executors = 2);
    assert_ok(pawl_register(pool, "long", run_until_cancelled, &runs, NULL));
    assert_ok(pawl_register(pool, "count", count_run, &ran, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "long");
    assert_true(gate_await(&runs, 1));
    (void)put(pool, .kind = "count", .payload = "1", .payload_bytes = 1);
    assert_ok(pawl_wait_idle(pool, 30000));
    assert_int_equal(gate_count(&runs), 2); /* it was told */
    assert_int_equal(state_of(pool, id), PAWL_STATE_CANCELLED);
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
}

/* Goal: nor are rows of the application's that go with a job forgotten, and what their trigger enqueues. */
static void a_foreign_keys_trigger_counts(void **state)
{
    temp *t = *state;
    gate ran = GATE_INIT;
    sqlite3 *db = file_with_tables(state);
    sql_run(db, "CREATE TABLE note (job INTEGER REFERENCES pawl_job (id) ON DELETE CASCADE);"
                "CREATE TRIGGER theirs AFTER DELETE ON note BEGIN"
                " INSERT INTO pawl_jobs (kind, payload) VALUES ('count', 10); END");
    sql_close(db);
    pawl_pool *pool = open_inline(t, .executors = 1, .keep_succeeded_ms = 1000);
    assert_ok(pawl_register(pool, "count", count_run, &ran, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "count", .payload = "1", .payload_bytes = 1);
    assert_ok(pawl_run_until_idle(pool));
    change(t->path, "INSERT INTO note VALUES (%" PRId64 ")", id);
    assert_ok(pawl_clock_advance(pool, 100000000));
    assert_ok(pawl_run_until_idle(pool)); /* it is pruned */
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE id = %" PRId64, id), 0);
    assert_int_equal(gate_count(&ran), 11);
    assert_ok(pawl_close(pool));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)
static const struct CMUnitTest tests[] = {
    TEST(an_insert_that_is_wrong_is_refused),
    TEST(only_real_times_are_taken),
    TEST(rows_are_those_of_enqueue_in),
    TEST(values_are_taken_as_they_are_meant),
    TEST(only_a_new_payload_is_measured),
    TEST(a_payload_is_measured_as_utf_8),
    TEST(a_known_key_is_found),
    TEST(keys_are_the_same_in_c_and_sql),
    TEST(a_utf_16_database_is_no_different),
    TEST(a_pending_job_can_be_changed),
    TEST(an_update_that_changes_nothing_does_nothing),
    TEST(an_update_that_is_wrong_is_refused),
    TEST(no_insert_touches_a_stored_job),
    TEST(no_update_touches_what_it_must_not),
    TEST(status_changes_do_what_c_does),
    TEST(a_requeued_job_runs_again),
    TEST(a_running_job_is_told_of_its_cancel),
    TEST(any_client_can_use_them),
    TEST(jobs_follow_the_clients_transaction),
    TEST(the_clients_last_rowid_is_left_alone),
    TEST(an_attached_database_is_written),
    TEST(a_job_that_was_kept_out_is_not_acknowledged),
    TEST(a_job_that_was_kept_out_is_not_another_one),
    TEST(a_writer_leaves_a_note),
    TEST(a_writer_is_told_of_whatever_the_clocks_say),
    TEST(the_queues_are_those_of_stats),
    TEST(helper_views_answer),
    TEST(nothing_walks_the_history),
    TEST(a_running_pool_takes_what_sql_enqueues),
    TEST(priorities_of_sql_are_kept),
    TEST(an_inline_pool_finds_what_sql_enqueues),
    TEST(a_triggers_job_runs),
    TEST(a_triggers_job_beside_new_ones),
    TEST(a_triggers_lane_is_the_pools),
    TEST(a_triggers_cancel_is_told),
    TEST(a_foreign_keys_trigger_counts),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
