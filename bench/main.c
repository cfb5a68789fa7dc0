/* main.c - pawl-bench: runs the scenarios and prints each figure beside what it is compared with.
 *
 * Every figure is measured in this run, and compared with a figure of this run; medians of several
 * rounds, in turn, because machines drift. The durability is named. */
#include "bench.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS_MAX 25

/* ------------------------------------------------------------------------------ the table */

static double median(double *values, int count)
{
    bench_sort(values, count);
    return values[count / 2];
}

static void print_ratio(const char *name, double value, const char *against, double other)
{
    printf("%-38s %10.0f jobs/s   %5.2f × %s (%.0f)\n", name, value, value / other, against, other);
    (void)fflush(stdout);
}

static void compare_steady(const bench *b, int rounds)
{
    double floor[ROUNDS_MAX], steady[ROUNDS_MAX];
    for (int i = 0; i < rounds; i++) {
        floor[i] = bench_floor(b, 512);
        steady[i] = bench_steady(b);
    }
    print_ratio("steady, one async producer", median(steady, rounds), "three-write floor, batch 512",
                median(floor, rounds));
}

static void compare_drain(const bench *b, int rounds, int64_t small, int64_t large)
{
    double few[ROUNDS_MAX], many[ROUNDS_MAX];
    char name[64];
    for (int i = 0; i < rounds; i++) {
        few[i] = bench_drain(b, small);
        many[i] = bench_drain(b, large);
    }
    (void)snprintf(name, sizeof name, "drain, %lld waiting", (long long)large);
    char against[64];
    (void)snprintf(against, sizeof against, "%lld waiting", (long long)small);
    print_ratio(name, median(many, rounds), against, median(few, rounds));
}

static void show_idle(const bench *b, int seconds)
{
    double wakeups;
    long long bytes;
    bench_idle(b, seconds, &wakeups, &bytes);
    printf("%-38s %10.1f wake-ups/s, %lld bytes written in %d s\n", "idle", wakeups, bytes, seconds);
}

/* Each round's figures beside that round's one process; the spread beside the median, in brackets. A least share
 * of 1 is a fair one. */
static void compare_processes(const bench *b, int rounds, bool waits, int seconds)
{
    static const int processes[] = { 1, 2, 4 };
    double total[3][ROUNDS_MAX], ratio[3][ROUNDS_MAX], least[3][ROUNDS_MAX], longest[3][ROUNDS_MAX];
    for (int i = 0; i < rounds; i++)
        for (int k = 0; k < 3; k++) {
            bench_shares shares = bench_processes(b, processes[k], waits, seconds);
            total[k][i] = shares.total;
            ratio[k][i] = shares.total / total[0][i];
            least[k][i] = shares.least;
            longest[k][i] = shares.longest;
        }
    for (int k = 0; k < 3; k++) {
        char name[64];
        double all = median(total[k], rounds), times = median(ratio[k], rounds), share = median(least[k], rounds);
        (void)snprintf(name, sizeof name, "%d %s, each %s", processes[k], k == 0 ? "process" : "processes",
                       waits ? "awaits each answer" : "works and enqueues");
        printf("%-38s %10.0f jobs/s", name, all);
        if (k > 0)
            printf("   %5.2f × one (%.2f to %.2f), least share %.2f (%.2f to %.2f)", times, ratio[k][0],
                   ratio[k][rounds - 1], share, least[k][0], least[k][rounds - 1]);
        if (waits)
            printf("   longest answer %.0f ms", 1e3 * median(longest[k], rounds));
        printf("\n");
    }
    (void)fflush(stdout);
}

static void show_wakeup(const bench *b, int count)
{
    static const char *const names[] = { "wake-up by another process's pool", "wake-up by a connection" };
    for (int by_connection = 0; by_connection < 2; by_connection++) {
        double p50, p99;
        bench_wakeup(b, by_connection, count, &p50, &p99);
        printf("%-38s %10.2f ms p50, %.2f ms p99, of %d\n", names[by_connection], p50 * 1e3, p99 * 1e3, count);
        (void)fflush(stdout);
    }
}

/* ------------------------------------------------------------------------------ arguments */

static void usage(FILE *out)
{
    fprintf(out, "Usage: pawl-bench [OPTION...]\n\n"
                 "Measures pawl on this machine, in a temporary directory.\n\n"
                 "  --quick        fewer jobs, fewer rounds\n"
                 "  --only NAME    one scenario: steady, drain, processes, wakeup, idle\n"
                 "  --normal       synchronous NORMAL instead of FULL\n"
                 "  --dir DIR      where the database lies (default: TMPDIR or /tmp)\n"
                 "  --help         this help\n");
}

static bool read_options(int argc, char **argv, bool *quick, bench *b, const char **dir, const char **only)
{
    static const struct option options[] = { { "quick", no_argument, NULL, 'q' },
                                             { "normal", no_argument, NULL, 'n' },
                                             { "dir", required_argument, NULL, 'd' },
                                             { "only", required_argument, NULL, 'o' },
                                             { "help", no_argument, NULL, 'h' },
                                             { NULL, 0, NULL, 0 } };
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (option) {
        case 'q': *quick = true; break;
        case 'n':
            b->synchronous = PAWL_SYNCHRONOUS_NORMAL;
            b->durability = "NORMAL";
            break;
        case 'd': *dir = optarg; break;
        case 'o': *only = optarg; break;
        case 'h': usage(stdout); exit(0);
        default: return false;
        }
    return optind == argc;
}

static bool wants(const char *only, const char *name)
{
    return only == NULL || strcmp(only, name) == 0;
}

static void run_scenarios(const bench *b, bool quick, int rounds, const char *only)
{
    if (wants(only, "steady"))
        compare_steady(b, rounds);
    if (wants(only, "drain"))
        compare_drain(b, rounds, quick ? 2000 : 100000, quick ? 20000 : 1000000);
    if (wants(only, "processes")) {
        compare_processes(b, rounds, false, quick ? 1 : 4);
        compare_processes(b, rounds, true, quick ? 1 : 4);
    }
    if (wants(only, "wakeup"))
        show_wakeup(b, quick ? 20 : 300);
    if (wants(only, "idle"))
        show_idle(b, quick ? 2 : 15);
}

int main(int argc, char **argv)
{
    bool quick = false;
    const char *dir = getenv("TMPDIR"), *only = NULL;
    bench b = { .synchronous = PAWL_SYNCHRONOUS_FULL, .durability = "FULL" };
    if (!read_options(argc, argv, &quick, &b, &dir, &only)) {
        usage(stderr);
        return 2;
    }
    char folder[4000];
    (void)snprintf(folder, sizeof folder, "%s/pawl-bench-XXXXXX", dir != NULL ? dir : "/tmp");
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return 1;
    }
    (void)snprintf(b.path, sizeof b.path, "%s/jobs.db", folder);
    b.jobs = quick ? 20000 : 200000;
    int rounds = quick ? 1 : 5;
    printf("pawl %s, synchronous=%s, payload %d bytes, no-op handler, median of %d\n\n", pawl_version(),
           b.durability, BENCH_PAYLOAD_BYTES, rounds);
    run_scenarios(&b, quick, rounds, only);
    bench_fresh(&b);
    (void)rmdir(folder);
    return 0;
}
