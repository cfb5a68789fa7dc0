/* peers.c - watches the processes of other pools through descriptors of them (pidfd), so that a death is
 * told at once and nobody has to ask.
 * Threads: expect in the writer's role; reconcile and close on the loop. The list is under its lock.
 * Keeps:   I11 jobs of a dead process are free again at once. It proves nothing: presence.c does (I12). */
#include "peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "descriptor.h"
#include "pool.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

struct pawli_peer_watch {
    uv_poll_t poll; /* first */
    pawl_pool *pool;
    pawli_peer peer;
    int file;
    pawli_descriptor_id id; /* of it: a host may close what is not its own */
    pawli_peer_watch *next;
};

void pawli_peers_init(pawli_peers *p)
{
    memset(p, 0, sizeof *p);
    (void)pthread_mutex_init(&p->lock, NULL);
}

void pawli_peers_fini(pawli_peers *p)
{
    (void)pthread_mutex_destroy(&p->lock);
}

/* --------------------------------------------------------------------------- the writer's part */

static bool is_same_list(const pawli_peers *p, const pawli_peer *list, size_t count)
{
    if (p->count != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (p->list[i].pid != list[i].pid || p->list[i].started != list[i].started)
            return false;
    return true;
}

void pawli_peers_expect(pawl_pool *pool, const pawli_peer *list, size_t count, bool all)
{
    pawli_peers *p = &pool->peers;
    (void)pthread_mutex_lock(&p->lock);
    bool changed = !is_same_list(p, list, count) || !p->watched; /* what could not be watched is tried again */
    p->all = all;
    if (changed) {
        p->watched = false; /* until the loop says so */
        memcpy(p->list, list, count * sizeof *list);
        p->count = count;
        p->changed = true;
    }
    (void)pthread_mutex_unlock(&p->lock);
    if (changed)
        pawli_loop_wake(&pool->loop);
}

bool pawli_peers_are_covered(pawl_pool *pool)
{
    pawli_peers *p = &pool->peers;
    (void)pthread_mutex_lock(&p->lock);
    bool covered = p->all && p->watched;
    (void)pthread_mutex_unlock(&p->lock);
    return covered;
}

/* ----------------------------------------------------------------------------- the loop's part */

static void on_closed(uv_handle_t *handle)
{
    pawli_peer_watch *watch = (pawli_peer_watch *)(void *)handle;
    pawli_descriptor_close(watch->file, watch->id);
    free(watch);
}

static void look_for_dead(pawl_pool *pool)
{
    atomic_store(&pool->writer.survey_wanted, true);
    pawli_channel_wake(&pool->channel);
}

static void on_end(uv_poll_t *poll, int status, int events)
{
    pawli_peer_watch *watch = (pawli_peer_watch *)(void *)poll;
    (void)status;
    (void)events;
    (void)uv_poll_stop(poll); /* it stays readable; the next list is without it */
    look_for_dead(watch->pool);
}

/* The number may belong to another process by now: its start time says so, once the descriptor is held. */
static int open_process(const pawli_peer *peer)
{
    int file = pawli_descriptor_above_standard((int)syscall(SYS_pidfd_open, (pid_t)peer->pid, 0));
    if (file >= 0 && !pawli_process_is(peer->pid, peer->started)) {
        (void)close(file);
        errno = ESRCH;
        return -1;
    }
    return file;
}

static pawli_peer_watch *begin(pawl_pool *pool, uv_loop_t *loop, const pawli_peer *peer)
{
    int file = open_process(peer);
    if (file < 0) {
        if (errno == ESRCH)
            look_for_dead(pool);
        return NULL;
    }
    pawli_peer_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL || uv_poll_init(loop, &watch->poll, file) != 0) {
        (void)close(file);
        free(watch);
        return NULL;
    }
    watch->pool = pool;
    watch->peer = *peer;
    watch->file = file;
    watch->id = pawli_descriptor_identify(file);
    (void)uv_poll_start(&watch->poll, UV_READABLE, on_end);
    return watch;
}

static bool is_among(const pawli_peer *peer, const pawli_peer *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].pid == peer->pid && list[i].started == peer->started)
            return true;
    return false;
}

static void end_others(pawli_peer_watch **watches, const pawli_peer *list, size_t count)
{
    for (pawli_peer_watch **at = watches; *at != NULL;) {
        pawli_peer_watch *watch = *at;
        if (is_among(&watch->peer, list, count)) {
            at = &watch->next;
            continue;
        }
        *at = watch->next;
        uv_close((uv_handle_t *)&watch->poll, on_closed);
    }
}

static bool is_watched(const pawli_peer_watch *watch, const pawli_peer *peer)
{
    while (watch != NULL && !is_among(peer, &watch->peer, 1))
        watch = watch->next;
    return watch != NULL;
}

void pawli_peers_reconcile(pawl_pool *pool, uv_loop_t *loop, pawli_peer_watch **watches)
{
    pawli_peers *p = &pool->peers;
    pawli_peer list[PAWLI_PEERS_MAX];
    (void)pthread_mutex_lock(&p->lock);
    bool changed = p->changed;
    size_t count = p->count;
    p->changed = false;
    memcpy(list, p->list, count * sizeof *list);
    (void)pthread_mutex_unlock(&p->lock);
    if (!changed)
        return;
    bool all = true;
    end_others(watches, list, count);
    for (size_t i = 0; i < count; i++) {
        pawli_peer_watch *watch = is_watched(*watches, &list[i]) ? NULL : begin(pool, loop, &list[i]);
        if (watch != NULL) {
            watch->next = *watches;
            *watches = watch;
        }
        all = all && is_watched(*watches, &list[i]);
    }
    (void)pthread_mutex_lock(&p->lock);
    if (!p->changed) /* there is a newer list otherwise */
        p->watched = all;
    (void)pthread_mutex_unlock(&p->lock);
}

void pawli_peers_close(pawl_pool *pool, pawli_peer_watch **watches)
{
    pawli_peers *p = &pool->peers;
    end_others(watches, NULL, 0);
    (void)pthread_mutex_lock(&p->lock);
    p->count = 0;
    p->watched = p->changed = false;
    (void)pthread_mutex_unlock(&p->lock);
}
