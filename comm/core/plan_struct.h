/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data of a plan.
 */
#ifndef COMM_CORE_PLAN_STRUCT_H
#define COMM_CORE_PLAN_STRUCT_H

#include "comm/core/identity.h"
#include "comm/core/plan_kind.h"
#include "comm/core/plan_ops.h"
#include "pipeline/engine/engine.h"

struct trib_comm;

enum { TRIB_QUORUM_TEXT_MAX = 64 };

struct trib_plan {
    const struct trib_plan_ops *ops;
    struct trib_comm *comm;
    struct trib_run run;
    const struct trib_plan_kind *kind; /* or NULL */
    void *of_kind; /* data of `kind` */
    struct trib_codec *codec;
    const void *send; /* buffers of the description; NULL: each start passes its own */
    void *recv;
    size_t lengths[2]; /* elements of send and recv, for checks */
    size_t *counts; /* count arrays of a blocking call, the key of its plan:
                     * counted_calls.c; or NULL */
    char why[256]; /* the algorithm and why it was chosen */
    const char *next_algorithm; /* the runner-up, if its estimate is close; or NULL */
    double expected_us; /* estimated time of a start; 0: no estimate */
    double expected_fixed; /* the part of expected_us that does not depend on bytes */
    double selected; /* expected encoded bytes per element, for codecs that select
                      * elements; 0: unknown */
    bool is_exempt; /* the configured codec does not apply here: configured.h */
    bool is_short; /* too short for codec auto, sent dense: plan_auto.h */
    struct trib_result_stats *result_stats; /* plan_stats.c; or NULL */
    size_t most; /* pairs per rank if run.desc.pairs; 0: unknown */
    double squares; /* sum of squares of the elements fed so far, for TRIB_CHECK */
    bool has_quorum; /* aggregators may close its chunks without late ranks */
    bool plain; /* codec none in the format of `codec`, because of the quorum */
    char quorum[TRIB_QUORUM_TEXT_MAX]; /* rule, on an agg_comm; empty: all ranks */
    struct trib_identity identity;
    uint32_t starts; /* number of starts so far */
    uint32_t number; /* of the plan in its frames, on an agg_comm */
    uint64_t charged; /* bytes charged to the job's quota, on an aggregator */
    bool numbered;
    bool dropped; /* an aggregator frees the plan after start number last_start */
    uint32_t last_start;
    struct trib_plan_notify *notify; /* plan_notify.c; or NULL */
    struct trib_plan_scale *scale; /* plan_scale.c; or NULL */
    struct trib_plan_asked *asked; /* the caller's: plan_create.h; or NULL */
    struct trib_offload_plan *offload; /* agg/client/ runs the plan; or NULL */
    struct trib_plan *exchange; /* all-reduces the statistics of run.desc.model, or
                                 * exchanges the counts of run.desc.regions; or NULL */
    float *exchanged; /* the vector of `exchange` */
};

/** trib_plan_hold - return the plan whose engine computes, and pin it until
 * trib_plan_let_go. */
static inline struct trib_plan *trib_plan_hold(struct trib_plan *plan)
{
    if (plan->ops->hold)
        plan->ops->hold(plan);
    return plan->ops->computing(plan);
}

static inline void trib_plan_let_go(const struct trib_plan *plan)
{
    if (plan->ops->let_go)
        plan->ops->let_go(plan);
}

#endif
