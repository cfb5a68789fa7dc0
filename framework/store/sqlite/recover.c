/* recover.c - brings the store into a known state after a commit failed (R5).
 *
 * The frames of the failed commit may stand in the log, or only in the page cache; a repeated fsync
 * would lie about them. So everything that was committed before is moved into the database, under the
 * guard, and then one flushed commit starts the log anew: what stood in it is void.
 * Threads: the writer's role.
 * Keeps:   R5 nothing is acknowledged that stands behind frames which may not be on the disk. */
#include "sqlite_store.h"

#define RECOVER_WAIT_MS 20

static int restart_log(pawli_sqlite *s)
{
    bool complete;
    int rc = pawli_checkpoint_guarded(s, RECOVER_WAIT_MS, &complete);
    if (rc != SQLITE_OK)
        return rc;
    if (!complete)
        return SQLITE_BUSY; /* a reader pins the log; it will go */
    s->busy_until_ns = 0;
    rc = pawli_commit_a_byte(s);
    /* Did it start anew? The log then holds that commit alone. */
    return rc == SQLITE_OK && s->wal_frames > 8 ? SQLITE_BUSY : rc;
}

pawl_status pawli_sqlite_recover(pawli_store *store)
{
    pawli_sqlite *s = pawli_sqlite_of(store);
    PAWLI_ASSERT_ROLE(PAWLI_ROLE_WRITER);
    if (!s->down)
        return PAWL_OK;
    if (!sqlite3_get_autocommit(s->db))
        (void)pawli_run_plain(s, PAWLI_SQL_ROLLBACK);
    int rc = restart_log(s);
    if (rc != SQLITE_OK)
        return pawli_sqlite_failed(s, s->db, rc, "recover after a failed commit");
    s->down = false;
    s->stale = true;
    return PAWL_OK;
}
