/* verdict.c - what becomes of a claim when its handler has returned. Pure: no I/O, clock or lock.
 * Keeps: I9 attempts, their limit and what takes them back. */
#include "verdict.h"

bool pawli_outcome_is_known(int returned)
{
    return returned == PAWL_SUCCEEDED || (returned >= PAWL_RETRY && returned <= PAWL_DETACHED);
}

static pawl_outcome effective(const pawli_trial *trial)
{
    int outcome = pawli_outcome_is_known(trial->returned) ? trial->returned : trial->unknown;
    if (outcome == PAWL_DETACHED) /* to end it this way is no ending */
        outcome = trial->unknown;
    if (trial->told_pool && outcome == PAWL_CANCELLED) /* nobody asked for its end, only for its place */
        outcome = PAWL_RETRY;
    if (trial->timed_out && outcome != PAWL_SUCCEEDED && outcome != PAWL_FAILED)
        outcome = PAWL_RETRY;
    return (pawl_outcome)outcome;
}

static int64_t delay(const pawli_trial *trial)
{
    return trial->retry_in_ms >= 0 ? trial->retry_in_ms : trial->backoff_ms;
}

static pawli_verdict again(pawl_outcome outcome, int64_t delay_ms, bool charged)
{
    return (pawli_verdict){ outcome, PAWL_STATE_PENDING, delay_ms, charged };
}

static pawli_verdict retry(const pawli_trial *trial)
{
    if (trial->pool_stopping || trial->told_pool)
        return again(PAWL_RELEASED, 0, false); /* the stop may well be why it could not go on */
    if (trial->attempt >= trial->max_attempts)
        return (pawli_verdict){ PAWL_RETRY, PAWL_STATE_FAILED, 0, true };
    return again(PAWL_RETRY, delay(trial), true);
}

pawli_verdict pawli_judge(const pawli_trial *trial)
{
    pawl_outcome outcome = effective(trial);
    switch (outcome) {
    case PAWL_SUCCEEDED: return (pawli_verdict){ outcome, PAWL_STATE_SUCCEEDED, 0, true };
    case PAWL_FAILED: return (pawli_verdict){ outcome, PAWL_STATE_FAILED, 0, true };
    case PAWL_CANCELLED: return (pawli_verdict){ outcome, PAWL_STATE_CANCELLED, 0, true };
    case PAWL_SNOOZED: return again(outcome, delay(trial), false);
    case PAWL_RELEASED: return again(outcome, 0, false);
    case PAWL_RETRY:
    default: return retry(trial);
    }
}
