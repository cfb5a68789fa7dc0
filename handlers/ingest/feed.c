/* feed.c - turns every file that a walk finds into a job.
 *
 * One thread walks and enqueues without waiting for the disk: the pool commits what has gathered as
 * one group, and answers on its own thread (answered() below). What is not answered yet is counted,
 * so the walk never runs far ahead of the store, and knows when its last job is safe. */
#include "feed.h"
#include "file_job.h"

#include <stdlib.h>
#include <string.h>

enum { IN_FLIGHT_MAX = 4096 };

static void note_failure(struct feed *feed, pawl_status status)
{
    if (feed->failure == PAWL_OK)
        feed->failure = status;
    atomic_store(&feed->stop, true);
}

/* Once for each job that pawl_enqueue_async() took; on the pool's loop thread. */
static void answered(pawl_status status, int64_t id, void *arg)
{
    (void)id;
    struct feed *feed = arg;
    pthread_mutex_lock(&feed->lock);
    feed->in_flight--;
    if (status == PAWL_OK)
        feed->added++;
    else if (status == PAWL_EXISTS)
        feed->known++;
    else
        note_failure(feed, status);
    pthread_cond_signal(&feed->answered);
    pthread_mutex_unlock(&feed->lock);
}

static void wait_for_answers(struct feed *feed, unsigned in_flight_max)
{
    pthread_mutex_lock(&feed->lock);
    while (feed->in_flight > in_flight_max)
        pthread_cond_wait(&feed->answered, &feed->lock);
    pthread_mutex_unlock(&feed->lock);
}

/* Counts a job as under way before it is: its answer may come before the call returns. */
static pawl_status enqueue_once(struct feed *feed, const pawl_job_spec *spec, unsigned *in_flight)
{
    pthread_mutex_lock(&feed->lock);
    *in_flight = feed->in_flight++;
    pthread_mutex_unlock(&feed->lock);
    pawl_status status = pawl_enqueue_async(feed->pool, spec, answered, feed);
    if (status != PAWL_OK) {
        pthread_mutex_lock(&feed->lock);
        feed->in_flight--;
        pthread_mutex_unlock(&feed->lock);
    }
    return status;
}

/* When the pool's channel is full, half of the answers make room in it. */
static pawl_status enqueue(struct feed *feed, const pawl_job_spec *spec)
{
    unsigned in_flight;
    wait_for_answers(feed, IN_FLIGHT_MAX - 1);
    pawl_status status = enqueue_once(feed, spec, &in_flight);
    while (status == PAWL_ERR_FULL && in_flight > 0) {
        wait_for_answers(feed, in_flight / 2);
        status = enqueue_once(feed, spec, &in_flight);
    }
    return status;
}

static pawl_status enqueue_file(struct feed *feed, const struct file_job *file)
{
    unsigned char key[FILE_JOB_KEY_BYTES];
    size_t bytes;
    char *payload = file_job_encode(file, &bytes);
    if (payload == NULL || !file_job_key(payload, bytes, key)) {
        free(payload);
        return PAWL_ERR_NOMEM;
    }
    pawl_status status =
        enqueue(feed, PAWL_JOB(.kind = FILE_JOB_KIND, .payload = payload, .payload_bytes = bytes,
                               .idempotency_key = key, .idempotency_key_bytes = sizeof key));
    free(payload); /* copied */
    return status;
}

static bool on_file(const char *path, const struct stat *status, void *arg)
{
    struct feed *feed = arg;
    if (atomic_load(&feed->stop))
        return false;
    struct file_job file = { .path = path,
                             .size = status->st_size,
                             .mtime_ns = file_job_mtime_ns(status) };
    pawl_status answer = enqueue_file(feed, &file);
    if (answer == PAWL_OK)
        return true;
    progress_note(feed->progress, "cannot enqueue: %s", pawl_error_message());
    pthread_mutex_lock(&feed->lock);
    note_failure(feed, answer);
    pthread_mutex_unlock(&feed->lock);
    return false;
}

static void on_problem(const char *path, int error, void *arg)
{
    struct feed *feed = arg;
    progress_note_path(feed->progress, path, strerror(error));
}

static void *feed_thread(void *arg)
{
    struct feed *feed = arg;
    const struct walk_visitor visitor = { on_file, on_problem, feed };
    walk(feed->dirs, feed->database, &visitor, &feed->walked);
    wait_for_answers(feed, 0);
    atomic_store(&feed->finished, true);
    return NULL;
}

bool feed_start(struct feed *feed, pawl_pool *pool, struct progress *progress, char *const *dirs,
                const char *database)
{
    *feed = (struct feed){ .pool = pool, .progress = progress, .dirs = dirs, .database = database };
    pthread_mutex_init(&feed->lock, NULL);
    pthread_cond_init(&feed->answered, NULL);
    return pthread_create(&feed->thread, NULL, feed_thread, feed) == 0;
}

bool feed_finished(struct feed *feed)
{
    return atomic_load(&feed->finished);
}

void feed_stop(struct feed *feed)
{
    atomic_store(&feed->stop, true);
    pthread_join(feed->thread, NULL);
    pthread_cond_destroy(&feed->answered);
    pthread_mutex_destroy(&feed->lock);
}
