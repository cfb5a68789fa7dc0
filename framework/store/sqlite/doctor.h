/* doctor.h - what the files of pawl_diagnose() share. Only they include it.
 *
 *   doctor.c          the order of the checks, and how they report
 *   doctor_file.c     what the file system says: kind, links, modes, free space
 *   doctor_wal.c      the log: its length, and who holds it
 *   doctor_library.c  the SQLite that is linked: its version, the race, a second copy
 *   doctor_schema.c   pawl's tables, compared with those of a new file
 *   doctor_tables.c   what SQLite says of the file: journal, ids, integrity, keys
 *   doctor_rows.c     one pass over every job: counters, and what the schema cannot state
 *   doctor_pools.c    who works on the file, and what waits for somebody */
#ifndef PAWLI_SQLITE_DOCTOR_H
#define PAWLI_SQLITE_DOCTOR_H

#include <sys/stat.h>

#include "../../presence.h"
#include "../../text.h"
#include "sqlite_store.h"

struct pawli_census;

/* A pool that has not signed off. */
typedef struct pawli_patient_pool {
    pawli_holder holder;
    pawli_life life;
    bool here; /* in this pid namespace: its pid means something */
    bool frozen; /* alive, and stopped by a signal */
} pawli_patient_pool;

enum { PAWLI_SIDES = 3 };

typedef struct pawli_doctor {
    /* Asked. */
    const char *given;
    char shown[PATH_MAX], word[PAWLI_WORD_BYTES]; /* the path, in a text and in a command (V1) */
    pawl_diagnose_options options;
    pawl_finding_fn fn;
    void *arg;
    /* Found out on the way. */
    pawli_sqlite *s; /* its path and its reader's connection */
    sqlite3 *whole; /* a database as pawl makes it */
    struct stat file;
    uid_t owners[PAWLI_SIDES]; /* of the log, its index and the side files; the file's own where there is none */
    bool is_there; /* a regular file */
    bool is_open;  /* s->reader can be asked */
    bool is_pawls; /* it holds pawl's tables, in a version that is known here */
    bool is_wal;
    bool lacks_fence; /* pawl_meta does not say which fence was the last */
    bool lacked_index; /* there was a log, without the index that all its readers need */
    int64_t now_ms, boot_ms;
    pawli_presence presence;
    pawli_patient_pool *pools;
    size_t pool_count, living; /* living ones may be frozen */
    bool has_race;             /* the linked SQLite */
    struct pawli_census *census; /* of the rows; NULL: there is none */
    pawl_status status;        /* NOMEM ends it */
    /* Of the check under way. */
    const char *check;
    size_t told;
    int64_t begun_ns;   /* the transaction */
    int64_t wal_begun;  /* bytes of the log then */
    int64_t looked_ns;  /* when its size was asked last */
    const char *cut;    /* why it was ended early; NULL: it was not */
    bool stopped;       /* the caller did */
    int64_t wal_first;  /* bytes of the log before the first of them; -1: none was begun */
} pawli_doctor;

/* Reports on the check under way. What stands behind the newline of the format is the remedy. No argument may
 * bring another one: what others have named goes through pawli_doctor_name() into a text, and through
 * pawli_text_word() into a command. */
void pawli_doctor_tell(pawli_doctor *d, pawl_severity severity, const char *format, ...) PAWL_PRINTF(3, 4);
/* pawl_error_message() as a finding: what stands behind its first semicolon is the remedy. */
void pawli_doctor_tell_error(pawli_doctor *d, pawl_severity severity);

/* A command that changes the file as a careful client does: whole or not at all, without a checkpoint (R1, R6).
 * %s is d->word. No text of SQL in here has what a shell looks for between double quotes. */
#define PAWLI_BY_SQL(sql) "sqlite3 %s \"PRAGMA wal_autocheckpoint=0; BEGIN IMMEDIATE; " sql "; COMMIT\""
#define PAWLI_STOP_THEN "stop the pools, then: "

/* A read transaction in bounds (R7): it ends by itself, with SQLITE_INTERRUPT and a reason in d->cut, where it
 * would hurt a pool that works. */
int pawli_doctor_begin(pawli_doctor *d);
void pawli_doctor_end(pawli_doctor *d);
/* One that was ended so may be followed by another that goes on where it was: after a pause, and only while the log
 * is not much longer than it is anyway. */
bool pawli_doctor_may_resume(pawli_doctor *d, int rc);
#define PAWLI_LOG_BYTES_USUAL (INT64_C(16) << 20) /* the default of wal_bytes_max */
/* Says why a question has failed; nothing for SQLITE_OK. True: it has failed. */
bool pawli_doctor_failed(pawli_doctor *d, int rc);

/* Gives each row of a question to `take` until that answers something else than SQLITE_OK; SQLITE_DONE is no error.
 * The format is that of sqlite3_mprintf(). */
typedef int (*pawli_doctor_take)(sqlite3_stmt *row, void *arg);
int pawli_doctor_each(sqlite3 *db, pawli_doctor_take take, void *arg, const char *format, ...);
/* Asks for one number; 0 for no row. */
int pawli_doctor_number(pawli_doctor *d, const char *sql, int64_t *out);
/* What is shown of others' bytes: one line, valid UTF-8. */
const char *pawli_doctor_name(const char *text, char out[256]);

int64_t pawli_doctor_size(const pawli_doctor *d, const char *suffix); /* -1: no such file */

/* doctor_file.c */
void pawli_doctor_check_file(pawli_doctor *d);
void pawli_doctor_check_mode(pawli_doctor *d);
void pawli_doctor_check_file_system(pawli_doctor *d);
void pawli_doctor_check_disk(pawli_doctor *d);
/* doctor_wal.c */
void pawli_doctor_check_wal(pawli_doctor *d);
/* doctor_library.c */
void pawli_doctor_check_version(pawli_doctor *d);
void pawli_doctor_check_race(pawli_doctor *d);
void pawli_doctor_check_copies(pawli_doctor *d);
/* doctor_schema.c */
void pawli_doctor_check_schema(pawli_doctor *d);
void pawli_doctor_check_triggers(pawli_doctor *d);
/* doctor_tables.c */
void pawli_doctor_check_journal(pawli_doctor *d);
void pawli_doctor_check_sequence(pawli_doctor *d);
void pawli_doctor_check_writers(pawli_doctor *d);
void pawli_doctor_check_history(pawli_doctor *d);
void pawli_doctor_check_foreign_keys(pawli_doctor *d);
void pawli_doctor_check_integrity(pawli_doctor *d);
/* doctor_rows.c: the first makes the pass, the others tell what it met. */
void pawli_doctor_check_counters(pawli_doctor *d);
void pawli_doctor_check_claims(pawli_doctor *d);
void pawli_doctor_check_fences(pawli_doctor *d);
void pawli_doctor_check_attempts(pawli_doctor *d);
void pawli_doctor_check_rows(pawli_doctor *d);
void pawli_doctor_census_free(struct pawli_census *census);
/* doctor_pools.c */
void pawli_doctor_check_pools(pawli_doctor *d);
void pawli_doctor_check_side_files(pawli_doctor *d);
void pawli_doctor_check_leases(pawli_doctor *d);
void pawli_doctor_check_waiting(pawli_doctor *d);
void pawli_doctor_check_paused(pawli_doctor *d);

#endif
