/* queue_switch.c - what pause and resume have in common.
 *
 * A queue may be paused before its first job arrives, so an unknown name is no error; but a slip of
 * the pen must not pass in silence while the queue that was meant runs on. */
#include "queue_switch.h"

#include "database.h"
#include "message.h"

#include <string.h>

static bool has_lane(const pawl_stats_info *stats, const char *queue)
{
    const char *lane = (const char *)stats->lanes;
    for (size_t i = 0; i < stats->lane_count; i++) {
        const pawl_lane_stats *counts = (const void *)lane;
        if (strcmp(counts->queue, queue) == 0)
            return true;
        lane += stats->lanes[0].struct_size;
    }
    return false;
}

static int switch_queues(cli_arguments *arguments, pawl_pool *pool, cli_switch_fn change)
{
    pawl_stats_info stats = { .struct_size = sizeof stats };
    if (pawl_stats(pool, &stats) != PAWL_OK)
        return cli_database_problem(arguments);
    int exit_status = CLI_EXIT_OK;
    for (int i = 1; i < arguments->operand_count; i++) {
        const char *queue = arguments->operands[i];
        if (change(pool, queue) != PAWL_OK)
            exit_status = cli_database_problem(arguments);
        else if (!has_lane(&stats, queue))
            cli_problem(arguments->verb->name, "done, but queue '%s' has never had a job", queue);
    }
    pawl_stats_info_clear(&stats);
    return exit_status;
}

/* All of them before the first change. */
static bool check_names(cli_arguments *arguments)
{
    for (int i = 1; i < arguments->operand_count; i++)
        if (*arguments->operands[i] == '\0')
            return cli_usage_error(arguments, "the name of a queue is empty");
    return true;
}

int cli_queue_switch_run(cli_arguments *arguments, cli_switch_fn change)
{
    if (!cli_arguments_parse(arguments, NULL, NULL, 2, -1) || !check_names(arguments))
        return arguments->exit_status;
    pawl_pool *pool = cli_database_open(arguments, PAWL_OPEN_EXISTING);
    if (pool == NULL)
        return CLI_EXIT_PROBLEM;
    int exit_status = switch_queues(arguments, pool, change);
    (void)pawl_close(pool);
    return exit_status;
}
