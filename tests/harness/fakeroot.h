/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A folder that mimics /sys, /proc and /dev of another machine.
 */
#ifndef TESTS_HARNESS_FAKEROOT_H
#define TESTS_HARNESS_FAKEROOT_H

#include "tests/harness/tribtest.h"

#include <sys/stat.h>

struct fakeroot {
    char path[64];
    int n_rdma;
};

static inline void fakeroot_make(struct fakeroot *root)
{
    *root = (struct fakeroot){.path = "/tmp/tributary-test-XXXXXX"};
    assert_non_null(mkdtemp(root->path));
}

static inline void fakeroot_remove(struct fakeroot *root)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r '%s'", root->path);
    assert_int_equal(system(command), 0);
}

/* Create a file with this line, and the folders above it. */
static inline void fakeroot_write(const struct fakeroot *root, const char *path,
                                  const char *line)
{
    char full[512];

    snprintf(full, sizeof(full), "%s%s", root->path, path);
    for (char *slash = full + strlen(root->path) + 1; (slash = strchr(slash, '/'));
         slash++) {
        *slash = '\0';
        (void)mkdir(full, 0755);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fprintf(file, "%s\n", line);
    fclose(file);
}

static inline void fakeroot_delete(const struct fakeroot *root, const char *path)
{
    char full[512];

    snprintf(full, sizeof(full), "%s%s", root->path, path);
    assert_int_equal(unlink(full), 0);
}

/* Create a device with one port and its device file; fakeroot_gid adds GIDs. */
static inline void fakeroot_rdma(struct fakeroot *root, const char *device,
                                 const char *link_layer, const char *state)
{
    const char *const lines[][2] = {
        {"state", state},
        {"phys_state", strstr(state, "ACTIVE") ? "5: LinkUp" : "2: Polling"},
        {"link_layer", link_layer},
        {"rate", "100 Gb/sec (4X EDR)"},
    };
    char path[256];

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/%s", device,
                 lines[i][0]);
        fakeroot_write(root, path, lines[i][1]);
    }
    snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/uverbs%d/ibdev",
             root->n_rdma);
    fakeroot_write(root, path, device);
    snprintf(path, sizeof(path), "/dev/infiniband/uverbs%d", root->n_rdma++);
    fakeroot_write(root, path, "");
}

static inline void fakeroot_gid(const struct fakeroot *root, const char *device,
                                int index, const char *gid, const char *type,
                                const char *netdev)
{
    const char *const lines[][2] = {
        {"gids", gid}, {"gid_attrs/types", type}, {"gid_attrs/ndevs", netdev}};
    char path[256];

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/%s/%d", device,
                 lines[i][0], index);
        if (lines[i][1][0])
            fakeroot_write(root, path, lines[i][1]);
    }
}

#endif
