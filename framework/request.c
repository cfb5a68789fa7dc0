/* request.c - posting a command and waiting for its answer.
 *
 * While no writer thread runs, the caller plays the writer: it takes the role under a lock and steps.
 * Threads: callers; take, answer and release also in the writer's role.
 * Keeps:   Q1 a request is answered exactly once, or withdrawn and never looked at again;
 *          Q2 once it is taken the caller waits for the end, so OK and BUSY are both facts. */
#include "request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pool.h"
#include "status.h"
#include "text.h"

void pawli_request_init(pawli_request *request, pawli_command_type type, size_t bytes)
{
    memset(request, 0, sizeof *request);
    request->command.type = type;
    request->bytes = bytes;
    atomic_init(&request->state, PAWLI_REQUEST_WAITING);
    (void)sem_init(&request->answered, 0, 0);
}

/* --------------------------------------------------------------------------- the caller */

static bool wait_until(sem_t *answered, int64_t steady_ns)
{
    const struct timespec deadline = pawli_timespec(steady_ns);
    int failed;
    do
        failed = steady_ns == PAWLI_NEVER ? sem_wait(answered)
                                          : sem_clockwait(answered, CLOCK_MONOTONIC, &deadline);
    while (failed != 0 && errno == EINTR);
    return failed == 0;
}

static bool withdraw(pawli_request *request)
{
    int waiting = PAWLI_REQUEST_WAITING;
    return atomic_compare_exchange_strong(&request->state, &waiting, PAWLI_REQUEST_WITHDRAWN);
}

static bool is_answered(pawl_pool *pool, pawli_request *request)
{
    (void)pool;
    return atomic_load(&request->state) == PAWLI_REQUEST_ANSWERED;
}

/* No writer thread: the caller steps, once at least, until something holds or the request's time is over. */
static bool step_until(pawl_pool *pool, pawli_request *request,
                       bool (*holds)(pawl_pool *pool, pawli_request *request))
{
    bool done = false;
    (void)pthread_mutex_lock(&pool->role_lock);
    while (!atomic_load(&pool->writer_runs)) {
        bool progress = pawli_writer_step_as_caller(pool);
        done = holds(pool, request);
        if (done || pawli_steady_now_ns() >= request->deadline_ns)
            break;
        if (!progress) /* the store is busy */
            (void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    (void)pthread_mutex_unlock(&pool->role_lock);
    if (!atomic_load(&pool->loop.runs))
        pawli_loop_deliver(&pool->loop); /* asynchronous ones that were written along */
    return done;
}


static bool is_reserved(pawl_pool *pool, pawli_request *request)
{
    return pawli_channel_reserve(&pool->channel, request->bytes);
}

bool pawli_request_reserve(pawl_pool *pool, pawli_request *request)
{
    if (is_reserved(pool, request))
        return true;
    if (!atomic_load(&pool->writer_runs) && step_until(pool, request, is_reserved))
        return true;
    return pawli_channel_reserve_until(&pool->channel, request->bytes, request->deadline_ns);
}

/* Why there is no answer in time. */
static pawl_status busy(const pawl_pool *pool, const pawli_request *request)
{
    pawl_status trouble = atomic_load(&pool->writer.trouble);
    char word[PAWLI_WORD_BYTES];
    if (request->command.type == PAWLI_COMMAND_IDLE)
        return pawli_fail(PAWL_ERR_TIMEOUT, "%s: there is still work after the time given",
                          pawli_pool_path(pool));
    if (trouble != PAWL_OK && trouble != PAWL_ERR_BUSY)
        return pawli_fail(trouble, "%s: the store cannot be written at present, the log says why; nothing was "
                                   "stored; see also: pawl doctor %s",
                          pawli_pool_path(pool), pawli_text_word(word, pawli_pool_path(pool)));
    return pawli_fail(PAWL_ERR_BUSY, "%s: the store was busy for %lld ms; nothing was stored: another "
                                     "connection may hold the write lock; try again, or raise "
                                     "store_timeout_ms",
                      pawli_pool_path(pool), (long long)pool->options.store_timeout_ms);
}

static pawl_status take_answer(pawli_request *request)
{
    /* The load also makes visible what the writer wrote before. */
    PAWLI_ASSERT(atomic_load(&request->state) == PAWLI_REQUEST_ANSWERED);
    if (request->message != NULL)
        (void)pawli_fail(request->status, "%s", request->message);
    return request->status;
}

bool pawli_request_call(pawl_pool *pool, pawli_request *request, pawl_status *status)
{
    request->awaited = true;
    pawli_channel_post(&pool->channel, &request->command);
    if (!atomic_load(&pool->writer_runs)) /* after the post: whoever stops the writer drains after it */
        (void)step_until(pool, request, is_answered);
    if (!wait_until(&request->answered, request->deadline_ns)) {
        *status = busy(pool, request);
        if (withdraw(request))
            return false;
        (void)wait_until(&request->answered, PAWLI_NEVER); /* Q2 */
    }
    *status = take_answer(request);
    return true;
}

/* --------------------------------------------------------------------------- the writer */

bool pawli_request_take(pawli_request *request)
{
    int waiting = PAWLI_REQUEST_WAITING;
    if (atomic_compare_exchange_strong(&request->state, &waiting, PAWLI_REQUEST_TAKEN))
        return true;
    pawli_request_release(request);
    return false;
}

void pawli_request_answer(pawl_pool *pool, pawli_request *request, pawl_status status)
{
    request->status = status;
    if (status < 0 && request->awaited)
        request->message = strdup(pawl_error_message()); /* or NULL: the status speaks */
    if (!request->awaited) {
        pawli_loop_answer(&pool->loop, request);
        return;
    }
    atomic_store(&request->state, PAWLI_REQUEST_ANSWERED);
    (void)sem_post(&request->answered); /* the caller may free it from here on */
}

static void free_request(pawli_request *request)
{
    (void)sem_destroy(&request->answered);
    free(request->message);
    free(request);
}

void pawli_enqueue_release(pawli_enqueue_request *enqueue)
{
    if (atomic_fetch_sub(&enqueue->holders, 1) == 1)
        free_request(&enqueue->request);
}

void pawli_request_release(pawli_request *request)
{
    if (request->command.type == PAWLI_COMMAND_ENQUEUE)
        pawli_enqueue_release((pawli_enqueue_request *)(void *)request);
    else
        free_request(request);
}
