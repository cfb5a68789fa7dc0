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

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
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

/* ------------------------------------------------------------------------------ arguments */

static void usage(FILE *out)
{
    fprintf(out, "Usage: pawl-bench [OPTION...]\n\n"
                 "Measures pawl on this machine, in a temporary directory.\n\n"
                 "  --quick        fewer jobs, fewer rounds\n"
                 "  --normal       synchronous NORMAL instead of FULL\n"
                 "  --dir DIR      where the database lies (default: TMPDIR or /tmp)\n"
                 "  --help         this help\n");
}

static bool read_options(int argc, char **argv, bool *quick, bench *b, const char **dir)
{
    static const struct option options[] = { { "quick", no_argument, NULL, 'q' },
                                             { "normal", no_argument, NULL, 'n' },
                                             { "dir", required_argument, NULL, 'd' },
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
        case 'h': usage(stdout); exit(0);
        default: return false;
        }
    return optind == argc;
}

int main(int argc, char **argv)
{
    bool quick = false;
    const char *dir = getenv("TMPDIR");
    bench b = { .synchronous = PAWL_SYNCHRONOUS_FULL, .durability = "FULL" };
    if (!read_options(argc, argv, &quick, &b, &dir)) {
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
    compare_steady(&b, rounds);
    compare_drain(&b, rounds, quick ? 2000 : 100000, quick ? 20000 : 1000000);
    show_idle(&b, quick ? 2 : 15);
    bench_fresh(&b);
    (void)rmdir(folder);
    return 0;
}
