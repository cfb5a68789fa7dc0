/* database.h - opening the job database that the user named. */
#ifndef PAWL_CLI_DATABASE_H
#define PAWL_CLI_DATABASE_H

#include "arguments.h"

#include <pawl/pawl.h>

/** Opens the file of the first operand with `flags` (PAWL_OPEN_...). NULL: it has said why. The
 *  caller ends the pool with pawl_close(). */
pawl_pool *cli_database_open(cli_arguments *arguments, uint32_t flags);

/** Says what the last failed call of the library met. Returns CLI_EXIT_PROBLEM. */
int cli_database_problem(const cli_arguments *arguments);

#endif
