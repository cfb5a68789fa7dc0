/* bulk.h - what cancel and requeue have in common: one change, made to jobs named by their ids or
 * chosen by a filter. */
#ifndef PAWL_CLI_BULK_H
#define PAWL_CLI_BULK_H

#include "arguments.h"
#include "filter.h"

#include <pawl/pawl.h>

typedef pawl_status (*cli_change_fn)(pawl_pool *pool, const int64_t *ids, size_t count,
                                     pawl_status *each_out);

typedef struct cli_bulk {
    cli_change_fn change;
    uint32_t states;         /* bits of the states in which the change is possible */
    uint32_t states_default; /* those that --all means without --status */
    const char *done;        /* "cancelled": PAWL_OK */
    const char *accepted;    /* "stopping": PAWL_ACCEPTED; NULL: does not happen */
    const char *refused;     /* why a job in another state cannot be changed */
    const char *none;        /* said when --all meets no job */
} cli_bulk;

#define CLI_BULK_OPTIONS(ALL_HELP)                                                                 \
    CLI_FILTER_OPTIONS,                                                                            \
    { CLI_OPTION_ALL, "all", NULL, ALL_HELP },                                                     \
    { CLI_OPTION_JSON, "json", NULL, "print a JSON object for each job, one a line" }

int cli_bulk_run(cli_arguments *arguments, const cli_bulk *bulk);

#endif
