/* effects_test.c - work that belongs to a commit: pawl_job_on_success, pawl_job_then, pawl_enqueue_in, and
 * the application's own functions in the writer's connection. Inline, so that every step is seen. */
#include "check.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "gate.h"
#include "look.h"
#include "patience.h"

#define HOUR_MS INT64_C(3600000)
#define EFFECTS_MAX 4

/* One function of a job, and what is known of it. */
typedef struct effect {
    const char *sql;   /* NULL: none; %lld is the job's id */
    int sql_result;    /* of the last run */
    pawl_status answer;
    const char *error; /* for pawl_job_error() */
    bool leaves_open;  /* a statement that was not reset */
    int runs, drops, order;
    pawl_status enqueued, waited, stopped, opened, heartbeat, asked; /* calls that would wait */
    pawl_status then, more;                                         /* those that come too late */
    bool calls_pool;
} effect;

typedef struct work {
    effect effects[EFFECTS_MAX];
    int count;
    int returns;
    int calls;
    const pawl_job_spec *then[2];
    pawl_status then_answer;
} work;

static int order;

static pawl_status run_effect(void *db, pawl_job *job, void *arg);

static void call_pool(effect *e, pawl_job *job)
{
    pawl_pool *pool = pawl_job_pool(job), *other = NULL;
    e->enqueued = pawl_enqueue(pool, PAWL_JOB(.kind = "k"), NULL);
    e->waited = pawl_wait_idle(pool, 0);
    e->stopped = pawl_stop(pool, 0);
    e->opened = pawl_open(PAWL_OPTIONS(.store = "never.db"), &other);
    e->heartbeat = pawl_job_heartbeat(job);
    e->asked = pawl_cancel(pool, pawl_job_id(job));
    e->then = pawl_job_then(job, PAWL_JOB(.kind = "k"));
    e->more = pawl_job_on_success(job, run_effect, e, NULL);
}

static pawl_status run_effect(void *db, pawl_job *job, void *arg)
{
    effect *e = arg;
    e->runs++;
    e->order = ++order;
    if (e->calls_pool)
        call_pool(e, job);
    if (e->error != NULL)
        pawl_job_error(job, "%s", e->error);
    if (e->sql == NULL)
        return e->answer;
    char sql[512];
    (void)snprintf(sql, sizeof sql, e->sql, (long long)pawl_job_id(job));
    if (e->leaves_open) {
        sqlite3_stmt *row;
        e->sql_result = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
        if (e->sql_result == SQLITE_OK)
            e->sql_result = sqlite3_step(row);
        return e->answer;
    }
    e->sql_result = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (e->answer != PAWL_OK)
        return e->answer;
    return e->sql_result == SQLITE_OK ? PAWL_OK : PAWL_ERR_STORE;
}

static void drop_effect(void *arg)
{
    ((effect *)arg)->drops++;
}

static int do_work(pawl_job *job, void *arg)
{
    work *w = arg;
    w->calls++;
    for (int i = 0; i < w->count; i++)
        assert_ok(pawl_job_on_success(job, run_effect, &w->effects[i], drop_effect));
    for (int i = 0; i < 2 && w->then[i] != NULL; i++)
        w->then_answer = pawl_job_then(job, w->then[i]);
    return w->returns;
}

/* A pool that is started, with a table "done" of the application's in its file. */
static pawl_pool *start_with(void **state, work *w)
{
    temp *t = *state;
    pawl_pool *pool = open_inline(t, .executors = 1);
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "CREATE TABLE IF NOT EXISTS done (job INTEGER PRIMARY KEY, note TEXT)");
    sql_close(db);
    assert_ok(pawl_register(pool, "k", do_work, w, NULL));
    assert_ok(pawl_start(pool));
    return pool;
}

static void run_idle(pawl_pool *pool)
{
    bool progress = true;
    for (int i = 0; progress; i++) {
        if (i == 500)
            print_error("the pool does not come to rest\n");
        assert_true(i < 500);
        assert_ok(pawl_step(pool, &progress));
    }
}

static int64_t rows(void **state)
{
    return sql_ask(((temp *)*state)->path, "SELECT count(*) FROM done");
}

#define INSERT "INSERT INTO done (job) VALUES (%lld)"

/* --------------------------------------------------------------------------- on_success */

/* Goal: the row is there exactly if the job is succeeded: for every outcome (I19); the function is dropped
 * once, whether it ran or not. */
static void effects_are_there_exactly_with_the_success(void **state)
{
    static const int outcomes[] = { PAWL_SUCCEEDED, PAWL_RETRY,   PAWL_FAILED,   PAWL_CANCELLED,
                                    PAWL_SNOOZED,   PAWL_UNKNOWN, PAWL_SUCCEEDED };
    int64_t succeeded = 0;
    for (size_t i = 0; i < sizeof outcomes / sizeof outcomes[0]; i++) {
        work w = { .effects = { { .sql = INSERT } }, .count = 1, .returns = outcomes[i] };
        pawl_pool *pool = start_with(state, &w);
        int64_t id = put(pool, .kind = "k");
        run_idle(pool);
        succeeded += outcomes[i] == PAWL_SUCCEEDED;
        assert_int_equal(state_of(pool, id) == PAWL_STATE_SUCCEEDED, outcomes[i] == PAWL_SUCCEEDED);
        assert_int_equal(rows(state), succeeded);
        assert_int_equal(w.effects[0].runs, outcomes[i] == PAWL_SUCCEEDED);
        assert_int_equal(w.effects[0].drops, 1);
        if (state_of(pool, id) == PAWL_STATE_PENDING)
            assert_ok(pawl_cancel(pool, id));
        assert_ok(pawl_close(pool));
    }
    assert_int_equal(sql_ask(((temp *)*state)->path,
                             "SELECT count(*) FROM done JOIN pawl_jobs ON id = job"
                             " WHERE status = 'succeeded'"),
                     succeeded);
}

/* Goal: a function that fails costs its own job an attempt and nothing else: its writes and those of the
 * functions before it are undone, the error is kept, and neighbours in the batch succeed (I17, I19). */
static void a_failing_effect_harms_nobody_else(void **state)
{
    work bad = { .effects = { { .sql = INSERT },
                              { .sql = "INSERT INTO done (note) VALUES ('second')",
                                .answer = PAWL_ERR_INVALID } },
                 .count = 2 };
    work good = { .effects = { { .sql = INSERT } }, .count = 1 };
    temp *t = *state;
    pawl_pool *pool = open_inline(t, .executors = 4);
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "CREATE TABLE done (job INTEGER PRIMARY KEY, note TEXT)");
    sql_close(db);
    assert_ok(pawl_register(pool, "good", do_work, &good, NULL));
    assert_ok(pawl_register(pool, "bad", do_work, &bad, NULL));
    assert_ok(pawl_start(pool));
    const pawl_job_spec specs[] = { *PAWL_JOB(.kind = "good"), *PAWL_JOB(.kind = "bad"),
                                    *PAWL_JOB(.kind = "good") };
    int64_t ids[3];
    assert_ok(pawl_enqueue_many(pool, specs, 3, ids, NULL));
    run_idle(pool);
    assert_int_equal(state_of(pool, ids[0]), PAWL_STATE_SUCCEEDED);
    assert_int_equal(state_of(pool, ids[2]), PAWL_STATE_SUCCEEDED);
    assert_int_equal(state_of(pool, ids[1]), PAWL_STATE_PENDING);
    assert_int_equal(attempts_of(pool, ids[1]), 1);
    assert_last_error(pool, ids[1], "PAWL_ERR_INVALID");
    pawl_job_info info = job_of(pool, ids[1]);
    assert_in_range(info.available_at_ms - pawl_clock_now(pool), 10000, 11000);
    pawl_job_info_clear(&info);
    assert_int_equal(rows(state), 2);
    assert_int_equal(bad.effects[0].drops, 1);
    assert_int_equal(bad.effects[1].drops, 1);
    bad.effects[1].answer = PAWL_OK;
    assert_ok(pawl_clock_advance(pool, 11000));
    run_idle(pool);
    assert_int_equal(state_of(pool, ids[1]), PAWL_STATE_SUCCEEDED);
    assert_int_equal(rows(state), 4);
    assert_int_equal(bad.effects[0].drops, 2);
    assert_ok(pawl_close(pool));
}

/* Goal: a function that always fails uses the attempts up, and its own words are the job's last error (I9). */
static void a_failing_effect_uses_up_attempts(void **state)
{
    work w = { .effects = { { .answer = PAWL_ERR_NOT_FOUND, .error = "no such customer" } }, .count = 1 };
    pawl_pool *pool = start_with(state, &w);
    int64_t id = put(pool, .kind = "k", .max_attempts = 3);
    for (int i = 0; i < 5; i++) {
        run_idle(pool);
        assert_ok(pawl_clock_advance(pool, HOUR_MS));
    }
    assert_int_equal(w.calls, 3);
    assert_int_equal(w.effects[0].drops, 3);
    assert_int_equal(state_of(pool, id), PAWL_STATE_FAILED);
    assert_last_error(pool, id, "no such customer");
    assert_ok(pawl_close(pool));
}

/* Goal: several functions run in the order in which they were given, and see each other's writes. */
static void effects_run_in_order(void **state)
{
    work w = { .effects = { { .sql = INSERT },
                            { .sql = "UPDATE done SET note = 'b' WHERE job = %lld" },
                            { .sql = "UPDATE done SET note = note || 'c' WHERE job = %lld" } },
               .count = 3 };
    pawl_pool *pool = start_with(state, &w);
    order = 0;
    (void)put(pool, .kind = "k");
    run_idle(pool);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(w.effects[i].order, i + 1);
        assert_int_equal(w.effects[i].drops, 1);
    }
    assert_int_equal(sql_ask(((temp *)*state)->path, "SELECT count(*) FROM done WHERE note = 'bc'"), 1);
    assert_ok(pawl_close(pool));
}

/* Goal: what would break the batch is refused by the authorizer, whoever's table it is; the refusal fails
 * that job alone. */
static void effects_may_not_touch_the_transaction_or_pawls_tables(void **state)
{
    static const char *const forbidden[] = {
        "COMMIT", "ROLLBACK", "BEGIN", "END", "SAVEPOINT mine", "RELEASE pawl_effect",
        "ROLLBACK TO pawl_effect", "ATTACH ':memory:' AS other", "DETACH other", "VACUUM",
        "PRAGMA synchronous = OFF", "PRAGMA user_version = 9", "PRAGMA writable_schema = ON",
        "UPDATE pawl_job SET status = 4", "DELETE FROM pawl_job", "INSERT INTO pawl_meta VALUES ('x', 1)",
        "UPDATE PAWL_LANE SET ready = 0", "DELETE FROM main.pawl_kind", "DROP TABLE pawl_attempts",
        "DROP VIEW pawl_jobs", "DROP INDEX pawl_job_ready", "ALTER TABLE pawl_job ADD COLUMN mine",
        "ALTER TABLE pawl_job RENAME TO mine", "CREATE TABLE pawl_mine (x)", "CREATE INDEX mine ON pawl_job (id)",
        "CREATE TRIGGER mine AFTER UPDATE ON pawl_job BEGIN DELETE FROM done; END",
        "CREATE TEMP TRIGGER mine AFTER UPDATE ON pawl_job BEGIN DELETE FROM done; END",
        "CREATE VIEW pawl_mine AS SELECT 1", "ALTER TABLE done RENAME TO pawl_done",
        "CREATE VIRTUAL TABLE pawl_text USING fts5(x)",
        "CREATE TEMP VIEW pawl_lane AS SELECT 1", "CREATE TEMP TABLE pawl_job (id)",
    };
    int allowed = 0;
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
        work w = { .effects = { { .sql = INSERT }, { .sql = forbidden[i] } }, .count = 2 };
        pawl_pool *pool = start_with(state, &w);
        int64_t id = put(pool, .kind = "k", .max_attempts = 1);
        run_idle(pool);
        if (w.effects[1].sql_result == SQLITE_OK || state_of(pool, id) != PAWL_STATE_FAILED) {
            print_error("allowed: %s\n", forbidden[i]);
            allowed++;
        }
        assert_ok(pawl_close(pool));
    }
    assert_int_equal(allowed, 0);
    assert_int_equal(rows(state), 0);
}

/* Goal: everything else is the application's right: own tables, reading pawl's view. */
static void effects_may_do_the_rest(void **state)
{
    static const char *const allowed[] = {
        "CREATE TABLE IF NOT EXISTS mine (x)", "INSERT INTO done (note) SELECT status FROM pawl_jobs",
        "CREATE TEMP TABLE scratch (x)", "DELETE FROM done", "REPLACE INTO done VALUES (1, 'x')",
        "CREATE INDEX IF NOT EXISTS mine_x ON mine (x)", "DROP TABLE mine", "ANALYZE done",
    };
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        work w = { .effects = { { .sql = allowed[i] } }, .count = 1 };
        pawl_pool *pool = start_with(state, &w);
        int64_t id = put(pool, .kind = "k", .max_attempts = 1);
        run_idle(pool);
        if (w.effects[0].sql_result != SQLITE_OK)
            print_error("refused: %s\n", allowed[i]);
        assert_int_equal(w.effects[0].sql_result, SQLITE_OK);
        assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
        assert_ok(pawl_close(pool));
    }
}

/* Goal: names that look like pawl's are refused as names of tables only; and a full-text table can be written,
 * although it asks for a PRAGMA of its own. */
static void columns_and_full_text_are_the_applications(void **state)
{
    static const char *const allowed[] = {
        "UPDATE app SET pawl_x = pawl_x + 1", "INSERT INTO app (pawl_x) VALUES (2)",
        "INSERT INTO doc (body) VALUES ('hello')", "UPDATE doc SET body = 'hello again'",
        "INSERT INTO doc (doc) VALUES ('optimize')", "DELETE FROM doc",
    };
    temp *t = *state;
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "CREATE TABLE app (id INTEGER PRIMARY KEY, pawl_x); INSERT INTO app (pawl_x) VALUES (1)");
    bool has_text = sqlite3_compileoption_used("ENABLE_FTS5") != 0;
    if (has_text)
        sql_run(db, "CREATE VIRTUAL TABLE doc USING fts5 (body)");
    sql_close(db);
    for (size_t i = 0; i < (has_text ? 6 : 2); i++) {
        work w = { .effects = { { .sql = allowed[i] } }, .count = 1 };
        pawl_pool *pool = start_with(state, &w);
        int64_t id = put(pool, .kind = "k", .max_attempts = 1);
        run_idle(pool);
        if (w.effects[0].sql_result != SQLITE_OK)
            print_error("refused: %s\n", allowed[i]);
        assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
        assert_ok(pawl_close(pool));
    }
    assert_int_equal(sql_ask(t->path, "SELECT group_concat(pawl_x, '') FROM app"), 22);
}

/* Goal: a function that says nothing itself leaves what SQLite said in last_error. */
static void a_constraint_is_named(void **state)
{
    work w = { .effects = { { .sql = "INSERT INTO unique_note VALUES ('twice')" } }, .count = 1 };
    temp *t = *state;
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "CREATE TABLE unique_note (note TEXT UNIQUE); INSERT INTO unique_note VALUES ('twice')");
    sql_close(db);
    pawl_pool *pool = start_with(state, &w);
    int64_t id = put(pool, .kind = "k", .max_attempts = 1);
    run_idle(pool);
    assert_int_equal(state_of(pool, id), PAWL_STATE_FAILED);
    assert_last_error(pool, id, "UNIQUE constraint failed: unique_note.note");
    assert_ok(pawl_close(pool));
}

/* Goal: a refused statement may be ignored by the function, and then the job succeeds. */
static pawl_status ignore_refusal(void *db, pawl_job *job, void *arg)
{
    (void)job;
    *(int *)arg = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    return sqlite3_exec(db, "INSERT INTO done (note) VALUES ('kept')", NULL, NULL, NULL) == SQLITE_OK
               ? PAWL_OK
               : PAWL_ERR_STORE;
}

static int ignoring(pawl_job *job, void *arg)
{
    assert_ok(pawl_job_on_success(job, ignore_refusal, arg, NULL));
    return PAWL_SUCCEEDED;
}

static void a_refusal_alone_fails_nothing(void **state)
{
    int result = 0;
    work unused = { .count = 0 };
    pawl_pool *pool = start_with(state, &unused);
    assert_ok(pawl_stop(pool, 0));
    assert_ok(pawl_register(pool, "ignoring", ignoring, &result, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "ignoring");
    run_idle(pool);
    assert_int_equal(result, SQLITE_AUTH);
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_int_equal(rows(state), 1);
    assert_ok(pawl_close(pool));
}

/* Goal: a conflict clause that rolls the whole transaction back is that job's failure: it is retried while it
 * has attempts, then failed; its neighbours succeed, and the pool comes to rest (I17, R4). */
static void an_effect_that_rolls_everything_back_fails_alone(void **state)
{
    work w = { .effects = { { .sql = "INSERT OR ROLLBACK INTO done (job) VALUES (1000000)" } },
               .count = 1 };
    work good = { .effects = { { .sql = INSERT } }, .count = 1 };
    pawl_pool *pool = start_with(state, &w);
    assert_ok(pawl_stop(pool, 0));
    assert_ok(pawl_register(pool, "good", do_work, &good, NULL));
    assert_ok(pawl_start(pool));
    sqlite3 *db = sql_open(((temp *)*state)->path);
    sql_run(db, "INSERT INTO done VALUES (1000000, 'in the way')");
    sql_close(db);
    int64_t bad = put(pool, .kind = "k", .max_attempts = 1), other = put(pool, .kind = "good");
    run_idle(pool);
    assert_int_equal(state_of(pool, other), PAWL_STATE_SUCCEEDED);
    assert_int_equal(state_of(pool, bad), PAWL_STATE_FAILED);
    assert_int_equal(w.effects[0].drops, 1);
    assert_ok(pawl_close(pool));
}

/* It rolls everything back, and goes on writing: with a statement that is new, and one that was prepared. */
static pawl_status write_after_rollback(void *db, pawl_job *job, void *arg)
{
    sqlite3_stmt *prepared;
    (void)job;
    if (sqlite3_prepare_v2(db, "INSERT INTO done VALUES (2000000, 'prepared')", -1, &prepared, NULL) != SQLITE_OK)
        return PAWL_ERR_INVALID;
    (void)sqlite3_exec(db, "INSERT OR ROLLBACK INTO done (job) VALUES (1000000)", NULL, NULL, NULL);
    bool undone = sqlite3_get_autocommit(db) != 0;
    (void)sqlite3_exec(db, "INSERT INTO done VALUES (2000001, 'new')", NULL, NULL, NULL);
    (void)sqlite3_step(prepared);
    (void)sqlite3_finalize(prepared);
    *(int *)arg += undone;
    return PAWL_OK;
}

static int with_rollback(pawl_job *job, void *arg)
{
    return pawl_job_on_success(job, write_after_rollback, arg, NULL) == PAWL_OK ? PAWL_SUCCEEDED : PAWL_FAILED;
}

/* Goal: what a function writes after it has undone the transaction is not there without the success (I19). */
static void nothing_outlives_an_effect_that_rolled_back(void **state)
{
    const temp *t = *state;
    int undone = 0;
    work none = { .count = 0 };
    pawl_pool *pool = start_with(state, &none);
    assert_ok(pawl_stop(pool, 0));
    assert_ok(pawl_register(pool, "bad", with_rollback, &undone, NULL));
    assert_ok(pawl_start(pool));
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "INSERT INTO done VALUES (1000000, 'in the way')");
    sql_close(db);
    int64_t bad = put(pool, .kind = "bad", .max_attempts = 1);
    run_idle(pool);
    assert_int_equal(undone, 1);
    assert_int_equal(state_of(pool, bad), PAWL_STATE_FAILED);
    assert_int_equal(look(t->path, "SELECT count(*) FROM done WHERE job >= 2000000"), 0);
    assert_ok(pawl_close(pool));
}

/* A function whose own statements are in each other's way: SQLITE_LOCKED, and nobody else's fault. */
static pawl_status lock_itself(void *db, pawl_job *job, void *arg)
{
    sqlite3_stmt *row;
    (void)job;
    ++*(int *)arg;
    if (sqlite3_prepare_v2(db, "SELECT * FROM done", -1, &row, NULL) != SQLITE_OK)
        return PAWL_ERR_INVALID;
    (void)sqlite3_step(row);
    int rc = sqlite3_exec(db, "DROP TABLE done", NULL, NULL, NULL);
    int answer = rc == SQLITE_OK ? PAWL_OK : PAWL_ERR_STATE;
    if (sqlite3_errcode(db) != SQLITE_LOCKED)
        answer = PAWL_ERR_INVALID;
    return (pawl_status)answer; /* the statement is left open, for pawl to reset */
}

static int locking(pawl_job *job, void *arg)
{
    assert_ok(pawl_job_on_success(job, lock_itself, arg, NULL));
    return PAWL_SUCCEEDED;
}

/* Goal: an error that the function made itself, whatever its code, is the job's failure, not the store's. */
static void an_effects_own_lock_is_its_own_failure(void **state)
{
    int runs = 0;
    work unused = { .count = 0 };
    pawl_pool *pool = start_with(state, &unused);
    assert_ok(pawl_stop(pool, 0));
    assert_ok(pawl_register(pool, "locking", locking, &runs, NULL));
    assert_ok(pawl_start(pool));
    sqlite3 *db = sql_open(((temp *)*state)->path);
    sql_run(db, "INSERT INTO done VALUES (1, 'a'), (2, 'b')");
    sql_close(db);
    int64_t id = put(pool, .kind = "locking", .max_attempts = 1);
    run_idle(pool);
    assert_int_equal(state_of(pool, id), PAWL_STATE_FAILED);
    assert_int_equal(rows(state), 2);
    assert_ok(pawl_close(pool));
}

/* Goal: a statement that was left open is reset: the commit goes through, and so does the next job. */
static void statements_left_open_are_reset(void **state)
{
    work w = { .effects = { { .sql = "SELECT 1 FROM pawl_jobs UNION ALL SELECT %lld", .leaves_open = true },
                            { .sql = INSERT } },
               .count = 2 };
    pawl_pool *pool = start_with(state, &w);
    for (int i = 1; i <= 3; i++) {
        int64_t id = put(pool, .kind = "k");
        run_idle(pool);
        assert_int_equal(w.effects[0].sql_result, SQLITE_ROW);
        assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
        assert_int_equal(rows(state), i);
    }
    assert_ok(pawl_close(pool));
}

/* Goal: calls that would wait for the writer, which is running this function, answer STATE (G2). */
static void calls_that_would_wait_answer_state(void **state)
{
    work w = { .effects = { { .sql = INSERT, .calls_pool = true } }, .count = 1 };
    pawl_pool *pool = start_with(state, &w);
    int64_t id = put(pool, .kind = "k");
    run_idle(pool);
    const effect *e = &w.effects[0];
    assert_int_equal(e->enqueued, PAWL_ERR_STATE);
    assert_int_equal(e->waited, PAWL_ERR_STATE);
    assert_int_equal(e->stopped, PAWL_ERR_STATE);
    assert_int_equal(e->opened, PAWL_ERR_STATE);
    assert_int_equal(e->heartbeat, PAWL_ERR_STATE);
    assert_int_equal(e->asked, PAWL_ERR_STATE);
    assert_int_equal(e->then, PAWL_ERR_STATE);
    assert_int_equal(e->more, PAWL_ERR_STATE);
    assert_int_equal(e->runs, 1);
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_close(pool));
}

/* What a drop function saw. */
typedef struct dropping {
    pawl_pool *pool;
    pawl_status enqueued, stopped;
    int64_t took_ms;
    gate dropped;
} dropping;

static pawl_status nothing_to_write(void *db, pawl_job *job, void *arg)
{
    (void)db;
    (void)job;
    (void)arg;
    return PAWL_OK;
}

static void enqueue_in_drop(void *arg)
{
    dropping *d = arg;
    int64_t began = steady_ms();
    d->enqueued = pawl_enqueue(d->pool, PAWL_JOB(.kind = "x"), NULL);
    d->stopped = pawl_stop(d->pool, 0);
    d->took_ms = steady_ms() - began;
    gate_add(&d->dropped, 1);
}

static int with_drop(pawl_job *job, void *arg)
{
    return pawl_job_on_success(job, nothing_to_write, arg, enqueue_in_drop) == PAWL_OK ? PAWL_SUCCEEDED
                                                                                       : PAWL_FAILED;
}

/* Goal: the same in a drop function, which the writer calls too: at once, not after store_timeout_ms (G2). */
static void calls_that_would_wait_answer_state_in_drop(void **state)
{
    dropping d = { .dropped = GATE_INIT };
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1, .store_timeout_ms = 15000);
    d.pool = pool;
    assert_ok(pawl_register(pool, "k", with_drop, &d, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "k");
    assert_true(gate_await(&d.dropped, 1));
    assert_int_equal(d.enqueued, PAWL_ERR_STATE);
    assert_int_equal(d.stopped, PAWL_ERR_STATE);
    assert_in_range(d.took_ms, 0, 5000);
    assert_ok(pawl_wait_idle(pool, 20000));
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_close(pool));
}

static int register_nothing(pawl_job *job, void *arg)
{
    pawl_status *answers = arg;
    effect dropped = { .drops = 0 };
    answers[0] = pawl_job_on_success(job, NULL, &dropped, drop_effect);
    answers[1] = dropped.drops == 0 ? PAWL_OK : PAWL_ERR_STATE;
    answers[2] = pawl_job_then(job, PAWL_JOB(.kind = ""));
    answers[3] = pawl_job_then(job, NULL);
    return PAWL_SUCCEEDED;
}

/* Goal: what cannot be accepted is refused at once, drop is not called, and the job goes on. */
static void bad_effects_are_refused_at_once(void **state)
{
    pawl_status answers[4];
    work unused = { .count = 0 };
    pawl_pool *pool = start_with(state, &unused);
    assert_ok(pawl_stop(pool, 0));
    assert_ok(pawl_register(pool, "none", register_nothing, answers, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "none");
    run_idle(pool);
    assert_int_equal(answers[0], PAWL_ERR_INVALID);
    assert_int_equal(answers[1], PAWL_OK);
    assert_int_equal(answers[2], PAWL_ERR_INVALID);
    assert_int_equal(answers[3], PAWL_ERR_INVALID);
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_close(pool));
}

/* The claim is taken away by its stuck timeout while the handler is out. */
static int lose_the_claim(pawl_job *job, void *arg)
{
    assert_ok(pawl_job_on_success(job, run_effect, arg, drop_effect));
    assert_ok(pawl_clock_advance(pawl_job_pool(job), 1000 + 60000));
    (void)put(pawl_job_pool(job), .kind = "nobody");
    return PAWL_SUCCEEDED;
}

/* Goal: a success that comes too late has no effects, and drops them once (I6, I19). */
static void a_lost_claim_has_no_effects(void **state)
{
    effect e = { .sql = INSERT };
    work unused = { .count = 0 };
    pawl_pool *pool = start_with(state, &unused);
    assert_ok(pawl_stop(pool, 0));
    assert_ok(pawl_register(pool, "slow", lose_the_claim, &e, PAWL_HANDLER(.timeout_ms = 1000)));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "slow", .max_attempts = 1);
    run_idle(pool);
    assert_int_equal(state_of(pool, id), PAWL_STATE_FAILED);
    assert_int_equal(e.runs, 0);
    assert_int_equal(e.drops, 1);
    assert_int_equal(rows(state), 0);
    assert_ok(pawl_close(pool));
}

/* Goal: while another connection holds the write lock the outcome waits in memory; the effect is written
 * once when the lock is free, uncharged by the wait (I19, W3). */
static void effects_wait_for_the_store(void **state)
{
    work w = { .effects = { { .sql = INSERT } }, .count = 1 };
    pawl_pool *pool = start_with(state, &w);
    int64_t id = put(pool, .kind = "k");
    bool progress;
    for (int i = 0; w.calls == 0 && i < 10; i++)
        assert_ok(pawl_step(pool, &progress));
    sqlite3 *db = sql_open(((temp *)*state)->path);
    sql_run(db, "BEGIN IMMEDIATE");
    for (int i = 0; i < 3; i++) {
        pawl_status st = pawl_step(pool, &progress);
        assert_true(st == PAWL_OK || st == PAWL_ERR_BUSY);
    }
    assert_int_equal(w.effects[0].drops, 0);
    assert_int_equal(state_of(pool, id), PAWL_STATE_RUNNING);
    sql_run(db, "COMMIT");
    sql_close(db);
    assert_ok(pawl_stop(pool, 1000));
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_int_equal(w.calls, 1);
    assert_int_equal(w.effects[0].drops, 1);
    assert_int_equal(rows(state), 1);
    assert_ok(pawl_close(pool));
}

/* ---------------------------------------------------------------------------------- then */

/* Goal: follow-on jobs exist exactly if the job succeeded, with all that their spec says (I19). */
static void followers_come_with_the_success_alone(void **state)
{
    static const int outcomes[] = { PAWL_SUCCEEDED, PAWL_FAILED, PAWL_CANCELLED };
    for (size_t i = 0; i < sizeof outcomes / sizeof outcomes[0]; i++) {
        work w = { .returns = outcomes[i],
                   .then = { PAWL_JOB(.kind = "next", .queue = "q", .payload = "pay", .payload_bytes = 3,
                                      .priority = 4, .max_attempts = 2),
                             PAWL_JOB(.kind = "next", .delay_ms = 5000) } };
        pawl_pool *pool = start_with(state, &w);
        (void)put(pool, .kind = "k");
        int64_t before = sql_ask(((temp *)*state)->path, "SELECT count(*) FROM pawl_jobs");
        run_idle(pool);
        int64_t more = sql_ask(((temp *)*state)->path, "SELECT count(*) FROM pawl_jobs") - before;
        assert_int_equal(more, outcomes[i] == PAWL_SUCCEEDED ? 2 : 0);
        assert_ok(pawl_close(pool));
    }
    assert_int_equal(sql_ask(((temp *)*state)->path,
                             "SELECT count(*) FROM pawl_jobs WHERE kind = 'next' AND queue = 'q'"
                             " AND payload = X'706179' AND priority = 4 AND max_attempts = 2"),
                     1);
}

/* Goal: a follower whose key is stored already counts as done: the job succeeds, nothing is stored twice. */
static void a_follower_with_a_stored_key_counts_as_done(void **state)
{
    const pawl_job_spec *next = PAWL_JOB(.kind = "next", .idempotency_key = "once",
                                         .idempotency_key_bytes = 4);
    work w = { .then = { next, next }, .effects = { { .sql = INSERT } }, .count = 1 };
    pawl_pool *pool = start_with(state, &w);
    int64_t a = put(pool, .kind = "k"), b = put(pool, .kind = "k");
    run_idle(pool);
    assert_int_equal(state_of(pool, a), PAWL_STATE_SUCCEEDED);
    assert_int_equal(state_of(pool, b), PAWL_STATE_SUCCEEDED);
    assert_int_equal(rows(state), 2);
    assert_int_equal(sql_ask(((temp *)*state)->path, "SELECT count(*) FROM pawl_jobs WHERE kind = 'next'"),
                     1);
    assert_ok(pawl_close(pool));
}

/* Goal: followers and functions share one savepoint: if a function fails there is no follower either (I19). */
static void followers_share_the_fate_of_the_effects(void **state)
{
    work w = { .then = { PAWL_JOB(.kind = "next") }, .effects = { { .answer = PAWL_ERR_INVALID } },
               .count = 1 };
    pawl_pool *pool = start_with(state, &w);
    (void)put(pool, .kind = "k", .max_attempts = 1);
    run_idle(pool);
    assert_int_equal(w.then_answer, PAWL_OK);
    assert_int_equal(sql_ask(((temp *)*state)->path, "SELECT count(*) FROM pawl_jobs"), 1);
    assert_ok(pawl_close(pool));
}

/* Goal: a follower is a job like any other: it runs, and the counters equal a recount (I20). */
static void a_follower_runs(void **state)
{
    work w = { .then = { PAWL_JOB(.kind = "next") } }, next = { .count = 0 };
    pawl_pool *pool = start_with(state, &w);
    assert_ok(pawl_stop(pool, 0));
    assert_ok(pawl_register(pool, "next", do_work, &next, NULL));
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "k");
    run_idle(pool);
    assert_int_equal(next.calls, 1);
    assert_int_equal(sql_ask(((temp *)*state)->path, "SELECT sum(enqueued) FROM pawl_lane"), 2);
    assert_int_equal(sql_ask(((temp *)*state)->path, "SELECT sum(succeeded) FROM pawl_lane"), 2);
    assert_ok(pawl_close(pool));
}

/* ---------------------------------------------------------------------------- enqueue_in */

/* Goal: the job exists exactly if the application's transaction commits (I18). */
static void enqueue_in_follows_the_transaction(void **state)
{
    temp *t = *state;
    work w = { .count = 0 };
    pawl_pool *pool = start_with(state, &w);
    sqlite3 *db = sql_open(t->path);
    int64_t lost, kept, inner, autocommitted;
    sql_run(db, "BEGIN IMMEDIATE; INSERT INTO done VALUES (1, 'lost')");
    assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), &lost));
    sql_run(db, "ROLLBACK");
    sql_run(db, "BEGIN IMMEDIATE; INSERT INTO done VALUES (2, 'kept')");
    assert_ok(pawl_enqueue_in(db, "main", PAWL_JOB(.kind = "k", .payload = "x", .payload_bytes = 1), &kept));
    sql_run(db, "SAVEPOINT inner");
    assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), &inner));
    sql_run(db, "ROLLBACK TO inner; RELEASE inner");
    assert_status(pawl_get(pool, kept, &(pawl_job_info)PAWL_JOB_INFO_INIT), PAWL_ERR_NOT_FOUND);
    sql_run(db, "COMMIT");
    assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k", .delay_ms = 1), &autocommitted));
    assert_int_equal(sqlite3_get_autocommit(db), 1);
    assert_int_equal(sql_integer(db, "SELECT count(*) FROM pawl_jobs"), 2);
    assert_int_equal(rows(state), 1);
    assert_int_equal(state_of(pool, kept), PAWL_STATE_PENDING);
    pawl_job_info info = job_of(pool, kept);
    assert_int_equal(info.max_attempts, 5);
    assert_int_equal(info.payload_bytes, 1);
    pawl_job_info_clear(&info);
    sql_close(db);
    assert_ok(pawl_clock_advance(pool, 60000));
    (void)put(pool, .kind = "k"); /* and the pool finds what came from outside */
    run_idle(pool);
    assert_int_equal(w.calls, 3);
    assert_int_equal(state_of(pool, autocommitted), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_close(pool));
    assert_int_equal(sql_ask(t->path, "SELECT sum(enqueued) - sum(succeeded) FROM pawl_lane"), 0);
}

/* Goal: the connection's last rowid stays the application's, whatever the answer is. */
static void enqueue_in_leaves_the_last_rowid_alone(void **state)
{
    temp *t = *state;
    pawl_pool *pool = open_pool(t, .executors = 1);
    sqlite3 *db = sql_open(t->path);
    int64_t first, second;
    sql_run(db, "CREATE TABLE orders (id INTEGER PRIMARY KEY)");
    sql_run(db, "INSERT INTO orders VALUES (4711)");
    assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "new kind", .queue = "new queue"), &first));
    assert_int_equal(sqlite3_last_insert_rowid(db), 4711);
    sql_run(db, "BEGIN; INSERT INTO orders VALUES (815)");
    assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "new kind", .queue = "new queue"), &second));
    assert_int_equal(sqlite3_last_insert_rowid(db), 815);
    sql_run(db, "COMMIT");
    assert_true(second > first);
    sql_run(db, "CREATE TRIGGER app_swallows BEFORE INSERT ON pawl_job BEGIN SELECT RAISE(IGNORE); END");
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "newer"), NULL), PAWL_ERR_STORE);
    assert_int_equal(sqlite3_last_insert_rowid(db), 815);
    sql_run(db, "DROP TRIGGER app_swallows; CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, kind);"
                "CREATE TRIGGER app_notes AFTER INSERT ON pawl_kind BEGIN INSERT INTO log (kind) VALUES (1); END");
    sql_run(db, "INSERT INTO orders VALUES (816)");
    assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "newest", .idempotency_key = "a",
                                                 .idempotency_key_bytes = 1), NULL));
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "newest", .idempotency_key = "a",
                                                     .idempotency_key_bytes = 1), NULL), PAWL_EXISTS);
    assert_int_equal(sqlite3_last_insert_rowid(db), 816);
    sql_close(db);
    assert_ok(pawl_close(pool));
}

/* Goal: keys hold through this door as well, in both directions (I16). */
static void enqueue_in_keeps_keys_unique(void **state)
{
    temp *t = *state;
    work w = { .count = 0 };
    pawl_pool *pool = start_with(state, &w);
    sqlite3 *db = sql_open(t->path);
    int64_t by_pool = put(pool, .kind = "k", .idempotency_key = "a", .idempotency_key_bytes = 1), id = 0;
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k", .queue = "other", .idempotency_key = "a",
                                                     .idempotency_key_bytes = 1), &id), PAWL_EXISTS);
    assert_int_equal(id, by_pool);
    assert_int_equal(sql_integer(db, "SELECT count(*) FROM pawl_lane WHERE queue = 'other'"), 0);
    int64_t by_db = 0;
    assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k", .idempotency_key = "\0", 
                                                 .idempotency_key_bytes = 1), &by_db));
    assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "k", .idempotency_key = "\0",
                                              .idempotency_key_bytes = 1), &id), PAWL_EXISTS);
    assert_int_equal(id, by_db);
    sql_close(db);
    assert_ok(pawl_close(pool));
}

/* Goal: a write that somebody's trigger swallows is not acknowledged (I1). */
static void enqueue_in_tells_of_a_swallowed_write(void **state)
{
    temp *t = *state;
    pawl_pool *pool = open_pool(t, .executors = 1);
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "CREATE TRIGGER app_swallows BEFORE INSERT ON pawl_job BEGIN SELECT RAISE(IGNORE); END");
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_STORE);
    assert_text_has(pawl_error_message(), "a trigger that is not pawl's");
    assert_int_equal(sql_integer(db, "SELECT count(*) FROM pawl_lane"), 0);
    sql_close(db);
    assert_ok(pawl_close(pool));
}

/* Goal: pawl's tables may stand in an attached database, under any name it was given (I18). */
static void enqueue_in_an_attached_database(void **state)
{
    temp *t = *state;
    work w = { .count = 0 };
    pawl_pool *pool = start_with(state, &w);
    sqlite3 *db = sql_open(temp_file(t, "own.db"));
    char *attach = sqlite3_mprintf("ATTACH %Q AS \"jo\"\"bs\"", t->path);
    sql_run(db, attach);
    sqlite3_free(attach);
    int64_t id;
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), &id), PAWL_ERR_INVALID);
    assert_text_has(pawl_error_message(), "main");
    assert_status(pawl_enqueue_in(db, "nowhere", PAWL_JOB(.kind = "k"), &id), PAWL_ERR_INVALID);
    assert_text_has(pawl_error_message(), "no database is attached as \"nowhere\"");
    sql_run(db, "BEGIN");
    assert_ok(pawl_enqueue_in(db, "jo\"bs", PAWL_JOB(.kind = "k"), &id));
    sql_run(db, "COMMIT");
    sql_close(db);
    assert_int_equal(state_of(pool, id), PAWL_STATE_PENDING);
    assert_ok(pawl_close(pool));
}

/* Goal: a failure leaves the application's transaction as it was, and says what to do (R1). */
static void enqueue_in_a_deferred_transaction_may_be_busy(void **state)
{
    temp *t = *state;
    work w = { .count = 0 };
    pawl_pool *pool = start_with(state, &w);
    sqlite3 *db = sql_open(t->path), *other = sql_open(t->path);
    (void)sqlite3_busy_timeout(db, 0);
    sql_run(db, "BEGIN");
    (void)sql_integer(db, "SELECT count(*) FROM done");
    sql_run(other, "INSERT INTO done VALUES (5, 'meanwhile')");
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_BUSY);
    assert_text_has(pawl_error_message(), "BEGIN IMMEDIATE");
    assert_int_equal(sqlite3_get_autocommit(db), 0);
    assert_int_equal(sql_integer(db, "SELECT count(*) FROM done"), 0); /* still its snapshot */
    sql_run(db, "ROLLBACK");
    sql_run(other, "BEGIN IMMEDIATE");
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_BUSY);
    sql_run(other, "ROLLBACK");
    assert_int_equal(sqlite3_get_autocommit(db), 1);
    assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL));
    sql_close(db);
    sql_close(other);
    assert_int_equal(sql_ask(t->path, "SELECT count(*) FROM pawl_jobs"), 1);
    assert_ok(pawl_close(pool));
}

/* A statement that has changed its rows, and is not at its end: no transaction is open, and yet it writes. */
static sqlite3_stmt *begin_returning(sqlite3 *db)
{
    sqlite3_stmt *row = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, "INSERT INTO done VALUES (1, 'a'), (2, 'b') RETURNING job", -1, &row,
                                        NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    return row;
}

/* Goal: in the loop over an INSERT … RETURNING nothing is begun, committed or undone: it would be the
 * application's rows that are lost (R4). */
static void enqueue_in_refuses_beside_a_statement_that_writes(void **state)
{
    static const char *const begins[] = { "SELECT 1", "BEGIN IMMEDIATE" }, *const ends[] = { "SELECT 1", "COMMIT" };
    temp *t = *state;
    work w = { .count = 0 };
    pawl_pool *pool = start_with(state, &w);
    sqlite3 *db = sql_open(t->path);
    for (int i = 0; i < 2; i++) {
        sql_run(db, begins[i]);
        sqlite3_stmt *row = begin_returning(db);
        assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_STATE);
        assert_text_has(pawl_error_message(), "finish or reset it first");
        assert_int_equal(sqlite3_step(row), SQLITE_ROW);
        assert_int_equal(sqlite3_step(row), SQLITE_DONE);
        assert_int_equal(sqlite3_finalize(row), SQLITE_OK);
        assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL));
        sql_run(db, ends[i]);
        assert_int_equal(sqlite3_get_autocommit(db), 1);
        assert_int_equal(rows(state), 2);
        sql_run(db, "DELETE FROM done");
    }
    assert_int_equal(sql_integer(db, "SELECT count(*) FROM pawl_jobs"), 2);
    sql_close(db);
    assert_ok(pawl_close(pool));
}

/* Goal: nor while a blob of the application's is open for writing, or a PRAGMA that writes was left open. */
static void enqueue_in_refuses_beside_other_writers(void **state)
{
    temp *t = *state;
    work w = { .count = 0 };
    pawl_pool *pool = start_with(state, &w);
    sqlite3 *db = sql_open(t->path);
    sqlite3_blob *blob = NULL;
    sqlite3_stmt *row = NULL;
    sql_run(db, "INSERT INTO done VALUES (1, 'old')");
    assert_int_equal(sqlite3_blob_open(db, "main", "done", "note", 1, 1, &blob), SQLITE_OK);
    assert_int_equal(sqlite3_blob_write(blob, "new", 3, 0), SQLITE_OK);
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_STATE);
    assert_int_equal(sqlite3_blob_close(blob), SQLITE_OK);
    assert_int_equal(sql_integer(db, "SELECT count(*) FROM done WHERE note = 'new'"), 1);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA journal_mode = WAL", -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_STATE);
    assert_int_equal(sqlite3_finalize(row), SQLITE_OK);
    assert_int_equal(sqlite3_get_autocommit(db), 1);
    assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL));
    sql_close(db);
    assert_ok(pawl_close(pool));
}

/* Goal: where SQLite gives the application's transaction up, it is said: what follows would commit alone (R4). */
static void enqueue_in_tells_of_a_lost_transaction(void **state)
{
    static const char big[100000];
    temp *t = *state;
    work w = { .count = 0 };
    pawl_pool *pool = start_with(state, &w);
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "PRAGMA max_page_count = 1"); /* no room: it stays at what there is */
    sql_run(db, "BEGIN IMMEDIATE; INSERT INTO done VALUES (1, 'mine')");
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k", .payload = big, .payload_bytes = sizeof big), NULL),
                  PAWL_ERR_FULL);
    assert_text_has(pawl_error_message(), "free some disk space");
    assert_int_equal(sqlite3_get_autocommit(db), 1);
    assert_text_has(pawl_error_message(), "rolled back your whole transaction");
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k", .payload = big, .payload_bytes = sizeof big), NULL),
                  PAWL_ERR_FULL);
    assert_null(strstr(pawl_error_message(), "your whole transaction")); /* there was none */
    sql_close(db);
    assert_int_equal(rows(state), 0);
    assert_int_equal(sql_ask(t->path, "SELECT count(*) FROM pawl_jobs"), 0);
    assert_ok(pawl_close(pool));
}

static int refuse_commit(void *arg)
{
    return ++*(int *)arg;
}

/* Goal: the application's commit hook may refuse; it is no secret then that nothing was stored. */
static void enqueue_in_heeds_a_commit_hook(void **state)
{
    temp *t = *state;
    pawl_pool *pool = open_pool(t, .executors = 1);
    sqlite3 *db = sql_open(t->path);
    int asked = 0;
    (void)sqlite3_commit_hook(db, refuse_commit, &asked);
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_STORE);
    assert_int_equal(asked, 1);
    assert_int_equal(sqlite3_get_autocommit(db), 1);
    assert_int_equal(sql_integer(db, "SELECT count(*) FROM pawl_jobs"), 0);
    sql_close(db);
    assert_ok(pawl_close(pool));
}

/* Goal: an own SELECT that has grown old is named, where BEGIN IMMEDIATE could not help. */
static void enqueue_in_names_an_own_select(void **state)
{
    temp *t = *state;
    work w = { .count = 0 };
    pawl_pool *pool = start_with(state, &w);
    sqlite3 *db = sql_open(t->path), *other = sql_open(t->path);
    sqlite3_stmt *row = NULL;
    (void)sqlite3_busy_timeout(db, 0);
    sql_run(other, "INSERT INTO done VALUES (1, 'a'), (2, 'b')");
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT job FROM done", -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL)); /* it harms nobody … */
    sql_run(other, "INSERT INTO done VALUES (5, 'meanwhile')");          /* … until others write */
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_BUSY);
    assert_text_has(pawl_error_message(), "finish or reset the SELECT");
    assert_int_equal(sqlite3_step(row), SQLITE_ROW); /* it goes on */
    assert_int_equal(sqlite3_finalize(row), SQLITE_OK);
    assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL));
    sql_run(other, "BEGIN IMMEDIATE");
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_BUSY);
    assert_text_has(pawl_error_message(), "set a busy_timeout");
    sql_run(other, "ROLLBACK");
    sql_close(other);
    sql_close(db);
    assert_ok(pawl_close(pool));
}

/* Goal: a connection that may not write says what to do. */
static void enqueue_in_tells_of_a_connection_that_only_reads(void **state)
{
    temp *t = *state;
    pawl_pool *pool = open_pool(t, .executors = 1);
    sqlite3 *db = sql_open(t->path), *reader = NULL;
    sql_run(db, "PRAGMA query_only = ON");
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_STORE);
    assert_text_has(pawl_error_message(), "query_only = OFF");
    sql_run(db, "PRAGMA query_only = OFF");
    assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL));
    assert_int_equal(sqlite3_open_v2(t->path, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_status(pawl_enqueue_in(reader, NULL, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_STORE);
    assert_text_has(pawl_error_message(), "opened it for reading only");
    sql_close(reader);
    sql_close(db);
    assert_ok(pawl_close(pool));
}

static int deny_pragmas(void *arg, int action, const char *first, const char *second, const char *schema,
                        const char *trigger)
{
    (void)arg;
    (void)first;
    (void)second;
    (void)schema;
    (void)trigger;
    return action == SQLITE_PRAGMA ? SQLITE_DENY : SQLITE_OK;
}

/* Goal: an authorizer that allows what a job needs, and no PRAGMA, is no reason to refuse the job. */
static void enqueue_in_needs_no_pragma(void **state)
{
    temp *t = *state;
    pawl_pool *pool = open_pool(t, .executors = 1);
    sqlite3 *db = sql_open(t->path);
    assert_int_equal(sqlite3_set_authorizer(db, deny_pragmas, NULL), SQLITE_OK);
    assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL));
    assert_int_equal(sql_integer(db, "SELECT count(*) FROM pawl_jobs"), 1);
    sql_close(db);
    assert_ok(pawl_close(pool));
}

/* Goal: bad arguments are refused with nothing begun; the transaction goes on as if nothing had happened. */
static void enqueue_in_refuses_bad_specs(void **state)
{
    temp *t = *state;
    work w = { .count = 0 };
    pawl_pool *pool = start_with(state, &w);
    sqlite3 *db = sql_open(t->path);
    assert_status(pawl_enqueue_in(NULL, NULL, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_INVALID);
    assert_status(pawl_enqueue_in(db, NULL, NULL, NULL), PAWL_ERR_INVALID);
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = NULL), NULL), PAWL_ERR_INVALID);
    sql_run(db, "BEGIN IMMEDIATE; INSERT INTO done VALUES (3, 'mine')");
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k", .delay_ms = -1), NULL), PAWL_ERR_INVALID);
    sql_run(db, "COMMIT");
    assert_int_equal(rows(state), 1);
    assert_int_equal(sql_integer(db, "SELECT count(*) FROM pawl_jobs"), 0);
    sql_close(db);
    assert_ok(pawl_close(pool));
}

/* ------------------------------------------------------------------------------- db_open */

static void twice(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    sqlite3_result_int64(context, 2 * sqlite3_value_int64(argv[0]));
}

static pawl_status add_function(void *db, void *arg)
{
    ++*(int *)arg;
    return sqlite3_create_function(db, "twice", 1, SQLITE_UTF8, NULL, twice, NULL, NULL) == SQLITE_OK
               ? PAWL_OK
               : PAWL_ERR_STORE;
}

/* Goal: the application's own SQL functions are there for its effects. */
static void db_open_registers_own_functions(void **state)
{
    temp *t = *state;
    int opened = 0;
    work w = { .effects = { { .sql = "INSERT INTO done (job) VALUES (twice(%lld))" } }, .count = 1 };
    pawl_pool *pool = open_inline(t, .db_open = add_function, .db_open_arg = &opened);
    assert_true(opened >= 1);
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "CREATE TABLE done (job INTEGER PRIMARY KEY, note TEXT)");
    assert_ok(pawl_register(pool, "k", do_work, &w, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "k");
    run_idle(pool);
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_int_equal(sql_integer(db, "SELECT job FROM done"), 2 * id);
    sql_close(db);
    assert_ok(pawl_close(pool));
}

static pawl_status refuse(void *db, void *arg)
{
    (void)db;
    (void)arg;
    return PAWL_ERR_VERSION;
}

/* Goal: the application may refuse the open; the status is its own. */
static void db_open_may_refuse(void **state)
{
    temp *t = *state;
    pawl_pool *pool = NULL;
    assert_status(pawl_open(PAWL_OPTIONS(.store = t->path, .db_open = refuse), &pool), PAWL_ERR_VERSION);
    assert_null(pool);
    assert_text_has(pawl_error_message(), t->path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    TEST(effects_are_there_exactly_with_the_success),
    TEST(a_failing_effect_harms_nobody_else),
    TEST(a_failing_effect_uses_up_attempts),
    TEST(effects_run_in_order),
    TEST(effects_may_not_touch_the_transaction_or_pawls_tables),
    TEST(effects_may_do_the_rest),
    TEST(columns_and_full_text_are_the_applications),
    TEST(a_constraint_is_named),
    TEST(a_refusal_alone_fails_nothing),
    TEST(an_effect_that_rolls_everything_back_fails_alone),
    TEST(nothing_outlives_an_effect_that_rolled_back),
    TEST(an_effects_own_lock_is_its_own_failure),
    TEST(statements_left_open_are_reset),
    TEST(calls_that_would_wait_answer_state),
    TEST(calls_that_would_wait_answer_state_in_drop),
    TEST(bad_effects_are_refused_at_once),
    TEST(a_lost_claim_has_no_effects),
    TEST(effects_wait_for_the_store),
    TEST(followers_come_with_the_success_alone),
    TEST(a_follower_with_a_stored_key_counts_as_done),
    TEST(followers_share_the_fate_of_the_effects),
    TEST(a_follower_runs),
    TEST(enqueue_in_follows_the_transaction),
    TEST(enqueue_in_keeps_keys_unique),
    TEST(enqueue_in_leaves_the_last_rowid_alone),
    TEST(enqueue_in_tells_of_a_swallowed_write),
    TEST(enqueue_in_an_attached_database),
    TEST(enqueue_in_a_deferred_transaction_may_be_busy),
    TEST(enqueue_in_refuses_beside_a_statement_that_writes),
    TEST(enqueue_in_refuses_beside_other_writers),
    TEST(enqueue_in_names_an_own_select),
    TEST(enqueue_in_tells_of_a_connection_that_only_reads),
    TEST(enqueue_in_needs_no_pragma),
    TEST(enqueue_in_tells_of_a_lost_transaction),
    TEST(enqueue_in_heeds_a_commit_hook),
    TEST(enqueue_in_refuses_bad_specs),
    TEST(db_open_registers_own_functions),
    TEST(db_open_may_refuse),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
