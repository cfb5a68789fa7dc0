/* clock_shift.h - a wall clock that a test can set, of its own process and of others, while they live.
 *
 * A program that is linked with clock_shift.c and -Wl,--wrap=clock_gettime reads CLOCK_REALTIME plus an
 * offset, in all of pawl's code and its own. The offset lies in a file that the test and its workers map.
 * SQLite's own clock is not moved. */
#ifndef TESTS_CLOCK_SHIFT_H
#define TESTS_CLOCK_SHIFT_H

#include <stdint.h>

#define CLOCK_SHIFT_VARIABLE "PAWL_TEST_CLOCK"

/* Makes the file and maps it; processes that are started from now on share it. */
void clock_shift_create(const char *path);
void clock_shift_set(int64_t ms); /* from the real time */

#endif
