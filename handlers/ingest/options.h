/* options.h - the command line. */
#ifndef INGEST_OPTIONS_H
#define INGEST_OPTIONS_H

#include <stdint.h>

struct options {
    uint32_t executors; /* 0: let the library choose */
    char *database;     /* absolute, where its directory exists */
    char **dirs;        /* absolute, without symbolic links; NULL ends them */
};

enum { OPTIONS_GO_ON = -1 };

/** Reads the command line. OPTIONS_GO_ON, or the status to exit with, after saying why. Either way
 *  the caller ends with options_fini(). */
int options_init(struct options *options, int argc, char **argv);
void options_fini(struct options *options);

#endif
