/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/rdma.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define CLASS "/sys/class/infiniband"
#define GIDS_MAX 256
#define PORTS_MAX 255
/* Most bytes of a RoCE packet besides its payload: GRH or IP, UDP, BTH, the largest
 * extended headers, checksum. The kernel reserves as much. */
#define ROCE_HEADERS 96

int trib_rdma_roce_mtu(int mtu)
{
    for (int size = 4096; size >= 256; size /= 2)
        if (mtu - ROCE_HEADERS >= size)
            return size;
    return 0;
}

static bool read_port(const char *root, const struct trib_rdma_port *port,
                      const char *name, char *out, size_t bytes)
{
    char path[256];

    snprintf(path, sizeof(path), CLASS "/%s/ports/%d/%s", port->device, port->port,
             name);
    if (!trib_file_line(root, path, out, bytes))
        out[0] = '\0';
    return out[0] != '\0';
}

/* Read "4: ACTIVE" without its number. */
static void read_state(const char *root, const struct trib_rdma_port *port,
                       const char *name, char *out, size_t bytes)
{
    char text[64];
    const char *colon;

    out[0] = '\0';
    if (!read_port(root, port, name, text, sizeof(text)))
        return;
    colon = strchr(text, ':');
    const char *word = colon ? colon + 1 + strspn(colon + 1, " ") : text;
    snprintf(out, bytes, "%.*s", (int)bytes - 1, word);
}

static bool is_zero(const char *gid)
{
    return gid[strspn(gid, "0:")] == '\0';
}

static void read_gids(const char *root, struct trib_rdma_port *port)
{
    char name[64], gid[64], type[32];

    for (int i = 0; i < GIDS_MAX; i++) {
        snprintf(name, sizeof(name), "gids/%d", i);
        if (!read_port(root, port, name, gid, sizeof(gid)))
            return;
        if (is_zero(gid))
            continue;
        port->gids++;
        snprintf(name, sizeof(name), "gid_attrs/types/%d", i);
        if (read_port(root, port, name, type, sizeof(type)))
            port->gids_v2 += strcmp(type, "RoCE v2") == 0;
        snprintf(name, sizeof(name), "gid_attrs/ndevs/%d", i);
        if (!port->netdev[0])
            read_port(root, port, name, port->netdev, sizeof(port->netdev));
    }
}

static void read_mtu(const char *root, struct trib_rdma_port *port)
{
    char path[128], mtu[16];

    if (!port->netdev[0])
        return;
    snprintf(path, sizeof(path), "/sys/class/net/%s/mtu", port->netdev);
    if (!trib_file_line(root, path, mtu, sizeof(mtu)))
        return;
    port->netdev_mtu = atoi(mtu);
    port->active_mtu = trib_rdma_roce_mtu(port->netdev_mtu);
}

/* Find the device file "/dev/infiniband/uverbsN" by its ibdev. */
static void read_file(const char *root, struct trib_rdma_port *port)
{
    char path[512], device[64];

    for (int i = 0; i < 1024 && !port->file[0]; i++) {
        snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/uverbs%d/ibdev", i);
        if (trib_file_line(root, path, device, sizeof(device)) &&
            strcmp(device, port->device) == 0)
            snprintf(port->file, sizeof(port->file), "/dev/infiniband/uverbs%d", i);
    }
    snprintf(path, sizeof(path), "%s%s", root, port->file);
    port->file_there = port->file[0] && access(path, F_OK) == 0;
    port->file_open = port->file_there && access(path, R_OK | W_OK) == 0;
}

/* Read a port; false: there is no such port. */
static bool describe_port(const char *root, struct trib_rdma_port *port)
{
    read_state(root, port, "state", port->state, sizeof(port->state));
    read_state(root, port, "phys_state", port->physical, sizeof(port->physical));
    read_port(root, port, "link_layer", port->link_layer, sizeof(port->link_layer));
    read_port(root, port, "rate", port->rate, sizeof(port->rate));
    if (!port->state[0] && !port->link_layer[0])
        return false;
    read_gids(root, port);
    if (strcmp(port->link_layer, "Ethernet") == 0)
        read_mtu(root, port);
    read_file(root, port);
    return true;
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int trib_rdma_each(const char *root, trib_rdma_fn fn, void *arg)
{
    struct dirent **list = NULL;
    char path[512];
    int ports = 0;

    snprintf(path, sizeof(path), "%s" CLASS, root);
    int devices = scandir(path, &list, not_hidden, alphasort);
    for (int i = 0; i < devices; i++) {
        for (int number = 1; number <= PORTS_MAX; number++) {
            struct trib_rdma_port port = {.port = number};
            snprintf(port.device, sizeof(port.device), "%.63s", list[i]->d_name);
            if (!describe_port(root, &port))
                break;
            fn(arg, &port);
            ports++;
        }
        free(list[i]);
    }
    free(list);
    return ports;
}
