/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/contribution.h"

#include <assert.h>

#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/undo_log.h"
#include "pipeline/run/engine_state.h"

const float *trib_as_f32(const struct trib_engine *e, const struct trib_run *run,
                           const void *p, size_t n, float *stage)
{
    if (run->desc.op.dtype == TRIB_F32 && (uintptr_t)p % sizeof(float) == 0)
        return p;
    e->kernels->to_f32[run->desc.op.dtype](stage, p, n);
    return stage;
}

const float *trib_input_f32_staged(const struct trib_engine *e,
                                   const struct trib_run *run,
                                   const struct trib_chunk *c, float *stage)
{
    const float *x = trib_as_f32(e, run, trib_run_input(run, c), c->n, stage);

    assert(!run->is_aggregator);
    trib_undo_save_state(run, c);
    return trib_feedback_apply(e, run, c, x, stage);
}

const float *trib_input_f32(struct trib_engine *e, struct trib_run *run,
                            const struct trib_chunk *c)
{
    return trib_input_f32_staged(e, run, c, run->payload->stage);
}
