/* walk.h - finds every regular file below some directories. */
#ifndef INGEST_WALK_H
#define INGEST_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/** What a walk tells its owner, on the walking thread. */
struct walk_visitor {
    bool (*file)(const char *path, const struct stat *status, void *arg); /* false ends the walk */
    void (*problem)(const char *path, int error, void *arg);              /* cannot be entered */
    void *arg;
};

struct walk_totals {
    uint64_t files;
    uint64_t passed_over; /* symbolic links, devices, sockets, pipes */
    uint64_t problems;
};

/** Walks `dirs` (absolute, NULL ends them), without the files of `database`, which are in use. */
void walk(char *const *dirs, const char *database, const struct walk_visitor *visitor,
          struct walk_totals *totals);

#endif
