/* presence.h - how a pool proves to the others that it lives, and what it was running if it does not.
 *
 * Beside the database lies a side directory, DB-pawl/, with one file per pool: a POSIX lock on it proves
 * life, and its slots name the fences of the jobs that are being run. */
#ifndef PAWLI_PRESENCE_H
#define PAWLI_PRESENCE_H

#include <pawl/pawl.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "crash_note.h"
#include "descriptor.h"
#include "log.h"
#include "process.h"
#include "store/store.h"

typedef struct pawli_presence {
    /* Set at open, then read-only. */
    char *directory;
    char *path;
    int file; /* -1: not open */
    pawli_descriptor_id id; /* of the file behind it */
    size_t slot_count, executors;
    pawli_holder self; /* who this process is */
    void *map;
    size_t map_bytes;
    _Atomic uint64_t *slots; /* in the mapped file: fences; 0: free */
    pawli_crash_note *crash; /* in the mapped file */
    _Atomic uint64_t *last_started, *spared; /* likewise */
    size_t spared_next; /* the writer's role */
    /* Slots of detached jobs: a stack of free ones, under the lock. */
    pthread_mutex_t lock;
    uint32_t *free_slots;
    size_t free_count;
} pawli_presence;

/* Makes the side file of a pool on `store_path`, locks it, and fills in who `holder` is. */
pawl_status pawli_presence_open(pawli_presence *presence, const char *store_path, size_t executors,
                                size_t detached, pawli_holder *holder);
/* Removes the side file and lets go of the lock. Safe on a zeroed struct. */
void pawli_presence_close(pawli_presence *presence);

/* Makes an event in the side directory, for all who watch it. NULL: of a pool that is not started. */
void pawli_presence_touch(const pawli_presence *presence, const char *store_path);
/* Is the holder's process one that this one can see, and another? */
bool pawli_presence_sees(const pawli_presence *presence, const pawli_holder *holder);
bool pawli_presence_is_self(const pawli_presence *presence, const pawli_holder *holder);
/* Who this process is and where the side directory would be, without a file of its own: for
 * pawli_presence_probe(). The caller frees presence->directory; it is not to be closed. */
pawl_status pawli_presence_observe(pawli_presence *presence, const char *store_path);

/* This executor is about to call the handler of that claim. */
void pawli_presence_start(pawli_presence *presence, size_t executor, uint64_t fence);
/* A claim that was taken back before its handler was called, until that is written. In the writer's role. */
void pawli_presence_spare(pawli_presence *presence, uint64_t fence);
/* An executor's own slot, and slots for detached jobs. Any thread; no system call. */
void pawli_presence_set(pawli_presence *presence, size_t executor, uint64_t fence); /* 0: nothing */
void pawli_presence_set_effect(pawli_presence *presence, uint64_t fence); /* likewise, the writer's */
bool pawli_presence_hold(pawli_presence *presence, uint64_t fence, uint32_t *slot);
void pawli_presence_let_go(pawli_presence *presence, uint32_t slot);

typedef enum pawli_life {
    PAWLI_ALIVE,
    PAWLI_UNPROVEN, /* its lease decides */
    PAWLI_DEAD
} pawli_life;

/* What a dead holder was running. */
typedef struct pawli_record {
    bool is_known; /* its file was there and whole */
    bool is_stale; /* of another boot: what was written last may be missing */
    uint64_t *fences; /* the caller's to free; NULL: none */
    size_t count;
    size_t on_threads; /* so many of them, the first, ran on the pool's own threads */
    size_t spared_count;   /* so many fences behind them: claimed before others, and never started */
    uint64_t last_started; /* what was claimed up to this one had started, but for those */
    int signal;        /* that ended the process; 0: not noted */
    uint64_t culprit;  /* then: the job on whose thread it came; 0: on no job's; or PAWLI_CRASH_ELSEWHERE */
} pawli_record;

pawli_life pawli_presence_probe(const pawli_presence *presence, const pawli_holder *holder,
                                pawli_record *record);
/* Removes what a dead holder left in the side directory. */
void pawli_presence_clear(const pawli_presence *presence, const pawli_holder *holder);
/* Removes side files that nobody holds and that none of these holders names. */
void pawli_presence_sweep(const pawli_presence *presence, const pawli_holder *holders, size_t count);

#endif
