/* operate.c - what an operator does: cancel, requeue, pause, resume.
 * Threads: the writer's role, inside its transaction.
 * Keeps:   I8 a terminal state changes by a requeue only. */
#include <string.h>

#include "sqlite_store.h"

typedef struct job_row {
    int status;
    pawli_lane *lane;
    int64_t holder;
    bool cancel;
} job_row;

static int read_row(pawli_sqlite *s, int64_t id, job_row *out, bool *found)
{
    int rc;
    *found = false;
    sqlite3_stmt *row = pawli_query(s, PAWLI_SQL_STATE_READ, &rc, NUM(id));
    if (row == NULL)
        return rc;
    rc = sqlite3_step(row);
    if (rc == SQLITE_ROW) {
        *out = (job_row){ .status = sqlite3_column_int(row, 0),
                          .lane = pawli_lane_by_id(s, sqlite3_column_int64(row, 1)),
                          .holder = sqlite3_column_int64(row, 2),
                          .cancel = sqlite3_column_int(row, 3) != 0 };
        *found = true;
        if (out->lane == NULL)
            rc = SQLITE_CORRUPT; /* a job without its lane */
    }
    return pawli_done(row, rc);
}

static int cancel_running(pawli_sqlite *s, int64_t id, const job_row *row, pawl_status *answer)
{
    *answer = PAWL_ACCEPTED;
    if (row->cancel)
        return SQLITE_OK;
    int rc = pawli_change(s, PAWLI_SQL_CANCEL_RUNNING, NUM(id));
    if (rc == SQLITE_OK)
        rc = pawli_run(s, PAWLI_SQL_HOLDER_CANCELS, NUM(row->holder));
    return rc;
}

static int cancel(pawli_sqlite *s, int64_t id, const job_row *row, pawl_status *answer)
{
    switch (row->status) {
    case PAWLI_DB_RUNNING: return cancel_running(s, id, row, answer);
    case PAWLI_DB_CANCELLED: *answer = PAWL_OK; return SQLITE_OK;
    case PAWLI_DB_SUCCEEDED:
    case PAWLI_DB_FAILED: *answer = PAWL_ERR_STATE; return SQLITE_OK;
    default: break;
    }
    int rc = pawli_change(s, PAWLI_SQL_CANCEL_PENDING, NUM(id), NUM(s->batch->now_ms));
    if (rc == SQLITE_OK)
        pawli_lane_move(s, row->lane, row->status, PAWLI_DB_CANCELLED);
    *answer = PAWL_OK;
    return rc;
}

static int requeue(pawli_sqlite *s, int64_t id, const job_row *row, pawl_status *answer)
{
    *answer = PAWL_ERR_STATE;
    if (row->status != PAWLI_DB_FAILED && row->status != PAWLI_DB_CANCELLED)
        return SQLITE_OK;
    int rc = pawli_change(s, PAWLI_SQL_REQUEUE, NUM(id), NUM(s->batch->now_ms));
    if (rc == SQLITE_OK)
        pawli_lane_move(s, row->lane, row->status, PAWLI_DB_READY);
    *answer = PAWL_OK;
    return rc;
}

static int each(pawli_sqlite *s, pawli_operation *op)
{
    for (size_t i = 0; i < op->count; i++) {
        job_row row = { 0 };
        bool found;
        int rc = read_row(s, op->ids[i], &row, &found);
        op->each[i] = PAWL_ERR_NOT_FOUND;
        if (rc == SQLITE_OK && found)
            rc = op->type == PAWLI_CANCEL ? cancel(s, op->ids[i], &row, &op->each[i])
                                          : requeue(s, op->ids[i], &row, &op->each[i]);
        if (rc != SQLITE_OK)
            return rc;
    }
    return SQLITE_OK;
}

static int pause(pawli_sqlite *s, const char *queue, bool paused)
{
    int rc = paused ? pawli_run(s, PAWLI_SQL_PAUSE, TEXT(queue), NUM(s->batch->now_ms))
                    : pawli_run(s, PAWLI_SQL_RESUME, TEXT(queue));
    if (rc != SQLITE_OK)
        return rc;
    for (pawli_lane *lane = s->lanes.all; lane != NULL; lane = lane->next)
        if (strcmp(lane->queue, queue) == 0)
            lane->paused = paused;
    return SQLITE_OK;
}

int pawli_operate_apply(pawli_sqlite *s, pawli_operation *op)
{
    op->status = PAWL_OK;
    switch (op->type) {
    case PAWLI_PAUSE: return pause(s, op->queue, true);
    case PAWLI_RESUME: return pause(s, op->queue, false);
    case PAWLI_SYNC: return pawli_change_a_byte(s); /* an empty commit would flush nothing (R12) */
    case PAWLI_CANCEL:
    case PAWLI_REQUEUE:
    default: return each(s, op);
    }
}
