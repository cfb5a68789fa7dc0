/* presence.c - proof of life by a kernel lock, and the record of started jobs.
 *
 * Both obvious locks have a trap: an open-file-description lock survives in a forked child, and a POSIX
 * record lock falls at any close of that file in its process. So: a POSIX lock, a pool never opens a
 * side file of its own process, and dead means that the lock is free and, in the same pid namespace, the
 * process with that start time is gone.
 * Threads: open, close and probe in the writer's role or under the life lock; slots from any.
 * Keeps:   I12 a living holder is never taken for dead; G4 the file is allocated in full before it is
 *          mapped, and what is read of others' files is checked. */
#include "presence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "options.h"
#include "process.h"
#include "status.h"

#define MAGIC UINT64_C(0x32304C5741504450) /* tells the format; another one is no record */
#define HEADER_BYTES 64
#define EFFECT_SLOTS 1 /* behind the executors': the job whose on_success function the writer is calling */
#define SPARED_SLOTS PAWLI_CLAIMS_MAX /* behind all others, a ring: so many claims can be in hand */
#define SLOTS_READ_MAX (1 << 21) /* of another pool's file: what its options can ask for */

typedef struct header {
    uint64_t magic;
    uint64_t slot_count;
    int64_t pid;
    int64_t started;
    uint64_t thread_slots; /* the first ones: of jobs that run on the pool's own threads */
    pawli_crash_note crash;
    _Atomic uint64_t last_started; /* the highest fence whose handler was about to be called */
} header;
_Static_assert(sizeof(header) <= HEADER_BYTES, "the slots begin behind the header");

/* ------------------------------------------------------------------------ who a process is */

static void read_boot_id(char *out, size_t capacity)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    out[0] = '\0';
    if (file == NULL)
        return;
    if (fgets(out, (int)capacity, file) != NULL)
        out[strcspn(out, "\n")] = '\0';
    (void)fclose(file);
}

static int64_t pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? (int64_t)st.st_ino : 0;
}

/* A program that replaces itself (execve) keeps its pid and start time. What tells its images apart: a few bits
 * of the kernel's random bytes for each; not more of them, as canaries are made of these. */
static uint32_t image_number(void)
{
    const char *random = (const char *)(uintptr_t)getauxval(AT_RANDOM); /* NOLINT(performance-no-int-to-ptr) */
    uint64_t halves[2] = { 0, 0 };
    if (random != NULL)
        memcpy(halves, random, sizeof halves);
    uint64_t mixed = (halves[0] ^ (halves[1] << 31 | halves[1] >> 33)) * UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ mixed >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
    return (uint32_t)(mixed >> 32);
}

/* PID-STARTED-NUMBER, as older pools name their files, or PID-STARTED-NUMBER-IMAGE. */
typedef struct side_name {
    int64_t pid, started;
    bool has_image;
    uint32_t image;
} side_name;

static bool read_name(const char *text, side_name *name)
{
    int parts = sscanf(text, "%" SCNd64 "-%" SCNd64 "-%*d-%" SCNu32, &name->pid, &name->started, &name->image);
    name->has_image = parts == 3;
    return parts >= 2;
}

/* In a pid namespace of its own a process may still see the /proc of the one outside, where its pid is
 * somebody else's. */
static bool has_foreign_proc(void)
{
    char text[32];
    ssize_t bytes = readlink("/proc/self", text, sizeof text - 1);
    if (bytes < 0)
        return errno == ENOENT && access("/proc/stat", F_OK) == 0; /* a namespace that it does not show at all */
    text[bytes] = '\0';
    return strtoll(text, NULL, 10) != getpid();
}

/* Others judge this pool by these facts: one that cannot be told would be judged wrongly. */
static pawl_status describe(pawli_holder *holder)
{
    if (has_foreign_proc())
        return pawli_fail(PAWL_ERR_STORE, "cannot tell who this process is: its pid is %d, but /proc belongs to "
                                          "another pid namespace; mount its own (unshare --mount-proc, mount -t "
                                          "proc proc /proc)", (int)getpid());
    holder->pid = getpid();
    holder->started = pawli_process_started(holder->pid);
    holder->pid_space = pid_namespace();
    read_boot_id(holder->boot, sizeof holder->boot);
    if (holder->started > 0 && holder->pid_space != 0 && holder->boot[0] != '\0')
        return PAWL_OK;
    return pawli_fail(PAWL_ERR_STORE, "cannot tell who this process is: /proc/self/stat, /proc/self/ns/pid and "
                                      "/proc/sys/kernel/random/boot_id must be readable (are there file "
                                      "descriptors left?)");
}

/* ---------------------------------------------------------------------------- the own file */

static char *concatenate(const char *a, const char *b, const char *c)
{
    size_t bytes = strlen(a) + strlen(b) + strlen(c) + 1;
    char *joined = malloc(bytes);
    if (joined != NULL)
        (void)snprintf(joined, bytes, "%s%s%s", a, b, c);
    return joined;
}

static pawl_status failed(const char *path, const char *doing)
{
    return pawli_fail(errno == ENOSPC || errno == EDQUOT ? PAWL_ERR_FULL : PAWL_ERR_STORE,
                      "%s: cannot %s: %s", path, doing, strerror(errno));
}

/* Where each write goes to a new place a file is never allocated for good, and a store into a mapped one is a
 * SIGBUS on a full disk (G4). What is created in the directory from now on is written in place. It is no matter
 * if that fails: all else works. */
static void write_in_place(const char *directory)
{
    struct statfs fs;
    unsigned flags = 0; /* an int, whatever the number of the call says */
    int file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return;
    if (fstatfs(file, &fs) == 0 && (unsigned long)fs.f_type == BTRFS_SUPER_MAGIC
        && ioctl(file, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_NOCOW_FL) == 0) {
        flags |= FS_NOCOW_FL;
        (void)ioctl(file, FS_IOC_SETFLAGS, &flags);
    }
    (void)close(file);
}

/* A name that no other pool has: two pools of one process differ by the number. */
static pawl_status create_file(pawli_presence *p, pawli_holder *holder)
{
    for (int number = 0; number < 10000; number++) {
        if (mkdir(p->directory, 0700) != 0 && errno != EEXIST)
            return failed(p->directory, "create it");
        write_in_place(p->directory);
        (void)snprintf(holder->side, sizeof holder->side, "%" PRId64 "-%" PRId64 "-%d-%" PRIu32,
                       holder->pid, holder->started, number, image_number());
        p->path = concatenate(p->directory, "/", holder->side);
        if (p->path == NULL)
            return pawli_fail(PAWL_ERR_NOMEM, "%s: no memory", p->directory);
        p->file = pawli_descriptor_above_standard(open(p->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (p->file >= 0)
            return PAWL_OK;
        struct stat st; /* the last pool to leave removes the directory; but a link to nowhere stays */
        bool again = errno == EEXIST
                     || (errno == ENOENT && (lstat(p->directory, &st) != 0 || S_ISDIR(st.st_mode)));
        if (!again)
            return pawli_fail(PAWL_ERR_STORE, "%s: cannot be created; is %s a directory that may be written?",
                              p->path, p->directory);
        free(p->path);
        p->path = NULL;
    }
    return pawli_fail(PAWL_ERR_STORE, "%s: holds too many files of this process", p->directory);
}

static pawl_status allocate(pawli_presence *p)
{
    int error;
    do
        error = posix_fallocate(p->file, 0, (off_t)p->map_bytes); /* G4 */
    while (error == EINTR);
    errno = error;
    if (error != 0)
        return failed(p->path, "allocate it");
    p->map = mmap(NULL, p->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->file, 0);
    if (p->map == MAP_FAILED) {
        p->map = NULL;
        return failed(p->path, "map it");
    }
    p->slots = (_Atomic uint64_t *)(void *)((char *)p->map + HEADER_BYTES);
    p->spared = p->slots + p->slot_count;
    return PAWL_OK;
}

static bool is_at(const char *path, const struct stat *file)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* Until it is locked a pool that does not see this process may take it for left over: it locks what it
 * removes. *swept: it was. */
static pawl_status lock_file(pawli_presence *p, bool *swept)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct stat st;
    *swept = false;
    if (fstat(p->file, &st) != 0)
        return failed(p->path, "look at it");
    p->id = (pawli_descriptor_id){ st.st_dev, st.st_ino };
    if (fcntl(p->file, F_SETLK, &lock) == 0) {
        *swept = !is_at(p->path, &st);
        return PAWL_OK;
    }
    *swept = errno == EAGAIN || errno == EACCES;
    return *swept ? PAWL_OK : failed(p->path, "lock it");
}

static void drop_file(pawli_presence *p)
{
    (void)close(p->file);
    free(p->path);
    p->file = -1;
    p->path = NULL;
}

static pawl_status create_and_lock(pawli_presence *p, pawli_holder *holder)
{
    bool swept = true;
    pawl_status st = PAWL_OK;
    for (int i = 0; i < 100 && swept && st == PAWL_OK; i++) {
        if (p->file >= 0)
            drop_file(p);
        st = create_file(p, holder);
        if (st == PAWL_OK)
            st = lock_file(p, &swept);
    }
    return st == PAWL_OK && swept ? pawli_fail(PAWL_ERR_STORE, "%s: is removed each time it is created", p->path)
                                  : st;
}

static pawl_status prepare_slots(pawli_presence *p, const pawli_holder *holder, size_t detached)
{
    p->free_slots = malloc(detached * sizeof *p->free_slots);
    if (p->free_slots == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "%s: no memory", p->path);
    for (size_t i = 0; i < detached; i++)
        p->free_slots[p->free_count++] = (uint32_t)(p->slot_count - 1 - i);
    header *head = p->map; /* the rest is zero: nothing runs, nothing has crashed */
    head->magic = MAGIC;
    head->slot_count = p->slot_count;
    head->pid = holder->pid;
    head->started = holder->started;
    head->thread_slots = p->executors + EFFECT_SLOTS;
    p->crash = &head->crash;
    p->last_started = &head->last_started;
    return PAWL_OK;
}

pawl_status pawli_presence_open(pawli_presence *p, const char *store_path, size_t executors,
                                size_t detached, pawli_holder *holder)
{
    memset(p, 0, sizeof *p);
    p->file = -1;
    p->executors = executors;
    p->slot_count = executors + EFFECT_SLOTS + detached;
    p->map_bytes = HEADER_BYTES + (p->slot_count + SPARED_SLOTS) * sizeof *p->slots;
    (void)pthread_mutex_init(&p->lock, NULL);
    pawl_status st = describe(holder);
    if (st != PAWL_OK)
        return st;
    p->directory = concatenate(store_path, "-pawl", "");
    if (p->directory == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "%s: no memory", store_path);
    st = create_and_lock(p, holder);
    p->self = *holder; /* with the file's name */
    if (st == PAWL_OK)
        st = allocate(p);
    if (st == PAWL_OK)
        st = prepare_slots(p, holder, detached);
    if (st != PAWL_OK)
        pawli_presence_close(p);
    return st;
}

/* The name comes from a row that anybody could have written: a plain file name, nothing else. */
static bool is_plain_name(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strspn(name, "0123456789-") == strlen(name);
}

/* If no other pool is there. What is left then are the words of store/sqlite/turn.c, which nobody needs. */
static void remove_directory(const char *path)
{
    size_t pools = 0;
    DIR *directory = opendir(path);
    if (directory == NULL)
        return;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory))
        pools += is_plain_name(entry->d_name);
    if (pools == 0)
        (void)unlinkat(dirfd(directory), "turn", 0);
    (void)closedir(directory);
    if (pools == 0)
        (void)rmdir(path);
}

pawl_status pawli_presence_observe(pawli_presence *p, const char *store_path)
{
    memset(p, 0, sizeof *p);
    p->file = -1;
    pawl_status st = describe(&p->self);
    if (st != PAWL_OK)
        return st;
    p->directory = concatenate(store_path, "-pawl", "");
    return p->directory != NULL ? PAWL_OK : pawli_fail(PAWL_ERR_NOMEM, "%s: no memory", store_path);
}

void pawli_presence_close(pawli_presence *p)
{
    if (p->directory == NULL)
        return;
    if (p->map != NULL)
        (void)munmap(p->map, p->map_bytes);
    if (p->path != NULL)
        (void)unlink(p->path); /* before the lock falls: nobody can find it unlocked */
    pawli_descriptor_close(p->file, p->id); /* the host may have closed it */
    remove_directory(p->directory);
    (void)pthread_mutex_destroy(&p->lock);
    free(p->free_slots);
    free(p->path);
    free(p->directory);
    memset(p, 0, sizeof *p);
    p->file = -1;
}

void pawli_presence_touch(const pawli_presence *p, const char *store_path)
{
    char directory[PATH_MAX + 8];
    (void)snprintf(directory, sizeof directory, "%s-pawl", store_path);
    /* Its own file where it has one, so that it can tell its own events; by path: the host may have closed
     * the descriptor. Without a directory nobody listens. */
    (void)utimensat(AT_FDCWD, p != NULL ? p->path : directory, NULL, 0);
}

/* ------------------------------------------------------------------------------- the slots */

void pawli_presence_set(pawli_presence *p, size_t executor, uint64_t fence)
{
    atomic_store_explicit(&p->slots[executor], fence, memory_order_release);
}

/* Fences are handed out in the order of the claims, and so are the jobs (D2). Executors may get here in another. */
void pawli_presence_start(pawli_presence *p, size_t executor, uint64_t fence)
{
    pawli_presence_set(p, executor, fence);
    uint64_t last = atomic_load(p->last_started);
    while (last < fence && !atomic_compare_exchange_weak(p->last_started, &last, fence)) {
    }
}

/* Never taken back: a fence is given out once. What is overwritten was settled long ago. */
void pawli_presence_spare(pawli_presence *p, uint64_t fence)
{
    if (p->spared != NULL)
        atomic_store(&p->spared[p->spared_next++ % SPARED_SLOTS], fence);
}

void pawli_presence_set_effect(pawli_presence *p, uint64_t fence)
{
    pawli_presence_set(p, p->executors, fence);
}

bool pawli_presence_hold(pawli_presence *p, uint64_t fence, uint32_t *slot)
{
    bool got = false;
    (void)pthread_mutex_lock(&p->lock);
    if (p->free_count > 0) {
        *slot = p->free_slots[--p->free_count];
        got = true;
    }
    (void)pthread_mutex_unlock(&p->lock);
    if (got)
        pawli_presence_set(p, *slot, fence);
    return got;
}

void pawli_presence_let_go(pawli_presence *p, uint32_t slot)
{
    pawli_presence_set(p, slot, 0);
    (void)pthread_mutex_lock(&p->lock);
    p->free_slots[p->free_count++] = slot;
    (void)pthread_mutex_unlock(&p->lock);
}

/* ------------------------------------------------------------------------------ the others */

static bool reads_whole(int file, void *out, size_t bytes, off_t offset)
{
    char *at = out;
    while (bytes > 0) {
        ssize_t got = pread(file, at, bytes, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        offset += got;
        bytes -= (size_t)got;
    }
    return true;
}

/* Jobs on the pool's own threads first, as the slots are; the spared ones behind all that ran. */
static void read_slots(const header *head, uint64_t *slots, pawli_record *record)
{
    size_t count = 0;
    record->fences = slots;
    for (size_t i = 0; i < head->slot_count + SPARED_SLOTS; i++) {
        if (slots[i] == 0)
            continue;
        slots[count++] = slots[i];
        record->on_threads += i < head->thread_slots;
        record->count += i < head->slot_count;
    }
    record->spared_count = count - record->count;
}

static bool read_record(int file, pawli_record *record)
{
    header head;
    if (!reads_whole(file, &head, sizeof head, 0) || head.magic != MAGIC || head.slot_count == 0
        || head.slot_count > SLOTS_READ_MAX)
        return false;
    size_t count = (size_t)head.slot_count + SPARED_SLOTS;
    uint64_t *slots = calloc(count, sizeof *slots);
    if (slots == NULL || !reads_whole(file, slots, count * sizeof *slots, HEADER_BYTES)) {
        free(slots);
        return false;
    }
    read_slots(&head, slots, record);
    record->signal = atomic_load(&head.crash.signal);
    record->culprit = atomic_load(&head.crash.fence);
    record->last_started = atomic_load(&head.last_started);
    return true;
}

static bool is_locked(int file)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    return fcntl(file, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

static bool process_is_gone(const pawli_holder *holder)
{
    return !pawli_process_is(holder->pid, holder->started);
}

bool pawli_presence_sees(const pawli_presence *p, const pawli_holder *holder)
{
    return holder->pid_space == p->self.pid_space && strcmp(holder->boot, p->self.boot) == 0;
}

static bool is_own_process(const pawli_presence *p, const pawli_holder *holder)
{
    return pawli_presence_sees(p, holder) && holder->pid == p->self.pid && holder->started == p->self.started;
}

/* Where the name does not tell the image, it may be this one. */
static bool is_own_image(const char *side)
{
    side_name name;
    return !read_name(side, &name) || !name.has_image || name.image == image_number();
}

bool pawli_presence_is_self(const pawli_presence *p, const pawli_holder *holder)
{
    return is_own_process(p, holder) && is_own_image(holder->side);
}

/* Of a file that is not locked. R13: another boot, another kernel: nothing of it lives. Without the file the
 * process table alone can prove it. */
static bool is_dead(const pawli_presence *p, const pawli_holder *holder, bool is_there)
{
    if (strcmp(holder->boot, p->self.boot) != 0)
        return true;
    if (is_own_process(p, holder))
        return true; /* this program before it replaced itself: no lock of this one is on that file */
    return pawli_presence_sees(p, holder) ? process_is_gone(holder) : is_there;
}

static pawli_life probe_file(const pawli_presence *p, const char *path, const pawli_holder *holder,
                             pawli_record *record)
{
    pawli_life life = PAWLI_ALIVE;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) /* no descriptor left, for one, proves nothing */
        return errno == ENOENT && is_dead(p, holder, false) ? PAWLI_DEAD : PAWLI_UNPROVEN;
    if (!is_locked(file))
        life = is_dead(p, holder, true) ? PAWLI_DEAD : PAWLI_UNPROVEN;
    if (life == PAWLI_DEAD)
        record->is_known = read_record(file, record);
    (void)close(file);
    return life;
}

pawli_life pawli_presence_probe(const pawli_presence *p, const pawli_holder *holder, pawli_record *record)
{
    *record = (pawli_record){ .is_known = false };
    if (!is_plain_name(holder->side) || holder->boot[0] == '\0')
        return PAWLI_UNPROVEN;
    if (pawli_presence_is_self(p, holder))
        return PAWLI_ALIVE; /* a pool of this process: its file must not be opened here */
    char *path = concatenate(p->directory, "/", holder->side);
    if (path == NULL)
        return PAWLI_UNPROVEN;
    pawli_life life = probe_file(p, path, holder, record);
    free(path);
    /* Nobody flushes the file: a power cut leaves an older one. */
    record->is_stale = strcmp(holder->boot, p->self.boot) != 0;
    return life;
}

void pawli_presence_clear(const pawli_presence *p, const pawli_holder *holder)
{
    if (!is_plain_name(holder->side))
        return;
    char *path = concatenate(p->directory, "/", holder->side);
    if (path != NULL)
        (void)unlink(path);
    free(path);
}

/* ---------------------------------------------------------------------------- what is left over */

static bool is_named_by(const char *name, const pawli_holder *holders, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(holders[i].side, name) == 0)
            return true;
    return false;
}

/* It is not of this program, and its process is gone, or in another namespace. */
static bool may_be_left_over(const pawli_presence *p, const char *text)
{
    side_name name;
    if (!read_name(text, &name))
        return false;
    if (name.pid == p->self.pid && name.started == p->self.started)
        return !is_own_image(text);
    return !pawli_process_is(name.pid, name.started);
}

/* It may be just about to be locked by who made it: it goes under a lock, as long as it has no other. */
static void remove_if_free(int directory, const char *name)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    int file = openat(directory, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return;
    if (fcntl(file, F_SETLK, &lock) == 0)
        (void)unlinkat(directory, name, 0);
    (void)close(file);
}

void pawli_presence_sweep(const pawli_presence *p, const pawli_holder *holders, size_t count)
{
    DIR *directory = opendir(p->directory);
    if (directory == NULL)
        return;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory))
        if (is_plain_name(entry->d_name) && !is_named_by(entry->d_name, holders, count)
            && may_be_left_over(p, entry->d_name))
            remove_if_free(dirfd(directory), entry->d_name);
    (void)closedir(directory);
}
