/* floor.c - the least work that SQLite can do for one durable job, without any framework: one thread, one
 * connection, WAL; insert, claim and finalize, a batch of each in a transaction. */
#include "bench.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct base {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *insert, *select, *claim, *finalize;
    sqlite3_int64 *ids;
    int batch;
    char payload[BENCH_PAYLOAD_BYTES];
} base;

static void check(const base *f, int rc)
{
    if (rc == SQLITE_OK || rc == SQLITE_DONE || rc == SQLITE_ROW)
        return;
    fprintf(stderr, "pawl-bench: floor: %s\n", sqlite3_errmsg(f->db));
    exit(1);
}

static void prepare(base *f, const char *sql, sqlite3_stmt **out)
{
    check(f, sqlite3_prepare_v3(f->db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL));
}

static void step(base *f, sqlite3_stmt *statement)
{
    check(f, sqlite3_step(statement));
    check(f, sqlite3_reset(statement));
}

static void open_base(base *f, const bench *b)
{
    char sql[256];
    bench_fresh(b);
    check(f, sqlite3_open_v2(b->path, &f->db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL));
    (void)snprintf(sql, sizeof sql,
                   "PRAGMA journal_mode=WAL; PRAGMA synchronous=%s; PRAGMA wal_autocheckpoint=4000;"
                   "PRAGMA cache_size=-8192; PRAGMA secure_delete=FAST;",
                   b->durability);
    check(f, sqlite3_exec(f->db, sql, NULL, NULL, NULL));
    check(f, sqlite3_exec(f->db,
                          "CREATE TABLE jobs (id INTEGER PRIMARY KEY, queue INTEGER NOT NULL,"
                          " status INTEGER NOT NULL, priority INTEGER NOT NULL,"
                          " available_at INTEGER NOT NULL, lease_until INTEGER, claimed_at INTEGER,"
                          " attempts INTEGER NOT NULL, max_attempts INTEGER NOT NULL,"
                          " created_at INTEGER NOT NULL, finished_at INTEGER, idempotency_key TEXT,"
                          " payload BLOB NOT NULL, last_error TEXT) STRICT;"
                          "CREATE INDEX ready ON jobs (queue, priority DESC, id) WHERE status = 0;"
                          "CREATE UNIQUE INDEX key ON jobs (idempotency_key)"
                          " WHERE idempotency_key IS NOT NULL;",
                          NULL, NULL, NULL));
    prepare(f, "BEGIN IMMEDIATE", &f->begin);
    prepare(f, "COMMIT", &f->commit);
    prepare(f, "INSERT INTO jobs (queue, status, priority, available_at, attempts, max_attempts, created_at,"
               " payload, lease_until, claimed_at, finished_at)"
               " VALUES (1, 0, 0, ?2, 0, 5, ?2, ?1, ?2, ?2, ?2)", &f->insert);
    prepare(f, "SELECT id, payload FROM jobs WHERE queue = 1 AND status = 0"
               " ORDER BY priority DESC, id LIMIT ?1", &f->select);
    prepare(f, "UPDATE jobs SET status = 1, claimed_at = ?2, lease_until = ?3, attempts = attempts + 1"
               " WHERE id = ?1 AND status = 0", &f->claim);
    prepare(f, "UPDATE jobs SET status = 2, finished_at = ?2 WHERE id = ?1 AND status = 1", &f->finalize);
}

static void insert_batch(base *f, sqlite3_int64 now_ms)
{
    for (int i = 0; i < f->batch; i++) {
        (void)sqlite3_bind_blob(f->insert, 1, f->payload, sizeof f->payload, SQLITE_STATIC);
        (void)sqlite3_bind_int64(f->insert, 2, now_ms);
        step(f, f->insert);
    }
}

static int claim_batch(base *f, sqlite3_int64 now_ms)
{
    int count = 0, rc;
    (void)sqlite3_bind_int(f->select, 1, f->batch);
    while ((rc = sqlite3_step(f->select)) == SQLITE_ROW)
        f->ids[count++] = sqlite3_column_int64(f->select, 0);
    check(f, rc);
    check(f, sqlite3_reset(f->select));
    for (int i = 0; i < count; i++) {
        (void)sqlite3_bind_int64(f->claim, 1, f->ids[i]);
        (void)sqlite3_bind_int64(f->claim, 2, now_ms);
        (void)sqlite3_bind_int64(f->claim, 3, now_ms + 60000);
        step(f, f->claim);
    }
    return count;
}

static void finalize_batch(base *f, int count, sqlite3_int64 now_ms)
{
    for (int i = 0; i < count; i++) {
        (void)sqlite3_bind_int64(f->finalize, 1, f->ids[i]);
        (void)sqlite3_bind_int64(f->finalize, 2, now_ms + 5);
        step(f, f->finalize);
    }
}

static void close_base(base *f)
{
    sqlite3_stmt *const all[] = { f->begin, f->commit, f->insert, f->select, f->claim, f->finalize };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        (void)sqlite3_finalize(all[i]);
    (void)sqlite3_close(f->db);
    free(f->ids);
}

double bench_floor(const bench *b, int batch)
{
    base f = { .batch = batch, .ids = calloc((size_t)batch, sizeof *f.ids) };
    sqlite3_int64 now_ms = 1700000000000;
    memset(f.payload, 'x', sizeof f.payload);
    open_base(&f, b);
    int64_t done = 0;
    double start = bench_now();
    while (done < b->jobs) {
        step(&f, f.begin);
        insert_batch(&f, now_ms + done);
        int count = claim_batch(&f, now_ms + done);
        step(&f, f.commit);
        step(&f, f.begin);
        finalize_batch(&f, count, now_ms + done);
        step(&f, f.commit);
        done += count;
    }
    double rate = (double)done / (bench_now() - start);
    close_base(&f);
    return rate;
}
