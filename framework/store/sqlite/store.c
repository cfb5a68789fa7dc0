/* store.c - the SQLite store behind the seam: its life, its outlook, its table of operations.
 * Threads: the writer's role, but for the readers. */
#include <stdlib.h>
#include <string.h>

#include "../sqlite.h"
#include "sqlite_store.h"

pawl_state pawli_db_state(int status)
{
    switch (status) {
    case PAWLI_DB_RUNNING: return PAWL_STATE_RUNNING;
    case PAWLI_DB_SUCCEEDED: return PAWL_STATE_SUCCEEDED;
    case PAWLI_DB_FAILED: return PAWL_STATE_FAILED;
    case PAWLI_DB_CANCELLED: return PAWL_STATE_CANCELLED;
    case PAWLI_DB_BLOCKED: return PAWL_STATE_BLOCKED;
    case PAWLI_DB_READY:
    case PAWLI_DB_LATER:
    default: return PAWL_STATE_PENDING;
    }
}

int pawli_db_status(pawl_state state, bool due)
{
    switch (state) {
    case PAWL_STATE_RUNNING: return PAWLI_DB_RUNNING;
    case PAWL_STATE_SUCCEEDED: return PAWLI_DB_SUCCEEDED;
    case PAWL_STATE_FAILED: return PAWLI_DB_FAILED;
    case PAWL_STATE_CANCELLED: return PAWLI_DB_CANCELLED;
    case PAWL_STATE_BLOCKED: return PAWLI_DB_BLOCKED;
    case PAWL_STATE_PENDING:
    default: return due ? PAWLI_DB_READY : PAWLI_DB_LATER;
    }
}

static pawl_status look(pawli_store *store, bool *changed)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    pawl_status st = pawli_sqlite_same_file(s);
    if (st != PAWL_OK)
        return st;
    s->busy_until_ns = 0;
    int rc = pawli_sqlite_refresh(s);
    *changed = rc == SQLITE_OK && s->foreign;
    if (*changed) {
        s->foreign = false;
        pawli_note_log_size(s);
        pawli_sql_writer_look(s);
    }
    return rc == SQLITE_OK ? PAWL_OK : pawli_sqlite_failed(s, s->db, rc, "look for new jobs");
}

static int64_t claimable(pawli_sqlite *s)
{
    int64_t total = 0;
    for (pawli_lane *lane = s->lanes.all; lane != NULL; lane = lane->next) {
        if (lane->counts[PAWLI_COUNT_READY] <= 0)
            continue;
        const pawli_service *service = pawli_lane_service(s, lane);
        if (service != NULL
            && (service->in_flight_max == 0 || service->in_flight < service->in_flight_max))
            total += lane->counts[PAWLI_COUNT_READY];
    }
    return total;
}

static void outlook(pawli_store *store, pawli_outlook *out)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    out->claimable = claimable(s);
    out->next_due_ms = s->next_due_ms;
    out->prune_wanted = pawli_prune_wanted(s);
    out->next_prune_ms = pawli_prune_next_ms(s);
    out->more = s->more;
    out->foreign = s->foreign;
    out->wal_frames = s->wal_frames;
}

static void unserve(pawli_store *store)
{
    pawli_lanes_unserve(pawli_sqlite_of(store));
}

static void close_store(pawli_store *store)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    pawli_sqlite_disconnect(s);
    pawli_lanes_fini(s);
    (void)pthread_mutex_destroy(&s->reader_lock);
    free(s);
}

static const pawli_store_ops ops = {
    .close = close_store,
    .begin = pawli_sqlite_begin,
    .write = pawli_sqlite_write,
    .recover = pawli_sqlite_recover,
    .look = look,
    .outlook = outlook,
    .tidy = pawli_sqlite_tidy,
    .unserve = unserve,
    .join = pawli_sqlite_join,
    .leave = pawli_sqlite_leave,
    .survey = pawli_sqlite_survey,
    .cancels = pawli_sqlite_cancels,
    .get = pawli_sqlite_get,
    .list = pawli_sqlite_list,
    .stats = pawli_sqlite_stats,
    .explain = pawli_sqlite_explain,
    .holder_of = pawli_sqlite_holder_of,
};

static pawl_status open_file(pawli_sqlite *s)
{
    if (sqlite3_libversion_number() < 3037000)
        return pawli_fail(PAWL_ERR_VERSION, "pawl needs SQLite 3.37 or newer; this process has loaded %s",
                          sqlite3_libversion());
    pawl_status st = pawli_sqlite_locate(s, s->host.options->store);
    if (st != PAWL_OK)
        return st;
    pawli_turn_init(&s->turn, s->path, s->host.options->seed);
    return (s->host.options->flags & PAWL_OPEN_READ_ONLY) != 0 ? pawli_sqlite_open_reader(s)
                                                               : pawli_sqlite_open_writer(s);
}

pawl_status pawli_sqlite_open(const pawli_store_host *host, pawli_store **out)
{
    pawli_sqlite *s = calloc(1, sizeof *s);
    if (s == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "%s: no memory to open it", host->options->store);
    s->base.ops = &ops;
    s->host = *host;
    s->stale = true;
    s->next_due_ms = PAWLI_NEVER;
    (void)pthread_mutex_init(&s->reader_lock, NULL);
    pawl_status st = open_file(s);
    if (st != PAWL_OK) {
        close_store(&s->base);
        return st;
    }
    *out = &s->base;
    return PAWL_OK;
}

const char *pawli_sqlite_path(const pawli_store *store)
{
    return ((const pawli_sqlite *)(const void *)store)->path;
}
