/* cpus_test.c - CPUs by the quotas of control groups, from the texts of the files that tell them (G5). */
#include "cpus.h"

#include <errno.h>
#include <sched.h>

#include <string.h>

#include "check.h"

#define V2 "41 31 0:38 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1 "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
#define V1_SET "35 31 0:32 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
#define HYBRID "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"

typedef struct file {
    const char *path;
    const char *text;
} file;

static char *read_from_table(const char *path, void *arg)
{
    for (const file *f = arg; f->path != NULL; f++)
        if (strcmp(f->path, path) == 0)
            return strdup(f->text);
    return NULL;
}

static uint32_t cpus(const file *files)
{
    return pawli_cpus_by_quota(read_from_table, (void *)(uintptr_t)files);
}

#define assert_cpus(expected, ...)                                                                 \
    assert_int_equal(cpus((const file[]){ __VA_ARGS__, { NULL, NULL } }), (expected))
#define GROUP(text) { "/proc/self/cgroup", text }
#define MOUNTS(text) { "/proc/self/mountinfo", text }
#define NO_LIMIT UINT32_MAX

/* Goal: the quota of the process's own group counts, rounded up; "max" and an absent file are no limit. */
static void version_2_is_read_from_the_own_group(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        uint32_t cpus;
    } quotas[] = { { "100000 100000\n", 1 }, { "150000 100000\n", 2 }, { "1000 100000\n", 1 },
                   { "400000 50000\n", 8 },  { "max 100000\n", NO_LIMIT }, { "", NO_LIMIT },
                   { "0 100000\n", NO_LIMIT }, { "-1 100000\n", NO_LIMIT }, { "100000 0\n", NO_LIMIT },
                   { "9223372036854775807 1\n", NO_LIMIT } };
    for (size_t i = 0; i < sizeof quotas / sizeof quotas[0]; i++)
        assert_cpus(quotas[i].cpus, GROUP("0::/user.slice/app\n"), MOUNTS(V2),
                    { "/sys/fs/cgroup/user.slice/app/cpu.max", quotas[i].text });
    assert_cpus(NO_LIMIT, GROUP("0::/user.slice/app\n"), MOUNTS(V2));
    assert_cpus(3, GROUP("0::/\n"), MOUNTS(V2), { "/sys/fs/cgroup/cpu.max", "250000 100000" });
}

/* Goal: every group above counts as well, and the smallest wins; a neighbour's does not count. */
static void the_smallest_on_the_way_up_wins(void **unused)
{
    (void)unused;
    static const char *const directories[] = { "/sys/fs/cgroup/a/b/c/cpu.max", "/sys/fs/cgroup/a/b/cpu.max",
                                               "/sys/fs/cgroup/a/cpu.max", "/sys/fs/cgroup/cpu.max" };
    for (size_t small = 0; small < 4; small++) {
        const char *texts[4] = { "700000 100000", "max 100000", "800000 100000", "900000 100000" };
        texts[small] = "200000 100000";
        assert_cpus(2, GROUP("0::/a/b/c\n"), MOUNTS(V2), { directories[0], texts[0] },
                    { directories[1], texts[1] }, { directories[2], texts[2] },
                    { directories[3], texts[3] });
    }
    assert_cpus(NO_LIMIT, GROUP("0::/a/b\n"), MOUNTS(V2), { "/sys/fs/cgroup/a/c/cpu.max", "1 1" },
                { "/sys/fs/cgroup/a/b/c/cpu.max", "1 1" }, { "/sys/fs/cpu.max", "1 1" });
}

/* Goal: version 1 names the controller, alone or with others, and its period has a file of its own. */
static void version_1_is_found_by_its_controller(void **unused)
{
    (void)unused;
    static const char *const lines[] = { "4:cpu,cpuacct:/g\n", "9:cpuset:/other\n1:cpu:/g\n",
                                         "9:cpuset:/other\n4:cpuacct,cpu:/g\n0::/\n" };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_cpus(4, GROUP(lines[i]), MOUNTS(V1_SET V1),
                    { "/sys/fs/cgroup/cpu/g/cpu.cfs_quota_us", "200000\n" },
                    { "/sys/fs/cgroup/cpu/g/cpu.cfs_period_us", "50000\n" });
        assert_cpus(NO_LIMIT, GROUP(lines[i]), MOUNTS(V1_SET V1),
                    { "/sys/fs/cgroup/cpu/g/cpu.cfs_quota_us", "-1\n" },
                    { "/sys/fs/cgroup/cpu/g/cpu.cfs_period_us", "100000\n" });
        assert_cpus(2, GROUP(lines[i]), MOUNTS(V1_SET V1),
                    { "/sys/fs/cgroup/cpu/g/cpu.cfs_quota_us", "-1\n" },
                    { "/sys/fs/cgroup/cpu/g/cpu.cfs_period_us", "100000\n" },
                    { "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n" },
                    { "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n" });
    }
}

/* Goal: where both versions are mounted, both count. */
static void both_versions_count(void **unused)
{
    (void)unused;
    for (int smaller = 1; smaller <= 2; smaller++)
        assert_cpus(1, GROUP("1:cpu:/g\n0::/h\n"), MOUNTS(HYBRID V1),
                    { "/sys/fs/cgroup/cpu/g/cpu.cfs_quota_us", smaller == 1 ? "100000" : "500000" },
                    { "/sys/fs/cgroup/cpu/g/cpu.cfs_period_us", "100000\n" },
                    { "/sys/fs/cgroup/unified/h/cpu.max", smaller == 2 ? "90000 100000" : "max 100000" });
}

/* Goal: in a container the mount shows a part of the tree, and the path may lie outside of it. */
static void a_part_of_the_tree_is_enough(void **unused)
{
    (void)unused;
    static const char part[] = "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
    const file quota = { "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000" };
    const file period = { "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000" };
    const file below = { "/sys/fs/cgroup/cpu/in/cpu.cfs_quota_us", "200000" };
    const file below_period = { "/sys/fs/cgroup/cpu/in/cpu.cfs_period_us", "100000" };
    assert_cpus(3, GROUP("1:cpu:/docker/abc\n"), MOUNTS(part), quota, period, below, below_period);
    assert_cpus(2, GROUP("1:cpu:/docker/abc/in\n"), MOUNTS(part), quota, period, below, below_period);
    assert_cpus(3, GROUP("1:cpu:/docker/abcd\n"), MOUNTS(part), quota, period, below, below_period);
    assert_cpus(3, GROUP("1:cpu:/../elsewhere\n"), MOUNTS(part), quota, period, below, below_period);
    assert_cpus(3, GROUP("0::/../../up\n"), MOUNTS(V2), { "/sys/fs/cgroup/cpu.max", "300000 100000" });
}

/* Goal: what cannot be read or understood is no limit, and breaks nothing. */
static void nonsense_is_no_limit(void **unused)
{
    (void)unused;
    char path[3000] = "0::/";
    memset(path + 4, 'x', sizeof path - 5);
    path[sizeof path - 1] = '\0';
    static const char *const texts[] = { "", "\n\n", ":", "::", "0:", "0::", "nonsense", "1:cpu" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_cpus(NO_LIMIT, GROUP(texts[i]), MOUNTS(V2 V1));
        assert_cpus(NO_LIMIT, GROUP("0::/\n1:cpu:/\n"), MOUNTS(texts[i]));
    }
    assert_cpus(NO_LIMIT, GROUP(path), MOUNTS(V2));
    assert_cpus(NO_LIMIT, { "/x", "" });
    assert_true(pawli_cpus_usable() >= 1);
}

/* A kernel for so many CPUs refuses smaller sets. 0: the real one. */
static size_t kernel_cpus, kernel_usable;

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the linker's names */
int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set);
int __real_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set);
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    if (kernel_cpus == 0)
        return __real_sched_getaffinity(pid, bytes, set);
    if (bytes < CPU_ALLOC_SIZE(kernel_cpus)) {
        errno = EINVAL;
        return -1;
    }
    CPU_ZERO_S(bytes, set);
    for (size_t i = 0; i < kernel_usable; i++)
        CPU_SET_S(kernel_cpus - 1 - i, bytes, set);
    return 0;
}

/* Goal: the affinity counts, however many CPUs the machine may have (G5). */
static void affinity_counts_on_a_large_machine(void **unused)
{
    (void)unused;
    static const size_t machines[] = { 64, 1024, 1025, 8192, 100000 };
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        kernel_cpus = machines[i];
        kernel_usable = 1;
        assert_int_equal(pawli_cpus_usable(), 1);
    }
    kernel_cpus = (size_t)1 << 30; /* it cannot be told */
    assert_true(pawli_cpus_usable() >= 1);
    kernel_cpus = 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(version_2_is_read_from_the_own_group),
    cmocka_unit_test(the_smallest_on_the_way_up_wins),
    cmocka_unit_test(version_1_is_found_by_its_controller),
    cmocka_unit_test(both_versions_count),
    cmocka_unit_test(a_part_of_the_tree_is_enough),
    cmocka_unit_test(nonsense_is_no_limit),
    cmocka_unit_test(affinity_counts_on_a_large_machine),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
