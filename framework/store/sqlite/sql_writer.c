/* sql_writer.c - notices a program that writes to the file on a connection of its own: by SQL, through the view
 * pawl_jobs, or by pawl_enqueue_in() with automatic checkpoints on.
 *
 * With these, such a program can lose acknowledged commits, its own and everybody's, where SQLite has the
 * WAL-reset race. The triggers leave a note of the time, and so does pawl_enqueue_in(). The triggers cannot
 * know whether the connection has switched them off, so it is said once what it must say.
 * Threads: the writer's role.
 * Keeps:   R6 foreign writers are noticed, and told what to do. */
#include "race_probe.h"
#include "sqlite_store.h"

static int read_note(pawli_sqlite *s, int64_t *out)
{
    bool found;
    *out = 0;
    return pawli_read_integer(s, PAWLI_SQL_META_READ, PAWLI_VALUES(TEXT("sql_writer")), out, &found);
}

void pawli_sql_writer_begin(pawli_sqlite *s)
{
    if (read_note(s, &s->sql_writer_at) != SQLITE_OK)
        s->sql_writer_at = 0; /* then an old one is told of, too */
    s->sql_writer_told = !pawli_race_version_has_it(sqlite3_libversion_number());
}

void pawli_sql_writer_look(pawli_sqlite *s)
{
    int64_t at;
    if (s->sql_writer_told || s->holder == 0 || read_note(s, &at) != SQLITE_OK
        || at == s->sql_writer_at) /* an older one counts too: some clock was set */
        return;
    s->sql_writer_told = true;
    pawli_log_line(s->host.log, PAWL_LOG_WARNING,
                   "%s: a program writes jobs on a connection of its own; with SQLite %s it must say on it, before it "
                   "writes: PRAGMA wal_autocheckpoint=0; if it does, all is well (pawl doctor tells more)",
                   s->path, sqlite3_libversion());
}
