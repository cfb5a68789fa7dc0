/* slow_log.h - the write-ahead log seen by SQLite in this process: its flushes are counted, and may be slow. */
#ifndef TESTS_SLOW_LOG_H
#define TESTS_SLOW_LOG_H

#include <stdint.h>

/* From here on every connection that this process opens is looked at; once is enough. */
void slow_log_watch(void);
/* How many flushes of logs have ended. */
int64_t slow_log_flushes(void);
/* Each flush takes so much longer: what was written lies in the file and is not committed yet. */
void slow_log_delay(int64_t ms);

#endif
