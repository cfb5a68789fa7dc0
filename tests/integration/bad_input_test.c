/* bad_input_test.c - what cannot be accepted: each with a clear status and a message that names what it was,
 * nothing created, nothing changed, nothing lost. */
#include "check.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (1 << 20)
#define HUGE_MS INT64_MAX

static int succeed(pawl_job *job, void *arg)
{
    (void)job;
    (void)arg;
    return PAWL_SUCCEEDED;
}

static int64_t jobs(void **state)
{
    return sql_ask(((temp *)*state)->path, "SELECT count(*) FROM pawl_jobs");
}

/* --------------------------------------------------------------------------------- names */

static char *name_of(size_t bytes)
{
    static char name[400];
    memset(name, 'n', sizeof name);
    name[bytes] = '\0';
    return name;
}

static const char *const bad_names[] = {
    "", "\xFF", "a\x80", "\xC3", "\xED\xA0\x80", "\xC0\x80", "\xF4\x90\x80\x80", "two\nlines", "\x1B[31m", "\x7F",
};

/* Goal: names are UTF-8 of 1 to 255 bytes, wherever they are given; the message says so (R11). */
static void names_are_checked_everywhere(void **state)
{
    pawl_pool *pool = open_inline((temp *)*state, .executors = 1), *other = NULL;
    for (size_t i = 0; i <= sizeof bad_names / sizeof bad_names[0]; i++) {
        const char *bad = i < sizeof bad_names / sizeof bad_names[0] ? bad_names[i] : name_of(256);
        assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = bad), NULL), PAWL_ERR_INVALID);
        assert_text_has(pawl_error_message(), "kind");
        assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "k", .queue = bad), NULL), PAWL_ERR_INVALID);
        assert_text_has(pawl_error_message(), "queue");
        assert_status(pawl_register(pool, bad, succeed, NULL, NULL), PAWL_ERR_INVALID);
        assert_status(pawl_pause(pool, bad), PAWL_ERR_INVALID);
        assert_status(pawl_resume(pool, bad), PAWL_ERR_INVALID);
        assert_status(pawl_open(PAWL_OPTIONS(.store = ((temp *)*state)->path, .name = bad), &other),
                      PAWL_ERR_INVALID);
        assert_status(pawl_open(PAWL_OPTIONS(.store = ((temp *)*state)->path, .queues = &bad,
                                             .queue_count = 1), &other), PAWL_ERR_INVALID);
        assert_text_has(pawl_error_message(), "queues[0]");
    }
    const char *longest = name_of(255);
    assert_ok(pawl_register(pool, longest, succeed, NULL, NULL));
    assert_ok(pawl_pause(pool, longest));
    assert_ok(pawl_resume(pool, longest));
    assert_ok(pawl_start(pool));
    int64_t id = put(pool, .kind = longest, .queue = longest);
    (void)put(pool, .kind = "日本語 – \xF0\x9F\x90\xBF", .queue = "ÿ");
    assert_ok(pawl_run_until_idle(pool));
    assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
    assert_int_equal(jobs(state), 2);
    assert_ok(pawl_close(pool));
}

/* Goal: NULL where something must stand is INVALID, never a crash. */
static void null_arguments_are_invalid(void **state)
{
    temp *t = *state;
    pawl_pool *pool = open_pool(t, .executors = 1), *other = NULL;
    size_t count;
    pawl_job_info info = PAWL_JOB_INFO_INIT;
    assert_status(pawl_open(NULL, &other), PAWL_ERR_INVALID);
    assert_status(pawl_open(PAWL_OPTIONS(.store = t->path), NULL), PAWL_ERR_INVALID);
    assert_status(pawl_open(PAWL_OPTIONS(.store = NULL), &other), PAWL_ERR_INVALID);
    assert_status(pawl_open(PAWL_OPTIONS(.store = ""), &other), PAWL_ERR_INVALID);
    assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = NULL), NULL), PAWL_ERR_INVALID);
    assert_status(pawl_register(pool, NULL, succeed, NULL, NULL), PAWL_ERR_INVALID);
    assert_status(pawl_register(pool, "k", NULL, NULL, NULL), PAWL_ERR_INVALID);
    assert_status(pawl_pause(pool, NULL), PAWL_ERR_INVALID);
    assert_status(pawl_get(pool, 1, NULL), PAWL_ERR_INVALID);
    assert_status(pawl_list(pool, NULL, NULL, 1, &count), PAWL_ERR_INVALID);
    assert_status(pawl_list(pool, NULL, &info, 0, &count), PAWL_ERR_INVALID);
    assert_status(pawl_list(pool, NULL, &info, 1, NULL), PAWL_ERR_INVALID);
    assert_status(pawl_stats(pool, NULL), PAWL_ERR_INVALID);
    assert_status(pawl_attach(pool, NULL), PAWL_ERR_INVALID);
    assert_status(pawl_job_finish(NULL, PAWL_SUCCEEDED), PAWL_ERR_INVALID);
    assert_status(pawl_start(NULL), PAWL_ERR_INVALID);
    assert_status(pawl_stop(NULL, 0), PAWL_ERR_INVALID);
    assert_status(pawl_wait_idle(NULL, 0), PAWL_ERR_INVALID);
    assert_status(pawl_cancel(NULL, 1), PAWL_ERR_INVALID);
    assert_status(pawl_get(NULL, 1, &info), PAWL_ERR_INVALID);
    pawl_job_info_clear(NULL);
    pawl_stats_info_clear(NULL);
    assert_null(other);
    assert_ok(pawl_close(pool));
}

/* Goal: a spec that is NULL is INVALID in every way in. */
static void a_null_spec_is_invalid(void **state)
{
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    assert_status(pawl_enqueue(pool, NULL, NULL), PAWL_ERR_INVALID);
    assert_ok(pawl_close(pool));
}

/* Goal: a struct whose size was not set is refused, for each struct of the header. */
static void a_missing_struct_size_is_refused(void **state)
{
    temp *t = *state;
    pawl_pool *pool = open_pool(t, .executors = 1), *other = NULL;
    pawl_job_info info = { 0 };
    pawl_stats_info stats = { 0 };
    const pawl_filter filter = { 0 };
    pawl_job_info sized = PAWL_JOB_INFO_INIT;
    size_t count;
    assert_status(pawl_open(&(pawl_options){ .store = t->path }, &other), PAWL_ERR_INVALID);
    assert_status(pawl_enqueue(pool, &(pawl_job_spec){ .kind = "k" }, NULL), PAWL_ERR_INVALID);
    assert_text_has(pawl_error_message(), "struct_size");
    assert_status(pawl_register(pool, "k", succeed, NULL, &(pawl_handler_options){ .timeout_ms = 5 }),
                  PAWL_ERR_INVALID);
    assert_status(pawl_get(pool, 1, &info), PAWL_ERR_INVALID);
    assert_status(pawl_list(pool, NULL, &info, 1, &count), PAWL_ERR_INVALID);
    assert_status(pawl_list(pool, &filter, &sized, 1, &count), PAWL_ERR_INVALID);
    assert_status(pawl_stats(pool, &stats), PAWL_ERR_INVALID);
    assert_ok(pawl_close(pool));
}

/* -------------------------------------------------------------------- payloads and numbers */

/* Goal: payloads of 0 bytes and of 1 MiB pass unchanged, one byte more is refused with the bound named (I2). */
static void payloads_are_bounded(void **state)
{
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    char *big = malloc(MIB + 1);
    for (size_t i = 0; i <= MIB; i++)
        big[i] = (char)(i * 7 % 251);
    int64_t empty = put(pool, .kind = "k", .payload = big, .payload_bytes = 0), none = put(pool, .kind = "k");
    int64_t full = put(pool, .kind = "k", .payload = big, .payload_bytes = MIB);
    pawl_job_info info = job_of(pool, full);
    assert_int_equal(info.payload_bytes, MIB);
    assert_memory_equal(info.payload, big, MIB);
    assert_int_equal(((const char *)info.payload)[MIB], 0);
    pawl_job_info_clear(&info);
    info = job_of(pool, empty);
    assert_int_equal(info.payload_bytes, 0);
    assert_non_null(info.payload);
    pawl_job_info_clear(&info);
    assert_true(none > empty);
    assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "k", .payload = big, .payload_bytes = MIB + 1), NULL),
                  PAWL_ERR_INVALID);
    assert_text_has(pawl_error_message(), "1048576");
    assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "k", .payload = big, .payload_bytes = SIZE_MAX), NULL),
                  PAWL_ERR_INVALID);
    assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "k", .payload_bytes = 1), NULL), PAWL_ERR_INVALID);
    assert_int_equal(jobs(state), 3);
    assert_ok(pawl_close(pool));
    pool = open_pool((temp *)*state, .executors = 1, .payload_bytes_max = 10);
    assert_status(pawl_enqueue(pool, PAWL_JOB(.kind = "k", .payload = big, .payload_bytes = 11), NULL),
                  PAWL_ERR_INVALID);
    (void)put(pool, .kind = "k", .payload = big, .payload_bytes = 10);
    assert_ok(pawl_close(pool));
    free(big);
}

/* Goal: the numbers of a spec: negative ones are refused, zero is the default, huge ones are honoured or
 * refused, never wrapped (T2). */
static void numbers_of_a_spec(void **state)
{
    pawl_pool *pool = open_pool((temp *)*state, .executors = 1);
    const pawl_job_spec *const bad[] = {
        PAWL_JOB(.kind = "k", .delay_ms = -1),
        PAWL_JOB(.kind = "k", .delay_ms = INT64_MIN),
        PAWL_JOB(.kind = "k", .delay_ms = HUGE_MS),
        PAWL_JOB(.kind = "k", .delay_ms = 253402300799999),
        PAWL_JOB(.kind = "k", .available_at_ms = -1),
        PAWL_JOB(.kind = "k", .available_at_ms = 253402300800000),
        PAWL_JOB(.kind = "k", .available_at_ms = HUGE_MS),
        PAWL_JOB(.kind = "k", .delay_ms = 1, .available_at_ms = 1),
        PAWL_JOB(.kind = "k", .timeout_ms = -2),
        PAWL_JOB(.kind = "k", .timeout_ms = INT64_MIN),
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_status(pawl_enqueue(pool, bad[i], NULL), PAWL_ERR_INVALID);
        assert_text_has(pawl_error_message(), "_ms");
    }
    assert_int_equal(jobs(state), 0);
    int64_t latest = put(pool, .kind = "k", .available_at_ms = 253402300799999);
    pawl_job_info info = job_of(pool, latest);
    assert_true(info.available_at_ms == 253402300799999);
    pawl_job_info_clear(&info);
    (void)put(pool, .kind = "k", .timeout_ms = HUGE_MS, .priority = INT32_MIN, .max_attempts = UINT32_MAX);
    assert_int_equal(sql_ask(((temp *)*state)->path, "SELECT count(*) FROM pawl_jobs WHERE available_at"
                                                     " = '9999-12-31 23:59:59.999'"), 1);
    assert_ok(pawl_close(pool));
}

/* Goal: the numbers of the options and of a handler: each is honoured or refused with its name (T2). */
static void numbers_of_options(void **state)
{
    temp *t = *state;
    pawl_pool *pool = NULL;
    const struct {
        const pawl_options *options;
        const char *named;
    } bad[] = {
        { PAWL_OPTIONS(.store = t->path, .executors = 1025), "executors" },
        { PAWL_OPTIONS(.store = t->path, .executors = UINT32_MAX), "executors" },
        { PAWL_OPTIONS(.store = t->path, .lease_ms = -1), "lease_ms" },
        { PAWL_OPTIONS(.store = t->path, .lease_ms = 99), "lease_ms" },
        { PAWL_OPTIONS(.store = t->path, .lease_ms = HUGE_MS), "lease_ms" },
        { PAWL_OPTIONS(.store = t->path, .store_timeout_ms = -1), "store_timeout_ms" },
        { PAWL_OPTIONS(.store = t->path, .store_timeout_ms = HUGE_MS), "store_timeout_ms" },
        { PAWL_OPTIONS(.store = t->path, .command_max = UINT32_MAX), "command_max" },
        { PAWL_OPTIONS(.store = t->path, .command_bytes_max = SIZE_MAX), "command_bytes_max" },
        { PAWL_OPTIONS(.store = t->path, .payload_bytes_max = SIZE_MAX), "payload_bytes_max" },
        { PAWL_OPTIONS(.store = t->path, .payload_bytes_max = ((size_t)256 << 20) + 1), "payload_bytes_max" },
        { PAWL_OPTIONS(.store = t->path, .wal_bytes_max = 1), "wal_bytes_max" },
        { PAWL_OPTIONS(.store = t->path, .keep_succeeded_ms = -2), "keep_succeeded_ms" },
        { PAWL_OPTIONS(.store = t->path, .keep_failed_max = INT64_MIN), "keep_failed_max" },
        { PAWL_OPTIONS(.store = t->path, .stack_bytes = 1), "stack_bytes" },
        { PAWL_OPTIONS(.store = t->path, .detached_max = UINT32_MAX), "detached_max" },
        { PAWL_OPTIONS(.store = t->path, .queue_count = 1), "queue" },
        { PAWL_OPTIONS(.store = t->path, .flags = 1u << 31), "flags" },
        { PAWL_OPTIONS(.store = t->path, .synchronous = (pawl_synchronous)9), "synchronous" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_status(pawl_open(bad[i].options, &pool), PAWL_ERR_INVALID);
        assert_text_has(pawl_error_message(), bad[i].named);
        assert_null(pool);
    }
    char *listing = temp_listing(t);
    assert_string_equal(listing, ""); /* nothing was created */
    free(listing);
    static const int64_t negative[] = { 5, -1 };
    const pawl_handler_options *const handlers[] = {
        PAWL_HANDLER(.timeout_ms = -2),
        PAWL_HANDLER(.unknown = PAWL_SNOOZED),
        PAWL_HANDLER(.backoff_count = 3),
        PAWL_HANDLER(.backoff_ms = negative),
        PAWL_HANDLER(.backoff_ms = negative, .backoff_count = 2),
        PAWL_HANDLER(.backoff_first_ms = -1),
        PAWL_HANDLER(.backoff_percent = 200),
        PAWL_HANDLER(.backoff_first_ms = 5, .backoff_percent = 99),
        PAWL_HANDLER(.backoff_first_ms = 5, .backoff_max_ms = -5),
    };
    pool = open_pool(t, .executors = 1, .keep_succeeded_ms = PAWL_FOREVER, .keep_failed_max = PAWL_FOREVER);
    for (size_t i = 0; i < sizeof handlers / sizeof handlers[0]; i++) {
        assert_status(pawl_register(pool, "k", succeed, NULL, handlers[i]), PAWL_ERR_INVALID);
        assert_text_has(pawl_error_message(), "\"k\"");
    }
    assert_ok(pawl_register(pool, "k", succeed, NULL, PAWL_HANDLER(.timeout_ms = HUGE_MS)));
    assert_ok(pawl_close(pool));
}

/* ---------------------------------------------------------------------------- error texts */

static char *hundred_mb;

static int fail_with_odd_texts(pawl_job *job, void *arg)
{
    (void)arg;
    const char *which = pawl_job_payload(job, NULL);
    switch (which[0]) {
    case 'n': pawl_job_error(job, "a%cb", '\0'); break;
    case 'u': pawl_job_error(job, "a\xFF%s", "\xC3"); break;
    case 'h': pawl_job_error(job, "%s", hundred_mb); break;
    case 'e': pawl_job_error(job, "%s", ""); break;
    case 'm': pawl_job_error(job, "first"); pawl_job_error(job, "second"); break;
    default: break;
    }
    return PAWL_FAILED;
}

/* Goal: an error text is stored as valid UTF-8 without NUL, cut at a character's boundary within 8 KiB,
 * whatever the handler says (R11). */
static void error_texts_are_cleaned_and_bounded(void **state)
{
    const size_t huge = (size_t)100 << 20;
    pawl_pool *pool = open_inline((temp *)*state, .executors = 1);
    hundred_mb = malloc(huge + 1);
    for (size_t i = 0; i + 1 < huge; i += 2)
        memcpy(hundred_mb + i, "\xC3\xA4", 2); /* two bytes a character */
    hundred_mb[0] = 'x';                       /* … out of step with any even bound */
    hundred_mb[1] = 'y';
    hundred_mb[2] = 'z';
    hundred_mb[3] = 'w';
    hundred_mb[huge] = '\0';
    assert_ok(pawl_register(pool, "k", fail_with_odd_texts, NULL, NULL));
    assert_ok(pawl_start(pool));
    int64_t nul = put(pool, .kind = "k", .payload = "n", .payload_bytes = 1);
    int64_t utf = put(pool, .kind = "k", .payload = "u", .payload_bytes = 1);
    int64_t big = put(pool, .kind = "k", .payload = "h", .payload_bytes = 1);
    int64_t two = put(pool, .kind = "k", .payload = "m", .payload_bytes = 1);
    assert_ok(pawl_run_until_idle(pool));
    free(hundred_mb);
    pawl_job_info info = job_of(pool, nul);
    assert_string_equal(info.last_error, "a\xEF\xBF\xBD" "b");
    pawl_job_info_clear(&info);
    info = job_of(pool, utf);
    assert_string_equal(info.last_error, "a\xEF\xBF\xBD\xEF\xBF\xBD");
    pawl_job_info_clear(&info);
    info = job_of(pool, big);
    size_t bytes = strlen(info.last_error);
    assert_in_range(bytes, 8000, 8192);
    assert_memory_equal(info.last_error + bytes - 2, "\xC3\xA4", 2);
    pawl_job_info_clear(&info);
    info = job_of(pool, two);
    assert_string_equal(info.last_error, "second");
    pawl_job_info_clear(&info);
    assert_int_equal(sql_ask(((temp *)*state)->path, "SELECT max(length(CAST(last_error AS BLOB))) <= 8192"
                                                     " FROM pawl_jobs"), 1);
    assert_ok(pawl_close(pool));
}

/* ---------------------------------------------------------------------------------- files */

/* Opening `path` is refused with `expected`, a message that names it, and a directory that is as before. */
static void assert_refused(temp *t, const char *path, pawl_status expected)
{
    pawl_pool *pool = NULL;
    char *before = temp_listing(t);
    for (int again = 0; again < 2; again++) {
        pawl_status st = pawl_open(PAWL_OPTIONS(.store = path, .log = check_quiet), &pool);
        assert_status(st, expected);
        assert_null(pool);
        assert_text_has(pawl_error_message(), path);
    }
    char *after = temp_listing(t);
    assert_string_equal(before, after);
    free(before);
    free(after);
}

static char *read_whole(const char *path, size_t *bytes)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    char *all = malloc((size_t)st.st_size + 1);
    FILE *file = fopen(path, "rbe");
    assert_non_null(file);
    *bytes = fread(all, 1, (size_t)st.st_size, file);
    (void)fclose(file);
    return all;
}

/* Goal: a file that is not SQLite's is refused and left byte for byte. */
static void a_file_that_is_not_sqlite(void **state)
{
    temp *t = *state;
    char text[5000];
    memset(text, 'x', sizeof text);
    /* Not of 1 byte: to SQLite that is an empty file. */
    static const unsigned long sizes[] = { 2, 99, 100, 600, 5000 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        temp_write(t->path, text, sizes[i]);
        assert_refused(t, t->path, PAWL_ERR_STORE);
        assert_text_has(pawl_error_message(), "not an SQLite database");
        size_t bytes;
        char *now = read_whole(t->path, &bytes);
        assert_int_equal(bytes, sizes[i]);
        assert_memory_equal(now, text, bytes);
        free(now);
    }
    temp_write(t->path, "", 0); /* an empty file is an empty database */
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_close(pool));
}

/* Goal: objects of somebody else under our names are refused, untouched (R9). */
static void foreign_objects_under_our_names(void **state)
{
    static const char *const objects[] = {
        "CREATE TABLE pawl_job (mine)", "CREATE TABLE Pawl_Other (mine)", "CREATE VIEW pawl_jobs AS SELECT 1",
        "CREATE TABLE mine (x); CREATE INDEX pawl_mine ON mine (x)",
        "CREATE TABLE pawl_meta (a, b)",
        "CREATE TABLE pawl_meta (key, value); INSERT INTO pawl_meta VALUES ('other', 1)",
    };
    temp *t = *state;
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++) {
        (void)unlink(t->path);
        sqlite3 *db = sql_open(t->path);
        sql_run(db, objects[i]);
        int64_t before = sql_integer(db, "SELECT count(*) FROM sqlite_schema");
        sql_close(db);
        assert_refused(t, t->path, PAWL_ERR_INVALID);
        assert_text_has(pawl_error_message(), "pawl_");
        assert_int_equal(sql_ask(t->path, "SELECT count(*) FROM sqlite_schema"), before);
    }
}

static void spoil_a_page(const char *path, int64_t page)
{
    static const char garbage[4096] = "not a page";
    int file = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, garbage, sizeof garbage, (page - 1) * 4096), sizeof garbage);
    assert_int_equal(close(file), 0);
}

/* Goal: pawl's own tables are not called foreign, whatever has become of them: who renames them does harm. */
static void own_tables_in_a_bad_way(void **state)
{
    static const char *const changes[] = { "DELETE FROM pawl_meta", "DELETE FROM pawl_meta WHERE key = 'schema'",
                                           "DROP TABLE pawl_meta" };
    temp *t = *state;
    for (size_t i = 0; i <= sizeof changes / sizeof changes[0]; i++) {
        (void)unlink(t->path);
        assert_ok(pawl_close(open_pool(t, .executors = 1)));
        bool damaged = i == sizeof changes / sizeof changes[0];
        sqlite3 *db = sql_open(t->path);
        int64_t page = sql_integer(db, "SELECT rootpage FROM sqlite_schema WHERE name = 'pawl_meta'");
        assert_int_equal(sql_integer(db, "PRAGMA page_size"), 4096);
        if (!damaged)
            sql_run(db, changes[i]);
        sql_close(db);
        if (damaged)
            spoil_a_page(t->path, page);
        assert_refused(t, t->path, PAWL_ERR_STORE);
        assert_text_has(pawl_error_message(), damaged ? "the file is damaged" : "their version is missing");
        assert_text_has(pawl_error_message(), "restore a backup");
        assert_null(strstr(pawl_error_message(), "rename"));
    }
}

/* Goal: a file from a newer version is refused as such and left alone (R9). */
static void a_newer_file(void **state)
{
    temp *t = *state;
    pawl_pool *pool = open_pool(t, .executors = 1);
    (void)put(pool, .kind = "k");
    assert_ok(pawl_close(pool));
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "UPDATE pawl_meta SET value = 1000 WHERE key = 'schema'");
    assert_status(pawl_enqueue_in(db, NULL, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_VERSION);
    sql_close(db);
    assert_refused(t, t->path, PAWL_ERR_VERSION);
    assert_text_has(pawl_error_message(), "newer");
    assert_int_equal(jobs(state), 1);
}

/* Goal: paths that name no usable file are refused and nothing is created: a missing directory, a directory,
 * a pipe, a broken link, a second hard link, and SQLite's special names (R9). */
static void paths_that_name_no_file(void **state)
{
    temp *t = *state;
    assert_refused(t, temp_file(t, "missing/jobs.db"), PAWL_ERR_STORE);
    assert_text_has(pawl_error_message(), "directory");
    assert_refused(t, t->directory, PAWL_ERR_INVALID);
    assert_refused(t, temp_file(t, "jobs.db/"), PAWL_ERR_STORE);
    assert_refused(t, ":memory:", PAWL_ERR_INVALID);
    assert_refused(t, "file:jobs.db", PAWL_ERR_INVALID);
    assert_refused(t, "file:jobs.db?mode=memory", PAWL_ERR_INVALID);
    assert_refused(t, "/dev/null", PAWL_ERR_INVALID);
    assert_int_equal(mkfifo(temp_file(t, "pipe"), 0600), 0);
    assert_refused(t, temp_file(t, "pipe"), PAWL_ERR_INVALID);
    assert_int_equal(symlink("nowhere/at all", temp_file(t, "broken")), 0);
    assert_refused(t, temp_file(t, "broken"), PAWL_ERR_STORE);
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_close(pool));
    assert_int_equal(link(t->path, temp_file(t, "second name")), 0);
    assert_refused(t, t->path, PAWL_ERR_INVALID);
    assert_text_has(pawl_error_message(), "hard link");
    assert_refused(t, temp_file(t, "second name"), PAWL_ERR_INVALID);
    assert_int_equal(unlink(temp_file(t, "second name")), 0);
    pool = open_pool(t, .executors = 1);
    assert_ok(pawl_close(pool));
    char *longest = malloc(5000);
    memset(longest, 'p', 4999);
    longest[4999] = '\0';
    assert_status(pawl_open(PAWL_OPTIONS(.store = longest), &pool), PAWL_ERR_INVALID);
    free(longest);
}

/* Goal: a symbolic link is the file it points to: one file with one set of sidecars (R8, R9). */
static void a_link_is_the_file_it_points_to(void **state)
{
    temp *t = *state;
    pawl_pool *by_name = open_pool(t, .executors = 1), *by_link = NULL;
    assert_int_equal(symlink("jobs.db", temp_file(t, "link")), 0);
    assert_ok(pawl_open(PAWL_OPTIONS(.store = temp_file(t, "link")), &by_link));
    int64_t id = put(by_name, .kind = "k");
    assert_int_equal(state_of(by_link, id), PAWL_STATE_PENDING);
    assert_true(put(by_link, .kind = "k") > id);
    char *listing = temp_listing(t);
    assert_null(strstr(listing, "link-"));
    free(listing);
    assert_ok(pawl_close(by_link));
    assert_ok(pawl_close(by_name));
    assert_int_equal(jobs(state), 2);
}

/* Goal: a relative path is made absolute at open: a chdir afterwards changes nothing (R9). */
static void a_relative_path_survives_chdir(void **state)
{
    temp *t = *state;
    char before[4096];
    pawl_pool *pool = NULL;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(t->directory), 0);
    pawl_status st = pawl_open(PAWL_OPTIONS(.store = "./jobs.db", .executors = 1), &pool);
    int back = chdir(before);
    assert_ok(st);
    assert_int_equal(back, 0);
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "k");
    pawl_stats_info stats = stats_of(pool); /* a reader's connection is opened only now */
    assert_int_equal(stats.lane_count, 1);
    pawl_stats_info_clear(&stats);
    assert_ok(pawl_close(pool));
    assert_int_equal(jobs(state), 1);
}

/* Goal: a truncated database is refused with its name, at the latest at the first use; nothing crashes. */
static void a_truncated_file(void **state)
{
    temp *t = *state;
    pawl_pool *pool = open_pool(t, .executors = 1);
    for (int i = 0; i < 50; i++)
        (void)put(pool, .kind = "k", .payload = name_of(300), .payload_bytes = 300);
    assert_ok(pawl_close(pool));
    size_t bytes;
    char *whole = read_whole(t->path, &bytes);
    static const int parts[] = { 1, 50, 100, 4096, 4097, 8192, 20000, 40000 };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if ((size_t)parts[i] >= bytes)
            break;
        (void)unlink(temp_file(t, "jobs.db-wal"));
        (void)unlink(temp_file(t, "jobs.db-shm"));
        temp_write(t->path, whole, (unsigned long)parts[i]);
        pool = NULL;
        pawl_status st = pawl_open(PAWL_OPTIONS(.store = t->path, .log = check_quiet,
                                                .store_timeout_ms = 500), &pool);
        if (st == PAWL_OK) {
            st = pawl_enqueue(pool, PAWL_JOB(.kind = "k"), NULL);
            assert_true(st == PAWL_OK || st == PAWL_ERR_STORE);
            pawl_status closed = pawl_close(pool);
            assert_int_equal(closed, PAWL_OK);
        } else {
            assert_status(st, PAWL_ERR_STORE);
            assert_text_has(pawl_error_message(), t->path);
        }
    }
    free(whole);
}

/* Root reads and writes whatever the modes say: those tests run as somebody else. */
static bool become_nobody(temp *t)
{
    if (geteuid() != 0)
        return false;
    assert_int_equal(chown(t->directory, 65534, 65534), 0);
    assert_int_equal(setegid(65534), 0);
    assert_int_equal(seteuid(65534), 0);
    return true;
}

static void become_root_again(bool was_root)
{
    if (!was_root)
        return;
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(setegid(0), 0);
}

typedef struct refusal {
    pawl_status status;
    bool names_it, unchanged;
} refusal;

/* As assert_refused, but asserting nothing while the process is somebody else. */
static refusal refuse(temp *t, const char *path)
{
    refusal r = { 0 };
    pawl_pool *pool = NULL;
    char *before = temp_listing(t);
    r.status = pawl_open(PAWL_OPTIONS(.store = path, .log = check_quiet), &pool);
    r.names_it = strstr(pawl_error_message(), path) != NULL;
    if (pool != NULL)
        (void)pawl_close(pool);
    char *after = temp_listing(t);
    r.unchanged = strcmp(before, after) == 0;
    free(before);
    free(after);
    return r;
}

/* Goal: files and directories that may not be written are refused at open: nothing is created or lost. */
static void what_may_not_be_written(void **state)
{
    temp *t = *state;
    bool root = become_nobody(t);
    pawl_pool *pool = NULL;
    pawl_status opened = pawl_open(PAWL_OPTIONS(.store = t->path), &pool);
    pawl_status closed = opened == PAWL_OK ? pawl_close(pool) : opened;
    (void)chmod(t->path, 0400);
    refusal file = refuse(t, t->path);
    (void)chmod(t->path, 0600);
    (void)chmod(t->directory, 0500);
    refusal directory = refuse(t, t->path), new_file = refuse(t, temp_file(t, "new.db"));
    (void)chmod(t->directory, 0700);
    (void)chmod(t->path, 0000);
    refusal unreadable = refuse(t, t->path);
    (void)chmod(t->path, 0600);
    become_root_again(root);
    assert_ok(closed);
    const refusal all[] = { new_file, directory, unreadable, file };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(all[i].status, PAWL_ERR_STORE);
        assert_true(all[i].names_it);
        assert_true(all[i].unchanged);
    }
    pool = open_pool(t, .executors = 1);
    assert_ok(pawl_close(pool));
}

/* Goal: flags that promise not to create keep it; a pool that only reads refuses to write (R9). */
static void opening_without_creating(void **state)
{
    temp *t = *state;
    pawl_pool *pool = NULL;
    assert_status(pawl_open(PAWL_OPTIONS(.store = t->path, .flags = PAWL_OPEN_EXISTING), &pool),
                  PAWL_ERR_NOT_FOUND);
    assert_status(pawl_open(PAWL_OPTIONS(.store = t->path, .flags = PAWL_OPEN_READ_ONLY), &pool),
                  PAWL_ERR_NOT_FOUND);
    assert_text_has(pawl_error_message(), t->path);
    char *listing = temp_listing(t);
    assert_string_equal(listing, "");
    free(listing);
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "CREATE TABLE mine (x)");
    sql_close(db);
    assert_status(pawl_open(PAWL_OPTIONS(.store = t->path, .flags = PAWL_OPEN_EXISTING), &pool),
                  PAWL_ERR_NOT_FOUND);
    assert_int_equal(sql_ask(t->path, "SELECT count(*) FROM sqlite_schema"), 1);
    pool = open_pool(t, .executors = 1);
    int64_t id = put(pool, .kind = "k");
    pawl_pool *reader = open_pool(t, .flags = PAWL_OPEN_READ_ONLY);
    assert_int_equal(state_of(reader, id), PAWL_STATE_PENDING);
    assert_status(pawl_enqueue(reader, PAWL_JOB(.kind = "k"), NULL), PAWL_ERR_STATE);
    assert_status(pawl_enqueue_async(reader, PAWL_JOB(.kind = "k"), NULL, NULL), PAWL_ERR_STATE);
    assert_status(pawl_cancel(reader, id), PAWL_ERR_STATE);
    assert_status(pawl_pause(reader, "q"), PAWL_ERR_STATE);
    assert_status(pawl_start(reader), PAWL_ERR_STATE);
    assert_status(pawl_register(reader, "k", succeed, NULL, NULL), PAWL_ERR_STATE);
    assert_ok(pawl_stop(reader, 0));
    assert_ok(pawl_close(reader));
    assert_ok(pawl_close(pool));
}

/* Goal: an application's own database is the normal case: its tables, user_version and application_id stay
 * as they were, through creation, work and close (R9). */
static void an_applications_own_database(void **state)
{
    temp *t = *state;
    sqlite3 *db = sql_open(t->path);
    sql_run(db, "PRAGMA user_version = 4711; PRAGMA application_id = 815;"
                "CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT);"
                "CREATE TABLE pawlish (x); CREATE VIEW pawls AS SELECT 1;" /* near our names */
                "INSERT INTO customer VALUES (1, 'Ada'), (2, 'Grace')");
    sql_close(db);
    for (int i = 0; i < 2; i++) {
        pawl_pool *pool = open_inline(t, .executors = 1);
        assert_ok(pawl_register(pool, "k", succeed, NULL, NULL));
        assert_ok(pawl_start(pool));
        int64_t id = put(pool, .kind = "k");
        assert_ok(pawl_run_until_idle(pool));
        assert_int_equal(state_of(pool, id), PAWL_STATE_SUCCEEDED);
        assert_ok(pawl_close(pool));
    }
    assert_int_equal(sql_ask(t->path, "PRAGMA user_version"), 4711);
    assert_int_equal(sql_ask(t->path, "PRAGMA application_id"), 815);
    assert_int_equal(sql_ask(t->path, "SELECT count(*) FROM customer"), 2);
    assert_int_equal(sql_ask(t->path, "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'pawl\\_%'"
                                      " ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    TEST(names_are_checked_everywhere),
    TEST(null_arguments_are_invalid),
    TEST(a_null_spec_is_invalid),
    TEST(a_missing_struct_size_is_refused),
    TEST(payloads_are_bounded),
    TEST(numbers_of_a_spec),
    TEST(numbers_of_options),
    TEST(error_texts_are_cleaned_and_bounded),
    TEST(a_file_that_is_not_sqlite),
    TEST(foreign_objects_under_our_names),
    TEST(own_tables_in_a_bad_way),
    TEST(a_newer_file),
    TEST(paths_that_name_no_file),
    TEST(a_link_is_the_file_it_points_to),
    TEST(a_relative_path_survives_chdir),
    TEST(a_truncated_file),
    TEST(what_may_not_be_written),
    TEST(opening_without_creating),
    TEST(an_applications_own_database),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
