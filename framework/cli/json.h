/* json.h - values as JSON, printed one at a time: a list of any length needs little memory. */
#ifndef PAWL_CLI_JSON_H
#define PAWL_CLI_JSON_H

#include <pawl/pawl.h>

#include <jansson.h>
#include <stdint.h>

typedef enum cli_json_layout {
    CLI_JSON_LINE, /* one line for each value: JSON Lines */
    CLI_JSON_INDENTED
} cli_json_layout;

json_t *cli_json_object(void);

/* Each adds one field to `object`; memory that is not to be had ends the command. */
void cli_json_set(json_t *object, const char *name, json_t *value); /* takes the reference */
void cli_json_set_number(json_t *object, const char *name, int64_t number);
/** 0 is null. */
void cli_json_set_time(json_t *object, const char *name, int64_t time_ms);
/** Text that ought to be UTF-8; escaped as for a terminal if a foreign hand stored something else.
 *  NULL is null. */
void cli_json_set_text(json_t *object, const char *name, const char *text);
/** Any bytes: a string if they are UTF-8 without NUL, else base64 as NAME_base64. NULL is null. */
void cli_json_set_bytes(json_t *object, const char *name, const void *bytes, size_t count);

/** All that is known of a job, in the names of pawl.h. */
json_t *cli_json_job(const pawl_job_info *job);

/** Prints a value on standard output and releases it. */
void cli_json_print(json_t *value, cli_json_layout layout);

#endif
