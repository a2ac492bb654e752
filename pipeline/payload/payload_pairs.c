/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/payload_pairs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/engine/failure.h"
#include "pipeline/payload/check.h"
#include "pipeline/payload/contribution.h"
#include "pipeline/payload/payload.h"
#include "pipeline/payload/payload_state.h"

enum { RESULTS_MIN = 4096 /* bytes */ };

/* The number of a chunk is its index: pairs are never fed backwards. */
static size_t chunks_of(const struct trib_run *run)
{
    return (size_t)trib_run_rounds(run) * run->desc.n_chunks;
}

trib_status_t trib_pairs_prepare(const struct trib_engine *e, struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;
    struct trib_pairs_state *s = run->payload->pairs = calloc(1, sizeof(*s));

    if (!s)
        return TRIB_ERR_NO_MEMORY;
    assert(d->cut == TRIB_CUT_INTERLEAVED && d->op.feed == TRIB_FEED_WHOLE);
    s->at = malloc((d->piece + 1) * sizeof(*s->at));
    s->chunks = calloc(chunks_of(run), sizeof(*s->chunks));
    const trib_status_t st =
        trib_pair_sum_open(&s->sum, e->kernels, d->op.dtype, d->piece);
    return s->at && s->chunks ? st : TRIB_ERR_NO_MEMORY;
}

void trib_pairs_dispose(struct trib_run *run)
{
    struct trib_pairs_state *s = run->payload->pairs;

    if (!s)
        return;
    trib_pair_sum_close(&s->sum);
    free(s->at);
    free(s->chunks);
    free(s->results);
    free(s);
    run->payload->pairs = NULL;
}

static const struct trib_pairs_input *input_of(const struct trib_run *run)
{
    return (const struct trib_pairs_input *)(const void *)run->now.input;
}

/* The first pair of an input whose index is not below `index`. */
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

/* This rank's pairs of a chunk; their positions are in the state. */
static struct trib_pairs given(const struct trib_run *run, const struct trib_chunk *c)
{
    struct trib_pairs_state *s = run->payload->pairs;
    const struct trib_pairs_input *in = input_of(run);
    const size_t from = first_from(in, c->first);
    const size_t n = first_from(in, c->first + c->n) - from;

    assert(n <= c->n && c->n <= run->desc.piece);
    for (size_t i = 0; i < n; i++)
        s->at[i] = (uint32_t)(in->indices[from + i] - c->first);
    return (struct trib_pairs){n, s->at,
                               n ? in->values + from * run->desc.element : NULL};
}

/* Room for the result of a chunk; NULL if it has no bytes, or if there is no memory and
 * the engine is marked. */
static uint8_t *keep(struct trib_engine *e, struct trib_run *run,
                     const struct trib_chunk *c, size_t bytes)
{
    struct trib_pairs_state *s = run->payload->pairs;
    size_t room = 2 * s->room > RESULTS_MIN ? 2 * s->room : RESULTS_MIN;

    if (bytes > s->room - s->used) {
        room = room > s->used + bytes ? room : s->used + bytes;
        uint8_t *more = realloc(s->results, room);
        if (!more) {
            trib_engine_mark(e, TRIB_ERR_NO_MEMORY,
                             "no memory for the result of a sparse all-reduce");
            return NULL;
        }
        s->results = more;
        s->room = room;
    }
    s->chunks[c->index] = (struct trib_pairs_result){s->used, bytes};
    s->used += bytes;
    assert(s->results || !bytes);
    return bytes ? s->results + s->chunks[c->index].first : NULL;
}

static void keep_pairs(struct trib_engine *e, struct trib_run *run,
                       const struct trib_chunk *c, const struct trib_pairs *p)
{
    const size_t element = run->desc.element;
    uint8_t *word = keep(e, run, c, trib_pair_word_bytes(p->n, c->n, element));

    if (word)
        trib_pair_word_write(p, c->n, element, word);
}

static bool pairs_begin(struct trib_engine *e, struct trib_run *run)
{
    struct trib_pairs_state *s = run->payload->pairs;

    s->used = 0;
    memset(s->chunks, 0, chunks_of(run) * sizeof(*s->chunks));
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
    return trib_run_chunk(run, t->done, t->chunk);
}

static size_t pairs_room(const struct trib_engine *e, const struct trib_run *run,
                         const struct trib_task *t, const struct trib_chunk *c)
{
    (void)e;
    if (!(t->flags & TRIB_TASK_INPUT))
        return run->payload->pairs->chunks[c->index].bytes;
    return trib_pair_word_bytes(pairs_given(run, c), c->n, run->desc.element);
}

static bool pairs_ready(struct trib_engine *e, struct trib_run *run,
                        const struct trib_task *t, const struct trib_chunk *c)
{
    (void)e;
    (void)run;
    (void)t;
    (void)c;
    return true;
}

static void pairs_fill(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                       const struct trib_chunk *c, struct trib_entry *entry)
{
    struct trib_link *l = &e->links[run->program.neighbors[t->neighbor].peer];
    const struct trib_pairs_state *s = run->payload->pairs;
    const size_t bytes = pairs_room(e, run, t, c);
    uint8_t *to = trib_link_to_send(l, &e->arena, t->lane, bytes);

    assert(bytes <= e->arena.slot_bytes);
    entry->frame = run->now.frame;
    entry->frame.chunk = c->index;
    entry->frame.kind = TRIB_FRAME_DATA;
    entry->frame.bytes = (uint32_t)bytes;
    if (t->flags & TRIB_TASK_INPUT) {
        const struct trib_pairs mine = given(run, c);
        trib_pair_word_write(&mine, c->n, run->desc.element, to);
    } else if (bytes) {
        memcpy(to, s->results + s->chunks[c->index].first, bytes);
    }
    e->stats.dense_bytes += c->n * run->desc.element;
    e->stats.payload_bytes += bytes;
}

/* False if a peer gave NaN or an infinity and TRIB_CHECK looks for them; the engine is
 * marked. */
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

/* The pairs of a peer's frame; false if it is not valid. */
static bool received(struct trib_engine *e, struct trib_run *run,
                     const struct trib_contrib_item *from, const struct trib_chunk *c,
                     struct trib_pairs *out)
{
    struct trib_entry *entry = from->entry;

    if (entry->frame.kind != TRIB_FRAME_DATA ||
        entry->frame.bytes > e->arena.slot_bytes ||
        !trib_pair_word_read(trib_contrib_received(e, from), entry->frame.bytes, c->n,
                             run->desc.element, run->payload->pairs->at, out))
        return false;
    return is_finite(e, run, from->neighbor->peer, c, out);
}

static trib_status_t pairs_reduce(struct trib_engine *e, struct trib_run *run,
                                  struct trib_task *t, const struct trib_chunk *c)
{
    struct trib_pairs_state *s = run->payload->pairs;
    struct trib_contrib_walk walk = trib_contrib_begin(e, run, t);
    struct trib_contrib_item from = {.by = TRIB_BY_INPUT};
    struct trib_pairs p;

    assert(t->flags & TRIB_TASK_INPUT);
    while (trib_contrib_next(&walk, &from)) {
        if (from.by == TRIB_BY_INPUT)
            p = given(run, c);
        else if (!received(e, run, &from, c, &p))
            return e->failed ? TRIB_ERR_INVALID : TRIB_ERR_PROTOCOL;
        trib_pair_sum_add(&s->sum, &p);
    }
    p = trib_pair_sum_take(&s->sum, c->n, t->flags & TRIB_TASK_MEAN ? e->ranks : 0);
    keep_pairs(e, run, c, &p);
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
    uint8_t *word = keep(e, run, c, bytes);
    if (!word)
        return TRIB_OK;
    memcpy(word,
           trib_link_received(&e->links[neighbor->peer], &e->arena, t->lane, entry),
           bytes);
    return trib_pair_word_read(word, bytes, c->n, run->desc.element,
                               run->payload->pairs->at, &p)
               ? TRIB_OK
               : TRIB_ERR_PROTOCOL;
}

/* The only rank: its pairs are the result. */
static trib_status_t pairs_copy(struct trib_engine *e, struct trib_run *run,
                                struct trib_task *t, const struct trib_chunk *c)
{
    const struct trib_pairs mine = given(run, c);

    (void)t;
    keep_pairs(e, run, c, &mine);
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

/* Results ------------------------------------------------------------------------- */

/* A walk over the chunks of a result that have pairs. */
struct result_walk {
    size_t next; /* chunk */
    struct trib_chunk chunk;
    struct trib_pairs pairs;
};

static bool next_chunk(const struct trib_run *run, struct result_walk *w)
{
    const struct trib_pairs_state *s = run->payload->pairs;
    const uint32_t n = run->desc.n_chunks;

    for (; w->next < chunks_of(run); w->next++) {
        const struct trib_pairs_result *r = &s->chunks[w->next];
        if (!r->bytes)
            continue;
        w->chunk = trib_vector_chunk(run, (uint32_t)w->next / n, (uint32_t)w->next % n);
        const bool valid =
            trib_pair_word_read(s->results + r->first, r->bytes, w->chunk.n,
                                run->desc.element, s->at, &w->pairs);
        assert(valid);
        w->next++;
        return valid;
    }
    return false;
}

size_t trib_pairs_count(const struct trib_run *run)
{
    const struct trib_pairs_state *s = run->payload->pairs;
    size_t pairs = 0;

    for (size_t i = 0; i < chunks_of(run); i++) {
        uint32_t n = 0;
        if (s->chunks[i].bytes)
            memcpy(&n, s->results + s->chunks[i].first, sizeof(n));
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
            indices[at + i] = w.chunk.first + w.pairs.at[i];
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
        uint8_t *to = (uint8_t *)vector + w.chunk.first * element;
        for (size_t i = 0; i < w.pairs.n; i++)
            trib_pair_copy(to + w.pairs.at[i] * element, w.pairs.values + i * element,
                           element);
    }
}
