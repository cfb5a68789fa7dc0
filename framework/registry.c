/* registry.c - kinds and their handlers.
 * Threads: added to by callers under the pool's life lock while the pool does not run; read-only after. */
#include "registry.h"

#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "status.h"

#define BACKOFF_STEPS_MAX 1000
#define BACKOFF_MAX_MS_DEFAULT INT64_C(3600000)

static pawl_status invalid(const char *kind, const char *what)
{
    return pawli_fail(PAWL_ERR_INVALID, "handler \"%s\": %s", kind, what);
}

static pawl_status take_list(pawli_handler *h, const pawl_handler_options *o)
{
    if (o->backoff_count == 0 || o->backoff_ms == NULL || o->backoff_count > BACKOFF_STEPS_MAX)
        return invalid(h->kind, "backoff_ms and backoff_count belong together; 1 to 1000 delays");
    for (size_t i = 0; i < o->backoff_count; i++)
        if (o->backoff_ms[i] < 0)
            return invalid(h->kind, "a delay in backoff_ms is negative");
    h->steps_ms = malloc(o->backoff_count * sizeof *h->steps_ms);
    if (h->steps_ms == NULL)
        return pawli_fail(PAWL_ERR_NOMEM, "handler \"%s\": no memory", h->kind);
    memcpy(h->steps_ms, o->backoff_ms, o->backoff_count * sizeof *h->steps_ms);
    h->backoff = (pawli_backoff){ .steps_ms = h->steps_ms, .count = o->backoff_count };
    return PAWL_OK;
}

static pawl_status take_exponential(pawli_handler *h, const pawl_handler_options *o)
{
    if (o->backoff_first_ms < 0 || o->backoff_max_ms < 0)
        return invalid(h->kind, "backoff_first_ms and backoff_max_ms must not be negative");
    if (o->backoff_percent != 0 && o->backoff_percent < 100)
        return invalid(h->kind, "backoff_percent must be at least 100 (no growth)");
    h->backoff = (pawli_backoff){
        .first_ms = o->backoff_first_ms,
        .percent = o->backoff_percent != 0 ? o->backoff_percent : 200,
        .max_ms = o->backoff_max_ms != 0 ? o->backoff_max_ms : BACKOFF_MAX_MS_DEFAULT,
    };
    return PAWL_OK;
}

static pawl_status take_options(pawli_handler *h, const pawl_handler_options *given)
{
    pawl_handler_options o = PAWL_HANDLER_OPTIONS_INIT;
    if (given != NULL && !pawli_struct_read(&o, sizeof o, given))
        return invalid(h->kind, "struct_size is not set; use PAWL_HANDLER(...)");
    if (o.timeout_ms < PAWL_NONE)
        return invalid(h->kind, "timeout_ms must not be negative (PAWL_NONE: no limit)");
    if (o.unknown != 0 && o.unknown != PAWL_RETRY && o.unknown != PAWL_FAILED)
        return invalid(h->kind, "unknown must be PAWL_RETRY or PAWL_FAILED");
    h->timeout_ms = o.timeout_ms > 0 ? o.timeout_ms : 0;
    h->unknown = o.unknown != 0 ? o.unknown : PAWL_RETRY;
    h->backoff_fn = o.backoff_fn;
    h->backoff_arg = o.backoff_arg;
    h->service.in_flight_max = o.in_flight_max;
    h->backoff = pawli_backoff_default;
    if (o.backoff_ms != NULL || o.backoff_count != 0)
        return take_list(h, &o);
    if (o.backoff_first_ms != 0 || o.backoff_percent != 0 || o.backoff_max_ms != 0) {
        if (o.backoff_first_ms == 0)
            return invalid(h->kind, "an exponential backoff needs backoff_first_ms");
        return take_exponential(h, &o);
    }
    return PAWL_OK;
}

static void free_handler(pawli_handler *h)
{
    free(h->steps_ms);
    free(h->kind);
    free(h);
}

pawl_status pawli_registry_add(pawli_registry *registry, const char *kind, pawl_handler_fn fn,
                               void *arg, const pawl_handler_options *options)
{
    if (kind == NULL || !pawli_name_valid(kind))
        return pawli_fail(PAWL_ERR_INVALID, "handler: kind must be UTF-8, 1 to 255 bytes, without "
                                            "control characters");
    if (fn == NULL)
        return invalid(kind, "the function is NULL");
    if (pawli_registry_find(registry, kind) != NULL)
        return pawli_fail(PAWL_ERR_STATE, "handler \"%s\": the kind has one already", kind);
    pawli_handler *h = calloc(1, sizeof *h);
    if (h == NULL || (h->kind = strdup(kind)) == NULL) {
        free(h);
        return pawli_fail(PAWL_ERR_NOMEM, "handler \"%s\": no memory", kind);
    }
    h->fn = fn;
    h->arg = arg;
    pawl_status st = take_options(h, options);
    if (st != PAWL_OK) {
        free_handler(h);
        return st;
    }
    h->next = registry->handlers;
    registry->handlers = h;
    return PAWL_OK;
}

pawli_handler *pawli_registry_find(const pawli_registry *registry, const char *kind)
{
    pawli_handler *h = registry->handlers;
    while (h != NULL && strcmp(h->kind, kind) != 0)
        h = h->next;
    return h;
}

void pawli_registry_fini(pawli_registry *registry)
{
    while (registry->handlers != NULL) {
        pawli_handler *gone = registry->handlers;
        registry->handlers = gone->next;
        free_handler(gone);
    }
}
