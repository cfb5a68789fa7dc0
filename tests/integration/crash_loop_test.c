/* crash_loop_test.c - twenty rounds of a process that enqueues and works until it is killed.
 *
 * Goal: what was acknowledged is stored, once, with its bytes, and runs to its end (I1, I2, I16); what
 * was asked and not answered is there whole or not at all, and asked again it is one row (I3); fences
 * only grow (I5). The history is a file beside the database, appended to before and after each call. */
#include "check.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "history.h"
#include "look.h"
#include "patience.h"

#define ROUNDS 20
#define LIFE_MS_MAX 120

static int log_and_run(pawl_job *job, void *arg)
{
    (void)arg;
    (void)job;
    return PAWL_SUCCEEDED;
}

static void live_and_die(const temp *t, const char *log, uint64_t *seed)
{
    char run_seed[32];
    child worker;
    (void)snprintf(run_seed, sizeof run_seed, "%" PRIu64, next_random(seed) >> 1);
    child_start(&worker, (const char *const[]){ "loop", t->path, log, run_seed, NULL });
    /* Now and then it is killed while it opens, or rescues. */
    if (next_random(seed) % 4 != 0)
        assert_true(child_says(&worker, "ready", NULL, 0, 20000));
    nap_ms((int64_t)(next_random(seed) % LIFE_MS_MAX));
    child_close(&worker);
}

/* ------------------------------------------------------------------------- the history */

typedef struct lines {
    char *text;
    char *at;
} lines;

static lines read_lines(const char *path)
{
    FILE *file = fopen(path, "re");
    lines l = { NULL, NULL };
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long bytes = ftell(file);
    rewind(file);
    l.text = l.at = malloc((size_t)bytes + 1);
    assert_non_null(l.text);
    assert_int_equal(fread(l.text, 1, (size_t)bytes, file), bytes);
    l.text[bytes] = '\0';
    (void)fclose(file);
    return l;
}

static char *next_line(lines *l)
{
    char *line = l->at, *end = strchr(line, '\n');
    if (end == NULL)
        return NULL; /* a line that was being written when its writer died */
    *end = '\0';
    l->at = end + 1;
    return line;
}

/* I3: every key is asked for again; it is one row, and those that had an answer keep their id. */
static void ask_again(pawl_pool *pool, const char *log, int64_t *tries)
{
    lines l = read_lines(log);
    for (char *line; (line = next_line(&l)) != NULL;) {
        char key[HISTORY_KEY_BYTES], payload[HISTORY_PAYLOAD_BYTES];
        if (sscanf(line, "try %63s", key) != 1)
            continue;
        size_t bytes = history_payload(key, payload);
        pawl_status st = pawl_enqueue_async(pool, PAWL_JOB(.kind = "log", .payload = payload,
                                                           .payload_bytes = bytes,
                                                           .idempotency_key = key,
                                                           .idempotency_key_bytes = strlen(key)),
                                            NULL, NULL);
        assert_int_equal(st, PAWL_OK);
        if (++*tries % 5000 == 0)
            assert_ok(pawl_wait_idle(pool, 30000));
    }
    free(l.text);
}

/* Reads the file into a table of the finished database, to be asked in SQL. */
static void load_history(const temp *t, const char *log)
{
    char quoted[1024];
    lines l = read_lines(log);
    change(t->path, "CREATE TABLE told (at INTEGER PRIMARY KEY, what TEXT, id INTEGER, fence INTEGER,"
                    " text TEXT)");
    struct sqlite3 *db = sql_open(t->path);
    sql_run(db, "BEGIN IMMEDIATE");
    for (char *line; (line = next_line(&l)) != NULL;) {
        char what[8], text[512] = "";
        int64_t id = 0;
        uint64_t fence = 0;
        unsigned attempt;
        if (sscanf(line, "try %511s", text) == 1)
            (void)snprintf(what, sizeof what, "try");
        else if (sscanf(line, "ok %" SCNd64 " %511s", &id, text) == 2)
            (void)snprintf(what, sizeof what, "ok");
        else if (sscanf(line, "run %" SCNd64 " %" SCNu64 " %u %511s", &id, &fence, &attempt, text) == 4)
            (void)snprintf(what, sizeof what, "run");
        else
            fail_msg("a line of the history is no line of ours: %s", line);
        (void)snprintf(quoted, sizeof quoted,
                       "INSERT INTO told (what, id, fence, text) VALUES ('%s', %" PRId64 ", %" PRIu64
                       ", '%s')", what, id, fence, text);
        sql_run(db, quoted);
    }
    sql_run(db, "COMMIT");
    sql_run(db, "CREATE INDEX told_id ON told (what, id)");
    sql_run(db, "CREATE INDEX told_text ON told (what, text)");
    sql_close(db);
    free(l.text);
}

static void check_history(const temp *t, int64_t tries)
{
    static const struct {
        const char *what, *sql;
    } never[] = {
        { "I1 an acknowledged job is not stored under its id, with its key",
          "SELECT count(*) FROM told o LEFT JOIN pawl_jobs j ON j.id = o.id WHERE o.what = 'ok'"
          " AND (j.id IS NULL OR CAST(j.idempotency_key AS TEXT) <> o.text)" },
        { "I1 a job was acknowledged twice",
          "SELECT count(*) FROM (SELECT 1 FROM told WHERE what = 'ok' GROUP BY id"
          " HAVING count(*) > 1)" },
        { "I2 a stored job was never asked for",
          "SELECT count(*) FROM pawl_jobs j WHERE NOT EXISTS (SELECT 1 FROM told WHERE what = 'try'"
          " AND text = CAST(j.idempotency_key AS TEXT))" },
        { "I2 the bytes are others than those of the key",
          "SELECT count(*) FROM pawl_jobs WHERE instr(CAST(payload AS TEXT),"
          " '<' || CAST(idempotency_key AS TEXT) || '|' || length(idempotency_key) || '|') <> 1" },
        { "I2 a handler ran what is not stored, or with other bytes",
          "SELECT count(*) FROM told r LEFT JOIN pawl_jobs j ON j.id = r.id WHERE r.what = 'run'"
          " AND (j.id IS NULL OR CAST(j.payload AS TEXT) <> r.text)" },
        { "I3, I16 a key has more than one row",
          "SELECT count(*) FROM (SELECT 1 FROM pawl_jobs GROUP BY idempotency_key"
          " HAVING count(*) > 1)" },
        { "I5 a fence did not grow",
          "SELECT count(*) FROM told a JOIN told b ON b.what = 'run' AND b.id = a.id AND b.at > a.at"
          " WHERE a.what = 'run' AND b.fence <= a.fence" },
        { "a job did not succeed", "SELECT count(*) FROM pawl_jobs WHERE status <> 'succeeded'" },
        { "I9 more attempts than allowed", "SELECT count(*) FROM pawl_jobs WHERE attempts > max_attempts" },
    };
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        int64_t times = sql_ask(t->path, never[i].sql);
        if (times != 0)
            print_error("%s: %" PRId64 " times\n", never[i].what, times);
        assert_int_equal(times, 0);
    }
    assert_int_equal(sql_ask(t->path, "SELECT count(*) FROM pawl_jobs"), tries);
}

static bool all_succeeded(void *arg)
{
    return sql_ask(arg, "SELECT count(*) FROM pawl_jobs WHERE status <> 'succeeded'") == 0;
}

static void nothing_acknowledged_is_lost(void **state)
{
    const temp *t = *state;
    char log[400];
    int64_t tries = 0;
    uint64_t seed = test_seed();
    (void)snprintf(log, sizeof log, "%s/history", t->directory);
    for (int i = 0; i < ROUNDS; i++)
        live_and_die(t, log, &seed);
    pawl_pool *pool = open_pool(t, .executors = 2, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    assert_ok(pawl_register(pool, "log", log_and_run, NULL, NULL));
    assert_ok(pawl_start(pool));
    assert_ok(pawl_wait_idle(pool, 30000));
    assert_true(eventually(all_succeeded, (void *)(uintptr_t)t->path, 20000));
    ask_again(pool, log, &tries);
    assert_ok(pawl_wait_idle(pool, 30000));
    assert_ok(pawl_close(pool));
    assert_counters_are_right(t->path);
    load_history(t, log);
    check_history(t, tries);
    print_message("%" PRId64 " asked, %" PRId64 " acknowledged, %" PRId64 " runs\n", tries,
                  sql_ask(t->path, "SELECT count(*) FROM told WHERE what = 'ok'"),
                  sql_ask(t->path, "SELECT count(*) FROM told WHERE what = 'run'"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(nothing_acknowledged_is_lost, temp_setup, temp_teardown),
};

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
