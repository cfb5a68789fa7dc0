/* options.c - checks what the application asked for and fills in the defaults. Caller's thread.
 * Keeps: T2 every value is honoured or refused with a message, never changed silently. */
#include "options.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel.h"
#include "clock.h"
#include "cpus.h"
#include "retry.h"
#include "status.h"

#define MS_PER_DAY INT64_C(86400000)

bool pawli_struct_read(void *ours, size_t bytes, const void *given)
{
    size_t given_bytes;
    memcpy(&given_bytes, given, sizeof given_bytes);
    if (given_bytes < sizeof given_bytes || given_bytes > 65536)
        return false;
    size_t known = given_bytes < bytes ? given_bytes : bytes;
    memset(ours, 0, bytes);
    memcpy(ours, given, known);
    memcpy(ours, &known, sizeof known);
    return true;
}

/* A number that is 0 for the default, or within its bounds. */
static pawl_status take_number(const char *field, int64_t given, int64_t initial, int64_t low,
                               int64_t high, int64_t *out)
{
    *out = given == 0 ? initial : given;
    if (*out < low || *out > high)
        return pawli_fail(PAWL_ERR_INVALID,
                          "options: %s is %" PRId64 "; it must be %" PRId64 " to %" PRId64
                          ", or 0 for the default %" PRId64,
                          field, given, low, high, initial);
    return PAWL_OK;
}

static pawl_status take_size(const char *field, size_t given, int64_t initial, int64_t low,
                             int64_t high, size_t *out)
{
    int64_t value = given > INT64_MAX ? INT64_MAX : (int64_t)given;
    pawl_status st = take_number(field, value, initial, low, high, &value);
    *out = (size_t)value;
    return st;
}

static pawl_status take_u32(const char *field, uint32_t given, int64_t initial, int64_t low,
                            int64_t high, uint32_t *out)
{
    int64_t value;
    pawl_status st = take_number(field, given, initial, low, high, &value);
    *out = (uint32_t)value;
    return st;
}

/* A retention: PAWL_FOREVER is a value of its own. */
static pawl_status take_keep(const char *field, int64_t given, int64_t initial, int64_t *out)
{
    if (given == PAWL_FOREVER) {
        *out = PAWL_FOREVER;
        return PAWL_OK;
    }
    return take_number(field, given, initial, 1, INT64_MAX, out);
}

static pawl_status copy_string(const char *text, char **out)
{
    *out = strdup(text);
    return *out != NULL ? PAWL_OK : pawli_fail(PAWL_ERR_NOMEM, "options: no memory");
}

static pawl_status take_name(pawli_options *o, const char *given)
{
    if (given != NULL) {
        if (!pawli_name_valid(given))
            return pawli_fail(PAWL_ERR_INVALID, "options: name must be UTF-8, 1 to 255 bytes, "
                                                "without control characters");
        return copy_string(given, &o->name);
    }
    char host[200] = "", name[PAWLI_NAME_BYTES_MAX + 1];
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(name, sizeof name, "%s:%ld", host[0] ? host : "localhost", (long)getpid());
    return copy_string(pawli_name_valid(name) ? name : "unnamed", &o->name);
}

static pawl_status take_queues(pawli_options *o, const pawl_options *given)
{
    if (given->queue_count == 0 && given->queues == NULL)
        return PAWL_OK;
    if (given->queues == NULL || given->queue_count == 0 || given->queue_count > 65536)
        return pawli_fail(PAWL_ERR_INVALID, "options: queues and queue_count belong together; leave "
                                            "both out to serve every queue");
    o->queues = calloc(given->queue_count, sizeof *o->queues);
    if (o->queues == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "options: no memory");
    o->queue_count = given->queue_count;
    for (size_t i = 0; i < given->queue_count; i++) {
        if (given->queues[i] == NULL || !pawli_name_valid(given->queues[i]))
            return pawli_fail(PAWL_ERR_INVALID, "options: queues[%zu] must be UTF-8, 1 to 255 bytes, "
                                                "without control characters", i);
        pawl_status st = copy_string(given->queues[i], &o->queues[i]);
        if (st != PAWL_OK)
            return st;
    }
    return PAWL_OK;
}

static pawl_status take_store(pawli_options *o, const char *path)
{
    if (path == NULL || path[0] == '\0')
        return pawli_fail(PAWL_ERR_INVALID, "options: store is missing; name the SQLite file");
    if (strlen(path) >= PATH_MAX)
        return pawli_fail(PAWL_ERR_INVALID, "options: the path of the store is too long");
    return copy_string(path, &o->store);
}

static uint32_t executors_default(void)
{
    uint32_t cpus = pawli_cpus_usable();
    return cpus < 4 ? 4 : cpus > PAWLI_CLAIMS_MAX ? PAWLI_CLAIMS_MAX : cpus;
}

static pawl_status take_bounds(pawli_options *o, const pawl_options *g)
{
    pawl_status st;
    if ((st = take_u32("executors", g->executors, executors_default(), 1, PAWLI_CLAIMS_MAX,
                       &o->executors)) != PAWL_OK
        || (st = take_number("lease_ms", g->lease_ms, 60000, 100, PAWLI_LEASE_MAX_MS, &o->lease_ms))
               != PAWL_OK
        || (st = take_u32("max_attempts", g->max_attempts, PAWLI_MAX_ATTEMPTS_DEFAULT, 1, UINT32_MAX,
                          &o->max_attempts)) != PAWL_OK
        || (st = take_number("store_timeout_ms", g->store_timeout_ms, 5000, 1, MS_PER_DAY,
                             &o->store_timeout_ms)) != PAWL_OK
        || (st = take_u32("command_max", g->command_max, 16384, 1, PAWLI_CHANNEL_COMMANDS_MAX,
                       &o->command_max))
               != PAWL_OK
        || (st = take_size("command_bytes_max", g->command_bytes_max, INT64_C(64) << 20, 1,
                           PAWLI_CHANNEL_BYTES_MAX, &o->command_bytes_max)) != PAWL_OK
        || (st = take_size("payload_bytes_max", g->payload_bytes_max, 1 << 20, 1, 256 << 20,
                           &o->payload_bytes_max)) != PAWL_OK
        || (st = take_u32("detached_max", g->detached_max, 4096, 1, 1 << 20, &o->detached_max))
               != PAWL_OK
        || (st = take_size("wal_bytes_max", g->wal_bytes_max, 16 << 20, 1 << 20, INT64_C(1) << 40,
                           &o->wal_bytes_max)) != PAWL_OK
        || (st = take_size("stack_bytes", g->stack_bytes, 1 << 20, 64 << 10, INT64_C(1) << 30,
                           &o->stack_bytes)) != PAWL_OK)
        return st;
    return PAWL_OK;
}

static pawl_status take_retention(pawli_options *o, const pawl_options *g)
{
    pawl_status st;
    if ((st = take_keep("keep_succeeded_ms", g->keep_succeeded_ms, 7 * MS_PER_DAY,
                        &o->keep_succeeded_ms)) != PAWL_OK
        || (st = take_keep("keep_succeeded_max", g->keep_succeeded_max, 1000000,
                           &o->keep_succeeded_max)) != PAWL_OK
        || (st = take_keep("keep_failed_ms", g->keep_failed_ms, 30 * MS_PER_DAY,
                           &o->keep_failed_ms)) != PAWL_OK
        || (st = take_keep("keep_failed_max", g->keep_failed_max, 1000000, &o->keep_failed_max))
               != PAWL_OK)
        return st;
    return PAWL_OK;
}

static pawl_status take_modes(pawli_options *o, const pawl_options *g)
{
    const uint32_t known = PAWL_OPEN_EXISTING | PAWL_OPEN_READ_ONLY | PAWL_OPEN_INLINE;
    if ((g->flags & ~known) != 0)
        return pawli_fail(PAWL_ERR_INVALID, "options: flags 0x%x are not known to pawl %s",
                          g->flags & ~known, PAWL_VERSION);
    if ((unsigned)g->synchronous > PAWL_SYNCHRONOUS_NORMAL)
        return pawli_fail(PAWL_ERR_INVALID, "options: synchronous must be FULL or NORMAL");
    o->flags = g->flags;
    o->flush_commits = g->synchronous != PAWL_SYNCHRONOUS_NORMAL;
    o->log = g->log;
    o->log_arg = g->log_arg;
    o->db_open = g->db_open;
    o->db_open_arg = g->db_open_arg;
    o->note_crashes = g->note_crashes;
    o->seed = g->seed;
    if (o->seed == 0)
        o->seed = (uint64_t)getpid() << 32 ^ (uint64_t)pawli_steady_now_ns();
    return PAWL_OK;
}

pawl_status pawli_options_init(pawli_options *o, const pawl_options *given)
{
    pawl_options g;
    memset(o, 0, sizeof *o);
    if (!pawli_struct_read(&g, sizeof g, given))
        return pawli_fail(PAWL_ERR_INVALID, "options: struct_size is not set; use PAWL_OPTIONS(...)");
    pawl_status st;
    if ((st = take_modes(o, &g)) != PAWL_OK || (st = take_bounds(o, &g)) != PAWL_OK
        || (st = take_retention(o, &g)) != PAWL_OK || (st = take_store(o, g.store)) != PAWL_OK
        || (st = take_name(o, g.name)) != PAWL_OK || (st = take_queues(o, &g)) != PAWL_OK)
        pawli_options_fini(o);
    return st;
}

void pawli_options_fini(pawli_options *o)
{
    for (size_t i = 0; i < o->queue_count; i++)
        free(o->queues[i]);
    free(o->queues);
    free(o->store);
    free(o->name);
    memset(o, 0, sizeof *o);
}

bool pawli_options_serve(const pawli_options *o, const char *queue)
{
    for (size_t i = 0; i < o->queue_count; i++)
        if (strcmp(o->queues[i], queue) == 0)
            return true;
    return o->queue_count == 0;
}
