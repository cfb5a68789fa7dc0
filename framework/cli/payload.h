/* payload.h - reading a job's payload from a file or from standard input. */
#ifndef PAWL_CLI_PAYLOAD_H
#define PAWL_CLI_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>

/** Reads all of `path` ("-": standard input). True: the caller frees *bytes_out. False: errno says
 *  why; EFBIG: it is larger than any payload may be. */
bool cli_payload_read(const char *path, void **bytes_out, size_t *count_out);

#endif
