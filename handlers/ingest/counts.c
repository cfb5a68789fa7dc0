/* counts.c - where the jobs of our kind stand, summed over the queues that hold some. */
#include "counts.h"
#include "file_job.h"

#include <string.h>

/* The library may know a longer struct than this program does, so its own size is the stride. */
static const pawl_lane_stats *lane_at(const pawl_stats_info *stats, size_t index)
{
    const char *first = (const char *)stats->lanes;
    return (const void *)(first + index * stats->lanes[0].struct_size);
}

static void add(struct counts *counts, const pawl_lane_stats *lane)
{
    counts->waiting += lane->pending_due + lane->pending_later;
    counts->running += lane->running;
    counts->succeeded += lane->succeeded;
    counts->failed += lane->failed;
    counts->cancelled += lane->cancelled;
    counts->paused = counts->paused || (lane->paused && lane->pending_due > 0);
}

bool counts_read(pawl_pool *pool, struct counts *counts)
{
    pawl_stats_info stats = { .struct_size = sizeof stats };
    if (pawl_stats(pool, &stats) != PAWL_OK)
        return false;
    *counts = (struct counts){ 0 };
    for (size_t i = 0; i < stats.lane_count; i++) {
        const pawl_lane_stats *lane = lane_at(&stats, i);
        if (strcmp(lane->kind, FILE_JOB_KIND) == 0)
            add(counts, lane);
    }
    pawl_stats_info_clear(&stats);
    return true;
}

int64_t counts_left(const struct counts *counts)
{
    return counts->waiting + counts->running;
}

int64_t counts_ended(const struct counts *counts)
{
    return counts->succeeded + counts->failed + counts->cancelled;
}
