/* channel.h - the bounded MPSC channel between everybody and the writer. */
#ifndef PAWLI_CHANNEL_H
#define PAWLI_CHANNEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "command.h"

/* Upper bounds of the two bounds, so that both fit into one word. */
#define PAWLI_CHANNEL_COMMANDS_MAX (1 << 23)
#define PAWLI_CHANNEL_BYTES_MAX (INT64_C(1) << 39)

typedef struct pawli_channel {
    /* Set at init, then read-only. */
    uint32_t command_max;
    size_t bytes_max;
    /* Any thread. */
    _Atomic(pawli_command *) newest; /* a stack; the consumer turns it round */
    _Atomic uint64_t reserved;       /* commands × 2^40 + bytes: one word, so that a try leaves no trace */
    _Atomic bool consumer_parks;
    _Atomic uint32_t producers_wait;
    _Atomic bool woken;
    pthread_mutex_t lock; /* for the slow paths alone: parking and waiting for room */
    pthread_cond_t arrived, room;
} pawli_channel;

int pawli_channel_init(pawli_channel *channel, uint32_t command_max, size_t bytes_max);
void pawli_channel_fini(pawli_channel *channel);

/* Producers. Room must be reserved before a request is posted; what is part of a job needs none. */
bool pawli_channel_reserve(pawli_channel *channel, size_t bytes);
bool pawli_channel_reserve_until(pawli_channel *channel, size_t bytes, int64_t steady_ns);
void pawli_channel_post(pawli_channel *channel, pawli_command *command);
/* Wakes the consumer without a command. */
void pawli_channel_wake(pawli_channel *channel);

/* The consumer. */
pawli_command *pawli_channel_take(pawli_channel *channel); /* all there is, oldest first; or NULL */
/* A stack turned round: oldest first. */
pawli_command *pawli_command_reverse(pawli_command *stack);
void pawli_channel_free(pawli_channel *channel, uint32_t commands, size_t bytes);
void pawli_channel_park(pawli_channel *channel, int64_t until_steady_ns);

#endif
