/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans that are served: the public calls, on a plan of the channel or of the spare.
 */
#include "offload/offload_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "comm/configured.h"
#include "pipeline/payload/undo_log.h"

enum {
    CHUNK_LEAST = 32 << 10, /* of dense vectors on a channel, unless somebody asks for
                             * less */
    WORD_MOST = 48 << 10,
    CHANNEL_ROUNDS_GOOD = 192,
};

/* Making --------------------------------------------------------------------------- */

trib_status_t trib_offload_plan_refused(struct trib_offload_plan *s,
                                        const struct trib_comm *by, trib_status_t st)
{
    return trib_comm_fail(s->offload->home, st, "%s", trib_last_error(by));
}

/* Is what it loses that of buckets, which chunks do not cut? */
static bool by_buckets(const struct trib_codec_info *codec)
{
    return codec->flags & TRIB_CODEC_LINEAR && !(codec->flags & TRIB_CODEC_MODEL);
}

/*
 * The chunks of all ranks meet at a service, and a sum ends a trip after the last of
 * them is up: over networks dense vectors have chunks of 32 KiB, so that less is on the
 * way then, or larger ones where these are rounds enough and save messages; words of
 * integers are of 48 KiB at most. Within load/store reach dense chunks are as large as
 * stays in a cache, and as many bytes of integers cost as much to pass on: these are of
 * more elements. Other code words stay as they are: what is lost does not depend on the
 * way, and sparse ones cost by their number, however short.
 */
static size_t chunk_by(const struct trib_codec *codec, size_t good, size_t most,
                       bool near)
{
    const struct trib_codec_info *info = trib_codec_info(codec);
    const size_t least = most < CHUNK_LEAST ? most : CHUNK_LEAST;
    size_t chunk = most;

    if (info->flags & TRIB_CODEC_IDENTITY)
        return good >= most || near ? 0 : good < least ? least : good / 4096 * 4096;
    if (!by_buckets(info))
        return 0;
    if (near)
        return TRIB_AGG_CHUNKS_PER_WORD * most;
    while (chunk > least && trib_codec_bound(codec, chunk / sizeof(float)) > WORD_MOST)
        chunk /= 2;
    return chunk;
}

/* 0: the usual one */
static size_t chunk_on(const struct trib_offload_plan *s,
                       const struct trib_comm *channel)
{
    const size_t bytes = s->desc.count * trib_dtype_size(s->desc.dtype);
    const size_t good = bytes / ((size_t)channel->aggregators->n * CHANNEL_ROUNDS_GOOD);
    const char *text = trib_codec_of(channel, s->coll, &s->desc);
    struct trib_codec *codec;

    if (s->desc.chunk || s->offload->home->chunk_given ||
        trib_codec_create(text, NULL, NULL, &codec) != TRIB_OK) /* as the plan will
                                                                 * tell */
        return s->desc.chunk;
    const size_t chunk = chunk_by(codec, good, channel->cfg.chunk, channel->load_store);
    trib_codec_destroy(codec);
    return chunk;
}

trib_status_t trib_offload_plan_make_inner(struct trib_offload_plan *s,
                                           struct trib_comm *comm,
                                           struct trib_plan **out)
{
    trib_desc_t desc = s->desc;

    desc.algorithm = TRIB_AUTO;
    if (comm->aggregators)
        desc.chunk = chunk_on(s, comm);
    const trib_status_t st = trib_plan_make(comm, s->coll, &desc, false, out);
    if (st == TRIB_OK)
        (*out)->identity.inner = true;
    return st;
}

/* The barrier behind each start of a plan of the channel. */
trib_status_t trib_offload_plan_make_commit(const struct trib_offload *v,
                                            const struct trib_plan *plan,
                                            struct trib_plan **out)
{
    struct trib_comm *by = plan->run.desc.quorum.need ? v->confirms : plan->comm;
    trib_desc_t desc = TRIB_DESC_INIT;

    desc.dtype = TRIB_I8;
    return trib_plan_make(by, TRIB_BARRIER, &desc, false, out);
}

/* Starts under way ----------------------------------------------------------------- */

void trib_offload_plan_number(struct trib_offload_plan *s)
{
    s->now->identity.of_calls = s->of_calls;
    trib_plan_number(s->now, s->offload->home, s->number);
}

/* ordinal: of this start */
trib_status_t trib_offload_plan_start_both(struct trib_offload_plan *s,
                                           uint64_t ordinal)
{
    trib_offload_plan_number(s);
    trib_status_t st = trib_plan_start_with(s->now, s->send, s->recv);

    if (st != TRIB_OK || !s->confirm || trib_offload_plan_has_quorum(s))
        return st;
    st = trib_plan_start(s->confirm);
    if (st == TRIB_OK)
        s->covers = ordinal;
    return st;
}

static void adopt(struct trib_offload_plan *s, struct trib_plan *plan)
{
    trib_identity_take(plan, s->now);
    trib_run_adopt(&plan->run, &s->now->run);
}

trib_status_t trib_offload_plan_move(struct trib_offload_plan *s, struct trib_comm *to)
{
    struct trib_plan *plan, *confirm = NULL;

    trib_status_t st = trib_offload_plan_make_inner(s, to, &plan);
    if (st == TRIB_OK && to->aggregators)
        st = trib_offload_plan_make_commit(s->offload, plan, &confirm);
    if (st != TRIB_OK) {
        trib_plan_destroy(plan);
        return st;
    }
    if (s->now)
        adopt(s, plan);
    trib_plan_destroy(s->now);
    trib_plan_destroy(s->confirm);
    s->confirm = confirm;
    s->covers = 0;
    s->now = plan;
    return trib_offload_quorum_make(s);
}

trib_status_t trib_offload_plan_restart(struct trib_offload_plan *s)
{
    trib_status_t st = trib_offload_plan_start_both(s, s->ordinal);

    for (size_t i = 0; st == TRIB_OK && i < s->n_fed; i++)
        st = trib_plan_ready(s->now, s->fed[i].first, s->fed[i].count);
    return st;
}

bool trib_offload_plan_needs_input(const struct trib_offload_plan *s)
{
    size_t named = 0;

    for (size_t i = 0; i < s->n_fed; i++)
        named += s->fed[i].count;
    return s->desc.feed != TRIB_FEED_WHOLE && named < s->desc.count;
}

/* The public calls ----------------------------------------------------------------- */

