/* show.c - pawl show: all that is stored of one job, or the exact bytes of its payload. */
#include "database.h"
#include "json.h"
#include "status_style.h"
#include "text.h"
#include "values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_PAYLOAD = CLI_OPTION_NEXT };
enum { LABEL_WIDTH = 16 };

struct request {
    bool json;
    bool payload;
};

static void print_label(const char *label)
{
    printf("%s%-*s%s", cli_terminal_begin(CLI_BOLD), LABEL_WIDTH, label,
           cli_terminal_end(CLI_BOLD));
}

static void print_text(const char *label, const char *text)
{
    if (text == NULL)
        return;
    print_label(label);
    cli_text_write(stdout, text, strlen(text));
    putchar('\n');
}

/* "2030-01-31 18:00:00.000 UTC  (3m12s ago)" */
static void print_time(const char *label, int64_t time_ms, int64_t now_ms)
{
    if (time_ms == 0)
        return;
    char time[CLI_MOMENT_SIZE];
    char distance[CLI_DURATION_SIZE];
    bool is_past = time_ms <= now_ms;
    cli_moment_format(time_ms, time);
    cli_duration_format(is_past ? now_ms - time_ms : time_ms - now_ms, distance);
    print_label(label);
    printf("%s UTC  (%s%s%s)\n", time, is_past ? "" : "in ", distance, is_past ? " ago" : "");
}

static void print_status(const pawl_job_info *job)
{
    cli_style style = cli_status_style(job->state);
    print_label("status");
    printf("%s%s%s%s\n", cli_terminal_begin(style), pawl_state_name(job->state),
           cli_terminal_end(style),
           job->holder_died        ? " (its process has died; a pool takes it back)"
           : job->cancel_requested ? " (told to stop)"
                                   : "");
}

/* "5s", or for a job that runs too long "5s  (passed 3m12s ago)" */
static void print_timeout(const pawl_job_info *job, int64_t now_ms)
{
    char timeout[CLI_DURATION_SIZE] = "none";
    char distance[CLI_DURATION_SIZE];
    if (job->timeout_ms == 0)
        return; /* its handler's, which is not known here */
    if (job->timeout_ms > 0)
        cli_duration_format_exact(job->timeout_ms, timeout);
    print_label("timeout");
    fputs(timeout, stdout);
    int64_t runs_ms = job->state == PAWL_STATE_RUNNING ? now_ms - job->claimed_at_ms : 0;
    if (job->timeout_ms > 0 && runs_ms > job->timeout_ms) {
        cli_duration_format(runs_ms - job->timeout_ms, distance);
        printf("  (passed %s ago)", distance);
    }
    putchar('\n');
}

/* Cuts to the terminal: --payload shows all of it. */
static void print_bytes(const char *label, const void *bytes, size_t count)
{
    char *text = cli_text_escape(bytes, count);
    size_t line_width = cli_terminal_width();
    size_t width = line_width > LABEL_WIDTH + 3 ? line_width - LABEL_WIDTH - 3 : SIZE_MAX;
    size_t used;
    size_t length = cli_text_fit(text, width, &used);
    print_label(label);
    printf("%.*s%s\n", (int)length, text, text[length] != '\0' ? "..." : "");
    free(text);
}

static void print_payload(const pawl_job_info *job)
{
    print_label("payload bytes");
    printf("%zu\n", job->payload_bytes);
    if (job->payload_bytes > 0)
        print_bytes("payload", job->payload, job->payload_bytes);
}

static void print_claims(const pawl_job_info *job, int64_t now_ms)
{
    print_time("claimed at", job->claimed_at_ms, now_ms);
    print_text("claimed by", job->claimed_by);
    print_time("lease until", job->lease_until_ms, now_ms);
    if (job->fence != 0) {
        print_label("fence");
        printf("%" PRIu64 "\n", job->fence);
    }
}

static void print_job(const pawl_job_info *job, int64_t now_ms)
{
    print_label("id");
    printf("%" PRId64 "\n", job->id);
    print_status(job);
    print_text("queue", job->queue);
    print_text("kind", job->kind);
    print_label("priority");
    printf("%" PRId32 "\n", job->priority);
    print_label("attempts");
    printf("%" PRIu32 " of %" PRIu32 "\n", job->attempts, job->max_attempts);
    print_timeout(job, now_ms);
    print_time("created at", job->created_at_ms, now_ms);
    print_time("updated at", job->updated_at_ms, now_ms);
    print_time("available at", job->available_at_ms, now_ms);
    print_claims(job, now_ms);
    print_time("finished at", job->finished_at_ms, now_ms);
    print_text("last error", job->last_error);
    if (job->idempotency_key != NULL)
        print_bytes("key", job->idempotency_key, job->idempotency_key_bytes);
    print_payload(job);
}

static void print_payload_alone(const pawl_job_info *job)
{
    if (!cli_terminal_output()) {
        (void)fwrite(job->payload, 1, job->payload_bytes, stdout);
        return;
    }
    cli_text_write(stdout, job->payload, job->payload_bytes);
    putchar('\n');
}

static void print(const pawl_job_info *job, const struct request *request, int64_t now_ms)
{
    if (request->json)
        cli_json_print(cli_json_job(job), CLI_JSON_INDENTED);
    else if (request->payload)
        print_payload_alone(job);
    else
        print_job(job, now_ms);
}

static void print_missing(int64_t id)
{
    json_t *object = cli_json_object();
    cli_json_set_number(object, "id", id);
    cli_json_set_text(object, "error", pawl_status_name(PAWL_ERR_NOT_FOUND));
    cli_json_print(object, CLI_JSON_INDENTED);
}

static int show(cli_arguments *arguments, const struct request *request, int64_t id)
{
    pawl_pool *pool = cli_database_open(arguments, PAWL_OPEN_READ_ONLY);
    if (pool == NULL)
        return CLI_EXIT_PROBLEM;
    int exit_status = CLI_EXIT_OK;
    pawl_job_info job = { .struct_size = sizeof job };
    pawl_status status = pawl_get(pool, id, &job);
    if (status != PAWL_OK)
        exit_status = cli_database_problem(arguments);
    if (status == PAWL_OK)
        print(&job, request, pawl_clock_now(pool));
    else if (status == PAWL_ERR_NOT_FOUND && request->json)
        print_missing(id);
    pawl_job_info_clear(&job);
    (void)pawl_close(pool);
    return exit_status;
}

static bool take(cli_arguments *arguments, int option, void *request_arg)
{
    (void)arguments;
    struct request *request = request_arg;
    if (option == CLI_OPTION_JSON)
        request->json = true;
    else
        request->payload = true;
    return true;
}

static int run(cli_arguments *arguments)
{
    struct request request = { 0 };
    int64_t id;
    if (!cli_arguments_parse(arguments, take, &request, 2, 2)
        || !cli_operand_id(arguments, arguments->operands[1], &id))
        return arguments->exit_status;
    return show(arguments, &request, id);
}

static const cli_option options[] = {
    { OPTION_PAYLOAD, "payload", NULL, "print the payload and nothing else: its exact bytes,\n"
                                       "or escaped if standard output is a terminal" },
    { CLI_OPTION_JSON, "json", NULL, "print a JSON object, payload included" },
    { 0 },
};

const cli_verb cli_verb_show = {
    .name = "show",
    .summary = "Shows all that is stored of one job",
    .synopsis = "FILE ID [OPTION...]",
    .details = "The JSON is described in 'pawl help list'.\n",
    .options = options,
    .run = run,
};
