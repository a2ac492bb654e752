/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/encoded_store.h"

#include <assert.h>

#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/run_codec.h"

bool trib_store_is_sent(const struct trib_run *run, uint32_t chunk)
{
    for (uint32_t i = 0; i < run->program.n_tasks; i++) {
        const struct trib_task *t = &run->program.tasks[i];
        if (t->kind == TRIB_TASK_SEND && t->chunk == chunk &&
            (t->flags & TRIB_TASK_STORED))
            return true;
    }
    return false;
}

static bool takes_from_store(const struct trib_run *run, const struct trib_task *t)
{
    return t->kind == TRIB_TASK_COPY ||
           (t->kind == TRIB_TASK_REDUCE && trib_coded_linear(run)) ||
           (t->kind == TRIB_TASK_SEND && (t->flags & TRIB_TASK_STORED)) ||
           (t->kind == TRIB_TASK_REDUCE && (t->flags & TRIB_TASK_INPUT_SENT));
}

bool trib_coded_store_free(const struct trib_run *run, uint32_t chunk, uint32_t round)
{
    const struct trib_program *p = &run->program;

    for (uint32_t i = 0; i < p->n_tasks; i++) {
        const struct trib_task *t = &p->tasks[i];
        if (t->chunk == chunk && t->done < round && takes_from_store(run, t))
            return false;
    }
    return true;
}

bool trib_coded_store_ready(const struct trib_run *run, const struct trib_task *t)
{
    return !run->payload->stores || !takes_from_store(run, t) ||
           run->payload->stores[t->chunk].round == t->done + 1 ||
           trib_coded_store_free(run, t->chunk, t->done);
}

struct trib_encoded_store *trib_store_of(struct trib_run *run,
                                         const struct trib_task *t,
                                         const struct trib_chunk *c)
{
    struct trib_encoded_store *s = &run->payload->stores[t->chunk];

    assert(t->chunk < run->desc.n_chunks);
    if (run->payload->acc_is_read)
        s->bytes = trib_run_acc(run, c);
    return s;
}

enum trib_input_role trib_coded_input_role(const struct trib_run *run,
                                           const struct trib_task *t)
{
    bool linear = trib_coded_linear(run);

    if (!(t->flags & TRIB_TASK_INPUT) || trib_share_task(run, t))
        return TRIB_INPUT_UNUSED;
    switch ((enum trib_task_kind)t->kind) {
    case TRIB_TASK_SEND:
        return t->flags & TRIB_TASK_FINAL ? TRIB_INPUT_RESULT : TRIB_INPUT_CONTRIBUTION;
    case TRIB_TASK_REDUCE:
        return linear || (t->flags & TRIB_TASK_INPUT_SENT) ||
                       (trib_codec_flags(run) & TRIB_CODEC_SPARSE)
                   ? TRIB_INPUT_CONTRIBUTION
                   : TRIB_INPUT_UNUSED;
    case TRIB_TASK_COPY:
        if (linear)
            return TRIB_INPUT_CONTRIBUTION;
        return trib_store_is_sent(run, t->chunk) ? TRIB_INPUT_RESULT
                                                 : TRIB_INPUT_UNUSED;
    case TRIB_TASK_COPY_IN:
        break;
    }
    return TRIB_INPUT_UNUSED;
}
