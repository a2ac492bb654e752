/* SPDX-License-Identifier: BSD-3-Clause */
/* A request to all parts of a vector, or to one: check, deal, exchange. */
#include <assert.h>

#include "agg/store_client/rank_store.h"

/* Return true if a request restores lost elements. */
static bool restores(const struct trib_store_request *r)
{
    return r->purpose == TRIB_CONTROL_PUSH_RESTORE ||
           r->order == TRIB_CONTROL_SNAPSHOT_RESTORE;
}

trib_status_t trib_vector_request(struct trib_store_request *r)
{
    struct trib_vector *v = r->vector;
    const struct trib_vector_part *p = v->parts;

    assert(v->n_parts > 0);
    trib_error_clear(&v->store->err);
    while (p < v->parts + v->n_parts - 1 && !p->lost)
        p++;
    if (p->lost && !restores(r)) {
        (void)trib_store_fail(v->store, TRIB_ERR_PEER_LOST,
                              "tribd at %s was lost, and is back without this vector",
                              v->store->job.addresses[p->shard]);
        return trib_vector_append_seen(v, TRIB_ERR_PEER_LOST);
    }
    trib_vector_deal(r);
    return trib_store_exchange(r);
}

trib_status_t trib_part_ask(struct trib_vector *v, const struct trib_vector_part *p)
{
    struct trib_store_request r = {
        .vector = v, .only = p, .bound = TRIB_CONTROL_UNBOUNDED};

    assert(p >= v->parts && p < v->parts + v->n_parts);
    trib_vector_deal(&r);
    return trib_store_exchange(&r);
}
