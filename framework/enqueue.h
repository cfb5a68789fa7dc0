/* enqueue.h - a caller's job specs, checked and copied into one request. */
#ifndef PAWLI_ENQUEUE_H
#define PAWLI_ENQUEUE_H

#include <pawl/pawl.h>

#include "request.h"

/* What a spec is checked against; pawl_enqueue_in() has no pool. */
typedef struct pawli_spec_bounds {
    size_t payload_bytes_max;
    uint32_t max_attempts; /* for a spec that names none */
    int64_t now_ms;
} pawli_spec_bounds;

/* Checks one spec and describes it; strings and bytes stay the caller's. */
pawl_status pawli_spec_read(const pawl_job_spec *given, const pawli_spec_bounds *bounds,
                            pawli_new_job *out);

/* Checks and copies `count` specs into one block. `each_out` (or NULL) tells which one is invalid. */
pawl_status pawli_enqueue_build(pawl_pool *pool, const pawl_job_spec *specs, size_t count,
                                pawl_status *each_out, pawli_enqueue_request **out);

#endif
