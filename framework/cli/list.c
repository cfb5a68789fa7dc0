/* list.c - pawl list: the jobs that a filter finds, as a table or as JSON Lines, in any number. */
#include "cursor.h"
#include "database.h"
#include "filter.h"
#include "json.h"
#include "message.h"
#include "status_style.h"
#include "table.h"
#include "values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_LIMIT = 'n', OPTION_NEWEST = CLI_OPTION_NEXT, OPTION_PAYLOAD };

enum { PAYLOAD_BYTES_SHOWN = 200 };

struct request {
    pawl_filter filter;
    int64_t limit;
    bool json;
    bool payload;
};

static const cli_column columns[] = {
    { .title = "ID", .is_number = true },
    { .title = "STATUS" },
    { .title = "QUEUE", .is_elastic = true },
    { .title = "KIND", .is_elastic = true },
    { .title = "PRIO", .is_number = true },
    { .title = "ATTEMPTS", .is_number = true },
    { .title = "TIME (UTC)" },
    { .title = "ERROR", .is_elastic = true },
    { .title = "PAYLOAD", .is_elastic = true }, /* left out unless asked for */
};
enum { COLUMN_COUNT = sizeof columns / sizeof *columns };

/* The one time that matters most in each state. */
static int64_t time_of(const pawl_job_info *job)
{
    switch (job->state) {
    case PAWL_STATE_PENDING: return job->available_at_ms;
    case PAWL_STATE_RUNNING: return job->claimed_at_ms;
    case PAWL_STATE_BLOCKED: return job->created_at_ms;
    default: return job->finished_at_ms;
    }
}

static void add_payload(cli_table *table, const pawl_job_info *job)
{
    static const char mark[] = "...";
    char text[PAYLOAD_BYTES_SHOWN + sizeof mark];
    if (job->payload_bytes <= PAYLOAD_BYTES_SHOWN) {
        cli_table_bytes(table, CLI_PLAIN, job->payload, job->payload_bytes);
        return;
    }
    size_t count = PAYLOAD_BYTES_SHOWN;
    memcpy(text, job->payload, count + 1);
    while (count > 0 && (text[count] & 0xC0) == 0x80) /* not in the middle of a character */
        count--;
    memcpy(text + count, mark, sizeof mark);
    cli_table_bytes(table, CLI_PLAIN, text, count + sizeof mark - 1);
}

static void add_row(cli_table *table, const pawl_job_info *job, bool payload)
{
    char time[CLI_MOMENT_SIZE];
    cli_moment_format(time_of(job), time);
    cli_table_format(table, CLI_PLAIN, "%" PRId64, job->id);
    cli_table_format(table, cli_status_style(job->state), "%s%s", pawl_state_name(job->state),
                     job->holder_died ? " (died)" : "");
    cli_table_text(table, CLI_PLAIN, job->queue);
    cli_table_text(table, CLI_PLAIN, job->kind);
    cli_table_format(table, CLI_PLAIN, "%" PRId32, job->priority);
    cli_table_format(table, CLI_PLAIN, "%" PRIu32 "/%" PRIu32, job->attempts, job->max_attempts);
    cli_table_text(table, CLI_PLAIN, time);
    cli_table_text(table, CLI_PLAIN, job->last_error);
    if (payload)
        add_payload(table, job);
}

static int print_jobs(cli_arguments *arguments, const struct request *request, cli_cursor *cursor,
                      cli_table *table)
{
    int64_t count = 0;
    const pawl_job_info *job;
    pawl_status status;
    while ((status = cli_cursor_next(cursor, &job)) == PAWL_OK && job != NULL && !ferror(stdout)) {
        if (request->json)
            cli_json_print(cli_json_job(job), CLI_JSON_LINE);
        else
            add_row(table, job, request->payload);
        count++;
    }
    cli_table_flush(table); /* what was read before an error is shown before the error */
    if (status != PAWL_OK) {
        (void)fflush(stdout);
        return cli_database_problem(arguments);
    }
    if (count == 0 && !request->json && isatty(STDERR_FILENO))
        fputs("No jobs found.\n", stderr);
    return CLI_EXIT_OK;
}

static bool take(cli_arguments *arguments, int option, void *request_arg)
{
    struct request *request = request_arg;
    switch (option) {
    case CLI_OPTION_JSON: request->json = true; return true;
    case OPTION_NEWEST: request->filter.newest_first = true; return true;
    case OPTION_PAYLOAD: request->payload = true; return true;
    case OPTION_LIMIT: return cli_take_number(arguments, 1, INT64_MAX, &request->limit);
    default: return cli_filter_take(arguments, option, &request->filter);
    }
}

static int run(cli_arguments *arguments)
{
    struct request request = {
        .filter = { .struct_size = sizeof(pawl_filter) },
        .limit = INT64_MAX,
    };
    if (!cli_arguments_parse(arguments, take, &request, 1, 1))
        return arguments->exit_status;
    pawl_pool *pool = cli_database_open(arguments, PAWL_OPEN_READ_ONLY);
    if (pool == NULL)
        return CLI_EXIT_PROBLEM;
    cli_cursor cursor;
    cli_table table;
    cli_cursor_init(&cursor, pool, &request.filter, request.limit);
    cli_table_init(&table, columns, request.payload ? COLUMN_COUNT : COLUMN_COUNT - 1);
    int exit_status = print_jobs(arguments, &request, &cursor, &table);
    cli_table_fini(&table);
    cli_cursor_fini(&cursor);
    (void)pawl_close(pool);
    return exit_status;
}

static const cli_option options[] = {
    CLI_FILTER_OPTIONS,
    { OPTION_LIMIT, "limit", "N", "show at most N jobs; default: all" },
    { OPTION_NEWEST, "newest", NULL, "newest first; default: oldest first" },
    { OPTION_PAYLOAD, "payload", NULL, "add a column with the beginning of each payload" },
    { CLI_OPTION_JSON, "json", NULL, "print a JSON object for each job, one a line" },
    { 0 },
};

const cli_verb cli_verb_list = {
    .name = "list",
    .summary = "Lists jobs",
    .synopsis = "FILE [OPTION...]",
    .details = "TIME is when a pending job is due, when a running one was claimed, and when any\n"
               "other one ended. A running job whose process has died is marked: a pool takes it\n"
               "back. On a terminal, lines are cut to its width.\n"
               "\n"
               "The JSON has the field names of pawl.h, with times in Unix milliseconds; null is\n"
               "what is not there. payload and idempotency_key are strings if they are UTF-8\n"
               "without NUL, else base64 under payload_base64 and idempotency_key_base64.\n"
               "fence is a string, because it may exceed 2^53. timeout_ms is 0 where the handler\n"
               "decides, and -1 for no limit.\n"
               "\n"
               "  pawl list jobs.db --status failed --newest --limit 20\n"
               "  pawl list jobs.db --json | jq -r 'select(.attempts > 1) | .last_error'\n",
    .options = options,
    .run = run,
};
