/* pawl.h - durable background jobs inside the application's own process.
 *
 * An application opens a pool on an SQLite file, registers handler functions, enqueues jobs and
 * starts the pool. One writer thread makes every change to the file in group commits; executor
 * threads run the handlers outside any transaction. This header is the whole API. It is clean as
 * strict C11 and as C++17.
 *
 * Conventions
 *   Status      functions return a pawl_status; errors are negative. pawl_error_message() tells, for
 *               the calling thread, what the last failed call met and what to do about it.
 *   Structs     begin with struct_size and are only ever appended to. PAWL_OPTIONS(...), PAWL_JOB(...)
 *               and PAWL_HANDLER(...) set it for C; the ..._INIT macros serve C++ and bindings.
 *               The stride of an array of structs is the first element's struct_size.
 *   Zero        means "the default" in a struct's field. Arguments are literal: 0 ms is at once.
 *   Time        durations are int64_t milliseconds; PAWL_FOREVER and PAWL_NONE (-1) where said, other
 *               negatives are PAWL_ERR_INVALID. Points in time are Unix milliseconds, UTC.
 *   Threads     every function may be called from any thread, unless it says otherwise.
 *   fork        a pool does not survive fork(): in the child every call answers PAWL_ERR_FORKED.
 *               Where a function that a pool called forks, the child exits by itself (_exit). If it returns
 *               from that function, it ends there: what comes next is the parent's to do. */
#ifndef PAWL_PAWL_H
#define PAWL_PAWL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PAWL_API __attribute__((visibility("default")))
#define PAWL_MUST_CHECK __attribute__((warn_unused_result))
#define PAWL_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#else
#define PAWL_API
#define PAWL_MUST_CHECK
#define PAWL_PRINTF(format_at, first_at)
#endif

#define PAWL_VERSION "0.1.0"

/** A wait or a retention without end. */
#define PAWL_FOREVER (-1)
/** No limit (a timeout that is switched off). */
#define PAWL_NONE (-1)

struct sqlite3; /* an application's own database connection; see pawl_enqueue_in() */

typedef struct pawl_pool pawl_pool; /* one open runtime: a store, a writer, executors, a loop */
typedef struct pawl_job pawl_job;   /* one claimed job, as its handler sees it */

#ifdef __cplusplus
#define PAWL_INIT(type) ([] { type empty{}; empty.struct_size = sizeof(type); return empty; }())
#else
#define PAWL_INIT(type) { .struct_size = sizeof(type) }
#endif

/* ------------------------------------------------------------------------------- words */

typedef enum pawl_status {
    PAWL_OK = 0,
    PAWL_EXISTS = 1,            /* a job with this kind and idempotency key is stored already */
    PAWL_ACCEPTED = 2,          /* will happen, has not happened yet */
    PAWL_ERR_INVALID = -1,      /* an argument, an option or a file cannot be used as it is */
    PAWL_ERR_NOMEM = -2,        /* no memory, no thread or no descriptor to be had */
    PAWL_ERR_BUSY = -3,         /* not taken up within store_timeout_ms; nothing was stored */
    PAWL_ERR_STORE = -4,        /* SQLite or the file system refused; nothing was stored */
    PAWL_ERR_UNKNOWN = -5,      /* the commit's result is not known: stored whole or not at all */
    PAWL_ERR_FULL = -6,         /* the disk, or a bound of the pool, is full; nothing was stored */
    PAWL_ERR_NOT_FOUND = -7,    /* no such job, or no such file */
    PAWL_ERR_STATE = -8,        /* not possible in this state, or not from this place */
    PAWL_ERR_LEASE_LOST = -9,   /* the claim is not held any more; nothing was changed */
    PAWL_ERR_TIMEOUT = -10,     /* the time given is over; what was begun goes on */
    PAWL_ERR_CLOSED = -11,      /* the pool is closed or closing */
    PAWL_ERR_FORKED = -12,      /* the pool belongs to the parent of this process */
    PAWL_ERR_VERSION = -13      /* the file was written by a newer pawl; or by an older one, and only a
                                   pool that may write can upgrade it */
} pawl_status;

typedef enum pawl_state {
    PAWL_STATE_PENDING = 0, /* waits, due now or later (available_at_ms) */
    PAWL_STATE_RUNNING,     /* claimed: holds a lease and a fence */
    PAWL_STATE_SUCCEEDED,
    PAWL_STATE_FAILED,      /* the dead letter: attempts used up, or a permanent failure */
    PAWL_STATE_CANCELLED,
    PAWL_STATE_BLOCKED      /* reserved: waits for other jobs */
} pawl_state;

/** What a handler returns. Any other value follows the handler's policy for unknown errors, so a
 *  handler may also return an exit code: 0 is success. */
typedef enum pawl_outcome {
    PAWL_UNKNOWN = -1,    /* an error without a class: the policy `unknown` decides */
    PAWL_SUCCEEDED = 0,
    PAWL_RETRY = 101,     /* try again after the backoff, while attempts are left; while the pool stops
                             it is given back uncharged instead */
    PAWL_FAILED,          /* permanent: no retry */
    PAWL_CANCELLED,       /* ended on request; of a job that was told PAWL_STOP_POOL and that nobody has
                             cancelled it means PAWL_RETRY */
    PAWL_SNOOZED,         /* not now: again after pawl_job_retry_in(), uncharged */
    PAWL_RELEASED,        /* given back at once, uncharged */
    PAWL_DETACHED         /* goes on elsewhere: pawl_job_finish() will end it */
} pawl_outcome;

typedef enum pawl_stop_reason {
    PAWL_STOP_NONE = 0,
    PAWL_STOP_CANCEL,     /* somebody cancelled the job */
    PAWL_STOP_TIMEOUT,    /* its timeout_ms has passed */
    PAWL_STOP_LEASE_LOST, /* its lease ran out or its claim was taken: its writes will be refused */
    PAWL_STOP_POOL        /* the pool stops and its grace time is over */
} pawl_stop_reason;

/** What a commit survives. */
typedef enum pawl_synchronous {
    PAWL_SYNCHRONOUS_DEFAULT = 0, /* FULL */
    PAWL_SYNCHRONOUS_FULL,        /* flushed before it is acknowledged: survives a power cut */
    PAWL_SYNCHRONOUS_NORMAL       /* survives the process; a power cut may lose the last commits */
} pawl_synchronous;

typedef enum pawl_log_level {
    PAWL_LOG_ERROR = 0,
    PAWL_LOG_WARNING,
    PAWL_LOG_INFO
} pawl_log_level;

/* --------------------------------------------------------------------------- callbacks */

/** Runs a job on an executor thread, outside any transaction and any lock of pawl.
 *  Returns a pawl_outcome. `job` is valid until the handler returns, or, for PAWL_DETACHED, until
 *  pawl_job_finish(). It must return: no longjmp, no pthread_exit, no C++ exception out of it. */
typedef int (*pawl_handler_fn)(pawl_job *job, void *arg);

/** Writes a job's effects; see pawl_job_on_success(). `db` is the writer's struct sqlite3 *. Statements that
 *  are left on it are reset after the function, and finalized by pawl_close(). Link the SQLite that libpawl is
 *  linked with: two copies in one process cannot share a connection. */
typedef pawl_status (*pawl_apply_fn)(void *db, pawl_job *job, void *arg);

/** Tells the end of a pawl_enqueue_async(): PAWL_OK or PAWL_EXISTS with the job's id, or an error. */
typedef void (*pawl_enqueued_fn)(pawl_status status, int64_t id, void *arg);

/** How long to wait after failure number `attempt` (from 1). `error` is never NULL. Runs on the
 *  executor. Returns milliseconds; a negative answer means the pool's default backoff. */
typedef int64_t (*pawl_backoff_fn)(uint32_t attempt, const char *error, void *arg);

/** Receives one line, without a newline, escaped for a terminal. Any of pawl's threads, or the
 *  caller's; must not call into the pool. */
typedef void (*pawl_log_fn)(pawl_log_level level, const char *line, void *arg);

/** Called for the writer's connection at every open, so that the application can register its own
 *  functions, collations and modules. Anything but PAWL_OK refuses the open. */
typedef pawl_status (*pawl_db_open_fn)(void *db, void *arg);

/* ----------------------------------------------------------------------------- options */

enum {
    PAWL_OPEN_EXISTING = 1 << 0,  /* refuse a file that is missing or holds no pawl tables */
    PAWL_OPEN_READ_ONLY = 1 << 1, /* only pawl_get, pawl_list, pawl_stats; implies EXISTING */
    PAWL_OPEN_INLINE = 1 << 2     /* no threads, a virtual clock: driven by pawl_step() */
};

typedef struct pawl_options {
    size_t struct_size;            /* set by PAWL_OPTIONS(...) or PAWL_OPTIONS_INIT */
    const char *store;             /* path of the SQLite file; required; copied */
    uint32_t flags;                /* PAWL_OPEN_... */
    uint32_t executors;            /* threads that run handlers; 0: the CPUs this process may use, at
                                      least 4; at most 1024 */
    const char *const *queues;     /* serve only these; copied; NULL: every queue */
    size_t queue_count;
    int64_t lease_ms;              /* a claim expires this long after its last heartbeat; default
                                      60 000; 100 ms to 1 day */
    uint32_t max_attempts;         /* for jobs whose spec names none; default 5 */
    pawl_synchronous synchronous;  /* default FULL */
    int64_t store_timeout_ms;      /* how long a call may wait to be taken up; default 5 000 */
    uint32_t command_max;          /* commands that may wait for the writer; default 16 384 */
    size_t command_bytes_max;      /* and their payload; default 64 MiB */
    size_t payload_bytes_max;      /* of one job; default 1 MiB, at most 256 MiB */
    uint32_t detached_max;         /* detached jobs in flight before claims pause; default 4 096 */
    size_t wal_bytes_max;          /* what the write-ahead log is kept within; default 16 MiB */
    int64_t keep_succeeded_ms;     /* default 7 days; PAWL_FOREVER */
    int64_t keep_succeeded_max;    /* rows; default 1 000 000; PAWL_FOREVER: any number */
    int64_t keep_failed_ms;        /* failed and cancelled; default 30 days; PAWL_FOREVER */
    int64_t keep_failed_max;       /* rows; default 1 000 000; PAWL_FOREVER: any number */
    size_t stack_bytes;            /* of each executor; default 1 MiB, at least 64 KiB */
    const char *name;              /* shown as claimed_by; default "HOST:PID"; copied */
    pawl_log_fn log;               /* default: warnings and errors to standard error */
    void *log_arg;
    pawl_db_open_fn db_open;
    void *db_open_arg;
    uint64_t seed;                 /* for backoff jitter; 0: a different one each time */
    bool note_crashes;             /* tell which job a crash belongs to; see pawl_note_crash() */
} pawl_options;

#define PAWL_OPTIONS_INIT PAWL_INIT(pawl_options)
#ifndef __cplusplus
#define PAWL_OPTIONS(...) (&(pawl_options){ .struct_size = sizeof(pawl_options), __VA_ARGS__ })
#endif

typedef struct pawl_handler_options {
    size_t struct_size;
    int64_t timeout_ms;            /* from the handler's start; default and PAWL_NONE: no limit (a
                                      detached job: 1 h). Then pawl_job_should_stop() is true. A job
                                      that has not ended one lease later loses its claim: the attempt
                                      is charged, a late outcome refused, and it may run again beside
                                      the handler that does not return */
    int unknown;                   /* PAWL_RETRY (the default) or PAWL_FAILED for unknown values */
    const int64_t *backoff_ms;     /* delay after failure 1, 2, …; the last repeats; copied. Default
                                      10 s, 30 s, 2 min, 5 min. Up to 10 % is added at random */
    size_t backoff_count;
    int64_t backoff_first_ms;      /* or exponential: after failure 1 this long, then … */
    uint32_t backoff_percent;      /* … this many per cent of the delay before; default 200 … */
    int64_t backoff_max_ms;        /* … up to this; default 1 h */
    pawl_backoff_fn backoff_fn;    /* or a function */
    void *backoff_arg;
    uint32_t in_flight_max;        /* claims of this kind held at once by this pool; 0: no limit */
} pawl_handler_options;

#define PAWL_HANDLER_OPTIONS_INIT PAWL_INIT(pawl_handler_options)
#ifndef __cplusplus
#define PAWL_HANDLER(...)                                                                          \
    (&(pawl_handler_options){ .struct_size = sizeof(pawl_handler_options), __VA_ARGS__ })
#endif

typedef struct pawl_job_spec {
    size_t struct_size;
    const char *kind;              /* required; UTF-8, 1 to 255 bytes, no control characters, U+FFFE, U+FFFF */
    const char *queue;             /* default "default"; UTF-8, up to 255 bytes */
    const void *payload;           /* any bytes */
    size_t payload_bytes;
    int32_t priority;              /* higher runs first */
    int64_t delay_ms;              /* not before so long from now … */
    int64_t available_at_ms;       /* … or not before this time (Unix milliseconds) */
    uint32_t max_attempts;         /* default: the pool's */
    int64_t timeout_ms;            /* default: the handler's; PAWL_NONE: no limit */
    const void *idempotency_key;   /* 1 to 255 bytes, any; NULL: none. One stored job per (kind, key) */
    size_t idempotency_key_bytes;
} pawl_job_spec;

#define PAWL_JOB_INIT PAWL_INIT(pawl_job_spec)
#ifndef __cplusplus
#define PAWL_JOB(...) (&(pawl_job_spec){ .struct_size = sizeof(pawl_job_spec), __VA_ARGS__ })
#endif

/* ---------------------------------------------------------------------- the pool's life */

/** Opens the job database, creating it or pawl's tables in it where needed, and builds a stopped
 *  pool. No thread runs before pawl_start().
 *  Ownership: on PAWL_OK the caller owns *out and ends it with pawl_close(); else *out is untouched.
 *  Blocks on the disk. Not inside a handler's apply function.
 *  Errors: INVALID (an option; a path that cannot hold jobs, or one with foreign pawl_ tables), NOMEM,
 *  STORE (not a database, damaged, not writable), BUSY, VERSION, and NOT_FOUND with PAWL_OPEN_EXISTING. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_open(const pawl_options *options, pawl_pool **out);

/** Names the function that runs jobs of `kind`. Strings and lists are copied; `arg` is the caller's
 *  and must outlive the pool. `options` may be NULL.
 *  Errors: STATE (the pool runs, or the kind has a handler already), INVALID, NOMEM. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_register(pawl_pool *pool, const char *kind,
                                                   pawl_handler_fn handler, void *arg,
                                                   const pawl_handler_options *options);

/** Starts the writer, the executors and the loop, and rescues what dead processes left behind: what they
 *  were running is due at once, or, from its second such death on, after a step of its backoff.
 *  A stopped pool may be started again. Starting a running pool answers PAWL_OK. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_start(pawl_pool *pool);

/** When a process dies, the jobs that its handlers were running are charged an attempt each. To charge the
 *  one that crashed, and to name the signal in its last_error, the pool must know on which thread the signal
 *  came. With the option note_crashes pawl_start() puts a handler before those that are there for SEGV, BUS,
 *  FPE, ILL, TRAP, SYS and ABRT of the whole process; it writes a note of a few bytes and lets happen what
 *  would have happened without it. pawl_stop() takes it away after the last such pool. An application that
 *  installs a crash handler after pawl_start() calls this function from it instead: it is async-signal-safe.
 *  Nothing can be noted of SIGKILL; a signal that was sent to the process (kill) names no job. A fault that the
 *  application's handler mends by returning leaves no note; one that it jumps out of (siglongjmp), outside of a
 *  pawl handler, leaves it until the next one. Any thread; does nothing without a running pool with
 *  note_crashes. */
PAWL_API void pawl_note_crash(int signal);

/** Waits until all earlier calls are answered, no claim is held here (detached jobs included) and no
 *  job is due that this pool could claim. Delayed jobs and future retries do not count. 0 ms: looks once.
 *  Callbacks of asynchronous enqueues may still be on their way.
 *  Errors: TIMEOUT, STATE (inside a handler), CLOSED. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_wait_idle(pawl_pool *pool, int64_t timeout_ms);

/** Stops: no more claims, jobs that have not started are given back uncharged, handlers run on for
 *  grace_ms; then pawl_job_should_stop() turns true, and 5 s more are given. PAWL_OK: this process
 *  holds no claim and no thread of the pool. TIMEOUT: handlers still run, their claims are kept, the
 *  pool goes on stopping; call again. Inside a handler of this pool it begins the stop and answers
 *  PAWL_ACCEPTED. A stopped pool answers PAWL_OK. PAWL_FOREVER waits as long as it takes. */
PAWL_API pawl_status pawl_stop(pawl_pool *pool, int64_t grace_ms);

/** Stops the pool if needed, with 15 s of grace, and frees it. NULL is PAWL_OK. On TIMEOUT (a
 *  handler still runs, or the store does not take what one has reported) or STATE (inside a handler) nothing
 *  was freed. */
PAWL_API pawl_status pawl_close(pawl_pool *pool);

/** What this thread's last failed call met, which file, and what to do. Never NULL; valid until the
 *  thread's next failed call. */
PAWL_API const char *pawl_error_message(void);
PAWL_API const char *pawl_status_name(pawl_status status); /* "PAWL_ERR_BUSY" */
PAWL_API const char *pawl_state_name(pawl_state state);    /* "pending" */
PAWL_API const char *pawl_version(void);                   /* of the library: "0.1.0" */

/* ----------------------------------------------------------------------------- enqueue */

/** Stores a job, whether or not its kind has a handler here. PAWL_OK: it is committed, and with synchronous
 *  FULL flushed to the disk. PAWL_EXISTS: a job with this kind and key is stored already, in whatever state;
 *  *id_out is its id. `id_out` may be NULL. Blocks until the commit; while the channel is full, up to store_timeout_ms. A pool that is
 *  stopping or stopped takes jobs too; they wait.
 *  Errors: INVALID, NOMEM, BUSY, FULL, STORE, UNKNOWN, STATE (from an apply function), CLOSED. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_enqueue(pawl_pool *pool, const pawl_job_spec *spec,
                                                  int64_t *id_out);

/** Stores `count` jobs in one transaction, all or none. `ids_out` and `each_out` (PAWL_OK or
 *  PAWL_EXISTS; on an invalid spec its error) have room for `count`, or are NULL. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_enqueue_many(pawl_pool *pool, const pawl_job_spec *specs,
                                                       size_t count, int64_t *ids_out,
                                                       pawl_status *each_out);

/** Copies the job and returns at once. `done` (or NULL) is called exactly once, on the loop thread,
 *  after the commit, if and only if this answers PAWL_OK. On a pool that is not started the job waits
 *  for the next call that blocks, for pawl_start() or for pawl_close(), which then calls `done`.
 *  Errors: as above; FULL: the channel is full just now. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_enqueue_async(pawl_pool *pool, const pawl_job_spec *spec,
                                                        pawl_enqueued_fn done, void *arg);

/** Stores a job through the application's own connection: inside its transaction if it has one open,
 *  so that the job exists if and only if that transaction commits. Without one the call commits by itself.
 *  Beside a running pool set a busy timeout on `db`, and begin with BEGIN IMMEDIATE: a plain BEGIN that has
 *  read cannot write any more once the pool has committed. `schema` names the attached database that holds
 *  pawl's tables; NULL is "main".
 *
 *  One file: "if and only if" holds for rows in the same file as pawl's tables. A transaction over several
 *  ATTACHed files in WAL mode is atomic in each file only: if the process or the machine dies in the midst of
 *  the commit, one file may have its half and another not. Outside a transaction the call takes, for its short
 *  time, the write lock of every attached database.
 *
 *  Needs no pool: jobs without max_attempts get 5, and payloads may have up to 256 MiB. Running pools see the
 *  job within milliseconds of the commit, by watching the file; one that the connection is attached to
 *  (pawl_attach) is told. It is as durable as the connection's commits: with synchronous=NORMAL call
 *  pawl_sync() when it must survive a power cut. Say PRAGMA wal_autocheckpoint=0 on `db` (see README,
 *  "Limits"). last_insert_rowid() stays the application's; sqlite3_changes() does not.
 *  Threads: the one that uses `db`.
 *  Errors: INVALID (the spec; no such schema, or no pawl tables there), VERSION (of the tables), BUSY (another
 *  connection writes), FULL, NOMEM, STORE (SQLite, an authorizer, a trigger), STATE (a statement that writes
 *  is under way on `db`: INSERT … RETURNING before its last row), UNKNOWN (the own commit failed). After an
 *  error the transaction is as it was before the call, and goes on; but after FULL, NOMEM and STORE SQLite may
 *  have given it up whole, as for any statement: the message says so, and sqlite3_get_autocommit() tells. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_enqueue_in(struct sqlite3 *db, const char *schema,
                                                     const pawl_job_spec *spec, int64_t *id_out);

/** Prepares the application's connection for pawl_enqueue_in(): switches its automatic checkpoints
 *  off, replaces its WAL hook, and wakes the pool at its commits. The connection must have opened the pool's
 *  file, or ATTACHed it before. It may be attached to several pools; attached again to the same one it stays
 *  attached once (PAWL_OK), which also puts the hook back if the application has replaced it.
 *  Undo with pawl_detach_db() before the connection is closed; after pawl_close() the hook does nothing. What was
 *  detached stays without automatic checkpoints, and needs them switched on only if it outlives every pool.
 *  Threads: the one that uses `db`. Errors: INVALID (NULL, another file), NOMEM, STORE, CLOSED; of
 *  pawl_detach_db() NOT_FOUND (not attached), CLOSED. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_attach(pawl_pool *pool, struct sqlite3 *db);
PAWL_API pawl_status pawl_detach_db(pawl_pool *pool, struct sqlite3 *db);

/** Flushes to the disk whatever has been committed to the store so far, by any connection of any process;
 *  also in a pool with PAWL_SYNCHRONOUS_NORMAL. PAWL_OK: it survives a power cut. Costs one or two commits,
 *  shared with what else the pool writes. Errors: BUSY, FULL, STORE, UNKNOWN, STATE, CLOSED. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_sync(pawl_pool *pool);

/* ----------------------------------------------------------------------------- operate */

/** Cancels a job. PAWL_OK: it was pending and will never run (or was cancelled already).
 *  PAWL_ACCEPTED: it runs; its handler is told, and it will not be started again; a success that it
 *  still reports stands. Errors: NOT_FOUND, STATE (it has succeeded or failed). */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_cancel(pawl_pool *pool, int64_t id);

/** Makes a failed or cancelled job pending again: due now, attempts 0, same id, key and priority.
 *  Errors: NOT_FOUND, STATE (it is neither failed nor cancelled). */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_requeue(pawl_pool *pool, int64_t id);

/** The same for many jobs, up to 100 000, in one transaction. `each_out` (or NULL) tells each one's status; the call
 *  answers PAWL_OK when it was committed, whatever the single answers are. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_cancel_many(pawl_pool *pool, const int64_t *ids,
                                                      size_t count, pawl_status *each_out);
PAWL_API PAWL_MUST_CHECK pawl_status pawl_requeue_many(pawl_pool *pool, const int64_t *ids,
                                                       size_t count, pawl_status *each_out);

/** Stops and resumes claims from a queue, for every process that serves the file. Lasting. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_pause(pawl_pool *pool, const char *queue);
PAWL_API PAWL_MUST_CHECK pawl_status pawl_resume(pawl_pool *pool, const char *queue);

/* -------------------------------------------------------------------------------- read */

typedef struct pawl_job_info {
    size_t struct_size;
    void *owned;                 /* the memory behind the pointers below; see pawl_job_info_clear() */
    int64_t id;
    pawl_state state;
    int32_t priority;
    uint32_t attempts;           /* charged so far */
    uint32_t max_attempts;
    uint64_t fence;              /* of the last claim; 0: never claimed */
    bool cancel_requested;       /* runs, and was told to stop */
    int64_t timeout_ms;          /* 0: its handler's; PAWL_NONE: no limit */
    int64_t created_at_ms;
    int64_t updated_at_ms;
    int64_t available_at_ms;
    int64_t claimed_at_ms;       /* 0: never */
    int64_t lease_until_ms;      /* 0: not running */
    int64_t finished_at_ms;      /* 0: not ended */
    const char *kind;
    const char *queue;
    const char *claimed_by;      /* NULL: never claimed, or forgotten */
    const char *last_error;      /* NULL: none */
    const void *payload;         /* a NUL follows */
    size_t payload_bytes;
    const void *idempotency_key; /* NULL: none */
    size_t idempotency_key_bytes;
    bool holder_died;            /* runs, but the process that has claimed it has died: a pool takes it back */
} pawl_job_info;
#define PAWL_JOB_INFO_INIT PAWL_INIT(pawl_job_info)

/** Reads one job. `info` arrives with struct_size set, and empty or cleared. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_get(pawl_pool *pool, int64_t id, pawl_job_info *info);
/** Frees what a job info holds and empties it. */
PAWL_API void pawl_job_info_clear(pawl_job_info *info);

typedef struct pawl_filter {
    size_t struct_size;
    uint32_t states;             /* bits 1u << PAWL_STATE_...; 0: every state */
    const char *queue;           /* NULL: every queue */
    const char *kind;            /* NULL: every kind */
    int64_t after_id;            /* only ids beyond this one; 0: from the start */
    bool newest_first;           /* ids fall; after_id then means ids below it */
} pawl_filter;
#define PAWL_FILTER_INIT PAWL_INIT(pawl_filter)

/** Reads one page of jobs in the order of their ids: up to `capacity` of them into `infos`, whose
 *  elements arrive with struct_size set, and empty. Go on with after_id = the last id. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_list(pawl_pool *pool, const pawl_filter *filter,
                                               pawl_job_info *infos, size_t capacity,
                                               size_t *count_out);

typedef struct pawl_lane_stats {
    size_t struct_size;
    const char *queue;
    const char *kind;
    bool paused;                 /* its queue is */
    bool served;                 /* this pool has a handler for the kind and serves the queue */
    int64_t pending_due;
    int64_t pending_later;
    int64_t running;
    int64_t succeeded;           /* stored now; `pruned` counts those that were deleted */
    int64_t failed;
    int64_t cancelled;
    int64_t blocked;
    int64_t enqueued;            /* ever */
    int64_t pruned;              /* ever */
    int64_t expired;             /* running past their lease */
    int64_t oldest_due_age_ms;   /* of the job that would be claimed first in this lane; 0: none due */
    const char *last_error;      /* NULL: none */
    int64_t last_error_at_ms;
} pawl_lane_stats;

typedef struct pawl_stats_info {
    size_t struct_size;
    void *owned;
    pawl_lane_stats *lanes;      /* sorted by queue and kind; step by lanes[0].struct_size */
    size_t lane_count;
    uint32_t executors;          /* of this pool; 0: not started */
    uint32_t executors_busy;
    uint32_t executors_stuck;    /* whose handler runs on although its claim is lost */
    uint32_t in_hand;            /* claims held by this pool, detached ones included */
    uint32_t detached;
    uint64_t commits;            /* by this pool since it was opened */
    uint64_t commands;           /* in those commits */
    uint64_t handed_off;         /* jobs inserted as already running */
    uint64_t late_refused;       /* outcomes that came after the claim was lost */
    uint64_t rescued;            /* claims this pool took back from dead or expired holders */
    uint64_t wal_bytes;
} pawl_stats_info;
#define PAWL_STATS_INIT PAWL_INIT(pawl_stats_info)

PAWL_API PAWL_MUST_CHECK pawl_status pawl_stats(pawl_pool *pool, pawl_stats_info *info);
PAWL_API void pawl_stats_info_clear(pawl_stats_info *info);

/** Why a job is not running, in one sentence: UTF-8, one line, clipped to `capacity` bytes with its NUL.
 *  Of a job that runs or has ended it says that. Errors: NOT_FOUND, INVALID. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_explain(pawl_pool *pool, int64_t id, char *text, size_t capacity);

typedef enum pawl_severity {
    PAWL_FINDING_OK = 0,
    PAWL_FINDING_NOTE,    /* good to know; nothing is wrong */
    PAWL_FINDING_WARNING, /* something is wrong, or soon will be */
    PAWL_FINDING_ERROR    /* the file cannot be used, or what it says is not so */
} pawl_severity;

typedef struct pawl_finding {
    size_t struct_size;
    pawl_severity severity;
    const char *check;  /* which one, a stable word: "integrity", "counters", "wal", ... */
    const char *text;   /* what was found; UTF-8, one line */
    const char *remedy; /* what to do; NULL: nothing */
} pawl_finding;

/** Called on the caller's thread; what it is given is valid until it returns. */
typedef void (*pawl_finding_fn)(const pawl_finding *finding, void *arg);

/** Examines a file and all around it without changing it: it is read, never written or checkpointed. Every
 *  check reports, also one that found nothing (PAWL_FINDING_OK). Pools on it may run; a file that is
 *  broken is a finding and not an error. Reads every row and page, which takes a while on a large file; it
 *  gives way where that would make the log of a running pool grow.
 *  Errors: INVALID (an argument), NOMEM. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_diagnose(const char *store, pawl_finding_fn fn, void *arg);

typedef struct pawl_diagnose_options {
    size_t struct_size;
    bool quick;         /* skip what reads every row or page */
    /* Called many times a second with the check that is under way; false ends it early. Or NULL. */
    bool (*progress)(const char *check, void *arg);
    void *progress_arg;
} pawl_diagnose_options;
#define PAWL_DIAGNOSE_INIT PAWL_INIT(pawl_diagnose_options)

/** The same with options; NULL: none. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_diagnose_with(const char *store,
                                                        const pawl_diagnose_options *options,
                                                        pawl_finding_fn fn, void *arg);

/* -------------------------------------------------------------------------- in a handler */

PAWL_API int64_t pawl_job_id(const pawl_job *job);
PAWL_API const char *pawl_job_kind(const pawl_job *job);
PAWL_API const char *pawl_job_queue(const pawl_job *job);
PAWL_API pawl_pool *pawl_job_pool(const pawl_job *job); /* not once its claim is lost: it may be closed */
/** The payload, any bytes, aligned for any type; a NUL follows them for convenience. Never NULL. `bytes` may be
 *  NULL. Valid until the job has ended. */
PAWL_API const void *pawl_job_payload(const pawl_job *job, size_t *bytes);
PAWL_API uint32_t pawl_job_attempt(const pawl_job *job); /* this one, from 1 */
PAWL_API uint32_t pawl_job_max_attempts(const pawl_job *job);
/** Grows with every claim of the job, never reused: hand it to other systems to refuse stale work. */
PAWL_API uint64_t pawl_job_fence(const pawl_job *job);

/** True once the handler ought to end; cheap enough for an inner loop. Then clean up and return PAWL_RETRY,
 *  whatever the reason: a cancel ends the job, a stop gives it back uncharged, a timeout is charged. */
PAWL_API bool pawl_job_should_stop(const pawl_job *job);
PAWL_API pawl_stop_reason pawl_job_stop_reason(const pawl_job *job);

/** Extends the lease now. PAWL_OK is a fact: the commit that extended it is done. The pool does the
 *  same by itself every third of a lease. One call at a time per job.
 *  Errors: LEASE_LOST, BUSY (not confirmed within store_timeout_ms), STORE and FULL (refused; the lease goes
 *  on to its end), STATE (from an apply function). */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_job_heartbeat(pawl_job *job);

/** Sets the text that becomes last_error unless the job succeeds; stored as valid UTF-8, up to 8 KiB. After
 *  a timeout "timed out after N ms: " stands before it. From the handler's thread; for a detached job from
 *  the thread that will finish it; and inside an on_success function, to say why it failed. */
PAWL_API void pawl_job_error(pawl_job *job, const char *format, ...) PAWL_PRINTF(2, 3);

/** With PAWL_RETRY or PAWL_SNOOZED: how long to wait, instead of the backoff. Not negative. */
PAWL_API void pawl_job_retry_in(pawl_job *job, int64_t delay_ms);

/** Calls `fn` on the writer thread, inside the transaction that records the job's success, so its
 *  writes through `db` exist exactly if the job is succeeded. `fn` must be short, and `db` its only
 *  effect: after a rollback it runs again. If it fails, its writes are undone and the job is retried.
 *  Inside it: no transaction control, ATTACH, PRAGMA, ALTER TABLE or writes to pawl_ tables; pawl calls
 *  that would wait answer STATE. `drop` (or NULL) is called exactly once, when `fn` will not run any more.
 *  Several functions run in the order they were given. Errors: NOMEM, INVALID (drop is not called). */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_job_on_success(pawl_job *job, pawl_apply_fn fn, void *arg,
                                                         void (*drop)(void *arg));

/** Enqueues a follow-on job in the commit that records this job's success. Copies. A job whose key
 *  exists already counts as done. Errors: INVALID, NOMEM, LEASE_LOST. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_job_then(pawl_job *job, const pawl_job_spec *spec);

/** Ends a job whose handler returned, or will return, PAWL_DETACHED. From any thread, exactly once;
 *  never blocks; `job` is invalid afterwards. PAWL_OK: the outcome will be recorded. LEASE_LOST or
 *  CLOSED: the claim was lost, or the pool closed, before; nothing will be recorded. */
PAWL_API pawl_status pawl_job_finish(pawl_job *job, int outcome);

/* -------------------------------------------------------------------------- inline mode */

/** For tests of applications: a pool opened with PAWL_OPEN_INLINE has no threads. pawl_start() it,
 *  then each step does what the writer, the timers and one executor can do at the virtual present.
 *  *progress (or NULL) tells whether anything was done. Handlers run on the caller's thread.
 *  Errors: STATE (not an inline pool, not started, or inside a handler), and those of the store. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_step(pawl_pool *pool, bool *progress);
/** Steps until nothing is left to do at the virtual present. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_run_until_idle(pawl_pool *pool);
/** Moves the virtual clock, which starts at the time of pawl_open(), forward, by 250 years at most. Inside a
 *  handler it stands for the time that the handler takes. */
PAWL_API PAWL_MUST_CHECK pawl_status pawl_clock_advance(pawl_pool *pool, int64_t ms);
/** What the pool's clock says: Unix milliseconds; virtual in an inline pool. */
PAWL_API int64_t pawl_clock_now(pawl_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
