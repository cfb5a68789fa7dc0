/* checkpoint.c - moves the write-ahead log into the database, under a guard.
 *
 * SQLite before 3.51.3 can lose acknowledged commits when a checkpoint and another connection's commit
 * interleave (R6). So a second connection of ours holds the write lock while the first checkpoints.
 * Threads: the writer's role, between transactions.
 * Keeps:   R6 no checkpoint without the guard, R7 in bounded time, I22 a bounded WAL. */
#include "sqlite_store.h"

/* Past this a foreign connection with SQLite's default would checkpoint by itself, without a guard. */
#define FRAMES_WHEN_IDLE 800
#define FRAMES_AT_WORK 4000

static int hold_guard(pawli_sqlite *s)
{
    if (s->guard == NULL && pawli_sqlite_connect(s, SQLITE_OPEN_READWRITE, &s->guard) != PAWL_OK)
        return SQLITE_CANTOPEN;
    return sqlite3_exec(s->guard, "BEGIN IMMEDIATE", NULL, NULL, NULL);
}

static void release_guard(pawli_sqlite *s)
{
    if (!sqlite3_get_autocommit(s->guard))
        (void)sqlite3_exec(s->guard, "ROLLBACK", NULL, NULL, NULL);
}

int pawli_checkpoint_guarded(pawli_sqlite *s, bool *complete)
{
    int frames = 0, moved = 0;
    *complete = false;
    s->busy_until_ns = 0; /* whoever holds the lock has work to do; there will be another moment */
    int rc = hold_guard(s);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &moved);
    release_guard(s);
    *complete = rc == SQLITE_OK && frames == moved;
    return rc;
}

/* A passive checkpoint never shrinks the file; the next commit starts it anew and cuts it (I22). */
static void restart_wal(pawli_sqlite *s)
{
    int64_t restarts;
    bool found;
    if (pawli_run_plain(s, PAWLI_SQL_BEGIN) != SQLITE_OK)
        return;
    int rc = pawli_read_integer(s, PAWLI_SQL_META_READ, PAWLI_VALUES(T("restarts")), &restarts, &found);
    if (rc == SQLITE_OK && found)
        rc = pawli_run(s, PAWLI_SQL_META_WRITE, T("restarts"), I(restarts + 1));
    if (rc != SQLITE_OK || pawli_run_plain(s, PAWLI_SQL_COMMIT) != SQLITE_OK)
        if (!sqlite3_get_autocommit(s->db))
            (void)pawli_run_plain(s, PAWLI_SQL_ROLLBACK);
}

static int64_t frames_max(const pawli_sqlite *s)
{
    int64_t by_size = (int64_t)(s->host.options->wal_bytes_max / 4096);
    return by_size < FRAMES_AT_WORK ? by_size : FRAMES_AT_WORK;
}

bool pawli_sqlite_tidy(pawli_store *store, bool idle)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    int64_t limit = idle ? FRAMES_WHEN_IDLE : frames_max(s);
    if (s->down || s->wal_frames < limit || s->wal_frames < s->checkpoint_from)
        return false;
    bool complete;
    int64_t before = s->wal_frames;
    int rc = pawli_checkpoint_guarded(s, &complete);
    /* A reader that lingers, or a holder of the lock: try again when the log has grown some more. */
    s->checkpoint_from = complete ? 0 : before + FRAMES_WHEN_IDLE / 4;
    if (rc == SQLITE_OK && complete) {
        s->wal_frames = 0;
        if (idle && before > frames_max(s))
            restart_wal(s);
    }
    return false;
}
