/* text.c - UTF-8 checked, cleaned and escaped; see text.h. Pure: no I/O, no lock. */
#include "text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* How a first byte constrains its character (Unicode 15, table 3-7). */
static size_t first_byte(unsigned char byte, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xBF;
    if (byte < 0x80)
        return 1;
    if (byte < 0xC2 || byte > 0xF4)
        return 0;
    if (byte == 0xE0)
        *low = 0xA0; /* no overlong forms */
    else if (byte == 0xED)
        *high = 0x9F; /* no surrogates */
    else if (byte == 0xF0)
        *low = 0x90;
    else if (byte == 0xF4)
        *high = 0x8F; /* nothing beyond U+10FFFF */
    return byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

size_t pawli_utf8_step(const char *text, size_t bytes)
{
    if (bytes == 0)
        return 0;
    unsigned char low, high;
    size_t length = first_byte((unsigned char)text[0], &low, &high);
    if (length == 0 || length > bytes)
        return 0;
    for (size_t i = 1; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < low || byte > high)
            return 0;
        low = 0x80;
        high = 0xBF;
    }
    return length;
}

/* U+FFFE and U+FFFF, no characters: SQLite makes U+FFFD of them where the database stores its text as UTF-16, and
 * so one of all three. */
static bool is_changed_by_utf16(const char *text, size_t step)
{
    return step == 3 && memcmp(text, "\xEF\xBF", 2) == 0 && (unsigned char)text[2] >= 0xBE;
}

bool pawli_text_storable(const char *text, size_t bytes)
{
    for (size_t at = 0, step; at < bytes; at += step) {
        step = text[at] == '\0' ? 0 : pawli_utf8_step(text + at, bytes - at);
        if (step == 0 || is_changed_by_utf16(text + at, step))
            return false;
    }
    return true;
}

/* C0, DEL, and C1 (U+0080 … U+009F), which some terminals obey as well. */
static bool is_control(const char *text, size_t step)
{
    unsigned char first = (unsigned char)text[0];
    if (step == 1)
        return first < 0x20 || first == 0x7F;
    return step == 2 && first == 0xC2 && (unsigned char)text[1] < 0xA0;
}

bool pawli_name_valid(const char *name)
{
    size_t bytes = strnlen(name, PAWLI_NAME_BYTES_MAX + 1);
    if (bytes == 0 || bytes > PAWLI_NAME_BYTES_MAX)
        return false;
    for (size_t at = 0, step; at < bytes; at += step) {
        step = pawli_utf8_step(name + at, bytes - at);
        if (step == 0 || is_control(name + at, step) || is_changed_by_utf16(name + at, step))
            return false;
    }
    return true;
}

size_t pawli_text_clean(char *out, size_t capacity, const char *text, size_t bytes)
{
    static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */
    size_t used = 0;
    for (size_t at = 0; at < bytes;) {
        size_t step = text[at] == '\0' ? 0 : pawli_utf8_step(text + at, bytes - at);
        const char *from = step > 0 ? text + at : replacement;
        size_t length = step > 0 ? step : sizeof replacement - 1;
        if (used + length >= capacity)
            break;
        memcpy(out + used, from, length);
        used += length;
        at += step > 0 ? step : 1;
    }
    out[used] = '\0';
    return used;
}

size_t pawli_text_escape(char *out, size_t capacity, const char *text, size_t bytes)
{
    size_t used = 0;
    for (size_t at = 0; at < bytes;) {
        size_t step = pawli_utf8_step(text + at, bytes - at);
        if (step > 0 && is_control(text + at, step))
            step = 0;
        if (used + (step > 0 ? step : 4) >= capacity)
            break;
        if (step > 0)
            memcpy(out + used, text + at, step);
        else
            (void)snprintf(out + used, capacity - used, "\\x%02X", (unsigned char)text[at]);
        used += step > 0 ? step : 4;
        at += step > 0 ? step : 1;
    }
    out[used] = '\0';
    return used;
}

/* What no shell gives a meaning to, wherever it stands in a word; a "-" at the beginning is an option's. */
static bool is_plain_word(const char *text)
{
    return text[0] != '\0' && text[0] != '-'
           && text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+,:@%-")] == '\0';
}

static const char not_shown[] = "\xE2\x80\xA6"; /* half a name may be another's */

const char *pawli_text_word(char out[PAWLI_WORD_BYTES], const char *text)
{
    char shown[PAWLI_WORD_BYTES / 2];
    size_t bytes = pawli_text_escape(shown, sizeof shown, text, strlen(text)), used = 0;
    bool fits = bytes + 5 < sizeof shown;
    if (fits && is_plain_word(shown)) {
        (void)snprintf(out, PAWLI_WORD_BYTES, "%s", shown);
        return out;
    }
    out[used++] = '\'';
    for (size_t i = 0; i < bytes && (fits = fits && used + 6 < PAWLI_WORD_BYTES); i++) {
        if (shown[i] == '\'') { /* ends the quotes, stands by itself, begins them again */
            out[used++] = '\'';
            out[used++] = '\\';
            out[used++] = '\'';
        }
        out[used++] = shown[i];
    }
    memcpy(out + used, "'", 2);
    return fits ? out : memcpy(out, not_shown, sizeof not_shown);
}
