/* refusal.c - one command of a large batch is refused by the database; all others stand: I17.
 *
 * The same batch is written once for each thing that can be refused: it ends, extends, cancels,
 * requeues, rescues, promotes, enqueues, claims and prunes at once, always with a neighbour of the same
 * sort before and behind the poisoned one. */
#include <string.h>

#include "rig.h"

typedef struct trio {
    int64_t ids[3]; /* the one in the middle may be poisoned */
    pawli_claim *claims[3];
} trio;

typedef struct scene {
    trio ends, beats, cancels, requeues, promoted, pruned;
    pawli_ending endings[3];
    pawli_heartbeat heartbeats[3];
    pawli_operation operations[4];
    pawl_status each[4];
    pawli_new_job fresh[3];
    pawli_new_jobs groups[3];
    pawli_claim *ran, *waited; /* of a pool that died */
    pawli_rescue rescue;
    int64_t waiting;
    pawli_batch batch;
} scene;

static int32_t priority_of(const rig *r, refusal what, size_t i)
{
    return what != REFUSE_NOTHING && r->refused == what && i == 1 ? POISON : 0;
}

static void put_trio(rig *r, trio *t, refusal what, int64_t available_at_ms, bool claimed)
{
    for (size_t i = 0; i < 3; i++) {
        t->ids[i] = put_job(&r->first, .priority = priority_of(r, what, i),
                            .available_at_ms = available_at_ms);
        t->claims[i] = claimed ? pool_claim_one(&r->first) : NULL;
        assert_true(!claimed || t->claims[i]->job == t->ids[i]);
    }
}

static void end_trio(rig *r, trio *t, pawli_verdict verdict)
{
    for (size_t i = 0; i < 3; i++)
        assert_ok(pool_end(&r->first, t->claims[i], verdict));
}

static void prepare(rig *r, scene *s)
{
    put_trio(r, &s->pruned, REFUSE_PRUNING, 0, true); /* the oldest */
    end_trio(r, &s->pruned, succeeded());
    put_trio(r, &s->ends, REFUSE_ENDING, 0, true);
    put_trio(r, &s->beats, REFUSE_HEARTBEAT, 0, true);
    put_trio(r, &s->requeues, REFUSE_NOTHING, 0, true);
    end_trio(r, &s->requeues, failed());
    pool_open(r, &r->second, "second");
    (void)put_job(&r->first, .kind = "b");
    s->ran = pool_claim_one(&r->second);
    (void)put_job(&r->first, .kind = "b");
    s->waited = pool_claim_one(&r->second);
    put_trio(r, &s->promoted, REFUSE_PROMOTION, r->now_ms + 1000, false);
    put_trio(r, &s->cancels, REFUSE_CANCEL, 0, false);
    s->waiting = put_job(&r->first, .priority = r->refused == REFUSE_CLAIM ? POISON : 2 * POISON);
    r->first.options.keep_succeeded_max = 3 - (r->refused == REFUSE_ENDING); /* those that end now */
    rig_advance(r, 1000);
}

static void form(rig *r, scene *s)
{
    for (size_t i = 0; i < 3; i++) {
        bool more = i < 2;
        s->endings[i] = ending_of(s->ends.claims[i], succeeded());
        s->endings[i].next = more ? &s->endings[i + 1] : NULL;
        s->heartbeats[i] = (pawli_heartbeat){ .claim = s->beats.claims[i],
                                              .next = more ? &s->heartbeats[i + 1] : NULL };
        s->operations[i] = (pawli_operation){ .type = PAWLI_CANCEL, .ids = &s->cancels.ids[i],
                                              .count = 1, .each = &s->each[i],
                                              .next = &s->operations[i + 1] };
        s->fresh[i] = (pawli_new_job){ .priority = priority_of(r, REFUSE_ENQUEUE, i), .kind = "b" };
        s->groups[i] = (pawli_new_jobs){ .jobs = &s->fresh[i], .count = 1,
                                         .next = more ? &s->groups[i + 1] : NULL };
    }
    s->operations[3] = (pawli_operation){ .type = PAWLI_REQUEUE, .ids = &s->requeues.ids[1], .count = 1,
                                          .each = &s->each[3] };
    complete(s->fresh, 3);
    s->rescue = (pawli_rescue){ .holder = r->second.holder.id, .has_record = true,
                                .started = &s->ran->fence, .started_count = 1 };
    s->batch = (pawli_batch){ .endings = s->endings, .heartbeats = s->heartbeats,
                              .operations = s->operations, .rescues = &s->rescue, .sweep = true,
                              .enqueues = s->groups, .claim_max = 1, .prune_max = 100 };
}

/* The answers and effects of all three of a sort; the poisoned one must be refused and unchanged. */
static void check_commands(rig *r, const scene *s)
{
    pool *p = &r->first;
    for (size_t i = 0; i < 3; i++) {
        bool ending = i != 1 || r->refused != REFUSE_ENDING;
        assert_int_equal(s->endings[i].status, ending ? PAWL_OK : PAWL_ERR_STORE);
        assert_stored(p, s->ends.ids[i], ending ? PAWL_STATE_SUCCEEDED : PAWL_STATE_RUNNING, 1);
        bool beat = i != 1 || r->refused != REFUSE_HEARTBEAT;
        assert_int_equal(s->heartbeats[i].status, beat ? PAWL_OK : PAWL_ERR_STORE);
        assert_int_equal(stored(p, s->beats.ids[i])->lease_until_ms,
                         r->now_ms + LEASE_MS - (beat ? 0 : 1000));
        bool cancel = i != 1 || r->refused != REFUSE_CANCEL;
        assert_int_equal(s->operations[i].status, cancel ? PAWL_OK : PAWL_ERR_STORE);
        assert_stored(p, s->cancels.ids[i], cancel ? PAWL_STATE_CANCELLED : PAWL_STATE_PENDING, 0);
        bool enqueue = i != 1 || r->refused != REFUSE_ENQUEUE;
        assert_int_equal(s->groups[i].status, enqueue ? PAWL_OK : PAWL_ERR_STORE);
        if (enqueue)
            assert_stored(p, s->fresh[i].id, PAWL_STATE_PENDING, 0);
        if (cancel)
            assert_ok(s->each[i]);
    }
    assert_ok(s->operations[3].status);
    assert_ok(s->each[3]);
    assert_stored(p, s->requeues.ids[1], PAWL_STATE_PENDING, 0);
    assert_ok(s->rescue.status);
    assert_int_equal(s->batch.rescued, 2);
    assert_stored(p, s->ran->job, PAWL_STATE_PENDING, 1);
    assert_stored(p, s->waited->job, PAWL_STATE_PENDING, 0);
}

/* What the pool does by itself is refused as a whole at most, and what can be done is done later. */
static void check_own_work(rig *r, const scene *s)
{
    pool *p = &r->first;
    if (r->refused == REFUSE_CLAIM) {
        assert_int_equal(s->batch.claimed_count, 0);
    } else {
        assert_int_equal(s->batch.claimed_count, 1);
        assert_int_equal(s->batch.claimed->job, s->waiting);
    }
    if (r->refused != REFUSE_PRUNING)
        for (size_t i = 0; i < 3; i++)
            assert_false(is_stored(p, s->pruned.ids[i]));
    assert_true(is_stored(p, s->pruned.ids[1]) == (r->refused == REFUSE_PRUNING));
    if (r->refused != REFUSE_PROMOTION)
        assert_int_equal(outlook_of(p).next_due_ms, PAWLI_NEVER);
}

/* Goal: whatever is refused, its neighbours stand, each command has its own answer (I17), counters are
 * right (I20), and when the cause is gone all goes on, with fences that only grow (I5). */
static void the_rest_of_the_batch_stands(void **state)
{
    static scene s;
    rig *r = *state;
    pool *p = &r->first;
    memset(&s, 0, sizeof s);
    prepare(r, &s);
    form(r, &s);
    r->kind->refuse(rig_path(r), r->refused);
    pool_write(p, &s.batch);
    check_commands(r, &s);
    check_own_work(r, &s);
    uint64_t newest = s.batch.claimed != NULL ? s.batch.claimed->fence : 0;
    r->kind->refuse(rig_path(r), REFUSE_NOTHING);
    if (r->refused == REFUSE_ENDING) {
        s.endings[1].next = NULL;
        pool_write(p, &(pawli_batch){ .endings = &s.endings[1] });
        assert_ok(s.endings[1].status);
    }
    rig_advance(r, 3600000);
    size_t count;
    for (int i = 0; i < 5; i++)
        pool_write(p, &(pawli_batch){ .prune_max = 100 });
    assert_int_equal(outlook_of(p).next_due_ms, PAWLI_NEVER);
    for (size_t i = 0; i < 3; i++)
        assert_false(is_stored(p, s.pruned.ids[i]));
    for (pawli_claim *c = pool_claim(p, 100, &count); c != NULL; c = c->next) {
        assert_true(c->fence > newest);
        newest = c->fence;
    }
    /* Promoted, requeued, fresh and rescued ones, and what was not cancelled or claimed the first time. */
    int wanted = 3 + 1 + 3 + 2 - (r->refused == REFUSE_ENQUEUE) + (r->refused == REFUSE_CANCEL)
                 + (r->refused == REFUSE_CLAIM);
    assert_int_equal(count, wanted);
}

static refusal refusals[] = { REFUSE_NOTHING, REFUSE_ENQUEUE,   REFUSE_CLAIM,    REFUSE_ENDING,
                              REFUSE_HEARTBEAT, REFUSE_CANCEL, REFUSE_PROMOTION, REFUSE_PRUNING };

#define REFUSAL_TEST(what, shown)                                                                  \
    { "the_rest_of_the_batch_stands: " shown, the_rest_of_the_batch_stands, rig_setup,             \
      rig_teardown, &refusals[what] }

static const struct CMUnitTest tests[] = {
    REFUSAL_TEST(REFUSE_NOTHING, "nothing refused"),
    REFUSAL_TEST(REFUSE_ENQUEUE, "an enqueue"),
    REFUSAL_TEST(REFUSE_CLAIM, "a claim"),
    REFUSAL_TEST(REFUSE_ENDING, "an ending"),
    REFUSAL_TEST(REFUSE_HEARTBEAT, "a heartbeat"),
    REFUSAL_TEST(REFUSE_CANCEL, "a cancel"),
    REFUSAL_TEST(REFUSE_PROMOTION, "a promotion"),
    REFUSAL_TEST(REFUSE_PRUNING, "a pruning"),
};

const suite suite_refusal = SUITE(tests, "refusal");
