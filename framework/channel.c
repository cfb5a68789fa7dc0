/* channel.c - bounded multi-producer single-consumer channel.
 *
 * Producers push onto a lock-free stack; the consumer takes the whole stack with one exchange and turns
 * it round, so a batch costs it one atomic operation and each producer's order is kept. The bound is a
 * reservation apart from the stack: finalize and heartbeat need none, so they can always be posted (G2).
 * Threads: any producer; one consumer.
 * Keeps:   C1 what is posted is taken exactly once, in the producer's order;
 *          C2 no wake-up is lost: the consumer says that it parks before it looks a last time, and a
 *             producer looks for that after it has pushed, both sequentially consistent. */
#include "channel.h"

#include <errno.h>

#include "clock.h"

int pawli_channel_init(pawli_channel *channel, uint32_t command_max, size_t bytes_max)
{
    pthread_condattr_t monotonic;
    channel->command_max = command_max;
    channel->bytes_max = bytes_max;
    atomic_init(&channel->newest, NULL);
    atomic_init(&channel->reserved, 0);
    atomic_init(&channel->consumer_parks, false);
    atomic_init(&channel->producers_wait, 0);
    atomic_init(&channel->woken, false);
    int error = pthread_condattr_init(&monotonic);
    if (error != 0)
        return error;
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&channel->lock, NULL);
    (void)pthread_cond_init(&channel->arrived, &monotonic);
    (void)pthread_cond_init(&channel->room, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    return 0;
}

void pawli_channel_fini(pawli_channel *channel)
{
    (void)pthread_cond_destroy(&channel->room);
    (void)pthread_cond_destroy(&channel->arrived);
    (void)pthread_mutex_destroy(&channel->lock);
}

/* ----------------------------------------------------------------------------- the bound */

#define ONE_COMMAND (UINT64_C(1) << 40)

/* One that is larger than the bound passes alone. */
static bool has_room(const pawli_channel *channel, uint64_t reserved, size_t bytes)
{
    uint64_t commands = reserved / ONE_COMMAND, taken = reserved % ONE_COMMAND;
    return commands < channel->command_max
           && (commands == 0 || (taken < channel->bytes_max && bytes <= channel->bytes_max - taken));
}

bool pawli_channel_reserve(pawli_channel *channel, size_t bytes)
{
    uint64_t reserved = atomic_load(&channel->reserved);
    do
        if (!has_room(channel, reserved, bytes))
            return false;
    while (!atomic_compare_exchange_weak(&channel->reserved, &reserved,
                                         reserved + ONE_COMMAND + bytes));
    return true;
}

bool pawli_channel_reserve_until(pawli_channel *channel, size_t bytes, int64_t steady_ns)
{
    if (pawli_channel_reserve(channel, bytes))
        return true;
    const struct timespec deadline = pawli_timespec(steady_ns);
    bool reserved = false;
    int error = 0;
    (void)pthread_mutex_lock(&channel->lock);
    (void)atomic_fetch_add(&channel->producers_wait, 1);
    while (!(reserved = pawli_channel_reserve(channel, bytes)) && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&channel->room, &channel->lock, &deadline);
    (void)atomic_fetch_sub(&channel->producers_wait, 1);
    (void)pthread_mutex_unlock(&channel->lock);
    return reserved;
}

void pawli_channel_free(pawli_channel *channel, uint32_t commands, size_t bytes)
{
    (void)atomic_fetch_sub(&channel->reserved, commands * ONE_COMMAND + bytes);
    if (atomic_load(&channel->producers_wait) == 0)
        return;
    (void)pthread_mutex_lock(&channel->lock);
    (void)pthread_cond_broadcast(&channel->room);
    (void)pthread_mutex_unlock(&channel->lock);
}

/* ------------------------------------------------------------------------------ the way */

static void unpark(pawli_channel *channel)
{
    if (!atomic_load(&channel->consumer_parks)) /* C2: after the push */
        return;
    (void)pthread_mutex_lock(&channel->lock);
    (void)pthread_cond_signal(&channel->arrived);
    (void)pthread_mutex_unlock(&channel->lock);
}

void pawli_channel_post(pawli_channel *channel, pawli_command *command)
{
    pawli_command *top = atomic_load_explicit(&channel->newest, memory_order_relaxed);
    do
        command->next = top;
    while (!atomic_compare_exchange_weak(&channel->newest, &top, command));
    if (top == NULL) /* whoever pushed the first one wakes; the others ride along */
        unpark(channel);
}

void pawli_channel_wake(pawli_channel *channel)
{
    atomic_store(&channel->woken, true);
    unpark(channel);
}

pawli_command *pawli_command_reverse(pawli_command *stack)
{
    pawli_command *oldest = NULL;
    while (stack != NULL) {
        pawli_command *next = stack->next;
        stack->next = oldest;
        oldest = stack;
        stack = next;
    }
    return oldest;
}

pawli_command *pawli_channel_take(pawli_channel *channel)
{
    if (atomic_load_explicit(&channel->newest, memory_order_relaxed) == NULL)
        return NULL;
    return pawli_command_reverse(atomic_exchange(&channel->newest, NULL));
}

static bool is_quiet(pawli_channel *channel)
{
    return atomic_load(&channel->newest) == NULL && !atomic_load(&channel->woken);
}

void pawli_channel_park(pawli_channel *channel, int64_t until_steady_ns)
{
    const struct timespec deadline = pawli_timespec(until_steady_ns);
    int error = 0;
    (void)pthread_mutex_lock(&channel->lock);
    atomic_store(&channel->consumer_parks, true); /* C2: before the last look */
    while (is_quiet(channel) && error != ETIMEDOUT)
        error = until_steady_ns == PAWLI_NEVER
                    ? pthread_cond_wait(&channel->arrived, &channel->lock)
                    : pthread_cond_timedwait(&channel->arrived, &channel->lock, &deadline);
    atomic_store(&channel->consumer_parks, false);
    atomic_store(&channel->woken, false);
    (void)pthread_mutex_unlock(&channel->lock);
}
