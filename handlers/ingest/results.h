/* results.h - the table ingest_file: what is known of each file. */
#ifndef INGEST_RESULTS_H
#define INGEST_RESULTS_H

#include "scan.h"

#include <pawl/pawl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** One row to be. Made by a handler, dropped by pawl. */
struct result {
    struct scan_result scan;
    int64_t mtime_ns;
    size_t path_bytes;
    char path[];
};

struct result *result_create(const char *path, int64_t mtime_ns, const struct scan_result *scan);
void result_drop(void *result);

/** A pawl_apply_fn: writes the row of a struct result through the writer's connection. */
pawl_status results_record(void *db, pawl_job *job, void *arg);

/** The program's own connection to the database, with the table in it. One thread at a time. NULL:
 *  the reason has been said. */
struct sqlite3 *results_open(const char *database);
void results_close(struct sqlite3 *db);

struct results_totals {
    int64_t files, bytes, lines, words;
};
bool results_totals(struct sqlite3 *db, struct results_totals *totals);

typedef void (*results_file_fn)(const char *path, size_t path_bytes, int64_t bytes, int64_t lines,
                                void *arg);
/** Calls `fn` for the `count` largest files, the largest first. */
bool results_largest(struct sqlite3 *db, int count, results_file_fn fn, void *arg);

#endif
