/* history_judge.h - holds the log of a storm (history.h) against the drained database. */
#ifndef TESTS_HISTORY_JUDGE_H
#define TESTS_HISTORY_JUDGE_H

#include <stdint.h>

/* Fails the test, and says which invariant (I1 to I9, I12, I16) was broken how often, and where first. */
void history_judge(const char *path, const char *log, int64_t lease_ms);
/* How many lines begin so; the log may be written to meanwhile. */
int64_t history_count(const char *log, const char *beginning);

#endif
