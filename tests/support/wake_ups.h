/* wake_ups.h - how often the threads of pools have gone to sleep, by the kernel's count. */
#ifndef TESTS_WAKE_UPS_H
#define TESTS_WAKE_UPS_H

#include <stdint.h>
#include <sys/types.h>

/* Of all pools of the process; 0: this one. */
int64_t wake_ups_of(pid_t pid);

#endif
