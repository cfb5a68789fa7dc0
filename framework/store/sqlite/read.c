/* read.c - one job, a page of jobs, the counters: read through a connection that cannot write.
 * Threads: any, one at a time under the reader lock.
 * Keeps:   R3 no read transaction outlives one request. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sqlite_store.h"

#define COUNTER_MASK ((INT64_C(1) << PAWLI_FENCE_EPOCH_SHIFT) - 1)

/* -------------------------------------------------------------------- one row as a info */

static const char job_columns[] =
    "SELECT j.id, j.status, j.priority, j.attempts, j.max_attempts, j.fence, j.cancel, j.timeout_ms,"
    " j.created_at, j.updated_at, j.available_at, j.claimed_at, j.lease_until,"
    " k.name, l.queue, (SELECT h.name FROM pawl_holder h WHERE h.id = j.holder), j.last_error,"
    " j.payload, j.idempotency_key"
    " FROM pawl_job j JOIN pawl_lane l ON l.id = j.lane JOIN pawl_kind k ON k.id = j.kind";

enum { TEXTS_FROM = 13, COLUMN_CLAIMED_BY = 15, COLUMN_PAYLOAD = 17, COLUMN_KEY = 18, COLUMNS = 19 };

typedef struct bytes {
    const void *data; /* NULL: SQL NULL */
    size_t count;
} bytes;

static bytes read_bytes(sqlite3_stmt *row, int column)
{
    int type = sqlite3_column_type(row, column);
    if (type == SQLITE_NULL)
        return (bytes){ NULL, 0 };
    const void *data = type == SQLITE_BLOB ? sqlite3_column_blob(row, column)
                                           : (const void *)sqlite3_column_text(row, column);
    return (bytes){ data != NULL ? data : "", (size_t)sqlite3_column_bytes(row, column) };
}

/* Copies into the block and terminates; NULL stays NULL. */
static const void *put(char **at, bytes from)
{
    if (from.data == NULL)
        return NULL;
    char *copy = *at;
    memcpy(copy, from.data, from.count);
    copy[from.count] = '\0';
    *at += from.count + 1;
    return copy;
}

static void fill_numbers(sqlite3_stmt *row, pawl_job_info *out)
{
    int status = sqlite3_column_int(row, 1);
    int64_t fence = sqlite3_column_int64(row, 5);
    bool claimed = (fence & COUNTER_MASK) != 0;
    out->id = sqlite3_column_int64(row, 0);
    out->state = pawli_db_state(status);
    out->priority = sqlite3_column_int(row, 2);
    out->attempts = (uint32_t)sqlite3_column_int64(row, 3);
    out->max_attempts = (uint32_t)sqlite3_column_int64(row, 4);
    out->fence = claimed ? (uint64_t)fence : 0;
    out->cancel_requested = status == PAWLI_DB_RUNNING && sqlite3_column_int(row, 6) != 0;
    out->timeout_ms = sqlite3_column_int64(row, 7);
    out->created_at_ms = sqlite3_column_int64(row, 8);
    out->updated_at_ms = sqlite3_column_int64(row, 9);
    out->available_at_ms = sqlite3_column_int64(row, 10);
    out->claimed_at_ms = claimed ? sqlite3_column_int64(row, 11) : 0;
    out->lease_until_ms = status == PAWLI_DB_RUNNING ? sqlite3_column_int64(row, 12) : 0;
    out->finished_at_ms = pawli_state_is_final(out->state) ? out->updated_at_ms : 0;
}

static pawl_status fill_info(sqlite3_stmt *row, pawl_job_info *out)
{
    bytes columns[COLUMNS];
    size_t size = 1;
    for (int i = TEXTS_FROM; i < COLUMNS; i++) {
        columns[i] = read_bytes(row, i);
        size += columns[i].count + 1;
    }
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    fill_numbers(row, out);
    char *at = out->owned = malloc(size);
    if (at == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "no memory to read job %" PRId64, out->id);
    if (out->claimed_at_ms == 0)
        columns[COLUMN_CLAIMED_BY] = (bytes){ NULL, 0 };
    out->kind = put(&at, columns[13]);
    out->queue = put(&at, columns[14]);
    out->claimed_by = put(&at, columns[COLUMN_CLAIMED_BY]);
    out->last_error = put(&at, columns[16]);
    out->payload_bytes = columns[COLUMN_PAYLOAD].count;
    out->payload = put(&at, columns[COLUMN_PAYLOAD]);
    out->idempotency_key_bytes = columns[COLUMN_KEY].count;
    out->idempotency_key = put(&at, columns[COLUMN_KEY]);
    return PAWL_OK;
}

static void free_infos(pawl_job_info *infos, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(infos[i].owned);
}

/* --------------------------------------------------------------------- reading with a lock */

static pawl_status enter(pawli_sqlite *s)
{
    (void)pthread_mutex_lock(&s->reader_lock);
    pawl_status st = pawli_sqlite_open_reader(s);
    if (st != PAWL_OK)
        (void)pthread_mutex_unlock(&s->reader_lock);
    return st;
}

static void leave(pawli_sqlite *s)
{
    (void)pthread_mutex_unlock(&s->reader_lock);
}

static pawl_status read_failed(const pawli_sqlite *s, int rc)
{
    return pawli_sqlite_failed(s, s->reader, rc, "read it");
}

static pawl_status get_locked(pawli_sqlite *s, int64_t id, pawl_job_info *out)
{
    char sql[1024];
    sqlite3_stmt *row;
    (void)snprintf(sql, sizeof sql, "%s WHERE j.id = ?1", job_columns);
    int rc = sqlite3_prepare_v2(s->reader, sql, -1, &row, NULL);
    if (rc != SQLITE_OK)
        return read_failed(s, rc);
    (void)sqlite3_bind_int64(row, 1, id);
    rc = sqlite3_step(row);
    pawl_status st = rc == SQLITE_ROW    ? fill_info(row, out)
                     : rc == SQLITE_DONE ? pawli_fail(PAWL_ERR_NOT_FOUND, "%s: has no job %" PRId64,
                                                      s->path, id)
                                         : read_failed(s, rc);
    (void)sqlite3_finalize(row);
    return st;
}

pawl_status pawli_sqlite_get(pawli_store *store, int64_t id, pawl_job_info *out)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    pawl_status st = enter(s);
    if (st != PAWL_OK)
        return st;
    st = get_locked(s, id, out);
    leave(s);
    return st;
}

/* -------------------------------------------------------------------------------- pages */

/* The stored codes of the states asked for, as "2,8,3"; with all of them nothing. */
static void states_sql(uint32_t states, char *out, size_t capacity)
{
    size_t used = 0;
    out[0] = '\0';
    for (int status = PAWLI_DB_READY; status <= PAWLI_DB_LATER; status++)
        if (states & (1u << pawli_db_state(status)))
            used += (size_t)snprintf(out + used, capacity - used, "%s%d", used > 0 ? "," : "", status);
}

static int prepare_page(pawli_sqlite *s, const pawl_filter *f, size_t capacity, sqlite3_stmt **row)
{
    char states[32], sql[1536];
    states_sql(f->states != 0 ? f->states : UINT32_MAX, states, sizeof states);
    (void)snprintf(sql, sizeof sql,
                   "%s WHERE j.status IN (%s) AND (?1 IS NULL OR l.queue = ?1)"
                   " AND (?2 IS NULL OR k.name = ?2) AND j.id %s ?3 ORDER BY j.id %s LIMIT ?4",
                   job_columns, states, f->newest_first ? "<" : ">", f->newest_first ? "DESC" : "ASC");
    int rc = sqlite3_prepare_v2(s->reader, sql, -1, row, NULL);
    if (rc != SQLITE_OK)
        return rc;
    int64_t from = f->newest_first && f->after_id == 0 ? INT64_MAX : f->after_id;
    (void)sqlite3_bind_text(*row, 1, f->queue, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(*row, 2, f->kind, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(*row, 3, from);
    (void)sqlite3_bind_int64(*row, 4, capacity > INT32_MAX ? INT32_MAX : (int64_t)capacity);
    return SQLITE_OK;
}

static pawl_status list_locked(pawli_sqlite *s, const pawl_filter *f, pawl_job_info *out,
                               size_t capacity, size_t *count)
{
    sqlite3_stmt *row;
    int rc = prepare_page(s, f, capacity, &row);
    if (rc != SQLITE_OK)
        return read_failed(s, rc);
    pawl_status st = PAWL_OK;
    while (st == PAWL_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        st = fill_info(row, &out[*count]);
        if (st == PAWL_OK)
            (*count)++;
    }
    (void)sqlite3_finalize(row);
    if (st == PAWL_OK && rc != SQLITE_DONE)
        st = read_failed(s, rc);
    if (st != PAWL_OK) {
        free_infos(out, *count);
        *count = 0;
    }
    return st;
}

pawl_status pawli_sqlite_list(pawli_store *store, const pawl_filter *filter, pawl_job_info *out,
                              size_t capacity, size_t *count)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    *count = 0;
    pawl_status st = enter(s);
    if (st != PAWL_OK)
        return st;
    st = list_locked(s, filter, out, capacity, count);
    leave(s);
    return st;
}

/* -------------------------------------------------------------------------------- stats */

/* The age of a lane comes from its head, not from a scan of the backlog. */
static const char lanes_sql[] =
    "SELECT l.queue, k.name, EXISTS (SELECT 1 FROM pawl_paused p WHERE p.queue = l.queue),"
    " l.ready, l.later, l.running, l.succeeded, l.failed, l.cancelled, l.blocked, l.enqueued,"
    " l.pruned, ifnull(l.last_error_at, 0), ifnull((SELECT ?1 - j.available_at FROM pawl_job j"
    " INDEXED BY pawl_job_ready WHERE j.lane = l.id AND j.status = 2"
    " ORDER BY j.priority DESC, j.id LIMIT 1), 0), l.id, l.last_error"
    " FROM pawl_lane l JOIN pawl_kind k ON k.id = l.kind ORDER BY l.queue, k.name";

static const char expired_sql[] = "SELECT lane, count(*) FROM pawl_job INDEXED BY pawl_job_running"
                                  " WHERE status = 3 AND lease_boot <= ?1 GROUP BY lane";

typedef struct lane_list {
    pawl_lane_stats *lanes;
    int64_t *ids;
    size_t count, capacity;
} lane_list;

static bool grow(lane_list *list)
{
    if (list->count < list->capacity)
        return true;
    size_t capacity = list->capacity == 0 ? 16 : list->capacity * 2;
    pawl_lane_stats *lanes = realloc(list->lanes, capacity * sizeof *lanes);
    if (lanes != NULL)
        list->lanes = lanes;
    int64_t *ids = realloc(list->ids, capacity * sizeof *ids);
    if (ids != NULL)
        list->ids = ids;
    if (lanes == NULL || ids == NULL)
        return false;
    list->capacity = capacity;
    return true;
}

static char *copy_column(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text != NULL ? strdup(text) : NULL;
}

static void fill_lane(sqlite3_stmt *row, pawl_lane_stats *out)
{
    int64_t age = sqlite3_column_int64(row, 13);
    *out = (pawl_lane_stats){
        .struct_size = sizeof *out,
        .queue = copy_column(row, 0),
        .kind = copy_column(row, 1),
        .paused = sqlite3_column_int(row, 2) != 0,
        .pending_due = sqlite3_column_int64(row, 3),
        .pending_later = sqlite3_column_int64(row, 4),
        .running = sqlite3_column_int64(row, 5),
        .succeeded = sqlite3_column_int64(row, 6),
        .failed = sqlite3_column_int64(row, 7),
        .cancelled = sqlite3_column_int64(row, 8),
        .blocked = sqlite3_column_int64(row, 9),
        .enqueued = sqlite3_column_int64(row, 10),
        .pruned = sqlite3_column_int64(row, 11),
        .last_error_at_ms = sqlite3_column_int64(row, 12),
        .oldest_due_age_ms = age > 0 ? age : 0, /* V2: never negative */
        .last_error = copy_column(row, 15),
    };
}

static int read_lanes(pawli_sqlite *s, int64_t now_ms, lane_list *list)
{
    sqlite3_stmt *row;
    int rc = sqlite3_prepare_v2(s->reader, lanes_sql, -1, &row, NULL);
    if (rc != SQLITE_OK)
        return rc;
    (void)sqlite3_bind_int64(row, 1, now_ms);
    while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
        if (!grow(list)) {
            rc = SQLITE_NOMEM;
            break;
        }
        fill_lane(row, &list->lanes[list->count]);
        list->ids[list->count++] = sqlite3_column_int64(row, 14);
    }
    (void)sqlite3_finalize(row);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int read_expired(pawli_sqlite *s, int64_t boot_ms, lane_list *list)
{
    sqlite3_stmt *row;
    int rc = sqlite3_prepare_v2(s->reader, expired_sql, -1, &row, NULL);
    if (rc != SQLITE_OK)
        return rc;
    (void)sqlite3_bind_int64(row, 1, boot_ms);
    while ((rc = sqlite3_step(row)) == SQLITE_ROW)
        for (size_t i = 0; i < list->count; i++)
            if (list->ids[i] == sqlite3_column_int64(row, 0))
                list->lanes[i].expired = sqlite3_column_int64(row, 1);
    (void)sqlite3_finalize(row);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int read_all(pawli_sqlite *s, int64_t now_ms, int64_t boot_ms, lane_list *list)
{
    int rc = sqlite3_exec(s->reader, "BEGIN", NULL, NULL, NULL); /* one moment for all of it */
    if (rc == SQLITE_OK)
        rc = read_lanes(s, now_ms, list);
    if (rc == SQLITE_OK)
        rc = read_expired(s, boot_ms, list);
    (void)sqlite3_exec(s->reader, "COMMIT", NULL, NULL, NULL);
    return rc;
}

static uint64_t read_log_bytes(const pawli_sqlite *s)
{
    char path[PATH_MAX + 8];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s-wal", s->path);
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* The caller frees the lanes' texts and the list: see the pool's pawl_stats_info_clear(). */
pawl_status pawli_sqlite_stats(pawli_store *store, int64_t now_ms, int64_t boot_ms,
                               pawl_stats_info *out)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    lane_list list = { NULL, NULL, 0, 0 };
    pawl_status st = enter(s);
    if (st != PAWL_OK)
        return st;
    int rc = read_all(s, now_ms, boot_ms, &list);
    if (rc != SQLITE_OK)
        st = read_failed(s, rc);
    leave(s);
    free(list.ids);
    out->wal_bytes = read_log_bytes(s);
    out->lanes = list.lanes;
    out->owned = list.lanes;
    out->lane_count = list.count;
    return st;
}
