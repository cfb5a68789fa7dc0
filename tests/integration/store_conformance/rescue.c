/* rescue.c - holders, and taking back the claims of those that are dead or silent: I6, I9, I11, I12. */
#include <string.h>

#include "rig.h"

#define STALE_MS (2 * LEASE_MS)

static pawli_rescue rescue_of(const pool *dead, const uint64_t *started, size_t count)
{
    return (pawli_rescue){ .holder = dead->holder.id, .has_record = true, .started = started,
                           .started_count = count };
}

static size_t survey_of(pool *p, pawli_holder *holders, size_t capacity, int64_t *expires)
{
    size_t count = SIZE_MAX;
    assert_ok(p->store->ops->survey(p->store, p->rig->boot_ms, 0, holders, capacity, &count, expires));
    assert_true(count <= capacity);
    return count;
}

/* -------------------------------------------------------------------------- the holders */

/* Goal: each pool sees the others that have not left, as they described themselves. */
static void holders_see_each_other(void **state)
{
    rig *r = *state;
    pawli_holder seen[4];
    int64_t expires;
    assert_int_equal(survey_of(&r->first, seen, 4, &expires), 0);
    pool_open(r, &r->second, "second");
    assert_int_not_equal(r->first.holder.id, r->second.holder.id);
    assert_int_equal(survey_of(&r->first, seen, 4, &expires), 1);
    assert_true(expires > r->boot_ms);
    assert_int_equal(seen[0].id, r->second.holder.id);
    assert_string_equal(seen[0].name, "second");
    assert_string_equal(seen[0].side, "second.side");
    assert_string_equal(seen[0].boot, "boot-of-second");
    assert_int_equal(seen[0].pid, 100);
    assert_int_equal(seen[0].started, 200);
    assert_int_equal(seen[0].pid_space, 300);
    assert_int_equal(survey_of(&r->second, seen, 4, &expires), 1);
    assert_int_equal(seen[0].id, r->first.holder.id);
    assert_ok(r->second.store->ops->leave(r->second.store, r->now_ms));
    assert_int_equal(survey_of(&r->first, seen, 4, &expires), 0);
    assert_ok(r->second.store->ops->leave(r->second.store, r->now_ms)); /* once more is nothing */
}

/* Goal: more holders than fit into one answer come page by page, in the order of their ids. */
static void holders_come_in_pages(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pool_open(r, &r->second, "second");
    for (int i = 0; i < 6; i++)
        pool_reopen(&r->second); /* a new holder each time; nobody has signed the old ones off */
    pawli_holder seen[3];
    int64_t after = 0;
    size_t count, total = 0;
    int64_t expires;
    do {
        assert_ok(p->store->ops->survey(p->store, r->boot_ms, after, seen, 3, &count, &expires));
        for (size_t i = 0; i < count; i++) {
            assert_true(seen[i].id > after);
            assert_int_not_equal(seen[i].id, p->holder.id);
            after = seen[i].id;
        }
        total += count;
    } while (count == 3);
    assert_int_equal(total, 7);
    assert_int_equal(after, r->second.holder.id);
}

/* Goal: who has left is still named as the one that ran a job. */
static void who_has_left_is_remembered(void **state)
{
    rig *r = *state;
    pool_open(r, &r->second, "second");
    int64_t id = put_job(&r->first, .kind = "a");
    assert_ok(pool_end(&r->second, pool_claim_one(&r->second), succeeded()));
    assert_ok(r->second.store->ops->leave(r->second.store, r->now_ms));
    assert_string_equal(stored(&r->first, id)->claimed_by, "second");
}

/* Goal: opening a store, joining, surveying and leaving take nothing from anybody (I12). */
static void opening_resets_nothing(void **state)
{
    rig *r = *state;
    pool_open(r, &r->second, "second");
    int64_t id = put_job(&r->first, .kind = "a");
    pawli_claim *claim = pool_claim_one(&r->second);
    for (int i = 0; i < 3; i++) {
        pawli_holder seen[8];
        int64_t expires;
        pool_reopen(&r->first);
        (void)survey_of(&r->first, seen, 8, &expires);
        pool_write(&r->first, &(pawli_batch){ .sweep = true, .claim_max = 5, .prune_max = 100 });
        assert_ok(r->first.store->ops->leave(r->first.store, r->now_ms));
    }
    assert_stored(&r->first, id, PAWL_STATE_RUNNING, 1);
    assert_ok(pool_end(&r->second, claim, succeeded()));
}

/* --------------------------------------------------------------------------- the dead */

/* Goal: of a dead holder's claims those that ran are charged and wait for the backoff of one failure less,
 * those that did not are due at once, uncharged; the holder is gone from the survey; its late endings are
 * refused. */
static void a_dead_holders_claims_come_back(void **state)
{
    rig *r = *state;
    pool *alive = &r->first, *dead = &r->second;
    pawli_holder seen[4];
    int64_t expires;
    size_t count;
    pool_open(r, dead, "second");
    pawli_new_job jobs[3] = { { .priority = 3 }, { .priority = 2 }, { .priority = 1, .kind = "b" } };
    pool_enqueue(alive, jobs, 3);
    assert_ok(pool_end(alive, pool_claim_one(alive), retried(0))); /* its second death will be seen */
    pawli_claim *ran = pool_claim(dead, 2, &count), *waited = ran->next;
    pawli_claim *mine = pool_claim_one(alive);
    rig_advance(r, 5);
    pawli_rescue rescue = rescue_of(dead, &ran->fence, 1);
    pawli_batch batch = { .rescues = &rescue };
    pool_write(alive, &batch);
    assert_ok(rescue.status);
    assert_int_equal(batch.rescued, 2);
    assert_stored(alive, jobs[0].id, PAWL_STATE_PENDING, 2);
    assert_int_equal(stored(alive, jobs[0].id)->available_at_ms, r->now_ms + BACKOFF_MS);
    assert_text_has(stored(alive, jobs[0].id)->last_error, "died");
    assert_stored(alive, jobs[1].id, PAWL_STATE_PENDING, 0);
    assert_int_equal(stored(alive, jobs[1].id)->available_at_ms, r->now_ms);
    assert_null(stored(alive, jobs[1].id)->last_error);
    assert_stored(alive, jobs[2].id, PAWL_STATE_RUNNING, 1);
    assert_string_equal(r->kind->attempts(rig_path(r), jobs[0].id), "retry, rescued");
    assert_string_equal(r->kind->attempts(rig_path(r), jobs[1].id), "rescued-");
    assert_int_equal(survey_of(alive, seen, 4, &expires), 0);
    assert_int_equal(pool_end(dead, ran, succeeded()), PAWL_ERR_LEASE_LOST);
    assert_int_equal(pool_end(dead, waited, succeeded()), PAWL_ERR_LEASE_LOST);
    assert_ok(pool_end(alive, mine, succeeded()));
    pawli_claim *again = pool_claim_one(alive);
    assert_int_equal(again->job, jobs[1].id);
    assert_int_equal(again->attempt, 1);
    assert_true(again->fence > waited->fence);
    rig_advance(r, BACKOFF_MS);
    assert_int_equal(pool_claim_one(alive)->attempt, 3);
}

/* Goal: what was claimed once more after a rescue is not taken a second time by the first one's proof. */
static void a_rescue_is_done_once(void **state)
{
    rig *r = *state;
    pool *alive = &r->first, *dead = &r->second;
    pool_open(r, dead, "second");
    int64_t id = put_job(alive, .kind = "a");
    pawli_claim *lost = pool_claim_one(dead);
    pawli_rescue rescue = rescue_of(dead, NULL, 0);
    pool_write(alive, &(pawli_batch){ .rescues = &rescue });
    pawli_claim *mine = pool_claim_one(alive);
    pawli_rescue twice = rescue_of(dead, &lost->fence, 1);
    pawli_batch batch = { .rescues = &twice };
    pool_write(alive, &batch);
    assert_int_equal(batch.rescued, 0);
    assert_stored(alive, id, PAWL_STATE_RUNNING, 1);
    assert_ok(pool_end(alive, mine, succeeded()));
}

/* Goal: a job whose process dies at every start ends as failed with a reason, after exactly max_attempts
 * starts, rescued by whoever is there, of whatever kind (I9, I23). */
static void a_deadly_job_fails_in_the_end(void **state)
{
    rig *r = *state;
    pool *alive = &r->first, *dead = &r->second;
    pool_open(r, dead, "second");
    int64_t id = put_job(alive, .max_attempts = 3);
    uint32_t starts = 0;
    while (stored(alive, id)->state == PAWL_STATE_PENDING) {
        pawli_claim *claim = pool_claim_one(dead);
        pawli_rescue rescue = rescue_of(dead, &claim->fence, 1);
        pool_write(alive, &(pawli_batch){ .rescues = &rescue });
        if (stored(alive, id)->state == PAWL_STATE_PENDING) /* one failure less than it has had */
            assert_int_equal(stored(alive, id)->available_at_ms, r->now_ms + BACKOFF_MS * starts);
        starts++;
        rig_advance(r, 10 * BACKOFF_MS);
        pool_reopen(dead);
    }
    assert_int_equal(starts, 3);
    assert_stored(alive, id, PAWL_STATE_FAILED, 3);
    assert_non_null(stored(alive, id)->last_error);
    assert_string_equal(r->kind->attempts(rig_path(r), id), "rescued, rescued, rescued");
}

/* Goal: when it is not known which of a dead holder's claims ran, none is charged, but each only ten
 * times: the job that kills every process ends as failed too (I9). */
static void a_bystander_is_spared_ten_times(void **state)
{
    rig *r = *state;
    pool *alive = &r->first, *dead = &r->second;
    pool_open(r, dead, "second");
    int64_t id = put_job(alive, .max_attempts = 2);
    uint32_t starts = 0;
    while (stored(alive, id)->state == PAWL_STATE_PENDING) {
        rig_advance(r, 10 * BACKOFF_MS);
        assert_int_equal(pool_claim_one(dead)->job, id);
        starts++;
        pawli_rescue rescue = { .holder = dead->holder.id };
        pool_write(alive, &(pawli_batch){ .rescues = &rescue });
        assert_true(rescue.complete);
        uint32_t charged = starts <= 10 ? 0 : starts - 10;
        assert_int_equal(stored(alive, id)->attempts, charged);
        if (starts <= 10)
            assert_int_equal(stored(alive, id)->available_at_ms, r->now_ms);
        pool_reopen(dead);
    }
    assert_int_equal(starts, 12);
    assert_stored(alive, id, PAWL_STATE_FAILED, 2);
    assert_ok(pool_operate(alive, PAWLI_REQUEUE, id)); /* counts anew */
    (void)pool_claim_one(dead);
    pawli_rescue rescue = { .holder = dead->holder.id };
    pool_write(alive, &(pawli_batch){ .rescues = &rescue });
    assert_stored(alive, id, PAWL_STATE_PENDING, 0);
}

/* Goal: of claims that no thread runs, those up to the last one that started have returned and are charged, those
 * that were given back before and those that came later are not; if another job is known to be to blame, only it
 * is charged. */
static void what_has_returned_is_charged(void **state)
{
    rig *r = *state;
    pool *alive = &r->first, *dead = &r->second;
    size_t count;
    for (int noted = 0; noted < 2; noted++) {
        if (noted == 0)
            pool_open(r, dead, "second");
        pawli_new_job jobs[4] = { { .priority = 9 }, { .priority = 8 }, { .priority = 7 }, { .priority = 6 } };
        pool_enqueue(alive, jobs, 4);
        pawli_claim *returned = pool_claim(dead, 4, &count), *given_back = returned->next;
        assert_int_equal(count, 4);
        pawli_claim *ran = given_back->next;
        const uint64_t fences[] = { ran->fence, given_back->fence };
        pawli_rescue rescue = rescue_of(dead, fences, 1);
        rescue.spared_count = 1;
        rescue.last_started = ran->fence;
        rescue.signal = noted ? 11 : 0;
        rescue.culprit = ran->fence; /* without a signal it is one that was survived */
        rescue.on_threads = 1;
        pool_write(alive, &(pawli_batch){ .rescues = &rescue });
        static const char *const ends[2][4] = { { "rescued", "rescued-", "rescued", "rescued-" },
                                                { "rescued-", "rescued-", "rescued", "rescued-" } };
        for (int i = 0; i < 4; i++) {
            assert_string_equal(r->kind->attempts(rig_path(r), jobs[i].id), ends[noted][i]);
            assert_int_equal(pool_operate(alive, PAWLI_CANCEL, jobs[i].id), PAWL_OK);
        }
        pool_reopen(dead);
    }
}

/* Goal: a record that is older than the death charges what it lists; all else may have started since, and is
 * spared ten times only: the job that brings the machine down each time fails too (I9). */
static void a_stale_record_spares_ten_times(void **state)
{
    rig *r = *state;
    pool *alive = &r->first, *dead = &r->second;
    uint32_t starts = 0;
    pool_open(r, dead, "second");
    int64_t id = put_job(alive, .max_attempts = 2);
    while (stored(alive, id)->state == PAWL_STATE_PENDING) {
        rig_advance(r, 10 * BACKOFF_MS);
        const pawli_claim *claim = pool_claim_one(dead);
        starts++;
        pawli_rescue rescue = rescue_of(dead, &claim->fence, starts == 2);
        rescue.is_stale = true;
        rescue.last_started = claim->fence - 1;
        pool_write(alive, &(pawli_batch){ .rescues = &rescue });
        assert_int_equal(stored(alive, id)->attempts, starts < 2 ? 0 : starts <= 11 ? 1 : 2);
        pool_reopen(dead);
    }
    assert_int_equal(starts, 12);
    assert_stored(alive, id, PAWL_STATE_FAILED, 2);
}

/* Goal: a job that was cancelled while it ran is not started again when its process dies. */
static void a_cancelled_job_is_not_rescued_to_run(void **state)
{
    rig *r = *state;
    pool *alive = &r->first, *dead = &r->second;
    pool_open(r, dead, "second");
    for (int started = 0; started < 2; started++) {
        int64_t id = put_job(alive, .kind = "a");
        pawli_claim *claim = pool_claim_one(dead);
        assert_int_equal(pool_operate(alive, PAWLI_CANCEL, id), PAWL_ACCEPTED);
        pawli_rescue rescue = rescue_of(dead, &claim->fence, (size_t)started);
        pool_write(alive, &(pawli_batch){ .rescues = &rescue });
        assert_int_equal(stored(alive, id)->state, PAWL_STATE_CANCELLED);
        pool_reopen(dead);
    }
    rig_advance(r, 100 * BACKOFF_MS);
    assert_nothing_to_claim(alive);
}

/* Goal: a holder with very many claims is rescued in bounded steps; the store says when there is more,
 * and forgets no claim (I11, I23). */
static void many_claims_come_back_in_steps(void **state)
{
    enum { MANY = 1100 };
    static pawli_new_job jobs[MANY];
    rig *r = *state;
    pool *alive = &r->first, *dead = &r->second;
    pawli_holder seen[4];
    int64_t expires;
    size_t count, rescued = 0, steps = 0;
    memset(jobs, 0, sizeof jobs);
    pool_open(r, dead, "second");
    pool_enqueue(alive, jobs, MANY);
    (void)pool_claim(dead, MANY, &count);
    assert_int_equal(count, MANY);
    while (survey_of(alive, seen, 4, &expires) > 0) {
        pawli_rescue rescue = rescue_of(dead, NULL, 0);
        pawli_batch batch = { .rescues = &rescue };
        pool_write(alive, &batch);
        rescued += batch.rescued;
        assert_int_equal(rescue.complete, rescued == MANY);
        assert_true(rescue.complete || outlook_of(alive).more);
        assert_true(++steps < MANY);
    }
    assert_int_equal(rescued, MANY);
    assert_int_equal(outlook_of(alive).claimable, MANY);
}

/* -------------------------------------------------------------------------- the silent */

static size_t sweep(pool *p)
{
    pawli_batch batch = { .sweep = true };
    pool_write(p, &batch);
    return batch.rescued;
}

static bool sees_expired(pool *p)
{
    pawli_holder seen[4];
    int64_t expires;
    (void)survey_of(p, seen, 4, &expires);
    return expires <= p->rig->boot_ms;
}

/* Goal: a claim is taken back when its lease has run out on the boot clock, not a moment before (I11,
 * I12), charged; a heartbeat puts that off; a wall clock that was set changes nothing (R13). */
static void a_lease_is_honoured_to_its_end(void **state)
{
    rig *r = *state;
    pool *p = &r->first, *silent = &r->second;
    pool_open(r, silent, "second");
    int64_t id = put_job(p, .kind = "a");
    pawli_claim *claim = pool_claim_one(silent);
    r->now_ms += 10 * STALE_MS;
    assert_false(sees_expired(p));
    assert_int_equal(sweep(p), 0);
    r->boot_ms += LEASE_MS - 1;
    assert_false(sees_expired(p));
    assert_int_equal(sweep(p), 0);
    pawli_heartbeat beat = { .claim = claim };
    pool_write(silent, &(pawli_batch){ .heartbeats = &beat });
    assert_ok(beat.status);
    r->boot_ms += LEASE_MS - 1;
    assert_int_equal(sweep(p), 0);
    assert_stored(p, id, PAWL_STATE_RUNNING, 1);
    r->now_ms -= 20 * STALE_MS;
    r->boot_ms += 1;
    assert_true(sees_expired(p));
    assert_int_equal(sweep(p), 1);
    assert_false(sees_expired(p));
    assert_stored(p, id, PAWL_STATE_PENDING, 1);
    assert_text_has(stored(p, id)->last_error, "lease");
    assert_int_equal(stored(p, id)->available_at_ms, r->now_ms); /* a first death: at once */
    assert_int_equal(pool_end(silent, claim, succeeded()), PAWL_ERR_LEASE_LOST);
    pool_write(silent, &(pawli_batch){ .heartbeats = &beat });
    assert_int_equal(beat.status, PAWL_ERR_LEASE_LOST);
    assert_stored(p, id, PAWL_STATE_PENDING, 1);
}

/* Goal: a pool does not sweep its own claims: it knows better. */
static void own_claims_are_not_swept(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pool_open(r, &r->second, "second");
    int64_t mine = put_job(p, .kind = "a");
    pawli_claim *claim = pool_claim_one(p);
    int64_t theirs = put_job(p, .kind = "a");
    (void)pool_claim_one(&r->second);
    rig_advance(r, STALE_MS);
    assert_int_equal(sweep(p), 1);
    assert_stored(p, mine, PAWL_STATE_RUNNING, 1);
    assert_stored(p, theirs, PAWL_STATE_PENDING, 1);
    assert_false(sees_expired(p));
    assert_true(sees_expired(&r->second));
    assert_ok(pool_end(p, claim, succeeded()));
}

/* Goal: a lease far in the future is broken, not valid: the boot clock has begun anew (R13). */
static void a_lease_far_in_the_future_is_broken(void **state)
{
    rig *r = *state;
    pool_open(r, &r->second, "second");
    r->boot_ms += INT64_C(400) * 86400000;
    int64_t id = put_job(&r->first, .kind = "a");
    (void)pool_claim_one(&r->second);
    assert_int_equal(sweep(&r->first), 0);
    r->boot_ms = 1000;
    assert_true(sees_expired(&r->first));
    assert_int_equal(sweep(&r->first), 1);
    assert_stored(&r->first, id, PAWL_STATE_PENDING, 1);
}

/* Goal: what has been swept can be claimed in the same batch if it is due; what was swept with its attempts
 * used up fails (I9). */
static void a_sweep_charges_the_attempt(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pool_open(r, &r->second, "second");
    int64_t id = put_job(p, .max_attempts = 3);
    pool *silent = &r->second, *sweeper = p;
    (void)pool_claim_one(silent);
    for (uint32_t attempt = 1; attempt <= 3; attempt++) {
        rig_advance(r, STALE_MS);
        pawli_batch batch = { .sweep = true, .claim_max = 1 };
        pool_write(sweeper, &batch);
        assert_int_equal(batch.rescued, 1);
        assert_int_equal(batch.claimed_count, attempt == 1); /* then its backoff has begun just now */
        assert_int_equal(stored(p, id)->attempts, attempt == 1 ? 2 : attempt);
        pool *other = sweeper;
        sweeper = silent;
        silent = other;
        if (attempt == 2) {
            rig_advance(r, BACKOFF_MS);
            assert_int_equal(pool_claim_one(silent)->attempt, 3);
        }
    }
    assert_stored(p, id, PAWL_STATE_FAILED, 3);
}

static const struct CMUnitTest tests[] = {
    STORE_TEST(holders_see_each_other),
    STORE_TEST(holders_come_in_pages),
    STORE_TEST(who_has_left_is_remembered),
    STORE_TEST(opening_resets_nothing),
    STORE_TEST(a_dead_holders_claims_come_back),
    STORE_TEST(a_rescue_is_done_once),
    STORE_TEST(a_deadly_job_fails_in_the_end),
    STORE_TEST(a_bystander_is_spared_ten_times),
    STORE_TEST(what_has_returned_is_charged),
    STORE_TEST(a_stale_record_spares_ten_times),
    STORE_TEST(a_cancelled_job_is_not_rescued_to_run),
    STORE_TEST(many_claims_come_back_in_steps),
    STORE_TEST(a_lease_is_honoured_to_its_end),
    STORE_TEST(own_claims_are_not_swept),
    STORE_TEST(a_lease_far_in_the_future_is_broken),
    STORE_TEST(a_sweep_charges_the_attempt),
};

const suite suite_rescue = SUITE(tests, "rescue");
