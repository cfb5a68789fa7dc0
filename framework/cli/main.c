/* main.c - the pawl command: finds the verb, runs it, and makes sure that what it printed arrived.
 *
 * One thread; the pool that a verb opens is never started. Keeps: exit status 0 means that all of
 * standard output was written; the locale stays "C", so numbers look the same everywhere. */
#include "arguments.h"
#include "help.h"
#include "message.h"
#include "text.h"
#include "verb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const cli_verb *const cli_verbs[] = {
    &cli_verb_init,    &cli_verb_enqueue, &cli_verb_list,    &cli_verb_show,
    &cli_verb_stats,   &cli_verb_cancel,  &cli_verb_requeue, &cli_verb_pause,
    &cli_verb_resume,  &cli_verb_explain, &cli_verb_doctor,  &cli_verb_version,
    &cli_verb_help,    NULL,
};

const cli_verb *cli_verb_find(const char *name)
{
    for (const cli_verb *const *verb = cli_verbs; *verb != NULL; verb++)
        if (strcmp((*verb)->name, name) == 0)
            return *verb;
    return NULL;
}

/* A descriptor 0, 1 or 2 that arrives closed would be given to the database file, and the next
 * message would be written into it. Occupied with the opposite access mode, it still answers EBADF
 * to whoever tries to use it. */
static void occupy_closed_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
            /* cppcheck-suppress leakReturnValNotUsed ; it is to stay open */
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static const cli_verb *verb_named(const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return &cli_verb_help;
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        return &cli_verb_version;
    return cli_verb_find(word);
}

/* "pawl jobs.db list": the words are right, their order is not. */
static int refuse_verb(int argc, char **argv)
{
    const cli_verb *meant = argc > 2 ? verb_named(argv[2]) : NULL;
    if (access(argv[1], F_OK) != 0) {
        cli_problem(NULL, "'%s' is not a verb; 'pawl help' lists them", argv[1]);
        return CLI_EXIT_USAGE;
    }
    char *word = cli_text_word(argv[1]);
    cli_problem(NULL, "'%s' is not a verb; the verb comes first: pawl %s %s", argv[1],
                meant != NULL ? meant->name : "list", word);
    free(word);
    return CLI_EXIT_USAGE;
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        cli_help_overview(stderr);
        return CLI_EXIT_USAGE;
    }
    const cli_verb *verb = verb_named(argv[1]);
    if (verb == NULL)
        return refuse_verb(argc, argv);
    cli_arguments arguments = { .verb = verb, .argc = argc - 1, .argv = argv + 1 };
    return verb->run(&arguments);
}

int main(int argc, char **argv)
{
    occupy_closed_descriptors();
    (void)setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* a message is one write */
    int exit_status = run(argc, argv);
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        cli_problem(NULL, "cannot write to standard output%s%s", errno != 0 ? ": " : "",
                    errno != 0 ? strerror(errno) : "");
        return CLI_EXIT_PROBLEM;
    }
    return exit_status;
}
