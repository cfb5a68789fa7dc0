/* report.h - the final table, on standard output. */
#ifndef INGEST_REPORT_H
#define INGEST_REPORT_H

#include "counts.h"
#include "walk.h"

#include <pawl/pawl.h>
#include <stdint.h>

struct report {
    pawl_pool *pool;
    struct sqlite3 *results;
    const char *database;
    struct walk_totals walked;
    uint64_t added;       /* jobs that this walk made */
    uint64_t known;       /* jobs that were there before */
    struct counts before; /* at the start, and … */
    struct counts after;  /* … now */
    int64_t bytes_read;
    int64_t retries;
    int64_t elapsed_ms;
};

void report_print(const struct report *report);

#endif
