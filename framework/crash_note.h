/* crash_note.h - which job's thread a fatal signal came on, for those who rescue what a dead process held. */
#ifndef PAWLI_CRASH_NOTE_H
#define PAWLI_CRASH_NOTE_H

#include <pawl/pawl.h>

#include <stdatomic.h>

/* The fence of no job: the signal came on the thread of a job that another pool of the process ran. */
#define PAWLI_CRASH_ELSEWHERE UINT64_MAX

/* In the mapped side file, so that it outlives the process. */
typedef struct pawli_crash_note {
    _Atomic uint64_t fence; /* of the job on whose thread the signal came; 0: on no job's; or ELSEWHERE */
    _Atomic int32_t signal; /* written last; 0: no note */
    int32_t unused;
} pawli_crash_note;

/* This thread runs that claim of the pool with that note; NULL: no more. Costs two stores. */
void pawli_crash_mark(pawli_crash_note *note, uint64_t fence);

/* Puts the process's signal handlers in place with the first note, and takes them away after the last one.
 * A note stays valid until it is removed. */
pawl_status pawli_crash_note_add(pawli_crash_note *note);
void pawli_crash_note_remove(const pawli_crash_note *note);

/* A stack of its own for the handler, so that a handler function that ran out of stack is noted too. NULL:
 * none could be had. */
void *pawli_crash_stack_open(void);
void pawli_crash_stack_close(void *stack);

#endif
