/* temp.h - a directory of a test's own, removed after it, and where its database stands. */
#ifndef TESTS_TEMP_H
#define TESTS_TEMP_H

typedef struct temp {
    char directory[256];
    char path[300]; /* DIRECTORY/jobs.db; not created */
} temp;

/* For cmocka: *state is a temp. */
int temp_setup(void **state);
int temp_teardown(void **state);

/* DIRECTORY/name, in a buffer that the fifth next call uses again. */
const char *temp_file(const temp *t, const char *name);
void temp_write(const char *path, const void *bytes, unsigned long count);
/* The names and sizes of what is in the directory, one a line, sorted; the caller frees it. */
char *temp_listing(const temp *t);

#endif
