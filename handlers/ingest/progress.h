/* progress.h - how far the work is, on standard error. */
#ifndef INGEST_PROGRESS_H
#define INGEST_PROGRESS_H

#include <pawl/pawl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/** What one look at the work tells. */
struct progress_sample {
    int64_t done;
    int64_t total; /* known so far; grows while the walk goes on */
    int64_t bytes; /* read so far */
    int64_t failed;
    int64_t retries;
    bool walking;
    bool paused;
};

enum { PROGRESS_WINDOW = 32 }; /* samples over which speed is averaged */

struct progress {
    int64_t started_ms;
    bool terminal; /* one line, drawn again and again; else plain lines, now and then */
    struct {
        int64_t at_ms, done, bytes;
    } window[PROGRESS_WINDOW];
    uint64_t samples;
    int64_t next_line_ms;

    pthread_mutex_t lock; /* guards standard error, and: */
    bool drawn;           /* the terminal's last line is ours */
};

void progress_init(struct progress *progress);
void progress_fini(struct progress *progress);

int64_t progress_elapsed_ms(const struct progress *progress);

/** Shows how far the work is. One thread. */
void progress_show(struct progress *progress, const struct progress_sample *sample);

/** Takes the drawn line away. */
void progress_clear(struct progress *progress);

/** A line that stays. Any thread. */
void progress_note(struct progress *progress, const char *format, ...) PAWL_PRINTF(2, 3);
void progress_note_path(struct progress *progress, const char *path, const char *text);

/** A pawl_log_fn: the library's lines must not tear the progress line. `arg` is the progress. */
void progress_log(pawl_log_level level, const char *line, void *arg);

#endif
