/* log.c - one line to the application's hook or to standard error. Any thread, no lock held. */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

static void write_to_stderr(pawl_log_level level, const char *line)
{
    static const char *const names[] = { "error", "warning", "info" };
    if (level <= PAWL_LOG_WARNING)
        fprintf(stderr, "pawl: %s: %s\n", names[level], line);
}

void pawli_log_line(const pawli_log *log, pawl_log_level level, const char *format, ...)
{
    char text[1024], line[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)pawli_text_escape(line, sizeof line, text, strlen(text));
    if (log->fn != NULL)
        log->fn(level, line, log->arg);
    else
        write_to_stderr(level, line);
    pawli_end_if_child(log->fork_mark);
}
