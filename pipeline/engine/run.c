/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/engine/run.h"

/* A buffer of which nothing is used may be NULL, to which C lets nothing be added, not
 * even 0. */
static uint8_t *place(uint8_t *buffer, size_t at)
{
    return at ? buffer + at : buffer;
}

const uint8_t *trib_run_input(const struct trib_run *run, const struct trib_chunk *c)
{
    const size_t at = (c->first - run->input_first) * run->desc.element;

    return at ? run->input + at : run->input;
}

uint8_t *trib_run_acc(const struct trib_run *run, const struct trib_chunk *c)
{
    size_t size = run->desc.element;
    bool in_recv = !run->no_result;

    if (run->is_aggregator)
        return run->scratch_value +
               c->index % (run->value_rounds * run->desc.n_chunks) * run->value_bytes;
    if (run->desc.op.coll == TRIB_REDUCE_SCATTER)
        in_recv = c->n == 0 || (c->first >= run->recv_first &&
                                c->first - run->recv_first < run->desc.count);
    if (!in_recv)
        return place(run->scratch_value, c->first * size);
    return place(run->recv, (c->n ? c->first - run->recv_first : 0) * size);
}

const uint8_t *trib_value_at(const struct trib_run *run, const struct trib_view *view,
                             const struct trib_chunk *c)
{
    const size_t place = run->value_bytes;
    const size_t round = place * run->desc.n_chunks;

    if (!view->base || !round || (view->hi - view->lo) / round == 0)
        return NULL;
    const size_t places = (view->hi - view->lo) / round * run->desc.n_chunks;
    return view->base + view->lo + c->index % places * place;
}

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

/* Has the peer read what a SEND of this round named? */
static bool was_read(const struct trib_engine *e, const struct trib_run *run,
                     const struct trib_task *send, uint32_t round)
{
    const struct trib_link *l = &e->links[run->program.neighbors[send->neighbor].peer];
    const uint32_t turn = trib_send_seq(&run->program, send, round);

    return !run->values_read || !l->mapped ||
           (int32_t)(atomic_load_explicit(&l->my_credits[send->lane],
                                          memory_order_acquire) -
                     turn) > 0;
}

bool trib_run_value_free_at_aggregator(const struct trib_engine *e,
                                       const struct trib_run *run,
                                       const struct trib_task *t)
{
    const struct trib_program *p = &run->program;
    const uint32_t first = run->desc.share_piece != 0; /* of the vector */

    if (t->done < first + run->value_rounds)
        return true;
    const uint32_t before = t->done - run->value_rounds;
    for (uint32_t i = p->first[t->chunk]; i != TRIB_STEP_NO_DEP; i = p->next[i]) {
        const struct trib_task *u = &p->tasks[i];
        if (u->kind == TRIB_TASK_SEND &&
            (u->done <= before || !was_read(e, run, u, before)))
            return false;
    }
    return true;
}

void trib_run_bind(struct trib_engine *e, struct trib_run *run, const void *send,
                   void *recv)
{
    const struct trib_run_desc *d = &run->desc;
    bool in_place = !send || send == recv;
    size_t mine = (size_t)e->rank * d->count;

    run->recv = recv;
    run->input = in_place ? recv : send;
    run->input_first = d->op.coll == TRIB_ALLGATHER && !in_place ? mine : 0;
    run->recv_first = d->op.coll == TRIB_REDUCE_SCATTER ? mine : 0;
    run->no_result =
        run->is_aggregator || (d->op.coll == TRIB_REDUCE && (int)d->op.root != e->rank);
    if (d->op.coll == TRIB_REDUCE_SCATTER && in_place)
        run->recv += mine * d->element;
}

int trib_quorum_bits(const uint8_t *mask, size_t bytes)
{
    int n = 0;

    for (size_t i = 0; i < bytes; i++)
        n += __builtin_popcount(mask[i]);
    return n;
}

int trib_quorum_contributors(const struct trib_engine *e, const struct trib_run *run)
{
    return run->quorum ? trib_quorum_bits(run->quorum->counted, run->quorum->mask_bytes)
                       : e->ranks;
}

bool trib_coded_linear(const struct trib_run *run)
{
    trib_coll_t coll = run->desc.op.coll;
    bool sums =
        coll == TRIB_ALLREDUCE || coll == TRIB_REDUCE || coll == TRIB_REDUCE_SCATTER;

    return run->desc.codec && sums && (trib_codec_flags(run) & TRIB_CODEC_LINEAR) &&
           !(trib_codec_flags(run) & TRIB_CODEC_IDENTITY);
}

size_t trib_coded_bound(const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;

    return trib_coded_linear(run) ? trib_codec_sum_bound(d->codec, d->piece)
                                  : trib_codec_bound(d->codec, d->piece);
}
