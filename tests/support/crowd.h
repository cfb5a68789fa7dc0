/* crowd.h - what the verbs of crowd.c share: how they speak, and how they give up. */
#ifndef TESTS_CROWD_H
#define TESTS_CROWD_H

#include <pawl/pawl.h>

#include <stdbool.h>
#include <stddef.h>

struct sqlite3;

/* One write a line: the lines of several threads do not mix, and nothing stays in a buffer. */
void crowd_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the process with the message unless the status is a success. */
void crowd_must(pawl_status status, const char *what);
void crowd_give_up(const char *what);
/* The next line on standard input, without its end; false when the test has closed it. */
bool crowd_hear(char *line, size_t capacity);
void crowd_await(const char *word); /* reads on to that line; at the end of the input the process ends */
/* Opens the log that all processes of a test append to. */
int crowd_log(const char *path);
struct sqlite3 *crowd_connect(const char *path);
void crowd_sql(struct sqlite3 *db, const char *sql);

/* The verbs; each is a main(). */
int crowd_count(int argc, char **argv);
int crowd_open(int argc, char **argv);
int crowd_hold(int argc, char **argv);
int crowd_serve(int argc, char **argv);
int crowd_storm(int argc, char **argv);
int crowd_ask(int argc, char **argv);

#endif
