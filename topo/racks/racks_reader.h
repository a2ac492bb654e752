/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Helpers of the formats of racks: lines, tables that grow, and their end.
 */
#ifndef TOPO_RACKS_RACKS_READER_H
#define TOPO_RACKS_RACKS_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "topo/racks/racks.h"

/* Bounds what a small text with wide ranges may cost. */
#define TRIB_RACKS_NAMES_MAX 65536

/* The names as read: they may stand twice, and parents anywhere. */
struct trib_racks_raw_switch {
    char name[TRIB_HOSTNAME_BYTES];
    int line;
    int parent; /* -1: not known */
    double Gbps;
};

struct trib_racks_raw_host {
    char name[TRIB_HOSTNAME_BYTES];
    int line;
    int rack;
    double Gbps;
};

/* "The switch of this name is below that one": it may stand further down. */
struct trib_racks_raw_child {
    char name[TRIB_HOSTNAME_BYTES];
    int line;
    int parent;
};

struct trib_racks_reader {
    const char *file;
    const char *text; /* text that is left to read */
    char *line; /* the one that is read */
    int number; /* number of its first line in the file, from 1 */
    int next_number;
    size_t names_max;
    bool merge; /* a switch may be named twice: it is the same one */
    bool no_memory; /* something did not fit */
    struct trib_error *err;
    struct trib_racks_raw_switch *switches;
    size_t n_switches, room_switches;
    struct trib_racks_raw_host *hosts;
    size_t n_hosts, room_hosts;
    struct trib_racks_raw_child *children;
    size_t n_children, room_children;
};

extern const struct trib_racks_format trib_racks_ib;
extern const struct trib_racks_format trib_racks_slurm;
extern const struct trib_racks_format trib_racks_plain;

/** trib_racks_line - the next line into reader->line; false: there is none. */
bool trib_racks_line(struct trib_racks_reader *reader);

/** trib_racks_logical_line - the next line without # comments; lines that end in a
 * backslash are joined, and empty ones passed over. */
bool trib_racks_logical_line(struct trib_racks_reader *reader);

/** trib_racks_fail - "FILE line N: …"; line 0: of none. Returns TRIB_ERR_INVALID. */
trib_status_t trib_racks_fail(struct trib_racks_reader *reader, int line,
                              const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** trib_racks_grow - room for one more element; false: no memory, which the reader
 * notes. */
bool trib_racks_grow(struct trib_racks_reader *reader, void *array, size_t n,
                     size_t *room, size_t element_bytes);

/** trib_racks_add_switch - its index; -1: there are too many, or no memory. */
int trib_racks_add_switch(struct trib_racks_reader *reader, const char *name);

/** trib_racks_add_host - at the line that is read. */
void trib_racks_add_host(struct trib_racks_reader *reader, const char *name, int rack);

/** trib_racks_add_hosts - those of a list, such as "n[1-16]". */
trib_status_t trib_racks_add_hosts(struct trib_racks_reader *reader, const char *list,
                                   int rack);

/** trib_racks_add_children - switches of such a list, below another one. */
trib_status_t trib_racks_add_children(struct trib_racks_reader *reader,
                                      const char *list, int parent);

/** trib_racks_finish - make the tree of what was added. */
trib_status_t trib_racks_finish(struct trib_racks_reader *reader,
                                struct trib_racks *out);

#endif
