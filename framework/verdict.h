/* verdict.h - what becomes of a claim when its handler has returned. */
#ifndef PAWLI_VERDICT_H
#define PAWLI_VERDICT_H

#include <pawl/pawl.h>

/* What the executor knows about an attempt that ended. */
typedef struct pawli_trial {
    int returned;          /* by the handler; any int */
    int unknown;           /* the handler's policy: PAWL_RETRY or PAWL_FAILED */
    uint32_t attempt;      /* this one, from 1 */
    uint32_t max_attempts;
    bool timed_out;
    bool pool_stopping;
    bool told_pool;        /* it was told PAWL_STOP_POOL, and nobody has cancelled it */
    int64_t retry_in_ms;   /* what the handler asked for; negative: nothing */
    int64_t backoff_ms;    /* the policy's delay after this attempt */
} pawli_trial;

typedef struct pawli_verdict {
    pawl_outcome outcome;  /* for the record of the attempt */
    pawl_state to;         /* succeeded, failed, cancelled or pending */
    int64_t delay_ms;      /* with pending */
    bool charged;          /* false: the attempt is taken back (I9) */
} pawli_verdict;

pawli_verdict pawli_judge(const pawli_trial *trial);
/* A value outside pawl_outcome, or PAWL_UNKNOWN, follows the handler's policy. */
bool pawli_outcome_is_known(int returned);

#endif
