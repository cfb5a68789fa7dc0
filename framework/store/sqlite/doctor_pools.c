/* doctor_pools.c - who works on the file, and what waits for somebody.
 * Threads: the caller of pawl_diagnose().
 * Keeps:   I12 life is proven as the pools prove it; R7 each question goes through an index. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../phrase.h"
#include "../../process.h"
#include "doctor.h"

/* ---------------------------------------------------------------------------------- pools */

enum { POOLS_MAX = 1000 };

static int take_pool(sqlite3_stmt *row, void *arg)
{
    pawli_doctor *d = arg;
    pawli_sqlite_read_holder(row, 0, &d->pools[d->pool_count++].holder);
    return SQLITE_OK;
}

static int read_pools(pawli_doctor *d)
{
    d->pools = calloc(POOLS_MAX, sizeof *d->pools);
    if (d->pools == NULL)
        return SQLITE_NOMEM;
    return pawli_doctor_each(d->s->reader, take_pool, d,
                             "SELECT id, name, side, pid, started, boot, pid_space FROM pawl_holder"
                             " WHERE left_at IS NULL ORDER BY id DESC LIMIT %d", POOLS_MAX);
}

static void probe(pawli_doctor *d, pawli_patient_pool *pool)
{
    pawli_record record;
    pool->life = pawli_presence_probe(&d->presence, &pool->holder, &record);
    free(record.fences);
    pool->here = pool->holder.pid_space == d->presence.self.pid_space
                 && strcmp(pool->holder.boot, d->presence.self.boot) == 0;
    pool->frozen = pool->life == PAWLI_ALIVE && pool->here && pool->holder.pid != getpid()
                   && pawli_process_is_stopped(pool->holder.pid);
    d->living += pool->life == PAWLI_ALIVE;
}

/* What `pawl stats` counts: by the clock that pools judge leases by (R13). */
static int64_t claims_of(pawli_doctor *d, int64_t holder, bool expired)
{
    char sql[192];
    int64_t count;
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM pawl_job INDEXED BY pawl_job_running"
                                    " WHERE status = 3 AND holder = %" PRId64 " AND lease_boot <= %" PRId64, holder,
                   expired ? d->boot_ms : INT64_MAX);
    return pawli_doctor_number(d, sql, &count) == SQLITE_OK ? count : 0;
}

static void tell_frozen(pawli_doctor *d, const char *name, const pawli_patient_pool *pool, int64_t claims)
{
    int64_t pid = pool->holder.pid, expired = claims_of(d, pool->holder.id, true);
    pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                      "the process of pool %s (pid %" PRId64 ") is stopped by a signal; jobs that it holds until their "
                      "leases run out: %" PRId64 ", whose leases have run out: %" PRId64 "\n"
                      "kill -CONT %" PRId64 " lets it go on, kill -9 %" PRId64 " frees its jobs at once",
                      name, pid, claims - expired, expired, pid, pid);
}

static void tell_dead(pawli_doctor *d, const char *name, int64_t pid, int64_t claims)
{
    if (claims == 0)
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "pool %s (pid %" PRId64 ") has died; no job of its is left",
                          name, pid);
    else if (d->living > 0)
        pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                          "pool %s (pid %" PRId64 ") has died; jobs that still run under its name: %"
                          PRId64 "\n"
                          "a living pool takes them back within moments; if not, look at its log",
                          name, pid, claims);
    else
        pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                          "pool %s (pid %" PRId64 ") has died; jobs that still run under its name: %"
                          PRId64 "\n"
                          "start a pool on this file: it takes them back at once",
                          name, pid, claims);
}

static void tell_pool(pawli_doctor *d, const pawli_patient_pool *pool)
{
    char name[256], side[256];
    int64_t pid = pool->holder.pid, claims = claims_of(d, pool->holder.id, false);
    (void)pawli_doctor_name(pool->holder.name, name);
    if (pool->life == PAWLI_DEAD)
        tell_dead(d, name, pid, claims);
    else if (pool->frozen)
        tell_frozen(d, name, pool, claims);
    else if (pool->life == PAWLI_ALIVE)
        pawli_doctor_tell(d, PAWL_FINDING_OK,
                          "pool %s (pid %" PRId64 ") lives; jobs that it holds: %" PRId64,
                          name, pid, claims);
    else
        pawli_doctor_tell(d, claims > 0 ? PAWL_FINDING_WARNING : PAWL_FINDING_NOTE,
                          "whether pool %s (pid %" PRId64 ") lives cannot be proven: its side file "
                          "%s-pawl/%s is missing or not locked; jobs under its name: %" PRId64 "\n"
                          "if it does not live, a pool takes its jobs back when their leases run out",
                          name, pid, d->shown, pawli_doctor_name(pool->holder.side, side), claims);
}

void pawli_doctor_check_pools(pawli_doctor *d)
{
    int64_t due = 0;
    int rc = read_pools(d);
    if (rc == SQLITE_OK)
        rc = pawli_doctor_number(d, "SELECT total(ready) FROM pawl_lane", &due);
    if (pawli_doctor_failed(d, rc))
        return;
    if (pawli_presence_observe(&d->presence, d->s->path) != PAWL_OK) {
        d->pool_count = 0;
        pawli_doctor_tell_error(d, PAWL_FINDING_WARNING);
        return;
    }
    for (size_t i = 0; i < d->pool_count; i++)
        probe(d, &d->pools[i]);
    for (size_t i = 0; i < d->pool_count; i++)
        tell_pool(d, &d->pools[i]);
    if (d->living == 0 && due > 0)
        pawli_doctor_tell(d, PAWL_FINDING_NOTE, "no pool runs on this file; jobs that are due: %" PRId64, due);
    else if (d->living == 0)
        pawli_doctor_tell(d, PAWL_FINDING_OK, "no pool runs on this file, and no job is due");
}

/* ------------------------------------------------------------------------------ side files */

/* As pools name them: PID-STARTED-NUMBER. What else lies there is not judged. */
static bool is_side_name(const char *name)
{
    int64_t pid, started;
    int number, end = 0;
    if (sscanf(name, "%" SCNd64 "-%" SCNd64 "-%d%n", &pid, &started, &number, &end) != 3)
        return false;
    const char *image = name + end;
    return *image == '\0' || (*image == '-' && image[1 + strspn(image + 1, "0123456789")] == '\0');
}

static bool is_named(const pawli_doctor *d, const char *name)
{
    for (size_t i = 0; i < d->pool_count; i++)
        if (strcmp(d->pools[i].holder.side, name) == 0)
            return true;
    return false;
}

/* Whose pool is dead by the name, as if a row said it: a pool that is just opening has its file before its
 * row. */
static bool is_left_over(pawli_doctor *d, const char *name)
{
    pawli_holder owner = d->presence.self;
    pawli_record record;
    if (strlen(name) >= sizeof owner.side
        || sscanf(name, "%" SCNd64 "-%" SCNd64, &owner.pid, &owner.started) != 2)
        return false;
    memcpy(owner.side, name, strlen(name) + 1);
    bool dead = pawli_presence_probe(&d->presence, &owner, &record) == PAWLI_DEAD;
    free(record.fences);
    return dead;
}

void pawli_doctor_check_side_files(pawli_doctor *d)
{
    char shown[PATH_MAX + 16];
    DIR *directory = d->presence.directory != NULL ? opendir(d->presence.directory) : NULL;
    size_t left = 0;
    (void)snprintf(shown, sizeof shown, "%s-pawl", d->shown);
    if (directory == NULL) {
        if (d->presence.directory != NULL && errno != ENOENT)
            pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                              "%s cannot be read: %s\n"
                              "whoever may write the file must be able to read and write that directory",
                              shown, strerror(errno));
        return;
    }
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory))
        left += is_side_name(entry->d_name) && !is_named(d, entry->d_name) && is_left_over(d, entry->d_name);
    (void)closedir(directory);
    if (left > 0)
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "side files in %s of pools that are dead and forgotten: %zu\n"
                          "the next pool that starts removes them",
                          shown, left);
}

/* ---------------------------------------------------------------------------------- leases */

#define SWEEP_SLACK_MS 5000

static int count_leases(pawli_doctor *d, const char *compared, int64_t boot_ms, int64_t *count)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM pawl_job INDEXED BY pawl_job_running"
                                    " WHERE status = 3 AND lease_boot %s %" PRId64, compared, boot_ms);
    return pawli_doctor_number(d, sql, count);
}

/* The first frozen one, if there is no other that could take jobs back. */
static const pawli_patient_pool *all_are_frozen(const pawli_doctor *d)
{
    const pawli_patient_pool *first = NULL;
    for (size_t i = 0; i < d->pool_count; i++) {
        if (d->pools[i].life == PAWLI_ALIVE && !d->pools[i].frozen)
            return NULL;
        if (d->pools[i].frozen && first == NULL)
            first = &d->pools[i];
    }
    return first;
}

static void tell_expired(pawli_doctor *d, int64_t expired, int64_t overdue)
{
    static const char what[] = "jobs that run past their lease";
    const pawli_patient_pool *frozen = all_are_frozen(d);
    if (d->living == 0)
        pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                          "%s: %" PRId64 "\n"
                          "start a pool on this file: it takes them back at once",
                          what, expired);
    else if (frozen != NULL)
        pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                          "%s: %" PRId64 "; the only pool that could take them back is frozen\n"
                          "kill -CONT %" PRId64 " lets it go on; or start another pool on this file",
                          what, expired, frozen->holder.pid);
    else if (overdue > 0)
        pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                          "%s: %" PRId64 "\n"
                          "a pool ought to have taken them back: look in its log whether its store refuses",
                          what, expired);
    else
        pawli_doctor_tell(d, PAWL_FINDING_NOTE, "%s, but not for long: %" PRId64 "\nthe next sweep takes them back",
                          what, expired);
}

void pawli_doctor_check_leases(pawli_doctor *d)
{
    int64_t expired = 0, overdue = 0, broken = 0;
    int rc = count_leases(d, "<=", d->boot_ms, &expired);
    if (rc == SQLITE_OK)
        rc = count_leases(d, "<=", d->boot_ms - SWEEP_SLACK_MS, &overdue);
    if (rc == SQLITE_OK)
        rc = count_leases(d, ">", d->boot_ms + PAWLI_LEASE_MAX_MS, &broken);
    if (pawli_doctor_failed(d, rc))
        return;
    if (expired > 0)
        tell_expired(d, expired, overdue);
    if (broken > 0)
        pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                          "jobs with a lease that no pool can have given, because it ends more than a day "
                          "ahead: %" PRId64 "\n"
                          "the machine was restarted, or somebody wrote to pawl's tables by hand: the "
                          "next pool takes them back",
                          broken);
}

/* --------------------------------------------------------------------------------- waiting */

#define DUE_FOR_MS 60000

/* Queue, kind, ready, running, since when the first is due. */
static int tell_waiting(sqlite3_stmt *row, void *arg)
{
    pawli_doctor *d = arg;
    char queue[256], kind[256], age[PAWLI_PHRASE_BYTES];
    int64_t ready = sqlite3_column_int64(row, 2), running = sqlite3_column_int64(row, 3);
    (void)pawli_doctor_name((const char *)sqlite3_column_text(row, 0), queue);
    (void)pawli_doctor_name((const char *)sqlite3_column_text(row, 1), kind);
    (void)pawli_phrase_duration(d->now_ms - sqlite3_column_int64(row, 4), age);
    if (running == 0)
        pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                          "kind \"%s\" in queue \"%s\": %" PRId64 " due, the first for %s, and none runs "
                          "though a pool lives\n"
                          "look whether a running pool registers this kind and serves this queue, and "
                          "whether its executors are all busy",
                          kind, queue, ready, age);
    else
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "kind \"%s\" in queue \"%s\": %" PRId64 " wait behind %" PRId64 " that run, the "
                          "first for %s\n"
                          "more executors, or more pools, would shorten the queue",
                          kind, queue, ready, running, age);
    return SQLITE_OK;
}

enum { WAITING_TOLD_MAX = 20 };

static int read_waiting(pawli_doctor *d)
{
    return pawli_doctor_each(
        d->s->reader, tell_waiting, d,
        "SELECT * FROM (SELECT l.queue, k.name, l.ready, l.running, (SELECT j.available_at FROM pawl_job j"
        " INDEXED BY pawl_job_ready WHERE j.lane = l.id AND j.status = 2"
        " ORDER BY j.priority DESC, j.id LIMIT 1) AS due"
        " FROM pawl_lane l JOIN pawl_kind k ON k.id = l.kind WHERE l.ready > 0"
        " AND l.queue NOT IN (SELECT queue FROM pawl_paused)) WHERE due < %lld ORDER BY due LIMIT %d",
        (long long)(d->now_ms - DUE_FOR_MS), WAITING_TOLD_MAX);
}

/* Holders do not say which kinds they serve: what can be seen is that nothing of a lane runs. */
void pawli_doctor_check_waiting(pawli_doctor *d)
{
    if (d->living > 0)
        (void)pawli_doctor_failed(d, read_waiting(d));
    else
        pawli_doctor_tell(d, PAWL_FINDING_OK, "no pool runs that jobs could wait for");
}

/* Queue, since when, jobs that it holds. */
static int tell_paused(sqlite3_stmt *row, void *arg)
{
    pawli_doctor *d = arg;
    char queue[256], since[PAWLI_PHRASE_BYTES], word[PAWLI_WORD_BYTES];
    const char *name = (const char *)sqlite3_column_text(row, 0);
    int64_t jobs = sqlite3_column_int64(row, 2);
    (void)pawli_doctor_name(name, queue);
    (void)pawli_phrase_moment(sqlite3_column_int64(row, 1), since);
    if (jobs > 0)
        pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                          "queue \"%s\" is paused since %s; jobs that it holds: %" PRId64 "\n"
                          "pawl resume %s %s lets them run",
                          queue, since, jobs, d->word, pawli_text_word(word, name != NULL ? name : ""));
    else
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "queue \"%s\" is paused since %s and holds no jobs",
                          queue, since);
    return SQLITE_OK;
}

void pawli_doctor_check_paused(pawli_doctor *d)
{
    (void)pawli_doctor_failed(d, pawli_doctor_each(d->s->reader, tell_paused, d,
                                                   "SELECT p.queue, p.paused_at, (SELECT total(l.ready + l.later)"
                                                   " FROM pawl_lane l WHERE l.queue = p.queue) FROM pawl_paused p"));
}
