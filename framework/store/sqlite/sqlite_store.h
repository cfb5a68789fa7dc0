/* sqlite_store.h - what the files of the SQLite store share. Only files in this folder include it.
 *
 * A write transaction, in the order of the files:
 *   write.c       begins, applies a batch, commits; replays it item by item when something failed
 *   finalize.c    ends claims          heartbeat.c  extends leases       operate.c  cancel, requeue …
 *   rescue.c      takes claims back    promote.c    delayed jobs fall due
 *   enqueue.c     stores new jobs, through the table-valued array of new_jobs.c
 *   claim.c       takes jobs in (priority, id) order, new ones included (the hand-off)
 *   prune.c       deletes old history  lanes.c      the counters of each lane
 * Around it: connection.c, schema.c, migrate.c, statement.c, checkpoint.c, recover.c, holders.c, read.c;
 * and what other SQLite clients see: views.c, triggers.c. */
#ifndef PAWLI_SQLITE_STORE_H
#define PAWLI_SQLITE_STORE_H

#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <sys/types.h>

#include "../../clock.h"
#include "../../job_state.h"
#include "../../role.h"
#include "../../status.h"
#include "../store.h"
#include "lanes.h"
#include "statement.h"
#include "turn.h"

/* Status codes as stored. Every one takes a byte: 0 and 1 would take none, and a row that grows by a
 * byte when it ends splits its full page. "Later" is a pending job that is not due yet. */
enum {
    PAWLI_DB_READY = 2,
    PAWLI_DB_RUNNING = 3,
    PAWLI_DB_SUCCEEDED = 4,
    PAWLI_DB_FAILED = 5,
    PAWLI_DB_CANCELLED = 6,
    PAWLI_DB_BLOCKED = 7,
    PAWLI_DB_LATER = 8
};
pawl_state pawli_db_state(int status);
int pawli_db_status(pawl_state state, bool due);

#define PAWLI_SCHEMA_VERSION 2
#define PAWLI_FENCE_EPOCH_SHIFT 40 /* fence = epoch × 2^40 + counter */
#define PAWLI_FENCE_COUNTER_MASK ((INT64_C(1) << PAWLI_FENCE_EPOCH_SHIFT) - 1)

/* A statement that touches rows by the slice stops after so many, so that one transaction is short. */
#define PAWLI_SLICE 500

typedef struct pawli_file_id {
    dev_t device;
    ino_t inode; /* 0: not seen yet */
} pawli_file_id;

typedef struct pawli_sqlite {
    pawli_store base; /* first: the seam's handle */

    /* Set at open, then read-only. */
    pawli_store_host host;
    char path[PATH_MAX];

    /* The writer's role only. */
    pawli_file_id files[3]; /* of the database, its log and its index, while they are open (R8) */
    sqlite3 *db;
    sqlite3 *guard; /* holds the write lock while db checkpoints (R6); opened when first needed */
    sqlite3_stmt *statements[PAWLI_SQL_COUNT];
    int64_t busy_until_ns;  /* the deadline of the busy handler (R2) */
    pawli_turn turn;        /* at the write lock (R2) */
    bool in_user_code;      /* the authorizer refuses what an on_success function must not do */
    bool down;              /* a commit failed: recover() first (R5) */
    bool careful;           /* the batch is being replayed item by item */
    pawli_lanes lanes;
    const pawli_new_jobs *rows; /* what new_jobs.c shows as a table */
    pawli_batch *batch;         /* under way */

    /* Facts that hold while nobody else commits; `stale` says that they must be read again. */
    bool stale;
    bool foreign; /* another connection has committed since the last look */
    int64_t data_version;
    int64_t fence_base, fence; /* epoch × 2^40; the counter */
    int64_t last_id;           /* of sqlite_sequence */
    int64_t schema_version;    /* SQLite's count of its changes, when it was looked at for … */
    bool triggered;            /* … triggers that may write to pawl's tables in our own transactions */
    int64_t next_due_ms;
    bool fence_moved;

    int64_t sql_writer_at; /* the note of one, at open */
    bool sql_writer_told;

    int64_t holder;       /* this pool's id; 0: not joined */
    int64_t cancels_seen; /* the holder row's count of cancels that was answered */
    bool more;            /* a slice ended early */
    /* The fences of claims that were made in a commit which may be in the file, and are nobody's; 0: none. */
    int64_t orphan_first, orphan_last;
    bool orphans_left; /* a slice of them */
    int64_t prune_after;  /* the prune walk's place */
    int64_t prune_again_ms;
    bool prune_walking;
    int64_t prune_kept_succeeded, prune_kept_failed; /* by this walk: others refer to them */
    int64_t prune_stuck; /* so many rows over their bounds could not be deleted by the last walk */
    bool prune_kept_told;
    int64_t frame_bytes;     /* of the log: a page and its header */
    int64_t wal_frames;      /* after the last commit or checkpoint */
    bool wal_told;           /* the log said that it is over its bound */
    int64_t recount_told_ns; /* not told again before this */
    int checkpoints_failed;  /* in a row, with the log over its bound … */
    int64_t checkpoints_fail_since_ns; /* … and when the first of them was */
    int64_t log_bytes_noted; /* the file's size when others had last written */
    int64_t checkpoint_from; /* not before the log has so many */

    /* Readers. */
    pthread_mutex_t reader_lock;
    sqlite3 *reader;
} pawli_sqlite;

/* connection.c */
pawl_status pawli_sqlite_locate(pawli_sqlite *s, const char *given);
pawl_status pawli_sqlite_connect(pawli_sqlite *s, int flags, sqlite3 **out);
pawl_status pawli_sqlite_open_writer(pawli_sqlite *s);
pawl_status pawli_sqlite_open_reader(pawli_sqlite *s);
/* The reader's connection alone: nothing is asked of the file but its opening. */
pawl_status pawli_sqlite_connect_reader(pawli_sqlite *s);
void pawli_sqlite_disconnect_reader(pawli_sqlite *s);
bool pawli_sqlite_is_network(long file_system_type);
pawl_status pawli_sqlite_same_file(pawli_sqlite *s);
void pawli_sqlite_disconnect(pawli_sqlite *s);
/* Maps a result code and says what happened to which file. */
pawl_status pawli_sqlite_failed(const pawli_sqlite *s, sqlite3 *db, int rc, const char *doing);
pawl_status pawli_sqlite_status(int rc);
const char *pawli_sqlite_remedy(int rc); /* "", or "; what to do" */
/* Says what was found, and that pawl init cures it, as a command that is safe to paste. */
pawl_status pawli_sqlite_to_init(pawl_status status, const char *path, const char *finding);
/* Is it the database's trouble rather than one row's? */
bool pawli_sqlite_is_environment(int rc);

/* schema.c, migrate.c */
pawl_status pawli_sqlite_schema_check(sqlite3 *db, const char *path, int64_t *version);
pawl_status pawli_sqlite_schema_readable(sqlite3 *db, const char *path);
pawl_status pawli_sqlite_schema_prepare(pawli_sqlite *s);
int pawli_sqlite_create_views(sqlite3 *db);
int pawli_sqlite_create_all(sqlite3 *db); /* into a database that has none of it */
pawl_status pawli_sqlite_migrate(pawli_sqlite *s); /* inside its transaction */

/* sql_writer.c: at open, and when others have committed */
void pawli_sql_writer_begin(pawli_sqlite *s);
void pawli_sql_writer_look(pawli_sqlite *s);

/* new_jobs.c */
int pawli_new_jobs_register(pawli_sqlite *s);

/* one transaction's parts: SQLite result codes */
pawli_value pawli_key_value(const void *key, size_t bytes); /* as keys are stored; NULL: none */
int pawli_finalize_apply(pawli_sqlite *s, pawli_ending *ending);
int pawli_heartbeat_apply(pawli_sqlite *s, pawli_heartbeat *heartbeat);
int pawli_operate_apply(pawli_sqlite *s, pawli_operation *operation);
int pawli_rescue_apply(pawli_sqlite *s, pawli_rescue *rescue);
int pawli_rescue_sweep(pawli_sqlite *s);
int pawli_rescue_orphans(pawli_sqlite *s);
int pawli_promote_apply(pawli_sqlite *s);
int pawli_enqueue_prepare(pawli_sqlite *s, pawli_new_jobs *group);
int pawli_enqueue_insert(pawli_sqlite *s, pawli_new_jobs *groups);
int pawli_enqueue_one(pawli_sqlite *s, pawli_new_jobs *group); /* prepare and insert one group */
int pawli_claim_apply(pawli_sqlite *s, bool with_fresh);
void pawli_claim_undo(pawli_sqlite *s);
int pawli_prune_apply(pawli_sqlite *s);
/* Ends a row that somebody's SQL has left unusable: it must not stand in the way of others (I23). */
int pawli_refuse(pawli_sqlite *s, int64_t job, const char *why);

/* What a claim that did not succeed leaves behind: the job's next state and a row of history. */
typedef struct pawli_aftermath {
    int64_t job;
    uint64_t fence;
    pawli_lane *lane;
    pawl_state to;
    int64_t available_at_ms;
    bool charged;
    bool bystander;    /* uncharged, and counted against the ten */
    const char *outcome;
    const char *error; /* NULL: keep the last one */
    size_t error_bytes;
} pawli_aftermath;
int pawli_aftermath_write(pawli_sqlite *s, const pawli_aftermath *after);

/* write.c */
pawl_status pawli_sqlite_begin(pawli_store *store, int64_t wait_ms);
pawl_status pawli_sqlite_write(pawli_store *store, pawli_batch *batch);
int pawli_sqlite_refresh(pawli_sqlite *s);
int pawli_read_last_id(pawli_sqlite *s);
int pawli_sqlite_commit(pawli_sqlite *s); /* marks the store as down if the outcome is unknown */

/* checkpoint.c, recover.c, prune.c */
int pawli_checkpoint_guarded(pawli_sqlite *s, int64_t wait_ms, bool *complete);
int pawli_commit_a_byte(pawli_sqlite *s);
int pawli_change_a_byte(pawli_sqlite *s); /* inside a transaction, so that its commit is not empty */
void pawli_note_log_size(pawli_sqlite *s);
bool pawli_sqlite_tidy(pawli_store *store, bool idle, bool *wrote);
pawl_status pawli_sqlite_recover(pawli_store *store);
bool pawli_prune_wanted(pawli_sqlite *s);
int64_t pawli_prune_next_ms(const pawli_sqlite *s);

/* holders.c */
pawl_status pawli_sqlite_join(pawli_store *store, pawli_holder *holder, int64_t now_ms);
pawl_status pawli_sqlite_leave(pawli_store *store, int64_t now_ms);
pawl_status pawli_sqlite_survey(pawli_store *store, int64_t boot_ms, int64_t after_id,
                                pawli_holder *holders, size_t capacity, size_t *count,
                                int64_t *expires_boot_ms);
pawl_status pawli_sqlite_cancels(pawli_store *store, int64_t *jobs, size_t capacity, size_t *count);

/* read.c */
pawl_status pawli_sqlite_get(pawli_store *store, int64_t id, pawl_job_info *out);
pawl_status pawli_sqlite_list(pawli_store *store, const pawl_filter *filter, pawl_job_info *out,
                              size_t capacity, size_t *count);
pawl_status pawli_sqlite_stats(pawli_store *store, int64_t now_ms, int64_t boot_ms,
                               pawl_stats_info *out);

/* explain.c */
pawl_status pawli_sqlite_explain(pawli_store *store, int64_t id, pawli_reasons *out);
pawl_status pawli_sqlite_holder_of(pawli_store *store, int64_t id, uint64_t fence, pawli_holder *out);
/* A row of the holders, its columns from `first` on: id, name, side, pid, started, boot, pid_space. */
void pawli_sqlite_read_holder(sqlite3_stmt *row, int first, pawli_holder *out);

static inline pawli_sqlite *pawli_sqlite_of(pawli_store *store)
{
    return (pawli_sqlite *)(void *)store;
}

#endif
