/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks agree on beside their data: the largest of a few numbers of each, over a
 * communicator that carries nothing else. So an agreement waits for no start, whatever
 * its user has yet to do for that.
 */
#include "base/text.h"
#include "offload/offload_plan.h"

#include <string.h>

/* A rank that frees the communicator may wait in that agreement as well, for ranks
 * whose last sum is still on its way to them. */
#define LEFT_BEHIND_NS 500000000u

static trib_status_t make(struct trib_offload *v)
{
    trib_desc_t desc = TRIB_DESC_INIT;

    desc.count = TRIB_AGREE_WORDS;
    desc.dtype = TRIB_I64;
    desc.op = TRIB_MAX;
    desc.codec = "none";
    desc.algorithm = TRIB_AUTO;
    desc.recv = v->said;
    return trib_plan_make(v->control_comm, TRIB_ALLREDUCE, &desc, false, &v->agreement);
}

static trib_status_t say(struct trib_offload *v, const int64_t words[TRIB_AGREE_WORDS])
{
    memcpy(v->said, words, sizeof(v->said));
    return v->agreement ? TRIB_OK : make(v);
}

trib_status_t trib_agreement_start(struct trib_offload *v,
                                   const int64_t words[TRIB_AGREE_WORDS])
{
    const trib_status_t st = say(v, words);

    return st == TRIB_OK ? trib_plan_start(v->agreement) : st;
}

trib_status_t trib_agreement_wait(struct trib_offload *v)
{
    return trib_plan_wait(v->agreement);
}

trib_status_t trib_agreement_run(struct trib_offload *v,
                                 const int64_t words[TRIB_AGREE_WORDS])
{
    const trib_status_t st = say(v, words);

    return st == TRIB_OK ? trib_plan_run(v->agreement, NULL, v->said) : st;
}

/*
 * The aggregators tell that a rank is lost, but for how long it was stopped before
 * counts for those who then agree without it, too.
 *
 * A rank that has lost an aggregator cannot tell the ranks through that aggregator. It
 * waits for them in the agreement on what is done, while they may wait at an aggregator
 * that was only stopped and lives again. So this also looks for a rank that waits.
 */
void trib_agreement_look(struct trib_offload *v)
{
    struct trib_engine *control = &v->control_comm->engine;
    struct trib_engine *agg = &v->channel->engine;
    uint64_t awaited_ns = 0;

    if (!control->failed && trib_comm_try_lock(v->control_comm)) {
        (void)trib_engine_look(control);
        awaited_ns = trib_engine_awaited_ns(control);
        trib_comm_unlock(v->control_comm);
    }
    if (control->failed)
        trib_engine_fail(agg, control->failed, trib_error_text(&control->failure));
    else if (awaited_ns > LEFT_BEHIND_NS)
        trib_engine_fail(agg, TRIB_ERR_ABORTED, "another rank has lost a service");
}

void trib_agreement_close(struct trib_offload *v)
{
    struct trib_comm *control_comm = v->control_comm;

    trib_progress_thread_stop(control_comm);
    if (control_comm->engine.head)
        trib_engine_fail(&control_comm->engine, TRIB_ERR_ABORTED,
                         "the communicator has failed");
    trib_plan_destroy(v->agreement);
    v->agreement = NULL;
}
