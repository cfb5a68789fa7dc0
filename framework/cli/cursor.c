/* cursor.c - one stored job after the other, read in pages.
 *
 * No transaction is held between pages: jobs that change meanwhile are seen as they are when their
 * page is read. Ids are never reused, so no job is seen twice. */
#include "cursor.h"

void cli_cursor_init(cli_cursor *cursor, pawl_pool *pool, const pawl_filter *filter, int64_t limit)
{
    *cursor = (cli_cursor){ .pool = pool, .filter = *filter, .limit = limit };
    for (size_t i = 0; i < CLI_CURSOR_PAGE; i++)
        cursor->page[i].struct_size = sizeof cursor->page[i];
}

static void clear_page(cli_cursor *cursor)
{
    for (size_t i = 0; i < cursor->count; i++)
        pawl_job_info_clear(&cursor->page[i]);
    cursor->count = 0;
    cursor->next = 0;
}

static pawl_status read_page(cli_cursor *cursor)
{
    clear_page(cursor);
    size_t capacity = cursor->limit < CLI_CURSOR_PAGE ? (size_t)cursor->limit : CLI_CURSOR_PAGE;
    if (cursor->is_ended || capacity == 0)
        return PAWL_OK;
    size_t count = 0;
    pawl_status status = pawl_list(cursor->pool, &cursor->filter, cursor->page, capacity, &count);
    if (status != PAWL_OK)
        return status;
    cursor->count = count;
    cursor->limit -= (int64_t)count;
    cursor->is_ended = count < capacity;
    if (count > 0)
        cursor->filter.after_id = cursor->page[count - 1].id;
    return PAWL_OK;
}

pawl_status cli_cursor_next(cli_cursor *cursor, const pawl_job_info **job_out)
{
    *job_out = NULL;
    if (cursor->next == cursor->count) {
        pawl_status status = read_page(cursor);
        if (status != PAWL_OK)
            return status;
    }
    if (cursor->next < cursor->count)
        *job_out = &cursor->page[cursor->next++];
    return PAWL_OK;
}

void cli_cursor_fini(cli_cursor *cursor)
{
    clear_page(cursor);
}
