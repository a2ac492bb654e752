/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-perf --peers: measure the installed MPIs and Gloo in turns with Tributary.
 */
#ifndef PERF_REPORT_PEERS_LAUNCH_H
#define PERF_REPORT_PEERS_LAUNCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "perf/coll/arguments.h"

struct perf_args;

enum {
    PEERS_MOST = 8,
    PEERS_ROUNDS = 3, /* launches of each */
    PEERS_SAMPLES = 7, /* default samples per size and launch */
};

/* A folder with the peer programs, and their names. */
struct peers {
    const char *folder; /* has run-peer.sh */
    char out[64]; /* build folder; peers_close removes it */
    size_t n;
    struct peer_kind {
        char id[32], name[64];
    } kind[PEERS_MOST];
};

/** peers_open - build the programs of the installed peers. false: why[] has the
 * message. Call peers_close even if it fails. */
bool peers_open(struct peers *peers, const char *folder, char *why, size_t why_bytes);
void peers_close(struct peers *peers);

/** peers_launch - run one launch and return its rows, an array of objects as in
 * results. NULL: failed, after a message on stderr. */
json_t *peers_launch(const struct peers *peers, size_t at,
                     const struct perf_args *args);

/** peers_median - return a new array that has, for each size, the launch with the
 * median p50. */
json_t *peers_median(json_t *const *launches, size_t n);

/**
 * peers_measure - measure all in turns, then report as the options ask. Return the exit
 * code.
 *
 * measure  measures Tributary with these options in a new process; returns its exit
 *          code
 */
int peers_measure(const struct perf_args *args,
                  int (*measure)(const struct perf_args *args));

#endif
