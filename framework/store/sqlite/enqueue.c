/* enqueue.c - stores new jobs: finds their lanes and keys first, then inserts all of them at once.
 * Threads: the writer's role, inside its transaction.
 * Keeps:   I1 with the commit; I16 one stored job per (kind, idempotency key). */
#include <string.h>

#include "../../text.h"
#include "sqlite_store.h"

/* A key that can be text is stored as text, so that people find it in SQL, and any other as a blob. Either
 * way it is the same bytes, and one key has one form (I16). */
pawli_value pawli_key_value(const void *key, size_t bytes)
{
    bool is_text = key != NULL && pawli_text_storable(key, bytes);
    return is_text ? TEXTN(key, bytes) : BLOB(key, bytes);
}

static int find_by_key(pawli_sqlite *s, pawli_new_job *job)
{
    return pawli_read_integer(s, PAWLI_SQL_JOB_BY_KEY,
                              PAWLI_VALUES(NUM(job->lane->kind_id),
                                           pawli_key_value(job->key, job->key_bytes)),
                              &job->id, &job->exists);
}

static int prepare_job(pawli_sqlite *s, pawli_new_job *job)
{
    job->exists = false;
    job->claim = NULL;
    job->id = 0;
    int rc = pawli_lane_find(s, job->queue, job->kind, &job->lane);
    if (rc == SQLITE_OK && job->key != NULL)
        rc = find_by_key(s, job);
    if (job->delay_ms > 0)
        job->available_at_ms = pawli_add(s->batch->now_ms, job->delay_ms);
    if (job->available_at_ms < s->batch->now_ms)
        job->available_at_ms = s->batch->now_ms;
    if (job->available_at_ms > PAWLI_TIME_MAX_MS)
        job->available_at_ms = PAWLI_TIME_MAX_MS;
    return rc;
}

int pawli_enqueue_prepare(pawli_sqlite *s, pawli_new_jobs *group)
{
    for (size_t i = 0; i < group->count; i++) {
        int rc = prepare_job(s, &group->jobs[i]);
        if (rc != SQLITE_OK)
            return rc;
    }
    return SQLITE_OK;
}

/* Ids are given here, in the order of the calls, from the sequence that SQLite keeps; see pawli_sqlite.triggered. */
static size_t number(pawli_sqlite *s, pawli_new_jobs *groups)
{
    size_t fresh = 0;
    for (pawli_new_jobs *group = groups; group != NULL; group = group->next)
        for (size_t i = 0; i < group->count; i++)
            if (!group->jobs[i].exists) {
                group->jobs[i].id = ++s->last_id;
                fresh++;
            }
    return fresh;
}

static void count_job(pawli_sqlite *s, const pawli_new_job *job)
{
    pawli_count count = PAWLI_COUNT_READY;
    if (job->claim != NULL) {
        count = PAWLI_COUNT_RUNNING;
    } else if (job->available_at_ms > s->batch->now_ms) {
        count = PAWLI_COUNT_LATER;
        if (job->available_at_ms < s->next_due_ms)
            s->next_due_ms = job->available_at_ms;
    }
    pawli_lane_count(s, job->lane, count, 1);
    pawli_lane_count(s, job->lane, PAWLI_COUNT_ENQUEUED, 1);
}

static void answer(pawli_sqlite *s, pawli_new_jobs *group)
{
    for (size_t i = 0; i < group->count; i++) {
        pawli_new_job *job = &group->jobs[i];
        if (job->exists)
            continue;
        if (job->claim != NULL)
            job->claim->job = job->id;
        count_job(s, job);
        s->batch->stored++;
    }
    group->status = PAWL_OK;
}

int pawli_enqueue_insert(pawli_sqlite *s, pawli_new_jobs *groups)
{
    int rc = s->triggered ? pawli_read_last_id(s) : SQLITE_OK;
    if (rc != SQLITE_OK)
        return rc;
    int64_t fresh = (int64_t)number(s, groups);
    if (fresh > 0) {
        s->rows = groups;
        rc = pawli_run_plain(s, PAWLI_SQL_JOBS_INSERT);
        s->rows = NULL;
        if (rc == SQLITE_OK && sqlite3_changes64(s->db) != fresh)
            rc = SQLITE_CONSTRAINT_TRIGGER; /* see pawli_change() */
        if (rc != SQLITE_OK)
            return rc;
    }
    for (pawli_new_jobs *group = groups; group != NULL; group = group->next)
        answer(s, group);
    return SQLITE_OK;
}

/* One group for itself, job by job, so that a key which it names twice is found the second time. */
int pawli_enqueue_one(pawli_sqlite *s, pawli_new_jobs *group)
{
    for (size_t i = 0; i < group->count; i++) {
        pawli_new_jobs single = { .jobs = &group->jobs[i], .count = 1 };
        int rc = pawli_enqueue_prepare(s, &single);
        if (rc == SQLITE_OK)
            rc = pawli_enqueue_insert(s, &single);
        if (rc != SQLITE_OK)
            return rc;
    }
    group->status = PAWL_OK;
    return SQLITE_OK;
}
