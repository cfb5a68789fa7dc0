/* handler.h - what pawl calls for each job: reads one file. */
#ifndef INGEST_HANDLER_H
#define INGEST_HANDLER_H

#include <openssl/evp.h>
#include <pawl/pawl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** Shared by all executors; outlives the pool. */
struct handler {
    EVP_MD *sha256; /* read-only once set */
    _Atomic int64_t bytes_read;
    _Atomic int64_t retries;
};

/** False: this OpenSSL has no SHA-256. */
bool handler_init(struct handler *handler);
void handler_fini(struct handler *handler);

/** A pawl_handler_fn; `arg` is the struct handler. */
int handler_run(pawl_job *job, void *arg);

#endif
