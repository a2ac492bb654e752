/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/run/run.h"

#include "pipeline/run/engine_state.h"

struct trib_entry *trib_run_due(struct trib_engine *e, struct trib_run *run,
                                const struct trib_contrib *m, uint32_t round)
{
    const struct trib_program *p = &run->program;
    const struct trib_neighbor *neighbor = &p->neighbors[m->neighbor];
    const int lane = m->lane;
    struct trib_link *l = &e->links[neighbor->peer];
    uint32_t turn = neighbor->recv_base[lane] +
                    trib_frame_seq(neighbor->recvs[lane], neighbor->share_recvs[lane],
                                   p, round, m->ordinal);

    if (neighbor->advert_in || l->recv[lane].skip || l->recv[lane].next != turn)
        return NULL;
    return trib_link_peek(l, &e->arena, lane);
}

/* In place, this rank's block of the longer buffer is the other buffer. */
static void bind_blocks(struct trib_engine *e, struct trib_run *run, bool in_place)
{
    const struct trib_run_desc *d = &run->desc;
    const unsigned traits = trib_coll_traits(d->op.coll);
    const struct trib_block *own = d->blocks ? &d->blocks->at[d->blocks->own] : NULL;
    const size_t mine = (size_t)e->rank * d->count;

    if (own && in_place && traits & TRIB_COLL_RECV_BLOCKS && own->out != TRIB_NO_PLACE)
        run->now.input += own->out * d->element;
    if (own && in_place && traits & TRIB_COLL_SEND_BLOCKS)
        run->now.recv += own->in * d->element;
    if (own)
        return;
    run->now.input_first = d->op.coll == TRIB_ALLGATHER && !in_place ? mine : 0;
    run->now.recv_first = d->op.coll == TRIB_REDUCE_SCATTER ? mine : 0;
    if (d->op.coll == TRIB_REDUCE_SCATTER && in_place)
        run->now.recv += mine * d->element;
}

void trib_run_bind(struct trib_engine *e, struct trib_run *run, const void *send,
                   void *recv)
{
    bool in_place = !send || send == recv;

    run->now.recv = recv;
    run->now.input = in_place ? recv : send;
    if (run->desc.cut != TRIB_CUT_INTERLEAVED)
        bind_blocks(e, run, in_place);
}

uint32_t trib_run_most_contribs(const struct trib_run *run)
{
    const struct trib_program *p = &run->program;
    uint32_t most = 0;

    for (uint32_t i = 0; i < p->n_tasks; i++)
        if (p->tasks[i].kind == TRIB_TASK_REDUCE && p->tasks[i].n_contribs > most)
            most = p->tasks[i].n_contribs;
    return most;
}
