/* bulk.c - what cancel and requeue have in common: one change, made to jobs named by their ids or
 * chosen by a filter.
 *
 * Jobs are changed in batches, each in one transaction.
 * Keeps: a job that cannot be changed stops no other; with a filter, jobs that were enqueued after
 *        the command began are left alone, so that it ends however fast others enqueue. */
#include "bulk.h"

#include "cursor.h"
#include "database.h"
#include "json.h"
#include "message.h"
#include "progress.h"
#include "values.h"

#include <inttypes.h>
#include <stdio.h>

enum { BATCH_MAX = 1000 };

struct request {
    const cli_bulk *bulk;
    pawl_filter filter;
    bool all;
    bool json;
};

struct work {
    const cli_arguments *arguments;
    const struct request *request;
    pawl_pool *pool;
    int64_t ids[BATCH_MAX]; /* the batch being gathered */
    size_t count;
    int64_t done;
    int64_t accepted;
    int64_t refused;
    cli_progress progress;
};

static bool is_by_id(const struct work *work)
{
    return !work->request->all;
}

/* The word for what became of a job; NULL: nothing did. */
static const char *result_of(const cli_bulk *bulk, pawl_status status)
{
    return status == PAWL_OK ? bulk->done : status == PAWL_ACCEPTED ? bulk->accepted : NULL;
}

static void report_json(int64_t id, const char *result, pawl_status status)
{
    json_t *line = cli_json_object();
    cli_json_set_number(line, "id", id);
    cli_json_set_text(line, "result", result);
    if (result == NULL)
        cli_json_set_text(line, "error", pawl_status_name(status));
    cli_json_print(line, CLI_JSON_LINE);
}

static void report_refused(const struct work *work, int64_t id, pawl_status status)
{
    if (status == PAWL_ERR_NOT_FOUND) { /* in the words of the library, when it is asked for one */
        cli_problem(work->arguments->verb->name, "%s: has no job %" PRId64, work->arguments->operands[0], id);
        return;
    }
    const char *reason = status == PAWL_ERR_STATE ? work->request->bulk->refused
                                                  : pawl_status_name(status);
    cli_problem(work->arguments->verb->name, "job %" PRId64 ": %s", id, reason);
}

/* A job that a filter found and that has moved on since is nobody's mistake: it is not reported. */
static void report_job(struct work *work, int64_t id, pawl_status status)
{
    const char *result = result_of(work->request->bulk, status);
    work->done += status == PAWL_OK;
    work->accepted += status == PAWL_ACCEPTED;
    work->refused += result == NULL;
    if (result == NULL && is_by_id(work))
        report_refused(work, id, status);
    if (work->request->json && (result != NULL || is_by_id(work)))
        report_json(id, result, status);
    else if (result != NULL && is_by_id(work))
        printf("%" PRId64 " %s\n", id, result);
}

static int change_batch(struct work *work)
{
    pawl_status each[BATCH_MAX];
    if (work->count == 0)
        return CLI_EXIT_OK;
    const cli_bulk *bulk = work->request->bulk;
    if (bulk->change(work->pool, work->ids, work->count, each) != PAWL_OK) {
        cli_progress_end(&work->progress);
        return cli_database_problem(work->arguments);
    }
    for (size_t i = 0; i < work->count; i++)
        report_job(work, work->ids[i], each[i]);
    work->count = 0;
    if (ferror(stdout))
        return CLI_EXIT_PROBLEM; /* main() says so */
    cli_progress_update(&work->progress, work->done + work->accepted, bulk->done);
    return CLI_EXIT_OK;
}

static int add_id(struct work *work, int64_t id)
{
    work->ids[work->count++] = id;
    return work->count == BATCH_MAX ? change_batch(work) : CLI_EXIT_OK;
}

static int change_ids(struct work *work)
{
    int exit_status = CLI_EXIT_OK;
    for (int i = 1; i < work->arguments->operand_count && exit_status == CLI_EXIT_OK; i++) {
        int64_t id = 0;
        (void)cli_number_parse(work->arguments->operands[i], 1, INT64_MAX, &id); /* was checked */
        exit_status = add_id(work, id);
    }
    if (exit_status == CLI_EXIT_OK)
        exit_status = change_batch(work);
    return exit_status == CLI_EXIT_OK && work->refused > 0 ? CLI_EXIT_PROBLEM : exit_status;
}

/* The newest job that the filter finds now; 0: there is none. */
static pawl_status newest_id(const struct work *work, int64_t *id_out)
{
    pawl_filter filter = work->request->filter;
    filter.newest_first = true;
    cli_cursor cursor;
    cli_cursor_init(&cursor, work->pool, &filter, 1);
    const pawl_job_info *job;
    pawl_status status = cli_cursor_next(&cursor, &job);
    *id_out = job != NULL ? job->id : 0;
    cli_cursor_fini(&cursor);
    return status;
}

static int change_found(struct work *work, cli_cursor *cursor, int64_t last_id)
{
    for (;;) {
        const pawl_job_info *job;
        if (cli_cursor_next(cursor, &job) != PAWL_OK) {
            cli_progress_end(&work->progress);
            return cli_database_problem(work->arguments);
        }
        if (job == NULL || job->id > last_id)
            return change_batch(work);
        int exit_status = add_id(work, job->id);
        if (exit_status != CLI_EXIT_OK)
            return exit_status;
    }
}

static void report_total(const struct work *work, int exit_status)
{
    const cli_bulk *bulk = work->request->bulk;
    if (work->request->json)
        return;
    printf("%" PRId64 " %s", work->done, bulk->done);
    if (work->accepted > 0)
        printf(", %" PRId64 " %s", work->accepted, bulk->accepted);
    putchar('\n');
    if (work->done + work->accepted == 0 && exit_status == CLI_EXIT_OK)
        cli_problem(work->arguments->verb->name, "%s", bulk->none);
}

static int change_all(struct work *work)
{
    int64_t last_id;
    if (newest_id(work, &last_id) != PAWL_OK)
        return cli_database_problem(work->arguments);
    cli_cursor cursor;
    cli_cursor_init(&cursor, work->pool, &work->request->filter, INT64_MAX);
    cli_progress_begin(&work->progress);
    int exit_status = change_found(work, &cursor, last_id);
    cli_progress_end(&work->progress);
    cli_cursor_fini(&cursor);
    report_total(work, exit_status);
    return exit_status;
}

static bool take(cli_arguments *arguments, int option, void *request_arg)
{
    struct request *request = request_arg;
    switch (option) {
    case CLI_OPTION_JSON: request->json = true; return true;
    case CLI_OPTION_ALL: request->all = true; return true;
    default: return cli_filter_take(arguments, option, &request->filter);
    }
}

static bool check_filter(cli_arguments *arguments, struct request *request)
{
    const pawl_filter *filter = &request->filter;
    bool is_filtered = filter->states != 0 || filter->queue != NULL || filter->kind != NULL;
    bool has_ids = arguments->operand_count > 1;
    if (has_ids && (is_filtered || request->all))
        return cli_usage_error(arguments, "give either ids or --all with filters");
    if (!has_ids && is_filtered && !request->all)
        return cli_usage_error(arguments, "say --all to mean every job that the filters find");
    if (!has_ids && !request->all)
        return cli_usage_error(arguments, "give ids, or --all to mean every job");
    if ((filter->states & ~request->bulk->states) != 0)
        return cli_usage_error(arguments, "--status: %s", request->bulk->refused);
    if (filter->states == 0)
        request->filter.states = request->bulk->states_default;
    return true;
}

/* All of them before the first change: a slip of the pen must not leave half of it done. */
static bool check_ids(cli_arguments *arguments)
{
    int64_t id;
    for (int i = 1; i < arguments->operand_count; i++)
        if (!cli_operand_id(arguments, arguments->operands[i], &id))
            return false;
    return true;
}

int cli_bulk_run(cli_arguments *arguments, const cli_bulk *bulk)
{
    struct request request = { .bulk = bulk, .filter = { .struct_size = sizeof(pawl_filter) } };
    if (!cli_arguments_parse(arguments, take, &request, 1, -1)
        || !check_filter(arguments, &request) || !check_ids(arguments))
        return arguments->exit_status;
    struct work work = { .arguments = arguments, .request = &request };
    work.pool = cli_database_open(arguments, PAWL_OPEN_EXISTING);
    if (work.pool == NULL)
        return CLI_EXIT_PROBLEM;
    int exit_status = request.all ? change_all(&work) : change_ids(&work);
    (void)pawl_close(work.pool);
    return exit_status;
}
