/* channel_test.c - the channel to the writer: order, exactly once, its bounds, parking. */
#include "channel.h"

#include <sched.h>

#include "check.h"
#include "clock.h"

typedef struct item {
    pawli_command command; /* first */
    unsigned producer, number;
} item;

static item *item_of(pawli_command *command)
{
    return (item *)(void *)command;
}

static int open_channel(void **state)
{
    static pawli_channel channel;
    *state = &channel;
    return pawli_channel_init(&channel, 4, 100);
}

static int close_channel(void **state)
{
    pawli_channel_fini(*state);
    return 0;
}

/* ------------------------------------------------------------------------------ the way */

/* Goal: what was posted comes out whole and in that order, and the channel is empty then (C1). */
static void takes_in_the_order_of_posting(void **state)
{
    pawli_channel *channel = *state;
    item items[10] = { 0 };
    assert_null(pawli_channel_take(channel));
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 10; i++) {
            items[i].number = i;
            pawli_channel_post(channel, &items[i].command);
        }
        pawli_command *command = pawli_channel_take(channel);
        for (unsigned i = 0; i < 10; i++, command = command->next)
            assert_ptr_equal(command, &items[i].command);
        assert_null(command);
        assert_null(pawli_channel_take(channel));
    }
}

#define PRODUCERS 4
#define ITEMS_EACH 5000

typedef struct producer {
    pthread_t thread;
    pawli_channel *channel;
    item items[ITEMS_EACH];
    unsigned number;
    bool refused;
} producer;

static void *produce(void *arg)
{
    producer *p = arg;
    for (unsigned i = 0; i < ITEMS_EACH; i++) {
        p->items[i].producer = p->number;
        p->items[i].number = i;
        if (!pawli_channel_reserve_until(p->channel, 1 + i % 50, PAWLI_NEVER))
            p->refused = true;
        pawli_channel_post(p->channel, &p->items[i].command);
    }
    return NULL;
}

/* Goal: with several producers, a tiny bound and a consumer that parks, each producer's commands come
 * out once and in its order (C1), and nobody waits for ever (C2). */
static void keeps_each_producers_order_exactly_once(void **state)
{
    static producer producers[PRODUCERS];
    pawli_channel *channel = *state;
    unsigned next[PRODUCERS] = { 0 }, taken = 0;
    for (unsigned i = 0; i < PRODUCERS; i++) {
        producers[i].channel = channel;
        producers[i].number = i;
        assert_int_equal(pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
    }
    while (taken < PRODUCERS * ITEMS_EACH) {
        pawli_command *command = pawli_channel_take(channel);
        if (command == NULL)
            pawli_channel_park(channel, PAWLI_NEVER);
        while (command != NULL) {
            item *i = item_of(command);
            command = command->next;
            assert_int_equal(i->number, next[i->producer]);
            next[i->producer]++;
            taken++;
            pawli_channel_free(channel, 1, 1 + i->number % 50);
        }
    }
    for (unsigned i = 0; i < PRODUCERS; i++) {
        assert_int_equal(pthread_join(producers[i].thread, NULL), 0);
        assert_int_equal(next[i], ITEMS_EACH);
        assert_false(producers[i].refused);
    }
    assert_null(pawli_channel_take(channel));
    assert_int_equal(atomic_load(&channel->reserved), 0);
}

/* ---------------------------------------------------------------------------- the bounds */

typedef struct bound_step {
    char what; /* r: reserve, f: free */
    size_t bytes;
    bool granted;
} bound_step;

/* Goal: neither bound is passed, a refused try takes nothing, and one that is larger than the bound
 * passes when it is alone. */
static void holds_its_bounds(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        uint32_t command_max;
        size_t bytes_max;
        bound_step steps[9];
    } cases[] = {
        { "commands", 3, 1000,
          { { 'r', 0, true }, { 'r', 0, true }, { 'r', 0, true }, { 'r', 0, false },
            { 'f', 0, true }, { 'r', 0, true }, { 'r', 0, false } } },
        { "one command", 1, 1000,
          { { 'r', 1, true }, { 'r', 0, false }, { 'f', 1, true }, { 'r', 1000, true },
            { 'r', 0, false } } },
        { "bytes", 100, 100,
          { { 'r', 60, true }, { 'r', 41, false }, { 'r', 40, true }, { 'r', 1, false },
            { 'f', 40, true }, { 'r', 41, false }, { 'r', 40, true } } },
        { "larger than the bound, alone", 100, 100,
          { { 'r', 1000, true }, { 'r', 1, false }, { 'r', 1000, false }, { 'f', 1000, true },
            { 'r', 1, true } } },
        { "larger than the bound, in company", 100, 100,
          { { 'r', 1, true }, { 'r', 101, false }, { 'r', 99, true }, { 'f', 99, true },
            { 'f', 1, true }, { 'r', 101, true } } },
        { "the largest bounds", PAWLI_CHANNEL_COMMANDS_MAX, PAWLI_CHANNEL_BYTES_MAX,
          { { 'r', PAWLI_CHANNEL_BYTES_MAX - 1, true }, { 'r', 2, false }, { 'r', 1, true },
            { 'r', 1, false }, { 'f', 1, true }, { 'f', PAWLI_CHANNEL_BYTES_MAX - 1, true },
            { 'r', PAWLI_CHANNEL_BYTES_MAX, true } } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pawli_channel channel;
        assert_int_equal(pawli_channel_init(&channel, cases[i].command_max, cases[i].bytes_max), 0);
        for (const bound_step *step = cases[i].steps; step->what != '\0'; step++) {
            if (step->what == 'f')
                pawli_channel_free(&channel, 1, step->bytes);
            else if (pawli_channel_reserve(&channel, step->bytes) != step->granted)
                fail_msg("%s: step %td", cases[i].name, step - cases[i].steps);
        }
        pawli_channel_fini(&channel);
    }
}

/* Goal: a full channel is waited for until the time given, and not longer; a time that is over still
 * gets room that is there. */
static void waiting_for_room_times_out(void **state)
{
    pawli_channel *channel = *state;
    assert_true(pawli_channel_reserve_until(channel, 100, 0));
    assert_false(pawli_channel_reserve_until(channel, 1, 0));
    int64_t deadline = pawli_steady_now_ns() + 5 * PAWLI_NS_PER_MS;
    assert_false(pawli_channel_reserve_until(channel, 1, deadline));
    assert_true(pawli_steady_now_ns() >= deadline);
    assert_int_equal(atomic_load(&channel->producers_wait), 0);
    pawli_channel_free(channel, 1, 100);
    assert_true(pawli_channel_reserve_until(channel, 1, 0));
}

typedef struct waiter {
    pthread_t thread;
    pawli_channel *channel;
    _Atomic unsigned *granted;
} waiter;

static void *wait_for_room(void *arg)
{
    waiter *w = arg;
    if (pawli_channel_reserve_until(w->channel, 100, PAWLI_NEVER))
        (void)atomic_fetch_add(w->granted, 1);
    return NULL;
}

/* Goal: room that becomes free goes to one waiter each time, and all get it in the end. */
static void room_is_given_to_those_who_wait(void **state)
{
    pawli_channel *channel = *state;
    waiter waiters[3];
    _Atomic unsigned granted = 0;
    assert_true(pawli_channel_reserve(channel, 100));
    for (size_t i = 0; i < 3; i++) {
        waiters[i] = (waiter){ .channel = channel, .granted = &granted };
        assert_int_equal(pthread_create(&waiters[i].thread, NULL, wait_for_room, &waiters[i]), 0);
    }
    while (atomic_load(&channel->producers_wait) < 3)
        (void)sched_yield();
    assert_int_equal(atomic_load(&granted), 0);
    for (unsigned i = 1; i <= 3; i++) {
        pawli_channel_free(channel, 1, 100);
        while (atomic_load(&granted) < i)
            (void)sched_yield();
        assert_int_equal(atomic_load(&granted), i);
        assert_false(pawli_channel_reserve(channel, 0));
    }
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_join(waiters[i].thread, NULL), 0);
}

/* ------------------------------------------------------------------------------- parking */

/* Goal: a consumer with something to do does not sleep, and a wake-up that came before it parked counts
 * once (C2). A park that should end and does not hangs this test. */
static void parks_only_when_there_is_nothing(void **state)
{
    pawli_channel *channel = *state;
    item posted = { 0 };
    pawli_channel_post(channel, &posted.command);
    pawli_channel_park(channel, PAWLI_NEVER);
    assert_ptr_equal(pawli_channel_take(channel), &posted.command);
    pawli_channel_wake(channel);
    pawli_channel_wake(channel);
    pawli_channel_park(channel, PAWLI_NEVER);
    int64_t deadline = pawli_steady_now_ns() + 2 * PAWLI_NS_PER_MS;
    pawli_channel_park(channel, deadline);
    assert_true(pawli_steady_now_ns() >= deadline); /* the wake-up was used up */
    pawli_channel_park(channel, 0);
}

typedef struct consumer {
    pthread_t thread;
    pawli_channel *channel;
    _Atomic unsigned commands, wakes, wakes_seen;
    unsigned commands_wanted, wakes_wanted;
} consumer;

static void *consume(void *arg)
{
    consumer *c = arg;
    while (atomic_load(&c->commands) < c->commands_wanted
           || atomic_load(&c->wakes_seen) < c->wakes_wanted) {
        atomic_store(&c->wakes_seen, atomic_load(&c->wakes));
        pawli_command *command = pawli_channel_take(c->channel);
        if (command == NULL && atomic_load(&c->wakes_seen) < c->wakes_wanted)
            pawli_channel_park(c->channel, PAWLI_NEVER);
        for (; command != NULL; command = command->next)
            (void)atomic_fetch_add(&c->commands, 1);
    }
    return NULL;
}

/* Goal: a parked consumer hears of every post and of every wake, whenever they come (C2). One that is
 * lost leaves both sides waiting. */
static void no_wake_up_is_lost(void **state)
{
    enum { ROUNDS = 5000 };
    static item items[ROUNDS];
    pawli_channel *channel = *state;
    consumer c = { .channel = channel, .commands_wanted = ROUNDS, .wakes_wanted = ROUNDS };
    assert_int_equal(pthread_create(&c.thread, NULL, consume, &c), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (i % 100 == 0)
            while (!atomic_load(&channel->consumer_parks)) /* for certain, now and then */
                (void)sched_yield();
        pawli_channel_post(channel, &items[i].command);
        while (atomic_load(&c.commands) <= i)
            (void)sched_yield();
        (void)atomic_fetch_add(&c.wakes, 1);
        pawli_channel_wake(channel);
        while (atomic_load(&c.wakes_seen) <= i)
            (void)sched_yield();
    }
    assert_int_equal(pthread_join(c.thread, NULL), 0);
    assert_int_equal(atomic_load(&c.commands), ROUNDS);
}

#define CHANNEL_TEST(name) cmocka_unit_test_setup_teardown(name, open_channel, close_channel)

static const struct CMUnitTest tests[] = {
    CHANNEL_TEST(takes_in_the_order_of_posting),
    CHANNEL_TEST(keeps_each_producers_order_exactly_once),
    cmocka_unit_test(holds_its_bounds),
    CHANNEL_TEST(waiting_for_room_times_out),
    CHANNEL_TEST(room_is_given_to_those_who_wait),
    CHANNEL_TEST(parks_only_when_there_is_nothing),
    CHANNEL_TEST(no_wake_up_is_lost),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
