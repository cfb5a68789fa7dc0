/* presence_test.c - proof of life and the record in the side file, seen from another process.
 *
 * Goal: dead is only what is proven dead (I12), and what a dead pool's file says is told as far as it can be
 * believed (I9). The holder is a forked child with a side file and no more, killed by its pid. */
#include "presence.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "clock.h"

#define OTHER_BOOT "00000000-0000-4000-8000-000000000000"

/* What the child ran when it died. */
enum { RETURNED = 8, SPARED, ON_THREAD, DETACHED };

static void run_some(pawli_presence *p)
{
    uint32_t slot;
    pawli_presence_start(p, 0, RETURNED);
    pawli_presence_set(p, 0, 0);
    pawli_presence_spare(p, SPARED);
    pawli_presence_start(p, 0, DETACHED);
    (void)pawli_presence_hold(p, DETACHED, &slot);
    pawli_presence_set(p, 0, 0);
    pawli_presence_start(p, 1, ON_THREAD); /* an executor may come late */
}

static void be_a_holder(const temp *t, int tell)
{
    pawli_presence p;
    pawli_holder holder = { .id = 1 };
    if (pawli_presence_open(&p, t->path, 2, 2, &holder) != PAWL_OK)
        _exit(1);
    run_some(&p);
    if (write(tell, &holder, sizeof holder) != (ssize_t)sizeof holder)
        _exit(1);
    for (;;)
        (void)pause();
}

static pid_t start_holder(const temp *t, pawli_holder *holder)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0)
        be_a_holder(t, ends[1]);
    assert_true(pid > 0);
    assert_int_equal(read(ends[0], holder, sizeof *holder), sizeof *holder);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return pid;
}

static void end_holder(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static pawli_life probe(const temp *t, const pawli_holder *holder, pawli_record *record)
{
    pawli_presence self;
    pawli_record unused;
    assert_ok(pawli_presence_observe(&self, t->path));
    pawli_life life = pawli_presence_probe(&self, holder, record != NULL ? record : &unused);
    if (record == NULL)
        free(unused.fences);
    free(self.directory);
    return life;
}

static const char *side_of(const temp *t, const pawli_holder *holder)
{
    char name[128];
    (void)snprintf(name, sizeof name, "jobs.db-pawl/%s", holder->side);
    return temp_file(t, name);
}

/* ------------------------------------------------------------------------------ the record */

static void assert_ran(const pawli_record *record)
{
    static const uint64_t fences[] = { ON_THREAD, DETACHED, SPARED };
    assert_true(record->is_known);
    assert_int_equal(record->count, 2);
    assert_int_equal(record->on_threads, 1);
    assert_int_equal(record->spared_count, 1);
    assert_memory_equal(record->fences, fences, sizeof fences);
    assert_int_equal(record->last_started, DETACHED);
    assert_int_equal(record->signal, 0);
}

static void what_had_started_is_known_after_a_death(void **state)
{
    const temp *t = *state;
    pawli_holder holder;
    pawli_record record;
    end_holder(start_holder(t, &holder));
    assert_int_equal(probe(t, &holder, &record), PAWLI_DEAD);
    assert_ran(&record);
    assert_false(record.is_stale);
    free(record.fences);
}

/* After a power cut the file is what was written back at some time: it may lack what began since. */
static void the_record_of_another_boot_may_be_stale(void **state)
{
    const temp *t = *state;
    pawli_holder holder;
    pawli_record record;
    end_holder(start_holder(t, &holder));
    (void)snprintf(holder.boot, sizeof holder.boot, OTHER_BOOT);
    assert_int_equal(probe(t, &holder, &record), PAWLI_DEAD);
    assert_ran(&record);
    assert_true(record.is_stale);
    free(record.fences);
}

static void a_file_of_another_layout_is_no_record(void **state)
{
    const temp *t = *state;
    pawli_holder holder;
    pawli_record record;
    end_holder(start_holder(t, &holder));
    int file = open(side_of(t, &holder), O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(file, "PDPAWL01", 8, 0), 8);
    (void)close(file);
    assert_int_equal(probe(t, &holder, &record), PAWLI_DEAD);
    assert_false(record.is_known);
    assert_null(record.fences);
}

/* ------------------------------------------------------------------------------ what is proof */

static pawli_life probe_without_descriptors(const temp *t, const pawli_holder *holder)
{
    pawli_presence self;
    pawli_record record;
    struct rlimit before, none;
    assert_ok(pawli_presence_observe(&self, t->path)); /* it reads files itself */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    pawli_life life = pawli_presence_probe(&self, holder, &record);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    free(record.fences);
    free(self.directory);
    return life;
}

/* A container may have a boot id of its own, and live: where its file cannot be looked at it is not dead. */
static void another_boot_is_dead_only_if_it_can_be_looked_at(void **state)
{
    const temp *t = *state;
    pawli_holder holder;
    pid_t pid = start_holder(t, &holder);
    (void)snprintf(holder.boot, sizeof holder.boot, OTHER_BOOT);
    assert_int_equal(probe(t, &holder, NULL), PAWLI_ALIVE);
    assert_int_equal(probe_without_descriptors(t, &holder), PAWLI_UNPROVEN);
    end_holder(pid);
    assert_int_equal(probe_without_descriptors(t, &holder), PAWLI_UNPROVEN);
    assert_int_equal(probe(t, &holder, NULL), PAWLI_DEAD);
    assert_int_equal(unlink(side_of(t, &holder)), 0);
    assert_int_equal(probe(t, &holder, NULL), PAWLI_DEAD);
}

/* -------------------------------------------------------------------------------- the own file */

/* The watch of the side directory tells own events by it (I10). */
static void a_pool_knows_its_own_file(void **state)
{
    const temp *t = *state;
    pawli_presence p;
    pawli_holder holder = { .id = 1 };
    assert_ok(pawli_presence_open(&p, t->path, 1, 1, &holder));
    assert_string_not_equal(p.self.side, "");
    assert_string_equal(p.self.side, strrchr(p.path, '/') + 1);
    assert_string_equal(p.self.side, holder.side);
    pawli_presence_close(&p);
}

/* By another process, which alone can ask. */
static void assert_is_locked(const char *path)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        int file = open(path, O_RDONLY | O_CLOEXEC);
        _exit(fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

enum { ANSWERED_WELL, ANSWERED_BADLY, NO_NAMESPACE };

/* The first process of a pid namespace that sees the /proc of the one outside. */
static void ask_with_a_foreign_proc(const temp *t)
{
    pawli_presence self;
    int status = 0;
    if (unshare(CLONE_NEWPID) != 0)
        _exit(NO_NAMESPACE);
    pid_t pid = fork();
    if (pid == 0)
        _exit(pawli_presence_observe(&self, t->path) == PAWL_ERR_STORE
                      && strstr(pawl_error_message(), "another pid namespace") != NULL
                  ? ANSWERED_WELL
                  : ANSWERED_BADLY);
    _exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : ANSWERED_BADLY);
}

/* Its pid is somebody else's there: it would take that one's start time for its own, and be judged by it. */
static void who_sees_a_foreign_proc_is_told_so(void **state)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        ask_with_a_foreign_proc(*state);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WEXITSTATUS(status) == NO_NAMESPACE) {
        print_message("a pid namespace is not to be had here: a foreign /proc is not tested\n");
        skip();
    }
    assert_int_equal(status, ANSWERED_WELL);
}

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

static int64_t boot_ms(void)
{
    pawli_clock clock;
    pawli_clock_init(&clock, false);
    return pawli_clock_boot_ms(&clock);
}

/* In a time namespace that begins with the next child: are the clock and this process what they are outside? */
static void look_from_another_time(const pawli_holder *holder, const char *offset, int64_t outside_ms)
{
    int status = 0, file = unshare(CLONE_NEWTIME) == 0 ? open("/proc/self/timens_offsets", O_WRONLY) : -1;
    if (file < 0 || write(file, offset, strlen(offset)) != (ssize_t)strlen(offset))
        _exit(NO_NAMESPACE);
    (void)close(file);
    bool well = boot_ms() - outside_ms < 60000; /* the offset is not its own yet */
    pid_t pid = fork();
    if (pid == 0) {
        int64_t late_ms = boot_ms() - outside_ms;
        _exit(late_ms >= 0 && late_ms < 60000 && pawli_process_is(holder->pid, holder->started)
                      && !pawli_process_is(holder->pid, holder->started + 10)
                  ? ANSWERED_WELL
                  : ANSWERED_BADLY);
    }
    bool ended = waitpid(pid, &status, 0) == pid && WIFEXITED(status);
    _exit(well && ended ? WEXITSTATUS(status) : ANSWERED_BADLY);
}

/* R13: leases are on one clock for all pools of a kernel, and a start time is the same for all. */
static void a_time_namespace_changes_neither_leases_nor_starts(void **state)
{
    const temp *t = *state;
    static const char *const offsets[] = { "boottime 1000000 0\n", "boottime 1000 3000000\n",
                                           "boottime 86400 999999999\n" };
    pawli_presence self;
    assert_ok(pawli_presence_observe(&self, t->path));
    free(self.directory);
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        int status = 0;
        int64_t outside_ms = boot_ms();
        pid_t pid = fork();
        if (pid == 0)
            look_from_another_time(&self.self, offsets[i], outside_ms);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WEXITSTATUS(status) == NO_NAMESPACE) {
            print_message("a time namespace is not to be had here: its clocks are not tested\n");
            skip();
        }
        assert_int_equal(status, ANSWERED_WELL);
    }
}

/* Names without the number of the image are of older pools, and may be of this process: never opened here. */
static void what_may_be_of_this_process_is_not_opened(void **state)
{
    const temp *t = *state;
    pawli_presence p;
    pawli_holder holder = { .id = 1 };
    assert_ok(pawli_presence_open(&p, t->path, 1, 1, &holder));
    pawli_holder older = holder, replaced = holder;
    (void)snprintf(older.side, sizeof older.side, "%lld-%lld-7", (long long)holder.pid, (long long)holder.started);
    (void)snprintf(replaced.side, sizeof replaced.side, "%lld-%lld-7-1", (long long)holder.pid,
                   (long long)holder.started);
    temp_write(side_of(t, &older), "", 0);
    temp_write(side_of(t, &replaced), "", 0);
    assert_int_equal(probe(t, &holder, NULL), PAWLI_ALIVE);
    assert_int_equal(probe(t, &older, NULL), PAWLI_ALIVE);
    assert_int_equal(probe(t, &replaced, NULL), PAWLI_DEAD);
    pawli_presence_sweep(&p, NULL, 0);
    assert_int_equal(access(side_of(t, &older), F_OK), 0);
    assert_int_not_equal(access(side_of(t, &replaced), F_OK), 0);
    assert_is_locked(p.path);
    pawli_presence_close(&p);
}

/* What happens to the file that is about to be locked. */
typedef enum fate { KEPT, REMOVED, REPLACED, LOCKED } fate;

static fate next_fate;
static const temp *place;
static pid_t locker;

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the linker's names */
int __real_fcntl(int file, int command, ...);
int __wrap_fcntl(int file, int command, ...);
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

/* As a pool that sweeps, in a process of its own. */
static void lock_elsewhere(const char *path)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    int ends[2];
    char byte;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    locker = fork();
    if (locker == 0) {
        int file = open(path, O_RDWR | O_CLOEXEC);
        if (__real_fcntl(file, F_SETLK, &lock) != 0 || unlink(path) != 0 || write(ends[1], "l", 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void meet_its_fate(int file)
{
    char descriptor[64], where[600];
    fate now = next_fate;
    next_fate = KEPT;
    if (now == KEPT)
        return;
    (void)snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", file);
    ssize_t bytes = readlink(descriptor, where, sizeof where - 1);
    assert_true(bytes > 0);
    where[bytes] = '\0';
    if (now == LOCKED) {
        lock_elsewhere(where);
        return;
    }
    assert_int_equal(unlink(where), 0);
    if (now == REPLACED)
        temp_write(where, "another", 7);
    else if (rmdir(temp_file(place, "jobs.db-pawl")) != 0) /* as the last pool that leaves */
        fail();
}

int __wrap_fcntl(int file, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *argument = va_arg(args, void *);
    va_end(args);
    if (command == F_SETLK)
        meet_its_fate(file);
    return __real_fcntl(file, command, argument);
}

/* I12: a pool that starts has a file that the others find, and its lock on it. */
static void a_file_that_was_swept_is_made_again(void **state)
{
    const temp *t = place = *state;
    for (fate f = REMOVED; f <= LOCKED; f++) {
        pawli_presence p;
        pawli_holder holder = { .id = 1 };
        struct stat own, there;
        locker = 0;
        next_fate = f;
        assert_ok(pawli_presence_open(&p, t->path, 1, 1, &holder));
        assert_int_equal(next_fate, KEPT);
        assert_int_equal(fstat(p.file, &own), 0);
        assert_int_equal(stat(side_of(t, &holder), &there), 0);
        assert_int_equal(own.st_ino, there.st_ino);
        assert_int_equal(own.st_dev, there.st_dev);
        assert_is_locked(p.path);
        if (locker > 0)
            end_holder(locker);
        pawli_presence_close(&p);
        (void)unlink(side_of(t, &holder)); /* the other one, where there is one */
    }
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    in_a_directory(what_had_started_is_known_after_a_death),
    in_a_directory(the_record_of_another_boot_may_be_stale),
    in_a_directory(a_file_of_another_layout_is_no_record),
    in_a_directory(another_boot_is_dead_only_if_it_can_be_looked_at),
    in_a_directory(a_pool_knows_its_own_file),
    in_a_directory(a_file_that_was_swept_is_made_again),
    in_a_directory(who_sees_a_foreign_proc_is_told_so),
    in_a_directory(a_time_namespace_changes_neither_leases_nor_starts),
    in_a_directory(what_may_be_of_this_process_is_not_opened),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
