/* diagnose_test.c - pawl_diagnose() and pawl_explain() inside the application: beside its own pool, at work.
 *
 * Goal: a pool at full work never looks ill (the counts are of one moment, I20), and is not disturbed: none of
 * the process's locks on the file fall (R8), every job is run. Arguments are checked, a long look can be ended,
 * and texts are clipped between characters. What each finding looks like is in doctor_test.sh. */
#include "check.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate.h"
#include "look.h"
#include "patience.h"

static const temp *of(void **state)
{
    return *state;
}

typedef struct heard {
    size_t count[PAWL_FINDING_ERROR + 1];
    char checks[2048]; /* " sqlite race …" */
    char worst[1024];
} heard;

static void hear(const pawl_finding *finding, void *arg)
{
    heard *h = arg;
    h->count[finding->severity]++;
    size_t used = strlen(h->checks);
    (void)snprintf(h->checks + used, sizeof h->checks - used, " %s", finding->check);
    bool by_examiners = strcmp(finding->check, "wal") == 0; /* several, one after the other, may hold the log */
    if (finding->severity >= PAWL_FINDING_WARNING && !by_examiners)
        (void)snprintf(h->worst, sizeof h->worst, "%s: %s", finding->check, finding->text);
    if (finding->struct_size != sizeof *finding || finding->text[0] == '\0'
        || strpbrk(finding->text, "\n\033") != NULL || (finding->remedy != NULL && finding->remedy[0] == '\0'))
        (void)snprintf(h->worst, sizeof h->worst, "%s: is malformed", finding->check);
}

static size_t problems(const heard *h)
{
    return h->count[PAWL_FINDING_WARNING] + h->count[PAWL_FINDING_ERROR];
}

/* ------------------------------------------------------------------------------- at work */

enum { LOOKS = 30, WORK_MS_MAX = 15000, BATCH = 100, EXAMINERS = 2 };

typedef struct examiner {
    pthread_t thread;
    const char *path;
    _Atomic bool *over;
    _Atomic int *looks;
    heard last; /* the first that was not clean, or the last one */
    pawl_status status;
} examiner;

static void *examine(void *arg)
{
    examiner *e = arg;
    do {
        memset(&e->last, 0, sizeof e->last);
        e->status = pawl_diagnose(e->path, hear, &e->last);
        (void)atomic_fetch_add(e->looks, 1);
    } while (e->status == PAWL_OK && e->last.worst[0] == '\0' && !atomic_load(e->over));
    return NULL;
}

static int succeed(pawl_job *job, void *arg)
{
    (void)job;
    gate_add(arg, 1);
    return PAWL_SUCCEEDED;
}

static int stumble(pawl_job *job, void *arg)
{
    gate_add(arg, 1);
    return pawl_job_attempt(job) % 2 == 1 ? PAWL_FAILED : PAWL_SUCCEEDED;
}

/* Until it was looked at often enough, while jobs were never short. */
static void work(pawl_pool *pool, gate *ran, _Atomic int *looks)
{
    int64_t begun = steady_ms();
    int jobs = 0;
    pawl_job_spec specs[BATCH];
    for (int i = 0; i < BATCH; i++)
        specs[i] = *PAWL_JOB(.kind = i % 2 == 0 ? "good" : "bad", .priority = i % 3);
    for (; atomic_load(looks) < LOOKS && steady_ms() - begun < WORK_MS_MAX; jobs += BATCH) {
        assert_ok(pawl_enqueue_many(pool, specs, BATCH, NULL, NULL));
        assert_true(gate_await(ran, jobs - 5 * BATCH));
    }
    assert_true(gate_await(ran, jobs));
    print_message("%d looks, %d jobs\n", atomic_load(looks), jobs);
}

/* Goal: no look at a pool at full work finds anything wrong. */
static void a_pool_at_work_is_healthy(void **state)
{
    const temp *t = of(state);
    gate ran = GATE_INIT;
    _Atomic bool over = false;
    _Atomic int looks = 0;
    examiner examiners[EXAMINERS] = { 0 };
    pawl_pool *pool = open_pool(t, .executors = 2, .synchronous = PAWL_SYNCHRONOUS_NORMAL,
                                .keep_succeeded_max = 1000, .keep_failed_max = 1000); /* pruned meanwhile */
    assert_ok(pawl_register(pool, "good", succeed, &ran, NULL));
    assert_ok(pawl_register(pool, "bad", stumble, &ran, NULL));
    assert_ok(pawl_start(pool));
    for (int i = 0; i < EXAMINERS; i++) {
        examiners[i].path = t->path;
        examiners[i].over = &over;
        examiners[i].looks = &looks;
        assert_int_equal(pthread_create(&examiners[i].thread, NULL, examine, &examiners[i]), 0);
    }
    work(pool, &ran, &looks);
    atomic_store(&over, true);
    for (int i = 0; i < EXAMINERS; i++) {
        assert_int_equal(pthread_join(examiners[i].thread, NULL), 0);
        assert_string_equal(examiners[i].last.worst, "");
        assert_int_equal(examiners[i].status, PAWL_OK);
    }
    assert_ok(pawl_close(pool));
    assert_true(atomic_load(&looks) >= EXAMINERS);
    assert_counters_are_right(t->path);
}

/* ---------------------------------------------------------------------------- the locks (R8) */

/* This process's locks on the file and its index, as the kernel lists them. */
static int locks_on(const char *path)
{
    char line[256], shm[400];
    struct stat db, index;
    int count = 0;
    (void)snprintf(shm, sizeof shm, "%s-shm", path);
    assert_int_equal(stat(path, &db), 0);
    assert_int_equal(stat(shm, &index), 0);
    FILE *file = fopen("/proc/locks", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        int pid = 0;
        unsigned long inode = 0;
        if (sscanf(line, "%*s %*s %*s %*s %d %*x:%*x:%lu", &pid, &inode) == 2 && pid == getpid()
            && (inode == db.st_ino || inode == index.st_ino))
            count++;
    }
    (void)fclose(file);
    return count;
}

static void no_lock_falls(void **state)
{
    const temp *t = of(state);
    heard h = { 0 };
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "nobody");
    int before = locks_on(t->path);
    assert_true(before > 0); /* else nothing is shown */
    assert_ok(pawl_diagnose(t->path, hear, &h));
    assert_int_equal(locks_on(t->path), before);
    assert_text_has(h.checks, " integrity");
    assert_ok(pawl_close(pool));
}

/* Goal: the pool is open and not started; it is whole afterwards, and its close tidies up as always. */
static void an_open_pool_is_left_alone(void **state)
{
    const temp *t = of(state);
    heard h = { 0 };
    pawl_pool *pool = open_pool(t, .executors = 1);
    int64_t id = put(pool, .kind = "k");
    assert_ok(pawl_diagnose(t->path, hear, &h));
    assert_string_equal(h.worst, "");
    assert_ok(pawl_cancel(pool, id));
    assert_ok(pawl_close(pool));
    char *listing = temp_listing(t);
    assert_null(strstr(listing, "-wal"));
    free(listing);
}

/* --------------------------------------------------------------------------------- the calls */

static void arguments_are_checked(void **state)
{
    heard h = { 0 };
    pawl_diagnose_options options = PAWL_DIAGNOSE_INIT;
    assert_status(pawl_diagnose(NULL, hear, &h), PAWL_ERR_INVALID);
    assert_status(pawl_diagnose("", hear, &h), PAWL_ERR_INVALID);
    assert_status(pawl_diagnose(of(state)->path, NULL, NULL), PAWL_ERR_INVALID);
    options.struct_size = 0;
    assert_status(pawl_diagnose_with(of(state)->path, &options, hear, &h), PAWL_ERR_INVALID);
    assert_int_equal(problems(&h), 0);
    assert_ok(pawl_diagnose(of(state)->path, hear, &h)); /* does not exist: a finding, not an error */
    assert_int_equal(h.count[PAWL_FINDING_ERROR], 1);
}

static bool stop_at(const char *check, void *arg)
{
    return strcmp(check, arg) != 0;
}

static void a_look_can_be_ended(void **state)
{
    const temp *t = of(state);
    heard h = { 0 };
    char at[] = "counters";
    pawl_diagnose_options options = PAWL_DIAGNOSE_INIT;
    options.progress = stop_at;
    options.progress_arg = at;
    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_diagnose_with(t->path, &options, hear, &h));
    assert_text_has(h.checks, " paused");
    assert_null(strstr(h.checks, " counters"));
    assert_ok(pawl_close(pool));
}

/* Ends what is under way, not only what comes next: on many rows the check says that it was cut. */
static bool stop_inside(const char *check, void *arg)
{
    int *asked = arg;
    return strcmp(check, "integrity") != 0 || ++*asked < 2;
}

static void a_long_check_is_cut(void **state)
{
    const temp *t = of(state);
    heard h = { 0 };
    int asked = 0;
    pawl_diagnose_options options = PAWL_DIAGNOSE_INIT;
    options.progress = stop_inside;
    options.progress_arg = &asked;
    pawl_pool *pool = open_pool(t, .executors = 1);
    change(t->path, "CREATE TABLE app (x TEXT UNIQUE)");
    change(t->path, "INSERT INTO app WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 400000)"
                    " SELECT hex(i) || '-some-text' FROM n");
    assert_ok(pawl_diagnose_with(t->path, &options, hear, &h));
    assert_int_equal(asked, 2);
    assert_text_has(h.checks, " integrity");
    assert_int_equal(problems(&h), 0);
    assert_ok(pawl_close(pool));
}

/* ------------------------------------------------------------------- the log of others (R7) */

/* Writes much, once, in the middle of the check: the log grows while the look holds it. */
typedef struct writer {
    const char *path, *check;
    int calls, written;
} writer;

static bool write_inside(const char *check, void *arg)
{
    writer *w = arg;
    if (strcmp(check, w->check) == 0 && ++w->calls == 2 && ++w->written == 1)
        change(w->path, "INSERT INTO app SELECT zeroblob(1000000) FROM pawl_job LIMIT 16");
    return true;
}

typedef struct cuts {
    char checks[512]; /* " counters" */
    char fine[512];
} cuts;

static void hear_cuts(const pawl_finding *finding, void *arg)
{
    cuts *c = arg;
    char *out = strstr(finding->text, "not looked at to the end: the log grew") != NULL ? c->checks : c->fine;
    size_t used = strlen(out);
    if (out == c->checks || finding->severity == PAWL_FINDING_OK)
        (void)snprintf(out + used, sizeof c->fine - used, " %s", finding->check);
}

/* Long enough to be looked at in its middle. */
static void fill(const temp *t)
{
    pawl_pool *pool = open_pool(t, .executors = 1);
    (void)put(pool, .kind = "nobody", .delay_ms = 3600000);
    assert_ok(pawl_close(pool));
    change(t->path, "CREATE TABLE app (x)");
    change(t->path, "WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 500000) INSERT INTO pawl_job"
                    " (lane, kind, status, priority, attempts, max_attempts, cancel, bystander, holder, fence,"
                    " timeout_ms, available_at, created_at, updated_at, claimed_at, lease_until, lease_boot)"
                    " SELECT lane, kind, status, priority, attempts, max_attempts, cancel, bystander, holder, fence,"
                    " timeout_ms, available_at, created_at, updated_at, claimed_at, lease_until, lease_boot"
                    " FROM n, pawl_job WHERE id = 1");
    change(t->path, "UPDATE pawl_lane SET later = 500001, enqueued = 500001");
}

static bool log_is_cut(void *arg)
{
    const temp *t = arg;
    return look(t->path, "PRAGMA wal_checkpoint(TRUNCATE)") == 0; /* nobody was in the way */
}

static cuts look_while_others_write(const temp *t, const char *check)
{
    cuts c = { 0 };
    writer w = { .path = t->path, .check = check };
    pawl_diagnose_options options = PAWL_DIAGNOSE_INIT;
    options.progress = write_inside;
    options.progress_arg = &w;
    /* What was written before does not count, nor would what is written into a log that stays long. */
    assert_true(eventually(log_is_cut, (void *)(uintptr_t)t, 20000));
    assert_ok(pawl_diagnose_with(t->path, &options, hear_cuts, &c));
    assert_int_equal(w.written, 1);
    return c;
}

/* Goal: a look lets go of the log when it has grown by what pools keep it within, whether one lives or somebody
 * only enqueues; and what is no matter of one moment is looked at all the same. */
static void a_look_gives_way_to_writers(void **state)
{
    const temp *t = of(state);
    fill(t);
    cuts c = look_while_others_write(t, "counters");
    assert_string_equal(c.checks, " counters");
    assert_text_has(c.fine, " claims fences attempts rows");
    c = look_while_others_write(t, "integrity");
    assert_string_equal(c.checks, " integrity");

    pawl_pool *pool = open_pool(t, .executors = 1);
    assert_ok(pawl_start(pool));
    c = look_while_others_write(t, "counters");
    assert_string_equal(c.checks, " counters");
    assert_text_has(c.fine, " claims fences attempts rows");
    assert_ok(pawl_close(pool));
}

static void a_sentence_is_clipped_between_characters(void **state)
{
    pawl_pool *pool = open_pool(of(state), .executors = 1);
    char text[4096], small[64];
    int64_t id = put(pool, .kind = "k", .queue = "\xC3\xA4\xC3\xB6\xC3\xBC");
    assert_ok(pawl_pause(pool, "\xC3\xA4\xC3\xB6\xC3\xBC"));
    assert_ok(pawl_explain(pool, id, text, sizeof text));
    assert_text_has(text, "\xC3\xA4\xC3\xB6\xC3\xBC\" is paused since");
    for (size_t capacity = 1; capacity <= sizeof small; capacity++) {
        memset(small, 'x', sizeof small);
        assert_ok(pawl_explain(pool, id, small, capacity));
        size_t length = strlen(small);
        assert_true(length < capacity);
        assert_memory_equal(small, text, length);
        assert_true((text[length] & 0xC0) != 0x80); /* no character was cut */
    }
    assert_status(pawl_explain(pool, id, NULL, 10), PAWL_ERR_INVALID);
    assert_status(pawl_explain(pool, id, text, 0), PAWL_ERR_INVALID);
    assert_status(pawl_explain(pool, id + 1, text, sizeof text), PAWL_ERR_NOT_FOUND);
    assert_status(pawl_explain(NULL, id, text, sizeof text), PAWL_ERR_INVALID);
    assert_ok(pawl_close(pool));
}

static int wait_at_gate(pawl_job *job, void *arg)
{
    (void)job;
    gate_add(arg, 1);
    return gate_await(arg, 100) ? PAWL_SUCCEEDED : PAWL_RETRY;
}

static void assert_explained(pawl_pool *pool, int64_t id, const char *part)
{
    char text[4096];
    assert_ok(pawl_explain(pool, id, text, sizeof text));
    assert_text_has(text, part);
}

/* Goal: why a job waits although executors are free is said as far as it is known: of the caller's own pool. */
static void it_is_said_why_a_free_executor_is_left_free(void **state)
{
    gate at = GATE_INIT;
    static const char *const queues[] = { "default" };
    pawl_pool *pool = open_pool(of(state), .executors = 4, .queues = queues, .queue_count = 1);
    assert_ok(pawl_register(pool, "narrow", wait_at_gate, &at, PAWL_HANDLER(.in_flight_max = 1)));
    assert_ok(pawl_start(pool));
    (void)put(pool, .kind = "narrow");
    assert_true(gate_await(&at, 1));
    assert_explained(pool, put(pool, .kind = "narrow"), "1 of it is running");
    assert_explained(pool, put(pool, .kind = "narrow"), "this pool runs at most 1 of its kind at a time");
    assert_explained(pool, put(pool, .kind = "other"), "the only one that runs, and has no handler for kind \"other\"");
    assert_explained(pool, put(pool, .kind = "narrow", .queue = "far"), "and does not serve queue \"far\"");
    gate_add(&at, 100);
    assert_ok(pawl_close(pool));
}

/* Goal: an id that no job can have was not pruned either. */
static void no_job_has_an_id_below_one(void **state)
{
    pawl_pool *pool = open_pool(of(state), .executors = 1);
    char text[64];
    (void)put(pool, .kind = "k");
    for (int64_t id = -1; id <= 0; id++) {
        assert_status(pawl_explain(pool, id, text, sizeof text), PAWL_ERR_NOT_FOUND);
        assert_null(strstr(pawl_error_message(), "any more"));
    }
    assert_ok(pawl_close(pool));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_setup, temp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pool_at_work_is_healthy),
        TEST(no_lock_falls),
        TEST(an_open_pool_is_left_alone),
        TEST(arguments_are_checked),
        TEST(a_look_can_be_ended),
        TEST(a_long_check_is_cut),
        TEST(a_look_gives_way_to_writers),
        TEST(a_sentence_is_clipped_between_characters),
        TEST(it_is_said_why_a_free_executor_is_left_free),
        TEST(no_job_has_an_id_below_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
