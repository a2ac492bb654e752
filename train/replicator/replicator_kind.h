/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kinds of replicators as texts, and the shapes that they make of processes.
 */
#ifndef TRAIN_REPLICATOR_REPLICATOR_KIND_H
#define TRAIN_REPLICATOR_REPLICATOR_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;

enum trib_kind_input {
    TRIB_INPUT_REPLICA,
    TRIB_INPUT_WORKER,
    TRIB_INPUT_SINGLE,
};

/* A kind, read. */
struct trib_kind {
    char text[160]; /* as it was given */
    const char *strategy; /* of its trainers, as a prefix; NULL: the caller's choice */
    bool alone; /* it has one process */
    bool pushes; /* groups meet in a store */
    int threads; /* ranks of a process */
    int devices; /* ranks of a replica */
    int groups; /* 0: each replica */
    int staleness; /* pushes that groups may be apart; -1: any number */
    int shares; /* 0: none */
    enum trib_kind_input input;
};

/* What a kind makes of a number of processes. */
struct trib_kind_shape {
    int processes, ranks, replicas;
    int groups; /* synchronous ones */
    int in_sync; /* replicas of a group */
    size_t batch; /* samples of a replica's step */
    uint64_t steps; /* of a replica */
};

/**
 * trib_kind_parse - read the text of a kind.
 *
 * text     NULL: "workers"
 * errors   TRIB_ERR_INVALID with a sentence in err
 */
trib_status_t trib_kind_parse(const char *text, struct trib_error *err,
                              struct trib_kind *out);

/**
 * trib_kind_fit - the shape of a kind on so many processes.
 *
 * batch, steps  of the options
 * errors   TRIB_ERR_INVALID: something does not divide, or does not go together
 */
trib_status_t trib_kind_fit(const struct trib_kind *kind, int processes, size_t batch,
                            uint64_t steps, struct trib_error *err,
                            struct trib_kind_shape *out);

#endif
