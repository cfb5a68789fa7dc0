/* claim.c - which jobs a store hands out, to whom and in which order: I4, I5, I13, I14, I15, I23. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "retry.h"
#include "rig.h"

static bool goes_before(const pawli_new_job *a, const pawli_new_job *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->id < b->id;
}

static int compare(const void *a, const void *b)
{
    return goes_before(a, b) ? -1 : goes_before(b, a) ? 1 : 0;
}

/* Goal: claims follow priority, then id, over all lanes, however many are taken at a time (I14). */
static void claims_follow_priority_then_id(void **state)
{
    static const char *const queues[] = { "q", "q2", "q3" };
    static const char *const kinds[] = { "a", "b" };
    static const int32_t priorities[] = { 0, 0, 1, -1, INT32_MAX, INT32_MIN };
    rig *r = *state;
    pawli_new_job jobs[120] = { 0 };
    uint64_t random = 7;
    for (size_t i = 0; i < 120; i++) {
        jobs[i].queue = queues[pawli_random_next(&random) % 3];
        jobs[i].kind = kinds[pawli_random_next(&random) % 2];
        jobs[i].priority = priorities[pawli_random_next(&random) % 6];
    }
    pool_enqueue(&r->first, jobs, 120);
    qsort(jobs, 120, sizeof jobs[0], compare);
    static const size_t steps[] = { 1, 2, 3, 50, 64 };
    size_t next = 0;
    for (size_t i = 0; i < 5; i++) {
        size_t count;
        for (pawli_claim *c = pool_claim(&r->first, steps[i], &count); c != NULL; c = c->next) {
            assert_int_equal(c->job, jobs[next].id);
            next++;
        }
        assert_int_equal(count, steps[i]);
    }
    assert_int_equal(next, 120);
    assert_nothing_to_claim(&r->first);
}

/* Goal: never more claims than asked for; a claim is shown with its holder and lease. */
static void claims_are_bounded(void **state)
{
    rig *r = *state;
    pawli_new_job jobs[5] = { 0 };
    size_t count;
    pool_enqueue(&r->first, jobs, 5);
    assert_int_equal(outlook_of(&r->first).claimable, 5);
    (void)pool_claim(&r->first, 0, &count);
    assert_int_equal(count, 0);
    pawli_claim *claim = pool_claim(&r->first, 2, &count);
    assert_int_equal(count, 2);
    assert_int_equal(outlook_of(&r->first).claimable, 3);
    const pawl_job_info *info = stored(&r->first, jobs[0].id);
    assert_int_equal(info->state, PAWL_STATE_RUNNING);
    assert_int_equal(info->attempts, 1);
    assert_int_equal(info->fence, claim->fence);
    assert_int_equal(info->claimed_at_ms, r->now_ms);
    assert_int_equal(info->lease_until_ms, r->now_ms + LEASE_MS);
    assert_string_equal(info->claimed_by, "first");
    (void)pool_claim(&r->first, 100, &count);
    assert_int_equal(count, 3);
}

/* -------------------------------------------------------------------------- the hand-off */

typedef struct merge_case {
    const char *name;
    int32_t waiting[6], fresh[6]; /* priorities, ended by END */
    size_t claim_max;
    const char *order; /* "w0 f1": waiting job 0, fresh job 1 */
    size_t handed_off;
} merge_case;
#define END 9999

static size_t length(const int32_t *priorities)
{
    size_t count = 0;
    while (priorities[count] != END)
        count++;
    return count;
}

static void write_order(char *out, size_t capacity, const pawli_claim *claims,
                        const pawli_new_job *waiting, size_t waiting_count, const pawli_new_job *fresh,
                        size_t fresh_count)
{
    out[0] = '\0';
    for (const pawli_claim *c = claims; c != NULL; c = c->next) {
        size_t used = strlen(out);
        for (size_t i = 0; i < waiting_count; i++)
            if (waiting[i].id == c->job)
                (void)snprintf(out + used, capacity - used, "%sw%zu", used > 0 ? " " : "", i);
        for (size_t i = 0; i < fresh_count; i++)
            if (fresh[i].id == c->job)
                (void)snprintf(out + used, capacity - used, "%sf%zu", used > 0 ? " " : "", i);
    }
}

static void check_merge(rig *r, const merge_case *c)
{
    static const char *const kinds[] = { "a", "b" };
    pool *p = &r->first;
    pawli_new_job waiting[6] = { 0 }, fresh[6] = { 0 };
    size_t waiting_count = length(c->waiting), fresh_count = length(c->fresh);
    for (size_t i = 0; i < 6; i++) {
        waiting[i] = (pawli_new_job){ .priority = c->waiting[i], .kind = kinds[i % 2] };
        fresh[i] = (pawli_new_job){ .priority = c->fresh[i], .kind = kinds[(i + 1) % 2] };
    }
    if (waiting_count > 0)
        pool_enqueue(p, waiting, waiting_count);
    complete(fresh, fresh_count);
    pawli_new_jobs groups[2] = { { .next = &groups[1], .jobs = fresh, .count = fresh_count / 2 },
                                 { .jobs = fresh + fresh_count / 2,
                                   .count = fresh_count - fresh_count / 2 } };
    pawli_batch batch = { .enqueues = groups, .claim_max = c->claim_max };
    pool_write(p, &batch);
    char order[64];
    write_order(order, sizeof order, batch.claimed, waiting, waiting_count, fresh, fresh_count);
    if (strcmp(order, c->order) != 0)
        fail_msg("%s: claimed \"%s\", not \"%s\"", c->name, order, c->order);
    assert_int_equal(batch.handed_off, c->handed_off);
    for (pawli_claim *claim = batch.claimed; claim != NULL; claim = claim->next) {
        assert_stored(p, claim->job, PAWL_STATE_RUNNING, 1);
        assert_int_equal(stored(p, claim->job)->fence, claim->fence);
        assert_int_equal(claim->attempt, 1);
        assert_ok(pool_end(p, claim, succeeded()));
    }
    for (size_t left = SIZE_MAX; left > 0;) /* leave nothing behind for the next case */
        for (pawli_claim *claim = pool_claim(p, 10, &left); claim != NULL; claim = claim->next)
            assert_ok(pool_end(p, claim, succeeded()));
}

/* Goal: new jobs are merged with those that wait; one starts at once only if nothing ready of the same
 * or a higher priority waits (I14). */
static void new_jobs_are_merged_with_those_that_wait(void **state)
{
    static const merge_case cases[] = {
        { "nothing waits", { END }, { 0, 0, 0, END }, 2, "f0 f1", 2 },
        { "room for all", { END }, { 0, 0, 0, END }, 9, "f0 f1 f2", 3 },
        { "no room", { END }, { 0, 0, END }, 0, "", 0 },
        { "by priority", { END }, { 1, 3, 2, 3, END }, 3, "f1 f3 f2", 3 },
        { "an equal waits", { 0, END }, { 0, 0, END }, 1, "w0", 0 },
        { "an equal waits, room for two", { 0, END }, { 0, 0, END }, 2, "w0 f0", 1 },
        { "a lower waits", { -1, END }, { 0, END }, 1, "f0", 1 },
        { "a higher waits", { 1, END }, { 0, END }, 1, "w0", 0 },
        { "between", { 5, 1, END }, { 3, END }, 3, "w0 f0 w1", 1 },
        { "mixed", { 5, 3, 1, END }, { 4, 3, 2, END }, 6, "w0 f0 w1 f1 f2 w2", 3 },
        { "mixed, cut", { 5, 3, 1, END }, { 4, 3, 2, END }, 3, "w0 f0 w1", 1 },
        { "the ends", { INT32_MIN, END }, { INT32_MAX, INT32_MIN, END }, 3, "f0 w0 f1", 2 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_merge(*state, &cases[i]);
}

/* Goal: what is delayed, not served here, paused, or known already is never handed off (I13, I16, I23). */
static void only_what_may_run_is_handed_off(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pool_switch(p, PAWLI_PAUSE, "paused");
    (void)put_job(p, .key = "k", .key_bytes = 1, .available_at_ms = r->now_ms + 1);
    pawli_new_job jobs[] = {
        { .available_at_ms = r->now_ms + 1 }, { .kind = "foreign" }, { .queue = "elsewhere" },
        { .queue = "paused" },                { .key = "k", .key_bytes = 1 },
        { .available_at_ms = r->now_ms },
    };
    complete(jobs, 6);
    pawli_new_jobs group = { .jobs = jobs, .count = 6 };
    pawli_batch batch = { .enqueues = &group, .claim_max = 6 };
    pool_write(p, &batch);
    assert_int_equal(batch.claimed_count, 1);
    assert_int_equal(batch.handed_off, 1);
    assert_int_equal(batch.claimed->job, jobs[5].id);
    for (size_t i = 0; i < 5; i++)
        assert_stored(p, jobs[i].id, PAWL_STATE_PENDING, 0);
    assert_nothing_to_claim(p);
    assert_int_equal(outlook_of(p).claimable, 0);
}

/* ---------------------------------------------------------------------------- the limits */

/* Goal: a kind never has more claims here than it may, over all its queues, new jobs and old ones; and
 * what it cannot take does not stop the others (I15, I23). */
static void a_kind_keeps_to_its_limit(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pawli_new_job jobs[] = {
        { .kind = "two", .priority = 9 }, { .kind = "two", .priority = 9, .queue = "q2" },
        { .kind = "two", .priority = 9 }, { .kind = "a" },
    };
    pawli_new_job fresh[] = { { .kind = "two", .priority = 9 }, { .kind = "b" } };
    size_t count;
    pool_enqueue(p, jobs, 4);
    pawli_claim *first = pool_claim(p, 10, &count);
    assert_int_equal(count, 3);
    assert_int_equal(first->job, jobs[0].id);
    assert_int_equal(first->next->job, jobs[1].id);
    assert_int_equal(first->next->next->job, jobs[3].id);
    assert_int_equal(outlook_of(p).claimable, 0);
    complete(fresh, 2);
    pawli_new_jobs group = { .jobs = fresh, .count = 2 };
    pawli_batch batch = { .enqueues = &group, .claim_max = 10 };
    pool_write(p, &batch);
    assert_int_equal(batch.claimed_count, 1);
    assert_int_equal(batch.claimed->job, fresh[1].id);
    assert_ok(pool_end(p, first, succeeded()));
    assert_int_equal(outlook_of(p).claimable, 2); /* both wait for one place */
    assert_int_equal(pool_claim_one(p)->job, jobs[2].id);
    assert_nothing_to_claim(p);
    assert_int_equal(p->services[SERVE_TWO].in_flight, 2);
}

/* Goal: a place that an ending of the batch sets free is taken in it, once, and no more than that: not for
 * an ending that came twice, not for one that was refused (I15). */
static void a_place_set_free_is_taken_once(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pawli_new_job jobs[9] = { 0 };
    size_t count;
    for (size_t i = 0; i < 9; i++)
        jobs[i].kind = "two";
    pool_enqueue(p, jobs, 9);
    pawli_claim *claims = pool_claim(p, 10, &count);
    assert_int_equal(count, 2);
    pawli_claim *lost = claims->next;
    pawli_ending first = ending_of(claims, succeeded());
    pawli_ending twice = ending_of(claims, failed());
    first.next = &twice;
    pawli_batch batch = { .endings = &first, .claim_max = 10 };
    pool_write(p, &batch);
    assert_int_equal(batch.claimed_count, 1);
    assert_int_equal(p->services[SERVE_TWO].in_flight, 2);
    pool_open(r, &r->second, "second");
    rig_advance(r, 2 * LEASE_MS);
    pool_write(&r->second, &(pawli_batch){ .sweep = true }); /* both are taken from us */
    pawli_ending late = ending_of(lost, succeeded());
    batch = (pawli_batch){ .endings = &late, .claim_max = 10 };
    pool_write(p, &batch);
    assert_int_equal(late.status, PAWL_ERR_LEASE_LOST);
    assert_true(batch.claimed_count <= 1);
    assert_true(p->services[SERVE_TWO].in_flight <= 2);
}

/* Goal: a limit is this pool's own. */
static void a_limit_is_the_pools_own(void **state)
{
    rig *r = *state;
    pawli_new_job jobs[5] = { 0 };
    size_t count;
    for (size_t i = 0; i < 5; i++)
        jobs[i].kind = "two";
    pool_enqueue(&r->first, jobs, 5);
    (void)pool_claim(&r->first, 10, &count);
    assert_int_equal(count, 2);
    pool_open(r, &r->second, "second");
    (void)pool_claim(&r->second, 10, &count);
    assert_int_equal(count, 2);
}

/* Goal: a page full of what cannot be claimed here, however urgent, costs what is behind it nothing
 * (I23). */
static void what_cannot_be_claimed_stops_nothing(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    static pawli_new_job jobs[900];
    memset(jobs, 0, sizeof jobs);
    for (size_t i = 0; i < 900; i++) {
        jobs[i].priority = 100;
        jobs[i].kind = i % 3 == 0 ? "foreign" : "a";
        jobs[i].queue = i % 3 == 0 ? "q" : i % 3 == 1 ? "elsewhere" : "paused";
    }
    pool_switch(p, PAWLI_PAUSE, "paused");
    pool_enqueue(p, jobs, 900);
    assert_int_equal(outlook_of(p).claimable, 0);
    int64_t wanted = put_job(p, .priority = -5);
    assert_int_equal(outlook_of(p).claimable, 1);
    assert_int_equal(pool_claim_one(p)->job, wanted);
    assert_nothing_to_claim(p);
}

/* Goal: what is served may change while the store is open, and the store asks again. */
static void what_is_served_is_asked_again(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pawli_new_job job = { .kind = "foreign" };
    pool_enqueue(p, &job, 1);
    assert_nothing_to_claim(p);
    pool_open(r, &r->second, "second");
    assert_nothing_to_claim(&r->second);
    p->store->ops->unserve(p->store);
    assert_nothing_to_claim(p); /* still nobody's */
    int64_t mine = put_job(p, .kind = "b");
    p->store->ops->unserve(p->store);
    assert_int_equal(pool_claim_one(p)->job, mine);
}

/* --------------------------------------------------------------------- one live claim */

/* Goal: of two pools that claim in turns none gets a job that the other has, and together they get all,
 * each time the first that is left (I4, I14). */
static void two_pools_never_share_a_claim(void **state)
{
    rig *r = *state;
    pawli_new_job jobs[60] = { 0 };
    pool_open(r, &r->second, "second");
    pool_enqueue(&r->second, jobs, 60);
    size_t next = 0;
    for (size_t turn = 0; next < 60; turn++) {
        size_t count;
        for (pawli_claim *c = pool_claim(turn % 2 ? &r->first : &r->second, 1 + turn % 7, &count);
             c != NULL; c = c->next) {
            assert_int_equal(c->job, jobs[next].id);
            next++;
        }
        assert_true(count > 0);
    }
    assert_nothing_to_claim(&r->first);
    assert_nothing_to_claim(&r->second);
}

/* Goal: every claim has a fence larger than all before it: over retries, releases, hand-offs, a requeue,
 * other pools and a new opening (I5). */
static void fences_only_grow(void **state)
{
    rig *r = *state;
    uint64_t newest = 0;
    pool_open(r, &r->second, "second");
    int64_t id = put_job(&r->first, .max_attempts = 50);
    for (int round = 0; round < 24; round++) {
        pool *p = round % 5 == 4 ? &r->second : &r->first;
        pawli_claim *claim = pool_claim_one(p);
        assert_int_equal(claim->job, id);
        assert_true(claim->fence > newest);
        newest = claim->fence;
        switch (round % 4) {
        case 0: assert_ok(pool_end(p, claim, released())); break;
        case 1: assert_ok(pool_end(p, claim, retried(0))); break;
        case 2: assert_ok(pool_end(p, claim, snoozed(0))); break;
        default:
            assert_ok(pool_end(p, claim, failed()));
            assert_ok(pool_operate(p, PAWLI_REQUEUE, id));
        }
        pawli_new_job fresh = { .kind = "b" };
        complete(&fresh, 1);
        pawli_new_jobs group = { .jobs = &fresh, .count = 1 };
        pawli_batch batch = { .enqueues = &group, .claim_max = 1 };
        fresh.priority = 1;
        pool_write(p, &batch);
        assert_int_equal(batch.handed_off, 1);
        assert_true(batch.claimed->fence > newest);
        newest = batch.claimed->fence;
        if (round % 7 == 6)
            pool_reopen(&r->first);
    }
}

/* Goal: jobs claimed in one batch have different fences, in the order of the claims (I5). */
static void fences_of_a_batch_differ(void **state)
{
    rig *r = *state;
    pawli_new_job waiting[3] = { 0 }, fresh[3] = { 0 };
    pool_enqueue(&r->first, waiting, 3);
    complete(fresh, 3);
    pawli_new_jobs group = { .jobs = fresh, .count = 3 };
    pawli_batch batch = { .enqueues = &group, .claim_max = 6 };
    pool_write(&r->first, &batch);
    assert_int_equal(batch.claimed_count, 6);
    for (pawli_claim *c = batch.claimed; c->next != NULL; c = c->next)
        assert_true(c->next->fence > c->fence);
}

static const struct CMUnitTest tests[] = {
    STORE_TEST(claims_follow_priority_then_id),
    STORE_TEST(claims_are_bounded),
    STORE_TEST(new_jobs_are_merged_with_those_that_wait),
    STORE_TEST(only_what_may_run_is_handed_off),
    STORE_TEST(a_kind_keeps_to_its_limit),
    STORE_TEST(a_place_set_free_is_taken_once),
    STORE_TEST(a_limit_is_the_pools_own),
    STORE_TEST(what_cannot_be_claimed_stops_nothing),
    STORE_TEST(what_is_served_is_asked_again),
    STORE_TEST(two_pools_never_share_a_claim),
    STORE_TEST(fences_only_grow),
    STORE_TEST(fences_of_a_batch_differ),
};

const suite suite_claim = SUITE(tests, "claim");
