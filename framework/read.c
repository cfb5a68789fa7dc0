/* read.c - pawl_get, pawl_list, pawl_stats: what is stored, and how the pool does.
 * Our structs are whole; a caller that was built with an older header gets as many bytes as it knows.
 * Threads: any caller, through the store's readers. Who lives is asked of the kernel, after that. */
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "status.h"

/* The least that a caller must know: enough to clear what it was given. */
#define INFO_BYTES_MIN (offsetof(pawl_job_info, owned) + sizeof(void *))
#define STATS_BYTES_MIN (offsetof(pawl_stats_info, lane_count) + sizeof(size_t))

static pawl_status check_size(size_t given, size_t least, const char *what)
{
    return given >= least && given <= 65536
               ? PAWL_OK
               : pawli_fail(PAWL_ERR_INVALID, "%s: struct_size is not set; use the ..._INIT macro", what);
}

static void give(void *out, size_t given, const void *ours, size_t bytes)
{
    size_t known = given < bytes ? given : bytes;
    memcpy(out, ours, known);
    memcpy(out, &given, sizeof given); /* struct_size stays what the caller said */
}

/* ------------------------------------------------------------------------------ who lives */

/* Whom to ask about the holders of what runs, and what was found out about the last one. */
typedef struct census {
    pawli_presence presence; /* directory NULL: not asked yet */
    int64_t holder;
    bool died;
} census;

static bool has_died(pawl_pool *pool, census *c, const pawli_holder *holder)
{
    pawli_record record;
    if (holder->id == 0)
        return false;
    if (c->presence.directory == NULL && pawli_presence_observe(&c->presence, pool->path) != PAWL_OK) {
        c->presence.directory = NULL;
        return false; /* not known to be dead */
    }
    if (holder->id != c->holder) {
        c->holder = holder->id;
        c->died = pawli_presence_probe(&c->presence, holder, &record) == PAWLI_DEAD;
        free(record.fences);
    }
    return c->died;
}

static pawl_status look_at_holder(pawl_pool *pool, census *c, pawl_job_info *info)
{
    pawli_holder holder;
    if (info->state != PAWL_STATE_RUNNING)
        return PAWL_OK;
    pawl_status st = pool->store->ops->holder_of(pool->store, info->id, info->fence, &holder);
    info->holder_died = st == PAWL_OK && has_died(pool, c, &holder);
    return st;
}

/* --------------------------------------------------------------------------------- jobs */

pawl_status pawl_get(pawl_pool *pool, int64_t id, pawl_job_info *info)
{
    pawl_job_info whole;
    census c = { .holder = 0 };
    pawl_status st = pawli_pool_enter(pool, 0);
    if (st == PAWL_OK && info == NULL)
        st = pawli_fail(PAWL_ERR_INVALID, "pawl_get: info is NULL");
    if (st == PAWL_OK)
        st = check_size(info->struct_size, INFO_BYTES_MIN, "pawl_get");
    if (st == PAWL_OK)
        st = pool->store->ops->get(pool->store, id, &whole);
    if (st != PAWL_OK)
        return st;
    st = look_at_holder(pool, &c, &whole);
    free(c.presence.directory);
    if (st == PAWL_OK)
        give(info, info->struct_size, &whole, sizeof whole);
    else
        free(whole.owned);
    return st;
}

void pawl_job_info_clear(pawl_job_info *info)
{
    if (info == NULL)
        return;
    size_t bytes = info->struct_size;
    free(info->owned);
    memset(info, 0, bytes < sizeof *info ? bytes : sizeof *info);
    info->struct_size = bytes;
}

static pawl_status check_filter(const pawl_filter *given, pawl_filter *out)
{
    *out = (pawl_filter)PAWL_FILTER_INIT;
    if (given == NULL)
        return PAWL_OK;
    if (!pawli_struct_read(out, sizeof *out, given))
        return pawli_fail(PAWL_ERR_INVALID, "pawl_list: the filter's struct_size is not set");
    if ((out->states >> (PAWL_STATE_BLOCKED + 1)) != 0)
        return pawli_fail(PAWL_ERR_INVALID, "pawl_list: states are bits 1u << PAWL_STATE_...");
    return PAWL_OK;
}

static pawl_status list(pawl_pool *pool, const pawl_filter *filter, pawl_job_info *infos, size_t capacity,
                        size_t *count_out)
{
    size_t stride = infos[0].struct_size;
    pawl_job_info *whole = calloc(capacity, sizeof *whole);
    if (whole == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "pawl_list: no memory for %zu jobs", capacity);
    census c = { .holder = 0 };
    pawl_status st = pool->store->ops->list(pool->store, filter, whole, capacity, count_out);
    size_t count = st == PAWL_OK ? *count_out : 0;
    for (size_t i = 0; st == PAWL_OK && i < count; i++)
        st = look_at_holder(pool, &c, &whole[i]);
    for (size_t i = 0; i < count; i++)
        if (st == PAWL_OK)
            give((char *)infos + i * stride, stride, &whole[i], sizeof whole[i]);
        else
            free(whole[i].owned);
    free(c.presence.directory);
    free(whole);
    return st;
}

pawl_status pawl_list(pawl_pool *pool, const pawl_filter *filter, pawl_job_info *infos, size_t capacity,
                      size_t *count_out)
{
    pawl_filter checked;
    pawl_status st = pawli_pool_enter(pool, 0);
    if (st == PAWL_OK && (infos == NULL || capacity == 0 || count_out == NULL))
        st = pawli_fail(PAWL_ERR_INVALID, "pawl_list: infos, capacity and count_out are required");
    if (st == PAWL_OK)
        st = check_size(infos->struct_size, INFO_BYTES_MIN, "pawl_list");
    if (st == PAWL_OK)
        st = check_filter(filter, &checked);
    return st == PAWL_OK ? list(pool, &checked, infos, capacity, count_out) : st;
}

/* -------------------------------------------------------------------------------- stats */

static bool is_served(pawl_pool *pool, const pawl_lane_stats *lane)
{
    (void)pthread_mutex_lock(&pool->registry_lock);
    bool served = pawli_registry_find(&pool->registry, lane->kind) != NULL;
    (void)pthread_mutex_unlock(&pool->registry_lock);
    return served && pawli_options_serve(&pool->options, lane->queue);
}

static void fill_pool(pawl_pool *pool, pawl_stats_info *out)
{
    pawli_writer *w = &pool->writer;
    out->executors = atomic_load(&pool->writer_runs) ? pool->options.executors : 0;
    out->executors_busy = atomic_load(&pool->dispatch.busy);
    out->executors_stuck = atomic_load(&w->stuck);
    out->in_hand = atomic_load(&w->in_hand_now);
    out->detached = atomic_load(&pool->dispatch.detached);
    out->commits = atomic_load(&w->commits);
    out->commands = atomic_load(&w->commands);
    out->handed_off = atomic_load(&w->handed_off);
    out->late_refused = atomic_load(&w->late_refused);
    out->rescued = atomic_load(&w->rescued);
}

static void free_lanes(pawl_lane_stats *lanes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free((void *)(uintptr_t)lanes[i].queue);
        free((void *)(uintptr_t)lanes[i].kind);
        free((void *)(uintptr_t)lanes[i].last_error);
    }
    free(lanes);
}

pawl_status pawl_stats(pawl_pool *pool, pawl_stats_info *info)
{
    pawl_stats_info whole;
    pawl_status st = pawli_pool_enter(pool, 0);
    if (st == PAWL_OK && info == NULL)
        st = pawli_fail(PAWL_ERR_INVALID, "pawl_stats: info is NULL");
    if (st == PAWL_OK)
        st = check_size(info->struct_size, STATS_BYTES_MIN, "pawl_stats");
    if (st != PAWL_OK)
        return st;
    memset(&whole, 0, sizeof whole);
    st = pool->store->ops->stats(pool->store, pawli_clock_wall_ms(&pool->clock),
                                 pawli_clock_boot_ms(&pool->clock), &whole);
    if (st != PAWL_OK) {
        free_lanes(whole.lanes, whole.lane_count);
        return st;
    }
    for (size_t i = 0; i < whole.lane_count; i++)
        whole.lanes[i].served = is_served(pool, &whole.lanes[i]);
    fill_pool(pool, &whole);
    give(info, info->struct_size, &whole, sizeof whole);
    return PAWL_OK;
}

void pawl_stats_info_clear(pawl_stats_info *info)
{
    if (info == NULL)
        return;
    size_t bytes = info->struct_size;
    free_lanes(info->lanes, info->lane_count);
    memset(info, 0, bytes < sizeof *info ? bytes : sizeof *info);
    info->struct_size = bytes;
}
