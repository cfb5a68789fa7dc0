/* file_job.c - one file as a job: its payload, and the key that makes it one of a kind.
 *
 * The payload is "SIZE MTIME_NS PATH", with the path's bytes as they are: short, and legible in
 * `pawl show`. Path, size and mtime name one version of one file, and so does their digest, the
 * key: walking the same tree again enqueues only what is new or has changed. */
#include "file_job.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Unsigned, because a file may claim any time: past the year 2262 the number wraps, which does for
 * telling two versions apart. */
int64_t file_job_mtime_ns(const struct stat *status)
{
    return (int64_t)((uint64_t)status->st_mtim.tv_sec * 1000000000u +
                     (uint64_t)status->st_mtim.tv_nsec);
}

char *file_job_encode(const struct file_job *file, size_t *bytes)
{
    char *payload;
    int length =
        asprintf(&payload, "%" PRId64 " %" PRId64 " %s", file->size, file->mtime_ns, file->path);
    if (length < 0)
        return NULL;
    *bytes = (size_t)length;
    return payload;
}

/* A number and the one space behind it. */
static bool decode_number(const char **at, int64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoll(*at, &end, 10);
    if (errno != 0 || end == *at || *end != ' ')
        return false;
    *at = end + 1;
    return true;
}

bool file_job_decode(struct file_job *file, const char *payload, size_t bytes)
{
    const char *at = payload;
    if (!decode_number(&at, &file->size) || !decode_number(&at, &file->mtime_ns))
        return false;
    file->path = at;
    return at[0] == '/' && strlen(payload) == bytes;
}

bool file_job_key(const char *payload, size_t bytes, unsigned char key[FILE_JOB_KEY_BYTES])
{
    return EVP_Digest(payload, bytes, key, NULL, EVP_sha256(), NULL) == 1;
}
