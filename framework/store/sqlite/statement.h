/* statement.h - the store's SQL: every statement of the writer's connection, prepared once. */
#ifndef PAWLI_SQLITE_STATEMENT_H
#define PAWLI_SQLITE_STATEMENT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pawli_sqlite;

typedef enum pawli_sql {
    PAWLI_SQL_BEGIN,
    PAWLI_SQL_COMMIT,
    PAWLI_SQL_ROLLBACK,
    PAWLI_SQL_ITEM_BEGIN,
    PAWLI_SQL_ITEM_RELEASE,
    PAWLI_SQL_ITEM_ROLLBACK,
    PAWLI_SQL_EFFECT_BEGIN,
    PAWLI_SQL_EFFECT_RELEASE,
    PAWLI_SQL_EFFECT_ROLLBACK,
    PAWLI_SQL_DATA_VERSION,
    PAWLI_SQL_META_READ,
    PAWLI_SQL_META_WRITE,
    PAWLI_SQL_SCHEMA_VERSION,
    PAWLI_SQL_TRIGGERED,
    PAWLI_SQL_LAST_ID,
    PAWLI_SQL_NEXT_DUE,
    PAWLI_SQL_LANES,
    PAWLI_SQL_LANE_FIND,
    PAWLI_SQL_LANE_ADD,
    PAWLI_SQL_LANE_COUNT,
    PAWLI_SQL_LANE_ERROR,
    PAWLI_SQL_LANE_RECOUNT,
    PAWLI_SQL_KIND_FIND,
    PAWLI_SQL_KIND_ADD,
    PAWLI_SQL_IS_PAUSED,
    PAWLI_SQL_PAUSE,
    PAWLI_SQL_RESUME,
    PAWLI_SQL_JOB_BY_KEY,
    PAWLI_SQL_JOBS_INSERT,
    PAWLI_SQL_HEADS,
    PAWLI_SQL_CLAIM_READ,
    PAWLI_SQL_CLAIM,
    PAWLI_SQL_REFUSE,
    PAWLI_SQL_SUCCEED,
    PAWLI_SQL_HEARTBEAT,
    PAWLI_SQL_HELD,
    PAWLI_SQL_AFTERMATH,
    PAWLI_SQL_ATTEMPT_ADD,
    PAWLI_SQL_ATTEMPTS_TRIM,
    PAWLI_SQL_ATTEMPTS_DELETE,
    PAWLI_SQL_STATE_READ,
    PAWLI_SQL_CANCEL_PENDING,
    PAWLI_SQL_CANCEL_RUNNING,
    PAWLI_SQL_HOLDER_CANCELS,
    PAWLI_SQL_REQUEUE,
    PAWLI_SQL_PROMOTABLE,
    PAWLI_SQL_PROMOTE,
    PAWLI_SQL_CLAIMS_OF,
    PAWLI_SQL_CLAIMS_EXPIRED,
    PAWLI_SQL_ORPHANS,
    PAWLI_SQL_FIRST_EXPIRY,
    PAWLI_SQL_PRUNE_WALK,
    PAWLI_SQL_PRUNE,
    PAWLI_SQL_HOLDER_ADD,
    PAWLI_SQL_HOLDER_LEFT,
    PAWLI_SQL_HOLDERS_FORGET,
    PAWLI_SQL_HOLDERS,
    PAWLI_SQL_CANCELS_COUNT,
    PAWLI_SQL_CANCELS,
    PAWLI_SQL_COUNT
} pawli_sql;

typedef struct pawli_value {
    enum { PAWLI_VALUE_NULL, PAWLI_VALUE_INT, PAWLI_VALUE_TEXT, PAWLI_VALUE_BLOB } type;
    int64_t integer;
    const void *bytes;
    size_t count;
} pawli_value;

/* Values to bind: an integer, a text, a blob. They stay the caller's and must outlive the step. */
#define NUM(value) ((pawli_value){ PAWLI_VALUE_INT, (int64_t)(value), NULL, 0 })
#define TEXT(text) pawli_text_value(text)
#define TEXTN(text, length) ((pawli_value){ (text) ? PAWLI_VALUE_TEXT : PAWLI_VALUE_NULL, 0, text, length })
#define BLOB(data, length) ((pawli_value){ (data) ? PAWLI_VALUE_BLOB : PAWLI_VALUE_NULL, 0, data, length })
pawli_value pawli_text_value(const char *text);
int pawli_bind(sqlite3_stmt *statement, int at, const pawli_value *value);

/* Binds and returns a statement to be stepped; pawli_done() it. NULL: *rc says why. */
sqlite3_stmt *pawli_query_values(struct pawli_sqlite *s, pawli_sql sql, const pawli_value *values,
                                 size_t count, int *rc);
/* Binds, runs to the end, resets (R3). SQLITE_OK or an error; see sqlite3_changes(). */
int pawli_run_values(struct pawli_sqlite *s, pawli_sql sql, const pawli_value *values, size_t count);
/* The same where one row must change: SQLITE_CONSTRAINT_TRIGGER if none has, as somebody's trigger has swallowed
 * the write. What was not written is not to be acknowledged. */
int pawli_change_values(struct pawli_sqlite *s, pawli_sql sql, const pawli_value *values, size_t count);
/* Resets and clears (R3). `rc`: what the last step gave. SQLITE_OK for ROW and DONE. */
int pawli_done(sqlite3_stmt *statement, int rc);
/* Reads the first column of the first row; SQLITE_OK, with *found false if there is none. */
int pawli_read_integer(struct pawli_sqlite *s, pawli_sql sql, const pawli_value *values,
                       size_t count, int64_t *out, bool *found);
void pawli_statements_finalize(struct pawli_sqlite *s);

#define PAWLI_VALUES(...)                                                                          \
    (const pawli_value[]){ __VA_ARGS__ },                                                          \
        sizeof((const pawli_value[]){ __VA_ARGS__ }) / sizeof(pawli_value)
#define pawli_query(s, sql, rc, ...) pawli_query_values(s, sql, PAWLI_VALUES(__VA_ARGS__), rc)
#define pawli_run(s, sql, ...) pawli_run_values(s, sql, PAWLI_VALUES(__VA_ARGS__))
#define pawli_change(s, sql, ...) pawli_change_values(s, sql, PAWLI_VALUES(__VA_ARGS__))
#define pawli_run_plain(s, sql) pawli_run_values(s, sql, NULL, 0)

#endif
