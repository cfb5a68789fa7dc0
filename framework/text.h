/* text.h - UTF-8: checking names, cleaning what is stored, escaping what is shown (R11, V1). */
#ifndef PAWLI_TEXT_H
#define PAWLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define PAWLI_NAME_BYTES_MAX 255
#define PAWLI_ERROR_BYTES_MAX 8192

/* Length of the valid UTF-8 character at `text`, 1 to 4; 0 if there is none. NUL counts as one. */
size_t pawli_utf8_step(const char *text, size_t bytes);

/* Does every database give back the same bytes, if they are stored as text: UTF-8 without NUL, U+FFFE and U+FFFF? */
bool pawli_text_storable(const char *text, size_t bytes);

/* Is `name` a usable kind or queue: 1 to 255 bytes that are storable, no control characters? */
bool pawli_name_valid(const char *name);

/* Copies `text` into `out` as valid UTF-8 without NUL, clipped at a character boundary to less than
 * `capacity` bytes, and terminates it. Returns the length. */
size_t pawli_text_clean(char *out, size_t capacity, const char *text, size_t bytes);

/* The same for one line on a terminal: control bytes become \xNN. A backslash stays as it is, so an escape and the
 * same four characters written out look alike: this is for reading, and is done again to lines that hold escaped
 * texts and commands to paste, which a second backslash would break. */
size_t pawli_text_escape(char *out, size_t capacity, const char *text, size_t bytes);

/* One word of a command that is shown to be pasted into a shell: quoted where it has to be, and escaped as above.
 * Returns `out`; where the word does not fit that is "…". */
enum { PAWLI_WORD_BYTES = 8200 };
const char *pawli_text_word(char out[PAWLI_WORD_BYTES], const char *text);

#endif
