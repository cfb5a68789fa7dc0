/* checkpoint.c - moves the write-ahead log into the database, under a guard.
 *
 * SQLite before 3.51.3 can lose acknowledged commits when a checkpoint and another connection's commit
 * interleave (R6). So a second connection of ours holds the write lock while the first checkpoints.
 * Threads: the writer's role, between transactions.
 * Keeps:   R6 no checkpoint without the guard, R7 in bounded time, I22 a bounded WAL. */
#include <stdio.h>
#include <sys/stat.h>

#include "sqlite_store.h"

/* Past this a foreign connection with SQLite's default would checkpoint by itself, without a guard. */
#define FRAMES_WHEN_IDLE 800
#define FRAMES_AT_WORK 3000
#define RETRY_FRAMES 200
#define FOREIGN_FRAMES 8 /* of a commit of somebody else's, or two */
/* Whoever holds the lock has work to do, and there will be another moment. But once the log is near its bound
 * the checkpoint takes its turn like any transaction. */
#define OVER_WAIT_MS 250
/* A look of another pool can spoil a try, and one that waits for a processor a few in a row. */
#define FAILURES_TOLD 3
#define FAILING_TOLD_NS (1000 * PAWLI_NS_PER_MS)

static int hold_guard(pawli_sqlite *s, int64_t wait_ms)
{
    if (pawli_sqlite_same_file(s) != PAWL_OK)
        return SQLITE_IOERR; /* R8: the guard is opened by name, and would lock another one */
    if (s->guard == NULL && pawli_sqlite_connect(s, SQLITE_OPEN_READWRITE, &s->guard) != PAWL_OK)
        return SQLITE_CANTOPEN;
    s->busy_until_ns = wait_ms > 0 ? pawli_add(pawli_steady_now_ns(), pawli_ms_to_ns(wait_ms)) : 0;
    pawli_turn_yield(&s->turn);
    int rc = sqlite3_exec(s->guard, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        pawli_turn_taken(&s->turn);
    return rc;
}

static void release_guard(pawli_sqlite *s)
{
    if (!sqlite3_get_autocommit(s->guard))
        (void)sqlite3_exec(s->guard, "ROLLBACK", NULL, NULL, NULL);
    pawli_turn_over(&s->turn);
}

int pawli_checkpoint_guarded(pawli_sqlite *s, int64_t wait_ms, bool *complete)
{
    int frames = 0, moved = 0;
    *complete = false;
    int rc = hold_guard(s, wait_ms);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &moved);
    release_guard(s);
    *complete = rc == SQLITE_OK && frames == moved;
    return rc;
}

int pawli_change_a_byte(pawli_sqlite *s)
{
    int64_t restarts;
    bool found;
    int rc = pawli_read_integer(s, PAWLI_SQL_META_READ, PAWLI_VALUES(TEXT("restarts")), &restarts, &found);
    if (rc != SQLITE_OK)
        return rc;
    return found ? pawli_change(s, PAWLI_SQL_META_WRITE, TEXT("restarts"), NUM(restarts + 1)) : SQLITE_CORRUPT;
}

/* A commit that changes a byte (R12). After a full checkpoint it starts the log anew, and cuts the file, which
 * a passive checkpoint never does (I22). */
int pawli_commit_a_byte(pawli_sqlite *s)
{
    pawli_turn_yield(&s->turn);
    int rc = pawli_run_plain(s, PAWLI_SQL_BEGIN);
    if (rc != SQLITE_OK)
        return rc;
    pawli_turn_taken(&s->turn);
    rc = pawli_change_a_byte(s);
    if (rc == SQLITE_OK)
        rc = pawli_sqlite_commit(s);
    if (!sqlite3_get_autocommit(s->db))
        (void)pawli_run_plain(s, PAWLI_SQL_ROLLBACK);
    pawli_turn_over(&s->turn);
    return rc;
}

/* Others have written. How many frames there are now is not told; a file that has grown is full of them, and one
 * that has not, having once been long, holds a few more. */
void pawli_note_log_size(pawli_sqlite *s)
{
    char path[PATH_MAX + 8];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s-wal", s->path);
    if (stat(path, &st) != 0)
        return;
    int64_t most = st.st_size / s->frame_bytes;
    int64_t guess = st.st_size != s->log_bytes_noted ? most : s->wal_frames + FOREIGN_FRAMES;
    s->log_bytes_noted = st.st_size;
    if (guess > s->wal_frames)
        s->wal_frames = guess < most ? guess : most;
}

static int64_t bound_frames(const pawli_sqlite *s)
{
    return (int64_t)s->host.options->wal_bytes_max / s->frame_bytes;
}

/* How many frames the log may have before it is checkpointed. */
static int64_t frames_max(const pawli_sqlite *s, bool idle)
{
    int64_t by_size = bound_frames(s) * 3 / 4; /* the first tries may fail */
    int64_t by_count = idle ? FRAMES_WHEN_IDLE : FRAMES_AT_WORK;
    return by_size < by_count ? by_size : by_count;
}

/* Does the log stay over its bound, whatever is tried? */
static bool keeps_failing(pawli_sqlite *s, bool failed)
{
    int64_t now_ns = pawli_steady_now_ns();
    s->checkpoints_failed = failed ? s->checkpoints_failed + 1 : 0;
    if (s->checkpoints_failed <= 1)
        s->checkpoints_fail_since_ns = now_ns;
    return s->checkpoints_failed >= FAILURES_TOLD && now_ns - s->checkpoints_fail_since_ns >= FAILING_TOLD_NS;
}

/* I22: a log that stays over its bound is said once, until it is within it again. */
static void watch_size(pawli_sqlite *s, bool guarded, bool complete)
{
    int64_t bytes = s->wal_frames * s->frame_bytes;
    bool over = bytes > (int64_t)s->host.options->wal_bytes_max;
    bool tell = keeps_failing(s, over && !complete);
    if (tell && !s->wal_told)
        pawli_log_line(s->host.log, PAWL_LOG_WARNING,
                       "%s: the write-ahead log has grown to %lld MiB, because another connection keeps a "
                       "%s transaction open: end it",
                       s->path, (long long)(bytes >> 20), guarded ? "read" : "write");
    s->wal_told = over && (s->wal_told || tell);
}

bool pawli_sqlite_tidy(pawli_store *store, bool idle, bool *wrote)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    *wrote = false;
    if (s->down || s->wal_frames < frames_max(s, idle))
        return false;
    if (!idle && s->wal_frames < s->checkpoint_from)
        return true;
    bool complete;
    int64_t before = s->wal_frames;
    int64_t bound = bound_frames(s), step = bound / 16;
    int rc = pawli_checkpoint_guarded(s, before > bound - 2 * step ? OVER_WAIT_MS : 0, &complete);
    /* A reader that lingers, or a holder of the lock: try again when the log has grown some more, or in
     * the next idle moment. */
    s->checkpoint_from = complete ? 0 : before + (step < RETRY_FRAMES ? step : RETRY_FRAMES);
    if (rc != SQLITE_OK || !complete) {
        watch_size(s, rc == SQLITE_OK, false);
        return true;
    }
    s->wal_frames = 0;
    if (before > bound)
        *wrote = pawli_commit_a_byte(s) == SQLITE_OK;
    watch_size(s, true, true);
    return false;
}
