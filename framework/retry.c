/* retry.c - backoff arithmetic; see retry.h. Pure: no clock, no lock. */
#include "retry.h"

#include "clock.h"

static const int64_t default_steps_ms[] = { 10000, 30000, 120000, 300000 };

const pawli_backoff pawli_backoff_default = {
    .steps_ms = default_steps_ms,
    .count = sizeof default_steps_ms / sizeof default_steps_ms[0],
};

static int64_t clamp(int64_t delay_ms)
{
    if (delay_ms < 1)
        return 1; /* never a hot loop of retries */
    return delay_ms < PAWLI_TIME_MAX_MS ? delay_ms : PAWLI_TIME_MAX_MS;
}

/* delay × percent ÷ 100 without overflow: what does not fit is over any cap. */
static int64_t scale(int64_t delay_ms, uint32_t percent)
{
    int64_t product;
    if (__builtin_mul_overflow(delay_ms, (int64_t)percent, &product))
        return PAWLI_TIME_MAX_MS;
    return product / 100 + (product % 100 != 0); /* up, so that 1 ms grows too */
}

static int64_t exponential(const pawli_backoff *backoff, uint32_t failure)
{
    int64_t delay = backoff->first_ms;
    for (uint32_t i = 1; i < failure; i++) {
        int64_t next = scale(delay, backoff->percent);
        if (next == delay || delay >= backoff->max_ms || delay >= PAWLI_TIME_MAX_MS)
            break; /* it will not grow any more */
        delay = next;
    }
    return delay < backoff->max_ms ? delay : backoff->max_ms;
}

int64_t pawli_backoff_delay(const pawli_backoff *backoff, uint32_t failure)
{
    if (failure == 0)
        failure = 1;
    if (backoff->count == 0)
        return clamp(exponential(backoff, failure));
    size_t step = failure - 1 < backoff->count ? failure - 1 : backoff->count - 1;
    return clamp(backoff->steps_ms[step]);
}

int64_t pawli_backoff_jitter(int64_t delay_ms, uint64_t random)
{
    uint64_t spread = (uint64_t)clamp(delay_ms) / 10 + 1;
    return clamp(clamp(delay_ms) + (int64_t)(random % spread));
}

uint64_t pawli_random_next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}
