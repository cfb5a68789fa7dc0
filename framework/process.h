/* process.h - what the kernel tells about another process.
 * Any thread; nothing is opened but /proc and the files of programs. */
#ifndef PAWLI_PROCESS_H
#define PAWLI_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* When it was started, in clock ticks since boot. PAWLI_NO_PROCESS also for one that has ended and was not
 * waited for yet; PAWLI_NOT_KNOWN: it could not be looked up, which is no proof of anything. */
#define PAWLI_NO_PROCESS 0
#define PAWLI_NOT_KNOWN (-1)
int64_t pawli_process_started(int64_t pid);
/* Does that process live, and did it start then? True also if that cannot be told. */
bool pawli_process_is(int64_t pid, int64_t started);

/* Is it stopped, by a signal or by a debugger? False also if that cannot be told. */
bool pawli_process_is_stopped(int64_t pid);

/* How many of the programs and libraries that it has loaded contain this text, and "PATH, PATH"; -1: it
 * cannot be told. */
int pawli_process_count_objects(int64_t pid, const char *text, char *out, size_t capacity);

/* "NAME (pid 12), NAME (pid 34)": the processes, at most five, that have this file open, as far as they
 * can be looked at; without this one. Returns how many there are. */
size_t pawli_process_who_has_open(const struct stat *file, char *out, size_t capacity);

#endif
