/* verb.h - what a verb of the pawl command is: a name, its help, its options and a function.
 *
 * The command is a client of <pawl/pawl.h> like any other program. Its shared names begin with cli_
 * and not with pawli_, so that they cannot meet the library's own when it is linked statically. */
#ifndef PAWL_CLI_VERB_H
#define PAWL_CLI_VERB_H

struct cli_arguments;

enum {
    CLI_EXIT_OK = 0,
    CLI_EXIT_PROBLEM = 1, /* it was understood, but could not be done (in full) */
    CLI_EXIT_USAGE = 2    /* it was not understood; nothing was done */
};

/** An option. Its id is its letter, or a number from CLI_OPTION_LONG up where it has none. */
typedef struct cli_option {
    int id;
    const char *name;  /* without dashes; NULL ends a list of options */
    const char *value; /* what its value is called in the help; NULL: it takes none */
    const char *help;
} cli_option;

enum {
    CLI_OPTION_LONG = 256,
    CLI_OPTION_JSON = CLI_OPTION_LONG, /* ids that several verbs share */
    CLI_OPTION_ALL,
    CLI_OPTION_NEXT /* the first one free for a verb's own use */
};

typedef struct cli_verb {
    const char *name;
    const char *summary;       /* one line */
    const char *synopsis;      /* what follows "pawl NAME "; one line for each form */
    const char *details;       /* lines below the options; NULL: none */
    const cli_option *options; /* --help is added to them */
    int (*run)(struct cli_arguments *arguments); /* returns a CLI_EXIT_... */
} cli_verb;

extern const cli_verb *const cli_verbs[]; /* in the order of the help; NULL ends it */

extern const cli_verb cli_verb_init;
extern const cli_verb cli_verb_enqueue;
extern const cli_verb cli_verb_list;
extern const cli_verb cli_verb_show;
extern const cli_verb cli_verb_stats;
extern const cli_verb cli_verb_cancel;
extern const cli_verb cli_verb_requeue;
extern const cli_verb cli_verb_pause;
extern const cli_verb cli_verb_resume;
extern const cli_verb cli_verb_explain;
extern const cli_verb cli_verb_doctor;
extern const cli_verb cli_verb_version;
extern const cli_verb cli_verb_help;

const cli_verb *cli_verb_find(const char *name); /* NULL: there is none */

#endif
