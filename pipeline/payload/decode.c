/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/decode.h"

#include <assert.h>

#include "pipeline/engine/engine_state.h"
#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/payload_agree.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/undo_log.h"

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
    } else {
        st = trib_codec_decode(run->desc.codec, word, len, x, c->n);
    }
    if (st == TRIB_OK && !direct)
        e->kernels->from_f32[run->desc.op.dtype](acc, x, c->n);
    return st;
}
