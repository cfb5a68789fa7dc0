/* verdict_test.c - what becomes of a claim: every outcome, in time or not, while the pool stops or not,
 * with attempts left or not (I9). */
#include "verdict.h"

#include <limits.h>

#include "check.h"

#define RETRY_IN_MS 70
#define BACKOFF_MS 900

/* What may become of a claim. */
typedef enum fate {
    SUCCEEDS, /* succeeded */
    FAILS,    /* failed for good */
    CANCELS,  /* cancelled */
    AGAIN,    /* pending after the delay, charged */
    USED_UP,  /* failed: the last attempt is gone */
    SNOOZES,  /* pending after the delay, uncharged */
    GIVES     /* pending at once, uncharged */
} fate;

static const struct {
    pawl_outcome outcome;
    pawl_state to;
    bool waits, charged;
} fates[] = {
    [SUCCEEDS] = { PAWL_SUCCEEDED, PAWL_STATE_SUCCEEDED, false, true },
    [FAILS] = { PAWL_FAILED, PAWL_STATE_FAILED, false, true },
    [CANCELS] = { PAWL_CANCELLED, PAWL_STATE_CANCELLED, false, true },
    [AGAIN] = { PAWL_RETRY, PAWL_STATE_PENDING, true, true },
    [USED_UP] = { PAWL_RETRY, PAWL_STATE_FAILED, false, true },
    [SNOOZES] = { PAWL_SNOOZED, PAWL_STATE_PENDING, true, false },
    [GIVES] = { PAWL_RELEASED, PAWL_STATE_PENDING, false, false },
};

/* The four columns: in time, in time while the pool stops, timed out, timed out while it stops. In each:
 * with attempts left, and at the last one. A job that was told of the stop fares like in the second and the
 * last one, but that its own cancellation is none. */
typedef struct row {
    pawl_outcome outcome;
    fate in_time[2], stopping[2], late[2], late_stopping[2];
} row;

static const row drawn[] = {
    { PAWL_SUCCEEDED, { SUCCEEDS, SUCCEEDS }, { SUCCEEDS, SUCCEEDS }, { SUCCEEDS, SUCCEEDS },
      { SUCCEEDS, SUCCEEDS } },
    { PAWL_FAILED, { FAILS, FAILS }, { FAILS, FAILS }, { FAILS, FAILS }, { FAILS, FAILS } },
    { PAWL_RETRY, { AGAIN, USED_UP }, { GIVES, GIVES }, { AGAIN, USED_UP }, { GIVES, GIVES } },
    { PAWL_CANCELLED, { CANCELS, CANCELS }, { CANCELS, CANCELS }, { AGAIN, USED_UP },
      { GIVES, GIVES } },
    { PAWL_SNOOZED, { SNOOZES, SNOOZES }, { SNOOZES, SNOOZES }, { AGAIN, USED_UP },
      { GIVES, GIVES } },
    { PAWL_RELEASED, { GIVES, GIVES }, { GIVES, GIVES }, { AGAIN, USED_UP }, { GIVES, GIVES } },
};

static const row *row_of(pawl_outcome outcome)
{
    for (size_t i = 0; i < sizeof drawn / sizeof drawn[0]; i++)
        if (drawn[i].outcome == outcome)
            return &drawn[i];
    return NULL;
}

static fate expected(const row *r, const pawli_trial *trial)
{
    bool late = trial->timed_out, stopping = trial->pool_stopping;
    bool last = trial->attempt >= trial->max_attempts;
    if (trial->told_pool && r->outcome == PAWL_CANCELLED)
        return GIVES;
    const fate *column = late ? (stopping ? r->late_stopping : r->late)
                              : (stopping ? r->stopping : r->in_time);
    return column[last];
}

static void check_one(const pawli_trial *trial, fate wanted)
{
    pawli_verdict verdict = pawli_judge(trial);
    int64_t delay = !fates[wanted].waits ? 0
                    : trial->retry_in_ms >= 0 ? trial->retry_in_ms
                                              : trial->backoff_ms;
    if (verdict.outcome != fates[wanted].outcome || verdict.to != fates[wanted].to
        || verdict.charged != fates[wanted].charged || verdict.delay_ms != delay)
        fail_msg("returned %d (unknown: %d), attempt %u of %u%s%s: outcome %d, %s, charged %d, %lld ms",
                 trial->returned, trial->unknown, trial->attempt, trial->max_attempts,
                 trial->timed_out ? ", timed out" : "",
                 trial->told_pool       ? ", told to stop with the pool"
                 : trial->pool_stopping ? ", while the pool stops"
                                        : "", verdict.outcome,
                 pawl_state_name(verdict.to), verdict.charged, (long long)verdict.delay_ms);
}

/* Every surrounding of one returned value that must be judged like `outcome`. */
static void check_everywhere(int returned, int unknown, pawl_outcome outcome)
{
    static const uint32_t attempts[][2] = { { 1, 5 }, { 4, 5 }, { 5, 5 }, { 6, 5 }, { 1, 1 },
                                            { UINT32_MAX - 1, UINT32_MAX },
                                            { UINT32_MAX, UINT32_MAX } };
    static const int64_t wishes[] = { -1, 0, RETRY_IN_MS };
    for (int place = 0; place < 6; place++)
        for (size_t a = 0; a < sizeof attempts / sizeof attempts[0]; a++)
            for (size_t w = 0; w < 3; w++) {
                const pawli_trial trial = { .returned = returned,
                                            .unknown = unknown,
                                            .attempt = attempts[a][0],
                                            .max_attempts = attempts[a][1],
                                            .timed_out = (place & 1) != 0,
                                            .pool_stopping = place >= 2,
                                            .told_pool = place >= 4,
                                            .retry_in_ms = wishes[w],
                                            .backoff_ms = BACKOFF_MS };
                check_one(&trial, expected(row_of(outcome), &trial));
            }
}

/* Goal: the table above holds for every outcome, and does not look at the policy for unknown ones. */
static void every_outcome_has_its_fate(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof drawn / sizeof drawn[0]; i++) {
        check_everywhere((int)drawn[i].outcome, PAWL_RETRY, drawn[i].outcome);
        check_everywhere((int)drawn[i].outcome, PAWL_FAILED, drawn[i].outcome);
    }
}

/* Goal: every other int, and an ending that says DETACHED, follows the policy. */
static void any_other_value_follows_the_policy(void **unused)
{
    (void)unused;
    static const int values[] = { PAWL_UNKNOWN, PAWL_DETACHED, 1, 2, 100, 108, 127, 255, -2,
                                  INT_MAX, INT_MIN };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        check_everywhere(values[i], PAWL_RETRY, PAWL_RETRY);
        check_everywhere(values[i], PAWL_FAILED, PAWL_FAILED);
    }
}

/* Goal: exactly the values of pawl_outcome are known; UNKNOWN is none of them. */
static void knows_the_outcomes(void **unused)
{
    (void)unused;
    for (int value = -300; value <= 300; value++) {
        bool known = value == 0 || (value >= PAWL_RETRY && value <= PAWL_DETACHED);
        assert_int_equal(pawli_outcome_is_known(value), known);
    }
    assert_false(pawli_outcome_is_known(INT_MIN));
    assert_false(pawli_outcome_is_known(INT_MAX));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_outcome_has_its_fate),
    cmocka_unit_test(any_other_value_follows_the_policy),
    cmocka_unit_test(knows_the_outcomes),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
