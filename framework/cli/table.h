/* table.h - rows in aligned columns, cut to the width of the terminal. */
#ifndef PAWL_CLI_TABLE_H
#define PAWL_CLI_TABLE_H

#include "terminal.h"

#include <pawl/pawl.h>

#include <stdbool.h>
#include <stddef.h>

enum { CLI_TABLE_COLUMNS_MAX = 16 };

typedef struct cli_column {
    const char *title;
    bool is_number;  /* aligned to the right */
    bool is_elastic; /* gives way when the terminal is narrow */
} cli_column;

typedef struct cli_cell {
    char *text; /* escaped; owned */
    size_t width;
    cli_style style;
} cli_cell;

/** Rows wait until there are enough of them to choose good widths; later rows only widen columns.
 *  So a list of any length appears as it is read, in bounded memory. */
typedef struct cli_table {
    const cli_column *columns;
    size_t column_count;
    cli_cell *cells; /* row by row */
    size_t cell_count;
    size_t widths[CLI_TABLE_COLUMNS_MAX];
    size_t line_width; /* 0: no limit */
    bool is_titled;
} cli_table;

void cli_table_init(cli_table *table, const cli_column *columns, size_t column_count);
/* Each adds the next cell of the row. */
void cli_table_bytes(cli_table *table, cli_style style, const void *bytes, size_t count);
void cli_table_text(cli_table *table, cli_style style, const char *text); /* NULL: empty */
void cli_table_format(cli_table *table, cli_style style, const char *format, ...)
    PAWL_PRINTF(3, 4);
/** Prints what waits, if anything, and frees it. */
void cli_table_flush(cli_table *table);
void cli_table_fini(cli_table *table);

#endif
