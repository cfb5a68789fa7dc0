/* status.h - failing with a status and a message that names the thing and the remedy. */
#ifndef PAWLI_STATUS_H
#define PAWLI_STATUS_H

#include <pawl/pawl.h>

/* Sets the calling thread's pawl_error_message() and returns `status`. */
pawl_status pawli_fail(pawl_status status, const char *format, ...) PAWL_PRINTF(2, 3);

/* An analyser looks at one file at a time: here it is told that an error given is the error returned. */
#if defined(__clang_analyzer__) && !defined(PAWLI_STATUS_C)
#define pawli_fail(status, ...) ((void)pawli_fail(status, __VA_ARGS__), (status))
#endif

#endif
