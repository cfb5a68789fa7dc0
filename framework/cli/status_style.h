/* status_style.h - the colour of a job's status, the same wherever it is shown. */
#ifndef PAWL_CLI_STATUS_STYLE_H
#define PAWL_CLI_STATUS_STYLE_H

#include "terminal.h"

#include <pawl/pawl.h>

static inline cli_style cli_status_style(pawl_state state)
{
    static const cli_style styles[] = {
        [PAWL_STATE_PENDING] = CLI_PLAIN,   [PAWL_STATE_RUNNING] = CLI_CYAN,
        [PAWL_STATE_SUCCEEDED] = CLI_GREEN, [PAWL_STATE_FAILED] = CLI_RED,
        [PAWL_STATE_CANCELLED] = CLI_DIM,   [PAWL_STATE_BLOCKED] = CLI_YELLOW,
    };
    size_t index = (size_t)state;
    return index < sizeof styles / sizeof *styles ? styles[index] : CLI_PLAIN;
}

#endif
