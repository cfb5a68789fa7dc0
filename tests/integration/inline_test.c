/* inline_test.c - what becomes of a job, in a pool without threads and on a virtual clock: outcomes,
 * attempts, backoff, delays, timeouts, leases, cancels, queues and order. Nothing here sleeps. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#define HOUR_MS INT64_C(3600000)

/* What a handler does: one turn a call, the last one again and again. */
typedef struct script {
    int outcomes[8];
    int64_t retry_in_ms; /* negative: not said */
    const char *error;
    int64_t takes_ms; /* of the virtual clock */
    bool heartbeats;  /* after it took them */
    int calls;
    uint32_t attempts[32];
    uint64_t fences[32];
    int64_t ids[64];
    pawl_stop_reason reason; /* at the end of the last call */
    pawl_status heartbeat;
} script;

#define SCRIPT(...) { .retry_in_ms = -1, .outcomes = { __VA_ARGS__ } }

static int play(pawl_job *job, void *arg)
{
    script *s = arg;
    int call = s->calls++;
    if (call < 32) {
        s->attempts[call] = pawl_job_attempt(job);
        s->fences[call] = pawl_job_fence(job);
    }
    if (call < 64)
        s->ids[call] = pawl_job_id(job);
    if (s->error != NULL)
        pawl_job_error(job, "%s", s->error);
    if (s->retry_in_ms >= 0)
        pawl_job_retry_in(job, s->retry_in_ms);
    if (s->takes_ms > 0)
        assert_ok(pawl_clock_advance(pawl_job_pool(job), s->takes_ms));
    if (s->heartbeats)
        s->heartbeat = pawl_job_heartbeat(job);
    s->reason = pawl_job_stop_reason(job);
    assert_int_equal(pawl_job_should_stop(job), s->reason != PAWL_STOP_NONE);
    int turn = 0;
    while (turn < call && turn < 7 && s->outcomes[turn + 1] != 0)
        turn++;
    return s->outcomes[turn];
}

/* Steps until nothing moves; a pool that never comes to rest fails the test instead of hanging it. */
static void run_idle(pawl_pool *pool)
{
    bool progress = true;
    for (int i = 0; progress; i++) {
        assert_true(i < 2000);
        assert_ok(pawl_step(pool, &progress));
    }
}

static void advance(pawl_pool *pool, int64_t ms)
{
    assert_ok(pawl_clock_advance(pool, ms));
    run_idle(pool);
}

/* A started pool in which `s` runs the jobs of kind "k". */
static pawl_pool *start_with(void **state, script *s, const pawl_handler_options *options)
{
    pawl_pool *pool = open_inline((temp *)*state, .max_attempts = 0);
    assert_ok(pawl_register(pool, "k", play, s, options));
    assert_ok(pawl_start(pool));
    return pool;
}

static void assert_waits_ms(pawl_pool *pool, int64_t id, int64_t low, int64_t high)
{
    pawl_job_info info = job_of(pool, id);
    int64_t wait = info.available_at_ms - pawl_clock_now(pool);
    assert_int_equal(info.state, PAWL_STATE_PENDING);
    assert_in_range(wait, low, high);
    pawl_job_info_clear(&info);
}

/* ------------------------------------------------------------------------------ outcomes */

/* Goal: a success ends the job after one charged attempt, with nothing left of an error. */
static void success_ends_the_job(void **state)
{
    script s = SCRIPT(PAWL_SUCCEEDED);
    s.error = "said, but it went well";
    pawl_pool *pool = start_with(state, &s, NULL);
    int64_t id = put(pool, .kind = "k");
    assert_int_equal(state_of(pool, id), PAWL_STATE_PENDING);
    run_idle(pool);
    pawl_job_info info = job_of(pool, id);
    assert_int_equal(info.state, PAWL_STATE_SUCCEEDED);
    assert_int_equal(info.attempts, 1);
    assert_int_equal(info.finished_at_ms, pawl_clock_now(pool));
    assert_null(info.last_error);
    assert_int_equal(info.fence, s.fences[0]);
    pawl_job_info_clear(&info);
    assert_ok(pawl_close(pool));
}

/* Goal: each outcome leads to its own state and charge, in one table (I7, I9). */
static void every_outcome_has_its_state_and_charge(void **state)
{
    static const struct {
        int outcome;
        pawl_state to;
        uint32_t attempts;
        const char *error;
    } table[] = {
        { PAWL_SUCCEEDED, PAWL_STATE_SUCCEEDED, 1, NULL },
        { PAWL_RETRY, PAWL_STATE_PENDING, 1, "gave no reason" },
        { PAWL_FAILED, PAWL_STATE_FAILED, 1, "gave no reason" },
        { PAWL_CANCELLED, PAWL_STATE_CANCELLED, 1, NULL },
        { PAWL_SNOOZED, PAWL_STATE_PENDING, 0, NULL },
        { PAWL_UNKNOWN, PAWL_STATE_PENDING, 1, "-1" },
        { 17, PAWL_STATE_PENDING, 1, "17" },
        { INT32_MIN, PAWL_STATE_PENDING, 1, "-2147483648" },
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        script s = SCRIPT(table[i].outcome);
        pawl_pool *pool = start_with(state, &s, NULL);
        int64_t id = put(pool, .kind = "k");
        run_idle(pool);
        pawl_job_info info = job_of(pool, id);
        assert_int_equal(s.calls, 1);
        assert_int_equal(info.state, table[i].to);
        assert_int_equal(info.attempts, table[i].attempts);
        if (table[i].error != NULL)
            assert_text_has(info.last_error, table[i].error);
        else
            assert_null(info.last_error);
        pawl_job_info_clear(&info);
        if (table[i].to == PAWL_STATE_PENDING)
            assert_ok(pawl_cancel(pool, id));
        assert_ok(pawl_close(pool));
    }
}

/* Goal: a released job is due at once and uncharged, and its claims still carry growing fences (I5, I9). */
static void released_comes_back_at_once_uncharged(void **state)
{
    script s = SCRIPT(PAWL_RELEASED, PAWL_RELEASED, PAWL_RELEASED, PAWL_SUCCEEDED + PAWL_FAILED);
    pawl_pool *pool = start_with(state, &s, NULL);
    int64_t id = put(pool, .kind = "k", .max_attempts = 1);
    run_idle(pool);
    assert_int_equal(s.calls, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(s.attempts[i], 1);
    for (int i = 1; i < 4; i++)
        assert_true(s.fences[i] > s.fences[i - 1]);
    assert_int_equal(state_of(pool, id), PAWL_STATE_FAILED);
    assert_ok(pawl_close(pool));
}

/* Goal: a snoozed job waits for what it asked and is never used up by it (I9, I13). */
static void snoozed_waits_uncharged(void **state)
{
    script s = SCRIPT(PAWL_SNOOZED);
    s.retry_in_ms = 5000;
    pawl_pool *pool = start_with(state, &s, NULL);
    int64_t id = put(pool, .kind = "k", .max_attempts = 2);
    run_idle(pool);
    for (int i = 1; i <= 10; i++) {
        assert_waits_ms(pool, id, 5000, 5000);
        advance(pool, 4999);
        assert_int_equal(s.calls, i);
        advance(pool, 1);
        assert_int_equal(s.calls, i + 1);
        assert_int_equal(s.attempts[i], 1);
    }
    assert_int_equal(attempts_of(pool, id), 0);
    assert_ok(pawl_close(pool));
}

/* Goal: a job that snoozes for ever leaves a bounded history: the last hundred or so, and its counters fit. */
static void a_snoozing_job_leaves_a_bounded_history(void **state)
{
    script s = SCRIPT(PAWL_SNOOZED);
    s.retry_in_ms = 1000;
    s.error = "not yet";
    pawl_pool *pool = start_with(state, &s, NULL);
    int64_t id = put(pool, .kind = "k", .max_attempts = 2);
    run_idle(pool);
    for (int i = 0; i < 300; i++)
        advance(pool, 1000);
    assert_int_equal(s.calls, 301);
    assert_int_equal(attempts_of(pool, id), 0);
    const char *path = ((temp *)*state)->path;
    assert_in_range(sql_ask(path, "SELECT count(*) FROM pawl_attempts"), 90, 110);
    assert_true(sql_ask(path, "SELECT min(fence) FROM pawl_attempts") > (int64_t)s.fences[31]); /* the last ones */
    assert_ok(pawl_close(pool));
}

/* Goal: values without a class are retried or fail, as the handler's policy says. */
static void unknown_values_follow_the_policy(void **state)
{
    static const int values[] = { PAWL_UNKNOWN, 1, 100, PAWL_DETACHED + 1, 255 };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        script retried = SCRIPT(values[i]), failed = SCRIPT(values[i]);
        pawl_pool *pool = open_inline((temp *)*state, .max_attempts = 3);
        assert_ok(pawl_register(pool, "retry", play, &retried, PAWL_HANDLER(.unknown = PAWL_RETRY)));
        assert_ok(pawl_register(pool, "fail", play, &failed, PAWL_HANDLER(.unknown = PAWL_FAILED)));
        assert_ok(pawl_start(pool));
        int64_t a = put(pool, .kind = "retry"), b = put(pool, .kind = "fail");
        run_idle(pool);
        assert_int_equal(state_of(pool, a), PAWL_STATE_PENDING);
        assert_int_equal(state_of(pool, b), PAWL_STATE_FAILED);
        assert_last_error(pool, b, "the handler returned");
        assert_ok(pawl_cancel(pool, a));
        assert_ok(pawl_close(pool));
    }
}

/* ------------------------------------------------------------------- attempts and backoff */

/* Goal: exactly max_attempts charged starts, then failed with the last reason; never one more (I8, I9). */
static void attempts_are_used_up_exactly(void **state)
{
    for (uint32_t most = 1; most <= 4; most++) {
        script s = SCRIPT(PAWL_RETRY);
        s.error = "out of luck";
        pawl_pool *pool = start_with(state, &s, NULL);
        int64_t id = put(pool, .kind = "k", .max_attempts = most);
        for (uint32_t i = 0; i < most + 2; i++)
            advance(pool, HOUR_MS);
        assert_int_equal(s.calls, most);
        for (uint32_t i = 0; i < most; i++)
            assert_int_equal(s.attempts[i], i + 1);
        assert_int_equal(state_of(pool, id), PAWL_STATE_FAILED);
        assert_int_equal(attempts_of(pool, id), most);
        assert_last_error(pool, id, "out of luck");
        assert_ok(pawl_close(pool));
    }
}

/* Goal: the limit comes from the spec, else from the pool that enqueued, else it is five. */
static void the_limit_is_stamped_at_enqueue(void **state)
{
    script s = SCRIPT(PAWL_SUCCEEDED);
    pawl_pool *pool = start_with(state, &s, NULL);
    int64_t by_default = put(pool, .kind = "k"), by_spec = put(pool, .kind = "k", .max_attempts = 9);
    int64_t largest = put(pool, .kind = "k", .max_attempts = UINT32_MAX);
    run_idle(pool);
    pawl_job_info info = job_of(pool, by_default);
    assert_int_equal(info.max_attempts, 5);
    pawl_job_info_clear(&info);
    info = job_of(pool, by_spec);
    assert_int_equal(info.max_attempts, 9);
    pawl_job_info_clear(&info);
    info = job_of(pool, largest);
    assert_true(info.max_attempts == UINT32_MAX);
    assert_int_equal(info.state, PAWL_STATE_SUCCEEDED);
    pawl_job_info_clear(&info);
    assert_ok(pawl_close(pool));
    pool = open_inline((temp *)*state, .max_attempts = 3);
    info = job_of(pool, put(pool, .kind = "k"));
    assert_int_equal(info.max_attempts, 3);
    pawl_job_info_clear(&info);
    assert_ok(pawl_close(pool));
}

/* Plays failures and checks each delay: at least `delays[i]`, at most a tenth more, and never early. */
static void assert_backoff(void **state, const pawl_handler_options *options, const int64_t *delays,
                           uint32_t count)
{
    script s = SCRIPT(PAWL_RETRY);
    pawl_pool *pool = start_with(state, &s, options);
    int64_t id = put(pool, .kind = "k", .max_attempts = count + 1);
    run_idle(pool);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(s.calls, i + 1);
        assert_waits_ms(pool, id, delays[i], delays[i] + delays[i] / 10);
        advance(pool, delays[i] - 1);
        assert_int_equal(s.calls, i + 1); /* I13 */
        advance(pool, delays[i] / 10 + 1);
        assert_int_equal(s.calls, i + 2);
    }
    assert_int_equal(state_of(pool, id), PAWL_STATE_FAILED);
    assert_ok(pawl_close(pool));
}

/* Goal: the default backoff is 10 s, 30 s, 2 min, 5 min, 5 min …, plus up to a tenth (I13). */
static void default_backoff(void **state)
{
    static const int64_t delays[] = { 10000, 30000, 120000, 300000, 300000, 300000 };
    assert_backoff(state, NULL, delays, 6);
}

/* Goal: a handler's list is kept, and its last delay repeats (I13). */
static void backoff_by_list(void **state)
{
    static const int64_t list[] = { 100, 7000, 40 }, delays[] = { 100, 7000, 40, 40, 40 };
    assert_backoff(state, PAWL_HANDLER(.backoff_ms = list, .backoff_count = 3), delays, 5);
}

/* Goal: an exponential backoff grows by its percent up to its cap (I13, T2). */
static void backoff_exponential(void **state)
{
    static const int64_t delays[] = { 1000, 3000, 9000, 20000, 20000 };
    assert_backoff(state,
                   PAWL_HANDLER(.backoff_first_ms = 1000, .backoff_percent = 300, .backoff_max_ms = 20000),
                   delays, 5);
    static const int64_t doubled[] = { 1000000, 2000000, 3600000, 3600000 };
    assert_backoff(state, PAWL_HANDLER(.backoff_first_ms = 1000000), doubled, 4);
}

/* Goal: a delay of zero is never a hot loop: something waits between two attempts (T2). */
static void backoff_of_zero_still_waits(void **state)
{
    static const int64_t zero[] = { 0 };
    script s = SCRIPT(PAWL_RETRY);
    pawl_pool *pool = start_with(state, &s, PAWL_HANDLER(.backoff_ms = zero, .backoff_count = 1));
    int64_t id = put(pool, .kind = "k");
    run_idle(pool);
    assert_int_equal(s.calls, 1);
    assert_waits_ms(pool, id, 1, 10);
    assert_ok(pawl_close(pool));
}

typedef struct backoff_seen {
    uint32_t attempts[8];
    char errors[8][64];
    int calls;
    int64_t answer;
} backoff_seen;

static int64_t note_backoff(uint32_t attempt, const char *error, void *arg)
{
    backoff_seen *seen = arg;
    seen->attempts[seen->calls] = attempt;
    assert_non_null(error);
    (void)snprintf(seen->errors[seen->calls++], sizeof seen->errors[0], "%s", error);
    return seen->answer;
}

/* Goal: a backoff function sees attempt and error, its answer is exact; a negative one is the default. */
static void backoff_by_function(void **state)
{
    backoff_seen seen = { .answer = 12345 };
    script s = SCRIPT(PAWL_RETRY);
    s.error = "reason";
    pawl_pool *pool =
        start_with(state, &s, PAWL_HANDLER(.backoff_fn = note_backoff, .backoff_arg = &seen));
    int64_t id = put(pool, .kind = "k");
    run_idle(pool);
    assert_waits_ms(pool, id, 12345, 12345);
    seen.answer = -1;
    s.error = NULL;
    advance(pool, 12345);
    assert_int_equal(seen.calls, 2);
    assert_int_equal(seen.attempts[0], 1);
    assert_int_equal(seen.attempts[1], 2);
    assert_string_equal(seen.errors[0], "reason");
    assert_string_equal(seen.errors[1], "");
    assert_waits_ms(pool, id, 10000, 33000);
    seen.answer = INT64_MAX; /* T2: clamped, not wrapped round */
    advance(pool, HOUR_MS);
    assert_waits_ms(pool, id, HOUR_MS, INT64_MAX);
    assert_ok(pawl_close(pool));
}

typedef struct stopping {
    pawl_pool *pool;
    pawl_status stop, close;
} stopping;

static int64_t stop_in_backoff(uint32_t attempt, const char *error, void *arg)
{
    stopping *s = arg;
    (void)attempt;
    (void)error;
    s->stop = pawl_stop(s->pool, 0);
    s->close = pawl_close(s->pool);
    return 12345;
}

/* Goal: a backoff function is still inside the handler: stop begins, close is refused (G2). */
static void a_backoff_function_cannot_wait_for_itself(void **state)
{
    stopping stop = { .pool = NULL };
    script s = SCRIPT(PAWL_RETRY);
    pawl_pool *pool =
        start_with(state, &s, PAWL_HANDLER(.backoff_fn = stop_in_backoff, .backoff_arg = &stop));
    stop.pool = pool;
    int64_t id = put(pool, .kind = "k");
    bool progress = true;
    while (progress && pawl_step(pool, &progress) == PAWL_OK) {
    }
    assert_int_equal(stop.stop, PAWL_ACCEPTED);
    assert_int_equal(stop.close, PAWL_ERR_STATE);
    assert_ok(pawl_stop(pool, 1000));
    assert_int_equal(state_of(pool, id), PAWL_STATE_PENDING);
    assert_ok(pawl_close(pool));
}

/* Goal: pawl_job_retry_in() stands before the backoff, zero means at once, and it holds for one attempt. */
static void retry_in_replaces_the_backoff(void **state)
{
    script s = SCRIPT(PAWL_RETRY);
    s.retry_in_ms = 77;
    pawl_pool *pool = start_with(state, &s, NULL);
    int64_t id = put(pool, .kind = "k", .max_attempts = 4);
    run_idle(pool);
    assert_waits_ms(pool, id, 77, 77);
    s.retry_in_ms = 0;
    advance(pool, 77);
    assert_int_equal(s.calls, 4); /* at once, until the attempts were used up */
    assert_int_equal(state_of(pool, id), PAWL_STATE_FAILED);
    s.retry_in_ms = -1;
    s.calls = 0;
    id = put(pool, .kind = "k");
    run_idle(pool);
    assert_waits_ms(pool, id, 10000, 11000);
    assert_ok(pawl_close(pool));
}

/* Goal: a job starts at its time and not a millisecond before: by delay and by date (I13). */
static void delayed_jobs_are_not_early(void **state)
{
    script s = SCRIPT(PAWL_SUCCEEDED);
    pawl_pool *pool = start_with(state, &s, NULL);
    int64_t now = pawl_clock_now(pool);
    int64_t by_delay = put(pool, .kind = "k", .delay_ms = 1000);
    int64_t by_date = put(pool, .kind = "k", .available_at_ms = now + 2000);
    int64_t in_the_past = put(pool, .kind = "k", .available_at_ms = 1);
    run_idle(pool);
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.ids[0], in_the_past);
    advance(pool, 999);
    assert_int_equal(s.calls, 1);
    advance(pool, 1);
    assert_int_equal(s.calls, 2);
    assert_int_equal(s.ids[1], by_delay);
    advance(pool, 999);
    assert_int_equal(s.calls, 2);
    advance(pool, 1);
    assert_int_equal(s.ids[2], by_date);
    assert_ok(pawl_close(pool));
}

/* ------------------------------------------------------------------------------ timeouts */

/* Goal: past its timeout a handler is told; whatever it returns then but success or a permanent failure is
 * a charged retry that says so. */
static void after_a_timeout_only_success_and_failure_stand(void **state)
{
    static const struct {
        int outcome;
        pawl_state to;
        uint32_t attempts;
    } table[] = {
        { PAWL_SUCCEEDED, PAWL_STATE_SUCCEEDED, 1 }, { PAWL_FAILED, PAWL_STATE_FAILED, 1 },
        { PAWL_RETRY, PAWL_STATE_PENDING, 1 },       { PAWL_SNOOZED, PAWL_STATE_PENDING, 1 },
        { PAWL_RELEASED, PAWL_STATE_PENDING, 1 },    { PAWL_CANCELLED, PAWL_STATE_PENDING, 1 },
        { 42, PAWL_STATE_PENDING, 1 },
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        script s = SCRIPT(table[i].outcome);
        s.takes_ms = 2000;
        s.error = "own words";
        pawl_pool *pool = start_with(state, &s, PAWL_HANDLER(.timeout_ms = 2000));
        int64_t id = put(pool, .kind = "k");
        run_idle(pool);
        assert_int_equal(s.reason, PAWL_STOP_TIMEOUT);
        assert_int_equal(state_of(pool, id), table[i].to);
        assert_int_equal(attempts_of(pool, id), table[i].attempts);
        if (table[i].to == PAWL_STATE_PENDING) {
            assert_last_error(pool, id, "timed out after 2000 ms: own words");
            assert_waits_ms(pool, id, 10000, 11000);
            assert_ok(pawl_cancel(pool, id));
        } else if (table[i].to == PAWL_STATE_FAILED) {
            assert_last_error(pool, id, "own words");
        }
        assert_ok(pawl_close(pool));
    }
}

/* Goal: one millisecond before its timeout nothing is told; the job's own timeout stands before the
 * handler's, and PAWL_NONE switches it off. */
static void the_jobs_timeout_stands_before_the_handlers(void **state)
{
    script s = SCRIPT(PAWL_SUCCEEDED);
    s.takes_ms = 1999;
    pawl_pool *pool = start_with(state, &s, PAWL_HANDLER(.timeout_ms = 2000));
    (void)put(pool, .kind = "k");
    run_idle(pool);
    assert_int_equal(s.reason, PAWL_STOP_NONE);
    (void)put(pool, .kind = "k", .timeout_ms = 1000);
    run_idle(pool);
    assert_int_equal(s.reason, PAWL_STOP_TIMEOUT);
    s.takes_ms = 30000;
    (void)put(pool, .kind = "k", .timeout_ms = PAWL_NONE);
    run_idle(pool);
    assert_int_equal(s.reason, PAWL_STOP_NONE);
    (void)put(pool, .kind = "k", .timeout_ms = 30001);
    run_idle(pool);
    assert_int_equal(s.reason, PAWL_STOP_NONE);
    assert_int_equal(s.calls, 4);
    assert_ok(pawl_close(pool));
}

/* Goal: a timeout uses up attempts like any failure (I9). */
static void timeouts_use_up_attempts(void **state)
{
    script s = SCRIPT(PAWL_RETRY);
    s.takes_ms = 500;
    pawl_pool *pool = start_with(state, &s, PAWL_HANDLER(.timeout_ms = 500));
    int64_t id = put(pool, .kind = "k", .max_attempts = 2);
    run_idle(pool);
    advance(pool, HOUR_MS);
    advance(pool, HOUR_MS);
    assert_int_equal(s.calls, 2);
    assert_int_equal(state_of(pool, id), PAWL_STATE_FAILED);
    assert_last_error(pool, id, "timed out after 500 ms");
    assert_ok(pawl_close(pool));
}

/* A handler that hangs until it is stuck: its pool is driven from inside it, by a call that writes. */
typedef struct hang {
    int64_t takes_ms;
    int returns;
    bool heartbeats;
    int calls;
    int64_t other; /* enqueued while it hung */
    uint32_t stuck, in_hand;
    pawl_stop_reason reason;
    pawl_status heartbeat;
} hang;

static int hang_on(pawl_job *job, void *arg)
{
    hang *h = arg;
    pawl_pool *pool = pawl_job_pool(job);
    if (h->calls++ > 0)
        return PAWL_SUCCEEDED;
    assert_ok(pawl_clock_advance(pool, h->takes_ms));
    if (h->heartbeats)
        h->heartbeat = pawl_job_heartbeat(job);
    else
        h->other = put(pool, .kind = "nobody");
    pawl_stats_info stats = stats_of(pool);
    h->stuck = stats.executors_stuck;
    h->in_hand = stats.in_hand;
    pawl_stats_info_clear(&stats);
    h->reason = pawl_job_stop_reason(job);
    return h->returns;
}

/* A handler that hangs for its timeout and a lease more, then returns `returns`. */
static void assert_stuck(void **state, int returns, bool heartbeats)
{
    hang h = { .takes_ms = 1000 + 60000, .returns = returns, .heartbeats = heartbeats };
    pawl_pool *pool = open_inline((temp *)*state, .max_attempts = 2);
    assert_ok(pawl_register(pool, "k", hang_on, &h, PAWL_HANDLER(.timeout_ms = 1000)));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "k");
    run_idle(pool);
    assert_int_equal(h.calls, 1);
    assert_int_equal(h.reason, PAWL_STOP_LEASE_LOST);
    assert_int_equal(h.in_hand, 0);
    assert_int_equal(h.stuck, 1);
    if (heartbeats)
        assert_int_equal(h.heartbeat, PAWL_ERR_LEASE_LOST);
    assert_int_equal(state_of(pool, id), PAWL_STATE_PENDING);
    assert_int_equal(attempts_of(pool, id), 1);
    assert_last_error(pool, id, "timed out after 1000 ms");
    pawl_stats_info stats = stats_of(pool);
    assert_int_equal(stats.late_refused, 1);
    assert_int_equal(stats.executors_stuck, 0);
    assert_int_equal(stats.in_hand, 0);
    pawl_stats_info_clear(&stats);
    advance(pool, 11000); /* the pool goes on */
    assert_int_equal(h.calls, 2);
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_close(pool));
}

/* Goal: a handler that is out for its timeout and one lease more loses its claim; it is shown as stuck, its
 * late outcome is refused and counted, and the job runs again (I6, I7). */
static void a_stuck_handler_loses_its_claim(void **state)
{
    assert_stuck(state, PAWL_SUCCEEDED, false);
    assert_stuck(state, PAWL_RETRY, false);
    assert_stuck(state, PAWL_FAILED, false);
}

/* Goal: the same when the call that meets it is the handler's own heartbeat: the claim ends once (I7). */
static void a_stuck_handlers_heartbeat_is_refused(void **state)
{
    assert_stuck(state, PAWL_SUCCEEDED, true);
}

/* -------------------------------------------------------------------------------- leases */

/* Goal: a claim whose lease is over on the own clock is told to stop, but as long as nobody has taken it the
 * fence alone decides: its heartbeat and its success stand (I6). */
static void an_expired_lease_that_nobody_took_still_counts(void **state)
{
    script s = SCRIPT(PAWL_SUCCEEDED);
    s.takes_ms = 60000;
    pawl_pool *pool = start_with(state, &s, NULL);
    int64_t id = put(pool, .kind = "k");
    run_idle(pool);
    assert_int_equal(s.reason, PAWL_STOP_LEASE_LOST);
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    s.takes_ms = 59999;
    (void)put(pool, .kind = "k");
    run_idle(pool);
    assert_int_equal(s.reason, PAWL_STOP_NONE);
    s.takes_ms = 70000;
    s.heartbeats = true; /* it returns after the commit that extended the lease */
    id = put(pool, .kind = "k");
    run_idle(pool);
    assert_ok(s.heartbeat);
    assert_int_equal(s.reason, PAWL_STOP_NONE);
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_close(pool));
}

static int show_lease(pawl_job *job, void *arg)
{
    int64_t *leases = arg;
    pawl_pool *pool = pawl_job_pool(job);
    for (int i = 0; i < 2; i++) {
        pawl_job_info info = job_of(pool, pawl_job_id(job));
        assert_int_equal(info.state, PAWL_STATE_RUNNING);
        assert_int_equal(info.attempts, 1);
        leases[i] = info.lease_until_ms - pawl_clock_now(pool);
        pawl_job_info_clear(&info);
        if (i == 0) {
            assert_ok(pawl_clock_advance(pool, 10000));
            assert_ok(pawl_job_heartbeat(job));
        }
    }
    return PAWL_SUCCEEDED;
}

/* Goal: the lease stands in the job's row, and a heartbeat moves it to a whole lease from now. */
static void a_heartbeat_extends_the_lease(void **state)
{
    int64_t leases[2] = { 0, 0 };
    pawl_pool *pool = open_inline((temp *)*state, .lease_ms = 15000);
    assert_ok(pawl_register(pool, "k", show_lease, leases, NULL));
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "k");
    run_idle(pool);
    assert_int_equal(leases[0], 15000);
    assert_int_equal(leases[1], 15000);
    assert_ok(pawl_close(pool));
}

/* ------------------------------------------------------------------------------ detached */

typedef struct detaching {
    pawl_job *job; /* of the last call */
    int calls;
    bool once; /* later calls succeed */
    bool finish_inside;
    int finish_with;
    pawl_status finish;
    int64_t takes_ms; /* before it returns, with a call that writes */
} detaching;

static int detach(pawl_job *job, void *arg)
{
    detaching *d = arg;
    d->job = job;
    if (d->calls++ > 0 && d->once)
        return PAWL_SUCCEEDED;
    if (d->takes_ms > 0) {
        assert_ok(pawl_clock_advance(pawl_job_pool(job), d->takes_ms));
        (void)put(pawl_job_pool(job), .kind = "nobody");
    }
    if (d->finish_inside)
        d->finish = pawl_job_finish(job, d->finish_with);
    return PAWL_DETACHED;
}

static pawl_pool *start_detaching(void **state, detaching *d, const pawl_handler_options *options)
{
    pawl_pool *pool = open_inline((temp *)*state, .lease_ms = 30000);
    assert_ok(pawl_register(pool, "k", detach, d, options));
    assert_ok(pawl_start(pool));
    return pool;
}

/* Goal: a renewal that had to wait and the eviction of the same job in one batch leave the other jobs in hand where
 * they are: their leases are renewed, and they end as they say (I6, I12). */
static void an_eviction_beside_a_renewal_harms_nobody(void **state)
{
    temp *t = *state;
    detaching stuck = { .job = NULL }, others[2] = { { .job = NULL }, { .job = NULL } };
    pawl_pool *pool = open_inline(t, .lease_ms = 30000, .store_timeout_ms = 20);
    assert_ok(pawl_register(pool, "before", detach, &others[0], PAWL_HANDLER(.timeout_ms = HOUR_MS)));
    assert_ok(pawl_register(pool, "stuck", detach, &stuck, PAWL_HANDLER(.timeout_ms = 10010)));
    assert_ok(pawl_register(pool, "behind", detach, &others[1], PAWL_HANDLER(.timeout_ms = HOUR_MS)));
    assert_ok(pawl_start(pool));
    int64_t ids[2], bad;
    ids[0] = put(pool, .kind = "before");
    bad = put(pool, .kind = "stuck", .max_attempts = 1);
    ids[1] = put(pool, .kind = "behind");
    run_idle(pool);
    advance(pool, 9950);
    struct sqlite3 *db = sql_open(t->path);
    sql_run(db, "BEGIN IMMEDIATE");
    assert_ok(pawl_clock_advance(pool, 55)); /* a third of the lease: renewals are due, and wait */
    assert_status(pawl_step(pool, NULL), PAWL_ERR_BUSY);
    assert_ok(pawl_clock_advance(pool, 30010)); /* the timeout, and a lease after it */
    assert_status(pawl_step(pool, NULL), PAWL_ERR_BUSY);
    sql_run(db, "ROLLBACK");
    sql_close(db);
    run_idle(pool);
    assert_int_equal(state_of(pool, bad), PAWL_STATE_FAILED);
    for (int i = 0; i < 24; i++) {
        advance(pool, 9000);
        pawl_job_info info = job_of(pool, ids[i % 2]);
        assert_true(info.lease_until_ms >= pawl_clock_now(pool) + 15000);
        pawl_job_info_clear(&info);
    }
    pawl_stats_info stats = stats_of(pool);
    assert_int_equal(stats.in_hand, 2);
    pawl_stats_info_clear(&stats);
    assert_status(pawl_job_finish(stuck.job, PAWL_SUCCEEDED), PAWL_ERR_LEASE_LOST);
    for (int i = 0; i < 2; i++)
        assert_ok(pawl_job_finish(others[i].job, PAWL_SUCCEEDED));
    run_idle(pool);
    for (int i = 0; i < 2; i++)
        assert_int_equal(state_of(pool, ids[i]), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_close(pool));
}

/* Goal: a detached job stays running, is shown, and ends as its finisher says, for every outcome (I7). */
static void a_detached_job_ends_as_its_finisher_says(void **state)
{
    static const struct {
        int outcome;
        pawl_state to;
        uint32_t attempts;
    } table[] = {
        { PAWL_SUCCEEDED, PAWL_STATE_SUCCEEDED, 1 }, { PAWL_RETRY, PAWL_STATE_PENDING, 1 },
        { PAWL_FAILED, PAWL_STATE_FAILED, 1 },       { PAWL_CANCELLED, PAWL_STATE_CANCELLED, 1 },
        { PAWL_SNOOZED, PAWL_STATE_PENDING, 0 },     { PAWL_UNKNOWN, PAWL_STATE_PENDING, 1 },
        { PAWL_DETACHED, PAWL_STATE_PENDING, 1 }, /* no ending: as an unknown value */
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        detaching d = { .job = NULL };
        pawl_pool *pool = start_detaching(state, &d, NULL);
        int64_t id = put(pool, .kind = "k", .payload = "bytes", .payload_bytes = 5);
        run_idle(pool);
        assert_int_equal(state_of(pool, id), PAWL_STATE_RUNNING);
        pawl_stats_info stats = stats_of(pool);
        assert_int_equal(stats.detached, 1);
        assert_int_equal(stats.in_hand, 1);
        pawl_stats_info_clear(&stats);
        size_t bytes;
        assert_memory_equal(pawl_job_payload(d.job, &bytes), "bytes", 6);
        assert_int_equal(bytes, 5);
        assert_ok(pawl_job_finish(d.job, table[i].outcome));
        run_idle(pool);
        assert_int_equal(state_of(pool, id), table[i].to);
        assert_int_equal(attempts_of(pool, id), table[i].attempts);
        stats = stats_of(pool);
        assert_int_equal(stats.detached, 0);
        assert_int_equal(stats.in_hand, 0);
        pawl_stats_info_clear(&stats);
        if (table[i].to == PAWL_STATE_PENDING)
            assert_ok(pawl_cancel(pool, id));
        assert_ok(pawl_close(pool));
    }
}

/* Goal: finishing before the handler has returned is allowed, and is what counts. */
static void a_detached_job_may_be_finished_before_its_handler_returns(void **state)
{
    detaching d = { .finish_inside = true, .finish_with = PAWL_FAILED, .finish = PAWL_ERR_STATE };
    pawl_pool *pool = start_detaching(state, &d, NULL);
    int64_t id = put(pool, .kind = "k");
    run_idle(pool);
    assert_ok(d.finish);
    assert_int_equal(state_of(pool, id), PAWL_STATE_FAILED);
    pawl_stats_info stats = stats_of(pool);
    assert_int_equal(stats.detached, 0);
    pawl_stats_info_clear(&stats);
    assert_ok(pawl_close(pool));
}

/* Goal: the pool keeps a detached job's lease alive for an hour; one lease later it is stuck: rescued, and
 * its finisher is told that the claim is lost (I6, I11). */
static void a_detached_job_without_a_timeout_has_an_hour(void **state)
{
    detaching d = { .once = true };
    pawl_pool *pool = start_detaching(state, &d, NULL);
    int64_t id = put(pool, .kind = "k");
    run_idle(pool);
    for (int64_t at = 0; at < HOUR_MS; at += 10000) {
        advance(pool, 10000);
        assert_int_equal(state_of(pool, id), PAWL_STATE_RUNNING);
        if (at + 10000 < HOUR_MS)
            assert_false(pawl_job_should_stop(d.job));
    }
    advance(pool, 29999);
    assert_int_equal(state_of(pool, id), PAWL_STATE_RUNNING);
    advance(pool, 1);
    assert_int_equal(state_of(pool, id), PAWL_STATE_PENDING);
    assert_last_error(pool, id, "timed out after 3600000 ms");
    assert_status(pawl_job_finish(d.job, PAWL_SUCCEEDED), PAWL_ERR_LEASE_LOST);
    run_idle(pool);
    assert_int_equal(state_of(pool, id), PAWL_STATE_PENDING);
    advance(pool, 11000);
    assert_int_equal(d.calls, 2);
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_close(pool));
}

/* Goal: a detached job's timeout is told; a success said before the lease is over stands, later it is
 * refused. */
static void a_detached_job_with_a_timeout(void **state)
{
    for (int late = 0; late < 2; late++) {
        detaching d = { .once = true };
        pawl_pool *pool = start_detaching(state, &d, PAWL_HANDLER(.timeout_ms = 5000));
        int64_t id = put(pool, .kind = "k");
        run_idle(pool);
        advance(pool, 4999);
        assert_false(pawl_job_should_stop(d.job));
        advance(pool, 1);
        assert_int_equal(pawl_job_stop_reason(d.job), PAWL_STOP_TIMEOUT);
        if (late)
            advance(pool, 30000);
        assert_status(pawl_job_finish(d.job, PAWL_SUCCEEDED), late ? PAWL_ERR_LEASE_LOST : PAWL_OK);
        run_idle(pool);
        assert_int_equal(state_of(pool, id), late ? PAWL_STATE_PENDING : PAWL_STATE_SUCCEEDED);
        if (late)
            assert_last_error(pool, id, "timed out after 5000 ms");
        assert_ok(pawl_close(pool));
    }
}

/* Goal: the handle of a job that lost its claim outlives the pool: finishing it answers CLOSED
 * and frees it, also when its handler detached it only after the loss. */
static void a_lost_detached_job_may_be_finished_after_close(void **state)
{
    detaching d = { .job = NULL };
    pawl_pool *pool = start_detaching(state, &d, PAWL_HANDLER(.timeout_ms = 5000));
    (void)put(pool, .kind = "k");
    run_idle(pool);
    advance(pool, 35000);
    assert_ok(pawl_close(pool));
    assert_string_equal(pawl_job_kind(d.job), "k");
    assert_status(pawl_job_then(d.job, PAWL_JOB(.kind = "k")), PAWL_ERR_LEASE_LOST);
    assert_status(pawl_job_heartbeat(d.job), PAWL_ERR_LEASE_LOST);
    assert_status(pawl_job_finish(d.job, PAWL_SUCCEEDED), PAWL_ERR_CLOSED);
}

static void a_job_lost_before_it_was_detached_may_be_finished_after_close(void **state)
{
    detaching d = { .takes_ms = 35000 };
    pawl_pool *pool = start_detaching(state, &d, PAWL_HANDLER(.timeout_ms = 5000));
    int64_t id = put(pool, .kind = "k");
    run_idle(pool);
    assert_int_equal(state_of(pool, id), PAWL_STATE_PENDING);
    assert_ok(pawl_close(pool));
    assert_string_equal(pawl_job_kind(d.job), "k");
    pawl_status st = pawl_job_finish(d.job, PAWL_SUCCEEDED);
    assert_true(st == PAWL_ERR_LEASE_LOST || st == PAWL_ERR_CLOSED);
}

/* Goal: a stop with a detached job in flight answers TIMEOUT and keeps the claim, until it is finished. */
static void a_stop_waits_for_detached_jobs(void **state)
{
    detaching d = { .job = NULL };
    pawl_pool *pool = start_detaching(state, &d, NULL);
    int64_t id = put(pool, .kind = "k");
    run_idle(pool);
    assert_status(pawl_stop(pool, 0), PAWL_ERR_TIMEOUT);
    assert_int_equal(state_of(pool, id), PAWL_STATE_RUNNING);
    assert_ok(pawl_job_finish(d.job, PAWL_SUCCEEDED));
    assert_ok(pawl_stop(pool, 0));
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_close(pool));
}

/* ---------------------------------------------------------------------- cancel and requeue */

/* Goal: a pending job, due or later, never runs once it is cancelled; cancelling it again is OK; an ended one
 * is STATE; an unknown one NOT_FOUND (I8). */
static void a_cancelled_pending_job_never_runs(void **state)
{
    script s = SCRIPT(PAWL_SUCCEEDED);
    pawl_pool *pool = start_with(state, &s, NULL);
    int64_t due = put(pool, .kind = "k"), later = put(pool, .kind = "k", .delay_ms = 1000);
    int64_t other = put(pool, .kind = "k");
    assert_ok(pawl_cancel(pool, due));
    assert_ok(pawl_cancel(pool, later));
    assert_ok(pawl_cancel(pool, later));
    advance(pool, HOUR_MS);
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.ids[0], other);
    assert_int_equal(state_of(pool, due), PAWL_STATE_CANCELLED);
    assert_int_equal(state_of(pool, later), PAWL_STATE_CANCELLED);
    assert_status(pawl_cancel(pool, other), PAWL_ERR_STATE);
    assert_status(pawl_cancel(pool, 999999), PAWL_ERR_NOT_FOUND);
    assert_status(pawl_cancel(pool, 0), PAWL_ERR_NOT_FOUND);
    assert_status(pawl_cancel(pool, -1), PAWL_ERR_NOT_FOUND);
    assert_ok(pawl_close(pool));
}

typedef struct cancelling {
    int returns, calls;
    pawl_status answer, again;
    pawl_stop_reason reason;
    bool requested;
} cancelling;

static int cancel_itself(pawl_job *job, void *arg)
{
    cancelling *c = arg;
    if (c->calls++ > 0)
        return c->returns;
    c->answer = pawl_cancel(pawl_job_pool(job), pawl_job_id(job));
    c->again = pawl_cancel(pawl_job_pool(job), pawl_job_id(job));
    c->reason = pawl_job_stop_reason(job);
    pawl_job_info info = job_of(pawl_job_pool(job), pawl_job_id(job));
    c->requested = info.cancel_requested;
    pawl_job_info_clear(&info);
    return c->returns;
}

/* Goal: a running job is told; a success that it still reports stands, every other end becomes cancelled. */
static void a_cancelled_running_job_ends_as_cancelled_unless_it_succeeds(void **state)
{
    static const struct {
        int outcome;
        pawl_state to;
    } table[] = {
        { PAWL_SUCCEEDED, PAWL_STATE_SUCCEEDED }, { PAWL_RETRY, PAWL_STATE_CANCELLED },
        { PAWL_FAILED, PAWL_STATE_CANCELLED },    { PAWL_CANCELLED, PAWL_STATE_CANCELLED },
        { PAWL_SNOOZED, PAWL_STATE_CANCELLED },   { PAWL_RELEASED, PAWL_STATE_CANCELLED },
        { 9, PAWL_STATE_CANCELLED },
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        cancelling c = { .returns = table[i].outcome };
        pawl_pool *pool = open_inline((temp *)*state, .max_attempts = 3);
        assert_ok(pawl_register(pool, "k", cancel_itself, &c, NULL));
        assert_ok(pawl_start(pool));
        int64_t id = put(pool, .kind = "k");
        advance(pool, HOUR_MS);
        advance(pool, HOUR_MS);
        assert_int_equal(c.calls, 1);
        assert_int_equal(c.answer, PAWL_ACCEPTED);
        assert_int_equal(c.again, PAWL_ACCEPTED);
        assert_int_equal(c.reason, PAWL_STOP_CANCEL);
        assert_true(c.requested);
        assert_int_equal(state_of(pool, id), table[i].to);
        assert_ok(pawl_close(pool));
    }
}

/* Goal: requeue makes failed and cancelled jobs new: attempts 0, due now, same id, key, priority and
 * creation, the last error kept, the fence goes on; an old cancel is forgotten (I5, I8). */
static void requeue_starts_over(void **state)
{
    script s = SCRIPT(PAWL_RETRY);
    s.error = "first life";
    pawl_pool *pool = start_with(state, &s, NULL);
    int64_t id = put(pool, .kind = "k", .max_attempts = 1, .priority = 7, .idempotency_key = "key",
                     .idempotency_key_bytes = 3);
    assert_status(pawl_requeue(pool, id), PAWL_ERR_STATE);
    run_idle(pool);
    pawl_job_info before = job_of(pool, id);
    assert_int_equal(before.state, PAWL_STATE_FAILED);
    assert_ok(pawl_clock_advance(pool, 1000));
    assert_ok(pawl_requeue(pool, id));
    pawl_job_info after = job_of(pool, id);
    assert_int_equal(after.state, PAWL_STATE_PENDING);
    assert_int_equal(after.attempts, 0);
    assert_int_equal(after.max_attempts, 1);
    assert_int_equal(after.priority, 7);
    assert_int_equal(after.created_at_ms, before.created_at_ms);
    assert_int_equal(after.available_at_ms, pawl_clock_now(pool));
    assert_int_equal(after.finished_at_ms, 0);
    assert_string_equal(after.last_error, "first life");
    assert_int_equal(after.idempotency_key_bytes, 3);
    pawl_job_info_clear(&before);
    pawl_job_info_clear(&after);
    run_idle(pool);
    assert_int_equal(s.calls, 2);
    assert_int_equal(s.attempts[1], 1);
    assert_true(s.fences[1] > s.fences[0]);
    assert_int_equal(state_of(pool, id), PAWL_STATE_FAILED);
    assert_status(pawl_requeue(pool, 12345), PAWL_ERR_NOT_FOUND);
    assert_ok(pawl_close(pool));
}

static void a_cancel_is_forgotten_by_requeue(void **state)
{
    cancelling c = { .returns = PAWL_RETRY };
    pawl_pool *pool = open_inline((temp *)*state, .max_attempts = 3);
    assert_ok(pawl_register(pool, "k", cancel_itself, &c, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "k");
    run_idle(pool);
    assert_int_equal(state_of(pool, id), PAWL_STATE_CANCELLED);
    assert_ok(pawl_requeue(pool, id));
    run_idle(pool);
    assert_int_equal(c.calls, 2);
    assert_int_equal(state_of(pool, id), PAWL_STATE_PENDING);
    assert_ok(pawl_close(pool));
}

/* Goal: the many-forms answer each id for itself in one transaction, the same id twice included. */
static void cancel_and_requeue_many(void **state)
{
    script s = SCRIPT(PAWL_FAILED);
    pawl_pool *pool = start_with(state, &s, NULL);
    int64_t failed = put(pool, .kind = "k");
    run_idle(pool);
    int64_t pending = put(pool, .kind = "k");
    const int64_t ids[] = { pending, 404, failed, pending };
    pawl_status each[4];
    assert_ok(pawl_cancel_many(pool, ids, 4, each));
    assert_int_equal(each[0], PAWL_OK);
    assert_int_equal(each[1], PAWL_ERR_NOT_FOUND);
    assert_int_equal(each[2], PAWL_ERR_STATE);
    assert_int_equal(each[3], PAWL_OK);
    assert_ok(pawl_requeue_many(pool, ids, 4, each));
    assert_int_equal(each[0], PAWL_OK);
    assert_int_equal(each[1], PAWL_ERR_NOT_FOUND);
    assert_int_equal(each[2], PAWL_OK);
    assert_int_equal(each[3], PAWL_ERR_STATE); /* it is pending already */
    assert_ok(pawl_requeue_many(pool, ids, 0, NULL));
    assert_status(pawl_cancel_many(pool, NULL, 3, NULL), PAWL_ERR_INVALID);
    run_idle(pool);
    assert_int_equal(s.calls, 3);
    assert_ok(pawl_close(pool));
}

/* ------------------------------------------------------------------------- queues, order */

/* Goal: a paused queue gives no claims, also to jobs that come later and to lanes that are new; it holds
 * beyond a reopen, and resume lets everything run in order (I23). */
static void pause_holds_and_resume_releases(void **state)
{
    script s = SCRIPT(PAWL_SUCCEEDED);
    pawl_pool *pool = start_with(state, &s, NULL);
    assert_ok(pawl_pause(pool, "q"));
    assert_ok(pawl_pause(pool, "q"));
    int64_t held = put(pool, .kind = "k", .queue = "q");
    int64_t free_one = put(pool, .kind = "k");
    int64_t delayed = put(pool, .kind = "k", .queue = "q", .delay_ms = 10);
    advance(pool, 1000);
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.ids[0], free_one);
    assert_ok(pawl_close(pool));

    pool = start_with(state, &s, NULL);
    run_idle(pool);
    assert_int_equal(s.calls, 1);
    pawl_stats_info stats = stats_of(pool);
    bool seen = false;
    for (size_t i = 0; i < stats.lane_count; i++)
        if (strcmp(stats.lanes[i].queue, "q") == 0)
            seen = stats.lanes[i].paused;
    assert_true(seen);
    pawl_stats_info_clear(&stats);
    assert_ok(pawl_resume(pool, "q"));
    assert_ok(pawl_resume(pool, "never heard of"));
    advance(pool, 1000);
    assert_int_equal(s.calls, 3);
    assert_int_equal(s.ids[1], held);
    assert_int_equal(s.ids[2], delayed);
    assert_ok(pawl_close(pool));
}

/* Goal: (priority high first, id) over all lanes of the pool, however they came in (I14). */
static void claims_follow_priority_then_id(void **state)
{
    script s = SCRIPT(PAWL_SUCCEEDED);
    pawl_pool *pool = open_inline((temp *)*state, .executors = 1);
    assert_ok(pawl_register(pool, "a", play, &s, NULL));
    assert_ok(pawl_register(pool, "b", play, &s, NULL));
    static const struct {
        const char *kind, *queue;
        int32_t priority;
    } jobs[] = {
        { "a", "q1", 0 },         { "b", "q1", 5 },  { "a", "q2", 5 },         { "b", "q2", -3 },
        { "a", "q1", INT32_MAX }, { "b", "q3", 0 },  { "a", "q2", INT32_MIN }, { "a", "q1", 5 },
        { "b", "q1", -3 },        { "a", "q3", 100 },
    };
    static const int order[] = { 4, 9, 1, 2, 7, 0, 5, 3, 8, 6 };
    int64_t ids[10];
    for (int i = 0; i < 10; i++)
        ids[i] = put(pool, .kind = jobs[i].kind, .queue = jobs[i].queue, .priority = jobs[i].priority);
    assert_ok(pawl_start(pool));
    run_idle(pool);
    assert_int_equal(s.calls, 10);
    for (int i = 0; i < 10; i++)
        assert_int_equal(s.ids[i], ids[order[i]]);
    assert_ok(pawl_close(pool));
}

static int mixed_in(pawl_job *job, void *arg)
{
    script *s = arg;
    if (s->calls == 0) { /* while the executor is busy: old and new jobs meet in the next claims */
        pawl_pool *pool = pawl_job_pool(job);
        (void)put(pool, .kind = "k", .priority = 1, .payload = "3", .payload_bytes = 1);
        (void)put(pool, .kind = "k", .priority = 9, .payload = "1", .payload_bytes = 1);
        for (int i = 0; i < 2; i++)
            assert_ok(pawl_enqueue_async(pool,
                                         PAWL_JOB(.kind = "k", .priority = i == 0 ? 0 : 9,
                                                  .payload = i == 0 ? "4" : "2", .payload_bytes = 1),
                                         NULL, NULL));
    }
    size_t bytes;
    const char *digit = pawl_job_payload(job, &bytes);
    s->ids[s->calls++] = bytes == 1 ? digit[0] - '0' : 0;
    return PAWL_SUCCEEDED;
}

/* Goal: a job that could be handed off does not pass a stored one of equal or higher priority, and passes a
 * lower one (I14). */
static void the_hand_off_keeps_the_order(void **state)
{
    script s = SCRIPT(PAWL_SUCCEEDED);
    pawl_pool *pool = open_inline((temp *)*state, .executors = 1);
    assert_ok(pawl_register(pool, "k", mixed_in, &s, NULL));
    assert_ok(pawl_start(pool));
    assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "k"), NULL, NULL));
    run_idle(pool);
    assert_int_equal(s.calls, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(s.ids[i], i);
    pawl_stats_info stats = stats_of(pool);
    assert_true(stats.handed_off >= 1);
    pawl_stats_info_clear(&stats);
    assert_ok(pawl_close(pool));
}

/* Goal: a retried job keeps its id and so its place before younger ones (I14). */
static void a_retried_job_keeps_its_place(void **state)
{
    script s = SCRIPT(PAWL_RETRY, PAWL_SUCCEEDED + 7);
    pawl_pool *pool = open_inline((temp *)*state, .executors = 1);
    assert_ok(pawl_register(pool, "k", play, &s, PAWL_HANDLER(.unknown = PAWL_FAILED)));
    assert_ok(pawl_start(pool));
    int64_t first = put(pool, .kind = "k");
    run_idle(pool);
    assert_ok(pawl_clock_advance(pool, HOUR_MS));
    int64_t second = put(pool, .kind = "k");
    run_idle(pool);
    assert_int_equal(s.calls, 3);
    assert_int_equal(s.ids[1], first);
    assert_int_equal(s.ids[2], second);
    assert_ok(pawl_close(pool));
}

/* Goal: a kind never has more than in_flight_max claims, and does not hold up the others (I15, I23). */
static void in_flight_max_bounds_a_kind(void **state)
{
    detaching d = { .job = NULL };
    script s = SCRIPT(PAWL_SUCCEEDED);
    pawl_job *first = NULL;
    pawl_pool *pool = open_inline((temp *)*state, .executors = 8);
    assert_ok(pawl_register(pool, "few", detach, &d, PAWL_HANDLER(.in_flight_max = 2)));
    assert_ok(pawl_register(pool, "many", play, &s, NULL));
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "few", .priority = 10);
    run_idle(pool);
    first = d.job;
    for (int i = 0; i < 4; i++)
        (void)put(pool, .kind = "few", .priority = 10, .queue = i % 2 ? "x" : "y");
    for (int i = 0; i < 5; i++)
        assert_ok(pawl_enqueue_async(pool, PAWL_JOB(.kind = "few", .priority = 10), NULL, NULL));
    for (int i = 0; i < 20; i++)
        (void)put(pool, .kind = "many");
    run_idle(pool);
    assert_int_equal(s.calls, 20);
    assert_int_equal(d.calls, 2);
    pawl_job *last = d.job;
    for (int done = 3; done <= 11; done++) {
        assert_ok(pawl_job_finish(last, PAWL_SUCCEEDED));
        run_idle(pool);
        assert_int_equal(d.calls, done <= 10 ? done : 10);
        pawl_stats_info stats = stats_of(pool);
        assert_true(stats.in_hand <= 2);
        pawl_stats_info_clear(&stats);
        if (d.calls == done)
            last = d.job;
        else
            break;
    }
    assert_int_equal(sql_ask(((temp *)*state)->path, "SELECT count(*) FROM pawl_job WHERE status = 3"), 1);
    assert_status(pawl_stop(pool, 0), PAWL_ERR_TIMEOUT); /* the first is still out: its hour passes */
    assert_ok(pawl_clock_advance(pool, 2 * HOUR_MS));
    assert_ok(pawl_close(pool));
    assert_status(pawl_job_finish(first, PAWL_SUCCEEDED), PAWL_ERR_CLOSED);
}

/* Goal: what has no handler here stays pending, untouched and in nobody's way, until it has one (I23). */
static void kinds_without_a_handler_stay_pending(void **state)
{
    script s = SCRIPT(PAWL_SUCCEEDED);
    pawl_pool *pool = start_with(state, &s, NULL);
    int64_t foreign[300], id;
    for (int i = 0; i < 300; i++)
        foreign[i] = put(pool, .kind = "foreign", .priority = 100);
    id = put(pool, .kind = "k");
    run_idle(pool);
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_int_equal(state_of(pool, foreign[0]), PAWL_STATE_PENDING);
    assert_int_equal(attempts_of(pool, foreign[299]), 0);
    pawl_stats_info stats = stats_of(pool);
    assert_int_equal(stats.lane_count, 2);
    assert_string_equal(stats.lanes[0].kind, "foreign");
    assert_false(stats.lanes[0].served);
    assert_true(stats.lanes[1].served);
    assert_int_equal(stats.lanes[0].pending_due, 300);
    pawl_stats_info_clear(&stats);
    assert_ok(pawl_stop(pool, 0));
    assert_ok(pawl_register(pool, "foreign", play, &s, NULL));
    assert_ok(pawl_start(pool));
    run_idle(pool);
    assert_int_equal(s.calls, 301);
    assert_ok(pawl_close(pool));
}

/* Goal: a pool with a list of queues claims from these alone (I23). */
static void the_queues_option_restricts_claims(void **state)
{
    static const char *const queues[] = { "mail", "reports" };
    script s = SCRIPT(PAWL_SUCCEEDED);
    pawl_pool *pool = open_inline((temp *)*state, .queues = queues, .queue_count = 2);
    assert_ok(pawl_register(pool, "k", play, &s, NULL));
    assert_ok(pawl_start(pool));
    int64_t elsewhere = put(pool, .kind = "k"), other = put(pool, .kind = "k", .queue = "mai");
    int64_t mail = put(pool, .kind = "k", .queue = "mail");
    int64_t report = put(pool, .kind = "k", .queue = "reports");
    run_idle(pool);
    assert_int_equal(s.calls, 2);
    assert_int_equal(state_of(pool, mail), PAWL_STATE_SUCCEEDED);
    assert_int_equal(state_of(pool, report), PAWL_STATE_SUCCEEDED);
    assert_int_equal(state_of(pool, elsewhere), PAWL_STATE_PENDING);
    assert_int_equal(state_of(pool, other), PAWL_STATE_PENDING);
    assert_ok(pawl_close(pool));
}

/* ---------------------------------------------------------------------------- inline mode */

/* Goal: the calls of the inline mode say where they do not belong. */
static void inline_calls_are_refused_elsewhere(void **state)
{
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    assert_status(pawl_step(pool, NULL), PAWL_ERR_STATE);
    assert_status(pawl_run_until_idle(pool), PAWL_ERR_STATE);
    assert_status(pawl_clock_advance(pool, 1), PAWL_ERR_STATE);
    assert_ok(pawl_close(pool));
    pool = open_inline((temp *)*state, .executors = 1);
    assert_status(pawl_step(pool, NULL), PAWL_ERR_STATE);
    assert_status(pawl_clock_advance(pool, -1), PAWL_ERR_INVALID);
    int64_t before = pawl_clock_now(pool);
    assert_ok(pawl_clock_advance(pool, 5));
    assert_int_equal(pawl_clock_now(pool), before + 5);
    assert_ok(pawl_start(pool));
    assert_ok(pawl_step(pool, NULL));
    assert_ok(pawl_wait_idle(pool, 0));
    assert_ok(pawl_close(pool));
    assert_status(pawl_step(NULL, NULL), PAWL_ERR_INVALID);
}

/* Goal: the clock stops where stored times would (T1, T2); what is refused has moved nothing. */
static void the_clock_does_not_leave_the_calendar(void **state)
{
    script s = SCRIPT(PAWL_SUCCEEDED);
    pawl_pool *pool = start_with(state, &s, NULL);
    int64_t before = pawl_clock_now(pool);
    const int64_t year_9000 = INT64_C(221845392000000);
    assert_status(pawl_clock_advance(pool, INT64_MAX), PAWL_ERR_INVALID);
    assert_status(pawl_clock_advance(pool, year_9000 + 366 * 24 * HOUR_MS - before), PAWL_ERR_INVALID);
    assert_int_equal(pawl_clock_now(pool), before);
    assert_ok(pawl_clock_advance(pool, 200 * 366 * 24 * HOUR_MS));
    int64_t id = put(pool, .kind = "k");
    run_idle(pool);
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_close(pool));
}

/* Goal: age ends what is kept in a pool that has nothing else to do, too. */
static void an_idle_pool_prunes_by_age(void **state)
{
    script s = SCRIPT(PAWL_SUCCEEDED);
    script bad = SCRIPT(PAWL_FAILED);
    pawl_pool *pool = open_inline((temp *)*state, .executors = 1);
    pawl_job_info info = PAWL_JOB_INFO_INIT;
    assert_ok(pawl_register(pool, "k", play, &s, NULL));
    assert_ok(pawl_register(pool, "bad", play, &bad, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "k"), failed = put(pool, .kind = "bad");
    run_idle(pool);
    advance(pool, 6 * 24 * HOUR_MS);
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_clock_advance(pool, 2 * 24 * HOUR_MS + 600000));
    assert_ok(pawl_run_until_idle(pool));
    assert_status(pawl_get(pool, id, &info), PAWL_ERR_NOT_FOUND);
    assert_int_equal(state_of(pool, failed), PAWL_STATE_FAILED);
    advance(pool, 24 * 24 * HOUR_MS);
    assert_status(pawl_get(pool, failed, &info), PAWL_ERR_NOT_FOUND);
    assert_ok(pawl_close(pool));
}

static int step_inside(pawl_job *job, void *arg)
{
    pawl_status *answers = arg;
    pawl_pool *pool = pawl_job_pool(job);
    answers[0] = pawl_step(pool, NULL);
    answers[1] = pawl_run_until_idle(pool);
    answers[2] = pawl_wait_idle(pool, 0);
    answers[3] = pawl_close(pool);
    answers[4] = pawl_start(pool);
    answers[5] = pawl_register(pool, "new", step_inside, NULL, NULL);
    return PAWL_SUCCEEDED;
}

/* Goal: what would wait for the handler itself is refused inside it (G2). */
static void a_handler_cannot_wait_for_itself(void **state)
{
    pawl_status answers[6] = { 0 };
    pawl_pool *pool = open_inline((temp *)*state, .executors = 1);
    assert_ok(pawl_register(pool, "k", step_inside, answers, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "k");
    run_idle(pool);
    for (int i = 0; i < 6; i++)
        assert_int_equal(answers[i], PAWL_ERR_STATE);
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_ok(pawl_close(pool));
}

/* Goal: pawl_run_until_idle() does not say OK while there is work that the store did not let it do. */
static void idle_is_not_claimed_while_the_store_is_busy(void **state)
{
    script s = SCRIPT(PAWL_SUCCEEDED);
    pawl_pool *pool = start_with(state, &s, NULL);
    (void)put(pool, .kind = "k");
    struct sqlite3 *db = sql_open(((temp *)*state)->path);
    sql_run(db, "BEGIN IMMEDIATE");
    pawl_status st = pawl_run_until_idle(pool);
    sql_run(db, "ROLLBACK");
    sql_close(db);
    assert_int_equal(s.calls, 0);
    assert_status(st, PAWL_ERR_BUSY);
    assert_ok(pawl_run_until_idle(pool));
    assert_int_equal(s.calls, 1);
    assert_ok(pawl_close(pool));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    TEST(success_ends_the_job),
    TEST(every_outcome_has_its_state_and_charge),
    TEST(released_comes_back_at_once_uncharged),
    TEST(snoozed_waits_uncharged),
    TEST(a_snoozing_job_leaves_a_bounded_history),
    TEST(unknown_values_follow_the_policy),
    TEST(attempts_are_used_up_exactly),
    TEST(the_limit_is_stamped_at_enqueue),
    TEST(default_backoff),
    TEST(backoff_by_list),
    TEST(backoff_exponential),
    TEST(backoff_of_zero_still_waits),
    TEST(backoff_by_function),
    TEST(a_backoff_function_cannot_wait_for_itself),
    TEST(retry_in_replaces_the_backoff),
    TEST(delayed_jobs_are_not_early),
    TEST(after_a_timeout_only_success_and_failure_stand),
    TEST(the_jobs_timeout_stands_before_the_handlers),
    TEST(timeouts_use_up_attempts),
    TEST(a_stuck_handler_loses_its_claim),
    TEST(a_stuck_handlers_heartbeat_is_refused),
    TEST(an_expired_lease_that_nobody_took_still_counts),
    TEST(a_heartbeat_extends_the_lease),
    TEST(an_eviction_beside_a_renewal_harms_nobody),
    TEST(a_detached_job_ends_as_its_finisher_says),
    TEST(a_detached_job_may_be_finished_before_its_handler_returns),
    TEST(a_detached_job_without_a_timeout_has_an_hour),
    TEST(a_detached_job_with_a_timeout),
    TEST(a_lost_detached_job_may_be_finished_after_close),
    TEST(a_job_lost_before_it_was_detached_may_be_finished_after_close),
    TEST(a_stop_waits_for_detached_jobs),
    TEST(a_cancelled_pending_job_never_runs),
    TEST(a_cancelled_running_job_ends_as_cancelled_unless_it_succeeds),
    TEST(requeue_starts_over),
    TEST(a_cancel_is_forgotten_by_requeue),
    TEST(cancel_and_requeue_many),
    TEST(pause_holds_and_resume_releases),
    TEST(claims_follow_priority_then_id),
    TEST(the_hand_off_keeps_the_order),
    TEST(a_retried_job_keeps_its_place),
    TEST(in_flight_max_bounds_a_kind),
    TEST(kinds_without_a_handler_stay_pending),
    TEST(the_queues_option_restricts_claims),
    TEST(inline_calls_are_refused_elsewhere),
    TEST(the_clock_does_not_leave_the_calendar),
    TEST(an_idle_pool_prunes_by_age),
    TEST(a_handler_cannot_wait_for_itself),
    TEST(idle_is_not_claimed_while_the_store_is_busy),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
