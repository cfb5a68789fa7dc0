/* temp.c - see temp.h. */
#include "temp.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int temp_setup(void **state)
{
    temp *t = calloc(1, sizeof *t);
    const char *base = getenv("TMPDIR");
    if (t == NULL)
        return -1;
    (void)snprintf(t->directory, sizeof t->directory, "%.200s/pawl-test-XXXXXX",
                   base != NULL ? base : "/tmp");
    if (mkdtemp(t->directory) == NULL) {
        free(t);
        return -1;
    }
    (void)snprintf(t->path, sizeof t->path, "%s/jobs.db", t->directory);
    *state = t;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int temp_teardown(void **state)
{
    temp *t = *state;
    (void)chmod(t->directory, 0700);
    int failed = nftw(t->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(t);
    return failed;
}

const char *temp_file(const temp *t, const char *name)
{
    static char paths[5][512];
    static unsigned next;
    char *path = paths[next++ % 5];
    (void)snprintf(path, sizeof paths[0], "%s/%s", t->directory, name);
    return path;
}

void temp_write(const char *path, const void *bytes, unsigned long count)
{
    FILE *file = fopen(path, "wbe");
    if (file == NULL || fwrite(bytes, 1, count, file) != count || fclose(file) != 0)
        abort();
}

char *temp_listing(const temp *t)
{
    struct dirent **entries;
    int count = scandir(t->directory, &entries, NULL, alphasort);
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (count < 0 || out == NULL)
        abort();
    for (int i = 0; i < count; i++) {
        struct stat st;
        const char *name = entries[i]->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0
            && lstat(temp_file(t, name), &st) == 0)
            fprintf(out, "%s %lld\n", name, S_ISDIR(st.st_mode) ? 0 : (long long)st.st_size);
        free(entries[i]);
    }
    free(entries);
    (void)fclose(out);
    return text;
}
