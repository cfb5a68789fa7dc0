/* cpus.h - how many CPUs this process may use. */
#ifndef PAWLI_CPUS_H
#define PAWLI_CPUS_H

#include <stdint.h>

/* By affinity and by the quotas of its control groups, rounded up; at least 1. Any thread. */
uint32_t pawli_cpus_usable(void);

/* The text of a file, which the caller frees; NULL: it is not there. */
typedef char *(*pawli_read_file)(const char *path, void *arg);
/* The quotas alone, with the files read by a function: the CPUs, rounded up; UINT32_MAX: no limit. */
uint32_t pawli_cpus_by_quota(pawli_read_file read_file, void *arg);

#endif
