/* pause.c - pawl pause: no more jobs are taken from a queue, by any process. */
#include "queue_switch.h"

static int run(cli_arguments *arguments)
{
    return cli_queue_switch_run(arguments, pawl_pause);
}

static const cli_option options[] = { { 0 } };

const cli_verb cli_verb_pause = {
    .name = "pause",
    .summary = "Stops starting jobs from queues",
    .synopsis = "FILE QUEUE...",
    .details = "For every process that serves the file, and until 'pawl resume'. Jobs that run\n"
               "already run on; new ones can be enqueued.\n",
    .options = options,
    .run = run,
};
