/* queue_switch.h - what pause and resume have in common. */
#ifndef PAWL_CLI_QUEUE_SWITCH_H
#define PAWL_CLI_QUEUE_SWITCH_H

#include "arguments.h"

#include <pawl/pawl.h>

typedef pawl_status (*cli_switch_fn)(pawl_pool *pool, const char *queue);

/** Does `change` to every queue that the operands name. */
int cli_queue_switch_run(cli_arguments *arguments, cli_switch_fn change);

#endif
