/* consumer.c - the smallest application: one handler, one job, done. Built against what was installed.
 * Its argument is the path of the database. */
#include <pawl/pawl.h>
#include <stdio.h>

static int greet(pawl_job *job, void *arg)
{
    int *greeted = arg;
    (*greeted)++;
    printf("hello, %s\n", (const char *)pawl_job_payload(job, NULL));
    return PAWL_SUCCEEDED;
}

int main(int argc, char **argv)
{
    int greeted = 0;
    pawl_pool *pool = NULL;
    if (argc == 2 && pawl_open(PAWL_OPTIONS(.store = argv[1]), &pool) == PAWL_OK &&
        pawl_register(pool, "greet", greet, &greeted, NULL) == PAWL_OK &&
        pawl_start(pool) == PAWL_OK &&
        pawl_enqueue(pool, PAWL_JOB(.kind = "greet", .payload = "C", .payload_bytes = 1), NULL) ==
            PAWL_OK &&
        pawl_wait_idle(pool, 10000) == PAWL_OK && pawl_close(pool) == PAWL_OK && greeted == 1)
        return 0;
    fprintf(stderr, "consumer: greeted %d times; %s\n", greeted, pawl_error_message());
    return 1;
}
