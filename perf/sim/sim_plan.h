/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of simulated ranks, made with the library's own algorithms, cut and lowering.
 * The communicator only has the fields that these read.
 */
#ifndef PERF_SIM_SIM_PLAN_H
#define PERF_SIM_SIM_PLAN_H

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "inspect/schedule_groups.h"
#include "perf/sim/sim.h"

/* Bytes of encoded vectors. */
struct sim_words {
    double contribution; /* bytes per element */
    double partial; /* bytes per element; not used with merged[] */
    double result;
    double head; /* fixed bytes per encoded vector */
    double *merged; /* [ranks + 1] bytes per element of a union of N selections; NULL:
                     * not a selection */
    bool linear; /* partial sums are added without decoding */
};

struct sim_plan {
    const struct sim_args *args;
    const struct trib_algo *algo;
    struct trib_shape shape;
    struct trib_comm *comm;
    struct trib_plan plan;
    trib_desc_t desc;
    struct trib_drawn drawn;
    struct trib_aggregators aggregators;
    struct trib_agg_tree tree;
    int *tree_memory;
    struct sim_words words;
    int n; /* ranks, followed by aggregators */
    int hosts; /* of ranks; each aggregator has its own host after these */
    uint32_t frames; /* the library's frames per message of the replay */
};

/** sim_plan_open - make everything but the programs. false: why has the message. */
bool sim_plan_open(struct sim_plan *p, const struct sim_args *args, int ranks,
                   char why[SIM_WHY]);

/** sim_plan_choose - compute the peer algorithm that auto would choose, and its
 * estimates. */
void sim_plan_choose(const struct sim_plan *p, struct sim_result *out);

/** sim_plan_program - make the program of a rank, and the cut in p->plan.run.desc. */
bool sim_plan_program(struct sim_plan *p, int rank, struct trib_program *out,
                      char why[SIM_WHY]);

/** sim_plan_coarsen - from now on, a message stands for `frames` messages of the
 * library. */
void sim_plan_coarsen(struct sim_plan *p, uint32_t frames);

void sim_plan_free(struct sim_plan *p);

/** sim_plan_host - return the host of a rank or aggregator. */
int sim_plan_host(const struct sim_plan *p, int rank);

#endif
