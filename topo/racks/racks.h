/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Racks: the switch that each host is on, and the tree of switches above.
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
    int parent; /* -1: none above */
    int depth; /* switches above */
    int hosts; /* on this switch itself: it is a rack if there is one */
    double Gbps; /* rate of the links to the parent; 0: not known */
};

struct trib_racks_host {
    char name[TRIB_HOSTNAME_BYTES];
    int rack;
    double Gbps; /* rate of the links to the rack; 0: not known */
};

/*
 * Switches stand parents first, each before its own subtree and that as a whole before
 * the next sibling's; siblings and hosts are in the order of their names, 9 before 10.
 * A switch without a host anywhere below it is left out.
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
    int (*detect)(const char *line); /* is this its first line, without comments? */
    trib_status_t (*read)(struct trib_racks_reader *reader);
};

/* The formats in the order in which they are tried; the list ends with NULL, and the
 * last format takes any text. */
extern const struct trib_racks_format *const trib_racks_formats[];

/* The result of reading. */
struct trib_racks_source {
    const char *file; /* its name, for messages */
    const char *text;
    size_t bytes;
    const char *format; /* NULL: by its first line */
    /* Hosts, and switches, at most; 0: 65536, far above any cluster. */
    size_t names_max;
};

/**
 * trib_racks_parse - read a text.
 *
 * A switch with several above it, as in a fat tree, goes below one of them: the first
 * that the file names, of InfiniBand the one with the most bandwidth. A host on several
 * switches, which InfiniBand allows alone, is on the one with the most bandwidth, of
 * equals the one of its first device.
 *
 * owner    trib_racks_free
 * errors   TRIB_ERR_INVALID: the sentence names file and line; TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_racks_parse(const struct trib_racks_source *source,
                               struct trib_error *err, struct trib_racks **out);

/** trib_racks_read - read a file; format as above. Also TRIB_ERR_SYSTEM. */
trib_status_t trib_racks_read(const char *path, const char *format,
                              struct trib_error *err, struct trib_racks **out);

/** trib_racks_free - NULL is allowed. */
void trib_racks_free(struct trib_racks *racks);

/**
 * trib_racks_host - the index of a host; -1: it is on no rack.
 *
 * A name is also found by what stands before its first dot, unless its whole is there.
 */
int trib_racks_host(const struct trib_racks *racks, const char *host);

/** trib_racks_find - the rack of a host, found as above; -1: it has none. */
int trib_racks_find(const struct trib_racks *racks, const char *host);

#endif
