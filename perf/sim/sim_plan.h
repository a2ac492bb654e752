/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of ranks that are not there: the library's own algorithms, cut and lowering,
 * with a communicator that holds what these ask for and nothing else.
 */
#ifndef PERF_SIM_SIM_PLAN_H
#define PERF_SIM_SIM_PLAN_H

#include "comm/communicator.h"
#include "inspect/schedule_groups.h"
#include "perf/sim/sim.h"

/* Bytes of code words. */
struct sim_words {
    double contribution; /* bytes of an element */
    double partial; /* 0: by the number of contributions: union */
    double result;
    double head; /* bytes of a word, whatever its length */
    double *merged; /* [ranks + 1] bytes of an element of the union of so many
                     * selections; NULL: the codec does not select */
    bool linear; /* words add, and are not decoded on their way */
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
    int n; /* ranks, and behind them aggregators */
    int hosts; /* of ranks; each aggregator has one of its own behind them */
    uint32_t frames; /* of the library in a message of the replay */
};

/** sim_plan_open - all but the programs; false: why has the sentence. */
bool sim_plan_open(struct sim_plan *p, const struct sim_args *args, int ranks,
                   char why[SIM_WHY]);

/** sim_plan_choose - what auto would choose here, of the algorithms among peers, and by
 * which estimates. */
void sim_plan_choose(const struct sim_plan *p, struct sim_result *out);

/** sim_plan_program - the program of a rank, and the cut in p->plan.run.desc. */
bool sim_plan_program(struct sim_plan *p, int rank, struct trib_program *out,
                      char why[SIM_WHY]);

/** sim_plan_coarsen - from now on a message is so many of the library. */
void sim_plan_coarsen(struct sim_plan *p, uint32_t frames);

void sim_plan_free(struct sim_plan *p);

/** sim_plan_host - the host of a rank or aggregator. */
int sim_plan_host(const struct sim_plan *p, int rank);

#endif
