/* history_judge.c - see history_judge.h. The test's own thread.
 *
 * The log is read into a database of its own, to which the one that is judged is attached; then each rule
 * is a question whose answer must be: never. The order of the log is the order of its writes. A process that
 * was frozen may write late, one that was killed writes nothing after it is dead: the lines "stop" and "kill"
 * stand before the signals were sent, so that what they excuse is never too little. */
#include "history_judge.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "history.h"
#include "look.h"

/* ---------------------------------------------------------------------------- reading */

static const char tables[] =
    "CREATE TABLE asked (at INTEGER PRIMARY KEY, key TEXT);"
    "CREATE TABLE answered (at INTEGER PRIMARY KEY, status TEXT, id INTEGER, key TEXT);"
    "CREATE TABLE started (at INTEGER PRIMARY KEY, pid INTEGER, id INTEGER, fence INTEGER,"
    " attempt INTEGER, text TEXT);"
    "CREATE TABLE beat (at INTEGER PRIMARY KEY, pid INTEGER, id INTEGER, fence INTEGER, status TEXT);"
    "CREATE TABLE ended (at INTEGER PRIMARY KEY, pid INTEGER, id INTEGER, fence INTEGER, outcome TEXT);"
    "CREATE TABLE told (at INTEGER PRIMARY KEY, what TEXT, pid INTEGER);";

static const char indexes[] =
    "CREATE INDEX asked_key ON asked (key); CREATE INDEX answered_key ON answered (key);"
    "CREATE INDEX answered_id ON answered (id); CREATE INDEX started_id ON started (id, fence);"
    "CREATE INDEX started_fence ON started (fence); CREATE INDEX ended_id ON ended (id, fence);"
    "CREATE INDEX told_pid ON told (pid, what);"
    "CREATE INDEX beat_id ON beat (id, fence);"
    /* When a start was over at the latest: its handler's end, or its process's. */
    "CREATE TABLE lived (id INTEGER, fence INTEGER, pid INTEGER, began INTEGER, over INTEGER);"
    "INSERT INTO lived SELECT s.id, s.fence, s.pid, s.at, min("
    " coalesce((SELECT min(e.at) FROM ended e WHERE e.id = s.id AND e.fence = s.fence), 9e15),"
    " coalesce((SELECT max(s.at, min(k.at)) FROM told k WHERE k.pid = s.pid AND k.what = 'kill'), 9e15))"
    " FROM started s;"
    "CREATE INDEX lived_id ON lived (id, began);";

static const struct {
    const char *word, *insert;
    int fields;
} lines[] = {
    { "ask", "INSERT INTO asked VALUES (?, ?)", 1 },
    { "answer", "INSERT INTO answered VALUES (?, ?, ?, ?)", 3 },
    { "start", "INSERT INTO started VALUES (?, ?, ?, ?, ?, ?)", 5 },
    { "beat", "INSERT INTO beat VALUES (?, ?, ?, ?, ?)", 4 },
    { "end", "INSERT INTO ended VALUES (?, ?, ?, ?, ?)", 4 },
    { "stop", "INSERT INTO told VALUES (?, 'stop', ?)", 1 },
    { "go-on", "INSERT INTO told VALUES (?, 'go-on', ?)", 1 },
    { "kill", "INSERT INTO told VALUES (?, 'kill', ?)", 1 },
};
#define LINES (sizeof lines / sizeof lines[0])

typedef struct reader {
    sqlite3 *db;
    sqlite3_stmt *inserts[LINES];
    int64_t read, torn;
} reader;

static void read_line(reader *r, char *line)
{
    char *rest, *word = strtok_r(line, " ", &rest);
    for (size_t i = 0; i < LINES; i++) {
        if (strcmp(lines[i].word, word) != 0)
            continue;
        (void)sqlite3_bind_int64(r->inserts[i], 1, r->read); /* one row of numbers for all tables */
        for (int k = 1; k <= lines[i].fields; k++)
            (void)sqlite3_bind_text(r->inserts[i], k + 1, strtok_r(NULL, " ", &rest), -1, SQLITE_TRANSIENT);
        assert_int_equal(sqlite3_step(r->inserts[i]), SQLITE_DONE);
        (void)sqlite3_reset(r->inserts[i]);
        return;
    }
    fail_msg("a line of the history is no line of ours: %s", word);
}

static void read_log(reader *r, const char *log)
{
    char *line = NULL;
    size_t capacity = 0;
    const size_t mark = strlen(HISTORY_MARK "\n");
    FILE *file = fopen(log, "re");
    assert_non_null(file);
    for (ssize_t length; (length = getline(&line, &capacity, file)) >= 0;) {
        if (length <= 1)
            continue;
        if ((size_t)length <= mark || strcmp(line + length - mark, HISTORY_MARK "\n") != 0) {
            r->torn++;
            continue;
        }
        line[(size_t)length - mark] = '\0';
        r->read++;
        read_line(r, line);
    }
    free(line);
    (void)fclose(file);
}

static void load(reader *r, const char *path, const char *log)
{
    char sql[600];
    (void)snprintf(sql, sizeof sql, "%s.judge", log);
    r->db = sql_open(sql);
    sql_run(r->db, "PRAGMA synchronous = OFF; BEGIN");
    sql_run(r->db, tables);
    for (size_t i = 0; i < LINES; i++)
        assert_int_equal(sqlite3_prepare_v2(r->db, lines[i].insert, -1, &r->inserts[i], NULL), SQLITE_OK);
    read_log(r, log);
    for (size_t i = 0; i < LINES; i++)
        (void)sqlite3_finalize(r->inserts[i]);
    sql_run(r->db, indexes);
    (void)snprintf(sql, sizeof sql, "COMMIT; ATTACH '%s' AS db", path);
    sql_run(r->db, sql);
}

/* ---------------------------------------------------------------------------- judging */

/* The id of each job that breaks a rule. In the job table status 4 is succeeded, 5 failed, 6 cancelled. */
#define BY_LEASE "a.outcome = 'rescued' AND coalesce(a.error, '') LIKE 'its lease ran out%'"
#define BY_DEATH "a.outcome = 'rescued' AND coalesce(a.error, '') NOT LIKE 'its lease ran out%'"

static const struct {
    const char *rule, *sql;
} never[] = {
    { "I1 an acknowledged job is not stored under its id, with its key",
      "SELECT o.id FROM answered o LEFT JOIN db.pawl_job j ON j.id = o.id"
      " WHERE o.status IN ('PAWL_OK', 'PAWL_EXISTS')"
      " AND (j.id IS NULL OR CAST(j.idempotency_key AS TEXT) <> o.key)" },
    { "I17 a call was answered twice", "SELECT max(id) FROM answered GROUP BY key HAVING count(*) > 1" },
    { "I3 a job is stored whose call was answered that nothing was stored",
      "SELECT j.id FROM answered o JOIN db.pawl_job j ON j.idempotency_key = CAST(o.key AS BLOB)"
      " WHERE o.status NOT IN ('PAWL_OK', 'PAWL_EXISTS', 'PAWL_ERR_UNKNOWN')" },
    { "I2 a stored job was never asked for",
      "SELECT j.id FROM db.pawl_job j WHERE NOT EXISTS (SELECT 1 FROM asked"
      " WHERE key = CAST(j.idempotency_key AS TEXT))" },
    { "I2 the bytes are others than those of the key",
      "SELECT id FROM db.pawl_job WHERE instr(CAST(payload AS TEXT),"
      " '<' || CAST(idempotency_key AS TEXT) || '|' || length(idempotency_key) || '|') <> 1" },
    { "I2 a handler ran what is not stored, or with other bytes",
      "SELECT s.id FROM started s LEFT JOIN db.pawl_job j ON j.id = s.id"
      " WHERE j.id IS NULL OR rtrim(CAST(j.payload AS TEXT)) <> s.text" },
    { "I16 a key has more than one row",
      "SELECT max(id) FROM db.pawl_job GROUP BY idempotency_key HAVING count(*) > 1" },
    { "not drained", "SELECT id FROM db.pawl_job WHERE status NOT IN (4, 5, 6)" },
    { "I5 a fence was used twice", "SELECT max(id) FROM started GROUP BY fence HAVING count(*) > 1" },
    { "I5 a fence did not grow, and its process was not frozen",
      "SELECT b.id FROM started a JOIN started b ON b.id = a.id AND b.at > a.at AND b.fence < a.fence"
      " WHERE NOT EXISTS (SELECT 1 FROM told WHERE what = 'stop' AND pid = b.pid AND at < b.at)" },
    { "I4 two handlers had a job at once, and neither had lost its lease",
      "SELECT x.id FROM lived x JOIN lived y ON y.id = x.id AND y.began > x.began AND y.began < x.over"
      " WHERE NOT EXISTS (SELECT 1 FROM db.pawl_attempts a WHERE a.job = x.id"
      " AND a.fence = min(x.fence, y.fence) AND " BY_LEASE ")" },
    { "I6, I7 a claim that was started has not exactly one ending",
      "SELECT s.id FROM started s WHERE"
      " (SELECT count(*) FROM db.pawl_attempts a WHERE a.job = s.id AND a.fence = s.fence)"
      " + (SELECT count(*) FROM db.pawl_job j WHERE j.id = s.id AND j.fence = s.fence AND j.status = 4)"
      " <> 1" },
    { "I7 a claim ended otherwise than its handler said",
      "SELECT s.id FROM started s JOIN db.pawl_attempts a ON a.job = s.id AND a.fence = s.fence"
      " WHERE a.outcome <> 'rescued' AND NOT EXISTS (SELECT 1 FROM ended e WHERE e.id = s.id"
      " AND e.fence = s.fence AND e.outcome = a.outcome)" },
    { "I7 a job succeeded without its handler's word",
      "SELECT j.id FROM db.pawl_job j WHERE j.status = 4 AND NOT EXISTS (SELECT 1 FROM ended e"
      " WHERE e.id = j.id AND e.fence = j.fence AND e.outcome = 'succeeded')" },
    { "I8 an ended job was claimed again",
      "SELECT s.id FROM started s JOIN db.pawl_job j ON j.id = s.id WHERE s.fence > j.fence" },
    { "I8 an ended job has an older claim's success",
      "SELECT j.id FROM db.pawl_job j JOIN db.pawl_attempts a ON a.job = j.id"
      " WHERE a.fence > j.fence OR (a.fence = j.fence AND j.status = 4)" },
    { "I9 more attempts than allowed",
      "SELECT j.id FROM db.pawl_job j WHERE j.attempts > j.max_attempts" },
    { "I9 a start beyond the attempts that are allowed",
      "SELECT s.id FROM started s JOIN db.pawl_job j ON j.id = s.id WHERE s.attempt > j.max_attempts" },
    { "I9 the attempts are not the charged claims",
      "SELECT j.id FROM db.pawl_job j WHERE j.attempts <> (j.status = 4)"
      " + (SELECT count(*) FROM db.pawl_attempts a WHERE a.job = j.id AND a.charged = 1)" },
    { "I9 a job failed with attempts left, and nobody said so",
      "SELECT j.id FROM db.pawl_job j WHERE j.status = 5 AND j.attempts < j.max_attempts AND NOT EXISTS"
      " (SELECT 1 FROM db.pawl_attempts a WHERE a.job = j.id AND a.fence = j.fence AND a.outcome = 'failed')" },
    { "I9 a job failed of its lease or of its process, without a reason",
      "SELECT j.id FROM db.pawl_job j JOIN db.pawl_attempts a ON a.job = j.id AND a.fence = j.fence"
      " WHERE j.status = 5 AND a.outcome = 'rescued' AND j.last_error IS NULL" },
    { "I9 a death was not charged to a job whose handler ran",
      "SELECT s.id FROM started s JOIN db.pawl_attempts a ON a.job = s.id AND a.fence = s.fence"
      " WHERE " BY_DEATH " AND a.charged = 0 AND NOT EXISTS"
      " (SELECT 1 FROM ended e WHERE e.id = s.id AND e.fence = s.fence)" },
    { "I12 a living process was taken for dead",
      "SELECT a.job FROM db.pawl_attempts a JOIN db.pawl_holder h ON h.id = a.holder WHERE " BY_DEATH
      " AND NOT EXISTS (SELECT 1 FROM told k WHERE k.what = 'kill' AND k.pid = h.pid)" },
    /* Both times are of the wall clock, cut to milliseconds; the lease is judged on the boot clock, cut likewise. */
    { "I12 a lease was taken for over before its time",
      "SELECT a.job FROM db.pawl_attempts a WHERE " BY_LEASE " AND a.ended_at - a.claimed_at < ?1 - 2" },
    { "I12 a heartbeat was refused of a claim that nobody had taken",
      "SELECT b.id FROM beat b WHERE b.status = 'PAWL_ERR_LEASE_LOST' AND NOT EXISTS (SELECT 1"
      " FROM db.pawl_attempts a WHERE a.job = b.id AND a.fence = b.fence AND " BY_LEASE ")" },
};

static int64_t count_broken(sqlite3 *db, const char *sql, int64_t lease_ms, int64_t *first)
{
    sqlite3_stmt *row;
    int64_t count = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    if (sqlite3_bind_parameter_count(row) > 0)
        (void)sqlite3_bind_int64(row, 1, lease_ms);
    while (sqlite3_step(row) == SQLITE_ROW)
        if (count++ == 0)
            *first = sqlite3_column_int64(row, 0);
    (void)sqlite3_finalize(row);
    return count;
}

/* All that is known of a job, for whoever has to find out. */
static void tell_life(sqlite3 *db, int64_t id)
{
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(db,
                           "SELECT at, 'start by ' || pid || ' fence ' || fence || ' attempt ' || attempt"
                           " FROM started WHERE id = ?1"
                           " UNION ALL SELECT at, 'end by ' || pid || ' fence ' || fence || ' ' || outcome"
                           " FROM ended WHERE id = ?1"
                           " UNION ALL SELECT at, 'beat by ' || pid || ' fence ' || fence || ' ' || status"
                           " FROM beat WHERE id = ?1"
                           " UNION ALL SELECT at, 'answer ' || status || ' ' || key FROM answered"
                           " WHERE id = ?1"
                           " UNION ALL SELECT at, what || ' ' || pid FROM told WHERE pid IN"
                           " (SELECT pid FROM started WHERE id = ?1)"
                           " UNION ALL SELECT 9e15, 'attempt ' || attempt || ' fence ' || fence || ' '"
                           " || outcome || ' charged ' || charged || ' from ' || claimed_at || ' to '"
                           " || ended_at || ' ' || coalesce(error, '') FROM db.pawl_attempts WHERE job = ?1"
                           " UNION ALL SELECT 9.1e15, 'row: status ' || status || ' fence ' || fence"
                           " || ' attempts ' || attempts || ' of ' || max_attempts || ' at ' || updated_at"
                           " || ' ' || coalesce(last_error, '') FROM db.pawl_job WHERE id = ?1"
                           " ORDER BY 1", -1, &row, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    (void)sqlite3_bind_int64(row, 1, id);
    while (sqlite3_step(row) == SQLITE_ROW)
        print_error("    %s\n", (const char *)sqlite3_column_text(row, 1));
    (void)sqlite3_finalize(row);
}

static void tell_numbers(reader *r)
{
    print_message("history: %" PRId64 " lines, %" PRId64 " torn; %" PRId64 " asked, %" PRId64
                  " acknowledged, %" PRId64 " refused, %" PRId64 " unknown; %" PRId64 " starts\n",
                  r->read, r->torn, sql_integer(r->db, "SELECT count(*) FROM asked"),
                  sql_integer(r->db, "SELECT count(*) FROM answered WHERE status = 'PAWL_OK'"),
                  sql_integer(r->db, "SELECT count(*) FROM answered WHERE status NOT IN"
                                     " ('PAWL_OK', 'PAWL_EXISTS', 'PAWL_ERR_UNKNOWN')"),
                  sql_integer(r->db, "SELECT count(*) FROM answered WHERE status = 'PAWL_ERR_UNKNOWN'"),
                  sql_integer(r->db, "SELECT count(*) FROM started"));
    print_message("history: %" PRId64 " rescued from the dead, %" PRId64 " from a lease that ran out; %" PRId64
                  " started late, beside a newer claim\n",
                  sql_integer(r->db, "SELECT count(*) FROM db.pawl_attempts a WHERE " BY_DEATH),
                  sql_integer(r->db, "SELECT count(*) FROM db.pawl_attempts a WHERE " BY_LEASE),
                  sql_integer(r->db, "SELECT count(*) FROM started b WHERE EXISTS (SELECT 1 FROM started a"
                                     " WHERE a.id = b.id AND a.at < b.at AND a.fence > b.fence)"));
}

void history_judge(const char *path, const char *log, int64_t lease_ms)
{
    reader r = { 0 };
    int broken = 0;
    load(&r, path, log);
    tell_numbers(&r);
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        int64_t first = 0, times = count_broken(r.db, never[i].sql, lease_ms, &first);
        if (times == 0)
            continue;
        print_error("%s: %" PRId64 " times, first job %" PRId64 "\n", never[i].rule, times, first);
        tell_life(r.db, first);
        broken++;
    }
    sql_close(r.db);
    assert_int_equal(broken, 0);
    assert_counters_are_right(path);
    assert_int_equal(look(path, "SELECT count(*) FROM pragma_integrity_check"
                                " WHERE integrity_check <> 'ok'"), 0);
}

int64_t history_count(const char *log, const char *beginning)
{
    char *line = NULL;
    size_t capacity = 0;
    int64_t count = 0;
    FILE *file = fopen(log, "re");
    if (file == NULL)
        return 0;
    while (getline(&line, &capacity, file) >= 0)
        count += strncmp(line, beginning, strlen(beginning)) == 0;
    free(line);
    (void)fclose(file);
    return count;
}
