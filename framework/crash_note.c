/* crash_note.c - notes, when a fatal signal comes, on which job's thread it came. Off by default.
 *
 * What a process does with a signal is the process's own, not a pool's: so this is the one place with state
 * of the whole process. The first pool that asks for it (note_crashes) puts a handler in front of what was
 * there for each fatal signal, and the last one takes it away. The handler writes the note into the mapped
 * side file of every such pool and then lets happen what would have happened without it: the handler that
 * was there is called, or the default kills the process, core dump included.
 * Threads: add and remove under the lock; the signal handler on any, it takes no lock and calls nothing that
 *          is not async-signal-safe.
 * Keeps:   G1 nothing is changed unless it is asked for; a disposition that was replaced since stays. */
#include "crash_note.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "status.h"

#define NOTES_MAX 64
#define SIGNAL_STACK_BYTES ((size_t)65536)

static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
#define FATAL_COUNT (sizeof fatal / sizeof fatal[0])

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t note_count; /* under it */
static _Atomic pid_t owner;                  /* a forked child has the handlers and the mapped files too */
static bool in_place[FATAL_COUNT];           /* likewise: our handler is, or is called by one before it */
static struct sigaction before[FATAL_COUNT]; /* written before our handler is in place */
static _Atomic(pawli_crash_note *) notes[NOTES_MAX];
static _Atomic int readers; /* signal handlers that look at them */

/* In the static block of each thread: a signal handler must not be the one that allocates it. */
typedef struct mark {
    /* cppcheck-suppress unusedStructMember ; it does not see through thread-local */
    pawli_crash_note *note;
    /* cppcheck-suppress unusedStructMember */
    uint64_t fence;
} mark;
static _Thread_local volatile mark here __attribute__((tls_model("initial-exec")));

/* The job that ends here has lived on after its signal: some handler has mended what was wrong. */
static void withdraw_note(pawli_crash_note *note, uint64_t fence)
{
    if (note != NULL && atomic_load(&note->signal) != 0 && atomic_load(&note->fence) == fence)
        atomic_store(&note->signal, 0);
}

void pawli_crash_mark(pawli_crash_note *note, uint64_t fence)
{
    withdraw_note(here.note, here.fence);
    here.note = NULL; /* a signal in between belongs to no job */
    atomic_signal_fence(memory_order_seq_cst);
    here.fence = fence;
    atomic_signal_fence(memory_order_seq_cst);
    here.note = note;
}

/* --------------------------------------------------------------------------- the handler */

/* Sets the signal of every note; 0: of none. While `readers` says that somebody is here no note goes away. */
static void write_notes(int signal)
{
    pawli_crash_note *mine = here.note;
    if (getpid() != atomic_load(&owner)) /* a forked child: the parent lives */
        return;
    (void)atomic_fetch_add(&readers, 1);
    for (size_t i = 0; i < NOTES_MAX; i++) {
        pawli_crash_note *note = atomic_load(&notes[i]);
        if (note == NULL)
            continue;
        atomic_store(&note->fence, note == mine ? here.fence : 0);
        atomic_store(&note->signal, signal); /* over an older one: that was survived */
    }
    (void)atomic_fetch_sub(&readers, 1);
}

static void on_fatal(int signal, siginfo_t *info, void *context);

void pawl_note_crash(int signal)
{
    write_notes(signal);
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
static void call_handler(const struct sigaction *old, int signal, siginfo_t *info, void *context)
{
    if (((unsigned)old->sa_flags & SA_RESETHAND) != 0)
        (void)sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
    if ((old->sa_flags & SA_SIGINFO) != 0)
        old->sa_sigaction(signal, info, context);
    else
        old->sa_handler(signal);
    if (signal != SIGABRT && is_in_front(signal))
        write_notes(0);
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
    if (has_handler(old)) {
        write_notes(signal);
        call_handler(old, signal, info, context);
    } else if (old->sa_handler == SIG_DFL || !was_sent) {
        write_notes(signal);
        die_by_default(signal, was_sent);
    }
    errno = error;
}

/* --------------------------------------------------------------------------- in and out */

/* Known before it can be needed; and not written again when it is what is known, as a thread may be reading. */
static void learn(size_t i)
{
    struct sigaction now;
    if (sigaction(fatal[i], NULL, &now) == 0
        && (now.sa_flags != before[i].sa_flags || now.sa_sigaction != before[i].sa_sigaction))
        before[i] = now;
}

static void put_handlers(void)
{
    struct sigaction action = { .sa_sigaction = on_fatal, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < FATAL_COUNT; i++) {
        if (in_place[i])
            continue;
        learn(i);
        in_place[i] = sigaction(fatal[i], &action, NULL) == 0;
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

/* In a forked child the notes are the parent's; the handlers are in place. */
static void begin_anew_in_child(void)
{
    if (getpid() == atomic_load(&owner))
        return;
    for (size_t i = 0; i < NOTES_MAX; i++)
        atomic_store(&notes[i], NULL);
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
    atomic_store(&notes[i], note);
    if (note_count++ == 0)
        put_handlers();
    return true;
}

pawl_status pawli_crash_note_add(pawli_crash_note *note)
{
    (void)pthread_mutex_lock(&lock);
    bool added = add(note);
    (void)pthread_mutex_unlock(&lock);
    return added ? PAWL_OK
                 : pawli_fail(PAWL_ERR_FULL, "note_crashes: %d pools of this process have it already; start this "
                                             "one without", NOTES_MAX);
}

void pawli_crash_note_remove(const pawli_crash_note *note)
{
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < NOTES_MAX; i++)
        if (atomic_load(&notes[i]) == note) {
            atomic_store(&notes[i], NULL);
            if (--note_count == 0)
                take_handlers();
        }
    while (atomic_load(&readers) != 0) /* its memory goes next */
        (void)sched_yield();
    (void)pthread_mutex_unlock(&lock);
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
