/* promote.c - delayed jobs that have fallen due become ready, a slice at a time.
 * Threads: the writer's role, inside its transaction.
 * Keeps:   I13 never before available_at. */
#include "sqlite_store.h"

typedef struct due_job {
    int64_t id, lane;
} due_job;

static int read_due(pawli_sqlite *s, due_job *due, size_t *count)
{
    int rc;
    *count = 0;
    sqlite3_stmt *row = pawli_query(s, PAWLI_SQL_PROMOTABLE, &rc, NUM(s->batch->now_ms), NUM(PAWLI_SLICE));
    if (row == NULL)
        return rc;
    while ((rc = sqlite3_step(row)) == SQLITE_ROW)
        due[(*count)++] = (due_job){ sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1) };
    return pawli_done(row, rc);
}

static int read_next_due(pawli_sqlite *s)
{
    bool found;
    int rc = pawli_read_integer(s, PAWLI_SQL_NEXT_DUE, NULL, 0, &s->next_due_ms, &found);
    if (!found)
        s->next_due_ms = PAWLI_NEVER;
    return rc;
}

int pawli_promote_apply(pawli_sqlite *s)
{
    if (s->next_due_ms > s->batch->now_ms)
        return SQLITE_OK;
    due_job due[PAWLI_SLICE];
    size_t count;
    int rc = read_due(s, due, &count);
    for (size_t i = 0; rc == SQLITE_OK && i < count; i++) {
        pawli_lane *lane = pawli_lane_by_id(s, due[i].lane);
        rc = lane != NULL ? pawli_change(s, PAWLI_SQL_PROMOTE, NUM(due[i].id))
                          : pawli_refuse(s, due[i].id, "its lane does not exist");
        if (rc == SQLITE_OK && lane != NULL)
            pawli_lane_move(s, lane, PAWLI_DB_LATER, PAWLI_DB_READY);
    }
    s->batch->promoted += count;
    return rc == SQLITE_OK ? read_next_due(s) : rc;
}
