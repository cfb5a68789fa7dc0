/* clock_shift.c - see clock_shift.h. Any thread. */
#include "clock_shift.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t *offset_ms; /* NULL: the real time */

/* The linker's names. NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    int failed = __real_clock_gettime(id, now);
    if (failed == 0 && id == CLOCK_REALTIME && offset_ms != NULL) {
        int64_t ms = atomic_load(offset_ms);
        now->tv_sec += (time_t)(ms / 1000); /* whole seconds are enough for a clock that is set */
    }
    return failed;
}

static void map(const char *path, int flags)
{
    int file = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
    if (file < 0 || ftruncate(file, sizeof *offset_ms) != 0) {
        perror(path);
        abort();
    }
    void *at = mmap(NULL, sizeof *offset_ms, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void)close(file);
    if (at == MAP_FAILED)
        abort();
    offset_ms = at;
}

/* Before main(): no thread is there yet. */
__attribute__((constructor)) static void adopt(void)
{
    const char *path = getenv(CLOCK_SHIFT_VARIABLE);
    if (path != NULL)
        map(path, 0);
}

void clock_shift_create(const char *path)
{
    map(path, O_CREAT);
    if (setenv(CLOCK_SHIFT_VARIABLE, path, 1) != 0)
        abort();
}

void clock_shift_set(int64_t ms)
{
    atomic_store(offset_ms, ms);
}
