/* doctor_wal.c - the write-ahead log: how long it is, and who keeps it from being shortened.
 * Threads: the caller of pawl_diagnose().
 * Keeps:   R8 the log and its index are looked at by path; their locks are read where the kernel lists them; I22. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "../../phrase.h"
#include "../../process.h"
#include "doctor.h"

/* ------------------------------------------------------------------------------ who holds it */

/* Bytes of the index, by SQLite's file format: the lock of whoever writes, and those of readers of the log. A
 * reader's mark 0 is not among them: it stands for the database file alone, and holds nothing up. */
enum { LOCK_WRITE = 120, LOCK_READ_FIRST = 124, LOCK_READ_LAST = 127 };
enum { HOLDERS_MAX = 16, LOOKS = 20 };
#define BETWEEN_LOOKS_NS (10 * PAWLI_NS_PER_MS)

typedef struct lock {
    int64_t pid;
    unsigned byte;
} lock;

typedef struct locks {
    lock held[HOLDERS_MAX];
    size_t count;
} locks;

/* "1: POSIX  ADVISORY  READ 4711 08:01:1234 124 124" */
static bool read_lock(const char *line, const struct stat *file, lock *out)
{
    unsigned device_major, device_minor;
    unsigned long inode;
    char mode[8];
    return sscanf(line, "%*s %*s %*s %7s %" SCNd64 " %x:%x:%lu %u", mode, &out->pid, &device_major, &device_minor,
                  &inode, &out->byte) == 6
           && inode == file->st_ino && device_major == major(file->st_dev) && device_minor == minor(file->st_dev)
           && (strcmp(mode, "WRITE") == 0 ? out->byte == LOCK_WRITE
                                          : out->byte >= LOCK_READ_FIRST && out->byte <= LOCK_READ_LAST);
}

static void look(const struct stat *file, locks *out)
{
    char line[256];
    FILE *list = fopen("/proc/locks", "re");
    out->count = 0;
    if (list == NULL)
        return;
    while (out->count < HOLDERS_MAX && fgets(line, sizeof line, list) != NULL)
        out->count += read_lock(line, file, &out->held[out->count]);
    (void)fclose(list);
}

static bool has(const locks *l, const lock *wanted)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->held[i].pid == wanted->pid && l->held[i].byte == wanted->byte)
            return true;
    return false;
}

/* A pool at work takes and drops its locks many times a second; who is met at each look keeps a transaction open. */
static bool find_holder(const pawli_doctor *d, lock *out)
{
    char path[PATH_MAX + 16];
    struct stat file;
    locks all, now;
    (void)snprintf(path, sizeof path, "%s-shm", d->s->path);
    if (stat(path, &file) != 0)
        return false;
    look(&file, &all);
    for (int i = 1; i < LOOKS && all.count > 0; i++) {
        size_t kept = 0;
        (void)nanosleep(&(struct timespec){ .tv_nsec = BETWEEN_LOOKS_NS }, NULL);
        look(&file, &now);
        for (size_t k = 0; k < all.count; k++)
            if (has(&now, &all.held[k]))
                all.held[kept++] = all.held[k];
        all.count = kept;
    }
    if (all.count > 0)
        *out = all.held[0];
    return all.count > 0;
}

/* ------------------------------------------------------------------------------- telling */

#define LONG_BYTES (2 * PAWLI_LOG_BYTES_USUAL)
#define TOO_LONG_BYTES (4 * PAWLI_LOG_BYTES_USUAL)

static void tell_held(pawli_doctor *d, const char *size, const lock *holder)
{
    char who[512], shown[4 * sizeof who];
    size_t count = pawli_process_who_has_open(&d->file, who, sizeof who);
    (void)pawli_text_escape(shown, sizeof shown, who, strlen(who));
    pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                      "the log has %s, and process %" PRId64 " holds it with a %s transaction that it keeps open\n"
                      "end that transaction; other processes that have the file open: %zu%s%s",
                      size, holder->pid, holder->byte == LOCK_WRITE ? "write" : "read", count, count > 0 ? ", " : "",
                      shown);
}

#define LONG_WITHOUT_POOLS                                                                         \
    "the log has %s, and no pool runs that would shorten it\n"                                     \
    "start one, or let a command do it once: "

/* Who only writes by SQL has nobody who shortens it: with the pools' line no connection checkpoints by itself. */
static void tell_long_without_pools(pawli_doctor *d, const char *size, bool too_long)
{
    char who[512];
    pawl_severity severity = too_long ? PAWL_FINDING_WARNING : PAWL_FINDING_NOTE;
    if (pawli_process_who_has_open(&d->file, who, sizeof who) == 0)
        pawli_doctor_tell(d, severity, LONG_WITHOUT_POOLS "pawl init %s", size, d->word);
    else
        pawli_doctor_tell(d, severity, LONG_WITHOUT_POOLS "pawl pause %s pawl-doctor; pawl resume %s pawl-doctor",
                          size, d->word, d->word);
}

static void tell_long(pawli_doctor *d, const char *size, bool too_long)
{
    lock holder;
    if (find_holder(d, &holder))
        tell_held(d, size, &holder);
    else if (d->living == 0)
        tell_long_without_pools(d, size, too_long);
    else
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "the log has %s; pools keep it within wal_bytes_max, 16 MiB unless told otherwise, and no "
                          "transaction is seen that holds it",
                          size);
}

void pawli_doctor_check_wal(pawli_doctor *d)
{
    char size[PAWLI_PHRASE_BYTES];
    int64_t wal = pawli_doctor_size(d, "-wal");
    if (wal <= 0) {
        pawli_doctor_tell(d, PAWL_FINDING_OK, "the log is empty");
        return;
    }
    (void)pawli_phrase_bytes((uint64_t)wal, size);
    if (d->lacked_index)
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "the log had no index: %s-shm had to be made anew to read it, and stays until "
                          "somebody closes the file as the last",
                          d->shown);
    if (wal > LONG_BYTES)
        tell_long(d, size, wal > TOO_LONG_BYTES);
    else
        pawli_doctor_tell(d, PAWL_FINDING_OK, "the log has %s", size);
}
