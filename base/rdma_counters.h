/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of RDMA ports in /sys/class/infiniband. They belong to the port, not to a
 * process: all programs of the host raise them.
 */
#ifndef BASE_RDMA_COUNTERS_H
#define BASE_RDMA_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum trib_rdma_counter {
#define X(id, name, files, is_trouble, help) TRIB_RDMA_##id,
#include "base/rdma_counters.def"
    TRIB_RDMA_COUNTERS,
};

struct trib_rdma_counters {
    char device[64];
    int port; /* from 1 */
    bool has[TRIB_RDMA_COUNTERS]; /* the driver has this counter */
    uint64_t count[TRIB_RDMA_COUNTERS];
};

/** trib_rdma_counter_name - return "cnp_sent" or another name. */
const char *trib_rdma_counter_name(enum trib_rdma_counter counter);

/** trib_rdma_counter_help - return the meaning of a counter, as a noun phrase. */
const char *trib_rdma_counter_help(enum trib_rdma_counter counter);

/** trib_rdma_counter_growth - return by how much a counter grew; 0 if it was reset, or
 * if either reading lacks it. `before` and `after` are of one port. */
uint64_t trib_rdma_counter_growth(const struct trib_rdma_counters *before,
                                  const struct trib_rdma_counters *after,
                                  enum trib_rdma_counter counter);

/** trib_rdma_counter_is_trouble - return true if growth explains slowness. */
bool trib_rdma_counter_is_trouble(enum trib_rdma_counter counter);

/**
 * trib_rdma_counters_read - read the counters of one port. Takes about a millisecond.
 *
 * root     "", or a folder with a copy of /sys
 * device   name, such as "mlx5_0"; one with a slash has no counters
 * returns  false if the port has none of these counters
 * thread   any
 */
bool trib_rdma_counters_read(const char *root, const char *device, int port,
                             struct trib_rdma_counters *out);

/**
 * trib_rdma_counters_all - read the counters of all ports of this host that have any.
 *
 * out      [max] in order of device and port
 * returns  the number of ports, at most max
 */
int trib_rdma_counters_all(const char *root, struct trib_rdma_counters *out, int max);

/**
 * trib_rdma_counters_grown - list the counters that grew: "out_of_sequence +12, …".
 *
 * returns  the number of counters listed; text is "" if there is none
 */
int trib_rdma_counters_grown(const struct trib_rdma_counters *before,
                             const struct trib_rdma_counters *after, char *text,
                             size_t bytes);

#endif
