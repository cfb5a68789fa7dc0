/* progress.h - a line on standard error that tells a person how far a long change has come. */
#ifndef PAWL_CLI_PROGRESS_H
#define PAWL_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_progress {
    bool is_wanted; /* standard error is a terminal */
    bool is_shown;
    int64_t next_ms; /* on the monotonic clock */
} cli_progress;

void cli_progress_begin(cli_progress *progress);
/** Shows "NUMBER WHAT", from one second on, five times a second. */
void cli_progress_update(cli_progress *progress, int64_t number, const char *what);
void cli_progress_end(cli_progress *progress);

#endif
