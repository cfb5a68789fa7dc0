/* terminal.c - what standard output is, and how it may be dressed. */
#include "terminal.h"

#include "values.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH_UNKNOWN = 80, WIDTH_MAX = 65535 };

bool cli_terminal_output(void)
{
    return isatty(STDOUT_FILENO) == 1;
}

size_t cli_terminal_width(void)
{
    if (!cli_terminal_output())
        return 0;
    const char *columns = getenv("COLUMNS");
    int64_t width;
    if (columns != NULL && cli_number_parse(columns, 1, WIDTH_MAX, &width))
        return (size_t)width;
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return WIDTH_UNKNOWN;
}

/* https://no-color.org: any value that is not empty switches colours off. */
static bool wants_colour(void)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return cli_terminal_output() && (no_color == NULL || *no_color == '\0') && term != NULL
           && strcmp(term, "dumb") != 0;
}

const char *cli_terminal_begin(cli_style style)
{
    static const char *const sequences[] = {
        [CLI_PLAIN] = "",        [CLI_BOLD] = "\033[1m",    [CLI_DIM] = "\033[2m",
        [CLI_RED] = "\033[31m",  [CLI_GREEN] = "\033[32m",  [CLI_YELLOW] = "\033[33m",
        [CLI_CYAN] = "\033[36m",
    };
    return wants_colour() ? sequences[style] : "";
}

const char *cli_terminal_end(cli_style style)
{
    return style != CLI_PLAIN && wants_colour() ? "\033[0m" : "";
}
