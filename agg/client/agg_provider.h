/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider for TRIB_SERVICE: connects the ranks of a job to aggregators, at
 * trib_init and later (struct trib_agg_provider_ops in fallback.h).
 *
 * Rank 0 asks each tribd over a control connection (control_link.h) to admit the job:
 * job_request.c. Then ranks and aggregators wire up like the ranks of a communicator,
 * and rank 0 relays the aggregators' messages: agg_wireup.c. Finally all ranks exchange
 * their results. If any rank has failed, the wireup fails on all ranks, and no rank
 * keeps an agg_comm. admission.c runs these steps.
 */
#ifndef AGG_CLIENT_AGG_PROVIDER_H
#define AGG_CLIENT_AGG_PROVIDER_H

#include "agg/client/control_link.h"
#include "agg/client/fallback.h"

enum { TRIB_AGG_WHY_MAX = 400 };

/* Complete on rank 0; the other ranks have only the tree and the secret. */
struct trib_agg_provider {
    struct trib_comm *parent;
    int retry_ms; /* first pause between searches; 0: rank 0 never searches */
    struct trib_secret secret; /* shared with aggregators; not the ranks' own secret */
    struct trib_control_link_job job;
    struct trib_control_link *control_link; /* sessions of agg_comm; or NULL */
    struct trib_discovery *discovery; /* searches for aggregators that the job lacks */
    int pause_ms; /* before the next search */
    bool more; /* agg_comm is abandoned for one with more aggregators */
    bool stays; /* no aggregators: a tree does not support the quorum of a plan */
    uint64_t opened_ns;
};

/* The outcome of a step on rank 0, broadcast to the other ranks. */
struct trib_agg_verdict {
    int32_t status;
    int32_t aggregators;
    int32_t retry_ms;
    uint32_t tree_bytes;
    uint8_t salt[TRIB_SECRET_BYTES];
    char why[TRIB_AGG_WHY_MAX];
};

/** trib_agg_provider_address - return the address of session i. */
static inline const char *trib_agg_provider_address(const struct trib_control_link *l,
                                                    int i)
{
    return l->job->addresses[l->which[i]];
}

/**
 * trib_agg_provider_make_secret - derive the secret shared with aggregators from a
 * salt.
 *
 * The ranks' own secret cannot be derived from it. If the ranks have no secret, the
 * salt is used as the secret.
 */
void trib_agg_provider_make_secret(struct trib_agg_provider *w,
                                   const uint8_t salt[TRIB_SECRET_BYTES]);

/**
 * trib_agg_provider_request - rank 0: describe the job to each aggregator of
 * TRIB_SERVICE and wait until all have admitted it. Blocks.
 *
 * errors   err receives the message
 */
trib_status_t trib_agg_provider_request(struct trib_agg_provider *w,
                                        struct trib_error *err);

/**
 * trib_agg_provider_wireup - open an agg_comm with the aggregators that have admitted
 * the job. Collective over the ranks; the status is the same on all.
 *
 * by       communicator for messages between ranks
 * why      receives the error message, on all ranks
 */
trib_status_t trib_agg_provider_wireup(struct trib_agg_provider *w,
                                       struct trib_comm *by, int aggregators,
                                       char why[TRIB_AGG_WHY_MAX],
                                       struct trib_comm **out);

#endif
