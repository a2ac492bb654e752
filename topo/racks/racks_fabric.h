/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An InfiniBand fabric: switches and links as read, and the tree chosen from them.
 */
#ifndef TOPO_RACKS_RACKS_FABRIC_H
#define TOPO_RACKS_RACKS_FABRIC_H

#include "topo/racks/racks_reader.h"

#define TRIB_GUID_BYTES 32 /* length of "S-ec0d9a0300ec8240" */

struct trib_fabric_switch {
    char id[TRIB_GUID_BYTES];
    char name[TRIB_HOSTNAME_BYTES]; /* the node description */
    int line;
};

/* A link as listed in a switch's section, so links between switches occur twice. */
struct trib_fabric_link {
    int from;
    int line;
    int to; /* set by trib_fabric_tree, from id */
    char id[TRIB_GUID_BYTES]; /* id of the other switch */
    double Gbps; /* 0: unknown */
};

struct trib_fabric_host {
    char name[TRIB_HOSTNAME_BYTES];
    char device[TRIB_HOSTNAME_BYTES]; /* "" if only the host is named */
    int from; /* the switch */
    int line;
    double Gbps;
};

struct trib_fabric {
    struct trib_racks_reader *r;
    struct trib_fabric_switch *switches;
    size_t n_switches, room_switches;
    struct trib_fabric_link *links;
    size_t n_links, room_links;
    struct trib_fabric_host *hosts; /* one per link */
    size_t n_hosts, room_hosts;
};

/**
 * trib_fabric_tree - choose a tree, and add it and the hosts to the reader.
 *
 * The root is the switch with the smallest distance to its farthest rack. Each other
 * switch is below a neighbour one step nearer to the root: the one with the most
 * bandwidth.
 */
trib_status_t trib_fabric_tree(struct trib_fabric *fabric);

/** trib_fabric_names - make switch names unique: the administrator's name where it
 * suffices, else the id. */
trib_status_t trib_fabric_names(struct trib_fabric *fabric);

/** trib_fabric_seat - assign each host to one of the switches that it is linked to. */
trib_status_t trib_fabric_seat(struct trib_fabric *fabric);

#endif
