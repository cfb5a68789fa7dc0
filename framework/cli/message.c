/* message.c - lines for a person, on standard error. */
#include "message.h"

#include "text.h"
#include "verb.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES_MAX = 4096 }; /* a longer one is cut */

void cli_problem(const char *verb, const char *format, ...)
{
    char message[MESSAGE_BYTES_MAX];
    va_list values;
    va_start(values, format);
    (void)vsnprintf(message, sizeof message, format, values);
    va_end(values);
    fputs("pawl: ", stderr);
    if (verb != NULL)
        fprintf(stderr, "%s: ", verb);
    cli_text_write(stderr, message, strlen(message));
    fputc('\n', stderr);
}

_Noreturn void cli_out_of_memory(void)
{
    fputs("pawl: out of memory\n", stderr);
    exit(CLI_EXIT_PROBLEM);
}
