/* crasher.c - a process with a pool whose jobs crash it, for the tests of who is to blame.
 *
 *   crasher DB NOTES EXECUTORS NEIGHBOURS [HOST]
 *
 * NOTES: how many pools with note_crashes (0: one pool without, 2: a second one beside, which serves "apart"). A job
 * that crashes waits until NEIGHBOURS jobs of kind "beside" run. HOST names what the application itself does with signals;
 * see `hosts`. It says on standard output, a line each: "ready", "start KIND ID", "lives", and what its host says. On
 * standard input: "go" lets the neighbours end, "stop" closes the pool, any other word is done on the main thread. */
#include <pawl/pawl.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Atomic int beside_now;
static _Atomic bool may_end;
static int neighbours;
static char *page; /* nobody may touch it, until a host mends that */
static sigjmp_buf back_to_main, back_to_job;
static _Thread_local bool is_job_that_jumps;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Also from signal handlers: texts without numbers are copied and no more.
 * NOLINTBEGIN(bugprone-signal-handler,cert-sig30-c) */
static void say(const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    /* NOLINTEND(bugprone-signal-handler,cert-sig30-c) */
    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(3); /* nobody listens */
}

static void must(pawl_status st, const char *what)
{
    if (st == PAWL_OK)
        return;
    (void)fprintf(stderr, "crasher: %s: %s: %s\n", what, pawl_status_name(st), pawl_error_message());
    _exit(2);
}

static void pause_ms(long ms)
{
    (void)nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* -------------------------------------------------------------------------- ways to crash */

static void by_null(void)
{
    volatile char *volatile nowhere = NULL;
    /* cppcheck-suppress nullPointer ; it is to crash */
    *nowhere = 1; /* NOLINT(clang-analyzer-core.NullDereference): likewise */
}

static void by_abort(void)
{
    abort();
}

static void by_division(void)
{
    volatile int zero = 0;
    volatile int one = 1;
    /* cppcheck-suppress zerodiv ; it is to crash */
    one = one / zero; /* NOLINT(clang-analyzer-core.DivideZero): likewise */
}

static void by_a_short_file(void)
{
    FILE *file = tmpfile();
    volatile char *map = file != NULL ? mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0) : NULL;
    if (map != NULL && map != MAP_FAILED)
        *map = 1;
    /* cppcheck-suppress resourceLeak ; it does not come so far */
}

static volatile int deeper = 1;

static int use_up_the_stack(int n)
{
    volatile char frame[1024];
    frame[n % 1024] = (char)n;
    /* cppcheck-suppress knownConditionTrueFalse ; until the stack ends */
    return deeper ? use_up_the_stack(n + 1) + frame[n % 1024] : 0;
}

static void by_its_stack(void)
{
    (void)use_up_the_stack(0);
}

static void by_raise(void)
{
    (void)raise(SIGSEGV);
}

/* An instruction that does not come again when the handler returns. */
static void by_a_breakpoint(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("int3");
#else
    (void)raise(SIGTRAP);
#endif
}

static void by_an_illegal_instruction(void)
{
    __builtin_trap();
}

/* As a signal comes that was sent to the process: it tells nothing of the thread. */
static void by_a_queued_one(void)
{
    (void)pthread_sigqueue(pthread_self(), SIGSEGV, (union sigval){ .sival_int = 0 });
}

static void by_kill(void)
{
    (void)kill(getpid(), SIGKILL);
}

static void by_the_page(void)
{
    *(volatile char *)page = 1;
}

static const struct {
    const char *name;
    void (*crash)(void);
} ways[] = { { "null", by_null },      { "abort", by_abort }, { "division", by_division },
             { "file", by_a_short_file }, { "stack", by_its_stack }, { "raise", by_raise },
             { "breakpoint", by_a_breakpoint }, { "illegal", by_an_illegal_instruction },
             { "queued", by_a_queued_one }, { "kill", by_kill }, { "page", by_the_page } };
#define WAYS (sizeof ways / sizeof ways[0])

/* ------------------------------------------------------------------------------ the kinds */

static void say_start(const pawl_job *job)
{
    say("start %s %" PRId64 "\n", pawl_job_kind(job), pawl_job_id(job));
}

static void await_neighbours(void)
{
    while (atomic_load(&beside_now) < neighbours)
        pause_ms(1);
}

static int beside(pawl_job *job, void *arg)
{
    (void)arg;
    say_start(job);
    (void)atomic_fetch_add(&beside_now, 1);
    while (!atomic_load(&may_end) && !pawl_job_should_stop(job))
        pause_ms(2);
    (void)atomic_fetch_sub(&beside_now, 1);
    return atomic_load(&may_end) ? PAWL_SUCCEEDED : PAWL_RELEASED;
}

static int crash_at_once(pawl_job *job, void *arg)
{
    void (*crash)(void) = ways[*(const size_t *)arg].crash;
    await_neighbours();
    say_start(job);
    crash();
    return PAWL_SUCCEEDED; /* some host has mended it */
}

/* Goes on as a neighbour after its fault. */
static int jump_out(pawl_job *job, void *arg)
{
    is_job_that_jumps = true;
    if (sigsetjmp(back_to_job, 1) == 0)
        by_null();
    return beside(job, arg);
}

static pawl_status crash_in_the_transaction(void *db, pawl_job *job, void *arg)
{
    (void)db;
    (void)arg;
    say_start(job);
    by_null();
    return PAWL_OK;
}

static int succeed_fatally(pawl_job *job, void *arg)
{
    (void)arg;
    await_neighbours();
    return pawl_job_on_success(job, crash_in_the_transaction, NULL, NULL) == PAWL_OK ? PAWL_SUCCEEDED : PAWL_FAILED;
}

static int retry(pawl_job *job, void *arg)
{
    (void)arg;
    await_neighbours();
    say_start(job);
    return PAWL_RETRY;
}

static int64_t crash_over_the_backoff(uint32_t attempt, const char *error, void *arg)
{
    (void)attempt;
    (void)error;
    (void)arg;
    by_null();
    return 1;
}

/* In a child that it forked; the parent goes on. */
static void crash_in_a_child(void)
{
    pid_t pid = fork();
    if (pid == 0)
        by_null();
    int status = 0;
    (void)waitpid(pid, &status, 0);
    say("child %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : -1);
}

static int fork_and_crash(pawl_job *job, void *arg)
{
    (void)arg;
    say_start(job);
    crash_in_a_child();
    (void)atomic_fetch_add(&beside_now, 1);
    while (!atomic_load(&may_end) && !pawl_job_should_stop(job))
        pause_ms(2);
    return PAWL_SUCCEEDED;
}

static void *finish_never(void *arg)
{
    (void)arg;
    for (;;)
        (void)pause();
    return NULL;
}

static int detach(pawl_job *job, void *arg)
{
    pthread_t thread;
    (void)arg;
    if (pthread_create(&thread, NULL, finish_never, job) != 0)
        return PAWL_FAILED;
    say_start(job);
    return PAWL_DETACHED;
}

static void *count_and_finish_never(void *arg)
{
    pause_ms(50); /* the handler has returned */
    (void)atomic_fetch_add(&beside_now, 1);
    return finish_never(arg);
}

/* One of the neighbours, once it is detached. */
static int detach_apart(pawl_job *job, void *arg)
{
    pthread_t thread;
    (void)arg;
    return pthread_create(&thread, NULL, count_and_finish_never, job) == 0 ? PAWL_DETACHED : PAWL_FAILED;
}

static const int64_t soon[] = { 1 };

static void serve(pawl_pool *pool, const char *kind, pawl_handler_fn fn, void *arg, pawl_backoff_fn backoff_fn)
{
    pawl_handler_options options = PAWL_HANDLER_OPTIONS_INIT;
    options.backoff_fn = backoff_fn;
    if (backoff_fn == NULL) {
        options.backoff_ms = soon;
        options.backoff_count = 1;
    }
    must(pawl_register(pool, kind, fn, arg, &options), "register");
}

static void serve_all(pawl_pool *pool)
{
    static size_t numbers[WAYS];
    for (size_t i = 0; i < WAYS; i++) {
        numbers[i] = i;
        serve(pool, ways[i].name, crash_at_once, &numbers[i], NULL);
    }
    serve(pool, "beside", beside, NULL, NULL);
    serve(pool, "jumps", jump_out, NULL, NULL);
    serve(pool, "effect", succeed_fatally, NULL, NULL);
    serve(pool, "backoff", retry, NULL, crash_over_the_backoff);
    serve(pool, "fork", fork_and_crash, NULL, NULL);
    serve(pool, "detached", detach, NULL, NULL);
}

static void serve_apart(pawl_pool *pool)
{
    serve(pool, "apart", detach_apart, NULL, NULL);
}

/* ----------------------------------------------------------- the application's own handlers */

static void set(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };
    (void)sigemptyset(&action.sa_mask);
    if (sigaction(signal, &action, NULL) != 0)
        _exit(2);
}

static void mend(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    (void)mprotect((void *)((uintptr_t)info->si_addr & ~(uintptr_t)4095), 4096, PROT_READ | PROT_WRITE);
}

static void leave(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    (void)context;
    _exit(42);
}

static void jump(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    (void)context;
    if (is_job_that_jumps)
        siglongjmp(back_to_job, 1);
    siglongjmp(back_to_main, 1);
}

static _Atomic int calls;

/* Says so and returns: the fault comes again. Installed to be called once. */
static void say_once(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    (void)context;
    if (atomic_fetch_add(&calls, 1) > 100)
        _exit(43); /* it would go on for ever */
    say("handler\n");
}

static void say_and_let_die(int signal_number)
{
    say("handler\n");
    (void)signal(signal_number, SIG_DFL);
}

static struct sigaction in_front_of;

static void chain(int signal, siginfo_t *info, void *context)
{
    say("handler\n");
    in_front_of.sa_sigaction(signal, info, context);
}

static void note_and_let_die(int signal_number)
{
    pawl_note_crash(signal_number); /* NOLINT(bugprone-signal-handler,cert-sig30-c): it is made for this */
    say("handler\n");
    (void)signal(signal_number, SIG_DFL);
}

static void wait_for_the_end(void)
{
    for (;;)
        (void)pause();
}

/* A reporter that ends the process with another signal, which comes on whatever thread. */
static void report(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    (void)context;
    (void)kill(getpid(), SIGABRT);
    wait_for_the_end();
}

static sem_t wanted;

static void *abort_when_wanted(void *arg)
{
    while (sem_wait(&wanted) != 0) {
    }
    abort();
    return arg;
}

/* One whose work is done by a thread of its own. */
static void let_another_report(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    (void)context;
    (void)sem_post(&wanted);
    wait_for_the_end();
}

/* It takes its time over a job's fault; others are mended meanwhile. */
static void linger(int signal, siginfo_t *info, void *context)
{
    if (info->si_addr >= (void *)page && (char *)info->si_addr < page + 4096) {
        mend(signal, info, context);
        return;
    }
    say("handler\n");
    wait_for_the_end();
}

static void say_mask_and_let_die(int signal_number)
{
    sigset_t mask;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
    if (sigismember(&mask, SIGTRAP) == 1 && sigismember(&mask, SIGBUS) == 0 && sigismember(&mask, signal_number) == 0)
        say("its own mask\n");
    (void)signal(signal_number, SIG_DFL);
}

static void be_host_with_mask(void)
{
    struct sigaction action = { .sa_handler = say_mask_and_let_die, .sa_flags = SA_NODEFER };
    (void)sigemptyset(&action.sa_mask);
    (void)sigaddset(&action.sa_mask, SIGTRAP); /* open in all threads */
    if (sigaction(SIGSEGV, &action, NULL) != 0)
        _exit(2);
}

static void be_host_with_reporter(void)
{
    pthread_t thread;
    if (sem_init(&wanted, 0, 0) != 0 || pthread_create(&thread, NULL, abort_when_wanted, NULL) != 0)
        _exit(2);
}

static const struct {
    const char *name;
    void (*handler)(int, siginfo_t *, void *);
    int flags;
} hosts[] = { { "mend", mend, SA_ONSTACK }, { "leave", leave, SA_ONSTACK }, { "jump", jump, SA_NODEFER },
              { "report", report, SA_ONSTACK }, { "reporter", let_another_report, SA_ONSTACK },
              { "linger", linger, SA_ONSTACK },
              { "once", say_once, (int)SA_RESETHAND } };

static void be_host(const char *name)
{
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
        if (strcmp(name, hosts[i].name) == 0)
            set(SIGSEGV, hosts[i].handler, hosts[i].flags);
    if (strcmp(name, "mask") == 0)
        be_host_with_mask();
    if (strcmp(name, "reporter") == 0)
        be_host_with_reporter();
    if (strcmp(name, "simple") == 0)
        (void)signal(SIGSEGV, say_and_let_die);
    if (strcmp(name, "ignore") == 0)
        (void)signal(SIGSEGV, SIG_IGN);
}

/* What it does once the pool has started. */
static void be_late_host(const char *name)
{
    if (strcmp(name, "chain") == 0) {
        (void)sigaction(SIGSEGV, NULL, &in_front_of);
        set(SIGSEGV, chain, SA_ONSTACK);
    }
    if (strcmp(name, "note") == 0)
        (void)signal(SIGSEGV, note_and_let_die);
}

/* ------------------------------------------------------------------------------------ main */

static pawl_pool *start(const char *db, bool notes, uint32_t executors, void (*serve_kinds)(pawl_pool *))
{
    pawl_pool *pool;
    must(pawl_open(PAWL_OPTIONS(.store = db, .lease_ms = 60000, .executors = executors, .note_crashes = notes), &pool),
         "open");
    serve_kinds(pool);
    must(pawl_start(pool), "start");
    return pool;
}

static void protect_page(void)
{
    if (page == NULL)
        page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else
        (void)mprotect(page, 4096, PROT_NONE);
}

#define STORM_THREADS 4

static _Atomic bool storm_ends;

static void *fault_and_mend(void *arg)
{
    volatile char *own = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    while (!atomic_load(&storm_ends)) {
        *own = 1;
        (void)mprotect((void *)(uintptr_t)own, 4096, PROT_NONE);
    }
    return arg;
}

/* Threads of the host's have their faults mended all the time, as some runtimes do, while the pool comes and goes. */
static void storm(pawl_pool *pool)
{
    pthread_t threads[STORM_THREADS];
    for (int i = 0; i < STORM_THREADS; i++)
        if (pthread_create(&threads[i], NULL, fault_and_mend, NULL) != 0)
            _exit(2);
    for (int i = 0; i < 200; i++) {
        must(pawl_stop(pool, 1000), "stop");
        must(pawl_start(pool), "start");
    }
    atomic_store(&storm_ends, true);
    for (int i = 0; i < STORM_THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    say("lives\n");
}

static void do_on_main(const char *word, pawl_pool *pool)
{
    if (strcmp(word, "fork") == 0) {
        crash_in_a_child();
        return;
    }
    if (strcmp(word, "storm") == 0) {
        storm(pool);
        return;
    }
    protect_page();
    if (sigsetjmp(back_to_main, 1) == 0)
        for (size_t i = 0; i < WAYS; i++)
            if (strcmp(word, ways[i].name) == 0)
                ways[i].crash();
    say("lives\n");
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    int pools = atoi(argv[2]);
    const char *host = argc > 5 ? argv[5] : "";
    neighbours = atoi(argv[4]);
    protect_page();
    be_host(host);
    pawl_pool *second = pools > 1 ? start(argv[1], true, 1, serve_apart) : NULL;
    pawl_pool *pool = start(argv[1], pools > 0, (uint32_t)atoi(argv[3]), serve_all);
    be_late_host(host);
    say("ready\n");
    char line[32];
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "go") == 0)
            atomic_store(&may_end, true);
        else if (strcmp(line, "stop") == 0)
            break;
        else
            do_on_main(line, pool);
    }
    must(pawl_close(pool), "close");
    must(pawl_close(second), "close");
    return 0;
}
