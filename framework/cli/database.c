/* database.c - opening the job database that the user named.
 *
 * The pool is never started: while no writer thread runs, each call does the writer's work. */
#include "database.h"

#include "message.h"

static void log_line(pawl_log_level level, const char *line, void *arg)
{
    (void)arg;
    if (level != PAWL_LOG_INFO)
        cli_problem(NULL, "%s", line);
}

int cli_database_problem(const cli_arguments *arguments)
{
    cli_problem(arguments->verb->name, "%s", pawl_error_message());
    return CLI_EXIT_PROBLEM;
}

pawl_pool *cli_database_open(cli_arguments *arguments, uint32_t flags)
{
    const char *file = arguments->operands[0];
    pawl_pool *pool = NULL;
    if (pawl_open(PAWL_OPTIONS(.store = file, .flags = flags, .log = log_line), &pool) == PAWL_OK)
        return pool;
    (void)cli_database_problem(arguments);
    return NULL;
}
