/* idle.c - a pool without work: how often its process wakes, and what it writes. Linux's own accounts. */
#include "bench.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long long read_field(const char *path, const char *field)
{
    char line[256];
    long long value = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            (void)sscanf(line + strlen(field), "%lld", &value);
    (void)fclose(file);
    return value;
}

/* All threads but this one, which sleeps through the measurement. */
static long long count_wakeups(void)
{
    long long total = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL)
        return 0;
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        char path[300];
        if (task->d_name[0] == '.' || (int)strtol(task->d_name, NULL, 10) == getpid())
            continue;
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        total += read_field(path, "voluntary_ctxt_switches:");
    }
    (void)closedir(tasks);
    return total;
}

static long long count_written(void)
{
    return read_field("/proc/self/io", "write_bytes:");
}

void bench_idle(const bench *b, int seconds, double *wakeups, long long *bytes)
{
    pawl_pool *pool = bench_open(b);
    bench_check(pawl_start(pool), "start");
    bench_check(pawl_enqueue(pool, PAWL_JOB(.kind = "noop"), NULL), "enqueue");
    bench_check(pawl_wait_idle(pool, PAWL_FOREVER), "wait");
    (void)sleep(1); /* let it come to rest: this scenario is about time passing */
    long long woken = count_wakeups(), written = count_written();
    (void)sleep((unsigned)seconds);
    *wakeups = (double)(count_wakeups() - woken) / seconds;
    *bytes = count_written() - written;
    bench_close(pool);
}
