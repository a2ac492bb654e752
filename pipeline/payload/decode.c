/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/decode.h"

#include <assert.h>
#include <string.h>

#include "base/time.h"
#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/payload_agree.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/undo_log.h"
#include "pipeline/run/engine_state.h"

trib_status_t trib_coded_to_elements(const struct trib_run *run,
                                     struct trib_encoded word, bool zeros, float *x,
                                     size_t n)
{
    return zeros ? trib_codec_decode_to_zeros(run->desc.codec, word.src, word.len, x, n)
                 : trib_codec_decode(run->desc.codec, word.src, word.len, x, n);
}

/* Divide the elements of one mark, in vector registers. */
static void divide_line(float *x, float divisor)
{
    typedef float line __attribute__((vector_size(TRIB_MARKED * sizeof(float))));
    line v;

    memcpy(&v, x, sizeof(v));
    v /= divisor;
    memcpy(x, &v, sizeof(v));
}

/* Divide the marked elements. */
static void divide_marked(float *x, size_t n, float divisor, const uint64_t *marks)
{
    for (size_t w = 0; w < trib_marked_words(n); w++) {
        for (uint64_t left = marks[w]; left; left &= left - 1) {
            const size_t line = w * 64 + (size_t)__builtin_ctzll(left);
            const size_t at = line * TRIB_MARKED;
            if (at + TRIB_MARKED <= n)
                divide_line(x + at, divisor);
            for (size_t i = at; at + TRIB_MARKED > n && i < n; i++)
                x[i] /= divisor;
        }
    }
}

void trib_coded_divide(const struct trib_engine *e, float *acc, size_t n, float divisor,
                       const uint64_t *marks)
{
    const float one = 1.0f;
    struct trib_reduce_args r = {.src = {acc}, .dst = {acc},
                                 .n_src = 1, .n_dst = 1, .n = n,
                                 .weight = &one,
                                 .divisor = divisor};

    assert(divisor > 0.0f);
    if (!(divisor < 1.0f || divisor > 1.0f))
        return;
    if (marks)
        divide_marked(acc, n, divisor, marks);
    else
        e->kernels->reduce[TRIB_F32][TRIB_MEAN](&r);
}

/* Return true if the chunk's result memory is probably not in the cache. */
static bool is_far(const struct trib_run *run, const struct trib_chunk *c)
{
    return run->now.input != run->now.recv &&
           run->desc.total * sizeof(float) >= TRIB_PAST_CACHE_RESULT &&
           c->n * sizeof(float) >= TRIB_PAST_CACHE_CHUNK;
}

/* Decode to x, in the caller's vector, with the faster kind of stores. */
static trib_status_t decode_to_result(struct trib_engine *e, struct trib_run *run,
                                      const struct trib_chunk *c,
                                      struct trib_encoded word, float *x)
{
    struct trib_payload_state *p = run->payload;
    const struct trib_marked_word marked = {word.src, word.len, 1.0f, true,
                                            trib_feedback_marks(run, c)};

    if (marked.lines)
        return trib_codec_decode_marked(run->desc.codec, &marked, x, c->n);
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
        return TRIB_OK; /* an aggregator does not read the elements */
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
        trib_feedback_mark_all(run, c);
        st = trib_codec_decode(run->desc.codec, word, len, x, c->n);
    }
    if (st == TRIB_OK && !direct)
        e->kernels->from_f32[run->desc.op.dtype](acc, x, c->n);
    return st;
}
