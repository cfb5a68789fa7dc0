/* registry_test.c - handlers by kind, and their options: honoured, or refused with a message (T2). */
#include "registry.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

static int handle(pawl_job *job, void *arg)
{
    (void)job;
    (void)arg;
    return PAWL_SUCCEEDED;
}

static int64_t wait_long(uint32_t attempt, const char *error, void *arg)
{
    (void)attempt;
    (void)error;
    (void)arg;
    return 1;
}

static int open_registry(void **state)
{
    static pawli_registry registry;
    memset(&registry, 0, sizeof registry);
    *state = &registry;
    return 0;
}

static int close_registry(void **state)
{
    pawli_registry_fini(*state);
    pawli_registry_fini(*state); /* an empty one is nothing to free */
    return 0;
}

/* Goal: each kind has its own handler, found by its whole name. */
static void finds_the_handler_of_a_kind(void **state)
{
    pawli_registry *registry = *state;
    int first, second;
    char kind[] = "mail";
    assert_null(pawli_registry_find(registry, "mail"));
    assert_ok(pawli_registry_add(registry, kind, handle, &first, NULL));
    assert_ok(pawli_registry_add(registry, "mail2", handle, &second, NULL));
    kind[0] = '!'; /* copied */
    assert_ptr_equal(pawli_registry_find(registry, "mail")->arg, &first);
    assert_ptr_equal(pawli_registry_find(registry, "mail2")->arg, &second);
    assert_null(pawli_registry_find(registry, "mai"));
    assert_null(pawli_registry_find(registry, "Mail"));
    assert_null(pawli_registry_find(registry, ""));
    pawli_handler *handler = pawli_registry_find(registry, "mail");
    assert_ptr_equal(pawli_handler_of(&handler->service), handler);
}

/* Goal: one handler a kind; the first one stays. */
static void a_kind_has_one_handler(void **state)
{
    pawli_registry *registry = *state;
    int first, second;
    assert_ok(pawli_registry_add(registry, "mail", handle, &first, NULL));
    assert_status(pawli_registry_add(registry, "mail", handle, &second, NULL), PAWL_ERR_STATE);
    assert_text_has(pawl_error_message(), "mail");
    assert_ptr_equal(pawli_registry_find(registry, "mail")->arg, &first);
}

/* Goal: a kind is a name, and a handler is a function. */
static void a_handler_has_a_name_and_a_function(void **state)
{
    pawli_registry *registry = *state;
    char too_long[257];
    memset(too_long, 'k', 256);
    too_long[256] = '\0';
    assert_status(pawli_registry_add(registry, NULL, handle, NULL, NULL), PAWL_ERR_INVALID);
    assert_text_has(pawl_error_message(), "kind");
    assert_status(pawli_registry_add(registry, "", handle, NULL, NULL), PAWL_ERR_INVALID);
    assert_status(pawli_registry_add(registry, "a\nb", handle, NULL, NULL), PAWL_ERR_INVALID);
    assert_status(pawli_registry_add(registry, "\xFF", handle, NULL, NULL), PAWL_ERR_INVALID);
    assert_status(pawli_registry_add(registry, too_long, handle, NULL, NULL), PAWL_ERR_INVALID);
    assert_status(pawli_registry_add(registry, "mail", NULL, NULL, NULL), PAWL_ERR_INVALID);
    assert_text_has(pawl_error_message(), "function");
    assert_null(registry->handlers);
    assert_ok(pawli_registry_add(registry, too_long + 1, handle, NULL, NULL));
}

static const pawli_handler *added(pawli_registry *registry, const pawl_handler_options *options)
{
    pawli_registry_fini(registry);
    assert_ok(pawli_registry_add(registry, "kind", handle, NULL, options));
    return pawli_registry_find(registry, "kind");
}

/* Goal: without options: no timeout, no limit, unknown values are retried, the default backoff. */
static void the_defaults_are_the_documented_ones(void **state)
{
    const pawl_handler_options zero = PAWL_HANDLER_OPTIONS_INIT;
    const pawl_handler_options *const cases[] = { NULL, &zero };
    for (size_t i = 0; i < 2; i++) {
        const pawli_handler *h = added(*state, cases[i]);
        assert_int_equal(h->timeout_ms, 0);
        assert_int_equal(h->unknown, PAWL_RETRY);
        assert_int_equal(h->service.in_flight_max, 0);
        assert_true(h->backoff_fn == NULL);
        for (uint32_t failure = 1; failure < 6; failure++)
            assert_int_equal(pawli_backoff_delay(&h->backoff, failure),
                             pawli_backoff_delay(&pawli_backoff_default, failure));
    }
}

/* Goal: what was given is kept, at the ends of the ranges too. */
static void keeps_what_was_given(void **state)
{
    int arg;
    const pawli_handler *h = added(
        *state, PAWL_HANDLER(.timeout_ms = INT64_MAX, .unknown = PAWL_FAILED, .backoff_fn = wait_long,
                             .backoff_arg = &arg, .in_flight_max = UINT32_MAX));
    assert_int_equal(h->timeout_ms, INT64_MAX);
    assert_int_equal(h->unknown, PAWL_FAILED);
    assert_int_equal(h->service.in_flight_max, UINT32_MAX);
    assert_true(h->backoff_fn == wait_long);
    assert_ptr_equal(h->backoff_arg, &arg);
    h = added(*state, PAWL_HANDLER(.timeout_ms = PAWL_NONE, .unknown = PAWL_RETRY));
    assert_int_equal(h->timeout_ms, 0);
    assert_int_equal(h->unknown, PAWL_RETRY);
    assert_int_equal(added(*state, PAWL_HANDLER(.timeout_ms = 1))->timeout_ms, 1);
}

/* Goal: a list of delays is copied whole. */
static void a_list_of_delays_is_copied(void **state)
{
    int64_t steps[1000];
    for (size_t i = 0; i < 1000; i++)
        steps[i] = (int64_t)i + 1;
    const pawli_handler *h = added(*state, PAWL_HANDLER(.backoff_ms = steps, .backoff_count = 1000));
    memset(steps, 0, sizeof steps);
    assert_int_equal(pawli_backoff_delay(&h->backoff, 1), 1);
    assert_int_equal(pawli_backoff_delay(&h->backoff, 1000), 1000);
    assert_int_equal(pawli_backoff_delay(&h->backoff, 1001), 1000);
}

/* Goal: an exponential has its factor and cap, or their defaults: doubling, up to an hour. */
static void an_exponential_has_defaults(void **state)
{
    const pawli_handler *h = added(*state, PAWL_HANDLER(.backoff_first_ms = 1000));
    assert_int_equal(pawli_backoff_delay(&h->backoff, 1), 1000);
    assert_int_equal(pawli_backoff_delay(&h->backoff, 3), 4000);
    assert_int_equal(pawli_backoff_delay(&h->backoff, 100), 3600000);
    h = added(*state, PAWL_HANDLER(.backoff_first_ms = 10, .backoff_percent = 300, .backoff_max_ms = 50));
    assert_int_equal(pawli_backoff_delay(&h->backoff, 2), 30);
    assert_int_equal(pawli_backoff_delay(&h->backoff, 3), 50);
}

/* Goal: what cannot be honoured is refused, and the message says which handler and which option. */
static void refuses_what_it_cannot_honour(void **state)
{
    static const int64_t one[] = { 5 }, negative[] = { 5, -1 };
    static const struct {
        pawl_handler_options options;
        const char *word;
    } cases[] = {
        { { .timeout_ms = -2 }, "timeout_ms" },
        { { .timeout_ms = INT64_MIN }, "timeout_ms" },
        { { .unknown = PAWL_CANCELLED }, "unknown" },
        { { .unknown = 1 }, "unknown" },
        { { .unknown = PAWL_UNKNOWN }, "unknown" },
        { { .backoff_ms = one }, "backoff_count" },
        { { .backoff_count = 1 }, "backoff_ms" },
        { { .backoff_ms = one, .backoff_count = 1001 }, "backoff_count" },
        { { .backoff_ms = one, .backoff_count = SIZE_MAX }, "backoff_count" },
        { { .backoff_ms = negative, .backoff_count = 2 }, "backoff_ms" },
        { { .backoff_first_ms = -1 }, "backoff_first_ms" },
        { { .backoff_first_ms = 1, .backoff_max_ms = -1 }, "backoff_max_ms" },
        { { .backoff_first_ms = 1, .backoff_percent = 99 }, "backoff_percent" },
        { { .backoff_first_ms = 1, .backoff_percent = 1 }, "backoff_percent" },
        { { .backoff_percent = 200 }, "backoff_first_ms" },
        { { .backoff_max_ms = 5 }, "backoff_first_ms" },
    };
    pawli_registry *registry = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pawl_handler_options options = cases[i].options;
        options.struct_size = sizeof options;
        if (pawli_registry_add(registry, "kind", handle, NULL, &options) != PAWL_ERR_INVALID)
            fail_msg("case %zu (%s) is not refused", i, cases[i].word);
        assert_text_has(pawl_error_message(), "\"kind\"");
        assert_text_has(pawl_error_message(), cases[i].word);
        assert_null(registry->handlers);
    }
    const pawl_handler_options unset = { .struct_size = 0 };
    assert_status(pawli_registry_add(registry, "kind", handle, NULL, &unset), PAWL_ERR_INVALID);
    assert_text_has(pawl_error_message(), "struct_size");
}

/* Goal: an older caller's shorter struct leaves the rest at its default. */
static void a_shorter_struct_has_defaults_behind_it(void **state)
{
    const pawl_handler_options given = { .struct_size = offsetof(pawl_handler_options, unknown),
                                         .timeout_ms = 7,
                                         .unknown = 12345,
                                         .backoff_first_ms = -1 };
    const pawli_handler *h = added(*state, &given);
    assert_int_equal(h->timeout_ms, 7);
    assert_int_equal(h->unknown, PAWL_RETRY);
}

#define REGISTRY_TEST(name) cmocka_unit_test_setup_teardown(name, open_registry, close_registry)

static const struct CMUnitTest tests[] = {
    REGISTRY_TEST(finds_the_handler_of_a_kind),
    REGISTRY_TEST(a_kind_has_one_handler),
    REGISTRY_TEST(a_handler_has_a_name_and_a_function),
    REGISTRY_TEST(the_defaults_are_the_documented_ones),
    REGISTRY_TEST(keeps_what_was_given),
    REGISTRY_TEST(a_list_of_delays_is_copied),
    REGISTRY_TEST(an_exponential_has_defaults),
    REGISTRY_TEST(refuses_what_it_cannot_honour),
    REGISTRY_TEST(a_shorter_struct_has_defaults_behind_it),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
