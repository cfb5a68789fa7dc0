/* holders.c - the pools that hold claims, as rows that the others can see.
 * Threads: the writer's role, outside a batch's transaction.
 * Keeps:   I12 opening a pool resets nothing: a row is added, others are looked at. */
#include <stdio.h>
#include <string.h>

#include "sqlite_store.h"

#define HOLDERS_REMEMBERED 1000 /* that have left, for claimed_by of their jobs */

static pawl_status finish(pawli_sqlite *s, int rc, const char *doing)
{
    if (rc == SQLITE_OK)
        rc = pawli_sqlite_commit(s);
    pawli_turn_over(&s->turn);
    if (rc == SQLITE_OK)
        return PAWL_OK;
    pawl_status st = pawli_sqlite_failed(s, s->db, rc, doing);
    if (!sqlite3_get_autocommit(s->db))
        (void)pawli_run_plain(s, PAWLI_SQL_ROLLBACK);
    s->stale = true;
    return st;
}

pawl_status pawli_sqlite_join(pawli_store *store, pawli_holder *h, int64_t now_ms)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    pawl_status st = pawli_sqlite_begin(store, s->host.options->store_timeout_ms);
    if (st != PAWL_OK)
        return st;
    int rc = pawli_run(s, PAWLI_SQL_HOLDER_ADD, TEXT(h->name), TEXT(h->side), NUM(h->pid), NUM(h->started),
                       TEXT(h->boot), NUM(h->pid_space), NUM(now_ms));
    int64_t id = sqlite3_last_insert_rowid(s->db);
    if (rc == SQLITE_OK)
        rc = pawli_run(s, PAWLI_SQL_HOLDERS_FORGET, NUM(id - HOLDERS_REMEMBERED));
    st = finish(s, rc, "register this pool");
    if (st == PAWL_OK) {
        h->id = s->holder = id;
        s->cancels_seen = 0;
    }
    return st;
}

pawl_status pawli_sqlite_leave(pawli_store *store, int64_t now_ms)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    if (s->holder == 0)
        return PAWL_OK;
    pawl_status st = pawli_sqlite_begin(store, s->host.options->store_timeout_ms);
    if (st != PAWL_OK)
        return st;
    int rc = pawli_run(s, PAWLI_SQL_HOLDER_LEFT, NUM(s->holder), NUM(now_ms));
    st = finish(s, rc, "sign this pool off");
    if (st == PAWL_OK)
        s->holder = 0;
    return st;
}

static void copy_text(char *out, size_t capacity, sqlite3_stmt *row, int column)
{
    const unsigned char *text = sqlite3_column_text(row, column);
    (void)snprintf(out, capacity, "%s", text != NULL ? (const char *)text : "");
}

static void read_holder(sqlite3_stmt *row, pawli_holder *out)
{
    memset(out, 0, sizeof *out);
    out->id = sqlite3_column_int64(row, 0);
    copy_text(out->name, sizeof out->name, row, 1);
    copy_text(out->side, sizeof out->side, row, 2);
    out->pid = sqlite3_column_int64(row, 3);
    out->started = sqlite3_column_int64(row, 4);
    copy_text(out->boot, sizeof out->boot, row, 5);
    out->pid_space = sqlite3_column_int64(row, 6);
}

pawl_status pawli_sqlite_survey(pawli_store *store, int64_t boot_ms, int64_t after_id,
                                pawli_holder *holders, size_t capacity, size_t *count,
                                int64_t *expires_boot_ms)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    int rc;
    *count = 0;
    pawli_turn_join(&s->turn, s->holder != 0);
    sqlite3_stmt *row = pawli_query(s, PAWLI_SQL_HOLDERS, &rc, NUM(s->holder), NUM(capacity),
                                    NUM(after_id));
    if (row != NULL) {
        while ((rc = sqlite3_step(row)) == SQLITE_ROW)
            read_holder(row, &holders[(*count)++]);
        rc = pawli_done(row, rc);
    }
    bool found;
    if (rc == SQLITE_OK)
        rc = pawli_read_integer(s, PAWLI_SQL_FIRST_EXPIRY,
                                PAWLI_VALUES(NUM(s->holder), NUM(boot_ms + PAWLI_LEASE_MAX_MS),
                                             NUM(PAWLI_NEVER)),
                                expires_boot_ms, &found);
    return rc == SQLITE_OK ? PAWL_OK : pawli_sqlite_failed(s, s->db, rc, "look at the other pools");
}

static int read_cancels(pawli_sqlite *s, int64_t *jobs, size_t capacity, size_t *count)
{
    int rc;
    sqlite3_stmt *row = pawli_query(s, PAWLI_SQL_CANCELS, &rc, NUM(s->holder), NUM(capacity));
    if (row == NULL)
        return rc;
    while ((rc = sqlite3_step(row)) == SQLITE_ROW)
        jobs[(*count)++] = sqlite3_column_int64(row, 0);
    return pawli_done(row, rc);
}

/* The holder's row counts the cancels of its claims, so that a look costs one row. */
pawl_status pawli_sqlite_cancels(pawli_store *store, int64_t *jobs, size_t capacity, size_t *count)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    int64_t cancels = 0;
    bool found;
    *count = 0;
    int rc = pawli_read_integer(s, PAWLI_SQL_CANCELS_COUNT, PAWLI_VALUES(NUM(s->holder)), &cancels,
                                &found);
    if (rc == SQLITE_OK && found && cancels != s->cancels_seen) {
        rc = read_cancels(s, jobs, capacity, count);
        if (rc == SQLITE_OK && *count < capacity)
            s->cancels_seen = cancels;
    }
    return rc == SQLITE_OK ? PAWL_OK : pawli_sqlite_failed(s, s->db, rc, "look for cancelled jobs");
}
