/* patience.h - time and chance in tests: waiting for what can only be looked at, and a printed seed. */
#ifndef TESTS_PATIENCE_H
#define TESTS_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

int64_t steady_ms(void);
void nap_ms(int64_t ms);
void nap_us(int64_t us);
/* Asks again and again until the answer is yes, or the time is over; tells which. */
bool eventually(bool (*is_so)(void *arg), void *arg, int64_t limit_ms);

/* A small generator: the same seed gives the same run. */
uint64_t next_random(uint64_t *seed);
/* PAWL_TEST_SEED, or one by the clock; printed, so that a failed run can be repeated. */
uint64_t test_seed(void);

#endif
