/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/chunk_memory.h"

#include <assert.h>

#include "pipeline/payload/payload_state.h"
#include "pipeline/run/engine_state.h"

/* An unused buffer may be NULL, and C does not allow even NULL + 0. */
static uint8_t *place(uint8_t *buffer, size_t at)
{
    return at ? buffer + at : buffer;
}

struct trib_chunk trib_task_chunk(const struct trib_run *run, const struct trib_task *t)
{
    return trib_run_chunk(run, t->done, t->chunk);
}

const uint8_t *trib_run_input(const struct trib_run *run, const struct trib_chunk *c)
{
    const size_t at = (c->first - run->now.input_first) * run->desc.element;

    return at ? run->now.input + at : run->now.input;
}

static uint8_t *block_acc(const struct trib_run *run, const struct trib_chunk *c)
{
    const struct trib_run_desc *d = &run->desc;
    const struct trib_block *b = &d->blocks->at[c->index % d->n_chunks];
    const size_t at = (size_t)(c->index / d->n_chunks) * d->piece;

    if (c->n == 0)
        return run->now.recv;
    if (b->out != TRIB_NO_PLACE)
        return place(run->now.recv, (b->out + at) * d->element);
    assert(b->held != TRIB_NO_PLACE);
    return place(run->payload->scratch_acc, (b->held + at) * d->element);
}

uint8_t *trib_run_acc(const struct trib_run *run, const struct trib_chunk *c)
{
    size_t size = run->desc.element;
    bool in_recv = !run->no_result;

    if (run->is_aggregator)
        return run->payload->scratch_acc +
               c->index % (run->payload->acc_rounds * run->desc.n_chunks) *
                   run->payload->acc_bytes;
    if (run->desc.cut == TRIB_CUT_LISTED)
        return block_acc(run, c);
    if (run->desc.op.coll == TRIB_REDUCE_SCATTER)
        in_recv = c->n == 0 || (c->first >= run->now.recv_first &&
                                c->first - run->now.recv_first < run->desc.count);
    if (!in_recv)
        return place(run->payload->scratch_acc, c->first * size);
    return place(run->now.recv, (c->n ? c->first - run->now.recv_first : 0) * size);
}

const uint8_t *trib_peer_result(const struct trib_run *run,
                                const struct trib_view *view,
                                const struct trib_chunk *c)
{
    const size_t place = run->payload->acc_bytes;
    const size_t round = place * run->desc.n_chunks;

    if (!view->base || !round || (view->hi - view->lo) / round == 0)
        return NULL;
    const size_t places = (view->hi - view->lo) / round * run->desc.n_chunks;
    return view->base + view->lo + c->index % places * place;
}

/* Return true if the peer has read the result that a SEND of this round named. */
static bool was_read(const struct trib_engine *e, const struct trib_run *run,
                     const struct trib_task *send, uint32_t round)
{
    const struct trib_link *l = &e->links[run->program.neighbors[send->neighbor].peer];
    const uint32_t turn = trib_send_seq(&run->program, send, round);

    return !run->payload->acc_is_read || !l->mapped ||
           (int32_t)(atomic_load_explicit(&l->my_credits[send->lane],
                                          memory_order_acquire) -
                     turn) > 0;
}

bool trib_aggregator_acc_free(const struct trib_engine *e, const struct trib_run *run,
                              const struct trib_task *t)
{
    const struct trib_program *p = &run->program;
    const uint32_t first = run->desc.share_lead; /* first round of the vector */

    if (t->done < first + run->payload->acc_rounds)
        return true;
    assert(run->payload->acc_rounds > 0);
    const uint32_t before = t->done - run->payload->acc_rounds;
    for (uint32_t i = p->first[t->chunk]; i != TRIB_STEP_NO_DEP; i = p->next[i]) {
        const struct trib_task *u = &p->tasks[i];
        if (u->kind == TRIB_TASK_SEND &&
            (u->done <= before || !was_read(e, run, u, before)))
            return false;
    }
    return true;
}
