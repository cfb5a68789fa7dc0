/* doctor.c - pawl_diagnose(): the order of the checks, and how they report.
 *
 * Threads: the caller's, on a connection of its own that cannot write.
 * Keeps:   the file, its log and its neighbours stay as they are; R6 nothing is checkpointed; R7 no read
 *          transaction holds the log of a working pool for long; R8 SQLite alone opens the file. */
#include "doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "race_probe.h"

/* -------------------------------------------------------------------------------- reporting */

static void give(pawli_doctor *d, pawl_severity severity, const char *text, const char *remedy)
{
    const pawl_finding finding = {
        .struct_size = sizeof finding,
        .severity = severity,
        .check = d->check,
        .text = text,
        .remedy = remedy,
    };
    d->told++;
    d->fn(&finding, d->arg);
}

void pawli_doctor_tell(pawli_doctor *d, pawl_severity severity, const char *format, ...)
{
    char text[4 * PAWLI_WORD_BYTES]; /* two words, and what is said around them */
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *remedy = strchr(text, '\n');
    if (remedy != NULL)
        *remedy++ = '\0';
    give(d, severity, text, remedy);
}

void pawli_doctor_tell_error(pawli_doctor *d, pawl_severity severity)
{
    char text[2 * PATH_MAX];
    const char *message = pawl_error_message();
    (void)pawli_text_escape(text, sizeof text, message, strlen(message));
    size_t path = strlen(d->shown); /* it may have a semicolon of its own */
    char *remedy = strstr(strncmp(text, d->shown, path) == 0 ? text + path : text, "; ");
    if (remedy != NULL) {
        *remedy = '\0';
        remedy += 2;
    }
    give(d, severity, text, remedy);
}

const char *pawli_doctor_name(const char *text, char out[256])
{
    text = text != NULL ? text : "?";
    (void)pawli_text_escape(out, 256, text, strlen(text));
    return out;
}

int64_t pawli_doctor_size(const pawli_doctor *d, const char *suffix)
{
    char path[PATH_MAX + 16];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s%s", d->s->path, suffix);
    return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

/* ------------------------------------------------------------------------- bounded questions */

#define STEPS_BETWEEN_LOOKS 20000 /* of SQLite's machine: well under a millisecond */
#define LOOK_EVERY_NS (50 * PAWLI_NS_PER_MS)
#define WHILE_POOLS_LIVE_NS (10000 * PAWLI_NS_PER_MS)
#define WITHOUT_LOG_NS (3000 * PAWLI_NS_PER_MS) /* a reader keeps writers out */
#define LOG_GROWTH_MAX (INT64_C(8) << 20) /* half of what a pool keeps its log within */
#define PAUSE_MS 100 /* for a pool to move and to shorten its log */

/* Zero: go on. */
static int on_progress(void *arg)
{
    pawli_doctor *d = arg;
    int64_t now = pawli_steady_now_ns();
    if (now - d->looked_ns < LOOK_EVERY_NS)
        return 0;
    d->looked_ns = now;
    d->stopped = d->options.progress != NULL && !d->options.progress(d->check, d->options.progress_arg);
    if (d->stopped)
        d->cut = "it was asked to stop";
    else if (d->living > 0 && now - d->begun_ns > WHILE_POOLS_LIVE_NS)
        d->cut = "it would have held up the log of the pools that run; try again when none runs, or on a backup";
    else if (!d->is_wal && now - d->begun_ns > WITHOUT_LOG_NS)
        d->cut = "it would have held up others who write to a file without a log; try again on a backup";
    else if (pawli_doctor_size(d, "-wal") - d->wal_begun > LOG_GROWTH_MAX)
        d->cut = "the log grew by 8 MiB meanwhile; try again when less is written, or on a backup";
    return d->cut != NULL;
}

static void bound(pawli_doctor *d)
{
    d->cut = NULL;
    d->begun_ns = d->looked_ns = pawli_steady_now_ns();
    d->wal_begun = pawli_doctor_size(d, "-wal");
    if (d->wal_first < 0)
        d->wal_first = d->wal_begun;
    sqlite3_progress_handler(d->s->reader, STEPS_BETWEEN_LOOKS, on_progress, d);
}

int pawli_doctor_begin(pawli_doctor *d)
{
    bound(d);
    return sqlite3_exec(d->s->reader, "BEGIN", NULL, NULL, NULL);
}

void pawli_doctor_end(pawli_doctor *d)
{
    sqlite3_progress_handler(d->s->reader, 0, NULL, NULL);
    if (!sqlite3_get_autocommit(d->s->reader))
        (void)sqlite3_exec(d->s->reader, "ROLLBACK", NULL, NULL, NULL);
}

bool pawli_doctor_may_resume(pawli_doctor *d, int rc)
{
    if ((rc & 0xFF) != SQLITE_INTERRUPT || d->cut == NULL || d->stopped)
        return false;
    (void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_MS * PAWLI_NS_PER_MS }, NULL);
    int64_t most = d->wal_first > PAWLI_LOG_BYTES_USUAL ? d->wal_first : PAWLI_LOG_BYTES_USUAL;
    return pawli_doctor_size(d, "-wal") <= most + LOG_GROWTH_MAX;
}

bool pawli_doctor_failed(pawli_doctor *d, int rc)
{
    if (rc == SQLITE_OK || rc == SQLITE_DONE || rc == SQLITE_ROW)
        return false;
    if (rc == SQLITE_NOMEM)
        d->status = PAWL_ERR_NOMEM;
    if ((rc & 0xFF) == SQLITE_INTERRUPT && d->cut != NULL) {
        pawli_doctor_tell(d, PAWL_FINDING_NOTE, "not looked at to the end: %s", d->cut);
        return true;
    }
    (void)pawli_sqlite_failed(d->s, d->s->reader, rc, "be read");
    pawli_doctor_tell_error(d, PAWL_FINDING_ERROR);
    return true;
}

int pawli_doctor_each(sqlite3 *db, pawli_doctor_take take, void *arg, const char *format, ...)
{
    sqlite3_stmt *row = NULL;
    va_list args;
    va_start(args, format);
    char *sql = sqlite3_vmprintf(format, args);
    va_end(args);
    int rc = sql != NULL ? sqlite3_prepare_v2(db, sql, -1, &row, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW)
        rc = take(row, arg);
    (void)sqlite3_finalize(row);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int take_number(sqlite3_stmt *row, void *arg)
{
    *(int64_t *)arg = sqlite3_column_int64(row, 0);
    return SQLITE_DONE;
}

int pawli_doctor_number(pawli_doctor *d, const char *sql, int64_t *out)
{
    *out = 0;
    return pawli_doctor_each(d->s->reader, take_number, out, "%s", sql);
}

/* -------------------------------------------------------------------------------- the order */

typedef enum need {
    NOTHING,
    A_FILE,
    A_CONNECTION,
    TABLES
} need;

static const struct {
    const char *name;
    need needs;
    bool reads_all; /* left out of a quick look */
    void (*run)(pawli_doctor *d);
    const char *fine; /* what is said if it had nothing to say; NULL: it has always */
} checks[] = {
    { "sqlite", NOTHING, false, pawli_doctor_check_version, NULL },
    { "race", NOTHING, false, pawli_doctor_check_race, NULL },
    { "file", NOTHING, false, pawli_doctor_check_file, NULL },
    { "filesystem", A_FILE, false, pawli_doctor_check_file_system, "a local file system" },
    { "schema", A_FILE, false, pawli_doctor_check_schema, NULL }, /* is it a database: before advice on its mode */
    { "mode", A_FILE, false, pawli_doctor_check_mode, "only its owner may read and write it" },
    { "disk", A_FILE, false, pawli_doctor_check_disk, NULL },
    { "triggers", TABLES, false, pawli_doctor_check_triggers, "no trigger of others' on pawl's tables" },
    { "journal", A_CONNECTION, false, pawli_doctor_check_journal, NULL },
    { "pools", TABLES, false, pawli_doctor_check_pools, NULL },
    { "copies", NOTHING, false, pawli_doctor_check_copies, "one SQLite library in each process" },
    { "side-files", A_FILE, false, pawli_doctor_check_side_files, "no side file is left over" },
    { "wal", A_FILE, false, pawli_doctor_check_wal, NULL },
    { "writers", TABLES, false, pawli_doctor_check_writers,
      "nobody writes by SQL with an SQLite that has the race" },
    { "leases", TABLES, false, pawli_doctor_check_leases, "no job runs past its lease" },
    { "waiting", TABLES, false, pawli_doctor_check_waiting, "no job has been due for long" },
    { "paused", TABLES, false, pawli_doctor_check_paused, "no queue is paused" },
    { "sequence", TABLES, false, pawli_doctor_check_sequence, "ids are never used again" },
    { "counters", TABLES, true, pawli_doctor_check_counters, "every counter equals a recount" },
    { "claims", TABLES, true, pawli_doctor_check_claims, "every running job has a holder" },
    { "fences", TABLES, true, pawli_doctor_check_fences, "no fence will be given out again" },
    { "attempts", TABLES, true, pawli_doctor_check_attempts, "every job's attempts fit its status" },
    { "rows", TABLES, true, pawli_doctor_check_rows, "every job's lane, kind and times fit its status" },
    { "history", TABLES, true, pawli_doctor_check_history, "every attempt belongs to a job" },
    { "foreign-keys", A_CONNECTION, true, pawli_doctor_check_foreign_keys, "every reference is met" },
    { "integrity", A_CONNECTION, true, pawli_doctor_check_integrity, NULL },
};

static bool is_met(const pawli_doctor *d, need needs)
{
    switch (needs) {
    case A_FILE: return d->is_there;
    case A_CONNECTION: return d->is_open;
    case TABLES: return d->is_pawls;
    case NOTHING:
    default: return true;
    }
}

static void examine(pawli_doctor *d)
{
    for (size_t i = 0; i < sizeof checks / sizeof *checks && d->status == PAWL_OK; i++) {
        d->check = checks[i].name;
        d->told = 0;
        if (d->options.progress != NULL && !d->options.progress(d->check, d->options.progress_arg))
            return;
        if (!is_met(d, checks[i].needs))
            pawli_doctor_tell(d, PAWL_FINDING_NOTE, "not looked at: what was found before does not let it");
        else if (checks[i].reads_all && d->options.quick)
            pawli_doctor_tell(d, PAWL_FINDING_NOTE, "not looked at: a quick look was asked for");
        else
            checks[i].run(d);
        if (d->told == 0 && checks[i].fine != NULL && d->status == PAWL_OK)
            pawli_doctor_tell(d, PAWL_FINDING_OK, "%s", checks[i].fine);
    }
}

/* ---------------------------------------------------------------------------- the public call */

static pawl_status run(pawli_doctor *d)
{
    pawli_clock clock;
    d->s = calloc(1, sizeof *d->s);
    if (d->s == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "%s: no memory to examine it", d->given);
    pawli_clock_init(&clock, false);
    d->now_ms = pawli_clock_wall_ms(&clock);
    d->boot_ms = pawli_clock_boot_ms(&clock);
    d->has_race = pawli_race_version_has_it(sqlite3_libversion_number());
    examine(d);
    pawli_sqlite_disconnect_reader(d->s);
    (void)sqlite3_close_v2(d->whole);
    pawli_doctor_census_free(d->census);
    free(d->presence.directory);
    free(d->pools);
    free(d->s);
    return d->status == PAWL_OK ? PAWL_OK : pawli_fail(d->status, "%s: no memory to examine it", d->given);
}

pawl_status pawl_diagnose_with(const char *store, const pawl_diagnose_options *options, pawl_finding_fn fn,
                               void *arg)
{
    pawli_doctor d = { .given = store, .fn = fn, .arg = arg, .options = PAWL_DIAGNOSE_INIT, .wal_first = -1 };
    if (store == NULL || store[0] == '\0' || strlen(store) >= PATH_MAX - 64 || fn == NULL)
        return pawli_fail(PAWL_ERR_INVALID, "pawl_diagnose: a path and a function are required");
    if (options != NULL && !pawli_struct_read(&d.options, sizeof d.options, options))
        return pawli_fail(PAWL_ERR_INVALID, "pawl_diagnose_with: struct_size is not set; use "
                                            "PAWL_DIAGNOSE_INIT");
    return run(&d);
}

pawl_status pawl_diagnose(const char *store, pawl_finding_fn fn, void *arg)
{
    return pawl_diagnose_with(store, NULL, fn, arg);
}
