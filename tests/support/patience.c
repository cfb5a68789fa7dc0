/* patience.c - see patience.h. */
#include "patience.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int64_t steady_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void nap_ms(int64_t ms)
{
    (void)nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000 }, NULL);
}

void nap_us(int64_t us)
{
    (void)nanosleep(&(struct timespec){ .tv_sec = us / 1000000, .tv_nsec = (us % 1000000) * 1000 }, NULL);
}

bool eventually(bool (*is_so)(void *arg), void *arg, int64_t limit_ms)
{
    int64_t end = steady_ms() + limit_ms;
    while (!is_so(arg)) {
        if (steady_ms() >= end)
            return is_so(arg);
        nap_ms(5);
    }
    return true;
}

uint64_t next_random(uint64_t *seed)
{
    *seed += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = *seed;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint64_t test_seed(void)
{
    const char *given = getenv("PAWL_TEST_SEED");
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10)
                                  : (uint64_t)now.tv_sec * 1000003u ^ (uint64_t)now.tv_nsec;
    (void)printf("seed: PAWL_TEST_SEED=%" PRIu64 "\n", seed);
    (void)fflush(stdout);
    return seed;
}
