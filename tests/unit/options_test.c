/* options_test.c - every option at its default and at both ends of its range; each value is honoured or
 * refused with a message that names the option (T2). */
#include "cpus.h"
#include "options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel.h"
#include "check.h"

#define DAY_MS INT64_C(86400000)
#define MIB (INT64_C(1) << 20)

typedef enum number_type { U32, I64, SIZE } number_type;

typedef struct number {
    const char *name;
    number_type type;
    size_t given_at, taken_at;
    int64_t initial, low, high;
    bool may_be_forever;
} number;

#define NUMBER(field, type, initial, low, high)                                                    \
    { #field, type, offsetof(pawl_options, field), offsetof(pawli_options, field), initial, low,   \
      high, false }
#define KEEP(field, initial)                                                                       \
    { #field, I64, offsetof(pawl_options, field), offsetof(pawli_options, field), initial, 1,      \
      INT64_MAX, true }

static const number numbers[] = {
    NUMBER(lease_ms, I64, 60000, 100, DAY_MS),
    NUMBER(max_attempts, U32, 5, 1, UINT32_MAX),
    NUMBER(store_timeout_ms, I64, 5000, 1, DAY_MS),
    NUMBER(command_max, U32, 16384, 1, PAWLI_CHANNEL_COMMANDS_MAX),
    NUMBER(command_bytes_max, SIZE, 64 * MIB, 1, PAWLI_CHANNEL_BYTES_MAX),
    NUMBER(payload_bytes_max, SIZE, MIB, 1, 256 * MIB),
    NUMBER(detached_max, U32, 4096, 1, MIB),
    NUMBER(wal_bytes_max, SIZE, 16 * MIB, MIB, INT64_C(1) << 40),
    NUMBER(stack_bytes, SIZE, MIB, 65536, INT64_C(1) << 30),
    KEEP(keep_succeeded_ms, 7 * DAY_MS),
    KEEP(keep_succeeded_max, 1000000),
    KEEP(keep_failed_ms, 30 * DAY_MS),
    KEEP(keep_failed_max, 1000000),
};

/* The default of `executors` depends on the machine. */
static number executors(void)
{
    uint32_t cpus = pawli_cpus_usable();
    number n = NUMBER(executors, U32, cpus < 4 ? 4 : cpus, 1, 1024);
    return n;
}

static size_t number_count(void)
{
    return sizeof numbers / sizeof numbers[0] + 1;
}

static number number_at(size_t i)
{
    return i + 1 == number_count() ? executors() : numbers[i];
}

static void write_number(const number *n, pawl_options *options, int64_t value)
{
    char *at = (char *)options + n->given_at;
    if (n->type == U32)
        *(uint32_t *)(void *)at = (uint32_t)value;
    else if (n->type == SIZE)
        *(size_t *)(void *)at = (size_t)value;
    else
        *(int64_t *)(void *)at = value;
}

static int64_t read_number(const number *n, const pawli_options *options)
{
    const char *at = (const char *)options + n->taken_at;
    if (n->type == U32)
        return *(const uint32_t *)(const void *)at;
    if (n->type == SIZE)
        return (int64_t) * (const size_t *)(const void *)at;
    return *(const int64_t *)(const void *)at;
}

static void assert_taken(const number *n, int64_t value, int64_t wanted)
{
    pawl_options given = { .struct_size = sizeof given, .store = "jobs.db" };
    pawli_options taken;
    write_number(n, &given, value);
    if (pawli_options_init(&taken, &given) != PAWL_OK)
        fail_msg("%s = %lld: %s", n->name, (long long)value, pawl_error_message());
    if (read_number(n, &taken) != wanted)
        fail_msg("%s = %lld became %lld", n->name, (long long)value,
                 (long long)read_number(n, &taken));
    pawli_options_fini(&taken);
}

static void assert_refused(const number *n, int64_t value)
{
    pawl_options given = { .struct_size = sizeof given, .store = "jobs.db" };
    pawli_options taken;
    write_number(n, &given, value);
    if (pawli_options_init(&taken, &given) != PAWL_ERR_INVALID)
        fail_msg("%s = %lld is not refused", n->name, (long long)value);
    assert_text_has(pawl_error_message(), n->name);
    assert_null(taken.store); /* nothing is left to be freed */
}

/* Goal: 0 is the documented default. */
static void zero_is_the_default(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < number_count(); i++) {
        number n = number_at(i);
        assert_taken(&n, 0, n.initial);
    }
}

/* Goal: the smallest and the largest value are honoured as they are. */
static void both_ends_are_honoured(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < number_count(); i++) {
        number n = number_at(i);
        assert_taken(&n, n.low, n.low);
        assert_taken(&n, n.high, n.high);
        assert_taken(&n, n.initial, n.initial);
    }
}

/* Goal: one beyond either end, negatives and the largest numbers are refused, and the message names the
 * option. */
static void what_is_beyond_is_refused(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < number_count(); i++) {
        number n = number_at(i);
        int64_t most = n.type == U32 ? UINT32_MAX : INT64_MAX;
        if (n.low > 1)
            assert_refused(&n, n.low - 1);
        if (n.high < most) {
            assert_refused(&n, n.high + 1);
            assert_refused(&n, most);
        }
        if (n.type == SIZE)
            assert_refused(&n, -1); /* SIZE_MAX */
        if (n.type != I64)
            continue;
        if (!n.may_be_forever)
            assert_refused(&n, -1);
        assert_refused(&n, -2);
        assert_refused(&n, INT64_MIN);
    }
}

/* Goal: PAWL_FOREVER is a value of the retentions, and of nothing else. */
static void retentions_may_be_for_ever(void **unused)
{
    (void)unused;
    unsigned keeps = 0;
    for (size_t i = 0; i < number_count(); i++) {
        number n = number_at(i);
        if (!n.may_be_forever)
            continue;
        assert_taken(&n, PAWL_FOREVER, PAWL_FOREVER);
        keeps++;
    }
    assert_int_equal(keeps, 4);
}

/* ------------------------------------------------------------------- what is no number */

static void assert_invalid(const pawl_options *given, const char *word)
{
    pawli_options taken;
    assert_status(pawli_options_init(&taken, given), PAWL_ERR_INVALID);
    assert_text_has(pawl_error_message(), word);
    assert_null(taken.store);
    assert_null(taken.name);
    assert_null(taken.queues);
}

/* Goal: a store must be named, by a path that fits. */
static void the_store_must_be_named(void **unused)
{
    (void)unused;
    static char path[PATH_MAX + 1];
    assert_invalid(PAWL_OPTIONS(.store = NULL), "store");
    assert_invalid(PAWL_OPTIONS(.store = ""), "store");
    memset(path, 'p', PATH_MAX);
    assert_invalid(PAWL_OPTIONS(.store = path), "store");
    path[PATH_MAX - 1] = '\0';
    pawli_options taken;
    assert_ok(pawli_options_init(&taken, PAWL_OPTIONS(.store = path)));
    assert_string_equal(taken.store, path);
    pawli_options_fini(&taken);
}

/* Goal: flags and modes that this version does not know are refused; every known one is kept. */
static void unknown_modes_are_refused(void **unused)
{
    (void)unused;
    pawli_options taken;
    assert_invalid(PAWL_OPTIONS(.store = "s", .flags = 1u << 3), "flags 0x8");
    assert_invalid(PAWL_OPTIONS(.store = "s", .flags = UINT32_MAX), "flags");
    assert_invalid(PAWL_OPTIONS(.store = "s", .synchronous = (pawl_synchronous)3), "synchronous");
    assert_invalid(PAWL_OPTIONS(.store = "s", .synchronous = (pawl_synchronous)-1), "synchronous");
    const uint32_t all = PAWL_OPEN_EXISTING | PAWL_OPEN_READ_ONLY | PAWL_OPEN_INLINE;
    assert_ok(pawli_options_init(&taken, PAWL_OPTIONS(.store = "s", .flags = all)));
    assert_int_equal(taken.flags, all);
    pawli_options_fini(&taken);
}

/* Goal: commits are flushed unless the option named for what it can lose is chosen. */
static void commits_are_flushed_by_default(void **unused)
{
    (void)unused;
    static const struct {
        pawl_synchronous given;
        bool flushed;
    } cases[] = { { PAWL_SYNCHRONOUS_DEFAULT, true }, { PAWL_SYNCHRONOUS_FULL, true },
                  { PAWL_SYNCHRONOUS_NORMAL, false } };
    for (size_t i = 0; i < 3; i++) {
        pawli_options taken;
        assert_ok(pawli_options_init(
            &taken, PAWL_OPTIONS(.store = "s", .synchronous = cases[i].given)));
        assert_int_equal(taken.flush_commits, cases[i].flushed);
        pawli_options_fini(&taken);
    }
}

/* Goal: a name is one; without one the pool is called HOST:PID. */
static void a_pool_has_a_name(void **unused)
{
    (void)unused;
    static const char *const bad[] = { "", "a\nb", "\xFF" };
    char too_long[PAWLI_NAME_BYTES_MAX + 2];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_invalid(PAWL_OPTIONS(.store = "s", .name = bad[i]), "name");
    memset(too_long, 'n', sizeof too_long);
    too_long[PAWLI_NAME_BYTES_MAX + 1] = '\0';
    assert_invalid(PAWL_OPTIONS(.store = "s", .name = too_long), "name");
    pawli_options taken;
    assert_ok(pawli_options_init(&taken, PAWL_OPTIONS(.store = "s", .name = too_long + 1)));
    assert_string_equal(taken.name, too_long + 1);
    pawli_options_fini(&taken);
    char pid[32];
    (void)snprintf(pid, sizeof pid, ":%ld", (long)getpid());
    assert_ok(pawli_options_init(&taken, PAWL_OPTIONS(.store = "s")));
    assert_text_has(taken.name, pid);
    pawli_options_fini(&taken);
}

/* Goal: queues and their count belong together, each is a name, and only they are served then. */
static void queues_are_a_list_of_names(void **unused)
{
    (void)unused;
    static const char *const good[] = { "mail", "reports", "mail" };
    static const char *const hole[] = { "mail", NULL };
    static const char *const bad[] = { "mail", "bad\x01" };
    static const char *const empty[] = { "" };
    assert_invalid(PAWL_OPTIONS(.store = "s", .queues = good), "queue_count");
    assert_invalid(PAWL_OPTIONS(.store = "s", .queue_count = 1), "queues");
    assert_invalid(PAWL_OPTIONS(.store = "s", .queues = good, .queue_count = SIZE_MAX), "queue_count");
    assert_invalid(PAWL_OPTIONS(.store = "s", .queues = hole, .queue_count = 2), "queues[1]");
    assert_invalid(PAWL_OPTIONS(.store = "s", .queues = bad, .queue_count = 2), "queues[1]");
    assert_invalid(PAWL_OPTIONS(.store = "s", .queues = empty, .queue_count = 1), "queues[0]");
    pawli_options taken;
    assert_ok(pawli_options_init(&taken, PAWL_OPTIONS(.store = "s", .queues = good, .queue_count = 2)));
    assert_true(pawli_options_serve(&taken, "mail"));
    assert_true(pawli_options_serve(&taken, "reports"));
    assert_false(pawli_options_serve(&taken, "mai"));
    assert_false(pawli_options_serve(&taken, "default"));
    pawli_options_fini(&taken);
    assert_ok(pawli_options_init(&taken, PAWL_OPTIONS(.store = "s")));
    assert_true(pawli_options_serve(&taken, "anything"));
    pawli_options_fini(&taken);
}

/* Goal: strings are copied, hooks are kept, a seed is kept, and without one there is one. */
static void what_was_given_is_kept(void **unused)
{
    (void)unused;
    char store[] = "a.db", name[] = "one", queue[] = "q";
    const char *queues[] = { queue };
    int log_arg, open_arg;
    pawli_options taken;
    assert_ok(pawli_options_init(
        &taken, PAWL_OPTIONS(.store = store, .name = name, .queues = queues, .queue_count = 1,
                             .log = check_quiet, .log_arg = &log_arg, .db_open_arg = &open_arg,
                             .seed = 42)));
    store[0] = name[0] = queue[0] = '!';
    assert_string_equal(taken.store, "a.db");
    assert_string_equal(taken.name, "one");
    assert_string_equal(taken.queues[0], "q");
    assert_true(taken.log == check_quiet);
    assert_ptr_equal(taken.log_arg, &log_arg);
    assert_ptr_equal(taken.db_open_arg, &open_arg);
    assert_int_equal(taken.seed, 42);
    pawli_options_fini(&taken);
    assert_ok(pawli_options_init(&taken, PAWL_OPTIONS(.store = "a.db")));
    assert_int_not_equal(taken.seed, 0);
    pawli_options_fini(&taken);
}

/* -------------------------------------------------------------------------- struct_size */

/* Goal: an older caller's shorter struct leaves what it does not know at the default. */
static void a_shorter_struct_has_defaults_behind_it(void **unused)
{
    (void)unused;
    pawl_options given = { .struct_size = offsetof(pawl_options, lease_ms),
                           .store = "jobs.db",
                           .executors = 3,
                           .lease_ms = -5,                   /* not the caller's */
                           .synchronous = (pawl_synchronous)77,
                           .name = "\xFF" };
    pawli_options taken;
    assert_ok(pawli_options_init(&taken, &given));
    assert_int_equal(taken.executors, 3);
    assert_int_equal(taken.lease_ms, 60000);
    assert_true(taken.flush_commits);
    pawli_options_fini(&taken);
    given.struct_size = sizeof(size_t); /* nothing but its size */
    assert_invalid(&given, "store");
}

/* Goal: a newer caller's longer struct is read as far as it is known. */
static void a_longer_struct_is_read_as_far_as_known(void **unused)
{
    (void)unused;
    struct {
        pawl_options known;
        unsigned char later[64];
    } given;
    memset(&given, 0xA5, sizeof given);
    given.known = (pawl_options){ .struct_size = sizeof given, .store = "jobs.db", .lease_ms = 1234 };
    pawli_options taken;
    assert_ok(pawli_options_init(&taken, &given.known));
    assert_int_equal(taken.lease_ms, 1234);
    pawli_options_fini(&taken);
}

/* Goal: a struct_size that was not set, or cannot be one, is refused. */
static void a_size_that_was_not_set_is_refused(void **unused)
{
    (void)unused;
    static const size_t sizes[] = { 0, 1, sizeof(size_t) - 1, 65537, SIZE_MAX };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const pawl_options given = { .struct_size = sizes[i], .store = "jobs.db" };
        assert_invalid(&given, "struct_size");
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(zero_is_the_default),
    cmocka_unit_test(both_ends_are_honoured),
    cmocka_unit_test(what_is_beyond_is_refused),
    cmocka_unit_test(retentions_may_be_for_ever),
    cmocka_unit_test(the_store_must_be_named),
    cmocka_unit_test(unknown_modes_are_refused),
    cmocka_unit_test(commits_are_flushed_by_default),
    cmocka_unit_test(a_pool_has_a_name),
    cmocka_unit_test(queues_are_a_list_of_names),
    cmocka_unit_test(what_was_given_is_kept),
    cmocka_unit_test(a_shorter_struct_has_defaults_behind_it),
    cmocka_unit_test(a_longer_struct_is_read_as_far_as_known),
    cmocka_unit_test(a_size_that_was_not_set_is_refused),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
