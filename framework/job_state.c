/* job_state.c - the states of a job as a table. Pure. */
#include "job_state.h"

#include <stddef.h>

#define TO(state) (1u << PAWL_STATE_##state)

static const struct {
    const char *name;
    unsigned next;
} states[PAWLI_STATE_COUNT] = {
    [PAWL_STATE_PENDING] = { "pending", TO(RUNNING) | TO(CANCELLED) },
    [PAWL_STATE_RUNNING] = { "running", TO(SUCCEEDED) | TO(FAILED) | TO(CANCELLED)
                                            | TO(PENDING) }, /* retry, snooze, release, rescue */
    [PAWL_STATE_SUCCEEDED] = { "succeeded", 0 },
    [PAWL_STATE_FAILED] = { "failed", TO(PENDING) },       /* requeue by an operator only */
    [PAWL_STATE_CANCELLED] = { "cancelled", TO(PENDING) }, /* likewise */
    [PAWL_STATE_BLOCKED] = { "blocked", TO(PENDING) | TO(CANCELLED) },
};

bool pawli_state_may_move(pawl_state from, pawl_state to)
{
    return (states[from].next & (1u << to)) != 0;
}

bool pawli_state_is_final(pawl_state state)
{
    return state == PAWL_STATE_SUCCEEDED || state == PAWL_STATE_FAILED
           || state == PAWL_STATE_CANCELLED;
}

const char *pawl_state_name(pawl_state state)
{
    return (unsigned)state < PAWLI_STATE_COUNT ? states[state].name : "unknown state";
}
