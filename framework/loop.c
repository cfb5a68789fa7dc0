/* loop.c - the libuv thread. It never touches the store: it calls the callbacks of asynchronous
 * enqueues, and is where other processes are watched (watch.c, peers.c).
 * Threads: pawl-loop; answer() and notify() from the writer's role.
 * Keeps:   G3 nothing of libuv's thread pool; a wake-up is not a message: the messages are in a list;
 *          handles are closed before their memory goes; R10 a forked child does not run the loop. */
#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "pool.h"
#include "request.h"
#include "status.h"
#include "thread.h"

typedef struct pawli_loop_handles {
    uv_loop_t loop;
    uv_async_t wake;
    pawl_pool *pool;
    pawli_watch watch;
    pawli_peer_watch *peers;
    _Atomic bool ends;
} pawli_loop_handles;

void pawli_loop_init(pawli_loop *loop)
{
    loop->handles = NULL;
    atomic_init(&loop->answered, NULL);
    atomic_init(&loop->runs, false);
}

/* ------------------------------------------------------------------------------ answers */

void pawli_loop_answer(pawli_loop *loop, pawli_request *request)
{
    const pawli_enqueue_request *enqueue = (const pawli_enqueue_request *)(const void *)request;
    if (enqueue->done == NULL) {
        pawli_request_release(request);
        return;
    }
    pawli_command *top = atomic_load(&loop->answered);
    do
        request->command.next = top;
    while (!atomic_compare_exchange_weak(&loop->answered, &top, &request->command));
}

void pawli_loop_notify(pawli_loop *loop)
{
    if (atomic_load(&loop->answered) != NULL)
        pawli_loop_wake(loop);
}

void pawli_loop_wake(pawli_loop *loop)
{
    if (atomic_load(&loop->runs))
        (void)uv_async_send(&loop->handles->wake);
}

/* A child that the callback forks must not get back into the loop: its epoll and eventfd are the parent's, whose
 * wake-ups it would take. */
static void call_back(pawli_loop *loop, pawli_enqueue_request *enqueue)
{
    pawl_status st = enqueue->request.status;
    const pawli_new_job *job = &enqueue->jobs[0];
    if (st == PAWL_OK && job->exists)
        st = PAWL_EXISTS;
    enqueue->done(st, st >= 0 ? job->id : 0, enqueue->done_arg);
    pawli_end_if_child(&PAWLI_CONTAINER(loop, pawl_pool, loop)->fork_mark);
    pawli_enqueue_release(enqueue);
}

void pawli_loop_deliver(pawli_loop *loop)
{
    pawli_command *oldest = pawli_command_reverse(atomic_exchange(&loop->answered, NULL));
    pawli_role before = pawli_role_set(PAWLI_ROLE_LOOP); /* also where another thread stands in for it */
    while (oldest != NULL) {
        pawli_command *next = oldest->next;
        call_back(loop, (pawli_enqueue_request *)(void *)oldest);
        oldest = next;
    }
    (void)pawli_role_set(before);
}

/* ------------------------------------------------------------------------------- the thread */

static void on_wake(uv_async_t *wake)
{
    pawli_loop_handles *h = wake->data;
    pawli_loop_deliver(&h->pool->loop);
    pawli_peers_reconcile(h->pool, &h->loop, &h->peers);
    if (!atomic_load(&h->ends))
        return;
    pawli_peers_close(h->pool, &h->peers);
    pawli_watch_close(&h->watch);
    uv_close((uv_handle_t *)&h->wake, NULL);
}

static void *loop_main(void *arg)
{
    pawli_loop_handles *h = arg;
    (void)pawli_role_set(PAWLI_ROLE_LOOP);
    pawli_thread_name("pawl-loop");
    (void)uv_run(&h->loop, UV_RUN_DEFAULT); /* until the handles are closed */
    return NULL;
}

/* -------------------------------------------------------------------------- start and stop */

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void close_handles(pawli_loop_handles *h)
{
    uv_walk(&h->loop, close_handle, NULL);
    (void)uv_run(&h->loop, UV_RUN_DEFAULT);
    int error = uv_loop_close(&h->loop);
    PAWLI_ASSERT(error == 0); /* G3 */
    free(h);
}

static pawl_status start_failed(const char *what, int error)
{
    return pawli_fail(PAWL_ERR_NOMEM, "cannot %s: %s; raise the limit of open files (ulimit -n)", what,
                      uv_strerror(error));
}

#define STANDARD_COUNT 3

/* libuv takes the lowest numbers there are, and 0 to 2 belong to the host, open or closed: occupied while
 * the loop is made. */
static void occupy_standard(int held[STANDARD_COUNT])
{
    for (int fd = 0; fd < STANDARD_COUNT; fd++)
        held[fd] = fcntl(fd, F_GETFD) == -1 && errno == EBADF ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
}

static void leave_standard(const int held[STANDARD_COUNT])
{
    for (int fd = 0; fd < STANDARD_COUNT; fd++)
        if (held[fd] >= 0)
            (void)close(held[fd]);
}

/* libuv aborts the process where it cannot have its first pipe: asked before it is tried. */
static bool has_descriptors(void)
{
    int pipes[3][2], got = 0;
    while (got < 3 && pipe2(pipes[got], O_CLOEXEC) == 0)
        got++;
    for (int i = 0; i < got; i++) {
        (void)close(pipes[i][0]);
        (void)close(pipes[i][1]);
    }
    return got == 3;
}

static pawl_status start_loop(pawl_pool *pool)
{
    pawli_loop_handles *h = calloc(1, sizeof *h);
    if (h == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "no memory for the loop");
    int error = has_descriptors() ? uv_loop_init(&h->loop) : UV_EMFILE;
    if (error != 0) {
        free(h);
        return start_failed("make a loop", error);
    }
    h->pool = pool;
    h->wake.data = h;
    error = uv_async_init(&h->loop, &h->wake, on_wake);
    if (error == 0)
        error = pawli_watch_open(&h->watch, &h->loop, pool);
    pawl_status st = error == 0 ? pawli_thread_start(&pool->loop.thread, PAWLI_STACK_BYTES, loop_main, h)
                                : start_failed("make a loop", error);
    if (st != PAWL_OK) {
        close_handles(h);
        return st;
    }
    pool->loop.handles = h;
    atomic_store(&pool->loop.runs, true);
    (void)uv_async_send(&h->wake); /* for what was answered before it ran */
    return PAWL_OK;
}

pawl_status pawli_loop_start(pawl_pool *pool)
{
    int held[STANDARD_COUNT];
    occupy_standard(held);
    pawl_status st = start_loop(pool);
    leave_standard(held);
    return st;
}

void pawli_loop_stop(pawl_pool *pool)
{
    pawli_loop_handles *h = pool->loop.handles;
    if (h == NULL)
        return;
    (void)pthread_mutex_lock(&pool->role_lock); /* callers in the writer's role notify under it */
    atomic_store(&pool->loop.runs, false);
    (void)pthread_mutex_unlock(&pool->role_lock);
    atomic_store(&h->ends, true);
    (void)uv_async_send(&h->wake);
    (void)pthread_join(pool->loop.thread, NULL);
    close_handles(h);
    pool->loop.handles = NULL;
    pawli_loop_deliver(&pool->loop); /* what was answered after its last turn */
}
