/* descriptor.c - see descriptor.h. Any thread. Keeps: G1, G4 the host's descriptors are left alone. */
#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int pawli_descriptor_above_standard(int file)
{
    if (file < 0 || file > STDERR_FILENO)
        return file;
    int higher = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), error = errno;
    (void)close(file);
    errno = error;
    return higher;
}

pawli_descriptor_id pawli_descriptor_identify(int file)
{
    struct stat st;
    if (fstat(file, &st) != 0)
        return (pawli_descriptor_id){ 0, 0 };
    return (pawli_descriptor_id){ st.st_dev, st.st_ino };
}

void pawli_descriptor_close(int file, pawli_descriptor_id id)
{
    struct stat st;
    if (file >= 0 && fstat(file, &st) == 0 && (id.inode == 0 || (st.st_dev == id.device && st.st_ino == id.inode)))
        (void)close(file);
}
