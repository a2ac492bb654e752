/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/payload_pairs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/payload/check.h"
#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/contribution.h"
#include "pipeline/payload/payload.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/run/failure.h"

#define MORE_PAIRS "more (index, value) pairs in a chunk than the plan allows"

enum { RESULTS_MIN = 4096 /* bytes */ };

/* Return the number of kept results. On a rank the index of a chunk is its place, since
 * pairs are never fed backwards. */
static size_t chunks_of(const struct trib_run *run)
{
    return run->is_aggregator ? run->desc.n_chunks
                              : (size_t)trib_run_rounds(run) * run->desc.n_chunks;
}

static size_t place_of(const struct trib_run *run, const struct trib_task *t,
                       const struct trib_chunk *c)
{
    return run->is_aggregator ? t->chunk : c->index;
}

/* Return the maximum length of an aggregator's encoded chunk, at most a slot. */
static size_t store_of(const struct trib_engine *e, const struct trib_run *run)
{
    const size_t bound = trib_encoded_pairs_bound(
        run->desc.piece, trib_pair_sum_element(run->desc.op.dtype));

    return bound < e->arena.slot_bytes ? bound : e->arena.slot_bytes;
}

uint64_t trib_pairs_bytes(const struct trib_engine *e, const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;

    return sizeof(struct trib_pairs_state) + (d->piece + 1) * sizeof(uint32_t) +
           d->n_chunks * (sizeof(struct trib_pairs_result) + store_of(e, run)) +
           trib_pair_sum_bytes(d->op.dtype, d->piece);
}

/* Allocate room for the chunks of this run; return false if out of memory. */
static bool make_room(const struct trib_run *run, struct trib_pairs_union *u)
{
    const size_t n = chunks_of(run);

    if (u->at_room < run->desc.piece + 1) {
        free(u->at);
        u->at_room = run->desc.piece + 1;
        u->at = malloc(u->at_room * sizeof(*u->at));
    }
    if (u->n_chunks != n) {
        free(u->chunks);
        u->n_chunks = n;
        u->chunks = calloc(n, sizeof(*u->chunks));
    }
    if (!u->at)
        u->at_room = 0;
    if (!u->chunks)
        u->n_chunks = 0;
    return u->at && u->chunks;
}

trib_status_t trib_pairs_prepare(const struct trib_engine *e, struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    struct trib_pairs_state *s = run->payload->pairs = calloc(1, sizeof(*s));

    if (!s)
        return TRIB_ERR_NO_MEMORY;
    assert(d->cut == TRIB_CUT_INTERLEAVED && d->op.feed == TRIB_FEED_WHOLE);
    const trib_status_t st =
        trib_pair_sum_open(&s->sum, e->kernels, d->op.dtype, d->piece);
    if (d->regions.cell && !trib_pair_regions_open(&s->regions, &d->regions, d->count))
        return TRIB_ERR_NO_MEMORY;
    if (run->is_aggregator) {
        s->store = store_of(e, run);
        s->all.room = d->n_chunks * s->store;
        s->all.results = malloc(s->all.room + 1);
        run->payload->acc_rounds = 1; /* rounds reuse the same memory */
    }
    return make_room(run, &s->all) && (s->all.results || !run->is_aggregator)
               ? st
               : TRIB_ERR_NO_MEMORY;
}

void trib_pairs_dispose(struct trib_run *run)
{
    struct trib_pairs_state *s = run->payload->pairs;

    if (!s)
        return;
    trib_pair_sum_close(&s->sum);
    trib_pair_regions_close(&s->regions);
    free(s->all.at);
    free(s->all.chunks);
    free(s->all.results);
    free(s);
    run->payload->pairs = NULL;
}

uint32_t *trib_pairs_count_cells(struct trib_run *run,
                                 const struct trib_pairs_input *in)
{
    struct trib_pair_regions *r = &run->payload->pairs->regions;

    assert(run->desc.regions.cell && !run->is_aggregator);
    trib_pair_regions_count(r, &run->desc.regions, in->indices, in->n);
    return r->counts;
}

void trib_pairs_adopt(struct trib_run *run, struct trib_run *from)
{
    const struct trib_pairs_union was = run->payload->pairs->all;

    assert(run->desc.count == from->desc.count && !run->is_aggregator);
    run->payload->pairs->all = from->payload->pairs->all;
    from->payload->pairs->all = was;
}

static const struct trib_pairs_input *input_of(const struct trib_run *run)
{
    return (const struct trib_pairs_input *)(const void *)run->now.input;
}

/* Return the first pair of an input whose index is >= `index`. */
static size_t first_from(const struct trib_pairs_input *in, uint64_t index)
{
    size_t lo = 0, hi = in->n;

    while (lo < hi) {
        const size_t middle = lo + (hi - lo) / 2;
        if (in->indices[middle] < index)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

static size_t pairs_given(const struct trib_run *run, const struct trib_chunk *c)
{
    const struct trib_pairs_input *in = input_of(run);

    return first_from(in, c->first + c->n) - first_from(in, c->first);
}

/* Return this rank's pairs of a chunk; their positions are stored in the state. */
static struct trib_pairs given(const struct trib_run *run, const struct trib_chunk *c)
{
    struct trib_pairs_state *s = run->payload->pairs;
    const struct trib_pairs_input *in = input_of(run);
    const size_t from = first_from(in, c->first);
    const size_t n = first_from(in, c->first + c->n) - from;

    assert(n <= c->n && c->n <= run->desc.piece && c->n <= s->all.at_room);
    for (size_t i = 0; i < n; i++)
        s->all.at[i] = (uint32_t)(in->indices[from + i] - c->first);
    return (struct trib_pairs){n, s->all.at,
                               n ? in->values + from * run->desc.element : NULL};
}

/* Grow the memory of a rank's results; return false and mark the engine if out of
 * memory. */
static bool lengthen(struct trib_engine *e, struct trib_pairs_union *u, size_t bytes)
{
    size_t room = 2 * u->room > RESULTS_MIN ? 2 * u->room : RESULTS_MIN;

    room = room > u->used + bytes ? room : u->used + bytes;
    uint8_t *more = realloc(u->results, room);
    if (!more) {
        trib_engine_mark(e, TRIB_ERR_NO_MEMORY,
                         "no memory for the result of a sparse all-reduce");
        return false;
    }
    u->results = more;
    u->room = room;
    return true;
}

/* Return room for the sum of a chunk, in place of an earlier one. Return NULL if the
 * sum has no bytes. Also return NULL, with the engine marked, if out of memory or if a
 * rank has given more pairs than the plan allows. */
static uint8_t *keep(struct trib_engine *e, struct trib_run *run,
                     const struct trib_task *t, const struct trib_chunk *c,
                     size_t bytes)
{
    struct trib_pairs_state *s = run->payload->pairs;
    struct trib_pairs_union *u = &s->all;
    const size_t place = place_of(run, t, c);

    assert(place < u->n_chunks);
    if (e->size > 1 && bytes > (run->is_aggregator ? s->store : e->arena.slot_bytes)) {
        trib_engine_mark(e, TRIB_ERR_PROTOCOL, MORE_PAIRS);
        return NULL;
    }
    if (run->is_aggregator)
        u->used = place * s->store;
    else if (bytes > u->room - u->used && !lengthen(e, u, bytes))
        return NULL;
    u->chunks[place] = (struct trib_pairs_result){u->used, bytes, c->first, c->n};
    u->used += bytes;
    assert(u->results || !bytes);
    return bytes ? u->results + u->chunks[place].at : NULL;
}

static void keep_pairs(struct trib_engine *e, struct trib_run *run,
                       const struct trib_task *t, const struct trib_chunk *c,
                       const struct trib_pairs *p, size_t element)
{
    uint8_t *word = keep(e, run, t, c, trib_encoded_pairs_length(p, c->n, element));

    if (word)
        trib_encoded_pairs_write(p, c->n, element, word);
}

/* Make the chunks of this start, if their length depends on its pairs. */
static bool make_regions(struct trib_run *run)
{
    struct trib_pair_regions *r = &run->payload->pairs->regions;
    struct trib_run_desc *d = &run->desc;

    if (!d->regions.cell)
        return true;
    if (!trib_pair_regions_cut(r, &d->regions, d->count, d->n_chunks))
        return false;
    d->rounds = (uint32_t)(r->n / d->n_chunks);
    return true;
}

static bool pairs_begin(struct trib_engine *e, struct trib_run *run)
{
    struct trib_pairs_union *u = &run->payload->pairs->all;

    u->used = 0;
    if (!make_regions(run) || !make_room(run, u)) {
        trib_engine_mark(e, TRIB_ERR_NO_MEMORY,
                         "no memory for the result of a sparse all-reduce");
        return false;
    }
    memset(u->chunks, 0, u->n_chunks * sizeof(*u->chunks));
    return !e->failed;
}

static void pairs_end(struct trib_engine *e, struct trib_run *run)
{
    (void)e;
    (void)run;
}

static struct trib_chunk pairs_chunk(const struct trib_run *run,
                                     const struct trib_task *t)
{
    const struct trib_pair_regions *r = &run->payload->pairs->regions;
    const size_t index = (size_t)t->done * run->desc.n_chunks + t->chunk;

    if (!run->desc.regions.cell)
        return trib_run_chunk(run, t->done, t->chunk);
    assert(index < r->n);
    return (struct trib_chunk){(uint32_t)index, r->at[index].first, r->at[index].n};
}

static size_t pairs_room(const struct trib_engine *e, const struct trib_run *run,
                         const struct trib_task *t, const struct trib_chunk *c)
{
    (void)e;
    if (!(t->flags & TRIB_TASK_INPUT))
        return run->payload->pairs->all.chunks[place_of(run, t, c)].bytes;
    return trib_encoded_pairs_bytes(pairs_given(run, c), c->n, run->desc.element);
}

static bool pairs_ready(struct trib_engine *e, struct trib_run *run,
                        const struct trib_task *t, const struct trib_chunk *c)
{
    (void)c;
    return (t->kind != TRIB_TASK_REDUCE && t->kind != TRIB_TASK_COPY_IN) ||
           trib_acc_free(e, run, t);
}

static void pairs_fill(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                       const struct trib_chunk *c, struct trib_entry *entry)
{
    struct trib_link *l = &e->links[run->program.neighbors[t->neighbor].peer];
    const struct trib_pairs_union *u = &run->payload->pairs->all;
    const bool input = t->flags & TRIB_TASK_INPUT;
    struct trib_pairs mine = {.n = 0};

    if (input)
        mine = given(run, c);
    size_t bytes = input ? trib_encoded_pairs_length(&mine, c->n, run->desc.element)
                         : u->chunks[place_of(run, t, c)].bytes;
    if (bytes > e->arena.slot_bytes) { /* the sum of the counts was wrong */
        trib_engine_mark(e, TRIB_ERR_PROTOCOL, MORE_PAIRS);
        bytes = 0;
    }
    uint8_t *to = trib_link_to_send(l, &e->arena, t->lane, bytes);
    entry->frame = run->now.frame;
    entry->frame.chunk = c->index;
    entry->frame.kind = TRIB_FRAME_DATA;
    entry->frame.bytes = (uint32_t)bytes;
    if (bytes && input)
        trib_encoded_pairs_write(&mine, c->n, run->desc.element, to);
    else if (bytes)
        memcpy(to, u->results + u->chunks[place_of(run, t, c)].at, bytes);
    trib_payload_count_out(e, t, c->n * run->desc.element, bytes);
}

/* Return false, with the engine marked, if TRIB_CHECK is on and a peer gave NaN or
 * Inf. */
static bool is_finite(struct trib_engine *e, const struct trib_run *run, int peer,
                      const struct trib_chunk *c, const struct trib_pairs *p)
{
    struct trib_chunk bad = {.index = c->index, .n = 1};

    if (!run->desc.check.finite)
        return true;
    const size_t at =
        trib_check_first_bad(e->kernels, run->desc.op.dtype, p->values, p->n);
    if (at == p->n)
        return true;
    bad.first = c->first + p->at[at];
    return trib_check_peer(e, run, &bad, peer, p->values + at * run->desc.element) ==
           TRIB_OK;
}

/*
 * Decode a peer's pairs. An aggregator sends partial sums. If ranks forward partial
 * sums, the length shows whether this is one: each kind of values has its own length.
 */
static bool read_received(struct trib_engine *e, const struct trib_run *run,
                          const struct trib_contrib_item *from,
                          const struct trib_chunk *c, struct trib_pairs *out,
                          bool *partial_out)
{
    const size_t wide = trib_pair_sum_element(run->desc.op.dtype);
    const size_t narrow = run->desc.element, bytes = from->entry->frame.bytes;
    const uint8_t *word = trib_contrib_received(e, from);
    uint32_t *at = run->payload->pairs->all.at;

    *partial_out = from->neighbor->peer >= e->ranks;
    if (*partial_out)
        return trib_encoded_pairs_read(word, bytes, c->n, wide, at, out);
    if (trib_encoded_pairs_read(word, bytes, c->n, narrow, at, out))
        return true;
    *partial_out = !run->desc.gathers && wide != narrow;
    return *partial_out && trib_encoded_pairs_read(word, bytes, c->n, wide, at, out);
}

/* Add the pairs or the partial sum in a peer's frame; return false if invalid. */
static bool add_received(struct trib_engine *e, struct trib_run *run,
                         const struct trib_contrib_item *from,
                         const struct trib_chunk *c)
{
    struct trib_pairs_state *s = run->payload->pairs;
    const struct trib_entry *entry = from->entry;
    struct trib_pairs p;
    bool partial;

    if (entry->frame.kind != TRIB_FRAME_DATA ||
        entry->frame.bytes > e->arena.slot_bytes ||
        !read_received(e, run, from, c, &p, &partial) ||
        (!partial && !is_finite(e, run, from->neighbor->peer, c, &p)))
        return false;
    if (partial)
        trib_pair_sum_add_partial(&s->sum, &p);
    else
        trib_pair_sum_add(&s->sum, &p);
    return true;
}

/* Add the partial sum kept by an earlier task of the chunk. */
static void add_kept(struct trib_run *run, const struct trib_task *t,
                     const struct trib_chunk *c)
{
    struct trib_pairs_state *s = run->payload->pairs;
    const struct trib_pairs_result *r = &s->all.chunks[place_of(run, t, c)];
    struct trib_pairs p;

    assert(r->first == c->first && r->n == c->n);
    const bool valid = trib_encoded_pairs_read(
        r->bytes ? s->all.results + r->at : NULL, r->bytes, c->n,
        trib_pair_sum_element(run->desc.op.dtype), s->all.at, &p);
    assert(valid);
    if (valid)
        trib_pair_sum_add_partial(&s->sum, &p);
}

static trib_status_t pairs_reduce(struct trib_engine *e, struct trib_run *run,
                                  struct trib_task *t, const struct trib_chunk *c)
{
    struct trib_pairs_state *s = run->payload->pairs;
    struct trib_contrib_walk walk = trib_contrib_begin(e, run, t);
    struct trib_contrib_item from = {.by = TRIB_BY_INPUT};
    struct trib_pairs p;

    walk.acc_in_place = true;
    while (trib_contrib_next(&walk, &from)) {
        if (from.by == TRIB_BY_INPUT) {
            p = given(run, c);
            trib_pair_sum_add(&s->sum, &p);
        } else if (from.by == TRIB_BY_ACC) {
            add_kept(run, t, c);
        } else if (!add_received(e, run, &from, c)) {
            return e->failed ? TRIB_ERR_INVALID : TRIB_ERR_PROTOCOL;
        }
    }
    const bool finish = t->flags & TRIB_TASK_FINISH;
    p = finish ? trib_pair_sum_take(&s->sum, c->n,
                                    t->flags & TRIB_TASK_MEAN ? e->ranks : 0)
               : trib_pair_sum_take_partial(&s->sum, c->n);
    keep_pairs(e, run, t, c, &p,
               finish ? run->desc.element : trib_pair_sum_element(run->desc.op.dtype));
    trib_payload_count_in(e, run, c, t->n_contribs);
    e->stats.sums++;
    return TRIB_OK;
}

static trib_status_t pairs_copy_in(struct trib_engine *e, struct trib_run *run,
                                   struct trib_task *t, const struct trib_chunk *c,
                                   struct trib_entry *entry)
{
    const struct trib_neighbor *neighbor = &run->program.neighbors[t->neighbor];
    const size_t bytes = entry->frame.bytes;
    struct trib_pairs p;

    trib_payload_count_in(e, run, c, 1);
    if (entry->frame.kind != TRIB_FRAME_DATA || bytes > e->arena.slot_bytes)
        return TRIB_ERR_PROTOCOL;
    uint8_t *word = keep(e, run, t, c, bytes);
    if (!word)
        return TRIB_OK;
    memcpy(word,
           trib_link_received(&e->links[neighbor->peer], &e->arena, t->lane, entry),
           bytes);
    return trib_encoded_pairs_read(word, bytes, c->n, run->desc.element,
                                   run->payload->pairs->all.at, &p)
               ? TRIB_OK
               : TRIB_ERR_PROTOCOL;
}

/* The only rank: its pairs are the result. */
static trib_status_t pairs_copy(struct trib_engine *e, struct trib_run *run,
                                struct trib_task *t, const struct trib_chunk *c)
{
    const struct trib_pairs mine = given(run, c);

    keep_pairs(e, run, t, c, &mine, run->desc.element);
    return TRIB_OK;
}

const struct trib_payload_ops trib_payload_pairs = {
    .name = "pairs",
    .begin = pairs_begin,
    .end = pairs_end,
    .chunk = pairs_chunk,
    .room = pairs_room,
    .ready = pairs_ready,
    .fill = pairs_fill,
    .reduce = pairs_reduce,
    .copy_in = pairs_copy_in,
    .copy = pairs_copy,
};

/* Results -------------------------------------------------------------------------- */

/* An iterator over the nonempty chunks of a result. */
struct result_walk {
    size_t next; /* next chunk */
    size_t first; /* first element of the chunk */
    struct trib_pairs pairs;
};

static bool next_chunk(const struct trib_run *run, struct result_walk *w)
{
    const struct trib_pairs_union *u = &run->payload->pairs->all;

    for (; w->next < u->n_chunks; w->next++) {
        const struct trib_pairs_result *r = &u->chunks[w->next];
        if (!r->bytes)
            continue;
        w->first = r->first;
        const bool valid = trib_encoded_pairs_read(u->results + r->at, r->bytes, r->n,
                                                   run->desc.element, u->at, &w->pairs);
        assert(valid && r->n <= u->at_room);
        w->next++;
        return valid;
    }
    return false;
}

size_t trib_pairs_count(const struct trib_run *run)
{
    const struct trib_pairs_union *u = &run->payload->pairs->all;
    size_t pairs = 0;

    for (size_t i = 0; i < u->n_chunks; i++) {
        uint32_t n = 0;
        if (u->chunks[i].bytes)
            memcpy(&n, u->results + u->chunks[i].at, sizeof(n));
        pairs += n;
    }
    return pairs;
}

void trib_pairs_get(const struct trib_run *run, uint64_t *indices, void *values)
{
    const size_t element = run->desc.element;
    struct result_walk w = {.next = 0};

    for (size_t at = 0; next_chunk(run, &w); at += w.pairs.n) {
        for (size_t i = 0; i < w.pairs.n; i++)
            indices[at + i] = w.first + w.pairs.at[i];
        memcpy((uint8_t *)values + at * element, w.pairs.values, w.pairs.n * element);
    }
}

void trib_pairs_dense(const struct trib_run *run, void *vector)
{
    const size_t element = run->desc.element;
    struct result_walk w = {.next = 0};

    if (run->desc.count)
        memset(vector, 0, run->desc.count * element);
    while (next_chunk(run, &w)) {
        uint8_t *to = (uint8_t *)vector + w.first * element;
        for (size_t i = 0; i < w.pairs.n; i++)
            trib_pair_copy(to + w.pairs.at[i] * element, w.pairs.values + i * element,
                           element);
    }
}
