/* gate.h - a counter that threads wait for: how a test waits for events instead of sleeping. */
#ifndef TESTS_GATE_H
#define TESTS_GATE_H

#include <pthread.h>
#include <stdbool.h>

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count;
} gate;

#define GATE_INIT { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 }

void gate_add(gate *g, int more);
/* True once the count is at least so much; false if it is not within 20 s: the test has failed. */
bool gate_await(gate *g, int at_least);
int gate_count(gate *g);

#endif
