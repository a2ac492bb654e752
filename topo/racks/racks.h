/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Racks: the switch of each host, and the tree of switches above.
 */
#ifndef TOPO_RACKS_RACKS_H
#define TOPO_RACKS_RACKS_H

#include <stddef.h>

#include <tributary/status.h>

#include "topo/hostlist.h"

struct trib_error;
struct trib_racks_reader;

struct trib_racks_switch {
    char name[TRIB_HOSTNAME_BYTES];
    int parent; /* -1: none */
    int depth; /* number of switches above */
    int hosts; /* directly on this switch; it is a rack if there are any */
    double Gbps; /* rate of the links to the parent; 0: unknown */
};

struct trib_racks_host {
    char name[TRIB_HOSTNAME_BYTES];
    int rack;
    double Gbps; /* rate of the links to the rack; 0: unknown */
};

/*
 * Switches in preorder: each switch precedes its subtree, which precedes the next
 * sibling. Siblings and hosts are in name order, 9 before 10. Switches without a host
 * below are omitted.
 */
struct trib_racks {
    const char *format;
    int n_switches;
    int n_hosts;
    struct trib_racks_switch *switches;
    struct trib_racks_host *hosts;
};

/* A format of such a file. */
struct trib_racks_format {
    const char *name; /* "slurm" */
    const char *detail;
    /* returns true for the first line of such a file, comments skipped */
    int (*detect)(const char *line);
    trib_status_t (*read)(struct trib_racks_reader *reader);
};

/* The formats in the order of detection; NULL-terminated. The last one accepts any
 * text. */
extern const struct trib_racks_format *const trib_racks_formats[];

/* Input of trib_racks_parse. */
struct trib_racks_source {
    const char *file; /* its name, for messages */
    const char *text;
    size_t bytes;
    const char *format; /* NULL: detect by the first line */
    /* Most hosts, and most switches; 0: 65536, far above any cluster. */
    size_t names_max;
};

/**
 * trib_racks_parse - parse a text.
 *
 * A switch with several parents, as in a fat tree, goes below one of them: the first in
 * the file, or for InfiniBand the one with the most bandwidth. A host on several
 * switches (InfiniBand only) goes to the one with the most bandwidth, and among equals
 * to that of its first device.
 * owner    caller; free with trib_racks_free
 * errors   TRIB_ERR_INVALID: the message names file and line; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_racks_parse(const struct trib_racks_source *source,
                               struct trib_error *err, struct trib_racks **out);

/** trib_racks_read - read a file; format as in trib_racks_source. Also
 * TRIB_ERR_SYSTEM. */
trib_status_t trib_racks_read(const char *path, const char *format,
                              struct trib_error *err, struct trib_racks **out);

/** trib_racks_free - free racks; accepts NULL. */
void trib_racks_free(struct trib_racks *racks);

/**
 * trib_racks_host - return the index of a host; -1: it is on no rack.
 *
 * If the full name is not found, the part before its first dot is compared.
 */
int trib_racks_host(const struct trib_racks *racks, const char *host);

/** trib_racks_find - return the rack of a host, found as in trib_racks_host; -1:
 * none. */
int trib_racks_find(const struct trib_racks *racks, const char *host);

#endif
