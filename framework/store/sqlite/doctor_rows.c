/* doctor_rows.c - one pass over every job: the counters against a recount, and what the schema cannot state.
 * Payloads stand last in their rows and are not read. Where much is written meanwhile the pass goes on in another
 * transaction: the faults of rows are found all the same, but a recount is good in one moment only.
 * Threads: the caller of pawl_diagnose().
 * Keeps:   R7 the pass is bounded; what it met is told after the transaction. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define PROMOTION_SLACK_MS 10000 /* a pool promotes within moments */
#define CLOCK_SLACK_MS 60000

typedef struct lane_row {
    int64_t id, kind;
    int64_t stored[PAWLI_COUNTS];  /* its counters */
    int64_t counted[PAWLI_COUNTS]; /* its rows */
    char *name; /* "queue"/"kind", for the report */
} lane_row;

typedef struct holder_row {
    int64_t id;
    bool has_left;
} holder_row;

/* What a row can have wrong. */
typedef enum fault {
    NO_LANE,
    WRONG_KIND,
    READY_EARLY,
    LATER_OVERDUE,
    NO_HOLDER,
    HOLDER_LEFT,
    RUNS_UNCLAIMED,
    FENCE_BEYOND,
    OVER_MAX,
    NONE_LEFT,
    RUNS_UNCHARGED,
    SUCCEEDED_UNCHARGED,
    FAULTS
} fault;

typedef struct pawli_census {
    lane_row *lanes;
    size_t lane_count;
    holder_row *holders;
    size_t holder_count;
    int64_t fence_last; /* the highest that can have been given out */
    struct {
        int64_t rows, first;
    } faults[FAULTS];
    int64_t rows, last_id;
    const char *cut;      /* why it was not made in one transaction; NULL: it was */
    bool is_short;        /* it ends before the last job */
} pawli_census;

static void forget_lanes(pawli_census *c)
{
    for (size_t i = 0; i < c->lane_count; i++)
        free(c->lanes[i].name);
    free(c->lanes);
    free(c->holders);
    c->lanes = NULL;
    c->holders = NULL;
    c->lane_count = c->holder_count = 0;
}

void pawli_doctor_census_free(pawli_census *c)
{
    if (c == NULL)
        return;
    forget_lanes(c);
    free(c);
}

/* ------------------------------------------------------------------------------- reading */

/* Room for one more of an array that doubles. */
static bool grow(void **array, size_t count, size_t element_bytes)
{
    if (count > 0 && (count & (count - 1)) != 0)
        return true;
    void *larger = realloc(*array, (count == 0 ? 1 : 2 * count) * element_bytes);
    if (larger != NULL)
        *array = larger;
    return larger != NULL;
}

/* Columns of lanes_sql; the counters in the order of pawli_count. */
enum { LANE_ID, LANE_KIND, LANE_COUNTS, LANE_QUEUE = LANE_COUNTS + PAWLI_COUNTS, LANE_KIND_NAME };
static const char lanes_sql[] = "SELECT l.id, l.kind, l.ready, l.later, l.running, l.succeeded, l.failed, l.cancelled,"
                                " l.blocked, l.enqueued, l.pruned, l.queue, k.name FROM pawl_lane l"
                                " LEFT JOIN pawl_kind k ON k.id = l.kind ORDER BY l.id";

static char *lane_name(sqlite3_stmt *row)
{
    char queue[256], kind[256], name[600];
    (void)pawli_doctor_name((const char *)sqlite3_column_text(row, LANE_QUEUE), queue);
    (void)pawli_doctor_name((const char *)sqlite3_column_text(row, LANE_KIND_NAME), kind);
    (void)snprintf(name, sizeof name, "queue \"%s\", kind \"%s\"", queue, kind);
    return strdup(name);
}

static int take_lane(sqlite3_stmt *row, void *arg)
{
    pawli_census *c = arg;
    if (!grow((void **)&c->lanes, c->lane_count, sizeof *c->lanes))
        return SQLITE_NOMEM;
    lane_row *lane = &c->lanes[c->lane_count];
    memset(lane, 0, sizeof *lane);
    lane->id = sqlite3_column_int64(row, LANE_ID);
    lane->kind = sqlite3_column_int64(row, LANE_KIND);
    for (int i = 0; i < PAWLI_COUNTS; i++)
        lane->stored[i] = sqlite3_column_int64(row, LANE_COUNTS + i);
    lane->name = lane_name(row);
    c->lane_count += lane->name != NULL;
    return lane->name != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

static int take_holder(sqlite3_stmt *row, void *arg)
{
    pawli_census *c = arg;
    if (!grow((void **)&c->holders, c->holder_count, sizeof *c->holders))
        return SQLITE_NOMEM;
    c->holders[c->holder_count++] = (holder_row){ sqlite3_column_int64(row, 0),
                                                  sqlite3_column_int(row, 1) != 0 };
    return SQLITE_OK;
}

/* Both structs begin with their id, and their arrays are sorted by it. */
static int by_id(const void *key, const void *element)
{
    const int64_t *a = key, *b = element;
    return *a < *b ? -1 : *a > *b;
}

static void note(pawli_census *c, fault which, int64_t job)
{
    if (c->faults[which].rows++ == 0)
        c->faults[which].first = job;
}

enum { ID, LANE, KIND, STATUS, ATTEMPTS, MAX_ATTEMPTS, HOLDER, FENCE, AVAILABLE_AT };

static void judge_running(pawli_census *c, sqlite3_stmt *row, int64_t id)
{
    int64_t holder = sqlite3_column_int64(row, HOLDER);
    const holder_row *found = c->holder_count == 0
                                  ? NULL
                                  : bsearch(&holder, c->holders, c->holder_count, sizeof *c->holders, by_id);
    if (found == NULL)
        note(c, NO_HOLDER, id);
    else if (found->has_left)
        note(c, HOLDER_LEFT, id);
    if ((sqlite3_column_int64(row, FENCE) & PAWLI_FENCE_COUNTER_MASK) == 0)
        note(c, RUNS_UNCLAIMED, id);
    if (sqlite3_column_int64(row, ATTEMPTS) == 0)
        note(c, RUNS_UNCHARGED, id);
}

static void judge_status(pawli_doctor *d, sqlite3_stmt *row, int64_t id, int status)
{
    pawli_census *c = d->census;
    int64_t available_at = sqlite3_column_int64(row, AVAILABLE_AT);
    int64_t attempts = sqlite3_column_int64(row, ATTEMPTS), most = sqlite3_column_int64(row, MAX_ATTEMPTS);
    if (attempts > most)
        note(c, OVER_MAX, id);
    else if (attempts == most && (status == PAWLI_DB_READY || status == PAWLI_DB_LATER))
        note(c, NONE_LEFT, id);
    if (status == PAWLI_DB_SUCCEEDED && attempts == 0)
        note(c, SUCCEEDED_UNCHARGED, id);
    if (status == PAWLI_DB_READY && available_at > d->now_ms + CLOCK_SLACK_MS)
        note(c, READY_EARLY, id);
    if (status == PAWLI_DB_LATER && available_at < d->now_ms - PROMOTION_SLACK_MS)
        note(c, LATER_OVERDUE, id);
    if (status == PAWLI_DB_RUNNING)
        judge_running(c, row, id);
}

static int take_job(sqlite3_stmt *row, void *arg)
{
    pawli_doctor *d = arg;
    pawli_census *c = d->census;
    int64_t id = sqlite3_column_int64(row, ID), lane_id = sqlite3_column_int64(row, LANE);
    int status = sqlite3_column_int(row, STATUS);
    lane_row *lane = c->lane_count == 0 ? NULL
                                        : bsearch(&lane_id, c->lanes, c->lane_count, sizeof *c->lanes, by_id);
    c->rows++;
    c->last_id = id;
    if (lane == NULL)
        note(c, NO_LANE, id);
    else if (lane->kind != sqlite3_column_int64(row, KIND))
        note(c, WRONG_KIND, id);
    if (lane != NULL && status >= PAWLI_DB_READY && status <= PAWLI_DB_LATER)
        lane->counted[pawli_count_of(status)]++;
    if (sqlite3_column_int64(row, FENCE) > c->fence_last)
        note(c, FENCE_BEYOND, id);
    judge_status(d, row, id, status);
    return SQLITE_OK;
}

static int read_fence(pawli_doctor *d)
{
    int64_t epoch, counter;
    int rc = pawli_doctor_number(d, "SELECT value FROM pawl_meta WHERE key = 'epoch'", &epoch);
    if (rc == SQLITE_OK)
        rc = pawli_doctor_number(d, "SELECT value FROM pawl_meta WHERE key = 'fence'", &counter);
    if (rc == SQLITE_OK)
        d->census->fence_last = d->lacks_fence ? INT64_MAX
                                               : (int64_t)((uint64_t)epoch << PAWLI_FENCE_EPOCH_SHIFT) + counter;
    return rc;
}

/* The jobs behind the last one, until the transaction is ended early. */
static int read_on(pawli_doctor *d)
{
    sqlite3 *db = d->s->reader;
    forget_lanes(d->census);
    int rc = pawli_doctor_begin(d);
    if (rc == SQLITE_OK)
        rc = read_fence(d);
    if (rc == SQLITE_OK)
        rc = pawli_doctor_each(db, take_lane, d->census, "%s", lanes_sql);
    if (rc == SQLITE_OK)
        rc = pawli_doctor_each(db, take_holder, d->census,
                               "SELECT id, left_at IS NOT NULL FROM pawl_holder ORDER BY id");
    if (rc == SQLITE_OK)
        rc = pawli_doctor_each(db, take_job, d,
                               "SELECT id, lane, kind, status, attempts, max_attempts, holder, fence, available_at"
                               " FROM pawl_job NOT INDEXED WHERE id > %lld ORDER BY id",
                               (long long)d->census->last_id);
    pawli_doctor_end(d);
    return rc;
}

static int take_census(pawli_doctor *d)
{
    pawli_census *c = d->census;
    c->last_id = INT64_MIN;
    for (int64_t before = -1; c->rows > before;) {
        before = c->rows;
        int rc = read_on(d);
        if ((rc & 0xFF) != SQLITE_INTERRUPT || d->cut == NULL)
            return rc;
        c->cut = d->cut;
        if (!pawli_doctor_may_resume(d, rc))
            break;
    }
    c->is_short = true;
    return SQLITE_OK;
}

/* ------------------------------------------------------------------------------ counters */

#define LANES_TOLD_MAX 10

static const char *const count_names[PAWLI_COUNTS] = {
    "ready", "later", "running", "succeeded", "failed", "cancelled", "blocked", "enqueued", "pruned",
};

/* I20. `pruned` and `enqueued` have no rows: the one is taken as it is, the other follows. */
static void recount(lane_row *lane)
{
    int64_t stored = 0;
    for (int i = PAWLI_COUNT_READY; i <= PAWLI_COUNT_BLOCKED; i++)
        stored += lane->counted[i];
    lane->counted[PAWLI_COUNT_PRUNED] = lane->stored[PAWLI_COUNT_PRUNED];
    lane->counted[PAWLI_COUNT_ENQUEUED] = stored + lane->stored[PAWLI_COUNT_PRUNED];
}

static bool differs(const lane_row *lane, char *out, size_t capacity)
{
    size_t used = 0;
    for (int i = 0; i < PAWLI_COUNTS && used < capacity; i++)
        if (lane->stored[i] != lane->counted[i])
            used += (size_t)snprintf(out + used, capacity - used, "%s%s is %" PRId64 " and should be %" PRId64,
                                     used > 0 ? ", " : "", count_names[i], lane->stored[i], lane->counted[i]);
    return used > 0;
}

#define COUNT(status) "count(*) FILTER (WHERE status = " status ")"
#define RECOUNT                                                                                    \
    "UPDATE pawl_lane SET (ready, later, running, succeeded, failed, cancelled, blocked) ="        \
    " (SELECT " COUNT("2") ", " COUNT("8") ", " COUNT("3") ", " COUNT("4") ", " COUNT("5")         \
    ", " COUNT("6") ", " COUNT("7") " FROM pawl_job WHERE lane = pawl_lane.id);"                   \
    " UPDATE pawl_lane SET enqueued = pruned + ready + later + running + succeeded + failed + "     \
    "cancelled + blocked"

void pawli_doctor_check_counters(pawli_doctor *d)
{
    char differences[1024];
    size_t wrong = 0;
    d->census = calloc(1, sizeof *d->census);
    int rc = d->census != NULL ? take_census(d) : SQLITE_NOMEM;
    if (pawli_doctor_failed(d, rc)) {
        pawli_doctor_census_free(d->census);
        d->census = NULL;
        return;
    }
    if (d->census->cut != NULL) { /* the counters are of one moment, and the rows are not */
        pawli_doctor_tell(d, PAWL_FINDING_NOTE, "not looked at to the end: %s", d->census->cut);
        return;
    }
    for (size_t i = 0; i < d->census->lane_count; i++) {
        lane_row *lane = &d->census->lanes[i];
        recount(lane);
        if (differs(lane, differences, sizeof differences) && ++wrong <= LANES_TOLD_MAX)
            pawli_doctor_tell(d, PAWL_FINDING_ERROR,
                              "the counters of %s are wrong: %s\n"
                              PAWLI_STOP_THEN PAWLI_BY_SQL(RECOUNT),
                              lane->name, differences, d->word);
    }
    if (wrong > LANES_TOLD_MAX)
        pawli_doctor_tell(d, PAWL_FINDING_ERROR,
                          "lanes beside these whose counters are wrong: %zu",
                          wrong - LANES_TOLD_MAX);
}

/* --------------------------------------------------------------------------------- faults */

#define BY_HAND "somebody has written to pawl's tables by hand"
#define WITHOUT_LANE "lane NOT IN (SELECT id FROM pawl_lane)"
#define EPOCH_OF_FENCES "(SELECT max(fence) >> 40 FROM pawl_job)"

/* `sql` is what makes the finding go away, behind the words before it; NULL: the words alone do. */
static const struct {
    pawl_severity severity;
    const char *what, *remedy, *sql;
} faults[FAULTS] = {
    [NO_LANE] = { PAWL_FINDING_ERROR, "jobs in a lane that does not exist",
                  BY_HAND ": SELECT * FROM pawl_job WHERE " WITHOUT_LANE " shows them; enqueue them again, and delete "
                          "these rows",
                  "DELETE FROM pawl_attempts WHERE job IN (SELECT id FROM pawl_job WHERE " WITHOUT_LANE
                  "); DELETE FROM pawl_job WHERE " WITHOUT_LANE },
    [WRONG_KIND] = { PAWL_FINDING_ERROR, "jobs with another kind than their lane", BY_HAND,
                     "UPDATE pawl_job SET kind = (SELECT l.kind FROM pawl_lane l WHERE l.id = pawl_job.lane) WHERE "
                     "EXISTS (SELECT 1 FROM pawl_lane l WHERE l.id = pawl_job.lane AND l.kind <> pawl_job.kind)" },
    [READY_EARLY] = { PAWL_FINDING_WARNING, "jobs that are ready, but due in the future",
                      "the clock was set back, or " BY_HAND ": they start now; pawl cancel stops one", NULL },
    [LATER_OVERDUE] = { PAWL_FINDING_WARNING, "jobs that are due, but were not made ready by the pools that run",
                        "if its pools are busy or frozen this passes; else restart them, and look at their log",
                        NULL },
    [NO_HOLDER] = { PAWL_FINDING_WARNING, "jobs that run under a holder that does not exist",
                    BY_HAND ": the next sweep of a pool takes them back when their lease has run out", NULL },
    [HOLDER_LEFT] = { PAWL_FINDING_WARNING, "jobs that run under a pool that has signed off",
                      "a pool takes them back when their lease has run out: start one if none runs", NULL },
    [RUNS_UNCLAIMED] = { PAWL_FINDING_ERROR, "jobs that run without ever having been claimed",
                         BY_HAND ": a pool takes them back when their lease has run out", NULL },
    [FENCE_BEYOND] = { PAWL_FINDING_ERROR,
                       "jobs with a fence that was not given out yet, and would be given out again",
                       "the file was put together from two, or pawl_meta was written by hand",
                       "UPDATE pawl_meta SET value = 1 + " EPOCH_OF_FENCES " WHERE key = 'epoch' AND value <= "
                       EPOCH_OF_FENCES },
    [OVER_MAX] = { PAWL_FINDING_ERROR, "jobs with more attempts than they may have",
                   BY_HAND "; one that waits is left one attempt",
                   "UPDATE pawl_job SET attempts = max_attempts - (status IN (2, 8)) WHERE attempts > max_attempts" },
    [NONE_LEFT] = { PAWL_FINDING_ERROR, "jobs that wait although no attempt is left to them",
                    BY_HAND "; pawl cancel ends one, and this leaves the others one attempt",
                    "UPDATE pawl_job SET attempts = max_attempts - 1 WHERE attempts = max_attempts AND status IN (2, "
                    "8)" },
    [RUNS_UNCHARGED] = { PAWL_FINDING_ERROR, "jobs that run without an attempt being counted", BY_HAND,
                         "UPDATE pawl_job SET attempts = 1 WHERE attempts = 0 AND status = 3" },
    [SUCCEEDED_UNCHARGED] = { PAWL_FINDING_ERROR, "jobs that have succeeded without an attempt being counted",
                              BY_HAND "; if they did not run, enqueue them again",
                              "UPDATE pawl_job SET attempts = 1 WHERE attempts = 0 AND status = 4" },
};

static void tell_fault(pawli_doctor *d, fault which)
{
    int64_t rows = d->census->faults[which].rows, first = d->census->faults[which].first;
    pawl_severity severity = faults[which].severity;
    if (rows == 0)
        return;
    if (which == LATER_OVERDUE && d->living == 0) {
        pawli_doctor_tell(d, PAWL_FINDING_NOTE, "jobs that have fallen due while no pool ran: %" PRId64
                                                " (the first is %" PRId64 ")", rows, first);
        return;
    }
    if (faults[which].sql == NULL)
        pawli_doctor_tell(d, severity, "%s: %" PRId64 " (the first is %" PRId64 ")\n%s", faults[which].what, rows,
                          first, faults[which].remedy);
    else
        pawli_doctor_tell(d, severity,
                          "%s: %" PRId64 " (the first is %" PRId64 ")\n"
                          "%s; " PAWLI_STOP_THEN PAWLI_BY_SQL("%s"),
                          faults[which].what, rows, first, faults[which].remedy, d->word, faults[which].sql);
}

static void tell_faults(pawli_doctor *d, fault from, fault to)
{
    if (d->census == NULL)
        pawli_doctor_tell(d, PAWL_FINDING_NOTE, "not looked at: the jobs could not be read");
    else
        for (int i = (int)from; i <= (int)to; i++)
            tell_fault(d, (fault)i);
    if (d->census != NULL && d->census->is_short)
        pawli_doctor_tell(d, PAWL_FINDING_NOTE, "not looked at to the end: %s", d->census->cut);
}

void pawli_doctor_check_claims(pawli_doctor *d)
{
    tell_faults(d, NO_HOLDER, RUNS_UNCLAIMED); /* I4 */
}

void pawli_doctor_check_fences(pawli_doctor *d)
{
    tell_faults(d, FENCE_BEYOND, FENCE_BEYOND); /* I5 */
}

void pawli_doctor_check_attempts(pawli_doctor *d)
{
    tell_faults(d, OVER_MAX, SUCCEEDED_UNCHARGED); /* I9 */
}

void pawli_doctor_check_rows(pawli_doctor *d)
{
    tell_faults(d, NO_LANE, LATER_OVERDUE);
}
