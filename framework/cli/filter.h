/* filter.h - the options that choose jobs: --status, --queue, --kind. */
#ifndef PAWL_CLI_FILTER_H
#define PAWL_CLI_FILTER_H

#include "arguments.h"

#include <pawl/pawl.h>

enum { CLI_OPTION_STATUS = 's', CLI_OPTION_QUEUE = 'q', CLI_OPTION_KIND = 'k' };

/* For a verb's list of options. */
#define CLI_FILTER_OPTIONS                                                                         \
    { CLI_OPTION_STATUS, "status", "STATUS,...",                                                   \
      "only jobs that are pending, running, succeeded,\nfailed, cancelled or blocked" },           \
    { CLI_OPTION_QUEUE, "queue", "Q", "only jobs in this queue" },                                 \
    { CLI_OPTION_KIND, "kind", "K", "only jobs of this kind" }

/** Takes an option of CLI_FILTER_OPTIONS; false after cli_usage_error(). */
bool cli_filter_take(cli_arguments *arguments, int option, pawl_filter *filter);

#endif
