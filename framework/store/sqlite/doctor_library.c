/* doctor_library.c - the SQLite that is linked: its version, the WAL-reset race, a second copy.
 * Threads: the caller of pawl_diagnose(). Keeps: R6 what the library does is tried, not believed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../process.h"
#include "doctor.h"
#include "race_probe.h"

void pawli_doctor_check_version(pawli_doctor *d)
{
    int version = sqlite3_libversion_number();
    if (version < 3037000)
        pawli_doctor_tell(d, PAWL_FINDING_ERROR,
                          "SQLite %s is loaded; pawl needs 3.37 or newer\n"
                          "install a newer one, or look which one the program is linked with (ldd)",
                          sqlite3_libversion());
    else if (version < SQLITE_VERSION_NUMBER)
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "SQLite %s is loaded, but pawl was built with the header of %s",
                          sqlite3_libversion(), SQLITE_VERSION);
    else
        pawli_doctor_tell(d, PAWL_FINDING_OK, "SQLite %s", sqlite3_libversion());
}

/* ---------------------------------------------------------------------------------- the race */

#define SAY_THE_LINE                                                                               \
    "upgrade SQLite, and until then let every other connection that writes to the file begin "     \
    "with: PRAGMA wal_autocheckpoint=0;"

static void tell_untried(pawli_doctor *d, const char *why)
{
    if (d->has_race)
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "SQLite %s has the WAL-reset race by its version (%s)\n"
                          SAY_THE_LINE,
                          sqlite3_libversion(), why);
    else
        pawli_doctor_tell(d, PAWL_FINDING_OK,
                          "SQLite %s does not have the WAL-reset race by its version (%s)",
                          sqlite3_libversion(), why);
}

static void judge_trial(pawli_doctor *d, const pawli_race_trial *bare, const pawli_race_trial *guarded)
{
    if (guarded->lost > 0)
        pawli_doctor_tell(d, PAWL_FINDING_ERROR,
                          "SQLite %s lost %" PRId64 " rows in a trial, even under pawl's guard\n"
                          "install SQLite 3.51.3 or newer before anything else",
                          sqlite3_libversion(), guarded->lost);
    else if (bare->lost > 0)
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "SQLite %s has the WAL-reset race: in a trial a bare checkpoint lost %" PRId64
                          " acknowledged rows, and pawl's guarded one none\n"
                          SAY_THE_LINE,
                          sqlite3_libversion(), bare->lost);
    else if (d->has_race)
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "SQLite %s has the WAL-reset race by its version, but lost nothing in a trial: "
                          "it may have been repaired by its packager",
                          sqlite3_libversion());
    else
        pawli_doctor_tell(d, PAWL_FINDING_OK, "no WAL-reset race: SQLite %s lost nothing in a trial",
                          sqlite3_libversion());
}

void pawli_doctor_check_race(pawli_doctor *d)
{
    pawli_race_trial bare, guarded;
    char why[256];
    if (pawli_race_probe(&bare, &guarded) != PAWL_OK) {
        tell_untried(d, pawli_doctor_name(pawl_error_message(), why));
        return;
    }
    if (bare.lost > 0)
        d->has_race = true;
    if (bare.interleaved && guarded.interleaved)
        judge_trial(d, &bare, &guarded);
    else
        tell_untried(d, "a trial could not put a commit into a checkpoint");
}

/* --------------------------------------------------------------------------- a second copy */

#define ONE_COPY                                                                                   \
    "link the program with the SQLite that libpawl is linked with (pkg-config --libs pawl "        \
    "sqlite3): two copies drop each other's file locks"

/* A text that stands in every SQLite, exported or hidden in a program; in two halves, so that it does not
 * stand here. */
static void mark_of_sqlite(char out[96])
{
    (void)snprintf(out, 96, "%s%s", "unable to delete/modify ", "user-function due to active statements");
}

static void check_process(pawli_doctor *d, int64_t pid, const char *who)
{
    char mark[96], objects[1024], shown[4 * sizeof objects];
    mark_of_sqlite(mark);
    int count = pawli_process_count_objects(pid, mark, objects, sizeof objects);
    (void)pawli_text_escape(shown, sizeof shown, objects, strlen(objects));
    if (count > 1)
        pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                          "%d copies of SQLite are loaded in %s (pid %" PRId64 "): %s\n"
                          ONE_COPY,
                          count, who, pid, shown);
}

void pawli_doctor_check_copies(pawli_doctor *d)
{
    char name[256];
    check_process(d, getpid(), "this process");
    for (size_t i = 0; i < d->pool_count; i++) {
        const pawli_patient_pool *pool = &d->pools[i];
        if (!d->options.quick && pool->life == PAWLI_ALIVE && pool->here && pool->holder.pid != getpid())
            check_process(d, pool->holder.pid, pawli_doctor_name(pool->holder.name, name));
    }
}
