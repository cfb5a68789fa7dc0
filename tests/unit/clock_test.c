/* clock_test.c - the three clocks, real and virtual, and sums that stop at the ends (T1, T2). */
#include "clock.h"

#include "check.h"

/* Goal: a virtual clock begins at the present, stands still, and is moved by hand only. */
static void a_virtual_clock_stands_still(void **unused)
{
    (void)unused;
    pawli_clock real, still;
    pawli_clock_init(&real, false);
    int64_t wall = pawli_clock_wall_ms(&real), boot = pawli_clock_boot_ms(&real);
    int64_t steady = pawli_steady_now_ns();
    pawli_clock_init(&still, true);
    assert_true(pawli_clock_steady_ns(&still) >= steady);
    assert_true(pawli_clock_boot_ms(&still) >= boot);
    assert_true(pawli_clock_wall_ms(&still) >= wall - 60000); /* somebody may set it back */
    steady = pawli_clock_steady_ns(&still);
    while (pawli_steady_now_ns() < steady + 2 * PAWLI_NS_PER_MS)
        ; /* the real one goes on */
    assert_int_equal(pawli_clock_steady_ns(&still), steady);
}

/* Goal: the three faces of a virtual clock move together, by what was said. */
static void a_virtual_clock_moves_as_told(void **unused)
{
    (void)unused;
    pawli_clock clock;
    pawli_clock_init(&clock, true);
    int64_t wall = pawli_clock_wall_ms(&clock), boot = pawli_clock_boot_ms(&clock);
    int64_t steady = pawli_clock_steady_ns(&clock), moved = 0;
    static const int64_t steps[] = { 0, 1, 999, 60000, INT64_C(86400000) * 365 };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        pawli_clock_advance(&clock, steps[i]);
        moved += steps[i];
        assert_int_equal(pawli_clock_wall_ms(&clock), wall + moved);
        assert_int_equal(pawli_clock_boot_ms(&clock), boot + moved);
        assert_int_equal(pawli_clock_steady_ns(&clock), steady + moved * PAWLI_NS_PER_MS);
    }
}

/* Goal: a clock that was moved too far stays at the end and never runs back. */
static void a_virtual_clock_stops_at_the_end(void **unused)
{
    (void)unused;
    pawli_clock clock;
    pawli_clock_init(&clock, true);
    for (int i = 0; i < 2; i++) {
        pawli_clock_advance(&clock, INT64_MAX);
        assert_int_equal(pawli_clock_wall_ms(&clock), INT64_MAX);
        assert_int_equal(pawli_clock_boot_ms(&clock), INT64_MAX);
        assert_int_equal(pawli_clock_steady_ns(&clock), INT64_MAX);
    }
}

/* Goal: a real clock tells the system's time, and its steady face never runs back. */
static void a_real_clock_is_the_systems(void **unused)
{
    (void)unused;
    pawli_clock clock;
    pawli_clock_init(&clock, false);
    int64_t before = pawli_steady_now_ns(), read = pawli_clock_steady_ns(&clock);
    assert_true(before <= read && read <= pawli_steady_now_ns());
    int64_t boot = pawli_clock_boot_ms(&clock);
    assert_true(boot >= read / PAWLI_NS_PER_MS); /* suspends are counted */
    assert_true(pawli_clock_boot_ms(&clock) >= boot);
    assert_true(pawli_clock_wall_ms(&clock) > INT64_C(1600000000000)); /* milliseconds, and not 1970 */
    assert_true(pawli_clock_wall_ms(&clock) < PAWLI_TIME_MAX_MS);
}

/* Goal: sums stop at the ends of the range. */
static void sums_saturate(void **unused)
{
    (void)unused;
    static const struct {
        int64_t a, b, sum;
    } cases[] = {
        { 0, 0, 0 },
        { 2, 3, 5 },
        { 2, -3, -1 },
        { INT64_MAX, 0, INT64_MAX },
        { INT64_MAX - 1, 1, INT64_MAX },
        { INT64_MAX, 1, INT64_MAX },
        { INT64_MAX, INT64_MAX, INT64_MAX },
        { INT64_MIN + 1, -1, INT64_MIN },
        { INT64_MIN, -1, INT64_MIN },
        { INT64_MIN, INT64_MIN, INT64_MIN },
        { INT64_MIN, INT64_MAX, -1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(pawli_add(cases[i].a, cases[i].b), cases[i].sum);
        assert_int_equal(pawli_add(cases[i].b, cases[i].a), cases[i].sum);
    }
}

/* Goal: so do milliseconds as nanoseconds. */
static void nanoseconds_saturate(void **unused)
{
    (void)unused;
    const int64_t most = INT64_MAX / PAWLI_NS_PER_MS;
    assert_int_equal(pawli_ms_to_ns(0), 0);
    assert_int_equal(pawli_ms_to_ns(1), 1000000);
    assert_int_equal(pawli_ms_to_ns(-1), -1000000);
    assert_int_equal(pawli_ms_to_ns(most), most * PAWLI_NS_PER_MS);
    assert_int_equal(pawli_ms_to_ns(most + 1), INT64_MAX);
    assert_int_equal(pawli_ms_to_ns(INT64_MAX), INT64_MAX);
    assert_int_equal(pawli_ms_to_ns(-most - 1), INT64_MIN);
    assert_int_equal(pawli_ms_to_ns(INT64_MIN), INT64_MIN);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_virtual_clock_stands_still),
    cmocka_unit_test(a_virtual_clock_moves_as_told),
    cmocka_unit_test(a_virtual_clock_stops_at_the_end),
    cmocka_unit_test(a_real_clock_is_the_systems),
    cmocka_unit_test(sums_saturate),
    cmocka_unit_test(nanoseconds_saturate),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
