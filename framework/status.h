/* status.h - failing with a status and a message that names the thing and the remedy. */
#ifndef PAWLI_STATUS_H
#define PAWLI_STATUS_H

#include <pawl/pawl.h>

/* Sets the calling thread's pawl_error_message() and returns `status`. */
pawl_status pawli_fail(pawl_status status, const char *format, ...) PAWL_PRINTF(2, 3);

#endif
