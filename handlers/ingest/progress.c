/* progress.c - how far the work is, on standard error.
 *
 * On a terminal one line is drawn over itself. In a pipe or a file plain lines come every few
 * seconds, so that a log stays short. Notes may come from any thread, and never land inside that
 * line. */
#include "progress.h"
#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { PLAIN_LINE_MS = 5000, LINE_BYTES = 256 };

static const char erase_line[] = "\r\033[K";

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static size_t terminal_columns(void)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : 80;
}

void progress_init(struct progress *progress)
{
    *progress = (struct progress){ .terminal = isatty(STDERR_FILENO) == 1,
                                   .started_ms = now_ms(),
                                   .next_line_ms = now_ms() + PLAIN_LINE_MS };
    pthread_mutex_init(&progress->lock, NULL);
}

int64_t progress_elapsed_ms(const struct progress *progress)
{
    return now_ms() - progress->started_ms;
}

/* ------------------------------------------------------------------------------------ speed */

struct speed {
    double files_per_s;
    double bytes_per_s;
};

/* Over the samples of the last seconds: steadier than the last moment, fresher than the average. */
static struct speed measure(struct progress *progress, const struct progress_sample *sample)
{
    uint64_t newest = progress->samples++;
    uint64_t oldest = newest < PROGRESS_WINDOW ? 0 : newest - PROGRESS_WINDOW + 1;
    int64_t now = now_ms();
    progress->window[newest % PROGRESS_WINDOW].at_ms = now;
    progress->window[newest % PROGRESS_WINDOW].done = sample->done;
    progress->window[newest % PROGRESS_WINDOW].bytes = sample->bytes;

    size_t from = oldest % PROGRESS_WINDOW;
    double seconds = (double)(now - progress->window[from].at_ms) / 1000;
    if (seconds <= 0)
        return (struct speed){ 0 };
    return (struct speed){
        .files_per_s = (double)(sample->done - progress->window[from].done) / seconds,
        .bytes_per_s = (double)(sample->bytes - progress->window[from].bytes) / seconds,
    };
}

/* ------------------------------------------------------------------------------------- line */

static void write_time_left(const struct progress_sample *sample, const struct speed *speed,
                            char out[TEXT_NUMBER_MAX])
{
    int64_t left = sample->total - sample->done;
    if (sample->walking || speed->files_per_s < 0.01)
        (void)snprintf(out, TEXT_NUMBER_MAX, "-:--");
    else
        text_clock((int64_t)((double)left / speed->files_per_s + 0.5), out);
}

/* ASCII only, so that bytes are columns. */
static void write_line(const struct progress_sample *sample, const struct speed *speed,
                       char line[LINE_BYTES])
{
    char done[TEXT_NUMBER_MAX], total[TEXT_NUMBER_MAX], files[TEXT_NUMBER_MAX];
    char bytes[TEXT_NUMBER_MAX], left[TEXT_NUMBER_MAX];
    int64_t percent = sample->total > 0 ? sample->done * 100 / sample->total : 0;
    write_time_left(sample, speed, left);
    (void)snprintf(line, LINE_BYTES,
             "%s / %s%s files  %" PRId64 " %%  %s jobs/s  %s/s  %" PRId64 " failed  %" PRId64
             " retries  %s left%s",
             text_number(sample->done, done), text_number(sample->total, total),
             sample->walking ? "+" : "", percent,
             text_number((int64_t)(speed->files_per_s + 0.5), files),
             text_size(speed->bytes_per_s, bytes), sample->failed, sample->retries, left,
             sample->paused ? "  (queue paused)" : "");
}

static void draw(struct progress *progress, const char *line)
{
    char out[sizeof erase_line + LINE_BYTES];
    int columns = (int)terminal_columns() - 1; /* the last one would wrap */
    int length = snprintf(out, sizeof out, "%s%.*s", erase_line, columns, line);
    pthread_mutex_lock(&progress->lock);
    (void)fwrite(out, 1, (size_t)length, stderr);
    progress->drawn = true;
    pthread_mutex_unlock(&progress->lock);
}

void progress_show(struct progress *progress, const struct progress_sample *sample)
{
    char line[LINE_BYTES];
    struct speed speed = measure(progress, sample);
    if (!progress->terminal && now_ms() < progress->next_line_ms)
        return;
    write_line(sample, &speed, line);
    if (progress->terminal)
        draw(progress, line);
    else
        progress_note(progress, "%s", line);
    progress->next_line_ms = now_ms() + PLAIN_LINE_MS;
}

/* ------------------------------------------------------------------------------------ notes */

/* With the lock held. */
static void erase(struct progress *progress)
{
    if (progress->drawn)
        fputs(erase_line, stderr);
    progress->drawn = false;
}

void progress_note(struct progress *progress, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&progress->lock);
    erase(progress);
    fputs("pawl-ingest: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    pthread_mutex_unlock(&progress->lock);
    va_end(arguments);
}

void progress_note_path(struct progress *progress, const char *path, const char *text)
{
    char *shown = text_escape(path, strlen(path));
    progress_note(progress, "%s: %s", shown != NULL ? shown : "?", text);
    free(shown);
}

void progress_log(pawl_log_level level, const char *line, void *arg)
{
    if (level <= PAWL_LOG_WARNING)
        progress_note(arg, "%s", line);
}

void progress_clear(struct progress *progress)
{
    pthread_mutex_lock(&progress->lock);
    erase(progress);
    pthread_mutex_unlock(&progress->lock);
}

void progress_fini(struct progress *progress)
{
    progress_clear(progress);
    pthread_mutex_destroy(&progress->lock);
}
