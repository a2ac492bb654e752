/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An InfiniBand fabric: switches and links as they were found, and the tree that is
 * chosen of them.
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

/* A link as a switch's own section has it, so that each link of two switches is there
 * twice. */
struct trib_fabric_link {
    int from;
    int line;
    int to; /* set by the tree; the id is what was read */
    char id[TRIB_GUID_BYTES]; /* name of a switch */
    double Gbps; /* 0: not known */
};

struct trib_fabric_host {
    char name[TRIB_HOSTNAME_BYTES];
    char device[TRIB_HOSTNAME_BYTES]; /* "" where only the host is named */
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
    struct trib_fabric_host *hosts; /* a link each */
    size_t n_hosts, room_hosts;
};

/**
 * trib_fabric_tree - choose a tree, and add it and the hosts to the reader.
 *
 * Its root is the switch from which the farthest rack is the nearest. Each other switch
 * is below a neighbour that is one step nearer to the root, the one with the most
 * bandwidth.
 */
trib_status_t trib_fabric_tree(struct trib_fabric *fabric);

/** trib_fabric_names - make the names of switches unique: what people call them, where
 * that is enough, else their id. */
trib_status_t trib_fabric_names(struct trib_fabric *fabric);

/** trib_fabric_seat - each host on one of the switches that it has links to. */
trib_status_t trib_fabric_seat(struct trib_fabric *fabric);

#endif
