/* enqueue.c - what a store keeps of new jobs: I1, I2, I16, I17, R11. */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

/* Goal: ids follow the order of the calls, within a group, within a batch and over batches. */
static void ids_follow_the_calls(void **state)
{
    rig *r = *state;
    pawli_new_job jobs[9] = { 0 };
    complete(jobs, 9);
    pawli_new_jobs groups[3] = { { .jobs = jobs, .count = 3 },
                                 { .jobs = jobs + 3, .count = 1 },
                                 { .jobs = jobs + 4, .count = 3 } };
    groups[0].next = &groups[1];
    groups[1].next = &groups[2];
    pool_write(&r->first, &(pawli_batch){ .enqueues = groups });
    for (size_t i = 0; i < 3; i++)
        assert_ok(groups[i].status);
    pool_enqueue(&r->first, jobs + 7, 2);
    for (size_t i = 0; i < 9; i++) {
        assert_true(jobs[i].id > (i > 0 ? jobs[i - 1].id : 0));
        assert_stored(&r->first, jobs[i].id, PAWL_STATE_PENDING, 0);
    }
}

static void assert_same_bytes(const void *is, size_t is_bytes, const void *wanted, size_t bytes)
{
    assert_int_equal(is_bytes, bytes);
    if (bytes > 0)
        assert_memory_equal(is, wanted, bytes);
    assert_int_equal(((const char *)is)[bytes], '\0'); /* for convenience */
}

static void assert_as_asked(pool *p, const pawli_new_job *job)
{
    const pawl_job_info *info = stored(p, job->id);
    assert_string_equal(info->queue, job->queue);
    assert_string_equal(info->kind, job->kind);
    assert_same_bytes(info->payload, info->payload_bytes, job->payload, job->payload_bytes);
    assert_int_equal(info->priority, job->priority);
    assert_int_equal(info->max_attempts, job->max_attempts);
    assert_int_equal(info->timeout_ms, job->timeout_ms);
    assert_int_equal(info->available_at_ms, job->available_at_ms);
    assert_int_equal(info->created_at_ms, p->rig->now_ms);
    assert_int_equal(info->idempotency_key_bytes, job->key_bytes);
    if (job->key != NULL)
        assert_same_bytes(info->idempotency_key, info->idempotency_key_bytes, job->key, job->key_bytes);
    else
        assert_null(info->idempotency_key);
    assert_int_equal(info->claimed_at_ms, 0);
    assert_int_equal(info->lease_until_ms, 0);
    assert_int_equal(info->finished_at_ms, 0);
    assert_int_equal(info->fence, 0);
    assert_null(info->claimed_by);
    assert_null(info->last_error);
}

/* Goal: what is stored, and later claimed, is what was asked for, to the byte (I2). */
static void what_was_asked_for_is_stored(void **state)
{
    rig *r = *state;
    static char large[300000], longest_key[255];
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (char)(i * 31);
    large[sizeof large - 1] = '\0'; /* the one behind the payload */
    memset(longest_key, 0xFF, sizeof longest_key);
    pawli_new_job jobs[] = {
        { .payload = "" },
        { .payload = "text", .payload_bytes = 4, .priority = INT32_MAX, .max_attempts = 1 },
        { .payload = "a\0b\xFF\0", .payload_bytes = 5, .key = "k", .key_bytes = 1 },
        { .payload = large, .payload_bytes = sizeof large - 1, .priority = INT32_MIN },
        { .key = longest_key, .key_bytes = 255, .max_attempts = UINT32_MAX, .timeout_ms = PAWL_NONE },
        { .key = "\0", .key_bytes = 1, .timeout_ms = INT64_MAX },
        { .queue = "\xE2\x82\xAC '\"; --", .kind = "b" },
        { .available_at_ms = PAWLI_TIME_MAX_MS, .timeout_ms = 5 },
    };
    const size_t count = sizeof jobs / sizeof jobs[0];
    pool_enqueue(&r->first, jobs, count);
    for (size_t i = 0; i < count; i++)
        assert_as_asked(&r->first, &jobs[i]);
    size_t claimed;
    for (pawli_claim *c = pool_claim(&r->first, count, &claimed); c != NULL; c = c->next) {
        const pawli_new_job *job = jobs;
        while (job->id != c->job)
            job++;
        assert_string_equal(c->queue, job->queue);
        assert_string_equal(c->kind, job->kind);
        assert_same_bytes(c->payload, c->payload_bytes, job->payload, job->payload_bytes);
        assert_int_equal(c->timeout_ms, job->timeout_ms);
        assert_int_equal(c->max_attempts, job->max_attempts);
        assert_int_equal(c->attempt, 1);
    }
    assert_int_equal(claimed, count - 1); /* one is for the year 9999 */
}

/* Goal: a time that has passed means now. */
static void a_time_that_has_passed_is_now(void **state)
{
    rig *r = *state;
    static const int64_t offsets[] = { -1, 0, 1 };
    for (size_t i = 0; i < 3; i++) {
        int64_t id = put_job(&r->first, .available_at_ms = r->now_ms + offsets[i]);
        assert_int_equal(stored(&r->first, id)->available_at_ms, r->now_ms + (offsets[i] > 0));
    }
    assert_int_equal(outlook_of(&r->first).claimable, 2);
    assert_int_equal(outlook_of(&r->first).next_due_ms, r->now_ms + 1);
}

/* ---------------------------------------------------------------------------- the keys */

/* Goal: within one group, one batch and over batches, a key of a kind is stored once; the others are
 * told its id (I16). The queue does not matter. */
static void a_key_is_stored_once_per_kind(void **state)
{
    rig *r = *state;
    pawli_new_job jobs[] = {
        { .key = "k", .key_bytes = 1, .payload = "one", .payload_bytes = 3 },
        { .key = "k", .key_bytes = 1 },                 /* in the same group */
        { .key = "other", .key_bytes = 5 },
        { .key = "k", .key_bytes = 1, .queue = "q2" },  /* in the same batch */
        { .key = "k", .key_bytes = 1, .kind = "b" },    /* another kind */
        { .key = "k", .key_bytes = 1, .available_at_ms = INT64_C(1900000000000) }, /* the next batch */
    };
    static const size_t holder[] = { 0, 0, 2, 0, 4, 0 };
    complete(jobs, 6);
    pawli_new_jobs second = { .jobs = jobs + 3, .count = 2 };
    pawli_new_jobs first = { .next = &second, .jobs = jobs, .count = 3 };
    pool_write(&r->first, &(pawli_batch){ .enqueues = &first });
    assert_ok(first.status);
    assert_ok(second.status);
    pool_enqueue(&r->first, jobs + 5, 1);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(jobs[i].id, jobs[holder[i]].id);
        assert_int_equal(jobs[i].exists, holder[i] != i);
    }
    assert_int_equal(stored(&r->first, jobs[0].id)->payload_bytes, 3);
    size_t count;
    (void)pool_claim(&r->first, 10, &count);
    assert_int_equal(count, 3);
}

/* Goal: keys are bytes, compared at their whole length. */
static void keys_are_exact(void **state)
{
    rig *r = *state;
    pawli_new_job jobs[] = {
        { .key = "a", .key_bytes = 1 },   { .key = "a\0", .key_bytes = 2 },
        { .key = "a\0b", .key_bytes = 3 }, { .key = "A", .key_bytes = 1 },
        { .key = "a ", .key_bytes = 2 },  { .key = "\xFF", .key_bytes = 1 },
        { .key = NULL },                  { .key = NULL },
    };
    pool_enqueue(&r->first, jobs, 8);
    for (size_t i = 0; i < 8; i++)
        assert_false(jobs[i].exists);
    for (size_t i = 0; i < 6; i++) {
        pawli_new_job again = { .key = jobs[i].key, .key_bytes = jobs[i].key_bytes };
        pool_enqueue(&r->first, &again, 1);
        assert_true(again.exists);
        assert_int_equal(again.id, jobs[i].id);
    }
}

/* Goal: a key stays taken whatever has become of its job, and for whoever asks. */
static void a_key_stays_taken(void **state)
{
    rig *r = *state;
    const pawli_verdict verdicts[] = { succeeded(), failed(), cancelled(), retried(5000) };
    pool_open(r, &r->second, "second");
    for (size_t i = 0; i < 4; i++) {
        char key = (char)('0' + i);
        int64_t id = put_job(&r->first, .key = &key, .key_bytes = 1);
        assert_ok(pool_end(&r->first, pool_claim_one(&r->first), verdicts[i]));
        pawli_new_job again = { .key = &key, .key_bytes = 1 };
        pool_enqueue(i % 2 ? &r->second : &r->first, &again, 1);
        assert_true(again.exists);
        assert_int_equal(again.id, id);
        assert_int_equal(stored(&r->first, id)->state, verdicts[i].to);
    }
    assert_nothing_to_claim(&r->first);
}

/* Goal: of a group everything is stored or nothing, and its neighbours do not feel it (I17). */
static void a_group_is_stored_whole_or_not_at_all(void **state)
{
    rig *r = *state;
    pawli_new_job jobs[7] = { [3] = { .priority = POISON } };
    complete(jobs, 7);
    pawli_new_jobs groups[3] = { { .jobs = jobs, .count = 2 },
                                 { .jobs = jobs + 2, .count = 3 },
                                 { .jobs = jobs + 5, .count = 2 } };
    groups[0].next = &groups[1];
    groups[1].next = &groups[2];
    r->kind->refuse(rig_path(r), REFUSE_ENQUEUE);
    pool_write(&r->first, &(pawli_batch){ .enqueues = groups });
    assert_ok(groups[0].status);
    assert_true(groups[1].status < 0);
    assert_ok(groups[2].status);
    size_t count;
    (void)pool_claim(&r->first, 10, &count);
    assert_int_equal(count, 4);
    r->kind->refuse(rig_path(r), REFUSE_NOTHING);
    groups[1].next = NULL;
    pool_write(&r->first, &(pawli_batch){ .enqueues = &groups[1] });
    assert_ok(groups[1].status);
    for (size_t i = 0; i < 7; i++) {
        assert_true(is_stored(&r->first, jobs[i].id));
        for (size_t other = 0; other < i; other++)
            assert_int_not_equal(jobs[i].id, jobs[other].id);
    }
}

/* Goal: an id is never used again, not after its job is gone, not by another or a later pool (R11). */
static void ids_are_never_used_again(void **state)
{
    rig *r = *state;
    pool_open(r, &r->second, "second");
    int64_t newest = 0;
    for (int round = 0; round < 3; round++) {
        pool *p = round == 1 ? &r->second : &r->first;
        int64_t id = put_job(p, .kind = "a");
        assert_true(id > newest);
        newest = id;
        p->options.keep_succeeded_max = 0;
        assert_ok(pool_end(p, pool_claim_one(p), succeeded()));
        pool_write(p, &(pawli_batch){ .prune_max = 10 });
        assert_false(is_stored(p, id));
        if (round == 1)
            pool_reopen(&r->first);
    }
}

static const struct CMUnitTest tests[] = {
    STORE_TEST(ids_follow_the_calls),
    STORE_TEST(what_was_asked_for_is_stored),
    STORE_TEST(a_time_that_has_passed_is_now),
    STORE_TEST(a_key_is_stored_once_per_kind),
    STORE_TEST(keys_are_exact),
    STORE_TEST(a_key_stays_taken),
    STORE_TEST(a_group_is_stored_whole_or_not_at_all),
    STORE_TEST(ids_are_never_used_again),
};

const suite suite_enqueue = SUITE(tests, "enqueue");
