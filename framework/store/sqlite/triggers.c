/* triggers.c - what any SQLite client may do through the view pawl_jobs: enqueue, change a job that waits,
 * cancel, requeue. Text only: schema.c and migrate.c run it.
 *
 * A statement's own conflict clause (INSERT OR REPLACE, UPDATE OR IGNORE …) overrides every conflict clause
 * inside a trigger. So nothing here relies on a constraint: each trigger first looks, refuses with a sentence
 * or finds nothing to do, and then writes what cannot conflict. RAISE(ABORT) is not overridden.
 *
 * SQLite fires the triggers of one event in no promised order, so at most one of them applies to a row: the
 * WHEN clauses exclude each other. Only SQLite's own harmless functions are used, so that a client with
 * TRUSTED_SCHEMA off or DEFENSIVE on can write.
 * Threads: the client's; inside its transaction or savepoint.
 * Keeps:   I8 a terminal state changes by a requeue only; I16 one stored job per (kind, key); I18 a job
 *          exists exactly if its transaction commits; I20 the lane's counters move with the job. */
#include "sql_text.h"

#define REFUSE_IF(condition, sentence)                                                              \
    "  WHEN " condition "\n   THEN RAISE(ABORT, 'pawl: " sentence "')\n"

/* ------------------------------------------------------------------------------- values */

/* Node and others send every number as a float: a whole one counts as an integer. */
#define IS_WHOLE(value)                                                                             \
    "(typeof(" value ") IN ('integer', 'real') AND " value " = CAST(" value " AS INTEGER))"
#define IS_WHOLE_IN(value, low, high)                                                               \
    "(" IS_WHOLE(value) " AND " value " BETWEEN " low " AND " high ")"

/* Text taken apart into characters and joined again is the same only if it was UTF-8. */
#define IS_NOT_UTF8(text)                                                                           \
    "(" text " GLOB '*[^' || char(1) || '-' || char(127) || ']*' AND " text " IS NOT\n"             \
    "   (WITH RECURSIVE c (i, s) AS (SELECT 1, '' UNION ALL SELECT i + 1,\n"                        \
    "   s || char(unicode(substr(" text ", i, 1))) FROM c WHERE i <= length(" text "))\n"           \
    "   SELECT s FROM c ORDER BY i DESC LIMIT 1))"
#define IS_NO_TEXT(value) "typeof(" value ") <> 'text' OR " value " = ''\n   OR NOT " IS_SHORT(value)
#define HAS_CONTROLS(text)                                                                          \
    text " GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*'"
#define IS_NO_NAME(value)                                                                           \
    IS_NO_TEXT(value) "\n   OR " HAS_CONTROLS(value) "\n   OR " IS_NOT_UTF8(value)

#define QUEUE "ifnull(NEW.queue, 'default')"
#define KIND "(SELECT id FROM pawl_kind WHERE name = NEW.kind)"
#define KEY                                                                                         \
    "CASE typeof(NEW.idempotency_key) WHEN 'text' THEN NEW.idempotency_key\n"                       \
    "   ELSE CAST(CAST(NEW.idempotency_key AS INTEGER) AS TEXT) END"

/* A time in milliseconds, or NULL if it is none: an integer since 1973, or text that SQLite reads as a time and
 * writes again as the same text (it reads 31 February as 3 March, and much else as some time). */
#define TEXT_MS(text) "(1000 * strftime('%s', substr(" text ", 1, 19)) + CAST(substr(" text ", 21) AS INTEGER))"
#define TIME_MS(value)                                                                              \
    "CASE WHEN " IS_WHOLE_IN(value, "100000000000", "253402300799999") "\n"                         \
    "   THEN CAST(" value " AS INTEGER)\n"                                                          \
    "   WHEN typeof(" value ") = 'text' AND length(" value ") IN (10, 16, 19, 23)\n"                \
    "   AND " value " >= '1970' AND " TIME_TEXT(TEXT_MS(value)) "\n"                                \
    "   = " value " || substr('0000-00-00 00:00:00.000', length(" value ") + 1)\n"                  \
    "   THEN " TEXT_MS(value) " END"

#define REFUSE_BAD_TIME                                                                             \
    REFUSE_IF(IS_WHOLE_IN("NEW.available_at", "0", "99999999999"),                                  \
              "available_at counts milliseconds since 1970, and this looks like seconds; multiply " \
              "it by 1000, or write text: ''2030-12-31 23:59:59''")                                 \
    REFUSE_IF(TIME_MS("NEW.available_at") " IS NULL",                                               \
              "available_at must be text in UTC, ''YYYY-MM-DD HH:MM:SS.SSS'' (the time or its end " \
              "may be left out), that names a time which exists, from 1970 to 9999; or an integer " \
              "of Unix milliseconds")
#define REFUSE_BAD_PRIORITY                                                                         \
    REFUSE_IF("NOT " IS_WHOLE_IN("NEW.priority", "-2147483648", "2147483647"),                      \
              "priority must be an integer from -2147483648 to 2147483647; higher runs first")
/* Text is counted as UTF-8, which handlers get, in a database of any encoding: see IS_SHORT. There is no other
 * count of it in UTF-16 than up to a NUL; with one in it, the whole may take twice as much, as it is stored. */
#define IS_UTF16 "length(CAST('a' AS BLOB)) > 1"
#define IS_OVER_1_MIB(value)                                                                        \
    "(CASE WHEN typeof(" value ") = 'text' AND " IS_UTF16 " THEN length(CAST(" value " AS BLOB)) > 2097152\n" \
    "   OR printf('%.1048576s', " value ") <> substr(" value ", 1)\n"                               \
    "   ELSE length(CAST(" value " AS BLOB)) > 1048576 END)"
#define REFUSE_BAD_PAYLOAD(condition)                                                               \
    REFUSE_IF(condition IS_OVER_1_MIB("NEW.payload"),                                               \
              "the payload is over 1 MiB (1048576 bytes); store it elsewhere, and enqueue where it is")

/* ------------------------------------------------------------------------------- counters */

/* A counter that somebody's SQL has left too small must not stand in the way: the pool counts again. */
#define LESS(counter, condition) counter " = max(0, " counter " - (" condition "))"

#define NOTE_THE_WRITER " UPDATE pawl_meta SET value = " NOW_MS " WHERE key = 'sql_writer';\n"

/* -------------------------------------------------------------------------------- enqueue */

#define LEAVE_OUT(column)                                                                           \
    REFUSE_IF("NEW." column " IS NOT NULL", column " is written by pawl; leave it out of the INSERT")

#define NOT_KNOWN "(SELECT value FROM pawl_meta WHERE key = 'sql_last') = 0"
#define NEW_ID "last_insert_rowid()" /* sqlite_sequence is written when the outer statement ends */
/* An application's own trigger, or a conflict clause of the client's, may have kept the row out without an error:
 * then the numbers above are those of another row. */
#define MUST_HAVE_CHANGED(condition)                                                                \
    " SELECT RAISE(ABORT, 'pawl: the job was not stored; see what pawl doctor says about the file')\n" \
    "  WHERE " condition ";\n"

/* ------------------------------------------------------------------------------- changes */

#define CHANGED(column) "NEW." column " IS NOT OLD." column
#define PAYLOAD_CHANGED                                                                             \
    "(" CHANGED("payload") " OR typeof(NEW.payload) <> typeof(OLD.payload))"
#define OTHERS_CHANGED                                                                              \
    CHANGED("id") " OR " CHANGED("queue") " OR " CHANGED("kind") " OR " CHANGED("claimed_at")       \
    "\n  OR " CHANGED("claimed_by") " OR " CHANGED("lease_until") " OR " CHANGED("attempts")        \
    "\n  OR " CHANGED("max_attempts") " OR " CHANGED("last_error") " OR " CHANGED("idempotency_key")\
    "\n  OR " CHANGED("created_at") " OR " CHANGED("updated_at") " OR " CHANGED("finished_at")
/* The new time, or NULL if it is the old one, be it in other words. */
#define NEW_TIME_MS                                                                                 \
    "CASE WHEN " CHANGED("available_at") " THEN nullif(" TIME_MS("NEW.available_at") ",\n"          \
    "   (SELECT available_at FROM pawl_job WHERE id = OLD.id)) END"
#define TIME_CHANGED                                                                                \
    "(" CHANGED("available_at") " AND (" TIME_MS("NEW.available_at") ")\n"                          \
    "   IS NOT (SELECT available_at FROM pawl_job WHERE id = OLD.id))"

#define KEEP(column)                                                                                \
    REFUSE_IF(CHANGED(column), column " cannot be changed; an UPDATE takes the priority, available_at " \
                                      "and payload of a pending job, or the status alone")
#define REFUSE_MIXED(status)                                                                        \
    REFUSE_IF(OTHERS_CHANGED " OR " CHANGED("priority") " OR " CHANGED("available_at")              \
              "\n  OR " PAYLOAD_CHANGED,                                                            \
              "the status changes alone; write UPDATE pawl_jobs SET status = ''" status             \
              "'' WHERE ..., and change the rest in an UPDATE of its own")

const char *const pawli_sqlite_triggers[] = {
    "CREATE TRIGGER pawl_jobs_insert INSTEAD OF INSERT ON pawl_jobs BEGIN\n"
    " SELECT CASE\n"
    LEAVE_OUT("id") LEAVE_OUT("claimed_at") LEAVE_OUT("claimed_by") LEAVE_OUT("lease_until")
    LEAVE_OUT("attempts") LEAVE_OUT("last_error") LEAVE_OUT("created_at") LEAVE_OUT("updated_at")
    LEAVE_OUT("finished_at")
    REFUSE_IF("NEW.status IS NOT NULL AND NEW.status IS NOT 'pending'",
              "a new job is pending; leave status out of the INSERT")
    REFUSE_IF("NEW.kind IS NULL",
              "kind is missing; write INSERT INTO pawl_jobs (kind, payload) VALUES (''mail'', ...)"),
    REFUSE_IF(IS_NO_NAME("NEW.kind"),
              "kind must be text, 1 to 255 bytes of UTF-8, without control characters")
    REFUSE_IF("NEW.queue IS NOT NULL AND (" IS_NO_NAME("NEW.queue") ")",
              "queue must be text, 1 to 255 bytes of UTF-8, without control characters; left out it is "
              "''default''"),
    REFUSE_BAD_PAYLOAD("")
    "  WHEN NEW.priority IS NULL THEN 0\n"
    REFUSE_BAD_PRIORITY
    " END;\n"
    " SELECT CASE WHEN NEW.available_at IS NULL THEN 0\n"
    REFUSE_BAD_TIME
    " END;\n",
    " SELECT CASE\n"
    REFUSE_IF("NEW.max_attempts IS NOT NULL\n   AND NOT "
              IS_WHOLE_IN("NEW.max_attempts", "1", "4294967295"),
              "max_attempts must be an integer from 1 to 4294967295; left out it is 5")
    "  WHEN NEW.idempotency_key IS NULL THEN 0\n"
    REFUSE_IF("typeof(NEW.idempotency_key) = 'blob'",
              "idempotency_key is a blob; write text, for example hex(...) of it")
    REFUSE_IF("typeof(NEW.idempotency_key) = 'real'\n   AND NOT "
              IS_WHOLE_IN("NEW.idempotency_key", "-9007199254740991", "9007199254740991"),
              "idempotency_key is a number that is not whole, or too large to be exact; write text")
    REFUSE_IF("typeof(NEW.idempotency_key) = 'text' AND (" IS_NO_TEXT("NEW.idempotency_key")
              "\n   OR " IS_NOT_UTF8("NEW.idempotency_key") ")",
              "idempotency_key must be text, 1 to 255 bytes of UTF-8, without NUL")
    " END;\n",
    " INSERT INTO pawl_kind (name) SELECT NEW.kind\n"
    "  WHERE NOT EXISTS (SELECT 1 FROM pawl_kind WHERE name = NEW.kind);\n"
    /* From here on sql_last is the known job, or 0 until the new one is stored. */
    " UPDATE pawl_meta SET value = ifnull((SELECT id FROM pawl_job WHERE kind = " KIND "\n"
    "  AND idempotency_key = " KEY "), 0) WHERE key = 'sql_last';\n"
    MUST_HAVE_CHANGED("changes() <> 1")
    " INSERT INTO pawl_lane (queue, kind) SELECT " QUEUE ", " KIND " WHERE " NOT_KNOWN "\n"
    "  AND NOT EXISTS (SELECT 1 FROM pawl_lane WHERE queue = " QUEUE " AND kind = " KIND ");\n"
    /* The row that pawl_enqueue_in() writes; see new_jobs.c for the values of what is not claimed yet. */
    " INSERT INTO pawl_job (lane, kind, status, priority, attempts, max_attempts, cancel,\n"
    "  bystander, holder, fence, timeout_ms, available_at, created_at, updated_at, claimed_at,\n"
    "  lease_until, lease_boot, idempotency_key, payload)\n"
    "  SELECT l.id, l.kind, CASE WHEN t.due > t.now THEN 8 ELSE 2 END,\n"
    "  CAST(ifnull(NEW.priority, 0) AS INTEGER), 0, CAST(ifnull(NEW.max_attempts, 5) AS INTEGER), 0,\n"
    "  0, 0, (SELECT value FROM pawl_meta WHERE key = 'epoch') << 40, 0, max(t.due, t.now), t.now,\n"
    "  t.now, t.now, t.now, t.now, " KEY ", NEW.payload\n",
    "  FROM (SELECT " NOW_MS " AS now, ifnull(" TIME_MS("NEW.available_at") ", 0) AS due) t\n"
    "  CROSS JOIN pawl_lane l\n"
    "  WHERE l.queue = " QUEUE " AND l.kind = " KIND " AND " NOT_KNOWN ";\n"
    MUST_HAVE_CHANGED("changes() <> 1 AND " NOT_KNOWN)
    " UPDATE pawl_lane SET ready = ready + (j.status = 2), later = later + (j.status = 8),\n"
    "  enqueued = enqueued + 1 FROM pawl_job j\n"
    "  WHERE j.id = " NEW_ID " AND pawl_lane.id = j.lane AND " NOT_KNOWN ";\n"
    MUST_HAVE_CHANGED("changes() <> 1 AND " NOT_KNOWN)
    " UPDATE pawl_meta SET value = " NEW_ID " WHERE key = 'sql_last' AND value = 0;\n"
    NOTE_THE_WRITER
    MUST_HAVE_CHANGED("NOT EXISTS (SELECT 1 FROM pawl_job j JOIN pawl_meta m ON m.value = j.id\n"
                      "  WHERE m.key = 'sql_last' AND j.kind = " KIND " AND j.idempotency_key IS " KEY ")")
    "END;\n",

    /* As operate.c does: what waits will never run; the holder of what runs is told, once. */
    "CREATE TRIGGER pawl_jobs_cancel INSTEAD OF UPDATE ON pawl_jobs\n"
    " WHEN NEW.status IS 'cancelled' AND OLD.status IS NOT 'cancelled' BEGIN\n"
    " SELECT CASE\n"
    REFUSE_MIXED("cancelled")
    REFUSE_IF("OLD.status IN ('succeeded', 'failed')",
              "a job that has succeeded or failed cannot be cancelled; add AND status IN (''pending'', "
              "''running'')")
    " END;\n"
    " UPDATE pawl_holder SET cancels = cancels + 1 WHERE id = (SELECT holder FROM pawl_job\n"
    "  WHERE id = OLD.id AND status = 3 AND cancel = 0);\n"
    " UPDATE pawl_job SET cancel = 1 WHERE id = OLD.id AND status = 3 AND cancel = 0;\n"
    " UPDATE pawl_lane SET " LESS("ready", "j.status = 2") ", " LESS("blocked", "j.status = 7") ",\n"
    "  " LESS("later", "j.status = 8") ", cancelled = cancelled + 1 FROM pawl_job j\n"
    "  WHERE j.id = OLD.id AND j.status IN (2, 7, 8) AND pawl_lane.id = j.lane;\n"
    " UPDATE pawl_job SET status = 6, updated_at = " NOW_MS "\n"
    "  WHERE id = OLD.id AND status IN (2, 7, 8);\n"
    NOTE_THE_WRITER
    "END;\n",

    "CREATE TRIGGER pawl_jobs_requeue INSTEAD OF UPDATE ON pawl_jobs\n"
    " WHEN NEW.status IS 'pending' AND OLD.status IS NOT 'pending' BEGIN\n"
    " SELECT CASE\n"
    REFUSE_MIXED("pending")
    REFUSE_IF("OLD.status = 'running'",
              "a running job cannot be requeued; cancel it, and requeue it when it has ended")
    REFUSE_IF("OLD.status = 'succeeded'",
              "a job that has succeeded does not run again; insert a new one")
    REFUSE_IF("OLD.status NOT IN ('failed', 'cancelled')",
              "only failed and cancelled jobs can be requeued; add AND status IN (''failed'', "
              "''cancelled'')")
    " END;\n"
    " UPDATE pawl_lane SET " LESS("failed", "j.status = 5") ", " LESS("cancelled", "j.status = 6") ",\n"
    "  ready = ready + 1 FROM pawl_job j\n"
    "  WHERE j.id = OLD.id AND j.status IN (5, 6) AND pawl_lane.id = j.lane;\n"
    " UPDATE pawl_job SET status = 2, attempts = 0, bystander = 0, cancel = 0,\n"
    "  available_at = " NOW_MS ", updated_at = " NOW_MS " WHERE id = OLD.id AND status IN (5, 6);\n"
    NOTE_THE_WRITER
    "END;\n",

    "CREATE TRIGGER pawl_jobs_status INSTEAD OF UPDATE ON pawl_jobs\n"
    " WHEN NEW.status IS NOT OLD.status AND NEW.status IS NOT 'cancelled'\n"
    " AND NEW.status IS NOT 'pending' BEGIN\n"
    " SELECT RAISE(ABORT, 'pawl: status can be set to ''cancelled'' (cancel it) or ''pending'' (requeue "
    "it); every other state comes from running the job');\n"
    "END;\n",

    "CREATE TRIGGER pawl_jobs_change INSTEAD OF UPDATE ON pawl_jobs\n"
    " WHEN NEW.status IS OLD.status AND (" OTHERS_CHANGED "\n"
    "  OR " CHANGED("priority") " OR " PAYLOAD_CHANGED "\n"
    "  OR " TIME_CHANGED ") BEGIN\n"
    " SELECT CASE\n",
    KEEP("id") KEEP("queue") KEEP("kind") KEEP("claimed_at") KEEP("claimed_by") KEEP("lease_until")
    KEEP("attempts"),
    KEEP("max_attempts") KEEP("last_error") KEEP("idempotency_key") KEEP("created_at") KEEP("updated_at")
    KEEP("finished_at"),
    REFUSE_IF("OLD.status IS NOT 'pending'",
              "only a pending job can be changed, and this one runs or has ended; add AND status = "
              "''pending''")
    REFUSE_BAD_PRIORITY
    REFUSE_BAD_PAYLOAD(PAYLOAD_CHANGED " AND ")
    " END;\n"
    " SELECT CASE WHEN NEW.available_at IS OLD.available_at THEN 0\n"
    REFUSE_BAD_TIME
    " END;\n",
    " UPDATE pawl_lane SET\n"
    "  ready = max(0, ready - (j.status = 2) + (t.due <= t.now)),\n"
    "  later = max(0, later - (j.status = 8) + (t.due > t.now))\n"
    "  FROM pawl_job j, (SELECT " NOW_MS " AS now, " NEW_TIME_MS " AS due) t\n"
    "  WHERE j.id = OLD.id AND j.status IN (2, 8) AND pawl_lane.id = j.lane AND t.due IS NOT NULL;\n",
    " UPDATE pawl_job SET priority = CAST(NEW.priority AS INTEGER), payload = NEW.payload,\n"
    "  status = CASE WHEN t.due > t.now THEN 8 WHEN t.due IS NOT NULL THEN 2 ELSE status END,\n"
    "  available_at = ifnull(max(t.due, t.now), available_at), updated_at = t.now\n"
    "  FROM (SELECT " NOW_MS " AS now, " NEW_TIME_MS " AS due) t\n"
    "  WHERE pawl_job.id = OLD.id AND pawl_job.status IN (2, 8);\n"
    NOTE_THE_WRITER
    "END;\n",

    "CREATE TRIGGER pawl_jobs_delete INSTEAD OF DELETE ON pawl_jobs BEGIN\n"
    " SELECT RAISE(ABORT, 'pawl: jobs are not deleted by hand; cancel one that waits with UPDATE pawl_jobs "
    "SET status = ''cancelled'' WHERE ...; history is pruned when its retention is over');\n"
    "END;\n",
    NULL
};
