/* race_probe.c - the WAL-reset race as an experiment: forced, on a scratch file, in any process.
 *
 * A checkpoint of an affected SQLite (3.7.0 to 3.51.2) reads the header of the log's index, and copies
 * afterwards. If another connection commits in between and starts the log anew, the checkpoint records the
 * progress of the old log for the new one, and whatever is committed up to there later is taken for copied:
 * lost at the last close, while integrity_check says ok. SQLite calls xUnfetch(file, 0, NULL) at exactly
 * that point; a VFS of our own puts the commit there.
 * Threads: any; a trial and its VFS belong to one call. Nothing of the process is configured.
 * Keeps:   R6 as a fact and not as a rumour: what the library does is seen, with its control. */
#include "race_probe.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../status.h"

bool pawli_race_version_has_it(int version)
{
    if (version < 3007000 || version >= 3051003)
        return false;
    int branch = version / 1000, patch = version % 1000; /* fixed in two older branches as well */
    return !(branch == 3050 && patch >= 7) && !(branch == 3044 && patch >= 6);
}

/* ------------------------------------------------------------------------------- the VFS */

typedef struct shim shim;

typedef struct shim_methods {
    sqlite3_io_methods methods; /* first: a file points here */
    shim *owner;
} shim_methods;

struct shim {
    sqlite3_vfs vfs; /* first: SQLite hands it back */
    sqlite3_vfs *base;
    shim_methods io;
    char name[64];
    /* The experiment. */
    sqlite3 *intruder;
    bool is_armed;
    bool fired;
    int intruder_rc;
};

static int fetch(sqlite3_file *file, sqlite3_int64 offset, int bytes, void **out)
{
    (void)file;
    (void)offset;
    (void)bytes;
    *out = NULL; /* as if nothing could be mapped */
    return SQLITE_OK;
}

static const char intrusion[] = "BEGIN IMMEDIATE; UPDATE t SET v = 2 WHERE id <= 50; COMMIT";

static void intrude(shim *s)
{
    s->is_armed = false;
    s->fired = true;
    s->intruder_rc = sqlite3_exec(s->intruder, intrusion, NULL, NULL, NULL);
    if (!sqlite3_get_autocommit(s->intruder))
        (void)sqlite3_exec(s->intruder, "ROLLBACK", NULL, NULL, NULL);
}

/* cppcheck-suppress constParameter ; SQLite's prototype */
static int unfetch(sqlite3_file *file, sqlite3_int64 offset, void *page)
{
    const shim_methods *io = (const void *)file->pMethods;
    if (io->owner->is_armed && offset == 0 && page == NULL)
        intrude(io->owner);
    return SQLITE_OK;
}

/* The file is the base's own, but for two of its methods. */
static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags)
{
    shim *s = (shim *)(void *)vfs;
    int rc = s->base->xOpen(s->base, name, file, flags, out_flags);
    if (rc != SQLITE_OK || (flags & SQLITE_OPEN_MAIN_DB) == 0)
        return rc;
    s->io.methods = *file->pMethods;
    s->io.methods.iVersion = 3;
    s->io.methods.xFetch = fetch;
    s->io.methods.xUnfetch = unfetch;
    file->pMethods = &s->io.methods;
    return SQLITE_OK;
}

static bool shim_register(shim *s)
{
    memset(s, 0, sizeof *s);
    s->base = sqlite3_vfs_find("unix");
    if (s->base == NULL || s->base->iVersion < 1)
        return false;
    s->vfs = *s->base;
    s->vfs.pNext = NULL;
    s->vfs.xOpen = open_file;
    s->io.owner = s;
    (void)snprintf(s->name, sizeof s->name, "pawl-race-%ld-%p", (long)getpid(), (void *)s);
    s->vfs.zName = s->name;
    return sqlite3_vfs_register(&s->vfs, 0) == SQLITE_OK;
}

/* ------------------------------------------------------------------------------ one trial */

enum { ROWS_AFTER = 60 }; /* ids up to here hold 2 in the end, the others 1 */

typedef struct bench {
    shim *s;
    const char *path;
    sqlite3 *writer, *checkpointer, *guard;
} bench;

static int run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static int open_one(const bench *b, sqlite3 **out)
{
    int rc = sqlite3_open_v2(b->path, out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                             b->s->name);
    if (rc == SQLITE_OK)
        rc = sqlite3_wal_autocheckpoint(*out, 0);
    return rc == SQLITE_OK ? run(*out, "PRAGMA synchronous = OFF") : rc; /* nothing here is to survive */
}

/* Everybody has seen the log's first state; then it is filled and copied in full, so that the next commit
 * starts it anew. */
static int prepare(bench *b)
{
    static const char rows[] =
        "PRAGMA page_size = 512; PRAGMA journal_mode = WAL;"
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, pad BLOB);"
        "WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100)"
        " INSERT INTO t SELECT i, 0, zeroblob(400) FROM n";
    static const char look[] = "SELECT count(*) FROM t";
    int rc = open_one(b, &b->writer);
    if (rc == SQLITE_OK)
        rc = run(b->writer, rows);
    if (rc == SQLITE_OK)
        rc = open_one(b, &b->checkpointer);
    if (rc == SQLITE_OK)
        rc = run(b->checkpointer, look);
    if (rc == SQLITE_OK)
        rc = open_one(b, &b->guard);
    if (rc == SQLITE_OK)
        rc = run(b->guard, look);
    if (rc == SQLITE_OK)
        rc = run(b->writer, "UPDATE t SET v = 1");
    if (rc == SQLITE_OK)
        rc = sqlite3_wal_checkpoint_v2(b->writer, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return rc;
}

static int interleave(bench *b, bool guarded)
{
    int rc = guarded ? run(b->guard, "BEGIN IMMEDIATE") : SQLITE_OK;
    if (rc != SQLITE_OK)
        return rc;
    b->s->intruder = b->writer;
    b->s->is_armed = true;
    rc = sqlite3_wal_checkpoint_v2(b->checkpointer, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    b->s->is_armed = false;
    if (guarded)
        (void)run(b->guard, "ROLLBACK");
    return rc;
}

/* What the intruder was refused it tries again, as any client would; then one more commit. */
static int go_on(bench *b)
{
    int rc = !b->s->fired || b->s->intruder_rc != SQLITE_OK ? run(b->writer, intrusion) : SQLITE_OK;
    return rc == SQLITE_OK ? run(b->writer, "UPDATE t SET v = 2 WHERE id > 50 AND id <= 60") : rc;
}

static void close_all(bench *b)
{
    (void)sqlite3_close(b->guard);
    (void)sqlite3_close(b->checkpointer);
    (void)sqlite3_close(b->writer); /* last: what the log holds is copied now, or taken for copied */
    b->guard = b->checkpointer = b->writer = NULL;
}

static int count_lost(const bench *b, int64_t *lost)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *row = NULL;
    int rc = open_one(b, &db);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(db, "SELECT count(*) FROM t WHERE v = CASE WHEN id <= ?1 THEN 2 ELSE 1 END", -1,
                                &row, NULL);
    if (rc == SQLITE_OK)
        (void)sqlite3_bind_int(row, 1, ROWS_AFTER);
    if (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        *lost = 100 - sqlite3_column_int64(row, 0);
        rc = SQLITE_OK;
    }
    (void)sqlite3_finalize(row);
    (void)sqlite3_close(db);
    return rc;
}

static int try_once(shim *s, const char *path, bool guarded, pawli_race_trial *out)
{
    bench b = { s, path, NULL, NULL, NULL };
    s->fired = false;
    s->intruder_rc = SQLITE_OK;
    int rc = prepare(&b);
    if (rc == SQLITE_OK)
        rc = interleave(&b, guarded);
    if (rc == SQLITE_OK)
        rc = go_on(&b);
    close_all(&b);
    if (rc == SQLITE_OK)
        rc = count_lost(&b, &out->lost);
    out->interleaved = s->fired;
    out->refused = s->fired && (s->intruder_rc & 0xFF) == SQLITE_BUSY;
    return rc;
}

/* ----------------------------------------------------------------------- the scratch files */

static void remove_scratch(const char *path)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
    char name[PATH_MAX];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
}

static int try_in(const char *directory, shim *s, bool guarded, pawli_race_trial *out)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/race.db", directory);
    int rc = try_once(s, path, guarded, out);
    remove_scratch(path);
    return rc;
}

static int try_both(const char *directory, pawli_race_trial *bare, pawli_race_trial *guarded)
{
    shim *s = calloc(1, sizeof *s);
    int rc = s == NULL ? SQLITE_NOMEM : shim_register(s) ? SQLITE_OK : SQLITE_ERROR;
    if (rc == SQLITE_OK) {
        rc = try_in(directory, s, false, bare);
        if (rc == SQLITE_OK)
            rc = try_in(directory, s, true, guarded);
        (void)sqlite3_vfs_unregister(&s->vfs);
    }
    free(s);
    return rc;
}

pawl_status pawli_race_probe(pawli_race_trial *bare, pawli_race_trial *guarded)
{
    char directory[PATH_MAX - 64];
    const char *parent = secure_getenv("TMPDIR");
    memset(bare, 0, sizeof *bare);
    memset(guarded, 0, sizeof *guarded);
    int length = snprintf(directory, sizeof directory, "%s/pawl-race-XXXXXX",
                          parent != NULL && parent[0] == '/' ? parent : "/tmp");
    if (length < 0 || (size_t)length >= sizeof directory || mkdtemp(directory) == NULL)
        return pawli_fail(PAWL_ERR_STORE, "no scratch directory can be made in %s; set TMPDIR",
                          parent != NULL ? parent : "/tmp");
    int rc = try_both(directory, bare, guarded);
    (void)rmdir(directory);
    return rc == SQLITE_OK ? PAWL_OK
                           : pawli_fail(PAWL_ERR_STORE, "the trial on a scratch file failed: %s",
                                        sqlite3_errstr(rc));
}
