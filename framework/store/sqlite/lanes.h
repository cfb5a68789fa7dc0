/* lanes.h - the lanes, (queue, kind) pairs, with their counters: a cache that knows what changed. */
#ifndef PAWLI_SQLITE_LANES_H
#define PAWLI_SQLITE_LANES_H

#include "../store.h"

struct pawli_sqlite;

/* The counters in the order of pawl_lane's columns. */
typedef enum pawli_count {
    PAWLI_COUNT_READY,
    PAWLI_COUNT_LATER,
    PAWLI_COUNT_RUNNING,
    PAWLI_COUNT_SUCCEEDED,
    PAWLI_COUNT_FAILED,
    PAWLI_COUNT_CANCELLED,
    PAWLI_COUNT_BLOCKED,
    PAWLI_COUNT_ENQUEUED,
    PAWLI_COUNT_PRUNED,
    PAWLI_COUNTS
} pawli_count;

typedef struct pawli_lane {
    int64_t id;      /* 0: not stored yet, or any more */
    int64_t kind_id;
    const char *queue, *kind;
    bool service_known;
    pawli_service *service; /* NULL: not served here */
    bool paused;
    int64_t counts[PAWLI_COUNTS]; /* as of this transaction */
    int64_t deltas[PAWLI_COUNTS]; /* of it that are not written yet */
    bool dirty;
    char *error; /* to become last_error; NULL: none */
    struct pawli_lane *next_dirty, *next_by_name, *next_by_id, *next;
} pawli_lane;

#define PAWLI_LANE_BUCKETS 1024

typedef struct pawli_lanes {
    pawli_lane *all, *dirty, *last;
    pawli_lane *by_name[PAWLI_LANE_BUCKETS];
    pawli_lane *by_id[PAWLI_LANE_BUCKETS];
} pawli_lanes;

/* SQLite result codes. */
int pawli_lanes_load(struct pawli_sqlite *s);
int pawli_lane_find(struct pawli_sqlite *s, const char *queue, const char *kind, pawli_lane **out);
pawli_lane *pawli_lane_by_id(struct pawli_sqlite *s, int64_t id); /* NULL: unknown */
/* Which of the counters a stored status belongs to. */
pawli_count pawli_count_of(int status);
void pawli_lane_count(struct pawli_sqlite *s, pawli_lane *lane, pawli_count count, int64_t delta);
void pawli_lane_move(struct pawli_sqlite *s, pawli_lane *lane, int from_status, int to_status);
void pawli_lane_error(struct pawli_sqlite *s, pawli_lane *lane, const char *error, size_t bytes);
int pawli_lanes_flush(struct pawli_sqlite *s, int64_t now_ms);
void pawli_lanes_forget(struct pawli_sqlite *s); /* after a rollback: load again before use */
pawli_service *pawli_lane_service(struct pawli_sqlite *s, pawli_lane *lane); /* NULL: no claims */
int64_t pawli_lanes_total(const struct pawli_sqlite *s, pawli_count count);
void pawli_lanes_unserve(struct pawli_sqlite *s);
void pawli_lanes_fini(struct pawli_sqlite *s);

#endif
