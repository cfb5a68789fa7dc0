/* handler.c - what pawl calls for each job: reads one file.
 *
 * Runs on the pool's executors, several at a time, outside any transaction. It may run twice for
 * one job, if the process dies in between, so it changes nothing itself: what it found is handed to
 * pawl_job_on_success(), and is stored in the very commit that records the job's success.
 *
 * The outcomes it chooses between:
 *   PAWL_SUCCEEDED  read from start to end, and unchanged meanwhile
 *   PAWL_FAILED     cannot be read; trying again would not help
 *   PAWL_RETRY      changed while it was read, or the system was short of something
 *   PAWL_RELEASED   the program is stopping; the job goes back as if it had never been started */
#include "handler.h"
#include "file_job.h"
#include "results.h"
#include "scan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool handler_init(struct handler *handler)
{
    *handler = (struct handler){ .sha256 = EVP_MD_fetch(NULL, "SHA256", NULL) };
    return handler->sha256 != NULL;
}

void handler_fini(struct handler *handler)
{
    EVP_MD_free(handler->sha256);
}

/* Ends a job by errno: the text becomes the job's last_error. */
static int failed(pawl_job *job, const char *what, int error)
{
    bool passing = error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN;
    char text[128];
    pawl_job_error(job, "%s: %s", what, strerror_r(error, text, sizeof text));
    return passing ? PAWL_RETRY : PAWL_FAILED;
}

static int no_memory(pawl_job *job)
{
    return failed(job, "cannot digest", ENOMEM);
}

static int changed(pawl_job *job)
{
    pawl_job_error(job, "changed while it was read");
    return PAWL_RETRY;
}

/* Reads to the end of the file; asks between two blocks whether to go on. */
static int read_all(pawl_job *job, struct handler *handler, int file, struct scan *scan)
{
    unsigned char block[64 * 1024]; /* on the executor's stack, which has 1 MiB */
    while (!pawl_job_should_stop(job)) {
        ssize_t count = read(file, block, sizeof block);
        if (count == 0)
            return scan_finish(scan) ? PAWL_SUCCEEDED : no_memory(job);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return failed(job, "cannot read", errno);
        if (!scan_add(scan, block, (size_t)count))
            return no_memory(job);
        atomic_fetch_add_explicit(&handler->bytes_read, count, memory_order_relaxed);
    }
    return PAWL_RETRY; /* whatever the reason: pawl makes the right thing of it */
}

/* From here on the result belongs to the job, which drops it when it is stored or not wanted. */
static int record(pawl_job *job, const struct file_job *file, const struct scan_result *scan)
{
    struct result *result = result_create(file->path, file->mtime_ns, scan);
    if (result == NULL)
        return failed(job, "cannot keep the result", ENOMEM);
    if (pawl_job_on_success(job, results_record, result, result_drop) != PAWL_OK) {
        result_drop(result);
        return failed(job, "cannot keep the result", ENOMEM);
    }
    return PAWL_SUCCEEDED;
}

/* Which version of the file is open. Returns PAWL_SUCCEEDED, or how the job ends. */
static int look(pawl_job *job, int file, struct file_job *seen)
{
    struct stat status;
    if (fstat(file, &status) != 0)
        return failed(job, "cannot read", errno);
    if (!S_ISREG(status.st_mode)) {
        pawl_job_error(job, "not a regular file any more");
        return PAWL_FAILED;
    }
    seen->size = status.st_size;
    seen->mtime_ns = file_job_mtime_ns(&status);
    return PAWL_SUCCEEDED;
}

static bool same_version(const struct file_job *a, const struct file_job *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns;
}

/* A file that is not the one that was enqueued any more gets one retry, to come to rest. After that
 * it is taken as it is, as long as it holds still while it is read. */
static int ingest(pawl_job *job, struct handler *handler, int file, const struct file_job *enqueued,
                  struct scan *scan)
{
    struct file_job before = *enqueued, after = *enqueued;
    int outcome = look(job, file, &before);
    if (outcome != PAWL_SUCCEEDED)
        return outcome;
    if (!same_version(&before, enqueued) && pawl_job_attempt(job) == 1)
        return changed(job);
    if ((outcome = read_all(job, handler, file, scan)) != PAWL_SUCCEEDED ||
        (outcome = look(job, file, &after)) != PAWL_SUCCEEDED)
        return outcome;
    return same_version(&before, &after) ? record(job, &after, &scan->result) : changed(job);
}

static int open_and_ingest(pawl_job *job, struct handler *handler, const struct file_job *enqueued)
{
    /* O_NONBLOCK: by now the name may be a pipe's, which would let us wait for a writer. */
    int file = open(enqueued->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return failed(job, "cannot open", errno);
    struct scan scan;
    int outcome = scan_init(&scan, handler->sha256) ? ingest(job, handler, file, enqueued, &scan)
                                                    : no_memory(job);
    scan_fini(&scan);
    close(file);
    return outcome;
}

int handler_run(pawl_job *job, void *arg)
{
    struct handler *handler = arg;
    struct file_job enqueued;
    size_t bytes;
    const char *payload = pawl_job_payload(job, &bytes);
    if (!file_job_decode(&enqueued, payload, bytes)) {
        pawl_job_error(job, "the payload does not name a file");
        return PAWL_FAILED;
    }
    int outcome = open_and_ingest(job, handler, &enqueued);
    if (outcome == PAWL_RETRY)
        atomic_fetch_add_explicit(&handler->retries, 1, memory_order_relaxed);
    return outcome;
}
