/* views.c - what any SQLite client may read of pawl: the view pawl_jobs, and views that answer an operator's
 * questions. Text only: schema.c and migrate.c run it; triggers.c makes pawl_jobs writable.
 *
 * The helper views ask the base tables by integer status, so each stands on a partial index or on the
 * lanes' counters, and history of any length does not slow them. CROSS JOIN keeps SQLite from choosing
 * another order. They use nothing but SQLite's own harmless functions: a client with TRUSTED_SCHEMA off
 * can read them.
 * Keeps:   V2 durations are never negative. */
#include "sql_text.h"

#define EVER_CLAIMED "(j.fence & 1099511627775) <> 0"
#define CLAIMED_BY "(SELECT h.name FROM pawl_holder h WHERE h.id = j.holder)"
#define WITH_ITS_NAMES "CROSS JOIN pawl_lane l ON l.id = j.lane CROSS JOIN pawl_kind k ON k.id = j.kind"

const char *const pawli_sqlite_views[] = {
    "CREATE VIEW pawl_jobs AS SELECT j.id AS id, l.queue AS queue, k.name AS kind,\n"
    " j.payload AS payload,\n"
    " CASE j.status WHEN 2 THEN 'pending' WHEN 8 THEN 'pending' WHEN 3 THEN 'running'\n"
    " WHEN 4 THEN 'succeeded' WHEN 5 THEN 'failed' WHEN 6 THEN 'cancelled'\n"
    " WHEN 7 THEN 'blocked' END AS status,\n"
    " j.priority AS priority,\n"
    " " TIME_TEXT("j.available_at") " AS available_at,\n"
    " CASE WHEN " EVER_CLAIMED " THEN " TIME_TEXT("j.claimed_at") " END AS claimed_at,\n"
    " CASE WHEN " EVER_CLAIMED " THEN " CLAIMED_BY " END AS claimed_by,\n"
    " CASE WHEN j.status = 3 THEN " TIME_TEXT("j.lease_until") " END AS lease_until,\n"
    " j.attempts AS attempts, j.max_attempts AS max_attempts, j.last_error AS last_error,\n"
    " j.idempotency_key AS idempotency_key,\n"
    " " TIME_TEXT("j.created_at") " AS created_at,\n"
    " " TIME_TEXT("j.updated_at") " AS updated_at,\n"
    " CASE WHEN j.status IN (4, 5, 6) THEN " TIME_TEXT("j.updated_at") " END AS finished_at\n"
    " FROM pawl_job j JOIN pawl_lane l ON l.id = j.lane JOIN pawl_kind k ON k.id = j.kind;\n",

    /* SQLite hands no id out through a view: this is the job that the latest INSERT stored or found. */
    "CREATE VIEW pawl_last AS SELECT nullif(value, 0) AS id FROM pawl_meta WHERE key = 'sql_last';\n",

    /* From the lanes' counters. The age is that of the job that would be claimed first. */
    "CREATE VIEW pawl_queues AS SELECT l.queue AS queue, k.name AS kind,\n"
    " EXISTS (SELECT 1 FROM pawl_paused p WHERE p.queue = l.queue) AS paused,\n"
    " l.ready + l.later AS pending, l.ready AS due, l.later AS later, l.running AS running,\n"
    " l.succeeded AS succeeded, l.failed AS failed, l.cancelled AS cancelled, l.blocked AS blocked,\n"
    " l.enqueued AS enqueued, l.pruned AS pruned,\n"
    " (SELECT max(0, " NOW_MS " - j.available_at) FROM pawl_job j INDEXED BY pawl_job_ready\n"
    " WHERE j.lane = l.id AND j.status = 2 ORDER BY j.priority DESC, j.id LIMIT 1)\n"
    " AS oldest_due_age_ms\n"
    " FROM pawl_lane l CROSS JOIN pawl_kind k ON k.id = l.kind ORDER BY l.queue, k.name;\n",

    /* Claims past their lease by the wall clock; pawl itself judges by the boot clock (R13). */
    "CREATE VIEW pawl_expired AS SELECT j.id AS id, l.queue AS queue, k.name AS kind,\n"
    " " CLAIMED_BY " AS claimed_by, " TIME_TEXT("j.claimed_at") " AS claimed_at,\n"
    " " TIME_TEXT("j.lease_until") " AS lease_until, " NOW_MS " - j.lease_until AS overdue_ms,\n"
    " j.attempts AS attempts\n"
    " FROM pawl_job j INDEXED BY pawl_job_running " WITH_ITS_NAMES "\n"
    " WHERE j.status = 3 AND j.lease_until < " NOW_MS " ORDER BY j.lease_until;\n",

    "CREATE VIEW pawl_dead AS SELECT j.id AS id, l.queue AS queue, k.name AS kind,\n"
    " j.attempts AS attempts, j.last_error AS last_error, " TIME_TEXT("j.updated_at") " AS failed_at,\n"
    " j.payload AS payload\n"
    " FROM pawl_job j INDEXED BY pawl_job_dead " WITH_ITS_NAMES "\n"
    " WHERE j.status = 5 ORDER BY j.updated_at DESC, j.id DESC;\n",

    /* max() takes the other columns from the row that it found. */
    "CREATE VIEW pawl_errors AS SELECT k.name AS kind, e.queue AS queue, e.last_error AS last_error,\n"
    " " TIME_TEXT("e.at") " AS at\n"
    " FROM (SELECT kind, queue, last_error, max(last_error_at) AS at FROM pawl_lane\n"
    " WHERE last_error_at IS NOT NULL GROUP BY kind) e CROSS JOIN pawl_kind k ON k.id = e.kind\n"
    " ORDER BY k.name;\n",
    NULL
};
