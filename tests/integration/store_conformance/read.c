/* read.c - what a store shows and notices: get, list, stats, look, and the lock to write. */
#include <stdio.h>
#include <string.h>

#include "rig.h"

/* ------------------------------------------------------------------------------- pages */

#define PAGE 4

/* Pages through a filter and tells the ids that came, joined: "1 2 3" counted from the first job. */
static const char *page_through(pool *p, pawl_filter filter, int64_t base)
{
    static char text[256];
    pawl_job_info infos[PAGE];
    size_t count;
    text[0] = '\0';
    filter.struct_size = sizeof filter;
    do {
        for (size_t i = 0; i < PAGE; i++)
            infos[i] = (pawl_job_info)PAWL_JOB_INFO_INIT;
        assert_ok(p->store->ops->list(p->store, &filter, infos, PAGE, &count));
        assert_true(count <= PAGE);
        for (size_t i = 0; i < count; i++) {
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", text[0] ? " " : "",
                           (int)(infos[i].id - base));
            filter.after_id = infos[i].id;
            pawl_job_info_clear(&infos[i]);
        }
    } while (count == PAGE);
    return text;
}

/* Goal: pages come in the order of ids, up or down, whole, and filtered by state, queue and kind. */
static void pages_hold_what_the_filter_says(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pawli_new_job jobs[10] = {
        { .priority = 9 }, { .priority = 8 }, { .priority = 7 }, { .priority = 6 }, { .kind = "b" },
        { .queue = "q2" }, { .queue = "q2", .kind = "b" }, { .available_at_ms = r->now_ms + 1 },
        { .kind = "foreign" }, { .queue = "q2" },
    };
    size_t claimed;
    pool_enqueue(p, jobs, 10);
    pawli_claim *c = pool_claim(p, 4, &claimed);
    assert_ok(pool_end(p, c, succeeded()));
    assert_ok(pool_end(p, c->next, failed()));
    assert_ok(pool_end(p, c->next->next, cancelled()));
    const struct {
        pawl_filter filter;
        const char *wanted;
    } cases[] = {
        { { .states = 0 }, "0 1 2 3 4 5 6 7 8 9" },
        { { .newest_first = true }, "9 8 7 6 5 4 3 2 1 0" },
        { { .states = 1u << PAWL_STATE_PENDING }, "4 5 6 7 8 9" },
        { { .states = 1u << PAWL_STATE_RUNNING }, "3" },
        { { .states = 1u << PAWL_STATE_SUCCEEDED }, "0" },
        { { .states = 1u << PAWL_STATE_FAILED | 1u << PAWL_STATE_CANCELLED }, "1 2" },
        { { .states = 1u << PAWL_STATE_BLOCKED }, "" },
        { { .queue = "q2" }, "5 6 9" },
        { { .queue = "q2", .newest_first = true }, "9 6 5" },
        { { .kind = "b" }, "4 6" },
        { { .queue = "q2", .kind = "b" }, "6" },
        { { .queue = "nowhere" }, "" },
        { { .kind = "q2" }, "" },
        { { .after_id = jobs[7].id }, "8 9" },
        { { .after_id = jobs[2].id, .newest_first = true }, "1 0" },
        { { .after_id = jobs[9].id }, "" },
        { { .after_id = INT64_MAX }, "" },
        { { .kind = "b", .states = 1u << PAWL_STATE_PENDING, .after_id = jobs[4].id }, "6" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *is = page_through(p, cases[i].filter, jobs[0].id);
        if (strcmp(is, cases[i].wanted) != 0)
            fail_msg("filter %zu: \"%s\", not \"%s\"", i, is, cases[i].wanted);
    }
}

/* Goal: a job that is not there is not found, and a page without room is empty. */
static void what_is_not_there_is_not_found(void **state)
{
    static const int64_t ids[] = { 0, -1, 2, INT64_MAX, INT64_MIN };
    rig *r = *state;
    pool *p = &r->first;
    assert_int_equal(put_job(p, .kind = "a"), 1);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        assert_false(is_stored(p, ids[i]));
    size_t count = 9;
    const pawl_filter all = PAWL_FILTER_INIT;
    assert_ok(p->store->ops->list(p->store, &all, NULL, 0, &count));
    assert_int_equal(count, 0);
}

/* ------------------------------------------------------------------------------- stats */

static const pawl_lane_stats *find_lane(const pawl_stats_info *stats, const char *queue, const char *kind)
{
    for (size_t i = 0; i < stats->lane_count; i++)
        if (strcmp(stats->lanes[i].queue, queue) == 0 && strcmp(stats->lanes[i].kind, kind) == 0)
            return &stats->lanes[i];
    fail_msg("no lane %s/%s", queue, kind);
    return NULL;
}

static pawl_stats_info read_stats(pool *p)
{
    pawl_stats_info stats = PAWL_STATS_INIT;
    assert_ok(p->store->ops->stats(p->store, p->rig->now_ms, p->rig->boot_ms, &stats));
    return stats;
}

/* Goal: each lane shows its numbers, its last error, the age of what would be claimed first, what is past
 * its lease, and whether it is paused; lanes are sorted. */
static void each_lane_shows_its_numbers(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pawli_new_job jobs[8] = { [6] = { .available_at_ms = r->now_ms + 500 * LEASE_MS }, [7] = { 0 } };
    pool_enqueue(p, jobs, 7);
    (void)put_job(p, .queue = "b-queue", .kind = "b");
    pool_switch(p, PAWLI_PAUSE, "b-queue");
    size_t count;
    pawli_claim *c = pool_claim(p, 5, &count);
    assert_ok(pool_end(p, c, succeeded()));
    pawli_ending ending = ending_of(c->next, failed());
    ending.error = "bad\tthing";
    ending.error_bytes = 9;
    int64_t failed_at = r->now_ms;
    pool_write(p, &(pawli_batch){ .endings = &ending });
    assert_ok(pool_end(p, c->next->next, cancelled()));
    rig_advance(r, LEASE_MS - 1);
    pawl_stats_info stats = read_stats(p);
    assert_int_equal(find_lane(&stats, "q", "a")->expired, 0);
    pawl_stats_info_clear(&stats);
    rig_advance(r, 1);
    pawli_heartbeat beat = { .claim = c->next->next->next };
    pool_write(p, &(pawli_batch){ .heartbeats = &beat });
    stats = read_stats(p);
    assert_int_equal(stats.lane_count, 2);
    assert_string_equal(stats.lanes[0].queue, "b-queue");
    const pawl_lane_stats *lane = find_lane(&stats, "q", "a");
    assert_false(lane->paused);
    assert_int_equal(lane->pending_due, 1);
    assert_int_equal(lane->pending_later, 1);
    assert_int_equal(lane->running, 2);
    assert_int_equal(lane->expired, 1);
    assert_int_equal(lane->succeeded, 1);
    assert_int_equal(lane->failed, 1);
    assert_int_equal(lane->cancelled, 1);
    assert_int_equal(lane->blocked, 0);
    assert_int_equal(lane->enqueued, 7);
    assert_int_equal(lane->pruned, 0);
    assert_int_equal(lane->oldest_due_age_ms, LEASE_MS);
    assert_string_equal(lane->last_error, "bad\tthing");
    assert_int_equal(lane->last_error_at_ms, failed_at);
    lane = find_lane(&stats, "b-queue", "b");
    assert_true(lane->paused);
    assert_int_equal(lane->pending_due, 1);
    assert_null(lane->last_error);
    pawl_stats_info_clear(&stats);
}

/* Goal: no lanes are no lanes, and a clock that was set back gives no negative age (V2). */
static void numbers_are_never_negative(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pawl_stats_info stats = read_stats(p);
    assert_int_equal(stats.lane_count, 0);
    pawl_stats_info_clear(&stats);
    (void)put_job(p, .kind = "a");
    r->now_ms -= 100000;
    stats = read_stats(p);
    assert_int_equal(stats.lanes[0].oldest_due_age_ms, 0);
    pawl_stats_info_clear(&stats);
}

/* ------------------------------------------------------------------ others, and the lock */

static bool looks_changed(pool *p)
{
    bool changed = false;
    assert_ok(p->store->ops->look(p->store, &changed));
    return changed;
}

/* Goal: what others commit is noticed, and then known without a write of one's own; one's own commits
 * are no news (I10). */
static void commits_of_others_are_noticed(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pool_open(r, &r->second, "second");
    (void)looks_changed(p);
    assert_false(looks_changed(p));
    (void)put_job(p, .kind = "a");
    assert_false(looks_changed(p));
    (void)put_job(&r->second, .kind = "b");
    assert_int_equal(outlook_of(p).claimable, 1);
    assert_true(looks_changed(p));
    assert_int_equal(outlook_of(p).claimable, 2);
    assert_false(looks_changed(p));
    pool_switch(&r->second, PAWLI_PAUSE, "q");
    assert_true(looks_changed(p));
    assert_int_equal(outlook_of(p).claimable, 0);
    (void)put_job(&r->second, .queue = "q3", .available_at_ms = r->now_ms + 5);
    assert_true(looks_changed(p));
    assert_int_equal(outlook_of(p).next_due_ms, r->now_ms + 5);
}

/* Goal: looking, reading and saying what is known never wait for another's transaction. */
static void readers_do_not_wait_for_a_writer(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t id = put_job(p, .kind = "a");
    pool_open(r, &r->second, "second");
    assert_ok(r->second.store->ops->begin(r->second.store, 0));
    (void)looks_changed(p);
    assert_stored(p, id, PAWL_STATE_PENDING, 0);
    pawl_stats_info stats = read_stats(p);
    assert_int_equal(stats.lane_count, 1);
    pawl_stats_info_clear(&stats);
    pawli_batch nothing = { .now_ms = r->now_ms, .boot_ms = r->boot_ms };
    assert_ok(r->second.store->ops->write(r->second.store, &nothing));
}

/* Goal: one transaction writes at a time: the other is refused as BUSY, at once or when its time is over,
 * and can begin afterwards. */
static void one_writes_at_a_time(void **state)
{
    rig *r = *state;
    pawli_store *first = r->first.store, *second;
    pawli_batch nothing = { .now_ms = r->now_ms, .boot_ms = r->boot_ms };
    pool_open(r, &r->second, "second");
    second = r->second.store;
    assert_ok(first->ops->begin(first, 1000));
    assert_status(second->ops->begin(second, 0), PAWL_ERR_BUSY);
    int64_t deadline = pawli_steady_now_ns() + 10 * PAWLI_NS_PER_MS;
    assert_status(second->ops->begin(second, 10), PAWL_ERR_BUSY);
    assert_true(pawli_steady_now_ns() >= deadline);
    assert_ok(first->ops->write(first, &nothing));
    assert_ok(second->ops->begin(second, 0));
    assert_status(first->ops->begin(first, 0), PAWL_ERR_BUSY);
    assert_ok(second->ops->write(second, &nothing));
    (void)put_job(&r->first, .kind = "a");
}

/* Goal: a store that is well has nothing to recover or to tidy, and is as it was afterwards. */
static void a_healthy_store_stays_as_it_is(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t id = put_job(p, .kind = "a");
    for (int i = 0; i < 3; i++) {
        assert_ok(p->store->ops->recover(p->store));
        bool wrote;
        (void)p->store->ops->tidy(p->store, i % 2 == 0, &wrote);
        pool_idle(p);
    }
    assert_stored(p, id, PAWL_STATE_PENDING, 0);
    assert_int_equal(pool_claim_one(p)->job, id);
    assert_int_equal(p->log_lines, 0);
}

/* Goal: everything is still there after the store was closed and opened (I1). */
static void what_was_written_is_there_after_a_new_opening(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pawli_new_job jobs[4] = { [3] = { .available_at_ms = r->now_ms + 1000 } };
    size_t count;
    pool_enqueue(p, jobs, 4);
    pawli_claim *c = pool_claim(p, 2, &count);
    assert_ok(pool_end(p, c, succeeded()));
    pool_reopen(p);
    assert_stored(p, jobs[0].id, PAWL_STATE_SUCCEEDED, 1);
    assert_stored(p, jobs[1].id, PAWL_STATE_RUNNING, 1);
    assert_stored(p, jobs[2].id, PAWL_STATE_PENDING, 0);
    assert_int_equal(outlook_of(p).claimable, 1);
    assert_int_equal(outlook_of(p).next_due_ms, r->now_ms + 1000);
    pool_idle(p); /* the counters are still right */
}

static const struct CMUnitTest tests[] = {
    STORE_TEST(pages_hold_what_the_filter_says),
    STORE_TEST(what_is_not_there_is_not_found),
    STORE_TEST(each_lane_shows_its_numbers),
    STORE_TEST(numbers_are_never_negative),
    STORE_TEST(commits_of_others_are_noticed),
    STORE_TEST(readers_do_not_wait_for_a_writer),
    STORE_TEST(one_writes_at_a_time),
    STORE_TEST(a_healthy_store_stays_as_it_is),
    STORE_TEST(what_was_written_is_there_after_a_new_opening),
};

const suite suite_read = SUITE(tests, "read");
