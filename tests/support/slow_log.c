/* slow_log.c - see slow_log.h. A VFS in front of SQLite's own, which puts one function of its own into the
 * methods of each log. Any thread. */
#include "slow_log.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"

static sqlite3_vfs front;
static sqlite3_vfs *real;
static sqlite3_io_methods log_methods;         /* a copy of those of the first log … */
static int (*real_sync)(sqlite3_file *, int); /* … whose own this was */
static _Atomic int64_t flushes, delay_ms;

static int sync_log(sqlite3_file *file, int flags)
{
    if (atomic_load(&delay_ms) > 0)
        nap_ms(atomic_load(&delay_ms));
    int rc = real_sync(file, flags);
    (void)atomic_fetch_add(&flushes, 1);
    return rc;
}

static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *out)
{
    (void)vfs;
    int rc = real->xOpen(real, name, file, flags, out);
    if (rc == SQLITE_OK && (flags & SQLITE_OPEN_WAL) != 0 && file->pMethods != NULL) {
        if (file->pMethods->xSync != real_sync) /* every log has the same */
            abort();
        file->pMethods = &log_methods;
    }
    return rc;
}

/* The methods of a log are those of any file that SQLite does not lock, as a temporary one: found out with one, before
 * there is a second thread. */
static void learn_methods(void)
{
    sqlite3_file *file = calloc(1, (size_t)real->szOsFile);
    if (file == NULL
        || real->xOpen(real, NULL, file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE
                                             | SQLITE_OPEN_DELETEONCLOSE | SQLITE_OPEN_TEMP_DB, NULL) != SQLITE_OK)
        abort();
    log_methods = *file->pMethods;
    real_sync = log_methods.xSync;
    log_methods.xSync = sync_log;
    (void)file->pMethods->xClose(file);
    free(file);
}

void slow_log_watch(void)
{
    if (real != NULL)
        return;
    real = sqlite3_vfs_find(NULL);
    learn_methods();
    front = *real;
    front.zName = "slow-log";
    front.pNext = NULL;
    front.xOpen = open_file;
    if (sqlite3_vfs_register(&front, 1) != SQLITE_OK)
        abort();
}

int64_t slow_log_flushes(void)
{
    return atomic_load(&flushes);
}

void slow_log_delay(int64_t ms)
{
    atomic_store(&delay_ms, ms);
}
