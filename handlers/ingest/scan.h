/* scan.h - digest and counts of a stream of bytes. */
#ifndef INGEST_SCAN_H
#define INGEST_SCAN_H

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCAN_SHA256_BYTES = 32 };

/** As `wc` counts in the C locale. */
struct scan_result {
    int64_t bytes;
    int64_t lines; /* newlines */
    int64_t words; /* runs of bytes that are not white space */
    unsigned char sha256[SCAN_SHA256_BYTES];
};

struct scan {
    EVP_MD_CTX *digest;
    bool in_word;
    struct scan_result result; /* sha256 is set by scan_finish() */
};

/** The digest is looked up once, by the caller, and shared. False: no memory; still scan_fini(). */
bool scan_init(struct scan *scan, const EVP_MD *sha256);
bool scan_add(struct scan *scan, const unsigned char *bytes, size_t count);
bool scan_finish(struct scan *scan);
void scan_fini(struct scan *scan);

#endif
