/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agg_comm: the communicator of a job's ranks and its aggregators. Behind p ranks stand
 * the aggregators p, p + 1, …, which contribute nothing and sum for the ranks
 * (schedule.h).
 *
 * A rank uses it as any communicator; all its plans use the algorithm of aggregators.
 * An aggregator is driven by trib_agg_comm_step: it makes the plans that rank 0
 * announces, and starts those that the ranks have started. Plans are numbered in the
 * order in which ranks make them, which must be the same on all ranks; frames carry the
 * number.
 */
#ifndef OFFLOAD_AGG_COMM_H
#define OFFLOAD_AGG_COMM_H

#include "base/quota.h"
#include "comm/communicator.h"
#include "transport/common/guard.h"

enum {
    TRIB_AGG_COMM_PLANS = 4096, /* plans that one agg_comm can have at a time */
    TRIB_AGG_COMM_TEXT_MAX = 1024, /* bytes of an announcement, with its NUL */
};

/* The way by which announcements leave rank 0. */
struct trib_announcer {
    /* Tell all aggregators of a plan, or that it is freed; TRIB_OK, or a sentence in
     * err. */
    trib_status_t (*plan)(void *arg, uint32_t number, const char *text,
                          struct trib_error *err);
    void *arg;
};

struct trib_agg_comm {
    struct trib_aggregators base; /* must be first: trib_agg_comm_of */
    struct trib_agg_tree *tree; /* or NULL; base.tree */
    struct trib_announcer announcer; /* rank 0; others: all NULL */
    bool taken[TRIB_AGG_COMM_PLANS]; /* numbers in use */
    uint32_t next; /* number from which to search for a free
                                           * one */
    struct trib_plan **plans; /* aggregator: [TRIB_AGG_COMM_PLANS] by number */
    int *peers; /* aggregator: ranks with which it has links, of perhaps very many */
    int n_peers;
    uint32_t n_dropped; /* aggregator: freed plans whose starts have
                                           * yet to end */
    size_t memory; /* as in trib_agg_comm_opts */
    uint32_t announced; /* aggregator: number of the plan that is
                                           * being made */
    struct trib_quota *quota; /* as in trib_agg_comm_opts */
    uint64_t values; /* aggregator: bytes taken from the quota until agg_comm ends */
    struct trib_guard guard; /* copy of trib_agg_comm_opts.guard, if there is one */
};

struct trib_agg_comm_opts {
    int rank; /* of this rank or aggregator */
    int ranks;
    int aggregators;
    const struct trib_agg_tree *tree; /* or NULL; copied */
    struct trib_announcer announcer;
    struct trib_net_met met; /* where the job's ranks met; all zero: unknown */
    const struct trib_secret *secret; /* shared by ranks and aggregators, armed; NULL or
                                       * not set: none */
    size_t memory; /* aggregator: bytes that a plan may take beside its slots; 0: no
                    * limit */
    struct trib_quota *quota; /* aggregator: quota of all its plans; or NULL */
    struct trib_idle *idle; /* the caller's idle function, which outlives it; or NULL */
    /* Ranks and aggregators belong to different users, who do not trust each other
     * (transport/common/guard.h); copied. NULL: they belong to one user, as in
     * tests. */
    const struct trib_guard *guard;
};

/**
 * trib_agg_comm_open - wire up ranks and aggregators, which exchange messages through
 * x.
 *
 * cfg, log  copied; settings on which ranks must agree (trib_config_same_text) are the
 *           ranks'
 * err       receives the sentence of an error
 * owner     trib_free_comm (ranks), trib_agg_comm_dispose (aggregators, or after a
 *           failure)
 */
trib_status_t trib_agg_comm_open(const struct trib_config *cfg,
                                 const struct trib_log *log,
                                 const struct trib_agg_comm_opts *opts,
                                 const struct trib_exchange *x, struct trib_error *err,
                                 struct trib_comm **out);
void trib_agg_comm_dispose(struct trib_comm *comm);

/** trib_agg_comm_of - the object behind comm->aggregators of an agg_comm; or NULL. */
static inline struct trib_agg_comm *trib_agg_comm_of(const struct trib_comm *comm)
{
    return (struct trib_agg_comm *)comm->aggregators;
}

/**
 * trib_agg_comm_take_plan - an aggregator makes the plan that rank 0 has announced, or
 * frees it.
 *
 * text     any bytes with a NUL: they come from another host
 * errors   TRIB_ERR_PROTOCOL: this is no announcement; TRIB_ERR_NO_RESOURCE: more
 *          memory than the plan, or the whole job, may take; those of trib_plan_create.
 *          The sentence is in trib_last_error(comm)
 */
trib_status_t trib_agg_comm_take_plan(struct trib_comm *comm, uint32_t number,
                                      const char *text);

/**
 * trib_agg_comm_step - an aggregator does what it can do now; never blocks.
 *
 * returns  true if anything moved. See comm->engine.failed
 */
bool trib_agg_comm_step(struct trib_comm *comm);

#endif
