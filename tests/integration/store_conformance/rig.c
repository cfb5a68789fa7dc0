/* rig.c - see rig.h. One thread plays every part. */
#include "rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const store_kind *store_under_test;

/* ---------------------------------------------------------------------------- the pools */

static pawli_service *serve(void *arg, const char *queue, const char *kind)
{
    static const char *const kinds[SERVED] = { "a", "b", "two" };
    pool *p = arg;
    if (strcmp(queue, "elsewhere") == 0)
        return NULL;
    for (size_t i = 0; i < SERVED; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return &p->services[i];
    return NULL;
}

static void applying(void *arg, uint64_t fence)
{
    (void)arg;
    (void)fence;
}

static int64_t backoff(void *arg, const char *kind, uint32_t failure)
{
    (void)arg;
    (void)kind;
    return BACKOFF_MS * (int64_t)failure;
}

static void open_store(pool *p)
{
    const pawli_store_host host = { .options = &p->options, .log = &p->log, .names = p->names,
                                    .serve = serve, .backoff = backoff, .applying = applying, .arg = p };
    assert_ok(p->rig->kind->open(&host, &p->store));
}

static void join(pool *p)
{
    (void)snprintf(p->holder.name, sizeof p->holder.name, "%s", p->options.name);
    (void)snprintf(p->holder.side, sizeof p->holder.side, "%s.side", p->options.name);
    (void)snprintf(p->holder.boot, sizeof p->holder.boot, "boot-of-%s", p->options.name);
    p->holder.pid = 100;
    p->holder.started = 200;
    p->holder.pid_space = 300;
    assert_ok(p->store->ops->join(p->store, &p->holder, p->rig->now_ms));
    assert_true(p->holder.id > 0);
}

void pool_open(rig *r, pool *p, const char *name)
{
    const pawl_options given = { .struct_size = sizeof given,
                                 .store = r->temp->path,
                                 .name = name,
                                 .lease_ms = LEASE_MS,
                                 .synchronous = PAWL_SYNCHRONOUS_NORMAL,
                                 .keep_succeeded_ms = PAWL_FOREVER,
                                 .keep_failed_ms = PAWL_FOREVER,
                                 .seed = 1 };
    memset(p, 0, sizeof *p);
    p->rig = r;
    assert_ok(pawli_options_init(&p->options, &given));
    p->log = (pawli_log){ check_quiet, &p->log_lines, NULL };
    p->services[SERVE_TWO].in_flight_max = 2;
    p->names = pawli_names_create();
    assert_non_null(p->names);
    open_store(p);
    join(p);
}

static void free_spare(pool *p)
{
    while (p->spare != NULL) {
        pawl_job *job = p->spare;
        p->spare = job->after;
        free(job->claim.buffer);
        free(job);
    }
}

void pool_close(pool *p)
{
    if (p->store != NULL)
        p->store->ops->close(p->store);
    free_spare(p);
    pawli_names_release(p->names);
    pawli_options_fini(&p->options);
    memset(p, 0, sizeof *p);
}

void pool_reopen(pool *p)
{
    p->store->ops->close(p->store);
    p->store = NULL;
    open_store(p);
    join(p);
}

/* ------------------------------------------------------------------------------ the rig */

int rig_setup(void **state)
{
    const refusal *refused = *state;
    void *temporary;
    if (temp_setup(&temporary) != 0)
        return -1;
    rig *r = calloc(1, sizeof *r);
    if (r == NULL)
        return -1;
    r->temp = temporary;
    r->kind = store_under_test;
    r->refused = refused != NULL ? *refused : REFUSE_NOTHING;
    r->now_ms = INT64_C(1800000000000);
    r->boot_ms = 5000000;
    *state = r;
    (void)pawli_role_set(PAWLI_ROLE_WRITER);
    pool_open(r, &r->first, "first");
    return 0;
}

int rig_teardown(void **state)
{
    rig *r = *state;
    for (size_t i = 0; i < sizeof r->infos / sizeof r->infos[0]; i++)
        pawl_job_info_clear(&r->infos[i]);
    pool_close(&r->second);
    pool_close(&r->first);
    (void)pawli_role_set(PAWLI_ROLE_CALLER);
    void *temporary = r->temp;
    free(r);
    return temp_teardown(&temporary);
}

const char *rig_path(const rig *r)
{
    return r->temp->path;
}

void rig_advance(rig *r, int64_t ms)
{
    r->now_ms += ms;
    r->boot_ms += ms;
}

/* ------------------------------------------------------------------------------ batches */

static void add_blanks(pool *p, pawli_batch *batch)
{
    for (size_t i = 0; i < batch->claim_max; i++) {
        pawl_job *job = calloc(1, sizeof *job);
        assert_non_null(job);
        job->after = p->spare;
        p->spare = job;
        job->claim.next = batch->blanks;
        batch->blanks = &job->claim;
    }
}

static void keep_books(pawli_batch *batch)
{
    for (pawli_ending *e = batch->endings; e != NULL; e = e->next)
        if (e->job != NULL && e->job->in_hand
            && (e->status == PAWL_OK || e->status == PAWL_ERR_LEASE_LOST)) {
            e->job->in_hand = false;
            e->claim->service->in_flight--;
        }
    size_t count = 0;
    for (pawli_claim *claim = batch->claimed; claim != NULL; claim = claim->next) {
        pawli_job_of(claim)->in_hand = true;
        claim->service->in_flight++;
        count++;
    }
    assert_int_equal(count, batch->claimed_count);
    assert_true(count <= batch->claim_max);
}

pawl_status pool_try(pool *p, pawli_batch *batch)
{
    batch->now_ms = p->rig->now_ms;
    batch->boot_ms = p->rig->boot_ms;
    add_blanks(p, batch);
    assert_ok(p->store->ops->begin(p->store, 1000));
    pawl_status st = p->store->ops->write(p->store, batch);
    if (st == PAWL_OK)
        keep_books(batch);
    p->rig->kind->check_counters(p->rig->temp->path);
    return st;
}

void pool_write(pool *p, pawli_batch *batch)
{
    assert_ok(pool_try(p, batch));
}

void pool_idle(pool *p)
{
    pool_write(p, &(pawli_batch){ 0 });
}

void complete(pawli_new_job *jobs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (jobs[i].queue == NULL)
            jobs[i].queue = "q";
        if (jobs[i].kind == NULL)
            jobs[i].kind = "a";
        if (jobs[i].payload == NULL)
            jobs[i].payload = "";
        if (jobs[i].max_attempts == 0)
            jobs[i].max_attempts = MAX_ATTEMPTS;
    }
}

void pool_enqueue(pool *p, pawli_new_job *jobs, size_t count)
{
    complete(jobs, count);
    pawli_new_jobs group = { .jobs = jobs, .count = count };
    pawli_batch batch = { .enqueues = &group };
    pool_write(p, &batch);
    assert_ok(group.status);
}

int64_t pool_put(pool *p, pawli_new_job *job)
{
    pool_enqueue(p, job, 1);
    assert_false(job->exists);
    assert_true(job->id > 0);
    return job->id;
}

pawli_claim *pool_claim(pool *p, size_t most, size_t *count)
{
    pawli_batch batch = { .claim_max = most };
    pool_write(p, &batch);
    *count = batch.claimed_count;
    return batch.claimed;
}

pawli_claim *pool_claim_one(pool *p)
{
    size_t count;
    pawli_claim *claim = pool_claim(p, 1, &count);
    assert_int_equal(count, 1);
    return claim;
}

void assert_nothing_to_claim(pool *p)
{
    size_t count;
    (void)pool_claim(p, 1, &count);
    assert_int_equal(count, 0);
}

/* ------------------------------------------------------------------------------ endings */

pawli_ending ending_of(pawli_claim *claim, pawli_verdict verdict)
{
    return (pawli_ending){ .claim = claim, .job = pawli_job_of(claim), .verdict = verdict,
                           .fallback = retried(BACKOFF_MS) };
}

pawl_status pool_end(pool *p, pawli_claim *claim, pawli_verdict verdict)
{
    pawli_ending ending = ending_of(claim, verdict);
    pool_write(p, &(pawli_batch){ .endings = &ending });
    return ending.status;
}

pawli_verdict succeeded(void)
{
    return (pawli_verdict){ PAWL_SUCCEEDED, PAWL_STATE_SUCCEEDED, 0, true };
}

pawli_verdict failed(void)
{
    return (pawli_verdict){ PAWL_FAILED, PAWL_STATE_FAILED, 0, true };
}

pawli_verdict cancelled(void)
{
    return (pawli_verdict){ PAWL_CANCELLED, PAWL_STATE_CANCELLED, 0, true };
}

pawli_verdict released(void)
{
    return (pawli_verdict){ PAWL_RELEASED, PAWL_STATE_PENDING, 0, false };
}

pawli_verdict retried(int64_t delay_ms)
{
    return (pawli_verdict){ PAWL_RETRY, PAWL_STATE_PENDING, delay_ms, true };
}

pawli_verdict snoozed(int64_t delay_ms)
{
    return (pawli_verdict){ PAWL_SNOOZED, PAWL_STATE_PENDING, delay_ms, false };
}

/* --------------------------------------------------------------------------- operations */

pawl_status pool_operate(pool *p, pawli_operation_type type, int64_t id)
{
    pawl_status each = PAWL_ERR_UNKNOWN;
    pawli_operation operation = { .type = type, .ids = &id, .count = 1, .each = &each };
    pool_write(p, &(pawli_batch){ .operations = &operation });
    assert_ok(operation.status);
    return each;
}

void pool_switch(pool *p, pawli_operation_type type, const char *queue)
{
    pawli_operation operation = { .type = type, .queue = queue };
    pool_write(p, &(pawli_batch){ .operations = &operation });
    assert_ok(operation.status);
}

/* -------------------------------------------------------------------------------- looks */

const pawl_job_info *stored(pool *p, int64_t id)
{
    rig *r = p->rig;
    pawl_job_info *info = &r->infos[r->info_next++ % (sizeof r->infos / sizeof r->infos[0])];
    pawl_job_info_clear(info);
    assert_ok(p->store->ops->get(p->store, id, info));
    assert_int_equal(info->id, id);
    return info;
}

bool is_stored(pool *p, int64_t id)
{
    pawl_job_info info = PAWL_JOB_INFO_INIT;
    pawl_status st = p->store->ops->get(p->store, id, &info);
    if (st == PAWL_OK)
        pawl_job_info_clear(&info);
    assert_true(st == PAWL_OK || st == PAWL_ERR_NOT_FOUND);
    return st == PAWL_OK;
}

void check_stored(pool *p, int64_t id, pawl_state state, uint32_t attempts, const char *file, int line)
{
    const pawl_job_info *info = stored(p, id);
    if (info->state == state && info->attempts == attempts)
        return;
    print_error("job %" PRId64 " is %s with %u attempts, not %s with %u\n", id,
                pawl_state_name(info->state), info->attempts, pawl_state_name(state), attempts);
    _fail(file, line);
}

pawli_outlook outlook_of(pool *p)
{
    pawli_outlook out;
    memset(&out, 0xA5, sizeof out); /* every field is the store's to fill */
    p->store->ops->outlook(p->store, &out);
    return out;
}
