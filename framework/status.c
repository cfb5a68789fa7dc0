/* status.c - codes to text, and each thread's last error message. Any thread. */
#define PAWLI_STATUS_C
#include "status.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char last_message[1024];

pawl_status pawli_fail(pawl_status status, const char *format, ...)
{
    char text[sizeof last_message]; /* the message may be among the arguments */
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)snprintf(last_message, sizeof last_message, "%s", text);
    return status;
}

const char *pawl_error_message(void)
{
    return last_message;
}

const char *pawl_status_name(pawl_status status)
{
    switch (status) {
    case PAWL_OK: return "PAWL_OK";
    case PAWL_EXISTS: return "PAWL_EXISTS";
    case PAWL_ACCEPTED: return "PAWL_ACCEPTED";
    case PAWL_ERR_INVALID: return "PAWL_ERR_INVALID";
    case PAWL_ERR_NOMEM: return "PAWL_ERR_NOMEM";
    case PAWL_ERR_BUSY: return "PAWL_ERR_BUSY";
    case PAWL_ERR_STORE: return "PAWL_ERR_STORE";
    case PAWL_ERR_UNKNOWN: return "PAWL_ERR_UNKNOWN";
    case PAWL_ERR_FULL: return "PAWL_ERR_FULL";
    case PAWL_ERR_NOT_FOUND: return "PAWL_ERR_NOT_FOUND";
    case PAWL_ERR_STATE: return "PAWL_ERR_STATE";
    case PAWL_ERR_LEASE_LOST: return "PAWL_ERR_LEASE_LOST";
    case PAWL_ERR_TIMEOUT: return "PAWL_ERR_TIMEOUT";
    case PAWL_ERR_CLOSED: return "PAWL_ERR_CLOSED";
    case PAWL_ERR_FORKED: return "PAWL_ERR_FORKED";
    case PAWL_ERR_VERSION: return "PAWL_ERR_VERSION";
    }
    return "unknown status";
}

const char *pawl_version(void)
{
    return PAWL_VERSION;
}
