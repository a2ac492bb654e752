/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA ports listed by Linux in /sys; they need not be usable.
 */
#ifndef TOPO_RDMA_H
#define TOPO_RDMA_H

#include <stdbool.h>

/* "" and 0 where unknown. */
struct trib_rdma_port {
    char device[64]; /* "mlx5_0" */
    int port; /* port number, from 1 */
    char state[16]; /* "ACTIVE", "INIT", "DOWN", … */
    char physical[24]; /* "LinkUp", "Polling", "Disabled", … */
    char link_layer[16]; /* "InfiniBand", or "Ethernet": RoCE */
    char rate[40]; /* "100 Gb/sec (4X EDR)" */
    int gids; /* number of non-zero GIDs */
    int gids_v2; /* number of GIDs for RoCE v2 */
    char netdev[32]; /* RoCE: the underlying network device */
    int netdev_mtu;
    /* RoCE: largest RDMA packet that fits into a frame of netdev; 0: none, or
     * unknown. */
    int active_mtu;
    char file[64]; /* "/dev/infiniband/uverbs0" */
    bool file_there;
    bool file_open; /* this process may read and write it */
};

typedef void (*trib_rdma_fn)(void *arg, const struct trib_rdma_port *port);

/**
 * trib_rdma_each - call fn for every port of every device, in name order.
 *
 * root     "", or a folder with a copy of /sys and /dev
 * returns  the number of ports
 */
int trib_rdma_each(const char *root, trib_rdma_fn fn, void *arg);

/** trib_rdma_roce_mtu - return the RoCE MTU, 256 to 4096, for frames of `mtu` bytes; 0:
 * none fits. */
int trib_rdma_roce_mtu(int mtu);

#endif
