/* phrase.c - times, durations and sizes as a person reads them in a sentence.
 * Pure: no clock, no locale, no I/O. Any thread. */
#include "phrase.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "clock.h"

const char *pawli_phrase_moment(int64_t ms, char out[PAWLI_PHRASE_BYTES])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm date;
    if (ms < 0 || ms > PAWLI_TIME_MAX_MS || gmtime_r(&seconds, &date) == NULL
        || strftime(out, PAWLI_PHRASE_BYTES, "%Y-%m-%d %H:%M:%S UTC", &date) == 0)
        (void)snprintf(out, PAWLI_PHRASE_BYTES, "(no date: %" PRId64 ")", ms);
    return out;
}

const char *pawli_phrase_duration(int64_t ms, char out[PAWLI_PHRASE_BYTES])
{
    static const struct {
        const char *large, *small;
        int64_t large_ms, small_ms;
    } units[] = {
        { "d", "h", 86400000, 3600000 }, { "h", "m", 3600000, 60000 }, { "m", "s", 60000, 1000 },
    };
    ms = ms < 0 ? 0 : ms;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (ms < units[i].large_ms)
            continue;
        int64_t rest = ms % units[i].large_ms / units[i].small_ms;
        int used = snprintf(out, PAWLI_PHRASE_BYTES, "%" PRId64 " %s", ms / units[i].large_ms, units[i].large);
        if (rest > 0)
            (void)snprintf(out + used, PAWLI_PHRASE_BYTES - (size_t)used, " %" PRId64 " %s", rest,
                           units[i].small);
        return out;
    }
    if (ms < 1000)
        (void)snprintf(out, PAWLI_PHRASE_BYTES, "%" PRId64 " ms", ms);
    else
        (void)snprintf(out, PAWLI_PHRASE_BYTES, "%" PRId64 " s", ms / 1000);
    return out;
}

const char *pawli_phrase_bytes(uint64_t bytes, char out[PAWLI_PHRASE_BYTES])
{
    static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
    size_t unit = 0;
    while (bytes >= 10240 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1024;
        unit++;
    }
    (void)snprintf(out, PAWLI_PHRASE_BYTES, "%" PRIu64 " %s", bytes, units[unit]);
    return out;
}
