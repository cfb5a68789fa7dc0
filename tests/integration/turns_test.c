/* turns_test.c - several processes that all want the write lock of one file.
 *
 * Goal: R2, I23 each gets its share and nobody waits long; who dies while it waits, or while it has the lock, holds up
 * nobody; the file by which they take turns is manners only, whatever becomes of it; the log stays within its bound
 * (I22), and the last one leaves nothing behind. The processes are of support/worker.c, "press". */
#include "check.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "look.h"
#include "patience.h"
#include "slow_log.h"

#define READY_MS 20000 /* for a slow machine under a sanitizer */
#define MIB (INT64_C(1) << 20)
/* The speed of a machine that does something else beside may vary so much; who lets a dead one go first at each turn,
 * or waits for it, is slower by far more: a pause is of milliseconds, a commit without a flush of a tenth of one. */
#define SLOWER_MAX 5

static const temp *of(void **state)
{
    return *state;
}

typedef struct result {
    int64_t count, worst_us;
    int lines;
} result;

static void start_press(child *c, const temp *t, const char *ms, const char *normal, const char *wal_max)
{
    child_start(c, (const char *const[]){ "press", t->path, ms, normal, wal_max, NULL });
    assert_true(child_says(c, "ready", NULL, 0, READY_MS));
}

static result end_press(child *c)
{
    char line[128];
    result r = { 0, 0, 0 };
    assert_true(child_says(c, "pressed", line, sizeof line, READY_MS));
    assert_int_equal(sscanf(line, "pressed %" SCNd64 " %" SCNd64 " %d", &r.count, &r.worst_us, &r.lines), 3);
    return r;
}

static void stop_press(child *c)
{
    child_tell(c, "stop\n");
    int status = child_reap(c);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    child_close(c);
}

/* Slices are of 100 ms each. */
static int64_t slices(child *c, int count)
{
    char line[128];
    int64_t sum = 0, one;
    for (int i = 0; i < count; i++) {
        assert_true(child_says(c, "slice", line, sizeof line, READY_MS));
        assert_int_equal(sscanf(line, "slice %" SCNd64, &one), 1);
        sum += one;
    }
    return sum;
}

static const char *side_path(const temp *t, const char *name)
{
    static char paths[4][400];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s-pawl%s%s", t->path, name[0] != '\0' ? "/" : "", name);
    return path;
}

static void assert_nothing_is_left(const temp *t)
{
    assert_int_not_equal(access(side_path(t, ""), F_OK), 0);
}

/* ------------------------------------------------------------------------------- fair turns */

static void assert_fair(const temp *t, int count, const char *normal)
{
    child all[4];
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
        start_press(&all[i], t, "2000", normal, "0");
    for (int i = 0; i < count; i++)
        child_tell(&all[i], "go\n");
    result r[4];
    for (int i = 0; i < count; i++) {
        r[i] = end_press(&all[i]);
        sum += r[i].count;
    }
    for (int i = 0; i < count; i++) {
        print_message("%" PRId64 " of %" PRId64 ", the longest call %" PRId64 " ms\n", r[i].count, sum,
                      r[i].worst_us / 1000);
        assert_true(r[i].count * 3 * count >= sum); /* a third of its share */
        assert_in_range(r[i].worst_us, 0, 1000000);
        assert_int_equal(r[i].lines, 0);
    }
    for (int i = 0; i < count; i++)
        stop_press(&all[i]);
    assert_nothing_is_left(t);
    assert_counters_are_right(t->path);
}

static void two_have_their_shares(void **state)
{
    assert_fair(of(state), 2, "0");
}

static void two_have_their_shares_without_flushes(void **state)
{
    assert_fair(of(state), 2, "1");
}

static void four_have_their_shares(void **state)
{
    assert_fair(of(state), 4, "1");
}

static bool is_alone(void *arg)
{
    const temp *t = arg;
    return look(t->path, "SELECT count(*) FROM pawl_holder WHERE left_at IS NULL") == 1;
}

/* Goal: one who dies at any moment, waiting or having the lock, costs the other a moment; then it has all. */
static void the_dead_hold_up_nobody(void **state)
{
    const temp *t = of(state);
    uint64_t seed = test_seed();
    child first, second;
    start_press(&first, t, "60000", "1", "0");
    child_tell(&first, "go\n");
    (void)slices(&first, 3);
    int64_t alone = slices(&first, 5);
    for (int i = 0; i < 8; i++) {
        start_press(&second, t, "60000", "1", "0");
        child_tell(&second, "go\n");
        (void)slices(&second, 1);
        nap_ms((int64_t)(next_random(&seed) % 50));
        child_kill(&second);
        child_close(&second);
        (void)child_says(&first, "nothing", NULL, 0, 30); /* what it has said so far */
        (void)slices(&first, 1);
        int64_t after = slices(&first, 5);
        print_message("alone %" PRId64 ", after a death %" PRId64 "\n", alone, after);
        assert_true(after * SLOWER_MAX >= alone);
    }
    child_close(&first); /* kill -9 */
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_start(pool));
    assert_true(eventually(is_alone, *state, 5000)); /* the dead one was cleared away */
    assert_ok(pawl_close(pool));
    assert_nothing_is_left(t);
    assert_counters_are_right(t->path);
}

/* ----------------------------------------------------------------------- the file of turns */

/* Enqueues in 300 ms, by two pools of this process by turns. */
static int64_t enqueues(pawl_pool *first, pawl_pool *second)
{
    int64_t count = 0;
    for (int64_t until = steady_ms() + 300; steady_ms() < until; count++)
        (void)put(count % 2 == 0 ? first : second, .kind = "k");
    return count;
}

static void fill(const char *path, int byte)
{
    char bytes[64];
    memset(bytes, byte, sizeof bytes);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, sizeof bytes), (ssize_t)sizeof bytes);
    (void)close(file);
}

typedef enum harm { NOTHING, DELETED, A_DIRECTORY, UNREADABLE, ALL_ONES, THE_FUTURE, A_LINK, A_PIPE, LONGER } harm;

static void do_harm(const temp *t, harm what)
{
    const char *path = side_path(t, "turn"), *other = temp_file(t, "other");
    switch (what) {
    case DELETED: assert_int_equal(unlink(path), 0); break;
    case A_DIRECTORY:
        do /* a pool may be quicker to make it anew */
            assert_int_equal(unlink(path), 0);
        while (mkdir(path, 0700) != 0);
        break;
    case UNREADABLE: assert_int_equal(chmod(path, 0), 0); break;
    case ALL_ONES: fill(path, 0xFF); break;
    case THE_FUTURE: fill(path, 0x70); break; /* somebody waits for ever, it says */
    case A_LINK:
        assert_int_equal(symlink("/dev/null", other), 0);
        assert_int_equal(rename(other, path), 0);
        break;
    case A_PIPE:
        assert_int_equal(mkfifo(other, 0600), 0);
        assert_int_equal(rename(other, path), 0);
        break;
    case LONGER: assert_int_equal(truncate(path, 100000), 0); break;
    case NOTHING:
    default: break;
    }
}

static void undo_harm(const temp *t, harm what)
{
    if (what == A_DIRECTORY)
        (void)rmdir(side_path(t, "turn"));
}

/* Goal: whatever is done to it, enqueues go on at their speed, at once and after the next survey. */
static void whatever_becomes_of_the_file(void **state)
{
    const temp *t = of(state);
    static const harm all[] = { NOTHING,  DELETED,    A_DIRECTORY, UNREADABLE, ALL_ONES,
                                A_LINK, A_PIPE, LONGER };
    int64_t usual = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        pawl_pool *first = open_pool(t, .executors = 1, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
        pawl_pool *second = open_pool(t, .executors = 1, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
        assert_ok(pawl_start(first));
        assert_ok(pawl_start(second));
        int64_t before = enqueues(first, second);
        usual = before > usual ? before : usual;
        do_harm(t, all[i]);
        int64_t at_once = enqueues(first, second);
        nap_ms(1100);
        int64_t later = enqueues(first, second);
        print_message("case %zu: %" PRId64 " before, %" PRId64 " at once, %" PRId64 " later\n", i, before, at_once, later);
        assert_true(at_once * SLOWER_MAX >= usual && later * SLOWER_MAX >= usual);
        undo_harm(t, all[i]);
        assert_ok(pawl_close(first));
        assert_ok(pawl_close(second));
        assert_nothing_is_left(t);
    }
    assert_counters_are_right(t->path);
}

/* Goal: words that say that somebody waits until long from now cost a moment, not each transaction a pause: the file
 * may be from before a power cut, and the clock began anew. */
static void words_from_before_a_power_cut(void **state)
{
    const temp *t = of(state);
    pawl_pool *pool = open_pool(t, .executors = 1, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    assert_ok(pawl_start(pool));
    int64_t before = enqueues(pool, pool);
    assert_ok(pawl_stop(pool, READY_MS));
    assert_int_equal(mkdir(side_path(t, ""), 0700), 0);
    temp_write(side_path(t, "turn"), "", 0);
    do_harm(t, THE_FUTURE);
    assert_ok(pawl_start(pool));
    (void)enqueues(pool, pool);
    int64_t after = enqueues(pool, pool);
    print_message("%" PRId64 " before, %" PRId64 " with a file that says that somebody waits\n", before, after);
    assert_ok(pawl_close(pool));
    assert_true(after * SLOWER_MAX >= before);
}

/* ------------------------------------------------------------------------------ the log */

static void assert_log_is_bounded(const temp *t, int count, const char *wal_max, int64_t bytes_max)
{
    child all[4];
    char log[400];
    int64_t most = 0;
    struct stat st;
    (void)snprintf(log, sizeof log, "%s-wal", t->path);
    for (int i = 0; i < count; i++)
        start_press(&all[i], t, "5000", "1", wal_max);
    for (int i = 0; i < count; i++)
        child_tell(&all[i], "go\n");
    for (int64_t until = steady_ms() + 5000; steady_ms() < until; nap_ms(5))
        if (stat(log, &st) == 0 && st.st_size > most)
            most = st.st_size;
    print_message("%d processes: the log had up to %" PRId64 " KiB\n", count, most >> 10);
    for (int i = 0; i < count; i++)
        assert_int_equal(end_press(&all[i]).lines, 0);
    for (int i = 0; i < count; i++)
        stop_press(&all[i]);
    assert_in_range(most, 1, bytes_max);
    assert_nothing_is_left(t);
    assert_counters_are_right(t->path);
}

/* Goal: a log whose file has once been long is not checkpointed for each commit: pools without flushes do not flush. */
static void a_log_that_was_long_is_not_flushed_for_each_commit(void **state)
{
    const temp *t = of(state);
    pawl_pool *pools[2];
    for (int i = 0; i < 2; i++) {
        pools[i] = open_pool(t, .executors = 1, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
        assert_ok(pawl_start(pools[i]));
    }
    static char big[1000000];
    for (int i = 0; i < 6; i++)
        (void)put(pools[i % 2], .kind = "k", .payload = big, .payload_bytes = sizeof big);
    nap_ms(1500);
    int64_t before = slow_log_flushes();
    for (int i = 0; i < 200; i++)
        (void)put(pools[i % 2], .kind = "k");
    int64_t flushes = slow_log_flushes() - before;
    print_message("%" PRId64 " flushes for 200 commits by turns\n", flushes);
    before = slow_log_flushes();
    for (int i = 0; i < 200; i++)
        (void)put(pools[0], .kind = "k");
    print_message("%" PRId64 " for 200 by one of them\n", slow_log_flushes() - before);
    flushes += slow_log_flushes() - before;
    assert_ok(pawl_close(pools[0]));
    assert_ok(pawl_close(pools[1]));
    assert_in_range(flushes, 0, 20);
}

static void the_log_of_two_is_bounded(void **state)
{
    assert_log_is_bounded(of(state), 2, "2097152", 2 * MIB * 5 / 4);
}

static void a_small_log_of_four_is_bounded(void **state)
{
    assert_log_is_bounded(of(state), 4, "1048576", MIB * 5 / 4);
}

static void the_log_of_four_is_bounded(void **state)
{
    assert_log_is_bounded(of(state), 4, "0", 16 * MIB * 5 / 4);
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    in_a_directory(two_have_their_shares),
    in_a_directory(two_have_their_shares_without_flushes),
    in_a_directory(four_have_their_shares),
    in_a_directory(the_dead_hold_up_nobody),
    in_a_directory(whatever_becomes_of_the_file),
    in_a_directory(words_from_before_a_power_cut),
    in_a_directory(a_log_that_was_long_is_not_flushed_for_each_commit),
    in_a_directory(the_log_of_two_is_bounded),
    in_a_directory(a_small_log_of_four_is_bounded),
    in_a_directory(the_log_of_four_is_bounded),
};

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    slow_log_watch();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
