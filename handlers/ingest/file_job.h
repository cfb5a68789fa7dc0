/* file_job.h - one file as a job: its payload, and the key that makes it one of a kind. */
#ifndef INGEST_FILE_JOB_H
#define INGEST_FILE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define FILE_JOB_KIND "ingest-file"

enum { FILE_JOB_KEY_BYTES = 32 };

/** A file as the walk saw it. */
struct file_job {
    const char *path; /* absolute; any bytes but NUL */
    int64_t size;
    int64_t mtime_ns;
};

int64_t file_job_mtime_ns(const struct stat *status);

/** The payload, to be freed; NULL: no memory. */
char *file_job_encode(const struct file_job *file, size_t *bytes);

/** Reads a payload, which a NUL must follow; file->path then points into it. False: it is none. */
bool file_job_decode(struct file_job *file, const char *payload, size_t bytes);

/** SHA-256 over the payload, which is path, size and mtime. False: the digest could not be had. */
bool file_job_key(const char *payload, size_t bytes, unsigned char key[FILE_JOB_KEY_BYTES]);

#endif
