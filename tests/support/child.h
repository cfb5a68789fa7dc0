/* child.h - worker processes of a test: started, listened to, stopped by their own pid. */
#ifndef TESTS_CHILD_H
#define TESTS_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct child {
    pid_t pid;    /* 0: none, or reaped */
    int to;       /* its standard input; -1: closed */
    int from;     /* its standard output */
    char text[4096];
    size_t bytes; /* of `text`: what was read and not asked for yet */
} child;

/* Starts the program of worker.c with these arguments; NULL ends them. */
void child_start(child *c, const char *const *arguments);
/* The same with that of crowd.c. */
void child_join(child *c, const char *const *arguments);
/* Another one; found by PATH. */
void child_start_program(child *c, const char *program, const char *const *arguments);
/* The next line that it says, within the time: false if there is none. */
bool child_line(child *c, char *line, size_t capacity, int64_t limit_ms);
/* Reads on to a line that begins so. */
bool child_says(child *c, const char *beginning, char *line, size_t capacity, int64_t limit_ms);
void child_tell(child *c, const char *line);
/* Sends the signal to it alone. */
void child_signal(const child *c, int signal);
/* Freezes it, outside of any transaction on the file: a frozen writer stops everybody. */
void child_freeze(child *c, const char *path);
/* Waits until it has stopped. False: inside of a transaction; it goes on. */
bool child_is_frozen(child *c, const char *path);
/* kill -9, and waits for its end without reaping it, or with. */
void child_kill(child *c);
void child_kill_unreaped(child *c);
/* Reaps it; its wait status. */
int child_reap(child *c);
void child_close(child *c); /* kills what is left; safe to call again */

#endif
