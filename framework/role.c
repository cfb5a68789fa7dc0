/* role.c - assertions and thread roles; see role.h. Any thread. */
#include "role.h"

#include <stdio.h>
#include <stdlib.h>

static _Thread_local pawli_role role_now;
static _Thread_local pawl_job *handler_job;

pawli_role pawli_role_now(void)
{
    return role_now;
}

pawli_role pawli_role_set(pawli_role role)
{
    pawli_role before = role_now;
    role_now = role;
    return before;
}

pawl_job *pawli_handler_job(void)
{
    return handler_job;
}

void pawli_handler_job_set(pawl_job *job)
{
    handler_job = job;
}

void pawli_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "pawl: internal error: %s does not hold (%s:%d)\n", condition, file, line);
    abort();
}
