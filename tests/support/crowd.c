/* crowd.c - one of the many processes that share a file in a test; support/child.h starts and hears it.
 *
 *   crowd count DB LOG EXECUTORS JOBS        notes each start in LOG, in binary, and enqueues JOBS beside
 *   crowd open DB BARRIER                    opens DB when the other end of the pipe BARRIER is closed
 *   crowd hold DB read|write                 holds a transaction open from "hold" to "let go"
 *   crowd serve DB LEASE_MS EXECUTORS        runs jobs whose handlers wait for the test, or end at once
 *   crowd storm DB LOG LEASE_MS EXECUTORS    runs jobs that end in every way, and tells LOG
 *   crowd ask DB LOG SEED RATE BYTES         enqueues until it is told "stop", and tells LOG
 *
 * It is linked with clock_shift.c: with PAWL_TEST_CLOCK in its environment the test sets its wall clock. */
#include "crowd.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void crowd_say(const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(3); /* nobody listens */
}

void crowd_must(pawl_status status, const char *what)
{
    if (status >= 0)
        return;
    (void)fprintf(stderr, "crowd: %s: %s: %s\n", what, pawl_status_name(status), pawl_error_message());
    _exit(2);
}

void crowd_give_up(const char *what)
{
    perror(what);
    _exit(2);
}

bool crowd_hear(char *line, size_t capacity)
{
    if (fgets(line, (int)capacity, stdin) == NULL)
        return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

void crowd_await(const char *word)
{
    char line[64];
    while (crowd_hear(line, sizeof line))
        if (strcmp(line, word) == 0)
            return;
    _exit(0);
}

int crowd_log(const char *path)
{
    int log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (log < 0)
        crowd_give_up(path);
    return log;
}

sqlite3 *crowd_connect(const char *path)
{
    sqlite3 *db;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        crowd_give_up(path);
    (void)sqlite3_busy_timeout(db, 20000);
    crowd_sql(db, "PRAGMA wal_autocheckpoint = 0");
    return db;
}

void crowd_sql(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return;
    (void)fprintf(stderr, "crowd: %s: %s\n", sql, sqlite3_errmsg(db));
    _exit(2);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*verb)(int argc, char **argv);
        int arguments;
    } verbs[] = { { "count", crowd_count, 6 }, { "open", crowd_open, 4 },   { "hold", crowd_hold, 4 },
                  { "serve", crowd_serve, 5 }, { "storm", crowd_storm, 6 }, { "ask", crowd_ask, 7 } };
    for (size_t i = 0; argc > 1 && i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(argv[1], verbs[i].name) == 0 && argc == verbs[i].arguments)
            return verbs[i].verb(argc, argv);
    (void)fprintf(stderr, "crowd: see the head of crowd.c for its verbs\n");
    return 2;
}
