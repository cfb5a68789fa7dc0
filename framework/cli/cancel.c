/* cancel.c - pawl cancel: jobs that have not ended will not run, or are told to stop. */
#include "bulk.h"

#define BIT(state) (UINT32_C(1) << PAWL_STATE_##state)

static const cli_bulk bulk = {
    .change = pawl_cancel_many,
    .states = BIT(PENDING) | BIT(RUNNING) | BIT(BLOCKED) | BIT(CANCELLED),
    .states_default = BIT(PENDING) | BIT(RUNNING) | BIT(BLOCKED),
    .done = "cancelled",
    .accepted = "stopping",
    .refused = "a job that has succeeded or failed cannot be cancelled",
    .none = "no job that has not ended was found",
};

static int run(cli_arguments *arguments)
{
    return cli_bulk_run(arguments, &bulk);
}

static const cli_option options[] = {
    CLI_BULK_OPTIONS("cancel every job that has not ended and that the\nfilters find"),
    { 0 },
};

const cli_verb cli_verb_cancel = {
    .name = "cancel",
    .summary = "Cancels jobs",
    .synopsis = "FILE ID...\nFILE --all [--status STATUS,...] [--queue Q] [--kind K]",
    .details = "A pending job will never run. A running one is stopping: it is told so, and will\n"
               "not be started again; if it succeeds all the same, that stands.\n"
               "Every id is tried; if one cannot be cancelled, that is said, and the exit status\n"
               "is 1. --all leaves alone what is enqueued while it works.\n"
               "The JSON: id, result (cancelled, stopping or null) and, if that is null, error.\n"
               "\n"
               "  pawl cancel jobs.db 17 18\n"
               "  pawl cancel jobs.db --all --kind send-email --status pending\n",
    .options = options,
    .run = run,
};
