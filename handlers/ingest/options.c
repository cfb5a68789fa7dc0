/* options.c - the command line: getopt_long, and paths made absolute.
 *
 * Jobs outlive the process, so what they name must not depend on its working directory. */
#include "options.h"
#include "text.h"

#include <pawl/pawl.h>

#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char usage[] =
    "Usage: pawl-ingest [--executors N] [--db FILE] DIR...\n"
    "\n"
    "Reads every regular file below each DIR and records its SHA-256 and its number of\n"
    "lines, words and bytes in the table ingest_file of an SQLite file. One file is one job:\n"
    "whatever happens to this process, running the same command again goes on where it\n"
    "stopped, and a file that has not changed since is not read twice. Symbolic links are\n"
    "not followed; devices, sockets and pipes are passed over.\n"
    "\n"
    "  -e, --executors N   files read at the same time, 1 to 1024 (default: one for each\n"
    "                      CPU, at least 4)\n"
    "  -d, --db FILE       the SQLite file with jobs and results (default: pawl-ingest.db\n"
    "                      in the current directory); created if it is missing\n"
    "  -h, --help          this text\n"
    "  -V, --version       the versions of the program and of the library\n"
    "\n"
    "Exit status: 0 every file is ingested; 1 some could not be, or the work could not go\n"
    "on; 2 wrong usage; 128 + N stopped by signal N.\n";

static int wrong_usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("pawl-ingest: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\nTry: pawl-ingest --help\n", stderr);
    va_end(arguments);
    return 2;
}

static int no_memory(void)
{
    fputs("pawl-ingest: no memory\n", stderr);
    return 1;
}

static int parse_executors(struct options *options, const char *text)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < 1 || number > 1024)
        return wrong_usage("--executors takes a number from 1 to 1024");
    options->executors = (uint32_t)number;
    return OPTIONS_GO_ON;
}

/* The file need not exist yet, its directory should; if not, pawl_open() will say so. */
static char *absolute_path(const char *path)
{
    char *resolved = realpath(path, NULL);
    if (resolved != NULL)
        return resolved;
    char *for_dir = strdup(path), *for_base = strdup(path);
    char *dir = for_dir != NULL ? realpath(dirname(for_dir), NULL) : NULL;
    char *absolute = NULL;
    if (dir == NULL || for_base == NULL ||
        asprintf(&absolute, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, basename(for_base)) < 0)
        absolute = strdup(path);
    free(dir);
    free(for_base);
    free(for_dir);
    return absolute;
}

static int cannot_walk(const char *given, int error)
{
    char *shown = text_escape(given, strlen(given));
    int code = wrong_usage("%s: %s", shown != NULL ? shown : "DIR", strerror(error));
    free(shown);
    return code;
}

static int add_dir(struct options *options, size_t at, const char *given)
{
    struct stat status;
    options->dirs[at] = realpath(given, NULL);
    if (options->dirs[at] == NULL || stat(options->dirs[at], &status) != 0)
        return cannot_walk(given, errno);
    if (!S_ISDIR(status.st_mode))
        return cannot_walk(given, ENOTDIR);
    return OPTIONS_GO_ON;
}

static int add_dirs(struct options *options, int count, char **given)
{
    if (count == 0)
        return wrong_usage("which directory?");
    options->dirs = calloc((size_t)count + 1, sizeof *options->dirs);
    if (options->dirs == NULL)
        return no_memory();
    int code = OPTIONS_GO_ON;
    for (int i = 0; i < count && code == OPTIONS_GO_ON; i++)
        code = add_dir(options, (size_t)i, given[i]);
    return code;
}

static int print_version(void)
{
    printf("pawl-ingest %s, libpawl %s\n", PAWL_VERSION, pawl_version());
    return 0;
}

/* Says what is wrong with an argument by itself: getopt's own message names it. */
static int parse_switches(struct options *options, const char **database, int argc, char **argv)
{
    static const struct option switches[] = {
        { "executors", required_argument, NULL, 'e' },
        { "db", required_argument, NULL, 'd' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },
        { NULL, 0, NULL, 0 },
    };
    int code = OPTIONS_GO_ON;
    for (int c;
         code == OPTIONS_GO_ON && (c = getopt_long(argc, argv, "e:d:hV", switches, NULL)) != -1;)
        switch (c) {
        case 'e':
            code = parse_executors(options, optarg);
            break;
        case 'd':
            *database = optarg;
            break;
        case 'h':
            code = fputs(usage, stdout) < 0;
            break;
        case 'V':
            code = print_version();
            break;
        default:
            fputs("Try: pawl-ingest --help\n", stderr);
            code = 2;
        }
    return code;
}

int options_init(struct options *options, int argc, char **argv)
{
    *options = (struct options){ 0 };
    const char *database = "pawl-ingest.db";
    int code = parse_switches(options, &database, argc, argv);
    if (code == OPTIONS_GO_ON)
        code = add_dirs(options, argc - optind, argv + optind);
    if (code == OPTIONS_GO_ON && (options->database = absolute_path(database)) == NULL)
        code = no_memory();
    return code;
}

void options_fini(struct options *options)
{
    for (char **dir = options->dirs; dir != NULL && *dir != NULL; dir++)
        free(*dir);
    free(options->dirs);
    free(options->database);
}
