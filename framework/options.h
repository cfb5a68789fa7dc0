/* options.h - the options of a pool, checked, completed with the defaults, and owned. */
#ifndef PAWLI_OPTIONS_H
#define PAWLI_OPTIONS_H

#include <pawl/pawl.h>

#include "text.h"

#define PAWLI_MAX_ATTEMPTS_DEFAULT 5
#define PAWLI_LEASE_MAX_MS INT64_C(86400000)
#define PAWLI_CLAIMS_MAX 1024 /* the claim window's upper bound */

typedef struct pawli_options {
    char *store; /* as given; the store makes it absolute */
    uint32_t flags;
    uint32_t executors;
    char **queues; /* NULL: every queue */
    size_t queue_count;
    int64_t lease_ms;
    uint32_t max_attempts;
    bool flush_commits; /* synchronous FULL */
    int64_t store_timeout_ms;
    uint32_t command_max;
    size_t command_bytes_max;
    size_t payload_bytes_max;
    uint32_t detached_max;
    size_t wal_bytes_max;
    int64_t keep_succeeded_ms, keep_succeeded_max; /* negative: for ever, any number */
    int64_t keep_failed_ms, keep_failed_max;
    size_t stack_bytes;
    char *name;
    pawl_log_fn log;
    void *log_arg;
    pawl_db_open_fn db_open;
    void *db_open_arg;
    uint64_t seed;
    bool note_crashes;
} pawli_options;

pawl_status pawli_options_init(pawli_options *options, const pawl_options *given);
void pawli_options_fini(pawli_options *options);
bool pawli_options_serve(const pawli_options *options, const char *queue);

/* Copies a caller's struct of `given_bytes` into ours of `bytes`: what an older caller does not know
 * is zero. False: struct_size was not set. */
bool pawli_struct_read(void *ours, size_t bytes, const void *given);

#endif
