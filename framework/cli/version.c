/* version.c - pawl version: of the command, and of the library where it is another one. */
#include "arguments.h"
#include "json.h"

#include <stdio.h>
#include <string.h>

static bool take(cli_arguments *arguments, int option, void *json)
{
    (void)arguments;
    (void)option;
    *(bool *)json = true;
    return true;
}

static void print_json(void)
{
    json_t *object = cli_json_object();
    cli_json_set_text(object, "version", PAWL_VERSION);
    cli_json_set_text(object, "library_version", pawl_version());
    cli_json_print(object, CLI_JSON_LINE);
}

static int run(cli_arguments *arguments)
{
    bool json = false;
    if (!cli_arguments_parse(arguments, take, &json, 0, 0))
        return arguments->exit_status;
    if (json)
        print_json();
    else if (strcmp(PAWL_VERSION, pawl_version()) == 0)
        puts("pawl " PAWL_VERSION);
    else
        printf("pawl %s (library %s)\n", PAWL_VERSION, pawl_version());
    return CLI_EXIT_OK;
}

static const cli_option options[] = {
    { CLI_OPTION_JSON, "json", NULL, "print a JSON object: version, library_version" },
    { 0 },
};

const cli_verb cli_verb_version = {
    .name = "version",
    .summary = "Prints the version",
    .synopsis = "[OPTION...]",
    .options = options,
    .run = run,
};
