/* status_test.c - codes to text, and each thread's last error message. */
#include "status.h"

#include <pthread.h>
#include <string.h>

#include "check.h"

/* Goal: every status has its own name, and its number is the documented one for ever. */
static void every_status_has_its_name_and_number(void **unused)
{
    (void)unused;
    static const struct {
        pawl_status status;
        int number;
        const char *name;
    } cases[] = {
#define STATUS(name, number) { name, number, #name }
        STATUS(PAWL_OK, 0),
        STATUS(PAWL_EXISTS, 1),
        STATUS(PAWL_ACCEPTED, 2),
        STATUS(PAWL_ERR_INVALID, -1),
        STATUS(PAWL_ERR_NOMEM, -2),
        STATUS(PAWL_ERR_BUSY, -3),
        STATUS(PAWL_ERR_STORE, -4),
        STATUS(PAWL_ERR_UNKNOWN, -5),
        STATUS(PAWL_ERR_FULL, -6),
        STATUS(PAWL_ERR_NOT_FOUND, -7),
        STATUS(PAWL_ERR_STATE, -8),
        STATUS(PAWL_ERR_LEASE_LOST, -9),
        STATUS(PAWL_ERR_TIMEOUT, -10),
        STATUS(PAWL_ERR_CLOSED, -11),
        STATUS(PAWL_ERR_FORKED, -12),
        STATUS(PAWL_ERR_VERSION, -13),
#undef STATUS
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(cases[i].status, cases[i].number);
        assert_string_equal(pawl_status_name(cases[i].status), cases[i].name);
    }
    assert_string_equal(pawl_status_name((pawl_status)-14), "unknown status");
    assert_string_equal(pawl_status_name((pawl_status)3), "unknown status");
}

/* Goal: the outcomes are numbers that a handler's exit code does not meet by chance. */
static void outcomes_have_their_numbers(void **unused)
{
    (void)unused;
    static const int numbers[] = { PAWL_RETRY,   PAWL_FAILED,   PAWL_CANCELLED,
                                   PAWL_SNOOZED, PAWL_RELEASED, PAWL_DETACHED };
    assert_int_equal(PAWL_SUCCEEDED, 0);
    assert_int_equal(PAWL_UNKNOWN, -1);
    for (int i = 0; i < 6; i++)
        assert_int_equal(numbers[i], 101 + i);
}

/* Goal: failing keeps the message and hands the status on. */
static void failing_sets_the_message(void **unused)
{
    (void)unused;
    assert_non_null(pawl_error_message());
    assert_int_equal(pawli_fail(PAWL_ERR_BUSY, "%s: %d", "jobs.db", 7), PAWL_ERR_BUSY);
    assert_string_equal(pawl_error_message(), "jobs.db: 7");
    assert_int_equal(pawli_fail(PAWL_ERR_STORE, "again"), PAWL_ERR_STORE);
    assert_string_equal(pawl_error_message(), "again");
}

/* Goal: a message may be built from the one before. */
static void a_message_may_quote_itself(void **unused)
{
    (void)unused;
    (void)pawli_fail(PAWL_ERR_INVALID, "kind is missing");
    (void)pawli_fail(PAWL_ERR_INVALID, "specs[%d]: %s", 3, pawl_error_message());
    assert_string_equal(pawl_error_message(), "specs[3]: kind is missing");
}

/* Goal: a message that is too long is cut, not written over its end. */
static void a_long_message_is_cut(void **unused)
{
    (void)unused;
    static char text[5000];
    memset(text, 'x', sizeof text - 1);
    (void)pawli_fail(PAWL_ERR_STORE, "%s", text);
    size_t length = strlen(pawl_error_message());
    assert_in_range(length, 256, sizeof text - 2);
    assert_memory_equal(pawl_error_message(), text, length);
}

static void *fail_elsewhere(void *arg)
{
    *(bool *)arg = pawl_error_message()[0] == '\0';
    (void)pawli_fail(PAWL_ERR_NOMEM, "of another thread");
    return NULL;
}

/* Goal: each thread has its own message, and begins with an empty one. */
static void each_thread_has_its_own_message(void **unused)
{
    (void)unused;
    pthread_t thread;
    bool began_empty = false;
    (void)pawli_fail(PAWL_ERR_BUSY, "of this thread");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &began_empty), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(began_empty);
    assert_string_equal(pawl_error_message(), "of this thread");
}

/* Goal: the library says the version of the header. */
static void the_version_is_the_headers(void **unused)
{
    (void)unused;
    assert_string_equal(pawl_version(), PAWL_VERSION);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_status_has_its_name_and_number),
    cmocka_unit_test(outcomes_have_their_numbers),
    cmocka_unit_test(failing_sets_the_message),
    cmocka_unit_test(a_message_may_quote_itself),
    cmocka_unit_test(a_long_message_is_cut),
    cmocka_unit_test(each_thread_has_its_own_message),
    cmocka_unit_test(the_version_is_the_headers),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
