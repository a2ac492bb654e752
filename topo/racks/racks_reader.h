/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Helpers for the rack formats: lines, growing tables, and the final tree.
 */
#ifndef TOPO_RACKS_RACKS_READER_H
#define TOPO_RACKS_RACKS_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "topo/racks/racks.h"

/* Bounds the cost of a small text with wide ranges. */
#define TRIB_RACKS_NAMES_MAX 65536

/* Switches as read: names may repeat, and parents are in any order. */
struct trib_racks_raw_switch {
    char name[TRIB_HOSTNAME_BYTES];
    int line;
    int parent; /* -1: unknown */
    double Gbps;
};

struct trib_racks_raw_host {
    char name[TRIB_HOSTNAME_BYTES];
    int line;
    int rack;
    double Gbps;
};

/* "The switch of this name is below that one"; the file may define it later. */
struct trib_racks_raw_child {
    char name[TRIB_HOSTNAME_BYTES];
    int line;
    int parent;
};

struct trib_racks_reader {
    const char *file;
    const char *text; /* the rest of the text */
    char *line; /* the current line */
    int number; /* number of its first line in the file, from 1 */
    int next_number;
    size_t names_max;
    bool merge; /* a switch may be named twice: both are the same one */
    bool no_memory; /* an allocation failed */
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

/** trib_racks_line - read the next line to reader->line; false: end of the text. */
bool trib_racks_line(struct trib_racks_reader *reader);

/** trib_racks_logical_line - read the next line without # comments. Joins lines that
 * end in a backslash, and skips empty ones. */
bool trib_racks_logical_line(struct trib_racks_reader *reader);

/** trib_racks_fail - report "FILE line N: …"; line 0: without a line. Returns
 * TRIB_ERR_INVALID. */
trib_status_t trib_racks_fail(struct trib_racks_reader *reader, int line,
                              const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** trib_racks_grow - make room for one more element; false: no memory, also noted in
 * the reader. */
bool trib_racks_grow(struct trib_racks_reader *reader, void *array, size_t n,
                     size_t *room, size_t element_bytes);

/** trib_racks_add_switch - add a switch and return its index; -1: too many, or no
 * memory. */
int trib_racks_add_switch(struct trib_racks_reader *reader, const char *name);

/** trib_racks_add_host - add a host at the current line. */
void trib_racks_add_host(struct trib_racks_reader *reader, const char *name, int rack);

/** trib_racks_add_hosts - add the hosts of a list, such as "n[1-16]". */
trib_status_t trib_racks_add_hosts(struct trib_racks_reader *reader, const char *list,
                                   int rack);

/** trib_racks_add_children - add the switches of such a list below another switch. */
trib_status_t trib_racks_add_children(struct trib_racks_reader *reader,
                                      const char *list, int parent);

/** trib_racks_finish - build the tree from everything added. */
trib_status_t trib_racks_finish(struct trib_racks_reader *reader,
                                struct trib_racks *out);

#endif
