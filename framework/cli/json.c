/* json.c - values as JSON, printed one at a time: a list of any length needs little memory. */
#include "json.h"

#include "message.h"
#include "terminal.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_NAME_MAX = 64 };

json_t *cli_json_object(void)
{
    json_t *object = json_object();
    if (object == NULL)
        cli_out_of_memory();
    return object;
}

void cli_json_set(json_t *object, const char *name, json_t *value)
{
    if (json_object_set_new(object, name, value) != 0)
        cli_out_of_memory();
}

void cli_json_set_number(json_t *object, const char *name, int64_t number)
{
    cli_json_set(object, name, json_integer(number));
}

void cli_json_set_time(json_t *object, const char *name, int64_t time_ms)
{
    cli_json_set(object, name, time_ms == 0 ? json_null() : json_integer(time_ms));
}

void cli_json_set_text(json_t *object, const char *name, const char *text)
{
    json_t *value = text == NULL ? json_null() : json_string(text);
    if (value == NULL && text != NULL) { /* not UTF-8 */
        char *escaped = cli_text_escape(text, strlen(text));
        value = json_string(escaped);
        free(escaped);
    }
    cli_json_set(object, name, value);
}

static json_t *base64(const unsigned char *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    enum { PADDING = 64 };
    size_t text_bytes = (count + 2) / 3 * 4;
    char *text = malloc(text_bytes + 1);
    if (text == NULL)
        cli_out_of_memory();
    char *to = text;
    for (size_t i = 0; i < count; i += 3) {
        uint32_t group = (uint32_t)bytes[i] << 16;
        group |= i + 1 < count ? (uint32_t)bytes[i + 1] << 8 : 0;
        group |= i + 2 < count ? bytes[i + 2] : 0;
        *to++ = digits[group >> 18];
        *to++ = digits[group >> 12 & 63];
        *to++ = digits[i + 1 < count ? group >> 6 & 63 : PADDING];
        *to++ = digits[i + 2 < count ? group & 63 : PADDING];
    }
    json_t *value = json_stringn(text, text_bytes);
    free(text);
    return value;
}

void cli_json_set_bytes(json_t *object, const char *name, const void *bytes, size_t count)
{
    if (bytes == NULL) {
        cli_json_set(object, name, json_null());
        return;
    }
    json_t *text = memchr(bytes, '\0', count) == NULL ? json_stringn(bytes, count) : NULL;
    if (text != NULL) {
        cli_json_set(object, name, text);
        return;
    }
    char name_base64[FIELD_NAME_MAX];
    (void)snprintf(name_base64, sizeof name_base64, "%s_base64", name);
    cli_json_set(object, name_base64, base64(bytes, count));
}

/* A string: it is larger than the 2^53 up to which most readers of JSON count exactly. */
static void set_fence(json_t *object, uint64_t fence)
{
    char text[sizeof "18446744073709551615"];
    (void)snprintf(text, sizeof text, "%" PRIu64, fence);
    cli_json_set_text(object, "fence", fence == 0 ? NULL : text);
}

json_t *cli_json_job(const pawl_job_info *job)
{
    json_t *object = cli_json_object();
    cli_json_set_number(object, "id", job->id);
    cli_json_set_text(object, "status", pawl_state_name(job->state));
    cli_json_set_text(object, "queue", job->queue);
    cli_json_set_text(object, "kind", job->kind);
    cli_json_set_number(object, "priority", job->priority);
    cli_json_set_number(object, "attempts", job->attempts);
    cli_json_set_number(object, "max_attempts", job->max_attempts);
    set_fence(object, job->fence);
    cli_json_set(object, "cancel_requested", json_boolean(job->cancel_requested));
    cli_json_set(object, "holder_died", json_boolean(job->holder_died));
    cli_json_set_number(object, "timeout_ms", job->timeout_ms);
    cli_json_set_time(object, "created_at_ms", job->created_at_ms);
    cli_json_set_time(object, "updated_at_ms", job->updated_at_ms);
    cli_json_set_time(object, "available_at_ms", job->available_at_ms);
    cli_json_set_time(object, "claimed_at_ms", job->claimed_at_ms);
    cli_json_set_time(object, "lease_until_ms", job->lease_until_ms);
    cli_json_set_time(object, "finished_at_ms", job->finished_at_ms);
    cli_json_set_text(object, "claimed_by", job->claimed_by);
    cli_json_set_text(object, "last_error", job->last_error);
    cli_json_set_bytes(object, "idempotency_key", job->idempotency_key, job->idempotency_key_bytes);
    cli_json_set_bytes(object, "payload", job->payload, job->payload_bytes);
    return object;
}

void cli_json_print(json_t *value, cli_json_layout layout)
{
    size_t flags = layout == CLI_JSON_INDENTED ? JSON_INDENT(2) : JSON_COMPACT;
    if (cli_terminal_output())
        flags |= JSON_ENSURE_ASCII; /* JSON lets through what a terminal may take for a command */
    (void)json_dumpf(value, stdout, flags); /* a failed write stays in ferror(stdout) */
    (void)putchar('\n');
    json_decref(value);
}
