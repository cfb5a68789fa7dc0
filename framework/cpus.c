/* cpus.c - how many CPUs this process may use: its affinity, and the quotas of its control groups.
 *
 * A quota holds for a group and all below it, so the smallest one on the way up to the root counts. The
 * group of this process is named in /proc/self/cgroup, where its files are in /proc/self/mountinfo; in a
 * container both may begin elsewhere. Version 1 and 2 may be there at once. Any thread.
 * Keeps:   G5 threads by affinity and quota, not by the machine's count. */
#include "cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CPUS_MAX ((size_t)1 << 20)
#define PATH_BYTES 1024 /* a group with a longer path counts as one without a quota */

typedef struct files {
    pawli_read_file read;
    void *arg;
} files;

static char *read_below(const files *f, const char *directory, const char *name)
{
    char path[PATH_BYTES + 32];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    return f->read(path, f->arg);
}

/* 150 000 µs in each 100 000 µs are one and a half CPUs, and two threads can use them. */
static uint32_t cpus_of(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return UINT32_MAX;
    long long cpus = quota / period + (quota % period != 0);
    return cpus < UINT32_MAX ? (uint32_t)cpus : UINT32_MAX;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* ------------------------------------------------------------------- one group's own quota */

static uint32_t quota_v2(const files *f, const char *directory)
{
    long long quota = 0, period = 0;
    char *text = read_below(f, directory, "cpu.max"); /* "max 100000": no limit */
    if (text != NULL && sscanf(text, "%lld %lld", &quota, &period) != 2)
        quota = 0;
    free(text);
    return cpus_of(quota, period);
}

static long long read_number(const files *f, const char *directory, const char *name)
{
    char *text = read_below(f, directory, name);
    long long number = text != NULL ? strtoll(text, NULL, 10) : 0;
    free(text);
    return number;
}

static uint32_t quota_v1(const files *f, const char *directory)
{
    return cpus_of(read_number(f, directory, "cpu.cfs_quota_us"), /* -1: no limit */
                   read_number(f, directory, "cpu.cfs_period_us"));
}

/* ------------------------------------------------------------------------- where a group is */

/* What tells the two versions apart. */
typedef struct version {
    const char *type;       /* of its mounts */
    const char *controller; /* among their options, and in the process's line; "": has no name there */
    uint32_t (*quota)(const files *f, const char *directory);
} version;

static const version versions[] = { { "cgroup2", "", quota_v2 }, { "cgroup", "cpu", quota_v1 } };

/* Is it among words that are separated by commas? */
static bool has_word(const char *list, const char *word)
{
    size_t bytes = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, bytes) == 0 && (at[bytes] == ',' || at[bytes] == '\0'))
            return true;
    }
    return false;
}

/* "4:cpu,cpuacct:/a/b", and for version 2 "0::/a/b". */
static bool is_group(char *line, const version *v, char *path)
{
    char *controllers = strchr(line, ':');
    char *name = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (name == NULL || strlen(name + 1) >= PATH_BYTES)
        return false;
    *name = '\0';
    (void)snprintf(path, PATH_BYTES, "%s", name + 1);
    return v->controller[0] == '\0' ? controllers[1] == '\0' : has_word(controllers + 1, v->controller);
}

/* "41 31 0:38 ROOT POINT rw,relatime - cgroup2 cgroup2 rw" */
static bool is_mount(const char *line, const version *v, char *root, char *point)
{
    char type[32], options[256];
    const char *rest = strstr(line, " - ");
    return rest != NULL && sscanf(line, "%*s %*s %*s %1023s %1023s", root, point) == 2
           && sscanf(rest, " - %31s %*s %255s", type, options) == 2 && strcmp(type, v->type) == 0
           && (v->controller[0] == '\0' || has_word(options, v->controller));
}

static bool find_group(const files *f, const version *v, char *path)
{
    char *text = f->read("/proc/self/cgroup", f->arg), *rest = NULL;
    bool found = false;
    for (char *line = text != NULL ? strtok_r(text, "\n", &rest) : NULL; line != NULL && !found;
         line = strtok_r(NULL, "\n", &rest))
        found = is_group(line, v, path);
    free(text);
    return found;
}

static bool find_mount(const files *f, const version *v, char *root, char *point)
{
    char *text = f->read("/proc/self/mountinfo", f->arg), *rest = NULL;
    bool found = false;
    for (char *line = text != NULL ? strtok_r(text, "\n", &rest) : NULL; line != NULL && !found;
         line = strtok_r(NULL, "\n", &rest))
        found = is_mount(line, v, root, point);
    free(text);
    return found;
}

/* The group's path from the mount's point on: a container may see a part of the tree only. What lies
 * outside of it has the mount itself as the nearest group in sight. */
static const char *path_within(const char *path, const char *root)
{
    size_t bytes = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(path, root, bytes) != 0 || (path[bytes] != '/' && path[bytes] != '\0')
        || strncmp(path, "/..", 3) == 0 || strcmp(path + bytes, "/") == 0)
        return "";
    return path + bytes;
}

static uint32_t by_version(const files *f, const version *v)
{
    char group[PATH_BYTES], root[PATH_BYTES], point[PATH_BYTES], directory[2 * PATH_BYTES];
    uint32_t cpus = UINT32_MAX;
    if (!find_group(f, v, group) || !find_mount(f, v, root, point))
        return cpus;
    size_t top = strlen(point);
    (void)snprintf(directory, sizeof directory, "%s%s", point, path_within(group, root));
    while (strlen(directory) >= top) {
        cpus = smaller(cpus, v->quota(f, directory));
        char *last = strrchr(directory, '/');
        if (last == NULL)
            break;
        *last = '\0';
    }
    return cpus;
}

uint32_t pawli_cpus_by_quota(pawli_read_file read_file, void *arg)
{
    const files f = { read_file, arg };
    uint32_t cpus = UINT32_MAX;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++)
        cpus = smaller(cpus, by_version(&f, &versions[i]));
    return cpus;
}

/* ---------------------------------------------------------------------------- this process */

static char *read_whole(const char *path, void *arg)
{
    char *text = NULL;
    size_t capacity = 0;
    FILE *file = fopen(path, "re");
    (void)arg;
    if (file == NULL)
        return NULL;
    if (getdelim(&text, &capacity, '\0', file) < 0) { /* there is no NUL: to the end */
        free(text);
        text = NULL;
    }
    (void)fclose(file);
    return text;
}

/* The kernel refuses a set that is smaller than its own; 0: it cannot be told. */
static int by_affinity(void)
{
    int count = 0;
    for (size_t cpus = 1024; cpus <= CPUS_MAX && count == 0; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (set == NULL)
            return 0;
        bool fits = sched_getaffinity(0, CPU_ALLOC_SIZE(cpus), set) == 0;
        if (fits)
            count = CPU_COUNT_S(CPU_ALLOC_SIZE(cpus), set);
        int error = errno;
        CPU_FREE(set);
        if (!fits && error != EINVAL)
            return 0;
    }
    return count;
}

uint32_t pawli_cpus_usable(void)
{
    int count = by_affinity();
    if (count == 0)
        count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return smaller(count > 0 ? (uint32_t)count : 1, pawli_cpus_by_quota(read_whole, NULL));
}
