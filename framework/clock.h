/* clock.h - the pool's time source: the system's clocks, or a virtual one for inline pools.
 *
 * Three clocks, one use each (T1, R13): wall for what is stored and shown, monotonic for waits and
 * durations, boot time for leases (it counts suspends, and nobody can set it; without the offset of a time
 * namespace, so that all pools of a kernel share it). */
#ifndef PAWLI_CLOCK_H
#define PAWLI_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define PAWLI_NS_PER_MS INT64_C(1000000)
#define PAWLI_NEVER INT64_MAX

/* The latest time that the store accepts: 9999-12-31 23:59:59.999 UTC. */
#define PAWLI_TIME_MAX_MS INT64_C(253402300799999)

typedef struct pawli_clock {
    /* Set at init, then read-only. */
    bool is_virtual;
    int64_t wall_start_ms, steady_start_ns, boot_start_ms;
    int64_t boot_offset_ns; /* of this time namespace's boot clock */
    /* Any thread. */
    _Atomic int64_t advanced_ms;
} pawli_clock;

void pawli_clock_init(pawli_clock *clock, bool is_virtual);
void pawli_clock_advance(pawli_clock *clock, int64_t ms); /* virtual clocks only */
int64_t pawli_clock_wall_ms(const pawli_clock *clock);
int64_t pawli_clock_steady_ns(const pawli_clock *clock);
int64_t pawli_clock_boot_ms(const pawli_clock *clock);

/* The time of day where no pool is. */
int64_t pawli_wall_now_ms(void);
/* How far the boot clock is ahead here of the kernel's own: other than 0 in a time namespace. False: it could not
 * be looked up. */
bool pawli_clock_boot_offset_ns(int64_t *ns);

/* The system's monotonic clock, for waits that are real even when the pool's clock is virtual. */
int64_t pawli_steady_now_ns(void);

int64_t pawli_earlier(int64_t a, int64_t b);

/* Sums that stop at the ends of the range (T2). */
int64_t pawli_add(int64_t a, int64_t b);
int64_t pawli_ms_to_ns(int64_t ms);
struct timespec pawli_timespec(int64_t ns);

#endif
