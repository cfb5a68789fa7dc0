/* values.h - numbers, durations and points in time, as a person writes and reads them. */
#ifndef PAWL_CLI_VALUES_H
#define PAWL_CLI_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#define CLI_MOMENT_MS_MAX INT64_C(253402300799999) /* the end of the year 9999 */

enum { CLI_DURATION_SIZE = 64, CLI_MOMENT_SIZE = 40 };

/* Each parse function takes the whole of `text` or answers false and leaves *out alone. */

/** A decimal whole number from `min` to `max`; no spaces, no plus sign. */
bool cli_number_parse(const char *text, int64_t min, int64_t max, int64_t *out);

/** "500ms", "10s", "5m", "2h", "1d", or several, large to small: "1h30m". Zero needs no unit. */
bool cli_duration_parse(const char *text, int64_t *ms_out);

/** "YYYY-MM-DD[ HH:MM[:SS[.SSS]]]", UTC; a T may stand for the space, and a Z at the end. */
bool cli_moment_parse(const char *text, int64_t *ms_out);

/** The largest unit and the one below it: "3m12s", "2d4h", "850ms". Negative reads as zero. */
void cli_duration_format(int64_t ms, char out[CLI_DURATION_SIZE]);
/** All of it: "1m30s500ms". */
void cli_duration_format_exact(int64_t ms, char out[CLI_DURATION_SIZE]);
/** "YYYY-MM-DD HH:MM:SS.SSS", UTC. */
void cli_moment_format(int64_t ms, char out[CLI_MOMENT_SIZE]);

#endif
