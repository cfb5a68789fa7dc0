/* registry.h - which handler runs which kind; frozen while the pool runs. */
#ifndef PAWLI_REGISTRY_H
#define PAWLI_REGISTRY_H

#include <pawl/pawl.h>

#include "retry.h"
#include "store/store.h"

typedef struct pawli_handler {
    pawli_service service; /* first: what the store sees of it */
    struct pawli_handler *next;
    char *kind;
    pawl_handler_fn fn;
    void *arg;
    int64_t timeout_ms; /* 0: none */
    int unknown;
    pawli_backoff backoff;
    int64_t *steps_ms; /* the list's own copy */
    pawl_backoff_fn backoff_fn;
    void *backoff_arg;
} pawli_handler;

typedef struct pawli_registry {
    pawli_handler *handlers;
} pawli_registry;

pawl_status pawli_registry_add(pawli_registry *registry, const char *kind, pawl_handler_fn fn,
                               void *arg, const pawl_handler_options *options);
pawli_handler *pawli_registry_find(const pawli_registry *registry, const char *kind);
void pawli_registry_fini(pawli_registry *registry);

static inline pawli_handler *pawli_handler_of(pawli_service *service)
{
    return (pawli_handler *)(void *)service;
}

#endif
