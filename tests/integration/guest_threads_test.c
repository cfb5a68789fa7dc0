/* guest_threads_test.c - the pool's threads in a process that is hard on them: creation that fails, signals
 * without end, small stacks, and stops from everywhere at once (G1, G2).
 *
 * Linked with --wrap=pthread_create, so that the Nth creation can fail: a limit of processes does not bind
 * root. */
#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gate.h"
#include "look.h"
#include "patience.h"

#define LONG_MS 20000 /* the test has failed */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1 /* its frames are larger, and it has threads and handlers of its own */
#else
#define IS_SANITIZED 0
#endif

/* ------------------------------------------------------------------------------- creation */

static _Atomic int creations_left = -1; /* before one fails, and all after it; negative: none fails */

/* The linker's names. NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg);
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg)
{
    int left = atomic_load(&creations_left);
    if (left == 0)
        return EAGAIN;
    if (left > 0)
        atomic_store(&creations_left, left - 1);
    return __real_pthread_create(thread, attr, main, arg);
}

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

static int succeed(pawl_job *job, void *arg)
{
    (void)job;
    gate_add(arg, 1);
    return PAWL_SUCCEEDED;
}

enum { EXECUTORS = 3, THREADS = EXECUTORS + 2 /* the writer, the loop */ };

static void assert_nothing_is_left(const temp *t, int threads, int descriptors)
{
    assert_int_equal(entries("/proc/self/task"), threads);
    assert_int_equal(entries("/proc/self/fd"), descriptors);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_holder WHERE left_at IS NULL"), 0);
    char *listing = temp_listing(t);
    assert_null(strstr(listing, "jobs.db-pawl"));
    free(listing);
}

/* Goal: whichever thread cannot be created, the start answers with an error that says so, nothing of it is left,
 * calls still work, and a later start does (I21). */
static void a_start_without_threads_is_refused(void **state)
{
    temp *t = *state;
    gate done = GATE_INIT;
    pawl_pool *pool = open_pool(t, .executors = EXECUTORS);
    assert_ok(pawl_register(pool, "k", succeed, &done, NULL));
    assert_ok(pawl_start(pool)); /* once: what libuv keeps for the process is there */
    assert_ok(pawl_stop(pool, LONG_MS));
    (void)look(t->path, "SELECT 1"); /* SQLite keeps its descriptor while the pool's connection has locks */
    int threads = entries("/proc/self/task"), descriptors = entries("/proc/self/fd");
    for (int fails = 0; fails < THREADS; fails++) {
        atomic_store(&creations_left, fails);
        pawl_status st = pawl_start(pool);
        atomic_store(&creations_left, -1);
        assert_status(st, PAWL_ERR_NOMEM);
        assert_text_has(pawl_error_message(), "cannot start a thread");
        assert_nothing_is_left(t, threads, descriptors);
        (void)put(pool, .kind = "k");
        assert_int_equal(gate_count(&done), 0);
    }
    atomic_store(&creations_left, THREADS);
    assert_ok(pawl_start(pool));
    atomic_store(&creations_left, -1);
    assert_true(gate_await(&done, THREADS));
    assert_ok(pawl_close(pool));
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"), THREADS);
}

/* Goal: a close after a refused start is an ordinary one. */
static void a_close_after_a_refused_start(void **state)
{
    pawl_pool *pool = open_pool((temp *)*state, .executors = EXECUTORS);
    atomic_store(&creations_left, 2);
    pawl_status st = pawl_start(pool);
    atomic_store(&creations_left, -1);
    assert_status(st, PAWL_ERR_NOMEM);
    assert_ok(pawl_close(pool));
    assert_int_equal(look(((temp *)*state)->path, "SELECT count(*) FROM pawl_holder WHERE left_at IS NULL"), 0);
}

/* ------------------------------------------------------------------------------- signals */

enum { STORM_JOBS = 400, STORM_US = 100 };

typedef struct storm {
    _Atomic bool over;
    _Atomic int sent;
    DIR *threads; /* opened once: numbers of descriptors that come and go look like races of the pool's */
} storm;

static _Atomic int interruptions;

static void on_signal(int number)
{
    (void)number;
    (void)atomic_fetch_add(&interruptions, 1);
}

/* Sends the signal to each thread of the process, itself apart. */
static void interrupt_all(storm *s)
{
    rewinddir(s->threads);
    for (struct dirent *entry; (entry = readdir(s->threads)) != NULL;) {
        int thread = (int)strtol(entry->d_name, NULL, 10);
        if (thread > 0 && thread != (int)syscall(SYS_gettid)
            && syscall(SYS_tgkill, getpid(), thread, SIGUSR2) == 0)
            (void)atomic_fetch_add(&s->sent, 1);
    }
}

static void *keep_interrupting(void *arg)
{
    storm *s = arg;
    while (!atomic_load(&s->over)) {
        interrupt_all(s);
        (void)nanosleep(&(struct timespec){ .tv_nsec = STORM_US * 1000 }, NULL);
    }
    return NULL;
}

/* With the signal open, as a host's own code may leave it: an interrupted call of SQLite's or of ours goes on. */
static int run_interrupted(pawl_job *job, void *arg)
{
    sigset_t open;
    (void)sigemptyset(&open);
    (void)sigaddset(&open, SIGUSR2);
    (void)pthread_sigmask(SIG_UNBLOCK, &open, NULL);
    pawl_status st = pawl_job_heartbeat(job);
    if (st == PAWL_OK)
        st = pawl_enqueue(pawl_job_pool(job), PAWL_JOB(.kind = "nobody"), NULL);
    gate_add(arg, 1);
    return st == PAWL_OK ? PAWL_SUCCEEDED : PAWL_FAILED;
}

/* Goal: a signal every 100 µs to every thread, whose handler restarts nothing, makes no call fail. The caller's
 * thread and the executors have the signal open; the writer and the loop block it (G1: EINTR is retried). */
static void signals_without_end_disturb_nobody(void **state)
{
    temp *t = *state;
    storm s = { .threads = opendir("/proc/self/task") };
    gate done = GATE_INIT;
    pthread_t thread;
    assert_non_null(s.threads);
    struct sigaction act = { .sa_handler = on_signal }, before; /* no SA_RESTART */
    assert_int_equal(sigaction(SIGUSR2, &act, &before), 0);
    pawl_pool *pool = open_pool(t, .executors = 2);
    assert_ok(pawl_register(pool, "k", run_interrupted, &done, NULL));
    assert_ok(pawl_start(pool));
    assert_int_equal(pthread_create(&thread, NULL, keep_interrupting, &s), 0);
    for (int i = 0; i < STORM_JOBS; i++)
        (void)put(pool, .kind = "k");
    assert_true(gate_await(&done, STORM_JOBS));
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    assert_ok(pawl_stop(pool, LONG_MS));
    assert_ok(pawl_start(pool));
    assert_ok(pawl_close(pool));
    pool = open_pool(t, .executors = 2);
    assert_ok(pawl_close(pool));
    atomic_store(&s.over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)closedir(s.threads);
    assert_int_equal(sigaction(SIGUSR2, &before, NULL), 0);
    assert_true(atomic_load(&interruptions) > STORM_JOBS / 4);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"), STORM_JOBS);
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'pending'"), STORM_JOBS);
}

static uint64_t blocked_by(const char *task)
{
    char path[300], line[256];
    uint64_t blocked = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%.200s/status", task);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "SigBlk:", 7) == 0)
            blocked = strtoull(line + 7, NULL, 16);
    (void)fclose(file);
    return blocked;
}

enum { TASKS_MAX = 64 };

typedef struct tasks {
    char names[TASKS_MAX][32];
    int count;
} tasks;

static void list_tasks(tasks *out)
{
    DIR *d = opendir("/proc/self/task");
    assert_non_null(d);
    out->count = 0;
    for (struct dirent *entry; (entry = readdir(d)) != NULL && out->count < TASKS_MAX;)
        (void)snprintf(out->names[out->count++], sizeof out->names[0], "%.31s", entry->d_name);
    (void)closedir(d);
}

static bool is_among(const tasks *all, const char *name)
{
    for (int i = 0; i < all->count; i++)
        if (strcmp(all->names[i], name) == 0)
            return true;
    return false;
}

/* The C library keeps two for itself (32, 33), and KILL and STOP are nobody's. */
static uint64_t asynchronous(void)
{
    static const int open[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGKILL, SIGSTOP, 32, 33 };
    uint64_t set = UINT64_MAX;
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        set &= ~(UINT64_C(1) << (open[i] - 1));
    return set;
}

/* A thread that is just being made blocks everything, for the C library's sake. */
static bool masks_are_right(void *arg)
{
    const tasks *before = arg;
    tasks now;
    int right = 0;
    list_tasks(&now);
    for (int i = 0; i < now.count; i++)
        right += !is_among(before, now.names[i]) && blocked_by(now.names[i]) == asynchronous();
    return right == THREADS;
}

/* Goal: each thread of the pool blocks every signal that can be blocked but the synchronous ones. */
static void every_asynchronous_signal_is_blocked(void **state)
{
    tasks before;
    list_tasks(&before);
    pawl_pool *pool = open_pool((temp *)*state, .executors = EXECUTORS);
    assert_ok(pawl_start(pool));
    assert_true(eventually(masks_are_right, &before, LONG_MS));
    assert_ok(pawl_close(pool));
}

/* ------------------------------------------------------------------------------- stacks */

enum { SMALL_STACK = 64 << 10, PAINT = 0x5A };

typedef struct small {
    temp *t;
    gate done;
    pawl_status worst;
    int line;
} small;

static bool passes(small *s, pawl_status st, int line)
{
    if (st < 0 && s->worst == PAWL_OK) {
        s->worst = st;
        s->line = line;
    }
    return st >= 0;
}
#define PASSES(call) passes(s, (call), __LINE__)

static void use_the_api(small *s, pawl_pool *pool)
{
    static char payload[200000];
    const pawl_job_spec *spec = PAWL_JOB(.kind = "k", .payload = payload, .payload_bytes = sizeof payload,
                                         .idempotency_key = "key", .idempotency_key_bytes = 3);
    pawl_job_info info = PAWL_JOB_INFO_INIT, page[2] = { PAWL_JOB_INFO_INIT, PAWL_JOB_INFO_INIT };
    pawl_stats_info stats = PAWL_STATS_INIT;
    int64_t id = 0;
    size_t count;
    (void)PASSES(pawl_enqueue(pool, spec, &id));
    (void)PASSES(pawl_enqueue_many(pool, spec, 1, NULL, NULL));
    (void)PASSES(pawl_enqueue_async(pool, spec, NULL, NULL));
    (void)PASSES(pawl_get(pool, id, &info));
    (void)PASSES(pawl_list(pool, NULL, page, 2, &count));
    (void)PASSES(pawl_stats(pool, &stats));
    (void)PASSES(pawl_pause(pool, "q"));
    (void)PASSES(pawl_resume(pool, "q"));
    int64_t other = 0;
    (void)PASSES(pawl_enqueue(pool, PAWL_JOB(.kind = "nobody"), &other));
    (void)PASSES(pawl_cancel(pool, other));
    (void)PASSES(pawl_requeue(pool, other));
    pawl_job_info_clear(&info);
    pawl_job_info_clear(&page[0]);
    pawl_job_info_clear(&page[1]);
    pawl_stats_info_clear(&stats);
}

/* Opens a fresh file, uses it without a writer thread, with one, and inline: all on this stack. */
static void *live_on_a_small_stack(void *arg)
{
    small *s = arg;
    pawl_pool *pool;
    if (!PASSES(pawl_open(PAWL_OPTIONS(.store = s->t->path, .log = check_quiet, .executors = 1,
                                       .stack_bytes = SMALL_STACK), &pool)))
        return NULL;
    (void)PASSES(pawl_register(pool, "k", succeed, &s->done, NULL));
    use_the_api(s, pool);
    (void)PASSES(pawl_start(pool));
    (void)gate_await(&s->done, 1);
    use_the_api(s, pool);
    (void)PASSES(pawl_wait_idle(pool, LONG_MS));
    (void)PASSES(pawl_stop(pool, LONG_MS));
    (void)PASSES(pawl_close(pool));
    if (!PASSES(pawl_open(PAWL_OPTIONS(.store = s->t->path, .log = check_quiet, .flags = PAWL_OPEN_INLINE), &pool)))
        return NULL;
    (void)PASSES(pawl_register(pool, "nobody", succeed, &s->done, NULL));
    (void)PASSES(pawl_start(pool));
    (void)PASSES(pawl_run_until_idle(pool));
    use_the_api(s, pool);
    (void)PASSES(pawl_close(pool));
    return NULL;
}

/* Goal: a thread of the host's with a stack of 64 KiB may call everything, and a quarter of it is left. */
static void a_small_stack_of_the_hosts_is_enough(void **state)
{
    if (IS_SANITIZED)
        skip();
    small s = { .t = *state, .done = GATE_INIT };
    pthread_attr_t attributes;
    pthread_t thread;
    unsigned char *stack = mmap(NULL, SMALL_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(stack != MAP_FAILED);
    memset(stack, PAINT, SMALL_STACK);
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstack(&attributes, stack, SMALL_STACK), 0);
    assert_int_equal(pthread_create(&thread, &attributes, live_on_a_small_stack, &s), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_attr_destroy(&attributes);
    size_t untouched = 0;
    while (untouched < SMALL_STACK && stack[untouched] == PAINT)
        untouched++;
    print_message("%zu of %d bytes were used\n", (size_t)SMALL_STACK - untouched, SMALL_STACK);
    (void)munmap(stack, SMALL_STACK);
    if (s.worst != PAWL_OK)
        print_error("line %d answered %s\n", s.line, pawl_status_name(s.worst));
    assert_int_equal(s.worst, PAWL_OK);
    assert_true(untouched >= SMALL_STACK / 4);
}

/* ------------------------------------------------------------------------------- stops */

enum { STOPPERS = 8 };

typedef struct stopping {
    pawl_pool *pool;
    _Atomic int refused;
    _Atomic bool go;
} stopping;

static void *stop_now(void *arg)
{
    stopping *s = arg;
    while (!atomic_load(&s->go)) {
    }
    if (pawl_stop(s->pool, LONG_MS) != PAWL_OK)
        (void)atomic_fetch_add(&s->refused, 1);
    return NULL;
}

/* Stops from inside, and asks for more work. */
static int stop_inside(pawl_job *job, void *arg)
{
    pawl_pool *pool = pawl_job_pool(job);
    bool ok = pawl_stop(pool, 0) == PAWL_ACCEPTED && pawl_enqueue(pool, PAWL_JOB(.kind = "k"), NULL) == PAWL_OK;
    gate_add(arg, 1);
    return ok ? PAWL_SUCCEEDED : PAWL_FAILED;
}

static void stop_in_callback(pawl_status st, int64_t id, void *arg)
{
    (void)id;
    if (st < 0 || pawl_stop(((stopping *)arg)->pool, 0) == PAWL_ACCEPTED)
        return;
    (void)atomic_fetch_add(&((stopping *)arg)->refused, 1);
}

/* Goal: a stop from many threads, from a handler and from a callback, all at once and again and again, is one
 * stop: each answers OK, no job is lost or run twice (G2). */
static void everybody_may_stop_at_once(void **state)
{
    temp *t = *state;
    gate done = GATE_INIT;
    stopping s = { 0 };
    s.pool = open_pool(t, .executors = 2);
    assert_ok(pawl_register(s.pool, "k", stop_inside, &done, NULL));
    for (int round = 0; round < 15; round++) {
        pthread_t threads[STOPPERS];
        atomic_store(&s.go, false);
        assert_ok(pawl_start(s.pool));
        for (int i = 0; i < STOPPERS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, stop_now, &s), 0);
        assert_ok(pawl_enqueue_async(s.pool, PAWL_JOB(.kind = "k"), stop_in_callback, &s));
        atomic_store(&s.go, true);
        for (int i = 0; i < STOPPERS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_ok(pawl_stop(s.pool, LONG_MS));
    }
    assert_int_equal(atomic_load(&s.refused), 0);
    assert_ok(pawl_close(s.pool));
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status = 'succeeded'"), gate_count(&done));
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs"), 15 + gate_count(&done));
    assert_int_equal(look(t->path, "SELECT count(*) FROM pawl_jobs WHERE status NOT IN ('pending', 'succeeded')"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    TEST(a_start_without_threads_is_refused),
    TEST(a_close_after_a_refused_start),
    TEST(signals_without_end_disturb_nobody),
    TEST(every_asynchronous_signal_is_blocked),
    TEST(a_small_stack_of_the_hosts_is_enough),
    TEST(everybody_may_stop_at_once),
};

static void *nothing(void *arg)
{
    return arg;
}

/* With a first thread a sanitizer starts one of its own: before anything is counted. */
static int warm_up(void **state)
{
    pthread_t thread;
    (void)state;
    return pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0;
}

int main(void)
{
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
