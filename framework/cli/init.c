/* init.c - pawl init: creates a job database, or pawl's tables in an application's own database. */
#include "database.h"

#include "text.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int run(cli_arguments *arguments)
{
    if (!cli_arguments_parse(arguments, NULL, NULL, 1, 1))
        return arguments->exit_status;
    const char *file = arguments->operands[0];
    struct stat status;
    /* Looked at, not opened: closing a descriptor of the file would drop SQLite's locks. */
    bool is_new = stat(file, &status) != 0;
    pawl_pool *pool = cli_database_open(arguments, 0);
    if (pool == NULL)
        return CLI_EXIT_PROBLEM;
    (void)pawl_close(pool);
    cli_text_write(stdout, file, strlen(file));
    puts(is_new ? ": created" : ": ready for jobs");
    return CLI_EXIT_OK;
}

static const cli_option options[] = { { 0 } };

const cli_verb cli_verb_init = {
    .name = "init",
    .summary = "Creates a job database",
    .synopsis = "FILE",
    .details = "FILE may be missing, a job database, or an application's own SQLite database:\n"
               "then pawl's tables are added, and nothing else in it is touched. Repeating it is\n"
               "harmless.\n",
    .options = options,
    .run = run,
};
