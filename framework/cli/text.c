/* text.c - bytes from elsewhere made fit for a terminal, and measured.
 *
 * UTF-8 is decoded here, not by mbrtowc(): that depends on the locale, and the answer must not. */
#include "text.h"

#include "message.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct range {
    uint32_t first;
    uint32_t last;
} range;

/* Characters that reorder, hide or break text: a job's name must not look like another's. */
static const range hidden[] = {
    { 0x0000, 0x001F }, { 0x007F, 0x009F }, { 0x00AD, 0x00AD }, { 0x061C, 0x061C },
    { 0x115F, 0x1160 }, { 0x17B4, 0x17B5 }, { 0x180E, 0x180E }, { 0x200B, 0x200B },
    { 0x200E, 0x200F }, { 0x2028, 0x202E }, { 0x2060, 0x206F }, { 0x3164, 0x3164 },
    { 0xFEFF, 0xFEFF }, { 0xFFA0, 0xFFA0 }, { 0xFFF9, 0xFFFB }, { 0xE0000, 0xE0FFF },
};

/* Marks that join the character before them. */
static const range joining[] = {
    { 0x0300, 0x036F }, { 0x200C, 0x200D }, { 0x20D0, 0x20FF }, { 0xFE00, 0xFE0F },
};

/* Characters two cells wide: East Asian scripts and pictures. */
static const range wide[] = {
    { 0x1100, 0x115F }, { 0x2E80, 0x303E }, { 0x3041, 0xA4CF }, { 0xAC00, 0xD7A3 },
    { 0xF900, 0xFAFF }, { 0xFE30, 0xFE6F }, { 0xFF00, 0xFF60 }, { 0xFFE0, 0xFFE6 },
    { 0x1F300, 0x1F64F }, { 0x1F680, 0x1F6FF }, { 0x1F900, 0x1F9FF }, { 0x20000, 0x3FFFD },
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static bool is_in(const range *ranges, size_t count, uint32_t character)
{
    for (size_t i = 0; i < count; i++)
        if (character >= ranges[i].first && character <= ranges[i].last)
            return true;
    return false;
}

/* How many bytes the character that begins with `lead` has, and the smallest one of that length;
 * 0: no character begins so. */
static size_t length_of(unsigned char lead, uint32_t *smallest_out)
{
    *smallest_out = lead < 0x80 ? 0 : lead < 0xE0 ? 0x80 : lead < 0xF0 ? 0x800 : 0x10000;
    if (lead < 0x80)
        return 1;
    if (lead < 0xC2 || lead > 0xF4)
        return 0;
    return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

/* Reads one character; returns its length in bytes, 0 if there is no valid one. */
static size_t decode(const unsigned char *bytes, size_t count, uint32_t *character_out)
{
    uint32_t smallest;
    size_t length = length_of(bytes[0], &smallest);
    if (length == 0 || length > count)
        return 0;
    uint32_t character = length == 1 ? bytes[0] : bytes[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xC0) != 0x80)
            return 0;
        character = character << 6 | (bytes[i] & 0x3Fu);
    }
    bool is_surrogate = character >= 0xD800 && character <= 0xDFFF;
    if (character < smallest || character > 0x10FFFF || is_surrogate)
        return 0;
    *character_out = character;
    return length;
}

static void write_hidden(FILE *out, uint32_t character)
{
    if (character == '\n' || character == '\t' || character == '\r')
        fprintf(out, "\\%c", character == '\n' ? 'n' : character == '\t' ? 't' : 'r');
    else
        fprintf(out, character < 0x80 ? "\\x%02x" : "\\u{%x}", (unsigned)character);
}

void cli_text_write(FILE *out, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    const unsigned char *end = at + count;
    while (at < end) {
        uint32_t character = 0;
        size_t length = decode(at, (size_t)(end - at), &character);
        if (length == 0)
            fprintf(out, "\\x%02x", *at);
        else if (is_in(hidden, COUNT_OF(hidden), character))
            write_hidden(out, character);
        else
            (void)fwrite(at, 1, length, out);
        at += length == 0 ? 1 : length;
    }
}

char *cli_text_escape(const void *bytes, size_t count)
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *memory = open_memstream(&text, &text_bytes);
    if (memory == NULL)
        cli_out_of_memory();
    cli_text_write(memory, bytes, count);
    /* cppcheck-suppress nullPointerRedundantCheck ; cli_out_of_memory() does not return */
    if (fclose(memory) != 0 || text == NULL)
        cli_out_of_memory();
    return text;
}

/* What no shell gives a meaning to, wherever it stands in a word; a "-" at the beginning is an option's. */
static bool is_plain_word(const char *text)
{
    return text[0] != '\0' && text[0] != '-'
           && text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+,:@%-")]
                  == '\0';
}

char *cli_text_word(const char *text)
{
    size_t bytes = strlen(text);
    char *word = malloc(4 * bytes + 3);
    if (word == NULL)
        cli_out_of_memory();
    if (is_plain_word(text))
        return memcpy(word, text, bytes + 1);
    char *to = word;
    *to++ = '\'';
    for (; *text != '\0'; text++) {
        if (*text == '\'') { /* ends the quotes, stands by itself, begins them again */
            memcpy(to, "'\\'", 3);
            to += 3;
        }
        *to++ = *text;
    }
    memcpy(to, "'", 2);
    return word;
}

static size_t cells_of(uint32_t character)
{
    if (is_in(joining, COUNT_OF(joining), character))
        return 0;
    return is_in(wide, COUNT_OF(wide), character) ? 2 : 1;
}

size_t cli_text_fit(const char *text, size_t width, size_t *used_out)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t count = strlen(text);
    size_t at = 0;
    size_t used = 0;
    while (at < count) {
        uint32_t character = 0;
        size_t length = decode(bytes + at, count - at, &character);
        size_t cells = length == 0 ? 1 : cells_of(character);
        if (cells > width - used)
            break;
        used += cells;
        at += length == 0 ? 1 : length;
    }
    *used_out = used;
    return at;
}

size_t cli_text_width(const char *text)
{
    size_t used;
    (void)cli_text_fit(text, SIZE_MAX, &used);
    return used;
}
