/* retry.h - how long to wait after a failure, in saturating integers (T2). */
#ifndef PAWLI_RETRY_H
#define PAWLI_RETRY_H

#include <stddef.h>
#include <stdint.h>

/* A list of delays, or an exponential one when `count` is 0. */
typedef struct pawli_backoff {
    const int64_t *steps_ms; /* the last repeats */
    size_t count;
    int64_t first_ms;
    uint32_t percent;
    int64_t max_ms;
} pawli_backoff;

extern const pawli_backoff pawli_backoff_default; /* 10 s, 30 s, 2 min, 5 min */

/* The delay after failure number `failure` (from 1), without jitter. At least 1 ms. */
int64_t pawli_backoff_delay(const pawli_backoff *backoff, uint32_t failure);
/* Adds up to 10 %; `random` is any number. */
int64_t pawli_backoff_jitter(int64_t delay_ms, uint64_t random);

/* A small generator of such numbers (splitmix64). */
uint64_t pawli_random_next(uint64_t *state);

#endif
