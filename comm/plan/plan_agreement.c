/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codecs whose ranks agree on scales before encoding: the plan's schedule begins with
 * an all-reduce of these scales.
 */
#include <assert.h>

#include "base/minmax.h"
#include "comm/core/communicator.h"
#include "comm/core/locality.h"
#include "comm/core/plan_struct.h"
#include "comm/core/slot_budget.h"
#include "comm/plan/plan_parts.h"
#include "pipeline/run/run.h"

enum {
    AHEAD_ROUNDS = 8, /* rounds per agreement: a window's worth */
    AHEAD_CHUNKS = 64, /* chunks of these rounds, to keep programs short */
    AHEAD_BYTES = 1 << 20, /* bytes of elements measured before the first encoding */
    FED_PARTS = 16, /* minimum agreements for a vector fed piecewise */
    FED_LEAD = 4, /* agreements run ahead by at most rounds / FED_LEAD */
    CODED = 4, /* bytes of elements per encoded byte */
};

/*
 * Join several rounds of the schedule into one, so that one agreement serves all of
 * them.
 *
 * Ranks agree on a round while the previous one is transferred. Across a network an
 * agreement queues behind up to a window of chunks, so one agreement covers that many
 * rounds. More would leave the link idle while the first round is measured. Rounds of a
 * vector fed piecewise start when fed, and stay a small part of the vector. Within
 * load/store reach an agreement is quick, and measured elements are still in the cache
 * when encoded.
 */
static void join_rounds(struct trib_plan *plan, struct trib_schedule *s)
{
    struct trib_run_desc *r = &plan->run.desc;
    uint32_t most =
        r->op.feed == TRIB_FEED_WHOLE ? AHEAD_ROUNDS : r->rounds / FED_PARTS;
    struct trib_schedule joined = {0};

    assert(r->n_chunks > 0);
    if (most > AHEAD_CHUNKS / r->n_chunks)
        most = AHEAD_CHUNKS / r->n_chunks;
    if (r->piece && most > AHEAD_BYTES / (r->piece * sizeof(float)))
        most = (uint32_t)(AHEAD_BYTES / (r->piece * sizeof(float)));
    if (most < 2 || plan->comm->load_store || r->cut == TRIB_CUT_BLOCKED)
        return;
    const uint32_t rounds = (uint32_t)trib_divide_up(r->rounds, most);
    const uint32_t joins = (uint32_t)trib_divide_up(r->rounds, rounds);
    trib_schedule_init(&joined, r->n_chunks);
    for (uint32_t i = 0; i < joins; i++)
        trib_schedule_append(&joined, s, i * r->n_chunks);
    trib_schedule_free(s);
    *s = joined;
    r->n_chunks *= joins;
    r->rounds = rounds;
}

/*
 * Return how many rounds agreements run ahead. An agreement takes a round trip and
 * queues after earlier sends, so it runs ahead by what the link carries in that time.
 * On short links one round is enough: more would only delay the first encoded chunk.
 */
static uint32_t lead_of(const struct trib_plan *plan)
{
    const struct trib_run_desc *r = &plan->run.desc;
    const uint64_t bytes =
        (uint64_t)plan->comm->round_trip_us * TRIB_FAR_BYTES_US * CODED;
    const uint64_t round = (uint64_t)r->n_chunks * r->piece * sizeof(float);
    const uint32_t most =
        r->op.feed == TRIB_FEED_WHOLE ? r->rounds : r->rounds / FED_LEAD;

    assert(r->rounds > 0 && round > 0);
    return (uint32_t)trib_max(1u, trib_min(1 + trib_divide_up(bytes, round), most));
}

trib_status_t trib_plan_put_agreement_first(struct trib_plan *plan,
                                            struct trib_schedule *s)
{
    struct trib_engine *e = &plan->comm->engine;
    struct trib_run_desc *r = &plan->run.desc;
    size_t slot = plan->comm->cfg.chunk / sizeof(float);

    assert(plan->codec && slot > 0);
    join_rounds(plan, s);
    size_t used =
        r->cut == TRIB_CUT_BLOCKED ? r->n_chunks : trib_divide_up(r->total, r->piece);
    /* One round agrees on the scales of its non-empty chunks. */
    size_t floats = trib_codec_agreed_floats(plan->codec, r->piece) *
                    (used < r->n_chunks ? used : r->n_chunks);
    struct trib_shape shape = {.coll = TRIB_ALLREDUCE,
                               .op = trib_codec_agreement_op(plan->codec),
                               .rank = e->rank,
                               .size = e->ranks,
                               .aggregators = e->size - e->ranks,
                               .tree = trib_plan_tree(plan->comm)};
    struct trib_choice choice = {
        .bytes = floats * sizeof(float),
        .load_store = plan->comm->load_store,
        .oversubscribed = plan->comm->oversubscribed,
        .one_host = plan->comm->one_host,
        .slot_bytes = plan->comm->cfg.chunk,
        .gathers = plan->comm->cfg.deterministic && shape.op == TRIB_SUM,
    };
    struct trib_schedule share = {0}, joined = {0};
    struct trib_locality_groups groups;
    char why[200];

    trib_locality_describe(plan->comm, &choice);
    trib_status_t st = trib_locality_group(plan->comm, choice.bytes, &groups, &shape);
    if (st == TRIB_OK)
        st = trib_plan_build(plan, trib_algo_choose(&shape, &choice, why, sizeof(why)),
                             &shape, &share);
    trib_locality_ungroup(&groups);
    if (st != TRIB_OK)
        return st;
    size_t chunks = trib_divide_up(floats, slot * share.n_chunks) * share.n_chunks;
    assert(share.n_chunks > 0 && chunks >= share.n_chunks);
    trib_schedule_init(&joined, r->n_chunks);
    for (uint32_t at = 0; at < chunks; at += share.n_chunks)
        trib_schedule_append(&joined, &share, r->n_chunks + at);
    trib_schedule_append(&joined, s, 0);
    trib_schedule_free(&share);
    trib_schedule_free(s);
    *s = joined;
    r->share_piece = trib_divide_up(floats, chunks);
    r->share_lead = lead_of(plan);
    r->rounds += r->share_lead;
    return joined.failed ? trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY,
                                          "no memory for a schedule")
                         : TRIB_OK;
}
