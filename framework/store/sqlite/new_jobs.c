/* new_jobs.c - the batch's new jobs as a table, so that one INSERT … SELECT stores all of them.
 *
 * An eponymous virtual table `pawl_new_jobs` over the groups in s->rows: each job that does not exist
 * yet, with the id, lane and claim that enqueue.c and claim.c gave it.
 * Threads: the writer's role. */
#include <stdlib.h>

#include "sqlite_store.h"

enum {
    COLUMN_ID,
    COLUMN_LANE,
    COLUMN_KIND,
    COLUMN_STATUS,
    COLUMN_PRIORITY,
    COLUMN_ATTEMPTS,
    COLUMN_MAX_ATTEMPTS,
    COLUMN_HOLDER,
    COLUMN_FENCE,
    COLUMN_TIMEOUT,
    COLUMN_AVAILABLE_AT,
    COLUMN_NOW,
    COLUMN_LEASE_UNTIL,
    COLUMN_LEASE_BOOT,
    COLUMN_KEY,
    COLUMN_PAYLOAD
};

typedef struct table {
    sqlite3_vtab base;
    pawli_sqlite *store;
} table;

typedef struct cursor {
    sqlite3_vtab_cursor base;
    pawli_sqlite *store;
    const pawli_new_jobs *group;
    size_t at;
} cursor;

static int connect_table(sqlite3 *db, void *arg, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **error)
{
    (void)argc;
    (void)argv;
    (void)error;
    int rc = sqlite3_declare_vtab(
        db, "CREATE TABLE x (id, lane, kind, status, priority, attempts, max_attempts, holder, fence,"
            " timeout_ms, available_at, now, lease_until, lease_boot, idempotency_key, payload)");
    if (rc != SQLITE_OK)
        return rc;
    table *made = calloc(1, sizeof *made);
    if (made == NULL)
        return SQLITE_NOMEM;
    made->store = arg;
    *out = &made->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *base)
{
    free(base);
    return SQLITE_OK;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    (void)base;
    info->estimatedCost = 1;
    info->estimatedRows = 100;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    cursor *made = calloc(1, sizeof *made);
    if (made == NULL)
        return SQLITE_NOMEM;
    made->store = ((table *)(void *)base)->store;
    *out = &made->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    free(base);
    return SQLITE_OK;
}

/* Moves on to a job that is to be stored, if it is not at one. */
static void settle(cursor *c)
{
    while (c->group != NULL) {
        while (c->at < c->group->count && c->group->jobs[c->at].exists)
            c->at++;
        if (c->at < c->group->count)
            return;
        c->group = c->group->next;
        c->at = 0;
    }
}

static int filter(sqlite3_vtab_cursor *base, int index, const char *name, int argc,
                  sqlite3_value **argv)
{
    (void)index;
    (void)name;
    (void)argc;
    (void)argv;
    cursor *c = (cursor *)(void *)base;
    c->group = c->store->rows;
    c->at = 0;
    settle(c);
    return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    cursor *c = (cursor *)(void *)base;
    c->at++;
    settle(c);
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    return ((cursor *)(void *)base)->group == NULL;
}

static int status_of(const pawli_new_job *job, int64_t now_ms)
{
    if (job->claim != NULL)
        return PAWLI_DB_RUNNING;
    return job->available_at_ms > now_ms ? PAWLI_DB_LATER : PAWLI_DB_READY;
}

static void lease(const pawli_sqlite *s, const pawli_new_job *job, int64_t now_ms,
                  sqlite3_context *out)
{
    int64_t lease_ms = job->claim != NULL ? s->host.options->lease_ms : 0;
    sqlite3_result_int64(out, now_ms + lease_ms);
}

/* A job that nobody has claimed yet holds values of the same size as a claimed one, so that the row
 * does not grow: a fence without a counter, this holder, the present. The views do not show them. */
static void claim_column(const pawli_sqlite *s, const pawli_new_job *job, int column,
                         sqlite3_context *out)
{
    const pawli_batch *batch = s->batch;
    switch (column) {
    case COLUMN_STATUS: sqlite3_result_int(out, status_of(job, batch->now_ms)); break;
    case COLUMN_ATTEMPTS: sqlite3_result_int(out, job->claim != NULL); break;
    case COLUMN_HOLDER: sqlite3_result_int64(out, s->holder); break;
    case COLUMN_FENCE:
        sqlite3_result_int64(out, job->claim ? (int64_t)job->claim->fence : s->fence_base);
        break;
    case COLUMN_LEASE_UNTIL: lease(s, job, batch->now_ms, out); break;
    case COLUMN_LEASE_BOOT: lease(s, job, batch->boot_ms, out); break;
    default: break;
    }
}

static void key_column(const pawli_new_job *job, sqlite3_context *out)
{
    const pawli_value key = pawli_key_value(job->key, job->key_bytes);
    if (key.type == PAWLI_VALUE_TEXT)
        sqlite3_result_text64(out, key.bytes, key.count, SQLITE_STATIC, SQLITE_UTF8);
    else if (key.type == PAWLI_VALUE_BLOB)
        sqlite3_result_blob64(out, key.bytes, key.count, SQLITE_STATIC);
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *out, int index)
{
    const cursor *c = (const cursor *)(const void *)base;
    const pawli_new_job *job = &c->group->jobs[c->at];
    switch (index) {
    case COLUMN_ID: sqlite3_result_int64(out, job->id); break;
    case COLUMN_LANE: sqlite3_result_int64(out, job->lane->id); break;
    case COLUMN_KIND: sqlite3_result_int64(out, job->lane->kind_id); break;
    case COLUMN_PRIORITY: sqlite3_result_int(out, job->priority); break;
    case COLUMN_MAX_ATTEMPTS: sqlite3_result_int64(out, job->max_attempts); break;
    case COLUMN_TIMEOUT: sqlite3_result_int64(out, job->timeout_ms); break;
    case COLUMN_AVAILABLE_AT: sqlite3_result_int64(out, job->available_at_ms); break;
    case COLUMN_NOW: sqlite3_result_int64(out, c->store->batch->now_ms); break;
    case COLUMN_KEY: key_column(job, out); break;
    case COLUMN_PAYLOAD:
        sqlite3_result_blob64(out, job->payload, job->payload_bytes, SQLITE_STATIC);
        break;
    default: claim_column(c->store, job, index, out); break;
    }
    return SQLITE_OK;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    const cursor *c = (const cursor *)(const void *)base;
    *out = c->group->jobs[c->at].id;
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .xConnect = connect_table, /* no xCreate: the table is there without a CREATE */
    .xBestIndex = best_index,
    .xDisconnect = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next_row,
    .xEof = at_end,
    .xColumn = column,
    .xRowid = row_id,
};

int pawli_new_jobs_register(pawli_sqlite *s)
{
    return sqlite3_create_module_v2(s->db, "pawl_new_jobs", &module, s, NULL);
}
