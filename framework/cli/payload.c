/* payload.c - reading a job's payload from a file or from standard input.
 *
 * Keeps: no more is read than the largest payload that a pool can be told to take; the pool's own
 * limit, which may be smaller, is the library's to judge. */
#include "payload.h"

#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_BYTES = 64 << 10, LIMIT_BYTES = 256 << 20 };

static void grow(char **bytes, size_t *capacity)
{
    *capacity = *capacity == 0 ? FIRST_BYTES : *capacity * 2;
    if (*capacity > LIMIT_BYTES)
        *capacity = LIMIT_BYTES + 1; /* room for the one byte that is too many */
    char *larger = realloc(*bytes, *capacity);
    if (larger == NULL)
        cli_out_of_memory();
    *bytes = larger;
}

static bool read_all(int fd, char **bytes, size_t *count)
{
    size_t capacity = 0;
    for (;;) {
        if (*count == capacity)
            grow(bytes, &capacity);
        ssize_t got = read(fd, *bytes + *count, capacity - *count);
        if (got == 0)
            return true;
        if (got < 0 && errno != EINTR)
            return false;
        *count += got > 0 ? (size_t)got : 0;
        if (*count > LIMIT_BYTES) {
            errno = EFBIG;
            return false;
        }
    }
}

bool cli_payload_read(const char *path, void **bytes_out, size_t *count_out)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    char *bytes = NULL;
    size_t count = 0;
    bool is_read = read_all(fd, &bytes, &count);
    int reason = errno;
    if (!is_stdin)
        (void)close(fd);
    if (!is_read) {
        free(bytes);
        errno = reason;
        return false;
    }
    *bytes_out = bytes;
    *count_out = count;
    return true;
}
