/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/encode.h"

#include <assert.h>

#include "base/time.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/payload_agree.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/run_codec.h"
#include "pipeline/run/engine_state.h"

static void scale_residual(const struct trib_engine *e, float *residual, size_t n,
                           float unit, bool divide)
{
    const float one = 1.0f;
    struct trib_reduce_args r = {.src = {residual},
                            .n_src = 1,
                            .dst = {residual},
                            .n_dst = 1,
                            .n = n,
                            .weight = divide ? &one : &unit,
                            .divisor = divide ? unit : 0};

    assert(unit >= 1.0f);
    if (unit > 1.0f)
        e->kernels->reduce[TRIB_F32][TRIB_SUM](&r);
}

/* Return the state in which the chunk's selection keeps its magnitudes; NULL: none. */
static struct trib_carried *carried_of(const struct trib_run *run,
                                       const struct trib_chunk *c)
{
    const struct trib_feedback *f = &run->payload->feedback;

    return f->carried && c->index < f->n_carried ? &f->carried[c->index] : NULL;
}

/* Encode a chunk, possibly on a worker's thread: change nothing in the engine, and only
 * the state of this chunk in the run. */
static uint32_t make_word(const struct trib_engine *e, const struct trib_run *run,
                          const struct trib_chunk *c,
                          const struct trib_encode_source *s, uint8_t *dst)
{
    const bool input = s->mode == TRIB_ENCODE_CONTRIBUTION;
    const bool with_feedback = s->feedback;
    struct trib_encode in = {
        .x = s->x,
        .n = c->n,
        .total = run->desc.total,
        .mode = s->mode,
        .key = {.seed = run->desc.seed,
                .step = run->now.step,
                .stream = (uint32_t)e->rank,
                .index = c->first},
        .scratch = s->scratch,
        .model = run->desc.model,
    };
    bool fed_back = run->payload->feedback.residual && input && with_feedback;
    float *residual = fed_back ? run->payload->feedback.residual + c->first : NULL;
    struct trib_zeros zeros = {NULL, false};
    struct trib_sent sent;
    size_t len;

    if (with_feedback)
        in.agreed = trib_share_of(run, c);
    if (input && trib_feedback_sent(run, c, &sent))
        in.sent = &sent;
    if (fed_back) {
        in.carried = carried_of(run, c);
        zeros.at = trib_feedback_zeros(run, c, s->x);
        in.zeros = &zeros;
    }
    if (fed_back)
        scale_residual(e, residual, c->n, s->unit, true);
    if (fed_back && s->x == residual)
        len = trib_codec_encode_kept(run->desc.codec, &in, residual, dst);
    else if (fed_back)
        len = trib_codec_encode_ef(run->desc.codec, &in, residual, dst);
    else
        len = trib_codec_encode(run->desc.codec, &in, dst);
    if (fed_back)
        scale_residual(e, residual, c->n, s->unit, false);
    if (zeros.done)
        run->payload->feedback.zeros[c->index] = true;
    if (input)
        trib_feedback_encoded(e, run, c, dst, len);
    assert(len <= e->arena.slot_bytes);
    return (uint32_t)len;
}

uint32_t trib_encode(struct trib_engine *e, struct trib_run *run,
                     const struct trib_chunk *c, struct trib_encode_source s,
                     uint8_t *dst)
{
    s.scratch = run->payload->codec_scratch;
    assert(c->n <= run->desc.piece);
    trib_trace_now(&e->trace, TRIB_TRACE_ENCODE_BEGIN, -1, c->index, c->n);
    uint64_t begin = trib_now_ns();
    trib_share_settle(run, c);
    uint32_t len = make_word(e, run, c, &s, dst);
    e->stats.encode_ns += trib_now_ns() - begin;
    trib_trace_now(&e->trace, TRIB_TRACE_ENCODE_END, -1, c->index, len);
    return len;
}

uint32_t trib_coded_encode_input(const struct trib_engine *e,
                                 const struct trib_run *run, const struct trib_chunk *c,
                                 enum trib_input_role use,
                                 const struct trib_encode_workspace *bench,
                                 uint8_t *dst)
{
    bool result = use == TRIB_INPUT_RESULT;
    const float *kept = trib_share_kept(run, c);
    struct trib_encode_source s = {
        .x = kept ? kept : trib_input_f32_staged(e, run, c, bench->stage),
        .mode =
            result ? trib_coded_mode(run, TRIB_ENCODE_EXACT) : TRIB_ENCODE_CONTRIBUTION,
        .feedback = !result,
        .unit = 1.0f,
        .scratch = bench->scratch};

    return make_word(e, run, c, &s, dst);
}
