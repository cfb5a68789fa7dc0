/* dispatch.c - claimed jobs on their way from the writer to the executors; see dispatch.h.
 * Threads: the writer puts and takes back, executors get.
 * Keeps:   D1 a job is got or taken back, never both; D2 jobs start in the order of their claims. */
#include "dispatch.h"

#include "role.h"

void pawli_dispatch_init(pawli_dispatch *d)
{
    (void)pthread_mutex_init(&d->lock, NULL);
    (void)pthread_cond_init(&d->arrived, NULL);
    d->first = d->newest = NULL;
    d->sleepers = 0;
    d->closed = false;
    atomic_init(&d->length, 0);
    atomic_init(&d->busy, 0);
    atomic_init(&d->detached, 0);
}

void pawli_dispatch_fini(pawli_dispatch *d)
{
    PAWLI_ASSERT(d->first == NULL);
    (void)pthread_cond_destroy(&d->arrived);
    (void)pthread_mutex_destroy(&d->lock);
}

static pawl_job *next_of(const pawl_job *job)
{
    return job->claim.next != NULL ? pawli_job_of(job->claim.next) : NULL;
}

static pawl_job *unlink_first(pawli_dispatch *d)
{
    pawl_job *job = d->first;
    d->first = next_of(job);
    job->claim.next = NULL;
    (void)atomic_fetch_sub(&d->length, 1);
    return job;
}

void pawli_dispatch_put(pawli_dispatch *d, pawli_claim *claims, size_t count)
{
    if (count == 0)
        return;
    pawl_job *newest = pawli_job_of(claims);
    while (newest->claim.next != NULL)
        newest = next_of(newest);
    (void)pthread_mutex_lock(&d->lock);
    if (d->first == NULL)
        d->first = pawli_job_of(claims);
    else
        d->newest->claim.next = claims;
    d->newest = newest;
    (void)atomic_fetch_add(&d->length, (uint32_t)count);
    uint32_t wake = d->sleepers < count ? d->sleepers : (uint32_t)count;
    (void)pthread_mutex_unlock(&d->lock);
    for (uint32_t i = 0; i < wake; i++)
        (void)pthread_cond_signal(&d->arrived);
}

pawl_job *pawli_dispatch_take_back(pawli_dispatch *d, int64_t claimed_ns)
{
    pawl_job *job = NULL;
    (void)pthread_mutex_lock(&d->lock);
    if (d->first != NULL && d->first->claimed_ns <= claimed_ns)
        job = unlink_first(d);
    (void)pthread_mutex_unlock(&d->lock);
    return job;
}

static pawl_job *get(pawli_dispatch *d, bool wait)
{
    pawl_job *job = NULL;
    (void)pthread_mutex_lock(&d->lock);
    d->sleepers++;
    while (wait && d->first == NULL && !d->closed)
        (void)pthread_cond_wait(&d->arrived, &d->lock);
    d->sleepers--;
    if (d->first != NULL) {
        job = unlink_first(d);
        (void)atomic_fetch_add(&d->busy, 1);
    }
    (void)pthread_mutex_unlock(&d->lock);
    return job;
}

pawl_job *pawli_dispatch_get(pawli_dispatch *d)
{
    return get(d, true);
}

pawl_job *pawli_dispatch_try(pawli_dispatch *d)
{
    return get(d, false);
}

void pawli_dispatch_done(pawli_dispatch *d)
{
    (void)atomic_fetch_sub(&d->busy, 1);
}

static void set_closed(pawli_dispatch *d, bool closed)
{
    (void)pthread_mutex_lock(&d->lock);
    d->closed = closed;
    (void)pthread_cond_broadcast(&d->arrived);
    (void)pthread_mutex_unlock(&d->lock);
}

void pawli_dispatch_open(pawli_dispatch *d)
{
    set_closed(d, false);
}

void pawli_dispatch_close(pawli_dispatch *d)
{
    set_closed(d, true);
}
