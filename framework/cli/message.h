/* message.h - lines for a person, on standard error. */
#ifndef PAWL_CLI_MESSAGE_H
#define PAWL_CLI_MESSAGE_H

#include <pawl/pawl.h>

/** Prints "pawl: VERB: ..."; `verb` NULL leaves it out. What is formatted in is escaped. */
void cli_problem(const char *verb, const char *format, ...) PAWL_PRINTF(2, 3);

/** For memory that is not to be had: says so and exits with status 1. A command that holds no
 *  transaction loses nothing by it. */
_Noreturn void cli_out_of_memory(void);

#endif
