/* effect.c - what belongs to a success stands exactly if the success does: I17, I19. */
#include <string.h>

#include "rig.h"

/* An on_success function that writes a number, and may then fail all the same. */
typedef struct note {
    rig *rig;
    int64_t number;
    pawl_status then; /* PAWL_OK, or the answer after the write */
    int calls;
} note;

static pawl_status write_note(void *db, pawl_job *job, void *arg)
{
    note *n = arg;
    assert_non_null(job);
    n->calls++;
    pawl_status st = n->rig->kind->write_effect(db, n->number);
    return st == PAWL_OK ? n->then : st;
}

static pawli_effect effect_of(note *n)
{
    return (pawli_effect){ .fn = write_note, .arg = n };
}

static int setup_effects(void **state)
{
    if (rig_setup(state) != 0)
        return -1;
    rig *r = *state;
    r->kind->create_effects(rig_path(r));
    return 0;
}

/* Goal: several successes with effects in one batch stand with their effects, each called once. */
static void effects_stand_with_the_success(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    enum { COUNT = 5 };
    pawli_new_job jobs[COUNT] = { 0 };
    note notes[COUNT];
    pawli_effect effects[COUNT];
    pawli_ending endings[COUNT];
    size_t count;
    pool_enqueue(p, jobs, COUNT);
    pawli_claim *claim = pool_claim(p, COUNT, &count);
    for (size_t i = 0; i < COUNT; i++, claim = claim->next) {
        notes[i] = (note){ .rig = r, .number = (int64_t)i };
        effects[i] = effect_of(&notes[i]);
        endings[i] = ending_of(claim, succeeded());
        endings[i].effects = &effects[i];
        endings[i].next = i + 1 < COUNT ? &endings[i + 1] : NULL;
    }
    pool_write(p, &(pawli_batch){ .endings = endings });
    for (size_t i = 0; i < COUNT; i++) {
        assert_ok(endings[i].status);
        assert_int_equal(endings[i].settled, PAWL_STATE_SUCCEEDED);
        assert_stored(p, jobs[i].id, PAWL_STATE_SUCCEEDED, 1);
        assert_true(r->kind->has_effect(rig_path(r), (int64_t)i));
        assert_int_equal(notes[i].calls, 1);
    }
}

/* Goal: an effect that fails, by its own word or by a constraint of the application's table, is rolled
 * back alone: its job is retried with the reason, everything else in the batch stands (I17, I19). */
static void an_effect_that_fails_fails_alone(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    static const struct {
        int64_t number;
        pawl_status then;
    } cases[] = { { 7, PAWL_ERR_INVALID }, { 7, PAWL_ERR_STORE }, { 7, PAWL_ERR_BUSY },
                  { EFFECT_FAILS, PAWL_OK }, { EFFECT_FAILS, PAWL_ERR_NOMEM } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pawli_new_job jobs[3] = { { .max_attempts = 9 }, { .max_attempts = 9 }, { .max_attempts = 9 } };
        pawli_new_job fresh = { .kind = "b", .available_at_ms = r->now_ms + 100000 };
        int64_t victim = put_job(p, .queue = "elsewhere");
        size_t count;
        pool_enqueue(p, jobs, 3);
        complete(&fresh, 1);
        pawli_claim *claims = pool_claim(p, 3, &count);
        note good = { .rig = r, .number = (int64_t)i + 100 };
        note bad = { .rig = r, .number = cases[i].number, .then = cases[i].then };
        pawli_effect good_effect = effect_of(&good), bad_effect = effect_of(&bad);
        pawli_ending endings[3] = { ending_of(claims, succeeded()),
                                    ending_of(claims->next, succeeded()),
                                    ending_of(claims->next->next, failed()) };
        endings[0].effects = &good_effect;
        endings[1].effects = &bad_effect;
        endings[0].next = &endings[1];
        endings[1].next = &endings[2];
        pawl_status cancel = PAWL_ERR_UNKNOWN;
        pawli_operation operation = { .type = PAWLI_CANCEL, .ids = &victim, .count = 1, .each = &cancel };
        pawli_new_jobs group = { .jobs = &fresh, .count = 1 };
        pool_write(p, &(pawli_batch){ .endings = endings, .operations = &operation, .enqueues = &group });
        for (size_t e = 0; e < 3; e++)
            assert_ok(endings[e].status);
        assert_stored(p, jobs[0].id, PAWL_STATE_SUCCEEDED, 1);
        assert_true(r->kind->has_effect(rig_path(r), good.number));
        assert_int_equal(endings[1].settled, PAWL_STATE_PENDING);
        assert_stored(p, jobs[1].id, PAWL_STATE_PENDING, 1);
        assert_int_equal(stored(p, jobs[1].id)->available_at_ms, r->now_ms + BACKOFF_MS);
        assert_text_has(stored(p, jobs[1].id)->last_error, "on_success");
        assert_false(r->kind->has_effect(rig_path(r), cases[i].number));
        assert_stored(p, jobs[2].id, PAWL_STATE_FAILED, 1);
        assert_ok(cancel);
        assert_true(is_stored(p, fresh.id));
    }
}

/* Goal: several functions run in the order they were given; when one fails, those before it are undone
 * and those behind it are not called. */
static void functions_run_in_their_order_as_one(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t id = put_job(p, .kind = "a");
    note notes[3] = { { .rig = r, .number = 1 },
                      { .rig = r, .number = 2, .then = PAWL_ERR_STATE },
                      { .rig = r, .number = 3 } };
    pawli_effect effects[3] = { effect_of(&notes[0]), effect_of(&notes[1]), effect_of(&notes[2]) };
    effects[0].next = &effects[1];
    effects[1].next = &effects[2];
    pawli_ending ending = ending_of(pool_claim_one(p), succeeded());
    ending.effects = effects;
    pool_write(p, &(pawli_batch){ .endings = &ending });
    assert_ok(ending.status);
    assert_stored(p, id, PAWL_STATE_PENDING, 1);
    assert_int_equal(notes[2].calls, 0);
    rig_advance(r, BACKOFF_MS);
    notes[1].then = PAWL_OK;
    ending = ending_of(pool_claim_one(p), succeeded());
    ending.effects = effects;
    for (int64_t number = 1; number <= 3; number++)
        assert_false(r->kind->has_effect(rig_path(r), number));
    pool_write(p, &(pawli_batch){ .endings = &ending });
    assert_stored(p, id, PAWL_STATE_SUCCEEDED, 2);
    for (int64_t number = 1; number <= 3; number++)
        assert_true(r->kind->has_effect(rig_path(r), number));
}

/* Goal: the fallback of the last attempt is a failure, and it is charged (I9). */
static void an_effect_that_fails_at_the_last_attempt(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t id = put_job(p, .max_attempts = 1);
    note bad = { .rig = r, .number = 4, .then = PAWL_ERR_INVALID };
    pawli_effect effect = effect_of(&bad);
    pawli_ending ending = ending_of(pool_claim_one(p), succeeded());
    ending.effects = &effect;
    pool_write(p, &(pawli_batch){ .endings = &ending });
    assert_ok(ending.status);
    assert_int_equal(ending.settled, PAWL_STATE_FAILED);
    assert_stored(p, id, PAWL_STATE_FAILED, 1);
    assert_false(r->kind->has_effect(rig_path(r), 4));
}

/* Goal: a claim that was lost leaves no effects: its functions are not even called (I6, I19). */
static void a_lost_claim_leaves_no_effects(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pool_open(r, &r->second, "second");
    int64_t id = put_job(p, .kind = "a");
    pawli_claim *claim = pool_claim_one(&r->second);
    rig_advance(r, 2 * LEASE_MS);
    pool_write(p, &(pawli_batch){ .sweep = true });
    pawli_new_job follower = { .kind = "b" };
    complete(&follower, 1);
    pawli_new_jobs then = { .jobs = &follower, .count = 1 };
    note late = { .rig = r, .number = 5 };
    pawli_effect effects[2] = { effect_of(&late), { .then = &then } };
    effects[0].next = &effects[1];
    pawli_ending ending = ending_of(claim, succeeded());
    ending.effects = effects;
    pool_write(&r->second, &(pawli_batch){ .endings = &ending });
    assert_int_equal(ending.status, PAWL_ERR_LEASE_LOST);
    assert_int_equal(late.calls, 0);
    assert_false(r->kind->has_effect(rig_path(r), 5));
    assert_stored(p, id, PAWL_STATE_PENDING, 1);
    assert_int_equal(pool_claim_one(p)->job, id);
    assert_nothing_to_claim(p); /* no follower */
}

/* ------------------------------------------------------------------------- followers */

/* Goal: a job's followers are stored with its success, and one whose key exists counts as done. */
static void followers_come_with_the_success(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t known = put_job(p, .key = "k", .key_bytes = 1, .available_at_ms = r->now_ms + 50000);
    int64_t id = put_job(p, .kind = "a");
    pawli_new_job followers[3] = { { .kind = "b", .payload = "next", .payload_bytes = 4 },
                                   { .key = "k", .key_bytes = 1 },
                                   { .kind = "b", .key = "k", .key_bytes = 1 } };
    complete(followers, 3);
    pawli_new_jobs then[3] = { { .jobs = &followers[0], .count = 1 },
                               { .jobs = &followers[1], .count = 1 },
                               { .jobs = &followers[2], .count = 1 } };
    pawli_effect effects[3] = { { .then = &then[0] }, { .then = &then[1] }, { .then = &then[2] } };
    effects[0].next = &effects[1];
    effects[1].next = &effects[2];
    pawli_ending ending = ending_of(pool_claim_one(p), succeeded());
    ending.effects = effects;
    pawli_batch batch = { .endings = &ending, .claim_max = 9 };
    pool_write(p, &batch);
    assert_ok(ending.status);
    assert_stored(p, id, PAWL_STATE_SUCCEEDED, 1);
    assert_int_equal(followers[1].id, known);
    assert_int_equal(batch.claimed_count, 2); /* ready in the very same batch */
    assert_int_equal(batch.claimed->job, followers[0].id);
    assert_int_equal(batch.claimed->payload_bytes, 4);
    assert_string_equal(batch.claimed->payload, "next");
    assert_int_equal(batch.claimed->next->job, followers[2].id);
}

/* Goal: functions and followers of one success are one thing: when a function fails there are no
 * followers, and followers of other verdicts are never stored. */
static void followers_go_with_a_failure(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    (void)put_job(p, .kind = "b", .available_at_ms = r->now_ms + 1000000); /* the lane is there */
    (void)put_job(p, .max_attempts = 9);
    pawli_new_job follower = { .kind = "b" };
    complete(&follower, 1);
    pawli_new_jobs then = { .jobs = &follower, .count = 1 };
    note bad = { .rig = r, .number = 6, .then = PAWL_ERR_INVALID };
    pawli_effect effects[2] = { { .then = &then }, effect_of(&bad) };
    effects[0].next = &effects[1];
    pawli_ending ending = ending_of(pool_claim_one(p), succeeded());
    ending.effects = effects;
    pawli_batch batch = { .endings = &ending, .claim_max = 9 };
    pool_write(p, &batch);
    assert_ok(ending.status);
    assert_int_equal(ending.settled, PAWL_STATE_PENDING);
    assert_int_equal(batch.claimed_count, 0);
    assert_false(r->kind->has_effect(rig_path(r), 6));
}

/* Goal: a follower that the store refuses takes its job's success and its functions with it, and
 * nobody else's; written once more it stands, with ids and fences that were never given before. */
static void a_follower_that_is_refused(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    pawli_new_job jobs[2] = { 0 }, follower = { .kind = "b", .priority = POISON };
    size_t count;
    pool_enqueue(p, jobs, 2);
    complete(&follower, 1);
    pawli_claim *claims = pool_claim(p, 2, &count);
    pawli_new_jobs then = { .jobs = &follower, .count = 1 };
    note good = { .rig = r, .number = 8 }, other = { .rig = r, .number = 9 };
    pawli_effect effects[2] = { effect_of(&good), { .then = &then } }, other_effect = effect_of(&other);
    effects[0].next = &effects[1];
    pawli_ending endings[2] = { ending_of(claims, succeeded()), ending_of(claims->next, succeeded()) };
    endings[0].effects = effects;
    endings[1].effects = &other_effect;
    endings[0].next = &endings[1];
    r->kind->refuse(rig_path(r), REFUSE_ENQUEUE);
    pool_write(p, &(pawli_batch){ .endings = endings });
    assert_int_equal(endings[0].status, PAWL_ERR_STORE);
    assert_ok(endings[1].status);
    assert_stored(p, jobs[0].id, PAWL_STATE_RUNNING, 1);
    assert_false(r->kind->has_effect(rig_path(r), 8));
    assert_stored(p, jobs[1].id, PAWL_STATE_SUCCEEDED, 1);
    assert_true(r->kind->has_effect(rig_path(r), 9));
    r->kind->refuse(rig_path(r), REFUSE_NOTHING);
    endings[0].next = NULL;
    pool_write(p, &(pawli_batch){ .endings = endings });
    assert_ok(endings[0].status);
    assert_stored(p, jobs[0].id, PAWL_STATE_SUCCEEDED, 1);
    assert_true(r->kind->has_effect(rig_path(r), 8));
    assert_true(follower.id > jobs[1].id);
    assert_stored(p, follower.id, PAWL_STATE_PENDING, 0);
}

/* Goal: a batch that is replayed because of one command calls a neighbour's function again, and its
 * effect is there once. */
static void a_replay_leaves_one_effect(void **state)
{
    rig *r = *state;
    pool *p = &r->first;
    int64_t id = put_job(p, .kind = "a");
    note good = { .rig = r, .number = 11 };
    pawli_effect effect = effect_of(&good);
    pawli_ending ending = ending_of(pool_claim_one(p), succeeded());
    ending.effects = &effect;
    pawli_new_job poisoned = { .priority = POISON };
    complete(&poisoned, 1);
    pawli_new_jobs group = { .jobs = &poisoned, .count = 1 };
    r->kind->refuse(rig_path(r), REFUSE_ENQUEUE);
    pool_write(p, &(pawli_batch){ .endings = &ending, .enqueues = &group });
    assert_ok(ending.status);
    assert_int_equal(group.status, PAWL_ERR_STORE);
    assert_stored(p, id, PAWL_STATE_SUCCEEDED, 1);
    assert_true(r->kind->has_effect(rig_path(r), 11));
}

#define EFFECT_TEST(name) cmocka_unit_test_setup_teardown(name, setup_effects, rig_teardown)

static const struct CMUnitTest tests[] = {
    EFFECT_TEST(effects_stand_with_the_success),
    EFFECT_TEST(an_effect_that_fails_fails_alone),
    EFFECT_TEST(functions_run_in_their_order_as_one),
    EFFECT_TEST(an_effect_that_fails_at_the_last_attempt),
    EFFECT_TEST(a_lost_claim_leaves_no_effects),
    EFFECT_TEST(followers_come_with_the_success),
    EFFECT_TEST(followers_go_with_a_failure),
    EFFECT_TEST(a_follower_that_is_refused),
    EFFECT_TEST(a_replay_leaves_one_effect),
};

const suite suite_effect = SUITE(tests, "effect");
