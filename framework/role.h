/* role.h - assertions that stay in release builds, and which part of pawl a thread is playing.
 *
 * Threads: a role is the calling thread's own. The writer's role belongs to the writer thread while
 * it runs; otherwise a caller takes it under the pool's mutex (writer.c). */
#ifndef PAWLI_ROLE_H
#define PAWLI_ROLE_H

#include <pawl/pawl.h>

typedef enum pawli_role {
    PAWLI_ROLE_CALLER = 0, /* a thread of the application */
    PAWLI_ROLE_WRITER,     /* may open a write transaction */
    PAWLI_ROLE_APPLY,      /* the writer, inside an application's on_success function */
    PAWLI_ROLE_EXECUTOR,
    PAWLI_ROLE_LOOP
} pawli_role;

pawli_role pawli_role_now(void);
/* Returns the role before, to be set again afterwards. */
pawli_role pawli_role_set(pawli_role role);

/* The job whose handler runs on this thread, or NULL. */
pawl_job *pawli_handler_job(void);
void pawli_handler_job_set(pawl_job *job);

_Noreturn void pawli_assert_failed(const char *condition, const char *file, int line);

/* Our own mistake, never the caller's: going on could lose a job. */
#define PAWLI_ASSERT(condition)                                                                    \
    ((condition) ? (void)0 : pawli_assert_failed(#condition, __FILE__, __LINE__))
#define PAWLI_ASSERT_ROLE(role) PAWLI_ASSERT(pawli_role_now() == (role))

#endif
