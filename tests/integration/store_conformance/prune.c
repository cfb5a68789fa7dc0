/* prune.c - history is kept as long as it shall be, and what goes is counted: I20. */
#include <string.h>

#include "rig.h"

#define DAY_MS INT64_C(86400000)

/* Prunes until the store has nothing more to prune; the number of steps. */
static size_t prune(pool *p, size_t rows)
{
    size_t steps = 0;
    do {
        pool_write(p, &(pawli_batch){ .prune_max = rows });
        assert_true(++steps < 1000);
    } while (outlook_of(p).prune_wanted);
    return steps;
}

static int64_t ended(pool *p, pawli_verdict verdict)
{
    int64_t id = put_job(p, .priority = 7);
    pawli_claim *claim = pool_claim_one(p);
    assert_int_equal(claim->job, id);
    rig_advance(p->rig, 1); /* it ends later than it was made */
    assert_ok(pool_end(p, claim, verdict));
    return id;
}

/* Goal: what ended longer ago than its kind of ending is kept goes; nothing else does. */
static void history_goes_by_age(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    p->options.keep_succeeded_ms = 7 * DAY_MS;
    p->options.keep_failed_ms = 30 * DAY_MS;
    int64_t pending = put_job(p, .available_at_ms = r->now_ms + 1000 * DAY_MS);
    int64_t running = put_job(p, .kind = "b");
    (void)pool_claim_one(p);
    int64_t success = ended(p, succeeded()), success_at = r->now_ms;
    int64_t failure = ended(p, failed()), cancel = ended(p, cancelled());
    rig_advance(r, DAY_MS);
    int64_t younger = ended(p, succeeded());
    rig_advance(r, success_at + 7 * DAY_MS - r->now_ms);
    (void)prune(p, 1000);
    assert_true(is_stored(p, success)); /* to the millisecond */
    rig_advance(r, 600000);
    (void)prune(p, 1000);
    assert_false(is_stored(p, success));
    assert_true(is_stored(p, younger));
    assert_true(is_stored(p, failure) && is_stored(p, cancel));
    rig_advance(r, 23 * DAY_MS);
    (void)prune(p, 1000);
    assert_false(is_stored(p, younger) || is_stored(p, failure) || is_stored(p, cancel));
    assert_string_equal(r->kind->attempts(rig_path(r), failure), "");
    assert_stored(p, pending, PAWL_STATE_PENDING, 0);
    assert_stored(p, running, PAWL_STATE_RUNNING, 1);
}

/* Goal: an old job is judged by when it ended, not by when it was made. */
static void age_counts_from_the_end(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    p->options.keep_succeeded_ms = DAY_MS;
    p->options.keep_failed_ms = DAY_MS;
    int64_t id = put_job(p, .kind = "a");
    rig_advance(r, 50 * DAY_MS);
    assert_ok(pool_end(p, pool_claim_one(p), failed()));
    (void)prune(p, 1000);
    assert_stored(p, id, PAWL_STATE_FAILED, 1);
    rig_advance(r, DAY_MS / 2);
    assert_ok(pool_operate(p, PAWLI_REQUEUE, id)); /* and from the last end */
    rig_advance(r, DAY_MS);
    (void)prune(p, 1000);
    assert_stored(p, id, PAWL_STATE_PENDING, 0);
}

/* Goal: over a number of rows the oldest go, of each sort of ending by its own bound. */
static void history_goes_by_number(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t successes[6], failures[6];
    p->options.keep_succeeded_max = 2;
    p->options.keep_failed_max = 4;
    int64_t pending = put_job(p, .available_at_ms = r->now_ms + DAY_MS);
    for (size_t i = 0; i < 6; i++) {
        successes[i] = ended(p, succeeded());
        failures[i] = ended(p, i % 2 ? failed() : cancelled());
    }
    assert_true(outlook_of(p).prune_wanted);
    (void)prune(p, 1000);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(is_stored(p, successes[i]), i >= 4);
        assert_int_equal(is_stored(p, failures[i]), i >= 2);
    }
    assert_stored(p, pending, PAWL_STATE_PENDING, 0);
    assert_false(outlook_of(p).prune_wanted);
}

/* Goal: PAWL_FOREVER keeps, by age and by number. */
static void forever_keeps(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t ids[4];
    p->options.keep_succeeded_max = p->options.keep_failed_max = PAWL_FOREVER;
    for (size_t i = 0; i < 4; i++)
        ids[i] = ended(p, i % 2 ? failed() : succeeded());
    rig_advance(r, 100000 * DAY_MS);
    (void)prune(p, 1000);
    for (size_t i = 0; i < 4; i++)
        assert_true(is_stored(p, ids[i]));
}

/* Goal: a step looks at no more rows than it may, and the steps reach everything, also what is behind a
 * thick layer of rows that stay. */
static void pruning_goes_in_bounded_steps(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    static pawli_new_job waiting[300];
    memset(waiting, 0, sizeof waiting);
    for (size_t i = 0; i < 300; i++)
        waiting[i].available_at_ms = r->now_ms + DAY_MS;
    pool_enqueue(p, waiting, 300);
    int64_t ids[30];
    for (size_t i = 0; i < 30; i++)
        ids[i] = ended(p, succeeded());
    p->options.keep_succeeded_max = 10;
    pool_write(p, &(pawli_batch){ .prune_max = 0 });
    assert_true(is_stored(p, ids[0]));
    size_t steps = prune(p, 7);
    assert_true(steps >= 320 / 7);
    for (size_t i = 0; i < 30; i++)
        assert_int_equal(is_stored(p, ids[i]), i >= 20);
    for (size_t i = 0; i < 300; i++)
        assert_true(is_stored(p, waiting[i].id));
}

/* Goal: a key is free again once its job is gone, and only then. */
static void a_pruned_key_is_free(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t id = put_job(p, .key = "k", .key_bytes = 1);
    assert_ok(pool_end(p, pool_claim_one(p), succeeded()));
    pawli_new_job again = { .key = "k", .key_bytes = 1 };
    pool_enqueue(p, &again, 1);
    assert_int_equal(again.id, id);
    p->options.keep_succeeded_max = 0;
    (void)prune(p, 100);
    pool_enqueue(p, &again, 1);
    assert_false(again.exists);
    assert_true(again.id > id);
}

static pawl_lane_stats lane_of(pool *p)
{
    pawl_stats_info stats = PAWL_STATS_INIT;
    assert_ok(p->store->ops->stats(p->store, p->rig->now_ms, p->rig->boot_ms, &stats));
    assert_int_equal(stats.lane_count, 1);
    pawl_lane_stats lane = stats.lanes[0];
    pawl_stats_info_clear(&stats);
    return lane;
}

/* Goal: what was pruned is counted, and nothing is lost in the sum (I20). */
static void what_goes_is_counted(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    for (size_t i = 0; i < 9; i++)
        (void)ended(p, i % 3 ? succeeded() : failed());
    p->options.keep_succeeded_max = 1;
    p->options.keep_failed_max = 0;
    (void)prune(p, 4);
    pawl_lane_stats lane = lane_of(p);
    assert_int_equal(lane.enqueued, 9);
    assert_int_equal(lane.succeeded, 1);
    assert_int_equal(lane.failed, 0);
    assert_int_equal(lane.pruned, 8);
}

static const struct CMUnitTest tests[] = {
    STORE_TEST(history_goes_by_age),
    STORE_TEST(age_counts_from_the_end),
    STORE_TEST(history_goes_by_number),
    STORE_TEST(forever_keeps),
    STORE_TEST(pruning_goes_in_bounded_steps),
    STORE_TEST(a_pruned_key_is_free),
    STORE_TEST(what_goes_is_counted),
};

const suite suite_prune = SUITE(tests, "prune");
