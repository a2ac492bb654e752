/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <sys/stat.h>

#include "topo/machine.h"

static void check_sane(const struct trib_machine *m)
{
    assert_true(m->cpus >= 1 && m->cores >= 1 && m->cores <= m->cpus);
    assert_true(m->cpus_allowed >= 1 && m->cpus_allowed <= m->cpus);
    assert_true(m->cores_allowed >= 1 && m->cores_allowed <= m->cpus_allowed);
    assert_non_null(m->source);
}

TEST(test_this_machine)
{
    struct trib_machine m;

    trib_machine_read(&m);
    check_sane(&m);
    assert_true(m.cpus_allowed <= sysconf(_SC_NPROCESSORS_CONF));
}

/* Both readers see the same machine. */
TEST(test_readers_agree)
{
    struct trib_machine a;
    struct trib_machine b;

    trib_machine_read(&a);
    if (strcmp(a.source, "hwloc"))
        tribtest_skip("built without hwloc");
    trib_machine_read_sysfs("", &b);
    check_sane(&b);
    assert_int_equal(a.cpus_allowed, b.cpus_allowed);
    assert_int_equal(a.cores_allowed, b.cores_allowed);
    assert_int_equal(a.l2_bytes, b.l2_bytes);
    assert_int_equal(a.l3_bytes, b.l3_bytes);
    assert_int_equal(a.l3_count, b.l3_count);
    assert_string_equal(a.model, b.model);
}

static void read_bound(struct trib_machine *hwloc, struct trib_machine *sysfs)
{
    trib_machine_read(hwloc);
    trib_machine_read_sysfs("", sysfs);
}

TEST(test_affinity)
{
    cpu_set_t old;
    cpu_set_t one;
    struct trib_machine m[2];
    int cpu = 0;

    assert_int_equal(sched_getaffinity(0, sizeof(old), &old), 0);
    while (!CPU_ISSET(cpu, &old))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    read_bound(&m[0], &m[1]);
    assert_int_equal(sched_setaffinity(0, sizeof(old), &old), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(m[i].cpus_allowed, 1);
        assert_int_equal(m[i].cores_allowed, 1);
    }
}

static void write_file(const char *root, const char *path, const char *text)
{
    char full[512];

    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = '\0';
        mkdir(full, 0777);
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void write_cpu(const char *root, int cpu)
{
    static const struct {
        const char *name;
        const char *format; /* of the core's first CPU, and its second */
    } files[] = {
        {"topology/thread_siblings_list", "%d,%d\n"},
        {"cache/index0/level", "1\n"},
        {"cache/index0/type", "Data\n"},
        {"cache/index0/size", "48K\n"},
        {"cache/index1/level", "1\n"},
        {"cache/index1/type", "Instruction\n"},
        {"cache/index1/size", "64K\n"},
        {"cache/index2/level", "2\n"},
        {"cache/index2/type", "Unified\n"},
        {"cache/index2/size", "2048K\n"},
        {"cache/index3/level", "3\n"},
        {"cache/index3/type", "Unified\n"},
        {"cache/index3/size", "36M\n"},
    };
    char path[160];
    char text[32];
    int core = cpu % 4;
    const char *package = core < 2 ? "0-1,4-5\n" : "2-3,6-7\n";

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/%s", cpu,
                 files[i].name);
        if (i == 0)
            snprintf(text, sizeof(text), "%d,%d\n", core, core + 4);
        write_file(root, path, i == 0 ? text : files[i].format);
    }
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/%s", cpu,
             "topology/core_siblings_list");
    write_file(root, path, package);
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/%s", cpu,
             "cache/index3/shared_cpu_list");
    write_file(root, path, package);
}

/* Two packages of two cores with two threads each; CPU 7 is off line. */
TEST(test_sysfs_copy)
{
    char root[] = "/tmp/tributary-topo-XXXXXX";
    char command[64];
    struct trib_machine m;

    assert_non_null(mkdtemp(root));
    write_file(root, "/sys/devices/system/cpu/online", "0-6\n");
    write_file(root, "/sys/devices/system/node/online", "0-1\n");
    write_file(root, "/proc/meminfo", "MemFree: 1 kB\nMemTotal:    2048 kB\n");
    write_file(root, "/proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU\n");
    for (int cpu = 0; cpu < 8; cpu++)
        write_cpu(root, cpu);
    trib_machine_read_sysfs(root, &m);
    snprintf(command, sizeof(command), "rm -r %s", root);
    assert_int_equal(system(command), 0);
    assert_int_equal(m.packages, 2);
    assert_int_equal(m.numa_nodes, 2);
    assert_int_equal(m.cores, 4);
    assert_int_equal(m.cpus, 7);
    assert_int_equal(m.cores_allowed, 4);
    assert_int_equal(m.cpus_allowed, 7);
    assert_int_equal(m.l1d_bytes, 48 << 10);
    assert_int_equal(m.l2_bytes, 2 << 20);
    assert_int_equal(m.l3_bytes, 36 << 20);
    assert_int_equal(m.l3_count, 2);
    assert_int_equal(m.memory_bytes, 2 << 20);
    assert_string_equal(m.model, "A CPU");
}

TEST(test_nothing_to_read)
{
    struct trib_machine m;

    trib_machine_read_sysfs("/nonexistent", &m);
    check_sane(&m);
    assert_int_equal(m.l2_bytes, 0);
}

static void collect(void *arg, const trib_item_t *item)
{
    char *text = arg;

    snprintf(text + strlen(text), 1024 - strlen(text), "%s=%s %s;", item->name,
             item->value, item->unit);
}

TEST(test_list)
{
    struct trib_machine m = {.cores = 4,
                             .cpus = 8,
                             .cores_allowed = 2,
                             .cpus_allowed = 4,
                             .l2_bytes = 512 << 10,
                             .l3_bytes = 32 << 20,
                             .l3_count = 1,
                             .memory_bytes = UINT64_C(33000000000),
                             .source = "hwloc"};
    char text[1024] = "";

    trib_machine_list(&m, collect, text);
    assert_string_equal(text, "cores=4 ;hardware threads=8 ;L2 cache=512 KiB;"
                              "L3 cache=32 MiB;memory=30 GiB;source=hwloc ;");
}
