/* text.h - bytes and numbers made fit for a person's eyes. Pure functions, any thread. */
#ifndef INGEST_TEXT_H
#define INGEST_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEXT_NUMBER_MAX = 32 }; /* room for any number that is written here */

/** Is this valid UTF-8? */
bool text_is_utf8(const char *bytes, size_t count);

/** A copy for the terminal, to be freed: control bytes and invalid UTF-8 become \n, \x1b, …
 *  NULL: no memory. */
char *text_escape(const char *bytes, size_t count);

/* Each writes into `out` and returns it. */
const char *text_number(int64_t number, char out[TEXT_NUMBER_MAX]); /* 12,345 */
const char *text_size(double bytes, char out[TEXT_NUMBER_MAX]);     /* 12.3 MB */
const char *text_clock(int64_t seconds, char out[TEXT_NUMBER_MAX]); /* 1:05 or 2:01:05 */

#endif
