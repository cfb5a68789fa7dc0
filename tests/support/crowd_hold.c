/* crowd_hold.c - crowd open: a first open among many; crowd hold: a transaction that is kept open. */
#include "crowd.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The end of a pipe that nobody writes to: it is read by all, and all are let go in the same moment. */
static void wait_at(const char *barrier)
{
    char byte;
    int end = open(barrier, O_RDONLY | O_CLOEXEC);
    if (end < 0)
        crowd_give_up(barrier); /* does not return */
    crowd_say("ready\n");
    /* cppcheck-suppress invalidFunctionArg */
    if (read(end, &byte, 1) != 0)
        crowd_give_up(barrier);
    (void)close(end);
}

int crowd_open(int argc, char **argv)
{
    pawl_pool *pool;
    int64_t id = 0;
    (void)argc;
    wait_at(argv[3]);
    pawl_status st = pawl_open(PAWL_OPTIONS(.store = argv[2], .store_timeout_ms = 30000), &pool);
    crowd_say("opened %s %s\n", pawl_status_name(st), st < 0 ? pawl_error_message() : "");
    crowd_must(st, "open");
    crowd_must(pawl_enqueue(pool, PAWL_JOB(.kind = "first"), &id), "enqueue");
    crowd_must(pawl_start(pool), "start");
    crowd_say("enqueued %" PRId64 "\n", id);
    crowd_await("stop");
    crowd_must(pawl_close(pool), "close");
    return 0;
}

int crowd_hold(int argc, char **argv)
{
    (void)argc;
    bool writes = strcmp(argv[3], "write") == 0;
    sqlite3 *db = crowd_connect(argv[2]);
    crowd_say("ready\n");
    for (;;) {
        crowd_await("hold");
        crowd_sql(db, writes ? "BEGIN IMMEDIATE" : "BEGIN; SELECT count(*) FROM pawl_meta");
        crowd_say("held\n");
        crowd_await("let go");
        crowd_sql(db, "ROLLBACK");
        crowd_say("free\n");
    }
}
