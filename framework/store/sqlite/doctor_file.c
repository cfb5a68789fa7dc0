/* doctor_file.c - what the file system says: kind, links, modes, free space.
 * Threads: the caller of pawl_diagnose(). Keeps: R8 everything is asked by path; no file of the store is
 * opened. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../../phrase.h"
#include "doctor.h"

/* ------------------------------------------------------------------------------- the file */

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)   ? "a directory"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

static const char *show(const char *path, char out[PATH_MAX])
{
    (void)pawli_text_escape(out, PATH_MAX, path, strlen(path));
    return out;
}

static void look_at_links(pawli_doctor *d)
{
    struct stat link;
    char given[PATH_MAX];
    if (d->file.st_nlink > 1)
        pawli_doctor_tell(d, PAWL_FINDING_ERROR,
                          "%s has %lu hard links, and two names of one SQLite file lose data\n"
                          "remove the others: find DIR -samefile %s",
                          d->shown, (unsigned long)d->file.st_nlink, d->word);
    if (lstat(d->given, &link) == 0 && S_ISLNK(link.st_mode))
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "%s is a symbolic link to %s; its log and side files lie there",
                          show(d->given, given), d->shown);
}

static const char *const sides[PAWLI_SIDES] = { "-wal", "-shm", "-pawl" };

/* Asked before SQLite opens the file: as root it gives the log to the owner of the file. */
static void note_owners(pawli_doctor *d)
{
    char path[PATH_MAX + 16];
    struct stat st;
    for (size_t i = 0; i < PAWLI_SIDES; i++) {
        (void)snprintf(path, sizeof path, "%s%s", d->s->path, sides[i]);
        d->owners[i] = stat(path, &st) == 0 ? st.st_uid : d->file.st_uid;
    }
}

static void tell_missing(pawli_doctor *d, const char *shown)
{
    char path[PATH_MAX + 2], word[PAWLI_WORD_BYTES];
    (void)snprintf(path, sizeof path, "%s%s", d->given[0] == '-' ? "./" : "", d->given); /* no option */
    pawli_doctor_tell(d, PAWL_FINDING_ERROR, "%s does not exist\ncreate it: pawl init %s", shown,
                      pawli_text_word(word, path));
}

void pawli_doctor_check_file(pawli_doctor *d)
{
    char given[PATH_MAX];
    if (realpath(d->given, d->s->path) == NULL) {
        if (errno == ENOENT)
            tell_missing(d, show(d->given, given));
        else
            pawli_doctor_tell(d, PAWL_FINDING_ERROR,
                              "%s cannot be found: %s\n"
                              "check the path, and the permissions of its directories",
                              show(d->given, given), strerror(errno));
        return;
    }
    if (stat(d->s->path, &d->file) != 0 || !S_ISREG(d->file.st_mode)) {
        pawli_doctor_tell(d, PAWL_FINDING_ERROR, "%s is %s and not a file\nname the database file",
                          show(d->given, given),
                          kind_of(d->file.st_mode));
        return;
    }
    d->is_there = true;
    (void)show(d->s->path, d->shown);
    (void)pawli_text_word(d->word, d->s->path);
    note_owners(d);
    look_at_links(d);
    char size[PAWLI_PHRASE_BYTES];
    if (d->told == 0)
        pawli_doctor_tell(d, PAWL_FINDING_OK, "%s, %s", d->shown,
                          pawli_phrase_bytes((uint64_t)d->file.st_size, size));
}

/* ---------------------------------------------------------------------------------- modes */

/* A log of another owner's, left by a command that ran as root, locks the application out. */
static void look_at_owners(pawli_doctor *d)
{
    char path[PATH_MAX + 16], word[PAWLI_WORD_BYTES];
    for (size_t i = 0; i < PAWLI_SIDES; i++) {
        uid_t owner = d->owners[i];
        (void)snprintf(path, sizeof path, "%s%s", d->s->path, sides[i]);
        if (owner != d->file.st_uid)
            pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                              "%s%s belongs to user %lu, the file itself to user %lu, who may not be able "
                              "to write it\n"
                              "chown --reference %s %s",
                              d->shown, sides[i], (unsigned long)owner, (unsigned long)d->file.st_uid, d->word,
                              pawli_text_word(word, path));
    }
}

void pawli_doctor_check_mode(pawli_doctor *d)
{
    unsigned mode = (unsigned)d->file.st_mode & 0777;
    if ((mode & 0007) != 0)
        pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                          "everybody on this machine may %s it (mode %04o); payloads and errors stand in "
                          "it\n"
                          "chmod o= %s",
                          (mode & 0002) != 0 ? "write" : (mode & 0004) != 0 ? "read" : "execute", mode,
                          d->word);
    if ((mode & 0070) != 0)
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "its group may %s it (mode %04o)\n"
                          "if that is not meant: chmod g= %s",
                          (mode & 0020) != 0 ? "write" : (mode & 0040) != 0 ? "read" : "execute", mode,
                          d->word);
    if (access(d->s->path, R_OK) != 0)
        pawli_doctor_tell(d, PAWL_FINDING_ERROR,
                          "it cannot be read here: %s\n"
                          "run this as the owner of the file (user %lu), or give read permission",
                          strerror(errno), (unsigned long)d->file.st_uid);
    look_at_owners(d);
}

/* ------------------------------------------------------------------------------ the disk */

/* The file itself is not opened: a close would drop SQLite's locks (R8). Its directory is, whose flag new files
 * have. */
static bool is_written_in_place(const pawli_doctor *d)
{
    char directory[PATH_MAX + 16];
    unsigned flags = 0;
    (void)snprintf(directory, sizeof directory, "%s", d->s->path);
    *strrchr(directory, '/') = '\0';
    int file = open(directory[0] != '\0' ? directory : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool known = file >= 0 && ioctl(file, FS_IOC_GETFLAGS, &flags) == 0;
    if (file >= 0)
        (void)close(file);
    return !known || (flags & FS_NOCOW_FL) != 0;
}

void pawli_doctor_check_file_system(pawli_doctor *d)
{
    struct statfs fs;
    if (statfs(d->s->path, &fs) != 0)
        return;
    if ((unsigned long)fs.f_type == BTRFS_SUPER_MAGIC && !is_written_in_place(d))
        pawli_doctor_tell(d, PAWL_FINDING_NOTE,
                          "it lies on btrfs, where a store into SQLite's mapped index (-shm) may fail on a full "
                          "disk and kill the process\n"
                          "run chattr +C on its directory before the file is created, or copy it into such a "
                          "directory while nobody has it open");
    if (pawli_sqlite_is_network(fs.f_type))
        pawli_doctor_tell(d, PAWL_FINDING_ERROR,
                          "it lies on a network file system (type 0x%lx), where SQLite's locks do "
                          "not hold\n"
                          "move it to a local disk while nobody has it open",
                          (unsigned long)fs.f_type);
}

#define FREE_BYTES_MIN (UINT64_C(100) << 20)

void pawli_doctor_check_disk(pawli_doctor *d)
{
    struct statvfs fs;
    char free_text[PAWLI_PHRASE_BYTES], log_text[PAWLI_PHRASE_BYTES];
    if (statvfs(d->s->path, &fs) != 0) {
        pawli_doctor_tell(d, PAWL_FINDING_NOTE, "the free space cannot be told: %s", strerror(errno));
        return;
    }
    int64_t wal = pawli_doctor_size(d, "-wal");
    uint64_t log = wal > 0 ? (uint64_t)wal : 0, room = (uint64_t)fs.f_bavail * fs.f_frsize;
    (void)pawli_phrase_bytes(room, free_text);
    (void)pawli_phrase_bytes(log, log_text);
    if (room < FREE_BYTES_MIN || room < 2 * log)
        pawli_doctor_tell(d, PAWL_FINDING_WARNING,
                          "%s are free on its disk, and the log has %s\n"
                          "make room: on a full disk nothing is accepted, and outcomes wait in memory",
                          free_text, log_text);
    else
        pawli_doctor_tell(d, PAWL_FINDING_OK, "%s are free", free_text);
}
