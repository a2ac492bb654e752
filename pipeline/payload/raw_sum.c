/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/raw_sum.h"

#include <assert.h>

#include "base/dtype.h"
#include "compress/vectors/robust_op.h"
#include "pipeline/payload/chunk_parts.h"
#include "pipeline/payload/narrow.h"
#include "pipeline/payload/payload_state.h"

/*
 * Sum TRIB_REDUCE_MAX_SRC sources at a time, block by block. The partial sum stays in a
 * small buffer, because the destination may be one of the later sources.
 *
 * skip     bytes of each source before the elements to sum
 */
static void reduce_many(trib_reduce_fn fn, size_t element, const uint8_t *const *src,
                        int n_src, size_t skip, const struct trib_reduce_args *all)
{
    _Alignas(64) uint8_t partial[4096];
    size_t step = sizeof(partial) / element;

    assert(n_src > TRIB_REDUCE_MAX_SRC && all->n_dst <= TRIB_REDUCE_MAX_DST);
    for (size_t first = 0; first < all->n; first += step) {
        struct trib_reduce_args r = {.n =
                                         all->n - first < step ? all->n - first : step};
        for (int used = 0; used < n_src;) {
            while (r.n_src < TRIB_REDUCE_MAX_SRC && used < n_src)
                r.src[r.n_src++] = src[used++] + skip + first * element;
            bool last = used == n_src;
            r.ranks = last ? all->ranks : 0;
            r.n_dst = last ? all->n_dst : 1;
            for (int d = 0; d < r.n_dst; d++)
                r.dst[d] = last ? (uint8_t *)all->dst[d] + first * element : partial;
            fn(&r);
            r.src[0] = partial;
            r.n_src = 1;
        }
    }
}

/* A sum of any number of sources. */
struct sum {
    const struct trib_kernels *kernels;
    const struct trib_run *run;
    const uint8_t *const *src;
    int n_src;
    const struct trib_reduce_args *all;
};

/* Sum elements into r. They begin `skip` bytes after the start of each source. */
static void sum_into(const struct sum *s, size_t skip, struct trib_reduce_args *r)
{
    const trib_dtype_t dtype = s->run->desc.op.dtype;
    const trib_reduce_fn fn = s->kernels->reduce[dtype][s->run->desc.op.op];

    if (s->n_src <= TRIB_REDUCE_MAX_SRC) {
        r->n_src = s->n_src;
        for (int i = 0; i < s->n_src; i++)
            r->src[i] = s->src[i] + skip;
        fn(r);
    } else if (trib_dtype_is_narrow(dtype)) {
        trib_narrow_sum(s->kernels, s->run, s->src, s->n_src, skip, r);
    } else {
        reduce_many(fn, s->run->desc.element, s->src, s->n_src, skip, r);
    }
}

static void sum_part(const void *arg, size_t first, size_t n)
{
    const struct sum *s = arg;
    const size_t skip = first * s->run->desc.element;
    struct trib_reduce_args r = *s->all;

    r.n = n;
    for (int d = 0; d < r.n_dst; d++)
        r.dst[d] = (uint8_t *)r.dst[d] + skip;
    sum_into(s, skip, &r);
}

static void reduce_robust(struct trib_engine *e, struct trib_run *run,
                          const uint8_t *const *src, int n_src,
                          const struct trib_reduce_args *r)
{
    const struct trib_robust robust = {.kernels = e->kernels,
                                       .op = run->desc.op.op,
                                       .dtype = run->desc.op.dtype,
                                       .parameter = run->desc.parameter,
                                       .rows = run->payload->rows};

    trib_robust_reduce(&robust, src, n_src, r);
}

void trib_raw_sum(struct trib_engine *e, struct trib_run *run,
                  const uint8_t *const *src, int n_src, struct trib_reduce_args *r)
{
    const struct sum s = {e->kernels, run, src, n_src, r};

    if (run->payload->rows) /* memory for one thread */
        reduce_robust(e, run, src, n_src, r);
    else if (trib_parts_wanted(e, r->n * run->desc.element))
        trib_parts_run(e, r->n, run->desc.element, sum_part, &s);
    else
        sum_into(&s, 0, r);
}
