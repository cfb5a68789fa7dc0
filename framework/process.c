/* process.c - what the kernel tells about another process, from /proc.
 * Threads: any. What is read may be gone the next moment. Whether a process lives is proof (I12, presence.c)
 * and is told from not being able to look; every other answer is for a person. */
#include "process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

/* ----------------------------------------------------------------------------------- state */

typedef struct state {
    char letter;
    long threads;
    int64_t started;
} state;

/* 0, or the errno of what failed: ESRCH if there is no such process. */
static int read_stat(int64_t pid, char *text, size_t capacity)
{
    char path[64];
    int error = 0;
    (void)snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return errno == ENOENT ? ESRCH : errno;
    size_t bytes = fread(text, 1, capacity - 1, file);
    if (ferror(file))
        error = errno; /* ESRCH: it went away in between */
    (void)fclose(file);
    text[bytes] = '\0';
    return error;
}

/* Field 3 is the state, 20 the number of threads, 22 the start; the name before them may hold spaces and
 * parentheses. */
static int look_up(int64_t pid, state *out)
{
    char text[1024];
    long long started = 0;
    int error = read_stat(pid, text, sizeof text);
    if (error != 0)
        return error;
    const char *name_end = strrchr(text, ')');
    if (name_end == NULL
        || sscanf(name_end + 1,
                  " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %*s %lld",
                  &out->letter, &out->threads, &started) != 3)
        return EPROTO;
    out->started = started;
    return 0;
}

/* The kernel tells the start by the reader's own boot clock: without its offset it is the same for all. */
static int64_t without_offset(int64_t ticks)
{
    int64_t offset_ns, tick_ns = 1000 * PAWLI_NS_PER_MS / sysconf(_SC_CLK_TCK);
    if (!pawli_clock_boot_offset_ns(&offset_ns))
        return PAWLI_NOT_KNOWN;
    int64_t started = ticks - offset_ns / tick_ns;
    return started > 0 ? started : 1;
}

/* A leader that ended before its threads is a living process. */
int64_t pawli_process_started(int64_t pid)
{
    state now;
    int error = look_up(pid, &now);
    if (error != 0)
        return error == ESRCH ? PAWLI_NO_PROCESS : PAWLI_NOT_KNOWN;
    if ((now.letter == 'Z' || now.letter == 'X') && now.threads <= 1)
        return PAWLI_NO_PROCESS;
    return without_offset(now.started);
}

/* An offset may end within a tick. */
bool pawli_process_is(int64_t pid, int64_t started)
{
    int64_t now = pawli_process_started(pid);
    return now == PAWLI_NOT_KNOWN || (now > 0 && now >= started - 1 && now <= started + 1);
}

bool pawli_process_is_stopped(int64_t pid)
{
    state now;
    return look_up(pid, &now) == 0 && (now.letter == 'T' || now.letter == 't');
}

/* ------------------------------------------------------------------------------- mapped files */

enum { OBJECTS_MAX = 512, CHUNK_BYTES = 1 << 16 };

/* In pieces: a long file is not worth its memory. `text` may stand across two of them. */
static bool contains(const char *path, const char *text)
{
    size_t length = strlen(text), kept = 0;
    bool found = false;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *chunk = file >= 0 ? malloc(CHUNK_BYTES) : NULL;
    ssize_t got;
    while (chunk != NULL && !found && (got = read(file, chunk + kept, CHUNK_BYTES - kept)) > 0) {
        size_t bytes = kept + (size_t)got;
        found = memmem(chunk, bytes, text, length) != NULL;
        kept = bytes < length ? bytes : length - 1;
        memmove(chunk, chunk + bytes - kept, kept);
    }
    free(chunk);
    if (file >= 0)
        (void)close(file);
    return found;
}

/* A line of maps: ADDRESSES PERMISSIONS OFFSET DEVICE INODE PATH. Answers the path of a file with code. */
static char *object_of(char *line, uint64_t *inode)
{
    char permissions[8];
    char *path = strchr(line, '/');
    if (path == NULL || sscanf(line, "%*s %7s %*s %*s %" SCNu64, permissions, inode) != 2 || *inode == 0
        || strchr(permissions, 'x') == NULL)
        return NULL;
    path[strcspn(path, "\n")] = '\0';
    return path;
}

static bool is_new(uint64_t *seen, size_t *count, uint64_t inode)
{
    for (size_t i = 0; i < *count; i++)
        if (seen[i] == inode)
            return false;
    if (*count < OBJECTS_MAX)
        seen[(*count)++] = inode;
    return true;
}

int pawli_process_count_objects(int64_t pid, const char *text, char *out, size_t capacity)
{
    char maps[64], line[PATH_MAX + 128];
    uint64_t seen[OBJECTS_MAX], inode;
    size_t objects = 0;
    int count = 0;
    out[0] = '\0';
    (void)snprintf(maps, sizeof maps, "/proc/%" PRId64 "/maps", pid);
    FILE *file = fopen(maps, "re");
    if (file == NULL)
        return -1;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *path = object_of(line, &inode);
        if (path == NULL || !is_new(seen, &objects, inode) || !contains(path, text))
            continue;
        size_t used = strlen(out);
        (void)snprintf(out + used, capacity - used, "%s%s", count++ > 0 ? ", " : "", path);
    }
    (void)fclose(file);
    return count;
}

/* --------------------------------------------------------------------------------- open files */

static bool has_open(const char *pid, const struct stat *wanted)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
    DIR *directory = opendir(path);
    bool found = false;
    if (directory == NULL)
        return false;
    for (struct dirent *entry = readdir(directory); entry != NULL && !found; entry = readdir(directory)) {
        struct stat st;
        found = fstatat(dirfd(directory), entry->d_name, &st, 0) == 0 && st.st_ino == wanted->st_ino
                && st.st_dev == wanted->st_dev;
    }
    (void)closedir(directory);
    return found;
}

static void append_process(const char *pid, char *out, size_t capacity)
{
    char path[64], name[64] = "?";
    (void)snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fgets(name, sizeof name, file) != NULL)
            name[strcspn(name, "\n")] = '\0';
        (void)fclose(file);
    }
    size_t used = strlen(out);
    (void)snprintf(out + used, capacity - used, "%s%s (pid %.20s)", used > 0 ? ", " : "", name, pid);
}

size_t pawli_process_who_has_open(const struct stat *file, char *out, size_t capacity)
{
    DIR *directory = opendir("/proc");
    size_t count = 0;
    out[0] = '\0';
    if (directory == NULL)
        return 0;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (!isdigit((unsigned char)entry->d_name[0]) || strtol(entry->d_name, NULL, 10) == getpid()
            || !has_open(entry->d_name, file))
            continue;
        if (count++ < 5)
            append_process(entry->d_name, out, capacity);
    }
    (void)closedir(directory);
    return count;
}
