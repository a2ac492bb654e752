/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/decode.h"

#include <assert.h>

#include "base/time.h"
#include "pipeline/engine/engine_state.h"
#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/payload_agree.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/undo_log.h"

trib_status_t trib_coded_to_elements(const struct trib_run *run,
                                     struct trib_encoded word, bool zeros, float *x,
                                     size_t n)
{
    return zeros ? trib_codec_decode_to_zeros(run->desc.codec, word.src, word.len, x, n)
                 : trib_codec_decode(run->desc.codec, word.src, word.len, x, n);
}

/* True if the chunk's place in the result is not likely to be in the cache. */
static bool is_far(const struct trib_run *run, const struct trib_chunk *c)
{
    return run->now.input != run->now.recv &&
           run->desc.total * sizeof(float) >= TRIB_PAST_CACHE_RESULT &&
           c->n * sizeof(float) >= TRIB_PAST_CACHE_CHUNK;
}

/* Decodes to x, in the caller's vector, by the faster kind of stores. */
static trib_status_t decode_to_result(struct trib_engine *e, struct trib_run *run,
                                      const struct trib_chunk *c,
                                      struct trib_encoded word, float *x)
{
    struct trib_payload_state *p = run->payload;

    if (!is_far(run, c))
        return trib_coded_to_elements(run, word, trib_feedback_take_zeros(run, c), x,
                                      c->n);
    const bool past = trib_result_store_past(&p->result_store);
    const uint64_t begin = trib_now_ns();
    trib_status_t st =
        trib_coded_to_elements(run, word, false, past ? p->acc : x, c->n);
    if (st == TRIB_OK && past)
        e->kernels->copy_stream(x, p->acc, c->n * sizeof(*x));
    trib_result_store_took(&p->result_store, past, c->n, trib_now_ns() - begin);
    return st;
}

trib_status_t trib_coded_to_acc(struct trib_engine *e, struct trib_run *run,
                               const struct trib_chunk *c, const uint8_t *word,
                               size_t len)
{
    if (run->is_aggregator)
        return TRIB_OK; /* nobody reads the elements here */
    assert(c->n <= run->desc.piece);
    trib_undo_save_input(run, c);
    if (trib_feedback_gives_result(run))
        return trib_feedback_result(e, run, c, word, len);
    uint8_t *acc = trib_run_acc(run, c);
    bool direct =
        run->desc.op.dtype == TRIB_F32 && (uintptr_t)acc % sizeof(float) == 0;
    float *x = direct ? (float *)acc : run->payload->acc;
    trib_status_t st;

    if (run->desc.model) {
        const struct trib_model_chunk chunk = {c->first, c->n, trib_share_of(run, c)};
        trib_share_settle(run, c);
        st = trib_model_result(run->desc.model, &chunk, word, len, x);
    } else if (direct) {
        const struct trib_encoded encoded = {.src = word, .len = len};
        return decode_to_result(e, run, c, encoded, x);
    } else {
        st = trib_codec_decode(run->desc.codec, word, len, x, c->n);
    }
    if (st == TRIB_OK && !direct)
        e->kernels->from_f32[run->desc.op.dtype](acc, x, c->n);
    return st;
}
