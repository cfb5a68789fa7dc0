/* attach.c - an application's own connection that wakes the pool at its commits.
 *
 * The connection's hook owns a small counted record, not the pool: after pawl_close() the record says
 * that there is no pool any more, and the hook does nothing. The record is let go when the connection is
 * detached or closed.
 * Threads: the one that uses the connection; the pool's list under the attach lock. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "status.h"

/* SQLite calls its destructor when the connection closes: it holds the record. */
#define ANCHOR "pawl_attached"

typedef struct pawli_attachment {
    _Atomic unsigned holders;
    pthread_mutex_t lock;
    pawl_pool *pool; /* under the lock; NULL: closed */
    sqlite3 *db;
    struct pawli_attachment *next; /* in the pool's list */
} pawli_attachment;

static void release(void *arg)
{
    pawli_attachment *a = arg;
    if (atomic_fetch_sub(&a->holders, 1) != 1)
        return;
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
}

static int on_commit(void *arg, sqlite3 *db, const char *schema, int frames)
{
    pawli_attachment *a = arg;
    (void)db;
    (void)schema;
    (void)frames;
    (void)pthread_mutex_lock(&a->lock);
    if (a->pool != NULL) {
        atomic_store(&a->pool->writer.look_wanted, true);
        pawli_channel_wake(&a->pool->channel);
    }
    (void)pthread_mutex_unlock(&a->lock);
    return SQLITE_OK;
}

static void anchor_function(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    sqlite3_result_int(context, 1);
}

static pawli_attachment *create(pawl_pool *pool, sqlite3 *db)
{
    pawli_attachment *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    atomic_init(&a->holders, 2); /* the connection's anchor, and the pool's list */
    (void)pthread_mutex_init(&a->lock, NULL);
    a->pool = pool;
    a->db = db;
    return a;
}

static pawli_attachment **find(pawl_pool *pool, const sqlite3 *db)
{
    pawli_attachment **at = &pool->attachment;
    while (*at != NULL && (*at)->db != db)
        at = &(*at)->next;
    return at;
}

/* Takes a record out of the pool's list; the connection's hook is left as it is. */
static void forget(pawli_attachment **at)
{
    pawli_attachment *a = *at;
    *at = a->next;
    (void)pthread_mutex_lock(&a->lock);
    a->pool = NULL;
    (void)pthread_mutex_unlock(&a->lock);
    release(a);
}

static pawl_status attach(pawl_pool *pool, sqlite3 *db)
{
    pawli_attachment **stale = find(pool, db);
    if (*stale != NULL)
        forget(stale); /* attached twice, or an address used again after a close */
    pawli_attachment *a = create(pool, db);
    if (a == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "pawl_attach: no memory");
    /* On failure SQLite calls the destructor as well. */
    int rc = sqlite3_create_function_v2(db, ANCHOR, 0, SQLITE_UTF8 | SQLITE_DIRECTONLY, a, anchor_function,
                                        NULL, NULL, release);
    if (rc != SQLITE_OK) {
        release(a);
        return pawli_fail(PAWL_ERR_STORE, "pawl_attach: %s", sqlite3_errmsg(db));
    }
    (void)sqlite3_wal_autocheckpoint(db, 0); /* R6 */
    (void)sqlite3_wal_hook(db, on_commit, a);
    a->next = pool->attachment;
    pool->attachment = a;
    return PAWL_OK;
}

pawl_status pawl_attach(pawl_pool *pool, sqlite3 *db)
{
    pawl_status st = pawli_pool_enter(pool, PAWLI_WAITS | PAWLI_WRITES);
    if (st != PAWL_OK)
        return st;
    if (db == NULL)
        return pawli_fail(PAWL_ERR_INVALID, "pawl_attach: db is NULL");
    (void)pthread_mutex_lock(&pool->attach_lock);
    st = attach(pool, db);
    (void)pthread_mutex_unlock(&pool->attach_lock);
    return st;
}

pawl_status pawl_detach_db(pawl_pool *pool, sqlite3 *db)
{
    pawl_status st = pawli_pool_enter(pool, PAWLI_WAITS | PAWLI_WRITES);
    if (st != PAWL_OK)
        return st;
    (void)pthread_mutex_lock(&pool->attach_lock);
    pawli_attachment **at = find(pool, db);
    if (*at == NULL) {
        st = pawli_fail(PAWL_ERR_NOT_FOUND, "pawl_detach_db: the connection is not attached");
    } else {
        (void)sqlite3_wal_hook(db, NULL, NULL);
        (void)sqlite3_create_function_v2(db, ANCHOR, 0, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, NULL, NULL,
                                         NULL, NULL); /* its destructor lets the record go */
        forget(at);
    }
    (void)pthread_mutex_unlock(&pool->attach_lock);
    return st;
}

void pawli_attachments_end(pawl_pool *pool)
{
    (void)pthread_mutex_lock(&pool->attach_lock);
    while (pool->attachment != NULL)
        forget(&pool->attachment);
    (void)pthread_mutex_unlock(&pool->attach_lock);
}
