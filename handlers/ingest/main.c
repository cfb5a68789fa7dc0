/* main.c - pawl-ingest, a sample application: a digest and some counts of every file below a
 * directory.
 *
 * It shows how an application uses pawl, from pawl_open() to pawl_close(). One thread walks the
 * directories and enqueues a job for each file (feed.c); the pool's executors read the files
 * (handler.c); what they find is stored in the commit that records the job's success (results.c).
 * This thread watches, shows how far the work is, and waits for signals.
 *
 * pawl is used here, in feed.c, handler.c, results.c and counts.c, and for the list of failures in
 * report.c; the rest is the program's own.
 *
 * There is no code here for starting again after a crash: what was enqueued is in the database, the
 * pool takes up what it finds there, and the walk enqueues only what is not there yet. */
#include "counts.h"
#include "feed.h"
#include "file_job.h"
#include "handler.h"
#include "options.h"
#include "progress.h"
#include "report.h"
#include "results.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define GO_ON "To go on, run the same command again."

enum { TICK_MS = 100 };

struct ingest {
    const struct options *options;
    struct handler handler;
    struct progress progress;
    struct feed feed;
    pawl_pool *pool;
    struct sqlite3 *results;
    sigset_t signals;     /* that ask us to stop */
    struct counts before; /* when this process began, and … */
    struct counts now;    /* … when it looked last */
};

/* After a call of pawl that failed. Returns false, for the caller to do likewise. */
static bool complain(struct ingest *in, const char *what)
{
    progress_note(&in->progress, "%s: %s", what, pawl_error_message());
    return false;
}

/* ----------------------------------------------------------------------------------- opening */

/* Signals are the application's affair. Blocked before the first thread is made, they are blocked
 * in all of them, and wait for watch() to fetch them. */
static void block_signals(struct ingest *in)
{
    sigemptyset(&in->signals);
    sigaddset(&in->signals, SIGINT);
    sigaddset(&in->signals, SIGTERM);
    sigaddset(&in->signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &in->signals, NULL);
}

/* Jobs are kept for good: they are the memory of what need not be read again. The death of a
 * process is counted as an attempt of the files that it was reading, since one of them may have
 * been the reason; ours are hardly ever, so they get some more than usual. */
static bool open_pool(struct ingest *in)
{
    static const int64_t backoff_ms[] = { 200, 500, 1000, 3000 };
    const pawl_options *options =
        PAWL_OPTIONS(.store = in->options->database, .executors = in->options->executors,
                     .max_attempts = 12, .keep_succeeded_ms = PAWL_FOREVER,
                     .keep_succeeded_max = PAWL_FOREVER, .keep_failed_ms = PAWL_FOREVER,
                     .keep_failed_max = PAWL_FOREVER, .log = progress_log,
                     .log_arg = &in->progress);
    if (pawl_open(options, &in->pool) != PAWL_OK)
        return complain(in, "cannot open the job database");
    if (pawl_register(in->pool, FILE_JOB_KIND, handler_run, &in->handler,
                      PAWL_HANDLER(.backoff_ms = backoff_ms,
                                   .backoff_count = sizeof backoff_ms / sizeof backoff_ms[0])) !=
        PAWL_OK)
        return complain(in, "cannot register the handler");
    return true;
}

/* The table of results must be there before the first handler can succeed. */
static bool start(struct ingest *in)
{
    if (!open_pool(in))
        return false;
    in->results = results_open(in->options->database);
    if (in->results == NULL)
        return false;
    if (!counts_read(in->pool, &in->before))
        return complain(in, "cannot read the job database");
    if (pawl_start(in->pool) != PAWL_OK)
        return complain(in, "cannot start");
    if (feed_start(&in->feed, in->pool, &in->progress, in->options->dirs, in->options->database))
        return true;
    progress_note(&in->progress, "cannot start: no thread to be had");
    return false;
}

/* ---------------------------------------------------------------------------------- watching */

static void show_progress(struct ingest *in, bool walking)
{
    int64_t done = counts_ended(&in->now) - counts_ended(&in->before);
    const struct progress_sample sample = {
        .done = done,
        .total = done + counts_left(&in->now),
        .bytes = atomic_load(&in->handler.bytes_read),
        .failed = in->now.failed - in->before.failed,
        .retries = atomic_load(&in->handler.retries),
        .walking = walking,
        .paused = in->now.paused,
    };
    progress_show(&in->progress, &sample);
}

/* Waits one tick. Returns the signal that came meanwhile, or 0. */
static int wait_tick(const struct ingest *in)
{
    const struct timespec tick = { .tv_nsec = TICK_MS * 1000000L };
    int number = sigtimedwait(&in->signals, NULL, &tick);
    return number > 0 ? number : 0;
}

/* Until every file is dealt with: by this process or, where several work on one database, by
 * another. Returns 0 then, the signal that asks us to stop, or -1. */
static int watch(struct ingest *in)
{
    int number;
    do {
        /* Asked first: once the walk has ended, the counts hold all that it enqueued. */
        bool walking = !feed_finished(&in->feed);
        if (!counts_read(in->pool, &in->now)) {
            complain(in, "cannot read the job database");
            return -1;
        }
        show_progress(in, walking);
        if (!walking && counts_left(&in->now) == 0)
            return 0;
        number = wait_tick(in);
    } while (number == 0);
    return number;
}

/* ------------------------------------------------------------------------------------ ending */

static void print_report(struct ingest *in)
{
    const struct report report = {
        .pool = in->pool,
        .results = in->results,
        .database = in->options->database,
        .walked = in->feed.walked,
        .added = in->feed.added,
        .known = in->feed.known,
        .before = in->before,
        .after = in->now,
        .bytes_read = atomic_load(&in->handler.bytes_read),
        .retries = atomic_load(&in->handler.retries),
        .elapsed_ms = progress_elapsed_ms(&in->progress),
    };
    report_print(&report);
}

/* Gives the jobs in hand back, so that nothing is left to be rescued. A second signal ends the
 * program on the spot, which is safe too: the next run takes the jobs back from the dead process.
 * */
static int interrupted(struct ingest *in, int number)
{
    progress_note(&in->progress, "stopping ...");
    pthread_sigmask(SIG_UNBLOCK, &in->signals, NULL);
    feed_stop(&in->feed);
    (void)pawl_stop(in->pool, 0);
    if (counts_read(in->pool, &in->now))
        progress_note(&in->progress,
                      "stopped: %" PRId64 " files are done, %" PRId64 " wait. " GO_ON,
                      counts_ended(&in->now), counts_left(&in->now));
    return 128 + number;
}

static int finished(struct ingest *in)
{
    feed_stop(&in->feed);
    progress_clear(&in->progress);
    print_report(in);
    if (in->feed.failure != PAWL_OK) {
        progress_note(&in->progress, "not every file could be enqueued (%s). " GO_ON,
                      pawl_status_name(in->feed.failure));
        return 1;
    }
    return in->now.failed > 0 || in->feed.walked.problems > 0;
}

static int run(struct ingest *in)
{
    if (!start(in))
        return 1;
    int number = watch(in);
    if (number > 0)
        return interrupted(in, number);
    if (number == 0)
        return finished(in);
    feed_stop(&in->feed);
    return 1;
}

/* Half-opened is fine: what was not opened is NULL. A handler that hangs, in a file system that
 * does not answer, keeps the pool open. Then nothing it uses may be freed, and the process ends as
 * it is; its jobs go back to the others as soon as it is gone. */
static int close_all(struct ingest *in, int code)
{
    if (in->results != NULL)
        results_close(in->results);
    if (pawl_close(in->pool) != PAWL_OK) {
        complain(in, "cannot close the job database");
        _exit(code == 0 ? 1 : code);
    }
    progress_fini(&in->progress);
    handler_fini(&in->handler);
    return code;
}

static int ingest(const struct options *options)
{
    struct ingest in = { .options = options };
    block_signals(&in);
    progress_init(&in.progress);
    if (!handler_init(&in.handler)) {
        fputs("pawl-ingest: OpenSSL offers no SHA-256\n", stderr);
        return 1;
    }
    return close_all(&in, run(&in));
}

int main(int argc, char **argv)
{
    struct options options;
    int code = options_init(&options, argc, argv);
    if (code == OPTIONS_GO_ON)
        code = ingest(&options);
    options_fini(&options);
    return code;
}
