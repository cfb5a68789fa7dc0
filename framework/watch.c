/* watch.c - notices what other processes do to the store.
 *
 * An event of the log's file comes before the commit can be seen, and none comes after it: so an event
 * begins a short series of looks. Pools do not rely on that among themselves: after a commit that others
 * care about a pool touches a file in the side directory, which all of them watch, and one look is enough.
 * A slow poll is the net below both. What is looked at here are files' times and sizes only (R8); the
 * writer looks into the store, where a look costs no lock and no write.
 * Threads: begun, ended and tell_others in the writer's role; the rest on the loop.
 * Keeps:   I10 no lost wake-up; an own commit wakes nobody but, once the pool has come to rest, one look. */
#include "watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "pool.h"

/* How long to wait before each look of a series: a commit shows when it has been flushed, which may take a slow
 * disk a while. Once one was found it may have been an older one: a few looks more. */
static const uint64_t series_ms[] = { 0, 1, 1, 1, 2, 2, 4, 8, 16, 32, 64, 128, 256, 512 };
static const uint64_t found_ms[] = { 8, 64 };
#define SERIES_LENGTH (sizeof series_ms / sizeof series_ms[0])
#define FOUND_LENGTH (sizeof found_ms / sizeof found_ms[0])
#define POLLS_UNSEEN 600 /* so long the polls look for a commit whose writes were noticed; it may never come */
#define POLLS_OWN 3 /* somebody may have written in the moment behind an own commit */
#define DEAF_MS 5
#define REST_MS 10
#define POLL_MS 1000
#define POLL_ONLY_MS 50 /* without file events */

/* ------------------------------------------------------------------------- the writer's part */

static int64_t nanoseconds(const struct timespec *at)
{
    return (int64_t)at->tv_sec * 1000000000 + at->tv_nsec;
}

static void log_path(const pawl_pool *pool, char *out, size_t capacity)
{
    (void)snprintf(out, capacity, "%s-wal", pawli_pool_path(pool));
}

void pawli_watch_begun(pawl_pool *pool)
{
    (void)atomic_fetch_add(&pool->tide.turns, 1);
}

static void note_log(pawl_pool *pool)
{
    char path[PATH_MAX + 8];
    struct stat st;
    log_path(pool, path, sizeof path);
    if (stat(path, &st) != 0)
        return;
    atomic_store(&pool->tide.log_bytes, st.st_size);
    atomic_store(&pool->tide.log_time_ns, nanoseconds(&st.st_mtim));
}

void pawli_watch_ended(pawl_pool *pool)
{
    note_log(pool);
    if (atomic_load(&pool->tide.turns) % 2 != 0)
        (void)atomic_fetch_add(&pool->tide.turns, 1);
}

void pawli_watch_tell_others(pawl_pool *pool)
{
    /* Whether it is there is the life lock's; that the pool is started is known in this role. */
    pawli_presence_touch(pool->started ? &pool->presence : NULL, pawli_pool_path(pool));
}

/* --------------------------------------------------------------------------------- looking */

static void look(pawli_watch *w)
{
    atomic_store(&w->pool->writer.look_wanted, true);
    pawli_channel_wake(&w->pool->channel);
}

/* What this pool wrote itself is no news. */
static bool is_own_log(pawli_watch *w)
{
    struct stat st;
    return stat(w->log_path, &st) == 0 && st.st_size == atomic_load(&w->pool->tide.log_bytes)
           && nanoseconds(&st.st_mtim) == atomic_load(&w->pool->tide.log_time_ns);
}

static void on_series(uv_timer_t *timer);
static void on_log(uv_fs_event_t *event, const char *name, int events, int error);

static void in(pawli_watch *w, uint64_t ms)
{
    (void)uv_timer_start(&w->series, on_series, ms, 0);
}

/* The first look of a series, at once. */
static void begin_series(pawli_watch *w)
{
    w->phase = PAWLI_WATCH_LOOKS;
    w->step = 0;
    w->polls_unseen = POLLS_UNSEEN;
    w->found = atomic_load(&w->pool->tide.found);
    look(w);
    in(w, series_ms[1]);
}

static void hear(pawli_watch *w)
{
    if (!w->polls_only && !uv_is_active((uv_handle_t *)&w->log))
        (void)uv_fs_event_start(&w->log, on_log, w->log_path, 0); /* should it fail: the poll is there */
}

/* This pool is writing, and each of its writes would be an event: no ear for a moment. The writer sees at
 * each begin what others have committed. */
static void be_deaf(pawli_watch *w)
{
    (void)uv_fs_event_stop(&w->log);
    w->phase = PAWLI_WATCH_DEAF;
    in(w, DEAF_MS);
}

/* The log has another face. A transaction of this pool has seen, when it began, all that was committed
 * before; while it is open nobody else can write. */
static void judge(pawli_watch *w)
{
    w->turns = atomic_load(&w->pool->tide.turns);
    if (w->turns % 2 != 0 || is_own_log(w))
        be_deaf(w);
    else
        begin_series(w);
}

/* The next look of a series; the last ones come at longer and longer intervals. */
static void go_on(pawli_watch *w)
{
    look(w);
    w->step++;
    if (w->phase == PAWLI_WATCH_LOOKS && atomic_load(&w->pool->tide.found) != w->found) {
        w->phase = PAWLI_WATCH_FOUND;
        w->step = 0;
        w->polls_unseen = 1;
    }
    if (w->phase == PAWLI_WATCH_FOUND && w->step < FOUND_LENGTH)
        in(w, found_ms[w->step]);
    else if (w->phase == PAWLI_WATCH_LOOKS && w->step < SERIES_LENGTH)
        in(w, series_ms[w->step]);
}

static void on_series(uv_timer_t *timer)
{
    pawli_watch *w = timer->data;
    bool was_deaf = w->phase == PAWLI_WATCH_DEAF;
    hear(w); /* before it is judged: what comes later is an event again */
    if (atomic_load(&w->pool->tide.turns) != w->turns || (was_deaf && !is_own_log(w))) {
        judge(w);
    } else if (was_deaf) { /* this pool rests; somebody may have written in the same tick of the clock */
        w->phase = PAWLI_WATCH_RESTS; /* one look, and no more */
        in(w, REST_MS);
    } else {
        go_on(w);
    }
}

static void on_log(uv_fs_event_t *event, const char *name, int events, int error)
{
    (void)name;
    (void)events;
    if (error == 0)
        judge(event->data);
}

/* Another pool has committed something for all, has come, or has gone. */
static void on_side(uv_fs_event_t *event, const char *name, int events, int error)
{
    pawli_watch *w = event->data;
    pawl_pool *pool = w->pool;
    if (error != 0 || (name != NULL && strcmp(name, pool->presence.self.side) == 0))
        return;
    if ((events & UV_RENAME) != 0) {
        atomic_store(&pool->writer.stirred_ns, pawli_steady_now_ns());
        atomic_store(&pool->writer.survey_wanted, true);
    }
    look(w);
}

/* ---------------------------------------------------------------------------------- the poll */

static bool has_changed(const struct stat *now, struct stat *seen)
{
    bool changed = now->st_size != seen->st_size || now->st_ino != seen->st_ino
                   || nanoseconds(&now->st_mtim) != nanoseconds(&seen->st_mtim);
    *seen = *now;
    return changed;
}

static void read_stat(const char *path, struct stat *out)
{
    if (stat(path, out) != 0)
        memset(out, 0, sizeof *out);
}

static void on_poll(uv_timer_t *timer)
{
    pawli_watch *w = timer->data;
    struct stat log, db;
    read_stat(w->log_path, &log);
    read_stat(pawli_pool_path(w->pool), &db);
    bool log_changed = has_changed(&log, &w->log_seen), db_changed = has_changed(&db, &w->db_seen);
    if (log_changed) {
        w->polls_unseen = is_own_log(w) ? POLLS_OWN : POLLS_UNSEEN;
        w->found = atomic_load(&w->pool->tide.found);
    }
    if (log_changed || db_changed || w->polls_unseen > 0)
        look(w);
    if (w->polls_unseen > 1 && atomic_load(&w->pool->tide.found) != w->found)
        w->polls_unseen = 1; /* once more: it may have been an older one */
    else if (w->polls_unseen > 0)
        w->polls_unseen--;
}

/* --------------------------------------------------------------------------- open and close */

static void tell_polling(pawl_pool *pool, const char *path, int error)
{
    pawli_log_line(&pool->log, PAWL_LOG_WARNING,
                   "%s: cannot be watched (%s); the pool looks every %d ms instead; raise "
                   "fs.inotify.max_user_instances and max_user_watches",
                   path, uv_strerror(error), POLL_ONLY_MS);
}

static void watch_file(pawli_watch *w, uv_fs_event_t *event, uv_fs_event_cb on_event, const char *path)
{
    int error = uv_fs_event_start(event, on_event, path, 0);
    if (error == 0)
        return;
    if (!w->polls_only)
        tell_polling(w->pool, path, error);
    w->polls_only = true;
}

int pawli_watch_open(pawli_watch *w, uv_loop_t *loop, pawl_pool *pool)
{
    w->pool = pool;
    w->log.data = w->side.data = w->series.data = w->poll.data = w;
    log_path(pool, w->log_path, sizeof w->log_path);
    int error = uv_timer_init(loop, &w->series);
    if (error == 0)
        error = uv_timer_init(loop, &w->poll);
    if (error == 0)
        error = uv_fs_event_init(loop, &w->log);
    if (error == 0)
        error = uv_fs_event_init(loop, &w->side);
    if (error != 0)
        return error;
    watch_file(w, &w->log, on_log, w->log_path);
    watch_file(w, &w->side, on_side, pool->presence.directory);
    uint64_t every = w->polls_only ? POLL_ONLY_MS : POLL_MS;
    return uv_timer_start(&w->poll, on_poll, every, every); /* and what was before it is looked at first */
}

static void close_one(uv_handle_t *handle)
{
    if (handle->loop != NULL && !uv_is_closing(handle))
        uv_close(handle, NULL);
}

void pawli_watch_close(pawli_watch *w)
{
    close_one((uv_handle_t *)&w->log);
    close_one((uv_handle_t *)&w->side);
    close_one((uv_handle_t *)&w->series);
    close_one((uv_handle_t *)&w->poll);
}
