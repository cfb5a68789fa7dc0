/* retry_test.c - backoff in saturating integers: lists, exponentials, jitter (T2). */
#include "retry.h"

#include <time.h>

#include "check.h"
#include "clock.h"

/* Goal: the documented default: 10 s, 30 s, 2 min, 5 min, and the last repeats. */
static void the_default_is_the_documented_list(void **unused)
{
    (void)unused;
    static const int64_t wanted[] = { 10000, 30000, 120000, 300000, 300000 };
    for (uint32_t failure = 1; failure <= 5; failure++)
        assert_int_equal(pawli_backoff_delay(&pawli_backoff_default, failure), wanted[failure - 1]);
    assert_int_equal(pawli_backoff_delay(&pawli_backoff_default, UINT32_MAX), 300000);
}

/* Goal: a list is followed step by step, its ends are clamped: never 0, never beyond what is stored. */
static void a_list_is_followed(void **unused)
{
    (void)unused;
    static const int64_t steps[] = { 0, 7, -1, 3, INT64_MAX };
    const pawli_backoff list = { .steps_ms = steps, .count = 5 };
    static const struct {
        uint32_t failure;
        int64_t wanted;
    } cases[] = { { 0, 1 }, { 1, 1 }, { 2, 7 }, { 3, 1 }, { 4, 3 }, { 5, PAWLI_TIME_MAX_MS },
                  { 6, PAWLI_TIME_MAX_MS }, { UINT32_MAX, PAWLI_TIME_MAX_MS } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(pawli_backoff_delay(&list, cases[i].failure), cases[i].wanted);
}

/* Goal: the exponential grows by its factor up to its cap, whatever the values are. */
static void an_exponential_grows_to_its_cap(void **unused)
{
    (void)unused;
    static const struct {
        int64_t first_ms, max_ms;
        uint32_t percent, failure;
        int64_t wanted;
    } cases[] = {
        { 1000, 3600000, 200, 1, 1000 },
        { 1000, 3600000, 200, 2, 2000 },
        { 1000, 3600000, 200, 12, 2048000 },
        { 1000, 3600000, 200, 13, 3600000 },
        { 1000, 3600000, 200, UINT32_MAX, 3600000 },
        { 1000, 1000, 200, 2, 1000 },
        { 1000, 10, 200, 1, 10 },               /* a cap below the first */
        { 1000, 3600000, 100, 1000, 1000 },     /* no growth */
        { 1000, 3600000, 150, 3, 2250 },
        { 1, 1000, 101, 2, 2 },                 /* rounded up, so that it grows at all */
        { 1, 1000, 101, 3, 3 },
        { 0, 1000, 200, 5, 1 },                 /* the floor */
        { 1, 1000, UINT32_MAX, 2, 1000 },
        { 1000, INT64_MAX, UINT32_MAX, 2, 42949672950 },
        { 1000, INT64_MAX, UINT32_MAX, 3, PAWLI_TIME_MAX_MS },
        { 1000, INT64_MAX, 200, 64, PAWLI_TIME_MAX_MS },
        { 1000, INT64_MAX, 101, 10000, PAWLI_TIME_MAX_MS },
        { INT64_MAX, INT64_MAX, 200, 1, PAWLI_TIME_MAX_MS },
        { INT64_MAX, INT64_MAX, UINT32_MAX, 9, PAWLI_TIME_MAX_MS },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pawli_backoff backoff = { .first_ms = cases[i].first_ms,
                                        .percent = cases[i].percent,
                                        .max_ms = cases[i].max_ms };
        int64_t delay = pawli_backoff_delay(&backoff, cases[i].failure);
        if (delay != cases[i].wanted)
            fail_msg("case %zu: %lld instead of %lld", i, (long long)delay,
                     (long long)cases[i].wanted);
    }
}

/* Goal: a later failure never waits for less. */
static void a_later_failure_never_waits_less(void **unused)
{
    (void)unused;
    static const uint32_t percents[] = { 100, 101, 150, 200, 1000, 1000000, UINT32_MAX };
    static const int64_t caps[] = { 1, 1000, PAWLI_TIME_MAX_MS, INT64_MAX };
    for (size_t p = 0; p < sizeof percents / sizeof percents[0]; p++)
        for (size_t c = 0; c < sizeof caps / sizeof caps[0]; c++) {
            const pawli_backoff backoff = { .first_ms = 5, .percent = percents[p], .max_ms = caps[c] };
            int64_t before = 1;
            for (uint32_t failure = 1; failure <= 400; failure++) {
                int64_t delay = pawli_backoff_delay(&backoff, failure);
                assert_true(delay >= before && delay <= PAWLI_TIME_MAX_MS);
                before = delay;
            }
        }
}

/* Goal: jitter only adds, at most a tenth, and keeps to the range. */
static void jitter_only_adds(void **unused)
{
    (void)unused;
    static const int64_t delays[] = { 1, 9, 10, 11, 10000, 300000, PAWLI_TIME_MAX_MS / 2,
                                      PAWLI_TIME_MAX_MS };
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
        int64_t most = delays[i] + delays[i] / 10;
        if (most > PAWLI_TIME_MAX_MS)
            most = PAWLI_TIME_MAX_MS;
        bool reached = false;
        for (int n = 0; n < 1000; n++) {
            int64_t delay = pawli_backoff_jitter(delays[i], pawli_random_next(&state));
            assert_in_range(delay, delays[i], most);
            reached = reached || delay > delays[i] + delays[i] / 20;
        }
        assert_true(delays[i] < 10 || delays[i] == PAWLI_TIME_MAX_MS || reached);
        assert_int_equal(pawli_backoff_jitter(delays[i], 0), delays[i]);
    }
    static const int64_t outside[] = { 0, -1, INT64_MIN };
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        assert_int_equal(pawli_backoff_jitter(outside[i], UINT64_MAX), 1);
    assert_int_equal(pawli_backoff_jitter(INT64_MAX, UINT64_MAX), PAWLI_TIME_MAX_MS);
}

/* Goal: the generator is the published splitmix64: a seed gives the same run everywhere. */
static void random_numbers_follow_the_seed(void **unused)
{
    (void)unused;
    uint64_t state = 1234567;
    assert_true(pawli_random_next(&state) == UINT64_C(6457827717110365317));
    assert_true(pawli_random_next(&state) == UINT64_C(3203168211198807973));
    assert_true(pawli_random_next(&state) == UINT64_C(9817491932198370423));
}

/* Goal: the work for a delay does not grow with the number of failures, even without a cap in reach. */
static void the_last_failure_costs_no_more(void **unused)
{
    (void)unused;
    const pawli_backoff backoff = { .first_ms = 1000, .percent = 200, .max_ms = INT64_MAX };
    struct timespec began, ended; /* processor time: a busy machine does not count */
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
    assert_int_equal(pawli_backoff_delay(&backoff, UINT32_MAX), PAWLI_TIME_MAX_MS);
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
    assert_true(ended.tv_sec - began.tv_sec <= 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_default_is_the_documented_list),
    cmocka_unit_test(a_list_is_followed),
    cmocka_unit_test(an_exponential_grows_to_its_cap),
    cmocka_unit_test(a_later_failure_never_waits_less),
    cmocka_unit_test(jitter_only_adds),
    cmocka_unit_test(random_numbers_follow_the_seed),
    cmocka_unit_test(the_last_failure_costs_no_more),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
