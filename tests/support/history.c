/* history.c - see history.h. Any thread. */
#include "history.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void append(int log, const char *line, int length)
{
    if (write(log, line, (size_t)length) != length)
        _exit(4); /* a history with a hole proves nothing */
}

size_t history_payload(const char *key, char *out)
{
    int length = snprintf(out, HISTORY_PAYLOAD_BYTES, "<%s|%zu|%.*s>", key, strlen(key),
                          (int)(key[strlen(key) - 1] * 3 % 100),
                          "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                          "0123456789abcdef0123456789abcdef0123456789abcdef");
    return (size_t)length;
}

void history_try(int log, const char *key)
{
    char line[128];
    append(log, line, snprintf(line, sizeof line, "try %s\n", key));
}

void history_ok(int log, int64_t id, const char *key)
{
    char line[128];
    append(log, line, snprintf(line, sizeof line, "ok %" PRId64 " %s\n", id, key));
}

void history_run(int log, const pawl_job *job)
{
    char line[512];
    size_t bytes;
    const char *payload = pawl_job_payload(job, &bytes);
    append(log, line,
           snprintf(line, sizeof line, "run %" PRId64 " %" PRIu64 " %" PRIu32 " %.*s\n",
                    pawl_job_id(job), pawl_job_fence(job), pawl_job_attempt(job), (int)bytes, payload));
}

/* ------------------------------------------------------------- a log of many processes */

void history_note(int log, const char *format, ...)
{
    char text[700], line[768];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args); /* NOLINT(clang-analyzer-valist.Uninitialized): it was
                                                                 just started */
    va_end(args);
    if (length >= (int)sizeof text)
        _exit(4);
    append(log, line, snprintf(line, sizeof line, "\n%s" HISTORY_MARK "\n", text));
}

void history_ask(int log, const char *key)
{
    history_note(log, "ask %s", key);
}

void history_answer(int log, pawl_status status, int64_t id, const char *key)
{
    history_note(log, "answer %s %" PRId64 " %s", pawl_status_name(status), id, key);
}

void history_start(int log, const pawl_job *job)
{
    size_t bytes;
    const char *payload = pawl_job_payload(job, &bytes);
    size_t word = strcspn(payload, " ");
    history_note(log, "start %d %" PRId64 " %" PRIu64 " %" PRIu32 " %.*s", (int)getpid(), pawl_job_id(job),
                 pawl_job_fence(job), pawl_job_attempt(job), (int)(word < bytes ? word : bytes), payload);
}

void history_beat(int log, const pawl_job *job, pawl_status status)
{
    history_note(log, "beat %d %" PRId64 " %" PRIu64 " %s", (int)getpid(), pawl_job_id(job),
                 pawl_job_fence(job), pawl_status_name(status));
}

static const char *name_of(int outcome)
{
    switch (outcome) {
    case PAWL_SUCCEEDED: return "succeeded";
    case PAWL_FAILED: return "failed";
    case PAWL_CANCELLED: return "cancelled";
    case PAWL_SNOOZED: return "snoozed";
    case PAWL_RELEASED: return "released";
    default: return "retry";
    }
}

void history_end(int log, const pawl_job *job, int outcome)
{
    history_note(log, "end %d %" PRId64 " %" PRIu64 " %s", (int)getpid(), pawl_job_id(job),
                 pawl_job_fence(job), name_of(outcome));
}
