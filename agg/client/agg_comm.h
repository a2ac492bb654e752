/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agg_comm: the communicator of a job's ranks and its aggregators. Ranks have the
 * numbers 0 to p - 1, aggregators p, p + 1, …. Aggregators contribute nothing and sum
 * for the ranks (schedule.h).
 *
 * A rank uses it like any communicator, and all its plans use the algorithm of
 * aggregators. An aggregator is driven by trib_agg_comm_step: it creates the plans that
 * rank 0 announces, and starts a plan when the ranks have started it. Plans are
 * numbered in order of creation, which must be the same on all ranks. Each frame
 * carries its plan's number.
 */
#ifndef AGG_CLIENT_AGG_COMM_H
#define AGG_CLIENT_AGG_COMM_H

#include "base/quota.h"
#include "comm/core/communicator.h"
#include "transport/common/guard.h"

struct trib_exchange;

enum {
    TRIB_AGG_COMM_PLANS = 4096, /* maximum number of plans of one agg_comm */
    TRIB_AGG_COMM_TEXT_MAX = 1024, /* bytes of an announcement, with its NUL */
};

/* Sends rank 0's announcements to the aggregators. */
struct trib_announcer {
    /* Announce a plan, or that it is freed, to all aggregators. On error, `err` has the
     * message. */
    trib_status_t (*plan)(void *arg, uint32_t number, const char *text,
                          struct trib_error *err);
    void *arg;
};

struct trib_agg_comm {
    struct trib_aggregators base; /* must be first: trib_agg_comm_of */
    struct trib_agg_tree *tree; /* or NULL; base.tree */
    struct trib_announcer announcer; /* rank 0; others: all NULL */
    bool taken[TRIB_AGG_COMM_PLANS]; /* numbers in use */
    uint32_t next; /* where the search for a free number begins */
    struct trib_plan **plans; /* aggregator: [TRIB_AGG_COMM_PLANS] by number */
    int *peers; /* aggregator: ranks with links to it, a subset of all ranks */
    int n_peers;
    uint32_t n_dropped; /* aggregator: freed plans that still have starts to do */
    size_t memory; /* see trib_agg_comm_opts */
    uint32_t announced; /* aggregator: number of the plan being created */
    struct trib_quota *quota; /* see trib_agg_comm_opts */
    uint64_t values; /* aggregator: bytes held of `quota`, returned at disposal */
    struct trib_guard guard; /* copy of trib_agg_comm_opts.guard, if there is one */
};

struct trib_agg_comm_opts {
    int rank; /* of this rank or aggregator */
    int ranks;
    int aggregators;
    const struct trib_agg_tree *tree; /* or NULL; copied */
    struct trib_announcer announcer;
    struct trib_net_met met; /* the job's rendezvous; all zero: unknown */
    const struct trib_secret *secret; /* shared with aggregators, armed; or NULL */
    size_t memory; /* aggregator: limit of a plan in bytes, slots excluded; 0: none */
    struct trib_quota *quota; /* aggregator: quota of all its plans; or NULL */
    struct trib_idle *idle; /* idle function, which must outlive agg_comm; or NULL */
    /* Set if ranks and aggregators belong to different users, who do not trust each
     * other (transport/common/guard.h); copied. NULL: one user, as in tests. */
    const struct trib_guard *guard;
};

/**
 * trib_agg_comm_open - wire up ranks and aggregators, which exchange messages through
 * x.
 *
 * cfg, log  copied; for settings on which ranks must agree (trib_config_same_text), an
 *           aggregator passes the ranks' values
 * err       receives the error message
 * owner     trib_free_comm (ranks), trib_agg_comm_dispose (aggregators, or after a
 *           failure)
 */
trib_status_t trib_agg_comm_open(const struct trib_config *cfg,
                                 const struct trib_log *log,
                                 const struct trib_agg_comm_opts *opts,
                                 const struct trib_exchange *x, struct trib_error *err,
                                 struct trib_comm **out);
void trib_agg_comm_dispose(struct trib_comm *comm);

/** trib_agg_comm_of - return the trib_agg_comm of an agg_comm, or NULL. */
static inline struct trib_agg_comm *trib_agg_comm_of(const struct trib_comm *comm)
{
    return (struct trib_agg_comm *)comm->aggregators;
}

/**
 * trib_agg_comm_announced - aggregator: create or free the plan that rank 0 announced.
 *
 * text     announcement from another host: any bytes with a NUL
 * errors   TRIB_ERR_PROTOCOL: not an announcement; TRIB_ERR_NO_RESOURCE: the plan
 *          exceeds the memory limit of a plan or of the job; errors of
 *          trib_plan_create. The message is in trib_last_error(comm)
 */
trib_status_t trib_agg_comm_announced(struct trib_comm *comm, uint32_t number,
                                      const char *text);

/**
 * trib_agg_comm_step - aggregator: make progress without blocking.
 *
 * returns  true if anything moved. Check comm->engine.failed after each call
 */
bool trib_agg_comm_step(struct trib_comm *comm);

#endif
