/* terminal.h - what standard output is, and how it may be dressed. */
#ifndef PAWL_CLI_TERMINAL_H
#define PAWL_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

typedef enum cli_style {
    CLI_PLAIN = 0,
    CLI_BOLD,
    CLI_DIM,
    CLI_RED,
    CLI_GREEN,
    CLI_YELLOW,
    CLI_CYAN
} cli_style;

bool cli_terminal_output(void);
/** Cells in a line: COLUMNS if it is set, else what the terminal says; 0: no terminal, no limit. */
size_t cli_terminal_width(void);
/** The sequence that begins a style, or ends it; "" where colours are not wanted. */
const char *cli_terminal_begin(cli_style style);
const char *cli_terminal_end(cli_style style);

#endif
