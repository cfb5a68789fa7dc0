/* pool_storm_test.c - everything at once, against a history that is kept outside the database.
 *
 * Producers enqueue in every way, executors end jobs in every way, other threads finish detached ones,
 * an operator cancels, requeues, pauses, stops and starts. Each answer, each start and each end is
 * noted in memory; at the end the drained store must agree with it. Chance comes from a printed seed. */
#include "check.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "look.h"
#include "patience.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SCALE 1
#else
#define SCALE 4
#endif

#define PRODUCERS 6
#define FINISHERS 2
#define ASKS_EACH (250 * SCALE)
#define ASKS (PRODUCERS * ASKS_EACH)
#define KINDS 4
#define QUEUES 3
#define KEYS 150
#define FILLER_MAX 400
#define LONG_MS 60000

static const char *const kinds[KINDS] = { "alpha", "beta", "gamma", "delta" };
static const char *const queues[QUEUES] = { "default", "mail", "reports" };
static const int64_t backoff[] = { 1, 3 };

/* ------------------------------------------------------------------------------ history */

/* What was asked for, and the answer. */
typedef struct ask {
    uint32_t kind, max_attempts;
    int key; /* -1: none */
    _Atomic int answers;
    pawl_status status;
    int64_t id;
} ask;

/* What happened to a job; by its id. */
typedef struct life {
    _Atomic int live;                /* handlers and detached hands that have it: 0 or 1 (I4) */
    _Atomic uint64_t fence;          /* of the last start (I5) */
    _Atomic int starts, said_success, said_failed;
    _Atomic int cancelled, accepted, requeued; /* answers */
} life;

typedef struct storm {
    pawl_pool *pool;
    uint64_t seed;
    ask asks[ASKS];
    life lives[ASKS + 1];
    _Atomic int wrong; /* violations; each is printed when it is found */
    _Atomic int64_t last_id;
    _Atomic bool producing, calm; /* calm: every handler succeeds, so that the store drains */
    _Atomic bool ends;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pawl_job *detached[4096];
    size_t detached_count;
} storm;

static void wrong(storm *s, const char *what, int64_t id)
{
    (void)fprintf(stderr, "%s (job %" PRId64 ")\n", what, id);
    (void)atomic_fetch_add(&s->wrong, 1);
}

static life *life_of(storm *s, int64_t id)
{
    if (id >= 1 && id <= ASKS)
        return &s->lives[id];
    wrong(s, "I2 an id that nobody was given", id);
    return &s->lives[0];
}

/* ------------------------------------------------------------------------------- payloads */

typedef struct body {
    uint32_t number, bytes;
    unsigned char filler[FILLER_MAX];
} body;

static size_t fill_body(body *b, uint32_t number)
{
    uint64_t seed = number;
    b->number = number;
    b->bytes = (uint32_t)(next_random(&seed) % FILLER_MAX);
    for (uint32_t i = 0; i < b->bytes; i++)
        b->filler[i] = (unsigned char)next_random(&seed);
    return offsetof(body, filler) + b->bytes;
}

/* I2: the same bytes. */
static bool is_intact(const void *payload, size_t bytes, uint32_t *number)
{
    body expected;
    if (bytes < offsetof(body, filler))
        return false;
    memcpy(number, payload, sizeof *number);
    return *number < ASKS && fill_body(&expected, *number) == bytes
           && memcmp(&expected, payload, bytes) == 0;
}

/* ------------------------------------------------------------------------------- handlers */

static void note_start(storm *s, pawl_job *job)
{
    int64_t id = pawl_job_id(job);
    life *l = life_of(s, id);
    uint32_t number = 0;
    size_t bytes;
    const void *payload = pawl_job_payload(job, &bytes);
    if (!is_intact(payload, bytes, &number) || strcmp(kinds[s->asks[number].kind], pawl_job_kind(job)) != 0)
        wrong(s, "I2 not what was asked for", id);
    else if (pawl_job_attempt(job) < 1 || pawl_job_attempt(job) > s->asks[number].max_attempts
             || pawl_job_max_attempts(job) != s->asks[number].max_attempts)
        wrong(s, "I9 more attempts than allowed", id);
    if (atomic_exchange(&l->live, 1) != 0)
        wrong(s, "I4 two live claims", id);
    if (atomic_exchange(&l->fence, pawl_job_fence(job)) >= pawl_job_fence(job))
        wrong(s, "I5 a fence that did not grow", id);
    if (atomic_load(&l->said_success) > 0)
        wrong(s, "I8 started after its success", id);
    if (atomic_load(&l->cancelled) > 0)
        wrong(s, "I1 started after it was cancelled", id);
    (void)atomic_fetch_add(&l->starts, 1);
}

static void note_end(storm *s, int64_t id, int outcome)
{
    life *l = life_of(s, id);
    if (outcome == PAWL_SUCCEEDED)
        (void)atomic_fetch_add(&l->said_success, 1);
    if (outcome == PAWL_FAILED)
        (void)atomic_fetch_add(&l->said_failed, 1);
    if (atomic_exchange(&l->live, 0) != 1)
        wrong(s, "I7 a claim that ended twice", id);
}

static int choose_outcome(storm *s, uint64_t *seed)
{
    uint64_t dice = next_random(seed) % 100;
    if (atomic_load(&s->calm) || dice < 55)
        return PAWL_SUCCEEDED;
    return dice < 70 ? PAWL_RETRY
           : dice < 74 ? PAWL_FAILED
           : dice < 76 ? PAWL_CANCELLED
           : dice < 80 ? PAWL_SNOOZED
           : dice < 84 ? PAWL_RELEASED
           : dice < 87 ? 42 /* an error without a class */
                       : PAWL_DETACHED;
}

static void hand_over(storm *s, pawl_job *job)
{
    (void)pthread_mutex_lock(&s->lock);
    s->detached[s->detached_count++] = job;
    (void)pthread_cond_signal(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
}

static int handle(pawl_job *job, void *arg)
{
    storm *s = arg;
    int64_t id = pawl_job_id(job);
    uint64_t seed = s->seed ^ pawl_job_fence(job) * 31u;
    note_start(s, job);
    if (next_random(&seed) % 8 == 0 && pawl_job_heartbeat(job) != PAWL_OK)
        wrong(s, "I12 a heartbeat inside the lease was refused", id);
    if (next_random(&seed) % 16 == 0)
        nap_ms((int64_t)(next_random(&seed) % 4));
    int outcome = choose_outcome(s, &seed);
    if (outcome == PAWL_RETRY)
        pawl_job_error(job, "try %u\x01 \xff again", pawl_job_attempt(job));
    if (outcome == PAWL_SNOOZED)
        pawl_job_retry_in(job, 2);
    if (outcome == PAWL_DETACHED)
        hand_over(s, job); /* may be finished before this returns */
    else
        note_end(s, id, outcome);
    return outcome;
}

static void *finish(void *arg)
{
    storm *s = arg;
    uint64_t seed = s->seed + 17;
    (void)pthread_mutex_lock(&s->lock);
    while (!atomic_load(&s->ends) || s->detached_count > 0) {
        if (s->detached_count == 0) {
            (void)pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        pawl_job *job = s->detached[--s->detached_count];
        (void)pthread_mutex_unlock(&s->lock);
        int64_t id = pawl_job_id(job);
        int outcome = next_random(&seed) % 4 != 0 ? PAWL_SUCCEEDED : PAWL_RETRY;
        note_end(s, id, outcome);
        if (pawl_job_finish(job, outcome) != PAWL_OK)
            wrong(s, "a detached job could not be finished", id);
        (void)pthread_mutex_lock(&s->lock);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ------------------------------------------------------------------------------ producers */

typedef struct prepared {
    body payload;
    char key[16];
    pawl_job_spec spec;
} prepared;

static void prepare(storm *s, uint32_t number, uint64_t *seed, prepared *p)
{
    ask *a = &s->asks[number];
    a->kind = (uint32_t)(next_random(seed) % KINDS);
    a->max_attempts = 1 + (uint32_t)(next_random(seed) % 4);
    a->key = next_random(seed) % 4 == 0 ? (int)(next_random(seed) % KEYS) : -1;
    (void)snprintf(p->key, sizeof p->key, "key-%d", a->key);
    p->spec = (pawl_job_spec)PAWL_JOB_INIT;
    p->spec.kind = kinds[a->kind];
    p->spec.queue = queues[next_random(seed) % QUEUES];
    p->spec.payload = &p->payload;
    p->spec.payload_bytes = fill_body(&p->payload, number);
    p->spec.priority = (int32_t)(next_random(seed) % 5) - 2;
    p->spec.delay_ms = next_random(seed) % 8 == 0 ? (int64_t)(next_random(seed) % 30) : 0;
    p->spec.max_attempts = a->max_attempts;
    if (a->key >= 0) {
        p->spec.idempotency_key = p->key;
        p->spec.idempotency_key_bytes = strlen(p->key);
    }
}

static void note_answer(storm *s, ask *a, pawl_status status, int64_t id)
{
    a->status = status;
    a->id = id;
    if (atomic_fetch_add(&a->answers, 1) != 0)
        wrong(s, "I17 answered twice", id);
    int64_t last = atomic_load(&s->last_id);
    while (status >= 0 && id > last && !atomic_compare_exchange_weak(&s->last_id, &last, id)) {
    }
}

typedef struct question {
    storm *s;
    ask *a;
} question;

static void told(pawl_status status, int64_t id, void *arg)
{
    question *q = arg;
    note_answer(q->s, q->a, status, id);
    free(q);
}

static void ask_async(storm *s, uint32_t number, uint64_t *seed)
{
    prepared p;
    question *q = malloc(sizeof *q);
    prepare(s, number, seed, &p);
    *q = (question){ s, &s->asks[number] };
    pawl_status st = pawl_enqueue_async(s->pool, &p.spec, told, q);
    if (st == PAWL_OK)
        return;
    note_answer(s, &s->asks[number], st, 0);
    free(q);
}

static void ask_and_wait(storm *s, uint32_t number, uint64_t *seed)
{
    prepared p;
    int64_t id = 0;
    prepare(s, number, seed, &p);
    pawl_status st = pawl_enqueue(s->pool, &p.spec, &id);
    note_answer(s, &s->asks[number], st, id);
}

static uint32_t ask_for_many(storm *s, uint32_t number, uint32_t end, uint64_t *seed)
{
    prepared p[12];
    pawl_job_spec specs[12];
    int64_t ids[12];
    pawl_status each[12];
    uint32_t count = 1 + (uint32_t)(next_random(seed) % 12);
    if (count > end - number)
        count = end - number;
    for (uint32_t i = 0; i < count; i++) {
        prepare(s, number + i, seed, &p[i]);
        specs[i] = p[i].spec;
    }
    pawl_status st = pawl_enqueue_many(s->pool, specs, count, ids, each);
    for (uint32_t i = 0; i < count; i++)
        note_answer(s, &s->asks[number + i], st == PAWL_OK ? each[i] : st, ids[i]);
    return count;
}

typedef struct producer {
    storm *s;
    uint32_t index;
} producer;

static void *produce(void *arg)
{
    const producer *p = arg;
    storm *s = p->s;
    uint64_t seed = s->seed + 1000 + p->index;
    uint32_t number = p->index * ASKS_EACH, end = number + ASKS_EACH;
    while (number < end)
        switch (next_random(&seed) % 3) {
        case 0: ask_async(s, number++, &seed); break;
        case 1: ask_and_wait(s, number++, &seed); break;
        default: number += ask_for_many(s, number, end, &seed); break;
        }
    return NULL;
}

/* ------------------------------------------------------------------------------ operators */

/* Cancels are for ids that three divides, requeues for those with a rest of one: so that each answer
 * still says what the end must be. */
static void cancel_one(storm *s, uint64_t *seed)
{
    int64_t last = atomic_load(&s->last_id), id = (int64_t)(next_random(seed) % (uint64_t)(last / 3 + 1)) * 3;
    pawl_status st = pawl_cancel(s->pool, id);
    if (st == PAWL_OK)
        (void)atomic_fetch_add(&life_of(s, id)->cancelled, 1);
    else if (st == PAWL_ACCEPTED)
        (void)atomic_fetch_add(&life_of(s, id)->accepted, 1);
    else if (st != PAWL_ERR_STATE && st != PAWL_ERR_NOT_FOUND)
        wrong(s, "pawl_cancel", id);
}

static void requeue_one(storm *s, uint64_t *seed)
{
    int64_t last = atomic_load(&s->last_id);
    int64_t id = (int64_t)(next_random(seed) % (uint64_t)(last / 3 + 1)) * 3 + 1;
    pawl_status st = pawl_requeue(s->pool, id);
    if (st == PAWL_OK)
        (void)atomic_fetch_add(&life_of(s, id)->requeued, 1);
    else if (st != PAWL_ERR_STATE && st != PAWL_ERR_NOT_FOUND)
        wrong(s, "pawl_requeue", id);
}

static void *operate(void *arg)
{
    storm *s = arg;
    uint64_t seed = s->seed + 5;
    while (atomic_load(&s->producing)) {
        const char *queue = queues[next_random(&seed) % QUEUES];
        switch (next_random(&seed) % 8) {
        case 0:
            if (pawl_pause(s->pool, queue) != PAWL_OK || pawl_resume(s->pool, queue) != PAWL_OK)
                wrong(s, "pause and resume", 0);
            break;
        case 1: {
            pawl_stats_info stats = PAWL_STATS_INIT;
            if (pawl_stats(s->pool, &stats) != PAWL_OK)
                wrong(s, "pawl_stats", 0);
            pawl_stats_info_clear(&stats);
            break;
        }
        case 2:
        case 3: requeue_one(s, &seed); break;
        default: cancel_one(s, &seed); break;
        }
    }
    return NULL;
}

static void *stop_and_start(void *arg)
{
    storm *s = arg;
    while (atomic_load(&s->producing)) {
        nap_ms(40);
        if (pawl_stop(s->pool, LONG_MS) != PAWL_OK)
            wrong(s, "I21 a stop that did not end", 0);
        if (pawl_start(s->pool) != PAWL_OK)
            wrong(s, "start again", 0);
    }
    return NULL;
}

/* --------------------------------------------------------------------------------- judging */

static void judge_job(storm *s, const pawl_job_info *job)
{
    const life *l = life_of(s, job->id);
    uint32_t number = 0;
    if (!is_intact(job->payload, job->payload_bytes, &number)) {
        wrong(s, "I2 stored with other bytes", job->id);
        return;
    }
    const ask *a = &s->asks[number];
    bool succeeded = job->state == PAWL_STATE_SUCCEEDED;
    if (a->status != PAWL_OK || a->id != job->id)
        wrong(s, "I2 stored, but its enqueue was not answered OK with this id", job->id);
    if (job->state == PAWL_STATE_PENDING || job->state == PAWL_STATE_RUNNING)
        wrong(s, "not drained", job->id);
    if (succeeded != (atomic_load(&l->said_success) == 1) || atomic_load(&l->said_success) > 1)
        wrong(s, "I7 what the handler said is not what is stored", job->id);
    if (atomic_load(&l->cancelled) > 0 && job->state != PAWL_STATE_CANCELLED)
        wrong(s, "I1 an acknowledged cancel is gone", job->id);
    if (atomic_load(&l->accepted) > 0 && job->state != PAWL_STATE_CANCELLED && !succeeded)
        wrong(s, "I1 an accepted cancel is gone", job->id);
    if (job->attempts > job->max_attempts || job->max_attempts != a->max_attempts)
        wrong(s, "I9 more attempts than allowed", job->id);
    if (job->state == PAWL_STATE_FAILED && atomic_load(&l->said_failed) == 0
        && (job->attempts != job->max_attempts || job->last_error == NULL))
        wrong(s, "I9 failed without using its attempts, or without a reason", job->id);
    if (atomic_load(&l->live) != 0)
        wrong(s, "I7 a claim that has not ended", job->id);
    if (job->fence < atomic_load(&l->fence))
        wrong(s, "I5 an older fence is stored", job->id);
}

static int64_t judge_jobs(storm *s)
{
    pawl_job_info page[100];
    pawl_filter filter = PAWL_FILTER_INIT;
    size_t count = 1;
    int64_t total = 0;
    while (count > 0) {
        for (size_t i = 0; i < 100; i++)
            page[i] = (pawl_job_info)PAWL_JOB_INFO_INIT;
        assert_ok(pawl_list(s->pool, &filter, page, 100, &count));
        for (size_t i = 0; i < count; i++) {
            judge_job(s, &page[i]);
            filter.after_id = page[i].id;
            pawl_job_info_clear(&page[i]);
        }
        total += (int64_t)count;
    }
    return total;
}

/* I1, I16, I17: every call has one answer; OK answers are jobs of their own; EXISTS names one of them. */
static int64_t judge_answers(storm *s)
{
    static int64_t by_key[KINDS][KEYS];
    int64_t stored_jobs = 0;
    memset(by_key, 0, sizeof by_key);
    for (uint32_t i = 0; i < ASKS; i++) {
        const ask *a = &s->asks[i];
        if (atomic_load(&a->answers) != 1)
            wrong(s, "I17 not answered exactly once", (int64_t)i);
        if (a->status < 0) {
            wrong(s, pawl_status_name(a->status), (int64_t)i);
            continue;
        }
        stored_jobs += a->status == PAWL_OK;
        if (a->key < 0)
            continue;
        int64_t *id = &by_key[a->kind][a->key];
        if (*id != 0 && *id != a->id)
            wrong(s, "I16 one key, two jobs", a->id);
        *id = a->id;
    }
    return stored_jobs;
}

static bool is_drained(void *arg)
{
    storm *s = arg;
    assert_ok(pawl_wait_idle(s->pool, LONG_MS));
    pawl_stats_info stats = stats_of(s->pool);
    int64_t left = 0;
    for (size_t i = 0; i < stats.lane_count; i++)
        left += stats.lanes[i].pending_due + stats.lanes[i].pending_later + stats.lanes[i].running;
    pawl_stats_info_clear(&stats);
    return left == 0;
}

static storm *create_storm(void)
{
    storm *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->seed = test_seed();
    atomic_init(&s->producing, true);
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->changed, NULL);
    return s;
}

static void start_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
    assert_int_equal(pthread_create(thread, NULL, fn, arg), 0);
}

static void run_storm(storm *s)
{
    pthread_t producing[PRODUCERS], finishing[FINISHERS], operating, stopping;
    producer producers[PRODUCERS];
    for (int i = 0; i < FINISHERS; i++)
        start_thread(&finishing[i], finish, s);
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (producer){ s, i };
        start_thread(&producing[i], produce, &producers[i]);
    }
    start_thread(&operating, operate, s);
    start_thread(&stopping, stop_and_start, s);
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_join(producing[i], NULL), 0);
    atomic_store(&s->producing, false);
    assert_int_equal(pthread_join(operating, NULL), 0);
    assert_int_equal(pthread_join(stopping, NULL), 0);
    atomic_store(&s->calm, true);
    assert_true(eventually(is_drained, s, LONG_MS));
    (void)pthread_mutex_lock(&s->lock);
    atomic_store(&s->ends, true);
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < FINISHERS; i++)
        assert_int_equal(pthread_join(finishing[i], NULL), 0);
}

static void a_storm_leaves_what_was_acknowledged(void **state)
{
    const temp *t = *state;
    storm *s = create_storm();
    s->pool = open_pool(t, .executors = 6, .seed = s->seed, .store_timeout_ms = LONG_MS,
                        .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    for (int i = 0; i < KINDS; i++)
        assert_ok(pawl_register(s->pool, kinds[i], handle, s,
                                PAWL_HANDLER(.backoff_ms = backoff, .backoff_count = 2,
                                             .in_flight_max = i == 3 ? 2 : 0)));
    assert_ok(pawl_start(s->pool));
    run_storm(s);
    int64_t answered = judge_answers(s), found = judge_jobs(s);
    assert_int_equal(found, answered); /* I1, I2 */
    assert_ok(pawl_stop(s->pool, LONG_MS));
    assert_counters_are_right(t->path); /* I20 */
    assert_int_equal(look(t->path, "SELECT sum(enqueued) FROM pawl_lane"), answered);
    assert_ok(pawl_close(s->pool));
    assert_int_equal(atomic_load(&s->wrong), 0);
    free(s);
}

/* ---------------------------------------------------------------------- stopping under load */

typedef struct flood {
    pawl_pool *pool;
    _Atomic bool ends;
    _Atomic int64_t asked, answered;
} flood;

static void count_answer(pawl_status status, int64_t id, void *arg)
{
    flood *f = arg;
    (void)status;
    (void)id;
    (void)atomic_fetch_add(&f->answered, 1);
}

static void *pour(void *arg)
{
    flood *f = arg;
    while (!atomic_load(&f->ends))
        if (pawl_enqueue_async(f->pool, PAWL_JOB(.kind = "none"), count_answer, f) == PAWL_OK)
            (void)atomic_fetch_add(&f->asked, 1);
    return NULL;
}

/* I21: a stop ends although the channel never runs dry, and every call still gets its answer (I17). */
static void a_stop_ends_under_a_flood(void **state)
{
    const temp *t = *state;
    static flood f;
    pthread_t threads[2];
    f.pool = open_pool(t, .executors = 1, .command_max = 256, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    assert_ok(pawl_start(f.pool));
    for (int i = 0; i < 2; i++)
        start_thread(&threads[i], pour, &f);
    nap_ms(100);
    int64_t began = steady_ms();
    pawl_status st = pawl_stop(f.pool, LONG_MS);
    int64_t took = steady_ms() - began;
    atomic_store(&f.ends, true);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_ok(st);
    assert_in_range(took, 0, 5000);
    assert_ok(pawl_close(f.pool));
    assert_int_equal(atomic_load(&f.answered), atomic_load(&f.asked));
    assert_int_equal(sql_ask(t->path, "SELECT count(*) FROM pawl_job"), atomic_load(&f.asked));
    assert_counters_are_right(t->path);
}

/* ---------------------------------------------------------------------------------- order */

typedef struct order {
    _Atomic int started;
    int64_t ids[600];
} order;

static int note_order(pawl_job *job, void *arg)
{
    order *o = arg;
    o->ids[atomic_fetch_add(&o->started, 1)] = pawl_job_id(job);
    return PAWL_SUCCEEDED;
}

/* I14: over all lanes, priority first, then the id; one executor starts what is claimed in order. */
static void claims_follow_priority_and_id(void **state)
{
    const temp *t = *state;
    static order o;
    uint64_t seed = test_seed();
    int32_t priorities[601] = { 0 };
    atomic_store(&o.started, 0);
    pawl_pool *pool = open_pool(t, .executors = 1, .synchronous = PAWL_SYNCHRONOUS_NORMAL);
    for (int i = 0; i < KINDS; i++)
        assert_ok(pawl_register(pool, kinds[i], note_order, &o, NULL));
    for (int i = 0; i < 600; i++) {
        int32_t priority = (int32_t)(next_random(&seed) % 7) - 3;
        int64_t id = put(pool, .kind = kinds[next_random(&seed) % KINDS],
                         .queue = queues[next_random(&seed) % QUEUES], .priority = priority);
        priorities[id] = priority;
    }
    assert_ok(pawl_start(pool));
    assert_ok(pawl_wait_idle(pool, LONG_MS));
    assert_ok(pawl_close(pool));
    assert_int_equal(atomic_load(&o.started), 600);
    for (int i = 1; i < 600; i++) {
        int64_t before = o.ids[i - 1], after = o.ids[i];
        assert_true(priorities[before] > priorities[after]
                    || (before < after && priorities[before] == priorities[after]));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(claims_follow_priority_and_id, temp_setup, temp_teardown),
    cmocka_unit_test_setup_teardown(a_stop_ends_under_a_flood, temp_setup, temp_teardown),
    cmocka_unit_test_setup_teardown(a_storm_leaves_what_was_acknowledged, temp_setup, temp_teardown),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
