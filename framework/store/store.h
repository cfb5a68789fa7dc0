/* store.h - where jobs live: the seam between the runtime and a database.
 *
 * A store is driven in batches. The writer gathers what has come in, begins, and hands the whole
 * batch over; the store applies it in one transaction, commits, and has then filled in every answer.
 * So a store may run a batch as a few statements over an array, or as one pipeline to a server.
 *
 * Threads: everything here runs in the writer's role, one thread at a time, except the reading
 *          operations (get, list, stats), which any thread may call, one at a time.
 * Keeps:   I4–I8 one live claim, fences, one ending; I16 unique keys; I17 one command's failure changes
 *          no other; I20 counters equal a recount. */
#ifndef PAWLI_STORE_H
#define PAWLI_STORE_H

#include <pawl/pawl.h>

#include "../fork_mark.h"
#include "../log.h"
#include "../names.h"
#include "../options.h"
#include "../verdict.h"

typedef struct pawli_store pawli_store;

/* What the runtime knows about a kind that it serves; the first member of its handler. */
typedef struct pawli_service {
    uint32_t in_flight_max; /* 0: no limit */
    uint32_t in_flight;     /* claims held; kept by the writer */
    int32_t picked;         /* by the batch under way, less what it has ended; kept by the store */
} pawli_service;

struct pawli_new_job;

/* A claim of a job by this pool. Memory is the writer's; the store fills it. */
typedef struct pawli_claim {
    struct pawli_claim *next;
    int64_t job;
    uint64_t fence;
    struct pawli_lane *lane;     /* the store's own */
    pawli_service *service;
    const char *queue, *kind;    /* live as long as the pool's names */
    uint32_t attempt, max_attempts;
    int64_t timeout_ms;          /* 0: the handler's; PAWL_NONE */
    const void *payload;         /* a NUL follows */
    size_t payload_bytes;
    struct pawli_new_job *source; /* handed off: the new job that owns the payload; else NULL */
    char *buffer;                /* the claim's own memory for a payload that was read; reused */
    size_t buffer_bytes;
} pawli_claim;

/* A job to be stored. Strings and bytes stay valid until the batch is answered; those of a job that
 * was handed off until its claim has ended. */
typedef struct pawli_new_job {
    const char *queue, *kind;
    const void *payload; /* a NUL follows */
    size_t payload_bytes;
    const void *key;     /* NULL: none */
    size_t key_bytes;
    int32_t priority;
    int64_t delay_ms;        /* from the moment that it is stored; 0: none … */
    int64_t available_at_ms; /* … or not before this; 0: at once */
    uint32_t max_attempts;
    int64_t timeout_ms;
    void *owner; /* the runtime's */
    /* The store's while it works. */
    struct pawli_lane *lane;
    size_t order;       /* among those of its batch */
    pawli_claim *claim; /* handed off to this claim */
    bool exists;        /* its key is stored already, as `id` */
    /* The answer. */
    int64_t id;
} pawli_new_job;

/* Jobs stored all or none. */
typedef struct pawli_new_jobs {
    struct pawli_new_jobs *next;
    pawli_new_job *jobs;
    size_t count;
    pawl_status status; /* the answer: PAWL_OK, or why none was stored */
} pawli_new_jobs;

/* Work that belongs to a job's success: an application's function, or follow-on jobs. */
typedef struct pawli_effect {
    struct pawli_effect *next;
    pawl_apply_fn fn; /* NULL: `then` */
    void *arg;
    void (*drop)(void *arg);
    pawli_new_jobs *then;
} pawli_effect;

/* The end of a claim (finalize). */
typedef struct pawli_ending {
    struct pawli_ending *next;
    pawli_claim *claim;
    pawl_job *job; /* for the effects' functions */
    pawli_verdict verdict;
    pawli_verdict fallback; /* when an effect failed */
    pawli_effect *effects;  /* with a success */
    const char *error;      /* NULL: none; valid UTF-8 */
    size_t error_bytes;
    bool effects_failed;    /* the store's: one undid the whole transaction; they are not called again */
    pawl_state settled;     /* what the job has become */
    pawl_status status;     /* PAWL_OK, LEASE_LOST; or an error of the store: to be written again */
} pawli_ending;

typedef struct pawli_heartbeat {
    struct pawli_heartbeat *next;
    const pawli_claim *claim;
    int64_t lease_boot_ms; /* the answer: until when the lease holds now */
    pawl_status status;
} pawli_heartbeat;

typedef enum pawli_operation_type {
    PAWLI_CANCEL,
    PAWLI_REQUEUE,
    PAWLI_PAUSE,
    PAWLI_RESUME,
    PAWLI_SYNC /* flush what everybody has committed */
} pawli_operation_type;

typedef struct pawli_operation {
    struct pawli_operation *next;
    pawli_operation_type type;
    const char *queue;  /* pause, resume */
    const int64_t *ids; /* cancel, requeue */
    size_t count;
    pawl_status *each;  /* the answers, one an id */
    pawl_status status;
} pawli_operation;

/* A pool that holds claims, as it is known to the others. */
typedef struct pawli_holder {
    int64_t id;
    char name[PAWLI_NAME_BYTES_MAX + 1];
    char side[64];        /* its file in the side directory */
    int64_t pid;
    int64_t started;      /* the process's start time in clock ticks since boot */
    char boot[40];        /* boot id of its kernel */
    int64_t pid_space;    /* inode of its pid namespace */
} pawli_holder;

/* The claims of a holder that is proven dead. */
typedef struct pawli_rescue {
    struct pawli_rescue *next;
    int64_t holder;
    bool has_record;         /* `started` is known; else all its claims may have been running */
    bool is_stale;           /* it is, but others may have started since that was written */
    const uint64_t *started; /* fences of the jobs that were running … */
    size_t started_count;
    size_t on_threads;       /* … so many of them, the first, on the pool's own threads */
    size_t spared_count;     /* behind the fences in `started`: those of claims that never started */
    uint64_t last_started;   /* else, what has a fence up to this one had: if it runs no more, it has returned */
    int signal;              /* that ended the process; 0: not known, and neither is the culprit */
    uint64_t culprit;        /* fence of the job on whose thread it came; 0: on no job's;
                              * PAWLI_CRASH_ELSEWHERE, which is no fence: of another pool's */
    bool complete;           /* the answer: no claim of it is left */
    pawl_status status;
} pawli_rescue;

/* What the store knows about why a job runs or does not; see explain.c. */
#define PAWLI_REASONS_POOLS 64
#define PAWLI_REASONS_BEFORE_MAX 100000

typedef struct pawli_reasons {
    pawl_state state;
    bool later; /* pending, and not due when it was looked at last */
    bool cancel_requested, is_claimed_once;
    int64_t attempts, max_attempts;
    int64_t available_at_ms, updated_at_ms, claimed_at_ms, lease_until_ms, lease_boot_ms, timeout_ms;
    char queue[PAWLI_NAME_BYTES_MAX + 1], kind[PAWLI_NAME_BYTES_MAX + 1]; /* "": the lane does not exist */
    char error[512]; /* last_error, clipped; "": none */
    int64_t paused_at_ms; /* 0: its queue is not paused */
    int64_t before;       /* ready jobs that stand before it in its lane; at most one beyond the bound */
    int64_t lane_running;
    bool has_holder, holder_left; /* of the last claim */
    pawli_holder holder;
    pawli_holder pools[PAWLI_REASONS_POOLS]; /* that have not left, the newest */
    size_t pool_count;
} pawli_reasons;

typedef struct pawli_batch {
    /* What to do, in this order. */
    int64_t now_ms, boot_ms;
    pawli_ending *endings;
    pawli_heartbeat *heartbeats;
    pawli_operation *operations;
    pawli_rescue *rescues;
    bool sweep;              /* take back claims of others whose lease ran out */
    pawli_new_jobs *enqueues;
    size_t claim_max;        /* at most so many claims … */
    pawli_claim *blanks;     /* … into these, at least claim_max of them */
    bool commands_only;      /* no promotion, sweep or pruning this time */
    size_t prune_max;        /* rows of history that may be looked at */
    /* What was done. */
    pawli_claim *claimed;    /* taken from the blanks, in the order of the claims */
    size_t claimed_count, handed_off, rescued, stored, promoted;
    bool sweep_left;         /* a slice of what was to be swept */
    bool by_triggers;        /* somebody's triggers have changed what waits, after the claims perhaps, or cancelled */
    bool refused;            /* the pool's own work met an error: not again at once */
    size_t commands;
} pawli_batch;

/* What the store knows without being asked again. */
typedef struct pawli_outlook {
    int64_t claimable;    /* jobs that are due, served here and not paused */
    int64_t next_due_ms;  /* the earliest delayed job; PAWLI_NEVER */
    bool prune_wanted;    /* history is over its bounds */
    int64_t next_prune_ms; /* when it is to be looked at for its age; PAWLI_NEVER */
    bool more;            /* a bounded slice ended before its work did */
    bool foreign;         /* somebody else has committed: look() */
    int64_t wal_frames;
} pawli_outlook;

/* What the runtime tells a store. All functions run in the writer's role. */
typedef struct pawli_store_host {
    const pawli_options *options;
    const pawli_log *log;
    const pawli_fork_mark *fork_mark; /* asked after each of the application's functions (R10) */
    pawli_names *names;
    pawli_service *(*serve)(void *arg, const char *queue, const char *kind); /* NULL: not served */
    int64_t (*backoff)(void *arg, const char *kind, uint32_t failure);
    void (*applying)(void *arg, uint64_t fence); /* an on_success function of this claim runs; 0: no more */
    void *arg;
} pawli_store_host;

struct pawli_store {
    const struct pawli_store_ops *ops;
};

typedef struct pawli_store_ops {
    void (*close)(pawli_store *store);

    /* Takes the write lock, waiting up to `wait_ms`. OK, BUSY, or an error: the store is down; ask
     * recover() before the next begin. */
    pawl_status (*begin)(pawli_store *store, int64_t wait_ms);
    /* Applies and commits. OK: all is durable and each item has its answer. An error: nothing was
     * stored, or with UNKNOWN perhaps all; no item was answered; blanks and claims are blanks again.
     * The transaction is over either way. */
    pawl_status (*write)(pawli_store *store, pawli_batch *batch);
    /* Brings a store that failed into a known state (R5). OK: it can be used again. */
    pawl_status (*recover)(pawli_store *store);

    /* Notices what other connections have committed; never blocks on the write lock. */
    pawl_status (*look)(pawli_store *store, bool *changed);
    void (*outlook)(pawli_store *store, pawli_outlook *out);
    /* Housekeeping between transactions, more of it when idle. True: some is left, come again. *wrote: it has
     * committed something. */
    bool (*tidy)(pawli_store *store, bool idle, bool *wrote);
    /* Forgets which lanes are served: the registry may have changed. */
    void (*unserve)(pawli_store *store);

    /* This pool as a holder of claims: `holder->id` is set. */
    pawl_status (*join)(pawli_store *store, pawli_holder *holder, int64_t now_ms);
    pawl_status (*leave)(pawli_store *store, int64_t now_ms);
    /* The other holders that have not left, a page in the order of their ids; and when the first lease of a
     * claim of theirs runs out, on the boot clock: 0 for one that has or is broken; PAWLI_NEVER. */
    pawl_status (*survey)(pawli_store *store, int64_t boot_ms, int64_t after_id, pawli_holder *holders,
                          size_t capacity, size_t *count, int64_t *expires_boot_ms);
    /* Jobs claimed here that somebody has cancelled. */
    pawl_status (*cancels)(pawli_store *store, int64_t *jobs, size_t capacity, size_t *count);

    /* Readers: any thread, one at a time. */
    pawl_status (*get)(pawli_store *store, int64_t id, pawl_job_info *out);
    pawl_status (*list)(pawli_store *store, const pawl_filter *filter, pawl_job_info *out,
                        size_t capacity, size_t *count);
    pawl_status (*stats)(pawli_store *store, int64_t now_ms, int64_t boot_ms,
                         pawl_stats_info *out);
    pawl_status (*explain)(pawli_store *store, int64_t id, pawli_reasons *out);
    /* Who holds that claim; id 0: nobody does who has not left. */
    pawl_status (*holder_of)(pawli_store *store, int64_t id, uint64_t fence, pawli_holder *out);
} pawli_store_ops;

#endif
