/* help.c - pawl help [VERB]: the help of the command and of each verb, made from the tables of
 * verbs and options, so that it cannot differ from what they take. */
#include "help.h"

#include "arguments.h"
#include "message.h"

#include <string.h>

enum { HELP_COLUMN = 27 };

void cli_help_overview(FILE *out)
{
    fputs("Usage: pawl VERB [FILE] [OPTION...] [ARGUMENT...]\n\n"
          "Looks after durable background jobs in an SQLite file.\n\nVerbs:\n",
          out);
    for (const cli_verb *const *verb = cli_verbs; *verb != NULL; verb++)
        fprintf(out, "  %-9s %s\n", (*verb)->name, (*verb)->summary);
    fputs("\n"
          "FILE is the job database, and the first of the arguments. Options may stand\n"
          "anywhere; -- ends them. 'pawl help VERB' tells all about one verb.\n"
          "\n"
          "Exit status: 0 it is done, 1 a problem, 2 wrong usage.\n"
          "Environment: COLUMNS is the terminal's width; NO_COLOR switches colours off.\n",
          out);
}

void cli_help_synopsis(FILE *out, const cli_verb *verb)
{
    const char *lead = "Usage:";
    const char *line = verb->synopsis;
    while (line != NULL) {
        const char *end = strchr(line, '\n');
        int length = (int)(end != NULL ? (size_t)(end - line) : strlen(line));
        fprintf(out, "%s pawl %s%s%.*s\n", lead, verb->name, length > 0 ? " " : "", length, line);
        lead = "      ";
        line = end != NULL ? end + 1 : NULL;
    }
}

static void describe_option(FILE *out, const cli_option *option)
{
    int used = option->id < CLI_OPTION_LONG ? fprintf(out, "  -%c, ", option->id)
                                            : fprintf(out, "      ");
    used += fprintf(out, "--%s%s%s", option->name, option->value != NULL ? " " : "",
                    option->value != NULL ? option->value : "");
    fprintf(out, "%*s", used < HELP_COLUMN ? HELP_COLUMN - used : 1, "");
    for (const char *at = option->help; *at != '\0'; at++) {
        fputc(*at, out);
        if (*at == '\n')
            fprintf(out, "%*s", HELP_COLUMN, "");
    }
    fputc('\n', out);
}

void cli_help_verb(FILE *out, const cli_verb *verb)
{
    static const cli_option help = { 'h', "help", NULL, "show this help" };
    cli_help_synopsis(out, verb);
    fprintf(out, "\n%s.\n\nOptions:\n", verb->summary);
    for (const cli_option *option = verb->options; option->name != NULL; option++)
        describe_option(out, option);
    describe_option(out, &help);
    if (verb->details != NULL)
        fprintf(out, "\n%s", verb->details);
}

static int run(cli_arguments *arguments)
{
    if (!cli_arguments_parse(arguments, NULL, NULL, 0, 1))
        return arguments->exit_status;
    if (arguments->operand_count == 0) {
        cli_help_overview(stdout);
        return CLI_EXIT_OK;
    }
    const cli_verb *verb = cli_verb_find(arguments->operands[0]);
    if (verb == NULL) {
        cli_problem("help", "'%s' is not a verb; 'pawl help' lists them", arguments->operands[0]);
        return CLI_EXIT_USAGE;
    }
    cli_help_verb(stdout, verb);
    return CLI_EXIT_OK;
}

static const cli_option options[] = { { 0 } };

const cli_verb cli_verb_help = {
    .name = "help",
    .summary = "Shows this help, or that of one verb",
    .synopsis = "[VERB]",
    .options = options,
    .run = run,
};
