/* peers.h - the processes of other pools on this file: the kernel tells at once when one of them ends. */
#ifndef PAWLI_PEERS_H
#define PAWLI_PEERS_H

#include <pawl/pawl.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define PAWLI_PEERS_MAX 64

typedef struct pawli_peer {
    int64_t pid, started;
} pawli_peer;

typedef struct pawli_peers {
    pthread_mutex_t lock;
    /* Under it: */
    pawli_peer list[PAWLI_PEERS_MAX]; /* who is to be watched */
    size_t count;
    bool changed; /* the loop has not seen it yet */
    bool watched; /* every one of the list is */
    bool all;     /* and nobody else is there, that could die unseen */
} pawli_peers;

void pawli_peers_init(pawli_peers *peers);
void pawli_peers_fini(pawli_peers *peers);
/* The writer's: these are not dead. `all`: nobody else is there, that could die unseen. */
void pawli_peers_expect(pawl_pool *pool, const pawli_peer *list, size_t count, bool all);
/* May the writer rely on being told? */
bool pawli_peers_are_covered(pawl_pool *pool);

/* The loop's: watches whom it is told to, and nobody else. */
typedef struct pawli_peer_watch pawli_peer_watch;
void pawli_peers_reconcile(pawl_pool *pool, uv_loop_t *loop, pawli_peer_watch **watches);
void pawli_peers_close(pawl_pool *pool, pawli_peer_watch **watches);

#endif
