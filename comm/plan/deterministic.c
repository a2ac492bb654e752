/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/plan/deterministic.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/text.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/configured.h"

/* Return true if encodings add to the same bits in any order, and no chunk boundary
 * splits a unit of the codec. */
static bool is_free_of_order(const struct trib_codec *codec)
{
    const size_t unit = trib_codec_unit(codec);

    assert(unit > 0);
    return trib_codec_info(codec)->flags & TRIB_CODEC_ORDERLESS &&
           unit * sizeof(float) <= TRIB_DETERMINISTIC_CHUNK &&
           trib_codec_sum_bound(codec, unit) <= TRIB_DETERMINISTIC_CHUNK;
}

bool trib_deterministic_orders(const struct trib_plan *plan,
                               const struct trib_shape *shape, trib_dtype_t dtype)
{
    if (!plan->comm->cfg.deterministic || !trib_coll_sums(shape->coll))
        return false;
    return plan->codec ? !is_free_of_order(plan->codec) : trib_dtype_is_float(dtype);
}

bool trib_deterministic_cuts(const struct trib_plan *plan)
{
    return plan->comm->cfg.deterministic && plan->codec && !plan->comm->aggregators;
}

void trib_deterministic_forget(struct trib_choice *choice)
{
    assert(choice->gathers);
    choice->load_store = false;
    choice->near_load_store = false;
    choice->near = false;
    choice->oversubscribed = false;
    choice->one_host = false;
    choice->sharing = 0;
    choice->network = NULL;
    choice->delay_us = 0;
}

trib_status_t trib_deterministic_allows(const struct trib_plan *plan,
                                        const struct trib_algo *algo,
                                        const struct trib_shape *shape)
{
    assert(plan->comm->cfg.deterministic);
    if (algo->aggregators && plan->codec)
        return trib_comm_fail(
            plan->comm, TRIB_ERR_UNSUPPORTED,
            "algorithm %s with codec %s gives different bits than ranks without "
            "aggregators: with TRIB_DETERMINISTIC use auto or direct, or a codec whose "
            "encodings add in any order, such as int8 or exact",
            algo->name, trib_codec_info(plan->codec)->text);
    if (trib_algo_gathers(algo, shape))
        return TRIB_OK;
    return trib_comm_fail(
        plan->comm, TRIB_ERR_UNSUPPORTED,
        "algorithm %s adds partial sums, whose bits depend on the order: with "
        "TRIB_DETERMINISTIC use direct, flat or auto%s",
        algo->name,
        plan->codec ? ", or a codec whose encodings add in any order, such as int8 or "
                      "exact"
                    : ", or codec exact");
}

trib_status_t trib_deterministic_check_cut(const struct trib_plan *plan)
{
    const struct trib_run_desc *r = &plan->run.desc;
    struct trib_comm *comm = plan->comm;

    if (!comm->cfg.deterministic || !plan->codec)
        return TRIB_OK;
    if (!comm->aggregators && comm->cfg.chunk < TRIB_DETERMINISTIC_CHUNK)
        return trib_comm_fail(
            comm, TRIB_ERR_UNSUPPORTED,
            "encoded chunks of a deterministic plan need slots of %d bytes, but slots "
            "have %zu because little memory can be locked: raise ulimit -l or lower "
            "TRIB_WINDOW",
            TRIB_DETERMINISTIC_CHUNK, comm->cfg.chunk);
    if (!comm->aggregators || r->piece >= r->total ||
        r->piece % trib_codec_unit(plan->codec) == 0)
        return TRIB_OK;
    return trib_comm_fail(
        comm, TRIB_ERR_UNSUPPORTED,
        "chunks of %zu elements split units of codec %s, %zu elements each, which "
        "changes bits: with TRIB_DETERMINISTIC raise TRIB_CHUNK",
        r->piece, trib_codec_info(plan->codec)->text, trib_codec_unit(plan->codec));
}

bool trib_deterministic_hands_over(const struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *desc)
{
    const char *text = trib_codec_of(comm, coll, desc);
    struct trib_codec *codec;

    if (!comm->cfg.deterministic || strcmp(text, "none") == 0 ||
        trib_codec_create(text, comm->engine.kernels, NULL, &codec) != TRIB_OK)
        return true; /* creating the plan reports the error in the text */
    /* An aggregator has its own random numbers. */
    const uint32_t flags = trib_codec_info(codec)->flags;
    const bool same = flags & TRIB_CODEC_IDENTITY ||
                      (is_free_of_order(codec) && !(flags & TRIB_CODEC_ROUNDS_SUM));
    trib_codec_destroy(codec);
    return same;
}

void trib_deterministic_explain(struct trib_plan *plan, bool ordered)
{
    const size_t n = strlen(plan->why);

    assert(n < sizeof(plan->why));
    if (!plan->comm->cfg.deterministic || !ordered)
        return;
    snprintf(plan->why + n, sizeof(plan->why) - n,
             "; deterministic: added in rank order%s",
             plan->codec && plan->comm->hooks
                 ? ", not by aggregators, whose results have different bits"
                 : "");
}
