/* sql_text.h - SQL that the views and the triggers say in the same words. */
#ifndef PAWLI_SQLITE_SQL_TEXT_H
#define PAWLI_SQLITE_SQL_TEXT_H

#include <stddef.h>

/* Unix milliseconds, the same all through a statement. A Julian day holds them exactly, once rounded. */
#define NOW_MS "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)"

/* Milliseconds as text that sorts, UTC; exact from 1970 to 9999. */
#define TIME_TEXT(ms) "strftime('%Y-%m-%d %H:%M:%f', " ms " / 1000.0, 'unixepoch')"

/* At most 255 bytes of UTF-8 and no NUL, in a database of any encoding: a precision counts bytes and ends
 * at a NUL, while CAST(… AS BLOB) would count the bytes as they are stored. */
#define IS_SHORT(text) "printf('%.255s', " text ") = " text

/* Parts of the tables that migrate.c gives to older ones. A key is text if it can be (see enqueue.c): a blob of
 * ASCII is refused, because a pool of an older version would store one beside the text that it is. */
#define PAWLI_CHECK_OF_NAME(column) column " <> '' AND " IS_SHORT(column)
#define PAWLI_COLUMN_OF_KEY                                                                         \
    "idempotency_key ANY CHECK (CASE typeof(idempotency_key) WHEN 'null' THEN 1"                    \
    " WHEN 'text' THEN idempotency_key <> '' AND " IS_SHORT("idempotency_key")                      \
    " WHEN 'blob' THEN length(idempotency_key) BETWEEN 1 AND 255"                                   \
    " AND (instr(idempotency_key, x'00') > 0 OR CAST(idempotency_key AS TEXT) = ''"                 \
    " OR CAST(idempotency_key AS TEXT) GLOB '*[^' || char(1) || '-' || char(127) || ']*')"          \
    " ELSE 0 END)"
#define PAWLI_CREATE_INDEX_DEAD                                                                     \
    "CREATE INDEX pawl_job_dead ON pawl_job (updated_at) WHERE status = 5;"
/* The job that the latest INSERT through pawl_jobs stored or found, and when one of its triggers last wrote. */
#define PAWLI_INSERT_SQL_META                                                                       \
    "INSERT INTO pawl_meta (key, value) VALUES ('sql_last', 0), ('sql_writer', 0);"

/* Pieces of SQL, which are run as one text; NULL ends them. */
extern const char *const pawli_sqlite_views[];
extern const char *const pawli_sqlite_triggers[];

#endif
