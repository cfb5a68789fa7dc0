/* operate.c - what an operator does: cancel, requeue, pause, resume. I8, and section "Cancel". */
#include <string.h>

#include "rig.h"

/* Puts a job into a state. */
static int64_t job_in(pool *p, const char *where)
{
    static int32_t priority; /* the newest is claimed first */
    if (strcmp(where, "later") == 0)
        return put_job(p, .available_at_ms = p->rig->now_ms + 60000);
    priority = (priority + 1) % 600;
    int64_t id = put_job(p, .priority = priority);
    if (strcmp(where, "pending") == 0)
        return id;
    pawli_claim *claim = pool_claim_one(p);
    assert_int_equal(claim->job, id);
    if (strcmp(where, "succeeded") == 0)
        assert_ok(pool_end(p, claim, succeeded()));
    if (strcmp(where, "failed") == 0)
        assert_ok(pool_end(p, claim, failed()));
    if (strcmp(where, "cancelled") == 0)
        assert_ok(pool_end(p, claim, cancelled()));
    if (strcmp(where, "waits for a retry") == 0)
        assert_ok(pool_end(p, claim, retried(60000)));
    return id;
}

/* Goal: what a cancel and a requeue answer in every state, and what they make of the job (I8). */
static void each_state_has_its_answer(void **state)
{
    static const struct {
        const char *where;
        pawl_status cancel;
        pawl_state cancel_to;
        pawl_status requeue;
        pawl_state requeue_to;
    } cases[] = {
        { "pending", PAWL_OK, PAWL_STATE_CANCELLED, PAWL_ERR_STATE, PAWL_STATE_PENDING },
        { "later", PAWL_OK, PAWL_STATE_CANCELLED, PAWL_ERR_STATE, PAWL_STATE_PENDING },
        { "waits for a retry", PAWL_OK, PAWL_STATE_CANCELLED, PAWL_ERR_STATE, PAWL_STATE_PENDING },
        { "running", PAWL_ACCEPTED, PAWL_STATE_RUNNING, PAWL_ERR_STATE, PAWL_STATE_RUNNING },
        { "succeeded", PAWL_ERR_STATE, PAWL_STATE_SUCCEEDED, PAWL_ERR_STATE, PAWL_STATE_SUCCEEDED },
        { "failed", PAWL_ERR_STATE, PAWL_STATE_FAILED, PAWL_OK, PAWL_STATE_PENDING },
        { "cancelled", PAWL_OK, PAWL_STATE_CANCELLED, PAWL_OK, PAWL_STATE_PENDING },
    };
    rig *r = *state;
    pool *p = &r->first;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int requeue = 0; requeue < 2; requeue++) {
            int64_t id = job_in(p, cases[i].where);
            pawl_status wanted = requeue ? cases[i].requeue : cases[i].cancel;
            pawl_status answer = pool_operate(p, requeue ? PAWLI_REQUEUE : PAWLI_CANCEL, id);
            pawl_state to = requeue ? cases[i].requeue_to : cases[i].cancel_to;
            if (answer != wanted || stored(p, id)->state != to)
                fail_msg("%s of \"%s\": answered %s, is %s", requeue ? "requeue" : "cancel",
                         cases[i].where, pawl_status_name(answer),
                         pawl_state_name(stored(p, id)->state));
        }
    assert_int_equal(pool_operate(p, PAWLI_CANCEL, INT64_MAX), PAWL_ERR_NOT_FOUND);
    assert_int_equal(pool_operate(p, PAWLI_CANCEL, 0), PAWL_ERR_NOT_FOUND);
    assert_int_equal(pool_operate(p, PAWLI_REQUEUE, -1), PAWL_ERR_NOT_FOUND);
}

/* Goal: many ids in one operation have each its own answer, in their order; one named twice is answered
 * as if asked twice. */
static void each_id_has_its_answer(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t done = job_in(p, "succeeded"), runs = job_in(p, "running"), waits = job_in(p, "pending");
    int64_t dead = job_in(p, "failed");
    const int64_t ids[] = { done, waits, 777777, runs, waits, dead, runs };
    static const pawl_status wanted[] = { PAWL_ERR_STATE, PAWL_OK,        PAWL_ERR_NOT_FOUND,
                                          PAWL_ACCEPTED,  PAWL_OK,        PAWL_ERR_STATE,
                                          PAWL_ACCEPTED };
    pawl_status each[7] = { PAWL_ERR_UNKNOWN };
    pawli_operation operation = { .type = PAWLI_CANCEL, .ids = ids, .count = 7, .each = each };
    pool_write(p, &(pawli_batch){ .operations = &operation });
    assert_ok(operation.status);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(each[i], wanted[i]);
}

/* ------------------------------------------------------------------------------ cancel */

/* Goal: what was cancelled before it started never starts, not even when it would fall due. */
static void a_cancelled_job_never_starts(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t pending = job_in(p, "pending"), later = job_in(p, "later");
    int64_t retry = job_in(p, "waits for a retry");
    assert_ok(pool_operate(p, PAWLI_CANCEL, pending));
    assert_ok(pool_operate(p, PAWLI_CANCEL, later));
    assert_ok(pool_operate(p, PAWLI_CANCEL, retry));
    rig_advance(r, 120000);
    assert_nothing_to_claim(p);
    assert_int_equal(outlook_of(p).claimable, 0);
    assert_stored(p, pending, PAWL_STATE_CANCELLED, 0);
    assert_stored(p, later, PAWL_STATE_CANCELLED, 0);
    assert_stored(p, retry, PAWL_STATE_CANCELLED, 1);
}

/* Goal: a job that is cancelled while it runs ends as cancelled however it ends, except that a success
 * stands; it is never started again. */
static void a_running_job_that_was_cancelled(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    const struct {
        pawli_verdict verdict;
        pawl_state to;
    } cases[] = {
        { succeeded(), PAWL_STATE_SUCCEEDED }, { failed(), PAWL_STATE_CANCELLED },
        { cancelled(), PAWL_STATE_CANCELLED }, { retried(0), PAWL_STATE_CANCELLED },
        { retried(90), PAWL_STATE_CANCELLED }, { snoozed(0), PAWL_STATE_CANCELLED },
        { released(), PAWL_STATE_CANCELLED },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t id = put_job(p, .kind = "a");
        pawli_claim *claim = pool_claim_one(p);
        assert_int_equal(pool_operate(p, PAWLI_CANCEL, id), PAWL_ACCEPTED);
        assert_true(stored(p, id)->cancel_requested);
        assert_stored(p, id, PAWL_STATE_RUNNING, 1);
        pawli_ending ending = ending_of(claim, cases[i].verdict);
        pool_write(p, &(pawli_batch){ .endings = &ending });
        assert_ok(ending.status);
        assert_int_equal(ending.settled, cases[i].to);
        assert_int_equal(stored(p, id)->state, cases[i].to);
        assert_false(stored(p, id)->cancel_requested);
        rig_advance(r, 100);
        assert_nothing_to_claim(p);
    }
}

static size_t cancels_of(pool *p, int64_t *jobs, size_t capacity)
{
    size_t count = SIZE_MAX;
    assert_ok(p->store->ops->cancels(p->store, jobs, capacity, &count));
    assert_true(count <= capacity);
    return count;
}

/* Goal: the holder of a cancelled job is told which one, by whoever it was cancelled; others are not. */
static void the_holder_is_told(void **state)
{
    rig *r = *state;
    int64_t told[4];
    pool_open(r, &r->second, "second");
    assert_int_equal(cancels_of(&r->first, told, 4), 0);
    int64_t mine = put_job(&r->first, .kind = "a");
    (void)pool_claim_one(&r->first);
    int64_t untouched = put_job(&r->first, .kind = "a");
    (void)pool_claim_one(&r->first);
    int64_t theirs = put_job(&r->first, .kind = "a");
    (void)pool_claim_one(&r->second);
    (void)untouched;
    assert_int_equal(pool_operate(&r->second, PAWLI_CANCEL, mine), PAWL_ACCEPTED);
    assert_int_equal(cancels_of(&r->second, told, 4), 0);
    assert_int_equal(cancels_of(&r->first, told, 4), 1);
    assert_int_equal(told[0], mine);
    assert_int_equal(pool_operate(&r->first, PAWLI_CANCEL, theirs), PAWL_ACCEPTED);
    assert_int_equal(cancels_of(&r->second, told, 4), 1);
    assert_int_equal(told[0], theirs);
}

/* Goal: a pool that left and joined again hears of cancels anew. */
static void a_holder_that_joins_again_is_told(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t told[4];
    for (int round = 0; round < 3; round++) {
        int64_t id = put_job(p, .kind = "a");
        pawli_claim *claim = pool_claim_one(p);
        assert_int_equal(pool_operate(p, PAWLI_CANCEL, id), PAWL_ACCEPTED);
        assert_int_equal(cancels_of(p, told, 4), 1);
        assert_int_equal(told[0], id);
        assert_ok(pool_end(p, claim, cancelled()));
        assert_ok(p->store->ops->leave(p->store, r->now_ms));
        int64_t before = p->holder.id;
        assert_ok(p->store->ops->join(p->store, &p->holder, r->now_ms));
        assert_int_not_equal(p->holder.id, before);
    }
}

/* Goal: more cancels than fit into one answer are all told in the end. */
static void no_cancel_is_left_out(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pawli_new_job jobs[5] = { 0 };
    int64_t told[3];
    size_t count;
    pool_enqueue(p, jobs, 5);
    pawli_claim *claims = pool_claim(p, 5, &count);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(pool_operate(p, PAWLI_CANCEL, jobs[i].id), PAWL_ACCEPTED);
    bool heard[5] = { false };
    while ((count = cancels_of(p, told, 3)) > 0)
        for (size_t i = 0; i < count; i++)
            for (pawli_claim *c = claims, *next; c != NULL; c = next) {
                next = c->next;
                if (c->job != told[i])
                    continue;
                heard[told[i] - jobs[0].id] = true;
                (void)pool_end(p, c, cancelled()); /* so that there is room for others */
            }
    for (size_t i = 0; i < 5; i++)
        assert_true(heard[i]);
}

/* ----------------------------------------------------------------------------- requeue */

/* Goal: a requeued job is due now with no attempts, with the same id, key, priority, age and last error,
 * and with a fence that goes on (I5, I8). */
static void a_requeue_starts_anew(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pawli_new_job job = { .key = "k", .key_bytes = 1, .priority = 4, .max_attempts = 2 };
    int64_t id = pool_put(p, &job), created = r->now_ms;
    uint64_t fence = 0;
    for (int round = 0; round < 3; round++) {
        for (uint32_t attempt = 1; attempt <= 2; attempt++) {
            pawli_claim *claim = pool_claim_one(p);
            assert_int_equal(claim->attempt, attempt);
            assert_true(claim->fence > fence);
            fence = claim->fence;
            pawli_ending ending = ending_of(claim, retried(0));
            ending.error = "broken";
            ending.error_bytes = 6;
            pool_write(p, &(pawli_batch){ .endings = &ending });
            assert_ok(ending.status);
        }
        assert_stored(p, id, PAWL_STATE_FAILED, 2);
        rig_advance(r, 1000);
        assert_ok(pool_operate(p, PAWLI_REQUEUE, id));
        const pawl_job_info *info = stored(p, id);
        assert_stored(p, id, PAWL_STATE_PENDING, 0);
        assert_int_equal(info->available_at_ms, r->now_ms);
        assert_int_equal(info->created_at_ms, created);
        assert_int_equal(info->priority, 4);
        assert_int_equal(info->finished_at_ms, 0);
        assert_int_equal(info->idempotency_key_bytes, 1);
        assert_string_equal(info->last_error, "broken");
        assert_int_equal(info->fence, fence);
        assert_int_equal(outlook_of(p).claimable, 1);
    }
}

/* Goal: the end of a claim from before the requeue is refused (I6). */
static void a_requeue_does_not_revive_old_claims(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t id = put_job(p, .kind = "a");
    pawli_claim *old = pool_claim_one(p);
    assert_ok(pool_end(p, old, failed()));
    assert_ok(pool_operate(p, PAWLI_REQUEUE, id));
    assert_int_equal(pool_end(p, old, succeeded()), PAWL_ERR_LEASE_LOST);
    pawli_claim *live = pool_claim_one(p);
    assert_int_equal(pool_end(p, old, succeeded()), PAWL_ERR_LEASE_LOST);
    assert_stored(p, id, PAWL_STATE_RUNNING, 1);
    assert_ok(pool_end(p, live, succeeded()));
}

/* ----------------------------------------------------------------------- pause, resume */

/* Goal: a paused queue gives nothing out, for every pool and over a new opening, until it is resumed;
 * what runs may end, and other queues go on. Asked twice is asked once. */
static void a_paused_queue_gives_nothing_out(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t before = put_job(p, .queue = "q", .priority = 9);
    int64_t running = put_job(p, .queue = "q", .priority = 10);
    pawli_claim *claim = pool_claim_one(p);
    assert_int_equal(claim->job, running);
    pool_switch(p, PAWLI_PAUSE, "q");
    pool_switch(p, PAWLI_PAUSE, "q");
    int64_t fresh = put_job(p, .queue = "q", .kind = "b"); /* a lane that is new */
    int64_t other = put_job(p, .queue = "q2");
    assert_int_equal(outlook_of(p).claimable, 1);
    pool_open(r, &r->second, "second");
    assert_int_equal(pool_claim_one(&r->second)->job, other);
    assert_nothing_to_claim(&r->second);
    assert_nothing_to_claim(p);
    assert_ok(pool_end(p, claim, succeeded()));
    pool_reopen(p);
    assert_nothing_to_claim(p);
    pool_switch(&r->second, PAWLI_RESUME, "q");
    pool_switch(&r->second, PAWLI_RESUME, "q");
    assert_int_equal(pool_claim_one(p)->job, before);
    assert_int_equal(pool_claim_one(&r->second)->job, fresh);
}

/* Goal: a queue may be paused before its first job. */
static void an_unknown_queue_can_be_paused(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pool_switch(p, PAWLI_PAUSE, "future");
    pool_switch(p, PAWLI_RESUME, "never paused");
    int64_t id = put_job(p, .queue = "future");
    assert_nothing_to_claim(p);
    pool_switch(p, PAWLI_RESUME, "future");
    assert_int_equal(pool_claim_one(p)->job, id);
}

static const struct CMUnitTest tests[] = {
    STORE_TEST(each_state_has_its_answer),
    STORE_TEST(each_id_has_its_answer),
    STORE_TEST(a_cancelled_job_never_starts),
    STORE_TEST(a_running_job_that_was_cancelled),
    STORE_TEST(the_holder_is_told),
    STORE_TEST(a_holder_that_joins_again_is_told),
    STORE_TEST(no_cancel_is_left_out),
    STORE_TEST(a_requeue_starts_anew),
    STORE_TEST(a_requeue_does_not_revive_old_claims),
    STORE_TEST(a_paused_queue_gives_nothing_out),
    STORE_TEST(an_unknown_queue_can_be_paused),
};

const suite suite_operate = SUITE(tests, "operate");
