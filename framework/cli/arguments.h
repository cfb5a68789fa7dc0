/* arguments.h - the words after a verb: options in any order, operands, and what is wrong. */
#ifndef PAWL_CLI_ARGUMENTS_H
#define PAWL_CLI_ARGUMENTS_H

#include "verb.h"

#include <pawl/pawl.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_arguments {
    const cli_verb *verb;
    int argc; /* argv[0] is the verb */
    char **argv;
    const char *option; /* the one being taken, without its dashes, and its value or NULL */
    const char *value;
    char **operands; /* once parsed; the first one is FILE */
    int operand_count;
    int exit_status; /* what to return once a function here has answered false */
} cli_arguments;

/** Takes one option into the verb's request; false, after cli_usage_error(), ends the parsing. */
typedef bool (*cli_take_fn)(cli_arguments *arguments, int option, void *request);

/** Hands all options to `take` (NULL: there are none), then checks the number of operands.
 *  `operands_max` -1: any number. False: return arguments->exit_status; that is OK after --help. */
bool cli_arguments_parse(cli_arguments *arguments, cli_take_fn take, void *request,
                         int operands_min, int operands_max);

/** Says what is wrong and how it is right. Always false; exit_status is CLI_EXIT_USAGE. */
bool cli_usage_error(cli_arguments *arguments, const char *format, ...) PAWL_PRINTF(2, 3);

/* The value of the option being taken; false after cli_usage_error(). */
bool cli_take_number(cli_arguments *arguments, int64_t min, int64_t max, int64_t *out);
bool cli_take_duration(cli_arguments *arguments, int64_t *ms_out);
bool cli_take_moment(cli_arguments *arguments, int64_t *ms_out);

/** A job's id. */
bool cli_operand_id(cli_arguments *arguments, const char *operand, int64_t *id_out);

#endif
