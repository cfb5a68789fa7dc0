/* log.h - where warnings and errors go: the application's hook, or standard error. */
#ifndef PAWLI_LOG_H
#define PAWLI_LOG_H

#include <pawl/pawl.h>

#include "fork_mark.h"

typedef struct pawli_log {
    pawl_log_fn fn; /* NULL: standard error */
    void *arg;
    const pawli_fork_mark *fork_mark; /* of whoever opened the pool; NULL: there is no pool */
} pawli_log;

/* One line, escaped (V1), at most 1 KiB. Payloads and error texts of jobs are not logged (V3).
 * Does not return in a child that the hook has forked (R10). */
void pawli_log_line(const pawli_log *log, pawl_log_level level, const char *format, ...)
    PAWL_PRINTF(3, 4);

#endif
