/* values.c - numbers, durations and points in time, as a person writes and reads them.
 *
 * No clock, no locale, no I/O; every sum is checked for overflow before it is made. */
#include "values.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool cli_number_parse(const char *text, int64_t min, int64_t max, int64_t *out)
{
    const char *digits = *text == '-' ? text + 1 : text;
    if (!isdigit((unsigned char)*digits)) /* strtoll() would skip spaces */
        return false;
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || number < min || number > max)
        return false;
    *out = number;
    return true;
}

static const struct {
    const char *name;
    int64_t ms;
} units[] = {
    { "d", INT64_C(86400000) }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 },
};
enum { UNIT_COUNT = sizeof units / sizeof *units, UNIT_SECOND = 3 };

/* Takes "12m" off *text and adds it to *ms. Only units from `first` on are allowed; returns the
 * index of the one after it, or -1. */
static int take_part(const char **text, int first, int64_t *ms)
{
    if (!isdigit((unsigned char)**text))
        return -1;
    char *end;
    errno = 0;
    long long number = strtoll(*text, &end, 10);
    size_t letters = strspn(end, "dhms");
    if (errno != 0)
        return -1;
    for (int i = first; i < UNIT_COUNT; i++) {
        if (strlen(units[i].name) != letters || strncmp(units[i].name, end, letters) != 0)
            continue;
        if (number > (INT64_MAX - *ms) / units[i].ms)
            return -1;
        *ms += number * units[i].ms;
        *text = end + letters;
        return i + 1;
    }
    return -1;
}

bool cli_duration_parse(const char *text, int64_t *ms_out)
{
    int64_t ms = 0;
    if (strcmp(text, "0") == 0) {
        *ms_out = 0;
        return true;
    }
    int next = 0;
    do {
        next = take_part(&text, next, &ms);
    } while (next >= 0 && *text != '\0');
    if (next < 0)
        return false;
    *ms_out = ms;
    return true;
}

static void format_duration(int64_t ms, int last_unit, int parts_max, char out[CLI_DURATION_SIZE])
{
    size_t used = 0;
    int parts = 0;
    for (int i = 0; i <= last_unit && parts < parts_max; i++) {
        int64_t number = ms / units[i].ms;
        ms %= units[i].ms;
        parts += parts > 0 || number > 0; /* neighbours: days and hours, not days and seconds */
        if (number > 0)
            used += (size_t)snprintf(out + used, CLI_DURATION_SIZE - used, "%lld%s",
                                     (long long)number, units[i].name);
    }
    if (used == 0)
        (void)snprintf(out, CLI_DURATION_SIZE, "0%s", units[last_unit].name);
}

void cli_duration_format(int64_t ms, char out[CLI_DURATION_SIZE])
{
    if (ms < 0)
        ms = 0;
    format_duration(ms, ms < 1000 ? UNIT_COUNT - 1 : UNIT_SECOND, 2, out);
}

void cli_duration_format_exact(int64_t ms, char out[CLI_DURATION_SIZE])
{
    format_duration(ms, UNIT_COUNT - 1, UNIT_COUNT, out);
}

/* Days since 1970-01-01 in the Gregorian calendar. The year is counted from March, so that the leap
 * day is its last; 719468 is the number of days from 0000-03-01 to 1970-01-01. */
static int64_t days_from_date(int year, int month, int day)
{
    int64_t march_year = month > 2 ? year : year - 1;
    int64_t march_month = (month + 9) % 12;
    return march_year * 365 + march_year / 4 - march_year / 100 + march_year / 400
           + (153 * march_month + 2) / 5 + day - 1 - 719468;
}

static bool is_date(int year, int month, int day)
{
    static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    if (year < 1970 || month < 1 || month > 12 || day < 1)
        return false;
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return day <= lengths[month - 1] + (is_leap && month == 2);
}

/* Takes `before` and then exactly `digits` digits off *text. */
static bool take_digits(const char **text, const char *before, int digits, int *number_out)
{
    const char *at = *text;
    if (*before != '\0' && (*at == '\0' || strchr(before, *at++) == NULL))
        return false;
    int number = 0;
    for (int i = 0; i < digits; i++, at++) {
        if (!isdigit((unsigned char)*at))
            return false;
        number = number * 10 + (*at - '0');
    }
    *text = at;
    *number_out = number;
    return true;
}

bool cli_moment_parse(const char *text, int64_t *ms_out)
{
    int year, month, day, hour = 0, minute = 0, second = 0, ms = 0;
    if (!take_digits(&text, "", 4, &year) || !take_digits(&text, "-", 2, &month)
        || !take_digits(&text, "-", 2, &day) || !is_date(year, month, day))
        return false;
    if (take_digits(&text, " T", 2, &hour)) {
        if (!take_digits(&text, ":", 2, &minute))
            return false;
        if (take_digits(&text, ":", 2, &second))
            (void)take_digits(&text, ".", 3, &ms);
        text += *text == 'Z';
    }
    if (*text != '\0' || hour > 23 || minute > 59 || second > 59)
        return false;
    *ms_out = ((days_from_date(year, month, day) * 24 + hour) * 60 + minute) * 60000
              + second * INT64_C(1000) + ms;
    return true;
}

void cli_moment_format(int64_t ms, char out[CLI_MOMENT_SIZE])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm date;
    if (ms < 0 || ms > CLI_MOMENT_MS_MAX || gmtime_r(&seconds, &date) == NULL) {
        (void)snprintf(out, CLI_MOMENT_SIZE, "(no date: %lld)", (long long)ms);
        return;
    }
    size_t used = strftime(out, CLI_MOMENT_SIZE, "%Y-%m-%d %H:%M:%S", &date);
    (void)snprintf(out + used, CLI_MOMENT_SIZE - used, ".%03d", (int)(ms % 1000));
}
