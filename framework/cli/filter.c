/* filter.c - the options that choose jobs: --status, --queue, --kind. */
#include "filter.h"

#include <string.h>

/* The bit of the state whose name is `length` bytes at `name`; 0: there is none. */
static uint32_t state_bit(const char *name, size_t length)
{
    for (int state = PAWL_STATE_PENDING; state <= PAWL_STATE_BLOCKED; state++) {
        const char *known = pawl_state_name((pawl_state)state);
        if (strlen(known) == length && memcmp(known, name, length) == 0)
            return UINT32_C(1) << state;
    }
    return 0;
}

static bool take_states(cli_arguments *arguments, uint32_t *states)
{
    const char *name = arguments->value;
    for (;;) {
        size_t length = strcspn(name, ",");
        uint32_t bit = state_bit(name, length);
        if (bit == 0)
            return cli_usage_error(arguments,
                                   "--status: '%.*s' is not one of pending, running, succeeded,"
                                   " failed, cancelled, blocked",
                                   (int)length, name);
        *states |= bit;
        if (name[length] == '\0')
            return true;
        name += length + 1;
    }
}

bool cli_filter_take(cli_arguments *arguments, int option, pawl_filter *filter)
{
    if (option == CLI_OPTION_STATUS)
        return take_states(arguments, &filter->states);
    if (*arguments->value == '\0')
        return cli_usage_error(arguments, "--%s: the name is empty", arguments->option);
    if (option == CLI_OPTION_QUEUE)
        filter->queue = arguments->value;
    else
        filter->kind = arguments->value;
    return true;
}
