/* job_state_test.c - the states of a job and the moves between them. */
#include "job_state.h"

#include "check.h"

/* From the row to the column: pending, running, succeeded, failed, cancelled, blocked. */
static const bool drawn[PAWLI_STATE_COUNT][PAWLI_STATE_COUNT] = {
    [PAWL_STATE_PENDING] = { 0, 1, 0, 0, 1, 0 },
    [PAWL_STATE_RUNNING] = { 1, 0, 1, 1, 1, 0 },
    [PAWL_STATE_SUCCEEDED] = { 0, 0, 0, 0, 0, 0 },
    [PAWL_STATE_FAILED] = { 1, 0, 0, 0, 0, 0 },
    [PAWL_STATE_CANCELLED] = { 1, 0, 0, 0, 0, 0 },
    [PAWL_STATE_BLOCKED] = { 1, 0, 0, 0, 1, 0 },
};

/* Goal: the table allows exactly the moves drawn above. */
static void allows_only_the_drawn_moves(void **unused)
{
    (void)unused;
    for (unsigned from = 0; from < PAWLI_STATE_COUNT; from++)
        for (unsigned to = 0; to < PAWLI_STATE_COUNT; to++)
            if (pawli_state_may_move((pawl_state)from, (pawl_state)to) != drawn[from][to])
                fail_msg("from %s to %s", pawl_state_name((pawl_state)from),
                         pawl_state_name((pawl_state)to));
}

/* Goal: what has ended is final, and from there only a requeue leads back to pending (I8). */
static void what_has_ended_is_final(void **unused)
{
    (void)unused;
    static const bool final[PAWLI_STATE_COUNT] = { [PAWL_STATE_SUCCEEDED] = true,
                                                   [PAWL_STATE_FAILED] = true,
                                                   [PAWL_STATE_CANCELLED] = true };
    for (unsigned state = 0; state < PAWLI_STATE_COUNT; state++) {
        assert_int_equal(pawli_state_is_final((pawl_state)state), final[state]);
        for (unsigned to = 0; final[state] && to < PAWLI_STATE_COUNT; to++)
            assert_true(to == PAWL_STATE_PENDING
                        || !pawli_state_may_move((pawl_state)state, (pawl_state)to));
    }
}

/* Goal: every state has the name that the view shows; anything else has one too. */
static void every_state_has_a_name(void **unused)
{
    (void)unused;
    static const char *const names[PAWLI_STATE_COUNT] = { "pending",   "running", "succeeded",
                                                          "failed",    "cancelled", "blocked" };
    for (unsigned state = 0; state < PAWLI_STATE_COUNT; state++)
        assert_string_equal(pawl_state_name((pawl_state)state), names[state]);
    assert_string_equal(pawl_state_name((pawl_state)PAWLI_STATE_COUNT), "unknown state");
    assert_string_equal(pawl_state_name((pawl_state)1000000), "unknown state");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(allows_only_the_drawn_moves),
    cmocka_unit_test(what_has_ended_is_final),
    cmocka_unit_test(every_state_has_a_name),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
