/* help.h - the help of the command and of each verb, made from the tables of verbs and options. */
#ifndef PAWL_CLI_HELP_H
#define PAWL_CLI_HELP_H

#include "verb.h"

#include <stdio.h>

void cli_help_overview(FILE *out);
void cli_help_verb(FILE *out, const cli_verb *verb);
/** Only the lines "Usage: pawl VERB ...". */
void cli_help_synopsis(FILE *out, const cli_verb *verb);

#endif
