/* worker.c - a process with a pool, for tests that stop it in the middle of its work.
 *
 *   worker work DB LEASE_MS EXECUTORS [fork]   runs what is there
 *   worker loop DB LOG SEED                    enqueues and works until it is killed; LOG is append-only
 *
 * Kind "say" says that it has started, and ends.
 *
 * It says on standard output what it does, a line each: "ready", "start KIND ID ATTEMPT FENCE",
 * "end KIND ID", "fork PID", "finish STATUS", "slice COUNT" (of each 100 ms of pressing) and at the end of it
 * "pressed COUNT WORST_US LINES_LOGGED". "go" on standard input lets one job of kind "wait" end, "put KIND" enqueues
 * through its own pool, "stop" closes it. */
#include <pawl/pawl.h>

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "history.h"

static sem_t go, announced; /* no job says anything before "ready" */

/* One write a line: the lines of several threads do not mix, and nothing stays in a buffer. */
static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(3); /* nobody listens */
}

static void must(pawl_status st, const char *what)
{
    if (st == PAWL_OK)
        return;
    (void)fprintf(stderr, "worker: %s: %s: %s\n", what, pawl_status_name(st), pawl_error_message());
    _exit(2);
}

static void say_start(const pawl_job *job)
{
    (void)sem_wait(&announced);
    (void)sem_post(&announced);
    say("start %s %" PRId64 " %" PRIu32 " %" PRIu64 "\n", pawl_job_kind(job), pawl_job_id(job),
        pawl_job_attempt(job), pawl_job_fence(job));
}

/* ---------------------------------------------------------------------------- the kinds */

static int quick(pawl_job *job, void *arg)
{
    (void)job;
    (void)arg;
    return PAWL_SUCCEEDED;
}

static int say_only(pawl_job *job, void *arg)
{
    (void)arg;
    say_start(job);
    return PAWL_SUCCEEDED;
}

static int hang(pawl_job *job, void *arg)
{
    (void)arg;
    say_start(job);
    while (!pawl_job_should_stop(job))
        (void)nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    if (pawl_job_stop_reason(job) == PAWL_STOP_CANCEL)
        say("told %" PRId64 "\n", pawl_job_id(job));
    return PAWL_RELEASED;
}

static int die(pawl_job *job, void *arg)
{
    (void)arg;
    say_start(job);
    (void)kill(getpid(), SIGKILL);
    return PAWL_RETRY;
}

/* It leaves no record of what had started: `arg` is the path of the side directory. */
static int die_without_a_trace(pawl_job *job, void *arg)
{
    DIR *side = opendir(arg);
    struct dirent *entry;
    while (side != NULL && (entry = readdir(side)) != NULL)
        (void)unlinkat(dirfd(side), entry->d_name, 0);
    (void)rmdir(arg);
    return die(job, NULL);
}

/* The program replaces itself by itself: `arg` are its arguments. */
static int replace(pawl_job *job, void *arg)
{
    say_start(job);
    if (pawl_job_attempt(job) > 1)
        return PAWL_SUCCEEDED;
    (void)execv("/proc/self/exe", arg);
    return PAWL_FAILED;
}

static int wait_for_go(pawl_job *job, void *arg)
{
    (void)arg;
    say_start(job);
    while (sem_wait(&go) != 0) {
    }
    say("end wait %" PRId64 "\n", pawl_job_id(job));
    return PAWL_SUCCEEDED;
}

static void *finish_when_told(void *arg)
{
    pawl_job *job = arg;
    while (sem_wait(&go) != 0) {
    }
    say("finish %s\n", pawl_status_name(pawl_job_finish(job, PAWL_SUCCEEDED)));
    return NULL;
}

static int detached(pawl_job *job, void *arg)
{
    pthread_t thread;
    (void)arg;
    say_start(job);
    if (pthread_create(&thread, NULL, finish_when_told, job) != 0)
        return PAWL_RETRY;
    (void)pthread_detach(thread);
    return PAWL_DETACHED;
}

/* A child keeps the descriptors of this process open after its death. */
static void leave_a_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        while (read(STDIN_FILENO, &byte, 1) > 0) { /* until the test closes the other end */
        }
        _exit(0);
    }
    say("fork %d\n", (int)pid);
    (void)sem_post(&announced);
    for (;;)
        (void)pause(); /* its standard input is the child's now */
}

static const int64_t soon[] = { 1 };

static int work(char **argv, int argc)
{
    pawl_pool *pool;
    char side[512];
    (void)snprintf(side, sizeof side, "%s-pawl", argv[2]);
    must(pawl_open(PAWL_OPTIONS(.store = argv[2], .lease_ms = atoi(argv[3]),
                                .executors = (uint32_t)atoi(argv[4])), &pool), "open");
    const struct {
        const char *kind;
        pawl_handler_fn fn;
        void *arg;
    } kinds[] = { { "quick", quick, NULL },      { "hang", hang, NULL },
                  { "say", say_only, NULL },
                  { "die", die, NULL },          { "wait", wait_for_go, NULL },
                  { "replace", replace, argv },
                  { "detached", detached, NULL }, { "traceless", die_without_a_trace, side } };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        must(pawl_register(pool, kinds[i].kind, kinds[i].fn, kinds[i].arg,
                           PAWL_HANDLER(.backoff_ms = soon, .backoff_count = 1)), "register");
    must(pawl_start(pool), "start");
    if (argc > 5)
        leave_a_child();
    say("ready\n");
    (void)sem_post(&announced);
    char line[32], kind[32];
    while (fgets(line, sizeof line, stdin) != NULL)
        if (strcmp(line, "go\n") == 0)
            (void)sem_post(&go);
        else if (sscanf(line, "put %31s", kind) == 1)
            must(pawl_enqueue(pool, PAWL_JOB(.kind = kind), NULL), "enqueue");
        else if (strcmp(line, "stop\n") == 0)
            break;
    must(pawl_close(pool), "close");
    return 0;
}

/* ------------------------------------------------------------------------- the crash loop */

typedef struct producer {
    pawl_pool *pool;
    int log;
    uint64_t seed;
    bool async;
} producer;

static int log_and_run(pawl_job *job, void *arg)
{
    history_run(*(int *)arg, job);
    return PAWL_SUCCEEDED;
}

typedef struct asked {
    int log;
    char key[HISTORY_KEY_BYTES];
} asked;

static void told(pawl_status status, int64_t id, void *arg)
{
    asked *question = arg;
    if (status == PAWL_OK)
        history_ok(question->log, id, question->key);
    free(question);
}

static void ask_async(producer *p, const pawl_job_spec *spec, const char *key)
{
    asked *question = malloc(sizeof *question);
    if (question == NULL)
        return;
    question->log = p->log;
    (void)snprintf(question->key, sizeof question->key, "%s", key);
    if (pawl_enqueue_async(p->pool, spec, told, question) != PAWL_OK)
        free(question);
}

static void *produce(void *arg)
{
    producer *p = arg;
    for (uint64_t n = 0;; n++) {
        char key[HISTORY_KEY_BYTES], payload[HISTORY_PAYLOAD_BYTES];
        int64_t id;
        (void)snprintf(key, sizeof key, "%" PRIx64 "-%d-%" PRIu64, p->seed, p->async, n);
        size_t bytes = history_payload(key, payload);
        const pawl_job_spec *spec = PAWL_JOB(.kind = "log", .payload = payload, .payload_bytes = bytes,
                                             .idempotency_key = key, .max_attempts = 1000,
                                             .idempotency_key_bytes = strlen(key));
        history_try(p->log, key);
        if (p->async) {
            ask_async(p, spec, key);
            (void)nanosleep(&(struct timespec){ .tv_nsec = 300000 }, NULL);
        } else if (pawl_enqueue(p->pool, spec, &id) == PAWL_OK) {
            history_ok(p->log, id, key);
        }
    }
    return NULL;
}

static int loop(char **argv)
{
    pawl_pool *pool;
    pthread_t threads[2];
    int log = open(argv[3], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    uint64_t seed = strtoull(argv[4], NULL, 10);
    must(pawl_open(PAWL_OPTIONS(.store = argv[2], .executors = 2), &pool), "open");
    must(pawl_register(pool, "log", log_and_run, &log,
                       PAWL_HANDLER(.backoff_ms = soon, .backoff_count = 1)), "register");
    must(pawl_start(pool), "start");
    say("ready\n");
    producer producers[2] = { { pool, log, seed, false }, { pool, log, seed, true } };
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, produce, &producers[i]) != 0)
            return 2;
    for (;;)
        (void)pause();
}

/* ----------------------------------------------------------------------- many, and in haste */

static void await_word(const char *word)
{
    char line[32];
    while (fgets(line, sizeof line, stdin) != NULL)
        if (strncmp(line, word, strlen(word)) == 0)
            return;
    _exit(0); /* the test has ended */
}

#define POOLS_MAX 100

static int be_many(char **argv)
{
    pawl_pool *pools[POOLS_MAX];
    int count = atoi(argv[3]);
    for (int i = 0; i < count && i < POOLS_MAX; i++) {
        must(pawl_open(PAWL_OPTIONS(.store = argv[2], .executors = 1), &pools[i]), "open");
        must(pawl_start(pools[i]), "start");
    }
    say("ready\n");
    await_word("stop");
    for (int i = 0; i < count && i < POOLS_MAX; i++)
        must(pawl_close(pools[i]), "close");
    return 0;
}

static int64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void count_line(pawl_log_level level, const char *line, void *arg)
{
    if (level > PAWL_LOG_WARNING)
        return;
    (void)fprintf(stderr, "%s\n", line);
    (void)__atomic_fetch_add((int *)arg, 1, __ATOMIC_SEQ_CST);
}

static void press_on(pawl_pool *pool, int64_t us, const int *lines)
{
    int64_t count = 0, in_slice = 0, worst = 0, began = now_us(), slice_ends = began + 100000;
    for (int64_t before = began, after; before < began + us; before = after) {
        must(pawl_enqueue(pool, PAWL_JOB(.kind = "nobody"), NULL), "enqueue");
        after = now_us();
        worst = after - before > worst ? after - before : worst;
        count++;
        in_slice++;
        for (; after >= slice_ends; slice_ends += 100000) {
            say("slice %" PRId64 "\n", in_slice);
            in_slice = 0;
        }
    }
    say("pressed %" PRId64 " %" PRId64 " %d\n", count, worst, __atomic_load_n(lines, __ATOMIC_SEQ_CST));
}

static int press(char **argv)
{
    pawl_pool *pool;
    static int lines;
    must(pawl_open(PAWL_OPTIONS(.store = argv[2], .executors = 1, .log = count_line, .log_arg = &lines,
                                .synchronous = atoi(argv[4]) != 0 ? PAWL_SYNCHRONOUS_NORMAL : PAWL_SYNCHRONOUS_FULL,
                                .wal_bytes_max = strtoull(argv[5], NULL, 10)), &pool), "open");
    must(pawl_start(pool), "start");
    say("ready\n");
    await_word("go");
    press_on(pool, atoi(argv[3]) * INT64_C(1000), &lines);
    await_word("stop");
    must(pawl_close(pool), "close");
    return 0;
}

int main(int argc, char **argv)
{
    (void)sem_init(&go, 0, 0);
    (void)sem_init(&announced, 0, 0);
    if (argc >= 5 && strcmp(argv[1], "work") == 0)
        return work(argv, argc);
    if (argc == 5 && strcmp(argv[1], "loop") == 0)
        return loop(argv);
    if (argc == 4 && strcmp(argv[1], "many") == 0)
        return be_many(argv);
    if (argc == 6 && strcmp(argv[1], "press") == 0)
        return press(argv);
    (void)fprintf(stderr, "usage: worker work DB LEASE_MS EXECUTORS [fork] | loop DB LOG SEED\n");
    return 2;
}
