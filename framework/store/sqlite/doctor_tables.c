/* doctor_tables.c - what SQLite says of the file: journal mode, ids, references, integrity.
 * Threads: the caller of pawl_diagnose().
 * Keeps:   R7 each question is bounded; R9, R11 are looked at from outside. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../phrase.h"
#include "../../process.h"
#include "doctor.h"

/* ----------------------------------------------------------------------------- the journal */

enum { MODE_BYTES = 32 };

static int take_mode(sqlite3_stmt *row, void *arg)
{
    (void)pawli_text_clean(arg, MODE_BYTES, (const char *)sqlite3_column_text(row, 0),
                           (size_t)sqlite3_column_bytes(row, 0));
    return SQLITE_DONE;
}

/* Through SQLite's own descriptor (R8): the versions in bytes 18 and 19 are 2 for a file in WAL mode. */
static bool header_says_wal(sqlite3 *db)
{
    sqlite3_file *file = NULL;
    unsigned char versions[2] = { 0, 0 };
    return sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK && file != NULL
           && file->pMethods != NULL && file->pMethods->xRead(file, versions, 2, 18) == SQLITE_OK
           && versions[0] == 2 && versions[1] == 2;
}

void pawli_doctor_check_journal(pawli_doctor *d)
{
    char mode[MODE_BYTES] = "";
    int64_t vacuum = 0;
    int rc = pawli_doctor_each(d->s->reader, take_mode, mode, "PRAGMA journal_mode");
    if (rc == SQLITE_OK)
        rc = pawli_doctor_number(d, "PRAGMA auto_vacuum", &vacuum);
    if (pawli_doctor_failed(d, rc))
        return;
    d->is_wal = strcmp(mode, "wal") == 0;
    /* A file that can be read only as it is shows another mode: what its header says counts. */
    d->is_wal = d->is_wal || header_says_wal(d->s->reader);
    if (!d->is_wal && d->is_pawls)
        pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                          "journal mode is %s and not wal: somebody has switched it\n"
                          "the next pool that opens it switches it back; look who says PRAGMA journal_mode",
                          mode);
    if (vacuum == 1)
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "auto_vacuum is FULL: each commit that deletes history moves pages\n"
                          "PRAGMA auto_vacuum = INCREMENTAL; without VACUUM it takes effect at once");
    if (d->told == 0)
        pawli_doctor_tell(d, PAWL_FINDING_OK, "journal mode %s", d->is_wal ? "wal" : mode);
}

/* --------------------------------------------------------------------- small looks at meta */

/* Pools and SQLite go by the greatest id that is stored; one that was pruned since is what they cannot see. That of
 * the other tables does not fall below what is in use: their last rows are never deleted. */
void pawli_doctor_check_sequence(pawli_doctor *d)
{
    int64_t behind = 0;
    int rc = pawli_doctor_number(d, "SELECT max(id) FROM pawl_job WHERE id > ifnull("
                                    "(SELECT max(seq) FROM sqlite_sequence WHERE name = 'pawl_job'), 0)", &behind);
    if (!pawli_doctor_failed(d, rc) && behind > 0)
        pawli_doctor_tell(d, PAWL_FINDING_ERROR,
                          "job %" PRId64 " is beyond the last id that was given out: ids may be used "
                          "again\n"
                          PAWLI_STOP_THEN PAWLI_BY_SQL("DELETE FROM sqlite_sequence WHERE name = 'pawl_job'; INSERT "
                                                       "INTO sqlite_sequence (name, seq) SELECT 'pawl_job', max(id) "
                                                       "FROM pawl_job"),
                          behind, d->word);
}

/* The view's triggers note the last write that came through it, and pawl_enqueue_in() that of a connection with
 * automatic checkpoints. */
void pawli_doctor_check_writers(pawli_doctor *d)
{
    int64_t at = 0;
    char when[PAWLI_PHRASE_BYTES];
    int rc = pawli_doctor_number(d, "SELECT value FROM pawl_meta WHERE key = 'sql_writer'", &at);
    if (!pawli_doctor_failed(d, rc) && at > 0 && d->has_race)
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "somebody writes by SQL or by pawl_enqueue_in (last %s), and SQLite %s has the "
                          "WAL-reset race\n"
                          "let each connection that does begin with: PRAGMA wal_autocheckpoint=0;",
                          pawli_phrase_moment(at, when), sqlite3_libversion());
}

void pawli_doctor_check_history(pawli_doctor *d)
{
    int64_t lost = 0;
    int rc = pawli_doctor_begin(d);
    if (rc == SQLITE_OK)
        rc = pawli_doctor_number(d, "SELECT count(*) FROM pawl_attempts a WHERE NOT EXISTS"
                                    " (SELECT 1 FROM pawl_job j WHERE j.id = a.job)", &lost);
    pawli_doctor_end(d);
    if (!pawli_doctor_failed(d, rc) && lost > 0)
        pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                          "attempts that belong to no job, because somebody has deleted jobs by hand: %"
                          PRId64 "\n"
                          PAWLI_BY_SQL("DELETE FROM pawl_attempts WHERE job NOT IN (SELECT id FROM pawl_job)"),
                          lost, d->word);
}

/* ------------------------------------------------------------------- references, integrity */

enum { LINES_MAX = 20 };

/* TABLE, rowid, parent, number: pawl's own tables are its business, the application's are good to know. */
static int tell_reference(sqlite3_stmt *row, void *arg)
{
    pawli_doctor *d = arg;
    char table[256], parent[256];
    (void)pawli_doctor_name((const char *)sqlite3_column_text(row, 0), table);
    (void)pawli_doctor_name((const char *)sqlite3_column_text(row, 2), parent);
    bool ours = strncmp(table, "pawl_", 5) == 0;
    pawli_doctor_tell(d, ours ? PAWL_FINDING_ERROR : PAWL_FINDING_NOTE,
                      "row %" PRId64 " of %s refers to a row of %s that is missing%s",
                      (int64_t)sqlite3_column_int64(row, 1), table, parent,
                      ours ? "\nsomebody has deleted it by hand: put it back, or restore a backup" : "");
    return d->told < LINES_MAX ? SQLITE_OK : SQLITE_DONE;
}

/* A key that SQLite cannot make sense of is the application's business, unless pawl's own writes meet it. */
static void tell_mismatch(pawli_doctor *d, const char *table)
{
    char text[256], name[256];
    bool of_ours = strstr(sqlite3_errmsg(d->s->reader), "referencing \"pawl_") != NULL;
    (void)pawli_doctor_name(sqlite3_errmsg(d->s->reader), text);
    if (of_ours)
        pawli_doctor_tell(d, PAWL_FINDING_ERROR,
                          "%s: what pawl writes to it is refused\n"
                          "make table %s anew, with a key that refers to pawl_job (id)",
                          text, pawli_doctor_name(table, name));
    else
        pawli_doctor_tell(d, PAWL_FINDING_NOTE, "%s", text);
}

/* Retention deletes finished jobs: one that is referred to stays. */
static int tell_keeper(sqlite3_stmt *row, void *arg)
{
    pawli_doctor *d = arg;
    char table[256], parent[256];
    pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                      "%s refers to %s: finished jobs that it names are kept beyond their time\n"
                      "if that is not meant, declare the key ON DELETE SET NULL or CASCADE",
                      pawli_doctor_name((const char *)sqlite3_column_text(row, 0), table),
                      pawli_doctor_name((const char *)sqlite3_column_text(row, 1), parent));
    return d->told < LINES_MAX ? SQLITE_OK : SQLITE_DONE;
}

/* Table by table, as the first key that makes no sense ends the question. */
static int check_references(sqlite3_stmt *row, void *arg)
{
    pawli_doctor *d = arg;
    const char *table = (const char *)sqlite3_column_text(row, 0);
    int rc = pawli_doctor_each(d->s->reader, tell_reference, d, "PRAGMA foreign_key_check(%Q)", table);
    if (rc == SQLITE_ERROR) {
        tell_mismatch(d, table);
        return SQLITE_OK;
    }
    if (rc != SQLITE_OK || strncmp(table, "pawl_", 5) == 0)
        return rc;
    return pawli_doctor_each(d->s->reader, tell_keeper, d,
                             "SELECT %Q, \"table\" FROM pragma_foreign_key_list(%Q) WHERE \"table\" LIKE"
                             " 'pawl\\_%%' ESCAPE '\\' AND on_delete IN ('NO ACTION', 'RESTRICT')",
                             table, table);
}

void pawli_doctor_check_foreign_keys(pawli_doctor *d)
{
    int rc = pawli_doctor_begin(d);
    if (rc == SQLITE_OK)
        rc = pawli_doctor_each(d->s->reader, check_references, d,
                               "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%%references%%'");
    pawli_doctor_end(d);
    (void)pawli_doctor_failed(d, rc);
}

typedef struct integrity {
    pawli_doctor *d;
    bool is_damaged;
} integrity;

/* A line of integrity_check; "ok" is the only one if nothing is wrong. */
static int take_line(sqlite3_stmt *row, void *arg)
{
    integrity *i = arg;
    char line[256];
    const char *text = (const char *)sqlite3_column_text(row, 0);
    if (text != NULL && strcmp(text, "ok") == 0)
        return SQLITE_OK;
    i->is_damaged = true;
    pawli_doctor_tell(i->d, PAWL_FINDING_ERROR,
                      "%s\n"
                      "stop everything that uses the file, keep a copy of it and its -wal, and "
                      "restore a backup, or try the sqlite3 shell's .recover; if only an index is "
                      "named, REINDEX may do",
                      pawli_doctor_name(text, line));
    return SQLITE_OK;
}

/* Of one table, or of the whole file: "20" is how much is told of it. */
static int check_part(integrity *i, const char *table)
{
    int rc = pawli_doctor_begin(i->d);
    if (rc == SQLITE_OK)
        rc = pawli_doctor_each(i->d->s->reader, take_line, i, "PRAGMA integrity_check(%Q)", table);
    pawli_doctor_end(i->d);
    return rc;
}

static int take_name(sqlite3_stmt *row, void *arg)
{
    char **name = arg;
    *name = sqlite3_mprintf("%s", (const char *)sqlite3_column_text(row, 0));
    return *name != NULL ? SQLITE_DONE : SQLITE_NOMEM;
}

/* The next by name, or NULL: a list would have to be read in a transaction that lasts. */
static int next_table(pawli_doctor *d, char **name)
{
    char *before = *name;
    *name = NULL;
    int rc = pawli_doctor_each(d->s->reader, take_name, name,
                               "SELECT name FROM sqlite_schema WHERE type = 'table' AND name > %Q"
                               " AND sql NOT LIKE 'CREATE VIRTUAL %%' ORDER BY name LIMIT 1", before);
    sqlite3_free(before);
    return rc;
}

static int check_tables(integrity *i)
{
    char *table = sqlite3_mprintf("");
    int rc = check_part(i, "sqlite_schema");
    if (rc == SQLITE_OK)
        rc = table != NULL ? next_table(i->d, &table) : SQLITE_NOMEM;
    while (rc == SQLITE_OK && table != NULL && i->d->told < LINES_MAX) {
        rc = check_part(i, table);
        if (rc == SQLITE_OK)
            rc = next_table(i->d, &table);
    }
    sqlite3_free(table);
    return rc;
}

#define LARGE_BYTES (INT64_C(100) << 20)

/* It walks through a whole b-tree without a look at the clock or the log. So beside others who may write each table
 * has its own transaction, and a large file is left alone (R7). */
void pawli_doctor_check_integrity(pawli_doctor *d)
{
    char who[512], size[PAWLI_PHRASE_BYTES];
    integrity i = { .d = d };
    bool in_use = d->living > 0 || pawli_process_who_has_open(&d->file, who, sizeof who) > 0;
    if (in_use && d->file.st_size > LARGE_BYTES) {
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "not looked at: in a file of %s that is in use it would hold the log; try again when nobody "
                          "uses it, or on a backup", pawli_phrase_bytes((uint64_t)d->file.st_size, size));
        return;
    }
    int rc = in_use ? check_tables(&i) : check_part(&i, "20");
    if (!pawli_doctor_failed(d, rc) && !i.is_damaged)
        pawli_doctor_tell(d, PAWL_FINDING_OK, "integrity_check says ok%s", in_use ? ", table by table" : "");
}
