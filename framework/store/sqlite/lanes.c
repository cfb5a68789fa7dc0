/* lanes.c - the lanes and their counters, kept in memory and written in the same transaction.
 * Threads: the writer's role.
 * Keeps:   I20 a lane's counters equal a recount of its jobs at every commit. */
#include "lanes.h"

#include <stdlib.h>
#include <string.h>

#include "sqlite_store.h"

#define TOLD_AGAIN_NS (10000 * PAWLI_NS_PER_MS) /* a trigger of somebody's may spoil every batch */

static size_t name_bucket(const char *queue, const char *kind)
{
    uint64_t hash = UINT64_C(1469598103934665603); /* FNV-1a */
    for (const char *c = queue; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    hash = (hash ^ 0xFF) * UINT64_C(1099511628211);
    for (const char *c = kind; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    return (size_t)(hash % PAWLI_LANE_BUCKETS);
}

static size_t id_bucket(int64_t id)
{
    return (size_t)((uint64_t)id % PAWLI_LANE_BUCKETS);
}

static bool is_named(const pawli_lane *lane, const char *queue, const char *kind)
{
    return strcmp(lane->kind, kind) == 0 && strcmp(lane->queue, queue) == 0;
}

static pawli_lane *known_by_name(pawli_lanes *lanes, const char *queue, const char *kind)
{
    if (lanes->last != NULL && is_named(lanes->last, queue, kind))
        return lanes->last; /* most producers fill one lane */
    pawli_lane *lane = lanes->by_name[name_bucket(queue, kind)];
    while (lane != NULL && !is_named(lane, queue, kind))
        lane = lane->next_by_name;
    if (lane != NULL)
        lanes->last = lane;
    return lane;
}

static void set_id(pawli_lanes *lanes, pawli_lane *lane, int64_t id)
{
    lane->id = id;
    pawli_lane **bucket = &lanes->by_id[id_bucket(id)];
    lane->next_by_id = *bucket;
    *bucket = lane;
}

static pawli_lane *remember(pawli_sqlite *s, const char *queue, const char *kind)
{
    pawli_lanes *lanes = &s->lanes;
    pawli_lane *lane = known_by_name(lanes, queue, kind);
    if (lane != NULL)
        return lane;
    lane = calloc(1, sizeof *lane);
    if (lane == NULL)
        return NULL;
    lane->queue = pawli_names_add(s->host.names, queue);
    lane->kind = pawli_names_add(s->host.names, kind);
    if (lane->queue == NULL || lane->kind == NULL) {
        free(lane);
        return NULL;
    }
    pawli_lane **bucket = &lanes->by_name[name_bucket(queue, kind)];
    lane->next_by_name = *bucket;
    *bucket = lane;
    lane->next = lanes->all;
    lanes->all = lane;
    return lane;
}

static int load_row(pawli_sqlite *s, sqlite3_stmt *row)
{
    const char *queue = (const char *)sqlite3_column_text(row, 1);
    const char *kind = (const char *)sqlite3_column_text(row, 2);
    if (queue == NULL || kind == NULL)
        return SQLITE_NOMEM;
    pawli_lane *lane = remember(s, queue, kind);
    if (lane == NULL)
        return SQLITE_NOMEM;
    set_id(&s->lanes, lane, sqlite3_column_int64(row, 0));
    lane->kind_id = sqlite3_column_int64(row, 3);
    for (int i = 0; i < PAWLI_COUNTS; i++)
        lane->counts[i] = sqlite3_column_int64(row, 4 + i);
    lane->paused = sqlite3_column_int(row, 4 + PAWLI_COUNTS) != 0;
    return SQLITE_OK;
}

int pawli_lanes_load(pawli_sqlite *s)
{
    pawli_lanes *lanes = &s->lanes;
    PAWLI_ASSERT(lanes->dirty == NULL);
    memset(lanes->by_id, 0, sizeof lanes->by_id);
    for (pawli_lane *lane = lanes->all; lane != NULL; lane = lane->next) {
        lane->id = 0; /* until its row is seen: a rollback may have undone it */
        memset(lane->counts, 0, sizeof lane->counts);
    }
    int rc;
    sqlite3_stmt *row = pawli_query_values(s, PAWLI_SQL_LANES, NULL, 0, &rc);
    if (row == NULL)
        return rc;
    while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
        int loaded = load_row(s, row);
        if (loaded != SQLITE_OK) {
            rc = loaded;
            break;
        }
    }
    return pawli_done(row, rc);
}

static int kind_id(pawli_sqlite *s, const char *kind, int64_t *out)
{
    bool found;
    int rc = pawli_read_integer(s, PAWLI_SQL_KIND_FIND, PAWLI_VALUES(TEXT(kind)), out, &found);
    if (rc != SQLITE_OK || found)
        return rc;
    rc = pawli_change(s, PAWLI_SQL_KIND_ADD, TEXT(kind));
    *out = sqlite3_last_insert_rowid(s->db);
    return rc;
}

/* A trigger of somebody's may have added it in this transaction; its counters are read when that is over. */
static int lane_id(pawli_sqlite *s, const pawli_lane *lane, int64_t kind, int64_t *out)
{
    bool found;
    int rc = pawli_read_integer(s, PAWLI_SQL_LANE_FIND, PAWLI_VALUES(TEXT(lane->queue), NUM(kind)), out, &found);
    if (rc != SQLITE_OK || found)
        return rc;
    rc = pawli_change(s, PAWLI_SQL_LANE_ADD, TEXT(lane->queue), NUM(kind));
    *out = sqlite3_last_insert_rowid(s->db);
    return rc;
}

static int store_lane(pawli_sqlite *s, pawli_lane *lane)
{
    int64_t kind = 0, id = 0, ignored;
    int rc = kind_id(s, lane->kind, &kind);
    if (rc == SQLITE_OK)
        rc = lane_id(s, lane, kind, &id);
    if (rc != SQLITE_OK)
        return rc;
    set_id(&s->lanes, lane, id);
    lane->kind_id = kind;
    return pawli_read_integer(s, PAWLI_SQL_IS_PAUSED, PAWLI_VALUES(TEXT(lane->queue)), &ignored,
                              &lane->paused);
}

int pawli_lane_find(pawli_sqlite *s, const char *queue, const char *kind, pawli_lane **out)
{
    pawli_lane *lane = remember(s, queue, kind);
    if (lane == NULL)
        return SQLITE_NOMEM;
    *out = lane;
    return lane->id != 0 ? SQLITE_OK : store_lane(s, lane);
}

pawli_lane *pawli_lane_by_id(pawli_sqlite *s, int64_t id)
{
    pawli_lane *lane = s->lanes.by_id[id_bucket(id)];
    while (lane != NULL && lane->id != id)
        lane = lane->next_by_id;
    return lane;
}

pawli_count pawli_count_of(int status)
{
    switch (status) {
    case PAWLI_DB_READY: return PAWLI_COUNT_READY;
    case PAWLI_DB_RUNNING: return PAWLI_COUNT_RUNNING;
    case PAWLI_DB_SUCCEEDED: return PAWLI_COUNT_SUCCEEDED;
    case PAWLI_DB_FAILED: return PAWLI_COUNT_FAILED;
    case PAWLI_DB_CANCELLED: return PAWLI_COUNT_CANCELLED;
    case PAWLI_DB_BLOCKED: return PAWLI_COUNT_BLOCKED;
    case PAWLI_DB_LATER:
    default: return PAWLI_COUNT_LATER;
    }
}

static void mark_dirty(pawli_lanes *lanes, pawli_lane *lane)
{
    if (lane->dirty)
        return;
    lane->dirty = true;
    lane->next_dirty = lanes->dirty;
    lanes->dirty = lane;
}

void pawli_lane_count(pawli_sqlite *s, pawli_lane *lane, pawli_count count, int64_t delta)
{
    lane->counts[count] += delta;
    lane->deltas[count] += delta;
    mark_dirty(&s->lanes, lane);
}

void pawli_lane_move(pawli_sqlite *s, pawli_lane *lane, int from_status, int to_status)
{
    pawli_lane_count(s, lane, pawli_count_of(from_status), -1);
    pawli_lane_count(s, lane, pawli_count_of(to_status), 1);
}

void pawli_lane_error(pawli_sqlite *s, pawli_lane *lane, const char *error, size_t bytes)
{
    char *copy = strndup(error, bytes);
    if (copy == NULL)
        return; /* the job's own row has it */
    free(lane->error);
    lane->error = copy;
    mark_dirty(&s->lanes, lane);
}

/* Somebody's SQL has changed rows and not the counters: count again, and go on. The batch's own rows are
 * written already, so nothing is added to what is counted. */
static int recount(pawli_sqlite *s, const pawli_lane *lane)
{
    int64_t now_ns = pawli_steady_now_ns();
    if (now_ns >= s->recount_told_ns) {
        s->recount_told_ns = now_ns + TOLD_AGAIN_NS;
        pawli_log_line(s->host.log, PAWL_LOG_WARNING,
                   "%s: the counters of queue \"%s\", kind \"%s\" did not fit its jobs and were counted again; "
                   "write to pawl_ tables through pawl only",
                   s->path, lane->queue, lane->kind);
    }
    s->stale = true;
    return pawli_run(s, PAWLI_SQL_LANE_RECOUNT, NUM(lane->id), NUM(lane->deltas[PAWLI_COUNT_PRUNED]));
}

static int flush_lane(pawli_sqlite *s, pawli_lane *lane, int64_t now_ms)
{
    const int64_t *d = lane->deltas;
    int rc = pawli_run(s, PAWLI_SQL_LANE_COUNT, NUM(lane->id), NUM(d[0]), NUM(d[1]), NUM(d[2]), NUM(d[3]),
                       NUM(d[4]), NUM(d[5]), NUM(d[6]), NUM(d[7]), NUM(d[8]));
    if ((rc & 0xFF) == SQLITE_CONSTRAINT)
        rc = recount(s, lane);
    if (rc == SQLITE_OK && lane->error != NULL)
        rc = pawli_run(s, PAWLI_SQL_LANE_ERROR, NUM(lane->id), TEXT(lane->error), NUM(now_ms));
    return rc;
}

static void clean(pawli_lane *lane)
{
    memset(lane->deltas, 0, sizeof lane->deltas);
    free(lane->error);
    lane->error = NULL;
    lane->dirty = false;
}

int pawli_lanes_flush(pawli_sqlite *s, int64_t now_ms)
{
    while (s->lanes.dirty != NULL) {
        pawli_lane *lane = s->lanes.dirty;
        int rc = flush_lane(s, lane, now_ms);
        if (rc != SQLITE_OK)
            return rc;
        s->lanes.dirty = lane->next_dirty;
        clean(lane);
    }
    return SQLITE_OK;
}

void pawli_lanes_forget(pawli_sqlite *s)
{
    for (pawli_lane *lane = s->lanes.dirty; lane != NULL; lane = lane->next_dirty)
        clean(lane);
    s->lanes.dirty = NULL;
}

pawli_service *pawli_lane_service(pawli_sqlite *s, pawli_lane *lane)
{
    if (!lane->service_known) {
        lane->service = s->host.serve(s->host.arg, lane->queue, lane->kind);
        lane->service_known = true;
    }
    return lane->paused ? NULL : lane->service;
}

int64_t pawli_lanes_total(const pawli_sqlite *s, pawli_count count)
{
    int64_t total = 0;
    for (const pawli_lane *lane = s->lanes.all; lane != NULL; lane = lane->next)
        total += lane->counts[count];
    return total;
}

void pawli_lanes_unserve(pawli_sqlite *s)
{
    for (pawli_lane *lane = s->lanes.all; lane != NULL; lane = lane->next)
        lane->service_known = false;
}

void pawli_lanes_fini(pawli_sqlite *s)
{
    while (s->lanes.all != NULL) {
        pawli_lane *lane = s->lanes.all;
        s->lanes.all = lane->next;
        free(lane->error);
        free(lane);
    }
    memset(&s->lanes, 0, sizeof s->lanes);
}
