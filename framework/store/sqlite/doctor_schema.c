/* doctor_schema.c - does the file hold pawl's tables, whole and as they were made? Every object is compared with
 * the one that a new file would get, and every row that pawl_meta needs is looked for.
 * Threads: the caller of pawl_diagnose().
 * Keeps:   R9 what stands under pawl's names is pawl's; R11 an index or a CHECK that was weakened is seen. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "doctor.h"

/* ------------------------------------------------------------------------- opening it */

static void explain_connect_failure(pawli_doctor *d)
{
    if (pawli_doctor_size(d, "-journal") > 0)
        pawli_doctor_tell(d, PAWL_FINDING_ERROR,
                          "it has a rollback journal: a transaction was interrupted, and must be undone "
                          "before anybody reads\n"
                          "open it once with a program that may write: sqlite3 %s 'SELECT count(*) FROM "
                          "sqlite_schema'",
                          d->word);
    else
        pawli_doctor_tell_error(d, PAWL_FINDING_ERROR);
}

/* A database in memory as pawl makes it: what is compiled in is the only list of its objects. */
static int make_whole(pawli_doctor *d)
{
    int rc = sqlite3_open_v2(":memory:", &d->whole, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                             NULL);
    return rc == SQLITE_OK ? pawli_sqlite_create_all(d->whole) : rc;
}

/* ------------------------------------------------------------------------- comparing */

static bool is_quote(char c)
{
    return c == '\'' || c == '"';
}

static const char *skip_spaces(const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

/* But for spaces, and for the case of what is not quoted. */
static bool says_the_same(const char *a, const char *b)
{
    for (char quote = '\0';; a++, b++) {
        if (quote == '\0') {
            a = skip_spaces(a);
            b = skip_spaces(b);
        }
        if (quote != '\0' ? *a != *b : tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (*a == '\0')
            return true;
        if (quote == *a)
            quote = '\0';
        else if (quote == '\0' && is_quote(*a))
            quote = *a;
    }
}

typedef enum verdict {
    MISSING,
    IN_THE_WAY, /* something else has its name */
    CHANGED,
    AS_MADE
} verdict;

/* Of one file. */
typedef struct comparison {
    pawli_doctor *d;
    int64_t version;
    bool can_be_asked; /* every table and index that the questions use is there */
    char views[1024];  /* "view pawl_jobs is missing, …" */
    /* Of the object under way, as it ought to be. */
    const char *type, *name, *table, *sql;
    verdict verdict;
    char found[16]; /* its type */
} comparison;

static const char *text_of(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text != NULL ? text : "";
}

/* Type, table, text: of what is there. An older file has other texts. */
static int judge_object(sqlite3_stmt *row, void *arg)
{
    comparison *c = arg;
    (void)snprintf(c->found, sizeof c->found, "%s", text_of(row, 0));
    if (strcmp(c->found, c->type) != 0)
        c->verdict = IN_THE_WAY;
    else if (c->version == PAWLI_SCHEMA_VERSION
             && (sqlite3_stricmp(text_of(row, 1), c->table) != 0 || !says_the_same(text_of(row, 2), c->sql)))
        c->verdict = CHANGED;
    else
        c->verdict = AS_MADE;
    return SQLITE_DONE;
}

/* ---------------------------------------------------------------------------- telling */

/* Nothing is lost: what it holds may be the application's. */
static void tell_in_the_way(const comparison *c)
{
    if (strcmp(c->found, "table") == 0)
        pawli_doctor_tell(c->d, PAWL_FINDING_ERROR,
                          "a table stands where pawl's %s %s belongs\n"
                          "rename it: " PAWLI_BY_SQL("PRAGMA legacy_alter_table=ON; ALTER TABLE %s RENAME TO app_%s"),
                          c->type, c->name, c->d->word, c->name, c->name);
    else
        pawli_doctor_tell(c->d, PAWL_FINDING_ERROR,
                          "a %s stands where pawl's %s %s belongs\n"
                          PAWLI_BY_SQL("DROP %s %s"),
                          c->found, c->type, c->name, c->d->word, c->found, c->name);
}

static void tell_index(const comparison *c)
{
    pawli_doctor_tell(c->d, PAWL_FINDING_ERROR,
                      "index %s is %s\n"
                      "make it as it was%s: " PAWLI_BY_SQL("DROP INDEX IF EXISTS %s; %s"),
                      c->name, c->verdict == MISSING ? "missing" : "not as pawl made it",
                      strncmp(c->sql, "CREATE UNIQUE", 13) == 0 ? " (it refuses if two rows have the same values)"
                                                                : "",
                      c->d->word, c->name, c->sql);
}

static void tell_table(const comparison *c)
{
    if (c->verdict == MISSING)
        pawli_doctor_tell(c->d, PAWL_FINDING_ERROR,
                          "table %s is missing\n"
                          "somebody has dropped it: restore a backup",
                          c->name);
    else
        pawli_doctor_tell(c->d, PAWL_FINDING_ERROR,
                          "table %s is not as pawl made it\n"
                          "somebody has altered it: undo that, or restore a backup",
                          c->name);
}

static void note_view(comparison *c)
{
    size_t used = strlen(c->views);
    (void)snprintf(c->views + used, sizeof c->views - used, "%s%s %s is %s", used > 0 ? ", " : "", c->type, c->name,
                   c->verdict == MISSING ? "missing" : "not as pawl made it");
}

static void tell_object(comparison *c)
{
    bool is_table = strcmp(c->type, "table") == 0, is_index = strcmp(c->type, "index") == 0;
    if (c->verdict == AS_MADE)
        return;
    if ((is_table && c->verdict != CHANGED) || is_index)
        c->can_be_asked = false;
    if (c->verdict == IN_THE_WAY)
        tell_in_the_way(c);
    else if (is_table)
        tell_table(c);
    else if (is_index)
        tell_index(c);
    else
        note_view(c);
}

/* The text of views and triggers is long: it is taken from a new file. */
static void tell_views(const comparison *c)
{
    if (c->views[0] != '\0')
        pawli_doctor_tell(c->d, PAWL_FINDING_ERROR,
                          "%s\n"
                          "make them anew: t=$(mktemp -d) && pawl init \"$t/new\" >\"$t/said\" && { echo 'PRAGMA "
                          "wal_autocheckpoint=0; BEGIN IMMEDIATE;'; sqlite3 \"$t/new\" \"SELECT 'DROP ' || type || ' "
                          "IF EXISTS ' || name || ';' FROM sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY "
                          "type; SELECT sql || ';' FROM sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY type "
                          "DESC\"; echo 'COMMIT;'; } | sqlite3 -bail %s; rm -r \"$t\"",
                          c->views, c->d->word);
}

/* ------------------------------------------------------------------------------ objects */

static bool is_of_version_1(const char *type, const char *name)
{
    return strcmp(type, "table") == 0 || (strcmp(type, "index") == 0 && strcmp(name, "pawl_job_dead") != 0)
           || strcmp(name, "pawl_jobs") == 0;
}

/* Type, name, table, text: as it ought to be. A trigger may have the name of something else. */
static int compare_object(sqlite3_stmt *row, void *arg)
{
    comparison *c = arg;
    c->type = text_of(row, 0);
    c->name = text_of(row, 1);
    c->table = text_of(row, 2);
    c->sql = text_of(row, 3);
    c->verdict = MISSING;
    if (c->version < 2 && !is_of_version_1(c->type, c->name))
        return SQLITE_OK;
    int rc = pawli_doctor_each(c->d->s->reader, judge_object, c,
                               "SELECT type, tbl_name, sql FROM sqlite_schema WHERE name = %Q COLLATE NOCASE"
                               " ORDER BY type = %Q DESC LIMIT 1", c->name, c->type);
    if (rc == SQLITE_OK)
        tell_object(c);
    return rc;
}

static int compare_objects(comparison *c)
{
    int rc = make_whole(c->d);
    if (rc == SQLITE_OK)
        rc = pawli_doctor_each(c->d->whole, compare_object, c,
                               "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
                               " AND name LIKE 'pawl\\_%%' ESCAPE '\\' ORDER BY type = 'table' DESC, rowid");
    if (rc == SQLITE_OK)
        tell_views(c);
    return rc;
}

/* -------------------------------------------------------------------------------- pawl_meta */

#define META_OF_FENCES                                                                             \
    "INSERT OR REPLACE INTO pawl_meta (key, value) SELECT 'epoch', 1 + max("                       \
    "ifnull((SELECT value FROM pawl_meta WHERE key = 'epoch'), 0), "                               \
    "ifnull((SELECT max(fence) >> 40 FROM pawl_job), 0), "                                         \
    "ifnull((SELECT max(fence) >> 40 FROM pawl_attempts), 0)); "
#define META_OF_ALL                                                                                \
    "INSERT OR IGNORE INTO pawl_meta (key, value) VALUES ('fence', 0), ('restarts', 0), "          \
    "('sql_last', 0), ('sql_writer', 0)"

typedef struct meta {
    pawli_doctor *d;
    int64_t version;
    char missing[128];
} meta;

static int look_for_key(sqlite3_stmt *row, void *arg)
{
    meta *m = arg;
    int64_t rows;
    const char *key = text_of(row, 0);
    if (m->version < 2 && strncmp(key, "sql_", 4) == 0)
        return SQLITE_OK;
    char *sql = sqlite3_mprintf("SELECT count(*) FROM pawl_meta WHERE key = %Q", key);
    int rc = sql != NULL ? pawli_doctor_number(m->d, sql, &rows) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (rc != SQLITE_OK || rows > 0)
        return rc;
    size_t used = strlen(m->missing);
    (void)snprintf(m->missing + used, sizeof m->missing - used, "%s%s", used > 0 ? ", " : "", key);
    if (strcmp(key, "epoch") == 0 || strcmp(key, "fence") == 0)
        m->d->lacks_fence = true;
    return SQLITE_OK;
}

/* Without the number that fences go on from, a new epoch stands above all of them (I5). */
static int check_meta(pawli_doctor *d, int64_t version)
{
    meta m = { .d = d, .version = version };
    int rc = pawli_doctor_each(d->whole, look_for_key, &m, "SELECT key FROM pawl_meta ORDER BY key");
    if (rc == SQLITE_OK && m.missing[0] != '\0')
        pawli_doctor_tell(d, PAWL_FINDING_ERROR,
                          "pawl_meta has lost its rows: %s\n"
                          PAWLI_STOP_THEN PAWLI_BY_SQL("%s" META_OF_ALL),
                          m.missing, d->word, d->lacks_fence ? META_OF_FENCES : "");
    return rc;
}

/* ------------------------------------------------------------------------------ the check */

static void tell_version(pawli_doctor *d, int64_t version)
{
    if (version < PAWLI_SCHEMA_VERSION)
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "schema %" PRId64 "; this is pawl %s with schema %d\n"
                          "the next pool that opens it brings it up to date",
                          version, PAWL_VERSION, PAWLI_SCHEMA_VERSION);
    else if (d->told == 0)
        pawli_doctor_tell(d, PAWL_FINDING_OK, "pawl's tables, schema %" PRId64, version);
}

static void compare(pawli_doctor *d, int64_t version)
{
    comparison c = { .d = d, .version = version, .can_be_asked = true };
    int rc = compare_objects(&c);
    if (rc == SQLITE_OK && c.can_be_asked)
        rc = check_meta(d, version);
    if (pawli_doctor_failed(d, rc))
        return;
    d->is_pawls = c.can_be_asked;
    tell_version(d, version);
}

static bool connect(pawli_doctor *d)
{
    bool had_index = pawli_doctor_size(d, "-shm") >= 0, had_log = pawli_doctor_size(d, "-wal") >= 0;
    d->lacked_index = !had_index && pawli_doctor_size(d, "-wal") > 0;
    if (pawli_sqlite_connect_reader(d->s) != PAWL_OK) {
        explain_connect_failure(d);
        return false;
    }
    if (had_index && had_log) /* what was there stays, though it be empty */
        (void)sqlite3_db_config(d->s->reader, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return true;
}

void pawli_doctor_check_schema(pawli_doctor *d)
{
    int64_t version = 0, ignored;
    if (!connect(d))
        return;
    if (pawli_sqlite_schema_check(d->s->reader, d->s->path, &version) != PAWL_OK) {
        explain_connect_failure(d);
        d->is_open = pawli_doctor_number(d, "SELECT 1 FROM sqlite_schema LIMIT 1", &ignored) == SQLITE_OK;
        return;
    }
    d->is_open = true;
    if (version == 0)
        pawli_doctor_tell(d, PAWL_FINDING_ERROR, "%s holds no pawl tables\ncreate them: pawl init %s",
                          d->file.st_size == 0 ? "it is empty, and" : "it", d->word);
    else
        compare(d, version);
}

/* ----------------------------------------------------------------------- foreign triggers */

enum { TRIGGERS_TOLD_MAX = 20 };

static int found_one(sqlite3_stmt *row, void *arg)
{
    (void)row;
    *(bool *)arg = true;
    return SQLITE_DONE;
}

/* One that only notes what happens is the application's right; one that writes or refuses is not. What it does
 * cannot be told from outside. */
static int tell_trigger(sqlite3_stmt *row, void *arg)
{
    pawli_doctor *d = arg;
    char name[256], table[256], drop[600], word[PAWLI_WORD_BYTES];
    bool ours = false;
    int rc = pawli_doctor_each(d->whole, found_one, &ours, "SELECT 1 FROM sqlite_schema WHERE type = 'trigger'"
                               " AND name = %Q COLLATE NOCASE AND tbl_name = %Q COLLATE NOCASE",
                               text_of(row, 0), text_of(row, 1));
    if (rc != SQLITE_OK || ours)
        return rc;
    (void)sqlite3_snprintf(sizeof drop, drop, "DROP TRIGGER \"%w\"", text_of(row, 0));
    pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                      "trigger %s on %s is not pawl's: what it refuses or swallows does not happen, and what it "
                      "writes is in each of pawl's transactions\n"
                      "if it does more than to note what happens: sqlite3 %s 'PRAGMA wal_autocheckpoint=0' %s",
                      pawli_doctor_name(text_of(row, 0), name), pawli_doctor_name(text_of(row, 1), table), d->word,
                      pawli_text_word(word, drop));
    return d->told < TRIGGERS_TOLD_MAX ? SQLITE_OK : SQLITE_DONE;
}

void pawli_doctor_check_triggers(pawli_doctor *d)
{
    (void)pawli_doctor_failed(d, pawli_doctor_each(d->s->reader, tell_trigger, d,
                                                   "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'trigger'"
                                                   " AND tbl_name LIKE 'pawl\\_%%' ESCAPE '\\' ORDER BY name"));
}
