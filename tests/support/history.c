/* history.c - see history.h. Any thread. */
#include "history.h"

#include <inttypes.h>
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
