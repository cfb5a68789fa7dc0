/* thread.c - starting a thread as a good guest; see thread.h. */
#include "thread.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "status.h"

/* What a fault sends must be open, also where the starter has blocked all there is, to wait for signals in one thread
 * (sigwait): a fault whose signal is blocked kills at once, past the host's crash handler (G1), and unnoted. */
static void asynchronous_signals(sigset_t *set)
{
    static const int synchronous[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
    (void)sigfillset(set);
    for (size_t i = 0; i < sizeof synchronous / sizeof synchronous[0]; i++)
        (void)sigdelset(set, synchronous[i]);
}

pawl_status pawli_thread_start(pthread_t *thread, size_t stack_bytes, void *(*main)(void *), void *arg)
{
    pthread_attr_t attributes;
    sigset_t blocked;
    int error = pthread_attr_init(&attributes);
    if (error != 0)
        return pawli_fail(PAWL_ERR_NOMEM, "cannot start a thread: %s", strerror(error));
    (void)pthread_attr_setstacksize(&attributes, stack_bytes);
    asynchronous_signals(&blocked);
    (void)pthread_attr_setsigmask_np(&attributes, &blocked); /* the starter's own stays as it is */
    error = pthread_create(thread, &attributes, main, arg);
    (void)pthread_attr_destroy(&attributes);
    if (error != 0)
        return pawli_fail(PAWL_ERR_NOMEM, "cannot start a thread: %s; lower executors, or raise the "
                                          "limit (ulimit -u)", strerror(error));
    return PAWL_OK;
}

void pawli_thread_name(const char *format, ...)
{
    char name[16]; /* the kernel's limit */
    va_list args;
    va_start(args, format);
    (void)vsnprintf(name, sizeof name, format, args);
    va_end(args);
    (void)pthread_setname_np(pthread_self(), name);
}
