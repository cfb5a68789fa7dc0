/* connection.c - where the file is, and how a connection to it is opened.
 *
 * Threads: the writer's role; a reader's connection under the reader lock.
 * Keeps:   R2 an own busy handler, R6 no automatic checkpoints, R8 the file is opened by SQLite alone,
 *          R9 what cannot be safe is refused, R12 the settings of every connection. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../../text.h"
#include "sqlite_store.h"

/* ------------------------------------------------------------------------------ errors */

bool pawli_sqlite_is_environment(int rc)
{
    switch (rc & 0xFF) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CORRUPT:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN: return true;
    default: return false;
    }
}

pawl_status pawli_sqlite_status(int rc)
{
    switch (rc & 0xFF) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE: return PAWL_OK;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return PAWL_ERR_BUSY;
    case SQLITE_FULL: return PAWL_ERR_FULL;
    case SQLITE_NOMEM: return PAWL_ERR_NOMEM;
    default: return PAWL_ERR_STORE;
    }
}

const char *pawli_sqlite_remedy(int rc)
{
    if (rc == SQLITE_READONLY_ROLLBACK || rc == SQLITE_READONLY_RECOVERY)
        return "; somebody was interrupted while writing it: open it once with a program that may write, and "
               "what was left half done is undone";
    if (rc == SQLITE_CONSTRAINT_TRIGGER)
        return "; a trigger that is not pawl's refuses or swallows the write: pawl doctor names it";
    switch (rc & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return "; another connection holds the write lock: end its transaction, or "
                               "raise store_timeout_ms";
    case SQLITE_FULL: return "; free some disk space";
    case SQLITE_NOTADB: return "; it is not an SQLite database (or an encrypted one): use another file";
    case SQLITE_CORRUPT: return "; the file is damaged: restore a backup, or try the sqlite3 shell's "
                                ".recover";
    case SQLITE_READONLY:
    case SQLITE_PERM: return "; the file or its directory cannot be written: check their permissions";
    case SQLITE_CANTOPEN: return "; check that the file may be read, and that its directory exists and may "
                                "be written";
    default: return "";
    }
}

pawl_status pawli_sqlite_failed(const pawli_sqlite *s, sqlite3 *db, int rc, const char *doing)
{
    const char *text = db != NULL && (sqlite3_errcode(db) & 0xFF) == (rc & 0xFF) ? sqlite3_errmsg(db)
                                                                                : sqlite3_errstr(rc);
    return pawli_fail(pawli_sqlite_status(rc), "%s: cannot %s: %s%s", s->path, doing, text,
                      pawli_sqlite_remedy(rc));
}

/* A path so long that the message would cut the command in the middle stands in front of it in any case. */
pawl_status pawli_sqlite_to_init(pawl_status status, const char *path, const char *finding)
{
    char word[PAWLI_WORD_BYTES];
    bool fits = strlen(path) + strlen(pawli_text_word(word, path)) < 800;
    return pawli_fail(status, "%s: %s: pawl init %s", path, finding, fits ? word : "FILE");
}

/* ---------------------------------------------------------------------------- the path */

bool pawli_sqlite_is_network(long type)
{
    switch ((unsigned long)type & 0xFFFFFFFFUL) {
    case 0x6969UL:     /* NFS */
    case 0x517BUL:     /* SMB */
    case 0xFF534D42UL: /* CIFS */
    case 0xFE534D42UL: /* SMB2 */
    case 0x5346414FUL: /* AFS */
    case 0x73757245UL: /* CODA */
    case 0x01021997UL: /* 9P */
    case 0x00C36400UL: /* Ceph */
    case 0x47504653UL: /* GPFS */
    case 0x0BD00BD0UL: /* Lustre */
        return true;
    default: return false;
    }
}

/* The absolute path, with the directory's links resolved; the file itself may be missing (R9). */
static pawl_status make_absolute(const char *given, char *out)
{
    if (realpath(given, out) != NULL)
        return PAWL_OK;
    const char *slash = strrchr(given, '/');
    const char *base = slash != NULL ? slash + 1 : given;
    char directory[PATH_MAX];
    (void)snprintf(directory, sizeof directory, "%.*s",
                   slash == NULL ? 1 : slash == given ? 1 : (int)(slash - given),
                   slash == NULL ? "." : given);
    struct stat ignored;
    int error = errno;
    if (error == ENOENT && lstat(given, &ignored) == 0) { /* a link to nowhere, or created just now */
        if (realpath(given, out) != NULL)
            return PAWL_OK;
        error = errno;
        base = "";
    }
    if (error != ENOENT || base[0] == '\0')
        return pawli_fail(PAWL_ERR_STORE, "%s: cannot be used: %s", given, strerror(error));
    if (realpath(directory, out) == NULL)
        return pawli_fail(PAWL_ERR_STORE, "%s: its directory cannot be used: %s; create it first", given,
                          strerror(errno));
    size_t length = strcmp(out, "/") == 0 ? 0 : strlen(out);
    if (length + 1 + strlen(base) + sizeof "-journal" > PATH_MAX)
        return pawli_fail(PAWL_ERR_INVALID, "%s: the path is too long", given);
    (void)snprintf(out + length, PATH_MAX - length, "/%s", base);
    return PAWL_OK;
}

static pawl_status check_file(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return PAWL_OK; /* to be created */
    if (!S_ISREG(st.st_mode))
        return pawli_fail(PAWL_ERR_INVALID, "%s: is not a regular file; name a file", path);
    if (st.st_nlink > 1)
        return pawli_fail(PAWL_ERR_INVALID, "%s: has %lu hard links; two names of one SQLite file lose "
                                            "data: remove the others", path,
                          (unsigned long)st.st_nlink);
    return PAWL_OK;
}

/* Of an absolute path. */
static void directory_of(const char *path, char out[PATH_MAX])
{
    (void)snprintf(out, PATH_MAX, "%s", path);
    char *slash = strrchr(out, '/');
    slash[slash == out ? 1 : 0] = '\0';
}

static pawl_status check_file_system(const char *path)
{
    char directory[PATH_MAX];
    directory_of(path, directory);
    struct statfs fs;
    if (statfs(directory, &fs) == 0 && pawli_sqlite_is_network(fs.f_type))
        return pawli_fail(PAWL_ERR_INVALID, "%s: is on a network file system, where SQLite's locks do "
                                            "not hold; use a local disk", path);
    return PAWL_OK;
}

pawl_status pawli_sqlite_locate(pawli_sqlite *s, const char *given)
{
    if (strncmp(given, "file:", 5) == 0 || given[0] == ':')
        return pawli_fail(PAWL_ERR_INVALID, "%s: jobs need a real file; name a path (\"./%s\" if the file "
                                            "is really called so)", given, given);
    pawl_status st = make_absolute(given, s->path);
    if (st == PAWL_OK)
        st = check_file(s->path);
    return st == PAWL_OK ? check_file_system(s->path) : st;
}

/* ------------------------------------------------------------------------- connections */

/* R2: short, jittered sleeps against one deadline for the whole statement. */
static int on_busy(void *arg, int count)
{
    pawli_sqlite *s = arg;
    (void)count;
    if (pawli_steady_now_ns() >= s->busy_until_ns)
        return 0;
    pawli_turn_wait(&s->turn);
    return 1;
}

static int on_wal(void *arg, sqlite3 *db, const char *schema, int frames)
{
    pawli_sqlite *s = arg;
    (void)db;
    if (strcmp(schema, "main") == 0)
        s->wal_frames = frames;
    return SQLITE_OK;
}

/* A function of the application's may have undone the whole transaction by a conflict clause: what it writes
 * then would commit by itself, without the success (I19, R4). */
static int on_commit(void *arg)
{
    const pawli_sqlite *s = arg;
    return s->in_user_code; /* true: it becomes a rollback */
}

static bool names_pawl(const char *name)
{
    return name != NULL && sqlite3_strnicmp(name, "pawl_", 5) == 0;
}

/* What an on_success function must not do; everything else is the application's right. */
static int on_authorize(void *arg, int action, const char *first, const char *second,
                        const char *schema, const char *trigger)
{
    const pawli_sqlite *s = arg;
    (void)schema;
    (void)trigger;
    if (!s->in_user_code)
        return SQLITE_OK;
    switch (action) {
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
    case SQLITE_ALTER_TABLE: /* the authorizer is not told the new name */
    case SQLITE_ATTACH:
    case SQLITE_DETACH: return SQLITE_DENY;
    case SQLITE_PRAGMA: /* full-text tables ask for the data version */
        return second == NULL && sqlite3_stricmp(first, "data_version") == 0 ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE: return names_pawl(first) ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_VIEW:
    case SQLITE_DROP_INDEX:
    case SQLITE_DROP_TRIGGER:
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_VIEW:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_VTABLE:
    case SQLITE_DROP_VTABLE:
    case SQLITE_CREATE_TEMP_TABLE: /* one of our names would stand before our own table */
    case SQLITE_CREATE_TEMP_VIEW:
    case SQLITE_CREATE_TEMP_TRIGGER:
    case SQLITE_CREATE_TEMP_INDEX:
    case SQLITE_DROP_TEMP_TABLE:
    case SQLITE_DROP_TEMP_VIEW:
    case SQLITE_DROP_TEMP_TRIGGER:
    case SQLITE_DROP_TEMP_INDEX: return names_pawl(first) || names_pawl(second) ? SQLITE_DENY : SQLITE_OK;
    default: return SQLITE_OK;
    }
}

#define READER_WAIT_MS 1000 /* readers wait for nobody in WAL mode, but for a recovery */

/* R12. A reader's settings touch no page: a file in a directory that cannot be written may need another
 * way to be opened before it can be read at all. */
static int configure(pawli_sqlite *s, sqlite3 *db, bool reads_only)
{
    char sql[512];
    (void)sqlite3_extended_result_codes(db, 1);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_wal_autocheckpoint(db, 0); /* R6 */
    if (reads_only) {
        (void)sqlite3_busy_timeout(db, READER_WAIT_MS);
        return sqlite3_exec(db, "PRAGMA query_only = ON; PRAGMA cell_size_check = ON", NULL, NULL, NULL);
    }
    (void)sqlite3_busy_handler(db, on_busy, s); /* the writer's role only */
    (void)snprintf(sql, sizeof sql,
                   "PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON; PRAGMA mmap_size = 0;"
                   "PRAGMA cache_size = -8192; PRAGMA secure_delete = FAST;"
                   "PRAGMA synchronous = %s; PRAGMA journal_size_limit = %zu;",
                   s->host.options->flush_commits ? "FULL" : "NORMAL", s->host.options->wal_bytes_max);
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static pawl_status connect_path(pawli_sqlite *s, const char *name, int flags, bool reads_only,
                                sqlite3 **out)
{
    sqlite3 *db;
    int rc = sqlite3_open_v2(name, &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc == SQLITE_OK)
        rc = configure(s, db, reads_only);
    if (rc == SQLITE_OK) {
        *out = db;
        return PAWL_OK;
    }
    pawl_status st = pawli_sqlite_failed(s, db, rc, "open it");
    (void)sqlite3_close_v2(db);
    return st;
}

pawl_status pawli_sqlite_connect(pawli_sqlite *s, int flags, sqlite3 **out)
{
    return connect_path(s, s->path, flags, false, out);
}

/* ------------------------------------------------------------------------------ opening */

/* Switching to WAL does not use the busy handler (R9); and nothing but WAL is good enough. */
static int switch_to_wal(pawli_sqlite *s)
{
    int rc;
    bool wal = false;
    do {
        sqlite3_stmt *row;
        rc = sqlite3_prepare_v2(s->db, "PRAGMA journal_mode = WAL", -1, &row, NULL);
        if (rc != SQLITE_OK)
            return rc;
        rc = sqlite3_step(row);
        wal = rc == SQLITE_ROW && sqlite3_stricmp((const char *)sqlite3_column_text(row, 0), "wal") == 0;
        (void)sqlite3_finalize(row);
    } while (((rc & 0xFF) == SQLITE_BUSY || (rc == SQLITE_ROW && !wal)) && on_busy(s, 0));
    if (rc == SQLITE_ROW)
        return wal ? SQLITE_OK : SQLITE_BUSY;
    return rc;
}

/* R8: a database that was replaced under us, or whose log was deleted, has nothing to do with what is open:
 * what is committed to it is lost. The first look at each file remembers it. */
static pawl_status check_same(const pawli_sqlite *s, const char *suffix, pawli_file_id *id)
{
    char path[PATH_MAX + 8];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s%s", s->path, suffix);
    bool found = stat(path, &st) == 0;
    if (!found && errno != ENOENT && errno != ENOTDIR)
        return pawli_fail(PAWL_ERR_STORE, "%s: cannot be found any more: %s; check the permissions of the "
                                          "directories above it", path, strerror(errno));
    if (found && id->inode == 0)
        *id = (pawli_file_id){ st.st_dev, st.st_ino };
    if (found ? id->device == st.st_dev && id->inode == st.st_ino : id->inode == 0)
        return PAWL_OK;
    return pawli_fail(PAWL_ERR_STORE, "%s: was deleted or replaced while it is in use; stop this program, put "
                                      "the file back, and start again", path);
}

pawl_status pawli_sqlite_same_file(pawli_sqlite *s)
{
    static const char *const suffixes[] = { "", "-wal", "-shm" };
    pawl_status st = PAWL_OK;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0] && st == PAWL_OK; i++)
        st = check_same(s, suffixes[i], &s->files[i]);
    return st;
}

/* Asked before SQLite opens it: its silent second choice, to open for reading, leaves sidecars behind. */
static pawl_status check_writable(const pawli_sqlite *s, bool missing)
{
    char directory[PATH_MAX];
    directory_of(s->path, directory);
    if ((missing || faccessat(AT_FDCWD, s->path, W_OK, AT_EACCESS) == 0)
        && faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0)
        return PAWL_OK;
    return pawli_fail(PAWL_ERR_STORE, "%s: cannot be written: %s%s", s->path, strerror(errno),
                      pawli_sqlite_remedy(SQLITE_READONLY));
}

static pawl_status open_database(pawli_sqlite *s)
{
    struct stat ignored;
    bool existing = (s->host.options->flags & PAWL_OPEN_EXISTING) != 0;
    bool missing = stat(s->path, &ignored) != 0;
    if (missing && existing)
        return pawli_sqlite_to_init(PAWL_ERR_NOT_FOUND, s->path, "does not exist; create it with");
    int flags = SQLITE_OPEN_READWRITE | (existing ? 0 : SQLITE_OPEN_CREATE);
    pawl_status st = check_writable(s, missing);
    /* V3: private from its first moment on, as others may make its sidecars, which take the mode over; and
     * without a descriptor on it (R8). Whoever comes second finds it. */
    if (st == PAWL_OK && missing)
        (void)mknod(s->path, S_IFREG | 0600, 0);
    if (st == PAWL_OK)
        st = pawli_sqlite_connect(s, flags, &s->db);
    if (st == PAWL_OK && sqlite3_db_readonly(s->db, "main") == 1) /* SQLite's silent second choice */
        st = pawli_fail(PAWL_ERR_STORE, "%s: cannot be written%s", s->path,
                        pawli_sqlite_remedy(SQLITE_READONLY));
    return st;
}

static pawl_status prepare_schema(pawli_sqlite *s)
{
    int64_t version;
    pawl_status st = pawli_sqlite_schema_check(s->db, s->path, &version);
    if (st != PAWL_OK)
        return st;
    if (version == 0 && (s->host.options->flags & PAWL_OPEN_EXISTING) != 0)
        return pawli_sqlite_to_init(PAWL_ERR_NOT_FOUND, s->path, "holds no pawl tables; create them with");
    int rc = switch_to_wal(s);
    if (rc != SQLITE_OK)
        return pawli_sqlite_failed(s, s->db, rc, "switch it to WAL mode");
    return version == PAWLI_SCHEMA_VERSION ? PAWL_OK : pawli_sqlite_schema_prepare(s);
}

static pawl_status adopt_hooks(pawli_sqlite *s)
{
    const pawli_options *o = s->host.options;
    (void)sqlite3_wal_hook(s->db, on_wal, s);
    (void)sqlite3_commit_hook(s->db, on_commit, s);
    int rc = pawli_new_jobs_register(s);
    if (rc == SQLITE_OK)
        rc = sqlite3_set_authorizer(s->db, on_authorize, s);
    if (rc != SQLITE_OK)
        return pawli_sqlite_failed(s, s->db, rc, "prepare the connection");
    pawl_status st = o->db_open != NULL ? o->db_open(s->db, o->db_open_arg) : PAWL_OK;
    pawli_end_if_child(s->host.fork_mark);
    if (st != PAWL_OK)
        return pawli_fail(st, "%s: the application's db_open function answered %s", s->path,
                          pawl_status_name(st));
    return PAWL_OK;
}

#define FRAME_HEADER_BYTES 24

static int read_page_size(pawli_sqlite *s)
{
    sqlite3_stmt *row;
    int rc = sqlite3_prepare_v2(s->db, "PRAGMA page_size", -1, &row, NULL);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(row);
    s->frame_bytes = FRAME_HEADER_BYTES + (rc == SQLITE_ROW ? sqlite3_column_int64(row, 0) : 4096);
    (void)sqlite3_finalize(row);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

pawl_status pawli_sqlite_open_writer(pawli_sqlite *s)
{
    s->busy_until_ns = pawli_add(pawli_steady_now_ns(),
                                 pawli_ms_to_ns(s->host.options->store_timeout_ms));
    pawl_status st = open_database(s);
    if (st == PAWL_OK)
        st = prepare_schema(s);
    if (st == PAWL_OK)
        st = adopt_hooks(s);
    if (st != PAWL_OK)
        return st;
    int rc = read_page_size(s);
    if (rc == SQLITE_OK)
        rc = pawli_sqlite_refresh(s);
    pawli_sql_writer_begin(s);
    s->foreign = false;
    if (rc == SQLITE_OK && (st = pawli_sqlite_same_file(s)) != PAWL_OK)
        return st;
    return rc == SQLITE_OK ? PAWL_OK : pawli_sqlite_failed(s, s->db, rc, "read pawl's tables");
}

/* ------------------------------------------------------------------------------ readers */

static bool log_is_empty(const pawli_sqlite *s)
{
    char wal[PATH_MAX + 8];
    struct stat st;
    (void)snprintf(wal, sizeof wal, "%s-wal", s->path);
    return stat(wal, &st) != 0 || st.st_size == 0;
}

/* A file that cannot be written, in a directory that cannot: nobody else can change it either. */
static pawl_status connect_immutable(pawli_sqlite *s)
{
    static const char plain[] = "/._-+@:,=~ ()[]{}!$&'*;";
    char uri[3 * PATH_MAX + 32];
    size_t used = (size_t)snprintf(uri, sizeof uri, "file:");
    for (const char *c = s->path; *c != '\0'; c++) {
        bool is_plain = isalnum((unsigned char)*c) || strchr(plain, *c) != NULL;
        used += (size_t)snprintf(uri + used, sizeof uri - used, is_plain ? "%c" : "%%%02X",
                                 (unsigned char)*c);
    }
    (void)snprintf(uri + used, sizeof uri - used, "?immutable=1");
    return connect_path(s, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, true, &s->reader);
}

/* A transaction that somebody has left half written: who may write would roll it back. */
static bool has_journal(const pawli_sqlite *s)
{
    char journal[PATH_MAX + 16];
    struct stat st;
    (void)snprintf(journal, sizeof journal, "%s-journal", s->path);
    return stat(journal, &st) == 0;
}

/* Beside a writer of ours a read-only connection does. Alone it would leave empty sidecars behind; one
 * that may write, but never does, removes them when it closes, and leaves a log that was there. */
pawl_status pawli_sqlite_connect_reader(pawli_sqlite *s)
{
    bool alone = s->db == NULL, had_log = alone && !log_is_empty(s);
    int flags = alone && access(s->path, W_OK) == 0 && !has_journal(s) ? SQLITE_OPEN_READWRITE
                                                                       : SQLITE_OPEN_READONLY;
    pawl_status st = connect_path(s, s->path, flags, true, &s->reader);
    if (st != PAWL_OK)
        return st;
    (void)sqlite3_db_config(s->reader, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, (int)had_log, NULL);
    if (!alone || had_log || flags == SQLITE_OPEN_READWRITE || has_journal(s)
        || sqlite3_exec(s->reader, "SELECT 1 FROM sqlite_schema", NULL, NULL, NULL) == SQLITE_OK)
        return PAWL_OK;
    (void)sqlite3_close_v2(s->reader);
    s->reader = NULL;
    return connect_immutable(s);
}

/* Under the reader lock. */
pawl_status pawli_sqlite_open_reader(pawli_sqlite *s)
{
    struct stat ignored;
    if (s->reader != NULL)
        return PAWL_OK;
    if (stat(s->path, &ignored) != 0)
        return pawli_sqlite_to_init(PAWL_ERR_NOT_FOUND, s->path, "does not exist; create it with");
    pawl_status st = pawli_sqlite_connect_reader(s);
    if (st == PAWL_OK)
        st = pawli_sqlite_schema_readable(s->reader, s->path);
    if (st != PAWL_OK) {
        (void)sqlite3_close_v2(s->reader);
        s->reader = NULL;
    }
    return st;
}

/* The application's functions may have left statements: the connection must not outlive the pool for their
 * sake (I21). The first close has let go of what virtual tables hold; what is there then is theirs. */
static void close_for_good(sqlite3 *db)
{
    sqlite3_stmt *left;
    if (db == NULL || sqlite3_close(db) == SQLITE_OK)
        return;
    while ((left = sqlite3_next_stmt(db, NULL)) != NULL)
        (void)sqlite3_finalize(left);
    (void)sqlite3_close_v2(db);
}

/* The log may have come since the connection was opened: it is not this one's to move. */
void pawli_sqlite_disconnect_reader(pawli_sqlite *s)
{
    if (s->reader != NULL && !log_is_empty(s))
        (void)sqlite3_db_config(s->reader, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void)sqlite3_close_v2(s->reader);
    s->reader = NULL;
}

void pawli_sqlite_disconnect(pawli_sqlite *s)
{
    pawli_statements_finalize(s);
    pawli_sqlite_disconnect_reader(s);
    (void)sqlite3_close_v2(s->guard);
    close_for_good(s->db); /* last: its close checkpoints under the exclusive lock (R6) */
    s->db = s->guard = NULL;
    pawli_turn_fini(&s->turn);
}
