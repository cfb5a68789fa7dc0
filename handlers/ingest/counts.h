/* counts.h - where the jobs of our kind stand. */
#ifndef INGEST_COUNTS_H
#define INGEST_COUNTS_H

#include <pawl/pawl.h>
#include <stdbool.h>
#include <stdint.h>

struct counts {
    int64_t waiting; /* pending, due now or after a backoff */
    int64_t running;
    int64_t succeeded;
    int64_t failed;
    int64_t cancelled;
    bool paused; /* an operator has paused the queue */
};

/** Any thread. False: pawl_error_message() says why. */
bool counts_read(pawl_pool *pool, struct counts *counts);

int64_t counts_left(const struct counts *counts);  /* still to be done */
int64_t counts_ended(const struct counts *counts); /* one way or another */

#endif
