/* phrase.h - times and durations as a person reads them in a sentence. */
#ifndef PAWLI_PHRASE_H
#define PAWLI_PHRASE_H

#include <stdint.h>

enum { PAWLI_PHRASE_BYTES = 64 };

/* "2030-01-31 18:00:00 UTC" */
const char *pawli_phrase_moment(int64_t ms, char out[PAWLI_PHRASE_BYTES]);
/* The largest unit and the one below it: "3 m 20 s", "2 d 4 h", "850 ms". Negative reads as zero. */
const char *pawli_phrase_duration(int64_t ms, char out[PAWLI_PHRASE_BYTES]);
/* "12 KiB", "3 MiB" */
const char *pawli_phrase_bytes(uint64_t bytes, char out[PAWLI_PHRASE_BYTES]);

#endif
