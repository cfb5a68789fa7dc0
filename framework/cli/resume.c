/* resume.c - pawl resume: jobs are taken from a paused queue again. */
#include "queue_switch.h"

static int run(cli_arguments *arguments)
{
    return cli_queue_switch_run(arguments, pawl_resume);
}

static const cli_option options[] = { { 0 } };

const cli_verb cli_verb_resume = {
    .name = "resume",
    .summary = "Starts jobs from paused queues again",
    .synopsis = "FILE QUEUE...",
    .details = "Resuming a queue that is not paused is harmless.\n",
    .options = options,
    .run = run,
};
