/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/fakeroot.h"

#include <fcntl.h>

#include "base/cgroup.h"
#include "base/error.h"
#include "base/meminfo.h"

#define MIB ((uint64_t)1 << 20)
#define NONE_OF_FIRST "9223372036854771712" /* what version 1 writes for no limit */

static const char second_mount[] =
    "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 "
    "cgroup2 rw,nsdelegate";

/* --- version 2 --- */

static void write_second(const struct fakeroot *root, const char *group)
{
    char text[256];

    snprintf(text, sizeof(text), "0::%s", group);
    fakeroot_write(root, "/proc/self/cgroup", text);
    fakeroot_write(root, "/proc/self/mountinfo", second_mount);
}

TEST(test_no_groups)
{
    struct trib_cgroup_memory m;
    struct trib_cgroup_cpu c;
    struct fakeroot root;

    fakeroot_make(&root);
    trib_cgroup_read_memory(root.path, &m);
    trib_cgroup_read_cpu(root.path, &c);
    assert_false(m.limited);
    assert_true(c.cpus == 0);
    fakeroot_remove(&root);
}

/* The tightest group on the path to the root sets the limit and the free memory. */
TEST(test_second_nested)
{
    struct trib_cgroup_memory m;
    struct trib_cgroup_cpu c;
    struct fakeroot root;

    fakeroot_make(&root);
    write_second(&root, "/slurm.slice/job_7/step_0");
    fakeroot_write(&root, "/sys/fs/cgroup/slurm.slice/memory.max", "1073741824");
    fakeroot_write(&root, "/sys/fs/cgroup/slurm.slice/memory.current", "1048576");
    fakeroot_write(&root, "/sys/fs/cgroup/slurm.slice/cpu.max", "max 100000");
    fakeroot_write(&root, "/sys/fs/cgroup/slurm.slice/job_7/memory.max", "536870912");
    fakeroot_write(&root, "/sys/fs/cgroup/slurm.slice/job_7/memory.current",
                   "436207616");
    fakeroot_write(
        &root, "/sys/fs/cgroup/slurm.slice/job_7/memory.stat",
        "anon 1\nfile 9\ninactive_file 33554432\nactive_file 1048576\nshmem 0");
    fakeroot_write(&root, "/sys/fs/cgroup/slurm.slice/job_7/cpu.max", "250000 100000");
    fakeroot_write(&root, "/sys/fs/cgroup/slurm.slice/job_7/step_0/memory.max", "max");
    fakeroot_write(&root, "/sys/fs/cgroup/slurm.slice/job_7/step_0/memory.high", "max");
    fakeroot_write(&root, "/sys/fs/cgroup/slurm.slice/job_7/step_0/cpu.max",
                   "400000 100000");
    trib_cgroup_read_memory(root.path, &m);
    assert_true(m.limited);
    assert_int_equal(m.limit, 512 * MIB);
    assert_int_equal(m.left, (512 - 416 + 33) * MIB);
    assert_true(m.swap_left == UINT64_MAX);
    assert_string_equal(m.file, "/sys/fs/cgroup/slurm.slice/job_7/memory.max");
    trib_cgroup_read_cpu(root.path, &c);
    assert_true(c.cpus > 2.49 && c.cpus < 2.51);
    assert_string_equal(c.file, "/sys/fs/cgroup/slurm.slice/job_7/cpu.max");
    fakeroot_remove(&root);
}

/* The group of the parent has a higher limit and less left. */
TEST(test_second_least_left)
{
    struct trib_cgroup_memory m;
    struct fakeroot root;

    fakeroot_make(&root);
    write_second(&root, "/a/b");
    fakeroot_write(&root, "/sys/fs/cgroup/a/memory.max", "1073741824");
    fakeroot_write(&root, "/sys/fs/cgroup/a/memory.current", "1063256064");
    fakeroot_write(&root, "/sys/fs/cgroup/a/b/memory.max", "536870912");
    fakeroot_write(&root, "/sys/fs/cgroup/a/b/memory.current", "0");
    trib_cgroup_read_memory(root.path, &m);
    assert_int_equal(m.limit, 1024 * MIB);
    assert_int_equal(m.left, 10 * MIB);
    /* A group that has more than its limit has nothing left. */
    fakeroot_write(&root, "/sys/fs/cgroup/a/b/memory.current", "636870912");
    trib_cgroup_read_memory(root.path, &m);
    assert_int_equal(m.limit, 512 * MIB);
    assert_int_equal(m.left, 0);
    fakeroot_remove(&root);
}

TEST(test_second_high_and_swap)
{
    struct trib_meminfo m;
    struct fakeroot root;
    uint64_t bytes;

    fakeroot_make(&root);
    write_second(&root, "/user.slice");
    fakeroot_write(&root, "/proc/meminfo",
                   "MemAvailable: 8388608 kB\nSwapFree:  1048576 kB");
    fakeroot_write(&root, "/sys/fs/cgroup/user.slice/memory.max", "2147483648");
    fakeroot_write(&root, "/sys/fs/cgroup/user.slice/memory.high", "1073741824");
    fakeroot_write(&root, "/sys/fs/cgroup/user.slice/memory.current", "0");
    fakeroot_write(&root, "/sys/fs/cgroup/user.slice/memory.swap.max", "67108864");
    fakeroot_write(&root, "/sys/fs/cgroup/user.slice/memory.swap.current", "33554432");
    trib_meminfo_read(root.path, &m);
    assert_true(m.known && trib_meminfo_of_group(&m));
    assert_int_equal(m.host, (8192 + 1024) * MIB);
    assert_int_equal(m.group.limit, 1024 * MIB);
    assert_non_null(strstr(m.group.file, "/memory.high"));
    assert_int_equal(m.group_left, (1024 + 32) * MIB);
    assert_true(trib_meminfo_free(root.path, &bytes));
    assert_int_equal(bytes, (1024 + 32) * MIB);
    /* A host that has less than the group may take decides itself. */
    fakeroot_write(&root, "/proc/meminfo", "MemAvailable: 524288 kB");
    assert_true(trib_meminfo_free(root.path, &bytes));
    assert_int_equal(bytes, 512 * MIB);
    fakeroot_remove(&root);
}

/* In a container with a cgroup namespace, the mount is the container's group. */
TEST(test_second_name_space)
{
    struct trib_cgroup_memory m;
    struct fakeroot root;

    fakeroot_make(&root);
    write_second(&root, "/");
    fakeroot_write(&root, "/sys/fs/cgroup/memory.max", "268435456");
    trib_cgroup_read_memory(root.path, &m);
    assert_int_equal(m.limit, 256 * MIB);
    assert_int_equal(m.left, 256 * MIB); /* usage is unknown */
    assert_string_equal(m.file, "/sys/fs/cgroup/memory.max");
    /* A process moved outside its visible groups is limited by the visible ones. */
    write_second(&root, "/../other");
    trib_cgroup_read_memory(root.path, &m);
    assert_int_equal(m.limit, 256 * MIB);
    fakeroot_remove(&root);
}

/* A container without a name space sees the host's path, and its group as the mount. */
TEST(test_bind_mount)
{
    struct trib_cgroup_memory m;
    struct fakeroot root;

    fakeroot_make(&root);
    fakeroot_write(
        &root, "/proc/self/cgroup",
        "11:cpu,cpuacct:/docker/4d3f\n4:memory:/docker/4d3f/in\n0::/docker/4d3f");
    fakeroot_write(
        &root, "/proc/self/mountinfo",
        "30 23 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
        "35 31 0:32 /docker/4d3f /sys/fs/cg\\040roup/memory ro - cgroup cgroup "
        "rw,memory");
    fakeroot_write(&root, "/sys/fs/cg roup/memory/memory.limit_in_bytes", "268435456");
    fakeroot_write(&root, "/sys/fs/cg roup/memory/in/memory.limit_in_bytes",
                   "134217728");
    trib_cgroup_read_memory(root.path, &m);
    assert_int_equal(m.limit, 128 * MIB);
    assert_string_equal(m.file, "/sys/fs/cg roup/memory/in/memory.limit_in_bytes");
    fakeroot_remove(&root);
}

/* --- version 1 --- */

TEST(test_first)
{
    struct trib_cgroup_memory m;
    struct trib_cgroup_cpu c;
    struct fakeroot root;

    fakeroot_make(&root);
    fakeroot_write(&root, "/proc/self/cgroup",
                   "9:name=systemd:/\n4:memory:/batch/job\n2:cpu,cpuacct:/batch\n0::/");
    fakeroot_write(
        &root, "/proc/self/mountinfo",
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw");
    fakeroot_write(&root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", NONE_OF_FIRST);
    fakeroot_write(&root, "/sys/fs/cgroup/memory/batch/memory.limit_in_bytes",
                   "1073741824");
    fakeroot_write(&root, "/sys/fs/cgroup/memory/batch/memory.usage_in_bytes",
                   "536870912");
    fakeroot_write(&root, "/sys/fs/cgroup/memory/batch/memory.stat",
                   "cache 5\ninactive_file 7\ntotal_inactive_file 4194304\n"
                   "total_active_file 4194304");
    fakeroot_write(&root, "/sys/fs/cgroup/memory/batch/memory.memsw.limit_in_bytes",
                   "1073741824");
    fakeroot_write(&root, "/sys/fs/cgroup/memory/batch/memory.memsw.usage_in_bytes",
                   "536870912");
    fakeroot_write(&root, "/sys/fs/cgroup/memory/batch/job/memory.limit_in_bytes",
                   NONE_OF_FIRST);
    fakeroot_write(&root, "/sys/fs/cgroup/cpu,cpuacct/batch/cpu.cfs_quota_us", "50000");
    fakeroot_write(&root, "/sys/fs/cgroup/cpu,cpuacct/batch/cpu.cfs_period_us",
                   "100000");
    fakeroot_write(&root, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
    fakeroot_write(&root, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
    trib_cgroup_read_memory(root.path, &m);
    assert_int_equal(m.limit, 1024 * MIB);
    assert_int_equal(m.left, (512 + 8) * MIB);
    assert_int_equal(m.swap_left, 0); /* memory and swap have one limit here */
    trib_cgroup_read_cpu(root.path, &c);
    assert_true(c.cpus > 0.49 && c.cpus < 0.51);
    fakeroot_remove(&root);
}

TEST(test_nonsense)
{
    static const char *const cgroups[] = {"", ":", "0", "0:", "0::", "0::/..", "::::",
                                          "4:memory", "0::relative"};
    static const char *const mounts[] = {
        "", " - ", "1 2 3 / /sys/fs/cgroup rw - cgroup2",
        "1 2 3 /sys/fs/cgroup - cgroup2 cgroup2 rw", "1 2 3 / \\ rw - cgroup2 x rw",
        "1 2 3 / /sys\\1 rw - cgroup2 x rw"};
    struct trib_cgroup_memory m;
    struct trib_cgroup_cpu c;
    struct fakeroot root;

    fakeroot_make(&root);
    fakeroot_write(&root, "/sys/fs/cgroup/cpu.max", "-3 0");
    fakeroot_write(&root, "/sys/fs/cgroup/memory.max", "much");
    for (size_t i = 0; i < sizeof(cgroups) / sizeof(*cgroups); i++)
        for (size_t k = 0; k < sizeof(mounts) / sizeof(*mounts); k++) {
            fakeroot_write(&root, "/proc/self/cgroup", cgroups[i]);
            fakeroot_write(&root, "/proc/self/mountinfo", mounts[k]);
            trib_cgroup_read_memory(root.path, &m);
            trib_cgroup_read_cpu(root.path, &c);
            assert_false(m.limited);
            assert_true(c.cpus == 0);
        }
    fakeroot_remove(&root);
}

/* --- of this machine --- */

static bool put(const char *folder, const char *file, const char *text)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    int fd = open(path, O_WRONLY);
    bool well = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return well;
}

/* In a child in the group; 0: rejected as expected. */
static int ask(const char *folder)
{
    struct trib_error err = {0};
    char pid[16];

    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    if (!put(folder, "cgroup.procs", pid))
        return TRIBTEST_SKIPPED;
    if (trib_meminfo_check(256 * MIB, &err) != TRIB_ERR_NO_MEMORY ||
        !strstr(err.text, "control group") || !strstr(err.text, "raise the limit"))
        return 1;
    return trib_meminfo_check(64 * MIB, &err) == TRIB_OK ? 0 : 1;
}

TEST(test_live)
{
    static const char *const places[][2] = {
        {"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
        {"/sys/fs/cgroup", "memory.max"},
    };

    for (size_t i = 0; i < 2; i++) {
        char folder[128];
        int status = 0;
        snprintf(folder, sizeof(folder), "%s/tributary-test-%d", places[i][0],
                 (int)getpid());
        if (mkdir(folder, 0755) != 0)
            continue;
        if (!put(folder, places[i][1], "134217728")) {
            rmdir(folder);
            continue;
        }
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
            _exit(ask(folder));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        for (int tries = 0; rmdir(folder) != 0 && tries < 1000; tries++)
            usleep(10000);
        if (WIFEXITED(status) && WEXITSTATUS(status) == TRIBTEST_SKIPPED)
            continue;
        assert_int_equal(status, 0);
        return;
    }
    tribtest_skip("no control group with a limit of memory can be made here");
}
