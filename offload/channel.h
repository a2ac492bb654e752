/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The channel of a job to its services: a communicator of p ranks, behind which stand
 * nodes p, p + 1, … that contribute nothing and sum for the ranks (schedule.h,
 * "services").
 *
 * A rank uses it as any communicator; all of its plans are by algorithm "service". A
 * node is driven by trib_agg_comm_step: it makes the plans that rank 0 announces, and
 * starts whichever the ranks have started. Plans are numbered in the order in which
 * ranks make them, which must be the same on all ranks; frames carry the number.
 */
#ifndef OFFLOAD_CHANNEL_H
#define OFFLOAD_CHANNEL_H

#include "base/quota.h"
#include "comm/communicator.h"
#include "transport/common/guard.h"

enum {
    TRIB_AGG_COMM_PLANS = 4096, /* under way at a time, of one channel */
    TRIB_AGG_COMM_TEXT_MAX = 1024, /* of an announcement, with its NUL */
};

/* How announcements leave rank 0. */
struct trib_announcer {
    /* Tell all nodes of a plan, or that it is no more; TRIB_OK, or why not in err. */
    trib_status_t (*plan)(void *arg, uint32_t number, const char *text,
                          struct trib_error *err);
    void *arg;
};

struct trib_agg_comm {
    struct trib_aggregators base; /* first: trib_agg_comm_of */
    struct trib_agg_tree *tree; /* or NULL; base.tree */
    struct trib_announcer announcer;      /* rank 0's; others: NULL */
    bool taken[TRIB_AGG_COMM_PLANS]; /* numbers of plans */
    uint32_t next;                        /* where to look for a free number */
    struct trib_plan **plans; /* of a node: [TRIB_AGG_COMM_PLANS] by
                                           * number */
    int *peers;  /* of a node: with whom it has links, of perhaps very many ranks */
    int n_peers;
    uint32_t n_dropped;                   /* of a node: plans that last until they are
                                           * done */
    size_t memory; /* of trib_agg_comm_opts */
    uint32_t announced;                   /* of a node: the number of what is being
                                           * made */
    struct trib_ledger *ledger; /* of trib_agg_comm_opts */
    uint64_t values; /* of a node: taken from ledger until the channel ends */
    struct trib_guard guard; /* where trib_agg_comm_opts has one */
};

struct trib_agg_comm_opts {
    int rank; /* of this rank or node */
    int ranks;
    int services;
    const struct trib_agg_tree *tree; /* or NULL; copied */
    struct trib_announcer announcer;
    struct trib_net_met met; /* where the job's ranks met; all zero: not known */
    const struct trib_secret *secret; /* of ranks and nodes, armed; NULL or not set:
                                       * none */
    size_t memory; /* of a node: bytes that one plan may take beside its slots; 0: no
                    * limit */
    struct trib_ledger *ledger; /* of a node: all its plans take theirs from it; or
                                 * NULL */
    /* The ranks and the nodes are different users' and do not trust each other
     * (transport/common/guard.h); copied. NULL: they are one user's, as in tests. */
    const struct trib_guard *guard;
};

/**
 * trib_agg_comm_open - of ranks and nodes that meet by x.
 *
 * cfg, log  copied; what ranks must agree on (trib_config_same_text) must be the ranks'
 * err       receives the sentence of an error
 * owner     trib_free_comm (ranks), trib_agg_comm_dispose (nodes, or after a failure)
 */
trib_status_t trib_agg_comm_open(const struct trib_config *cfg,
                                 const struct trib_log *log,
                                 const struct trib_agg_comm_opts *opts,
                                 const struct trib_exchange *x, struct trib_error *err,
                                 struct trib_comm **out);
void trib_agg_comm_dispose(struct trib_comm *comm);

/** trib_agg_comm_of - what trib_agg_comm_open has put behind comm->aggregators; or
 * NULL. */
static inline struct trib_agg_comm *trib_agg_comm_of(const struct trib_comm *comm)
{
    return (struct trib_agg_comm *)comm->aggregators;
}

/**
 * trib_agg_comm_take_plan - a node makes the plan that rank 0 announced, or frees it.
 *
 * text     any bytes with a NUL: they come from another host
 * errors   TRIB_ERR_PROTOCOL: that is no announcement; TRIB_ERR_NO_RESOURCE: more
 *          memory than the plan, or all the job's, may take; those of trib_plan_create.
 *          The sentence is in trib_last_error(comm)
 */
trib_status_t trib_agg_comm_take_plan(struct trib_comm *comm, uint32_t number,
                                      const char *text);

/**
 * trib_agg_comm_step - what a node can do now; never blocks.
 *
 * returns  true if anything moved. See comm->engine.failed
 */
bool trib_agg_comm_step(struct trib_comm *comm);

#endif
