/* arguments.c - the words after a verb: options in any order, operands, and what is wrong.
 *
 * getopt_long() does the work; its own messages are not used, because they are not escaped and do
 * not name the verb. Nor is its own way to move operands to the end: POSIXLY_CORRECT switches it off. */
#include "arguments.h"

#include "help.h"
#include "message.h"
#include "values.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { OPERAND = 1, OPTIONS_MAX = 32, MESSAGE_BYTES_MAX = 1024 };

bool cli_usage_error(cli_arguments *arguments, const char *format, ...)
{
    char message[MESSAGE_BYTES_MAX];
    va_list values;
    va_start(values, format);
    (void)vsnprintf(message, sizeof message, format, values);
    va_end(values);
    cli_problem(arguments->verb->name, "%s", message);
    cli_help_synopsis(stderr, arguments->verb);
    fprintf(stderr, "Try 'pawl help %s'.\n", arguments->verb->name);
    arguments->exit_status = CLI_EXIT_USAGE;
    return false;
}

static const cli_option *option_with_id(const cli_verb *verb, int id)
{
    for (const cli_option *option = verb->options; option->name != NULL; option++)
        if (option->id == id)
            return option;
    return NULL;
}

/* The verb's options in getopt's two notations. */
static void describe_options(const cli_verb *verb, struct option *longs, char *shorts)
{
    *shorts++ = '-'; /* operands come in their place, as OPERAND */
    *shorts++ = ':'; /* a missing value is told from an unknown option */
    *shorts++ = 'h';
    for (const cli_option *option = verb->options; option->name != NULL; option++) {
        *longs++ = (struct option){
            .name = option->name,
            .has_arg = option->value != NULL ? required_argument : no_argument,
            .val = option->id,
        };
        if (option->id < CLI_OPTION_LONG) {
            *shorts++ = (char)option->id;
            if (option->value != NULL)
                *shorts++ = ':';
        }
    }
    *longs++ = (struct option){ .name = "help", .has_arg = no_argument, .val = 'h' };
    *longs = (struct option){ 0 };
    *shorts = '\0';
}

static bool refuse_option(cli_arguments *arguments, int answer)
{
    const cli_option *option = option_with_id(arguments->verb, optopt);
    if (answer == ':' && option != NULL)
        return cli_usage_error(arguments, "--%s needs a value: %s", option->name, option->value);
    if (option != NULL)
        return cli_usage_error(arguments, "--%s takes no value", option->name);
    if (optopt != 0)
        return cli_usage_error(arguments, "there is no option -%c", optopt);
    return cli_usage_error(arguments, "there is no option %s", arguments->argv[optind - 1]);
}

/* Operands are gathered at the beginning of argv, whose words there have been read. */
static void add_operand(cli_arguments *arguments, char *word)
{
    arguments->operands[arguments->operand_count++] = word;
}

static bool take_options(cli_arguments *arguments, cli_take_fn take, void *request)
{
    struct option longs[OPTIONS_MAX];
    char shorts[2 * OPTIONS_MAX + 4];
    describe_options(arguments->verb, longs, shorts);
    arguments->operands = arguments->argv + 1;
    arguments->operand_count = 0;
    opterr = 0;
    int id;
    while ((id = getopt_long(arguments->argc, arguments->argv, shorts, longs, NULL)) != -1) {
        if (id == 'h') {
            cli_help_verb(stdout, arguments->verb);
            arguments->exit_status = CLI_EXIT_OK;
            return false;
        }
        if (id == OPERAND) {
            add_operand(arguments, optarg);
            continue;
        }
        const cli_option *option = option_with_id(arguments->verb, id);
        if (option == NULL)
            return refuse_option(arguments, id);
        arguments->option = option->name;
        arguments->value = optarg;
        if (!take(arguments, id, request))
            return false;
    }
    for (int i = optind; i < arguments->argc; i++) /* those after "--" */
        add_operand(arguments, arguments->argv[i]);
    return true;
}

bool cli_arguments_parse(cli_arguments *arguments, cli_take_fn take, void *request,
                         int operands_min, int operands_max)
{
    if (!take_options(arguments, take, request))
        return false;
    if (arguments->operand_count == 0 && operands_min > 0)
        return cli_usage_error(arguments, "FILE is missing: the job database");
    if (arguments->operand_count < operands_min)
        return cli_usage_error(arguments, "an argument is missing after '%s'",
                               arguments->operands[0]);
    if (operands_max >= 0 && arguments->operand_count > operands_max)
        return cli_usage_error(arguments, "'%s' is one too many",
                               arguments->operands[operands_max]);
    return true;
}

bool cli_take_number(cli_arguments *arguments, int64_t min, int64_t max, int64_t *out)
{
    if (cli_number_parse(arguments->value, min, max, out))
        return true;
    return cli_usage_error(arguments,
                           "--%s: '%s' is not a whole number from %" PRId64 " to %" PRId64,
                           arguments->option, arguments->value, min, max);
}

bool cli_take_duration(cli_arguments *arguments, int64_t *ms_out)
{
    if (cli_duration_parse(arguments->value, ms_out) && *ms_out <= CLI_MOMENT_MS_MAX)
        return true;
    return cli_usage_error(arguments,
                           "--%s: '%s' is not a duration such as 500ms, 10s, 5m, 2h, 1d or 1h30m",
                           arguments->option, arguments->value);
}

bool cli_take_moment(cli_arguments *arguments, int64_t *ms_out)
{
    if (cli_moment_parse(arguments->value, ms_out))
        return true;
    return cli_usage_error(arguments,
                           "--%s: '%s' is not a time such as 2030-01-31, '2030-01-31 18:00' or"
                           " '2030-01-31 18:00:00.000' (UTC, years 1970 to 9999)",
                           arguments->option, arguments->value);
}

bool cli_operand_id(cli_arguments *arguments, const char *operand, int64_t *id_out)
{
    if (cli_number_parse(operand, 1, INT64_MAX, id_out))
        return true;
    return cli_usage_error(arguments, "'%s' is not a job's id: a whole number from 1 to %" PRId64,
                           operand, INT64_MAX);
}
