/* enqueue.c - pawl enqueue: stores one job and prints its id. */
#include "database.h"

#include "json.h"
#include "message.h"
#include "payload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAYLOAD_BYTES_MAX = 1 << 20 }; /* the library's default, which the command does not change */

enum {
    OPTION_PRIORITY = 'p',
    OPTION_FILE = 'f',
    OPTION_DELAY = CLI_OPTION_NEXT,
    OPTION_AT,
    OPTION_KEY,
    OPTION_MAX_ATTEMPTS,
    OPTION_TIMEOUT
};

struct request {
    pawl_job_spec spec;
    const char *file; /* where the payload is; NULL: in the operand */
    bool is_delayed;
    bool is_timed;
    bool json;
    void *read_bytes; /* the payload, if it was read; owned */
};

static bool take_priority(cli_arguments *arguments, pawl_job_spec *spec)
{
    int64_t priority;
    if (!cli_take_number(arguments, INT32_MIN, INT32_MAX, &priority))
        return false;
    spec->priority = (int32_t)priority;
    return true;
}

static bool take_max_attempts(cli_arguments *arguments, pawl_job_spec *spec)
{
    int64_t max_attempts;
    if (!cli_take_number(arguments, 1, UINT32_MAX, &max_attempts))
        return false;
    spec->max_attempts = (uint32_t)max_attempts;
    return true;
}

static bool take_timeout(cli_arguments *arguments, pawl_job_spec *spec)
{
    if (strcmp(arguments->value, "none") == 0) {
        spec->timeout_ms = PAWL_NONE;
        return true;
    }
    if (!cli_take_duration(arguments, &spec->timeout_ms))
        return false;
    if (spec->timeout_ms == 0)
        return cli_usage_error(arguments, "--timeout: say how long, or 'none' for no limit");
    return true;
}

static bool take_name(cli_arguments *arguments, const char **name)
{
    *name = arguments->value;
    return **name != '\0' || cli_usage_error(arguments, "--%s: the name is empty", arguments->option);
}

static bool take_key(cli_arguments *arguments, pawl_job_spec *spec)
{
    spec->idempotency_key = arguments->value;
    spec->idempotency_key_bytes = strlen(arguments->value);
    if (spec->idempotency_key_bytes == 0)
        return cli_usage_error(arguments, "--key: the key is empty");
    return true;
}

static bool take(cli_arguments *arguments, int option, void *request_arg)
{
    struct request *request = request_arg;
    pawl_job_spec *spec = &request->spec;
    switch (option) {
    case 'k': return take_name(arguments, &spec->kind);
    case 'q': return take_name(arguments, &spec->queue);
    case OPTION_FILE: request->file = arguments->value; return true;
    case OPTION_PRIORITY: return take_priority(arguments, spec);
    case OPTION_DELAY:
        request->is_delayed = true;
        return cli_take_duration(arguments, &spec->delay_ms);
    case OPTION_AT:
        request->is_timed = true;
        return cli_take_moment(arguments, &spec->available_at_ms);
    case OPTION_KEY: return take_key(arguments, spec);
    case OPTION_MAX_ATTEMPTS: return take_max_attempts(arguments, spec);
    case OPTION_TIMEOUT: return take_timeout(arguments, spec);
    default: request->json = true; return true;
    }
}

static bool check(cli_arguments *arguments, const struct request *request)
{
    if (request->spec.kind == NULL)
        return cli_usage_error(arguments, "--kind is missing");
    if (request->is_delayed && request->is_timed)
        return cli_usage_error(arguments, "give either --delay or --at");
    if (request->file != NULL && arguments->operand_count > 1)
        return cli_usage_error(arguments, "give either --file or a payload");
    if (request->file == NULL && arguments->operand_count < 2)
        return cli_usage_error(arguments,
                               "the payload is missing: PAYLOAD, --file PATH or -; '' is empty");
    return true;
}

/* In other words than the library's, whose options the command does not have. */
static bool check_payload(const cli_arguments *arguments, const struct request *request)
{
    if (request->spec.payload_bytes <= PAYLOAD_BYTES_MAX)
        return true;
    cli_problem(arguments->verb->name,
                "the payload has %zu bytes; this command stores up to %d: enqueue a reference to it, or"
                " let the application enqueue it, with its option payload_bytes_max", request->spec.payload_bytes,
                (int)PAYLOAD_BYTES_MAX);
    return false;
}

static bool read_payload(const cli_arguments *arguments, struct request *request)
{
    pawl_job_spec *spec = &request->spec;
    const char *path = request->file != NULL ? request->file : arguments->operands[1];
    if (request->file == NULL && strcmp(path, "-") != 0) {
        spec->payload = path; /* it is the payload itself */
        spec->payload_bytes = strlen(path);
        return true;
    }
    if (!cli_payload_read(path, &request->read_bytes, &spec->payload_bytes)) {
        cli_problem(arguments->verb->name, "cannot read the payload from %s: %s",
                    strcmp(path, "-") == 0 ? "standard input" : path,
                    errno == EFBIG ? "it is larger than 256 MiB" : strerror(errno));
        return false;
    }
    spec->payload = request->read_bytes;
    return true;
}

static void report(const cli_arguments *arguments, const struct request *request, int64_t id,
                   bool exists)
{
    if (request->json) {
        json_t *object = cli_json_object();
        cli_json_set_number(object, "id", id);
        cli_json_set(object, "created", json_boolean(!exists));
        cli_json_print(object, CLI_JSON_LINE);
        return;
    }
    printf("%" PRId64 "\n", id);
    if (exists)
        cli_problem(arguments->verb->name,
                    "job %" PRId64 " has this kind and key already; nothing was stored", id);
}

static int enqueue(cli_arguments *arguments, const struct request *request)
{
    pawl_pool *pool = cli_database_open(arguments, PAWL_OPEN_EXISTING);
    if (pool == NULL)
        return CLI_EXIT_PROBLEM;
    int exit_status = CLI_EXIT_OK;
    int64_t id = 0;
    pawl_status status = pawl_enqueue(pool, &request->spec, &id);
    if (status == PAWL_OK || status == PAWL_EXISTS)
        report(arguments, request, id, status == PAWL_EXISTS);
    else
        exit_status = cli_database_problem(arguments);
    (void)pawl_close(pool);
    return exit_status;
}

static int run(cli_arguments *arguments)
{
    struct request request = { .spec = { .struct_size = sizeof(pawl_job_spec) } };
    if (!cli_arguments_parse(arguments, take, &request, 1, 2) || !check(arguments, &request))
        return arguments->exit_status;
    if (!read_payload(arguments, &request))
        return CLI_EXIT_PROBLEM;
    int exit_status = check_payload(arguments, &request) ? enqueue(arguments, &request) : CLI_EXIT_PROBLEM;
    free(request.read_bytes);
    return exit_status;
}

static const cli_option options[] = {
    { 'k', "kind", "KIND", "the kind of job: which handler runs it (required)" },
    { 'q', "queue", "QUEUE", "the queue it waits in; default: default" },
    { OPTION_PRIORITY, "priority", "N", "higher runs first; default: 0" },
    { OPTION_DELAY, "delay", "DURATION", "run it not before so long from now" },
    { OPTION_AT, "at", "TIME", "run it not before this time (UTC)" },
    { OPTION_KEY, "key", "KEY", "store it only if no job of this kind has this key" },
    { OPTION_MAX_ATTEMPTS, "max-attempts", "N", "how often it may be tried; default: 5" },
    { OPTION_TIMEOUT, "timeout", "DURATION", "how long one attempt may take, or none; default:\n"
                                             "what its handler says" },
    { OPTION_FILE, "file", "PATH", "read the payload from this file" },
    { CLI_OPTION_JSON, "json", NULL, "print a JSON object: id, created" },
    { 0 },
};

const cli_verb cli_verb_enqueue = {
    .name = "enqueue",
    .summary = "Stores a job and prints its id",
    .synopsis = "FILE --kind KIND [OPTION...] PAYLOAD\n"
                "FILE --kind KIND [OPTION...] --file PATH\n"
                "FILE --kind KIND [OPTION...] -",
    .details = "The payload is any bytes: an argument, a file, or standard input (-).\n"
               "Once the id is printed the job is on the disk. If a job of this kind has the key\n"
               "already, its id is printed, nothing is stored, and the exit status is 0.\n"
               "DURATION is 500ms, 10s, 5m, 2h, 1d, or several: 1h30m.\n"
               "TIME is 2030-01-31, '2030-01-31 18:00', or '2030-01-31 18:00:00.000'; a T may\n"
               "stand for the space.\n"
               "\n"
               "  pawl enqueue jobs.db --kind send-email --key order-17 '{\"to\": \"ann\"}'\n"
               "  make-report | pawl enqueue jobs.db --kind send-report --delay 1h -\n",
    .options = options,
    .run = run,
};
