/* thread.h - starting a thread as a good guest: own stack, asynchronous signals blocked, a name (G1). */
#ifndef PAWLI_THREAD_H
#define PAWLI_THREAD_H

#include <pawl/pawl.h>

#include <pthread.h>

#define PAWLI_STACK_BYTES (512 << 10) /* of the writer and the loop */

pawl_status pawli_thread_start(pthread_t *thread, size_t stack_bytes, void *(*main)(void *), void *arg);
void pawli_thread_name(const char *format, ...) PAWL_PRINTF(1, 2); /* of the calling thread */

#endif
