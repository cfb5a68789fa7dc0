/* dump.c - see dump.h. */
#include "dump.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void add_value(sqlite3_str *out, sqlite3_stmt *row, int column)
{
    const void *bytes = sqlite3_column_blob(row, column);
    int count = sqlite3_column_bytes(row, column);
    switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER: sqlite3_str_appendf(out, " %lld", sqlite3_column_int64(row, column)); break;
    case SQLITE_FLOAT: sqlite3_str_appendf(out, " %!.17g", sqlite3_column_double(row, column)); break;
    case SQLITE_TEXT: sqlite3_str_appendf(out, " %Q", (const char *)sqlite3_column_text(row, column)); break;
    case SQLITE_NULL: sqlite3_str_appendall(out, " NULL"); break;
    case SQLITE_BLOB:
    default:
        sqlite3_str_appendall(out, " x'");
        for (int i = 0; i < count; i++)
            sqlite3_str_appendf(out, "%02x", ((const unsigned char *)bytes)[i]);
        sqlite3_str_appendall(out, "'");
        break;
    }
}

static void add_table(sqlite3_str *out, sqlite3 *db, const char *table, bool notes)
{
    char sql[256];
    sqlite3_stmt *row;
    (void)snprintf(sql, sizeof sql, "SELECT * FROM %s%s ORDER BY 1, 2", table,
                   !notes && strcmp(table, "pawl_meta") == 0 ? " WHERE key NOT LIKE 'sql\\_%' ESCAPE '\\'" : "");
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    while (sqlite3_step(row) == SQLITE_ROW) {
        sqlite3_str_appendall(out, table);
        for (int i = 0; i < sqlite3_column_count(row); i++)
            add_value(out, row, i);
        sqlite3_str_appendall(out, "\n");
    }
    assert_int_equal(sqlite3_finalize(row), SQLITE_OK);
}

char *dump_tables(sqlite3 *db, bool notes)
{
    sqlite3_str *out = sqlite3_str_new(NULL);
    sqlite3_stmt *row;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name LIKE"
                                            " 'pawl\\_%' ESCAPE '\\' OR name = 'sqlite_sequence') ORDER BY 1",
                                        -1, &row, NULL), SQLITE_OK);
    while (sqlite3_step(row) == SQLITE_ROW)
        add_table(out, db, (const char *)sqlite3_column_text(row, 0), notes);
    assert_int_equal(sqlite3_finalize(row), SQLITE_OK);
    char *text = sqlite3_str_finish(out);
    assert_non_null(text);
    return text;
}

/* Prints the lines of `text` that `other` does not have. */
static void print_lines_apart(const char *sign, const char *text, const char *other)
{
    for (const char *line = text; *line != '\0';) {
        size_t bytes = strcspn(line, "\n") + 1;
        char *copy = strndup(line, bytes);
        assert_non_null(copy);
        if (strstr(other, copy) == NULL)
            print_error("%s %s", sign, copy);
        free(copy);
        line += bytes;
    }
}

void assert_same_dump(char *before, char *after, const char *what)
{
    bool same = strcmp(before, after) == 0;
    if (!same) {
        print_error("%s\n  changed the tables:\n", what);
        print_lines_apart("-", before, after);
        print_lines_apart("+", after, before);
    }
    sqlite3_free(before);
    sqlite3_free(after);
    assert_true(same);
}
