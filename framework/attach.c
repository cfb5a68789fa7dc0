/* attach.c - an application's own connection that wakes the pool at its commits.
 *
 * A connection has one hook, and may be attached to several pools. So the hook owns nothing: it looks up the
 * records of its connection, one for each pool, in the process's list. A record belongs to the connection: SQLite
 * lets it go with the anchor, a function without use, when the connection is closed or detached. After
 * pawl_close() it says that there is no pool any more, and the hook does nothing.
 * Threads: the one that uses the connection; the records under their lock, which is held for a moment only, and
 *          never across a call of SQLite's. */
#include <inttypes.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pool.h"
#include "status.h"

typedef struct attachment {
    sqlite3 *db;
    const pawl_pool *made_for; /* never followed: another pool may have come to stand there */
    pawl_pool *pool;           /* NULL: detached, or closed */
    struct attachment *next;
} attachment;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static attachment *all; /* under it */

/* SQLite calls it when the connection closes. */
static void let_go(void *arg)
{
    (void)pthread_mutex_lock(&lock);
    attachment **at = &all;
    while (*at != NULL && *at != arg)
        at = &(*at)->next;
    if (*at != NULL)
        *at = (*at)->next;
    (void)pthread_mutex_unlock(&lock);
    free(arg);
}

/* cppcheck-suppress constParameter ; SQLite's prototype */
static int on_commit(void *arg, sqlite3 *db, const char *schema, int frames)
{
    (void)arg;
    (void)schema;
    (void)frames;
    (void)pthread_mutex_lock(&lock);
    for (attachment *a = all; a != NULL; a = a->next)
        if (a->db == db && a->pool != NULL) {
            atomic_store(&a->pool->writer.look_wanted, true);
            pawli_channel_wake(&a->pool->channel);
        }
    (void)pthread_mutex_unlock(&lock);
    return SQLITE_OK;
}

/* Sets the pool of the connection's record for it; false: there is none. */
static bool set_pool(const pawl_pool *made_for, const sqlite3 *db, pawl_pool *pool, bool *was_attached)
{
    (void)pthread_mutex_lock(&lock);
    attachment *a = all;
    while (a != NULL && (a->db != db || a->made_for != made_for))
        a = a->next;
    *was_attached = a != NULL && a->pool != NULL;
    if (a != NULL)
        a->pool = pool;
    (void)pthread_mutex_unlock(&lock);
    return a != NULL;
}

static bool has_pool(const sqlite3 *db)
{
    bool found = false;
    (void)pthread_mutex_lock(&lock);
    for (const attachment *a = all; a != NULL; a = a->next)
        found |= a->db == db && a->pool != NULL;
    (void)pthread_mutex_unlock(&lock);
    return found;
}

/* ------------------------------------------------------------------------------ the anchor */

static void anchor_function(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    sqlite3_result_int(context, 1);
}

static int set_anchor(const pawl_pool *pool, sqlite3 *db, attachment *a)
{
    char name[40];
    (void)snprintf(name, sizeof name, "pawl_attached_%" PRIxPTR, (uintptr_t)pool);
    return sqlite3_create_function_v2(db, name, 0, SQLITE_UTF8 | SQLITE_DIRECTONLY, a,
                                      a != NULL ? anchor_function : NULL, NULL, NULL, a != NULL ? let_go : NULL);
}

static pawl_status make_record(pawl_pool *pool, sqlite3 *db)
{
    attachment *a = calloc(1, sizeof *a);
    if (a == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "pawl_attach: no memory");
    *a = (attachment){ .db = db, .made_for = pool, .pool = pool };
    if (set_anchor(pool, db, a) != SQLITE_OK) /* then SQLite has let go of it */
        return pawli_fail(PAWL_ERR_STORE, "pawl_attach: %s", sqlite3_errmsg(db));
    (void)pthread_mutex_lock(&lock);
    a->next = all;
    all = a;
    (void)pthread_mutex_unlock(&lock);
    return PAWL_OK;
}

/* --------------------------------------------------------------------------------- the file */

static bool is_same_file(const char *path, const char *other)
{
    struct stat a, b;
    return other != NULL && other[0] != '\0'
           && (strcmp(path, other) == 0
               || (stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino));
}

/* An authorizer of the application's may keep us from asking: then nothing is held against it. */
static bool has_opened(sqlite3 *db, const char *path)
{
    sqlite3_stmt *row = NULL;
    bool found = false;
    if (sqlite3_prepare_v2(db, "PRAGMA database_list", -1, &row, NULL) != SQLITE_OK)
        return true;
    int rc;
    while ((rc = sqlite3_step(row)) == SQLITE_ROW)
        found |= is_same_file(path, (const char *)sqlite3_column_text(row, 2));
    (void)sqlite3_finalize(row);
    return found || rc != SQLITE_DONE;
}

/* ---------------------------------------------------------------------------------- attach */

static pawl_status attach(pawl_pool *pool, sqlite3 *db)
{
    bool ignored;
    if (!has_opened(db, pawli_pool_path(pool)))
        return pawli_fail(PAWL_ERR_INVALID, "pawl_attach: the connection has not opened %s; open it there, or ATTACH "
                                            "it first", pawli_pool_path(pool));
    if (!set_pool(pool, db, pool, &ignored)) {
        pawl_status st = make_record(pool, db);
        if (st != PAWL_OK)
            return st;
    }
    (void)sqlite3_wal_autocheckpoint(db, 0); /* R6 */
    (void)sqlite3_wal_hook(db, on_commit, NULL);
    return PAWL_OK;
}

pawl_status pawl_attach(pawl_pool *pool, sqlite3 *db)
{
    pawl_status st = pawli_pool_enter(pool, PAWLI_WAITS | PAWLI_WRITES);
    if (st != PAWL_OK)
        return st;
    return db != NULL ? attach(pool, db) : pawli_fail(PAWL_ERR_INVALID, "pawl_attach: db is NULL");
}

pawl_status pawl_detach_db(pawl_pool *pool, sqlite3 *db)
{
    bool was_attached;
    pawl_status st = pawli_pool_enter(pool, PAWLI_WAITS | PAWLI_WRITES);
    if (st != PAWL_OK)
        return st;
    (void)set_pool(pool, db, NULL, &was_attached);
    if (!was_attached)
        return pawli_fail(PAWL_ERR_NOT_FOUND, "pawl_detach_db: the connection is not attached");
    if (!has_pool(db)) /* another one still needs it */
        (void)sqlite3_wal_hook(db, NULL, NULL);
    (void)set_anchor(pool, db, NULL); /* refused while a statement runs: then the record stays, and says nothing */
    return PAWL_OK;
}

void pawli_attachments_end(const pawl_pool *pool)
{
    (void)pthread_mutex_lock(&lock);
    for (attachment *a = all; a != NULL; a = a->next)
        if (a->pool == pool)
            a->pool = NULL;
    (void)pthread_mutex_unlock(&lock);
}
