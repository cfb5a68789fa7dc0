/* mailer.c - the application that the SQL clients' jobs are for: a pool that serves the kind "mail".
 *
 *   mailer DB
 *
 * It says "ready", then "mail ID PAYLOAD" for each job that it runs. An address that begins with "bounce" fails.
 * It ends when its standard input does. */
#include <pawl/pawl.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int mail(pawl_job *job, void *arg)
{
    const char *address = pawl_job_payload(job, NULL);
    (void)arg;
    (void)printf("mail %" PRId64 " %s\n", pawl_job_id(job), address);
    (void)fflush(stdout);
    if (strncmp(address, "bounce", 6) != 0)
        return PAWL_SUCCEEDED;
    pawl_job_error(job, "no such mailbox");
    return PAWL_FAILED;
}

static int fail(void)
{
    (void)fprintf(stderr, "mailer: %s\n", pawl_error_message());
    return 1;
}

int main(int argc, char **argv)
{
    pawl_pool *pool;
    if (argc != 2 || pawl_open(PAWL_OPTIONS(.store = argv[1], .executors = 1), &pool) != PAWL_OK
        || pawl_register(pool, "mail", mail, NULL, NULL) != PAWL_OK || pawl_start(pool) != PAWL_OK)
        return fail();
    (void)printf("ready\n");
    (void)fflush(stdout);
    while (getchar() != EOF) { /* whoever holds the other end ends it */
    }
    return pawl_close(pool) == PAWL_OK ? 0 : fail();
}
