/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creation and moves of trainers. The ranks of a new communicator may come from an old
 * one, with other ranks, or be new. They first all-gather their offers. The source is
 * the lowest of the ranks that are furthest ahead; it broadcasts the parameters. State
 * local to a rank, such as a residual, stays as it is.
 *
 * A trainer that moves stays unchanged until nothing can fail any more, so it can be
 * moved again if a rank is lost during the move.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/trainer/trainer.h"

/* A rank's part of the all-gather: 64-bit integers. */
struct offer {
    int64_t status; /* of its local checks */
    int64_t gives; /* 1: has state from an old communicator */
    int64_t kind; /* must be equal on all ranks */
    int64_t ahead; /* strategy_ops.ahead */
    int64_t number, updates; /* gradients; steps of the optimizer */
    int64_t ranks; /* size of the old communicator */
};

enum { OFFER = sizeof(struct offer) / sizeof(int64_t) };

struct move_agreement {
    struct trib_trainer *t, *from;
    struct offer *all; /* [t->ranks] */
    int source_rank; /* -1: all ranks are new */
    int old; /* number of ranks with state */
};

static int64_t how_far(struct trib_trainer *t)
{
    uint64_t ended = 0;

    if (t->choice.row->ops->ahead)
        return (int64_t)t->choice.row->ops->ahead(t);
    for (int i = 0; i < t->n_sums; i++)
        ended += trib_train_sum_ended(*t->sums[i]);
    return (int64_t)ended;
}

static struct offer offer_of(struct trib_trainer *t, trib_status_t mine,
                             struct trib_trainer *from)
{
    struct offer o = {.status = mine, .gives = from != NULL};

    if (mine == TRIB_OK)
        o.kind = (int64_t)trib_train_kind(t);
    if (mine != TRIB_OK || !from)
        return o;
    o.ahead = how_far(from);
    o.number = (int64_t)from->number;
    o.updates = (int64_t)from->optimizer.steps;
    o.ranks = from->ranks;
    return o;
}

/* All ranks decide alike, because they see the same offers. */
static trib_status_t check_offers(struct move_agreement *m)
{
    struct trib_trainer *t = m->t;

    m->source_rank = -1;
    for (int r = 0; r < t->ranks; r++) {
        if (m->all[r].status != TRIB_OK)
            return trib_fail(&t->err, TRIB_ERR_INVALID,
                             "rank %d cannot create this trainer; see its error "
                             "message",
                             r);
        if (m->all[r].kind != m->all[0].kind)
            return trib_fail(&t->err, TRIB_ERR_MISMATCH,
                             "the trainers of rank 0 and rank %d differ in strategy, "
                             "optimizer or vector",
                             r);
        m->old += m->all[r].gives != 0;
        if (m->all[r].gives &&
            (m->source_rank < 0 || m->all[r].ahead > m->all[m->source_rank].ahead))
            m->source_rank = r;
    }
    t->moves = m->source_rank >= 0;
    return TRIB_OK;
}

static trib_status_t exchange_offers(struct move_agreement *m, trib_status_t mine)
{
    struct trib_trainer *t = m->t;
    const struct offer o = offer_of(t, mine, m->from);

    m->all = calloc((size_t)t->ranks, sizeof(*m->all));
    if (!m->all)
        return trib_fail(&t->err, TRIB_ERR_NO_MEMORY, "no memory for %d ranks",
                         t->ranks);
    const trib_status_t st = trib_allgather(t->comm, &o, m->all, OFFER, TRIB_I64);
    if (mine != TRIB_OK || st != TRIB_OK)
        return mine != TRIB_OK ? mine : trib_train_set_comm_error(t, st);
    return check_offers(m);
}

/* Broadcast the source rank's model, or rank 0's parameters if all ranks are new. */
static trib_status_t take_params(struct move_agreement *m)
{
    struct trib_trainer *t = m->t;

    if (m->source_rank == t->rank)
        trib_train_copy_model(m->from, t->params);
    return trib_train_set_comm_error(
        t, trib_broadcast(t->comm, t->params, t->count, TRIB_F32,
                          m->source_rank < 0 ? 0 : m->source_rank));
}

static trib_status_t make_strategy(struct trib_trainer *t)
{
    const trib_status_t st = trib_train_open_strategy(t);

    return trib_train_agree(t, st == TRIB_OK ? trib_train_check_configured(t) : st,
                            "create this trainer");
}

/* Move the sections after the parameters: local ones are copied, shared ones are
 * broadcast by the source rank. */
static trib_status_t take_sections(struct move_agreement *m)
{
    struct trib_train_field to[TRIB_TRAIN_SECTIONS], from[TRIB_TRAIN_SECTIONS];
    const int n = trib_train_sections(m->t, to),
              n_from = m->from ? trib_train_sections(m->from, from) : 0;
    trib_status_t st = TRIB_OK;

    for (int i = 1; i < n && st == TRIB_OK; i++) {
        if (i < n_from && from[i].bytes == to[i].bytes)
            memcpy(to[i].data, from[i].data, to[i].bytes);
        if (to[i].shared)
            st = trib_train_set_comm_error(m->t, trib_broadcast(m->t->comm, to[i].data,
                                                                to[i].bytes, TRIB_U8,
                                                                m->source_rank));
    }
    return st;
}

static trib_status_t take_sums(struct move_agreement *m, char *note, size_t bytes)
{
    static const char *const lost[] = {
        [TRIB_TRAIN_DROPPED] = "this rank's contribution to the newest sum is lost",
        [TRIB_TRAIN_ANEW] = "the residuals of this rank's codecs are lost"};
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < m->t->n_sums && st == TRIB_OK; i++) {
        struct trib_train_sum *to = *m->t->sums[i];
        const bool moves = m->from && i < m->from->n_sums;

        st = trib_train_set_sum_error(
            m->t, to, trib_train_sum_move(to, moves ? *m->from->sums[i] : NULL));
        if (m->t->parts.codec && trib_train_sum_fate(to) >= TRIB_TRAIN_DROPPED)
            snprintf(note, bytes, "%s", lost[trib_train_sum_fate(to)]);
    }
    return st;
}

static void take_numbers(struct move_agreement *m)
{
    struct trib_trainer *t = m->t;
    int64_t number = 0;

    for (int r = 0; r < t->ranks; r++)
        if (m->all[r].gives && m->all[r].number > number)
            number = m->all[r].number;
    t->number = (uint64_t)number;
    if (!t->choice.row->ops->apart)
        t->optimizer.steps = (uint64_t)m->all[m->source_rank].updates;
}

static trib_status_t move_state(struct move_agreement *m)
{
    struct trib_trainer *t = m->t;
    const int before = (int)m->all[m->source_rank].ranks;
    char note[160] = "";
    const struct trib_train_move move = {.ranks_before = before,
                                         .old = m->old,
                                         .is_new = !m->from,
                                         .note = note,
                                         .note_bytes = sizeof(note)};

    trib_status_t st = take_sections(m);
    if (st == TRIB_OK)
        st = take_sums(m, note, sizeof(note));
    take_numbers(m);
    if (st == TRIB_OK && t->choice.row->ops->moved)
        st = t->choice.row->ops->moved(t, &move);
    t->stats.moves++;
    snprintf(t->moved, sizeof(t->moved),
             "moved at step %" PRIu64 " from %d to %d ranks, %d of them new%s%s",
             t->number, before, t->ranks, t->ranks - m->old, note[0] ? "; " : "", note);
    return st;
}

trib_status_t trib_train_create_strategy(struct trib_trainer *t, trib_status_t mine,
                                         struct trib_trainer *from)
{
    struct move_agreement m = {.t = t, .from = from};

    trib_status_t st = exchange_offers(&m, mine);
    if (st == TRIB_OK)
        st = take_params(&m);
    if (st == TRIB_OK)
        st = make_strategy(t);
    if (st == TRIB_OK && m.source_rank >= 0)
        st = move_state(&m);
    free(m.all);
    return st;
}

/* Copy a trainer to another communicator, without its strategy. */
static trib_status_t copy(const struct trib_trainer *t, trib_comm_t *comm,
                          struct trib_trainer *out)
{
    *out = *t;
    out->comm = comm;
    out->rank = trib_rank(comm);
    out->ranks = trib_size(comm);
    out->strategy = NULL;
    out->n_split = out->n_sums = 0;
    out->begun = false;
    out->params = calloc(t->count, sizeof(float));
    trib_error_clear(&out->err);
    trib_train_rate_move(&out->rate, out->ranks);
    const trib_status_t st =
        trib_train_optimizer_copy(&t->optimizer, &out->err, &out->optimizer);
    return out->params ? st
                       : trib_fail(&out->err, TRIB_ERR_NO_MEMORY,
                                   "no memory for %zu parameters", t->count);
}

trib_status_t trib_trainer_move(trib_trainer_t *trainer, trib_comm_t *comm)
{
    const struct trib_strategy_ops *ops = trainer->choice.row->ops;
    struct trib_trainer next, was;

    trib_status_t st = copy(trainer, comm, &next);
    if (st == TRIB_OK && ops->collect)
        ops->collect(trainer);
    st = trib_train_create_strategy(&next, st, trainer);
    if (st != TRIB_OK) {
        trib_train_release(&next);
        free(next.params);
        trainer->err = next.err;
        return st;
    }
    memcpy(trainer->params, next.params, trainer->count * sizeof(float));
    free(next.params);
    next.params = trainer->params;
    next.wire_at_create = trib_train_wire_bytes(&next) -
                          (trib_train_wire_bytes(trainer) - trainer->wire_at_create);
    was = *trainer;
    *trainer = next;
    trib_train_release(&was);
    return TRIB_OK;
}
