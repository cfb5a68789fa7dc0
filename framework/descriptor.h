/* descriptor.h - descriptors in a process that is not ours: out of the host's way, and closed only if they are
 * still what they were. */
#ifndef PAWLI_DESCRIPTOR_H
#define PAWLI_DESCRIPTOR_H

#include <sys/types.h>

typedef struct pawli_descriptor_id {
    dev_t device;
    ino_t inode; /* 0: not known */
} pawli_descriptor_id;

/* 0 to 2 belong to the host, open or closed: what it writes to its standard output is not to end up here. Answers a
 * number above them, or -1 with errno; takes a failed open as it is. Before any lock on it: that falls with the
 * lower number. */
int pawli_descriptor_above_standard(int file);

pawli_descriptor_id pawli_descriptor_identify(int file);
/* The host may have closed it, and the number may be another file's by now. */
void pawli_descriptor_close(int file, pawli_descriptor_id id);

#endif
