/* job.h - a claimed job: what its handler sees, and the commands that end it or extend its lease. */
#ifndef PAWLI_JOB_H
#define PAWLI_JOB_H

#include <pawl/pawl.h>

#include <stdatomic.h>
#include <sys/types.h>

#include "command.h"
#include "registry.h"
#include "store/store.h"

/* Where a claimed job is. The handler's return and pawl_job_finish() may come in either order. */
typedef enum pawli_phase {
    PAWLI_PHASE_CLAIMED = 0, /* waits for an executor */
    PAWLI_PHASE_STARTED,     /* its handler runs */
    PAWLI_PHASE_DETACHED,    /* its handler returned; the application will finish it */
    PAWLI_PHASE_FINISHING,   /* finished by the application while its handler still runs */
    PAWLI_PHASE_ENDED,       /* its finalize command is posted */
    PAWLI_PHASE_ABANDONED    /* the pool has let go of it; the application's finish frees it */
} pawli_phase;

typedef enum pawli_beat_state {
    PAWLI_BEAT_IDLE = 0,
    PAWLI_BEAT_POSTED,
    PAWLI_BEAT_CLOSED /* abandoned: none will be posted any more */
} pawli_beat_state;

struct pawl_job {
    pawli_claim claim; /* first: filled by the store, read-only once dispatched */
    pawl_pool *pool;
    pid_t pid; /* of the process that runs it */
    pawli_names *names; /* held only while ABANDONED */

    /* The writer's role. */
    pawl_job *before, *after; /* in the list of jobs in hand, or of those that lost their claim */
    int64_t claimed_ns;
    bool in_hand;             /* the claim is held */
    bool ending_queued;       /* its finalize command waits to be written */
    bool is_deferred;         /* because the store refused it alone */
    pawli_heartbeat renewal;  /* the pool's own heartbeat */
    bool renewal_queued;
    pawli_ending eviction;    /* the ending of a claim whose handler is stuck */
    pawl_job *next_evicted;
    char eviction_error[80];

    /* Written before dispatch or by the executor; read by any. */
    int64_t timeout_ms; /* effective; 0: none */
    _Atomic int64_t started_ns;
    _Atomic int64_t lease_boot_ms;
    _Atomic int phase;       /* pawli_phase */
    _Atomic int stop_reason; /* told by the writer; see pawl_job_stop_reason() for the others */
    _Atomic bool lost;       /* the claim is not held any more */
    bool holds_slot;         /* detached_slot is its own */
    uint32_t detached_slot;

    /* The handler's, or the finishing thread's. */
    int64_t retry_in_ms; /* negative: not said */
    char *error;         /* NULL: none; PAWLI_ERROR_BYTES_MAX */
    size_t error_bytes;
    char error_text[64]; /* when the handler gave none, or it timed out */
    char *timeout_text;  /* both; NULL: not needed */
    pawli_effect *effects, **effects_tail;
    int returned;

    /* Commands: the poster's until posted, then the writer's. */
    pawli_command finalize;
    pawli_ending ending;
    pawli_command heartbeat;
    pawli_heartbeat beat;
    _Atomic int heartbeat_state; /* pawli_beat_state */
};

static inline pawl_job *pawli_job_of(pawli_claim *claim)
{
    return (pawl_job *)(void *)claim;
}

pawl_job *pawli_job_create(pawl_pool *pool); /* a blank; NULL: no memory */
void pawli_job_destroy(pawl_job *job);
/* Makes a job that was claimed ready for its handler, and one that has ended a blank again. */
void pawli_job_prepare(pawl_job *job, int64_t now_ns, int64_t lease_boot_ms);
void pawli_job_recycle(pawl_job *job);

/* Executor: the handler returned, or will not be called. */
void pawli_job_returned(pawl_job *job, int returned);
void pawli_job_give_back(pawl_job *job); /* uncharged; in the writer's role */

bool pawli_job_timed_out(const pawl_job *job);
/* Delay after `failure`, by the list or the exponential of the kind's handler, with jitter. */
int64_t pawli_job_backoff(pawl_pool *pool, const pawli_handler *handler, uint32_t failure);

#endif
