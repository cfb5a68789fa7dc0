/* table.c - rows in aligned columns, cut to the width of the terminal.
 *
 * Keeps: every cell is escaped when it arrives; a line never ends in spaces, and on a terminal it
 *        is never longer than the terminal is wide. */
#include "table.h"

#include "message.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_MAX = 128,        /* that wait */
    GAP = 2,               /* cells between columns; one where the terminal is narrow */
    ELASTIC_WIDTH_MIN = 8, /* cells that an elastic column keeps */
    FORMATTED_BYTES_MAX = 128
};
static const char cut_mark[] = "...";

void cli_table_init(cli_table *table, const cli_column *columns, size_t column_count)
{
    *table = (cli_table){
        .columns = columns,
        .column_count = column_count,
        .cells = calloc(ROWS_MAX * column_count, sizeof *table->cells),
        .line_width = cli_terminal_width(),
    };
    if (table->cells == NULL)
        cli_out_of_memory();
    for (size_t i = 0; i < column_count; i++)
        table->widths[i] = strlen(columns[i].title);
}

void cli_table_bytes(cli_table *table, cli_style style, const void *bytes, size_t count)
{
    char *text = cli_text_escape(bytes, count);
    cli_cell *cell = &table->cells[table->cell_count];
    *cell = (cli_cell){ .text = text, .width = cli_text_width(text), .style = style };
    size_t *width = &table->widths[table->cell_count % table->column_count];
    if (cell->width > *width)
        *width = cell->width;
    table->cell_count++;
    if (table->cell_count == ROWS_MAX * table->column_count)
        cli_table_flush(table);
}

void cli_table_text(cli_table *table, cli_style style, const char *text)
{
    cli_table_bytes(table, style, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
}

void cli_table_format(cli_table *table, cli_style style, const char *format, ...)
{
    char text[FORMATTED_BYTES_MAX];
    va_list values;
    va_start(values, format);
    (void)vsnprintf(text, sizeof text, format, values);
    va_end(values);
    cli_table_text(table, style, text);
}

/* The elastic column that can best give way; NULL: none can. */
static size_t *widest_elastic(const cli_table *table, size_t *widths)
{
    size_t *widest = NULL;
    for (size_t i = 0; i < table->column_count; i++) {
        bool can_shrink = table->columns[i].is_elastic && widths[i] > ELASTIC_WIDTH_MIN;
        if (can_shrink && (widest == NULL || widths[i] >= *widest))
            widest = &widths[i];
    }
    return widest;
}

/* What the lines look like that are printed at once. */
struct layout {
    size_t widths[CLI_TABLE_COLUMNS_MAX];
    size_t gap;
};

static struct layout fit(const cli_table *table)
{
    struct layout layout = { .gap = GAP };
    memcpy(layout.widths, table->widths, sizeof layout.widths);
    size_t total = GAP * (table->column_count - 1);
    for (size_t i = 0; i < table->column_count; i++)
        total += table->widths[i];
    if (table->line_width == 0 || total <= table->line_width)
        return layout;
    layout.gap = 1;
    total -= (GAP - 1) * (table->column_count - 1);
    size_t *widest;
    while (total > table->line_width && (widest = widest_elastic(table, layout.widths)) != NULL) {
        *widest -= 1;
        total -= 1;
    }
    return layout;
}

/* Prints `text` in at most `width` cells; returns how many it took. */
static size_t print_cut(const char *text, size_t text_width, size_t width)
{
    size_t mark = text_width > width ? sizeof cut_mark - 1 : 0;
    if (mark > width)
        mark = width; /* the beginning of a number alone would read as another number */
    size_t used;
    size_t bytes = cli_text_fit(text, width - mark, &used);
    printf("%.*s%.*s", (int)bytes, text, (int)mark, cut_mark);
    return used + mark;
}

/* Columns of the row up to its last cell with text in it: beyond that are no spaces to print. */
static size_t columns_used(const cli_table *table, const cli_cell *row)
{
    size_t count = table->column_count;
    while (count > 0 && row[count - 1].width == 0)
        count--;
    return count;
}

static void print_row(const cli_table *table, const cli_cell *row, const struct layout *layout)
{
    const size_t *widths = layout->widths;
    size_t room = table->line_width == 0 ? SIZE_MAX : table->line_width;
    size_t last = columns_used(table, row);
    size_t spaces = 0; /* owed from the cell before, and not printed at the end of a line */
    for (size_t i = 0; i < last; i++) {
        size_t width = row[i].width < widths[i] ? row[i].width : widths[i];
        if (table->columns[i].is_number)
            spaces += widths[i] - width;
        if (spaces >= room)
            break;
        room -= spaces;
        cli_style style = row[i].width > 0 ? row[i].style : CLI_PLAIN;
        printf("%*s%s", (int)spaces, "", cli_terminal_begin(style));
        size_t used = print_cut(row[i].text, row[i].width, width < room ? width : room);
        fputs(cli_terminal_end(style), stdout);
        room -= used;
        spaces = layout->gap + (table->columns[i].is_number ? width : widths[i]) - used;
    }
    putchar('\n');
}

static void print_titles(const cli_table *table, const struct layout *layout)
{
    cli_cell titles[CLI_TABLE_COLUMNS_MAX];
    for (size_t i = 0; i < table->column_count; i++)
        titles[i] = (cli_cell){
            .text = (char *)table->columns[i].title, /* only read */
            .width = strlen(table->columns[i].title),
            .style = CLI_BOLD,
        };
    print_row(table, titles, layout);
}

void cli_table_flush(cli_table *table)
{
    if (table->cell_count == 0)
        return;
    struct layout layout = fit(table);
    if (!table->is_titled)
        print_titles(table, &layout);
    table->is_titled = true;
    for (size_t i = 0; i < table->cell_count; i += table->column_count)
        print_row(table, &table->cells[i], &layout);
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i].text);
    table->cell_count = 0;
}

void cli_table_fini(cli_table *table)
{
    cli_table_flush(table);
    free(table->cells);
    table->cells = NULL;
}
