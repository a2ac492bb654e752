/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider behind TRIB_SERVICE: how the ranks of a job come to aggregators, at
 * first and again (struct trib_agg_provider_ops in fallback.h).
 *
 * Rank 0 asks each tribd over a control connection (control_link.h): job_request.c.
 * Then ranks and aggregators wire up as ranks do, and rank 0 carries the aggregators'
 * messages: agg_wireup.c. At the end all ranks tell each other whether it went well. An
 * error before that end is an error on all ranks, which then have no agg_comm.
 * admission.c runs these steps.
 */
#ifndef OFFLOAD_AGG_PROVIDER_H
#define OFFLOAD_AGG_PROVIDER_H

#include "offload/control_link.h"
#include "offload/fallback.h"

enum { TRIB_AGG_WHY_MAX = 400 };

/* Rank 0 has all of this; the other ranks have the tree and the secret. */
struct trib_agg_provider {
    struct trib_comm *parent;
    int retry_ms; /* first pause between searches; 0: rank 0 never searches */
    struct trib_secret secret; /* of ranks and aggregators; not the ranks' own */
    struct trib_control_link_job job;
    struct trib_control_link *control_link; /* sessions of agg_comm; NULL: no
                                             * agg_comm */
    struct trib_discovery *discovery; /* searches for aggregators that the job lacks */
    int pause_ms; /* before the next search */
    bool more; /* agg_comm is left for one with more aggregators */
    bool stays; /* the ranks stay alone because a plan has a quorum */
    uint64_t opened_ns;
};

/* Rank 0 tells the other ranks how a step went. */
struct trib_agg_verdict {
    int32_t status;
    int32_t aggregators;
    int32_t retry_ms;
    uint32_t tree_bytes;
    uint8_t salt[TRIB_SECRET_BYTES];
    char why[TRIB_AGG_WHY_MAX];
};

/** trib_agg_provider_address - address of session i. */
static inline const char *trib_agg_provider_address(const struct trib_control_link *l,
                                                    int i)
{
    return l->job->addresses[l->which[i]];
}

/**
 * trib_agg_provider_make_secret - derive the secret of ranks and aggregators from a
 * salt.
 *
 * An aggregator learns nothing of the ranks' own secret. If they have none, the salt is
 * the secret.
 */
void trib_agg_provider_make_secret(struct trib_agg_provider *w,
                                   const uint8_t salt[TRIB_SECRET_BYTES]);

/**
 * trib_agg_provider_request - rank 0: describe the job to each aggregator of
 * TRIB_SERVICE, and wait until all have admitted it. Blocks.
 *
 * errors   the sentence is in err
 */
trib_status_t trib_agg_provider_request(struct trib_agg_provider *w,
                                        struct trib_error *err);

/**
 * trib_agg_provider_wireup - all ranks at once: open an agg_comm with the aggregators
 * to which rank 0 has a control_link. The status is the same on all ranks.
 *
 * by       carries what the ranks tell each other
 * why      receives the sentence of an error, on all ranks
 */
trib_status_t trib_agg_provider_wireup(struct trib_agg_provider *w,
                                       struct trib_comm *by, int aggregators,
                                       char why[TRIB_AGG_WHY_MAX],
                                       struct trib_comm **out);

#endif
