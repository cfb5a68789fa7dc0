/* history.h - a history outside the database: an append-only file, one write a line.
 *
 *   try KEY                        before the call
 *   ok ID KEY                      after the answer
 *   run ID FENCE ATTEMPT PAYLOAD   at the start of a handler
 *
 * A log that many processes append to while they are killed has torn lines. Its lines begin with an empty
 * one and end with a mark, so that a torn one is known and spoils no other; history_judge.h reads them.
 *
 *   ask KEY                          before the call
 *   answer STATUS ID KEY             after the answer
 *   start PID ID FENCE ATTEMPT TEXT  at the start of a handler; TEXT is the payload to its first space
 *   beat PID ID FENCE STATUS         the answer to a heartbeat
 *   end PID ID FENCE OUTCOME         before the handler returns, or the detached job is finished
 *   stop PID, go-on PID, kill PID    by the test, before it sends the signal */
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

#define HISTORY_MARK " ."
void history_note(int log, const char *format, ...) __attribute__((format(printf, 2, 3)));
void history_ask(int log, const char *key);
void history_answer(int log, pawl_status status, int64_t id, const char *key);
void history_start(int log, const pawl_job *job);
void history_beat(int log, const pawl_job *job, pawl_status status);
void history_end(int log, const pawl_job *job, int outcome);

#endif
