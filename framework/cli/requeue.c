/* requeue.c - pawl requeue: failed or cancelled jobs start again from the beginning. */
#include "bulk.h"

#define BIT(state) (UINT32_C(1) << PAWL_STATE_##state)

/* Somebody cancelled the cancelled ones on purpose: --all means them only if --status says so. */
static const cli_bulk bulk = {
    .change = pawl_requeue_many,
    .states = BIT(FAILED) | BIT(CANCELLED),
    .states_default = BIT(FAILED),
    .done = "requeued",
    .refused = "only a failed or cancelled job can be requeued",
    .none = "no such job was found (without --status: only failed ones are looked for)",
};

static int run(cli_arguments *arguments)
{
    return cli_bulk_run(arguments, &bulk);
}

static const cli_option options[] = {
    CLI_BULK_OPTIONS("requeue every failed job that the filters find;\n"
                     "cancelled ones too with --status failed,cancelled"),
    { 0 },
};

const cli_verb cli_verb_requeue = {
    .name = "requeue",
    .summary = "Makes failed or cancelled jobs pending again",
    .synopsis = "FILE ID...\nFILE --all [--status STATUS,...] [--queue Q] [--kind K]",
    .details = "A requeued job is due now and has all its attempts again; its id, key, priority\n"
               "and last error stay.\n"
               "Every id is tried; if one cannot be requeued, that is said, and the exit status\n"
               "is 1. --all leaves alone what fails while it works.\n"
               "The JSON: id, result (requeued or null) and, if that is null, error.\n"
               "\n"
               "  pawl requeue jobs.db 17 18\n"
               "  pawl requeue jobs.db --all --kind send-email\n",
    .options = options,
    .run = run,
};
