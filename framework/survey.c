/* survey.c - the other pools of the file: who has died, who may be watched, and when to look again.
 *
 * A survey reads their rows and asks the kernel about each (presence.c). What it finds are rescues, which the next
 * batch writes. Whom the kernel will tell of (peers.c) need not be asked about each second.
 * Threads: the writer's role.
 * Keeps:   I11 rescue happens, I12 never early. */
#include <stdlib.h>

#include "pool.h"

#define HOLDERS_PAGE 64
#define SURVEY_EVERY_NS (1000 * PAWLI_NS_PER_MS)
#define SURVEY_STIRRED_NS (20 * PAWLI_NS_PER_MS) /* for so long after somebody has come or gone: */
#define STIRRED_NS (2000 * PAWLI_NS_PER_MS)
#define SURVEY_RARELY_NS (10000 * PAWLI_NS_PER_MS) /* when nobody else is known: at a step that comes anyway */

/* ------------------------------------------------------------------------------- who lives */

/* A rescue, and who it is about. */
typedef struct death {
    pawli_rescue rescue; /* first */
    pawli_holder holder;
} death;

static void add_rescue(pawli_writer *w, const pawli_holder *holder, pawli_record *record)
{
    death *added = calloc(1, sizeof *added);
    if (added == NULL) {
        free(record->fences); /* the next survey tries again */
        return;
    }
    added->holder = *holder;
    added->rescue = (pawli_rescue){ .next = w->rescues, .holder = holder->id,
                                    .has_record = record->is_known, .is_stale = record->is_stale,
                                    .started = record->fences,
                                    .started_count = record->count, .on_threads = record->on_threads,
                                    .spared_count = record->spared_count,
                                    .last_started = record->last_started,
                                    .signal = record->signal, .culprit = record->culprit };
    w->rescues = &added->rescue;
}

/* What a survey finds out. */
typedef struct census {
    size_t seen;             /* other holders that have not left */
    pawli_peer peers[PAWLI_PEERS_MAX];
    size_t peer_count;       /* those of them whose processes can be watched … */
    bool all;                /* … and that is all of them */
    int64_t expires_boot_ms; /* the first lease of theirs */
} census;

/* A pool of this process dies with it, and so needs no watch. One whose death is not proven may be dying: its
 * watch is kept, and tells. */
static void count_living(const pawl_pool *pool, census *c, const pawli_holder *holder, pawli_life life)
{
    if (pawli_presence_is_self(&pool->presence, holder))
        return;
    bool can_watch = c->peer_count < PAWLI_PEERS_MAX && pawli_presence_sees(&pool->presence, holder);
    if (can_watch)
        c->peers[c->peer_count++] = (pawli_peer){ holder->pid, holder->started };
    c->all = c->all && can_watch && life == PAWLI_ALIVE;
}

static void probe_page(pawl_pool *pool, census *c, const pawli_holder *holders, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pawli_record record;
        pawli_life life = pawli_presence_probe(&pool->presence, &holders[i], &record);
        if (life == PAWLI_DEAD)
            add_rescue(&pool->writer, &holders[i], &record);
        else
            count_living(pool, c, &holders[i], life);
    }
    c->seen += count;
}

/* Asks for the next page; what it found goes into `c`. */
static bool survey_page(pawl_pool *pool, census *c, int64_t after_id, pawli_holder *holders, size_t *count)
{
    if (pool->store->ops->survey(pool->store, pawli_clock_boot_ms(&pool->clock), after_id, holders,
                                 HOLDERS_PAGE, count, &c->expires_boot_ms) != PAWL_OK)
        return false;
    probe_page(pool, c, holders, *count);
    return true;
}

/* -------------------------------------------------------------------------- when to look again */

/* The next survey: when a lease runs out, or somebody does something; at once on a death that is told; and
 * each second where none is told. */
static void plan_survey(pawl_pool *pool, const census *c, bool ok)
{
    pawli_writer *w = &pool->writer;
    int64_t boot_ms = pawli_clock_boot_ms(&pool->clock), now_ns = pawli_clock_steady_ns(&pool->clock);
    w->others = !ok || c->seen > 0; /* what could not be seen is looked at again */
    w->sweep = ok && c->expires_boot_ms <= boot_ms;
    w->surveyed_ns = now_ns;
    w->next_survey_ns = pawli_add(now_ns, SURVEY_EVERY_NS);
    if (!ok)
        return;
    pawli_peers_expect(pool, c->peers, c->peer_count, c->all);
    if (!pawli_peers_are_covered(pool))
        return;
    int64_t expires_ns = c->expires_boot_ms == PAWLI_NEVER
                             ? PAWLI_NEVER
                             : pawli_add(now_ns, pawli_ms_to_ns(c->expires_boot_ms - boot_ms));
    int64_t rarely_ns = pawli_add(now_ns, SURVEY_RARELY_NS);
    if (expires_ns > w->next_survey_ns)
        w->next_survey_ns = pawli_earlier(expires_ns, rarely_ns);
}

static void survey(pawl_pool *pool, bool first)
{
    pawli_holder *holders = malloc(HOLDERS_PAGE * sizeof *holders);
    census c = { .all = true, .expires_boot_ms = PAWLI_NEVER };
    size_t count = HOLDERS_PAGE;
    int64_t after_id = 0;
    bool ok = holders != NULL;
    while (ok && count == HOLDERS_PAGE && (ok = survey_page(pool, &c, after_id, holders, &count)))
        if (count > 0)
            after_id = holders[count - 1].id;
    if (ok && first && c.seen == count) /* all of them are on this page */
        pawli_presence_sweep(&pool->presence, holders, count);
    plan_survey(pool, &c, ok);
    free(holders);
}

/* What a predecessor left behind: its claims are found here and written by the first step. */
void pawli_survey_first(pawl_pool *pool)
{
    survey(pool, true);
}

void pawli_survey_soon(pawl_pool *pool)
{
    pawli_writer *w = &pool->writer;
    bool stirred = pawli_steady_now_ns() - atomic_load(&w->stirred_ns) < STIRRED_NS;
    int64_t after_ns = stirred ? SURVEY_STIRRED_NS : SURVEY_EVERY_NS;
    w->others = true; /* until the next survey says otherwise */
    w->next_survey_ns = pawli_earlier(w->next_survey_ns, pawli_add(w->surveyed_ns, after_ns));
}

void pawli_survey_drop(pawl_pool *pool)
{
    for (pawli_rescue *rescue = pool->writer.rescues; rescue != NULL; rescue = rescue->next)
        rescue->status = PAWL_ERR_STATE; /* not written */
    pawli_survey_done(pool, false);
}

void pawli_survey_done(pawl_pool *pool, bool sweep_left)
{
    pawli_writer *w = &pool->writer;
    while (w->rescues != NULL) {
        death *gone = (death *)(void *)w->rescues;
        w->rescues = gone->rescue.next;
        bool written = gone->rescue.status == PAWL_OK;
        if (written && gone->rescue.complete)
            pawli_presence_clear(&pool->presence, &gone->holder);
        else if (written)
            w->next_survey_ns = 0; /* a slice of its claims is left */
        free((void *)(uintptr_t)gone->rescue.started);
        free(gone);
    }
    w->sweep = false;
    if (sweep_left)
        w->next_survey_ns = 0;
}

static bool is_due(pawl_pool *pool, int64_t now_ns)
{
    pawli_writer *w = &pool->writer;
    if (!pawli_writer_does_own_work(pool) || w->rescues != NULL || w->sweep)
        return false;
    return atomic_exchange(&w->survey_wanted, false)
           || now_ns >= (w->others ? w->next_survey_ns : pawli_add(w->next_survey_ns, SURVEY_RARELY_NS));
}

void pawli_survey_if_due(pawl_pool *pool, int64_t now_ns)
{
    if (is_due(pool, now_ns))
        survey(pool, false);
}

int64_t pawli_survey_next_ns(const pawl_pool *pool)
{
    const pawli_writer *w = &pool->writer;
    bool waits = pawli_writer_does_own_work(pool) && w->others && w->rescues == NULL && !w->sweep;
    return waits ? w->next_survey_ns : PAWLI_NEVER;
}
