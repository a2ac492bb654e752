/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks agree on beside their data: the largest of a few numbers of each, over a
 * communicator that carries nothing else. So an agreement waits for no start, whatever
 * its user has yet to do for that.
 */
#include "base/text.h"
#include "offload/offload_plan.h"

#include <string.h>

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
