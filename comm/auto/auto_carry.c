/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/auto/auto_carry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/minmax.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "compress/vectors/vector_scale.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/undo_log.h"

/* Return the residual of an idle plan, or NULL. */
static float *residual_of(struct trib_plan *plan)
{
    const struct trib_run *run = &plan->ops->computing(plan)->run;
    const struct trib_feedback *f = run->desc.codec ? trib_feedback_of(run) : NULL;

    return f ? f->residual : NULL;
}

trib_status_t trib_auto_carry_over(struct trib_auto_carry *carry,
                                   struct trib_plan *from, struct trib_plan *to)
{
    const float *rest = residual_of(from);
    const size_t count = from->run.desc.count;
    float *at = residual_of(to);

    assert(!carry->rest && !carry->sum && count == to->run.desc.count);
    if (!rest)
        return TRIB_OK;
    if (at) {
        struct trib_run *run = &to->ops->computing(to)->run;
        memcpy(at, rest, count * sizeof(*at));
        trib_feedback_loaded(run);
        trib_undo_forget(run);
        return TRIB_OK;
    }
    carry->rest = malloc(count * sizeof(*carry->rest));
    if (!carry->rest)
        return trib_comm_fail(from->comm, TRIB_ERR_NO_MEMORY,
                              "no memory for the residual of %zu elements", count);
    memcpy(carry->rest, rest, count * sizeof(*carry->rest));
    return TRIB_OK;
}

void trib_auto_carry_ready(struct trib_auto_carry *carry, const struct trib_plan *plan,
                           size_t first, size_t count)
{
    enum { PIECE = 1024 };
    const struct trib_kernels *k = plan->comm->engine.kernels;
    const trib_dtype_t dtype = plan->run.desc.op.dtype;
    const size_t size = trib_dtype_size(dtype), end = first + count;
    float x[PIECE];

    if (!carry->sum)
        return;
    assert(end <= plan->run.desc.count);
    for (size_t i = first; i < end; i += PIECE) {
        const size_t n = trib_min(end - i, (size_t)PIECE);
        trib_widen(k, dtype, (const char *)carry->input + i * size, n, x);
        for (size_t j = 0; j < n; j++)
            x[j] += carry->rest[i + j];
        k->from_f32[dtype]((char *)carry->sum + i * size, x, n);
    }
}

const void *trib_auto_carry_begin(struct trib_auto_carry *carry,
                                  const struct trib_plan *plan, const void *input,
                                  bool whole)
{
    const struct trib_run_desc *d = &plan->run.desc;

    if (!carry->rest)
        return input;
    if (!carry->sum)
        carry->sum = malloc(d->count * trib_dtype_size(d->op.dtype));
    carry->input = input;
    if (carry->sum && whole)
        trib_auto_carry_ready(carry, plan, 0, d->count);
    return carry->sum;
}

void trib_auto_carry_end(struct trib_auto_carry *carry)
{
    free(carry->rest);
    free(carry->sum);
    *carry = (struct trib_auto_carry){0};
}
