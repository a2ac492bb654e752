/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreements: all-reduces of a few numbers (op max) over control_comm, which carries
 * nothing else. An agreement therefore waits neither for a user's start nor for its
 * input. */
#include <assert.h>
#include <string.h>

#include "agg/client/offload_plan.h"
#include "base/text.h"
#include "comm/core/comm_lock.h"
#include "comm/core/progress_thread.h"
#include "comm/plan/plan.h"
#include "comm/plan/plan_make.h"

/* Short waits are normal: a rank that frees the communicator waits in the agreement for
 * ranks that have yet to receive the last sum. */
#define LEFT_BEHIND_NS 500000000u

static trib_status_t make(struct trib_offload *o)
{
    trib_desc_t desc = TRIB_DESC_INIT;

    desc.count = TRIB_AGREE_WORDS;
    desc.dtype = TRIB_I64;
    desc.op = TRIB_MAX;
    desc.codec = "none";
    desc.algorithm = TRIB_AUTO;
    desc.recv = o->agreed;
    return trib_plan_make(o->control_comm, TRIB_ALLREDUCE, &desc, false, &o->agreement);
}

static trib_status_t prepare(struct trib_offload *o,
                             const int64_t words[TRIB_AGREE_WORDS])
{
    assert(o->control_comm);
    memcpy(o->agreed, words, sizeof(o->agreed));
    return o->agreement ? TRIB_OK : make(o);
}

trib_status_t trib_agreement_start(struct trib_offload *o,
                                   const int64_t words[TRIB_AGREE_WORDS])
{
    const trib_status_t st = prepare(o, words);

    return st == TRIB_OK ? trib_plan_start(o->agreement) : st;
}

trib_status_t trib_agreement_wait(struct trib_offload *o)
{
    assert(o->agreement);
    return trib_plan_wait(o->agreement);
}

trib_status_t trib_agreement_run(struct trib_offload *o,
                                 const int64_t words[TRIB_AGREE_WORDS])
{
    const trib_status_t st = prepare(o, words);

    return st == TRIB_OK ? trib_plan_run(o->agreement, NULL, o->agreed) : st;
}

/*
 * Check for two failures that this rank cannot see on agg_comm.
 *
 * A rank may be lost. Aggregators report that. But if this rank itself was stopped for
 * a while, the others may have agreed without it, which only control_comm shows.
 *
 * Another rank may have lost an aggregator that this rank still reaches. That rank
 * waits in an agreement, while this one waits at the aggregator.
 */
void trib_agreement_check(struct trib_offload *o)
{
    struct trib_engine *control = &o->control_comm->engine;
    struct trib_engine *agg = &o->agg_comm->engine;
    uint64_t awaited_ns = 0;

    assert(control != agg);
    if (!control->failed && trib_comm_try_lock(o->control_comm)) {
        (void)trib_engine_check(control);
        awaited_ns = trib_engine_awaited_ns(control);
        trib_comm_unlock(o->control_comm);
    }
    if (control->failed)
        trib_engine_fail(agg, control->failed, trib_error_text(&control->failure));
    else if (awaited_ns > LEFT_BEHIND_NS)
        trib_engine_fail(agg, TRIB_ERR_ABORTED, "another rank has lost an aggregator");
}

void trib_agreement_close(struct trib_offload *o)
{
    struct trib_comm *control_comm = o->control_comm;

    trib_progress_thread_stop(control_comm);
    if (control_comm->engine.head)
        trib_engine_fail(&control_comm->engine, TRIB_ERR_ABORTED,
                         "the communicator has failed");
    trib_plan_destroy(o->agreement);
    o->agreement = NULL;
}
