/* rig.h - a store under test, and stand-ins for the pools that drive it.
 *
 * The suite talks to the store through its seam alone (store/store.h). What it must do behind the store's
 * back, as an application or a saboteur, is in the table `store_kind`: another store brings its own. */
#ifndef TESTS_STORE_RIG_H
#define TESTS_STORE_RIG_H

#include "check.h"
#include "clock.h"
#include "job.h"
#include "role.h"
#include "status.h"
#include "store/store.h"

/* What can be made to fail, each for the poisoned jobs only: those of priority POISON. */
typedef enum refusal {
    REFUSE_NOTHING,
    REFUSE_ENQUEUE,
    REFUSE_CLAIM,
    REFUSE_ENDING,
    REFUSE_HEARTBEAT,
    REFUSE_CANCEL,
    REFUSE_PROMOTION,
    REFUSE_PRUNING
} refusal;
#define POISON 666

typedef struct store_kind {
    const char *name;
    pawl_status (*open)(const pawli_store_host *host, pawli_store **out);
    /* Fails the test unless the kept counters equal a recount of the jobs, and nothing is lost (I20). */
    void (*check_counters)(const char *path);
    /* From now on the database refuses this. */
    void (*refuse)(const char *path, refusal what);
    /* The ended claims of a job, oldest first: "retry, released-" (a minus: uncharged). */
    const char *(*attempts)(const char *path, int64_t job);
    /* The application's own table, which takes numbers from 0 on: its making, a write inside an
     * on_success function, and whether a number stands in it. */
    void (*create_effects)(const char *path);
    pawl_status (*write_effect)(void *db, int64_t number);
    bool (*has_effect)(const char *path, int64_t number);
} store_kind;

typedef struct suite {
    const char *name;
    const struct CMUnitTest *tests;
    size_t count;
} suite;
#define SUITE(tests_name, shown) { shown, (tests_name), sizeof(tests_name) / sizeof((tests_name)[0]) }

/* Kinds that the pools serve; any other, and the queue "elsewhere", they do not. "two" may run twice. */
enum { SERVE_A, SERVE_B, SERVE_TWO, SERVED };

struct rig;

/* A pool as the store sees it. */
typedef struct pool {
    struct rig *rig;
    pawli_options options;
    pawli_log log;
    pawli_names *names;
    pawli_store *store; /* NULL: not open */
    pawli_holder holder;
    pawli_service services[SERVED];
    pawl_job *spare; /* blanks, linked by `after` */
    int log_lines;
} pool;

typedef struct rig {
    temp *temp;
    const store_kind *kind;
    refusal refused; /* of a test that is run for each of them */
    int64_t now_ms, boot_ms;
    pool first, second;
    pawl_job_info infos[16];
    unsigned info_next;
} rig;

#define LEASE_MS 60000
#define MAX_ATTEMPTS 3 /* of jobs that say nothing else */
#define BACKOFF_MS 1000 /* times the number of the failure: what a pool answers a store that asks */
#define EFFECT_FAILS (-1) /* a number that the application's table does not take */

/* For cmocka; the state is a rig whose first pool is open and has joined. */
int rig_setup(void **state);
int rig_teardown(void **state);
#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
/* Which store the rigs are to be built on. */
extern const store_kind *store_under_test;

const char *rig_path(const rig *r);
void rig_advance(rig *r, int64_t ms);

void pool_open(rig *r, pool *p, const char *name);
void pool_close(pool *p);
void pool_reopen(pool *p); /* and joins again, as a new holder */

/* Begins, writes, and keeps the books of what is in flight. The counters are compared with a recount. */
pawl_status pool_try(pool *p, pawli_batch *batch);
void pool_write(pool *p, pawli_batch *batch);
void pool_idle(pool *p); /* an empty batch: what the clock has to say is done */

/* One group, in a batch of its own, without claims. What is left out: queue "q", kind "a", no payload,
 * MAX_ATTEMPTS. */
void pool_enqueue(pool *p, pawli_new_job *jobs, size_t count);
#define put_job(p, ...) pool_put(p, &(pawli_new_job){ __VA_ARGS__ })
int64_t pool_put(pool *p, pawli_new_job *job);
void complete(pawli_new_job *jobs, size_t count);

/* Claims up to `most` jobs; they are linked in the order of the claims. */
pawli_claim *pool_claim(pool *p, size_t most, size_t *count);
pawli_claim *pool_claim_one(pool *p); /* the next one; there must be one */
void assert_nothing_to_claim(pool *p);

/* Ends a claim in a batch of its own. */
pawl_status pool_end(pool *p, pawli_claim *claim, pawli_verdict verdict);
pawli_ending ending_of(pawli_claim *claim, pawli_verdict verdict);
pawli_verdict succeeded(void);
pawli_verdict failed(void);
pawli_verdict cancelled(void);
pawli_verdict released(void);
pawli_verdict retried(int64_t delay_ms);
pawli_verdict snoozed(int64_t delay_ms);

/* Cancels or requeues one job in a batch of its own; the job's answer. */
pawl_status pool_operate(pool *p, pawli_operation_type type, int64_t id);
void pool_switch(pool *p, pawli_operation_type type, const char *queue);

/* A job as it is stored; valid until the 16th next call. It must exist. */
const pawl_job_info *stored(pool *p, int64_t id);
bool is_stored(pool *p, int64_t id);
#define assert_stored(p, id, state, attempts)                                                      \
    check_stored((p), (id), (state), (attempts), __FILE__, __LINE__)
void check_stored(pool *p, int64_t id, pawl_state state, uint32_t attempts, const char *file, int line);
pawli_outlook outlook_of(pool *p);

extern const suite suite_enqueue, suite_claim, suite_finalize, suite_operate, suite_rescue,
    suite_effect, suite_refusal, suite_prune, suite_read, suite_sqlite;
extern const store_kind store_sqlite;

#endif
