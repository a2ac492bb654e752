/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA ports as Linux shows them in /sys: what is there, not whether it can be opened.
 */
#ifndef TOPO_RDMA_H
#define TOPO_RDMA_H

#include <stdbool.h>

/* "" and 0 where something is not known. */
struct trib_rdma_port {
    char device[64]; /* "mlx5_0" */
    int port;        /* number of the port, from 1 */
    char state[16];  /* "ACTIVE", "INIT", "DOWN", … */
    char physical[24];   /* "LinkUp", "Polling", "Disabled", … */
    char link_layer[16]; /* "InfiniBand", or "Ethernet": RoCE */
    char rate[40];       /* "100 Gb/sec (4X EDR)" */
    int gids;            /* number of GIDs that are not zero */
    int gids_v2;         /* number of these for RoCE v2 */
    char netdev[32];     /* RoCE: the network device below */
    int netdev_mtu;
    int active_mtu; /* RoCE: largest RDMA packet that fits a frame of netdev; 0: none
                     * does,
                       or not known */
    char file[64];  /* "/dev/infiniband/uverbs0" */
    bool file_there;
    bool file_open; /* this process may read and write it */
};

typedef void (*trib_rdma_fn)(void *arg, const struct trib_rdma_port *port);

/**
 * trib_rdma_each - call fn for every port of every device, in the order of their names.
 *
 * root     "", or a folder with a copy of /sys and /dev
 * returns  how many ports there are
 */
int trib_rdma_each(const char *root, trib_rdma_fn fn, void *arg);

/** trib_rdma_roce_mtu - 256 to 4096: what a frame of `mtu` bytes carries; 0:
 * nothing. */
int trib_rdma_roce_mtu(int mtu);

#endif
