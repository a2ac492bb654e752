/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/numa.h"

static char root[] = "/tmp/test_numaXXXXXX";

/* Write a line to a file; the folders are made. */
static void put(const char *path, const char *line)
{
    char full[300];

    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fprintf(file, "%s\n", line);
    assert_int_equal(fclose(file), 0);
}

static void remove_all(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -rf %s", root);
    assert_int_equal(system(command), 0);
}

/* Nodes 0 and 2 with six and two CPUs, and node 3 without any. */
static void make_machine(void)
{
    assert_non_null(mkdtemp(root));
    put("/sys/devices/system/node/online", "0,2-3");
    put("/sys/devices/system/node/node0/cpulist", "0-3,8-9");
    put("/sys/devices/system/node/node0/distance", "10 21 28");
    put("/sys/devices/system/node/node2/cpulist", "4,5");
    put("/sys/devices/system/node/node2/distance", "21 10 28");
    put("/sys/devices/system/node/node3/cpulist", "");
    put("/sys/devices/system/node/node3/distance", "28 28 10");
}

/* The mean over the CPUs. */
TEST(test_distance)
{
    make_machine();
    assert_int_equal(trib_numa_distance(root, 0), (6 * 100 + 2 * 210) / 8);
    assert_int_equal(trib_numa_distance(root, 2), (6 * 210 + 2 * 100) / 8);
    assert_int_equal(trib_numa_distance(root, 3), 280);
    assert_int_equal(trib_numa_distance(root, 1), 0);
    assert_int_equal(trib_numa_distance(root, -1), 0);
    remove_all();
}

/* Files that are missing or make no sense mean that nothing is known. */
TEST(test_nonsense)
{
    snprintf(root, sizeof(root), "/tmp/test_numaXXXXXX");
    make_machine();
    put("/sys/devices/system/node/node2/distance", "21 x");
    assert_int_equal(trib_numa_distance(root, 2), 0);
    put("/sys/devices/system/node/node2/distance", "21 -4 28");
    assert_int_equal(trib_numa_distance(root, 2), 0);
    put("/sys/devices/system/node/node2/distance", "21 10 28");
    put("/sys/devices/system/node/node0/cpulist", "0-99999999");
    put("/sys/devices/system/node/online", "0-99999999999999999999,2");
    assert_int_equal(trib_numa_distance(root, 2), 0);
    assert_int_equal(trib_numa_distance("/nowhere", 0), 0);
    remove_all();
}

TEST(test_node)
{
    snprintf(root, sizeof(root), "/tmp/test_numaXXXXXX");
    assert_non_null(mkdtemp(root));
    put("/sys/class/infiniband/mlx5_0/device/numa_node", "3");
    put("/sys/class/infiniband/mlx5_1/device/numa_node", "-1");
    put("/sys/class/infiniband/mlx5_2/device/numa_node", "x");
    assert_int_equal(trib_numa_node(root, "/sys/class/infiniband/mlx5_0"), 3);
    assert_int_equal(trib_numa_node(root, "/sys/class/infiniband/mlx5_1"), -1);
    assert_int_equal(trib_numa_node(root, "/sys/class/infiniband/mlx5_2"), -1);
    assert_int_equal(trib_numa_node(root, "/sys/class/infiniband/mlx5_3"), -1);
    remove_all();
}
