/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/kinds/plan_blocks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/plan_parts.h"

/* Lengths and offsets of the blocks in the send or receive buffer. */
struct side {
    const char *name; /* "send" or "recv" */
    const size_t *counts; /* NULL: `count` each */
    const size_t *offsets; /* NULL: contiguous */
    size_t count;
};

bool trib_desc_has_blocks(trib_coll_t coll, const trib_desc_t *d)
{
    if (!trib_coll_is_blocked(coll))
        return false;
    return coll == TRIB_GATHER || coll == TRIB_SCATTER || coll == TRIB_ALLTOALL ||
           d->send_counts || d->send_offsets || d->recv_counts || d->recv_offsets;
}

static size_t length_of(const struct side *s, size_t rank)
{
    return s->counts ? s->counts[rank] : s->count;
}

/* Return each block's offset, and the end of the last one. */
static trib_status_t place_side(struct trib_plan *plan, const struct side *s,
                                size_t *places, size_t *end_out)
{
    const size_t size = (size_t)plan->comm->engine.ranks;
    const size_t most = PTRDIFF_MAX / plan->run.desc.element;
    size_t next = 0, end;

    assert(size > 0 && places);
    *end_out = 0;
    for (size_t r = 0; r < size; r++) {
        places[r] = s->offsets ? s->offsets[r] : next;
        if (__builtin_add_overflow(places[r], length_of(s, r), &end) || end > most)
            return trib_comm_fail(plan->comm, TRIB_ERR_OVERFLOW,
                                  "block %zu of %s, %zu elements from element %zu, "
                                  "exceeds the address space",
                                  r, s->name, length_of(s, r), places[r]);
        next = end;
        if (length_of(s, r) && end > *end_out)
            *end_out = end;
    }
    return TRIB_OK;
}

/* The peers of this rank's block k. */
static size_t sent_to(const struct trib_plan *plan, size_t k)
{
    const size_t size = (size_t)plan->comm->engine.ranks;

    return plan->run.desc.op.coll == TRIB_ALLTOALL
               ? ((size_t)plan->comm->engine.rank + k) % size
               : k;
}

static size_t got_from(const struct trib_plan *plan, size_t k)
{
    const size_t size = (size_t)plan->comm->engine.ranks;

    return plan->run.desc.op.coll == TRIB_ALLTOALL
               ? ((size_t)plan->comm->engine.rank + size - k) % size
               : k;
}

/* Return true if this rank has the longer buffer on this side. */
static bool has_blocks(const struct trib_plan *plan, unsigned side)
{
    const struct trib_frame_op *op = &plan->run.desc.op;

    return trib_coll_traits(op->coll) & side &&
           (!trib_coll_has_root(op->coll) || (int)op->root == plan->comm->engine.rank);
}

static trib_status_t list_all_to_all(struct trib_plan *plan, const struct side *send,
                                     const struct side *recv, size_t *places)
{
    const size_t size = (size_t)plan->comm->engine.ranks;
    struct trib_blocks *b = plan->run.desc.blocks;
    trib_status_t st = place_side(plan, send, places, &b->in_end);

    for (size_t k = 0; k < size && st == TRIB_OK; k++) {
        b->at[k].n_in = length_of(send, sent_to(plan, k));
        b->at[k].in = places[sent_to(plan, k)];
    }
    if (st == TRIB_OK)
        st = place_side(plan, recv, places, &b->out_end);
    for (size_t k = 0; k < size && st == TRIB_OK; k++) {
        b->at[k].n_out = length_of(recv, got_from(plan, k));
        b->at[k].out = places[got_from(plan, k)];
        b->two_lengths |= b->at[k].n_in != b->at[k].n_out;
    }
    if (st == TRIB_OK && b->at[0].n_in != b->at[0].n_out)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "alltoall: this rank sends itself %zu elements but "
                              "receives %zu from itself: send_counts[rank] and "
                              "recv_counts[rank] must be equal",
                              b->at[0].n_in, b->at[0].n_out);
    return st;
}

/* List the blocks of a collective where each rank has one block on one side. On the
 * other side the root or all ranks have all blocks. */
static trib_status_t list_by_rank(struct trib_plan *plan, const struct side *longer,
                                  bool gathers, bool all_here, size_t *places)
{
    const size_t size = (size_t)plan->comm->engine.ranks;
    struct trib_blocks *b = plan->run.desc.blocks;
    size_t end = 0;

    assert(b->own < size && !b->two_lengths);
    trib_status_t st = all_here ? place_side(plan, longer, places, &end) : TRIB_OK;

    for (size_t k = 0; k < size && st == TRIB_OK; k++) {
        struct trib_block *at = &b->at[k];
        at->n_in = at->n_out = all_here ? length_of(longer, k) : longer->count;
        at->in = !gathers && all_here ? places[k] : 0;
        at->out = gathers && all_here ? places[k] : TRIB_NO_PLACE;
        if (!gathers && k == b->own)
            at->out = 0;
    }
    b->in_end = gathers ? b->at[b->own].n_in : end;
    b->out_end = gathers ? end : b->at[b->own].n_out;
    return st;
}

/* Refuse arrays that the collective does not use: the caller meant another one. */
static trib_status_t check_sides(struct trib_plan *plan, const trib_desc_t *d)
{
    const trib_coll_t coll = plan->run.desc.op.coll;
    const unsigned traits = trib_coll_traits(coll);
    const char *wrong = NULL;

    if (!(traits & TRIB_COLL_SEND_BLOCKS) && (d->send_counts || d->send_offsets))
        wrong = "send_counts and send_offsets are for reduce-scatter, scatter and "
                "alltoall";
    if (!(traits & TRIB_COLL_RECV_BLOCKS) && (d->recv_counts || d->recv_offsets))
        wrong = "recv_counts and recv_offsets are for allgather, gather and alltoall";
    if (coll == TRIB_ALLTOALL && !d->send_counts != !d->recv_counts)
        wrong = "alltoall needs both send_counts and recv_counts, or neither";
    return wrong ? trib_comm_fail(plan->comm, TRIB_ERR_INVALID, "%s: %s",
                                  trib_coll_name(coll), wrong)
                 : TRIB_OK;
}

static trib_status_t list_blocks(struct trib_plan *plan, const trib_desc_t *d,
                                 size_t *places)
{
    const struct side send = {"send", d->send_counts, d->send_offsets, d->count};
    const struct side recv = {"recv", d->recv_counts, d->recv_offsets, d->count};
    struct trib_run_desc *r = &plan->run.desc;
    struct trib_blocks *b = r->blocks;
    const bool gathers = trib_coll_traits(r->op.coll) & TRIB_COLL_RECV_BLOCKS;
    const bool counted = d->send_counts || d->recv_counts;

    b->local =
        counted && (trib_coll_has_root(r->op.coll) || r->op.coll == TRIB_ALLTOALL);
    b->own = r->op.coll == TRIB_ALLTOALL ? 0 : (size_t)plan->comm->engine.rank;
    if (r->op.coll == TRIB_ALLTOALL)
        return list_all_to_all(plan, &send, &recv, places);
    return list_by_rank(plan, gathers ? &recv : &send, gathers,
                        has_blocks(plan, TRIB_COLL_SEND_BLOCKS | TRIB_COLL_RECV_BLOCKS),
                        places);
}

static trib_status_t make(struct trib_plan *plan, const trib_desc_t *d)
{
    const size_t size = (size_t)plan->comm->engine.ranks;
    struct trib_run_desc *r = &plan->run.desc;
    size_t *places = calloc(size, sizeof(*places));
    struct trib_blocks *b = calloc(1, sizeof(*b));

    if (b)
        b->at = calloc(size, sizeof(*b->at));
    r->blocks = b;
    trib_status_t st = check_sides(plan, d);
    if (st == TRIB_OK && (!places || !b || !b->at))
        st = trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    if (st == TRIB_OK)
        st = list_blocks(plan, d, places);
    free(places);
    if (st != TRIB_OK)
        return st;
    assert(b->own < size && b->at[b->own].n_in == b->at[b->own].n_out);
    plan->lengths[0] = b->in_end;
    plan->lengths[1] = b->out_end;
    if (b->local)
        r->count = 0; /* each frame carries the length of its block */
    else if (d->send_counts || d->recv_counts)
        r->count = b->in_end > b->out_end ? b->in_end : b->out_end;
    return TRIB_OK;
}

static size_t find_largest(const struct trib_plan *plan)
{
    const struct trib_blocks *b = plan->run.desc.blocks;
    size_t largest = 0;

    for (int k = 0; k < plan->comm->engine.ranks; k++) {
        largest = b->at[k].n_in > largest ? b->at[k].n_in : largest;
        largest = b->at[k].n_out > largest ? b->at[k].n_out : largest;
    }
    return largest;
}

static size_t mean_of(const struct trib_plan *plan)
{
    const struct trib_blocks *b = plan->run.desc.blocks;
    const int size = plan->comm->engine.ranks;
    double sum = 0;

    for (int k = 0; k < size && !b->local; k++)
        sum += (double)b->at[k].n_out;
    return (size_t)(sum / size);
}

static uint64_t digest_counts(const struct trib_plan *plan)
{
    const struct trib_blocks *b = plan->run.desc.blocks;
    uint32_t digest = 0;

    for (int k = 0; b && !b->local && k < plan->comm->engine.ranks; k++) {
        const uint64_t parts[] = {digest, b->at[k].n_out};
        digest = trib_digest32(parts, sizeof(parts));
    }
    return digest;
}

/* Return true if each lane carries one block and no step depends on another block.
 * Blocks then need not start together. */
static bool are_apart(const struct trib_program *p)
{
    for (uint32_t i = 0; i < p->n_neighbors; i++)
        for (int lane = 0; lane < TRIB_LANES; lane++)
            if (p->neighbors[i].sends[lane] > 1 || p->neighbors[i].recvs[lane] > 1)
                return false;
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        const struct trib_task *t = &p->tasks[i];
        if (t->dep != TRIB_STEP_NO_DEP && p->tasks[t->dep].chunk != t->chunk)
            return false;
    }
    return true;
}

/* Start each independent block late, so that all end with the last round. A block's
 * frames are numbered from its own first round. */
static void begin_late(struct trib_plan *plan)
{
    const struct trib_run_desc *r = &plan->run.desc;
    struct trib_program *p = &plan->run.program;

    for (uint32_t k = 0; k < r->n_chunks; k++) {
        struct trib_block *b = &r->blocks->at[k];
        const size_t in = b->n_in ? trib_divide_up(b->n_in, r->piece) : 1;
        const size_t out = b->n_out ? trib_divide_up(b->n_out, r->piece) : 1;
        assert(in <= r->rounds && out <= r->rounds);
        b->late_in = r->rounds - (uint32_t)in;
        b->late_out = r->rounds - (uint32_t)out;
    }
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        struct trib_task *t = &p->tasks[i];
        const struct trib_block *b = &r->blocks->at[t->chunk];
        const bool gives = t->kind == TRIB_TASK_SEND && t->flags & TRIB_TASK_INPUT;
        t->ordinal -= gives ? b->late_in : b->late_out;
        for (uint32_t m = 0; m < t->n_contribs; m++)
            p->contribs[t->contrib + m].ordinal -= b->late_out;
    }
}

/* Allocate partial sums and forwarded blocks that have no place in the result. */
static void hold(struct trib_plan *plan)
{
    const struct trib_program *p = &plan->run.program;
    struct trib_blocks *b = plan->run.desc.blocks;

    for (uint32_t k = 0; k < p->n_chunks; k++)
        b->at[k].held = TRIB_NO_PLACE;
    for (uint32_t i = 0; i < p->n_tasks; i++) {
        struct trib_block *at = &b->at[p->tasks[i].chunk];
        const bool fills = p->tasks[i].kind == TRIB_TASK_REDUCE ||
                           p->tasks[i].kind == TRIB_TASK_COPY_IN;
        if (!fills || at->out != TRIB_NO_PLACE || at->held != TRIB_NO_PLACE)
            continue;
        assert(p->tasks[i].chunk < p->n_chunks);
        at->held = b->held;
        b->held += at->n_out;
    }
}

static void finish(struct trib_plan *plan)
{
    const struct trib_program *p = &plan->run.program;
    const struct trib_run_desc *r = &plan->run.desc;

    assert(r->blocks && p->n_chunks == (uint32_t)plan->comm->engine.ranks);
    if (are_apart(p))
        begin_late(plan);
    else
        assert(!r->blocks->local);
    hold(plan);
}

static void free_list(struct trib_plan *plan)
{
    struct trib_blocks *b = plan->run.desc.blocks;

    free(plan->of_kind); /* the copy of an in-place input */
    if (b)
        free(b->at);
    free(b);
}

/* Copy the input of an in-place all-to-all: received blocks may overwrite unsent
 * ones. */
static trib_status_t copy_input(struct trib_plan *plan, const void **send, void *recv)
{
    const struct trib_blocks *b = plan->run.desc.blocks;
    const size_t bytes = b->in_end * plan->run.desc.element;
    const uint32_t size = (uint32_t)plan->comm->engine.ranks;

    for (uint32_t k = 0; k < size; k++) {
        const struct trib_block *in = &b->at[k], *out = &b->at[(size - k) % size];
        if (in->n_in != out->n_out || in->in != out->out)
            return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                                  "alltoall in place: send_counts must equal "
                                  "recv_counts, and the offsets must be equal");
    }
    if (!plan->of_kind && bytes)
        plan->of_kind = malloc(bytes);
    if (!plan->of_kind && bytes)
        return trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY,
                              "no memory for a copy of %zu bytes for an in-place "
                              "alltoall",
                              bytes);
    if (bytes && recv)
        memcpy(plan->of_kind, recv, bytes);
    *send = plan->of_kind;
    return TRIB_OK;
}

static trib_status_t place(struct trib_plan *plan, const void **send, void **recv)
{
    const struct trib_run_desc *r = &plan->run.desc;
    const struct trib_block *own = &r->blocks->at[r->blocks->own];
    const bool sends_all = has_blocks(plan, TRIB_COLL_SEND_BLOCKS);
    const bool takes_all = has_blocks(plan, TRIB_COLL_RECV_BLOCKS);
    const uintptr_t from = (uintptr_t)*send, to = (uintptr_t)*recv;

    if (sends_all && takes_all)
        return *recv && (!from || from == to) ? copy_input(plan, send, *recv) : TRIB_OK;
    if (takes_all && from && from == to + own->out * r->element) {
        *send = NULL;
        assert(own->out != TRIB_NO_PLACE);
    } else if (sends_all && from && (!to || to == from + own->in * r->element)) {
        *recv = (void *)from;
        *send = NULL;
    }
    return TRIB_OK;
}

static const struct trib_plan_kind blocks = {
    .name = "blocks",
    .make = make,
    .digest = digest_counts,
    .largest = find_largest,
    .mean = mean_of,
    .finish = finish,
    .place = place,
    .free = free_list,
};

const struct trib_plan_kind *trib_plan_kind_of(trib_coll_t coll,
                                               const trib_desc_t *desc)
{
    return trib_desc_has_blocks(coll, desc) ? &blocks : NULL;
}
