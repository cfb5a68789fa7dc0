/* read_test.c - what is shown: pawl_get, pawl_list, pawl_stats and the view pawl_jobs, which a person asks in
 * SQL. Structs of older callers are filled as far as they reach and no further. */
#include "check.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int end_as_told(pawl_job *job, void *arg)
{
    (void)arg;
    const char *which = pawl_job_payload(job, NULL);
    if (which[0] == 'f')
        pawl_job_error(job, "no such mailbox");
    return which[0] == 'f' ? PAWL_FAILED : which[0] == 'c' ? PAWL_CANCELLED : PAWL_SUCCEEDED;
}

/* Two succeeded, one failed, one cancelled, one due, one delayed job. */
static pawl_pool *open_with_jobs(void **state, int64_t *ids)
{
    pawl_pool *pool = open_inline((temp *)*state, .executors = 1, .name = "reader's pool");
    static const char *const payloads[] = { "s", "s", "f", "c" };
    assert_ok(pawl_register(pool, "mail", end_as_told, NULL, NULL));
    assert_ok(pawl_start(pool));
    for (int i = 0; i < 4; i++)
        ids[i] = put(pool, .kind = "mail", .payload = payloads[i], .payload_bytes = 1);
    assert_ok(pawl_run_until_idle(pool));
    ids[4] = put(pool, .kind = "other", .queue = "q", .priority = 3, .idempotency_key = "a\0b",
                 .idempotency_key_bytes = 3);
    ids[5] = put(pool, .kind = "mail", .delay_ms = 60000);
    return pool;
}

/* Goal: every field of a job that has ended and of one that waits is told, and unset ones are unset. */
static void get_tells_everything(void **state)
{
    int64_t ids[6];
    pawl_pool *pool = open_with_jobs(state, ids);
    pawl_job_info info = job_of(pool, ids[2]);
    assert_int_equal(info.id, ids[2]);
    assert_int_equal(info.state, PAWL_STATE_FAILED);
    assert_string_equal(info.kind, "mail");
    assert_string_equal(info.queue, "default");
    assert_string_equal(info.claimed_by, "reader's pool");
    assert_string_equal(info.last_error, "no such mailbox");
    assert_string_equal(info.payload, "f");
    assert_null(info.idempotency_key);
    assert_true(info.fence > 0 && info.claimed_at_ms > 0 && info.finished_at_ms >= info.created_at_ms);
    assert_int_equal(info.lease_until_ms, 0);
    assert_false(info.cancel_requested);
    pawl_job_info_clear(&info);
    info = job_of(pool, ids[4]);
    assert_int_equal(info.priority, 3);
    assert_int_equal(info.idempotency_key_bytes, 3);
    assert_memory_equal(info.idempotency_key, "a\0b", 3);
    assert_int_equal(info.payload_bytes, 0);
    assert_non_null(info.payload);
    assert_null(info.claimed_by);
    assert_null(info.last_error);
    assert_true(info.fence == 0 && info.claimed_at_ms == 0 && info.finished_at_ms == 0);
    pawl_job_info_clear(&info);
    assert_status(pawl_get(pool, 12345, &info), PAWL_ERR_NOT_FOUND);
    assert_status(pawl_get(pool, INT64_MIN, &info), PAWL_ERR_NOT_FOUND);
    assert_ok(pawl_close(pool));
}

/* Goal: clearing twice is harmless, keeps struct_size, and leaves an info that can be filled again. */
static void clear_twice(void **state)
{
    int64_t ids[6];
    pawl_pool *pool = open_with_jobs(state, ids);
    pawl_job_info info = PAWL_JOB_INFO_INIT;
    pawl_stats_info stats = PAWL_STATS_INIT;
    for (int i = 0; i < 2; i++) {
        assert_ok(pawl_get(pool, ids[0], &info));
        pawl_job_info_clear(&info);
        pawl_job_info_clear(&info);
        assert_int_equal(info.struct_size, sizeof info);
        assert_null(info.payload);
        assert_ok(pawl_stats(pool, &stats));
        pawl_stats_info_clear(&stats);
        pawl_stats_info_clear(&stats);
        assert_int_equal(stats.struct_size, sizeof stats);
        assert_int_equal(stats.lane_count, 0);
    }
    assert_ok(pawl_close(pool));
}

/* Goal: a caller that was built with an older or a newer header gets as many bytes as it said, not one more;
 * what is too small to be cleared is refused. */
static void older_callers_get_no_more_than_they_said(void **state)
{
    int64_t ids[6];
    pawl_pool *pool = open_with_jobs(state, ids);
    const size_t room = 2 * sizeof(pawl_job_info);
    unsigned char *raw = malloc(room);
    for (size_t said = offsetof(pawl_job_info, id); said <= 2 * sizeof(pawl_job_info); said += 8) {
        memset(raw, 0x5A, 2 * sizeof(pawl_job_info));
        memset(raw, 0, said);
        memcpy(raw, &said, sizeof said);
        pawl_job_info *info = (pawl_job_info *)(void *)raw;
        assert_ok(pawl_get(pool, ids[2], info));
        for (size_t i = said; i < 2 * sizeof(pawl_job_info); i++)
            assert_int_equal(raw[i], 0x5A);
        size_t now;
        memcpy(&now, raw, sizeof now);
        assert_int_equal(now, said);
        if (said >= offsetof(pawl_job_info, state) + sizeof info->state)
            assert_int_equal(info->state, PAWL_STATE_FAILED);
        pawl_job_info_clear(info);
        for (size_t i = said; i < 2 * sizeof(pawl_job_info); i++)
            assert_int_equal(raw[i], 0x5A);
    }
    size_t tiny = sizeof(size_t);
    memcpy(raw, &tiny, sizeof tiny);
    assert_status(pawl_get(pool, ids[0], (pawl_job_info *)(void *)raw), PAWL_ERR_INVALID);
    free(raw);

    size_t said = offsetof(pawl_stats_info, commits);
    const size_t known = sizeof(pawl_stats_info);
    unsigned char *older = malloc(known);
    memset(older, 0x5A, sizeof(pawl_stats_info));
    memset(older, 0, said);
    memcpy(older, &said, sizeof said);
    assert_ok(pawl_stats(pool, (pawl_stats_info *)(void *)older));
    assert_int_equal(((pawl_stats_info *)(void *)older)->lane_count, 2);
    for (size_t i = said; i < sizeof(pawl_stats_info); i++)
        assert_int_equal(older[i], 0x5A);
    pawl_stats_info_clear((pawl_stats_info *)(void *)older);
    free(older);

    enum { STRIDE = offsetof(pawl_job_info, kind) };
    unsigned char *page = malloc(3 * STRIDE + 8);
    memset(page, 0, 3 * STRIDE);
    memset(page + 3 * STRIDE, 0x5A, 8);
    size_t count = 0, stride = STRIDE;
    for (int i = 0; i < 3; i++)
        memcpy(page + i * STRIDE, &stride, sizeof stride);
    assert_ok(pawl_list(pool, NULL, (pawl_job_info *)(void *)page, 3, &count));
    assert_int_equal(count, 3);
    for (int i = 0; i < 3; i++) {
        pawl_job_info *info = (pawl_job_info *)(void *)(page + i * STRIDE);
        assert_int_equal(info->id, ids[i]);
        pawl_job_info_clear(info);
    }
    for (int i = 0; i < 8; i++)
        assert_int_equal(page[3 * STRIDE + i], 0x5A);
    free(page);
    assert_ok(pawl_close(pool));
}

/* Reads all pages of `capacity` and checks the ids. */
static void assert_pages(pawl_pool *pool, pawl_filter filter, size_t capacity, const int64_t *ids,
                         size_t expected)
{
    pawl_job_info infos[8];
    size_t seen = 0, count;
    filter.struct_size = sizeof filter;
    do {
        for (size_t i = 0; i < capacity; i++)
            infos[i] = (pawl_job_info)PAWL_JOB_INFO_INIT;
        assert_ok(pawl_list(pool, &filter, infos, capacity, &count));
        assert_true(count <= capacity);
        for (size_t i = 0; i < count; i++) {
            assert_true(seen < expected);
            assert_int_equal(infos[i].id, ids[seen++]);
            filter.after_id = infos[i].id;
            pawl_job_info_clear(&infos[i]);
        }
    } while (count == capacity);
    assert_int_equal(seen, expected);
}

/* Goal: pages in both directions, by state, queue and kind, each job once, whatever the page's size. */
static void list_pages_through_a_filter(void **state)
{
    int64_t ids[6];
    pawl_pool *pool = open_with_jobs(state, ids);
    const int64_t backwards[] = { ids[5], ids[4], ids[3], ids[2], ids[1], ids[0] };
    const int64_t waiting[] = { ids[4], ids[5] }, mails[] = { ids[0], ids[1], ids[2], ids[3], ids[5] };
    for (size_t capacity = 1; capacity <= 8; capacity++) {
        assert_pages(pool, (pawl_filter){ 0 }, capacity, ids, 6);
        assert_pages(pool, (pawl_filter){ .newest_first = true }, capacity, backwards, 6);
        assert_pages(pool, (pawl_filter){ .states = 1u << PAWL_STATE_PENDING }, capacity, waiting, 2);
        assert_pages(pool, (pawl_filter){ .states = 1u << PAWL_STATE_SUCCEEDED | 1u << PAWL_STATE_FAILED },
                     capacity, ids, 3);
        assert_pages(pool, (pawl_filter){ .kind = "mail" }, capacity, mails, 5);
        assert_pages(pool, (pawl_filter){ .queue = "q" }, capacity, &ids[4], 1);
        assert_pages(pool, (pawl_filter){ .queue = "q", .kind = "mail" }, capacity, waiting, 0);
        assert_pages(pool, (pawl_filter){ .states = 1u << PAWL_STATE_BLOCKED }, capacity, waiting, 0);
    }
    pawl_filter unknown = { .struct_size = sizeof unknown, .states = 1u << 20 };
    pawl_job_info info = PAWL_JOB_INFO_INIT;
    size_t count;
    assert_status(pawl_list(pool, &unknown, &info, 1, &count), PAWL_ERR_INVALID);
    assert_ok(pawl_close(pool));
}

/* Goal: the numbers of each lane, sorted by queue and kind, equal a recount of the jobs (I20). */
static void stats_equal_a_recount(void **state)
{
    int64_t ids[6];
    pawl_pool *pool = open_with_jobs(state, ids);
    assert_ok(pawl_clock_advance(pool, 5000));
    pawl_stats_info stats = stats_of(pool);
    assert_int_equal(stats.lane_count, 2);
    const pawl_lane_stats *mail = &stats.lanes[0];
    const pawl_lane_stats *other =
        (const pawl_lane_stats *)(const void *)((const char *)stats.lanes + mail->struct_size);
    assert_string_equal(mail->queue, "default");
    assert_string_equal(mail->kind, "mail");
    assert_true(mail->served && !mail->paused);
    assert_int_equal(mail->pending_due, 0);
    assert_int_equal(mail->pending_later, 1);
    assert_int_equal(mail->running, 0);
    assert_int_equal(mail->succeeded, 2);
    assert_int_equal(mail->failed, 1);
    assert_int_equal(mail->cancelled, 1);
    assert_int_equal(mail->enqueued, 5);
    assert_int_equal(mail->pruned, 0);
    assert_int_equal(mail->oldest_due_age_ms, 0);
    assert_string_equal(mail->last_error, "no such mailbox");
    assert_true(mail->last_error_at_ms > 0);
    assert_string_equal(other->queue, "q");
    assert_false(other->served);
    assert_int_equal(other->pending_due, 1);
    assert_int_equal(other->oldest_due_age_ms, 5000);
    assert_null(other->last_error);
    assert_true(stats.commits > 0 && stats.commands >= 6);
    pawl_stats_info_clear(&stats);
    assert_ok(pawl_close(pool));
}

/* ------------------------------------------------------------------------------- the view */

static char *text_of(const char *path, const char *sql)
{
    sqlite3 *db = sql_open(path);
    sqlite3_stmt *row;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    while (sqlite3_step(row) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(row); i++)
            fprintf(out, "%s%s", i > 0 ? "|" : "", sqlite3_column_text(row, i) != NULL
                                                       ? (const char *)sqlite3_column_text(row, i)
                                                       : "-");
        fputc('\n', out);
    }
    (void)sqlite3_finalize(row);
    (void)fclose(out);
    sql_close(db);
    return text;
}

/* Goal: the question that everybody asks first just works. */
static void the_view_counts_by_status(void **state)
{
    int64_t ids[6];
    pawl_pool *pool = open_with_jobs(state, ids);
    char *text = text_of(((temp *)*state)->path,
                         "SELECT status, COUNT(*) FROM pawl_jobs GROUP BY status");
    assert_string_equal(text, "cancelled|1\nfailed|1\npending|2\nsucceeded|2\n");
    free(text);
    assert_ok(pawl_close(pool));
}

/* Goal: the view has the columns that a person expects, in this order. */
static void the_view_has_the_columns_of_the_contract(void **state)
{
    pawl_pool *pool = open_inline((temp *)*state, .executors = 1);
    char *text = text_of(((temp *)*state)->path,
                         "SELECT group_concat(name, ' ') FROM pragma_table_info('pawl_jobs')");
    assert_string_equal(text, "id queue kind payload status priority available_at claimed_at claimed_by"
                              " lease_until attempts max_attempts last_error idempotency_key created_at"
                              " updated_at finished_at\n");
    free(text);
    assert_ok(pawl_close(pool));
}

/* Goal: times are UTC as YYYY-MM-DD HH:MM:SS.SSS, exact to the millisecond over the whole range, and NULL
 * where there is none. */
static void the_views_times_are_readable(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } times[] = {
        { 4102444800000, "2100-01-01 00:00:00.000" },   { 4102444800001, "2100-01-01 00:00:00.001" },
        { 4102444799999, "2099-12-31 23:59:59.999" },   { 253402300799999, "9999-12-31 23:59:59.999" },
        { 32503679999995, "2999-12-31 23:59:59.995" },  { 4107542399009, "2100-02-28 23:59:59.009" },
    };
    pawl_pool *pool = open_inline((temp *)*state, .executors = 1);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        char sql[128], expected[64];
        int64_t id = put(pool, .kind = "k", .available_at_ms = times[i].ms);
        (void)snprintf(sql, sizeof sql, "SELECT available_at FROM pawl_jobs WHERE id = %lld", (long long)id);
        (void)snprintf(expected, sizeof expected, "%s\n", times[i].text);
        char *text = text_of(((temp *)*state)->path, sql);
        assert_string_equal(text, expected);
        free(text);
    }
    char *text = text_of(((temp *)*state)->path, "SELECT DISTINCT claimed_at, claimed_by, lease_until,"
                                                 " finished_at, last_error FROM pawl_jobs");
    assert_string_equal(text, "-|-|-|-|-\n");
    free(text);
    assert_ok(pawl_close(pool));
}

static int look_at_itself(pawl_job *job, void *arg)
{
    (void)job;
    char **text = arg;
    *text = text_of(pawl_job_payload(job, NULL),
                    "SELECT status, claimed_by, attempts, lease_until > claimed_at, finished_at,"
                    " claimed_at LIKE '20__-__-__ __:__:__.___' FROM pawl_jobs");
    return PAWL_SUCCEEDED;
}

/* Goal: a running job shows its holder, its attempt and its lease. */
static void the_view_shows_a_running_job(void **state)
{
    temp *t = *state;
    char *text = NULL;
    pawl_pool *pool = open_inline(t, .executors = 1, .name = "holder");
    assert_ok(pawl_register(pool, "k", look_at_itself, (void *)&text, NULL));
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "k", .payload = t->path, .payload_bytes = strlen(t->path));
    assert_ok(pawl_run_until_idle(pool));
    assert_string_equal(text, "running|holder|1|1|-|1\n");
    free(text);
    assert_ok(pawl_close(pool));
}

/* Goal: names of statuses and states are those of the header and the view. */
static void names_are_told(void **state)
{
    (void)state;
    assert_string_equal(pawl_status_name(PAWL_ERR_BUSY), "PAWL_ERR_BUSY");
    assert_string_equal(pawl_status_name(PAWL_OK), "PAWL_OK");
    assert_non_null(pawl_status_name((pawl_status)12345));
    static const char *const states[] = { "pending", "running", "succeeded", "failed", "cancelled",
                                          "blocked" };
    for (int i = 0; i < 6; i++)
        assert_string_equal(pawl_state_name((pawl_state)i), states[i]);
    assert_non_null(pawl_state_name((pawl_state)77));
    assert_string_equal(pawl_version(), PAWL_VERSION);
    assert_non_null(pawl_error_message());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)

static const struct CMUnitTest tests[] = {
    TEST(get_tells_everything),
    TEST(clear_twice),
    TEST(older_callers_get_no_more_than_they_said),
    TEST(list_pages_through_a_filter),
    TEST(stats_equal_a_recount),
    TEST(the_view_counts_by_status),
    TEST(the_view_has_the_columns_of_the_contract),
    TEST(the_views_times_are_readable),
    TEST(the_view_shows_a_running_job),
    cmocka_unit_test(names_are_told),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
