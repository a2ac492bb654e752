/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/engine/short_billboard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/link/billboard.h"
#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/payload.h"
#include "pipeline/payload/raw_sum.h"
#include "pipeline/run/engine_trace.h"
#include "pipeline/run/failure.h"

struct trib_short_billboard {
    struct trib_chunk chunk; /* the whole vector */
    uint32_t bytes; /* size of the vector */
    uint32_t turn; /* billboard turn of the operation */
    int arrived; /* the contributions of all ranks below this number have arrived */
    bool mean;
    trib_reduce_fn reduce;
    const uint8_t **sources; /* [ranks], in rank order */
};

/* Return true if all ranks map the billboard. All ranks get the same answer. */
static bool all_on_billboard(const struct trib_engine *e)
{
    bool all = e->arena.on_billboard && e->arena.billboard;

    for (int p = 0; p < e->ranks; p++)
        all = all && (p == e->rank || e->peers[p].arena.on_billboard);
    return all;
}

/* Return true if in the program every rank sends its contribution to all others. */
static bool is_exchange(const struct trib_engine *e, const struct trib_run *run)
{
    const struct trib_program *p = &run->program;
    const uint32_t peers = (uint32_t)e->ranks - 1;

    if (run->desc.op.coll != TRIB_ALLREDUCE || !peers || p->n_chunks != 1 ||
        p->n_neighbors != peers || p->n_tasks != peers + 1)
        return false;
    for (uint32_t i = 0; i < peers; i++)
        if (p->tasks[i].kind != TRIB_TASK_SEND ||
            !(p->tasks[i].flags & TRIB_TASK_INPUT))
            return false;
    const struct trib_task *sum = &p->tasks[peers];
    return sum->kind == TRIB_TASK_REDUCE && sum->flags & TRIB_TASK_INPUT &&
           sum->n_contribs == peers;
}

trib_status_t trib_billboard_prepare(const struct trib_engine *e,
                                     const struct trib_run *run,
                                     struct trib_short_billboard **out)
{
    const struct trib_chunk chunk = trib_vector_chunk(run, 0, 0);
    const size_t bytes = chunk.n * run->desc.element;

    *out = NULL;
    if (bytes > TRIB_BILLBOARD_PAYLOAD || !is_exchange(e, run) || !all_on_billboard(e))
        return TRIB_OK;
    struct trib_short_billboard *b = calloc(1, sizeof(*b));
    if (!b)
        return TRIB_ERR_NO_MEMORY;
    *out = b;
    b->chunk = chunk;
    b->bytes = (uint32_t)bytes;
    b->mean = run->program.tasks[e->ranks - 1].flags & TRIB_TASK_MEAN;
    b->reduce = e->kernels->reduce[run->desc.op.dtype][run->desc.op.op];
    b->sources = calloc((size_t)e->ranks, sizeof(*b->sources));
    return b->sources ? TRIB_OK : TRIB_ERR_NO_MEMORY;
}

void trib_billboard_dispose(struct trib_short_billboard *b)
{
    if (b)
        free(b->sources);
    free(b);
}

/* Count one entry on the billboard as a frame sent to each peer. */
static void count_shown(struct trib_engine *e, struct trib_run *run, uint64_t bytes)
{
    const uint64_t peers = (uint64_t)e->ranks - 1;

    run->now.moved += peers;
    e->stats.messages += peers;
    e->stats.wire_bytes += peers * (sizeof(struct trib_frame) + bytes);
    e->stats.dense_bytes += peers * bytes;
    e->stats.payload_bytes += peers * bytes;
    e->stats.input_dense_bytes += peers * bytes;
    e->stats.input_bytes += peers * bytes;
    e->stats.copied_bytes += bytes;
}

static void trace_shown(struct trib_engine *e, const struct trib_short_billboard *b,
                        uint64_t begin_ns)
{
    const struct trib_frame f = {.chunk = b->chunk.index, .bytes = b->bytes};

    for (int p = 0; e->trace.events && p < e->ranks; p++)
        if (p != e->rank)
            trib_engine_trace_sent(e, begin_ns, p, &f);
}

void trib_billboard_begin(struct trib_engine *e, struct trib_run *run,
                          struct trib_short_billboard *b)
{
    const uint8_t *input = trib_run_input(run, &b->chunk);
    const uint64_t begin_ns = trib_trace_clock(&e->trace);

    assert(e->arena.billboard && run->desc.rounds == 1);
    run->now.remaining = 1;
    b->arrived = 0;
    b->turn = ++e->arena.billboard_turn;
    struct trib_entry *entry = trib_billboard_entry(&e->arena, e->rank, b->turn);
    entry->frame = run->now.frame;
    entry->frame.kind = TRIB_FRAME_DATA;
    entry->frame.chunk = b->chunk.index;
    entry->frame.bytes = b->bytes;
    if (b->bytes)
        memcpy(trib_billboard_payload(entry, b->bytes), input, b->bytes);
    trib_billboard_publish(entry, b->turn, e->core);
    trib_billboard_wake(&e->arena);
    b->sources[e->rank] = input;
    count_shown(e, run, b->bytes);
    trace_shown(e, b, begin_ns);
}

/* Return true if a contribution belongs to another operation, or has the wrong size;
 * the engine is then marked. */
static inline bool is_wrong(struct trib_engine *e, const struct trib_run *run,
                            const struct trib_short_billboard *b, int peer,
                            const struct trib_frame *f)
{
    struct trib_frame theirs;

    if (!trib_frame_same(&run->now.frame, f) || f->chunk != b->chunk.index) {
        trib_snapshot(&theirs, f, sizeof(theirs)); /* the peer may change it */
        trib_engine_misfit(e, &theirs, peer);
        return true;
    }
    if (f->kind == TRIB_FRAME_DATA && f->bytes == b->bytes)
        return false;
    trib_engine_protocol(e, peer, "an invalid contribution");
    return true;
}

static void sum(struct trib_engine *e, struct trib_run *run,
                struct trib_short_billboard *b)
{
    struct trib_reduce_args r; /* large: set only the members that kernels read */

    r.dst[0] = trib_run_acc(run, &b->chunk);
    r.n_dst = 1;
    r.n_src = e->ranks;
    r.n = b->chunk.n;
    r.ranks = b->mean ? e->ranks : 0;
    r.stream = false;
    r.divisor = 0;
    r.weight = NULL;
    if (e->ranks > TRIB_REDUCE_MAX_SRC) {
        r.n_src = 0;
        trib_raw_sum(e, run, b->sources, e->ranks, &r);
        return;
    }
    for (int i = 0; i < e->ranks; i++)
        r.src[i] = b->sources[i];
    b->reduce(&r);
}

static void count_taken(struct trib_engine *e, struct trib_run *run, uint64_t bytes)
{
    const uint64_t peers = (uint64_t)e->ranks - 1;

    run->now.moved += peers;
    e->stats.sums++;
    e->stats.received_bytes += peers * (sizeof(struct trib_frame) + bytes);
    e->stats.received_dense_bytes += peers * bytes;
}

bool trib_billboard_pass(struct trib_engine *e, struct trib_run *run,
                         struct trib_short_billboard *b)
{
    for (; b->arrived < e->ranks; b->arrived++) {
        struct trib_entry *entry = trib_billboard_entry(&e->arena, b->arrived, b->turn);
        if (b->arrived == e->rank)
            continue;
        if (!trib_billboard_is_filled(entry, b->turn) ||
            is_wrong(e, run, b, b->arrived, &entry->frame))
            return false;
        b->sources[b->arrived] = trib_billboard_payload(entry, b->bytes);
    }
    trib_trace_now(&e->trace, TRIB_TRACE_REDUCE_BEGIN, -1, b->chunk.index, b->chunk.n);
    if (b->bytes)
        sum(e, run, b);
    trib_trace_now(&e->trace, TRIB_TRACE_REDUCE_END, -1, b->chunk.index, b->chunk.n);
    count_taken(e, run, b->bytes);
    run->now.remaining = 0;
    return true;
}

int trib_billboard_awaits(const struct trib_engine *e,
                          const struct trib_short_billboard *b, int from)
{
    for (int p = from > b->arrived ? from : b->arrived; p < e->ranks; p++)
        if (p != e->rank && !trib_billboard_is_filled(
                                trib_billboard_entry(&e->arena, p, b->turn), b->turn))
            return p;
    return -1;
}

bool trib_billboard_awaits_core(const struct trib_engine *e,
                                const struct trib_short_billboard *b)
{
    for (int p = 0; (p = trib_billboard_awaits(e, b, p)) >= 0; p++) {
        const uint32_t core =
            trib_billboard_core(trib_billboard_entry(&e->arena, p, b->turn - 1));
        if (core == e->core || !core)
            return true;
    }
    return false;
}

/* Check for a frame of a peer whose entry is missing. The peer may have sent the frame
 * after it filled the entry, so read the entry again after the lane. */
static void check_lanes(struct trib_engine *e, const struct trib_short_billboard *b)
{
    for (int p = 0; !e->failed && (p = trib_billboard_awaits(e, b, p)) >= 0; p++) {
        for (int lane = 0; lane < TRIB_LANES && !e->failed; lane++) {
            struct trib_entry *frame = trib_link_peek(&e->links[p], &e->arena, lane);
            if (frame && trib_billboard_awaits(e, b, p) == p)
                trib_engine_misfit(e, &frame->frame, p);
        }
    }
}

void trib_billboard_check(struct trib_engine *e, const struct trib_short_billboard *b)
{
    const uint32_t turn = e->arena.billboard_turn + 1;

    if (b) {
        check_lanes(e, b);
        return;
    }
    for (int p = 0; e->arena.billboard && !e->failed && p < e->ranks; p++) {
        const struct trib_entry *entry = trib_billboard_entry(&e->arena, p, turn);
        struct trib_frame theirs;
        if (p == e->rank || !trib_billboard_is_filled(entry, turn))
            continue;
        trib_snapshot(&theirs, &entry->frame, sizeof(theirs));
        if (theirs.seq == e->head->now.frame.seq)
            trib_engine_misfit(e, &theirs, p);
    }
}
