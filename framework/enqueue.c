/* enqueue.c - pawl_enqueue and its relatives: specs are checked, copied into one block, and posted.
 * Threads: any caller; nothing here touches the store. */
#include "enqueue.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "status.h"

/* ------------------------------------------------------------------------------- a spec */

static pawl_status invalid(const char *field, const char *what)
{
    return pawli_fail(PAWL_ERR_INVALID, "job: %s %s", field, what);
}

static const char name_rule[] = "must be UTF-8, 1 to 255 bytes, without control characters, U+FFFE and U+FFFF";

static pawl_status read_key(const pawl_job_spec *spec, pawli_new_job *out)
{
    if (spec->idempotency_key == NULL && spec->idempotency_key_bytes != 0)
        return invalid("idempotency_key", "is NULL, but idempotency_key_bytes is not 0");
    if (spec->idempotency_key != NULL && spec->idempotency_key_bytes == 0)
        return invalid("idempotency_key", "is set, but idempotency_key_bytes is 0");
    if (spec->idempotency_key_bytes > PAWLI_NAME_BYTES_MAX)
        return invalid("idempotency_key_bytes", "must be 1 to 255");
    out->key = spec->idempotency_key;
    out->key_bytes = spec->idempotency_key_bytes;
    return PAWL_OK;
}

static pawl_status read_payload(const pawl_job_spec *spec, size_t bytes_max, pawli_new_job *out)
{
    if (spec->payload == NULL && spec->payload_bytes != 0)
        return invalid("payload", "is NULL, but payload_bytes is not 0");
    if (spec->payload_bytes > bytes_max)
        return pawli_fail(PAWL_ERR_INVALID,
                          "job: the payload has %zu bytes; the bound is %zu: store it elsewhere and "
                          "enqueue a reference, or raise payload_bytes_max",
                          spec->payload_bytes, bytes_max);
    out->payload = spec->payload != NULL ? spec->payload : "";
    out->payload_bytes = spec->payload_bytes;
    return PAWL_OK;
}

static pawl_status read_time(const pawl_job_spec *spec, int64_t now_ms, pawli_new_job *out)
{
    if (spec->delay_ms < 0)
        return invalid("delay_ms", "is negative");
    if (spec->available_at_ms < 0 || spec->available_at_ms > PAWLI_TIME_MAX_MS)
        return invalid("available_at_ms", "is not a time from 1970 to 9999 in Unix milliseconds");
    if (spec->delay_ms != 0 && spec->available_at_ms != 0)
        return invalid("delay_ms and available_at_ms", "exclude each other; set one");
    out->available_at_ms = spec->available_at_ms;
    out->delay_ms = spec->delay_ms;
    return pawli_add(now_ms, spec->delay_ms) <= PAWLI_TIME_MAX_MS
               ? PAWL_OK
               : invalid("delay_ms", "ends after the year 9999");
}

pawl_status pawli_spec_read(const pawl_job_spec *given, const pawli_spec_bounds *bounds,
                            pawli_new_job *out)
{
    pawl_job_spec spec;
    memset(out, 0, sizeof *out);
    if (given == NULL || !pawli_struct_read(&spec, sizeof spec, given))
        return pawli_fail(PAWL_ERR_INVALID, "job: struct_size is not set; use PAWL_JOB(...)");
    if (spec.kind == NULL)
        return invalid("kind", "is missing");
    if (!pawli_name_valid(spec.kind))
        return invalid("kind", name_rule);
    if (spec.queue != NULL && !pawli_name_valid(spec.queue))
        return invalid("queue", name_rule);
    if (spec.timeout_ms < PAWL_NONE)
        return invalid("timeout_ms", "is negative (PAWL_NONE: no limit)");
    out->kind = spec.kind;
    out->queue = spec.queue != NULL ? spec.queue : "default";
    out->priority = spec.priority;
    out->max_attempts = spec.max_attempts != 0 ? spec.max_attempts : bounds->max_attempts;
    out->timeout_ms = spec.timeout_ms;
    pawl_status st = read_key(&spec, out);
    if (st == PAWL_OK)
        st = read_payload(&spec, bounds->payload_bytes_max, out);
    return st == PAWL_OK ? read_time(&spec, bounds->now_ms, out) : st;
}

/* ------------------------------------------------------------------------ into one block */

/* A handler may look at its payload as at a struct of the application's. */
static size_t aligned(size_t bytes)
{
    const size_t to = _Alignof(max_align_t);
    return (bytes + to - 1) / to * to;
}

/* The payload comes first, so that all of them are aligned as the block is. */
static size_t bytes_of(const pawli_new_job *job)
{
    return aligned(job->payload_bytes + 1 + strlen(job->kind) + 1 + strlen(job->queue) + 1 + job->key_bytes);
}

static void *put(char **at, const void *from, size_t bytes)
{
    char *copy = *at;
    memcpy(copy, from, bytes);
    *at += bytes;
    return copy;
}

static void adopt(pawli_new_job *job, char **at, pawli_enqueue_request *owner)
{
    char *begin = *at;
    job->payload = put(at, job->payload, job->payload_bytes);
    *(*at)++ = '\0';
    job->kind = put(at, job->kind, strlen(job->kind) + 1);
    job->queue = put(at, job->queue, strlen(job->queue) + 1);
    if (job->key != NULL)
        job->key = put(at, job->key, job->key_bytes);
    *at = begin + aligned((size_t)(*at - begin));
    job->owner = owner;
}

static const pawl_job_spec *spec_at(const pawl_job_spec *specs, size_t stride, size_t i)
{
    return (const pawl_job_spec *)(const void *)((const char *)specs + i * stride);
}

/* Reads spec i; its bytes are counted. An error names the spec where there are several. */
static pawl_status read_nth(const pawl_pool *pool, const pawl_job_spec *specs, size_t count, size_t i,
                            pawli_new_job *out)
{
    const pawli_spec_bounds bounds = { pool->options.payload_bytes_max, pool->options.max_attempts,
                                       pawli_clock_wall_ms(&pool->clock) };
    pawl_status st = pawli_spec_read(spec_at(specs, specs->struct_size, i), &bounds, out);
    if (st != PAWL_OK && count > 1)
        (void)pawli_fail(st, "specs[%zu]: %s", i, pawl_error_message());
    return st;
}

static pawl_status measure(const pawl_pool *pool, const pawl_job_spec *specs, size_t count,
                           pawl_status *each_out, size_t *bytes)
{
    pawl_status first = PAWL_OK;
    char message[512] = "";
    *bytes = 0;
    for (size_t i = 0; i < count; i++) {
        pawli_new_job job;
        pawl_status st = read_nth(pool, specs, count, i, &job);
        if (each_out != NULL)
            each_out[i] = st;
        if (st == PAWL_OK) {
            *bytes += bytes_of(&job);
        } else if (first == PAWL_OK) {
            first = st;
            (void)snprintf(message, sizeof message, "%s", pawl_error_message());
        }
    }
    return first == PAWL_OK ? PAWL_OK : pawli_fail(first, "%s", message);
}

pawl_status pawli_enqueue_build(pawl_pool *pool, const pawl_job_spec *specs, size_t count,
                                pawl_status *each_out, pawli_enqueue_request **out)
{
    size_t bytes;
    if (specs == NULL)
        return pawli_fail(PAWL_ERR_INVALID, "job: the spec is NULL");
    pawl_status st = measure(pool, specs, count, each_out, &bytes);
    if (st != PAWL_OK)
        return st;
    pawli_enqueue_request *request;
    size_t head = aligned(sizeof *request + count * sizeof request->jobs[0]);
    request = malloc(head + bytes);
    if (request == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "job: no memory for %zu bytes", bytes);
    pawli_request_init(&request->request, PAWLI_COMMAND_ENQUEUE, bytes);
    atomic_init(&request->holders, 1);
    request->done = NULL;
    request->group = (pawli_new_jobs){ .jobs = request->jobs, .count = count };
    char *at = (char *)request + head;
    for (size_t i = 0; i < count; i++) {
        (void)read_nth(pool, specs, count, i, &request->jobs[i]);
        adopt(&request->jobs[i], &at, request);
    }
    *out = request;
    return PAWL_OK;
}

/* ------------------------------------------------------------------------------ the calls */

static pawl_status full(const pawl_pool *pool, pawl_status status)
{
    return pawli_fail(status, "%s: %u commands or %zu bytes wait for the writer; nothing was stored: "
                              "slow down, or raise command_max",
                      pawli_pool_path(pool), pool->options.command_max, pool->options.command_bytes_max);
}

static void give_answers(const pawli_enqueue_request *request, int64_t *ids_out, pawl_status *each_out)
{
    for (size_t i = 0; i < request->group.count; i++) {
        if (ids_out != NULL)
            ids_out[i] = request->jobs[i].id;
        if (each_out != NULL)
            each_out[i] = request->jobs[i].exists ? PAWL_EXISTS : PAWL_OK;
    }
}

static pawl_status enqueue_and_wait(pawl_pool *pool, pawli_enqueue_request *request, int64_t *ids_out,
                                    pawl_status *each_out)
{
    pawl_status st;
    request->request.deadline_ns = pawli_pool_deadline(pool);
    if (!pawli_request_reserve(pool, &request->request)) {
        pawli_enqueue_release(request);
        return full(pool, PAWL_ERR_BUSY);
    }
    if (!pawli_request_call(pool, &request->request, &st))
        return st;
    if (st == PAWL_OK) {
        give_answers(request, ids_out, each_out);
        if (request->group.count == 1 && request->jobs[0].exists)
            st = PAWL_EXISTS;
    }
    pawli_enqueue_release(request);
    return st;
}

pawl_status pawl_enqueue(pawl_pool *pool, const pawl_job_spec *spec, int64_t *id_out)
{
    pawli_enqueue_request *request;
    pawl_status st = pawli_pool_enter(pool, PAWLI_WAITS | PAWLI_WRITES);
    if (st == PAWL_OK)
        st = pawli_enqueue_build(pool, spec, 1, NULL, &request);
    return st == PAWL_OK ? enqueue_and_wait(pool, request, id_out, NULL) : st;
}

pawl_status pawl_enqueue_many(pawl_pool *pool, const pawl_job_spec *specs, size_t count, int64_t *ids_out,
                              pawl_status *each_out)
{
    pawli_enqueue_request *request;
    pawl_status st = pawli_pool_enter(pool, PAWLI_WAITS | PAWLI_WRITES);
    if (st != PAWL_OK || count == 0)
        return st;
    if (specs == NULL || count > SIZE_MAX / sizeof(pawli_new_job) / 2)
        return pawli_fail(PAWL_ERR_INVALID, "pawl_enqueue_many: no specs, or too many");
    st = pawli_enqueue_build(pool, specs, count, each_out, &request);
    if (st != PAWL_OK)
        return st;
    st = enqueue_and_wait(pool, request, ids_out, each_out);
    return st == PAWL_EXISTS ? PAWL_OK : st; /* each_out tells which */
}

pawl_status pawl_enqueue_async(pawl_pool *pool, const pawl_job_spec *spec, pawl_enqueued_fn done, void *arg)
{
    pawli_enqueue_request *request;
    pawl_status st = pawli_pool_enter(pool, PAWLI_WRITES);
    if (st == PAWL_OK)
        st = pawli_enqueue_build(pool, spec, 1, NULL, &request);
    if (st != PAWL_OK)
        return st;
    request->request.deadline_ns = pawli_pool_deadline(pool);
    request->done = done;
    request->done_arg = arg;
    if (pawli_channel_reserve(&pool->channel, request->request.bytes)) {
        pawli_channel_post(&pool->channel, &request->request.command);
        return PAWL_OK;
    }
    pawli_enqueue_release(request);
    return full(pool, PAWL_ERR_FULL);
}
