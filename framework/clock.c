/* clock.c - the pool's time source; see clock.h. Any thread, no lock. */
#include "clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

static int64_t read_ns(clockid_t id)
{
    struct timespec now;
    (void)clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000 * PAWLI_NS_PER_MS + now.tv_nsec;
}

/* The offsets in the file are those of new children: this process's own too, unless it has asked for another
 * namespace for them. */
static bool are_own_offsets(void)
{
    struct stat own, children;
    return stat("/proc/self/ns/time", &own) == 0 && stat("/proc/self/ns/time_for_children", &children) == 0
           && own.st_dev == children.st_dev && own.st_ino == children.st_ino;
}

bool pawli_clock_boot_offset_ns(int64_t *ns)
{
    char line[128];
    int64_t seconds, rest;
    *ns = 0;
    FILE *file = fopen("/proc/self/timens_offsets", "re");
    if (file == NULL)
        return errno == ENOENT; /* the kernel has no time namespaces */
    while (fgets(line, sizeof line, file) != NULL)
        if ((sscanf(line, "boottime %" SCNd64 " %" SCNd64, &seconds, &rest) == 2
             || sscanf(line, "7 %" SCNd64 " %" SCNd64, &seconds, &rest) == 2)
            && are_own_offsets())
            *ns = seconds * 1000 * PAWLI_NS_PER_MS + rest;
    bool whole = ferror(file) == 0;
    (void)fclose(file);
    return whole;
}

static int64_t read_boot_ms(const pawli_clock *clock)
{
    return (read_ns(CLOCK_BOOTTIME) - clock->boot_offset_ns) / PAWLI_NS_PER_MS;
}

void pawli_clock_init(pawli_clock *clock, bool is_virtual)
{
    clock->is_virtual = is_virtual;
    clock->wall_start_ms = read_ns(CLOCK_REALTIME) / PAWLI_NS_PER_MS;
    clock->steady_start_ns = read_ns(CLOCK_MONOTONIC);
    (void)pawli_clock_boot_offset_ns(&clock->boot_offset_ns);
    clock->boot_start_ms = read_boot_ms(clock);
    atomic_init(&clock->advanced_ms, 0);
}

void pawli_clock_advance(pawli_clock *clock, int64_t ms)
{
    atomic_store(&clock->advanced_ms, pawli_add(atomic_load(&clock->advanced_ms), ms));
}

int64_t pawli_clock_wall_ms(const pawli_clock *clock)
{
    if (clock->is_virtual)
        return pawli_add(clock->wall_start_ms, atomic_load(&clock->advanced_ms));
    return read_ns(CLOCK_REALTIME) / PAWLI_NS_PER_MS;
}

int64_t pawli_clock_steady_ns(const pawli_clock *clock)
{
    if (clock->is_virtual)
        return pawli_add(clock->steady_start_ns, pawli_ms_to_ns(atomic_load(&clock->advanced_ms)));
    return read_ns(CLOCK_MONOTONIC);
}

int64_t pawli_clock_boot_ms(const pawli_clock *clock)
{
    if (clock->is_virtual)
        return pawli_add(clock->boot_start_ms, atomic_load(&clock->advanced_ms));
    return read_boot_ms(clock);
}

int64_t pawli_wall_now_ms(void)
{
    return read_ns(CLOCK_REALTIME) / PAWLI_NS_PER_MS;
}

int64_t pawli_steady_now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

int64_t pawli_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t pawli_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b > 0 ? INT64_MAX : INT64_MIN;
    return sum;
}

int64_t pawli_ms_to_ns(int64_t ms)
{
    int64_t ns;
    if (__builtin_mul_overflow(ms, PAWLI_NS_PER_MS, &ns))
        return ms > 0 ? INT64_MAX : INT64_MIN;
    return ns;
}

struct timespec pawli_timespec(int64_t ns)
{
    const int64_t second = 1000 * PAWLI_NS_PER_MS;
    if (ns < 0)
        ns = 0;
    return (struct timespec){ .tv_sec = (time_t)(ns / second), .tv_nsec = (long)(ns % second) };
}
