/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-perf --peers: the MPIs and Gloo that are installed, beside Tributary, in turns.
 */
#ifndef PERF_REPORT_PEERS_BESIDE_H
#define PERF_REPORT_PEERS_BESIDE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct perf_args;

enum {
    PEERS_MOST = 8,
    PEERS_ROUNDS = 3, /* launches of each */
    PEERS_SAMPLES = 7, /* of a size in a launch, where nothing is said */
};

/* A folder with the programs, and what they are called. */
struct peers {
    const char *folder; /* with run-peer.sh */
    char out[64]; /* where they are built; removed in the end */
    size_t n;
    struct peer_kind {
        char id[32], name[64];
    } kind[PEERS_MOST];
};

/** peers_open - build what is installed; false: why[] has the sentence. peers_close
 * follows in any case. */
bool peers_open(struct peers *peers, const char *folder, char *why, size_t why_bytes);
void peers_close(struct peers *peers);

/** peers_launch - the rows of one launch, an array of objects as results have them;
 * NULL: it failed, and has said why on standard error. */
json_t *peers_launch(const struct peers *peers, size_t at,
                     const struct perf_args *args);

/** peers_median - of the rows of several launches, for each size the one whose median
 * is in the middle; a new array. */
json_t *peers_median(json_t *const *launches, size_t n);

/**
 * peers_measure - all in turns, then what the options ask for; the exit code.
 *
 * measure  times Tributary by these options, in a process of its own; its exit code
 */
int peers_measure(const struct perf_args *args,
                  int (*measure)(const struct perf_args *args));

#endif
