/* full_disk_test.c - the disk runs full while several processes enqueue and work, twice.
 *
 * Goal: calls answer FULL (or UNKNOWN, where nobody can know), what was acknowledged is stored and runs, what
 * was refused is not there (I1, I3), and when there is room again all of them go on by themselves. The disk
 * is a small file system of the test's own, in a mount namespace that ends with it; without the right to
 * mount one the test is skipped. The history stands on another disk (support/history_judge.h). */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "history_judge.h"
#include "look.h"
#include "patience.h"

#define WORKERS 2
#define PRODUCERS 3
#define MEMBERS (WORKERS + PRODUCERS)
#define LEASE_MS 60000
#define LIMIT_MS 60000
#define ROUNDS 2

static bool mount_small(const char *directory)
{
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
        && mount("none", directory, "tmpfs", 0, "size=48m") == 0)
        return true;
    print_message("a small file system cannot be mounted here: %s\n", strerror(errno));
    return false;
}

static void fill_the_disk(const char *ballast)
{
    static char bytes[1 << 16];
    size_t count = sizeof bytes;
    int file = open(ballast, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    while (count > 0)
        if (write(file, bytes, count) <= 0)
            count /= 2;
    (void)close(file);
}

typedef struct disk {
    const char *log;
    const char *path;
    const char *beginning;
    int64_t at_least;
} disk;

static bool are_so_many(void *arg)
{
    const disk *d = arg;
    return history_count(d->log, d->beginning) >= d->at_least;
}

static void await_more(disk *d, const char *beginning, int64_t more)
{
    d->beginning = beginning;
    d->at_least = history_count(d->log, beginning) + more;
    if (!eventually(are_so_many, d, LIMIT_MS))
        fail_msg("no %" PRId64 " lines more that begin with \"%s\"", more, beginning);
}

static bool is_drained(void *arg)
{
    return sql_ask(arg, "SELECT sum(ready + later + running) FROM pawl_lane") == 0;
}

static void start_all(child *members, const char *path, const char *log)
{
    char run[16];
    for (int i = 0; i < MEMBERS; i++) {
        (void)snprintf(run, sizeof run, "p%d", i);
        if (i < WORKERS)
            child_join(&members[i], (const char *const[]){ "storm", path, log, "60000", "8", NULL });
        else
            child_join(&members[i], (const char *const[]){ "ask", path, log, run, "80", "6000", NULL });
        assert_true(child_says(&members[i], "ready", NULL, 0, LIMIT_MS));
    }
}

static void stop_one(child *member)
{
    child_tell(member, "stop\n");
    int status = child_reap(member);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    child_close(member);
}

static void nothing_is_lost_and_all_go_on(void **state)
{
    const temp *t = *state;
    char directory[400], path[400], log[400], ballast[400];
    child members[MEMBERS];
    (void)snprintf(directory, sizeof directory, "%s", temp_file(t, "small"));
    (void)snprintf(path, sizeof path, "%s", temp_file(t, "small/jobs.db"));
    (void)snprintf(ballast, sizeof ballast, "%s", temp_file(t, "small/ballast"));
    (void)snprintf(log, sizeof log, "%s", temp_file(t, "history"));
    assert_int_equal(mkdir(directory, 0700), 0);
    if (!mount_small(directory))
        skip();
    disk d = { .log = log, .path = path };
    start_all(members, path, log);
    for (int i = 0; i < ROUNDS; i++) {
        await_more(&d, "answer PAWL_OK", 300);
        fill_the_disk(ballast);
        await_more(&d, "answer PAWL_ERR_FULL", 50);
        nap_ms(300); /* handlers end meanwhile, and their outcomes find no room */
        assert_int_equal(unlink(ballast), 0);
        await_more(&d, "answer PAWL_OK", 300);
        await_more(&d, "start", 300);
    }
    for (int i = WORKERS; i < MEMBERS; i++)
        stop_one(&members[i]);
    assert_true(eventually(is_drained, path, LIMIT_MS));
    for (int i = 0; i < WORKERS; i++)
        stop_one(&members[i]);
    history_judge(path, log, LEASE_MS);
    (void)umount2(directory, MNT_DETACH);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(nothing_is_lost_and_all_go_on, temp_setup, temp_teardown),
};

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
