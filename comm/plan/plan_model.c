/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans whose codec has a model, and the plan by which ranks exchange what the model
 * learns between two starts. The exchange is queued before the start that needs it
 * (plan_own.c), so the engine runs it first. The model takes the sum when that start
 * begins.
 */
#include "comm/plan/plan_model.h"

#include <assert.h>
#include <stdlib.h>

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "compress/models/model.h"

enum { TELL_FROM = 16384 }; /* bytes of a vector below which a warning would be noise */

/* Warn about a codec that does not compress; otherwise users would rarely notice. */
static void tell_uncompressed(struct trib_plan *plan)
{
    struct trib_comm *comm = plan->comm;
    const struct trib_run_desc *r = &plan->run.desc;
    const size_t plain = r->piece * sizeof(float);

    if (comm->uncompressed_told || comm->engine.rank != 0 ||
        r->total * sizeof(float) < TELL_FROM ||
        trib_model_trained_bytes(plan->codec, r->piece) < plain)
        return;
    comm->uncompressed_told = true;
    trib_log(
        &comm->log, TRIB_LOG_WARN, "codec",
        "codec %s does not compress a vector of %zu elements: in chunks of %zu "
        "elements it sends as many bytes as codec none (to compress, make the matrix "
        "larger than the rank with columns=N, or raise TRIB_CHUNK, which is %zu)",
        trib_codec_info(plan->codec)->text, r->total, r->piece, comm->cfg.chunk);
}

trib_status_t trib_plan_make_model(struct trib_plan *plan)
{
    struct trib_comm *comm = plan->comm;
    struct trib_run_desc *r = &plan->run.desc;
    const struct trib_model_opts opts = {
        .total = r->total,
        .piece = r->piece,
        .rank = comm->engine.rank,
        .ranks = comm->engine.ranks,
        .mean = r->op.op == TRIB_MEAN,
        .seed = r->seed,
    };
    struct trib_error err = {0};

    assert(plan->codec && !r->model);
    if (!(trib_codec_info(plan->codec)->flags & TRIB_CODEC_MODEL) ||
        r->op.coll != TRIB_ALLREDUCE || r->total == 0 ||
        trib_engine_is_aggregator(&comm->engine))
        return TRIB_OK;
    trib_status_t st = trib_model_create(plan->codec, &opts, &err, &r->model);
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "%s", trib_error_text(&err));
    tell_uncompressed(plan);
    const size_t floats = trib_model_exchange_floats(r->model);
    if (!floats)
        return TRIB_OK;
    plan->exchanged = calloc(floats, sizeof(*plan->exchanged));
    if (!plan->exchanged)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    return TRIB_OK;
}

void trib_plan_describe_exchange(const struct trib_plan *plan, trib_desc_t *desc)
{
    assert(plan->exchanged && !plan->exchange);
    *desc = (trib_desc_t)TRIB_DESC_INIT;
    desc->count = trib_model_exchange_floats(plan->run.desc.model);
    desc->send = desc->recv = plan->exchanged;
    desc->codec = "none";
    desc->feedback = "none";
    desc->timeout_ms = (int)plan->run.desc.limit_ms;
}

void trib_plan_explain_model(const struct trib_plan *plan, char *text, size_t bytes)
{
    const int state = atomic_load_explicit(&plan->run.now.state, memory_order_acquire);

    if (plan->run.desc.model && state != TRIB_RUN_QUEUED && state != TRIB_RUN_ACTIVE)
        trib_model_describe(plan->run.desc.model, text, bytes);
}

void trib_plan_dispose_model(struct trib_plan *plan)
{
    free(plan->exchanged);
    trib_model_destroy(plan->run.desc.model);
}
