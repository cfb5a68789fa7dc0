/* job_state.h - the states of a job and the moves between them. */
#ifndef PAWLI_JOB_STATE_H
#define PAWLI_JOB_STATE_H

#include <pawl/pawl.h>

#define PAWLI_STATE_COUNT (PAWL_STATE_BLOCKED + 1)

bool pawli_state_may_move(pawl_state from, pawl_state to);
bool pawli_state_is_final(pawl_state state); /* ended: only an operator's requeue moves it (I8) */

#endif
