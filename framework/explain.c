/* explain.c - pawl_explain(): why a job is not running, in one sentence.
 * Threads: any caller. What the store tells is of one moment; who lives is asked of the kernel after it.
 * Keeps:   V1 names and errors are shown escaped, and commands as words that are safe to paste. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phrase.h"
#include "pool.h"
#include "process.h"
#include "status.h"
#include "text.h"

typedef struct sentence {
    char text[PAWLI_WORD_BYTES + 4096]; /* a command is never cut in the middle */
    char path[PAWLI_WORD_BYTES];        /* a word, as the commands name it */
    size_t used;
    int64_t id, now_ms, boot_ms;
    const pawli_presence *presence;
    pawl_pool *pool; /* the caller's */
} sentence;

static void say(sentence *s, const char *format, ...) PAWL_PRINTF(2, 3);

static void say(sentence *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(s->text + s->used, sizeof s->text - s->used, format, args);
    va_end(args);
    s->used += length > 0 ? (size_t)length : 0;
    if (s->used >= sizeof s->text)
        s->used = sizeof s->text - 1;
}

/* "in 3 m 20 s (2026-01-31 18:00:00 UTC)", or "for 2 h (…)". */
static void say_when(sentence *s, int64_t ms)
{
    char moment[PAWLI_PHRASE_BYTES], distance[PAWLI_PHRASE_BYTES];
    bool ahead = ms > s->now_ms;
    (void)pawli_phrase_duration(ahead ? ms - s->now_ms : s->now_ms - ms, distance);
    say(s, "%s %s (%s)", ahead ? "in" : "for", distance, pawli_phrase_moment(ms, moment));
}

static void say_ago(sentence *s, int64_t ms)
{
    char moment[PAWLI_PHRASE_BYTES], distance[PAWLI_PHRASE_BYTES];
    say(s, "%s ago (%s)", pawli_phrase_duration(s->now_ms - ms, distance), pawli_phrase_moment(ms, moment));
}

static const char *shown(const char *text, char *out, size_t capacity)
{
    (void)pawli_text_escape(out, capacity, text, strlen(text));
    return out;
}

static void say_error(sentence *s, const pawli_reasons *r)
{
    char error[600];
    if (r->error[0] != '\0')
        say(s, ": %s", shown(r->error, error, sizeof error));
}

/* ------------------------------------------------------------------------------- who lives */

static pawli_life life_of(const sentence *s, const pawli_holder *holder)
{
    pawli_record record;
    pawli_life life = pawli_presence_probe(s->presence, holder, &record);
    free(record.fences);
    return life;
}

static bool some_pool_lives(const sentence *s, const pawli_reasons *r)
{
    for (size_t i = 0; i < r->pool_count; i++)
        if (life_of(s, &r->pools[i]) != PAWLI_DEAD)
            return true;
    return false;
}

static bool is_frozen(const sentence *s, const pawli_holder *holder)
{
    const pawli_holder *self = &s->presence->self;
    return holder->pid_space == self->pid_space && strcmp(holder->boot, self->boot) == 0
           && holder->pid != getpid() && pawli_process_is_stopped(holder->pid);
}

/* ------------------------------------------------------------------------- what is known here */

/* Does the caller's pool run, and is it the only one? Of the others it is not known what they serve. */
static bool this_pool_alone_lives(const sentence *s, const pawli_reasons *r)
{
    size_t here = 0;
    if (!atomic_load(&s->pool->writer_runs))
        return false;
    for (size_t i = 0; i < r->pool_count; i++)
        if (pawli_presence_is_self(s->presence, &r->pools[i]))
            here++;
        else if (life_of(s, &r->pools[i]) != PAWLI_DEAD)
            return false;
    return here == 1;
}

/* Has the caller's pool a handler for the kind, and how many of them does it run at a time (0: no limit)? */
static bool has_handler(const sentence *s, const pawli_reasons *r, uint32_t *in_flight_max)
{
    (void)pthread_mutex_lock(&s->pool->registry_lock);
    const pawli_handler *handler = pawli_registry_find(&s->pool->registry, r->kind);
    *in_flight_max = handler != NULL ? handler->service.in_flight_max : 0;
    (void)pthread_mutex_unlock(&s->pool->registry_lock);
    return handler != NULL;
}

/* ----------------------------------------------------------------------------------- pending */

static void say_due(sentence *s, const pawli_reasons *r, const char *when_due)
{
    if (r->available_at_ms <= s->now_ms) {
        say(s, "%s ", when_due);
        say_when(s, r->available_at_ms);
        return;
    }
    say(s, "is ready, although its time is ");
    say_when(s, r->available_at_ms);
    say(s, ", because the clock was set back, or somebody has written to pawl's tables by hand");
}

static void say_before(sentence *s, int64_t before)
{
    if (before > PAWLI_REASONS_BEFORE_MAX)
        say(s, "; more than %d jobs stand before it in its lane", PAWLI_REASONS_BEFORE_MAX);
    else if (before > 0)
        say(s, "; %" PRId64 " %s before it in its lane", before, before == 1 ? "job stands" : "jobs stand");
    else
        say(s, " and is the first of its lane");
}

/* Why nobody takes a job of this lane, or when somebody will. */
static void say_room(sentence *s, const pawli_reasons *r)
{
    char kind[4 * sizeof r->kind], queue[4 * sizeof r->queue];
    uint32_t in_flight_max;
    bool can_run = has_handler(s, r, &in_flight_max), alone = this_pool_alone_lives(s, r);
    (void)shown(r->kind, kind, sizeof kind);
    (void)shown(r->queue, queue, sizeof queue);
    if (alone && !can_run)
        say(s, ", but this pool is the only one that runs, and has no handler for kind \"%s\"", kind);
    else if (alone && !pawli_options_serve(&s->pool->options, r->queue))
        say(s, ", but this pool is the only one that runs, and does not serve queue \"%s\"", queue);
    else if (r->lane_running == 0)
        say(s, ", but no job of it runs: does a running pool serve queue \"%s\", with a handler for kind \"%s\" "
               "and a free executor?", queue, kind);
    else
        say(s, "; %" PRId64 " of it %s running: it starts when a pool that serves it has a free executor, and "
               "fewer jobs of its kind than its in_flight_max", r->lane_running,
            r->lane_running == 1 ? "is" : "are");
    if (can_run && in_flight_max > 0)
        say(s, "; this pool runs at most %" PRIu32 " of its kind at a time", in_flight_max);
}

static void explain_place(sentence *s, const pawli_reasons *r)
{
    say(s, " ");
    say_due(s, r, "is due");
    say_before(s, r->before);
    say_room(s, r);
}

static void explain_later(sentence *s, const pawli_reasons *r)
{
    if (r->available_at_ms <= s->now_ms)
        say(s, " has been due ");
    else if (r->attempts > 0)
        say(s, " waits for its next attempt, due ");
    else
        say(s, " waits: it is due ");
    say_when(s, r->available_at_ms);
    if (r->attempts > 0) {
        say(s, "; attempt %" PRId64 " of %" PRId64 " did not succeed", r->attempts, r->max_attempts);
        say_error(s, r);
    }
}

static void explain_paused(sentence *s, const pawli_reasons *r)
{
    char queue[4 * sizeof r->queue], moment[PAWLI_PHRASE_BYTES], word[PAWLI_WORD_BYTES];
    (void)shown(r->queue, queue, sizeof queue);
    say(s, " waits: queue \"%s\" is paused since %s", queue, pawli_phrase_moment(r->paused_at_ms, moment));
    if (r->available_at_ms > s->now_ms) {
        say(s, ", and it is not due before ");
        say(s, "%s", pawli_phrase_moment(r->available_at_ms, moment));
    }
    say(s, "; pawl resume %s %s lets it run", s->path, pawli_text_word(word, r->queue));
}

static void explain_pending(sentence *s, const pawli_reasons *r)
{
    bool alone = !some_pool_lives(s, r);
    if (r->kind[0] == '\0') {
        say(s, " cannot run: its lane does not exist, because somebody has written to pawl's tables by hand; ");
        if (r->later)
            say(s, "the first pool that looks at it when it is due fails it");
        else
            say(s, "no pool ever looks at it: pawl doctor %s tells how to cure that", s->path);
        return;
    }
    if (r->paused_at_ms != 0) {
        explain_paused(s, r);
        return;
    }
    if (r->later && (r->available_at_ms > s->now_ms || r->attempts > 0 || !alone)) {
        explain_later(s, r);
        if (alone)
            say(s, "; no pool is running on this file");
        else if (r->available_at_ms <= s->now_ms)
            say(s, "; the pools that run will make it ready in a moment");
    } else if (alone) {
        say(s, " waits: no pool is running on this file; it ");
        say_due(s, r, "has been due");
    } else {
        explain_place(s, r);
    }
}

/* ----------------------------------------------------------------------------------- running */

static void say_holder(sentence *s, const pawli_reasons *r)
{
    char name[4 * sizeof r->holder.name];
    if (r->has_holder)
        say(s, "%s (pid %" PRId64 ")", shown(r->holder.name, name, sizeof name), r->holder.pid);
    else
        say(s, "a pool that is not known any more");
}

static void explain_lease(sentence *s, const pawli_reasons *r)
{
    char moment[PAWLI_PHRASE_BYTES];
    (void)pawli_phrase_moment(r->lease_until_ms, moment);
    if (r->lease_boot_ms > s->boot_ms + PAWLI_LEASE_MAX_MS) /* R13 */
        say(s, "; its lease is longer than any pool gives one, and the next pool that looks takes it back");
    else if (r->lease_boot_ms <= s->boot_ms)
        say(s, "; its lease ran out at %s, and the next pool that looks takes it back", moment);
    else if (r->has_holder && !r->holder_left)
        say(s, ", lease until %s", moment);
    else
        say(s, ", lease until %s: then a pool takes it back", moment);
}

/* The attempt's time counts from the handler's start, a moment after the claim; see supervise.c for its end. */
static void explain_timeout(sentence *s, const pawli_reasons *r)
{
    int64_t ends_ms = pawli_add(r->claimed_at_ms, r->timeout_ms);
    if (r->timeout_ms <= 0 || ends_ms > s->now_ms)
        return;
    say(s, "; its timeout of %" PRId64 " ms passed ", r->timeout_ms);
    say_ago(s, ends_ms);
    say(s, ": it was told to stop then, and loses its claim one lease after that");
}

static void explain_dead(sentence *s, const pawli_reasons *r)
{
    say(s, " was claimed ");
    say_ago(s, r->claimed_at_ms);
    say(s, " by ");
    say_holder(s, r);
    say(s, ", whose process has died; %s",
        some_pool_lives(s, r) ? "a running pool takes it back in a moment"
                              : "the next pool that starts takes it back at once");
}

static void explain_left(sentence *s, const pawli_reasons *r)
{
    say(s, " was claimed ");
    say_ago(s, r->claimed_at_ms);
    say(s, " by ");
    say_holder(s, r);
    say(s, ", which has signed off");
    explain_lease(s, r);
}

static void explain_running(sentence *s, const pawli_reasons *r)
{
    if (r->has_holder && r->holder_left) {
        explain_left(s, r);
        return;
    }
    if (r->has_holder && life_of(s, &r->holder) == PAWLI_DEAD) {
        explain_dead(s, r);
        return;
    }
    say(s, " runs ");
    say_when(s, r->claimed_at_ms);
    say(s, " in ");
    say_holder(s, r);
    if (r->has_holder && is_frozen(s, &r->holder))
        say(s, ", whose process is stopped by a signal: kill -CONT %" PRId64 " lets it go on", r->holder.pid);
    explain_lease(s, r);
    if (r->has_holder)
        explain_timeout(s, r);
    if (r->cancel_requested)
        say(s, "; it was cancelled, and told to stop: its handler has not returned yet");
}

/* ------------------------------------------------------------------------------------- ended */

static void explain_failed(sentence *s, const pawli_reasons *r)
{
    say(s, " failed ");
    say_ago(s, r->updated_at_ms);
    say(s, " %s %" PRId64 " of %" PRId64 " attempts",
        r->attempts < r->max_attempts ? "for good, after" : "after", r->attempts, r->max_attempts);
    say_error(s, r);
    say(s, "; pawl requeue %s %" PRId64 " starts it again", s->path, s->id);
}

static void explain_state(sentence *s, const pawli_reasons *r)
{
    switch (r->state) {
    case PAWL_STATE_PENDING: explain_pending(s, r); break;
    case PAWL_STATE_RUNNING: explain_running(s, r); break;
    case PAWL_STATE_FAILED: explain_failed(s, r); break;
    case PAWL_STATE_SUCCEEDED:
        say(s, " succeeded ");
        say_ago(s, r->updated_at_ms);
        say(s, " in attempt %" PRId64, r->attempts);
        break;
    case PAWL_STATE_CANCELLED:
        say(s, " was cancelled ");
        say_ago(s, r->updated_at_ms);
        say(s, "; pawl requeue %s %" PRId64 " starts it after all", s->path, s->id);
        break;
    case PAWL_STATE_BLOCKED: say(s, " waits for other jobs to end"); break;
    }
}

/* Too large for an executor's stack. */
typedef struct explanation {
    pawli_reasons reasons;
    sentence sentence;
    pawli_presence presence;
} explanation;

static pawl_status explain(pawl_pool *pool, int64_t id, explanation *e)
{
    sentence *s = &e->sentence;
    pawl_status st = pool->store->ops->explain(pool->store, id, &e->reasons);
    if (st == PAWL_OK)
        st = pawli_presence_observe(&e->presence, pool->path);
    if (st != PAWL_OK)
        return st;
    s->id = id;
    s->pool = pool;
    s->presence = &e->presence;
    s->now_ms = pawli_clock_wall_ms(&pool->clock);
    s->boot_ms = pawli_clock_boot_ms(&pool->clock);
    (void)pawli_text_word(s->path, pool->path);
    say(s, "job %" PRId64, id);
    explain_state(s, &e->reasons);
    free(e->presence.directory);
    return PAWL_OK;
}

pawl_status pawl_explain(pawl_pool *pool, int64_t id, char *text, size_t capacity)
{
    pawl_status st = pawli_pool_enter(pool, 0);
    if (st == PAWL_OK && (text == NULL || capacity == 0))
        st = pawli_fail(PAWL_ERR_INVALID, "pawl_explain: text and capacity are required");
    if (st != PAWL_OK)
        return st;
    explanation *e = calloc(1, sizeof *e);
    if (e == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "%s: no memory to explain job %" PRId64, pool->path, id);
    st = explain(pool, id, e);
    if (st == PAWL_OK)
        (void)pawli_text_clean(text, capacity, e->sentence.text, e->sentence.used);
    free(e);
    return st;
}
