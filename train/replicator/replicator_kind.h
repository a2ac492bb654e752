/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kinds of replicators: parse their texts, and derive the shape of a run from the
 * number of processes.
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

/* A parsed kind. */
struct trib_kind {
    char text[160]; /* the original text */
    const char *strategy; /* name of its trainers' strategy; NULL: the caller chooses */
    bool alone; /* has a single process */
    bool pushes; /* groups share a store */
    int threads; /* ranks per process */
    int devices; /* ranks per replica */
    int groups; /* 0: one per replica */
    int staleness; /* pushes by which groups may differ; -1: unlimited */
    int shares; /* 0: none */
    enum trib_kind_input input;
};

/* The shape of a run on a given number of processes. */
struct trib_kind_shape {
    int processes, ranks, replicas;
    int groups; /* synchronous groups */
    int in_sync; /* replicas per group */
    size_t batch; /* samples per replica and step */
    uint64_t steps; /* per replica */
};

/**
 * trib_kind_parse - parse the text of a kind.
 *
 * text     NULL: "workers"
 * errors   TRIB_ERR_INVALID with an error message in err
 */
trib_status_t trib_kind_parse(const char *text, struct trib_error *err,
                              struct trib_kind *out);

/**
 * trib_kind_fit - compute the shape of a run of this kind on `processes` processes.
 *
 * batch, steps  from the options
 * errors   TRIB_ERR_INVALID: numbers do not divide, or options conflict
 */
trib_status_t trib_kind_fit(const struct trib_kind *kind, int processes, size_t batch,
                            uint64_t steps, struct trib_error *err,
                            struct trib_kind_shape *out);

#endif
