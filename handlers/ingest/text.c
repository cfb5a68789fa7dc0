/* text.c - bytes and numbers made fit for a person's eyes.
 *
 * A file's name is any bytes but '/' and NUL: it may hold a newline that forges a line of output,
 * an escape sequence that takes over the terminal, or bytes that are no UTF-8. So every path goes
 * through text_escape() before it is shown. Numbers do not depend on the locale. */
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The length of the character that begins here, or 0 if none does. Refused, as by RFC 3629:
 * overlong forms, surrogates, and what lies beyond U+10FFFF. */
static size_t character_length(const unsigned char *at, size_t left)
{
    unsigned lead = at[0];
    if (lead < 0x80)
        return 1;
    size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || left < length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (lead == 0xe0 && at[1] < 0xa0) || (lead == 0xf0 && at[1] < 0x90);
    bool outside = (lead == 0xed && at[1] > 0x9f) || (lead == 0xf4 && at[1] > 0x8f);
    return overlong || outside ? 0 : length;
}

bool text_is_utf8(const char *bytes, size_t count)
{
    const unsigned char *at = (const unsigned char *)bytes;
    for (size_t i = 0; i < count;) {
        size_t length = character_length(at + i, count - i);
        if (length == 0)
            return false;
        i += length;
    }
    return true;
}

/* C0, DEL, and C1, whose characters are C2 80 to C2 9F: all of them steer a terminal. */
static bool is_control(const unsigned char *at, size_t length)
{
    return (length == 1 && (at[0] < 0x20 || at[0] == 0x7f)) ||
           (length == 2 && at[0] == 0xc2 && at[1] < 0xa0);
}

/* The byte as C would write it; returns how many characters that took, at most 4. */
static size_t escape_byte(unsigned char byte, char *out)
{
    static const char hex[] = "0123456789abcdef";
    out[0] = '\\';
    switch (byte) {
    case '\n':
        out[1] = 'n';
        return 2;
    case '\t':
        out[1] = 't';
        return 2;
    case '\\':
        out[1] = '\\';
        return 2;
    default:
        out[1] = 'x';
        out[2] = hex[byte >> 4];
        out[3] = hex[byte & 15];
        return 4;
    }
}

char *text_escape(const char *bytes, size_t count)
{
    const unsigned char *at = (const unsigned char *)bytes;
    char *text = malloc(4 * count + 1);
    if (text == NULL)
        return NULL;
    size_t end = 0;
    for (size_t i = 0; i < count;) {
        size_t length = character_length(at + i, count - i);
        bool plain = length > 0 && !is_control(at + i, length) && at[i] != '\\';
        if (plain) {
            memcpy(text + end, at + i, length);
            end += length;
            i += length;
        } else {
            end += escape_byte(at[i++], text + end);
        }
    }
    text[end] = '\0';
    return text;
}

const char *text_number(int64_t number, char out[TEXT_NUMBER_MAX])
{
    char digits[TEXT_NUMBER_MAX];
    int count = snprintf(digits, sizeof digits, "%" PRId64, number);
    size_t end = 0;
    for (int i = 0; i < count; i++) {
        out[end++] = digits[i];
        if (digits[i] != '-' && i + 1 < count && (count - 1 - i) % 3 == 0)
            out[end++] = ',';
    }
    out[end] = '\0';
    return out;
}

const char *text_size(double bytes, char out[TEXT_NUMBER_MAX])
{
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
    size_t unit = 0;
    while (bytes >= 999.95 && unit + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1000;
        unit++;
    }
    (void)snprintf(out, TEXT_NUMBER_MAX, "%.*f %s", unit > 0, bytes, units[unit]);
    return out;
}

const char *text_clock(int64_t seconds, char out[TEXT_NUMBER_MAX])
{
    int64_t hours = seconds / 3600;
    int minutes = (int)(seconds / 60 % 60), rest = (int)(seconds % 60);
    if (hours > 0)
        (void)snprintf(out, TEXT_NUMBER_MAX, "%" PRId64 ":%02d:%02d", hours, minutes, rest);
    else
        (void)snprintf(out, TEXT_NUMBER_MAX, "%d:%02d", minutes, rest);
    return out;
}
