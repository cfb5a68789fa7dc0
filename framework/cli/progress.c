/* progress.c - a line on standard error that tells a person how far a long change has come. */
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_AFTER_MS = 1000, EVERY_MS = 200 };

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void cli_progress_begin(cli_progress *progress)
{
    *progress = (cli_progress){
        .is_wanted = isatty(STDERR_FILENO) == 1,
        .next_ms = now_ms() + FIRST_AFTER_MS,
    };
}

void cli_progress_update(cli_progress *progress, int64_t number, const char *what)
{
    if (!progress->is_wanted || now_ms() < progress->next_ms)
        return;
    progress->next_ms = now_ms() + EVERY_MS;
    progress->is_shown = true;
    fprintf(stderr, "\r%lld %s ...", (long long)number, what);
    (void)fflush(stderr);
}

void cli_progress_end(cli_progress *progress)
{
    if (progress->is_shown) {
        fputs("\r\033[K", stderr);
        (void)fflush(stderr); /* before anything is printed in its place */
    }
    progress->is_shown = false;
}
