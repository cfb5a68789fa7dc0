/* operate.c - pawl_cancel, pawl_requeue, pawl_pause, pawl_resume and pawl_sync as requests to the writer.
 * Threads: any caller; nothing here touches the store. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "request.h"
#include "status.h"

#define OPERATE_MAX 100000 /* ids in one transaction */

static pawli_operate_request *create(pawli_operation_type type, size_t count)
{
    pawli_operate_request *request =
        calloc(1, sizeof *request + count * (sizeof(int64_t) + sizeof(pawl_status)));
    if (request == NULL)
        return NULL;
    pawli_request_init(&request->request, PAWLI_COMMAND_OPERATE, count * sizeof(int64_t));
    request->operation.type = type;
    request->operation.count = count;
    int64_t *ids = (int64_t *)(void *)(request + 1);
    request->operation.ids = ids;
    request->operation.each = (pawl_status *)(void *)(ids + count);
    return request;
}

static pawl_status call(pawl_pool *pool, pawli_operate_request *request, pawl_status *each_out)
{
    pawl_status st;
    request->request.deadline_ns = pawli_pool_deadline(pool);
    if (!pawli_request_reserve(pool, &request->request)) {
        pawli_request_release(&request->request);
        return pawli_fail(PAWL_ERR_BUSY, "%s: too many commands wait for the writer", pool->path);
    }
    if (!pawli_request_call(pool, &request->request, &st))
        return st;
    if (st == PAWL_OK && each_out != NULL)
        memcpy(each_out, request->operation.each, request->operation.count * sizeof *each_out);
    pawli_request_release(&request->request);
    return st;
}

static pawl_status many(pawl_pool *pool, pawli_operation_type type, const int64_t *ids, size_t count,
                        pawl_status *each_out)
{
    pawl_status st = pawli_pool_enter(pool, PAWLI_WAITS | PAWLI_WRITES);
    if (st != PAWL_OK || count == 0)
        return st;
    if (ids == NULL)
        return pawli_fail(PAWL_ERR_INVALID, "ids is NULL");
    if (count > OPERATE_MAX)
        return pawli_fail(PAWL_ERR_INVALID, "%zu ids: 1 to %d in one call", count, OPERATE_MAX);
    pawli_operate_request *request = create(type, count);
    if (request == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "no memory for %zu ids", count);
    memcpy((void *)(uintptr_t)request->operation.ids, ids, count * sizeof *ids);
    return call(pool, request, each_out);
}

static pawl_status one(pawl_pool *pool, pawli_operation_type type, int64_t id)
{
    pawl_status each = PAWL_OK;
    pawl_status st = many(pool, type, &id, 1, &each);
    if (st != PAWL_OK)
        return st;
    if (each == PAWL_ERR_NOT_FOUND)
        return pawli_fail(each, "%s: has no job %" PRId64, pool->path, id);
    if (each == PAWL_ERR_STATE && type == PAWLI_CANCEL)
        return pawli_fail(each, "job %" PRId64 " has ended; only a job that has not can be cancelled", id);
    if (each == PAWL_ERR_STATE)
        return pawli_fail(each, "job %" PRId64 " is neither failed nor cancelled; only such a job can be "
                                "requeued", id);
    return each;
}

pawl_status pawl_cancel(pawl_pool *pool, int64_t id)
{
    return one(pool, PAWLI_CANCEL, id);
}

pawl_status pawl_requeue(pawl_pool *pool, int64_t id)
{
    return one(pool, PAWLI_REQUEUE, id);
}

pawl_status pawl_cancel_many(pawl_pool *pool, const int64_t *ids, size_t count, pawl_status *each_out)
{
    return many(pool, PAWLI_CANCEL, ids, count, each_out);
}

pawl_status pawl_requeue_many(pawl_pool *pool, const int64_t *ids, size_t count, pawl_status *each_out)
{
    return many(pool, PAWLI_REQUEUE, ids, count, each_out);
}

static pawl_status switch_queue(pawl_pool *pool, pawli_operation_type type, const char *queue)
{
    pawl_status st = pawli_pool_enter(pool, PAWLI_WAITS | PAWLI_WRITES);
    if (st != PAWL_OK)
        return st;
    if (queue == NULL || !pawli_name_valid(queue))
        return pawli_fail(PAWL_ERR_INVALID, "queue must be UTF-8, 1 to 255 bytes, without control "
                                            "characters");
    pawli_operate_request *request = create(type, 0);
    if (request == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "no memory");
    memcpy(request->queue, queue, strlen(queue) + 1);
    request->operation.queue = request->queue;
    return call(pool, request, NULL);
}

pawl_status pawl_pause(pawl_pool *pool, const char *queue)
{
    return switch_queue(pool, PAWLI_PAUSE, queue);
}

pawl_status pawl_resume(pawl_pool *pool, const char *queue)
{
    return switch_queue(pool, PAWLI_RESUME, queue);
}

pawl_status pawl_sync(pawl_pool *pool)
{
    pawl_status st = pawli_pool_enter(pool, PAWLI_WAITS | PAWLI_WRITES);
    if (st != PAWL_OK)
        return st;
    pawli_operate_request *request = create(PAWLI_SYNC, 0);
    if (request == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "no memory");
    return call(pool, request, NULL);
}
