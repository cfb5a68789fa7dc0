/* text.h - bytes from elsewhere made fit for a terminal, and measured. */
#ifndef PAWL_CLI_TEXT_H
#define PAWL_CLI_TEXT_H

#include <stddef.h>
#include <stdio.h>

/** Writes bytes as one line of text that no terminal takes for a command: control characters and
 *  bytes that are not UTF-8 as \n, \t, \r or \xNN, characters that reorder or hide text as \u{...}.
 *  A backslash stays as it is, so an escape and the same characters written out look alike: this is
 *  for reading, and what is written here may hold commands to paste, which a second backslash would
 *  break. --json is for exactness. */
void cli_text_write(FILE *out, const void *bytes, size_t count);

/** The same as a new string, which the caller frees. */
char *cli_text_escape(const void *bytes, size_t count);

/** A word of a command that is shown to be pasted into a shell: quoted where it has to be. The caller
 *  frees it; control characters and the like are left to the escape that follows. */
char *cli_text_word(const char *text);

/** Terminal cells that escaped text takes, by character. */
size_t cli_text_width(const char *text);

/** Bytes of the beginning of `text` that fits into `width` cells; *used_out: its cells. */
size_t cli_text_fit(const char *text, size_t width, size_t *used_out);

#endif
