/* guest_descriptors_test.c - a host that is careless, or stingy, with descriptors: 0 to 2 closed, every one
 * closed at once, one closed and its number used again, next to none allowed (R8, I21).
 *
 * Each case runs in a child, whose descriptors are its own to spoil; what it has seen comes back as its exit
 * status. */
#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate.h"
#include "look.h"
#include "patience.h"

#define LONG_MS 20000 /* the test has failed */

typedef int (*child_fn)(temp *t, int argument);

/* Its wait status; a child that hangs is ended by its alarm. */
static int in_child(child_fn fn, temp *t, int argument)
{
    int status = -1;
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(30);
        _exit(fn(t, argument));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void assert_exit(int status, int code)
{
    if (WIFSIGNALED(status))
        print_error("the child was ended by signal %d\n", WTERMSIG(status));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code); /* the line of the child that was not satisfied */
}

/* In a child: answers its own line where something does not hold. */
#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return __LINE__ % 251 + 1;                                                             \
    } while (0)

static int succeed(pawl_job *job, void *arg)
{
    (void)job;
    gate_add(arg, 1);
    return PAWL_SUCCEEDED;
}

/* Where a descriptor leads; "" if it is closed. */
static const char *target_of(int descriptor, char out[512])
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(path, out, 511);
    out[length > 0 ? length : 0] = '\0';
    return out;
}

/* The descriptor that leads to a path with this in it; -1: none. */
static int descriptor_of(const char *part)
{
    char target[512];
    for (int d = 0; d < 256; d++)
        if (strstr(target_of(d, target), part) != NULL)
            return d;
    return -1;
}

/* ------------------------------------------------------------------------- 0, 1 and 2 */

static bool standard_ones_are_not_ours(void)
{
    char target[512];
    for (int d = 0; d <= 2; d++) {
        (void)target_of(d, target);
        if (strstr(target, "jobs.db") != NULL || strncmp(target, "anon_inode", 10) == 0
            || strncmp(target, "pipe", 4) == 0 || strncmp(target, "socket", 6) == 0)
            return false;
    }
    return true;
}

static int live_without_standard_descriptors(temp *t, int before_start)
{
    pawl_pool *pool;
    gate done = GATE_INIT;
    if (!before_start)
        for (int d = 0; d <= 2; d++)
            (void)close(d);
    NEED(pawl_open(PAWL_OPTIONS(.store = t->path, .executors = 1), &pool) == PAWL_OK); /* logs to standard error */
    NEED(before_start || standard_ones_are_not_ours()); /* the host's own may be pipes */
    if (before_start)
        for (int d = 0; d <= 2; d++)
            (void)close(d);
    NEED(pawl_register(pool, "k", succeed, &done, NULL) == PAWL_OK);
    NEED(pawl_start(pool) == PAWL_OK);
    NEED(standard_ones_are_not_ours());
    pawl_stats_info stats = PAWL_STATS_INIT;
    NEED(pawl_stats(pool, &stats) == PAWL_OK);
    pawl_stats_info_clear(&stats);
    NEED(standard_ones_are_not_ours());
    static const char text[] = "what a careless host writes to its standard output";
    for (int d = 0; d <= 2; d++)
        (void)!write(d, text, sizeof text);
    NEED(pawl_enqueue(pool, PAWL_JOB(.kind = "k"), NULL) == PAWL_OK);
    NEED(gate_await(&done, 1));
    NEED(pawl_wait_idle(pool, LONG_MS) == PAWL_OK);
    NEED(pawl_close(pool) == PAWL_OK);
    return 0;
}

/* Goal: where 0, 1 and 2 arrive closed, neither the database, nor its companions, nor the side file, nor
 * anything of the loop's gets their numbers: a host that then writes to its standard output writes into none of
 * them. */
static void closed_standard_descriptors_are_not_taken(void **state)
{
    temp *t = *state;
    for (int before_start = 0; before_start <= 1; before_start++) {
        assert_exit(in_child(live_without_standard_descriptors, t, before_start), 0);
        assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"),
                         before_start + 1);
        assert_int_equal(look(t->path, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    }
}

/* Comes when it is let, and stays until it is killed. */
static pid_t fork_a_peer(const temp *t, int barrier)
{
    pid_t peer = fork();
    if (peer != 0)
        return peer;
    char go;
    pawl_pool *pool;
    (void)alarm(30);
    if (read(barrier, &go, 1) != 1
        || pawl_open(PAWL_OPTIONS(.store = t->path, .executors = 1, .log = check_quiet), &pool) != PAWL_OK
        || pawl_start(pool) != PAWL_OK)
        _exit(1);
    for (;;)
        (void)pause();
}

static bool is_watching(void *unused)
{
    (void)unused;
    return descriptor_of("[pidfd]") >= 0;
}

static int watch_without_standard_descriptors(temp *t, int unused)
{
    int barrier[2], status;
    pawl_pool *pool;
    (void)unused;
    NEED(pipe(barrier) == 0);
    pid_t peer = fork_a_peer(t, barrier[0]);
    NEED(peer > 0);
    NEED(pawl_open(PAWL_OPTIONS(.store = t->path, .executors = 1, .log = check_quiet), &pool) == PAWL_OK);
    NEED(pawl_start(pool) == PAWL_OK);
    for (int d = 0; d <= 2; d++)
        (void)close(d);
    NEED(write(barrier[1], "x", 1) == 1);
    NEED(eventually(is_watching, NULL, LONG_MS));
    NEED(standard_ones_are_not_ours());
    int watch = descriptor_of("[pidfd]"), own = open("/dev/null", O_RDONLY | O_CLOEXEC);
    NEED(own >= 0 && dup2(own, watch) == watch); /* a host that is careless with that number as well */
    NEED(kill(peer, SIGKILL) == 0 && waitpid(peer, &status, 0) == peer);
    NEED(pawl_close(pool) == PAWL_OK);
    NEED(fcntl(watch, F_GETFD) != -1); /* it is the host's now */
    return 0;
}

/* Goal: the descriptor by which another process is watched has no number of the host's, and one that the host has put
 * in its place is not closed. */
static void a_watch_of_a_peer_takes_no_descriptor_of_the_hosts(void **state)
{
    assert_exit(in_child(watch_without_standard_descriptors, *state, 0), 0);
}

/* ------------------------------------------------------------------- all of them at once */

static int record_of_answers; /* the child's file of what was acknowledged */

static int keep_enqueuing_without_descriptors(temp *t, int unused)
{
    pawl_pool *pool;
    (void)unused;
    int64_t id;
    NEED(pawl_open(PAWL_OPTIONS(.store = t->path, .executors = 1, .log = check_quiet, .store_timeout_ms = 1000),
                   &pool) == PAWL_OK);
    NEED(pawl_start(pool) == PAWL_OK);
    for (int i = 0; i < 20; i++) {
        NEED(pawl_enqueue(pool, PAWL_JOB(.kind = "k"), &id) == PAWL_OK);
        NEED(write(record_of_answers, "+", 1) == 1);
    }
    NEED(record_of_answers == 3); /* which the host keeps */
    closefrom(4);
    for (int i = 0; i < 5; i++)
        if (pawl_enqueue(pool, PAWL_JOB(.kind = "k"), &id) == PAWL_OK)
            NEED(write(record_of_answers, "+", 1) == 1);
    (void)pawl_close(pool);
    return 0;
}

/* Goal: a host that closes every descriptor under a running pool loses nothing that was acknowledged. libuv
 * aborts where its own descriptors are gone, so the process may end; the file must not suffer. */
static void a_host_that_closes_everything_loses_nothing_acknowledged(void **state)
{
    temp *t = *state;
    const char *path = temp_file(t, "record");
    int spare = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    assert_true(spare >= 0);
    record_of_answers = 3;
    int saved = spare == 3 ? -1 : dup(3);
    assert_int_equal(dup2(spare, 3), 3);
    int status = in_child(keep_enqueuing_without_descriptors, t, 0);
    struct stat st;
    assert_int_equal(fstat(3, &st), 0);
    if (spare != 3)
        (void)close(spare);
    if (saved >= 0)
        (void)dup2(saved, 3);
    (void)close(saved >= 0 ? saved : 3);
    assert_true((WIFEXITED(status) && WEXITSTATUS(status) == 0) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
    assert_true(st.st_size >= 20);
    assert_true(look(t->path, "SELECT count(*) FROM pawl_jobs") >= st.st_size);
    assert_int_equal(look(t->path, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    assert_counters_are_right(t->path);
}

/* --------------------------------------------------- one that is closed and used again */

static int lose_the_side_file(temp *t, int unused)
{
    pawl_pool *pool;
    struct stat before, after;
    (void)unused;
    NEED(pawl_open(PAWL_OPTIONS(.store = t->path, .executors = 1, .log = check_quiet), &pool) == PAWL_OK);
    NEED(pawl_start(pool) == PAWL_OK);
    int side = descriptor_of("jobs.db-pawl/");
    NEED(side >= 0);
    NEED(close(side) == 0);
    int own = open(temp_file(t, "hosts"), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    NEED(own == side || dup2(own, side) == side);
    NEED(fstat(side, &before) == 0);
    NEED(pawl_stop(pool, LONG_MS) == PAWL_OK);
    NEED(fstat(side, &after) == 0 && after.st_ino == before.st_ino); /* the host's file is still open */
    NEED(write(side, "x", 1) == 1);
    NEED(pawl_close(pool) == PAWL_OK);
    NEED(fstat(side, &after) == 0 && after.st_ino == before.st_ino);
    return 0;
}

/* Goal: where the host closed the side file's descriptor and opened a file of its own under the same number, the
 * pool's stop does not close that one. */
static void a_number_that_the_host_uses_again_is_the_hosts(void **state)
{
    assert_exit(in_child(lose_the_side_file, *state, 0), 0);
}

/* ----------------------------------------------------------------------- next to none */

static bool limit_descriptors(rlim_t most)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return false;
    limit.rlim_cur = most;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static int count_open(void)
{
    char target[512];
    int found = 0;
    for (int d = 0; d < 256; d++)
        found += target_of(d, target)[0] != '\0';
    return found;
}

enum { REFUSED_AT_OPEN = 61, REFUSED_AT_START = 62 };

/* With so few descriptors a pool is refused cleanly or works; with enough, later, it works. */
static int live_with_few(temp *t, int most)
{
    pawl_pool *pool;
    gate done = GATE_INIT;
    int before = count_open(), answer = 0;
    NEED(limit_descriptors((rlim_t)most));
    pawl_status st = pawl_open(PAWL_OPTIONS(.store = t->path, .executors = 2, .log = check_quiet), &pool);
    if (st != PAWL_OK) {
        NEED(st == PAWL_ERR_STORE || st == PAWL_ERR_NOMEM);
        NEED(pawl_error_message()[0] != '\0');
        NEED(limit_descriptors(256) && count_open() == before);
        return REFUSED_AT_OPEN;
    }
    NEED(pawl_register(pool, "k", succeed, &done, NULL) == PAWL_OK);
    st = pawl_start(pool);
    if (st != PAWL_OK) {
        NEED(st == PAWL_ERR_STORE || st == PAWL_ERR_NOMEM);
        NEED(limit_descriptors(256));
        NEED(pawl_start(pool) == PAWL_OK);
        answer = REFUSED_AT_START;
    }
    NEED(pawl_enqueue(pool, PAWL_JOB(.kind = "k"), NULL) == PAWL_OK);
    NEED(gate_await(&done, 1));
    NEED(pawl_close(pool) == PAWL_OK);
    return answer;
}

/* Goal: whatever the limit of descriptors, each open and each start works or is refused with a status, none
 * crashes or hangs, and what was refused works once there are enough. */
static void any_limit_of_descriptors_is_survived(void **state)
{
    temp *t = *state;
    int refused_at_open = 0, refused_at_start = 0, worked = 0;
    for (int most = 5; most <= 48; most++) {
        int status = in_child(live_with_few, t, most);
        if (!WIFEXITED(status)
            || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != REFUSED_AT_OPEN
                && WEXITSTATUS(status) != REFUSED_AT_START))
            print_error("with %d descriptors\n", most);
        assert_true(WIFEXITED(status));
        switch (WEXITSTATUS(status)) {
        case REFUSED_AT_OPEN: refused_at_open++; break;
        case REFUSED_AT_START: refused_at_start++; break;
        default: assert_exit(status, 0); worked++;
        }
    }
    print_message("refused at open: %d, at start: %d; worked: %d\n", refused_at_open, refused_at_start, worked);
    assert_true(refused_at_open > 0 && refused_at_start > 0 && worked > 0);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"),
                     refused_at_start + worked);
    assert_counters_are_right(t->path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    TEST(closed_standard_descriptors_are_not_taken),
    TEST(a_watch_of_a_peer_takes_no_descriptor_of_the_hosts),
    TEST(a_host_that_closes_everything_loses_nothing_acknowledged),
    TEST(a_number_that_the_host_uses_again_is_the_hosts),
    TEST(any_limit_of_descriptors_is_survived),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
