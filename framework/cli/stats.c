/* stats.c - pawl stats: how many jobs are where, for each lane (queue and kind), and in all. */
#include "database.h"
#include "json.h"
#include "message.h"
#include "table.h"
#include "values.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* What needs attention stands first: on a narrow terminal the end is cut. */
static const cli_column columns[] = {
    { .title = "QUEUE", .is_elastic = true },
    { .title = "KIND", .is_elastic = true },
    { .title = "DUE", .is_number = true },
    { .title = "OLDEST", .is_number = true },
    { .title = "LATER", .is_number = true },
    { .title = "RUNNING", .is_number = true },
    { .title = "EXPIRED", .is_number = true },
    { .title = "FAILED", .is_number = true },
    { .title = "SUCCEEDED", .is_number = true },
    { .title = "CANCELLED", .is_number = true },
    { .title = "NOTE" }, /* from here on left out where there is nothing to say */
    { .title = "LAST ERROR", .is_elastic = true },
};
enum { WITH_ERROR = sizeof columns / sizeof *columns, WITH_NOTE = WITH_ERROR - 1 };

/* A lane of the library; their stride is the library's, which may be newer than this command. */
static const pawl_lane_stats *lane_at(const pawl_stats_info *stats, size_t index)
{
    const char *lanes = (const char *)stats->lanes;
    return (const void *)(lanes + index * stats->lanes[0].struct_size);
}

static void add_lane(pawl_lane_stats *total, const pawl_lane_stats *lane)
{
    total->pending_due += lane->pending_due;
    total->pending_later += lane->pending_later;
    total->running += lane->running;
    total->succeeded += lane->succeeded;
    total->failed += lane->failed;
    total->cancelled += lane->cancelled;
    total->blocked += lane->blocked;
    total->enqueued += lane->enqueued;
    total->pruned += lane->pruned;
    total->expired += lane->expired;
    if (lane->oldest_due_age_ms > total->oldest_due_age_ms)
        total->oldest_due_age_ms = lane->oldest_due_age_ms;
}

static void add_count(cli_table *table, int64_t count, cli_style style)
{
    cli_table_format(table, count == 0 ? CLI_DIM : style, "%" PRId64, count);
}

static void add_age(cli_table *table, const pawl_lane_stats *lane)
{
    char age[CLI_DURATION_SIZE] = "-";
    if (lane->pending_due > 0)
        cli_duration_format(lane->oldest_due_age_ms, age);
    cli_table_text(table, CLI_PLAIN, age);
}

static size_t columns_wanted(const pawl_stats_info *stats)
{
    size_t wanted = WITH_NOTE - 1;
    for (size_t i = 0; i < stats->lane_count; i++) {
        const pawl_lane_stats *lane = lane_at(stats, i);
        if (lane->last_error != NULL)
            return WITH_ERROR;
        if (lane->paused)
            wanted = WITH_NOTE;
    }
    return wanted;
}

static void add_row(cli_table *table, const pawl_lane_stats *lane)
{
    cli_table_text(table, CLI_PLAIN, lane->queue);
    cli_table_text(table, CLI_PLAIN, lane->kind);
    add_count(table, lane->pending_due, CLI_PLAIN);
    add_age(table, lane);
    add_count(table, lane->pending_later, CLI_PLAIN);
    add_count(table, lane->running, CLI_CYAN);
    add_count(table, lane->expired, CLI_YELLOW);
    add_count(table, lane->failed, CLI_RED);
    add_count(table, lane->succeeded, CLI_GREEN);
    add_count(table, lane->cancelled, CLI_PLAIN);
    if (table->column_count >= WITH_NOTE)
        cli_table_text(table, CLI_YELLOW, lane->paused ? "paused" : "");
    if (table->column_count >= WITH_ERROR)
        cli_table_text(table, CLI_PLAIN, lane->last_error);
}

static void print_table(const pawl_stats_info *stats, pawl_lane_stats *total)
{
    cli_table table;
    cli_table_init(&table, columns, columns_wanted(stats));
    for (size_t i = 0; i < stats->lane_count; i++)
        add_row(&table, lane_at(stats, i));
    total->queue = "total";
    total->kind = "";
    if (stats->lane_count > 1)
        add_row(&table, total);
    cli_table_fini(&table);
    if (stats->lane_count == 0 && isatty(STDERR_FILENO))
        fputs("No jobs yet.\n", stderr);
}

static json_t *counts_json(const pawl_lane_stats *lane)
{
    json_t *object = cli_json_object();
    if (lane->queue != NULL) {
        cli_json_set_text(object, "queue", lane->queue);
        cli_json_set_text(object, "kind", lane->kind);
        cli_json_set(object, "paused", json_boolean(lane->paused));
    }
    cli_json_set_number(object, "pending_due", lane->pending_due);
    cli_json_set_number(object, "pending_later", lane->pending_later);
    cli_json_set_number(object, "running", lane->running);
    cli_json_set_number(object, "succeeded", lane->succeeded);
    cli_json_set_number(object, "failed", lane->failed);
    cli_json_set_number(object, "cancelled", lane->cancelled);
    cli_json_set_number(object, "blocked", lane->blocked);
    cli_json_set_number(object, "enqueued", lane->enqueued);
    cli_json_set_number(object, "pruned", lane->pruned);
    cli_json_set_number(object, "expired", lane->expired);
    cli_json_set_number(object, "oldest_due_age_ms", lane->oldest_due_age_ms);
    return object;
}

static json_t *lane_json(const pawl_lane_stats *lane)
{
    json_t *object = counts_json(lane);
    cli_json_set_text(object, "last_error", lane->last_error);
    cli_json_set_time(object, "last_error_at_ms", lane->last_error_at_ms);
    return object;
}

static void print_json(const pawl_stats_info *stats, const pawl_lane_stats *total)
{
    json_t *object = cli_json_object();
    json_t *lanes = json_array();
    for (size_t i = 0; i < stats->lane_count; i++)
        if (json_array_append_new(lanes, lane_json(lane_at(stats, i))) != 0)
            cli_out_of_memory();
    cli_json_set(object, "lanes", lanes);
    cli_json_set(object, "total", counts_json(total));
    cli_json_print(object, CLI_JSON_INDENTED);
}

static int print_stats(cli_arguments *arguments, pawl_pool *pool, bool json)
{
    pawl_stats_info stats = { .struct_size = sizeof stats };
    if (pawl_stats(pool, &stats) != PAWL_OK)
        return cli_database_problem(arguments);
    pawl_lane_stats total = { .struct_size = sizeof total };
    for (size_t i = 0; i < stats.lane_count; i++)
        add_lane(&total, lane_at(&stats, i));
    if (json)
        print_json(&stats, &total);
    else
        print_table(&stats, &total);
    pawl_stats_info_clear(&stats);
    return CLI_EXIT_OK;
}

static bool take(cli_arguments *arguments, int option, void *json)
{
    (void)arguments;
    (void)option;
    *(bool *)json = true;
    return true;
}

static int run(cli_arguments *arguments)
{
    bool json = false;
    if (!cli_arguments_parse(arguments, take, &json, 1, 1))
        return arguments->exit_status;
    pawl_pool *pool = cli_database_open(arguments, PAWL_OPEN_READ_ONLY);
    if (pool == NULL)
        return CLI_EXIT_PROBLEM;
    int exit_status = print_stats(arguments, pool, json);
    (void)pawl_close(pool);
    return exit_status;
}

static const cli_option options[] = {
    { CLI_OPTION_JSON, "json", NULL, "print one JSON object: lanes (an array) and total" },
    { 0 },
};

const cli_verb cli_verb_stats = {
    .name = "stats",
    .summary = "Counts the jobs of each lane (queue and kind) and in all",
    .synopsis = "FILE [OPTION...]",
    .details = "DUE may run now, LATER waits for its time or its next attempt. OLDEST is for how\n"
               "long the job that would run first has been due. EXPIRED are running jobs past\n"
               "their lease.\n"
               "The JSON has more: blocked, enqueued and pruned (ever), last_error_at_ms.\n",
    .options = options,
    .run = run,
};
