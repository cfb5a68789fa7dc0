/* wal_race_test.c - the WAL-reset race (R6): forced, with its control; and every checkpoint of the library
 * watched from below SQLite.
 *
 * A VFS between SQLite and the disk knows each write into a database file that is in WAL mode: that is a
 * checkpoint, and it must hold the write lock of the log, its own or a guard's, or the file's exclusive lock
 * (the last close). Where a checkpoint has read the log's header and not copied yet, SQLite calls
 * xUnfetch(file, 0, NULL): there the VFS lets another connection commit.
 *
 * Goal: a bare checkpoint loses acknowledged commits on an SQLite that has the race, or these tests prove
 * nothing; under the guard the intruder is answered BUSY and nothing is lost; no path of the library
 * checkpoints without the guard. */
#include "check.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "gate.h"
#include "patience.h"
#include "pool.h"
#include "store/sqlite/race_probe.h"
#include "store/sqlite/sqlite_store.h"

static const temp *of(void **state)
{
    return *state;
}

/* ------------------------------------------------------------------------ the VFS between */

#define TABLES_MAX 8

typedef struct between {
    sqlite3_io_methods methods; /* first: files point here */
    const sqlite3_io_methods *base;
} between;

static sqlite3_vfs vfs, *base_vfs;
static between tables[TABLES_MAX];
static int table_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the tables, and who holds which lock */
static const sqlite3_file *log_writer;      /* holds the write lock of the log; NULL: nobody */
static const sqlite3_file *exclusive_owner; /* holds the file's exclusive lock */
static _Atomic int guarded_writes, exclusive_writes, bare_writes;

/* What happens in the gap of the next checkpoint. */
static sqlite3 *intruder;
static const char *intrusion;
static _Atomic bool armed;
static _Atomic int intrusions, intruder_rc;

static const sqlite3_io_methods *below(const sqlite3_file *file)
{
    return ((const between *)(const void *)file->pMethods)->base;
}

static int watch_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset)
{
    (void)pthread_mutex_lock(&lock);
    bool exclusive = exclusive_owner == file, guarded = log_writer != NULL;
    (void)pthread_mutex_unlock(&lock);
    (void)atomic_fetch_add(exclusive ? &exclusive_writes : guarded ? &guarded_writes : &bare_writes, 1);
    return below(file)->xWrite(file, bytes, count, offset);
}

static int watch_lock(sqlite3_file *file, int level)
{
    int rc = below(file)->xLock(file, level);
    (void)pthread_mutex_lock(&lock);
    if (rc == SQLITE_OK && level == SQLITE_LOCK_EXCLUSIVE)
        exclusive_owner = file;
    (void)pthread_mutex_unlock(&lock);
    return rc;
}

static int watch_unlock(sqlite3_file *file, int level)
{
    (void)pthread_mutex_lock(&lock);
    if (exclusive_owner == file)
        exclusive_owner = NULL;
    (void)pthread_mutex_unlock(&lock);
    return below(file)->xUnlock(file, level);
}

/* Slot 0 of the index's locks is the write lock. Let go before it is: nobody is taken for the owner late. */
static int watch_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    bool takes = (flags & SQLITE_SHM_LOCK) != 0, exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
    if (offset == 0 && exclusive && !takes) {
        (void)pthread_mutex_lock(&lock);
        if (log_writer == file)
            log_writer = NULL;
        (void)pthread_mutex_unlock(&lock);
    }
    int rc = below(file)->xShmLock(file, offset, count, flags);
    if (rc == SQLITE_OK && offset == 0 && exclusive && takes) {
        (void)pthread_mutex_lock(&lock);
        log_writer = file;
        (void)pthread_mutex_unlock(&lock);
    }
    return rc;
}

static int watch_unfetch(sqlite3_file *file, sqlite3_int64 offset, void *page)
{
    bool expected = true;
    if (offset == 0 && page == NULL && atomic_compare_exchange_strong(&armed, &expected, false)) {
        atomic_store(&intruder_rc, sqlite3_exec(intruder, intrusion, NULL, NULL, NULL));
        if (!sqlite3_get_autocommit(intruder))
            (void)sqlite3_exec(intruder, "ROLLBACK", NULL, NULL, NULL);
        (void)atomic_fetch_add(&intrusions, 1);
    }
    return below(file)->xUnfetch(file, offset, page);
}

static const sqlite3_io_methods *methods_over(const sqlite3_io_methods *base)
{
    between *found = NULL;
    (void)pthread_mutex_lock(&lock);
    for (int i = 0; found == NULL && i < table_count; i++)
        if (tables[i].base == base)
            found = &tables[i];
    if (found == NULL && table_count < TABLES_MAX) {
        found = &tables[table_count++];
        found->base = base;
        found->methods = *base;
        found->methods.xWrite = watch_write;
        found->methods.xLock = watch_lock;
        found->methods.xUnlock = watch_unlock;
        found->methods.xShmLock = watch_shm_lock;
        found->methods.xUnfetch = watch_unfetch;
    }
    (void)pthread_mutex_unlock(&lock);
    return found != NULL ? &found->methods : base;
}

static int open_between(sqlite3_vfs *ours, const char *name, sqlite3_file *file, int flags, int *out)
{
    (void)ours;
    int rc = base_vfs->xOpen(base_vfs, name, file, flags, out);
    if (rc == SQLITE_OK && (flags & SQLITE_OPEN_MAIN_DB) != 0 && file->pMethods->iVersion >= 3)
        file->pMethods = methods_over(file->pMethods);
    return rc;
}

/* Every connection of this process, the library's too, goes through it. */
static int between_setup(void **state)
{
    (void)state;
    base_vfs = sqlite3_vfs_find("unix");
    vfs = *base_vfs;
    vfs.pNext = NULL;
    vfs.zName = "between";
    vfs.xOpen = open_between;
    return sqlite3_vfs_register(&vfs, 1);
}

static int fresh(void **state)
{
    atomic_store(&guarded_writes, 0);
    atomic_store(&exclusive_writes, 0);
    atomic_store(&bare_writes, 0);
    atomic_store(&intrusions, 0);
    atomic_store(&intruder_rc, SQLITE_OK);
    atomic_store(&armed, false);
    return temp_setup(state);
}

/* ----------------------------------------------------------------------- the interleaving */

#define ROWS 200
#define INTRUSION "BEGIN IMMEDIATE; UPDATE app SET v = 2 WHERE id <= 100; COMMIT"
#define LATER "UPDATE app SET v = 2 WHERE id > 100 AND id <= 120"
#define WRONG "SELECT count(*) FROM app WHERE v <> CASE WHEN id <= 120 THEN 2 ELSE 1 END"

static bool has_the_race(void)
{
    return pawli_race_version_has_it(sqlite3_libversion_number());
}

static void fill(sqlite3 *db)
{
    sql_run(db, "CREATE TABLE app (id INTEGER PRIMARY KEY, v INTEGER, pad BLOB);"
                "WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 200)"
                " INSERT INTO app SELECT i, 0, zeroblob(2000) FROM n");
}

/* The log holds much, all of it copied: the next commit starts it anew. */
static void fill_and_copy(sqlite3 *db)
{
    int frames = 0, copied = 0;
    sql_run(db, "UPDATE app SET v = 1");
    assert_int_equal(sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &copied),
                     SQLITE_OK);
    assert_true(frames > ROWS / 4);
    assert_int_equal(copied, frames);
}

static void arm(sqlite3 *db)
{
    intruder = db;
    intrusion = INTRUSION;
    atomic_store(&armed, true);
}

/* One forced interleaving on raw connections; how many rows are wrong in the end. */
static int64_t interleave(const temp *t, bool with_guard)
{
    sqlite3 *writer = sql_open(t->path), *checkpointer, *guard;
    sql_run(writer, "PRAGMA journal_mode = WAL");
    fill(writer);
    checkpointer = sql_open(t->path);
    guard = sql_open(t->path);
    (void)sql_integer(checkpointer, "SELECT count(*) FROM app");
    (void)sql_integer(guard, "SELECT count(*) FROM app");
    fill_and_copy(writer);
    if (with_guard)
        sql_run(guard, "BEGIN IMMEDIATE");
    (void)sqlite3_busy_timeout(writer, 0);
    arm(writer);
    assert_int_equal(sqlite3_wal_checkpoint_v2(checkpointer, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(atomic_load(&intrusions), 1); /* else nothing was tried */
    if (with_guard)
        sql_run(guard, "ROLLBACK");
    if (atomic_load(&intruder_rc) != SQLITE_OK)
        sql_run(writer, INTRUSION);
    sql_run(writer, LATER);
    sql_close(guard);
    sql_close(checkpointer);
    sql_close(writer);
    return sql_ask(t->path, WRONG);
}

/* The control: on an SQLite that has the race rows that were acknowledged are gone. */
static void a_bare_checkpoint_loses_rows(void **state)
{
    int64_t lost = interleave(of(state), false);
    assert_int_equal(atomic_load(&intruder_rc), SQLITE_OK);
    print_message("SQLite %s, bare checkpoint: %lld of %d rows lost\n", sqlite3_libversion(), (long long)lost,
                  ROWS);
    if (has_the_race())
        assert_true(lost > 0);
    else
        assert_int_equal(lost, 0);
}

static void a_guarded_checkpoint_loses_none(void **state)
{
    assert_int_equal(interleave(of(state), true), 0);
    assert_int_equal(atomic_load(&intruder_rc), SQLITE_BUSY);
}

/* Goal: the same against pawl's own checkpoint, on the connection of a pool. */
static void pawls_checkpoint_loses_none(void **state)
{
    const temp *t = of(state);
    pawl_pool *pool = open_pool(t, .executors = 1);
    pawli_sqlite *s = (pawli_sqlite *)(void *)pool->store;
    sqlite3 *writer = sql_open(t->path);
    bool complete;
    fill(writer);
    assert_int_equal(put(pool, .kind = "k"), 1); /* the pool's connection has seen the log's first state */
    assert_int_equal(pawli_checkpoint_guarded(s, 0, &complete), SQLITE_OK); /* and opened its guard */
    fill_and_copy(writer);
    (void)sqlite3_busy_timeout(writer, 0);
    arm(writer);
    assert_int_equal(pawli_checkpoint_guarded(s, 0, &complete), SQLITE_OK);
    assert_int_equal(atomic_load(&intrusions), 1);
    assert_int_equal(atomic_load(&intruder_rc), SQLITE_BUSY);
    sql_run(writer, INTRUSION);
    sql_run(writer, LATER);
    assert_ok(pawl_close(pool));
    sql_close(writer);
    assert_int_equal(sql_ask(t->path, WRONG), 0);
    assert_int_equal(sql_ask(t->path, "SELECT count(*) FROM pawl_job"), 1);
}

/* ------------------------------------------------------------------------------- the audit */

static char big[60000];

static void enqueue_big(pawl_pool *pool, int count, const char *kind)
{
    for (int i = 0; i < count; i++)
        assert_int_not_equal(put(pool, .kind = kind, .payload = big, .payload_bytes = sizeof big), 0);
}

static int succeed(pawl_job *job, void *arg)
{
    (void)job;
    gate_add(arg, 1);
    return PAWL_SUCCEEDED;
}

static void enqueue_in(sqlite3 *db, int count)
{
    for (int i = 0; i < count; i++)
        assert_ok(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "other", .payload = big,
                                                     .payload_bytes = sizeof big), NULL));
}

static void look_around(const temp *t, pawl_pool *pool)
{
    pawl_stats_info stats = stats_of(pool);
    pawl_stats_info_clear(&stats);
    pawl_pool *reader;
    assert_ok(pawl_open(PAWL_OPTIONS(.store = t->path, .flags = PAWL_OPEN_READ_ONLY), &reader));
    stats = stats_of(reader);
    pawl_stats_info_clear(&stats);
    assert_ok(pawl_close(reader));
}

static bool was_checkpointed(void *arg)
{
    (void)arg;
    return atomic_load(&guarded_writes) > 0;
}

static void work_mixed(const temp *t, pawl_pool *pool)
{
    sqlite3 *attached = sql_open(t->path), *plain = sql_open(t->path);
    assert_ok(pawl_attach(pool, attached));
    for (int round = 0; round < 3; round++) {
        enqueue_big(pool, 60, "job");
        enqueue_in(attached, 30);
        enqueue_in(plain, 30); /* says wal_autocheckpoint = 0, as the header asks for */
        look_around(t, pool);
    }
    assert_ok(pawl_detach_db(pool, attached));
    sql_close(attached);
    sql_close(plain);
}

/* Goal: pools at work and idle, a pool that is only enqueued into, readers, attached and plain connections, and
 * everybody's close: each write into the database stands under the guard or the exclusive lock. */
static void no_path_checkpoints_without_the_guard(void **state)
{
    const temp *t = of(state);
    gate ran = GATE_INIT;
    pawl_pool *pool = open_pool(t, .wal_bytes_max = 1 << 20, .executors = 2), *second;
    assert_ok(pawl_register(pool, "job", succeed, &ran, NULL));
    assert_ok(pawl_start(pool));
    work_mixed(t, pool);
    assert_true(gate_await(&ran, 180));
    assert_true(eventually(was_checkpointed, NULL, 10000)); /* else nothing was watched */
    assert_ok(pawl_open(PAWL_OPTIONS(.store = t->path, .log = check_quiet), &second));
    enqueue_big(second, 100, "nobody");
    assert_ok(pawl_close(pool));
    enqueue_big(second, 100, "nobody");
    assert_ok(pawl_close(second));
    pool = open_pool(t, .executors = 1);
    look_around(t, pool);
    assert_ok(pawl_close(pool));
    assert_true(atomic_load(&exclusive_writes) > 0); /* the last close has copied the log */
    assert_int_equal(atomic_load(&bare_writes), 0);
}

/* Goal: looking at a file that another process has left behind, log and all, copies nothing. */
static void looking_checkpoints_nothing(void **state)
{
    const temp *t = of(state);
    pawl_pool *pool = open_pool(t, .executors = 1);
    sqlite3 *holds = sql_open(t->path); /* keeps the pool's close from being the last one */
    enqueue_big(pool, 20, "job");
    (void)sql_integer(holds, "SELECT count(*) FROM pawl_job");
    assert_ok(pawl_close(pool));
    (void)sqlite3_db_config(holds, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sql_close(holds);
    int before = atomic_load(&guarded_writes) + atomic_load(&exclusive_writes) + atomic_load(&bare_writes);
    assert_ok(pawl_open(PAWL_OPTIONS(.store = t->path, .flags = PAWL_OPEN_READ_ONLY), &pool));
    pawl_stats_info stats = stats_of(pool);
    assert_int_equal(stats.lane_count, 1);
    pawl_stats_info_clear(&stats);
    assert_ok(pawl_close(pool));
    assert_int_equal(atomic_load(&guarded_writes) + atomic_load(&exclusive_writes) + atomic_load(&bare_writes),
                     before);
}

/* The audit's own control: what SQLite does by default is seen as bare. */
static void the_audit_sees_a_bare_checkpoint(void **state)
{
    const temp *t = of(state);
    pawl_pool *pool = open_pool(t, .executors = 1);
    sqlite3 *foreign = sql_open(t->path);
    (void)sqlite3_wal_autocheckpoint(foreign, 1000);
    sql_run(foreign, "CREATE TABLE app (x);"
                     "WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 1200)"
                     " INSERT INTO app SELECT zeroblob(4000) FROM n");
    assert_true(atomic_load(&bare_writes) > 0);
    sql_close(foreign);
    assert_ok(pawl_close(pool));
}

/* ------------------------------------------------------------------------------- the probe */

static void check_probe(void)
{
    pawli_race_trial bare, guarded;
    assert_ok(pawli_race_probe(&bare, &guarded));
    assert_true(bare.interleaved && guarded.interleaved);
    assert_false(bare.refused);
    assert_true(guarded.refused);
    assert_int_equal(guarded.lost, 0);
    if (has_the_race())
        assert_true(bare.lost > 0);
    else
        assert_int_equal(bare.lost, 0);
}

/* Goal: the library's own experiment agrees, takes little time, and leaves the VFS list as it was. */
static void the_probe_tells_the_truth(void **state)
{
    (void)state;
    int64_t begun = steady_ms();
    check_probe();
    assert_in_range(steady_ms() - begun, 0, 2000);
    for (const sqlite3_vfs *each = sqlite3_vfs_find(NULL); each != NULL; each = each->pNext)
        assert_null(strstr(each->zName, "pawl"));
    assert_string_equal(sqlite3_vfs_find(NULL)->zName, "between");
}

static void *probe_thread(void *arg)
{
    pawli_race_trial bare, guarded;
    _Atomic int *right = arg;
    if (pawli_race_probe(&bare, &guarded) == PAWL_OK && (bare.lost > 0) == has_the_race() && guarded.lost == 0
        && guarded.refused)
        (void)atomic_fetch_add(right, 1);
    return NULL;
}

static void probes_do_not_meet(void **state)
{
    (void)state;
    pthread_t threads[4];
    _Atomic int right = 0;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, probe_thread, &right), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&right), 4);
}

/* Goal: the table of versions, at each of its edges. */
static void the_range_of_versions(void **state)
{
    (void)state;
    static const struct {
        int version;
        bool has_it;
    } cases[] = {
        { 3006023, false }, { 3007000, true },  { 3037000, true },  { 3040001, true },  { 3044005, true },
        { 3044006, false }, { 3044099, false }, { 3045000, true },  { 3050006, true },  { 3050007, false },
        { 3051000, true },  { 3051002, true },  { 3051003, false }, { 3052000, false }, { 4000000, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(pawli_race_version_has_it(cases[i].version), cases[i].has_it);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fresh, temp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_bare_checkpoint_loses_rows),
        TEST(a_guarded_checkpoint_loses_none),
        TEST(pawls_checkpoint_loses_none),
        TEST(no_path_checkpoints_without_the_guard),
        TEST(looking_checkpoints_nothing),
        TEST(the_audit_sees_a_bare_checkpoint),
        TEST(the_probe_tells_the_truth),
        TEST(probes_do_not_meet),
        TEST(the_range_of_versions),
    };
    return cmocka_run_group_tests(tests, between_setup, NULL);
}
