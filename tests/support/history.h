/* history.h - a history outside the database: an append-only file, one write a line.
 *
 *   try KEY                        before the call
 *   ok ID KEY                      after the answer
 *   run ID FENCE ATTEMPT PAYLOAD   at the start of a handler */
#ifndef TESTS_HISTORY_H
#define TESTS_HISTORY_H

#include <pawl/pawl.h>

#define HISTORY_KEY_BYTES 64
#define HISTORY_PAYLOAD_BYTES 256

/* The payload that belongs to a key: text, a word with the key in it. */
size_t history_payload(const char *key, char *out);
void history_try(int log, const char *key);
void history_ok(int log, int64_t id, const char *key);
void history_run(int log, const pawl_job *job);

#endif
