/* sqlite.c - the SQLite store under the suite: how to open it, what is done behind its back, and what
 * only this store promises. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "rig.h"
#include "store/sqlite.h"

/* ------------------------------------------------------------------------------ I20 */

#define COUNTED(column, codes)                                                                     \
    "|| CASE WHEN l." column " <> (SELECT count(*) FROM pawl_job j WHERE j.lane = l.id AND"        \
    " j.status IN (" codes ")) THEN ' " column "' ELSE '' END"

/* What is wrong with the counters, a line a lane. */
static const char wrong_lanes[] =
    "SELECT group_concat(l.queue || '/' || l.kind || ':'"
    COUNTED("ready", "2") COUNTED("running", "3") COUNTED("succeeded", "4") COUNTED("failed", "5")
    COUNTED("cancelled", "6") COUNTED("blocked", "7") COUNTED("later", "8")
    "|| CASE WHEN l.enqueued <> l.ready + l.running + l.succeeded + l.failed + l.cancelled"
    " + l.blocked + l.later + l.pruned THEN ' enqueued' ELSE '' END, char(10))"
    " FROM pawl_lane l";

static void check_counters(const char *path)
{
    sqlite3 *db = sql_open(path);
    sqlite3_stmt *row;
    assert_int_equal(sqlite3_prepare_v2(db, wrong_lanes, -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    const char *text = (const char *)sqlite3_column_text(row, 0);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += line != text; /* past the newline */
        const char *colon = strchr(line, ':');
        if (colon[1] != '\n' && colon[1] != '\0')
            fail_msg("the counters differ from a recount:\n%s", text);
    }
    (void)sqlite3_finalize(row);
    assert_int_equal(sql_integer(db, "SELECT count(*) FROM pawl_job WHERE lane NOT IN"
                                     " (SELECT id FROM pawl_lane)"),
                     0);
    sql_close(db);
}

/* ------------------------------------------------------------------------- the saboteur */

static void refuse(const char *path, refusal what)
{
    static const char *const triggers[] = {
        [REFUSE_NOTHING] = NULL,
        [REFUSE_ENQUEUE] = "INSERT ON pawl_job WHEN new.priority = 666",
        [REFUSE_CLAIM] = "UPDATE ON pawl_job WHEN new.priority = 666 AND old.status = 2"
                         " AND new.status = 3",
        [REFUSE_ENDING] = "UPDATE ON pawl_job WHEN new.priority = 666 AND old.status = 3"
                          " AND new.status <> 3",
        [REFUSE_HEARTBEAT] = "UPDATE ON pawl_job WHEN new.priority = 666 AND old.status = 3"
                             " AND new.lease_boot <> old.lease_boot",
        [REFUSE_CANCEL] = "UPDATE ON pawl_job WHEN new.priority = 666 AND new.status = 6",
        [REFUSE_PROMOTION] = "UPDATE ON pawl_job WHEN new.priority = 666 AND old.status = 8",
        [REFUSE_PRUNING] = "DELETE ON pawl_job WHEN old.priority = 666",
    };
    char sql[256];
    sqlite3 *db = sql_open(path);
    sql_run(db, "DROP TRIGGER IF EXISTS saboteur");
    if (triggers[what] != NULL) {
        (void)snprintf(sql, sizeof sql,
                       "CREATE TRIGGER saboteur BEFORE %s BEGIN SELECT RAISE(ABORT, 'refused'); END",
                       triggers[what]);
        sql_run(db, sql);
    }
    sql_close(db);
}

static const char *attempts(const char *path, int64_t job)
{
    static char text[512];
    char sql[256];
    sqlite3 *db = sql_open(path);
    sqlite3_stmt *row;
    (void)snprintf(sql, sizeof sql,
                   "SELECT outcome || CASE charged WHEN 1 THEN '' ELSE '-' END FROM pawl_attempts"
                   " WHERE job = %" PRId64 " ORDER BY fence", job);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    text[0] = '\0';
    while (sqlite3_step(row) == SQLITE_ROW)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", text[0] ? ", " : "",
                       sqlite3_column_text(row, 0));
    (void)sqlite3_finalize(row);
    sql_close(db);
    return text;
}

/* ---------------------------------------------------------------------- the application */

static void create_effects(const char *path)
{
    sqlite3 *db = sql_open(path);
    sql_run(db, "CREATE TABLE effects (number INTEGER NOT NULL UNIQUE CHECK (number >= 0), bulk)");
    sql_close(db);
}

static pawl_status write_effect(void *db, int64_t number)
{
    char sql[160];
    (void)snprintf(sql, sizeof sql, "INSERT INTO effects (number) VALUES (%" PRId64 ")", number);
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? PAWL_OK : PAWL_ERR_STORE;
}

static bool has_effect(const char *path, int64_t number)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM effects WHERE number = %" PRId64, number);
    return sql_ask(path, sql) == 1;
}

const store_kind store_sqlite = {
    .name = "sqlite",
    .open = pawli_sqlite_open,
    .check_counters = check_counters,
    .refuse = refuse,
    .attempts = attempts,
    .create_effects = create_effects,
    .write_effect = write_effect,
    .has_effect = has_effect,
};

/* ---------------------------------------------------------------- promised by this store */

typedef struct statement_effect {
    const char *sql;
    int code; /* what SQLite answered */
} statement_effect;

static pawl_status run_statement(void *db, pawl_job *job, void *arg)
{
    (void)job;
    statement_effect *effect = arg;
    effect->code = sqlite3_exec(db, effect->sql, NULL, NULL, NULL);
    return effect->code == SQLITE_OK ? PAWL_OK : PAWL_ERR_STORE;
}

/* Ends one job whose effect is this statement, between a success before and one behind it, which must
 * stand whatever it does (I17). */
static pawli_ending end_with_statement(rig *r, statement_effect *statement, int64_t *id)
{
    pool *p = &r->first;
    pawli_new_job jobs[3] = { 0 };
    size_t count;
    pool_enqueue(p, jobs, 3);
    pawli_claim *claims = pool_claim(p, 3, &count);
    assert_int_equal(count, 3);
    pawli_ending before = ending_of(claims, succeeded());
    pawli_ending middle = ending_of(claims->next, succeeded());
    pawli_ending behind = ending_of(claims->next->next, succeeded());
    pawli_effect effect = { .fn = run_statement, .arg = statement };
    before.next = &middle;
    middle.next = &behind;
    middle.effects = &effect;
    pool_write(p, &(pawli_batch){ .endings = &before });
    assert_ok(before.status);
    assert_ok(behind.status);
    assert_stored(p, jobs[0].id, PAWL_STATE_SUCCEEDED, 1);
    assert_stored(p, jobs[2].id, PAWL_STATE_SUCCEEDED, 1);
    *id = jobs[1].id;
    middle.effects = NULL;
    return middle;
}

/* Goal: an on_success function cannot end the writer's transaction, change its settings or write to
 * pawl's tables; the try fails, its job is retried and nothing else happens. */
static void an_effect_cannot_leave_its_place(void **state)
{
    static const char *const forbidden[] = {
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT mine",
        "ROLLBACK TO pawl_effect",
        "RELEASE pawl_effect",
        "PRAGMA synchronous = OFF",
        "ATTACH ':memory:' AS other",
        "DELETE FROM pawl_job",
        "UPDATE pawl_job SET status = 4",
        "INSERT INTO pawl_meta (key, value) VALUES ('mine', 1)",
        "UPDATE pawl_lane SET ready = 0",
        "DROP TABLE pawl_attempts",
        "DROP INDEX pawl_job_ready",
        "ALTER TABLE pawl_job RENAME TO mine",
        "ALTER TABLE pawl_lane ADD COLUMN mine",
        "CREATE TABLE pawl_mine (x)",
        "CREATE TRIGGER mine AFTER INSERT ON pawl_job BEGIN SELECT 1; END",
    };
    rig *r = *state;
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
        statement_effect statement = { .sql = forbidden[i] };
        int64_t id;
        pawli_ending ending = end_with_statement(r, &statement, &id);
        if (statement.code != SQLITE_AUTH)
            fail_msg("%s: answered %d", forbidden[i], statement.code);
        assert_ok(ending.status);
        assert_int_equal(ending.settled, PAWL_STATE_PENDING);
        assert_stored(&r->first, id, PAWL_STATE_PENDING, 1);
    }
}

/* Goal: an application's statement that rolls the whole transaction back (OR ROLLBACK, or a trigger's
 * RAISE) is that job's failure like any other; the neighbours are unharmed (I17, R4). */
static void an_effect_that_rolls_everything_back_fails_alone(void **state)
{
    static const char *const statements[] = {
        "INSERT OR ROLLBACK INTO effects (number) VALUES (-1)",
        "INSERT INTO traps VALUES (1)",
        "INSERT INTO effects (number) VALUES (5); INSERT OR ROLLBACK INTO effects (number) VALUES (5)",
    };
    rig *r = *state;
    create_effects(rig_path(r));
    sqlite3 *db = sql_open(rig_path(r));
    sql_run(db, "CREATE TABLE traps (x); CREATE TRIGGER trap BEFORE INSERT ON traps"
                " BEGIN SELECT RAISE(ROLLBACK, 'trapped'); END");
    sql_close(db);
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        statement_effect statement = { .sql = statements[i] };
        int64_t id;
        pawli_ending ending = end_with_statement(r, &statement, &id);
        assert_int_equal(statement.code & 0xFF, SQLITE_CONSTRAINT);
        if (ending.status != PAWL_OK)
            fail_msg("%s: its ending answered %s", statements[i], pawl_status_name(ending.status));
        assert_stored(&r->first, id, PAWL_STATE_PENDING, 1);
    }
    assert_false(has_effect(rig_path(r), 5));
}

static pawl_status limit_pages(void *db, void *arg)
{
    *(sqlite3 **)arg = db;
    return PAWL_OK;
}

static void set_page_limit(sqlite3 *db, int64_t more)
{
    char sql[64];
    (void)snprintf(sql, sizeof sql, "PRAGMA max_page_count = %" PRId64,
                   more < 0 ? INT64_C(1073741823) : sql_integer(db, "PRAGMA page_count") + more);
    sql_run(db, sql);
}

/* Goal: what does not fit on a full disk is refused alone, with FULL; what does fit beside it is stored;
 * and when there is room again everything goes on (I17, R4). */
static void a_full_disk_refuses_what_does_not_fit(void **state)
{
    static char large[400000];
    rig *r = *state;
    pool *p = &r->first;
    sqlite3 *writer = NULL;
    p->options.db_open = limit_pages;
    p->options.db_open_arg = &writer;
    pool_reopen(p);
    assert_non_null(writer);
    int64_t running = put_job(p, .kind = "a");
    pawli_claim *claim = pool_claim_one(p);
    set_page_limit(writer, 8);
    pawli_new_job small = { 0 }, huge = { .payload = large, .payload_bytes = sizeof large - 1 };
    complete(&small, 1);
    complete(&huge, 1);
    pawli_new_jobs behind = { .jobs = &small, .count = 1 };
    pawli_new_jobs first = { .next = &behind, .jobs = &huge, .count = 1 };
    pawli_ending ending = ending_of(claim, succeeded());
    pool_write(p, &(pawli_batch){ .endings = &ending, .enqueues = &first });
    assert_ok(ending.status);
    assert_int_equal(first.status, PAWL_ERR_FULL);
    assert_ok(behind.status);
    assert_stored(p, running, PAWL_STATE_SUCCEEDED, 1);
    assert_stored(p, small.id, PAWL_STATE_PENDING, 0);
    set_page_limit(writer, -1);
    pool_enqueue(p, &huge, 1);
    assert_int_equal(stored(p, huge.id)->payload_bytes, sizeof large - 1);
}

/* Goal: on a full disk a job's large effect is not the job's fault: it stays running, and its success is
 * written when there is room; the neighbours are written at once (section "Attempts", I17, I19). */
static void an_effect_on_a_full_disk_waits(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    sqlite3 *writer = NULL;
    create_effects(rig_path(r));
    p->options.db_open = limit_pages;
    p->options.db_open_arg = &writer;
    pool_reopen(p);
    pool_idle(p);
    pool_enqueue(p, (pawli_new_job[2]){ { 0 } }, 2);
    size_t count;
    pawli_claim *claims = pool_claim(p, 2, &count);
    statement_effect statement = {
        .sql = "INSERT INTO effects VALUES (1, zeroblob(400000))" };
    pawli_effect effect = { .fn = run_statement, .arg = &statement };
    pawli_ending behind = ending_of(claims->next, succeeded());
    pawli_ending first = ending_of(claims, succeeded());
    first.next = &behind;
    first.effects = &effect;
    set_page_limit(writer, 8);
    pool_write(p, &(pawli_batch){ .endings = &first });
    assert_int_equal(statement.code & 0xFF, SQLITE_FULL);
    assert_int_equal(first.status, PAWL_ERR_FULL);
    assert_ok(behind.status);
    assert_stored(p, claims->job, PAWL_STATE_RUNNING, 1);
    assert_stored(p, claims->next->job, PAWL_STATE_SUCCEEDED, 1);
    assert_false(has_effect(rig_path(r), 1));
    set_page_limit(writer, -1);
    first.next = NULL;
    pool_write(p, &(pawli_batch){ .endings = &first });
    assert_ok(first.status);
    assert_stored(p, claims->job, PAWL_STATE_SUCCEEDED, 1);
    assert_true(has_effect(rig_path(r), 1));
}

/* Goal: a row that somebody's SQL left without attempts fails, and does not stand in the way of what is
 * behind it (I23). */
static void a_row_without_attempts_stops_nothing(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pawli_new_job jobs[40] = { 0 };
    for (size_t i = 0; i < 30; i++)
        jobs[i].priority = 10;
    pool_enqueue(p, jobs, 40);
    sqlite3 *db = sql_open(rig_path(r));
    sql_run(db, "UPDATE pawl_job SET attempts = max_attempts WHERE priority = 10");
    sql_close(db);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pool_claim_one(p)->job, jobs[30 + i].id);
    assert_stored(p, jobs[0].id, PAWL_STATE_FAILED, MAX_ATTEMPTS);
    assert_stored(p, jobs[29].id, PAWL_STATE_FAILED, MAX_ATTEMPTS);
    assert_text_has(stored(p, jobs[0].id)->last_error, "attempts");
}

/* Goal: payloads that SQL wrote as text, a number or NULL reach the handler as their text. */
static void payloads_of_sql_are_read_as_text(void **state)
{
    static const struct {
        const char *literal, *wanted;
    } cases[] = { { "'text'", "text" }, { "42", "42" }, { "NULL", "" }, { "x'00ff'", "\0\xFF" },
                  { "''", "" }, { "zeroblob(0)", "" } };
    rig *r = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char sql[128];
        int64_t id = put_job(&r->first, .kind = "a");
        sqlite3 *db = sql_open(rig_path(r));
        (void)snprintf(sql, sizeof sql, "UPDATE pawl_job SET payload = %s WHERE id = %" PRId64,
                       cases[i].literal, id);
        sql_run(db, sql);
        sql_close(db);
        pawli_claim *claim = pool_claim_one(&r->first);
        assert_int_equal(claim->job, id);
        size_t bytes = strcmp(cases[i].literal, "x'00ff'") == 0 ? 2 : strlen(cases[i].wanted);
        assert_int_equal(claim->payload_bytes, bytes);
        assert_memory_equal(claim->payload, cases[i].wanted, bytes + 1);
    }
}

/* Goal: the log is folded into the file in quiet moments and stays small; nothing is lost by it (I22). */
static void quiet_moments_fold_the_log(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    size_t written = 0;
    int64_t last = 0;
    while (outlook_of(p).wal_frames < 1000 && written < 2000) {
        last = put_job(p, .kind = "a");
        written++;
    }
    assert_true(outlook_of(p).wal_frames >= 1000);
    bool wrote;
    (void)p->store->ops->tidy(p->store, true, &wrote);
    assert_true(outlook_of(p).wal_frames < 100);
    assert_stored(p, last, PAWL_STATE_PENDING, 0);
    assert_int_equal(outlook_of(p).claimable, written);
    (void)put_job(p, .kind = "a");
    assert_true(outlook_of(p).wal_frames < 100); /* the log began anew */
}

static const struct CMUnitTest tests[] = {
    STORE_TEST(an_effect_cannot_leave_its_place),
    STORE_TEST(an_effect_that_rolls_everything_back_fails_alone),
    STORE_TEST(a_full_disk_refuses_what_does_not_fit),
    STORE_TEST(an_effect_on_a_full_disk_waits),
    STORE_TEST(a_row_without_attempts_stops_nothing),
    STORE_TEST(payloads_of_sql_are_read_as_text),
    STORE_TEST(quiet_moments_fold_the_log),
};

const suite suite_sqlite = SUITE(tests, "sqlite only");
