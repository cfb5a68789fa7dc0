/* writer.h - the one thread, or caller in its role, that writes to the store. */
#ifndef PAWLI_WRITER_H
#define PAWLI_WRITER_H

#include <pawl/pawl.h>

#include <stdatomic.h>

#include "job.h"
#include "request.h"

typedef struct pawli_queue {
    pawli_command *first, *last;
    size_t count;
} pawli_queue;

typedef struct pawli_writer {
    /* The writer's role only. */
    pawli_queue requests;    /* new jobs and operations, in the order of the calls */
    pawli_queue waiters;     /* requests to be answered when nothing is left to do */
    pawli_queue endings;     /* finalize commands of jobs */
    pawli_queue deferred;    /* those that the store refused alone; tried again at deferred_at_ns */
    pawli_queue heartbeats;  /* of handlers */
    pawl_job *in_hand;       /* jobs whose claim this pool holds */
    size_t in_hand_count;
    pawl_job *lost;          /* jobs whose claim was lost and whose handler is not done with */
    pawl_job *evicted;       /* stuck jobs whose claim is to be ended; linked by next_evicted */
    pawli_claim *blanks;
    size_t blank_count;
    bool may_claim;          /* not while a caller only borrows the role */
    bool takes_no_more;      /* a stop finishes what was posted before it */
    uint32_t finished_before, finished_last; /* endings in the last two commits */
    int64_t next_supervise_ns, next_survey_ns, next_tidy_ns;
    int64_t retry_at_ns;     /* the store: not to be tried before */
    int64_t own_work_at_ns;  /* claims, promotion, rescue, pruning: likewise */
    int64_t deferred_at_ns, deferred_delay_ns;
    int64_t retry_delay_ns;
    bool others;             /* other pools hold claims */
    bool sweep;              /* claims of others are past their lease */
    _Atomic bool detached_some; /* set by executors: a lost job may be among them */
    _Atomic bool look_wanted;   /* set by the loop: the log has changed */
    _Atomic bool survey_wanted; /* set by the loop: another pool has come or gone */
    _Atomic int64_t stirred_ns; /* when it was set last: a pool that comes is known only when it has joined */
    int64_t surveyed_ns;        /* when the last survey was */
    pawli_rescue *rescues;
    bool lost_some;          /* a job in hand is marked as lost */
    size_t renewals;         /* jobs in hand with renewal_queued */
    bool claims_dry;         /* nothing could be claimed although the counters said so */
    bool trouble_told;       /* the store's trouble was logged; once until it is over */
    /* Any thread reads. */
    _Atomic int trouble; /* a status: why the last step could not write; PAWL_OK */
    _Atomic uint32_t in_hand_now;
    _Atomic uint32_t stuck;
    _Atomic uint64_t commits, commands, handed_off, late_refused, rescued;
} pawli_writer;

void pawli_writer_init(pawli_writer *writer);
void pawli_writer_fini(pawl_pool *pool);
/* One step in the writer's role. True: something was done, step again at once. */
bool pawli_writer_step(pawl_pool *pool);
/* The same for a caller that holds the role lock: answers requests, claims nothing. */
bool pawli_writer_step_as_caller(pawl_pool *pool);
/* When the next step has something to do although no command came; steady ns of the pool's clock. */
int64_t pawli_writer_next_ns(pawl_pool *pool);
/* The writer thread, until pool->writer_exits. */
void *pawli_writer_main(void *arg);
/* Answers what has waited too long, or all of it. */
void pawli_writer_expire(pawl_pool *pool, pawl_status status, bool all);
/* Are there callers to answer or outcomes to write? */
bool pawli_writer_owes(const pawl_pool *pool);
/* An outcome that the store refused waits for a while, and holds up no other (W3). */
void pawli_writer_defer(pawl_pool *pool, pawl_job *job);

/* For batch.c: how many more jobs may be claimed; and which claims of this pool were cancelled. */
size_t pawli_writer_claim_room(pawl_pool *pool);
bool pawli_writer_does_own_work(const pawl_pool *pool);
void pawli_writer_look_for_cancels(pawl_pool *pool);

/* survey.c: the other pools. What a survey finds is written by the next batch: done, or dropped. */
void pawli_survey_first(pawl_pool *pool);
void pawli_survey_if_due(pawl_pool *pool, int64_t now_ns);
void pawli_survey_soon(pawl_pool *pool); /* others do something */
int64_t pawli_survey_next_ns(const pawl_pool *pool);
void pawli_survey_done(pawl_pool *pool, bool sweep_left);
void pawli_survey_drop(pawl_pool *pool);

/* supervise.c: what the clock has to say, of the jobs in hand and of the other pools. */
void pawli_supervise(pawl_pool *pool, int64_t now_ns);
int64_t pawli_supervise_next_ns(const pawl_pool *pool);
void pawli_supervise_by(pawl_pool *pool, int64_t steady_ns); /* not later than that */
/* A job leaves the list of those in hand; `lost`: it is kept until its handler is done with it. */
void pawli_in_hand_add(pawl_pool *pool, pawl_job *job);
void pawli_in_hand_remove(pawl_pool *pool, pawl_job *job);
void pawli_claim_lost(pawl_pool *pool, pawl_job *job);

void pawli_queue_push(pawli_queue *queue, pawli_command *command);
pawli_command *pawli_queue_pop(pawli_queue *queue);

#endif
