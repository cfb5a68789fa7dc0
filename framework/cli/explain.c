/* explain.c - pawl explain: why a job is not running, in one sentence. */
#include "database.h"
#include "json.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

enum { SENTENCE_BYTES = 16384 };

/* `text` NULL: there is none, because of that status. */
static void print_json(int64_t id, const pawl_job_info *job, const char *text, pawl_status status)
{
    json_t *object = cli_json_object();
    cli_json_set_number(object, "id", id);
    cli_json_set_text(object, "status", text != NULL ? pawl_state_name(job->state) : NULL);
    cli_json_set_text(object, "text", text);
    if (text == NULL)
        cli_json_set_text(object, "error", pawl_status_name(status));
    cli_json_print(object, CLI_JSON_INDENTED);
}

static int explain(cli_arguments *arguments, int64_t id, bool json)
{
    char text[SENTENCE_BYTES];
    pawl_pool *pool = cli_database_open(arguments, PAWL_OPEN_READ_ONLY);
    if (pool == NULL)
        return CLI_EXIT_PROBLEM;
    int exit_status = CLI_EXIT_OK;
    pawl_job_info job = { .struct_size = sizeof job };
    pawl_status status = pawl_explain(pool, id, text, sizeof text);
    if (status == PAWL_OK && json)
        status = pawl_get(pool, id, &job);
    if (status != PAWL_OK)
        exit_status = cli_database_problem(arguments);
    if (json && (status == PAWL_OK || status == PAWL_ERR_NOT_FOUND)) {
        print_json(id, &job, status == PAWL_OK ? text : NULL, status);
    } else if (status == PAWL_OK) {
        cli_text_write(stdout, text, strlen(text));
        putchar('\n');
    }
    pawl_job_info_clear(&job);
    (void)pawl_close(pool);
    return exit_status;
}

static bool take(cli_arguments *arguments, int option, void *json)
{
    (void)arguments;
    (void)option;
    *(bool *)json = true;
    return true;
}

static int run(cli_arguments *arguments)
{
    bool json = false;
    int64_t id;
    if (!cli_arguments_parse(arguments, take, &json, 2, 2)
        || !cli_operand_id(arguments, arguments->operands[1], &id))
        return arguments->exit_status;
    return explain(arguments, id, json);
}

static const cli_option options[] = {
    { CLI_OPTION_JSON, "json", NULL, "print a JSON object: id, status, text; if there is\n"
                                  "no such job, status and text are null, and error says so" },
    { 0 },
};

const cli_verb cli_verb_explain = {
    .name = "explain",
    .summary = "Says why a job is not running, in one sentence",
    .synopsis = "FILE ID [OPTION...]",
    .options = options,
    .run = run,
};
