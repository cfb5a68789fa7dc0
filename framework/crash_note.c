/* crash_note.c - notes, when a fatal signal comes, on which job's thread it came. Off by default.
 *
 * What a process does with a signal is the process's own, not a pool's: so this is, beside the list of attach.c,
 * the one place with state of the whole process. The first pool that asks for it (note_crashes) puts a handler in front of what was
 * there for each fatal signal, and the last one takes it away. The handler writes the note into the mapped
 * side file of every such pool and then lets happen what would have happened without it: the handler that
 * was there is called, with its mask and flags, or the default kills the process, core dump included. But one
 * that did not ask for the alternate stack runs on it all the same, where its thread has one.
 * Threads: add and remove under the lock; the signal handler on any, it takes no lock and calls nothing that
 *          is not async-signal-safe.
 * Keeps:   G1 nothing is changed unless it is asked for; a disposition that was replaced since stays. */
#include "crash_note.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "status.h"

#define NOTES_MAX 64
#define SIGNAL_STACK_BYTES ((size_t)65536)

static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
#define FATAL_COUNT (sizeof fatal / sizeof fatal[0])

static _Atomic pid_t lock;                   /* whose it is; 0: nobody's */
static size_t note_count;                    /* under it */
static _Atomic pid_t owner;                  /* a forked child has the handlers and the mapped files too */
static bool in_place[FATAL_COUNT];           /* likewise: our handler is, or is called by one before it */
static struct sigaction before[FATAL_COUNT]; /* written before our handler is in place */
static _Atomic(pawli_crash_note *) notes[NOTES_MAX];
static _Atomic uint64_t authors[NOTES_MAX]; /* the reports that the notes are of; 0: of none */
static _Atomic uint64_t reports;            /* so many were numbered */
static _Atomic int readers;                 /* those who look at the notes: while there are any, none goes away */

/* A report goes from a thread's signal to the return of its handler. Its number is even where the signal tells
 * nothing of who is to blame, and odd where it came on a job's thread. */
#define NAMES_A_JOB 1

/* In the static block of each thread: a signal handler must not be the one that allocates it. */
typedef struct mark {
    /* cppcheck-suppress unusedStructMember ; it does not see through thread-local */
    pawli_crash_note *note;
    /* cppcheck-suppress unusedStructMember */
    uint64_t fence;
    /* cppcheck-suppress unusedStructMember */
    uint64_t report; /* of this thread's that has not come back; 0: none */
    /* cppcheck-suppress unusedStructMember */
    int signal; /* and its latest signal */
} mark;
static _Thread_local volatile mark here __attribute__((tls_model("initial-exec")));

/* A forked child: the notes are the parent's, which lives. */
static bool is_child(void)
{
    return getpid() != atomic_load(&owner);
}

/* What was reported has been survived. */
static void withdraw(uint64_t report)
{
    if (is_child())
        return;
    (void)atomic_fetch_add(&readers, 1);
    for (size_t i = 0; i < NOTES_MAX; i++) {
        uint64_t author = report;
        pawli_crash_note *note = atomic_load(&notes[i]);
        if (note != NULL && atomic_compare_exchange_strong(&authors[i], &author, 0))
            atomic_store(&note->signal, 0);
    }
    (void)atomic_fetch_sub(&readers, 1);
}

/* The job that ends here has lived on after its signal, if there was one: some handler has jumped out of it. */
void pawli_crash_mark(pawli_crash_note *note, uint64_t fence)
{
    if (here.report != 0)
        withdraw(here.report);
    here.note = NULL; /* a signal in between belongs to no job */
    here.report = 0;
    atomic_signal_fence(memory_order_seq_cst);
    here.fence = fence;
    atomic_signal_fence(memory_order_seq_cst);
    here.note = note;
}

/* --------------------------------------------------------------------------- the handler */

/* Is the note this report's to write? One that names a job stays until its handler comes back: a crash reporter may end
 * the process from elsewhere meanwhile (abort(), kill()), and what other threads meet may be mended. But that job may
 * also live on, where its handler has jumped out: another that is sure to kill takes its place. */
static bool take_note(size_t i, uint64_t report, bool is_sure)
{
    bool is_stronger = is_sure && (report & NAMES_A_JOB) != 0;
    uint64_t author = atomic_load(&authors[i]);
    do
        if (author != report && (author & NAMES_A_JOB) != 0 && !is_stronger)
            return false;
    while (!atomic_compare_exchange_weak(&authors[i], &author, report));
    return true;
}

static uint64_t culprit_for(const pawli_crash_note *note, uint64_t report)
{
    if ((report & NAMES_A_JOB) == 0)
        return 0;
    return note == here.note ? here.fence : PAWLI_CRASH_ELSEWHERE;
}

static void write_notes(uint64_t report, int signal, bool is_sure)
{
    if (is_child())
        return;
    (void)atomic_fetch_add(&readers, 1);
    for (size_t i = 0; i < NOTES_MAX; i++) {
        pawli_crash_note *note = atomic_load(&notes[i]);
        if (note == NULL || !take_note(i, report, is_sure))
            continue;
        atomic_store(&note->fence, culprit_for(note, report));
        atomic_store(&note->signal, signal);
    }
    (void)atomic_fetch_sub(&readers, 1);
}

/* A signal within the handler of one that names a job belongs to that report. Answers the signal of the one before;
 * 0: there was none. */
static int begin_report(int signal, bool tells_the_thread, bool is_sure)
{
    uint64_t names = here.note != NULL && tells_the_thread ? NAMES_A_JOB : 0;
    int outer = (here.report & NAMES_A_JOB) != 0 ? here.signal : 0;
    if (here.report == 0 || (here.report & NAMES_A_JOB) < names)
        here.report = 2 * (atomic_fetch_add(&reports, 1) + 1) + names;
    here.signal = signal;
    write_notes(here.report, signal, is_sure);
    return outer;
}

/* Its signal was mended. Reports of other threads, whose handlers still run, stay. */
static void end_report(int outer)
{
    here.signal = outer;
    if (outer != 0) {
        write_notes(here.report, outer, false);
        return;
    }
    withdraw(here.report);
    here.report = 0;
}

static void on_fatal(int signal, siginfo_t *info, void *context);

void pawl_note_crash(int signal)
{
    (void)begin_report(signal, true, false);
}

static size_t index_of(int signal)
{
    size_t i = 0;
    while (i + 1 < FATAL_COUNT && fatal[i] != signal)
        i++;
    return i;
}

static bool is_in_front(int signal)
{
    struct sigaction now;
    return sigaction(signal, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fatal;
}

/* A handler that comes back, and has not seen to it that the next one kills, has mended what was wrong: if not,
 * the signal comes again. But abort() kills when it has come back. */
static void call_handler(const struct sigaction *old, int signal, siginfo_t *info, void *context, int outer)
{
    if (((unsigned)old->sa_flags & SA_RESETHAND) != 0)
        (void)sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
    if ((old->sa_flags & SA_SIGINFO) != 0)
        old->sa_sigaction(signal, info, context);
    else
        old->sa_handler(signal);
    if (signal != SIGABRT && is_in_front(signal))
        end_report(outer);
}

static bool has_handler(const struct sigaction *old)
{
    return (old->sa_flags & SA_SIGINFO) != 0 || (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN);
}

/* A fault comes again as soon as the handler returns, and then kills, with its address in the core dump. A trap
 * does not, and what was sent has to be sent again. */
static void die_by_default(int signal, bool was_sent)
{
    (void)sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
    if (was_sent || signal == SIGTRAP || signal == SIGSYS || signal == SIGABRT)
        (void)raise(signal);
}

static void on_fatal(int signal, siginfo_t *info, void *context)
{
    int error = errno;
    const struct sigaction *old = &before[index_of(signal)];
    bool was_sent = info->si_code <= 0; /* by a process, or by abort() */
    /* What is sent to the process (kill) comes on any thread; raise() and abort() send to their own. */
    bool tells_the_thread = info->si_code != SI_USER && info->si_code != SI_QUEUE;
    if (has_handler(old)) {
        int outer = begin_report(signal, tells_the_thread, false);
        call_handler(old, signal, info, context, outer);
    } else if (old->sa_handler == SIG_DFL || !was_sent) {
        (void)begin_report(signal, tells_the_thread, true);
        die_by_default(signal, was_sent);
    }
    errno = error;
}

/* --------------------------------------------------------------------------- in and out */

static bool is_same(const struct sigaction *a, const struct sigaction *b)
{
    bool same = a->sa_flags == b->sa_flags && a->sa_sigaction == b->sa_sigaction;
    for (int signal = 1; same && signal <= SIGRTMAX; signal++)
        same = sigismember(&a->sa_mask, signal) == sigismember(&b->sa_mask, signal);
    return same;
}

/* Known before it can be needed; and not written again when it is what is known, as a thread may be reading. */
static void learn(size_t i)
{
    struct sigaction now;
    if (sigaction(fatal[i], NULL, &now) == 0 && !is_same(&now, &before[i]))
        before[i] = now;
}

/* What the handler that was there blocks while it runs, ours blocks for it. */
static struct sigaction ours_for(const struct sigaction *old)
{
    struct sigaction ours = { .sa_flags = 0 };
    if (has_handler(old))
        ours = (struct sigaction){ .sa_mask = old->sa_mask, .sa_flags = old->sa_flags & (SA_NODEFER | SA_RESTART) };
    else
        (void)sigemptyset(&ours.sa_mask);
    ours.sa_sigaction = on_fatal;
    ours.sa_flags |= SA_SIGINFO | SA_ONSTACK;
    return ours;
}

static void put_handlers(void)
{
    for (size_t i = 0; i < FATAL_COUNT; i++) {
        if (in_place[i])
            continue;
        learn(i);
        const struct sigaction ours = ours_for(&before[i]);
        in_place[i] = sigaction(fatal[i], &ours, NULL) == 0;
    }
}

/* A handler that somebody has put in front of ours since stays, and may go on calling ours: which then must
 * not be put in front of it again. */
static void take_handlers(void)
{
    for (size_t i = 0; i < FATAL_COUNT; i++) {
        if (in_place[i] && is_in_front(fatal[i]))
            in_place[i] = sigaction(fatal[i], &before[i], NULL) != 0;
    }
}

/* It may have been forked between a handler's coming or going and the note of that. One that somebody has put in
 * front of ours may go on calling it. */
static void see_what_is_in_place(size_t i)
{
    struct sigaction now;
    if (sigaction(fatal[i], NULL, &now) != 0)
        return;
    if (is_in_front(fatal[i]))
        in_place[i] = true;
    else if (is_same(&now, &before[i]))
        in_place[i] = false;
}

/* In a forked child the notes are the parent's; the handlers are in place. */
static void begin_anew_in_child(void)
{
    if (!is_child())
        return;
    for (size_t i = 0; i < NOTES_MAX; i++)
        atomic_store(&notes[i], NULL);
    for (size_t i = 0; i < FATAL_COUNT; i++)
        see_what_is_in_place(i);
    here.report = 0; /* of the only thread there is */
    atomic_store(&readers, 0);
    note_count = 0;
    atomic_store(&owner, getpid());
}

static bool add(pawli_crash_note *note)
{
    size_t i = 0;
    begin_anew_in_child();
    while (i < NOTES_MAX && atomic_load(&notes[i]) != NULL)
        i++;
    if (i == NOTES_MAX)
        return false;
    atomic_store(&authors[i], 0);
    atomic_store(&notes[i], note);
    if (note_count++ == 0)
        put_handlers();
    return true;
}

/* Not a mutex: in a child that is forked while another thread holds it nobody would ever let go of it. What the
 * parent's thread held is nobody's there. */
static void take_lock(void)
{
    pid_t self = getpid(), holder = 0;
    while (!atomic_compare_exchange_weak(&lock, &holder, self))
        if (holder == self) {
            holder = 0;
            (void)sched_yield();
        }
}

static void leave_lock(void)
{
    atomic_store(&lock, 0);
}

pawl_status pawli_crash_note_add(pawli_crash_note *note)
{
    take_lock();
    bool added = add(note);
    leave_lock();
    return added ? PAWL_OK
                 : pawli_fail(PAWL_ERR_FULL, "note_crashes: %d pools of this process have it already; start this "
                                             "one without", NOTES_MAX);
}

void pawli_crash_note_remove(const pawli_crash_note *note)
{
    take_lock();
    for (size_t i = 0; i < NOTES_MAX; i++)
        if (atomic_load(&notes[i]) == note) {
            atomic_store(&notes[i], NULL);
            if (--note_count == 0)
                take_handlers();
        }
    while (atomic_load(&readers) != 0) /* its memory goes next */
        (void)sched_yield();
    leave_lock();
}

/* ------------------------------------------------------------------------ the signal stack */

void *pawli_crash_stack_open(void)
{
    void *stack = malloc(SIGNAL_STACK_BYTES);
    const stack_t alternate = { .ss_sp = stack, .ss_size = SIGNAL_STACK_BYTES };
    if (stack != NULL && sigaltstack(&alternate, NULL) != 0) {
        free(stack);
        stack = NULL;
    }
    return stack;
}

void pawli_crash_stack_close(void *stack)
{
    if (stack == NULL)
        return;
    (void)sigaltstack(&(stack_t){ .ss_flags = SS_DISABLE }, NULL);
    free(stack);
}
