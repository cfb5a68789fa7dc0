/* sql_model_test.c - some 20 000 random statements through the view pawl_jobs, in every OR form, also while a
 * job runs, beside a model in C that says of each whether it is refused and what it does. The counters equal a
 * recount all along (I20), and the pool works through what is left. */
#include "check.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "look.h"
#include "patience.h"

#define STATEMENTS 20000
#define JOBS_MAX 20000
#define FAR INT64_C(4102444800000) /* FAR and FAR + 1 are the times of jobs that wait for long */

typedef struct model_job {
    pawl_state state;
    int kind, key; /* key 0: none */
    int priority, payload;
    int64_t at; /* FAR or FAR + 1; 0: another time */
    bool later, cancel;
} model_job;

typedef struct model {
    model_job jobs[JOBS_MAX + 1]; /* by id */
    int64_t count, last, cancels;
} model;

/* Statements are prepared once, as an application does. */
typedef struct cached {
    char sql[256];
    sqlite3_stmt *statement;
} cached;
#define CACHED_MAX 4096

typedef struct driver {
    temp *t;
    pawl_pool *pool;
    sqlite3 *db;
    uint64_t seed;
    model now, saved;
    bool in_savepoint;
    int done, refused, ran;
    cached statements[CACHED_MAX];
    size_t statement_count;
} driver;

static int below(driver *d, int n)
{
    return (int)(next_random(&d->seed) % (uint64_t)n);
}

static const char *any_form(driver *d)
{
    static const char *const forms[] = { "", "", "OR ABORT ", "OR FAIL ", "OR IGNORE ", "OR REPLACE ", "OR ROLLBACK " };
    return forms[below(d, 7)];
}

/* ------------------------------------------------------------------------------ values */

typedef struct a_time {
    const char *sql;
    bool valid, is_null;
    int64_t at;
} a_time;

static a_time any_time(driver *d)
{
    static const a_time times[] = {
        { "NULL", true, true, 0 },       { "'2100-01-01'", true, false, FAR },
        { "4102444800000", true, false, FAR }, { "'2100-01-01 00:00:00.001'", true, false, FAR + 1 },
        { "4102444800001.0", true, false, FAR + 1 }, { "'2000-02-29 10:00'", true, false, 0 },
        /* To the millisecond: the same second may be what the job has already, and then nothing changes. */
        { "strftime('%Y-%m-%d %H:%M:%f', 'now')", true, false, 0 }, { "'2026-02-31'", false, false, 0 },
        { "1700000000", false, false, 0 },
    };
    return times[below(d, 9)];
}

static const char *any_priority(driver *d, int *value, bool *valid)
{
    static const struct {
        const char *sql;
        int value;
        bool valid;
    } priorities[] = { { "0", 0, true }, { "1", 1, true }, { "-7", -7, true }, { "2.0", 2, true }, { "'high'", 0, false } };
    int i = below(d, 5);
    *value = priorities[i].value;
    *valid = priorities[i].valid;
    return priorities[i].sql;
}

/* --------------------------------------------------------------------------- statements */

static sqlite3_stmt *prepared(driver *d, const char *sql)
{
    for (size_t i = 0; i < d->statement_count; i++)
        if (strcmp(d->statements[i].sql, sql) == 0)
            return d->statements[i].statement;
    assert_true(d->statement_count < CACHED_MAX && strlen(sql) < sizeof d->statements[0].sql);
    cached *c = &d->statements[d->statement_count++];
    (void)snprintf(c->sql, sizeof c->sql, "%s", sql);
    if (sqlite3_prepare_v2(d->db, sql, -1, &c->statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(d->db));
    return c->statement;
}

/* ?1 is a job's id, ?2 a payload, ?3 a key: an odd one is text, an even one its digits. */
static void bind(sqlite3_stmt *statement, int64_t id, int payload, int key)
{
    char text[16];
    (void)sqlite3_clear_bindings(statement);
    (void)sqlite3_bind_int64(statement, 1, id);
    (void)sqlite3_bind_int(statement, 2, payload);
    (void)snprintf(text, sizeof text, "k%d", key);
    if (key % 2 == 1)
        (void)sqlite3_bind_text(statement, 3, text, -1, SQLITE_TRANSIENT);
    else if (key != 0)
        (void)sqlite3_bind_int(statement, 3, key);
}

static void execute(driver *d, const char *sql, int64_t id, int payload, int key, bool refused)
{
    sqlite3_stmt *statement = prepared(d, sql);
    bind(statement, id, payload, key);
    (void)sqlite3_step(statement);
    int rc = sqlite3_reset(statement);
    const char *message = sqlite3_errmsg(d->db);
    if ((rc & 0xFF) != (refused ? SQLITE_CONSTRAINT : SQLITE_OK) || (refused && strncmp(message, "pawl: ", 6) != 0))
        fail_msg("%s, %" PRId64 ", %d, %d\n  answered %d: %s\n  it ought to be %s", sql, id, payload, key, rc, message,
                 refused ? "refused" : "done");
    d->done++;
    d->refused += refused;
}

static int64_t find_key(const model *m, int kind, int key)
{
    for (int64_t id = 1; key != 0 && id <= m->count; id++)
        if (m->jobs[id].kind == kind && m->jobs[id].key == key)
            return id;
    return 0;
}

static void insert(driver *d)
{
    char sql[256];
    int kind = below(d, 3), key = below(d, 2) * (1 + below(d, 200)), payload = below(d, 5), priority;
    bool valid;
    const char *priority_sql = any_priority(d, &priority, &valid);
    a_time time = any_time(d);
    (void)snprintf(sql, sizeof sql, "INSERT %sINTO pawl_jobs (kind, queue, payload, priority, available_at,"
                                    " idempotency_key) VALUES ('kind%d', %s, ?2, %s, %s, ?3)",
                   any_form(d), kind, below(d, 2) ? "NULL" : "'q'", priority_sql, time.sql);
    execute(d, sql, 0, payload, key, !valid || !time.valid);
    if (!valid || !time.valid)
        return;
    model *m = &d->now;
    m->last = find_key(m, kind, key);
    if (m->last == 0) {
        m->last = ++m->count;
        assert_true(m->count <= JOBS_MAX);
        m->jobs[m->last] = (model_job){ .kind = kind, .key = key, .priority = priority, .payload = payload,
                                        .at = time.at, .later = time.at != 0 };
    }
    if (sql_integer(d->db, "SELECT id FROM pawl_last") != m->last)
        fail_msg("%s\n  pawl_last is not %" PRId64, sql, m->last);
}

/* Priority, payload and time, each or not. */
static void change_job(driver *d, int64_t id, model_job *job)
{
    char sql[256], set[128] = "";
    int priority = job->priority, payload = job->payload, what = 1 + below(d, 7);
    bool valid = true, changed = false;
    a_time time = { .valid = true };
    const char *priority_sql = "";
    if (what & 1)
        priority_sql = any_priority(d, &priority, &valid);
    if (what & 2)
        payload = below(d, 5);
    if (what & 4)
        time = any_time(d);
    bool time_valid = time.valid && !time.is_null;
    (void)snprintf(set, sizeof set, "%s%s%s", what & 1 ? ", priority = " : "", priority_sql,
                   what & 4 ? ", available_at = " : "");
    if (what & 4)
        (void)snprintf(set + strlen(set), sizeof set - strlen(set), "%s", time.sql);
    if (what & 2)
        (void)snprintf(set + strlen(set), sizeof set - strlen(set), ", payload = ?2");
    (void)snprintf(sql, sizeof sql, "UPDATE %spawl_jobs SET %s WHERE id = ?1", any_form(d), set + 2);
    bool time_changed = (what & 4) && (!time_valid || time.at == 0 || time.at != job->at);
    changed = ((what & 1) && (!valid || priority != job->priority)) || payload != job->payload || time_changed;
    bool refused = id <= d->now.count && changed
                   && (job->state != PAWL_STATE_PENDING || !valid || ((what & 4) && !time_valid));
    execute(d, sql, id, payload, 0, refused);
    if (refused || id > d->now.count || !changed)
        return;
    job->priority = priority;
    job->payload = payload;
    if (time_changed) {
        job->at = time.at;
        job->later = time.at != 0;
    }
}

/* What a status that is set alone does to a job. True: refused. */
static bool apply_status(model *m, model_job *job, pawl_state to)
{
    if (to == job->state)
        return false;
    if (to == PAWL_STATE_CANCELLED && job->state == PAWL_STATE_PENDING) {
        job->state = PAWL_STATE_CANCELLED;
    } else if (to == PAWL_STATE_CANCELLED && job->state == PAWL_STATE_RUNNING) {
        m->cancels += !job->cancel;
        job->cancel = true;
    } else if (to == PAWL_STATE_PENDING
               && (job->state == PAWL_STATE_FAILED || job->state == PAWL_STATE_CANCELLED)) {
        *job = (model_job){ .kind = job->kind, .key = job->key, .priority = job->priority,
                            .payload = job->payload };
    } else {
        return true;
    }
    return false;
}

static void set_status(driver *d, int64_t id, model_job *job)
{
    static const pawl_state targets[] = { PAWL_STATE_CANCELLED, PAWL_STATE_CANCELLED, PAWL_STATE_PENDING,
                                          PAWL_STATE_PENDING, PAWL_STATE_RUNNING, PAWL_STATE_SUCCEEDED };
    char sql[256];
    pawl_state to = targets[below(d, 6)];
    bool mixed = below(d, 8) == 0, exists = id <= d->now.count;
    (void)snprintf(sql, sizeof sql, "UPDATE %spawl_jobs SET status = '%s'%s WHERE id = ?1", any_form(d),
                   pawl_state_name(to), mixed ? ", idempotency_key = 'never'" : "");
    execute(d, sql, id, 0, 0, exists && (mixed || apply_status(&d->now, job, to)));
}

static void forbidden(driver *d, int64_t id)
{
    static const char *const sql[] = {
        "INSERT %sINTO pawl_jobs (id, kind) VALUES (?1, 'kind0')",
        "INSERT %sINTO pawl_jobs SELECT * FROM pawl_jobs WHERE id = ?1",
        "UPDATE %spawl_jobs SET id = id + 1 WHERE id = ?1",
        "UPDATE %spawl_jobs SET attempts = attempts + 1 WHERE id = ?1",
    };
    char text[256];
    int i = below(d, 4);
    if (id > d->now.count)
        return;
    (void)snprintf(text, sizeof text, sql[i], any_form(d));
    execute(d, text, id, 0, 0, true);
}

/* ------------------------------------------------------------------------------- the run */

static void compare(driver *d)
{
    sqlite3_stmt *row;
    int64_t count = 0;
    assert_int_equal(sqlite3_prepare_v2(d->db, "SELECT id, status, priority, payload, cancel, available_at FROM pawl_job"
                                               " ORDER BY id", -1, &row, NULL), SQLITE_OK);
    while (sqlite3_step(row) == SQLITE_ROW) {
        static const int codes[] = { 2, 3, 4, 5, 6 };
        int64_t id = sqlite3_column_int64(row, 0), at = sqlite3_column_int64(row, 5);
        const model_job *job = &d->now.jobs[id];
        int status = job->state == PAWL_STATE_PENDING && job->later ? 8 : codes[job->state];
        if (sqlite3_column_int(row, 1) != status || sqlite3_column_int(row, 2) != job->priority
            || sqlite3_column_int(row, 3) != job->payload
            || (status == 3 && (sqlite3_column_int(row, 4) != 0) != job->cancel) || (job->at != 0 && at != job->at))
            fail_msg("job %" PRId64 " is %d %d %d %d %" PRId64 ", the model has %d %d %d %d %" PRId64, id,
                     sqlite3_column_int(row, 1), sqlite3_column_int(row, 2), sqlite3_column_int(row, 3),
                     sqlite3_column_int(row, 4), at, status, job->priority, job->payload, job->cancel, job->at);
        count++;
    }
    (void)sqlite3_finalize(row);
    assert_int_equal(count, d->now.count);
    assert_int_equal(sql_integer(d->db, "SELECT ifnull(sum(cancels), 0) FROM pawl_holder"), d->now.cancels);
}

static void step(driver *d)
{
    int64_t id = 1 + below(d, (int)d->now.count + 1); /* or one that is not there */
    int what = below(d, 100);
    if (what < 8)
        insert(d);
    else if (what < 50)
        change_job(d, id, &d->now.jobs[id]);
    else if (what < 90)
        set_status(d, id, &d->now.jobs[id]);
    else if (what < 94)
        forbidden(d, id);
    else if (what < 97 && !d->in_savepoint) {
        d->saved = d->now;
        d->in_savepoint = true;
        sql_run(d->db, "SAVEPOINT s");
    } else if (d->in_savepoint) {
        d->in_savepoint = false;
        if (below(d, 2)) {
            sql_run(d->db, "RELEASE s");
        } else {
            sql_run(d->db, "ROLLBACK TO s; RELEASE s");
            d->now = d->saved;
        }
    }
}

static void run_statements(driver *d, int count)
{
    for (int i = 0; i < count; i++)
        step(d);
    if (d->in_savepoint)
        sql_run(d->db, "RELEASE s");
    d->in_savepoint = false;
    compare(d);
}

/* The pool's own moves are read back through C. */
static void read_back(driver *d)
{
    for (int64_t id = 1; id <= d->now.count; id++) {
        model_job *job = &d->now.jobs[id];
        if (job->state != PAWL_STATE_RUNNING && (job->state != PAWL_STATE_PENDING || job->later))
            continue;
        pawl_job_info info = job_of(d->pool, id);
        job->state = info.state;
        job->cancel = info.cancel_requested;
        pawl_job_info_clear(&info);
    }
}

static int run_job(pawl_job *job, void *arg)
{
    driver *d = arg;
    d->ran++;
    if (d->done < STATEMENTS) {
        read_back(d);
        run_statements(d, 40); /* while it runs */
    }
    pawl_job_error(job, "told to");
    return below(d, 2) ? PAWL_SUCCEEDED : PAWL_FAILED;
}

/* Goal: every statement is refused or done as the model says, and nothing else has changed than it says. */
static void random_statements_do_what_the_model_does(void **state)
{
    static driver d;
    char kind[16];
    int round = 0;
    memset(&d, 0, sizeof d);
    d.t = *state;
    d.seed = test_seed();
    d.pool = open_inline(d.t, .executors = 1);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(kind, sizeof kind, "kind%d", i);
        assert_ok(pawl_register(d.pool, kind, run_job, &d, NULL));
    }
    assert_ok(pawl_start(d.pool));
    d.db = sql_open(d.t->path);
    sql_run(d.db, "PRAGMA synchronous = OFF");
    while (d.done < STATEMENTS) {
        bool progress;
        run_statements(&d, 60);
        assert_ok(pawl_step(d.pool, &progress));
        read_back(&d);
        if (++round % 16 == 0)
            assert_counters_are_right(d.t->path);
    }
    print_message("%d statements, %d refused, %" PRId64 " jobs, %d ran meanwhile\n", d.done, d.refused, d.now.count,
                  d.ran);
    assert_true(d.refused > STATEMENTS / 10 && d.ran > 50);
    sql_run(d.db, "UPDATE pawl_jobs SET available_at = datetime('now') WHERE status = 'pending'");
    assert_ok(pawl_run_until_idle(d.pool));
    assert_int_equal(sql_integer(d.db, "SELECT count(*) FROM pawl_job WHERE status IN (2, 3, 7, 8)"), 0);
    for (size_t i = 0; i < d.statement_count; i++)
        (void)sqlite3_finalize(d.statements[i].statement);
    sql_close(d.db);
    assert_ok(pawl_close(d.pool));
    assert_counters_are_right(d.t->path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(random_statements_do_what_the_model_does, temp_setup, temp_teardown),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
