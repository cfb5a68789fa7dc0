/* guest_host_test.c - what a host may have set for its whole process, and what we must not: its locale, its
 * umask, its standard output, its signal masks, its other pools; and that the shared library can be unloaded. */
#include "check.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate.h"
#include "look.h"
#include "patience.h"

#define LONG_MS 20000 /* the test has failed */

static int succeed(pawl_job *job, void *arg)
{
    (void)job;
    gate_add(arg, 1);
    return PAWL_SUCCEEDED;
}

/* ------------------------------------------------------------------------------- the locale */

/* Compiles a locale into the test's directory; false: the machine has no sources of locales. */
static bool make_locale(const temp *t, const char *name)
{
    char command[600];
    (void)snprintf(command, sizeof command, "localedef -i %s -f UTF-8 '%s/%s.UTF-8' >/dev/null 2>&1", name,
                   t->directory, name);
    return system(command) == 0; /* NOLINT(cert-env33-c): a command of the test's own */
}

static void check_texts(pawl_log_level level, const char *line, void *arg)
{
    (void)level;
    if (strstr(line, "1,5") != NULL || strstr(line, "1.000") != NULL)
        ++*(int *)arg;
}

static int give_a_number(pawl_job *job, void *arg)
{
    gate_add(arg, 1);
    pawl_job_error(job, "limit %d", 1234567);
    return PAWL_FAILED;
}

static void work_in_a_locale(temp *t, const char *pawl, const char *locale)
{
    int foreign = 0;
    char command[700], text[64], out[128] = "";
    gate done = GATE_INIT;
    pawl_pool *pool = check_open(PAWL_OPTIONS(.store = t->path, .executors = 1, .log = check_texts,
                                              .log_arg = &foreign));
    assert_ok(pawl_register(pool, "INFO", give_a_number, &done, NULL));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = "INFO", .priority = 1234567);
    assert_true(gate_await(&done, 1));
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    assert_last_error(pool, id, "limit 1234567");
    assert_ok(pawl_close(pool));
    look_text(t->path, text, sizeof text, "SELECT created_at || priority FROM pawl_jobs WHERE id = %d", (int)id);
    assert_int_equal(strlen(text), strlen("2024-01-01 00:00:00.0001234567"));
    assert_int_equal(text[19], '.');
    assert_int_equal(foreign, 0);
    (void)snprintf(command, sizeof command,
                   "LC_ALL=%s '%s' enqueue '%s' --kind info --delay 1.5h x >/dev/null 2>&1;"
                   " LC_ALL=%s '%s' stats '%s' --json", locale, pawl, t->path, locale, pawl, t->path);
    FILE *json = popen(command, "re"); /* NOLINT(cert-env33-c) */
    assert_non_null(json);
    size_t got = fread(out, 1, sizeof out - 1, json);
    out[got] = '\0';
    while (fread(text, 1, sizeof text, json) > 0) {
    }
    assert_int_equal(pclose(json), 0);
    assert_true(out[0] == '{' || out[0] == '[');
}

/* Goal: a host's locale with a decimal comma and a grouping point, or with Turkish letters, changes no number, no
 * time and no name that we store, log or print (V1). */
static void the_hosts_locale_changes_nothing(void **state)
{
    static const char *const names[] = { "de_DE", "tr_TR" };
    temp *t = *state;
    int made = 0;
    assert_int_equal(setenv("LOCPATH", t->directory, 1), 0);
    for (int i = 0; i < 2; i++) {
        char locale[32];
        (void)snprintf(locale, sizeof locale, "%s.UTF-8", names[i]);
        if (!make_locale(t, names[i]))
            continue;
        made++;
        assert_non_null(setlocale(LC_ALL, locale));
        assert_string_equal(localeconv()->decimal_point, ",");
        work_in_a_locale(t, PAWL_COMMAND, locale);
        assert_string_equal(localeconv()->decimal_point, ","); /* and it is still the host's */
    }
    (void)setlocale(LC_ALL, "C");
    (void)unsetenv("LOCPATH");
    if (made == 0)
        skip();
}

/* -------------------------------------------------------------------- the umask, the output */

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static mode_t mode_of_side_file(const temp *t)
{
    char path[600] = "";
    DIR *d = opendir(temp_file(t, "jobs.db-pawl"));
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d)) != NULL;)
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
            (void)snprintf(path, sizeof path, "%s/jobs.db-pawl/%.200s", t->directory, entry->d_name);
    (void)closedir(d);
    return mode_of(path);
}

/* Goal: whatever the host's umask lets through, what we create is for its user alone (V3). */
static void files_are_private_under_any_umask(void **state)
{
    static const mode_t masks[] = { 0, 0022, 0077 };
    temp *t = *state;
    for (int i = 0; i < 3; i++) {
        mode_t before = umask(masks[i]);
        pawl_pool *pool = open_pool(t, .executors = 1);
        assert_ok(pawl_start(pool));
        (void)put(pool, .kind = "k");
        static const char *const names[] = { "jobs.db", "jobs.db-wal", "jobs.db-shm" };
        for (int n = 0; n < 3; n++)
            assert_int_equal(mode_of(temp_file(t, names[n])), 0600);
        assert_int_equal(mode_of(temp_file(t, "jobs.db-pawl")), 0700);
        assert_int_equal(mode_of_side_file(t), 0600);
        assert_ok(pawl_close(pool));
        assert_int_equal(umask(before), masks[i]); /* and it is still the host's */
        assert_int_equal(unlink(t->path), 0);
    }
}

static int fail_loudly(pawl_job *job, void *arg)
{
    pawl_job_error(job, "it is \x1b[31mbroken\n");
    gate_add(arg, 1);
    return PAWL_FAILED;
}

static int be_quiet(temp *t)
{
    gate done = GATE_INIT;
    pawl_pool *pool;
    bool ok = pawl_open(PAWL_OPTIONS(.store = t->path, .executors = 1), &pool) == PAWL_OK
              && pawl_register(pool, "k", fail_loudly, &done, NULL) == PAWL_OK && pawl_start(pool) == PAWL_OK
              && pawl_enqueue(pool, PAWL_JOB(.kind = "k"), NULL) == PAWL_OK && gate_await(&done, 1)
              && pawl_wait_idle(pool, LONG_MS) == PAWL_OK && pawl_stop(pool, 0) == PAWL_OK && unlink(t->path) == 0
              && pawl_enqueue(pool, PAWL_JOB(.kind = "k"), NULL) < 0 && pawl_close(pool) == PAWL_OK;
    return ok ? 0 : 1;
}

/* Goal: no byte goes to the host's standard output, not even when things go wrong. */
static void nothing_is_written_to_standard_output(void **state)
{
    temp *t = *state;
    int status = -1;
    const char *path = temp_file(t, "output");
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(30);
        int out = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
        if (dup2(out, STDOUT_FILENO) < 0 || dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO) < 0)
            _exit(2);
        int answer = be_quiet(t);
        (void)fflush(stdout);
        _exit(answer);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 0);
}

/* ------------------------------------------------------------------------------- the signals */

static const int of_faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };

static bool is_of_faults(int signal_number)
{
    for (size_t i = 0; i < sizeof of_faults / sizeof of_faults[0]; i++)
        if (of_faults[i] == signal_number)
            return true;
    return false;
}

/* From /proc/self/task/ID/status; false: it has ended. */
static bool read_task(const char *id, char name[64], uint64_t *blocked)
{
    char path[300], line[256];
    int found = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", id);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        found += sscanf(line, "Name: %63s", name) == 1;
        if (strncmp(line, "SigBlk:", 7) == 0) {
            *blocked = strtoull(line + 7, NULL, 16);
            found++;
        }
    }
    if (file != NULL)
        (void)fclose(file);
    return found == 2;
}

static void assert_mask_is_a_guests(const char *name, uint64_t blocked)
{
    for (int n = 1; n <= SIGRTMAX; n++) {
        if (n == SIGKILL || n == SIGSTOP || (n > SIGSYS && n < SIGRTMIN))
            continue; /* nobody can block them; and glibc's own */
        bool is_blocked = (blocked >> (n - 1) & 1) != 0;
        if (is_blocked == is_of_faults(n))
            print_error("%s: signal %d is %s\n", name, n, is_blocked ? "blocked" : "open");
        assert_true(is_blocked != is_of_faults(n));
    }
}

/* How many threads of pawl's there are. */
static int check_masks(void)
{
    char name[64];
    int threads = 0;
    DIR *d = opendir("/proc/self/task");
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        uint64_t blocked = 0;
        if (entry->d_name[0] == '.' || !read_task(entry->d_name, name, &blocked)
            || strncmp(name, "pawl-", 5) != 0)
            continue;
        assert_mask_is_a_guests(name, blocked);
        threads++;
    }
    (void)closedir(d);
    return threads;
}

/* A thread has its name as soon as it runs. */
static bool all_are_named(void *arg)
{
    return check_masks() >= *(const int *)arg;
}

static void look_at_masks(const temp *t, const sigset_t *of_starter)
{
    sigset_t before, after;
    int expected = 4; /* two executors, the writer, the loop */
    pawl_pool *pool = open_pool(t, .executors = 2);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, of_starter, &before), 0);
    pawl_status st = pawl_start(pool);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, &after), 0);
    assert_ok(st);
    for (int n = 1; n <= SIGRTMAX; n++) /* and the starter's is its own */
        if (n != SIGKILL && n != SIGSTOP)
            assert_int_equal(sigismember(&after, n), sigismember(of_starter, n));
    assert_true(eventually(all_are_named, &expected, LONG_MS));
    assert_ok(pawl_close(pool));
}

/* Goal: whatever the thread that starts the pool has blocked, in our threads the host's signals are blocked, and those
 * of a fault open, for its crash handler (G1). */
static void the_starters_mask_changes_nothing(void **state)
{
    sigset_t mask;
    (void)sigemptyset(&mask);
    look_at_masks(*state, &mask);
    (void)sigfillset(&mask);
    look_at_masks(*state, &mask);
}

/* ------------------------------------------------------------------------------ many pools */

enum { POOLS = 6, EACH = 60 };

/* Goal: six pools in one process, three on one file and three on others, run each job exactly once; they end in any
 * order without harm to the others' locks. */
static void many_pools_in_one_process(void **state)
{
    temp *t = *state;
    gate done = GATE_INIT;
    pawl_pool *pools[POOLS];
    for (int i = 0; i < POOLS; i++) {
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%d.db", t->directory, i < 3 ? 0 : i);
        pools[i] = check_open(PAWL_OPTIONS(.store = path, .executors = 2, .log = check_quiet));
        assert_ok(pawl_register(pools[i], "k", succeed, &done, NULL));
        assert_ok(pawl_start(pools[i]));
    }
    static const int order[POOLS] = { 1, 3, 0, 5, 4, 2 };
    for (int n = 0; n < POOLS; n++) {
        for (int i = n; i < POOLS; i++)
            for (int k = 0; k < EACH / POOLS; k++)
                (void)put(pools[order[i]], .kind = "k");
        for (int i = n; i < POOLS; i++)
            assert_ok(pawl_wait_idle(pools[order[i]], LONG_MS));
        assert_ok(pawl_close(pools[order[n]]));
    }
    int expected = POOLS * (POOLS + 1) / 2 * (EACH / POOLS);
    assert_true(gate_await(&done, expected));
    assert_int_equal(gate_count(&done), expected);
    for (int i = 2; i < POOLS; i++) {
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%d.db", t->directory, i == 2 ? 0 : i);
        assert_int_equal(look(path, "SELECT count(*) FROM pawl_jobs WHERE status <> 'succeeded' OR attempts <> 1"), 0);
        assert_counters_are_right(path);
    }
}

/* ------------------------------------------------------------------------------- unloading */

static int entries(const char *directory)
{
    int found = 0;
    DIR *d = opendir(directory);
    assert_non_null(d);
    while (readdir(d) != NULL)
        found++;
    (void)closedir(d);
    return found;
}

static bool is_mapped(const char *name)
{
    char line[1024];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL)
        found = found || strstr(line, name) != NULL;
    (void)fclose(maps);
    return found;
}

typedef struct library {
    void *handle;
    pawl_status (*open)(const pawl_options *, pawl_pool **);
    pawl_status (*add)(pawl_pool *, const char *, pawl_handler_fn, void *, const pawl_handler_options *);
    pawl_status (*start)(pawl_pool *);
    pawl_status (*enqueue)(pawl_pool *, const pawl_job_spec *, int64_t *);
    pawl_status (*close)(pawl_pool *);
} library;

/* A function's address comes as an object's. */
static void find(const library *l, const char *name, void *out)
{
    void *symbol = dlsym(l->handle, name);
    assert_non_null(symbol);
    memcpy(out, &symbol, sizeof symbol);
}

static library load(void)
{
    library l = { .handle = dlopen(PAWL_LIBRARY, RTLD_NOW | RTLD_LOCAL) };
    if (l.handle == NULL)
        print_error("%s\n", dlerror());
    assert_non_null(l.handle);
    find(&l, "pawl_open", &l.open);
    find(&l, "pawl_register", &l.add);
    find(&l, "pawl_start", &l.start);
    find(&l, "pawl_enqueue", &l.enqueue);
    find(&l, "pawl_close", &l.close);
    return l;
}

/* Goal: the shared library may be loaded and unloaded again and again: no thread, no descriptor and nothing of
 * itself stays. */
static void the_library_can_be_unloaded(void **state)
{
    temp *t = *state;
    int threads = 0, descriptors = 0;
    for (int round = 0; round < 8; round++) {
        gate done = GATE_INIT;
        pawl_pool *pool;
        library l = load();
        assert_int_equal(l.open(PAWL_OPTIONS(.store = t->path, .executors = 2, .log = check_quiet), &pool), PAWL_OK);
        assert_int_equal(l.add(pool, "k", succeed, &done, NULL), PAWL_OK);
        assert_int_equal(l.start(pool), PAWL_OK);
        assert_int_equal(l.enqueue(pool, PAWL_JOB(.kind = "k"), NULL), PAWL_OK);
        assert_true(gate_await(&done, 1));
        assert_int_equal(l.close(pool), PAWL_OK);
        assert_int_equal(dlclose(l.handle), 0);
        assert_false(is_mapped("libpawl.so"));
        if (round == 0) {
            threads = entries("/proc/self/task");
            descriptors = entries("/proc/self/fd");
        }
        assert_int_equal(entries("/proc/self/task"), threads);
        assert_int_equal(entries("/proc/self/fd"), descriptors);
    }
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"), 8);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    TEST(the_hosts_locale_changes_nothing),
    TEST(files_are_private_under_any_umask),
    TEST(nothing_is_written_to_standard_output),
    TEST(the_starters_mask_changes_nothing),
    TEST(many_pools_in_one_process),
    TEST(the_library_can_be_unloaded),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
