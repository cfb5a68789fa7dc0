/* race_probe.h - what the linked SQLite really does when a commit falls into a checkpoint (R6). */
#ifndef PAWLI_SQLITE_RACE_PROBE_H
#define PAWLI_SQLITE_RACE_PROBE_H

#include <pawl/pawl.h>

/* One forced interleaving on a scratch file. */
typedef struct pawli_race_trial {
    bool interleaved; /* the commit was tried between the checkpoint's look at the log and its copying */
    bool refused;     /* … and answered with BUSY */
    int64_t lost;     /* rows whose commits were acknowledged, and which are gone after the last close */
} pawli_race_trial;

/* Is the version in the range of those that have the race? */
bool pawli_race_version_has_it(int version_number);

/* Runs the experiment, in some milliseconds: once with a bare checkpoint, once as pawl makes it, under the
 * guard. In a private directory, through a VFS of its own that nobody else can meet. */
pawl_status pawli_race_probe(pawli_race_trial *bare, pawli_race_trial *guarded);

#endif
