/* finalize.c - how claims end and leases are extended: I6, I7, I9, I13. */
#include <string.h>

#include "rig.h"

/* Goal: every ending leaves the job as the verdict says, with its attempts, its time and its trace. */
static void every_ending_leaves_its_mark(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    const struct {
        pawli_verdict verdict;
        uint32_t attempts;
        int64_t later_ms;
        const char *trace, *error;
    } cases[] = {
        { succeeded(), 1, 0, "", NULL },
        { failed(), 1, 0, "failed", "no such address" },
        { cancelled(), 1, 0, "cancelled", NULL },
        { retried(5000), 1, 5000, "retry", "connection refused" },
        { retried(0), 1, 0, "retry", "\xE2\x82\xAC" },
        { snoozed(7000), 0, 7000, "snoozed-", NULL },
        { released(), 0, 0, "released-", NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t id = put_job(p, .priority = (int32_t)i + 1);
        pawli_claim *claim = pool_claim_one(p);
        assert_int_equal(claim->job, id);
        rig_advance(r, 10);
        pawli_ending ending = ending_of(claim, cases[i].verdict);
        ending.error = cases[i].error;
        ending.error_bytes = cases[i].error != NULL ? strlen(cases[i].error) : 0;
        pool_write(p, &(pawli_batch){ .endings = &ending });
        assert_ok(ending.status);
        assert_int_equal(ending.settled, cases[i].verdict.to);
        const pawl_job_info *info = stored(p, id);
        assert_stored(p, id, cases[i].verdict.to, cases[i].attempts);
        assert_int_equal(info->updated_at_ms, r->now_ms);
        assert_int_equal(info->lease_until_ms, 0);
        bool ended = cases[i].verdict.to != PAWL_STATE_PENDING;
        assert_int_equal(info->finished_at_ms, ended ? r->now_ms : 0);
        if (!ended)
            assert_int_equal(info->available_at_ms, r->now_ms + cases[i].later_ms);
        assert_int_equal(info->fence, claim->fence); /* shown until the next claim */
        if (cases[i].error != NULL)
            assert_string_equal(info->last_error, cases[i].error);
        else
            assert_null(info->last_error);
        assert_string_equal(r->kind->attempts(rig_path(r), id), cases[i].trace);
    }
}

/* Goal: an ending that does not say an error keeps the last one. */
static void the_last_error_is_kept(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t id = put_job(p, .max_attempts = 9);
    const pawli_verdict silent[] = { snoozed(0), released(), retried(0) };
    pawli_ending ending = ending_of(pool_claim_one(p), retried(0));
    ending.error = "first";
    ending.error_bytes = 5;
    pool_write(p, &(pawli_batch){ .endings = &ending });
    for (size_t i = 0; i < 3; i++) {
        assert_ok(pool_end(p, pool_claim_one(p), silent[i]));
        assert_string_equal(stored(p, id)->last_error, "first");
    }
}

/* ------------------------------------------------------------------- the holder only */

/* Tries every write that a claim may make, with a claim that is not held. */
static void assert_refused(pool *p, const pawli_claim *claim)
{
    const pawli_verdict verdicts[] = { succeeded(), failed(), cancelled(), released(), retried(0),
                                       snoozed(5) };
    pawli_claim copy = *claim;
    for (size_t i = 0; i < sizeof verdicts / sizeof verdicts[0]; i++) {
        pawli_ending ending = { .claim = &copy, .verdict = verdicts[i], .error = "stale",
                                .error_bytes = 5 };
        pool_write(p, &(pawli_batch){ .endings = &ending });
        assert_int_equal(ending.status, PAWL_ERR_LEASE_LOST);
    }
    pawli_heartbeat beat = { .claim = &copy };
    pool_write(p, &(pawli_batch){ .heartbeats = &beat });
    assert_int_equal(beat.status, PAWL_ERR_LEASE_LOST);
}

static void assert_unchanged(pool *p, const pawl_job_info *before)
{
    const pawl_job_info *now = stored(p, before->id);
    assert_int_equal(now->state, before->state);
    assert_int_equal(now->attempts, before->attempts);
    assert_int_equal(now->fence, before->fence);
    assert_int_equal(now->updated_at_ms, before->updated_at_ms);
    assert_int_equal(now->available_at_ms, before->available_at_ms);
    assert_int_equal(now->lease_until_ms, before->lease_until_ms);
    assert_int_equal(now->last_error == NULL, before->last_error == NULL);
}

/* Goal: nothing but the fence of the live claim ends or extends it, and a try changes nothing (I6). */
static void only_the_fence_of_the_claim_counts(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t id = put_job(p, .max_attempts = 9);
    (void)put_job(p, .kind = "b");
    pawli_claim *old = pool_claim_one(p);
    pawli_claim *other = pool_claim_one(p);
    assert_ok(pool_end(p, old, retried(0)));
    assert_refused(p, old); /* pending */
    pawli_claim *live = pool_claim_one(p);
    assert_int_equal(live->job, id);
    const uint64_t wrong[] = { 0, 1, live->fence - 1, live->fence + 1, other->fence, UINT64_MAX / 2 };
    const pawl_job_info *before = stored(p, id);
    rig_advance(r, 1000);
    assert_refused(p, old);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pawli_claim forged = *live;
        forged.fence = wrong[i];
        if (wrong[i] != live->fence)
            assert_refused(p, &forged);
    }
    assert_unchanged(p, before);
    assert_string_equal(r->kind->attempts(rig_path(r), id), "retry");
    assert_ok(pool_end(p, live, succeeded()));
    assert_refused(p, live);
    assert_stored(p, id, PAWL_STATE_SUCCEEDED, 2);
    pawli_claim of_nobody = *live;
    of_nobody.job = INT64_MAX;
    assert_refused(p, &of_nobody);
}

/* Goal: a claim ends once: of two endings in one batch or in two the first stands (I7). */
static void a_claim_ends_once(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    const pawli_verdict verdicts[] = { succeeded(), failed(), retried(9000), released() };
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++) {
            int64_t id = put_job(p, .priority = (int32_t)(i * 4 + j) + 1);
            pawli_claim *claim = pool_claim_one(p);
            assert_int_equal(claim->job, id);
            pawli_ending twice[2] = { ending_of(claim, verdicts[i]), ending_of(claim, verdicts[j]) };
            twice[0].next = &twice[1];
            pool_write(p, &(pawli_batch){ .endings = twice });
            assert_ok(twice[0].status);
            assert_int_equal(twice[1].status, PAWL_ERR_LEASE_LOST);
            assert_int_equal(pool_end(p, claim, verdicts[j]), PAWL_ERR_LEASE_LOST);
            assert_int_equal(stored(p, id)->state, verdicts[i].to);
        }
}

/* Goal: a job is started exactly max_attempts times for good; what was released or snoozed does not
 * count, and a verdict that would go on is stopped there (I9). */
static void attempts_are_used_up_exactly(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    static const uint32_t limits[] = { 1, 2, 5 };
    for (size_t i = 0; i < 3; i++) {
        int64_t id = put_job(p, .max_attempts = limits[i]);
        uint32_t charged = 0;
        for (int start = 0; stored(p, id)->state == PAWL_STATE_PENDING; start++) {
            pawli_claim *claim = pool_claim_one(p);
            assert_int_equal(claim->attempt, charged + 1);
            assert_int_equal(stored(p, id)->attempts, charged + 1);
            bool free_of_charge = start % 2 == 0;
            charged += !free_of_charge;
            assert_ok(pool_end(p, claim, !free_of_charge ? retried(0)
                                         : start % 4 == 0 ? released()
                                                          : snoozed(0)));
            assert_int_equal(stored(p, id)->attempts, charged);
            assert_true(charged <= limits[i]);
        }
        assert_stored(p, id, PAWL_STATE_FAILED, limits[i]);
        assert_nothing_to_claim(p);
    }
}

/* ------------------------------------------------------------------------- not early */

/* Goal: a delay is kept to the millisecond: after a retry, a snooze and an enqueue (I13). */
static void nothing_starts_early(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    for (int how = 0; how < 3; how++) {
        int64_t due = r->now_ms + 5000;
        int64_t id = how == 2 ? put_job(p, .available_at_ms = due) : put_job(p, .priority = 3);
        if (how < 2)
            assert_ok(pool_end(p, pool_claim_one(p), how == 0 ? retried(5000) : snoozed(5000)));
        assert_int_equal(stored(p, id)->available_at_ms, due);
        static const int64_t steps[] = { 0, 4000, 999 };
        for (size_t i = 0; i < 3; i++) {
            rig_advance(r, steps[i]);
            assert_nothing_to_claim(p);
            assert_int_equal(outlook_of(p).claimable, 0);
            assert_int_equal(outlook_of(p).next_due_ms, due);
        }
        rig_advance(r, 1);
        pawli_claim *claim = pool_claim_one(p);
        assert_int_equal(claim->job, id);
        assert_ok(pool_end(p, claim, succeeded()));
        assert_int_equal(outlook_of(p).next_due_ms, PAWLI_NEVER);
    }
}

/* Goal: when one job falls due, others that are due a moment later stay where they are (I13). */
static void each_falls_due_by_itself(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pawli_new_job jobs[3] = { { .available_at_ms = r->now_ms + 1002 },
                              { .available_at_ms = r->now_ms + 1000 },
                              { .available_at_ms = r->now_ms + 1001 } };
    static const size_t order[] = { 1, 2, 0 };
    pool_enqueue(p, jobs, 3);
    rig_advance(r, 999);
    for (size_t i = 0; i < 3; i++) {
        rig_advance(r, 1);
        assert_int_equal(pool_claim_one(p)->job, jobs[order[i]].id);
        assert_nothing_to_claim(p);
        assert_int_equal(outlook_of(p).next_due_ms, i < 2 ? r->now_ms + 1 : PAWLI_NEVER);
    }
}

/* Goal: a delay beyond the end of time ends there, and nothing overflows (T2). */
static void a_delay_without_end_is_the_last_day(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t id = put_job(p, .kind = "a");
    assert_ok(pool_end(p, pool_claim_one(p), retried(INT64_MAX)));
    assert_int_equal(stored(p, id)->available_at_ms, PAWLI_TIME_MAX_MS);
    assert_nothing_to_claim(p);
}

/* Goal: a job that fell due takes its old place: priority, then id, not the time it fell due (I14). */
static void what_falls_due_takes_its_old_place(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t late = put_job(p, .available_at_ms = r->now_ms + 2000);
    int64_t soon = put_job(p, .available_at_ms = r->now_ms + 1000);
    int64_t now = put_job(p, .kind = "b");
    int64_t urgent = put_job(p, .available_at_ms = r->now_ms + 3000, .priority = 1);
    rig_advance(r, 3000);
    const int64_t order[] = { urgent, late, soon, now };
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pool_claim_one(p)->job, order[i]);
}

/* Goal: however many fall due at once, all of them become ready in bounded steps, and the store says as
 * long as there are more (I10, I23). */
static void many_fall_due_in_steps(void **state)
{
    enum { MANY = 1700 };
    static pawli_new_job jobs[MANY];
    rig *r = *state;
    pool *p = &r->first;
    memset(jobs, 0, sizeof jobs);
    for (size_t i = 0; i < MANY; i++)
        jobs[i].available_at_ms = r->now_ms + 1 + (int64_t)i % 3;
    pool_enqueue(p, jobs, MANY);
    assert_int_equal(outlook_of(p).claimable, 0);
    rig_advance(r, 3);
    int steps = 0;
    while (outlook_of(p).next_due_ms <= r->now_ms || outlook_of(p).more) {
        pool_idle(p);
        steps++;
        assert_true(steps < MANY);
    }
    assert_int_equal(outlook_of(p).claimable, MANY);
    assert_true(steps > 1);
}

/* ----------------------------------------------------------------------------- leases */

/* Goal: a heartbeat extends the lease from now, on both clocks, and nothing else. */
static void a_heartbeat_extends_the_lease(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t id = put_job(p, .kind = "a");
    pawli_claim *claim = pool_claim_one(p);
    static const int64_t steps[] = { 0, LEASE_MS / 3, LEASE_MS - 1, LEASE_MS, 10 * LEASE_MS };
    for (size_t i = 0; i < 5; i++) { /* past its end too: nobody has taken it */
        rig_advance(r, steps[i]);
        pawli_heartbeat beat = { .claim = claim };
        pool_write(p, &(pawli_batch){ .heartbeats = &beat });
        assert_ok(beat.status);
        assert_int_equal(beat.lease_boot_ms, r->boot_ms + LEASE_MS);
        assert_int_equal(stored(p, id)->lease_until_ms, r->now_ms + LEASE_MS);
        assert_stored(p, id, PAWL_STATE_RUNNING, 1);
    }
    rig_advance(r, 2 * LEASE_MS);
    assert_ok(pool_end(p, claim, succeeded())); /* the fence alone decides */
}

/* Goal: who ends its claim and extends it in one batch has ended it: endings come first. */
static void a_heartbeat_behind_the_ending_is_late(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t id = put_job(p, .kind = "a");
    pawli_claim *claim = pool_claim_one(p);
    pawli_ending ending = ending_of(claim, succeeded());
    pawli_heartbeat beat = { .claim = claim };
    pool_write(p, &(pawli_batch){ .endings = &ending, .heartbeats = &beat });
    assert_ok(ending.status);
    assert_int_equal(beat.status, PAWL_ERR_LEASE_LOST);
    assert_stored(p, id, PAWL_STATE_SUCCEEDED, 1);
}

/* Goal: what one ending sets free can be claimed in the same batch (endings come first). */
static void what_is_set_free_is_claimed_at_once(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t id = put_job(p, .max_attempts = 9);
    pawli_ending ending = ending_of(pool_claim_one(p), retried(0));
    pawli_batch batch = { .endings = &ending, .claim_max = 1 };
    pool_write(p, &batch);
    assert_ok(ending.status);
    assert_int_equal(batch.claimed_count, 1);
    assert_int_equal(batch.claimed->job, id);
    assert_int_equal(batch.claimed->attempt, 2);
    assert_true(batch.claimed->fence > ending.claim->fence);
}

static const struct CMUnitTest tests[] = {
    STORE_TEST(every_ending_leaves_its_mark),
    STORE_TEST(the_last_error_is_kept),
    STORE_TEST(only_the_fence_of_the_claim_counts),
    STORE_TEST(a_claim_ends_once),
    STORE_TEST(attempts_are_used_up_exactly),
    STORE_TEST(nothing_starts_early),
    STORE_TEST(each_falls_due_by_itself),
    STORE_TEST(a_delay_without_end_is_the_last_day),
    STORE_TEST(what_falls_due_takes_its_old_place),
    STORE_TEST(many_fall_due_in_steps),
    STORE_TEST(a_heartbeat_extends_the_lease),
    STORE_TEST(a_heartbeat_behind_the_ending_is_late),
    STORE_TEST(what_is_set_free_is_claimed_at_once),
};

const suite suite_finalize = SUITE(tests, "finalize");
