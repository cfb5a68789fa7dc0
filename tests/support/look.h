/* look.h - formatted looks into the database and changes of it, each in a connection of its own, and
 * the recount behind I20. In the test's own thread, as all of check.h. */
#ifndef TESTS_LOOK_H
#define TESTS_LOOK_H

#include <stddef.h>
#include <stdint.h>

/* The first value of the first row; there must be one. */
int64_t look(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Its text, clipped; "" for NULL. */
const char *look_text(const char *path, char *out, size_t capacity, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void change(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Fails unless every counter of every lane equals a recount (I20). */
void assert_counters_are_right(const char *path);

#endif
