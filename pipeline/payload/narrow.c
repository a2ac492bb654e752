/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/narrow.h"

#include <assert.h>

#include "base/dtype.h"
#include "pipeline/payload/contribution.h"
#include "pipeline/payload/partial.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/run_codec.h"
#include "pipeline/run/engine_state.h"

bool trib_narrow_is(const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    const uint32_t flags = d->codec ? trib_codec_info(d->codec)->flags : 0;
    const bool words = flags & TRIB_CODEC_ANY_OP && !(flags & TRIB_CODEC_IDENTITY);

    return d->op.op == TRIB_MEAN && !trib_coded_linear(run) &&
           (words || trib_dtype_is_narrow(d->op.dtype));
}

/* The previous REDUCE of the same chunk computed the sum that t continues. */
uint8_t trib_narrow_before(const struct trib_run *run, const struct trib_task *t)
{
    const struct trib_task *tasks = run->program.tasks;
    uint32_t at = t->dep;

    if (t->flags & (TRIB_TASK_INPUT | TRIB_TASK_EMPTY | TRIB_TASK_FINAL))
        return 0;
    while (at != TRIB_STEP_NO_DEP &&
           (tasks[at].kind != TRIB_TASK_REDUCE || tasks[at].chunk != t->chunk))
        at = tasks[at].dep;
    return at == TRIB_STEP_NO_DEP ? 0 : tasks[at].divided;
}

struct trib_narrow trib_narrow_begin(struct trib_engine *e, struct trib_run *run,
                                     struct trib_task *t)
{
    struct trib_contrib_walk walk = trib_contrib_begin(e, run, t);
    struct trib_contrib_item from;
    struct trib_narrow sum = {.one = 1.0f};
    uint64_t all = 0;

    assert(run->payload->narrow);
    while (trib_contrib_next(&walk, &from)) {
        uint8_t code = 0;
        if (from.by == TRIB_BY_PEER)
            code = trib_frame_divided(&from.entry->frame);
        else if (from.by == TRIB_BY_ACC)
            code = trib_narrow_before(run, t);
        all += trib_narrow_divisor(code);
    }
    const uint64_t most = (uint64_t)e->ranks;
    t->divided = t->flags & TRIB_TASK_MEAN
                     ? 0
                     : (trib_narrow_code(all < most ? all : most) & 127u);
    for (uint64_t n = 1; n < all; n *= 2)
        sum.one *= 0.5f;
    const uint32_t by = t->flags & TRIB_TASK_MEAN
                            ? (uint32_t)trib_quorum_contributors(e, run)
                            : trib_narrow_divisor(t->divided);
    sum.divisor = sum.one * (float)by;
    return sum;
}

enum { NARROW_BLOCK = 512 }; /* elements; eight rows of float32 stay in L1 */

void trib_narrow_sum(const struct trib_kernels *k, const struct trib_run *run,
                     const uint8_t *const *src, int n_src, size_t skip,
                     const struct trib_reduce_args *all)
{
    _Alignas(64) float part[TRIB_REDUCE_MAX_SRC][NARROW_BLOCK];
    float weight[TRIB_REDUCE_MAX_SRC];
    size_t element = run->desc.element, n;
    trib_dtype_t dtype = run->desc.op.dtype;

    assert(n_src > TRIB_REDUCE_MAX_SRC && all->n_dst <= TRIB_REDUCE_MAX_DST);
    for (size_t first = 0; first < all->n; first += n) {
        n = all->n - first < NARROW_BLOCK ? all->n - first : NARROW_BLOCK;
        for (int used = 0, row = 0; used < n_src; row = 1) { /* row 0: the sum so far */
            weight[0] = 1.0f;
            for (; row < TRIB_REDUCE_MAX_SRC && used < n_src; row++, used++) {
                weight[row] = all->weight ? all->weight[used] : 1.0f;
                k->to_f32[dtype](part[row], src[used] + skip + first * element, n);
            }
            struct trib_reduce_args r = {
                .n = n, .n_src = row, .dst[0] = part[0], .n_dst = 1};
            for (int i = 0; i < row; i++)
                r.src[i] = part[i];
            r.weight = all->weight ? weight : NULL;
            r.divisor = used == n_src ? all->divisor : 0;
            r.ranks = used == n_src ? all->ranks : 0;
            k->reduce[TRIB_F32][run->desc.op.op](&r);
        }
        for (int d = 0; d < all->n_dst; d++)
            k->from_f32[dtype]((uint8_t *)all->dst[d] + first * element, part[0], n);
    }
}
