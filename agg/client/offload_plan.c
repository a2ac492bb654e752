/* SPDX-License-Identifier: BSD-3-Clause */
/* Inner plans of offloaded plans, on agg_comm or on fallback_comm. */
#include "agg/client/offload_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/kinds/plan_sparse.h"
#include "comm/plan/configured.h"
#include "comm/plan/plan_make.h"
#include "pipeline/payload/undo_log.h"

enum {
    CHUNK_LEAST = 32 << 10, /* smallest dense chunk on agg_comm by default */
    WORD_MOST = 48 << 10,
    CHANNEL_ROUNDS_GOOD = 192,
};

/* Making --------------------------------------------------------------------------- */

trib_status_t trib_offload_plan_refused(struct trib_offload_plan *p,
                                        const struct trib_comm *by, trib_status_t st)
{
    return trib_comm_fail(p->offload->parent, st, "%s", trib_last_error(by));
}

/* Return true if the codec quantises per bucket, so that the loss does not depend on
 * chunk boundaries. */
static bool by_buckets(const struct trib_codec_info *codec)
{
    return codec->flags & TRIB_CODEC_LINEAR && !(codec->flags & TRIB_CODEC_MODEL);
}

/*
 * Return the chunk size of an inner plan on agg_comm.
 *
 * An aggregator needs a chunk from all ranks, so the sum ends one hop after the last
 * rank has sent its last chunk. Small chunks leave less to send at that point. Large
 * chunks save messages.
 *
 *   - Dense, over a network: 32 KiB, or larger if the vector then still has 192
 *     chunks per aggregator.
 *   - Dense, through shared memory: the default, as large as fits into a cache.
 *   - Linear codecs with buckets, over a network: at most 48 KiB encoded.
 *   - Linear codecs with buckets, through shared memory: several times the default in
 *     elements, since an encoded byte costs as much to forward as a dense one.
 *   - Other codecs: the default. Their loss depends on chunk boundaries, and must be
 *     the same with and without aggregators. The cost of sparse chunks depends on
 *     their number.
 */
size_t trib_offload_chunk(const struct trib_codec *codec, size_t bytes, int aggregators,
                          size_t most, bool load_store)
{
    const struct trib_codec_info *info = trib_codec_info(codec);
    const size_t good = bytes / ((size_t)aggregators * CHANNEL_ROUNDS_GOOD);
    const size_t least = most < CHUNK_LEAST ? most : CHUNK_LEAST;
    size_t chunk = most;

    if (info->flags & TRIB_CODEC_IDENTITY)
        return good >= most || load_store ? 0
               : good < least             ? least
                                          : good / 4096 * 4096;
    if (!by_buckets(info))
        return 0;
    if (load_store)
        return TRIB_AGG_CHUNKS_PER_WORD * most;
    while (chunk > least && trib_codec_bound(codec, chunk / sizeof(float)) > WORD_MOST)
        chunk /= 2;
    return chunk;
}

/* Return the chunk size of an inner plan on agg_comm in bytes; 0: the default. */
static size_t chunk_on(const struct trib_offload_plan *p,
                       const struct trib_comm *agg_comm)
{
    const size_t bytes = p->desc.count * trib_dtype_size(p->desc.dtype);
    const char *text = trib_codec_of(agg_comm, p->coll, &p->desc);
    struct trib_codec *codec;

    if (p->desc.chunk || p->offload->parent->chunk_given ||
        trib_codec_create(text, NULL, NULL, &codec) !=
            TRIB_OK) /* creating the plan reports the error */
        return p->desc.chunk;
    const size_t chunk = trib_offload_chunk(codec, bytes, agg_comm->aggregators->n,
                                            agg_comm->cfg.chunk, agg_comm->load_store);
    trib_codec_destroy(codec);
    return chunk;
}

trib_status_t trib_offload_plan_make_inner(struct trib_offload_plan *p,
                                           struct trib_comm *comm,
                                           struct trib_plan **out)
{
    trib_desc_t desc = p->desc;

    desc.algorithm = TRIB_AUTO;
    if (comm->aggregators && !p->pairs)
        desc.chunk = chunk_on(p, comm);
    const trib_status_t st = p->pairs
                                 ? trib_sparse_make(comm, &desc, p->most, out)
                                 : trib_plan_make(comm, p->coll, &desc, false, out);
    if (st == TRIB_OK)
        (*out)->identity.inner = true;
    return st;
}

/* On commit_comm if the plan has a quorum, otherwise on agg_comm. */
trib_status_t trib_offload_plan_make_commit(const struct trib_offload *o,
                                            const struct trib_plan *plan,
                                            struct trib_plan **out)
{
    struct trib_comm *by = plan->run.desc.quorum.need ? o->commit_comm : plan->comm;
    trib_desc_t desc = TRIB_DESC_INIT;

    assert(by);
    desc.dtype = TRIB_I8;
    return trib_plan_make(by, TRIB_BARRIER, &desc, false, out);
}

/* Starts in flight ----------------------------------------------------------------- */

void trib_offload_plan_number(struct trib_offload_plan *p)
{
    p->inner->identity.of_calls = p->of_calls;
    trib_plan_number(p->inner, p->offload->parent, p->number);
}

trib_status_t trib_offload_plan_start_both(struct trib_offload_plan *p, uint64_t seq)
{
    assert(seq > 0 && p->inner);
    trib_offload_plan_number(p);
    trib_status_t st = p->pairs ? trib_sparse_start(p->inner, p->send)
                                : trib_plan_start_with(p->inner, p->send, p->recv);

    if (st != TRIB_OK || !p->commit || trib_offload_plan_has_quorum(p))
        return st;
    st = trib_plan_start(p->commit);
    if (st == TRIB_OK)
        p->committed_upto = seq;
    return st;
}

static void adopt(struct trib_offload_plan *p, struct trib_plan *plan)
{
    assert(plan->identity.inner && p->inner->identity.inner);
    trib_identity_take(plan, p->inner);
    trib_run_adopt(&plan->run, &p->inner->run);
    if (p->pairs)
        trib_pairs_adopt(&plan->run, &p->inner->run);
}

trib_status_t trib_offload_plan_move(struct trib_offload_plan *p, struct trib_comm *to)
{
    struct trib_plan *plan, *commit = NULL;

    assert(!p->inner || p->inner->comm != to);
    trib_status_t st = trib_offload_plan_make_inner(p, to, &plan);
    if (st == TRIB_OK && to->aggregators)
        st = trib_offload_plan_make_commit(p->offload, plan, &commit);
    if (st != TRIB_OK) {
        trib_plan_destroy(plan);
        return st;
    }
    if (p->inner)
        adopt(p, plan);
    trib_plan_destroy(p->inner);
    trib_plan_destroy(p->commit);
    p->commit = commit;
    p->committed_upto = 0;
    p->inner = plan;
    return trib_offload_quorum_make(p);
}

trib_status_t trib_offload_plan_restart(struct trib_offload_plan *p)
{
    trib_status_t st = trib_offload_plan_start_both(p, p->seq);

    for (size_t i = 0; st == TRIB_OK && i < p->n_ready; i++)
        st = trib_plan_ready(p->inner, p->ready[i].first, p->ready[i].count);
    return st;
}

bool trib_offload_plan_needs_input(const struct trib_offload_plan *p)
{
    size_t named = 0;

    for (size_t i = 0; i < p->n_ready; i++)
        named += p->ready[i].count;
    return p->desc.feed != TRIB_FEED_WHOLE && named < p->desc.count;
}
