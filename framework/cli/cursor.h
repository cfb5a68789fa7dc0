/* cursor.h - one stored job after the other, read in pages. */
#ifndef PAWL_CLI_CURSOR_H
#define PAWL_CLI_CURSOR_H

#include <pawl/pawl.h>

#include <stdbool.h>
#include <stdint.h>

enum { CLI_CURSOR_PAGE = 64 }; /* jobs; their payloads are read with them */

typedef struct cli_cursor {
    pawl_pool *pool;
    pawl_filter filter;
    int64_t limit; /* jobs yet to be read */
    pawl_job_info page[CLI_CURSOR_PAGE];
    size_t count; /* in the page */
    size_t next;
    bool is_ended;
} cli_cursor;

void cli_cursor_init(cli_cursor *cursor, pawl_pool *pool, const pawl_filter *filter,
                     int64_t limit);
/** The next job, valid until the next call; *job_out NULL: there are no more. */
pawl_status cli_cursor_next(cli_cursor *cursor, const pawl_job_info **job_out);
void cli_cursor_fini(cli_cursor *cursor);

#endif
