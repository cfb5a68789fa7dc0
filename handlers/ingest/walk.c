/* walk.c - finds every regular file below some directories, with fts(3).
 *
 * Symbolic links are not followed, so the walk ends and no file is met by two names of that sort.
 * What cannot be entered is reported, and the walk goes on beside it. */
#include "walk.h"

#include <errno.h>
#include <fts.h>
#include <string.h>

/* The database and what stands beside it under its name: SQLite's files, and pawl's directory. They
 * change while we read them, and who closes the database drops SQLite's locks in this process. */
static bool is_database(const char *path, const char *database)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-journal", "-pawl" };
    size_t length = strlen(database);
    if (strncmp(path, database, length) != 0)
        return false;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (strcmp(path + length, suffixes[i]) == 0)
            return true;
    return false;
}

/* Returns false to end the walk. */
static bool visit(FTS *tree, FTSENT *entry, const char *database,
                  const struct walk_visitor *visitor, struct walk_totals *totals)
{
    if (is_database(entry->fts_path, database)) {
        (void)fts_set(tree, entry, FTS_SKIP);
        return true;
    }
    switch (entry->fts_info) {
    case FTS_F:
        totals->files++;
        return visitor->file(entry->fts_path, entry->fts_statp, visitor->arg);
    case FTS_D:
    case FTS_DP:
        return true;
    case FTS_DC: /* a directory inside itself: only mounts can do that */
        totals->problems++;
        visitor->problem(entry->fts_path, ELOOP, visitor->arg);
        return true;
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        totals->problems++;
        visitor->problem(entry->fts_path, entry->fts_errno, visitor->arg);
        return true;
    default:
        totals->passed_over++;
        return true;
    }
}

void walk(char *const *dirs, const char *database, const struct walk_visitor *visitor,
          struct walk_totals *totals)
{
    FTS *tree = fts_open(dirs, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (tree == NULL) {
        totals->problems++;
        visitor->problem(dirs[0], errno, visitor->arg);
        return;
    }
    FTSENT *entry;
    do {
        errno = 0; /* NULL is the end, or an error */
        entry = fts_read(tree);
    } while (entry != NULL && visit(tree, entry, database, visitor, totals));
    if (entry == NULL && errno != 0) {
        totals->problems++;
        visitor->problem(dirs[0], errno, visitor->arg);
    }
    (void)fts_close(tree);
}
