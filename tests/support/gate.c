/* gate.c - see gate.h. */
#include "gate.h"

#include <errno.h>
#include <time.h>

void gate_add(gate *g, int more)
{
    (void)pthread_mutex_lock(&g->lock);
    g->count += more;
    (void)pthread_cond_broadcast(&g->changed);
    (void)pthread_mutex_unlock(&g->lock);
}

bool gate_await(gate *g, int at_least)
{
    struct timespec until;
    int error = 0;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    (void)pthread_mutex_lock(&g->lock);
    while (g->count < at_least && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&g->changed, &g->lock, &until);
    bool reached = g->count >= at_least;
    (void)pthread_mutex_unlock(&g->lock);
    return reached;
}

int gate_count(gate *g)
{
    (void)pthread_mutex_lock(&g->lock);
    int count = g->count;
    (void)pthread_mutex_unlock(&g->lock);
    return count;
}
