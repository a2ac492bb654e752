/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cut a vector into chunks and rounds. All ranks cut alike, so only values that they
 * agree on may be used here.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/minmax.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/deterministic.h"
#include "comm/plan/plan_parts.h"
#include "pipeline/payload/partial.h"
#include "pipeline/payload/payload_pairs.h"
#include "pipeline/payload/run_codec.h"
#include "pipeline/run/run.h"

enum {
    /* Rounds of a vector. Over a network many rounds shorten filling and draining the
     * pipeline. On one host the cores move the data and there is no wire to keep
     * busy. */
    ROUNDS_GOOD = 8,
    ROUNDS_GOOD_ONE_HOST = 2,
    ZERO_COPY_MIN = 16384, /* bytes of a chunk above which an ADVERT frame pays off */
    PLACE_MIN = 262144, /* bytes of a vector above which an ADVERT message pays off */
    SELECTED_WORD = 4096, /* target bytes of an enlarged chunk's encoding */
    PAIRS_HEAD = 16, /* bytes of encoded pairs that are neither index nor value */
};

/* Return true if all ranks read encoded sums directly from the aggregator's memory. */
static bool sums_in_place(const struct trib_plan *plan)
{
    const struct trib_comm *comm = plan->comm;

    return comm->aggregators && comm->load_store && comm->cfg.zero_copy &&
           !comm->aggregators->tree && trib_coded_linear(&plan->run);
}

/* Return the maximum elements of a chunk. With a quorum, a bitmap of the ranks follows
 * each encoded chunk. */
static size_t piece_max(const struct trib_plan *plan, size_t chunk,
                        size_t element_bytes)
{
    size_t (*bound)(const struct trib_codec *, size_t) =
        sums_in_place(plan)              ? trib_codec_own_bound
        : !trib_coded_linear(&plan->run) ? trib_codec_bound
        : plan->run.desc.gathers         ? trib_codec_star_bound
                                         : trib_codec_sum_bound;
    const size_t slot = plan->comm->cfg.chunk < chunk ? plan->comm->cfg.chunk : chunk;
    const size_t mask = plan->run.desc.quorum.need
                            ? trib_quorum_mask_bytes(plan->comm->engine.ranks)
                            : 0;

    if (!plan->codec)
        return chunk / element_bytes;
    return trib_codec_cut(plan->codec, plan->run.desc.count,
                          chunk > mask ? chunk - mask : 1,
                          slot > mask ? slot - mask : 1, bound);
}

/*
 * Round n elements up so that each chunk begins on a cache line, or on a bucket if the
 * codec has buckets. Chunk boundaries then do not affect how an element is encoded.
 * Short vectors leave chunks empty instead. A unit larger than the maximum chunk is
 * split.
 */
static size_t piece_of(const struct trib_plan *plan, size_t n, size_t most, size_t line)
{
    size_t unit = plan->codec ? trib_codec_unit(plan->codec) : line;

    if (unit > most)
        unit = 64;
    size_t whole = trib_divide_up(n, unit) * unit;
    return whole <= most && (n > line || plan->codec) ? whole : n;
}

/* Return the bytes of a chunk. Encoded chunks have the same number of elements on every
 * path, so the loss does not depend on the path. Only an agg_comm has chunks larger
 * than a slot; their encodings fit into one. */
static size_t chunk_of(const struct trib_plan *plan, const trib_desc_t *d)
{
    const struct trib_comm *comm = plan->comm;
    size_t slot = comm->cfg.chunk;

    if (trib_deterministic_cuts(plan))
        return TRIB_DETERMINISTIC_CHUNK;
    if (plan->codec && comm->chunk_asked < slot)
        slot = comm->chunk_asked;
    return d->chunk && (d->chunk < slot || plan->codec) ? d->chunk : slot;
}

/*
 * Return the target elements of a chunk for codecs that select elements: several times
 * the usual, as long as the encoding fits a slot. With the usual chunk, headers would
 * be a third of the encoding. Aggregators are excluded: their clients set their chunks.
 */
static size_t selected_piece(const struct trib_plan *plan, const trib_desc_t *d)
{
    const struct trib_comm *comm = plan->comm;

    if (plan->selected <= 0 || comm->aggregators ||
        ((d->chunk || comm->chunk_given) && !trib_deterministic_cuts(plan)))
        return 0;
    return (size_t)fmin(SELECTED_WORD / plan->selected, TRIB_SELECTED_PIECE);
}

/* Return the maximum elements of a chunk for codecs that select elements, a multiple of
 * `usual`. */
static size_t lengthen(const struct trib_plan *plan, const trib_desc_t *d, size_t usual)
{
    const struct trib_comm *comm = plan->comm;
    const size_t slot = trib_deterministic_cuts(plan)
                            ? TRIB_DETERMINISTIC_CHUNK
                            : trib_min(comm->cfg.chunk, comm->chunk_asked);
    const size_t most = selected_piece(plan, d);
    const bool once = trib_algo_find(plan->run.desc.name)->encodes_once;
    const int ranks = once ? 1 : comm->engine.ranks;
    size_t n = usual;

    while (n + usual <= most &&
           trib_codec_selected_bound(plan->codec, n + usual, ranks) <= slot)
        n += usual;
    return n;
}

/* Return the bytes of a chunk that peers can read in place: raw elements, or an
 * aggregator's linearly encoded sums. All other encodings are built in slots. */
static size_t shared_bytes(const struct trib_plan *plan)
{
    const struct trib_run *run = &plan->run;

    if (!plan->codec)
        return run->desc.piece * run->desc.element;
    return plan->comm->aggregators && trib_coded_linear(run)
               ? trib_codec_sum_bound(plan->codec, run->desc.piece)
               : 0;
}

/* Return how many pairs fit into a slot as a list, whatever the chunk's length. */
static size_t pairs_in_list(size_t element, size_t slot)
{
    return (slot - PAIRS_HEAD) / (element + sizeof(uint32_t));
}

/* Return true if the union of all ranks' pairs fits into one slot as a list. */
static bool pairs_fit(const struct trib_plan *plan, size_t element, size_t slot)
{
    const size_t most = plan->most;

    return most &&
           most <= pairs_in_list(element, slot) / (size_t)plan->comm->engine.ranks;
}

/* Return the maximum elements of a chunk of pairs such that any possible number of
 * pairs fits into a slot. */
static size_t pairs_piece_max(const struct trib_plan *plan, size_t element, size_t slot)
{
    size_t most = (slot - PAIRS_HEAD) * 8 / (8 * element + 1);

    assert(slot > PAIRS_HEAD);
    if (pairs_fit(plan, element, slot) && most < TRIB_PAIRS_PIECE)
        most = TRIB_PAIRS_PIECE;
    return most > 64 ? most / 64 * 64 : most;
}

/*
 * Return true if regions are worth the exchange of counts, which costs about two
 * rounds.
 *
 * usual    maximum elements of a chunk with a fixed length
 * expected receives the expected number of regions per start, or a few if the number of
 *          pairs is unknown
 */
static bool wants_regions(const struct trib_plan *plan, const trib_desc_t *d,
                          size_t usual, size_t list, double *expected)
{
    enum { CELLS_MAX = 1 << 18, FEW = 8 };
    const double ranks = plan->comm->engine.ranks, n = (double)d->count;
    const double chunks = n / (double)usual;

    *expected = fmax(2 * ranks * (double)plan->most / (double)list,
                     n / (double)TRIB_PAIRS_PIECE);
    return ranks > 1 && !plan->comm->aggregators && usual < TRIB_PAIRS_PIECE &&
           chunks < CELLS_MAX && chunks > 2 * *expected + FEW * ranks;
}

size_t trib_plan_chunk(const struct trib_plan *plan, const trib_desc_t *d)
{
    const size_t element = trib_dtype_size(d->dtype), slot = chunk_of(plan, d);
    double expected;

    if (!plan->run.desc.pairs)
        return trib_max(slot, selected_piece(plan, d) * element);
    const size_t piece = pairs_piece_max(plan, element, slot);
    if (!wants_regions(plan, d, piece, pairs_in_list(element, slot), &expected))
        return piece * element;
    return (size_t)((double)d->count / fmax(expected, 1)) * element;
}

/* Return the bytes of a value in the longest encoding: forwarded sums are not
 * rounded. */
static size_t pairs_element(const struct trib_plan *plan, trib_dtype_t dtype)
{
    const struct trib_aggregators *a = plan->comm->aggregators;
    const bool passes_on = (a && a->tree) || !plan->run.desc.gathers;

    return passes_on ? trib_pair_sum_element(dtype) : trib_dtype_size(dtype);
}

/*
 * Let each start form chunks from cells. Each of the `expected` regions has many cells,
 * so regions can have equal weight even if most pairs are in a tenth of the vector.
 *
 * most     maximum elements of a cell
 * list     pairs that fit into a slot as a list
 */
static void cut_regions(struct trib_plan *plan, size_t most, size_t list,
                        double expected)
{
    enum { CELLS = 32 };
    struct trib_run_desc *r = &plan->run.desc;
    const size_t regions =
        trib_divide_up((size_t)expected + 1, r->n_chunks) * r->n_chunks;
    const size_t fine = r->count / (CELLS * regions) / 64 * 64;
    const size_t cell = fine < 64 ? 64 : trib_min(fine, most);
    const size_t n = strlen(plan->why);

    assert(cell <= TRIB_PAIRS_PIECE);
    r->regions = (struct trib_regions_rule){cell, list, TRIB_PAIRS_PIECE};
    r->piece = TRIB_PAIRS_PIECE;
    r->rounds = 1; /* until the first start */
    snprintf(plan->why + n, sizeof(plan->why) - n,
             "; regions with about equal numbers of them");
}

/* Cut pairs into few rounds: each costs a frame per peer, even without pairs. */
static trib_status_t cut_pairs(struct trib_plan *plan, const trib_desc_t *d)
{
    struct trib_run_desc *r = &plan->run.desc;
    const size_t element = pairs_element(plan, d->dtype), slot = chunk_of(plan, d);
    const size_t most = pairs_piece_max(plan, element, slot);
    const size_t list = pairs_in_list(element, slot);
    double expected;

    r->total = d->count;
    r->cut = TRIB_CUT_INTERLEAVED;
    if (wants_regions(plan, d, most, list, &expected)) {
        cut_regions(plan, most, list, expected);
        return TRIB_OK;
    }
    const size_t rounds = trib_divide_up(d->count, r->n_chunks * most);

    if (rounds * r->n_chunks > UINT32_MAX / 2)
        return trib_comm_fail(
            plan->comm, TRIB_ERR_OVERFLOW,
            "a sparse vector of %zu elements needs too many chunks of %zu elements "
            "(raise TRIB_CHUNK)",
            d->count, most);
    r->rounds = rounds ? (uint32_t)rounds : 1;
    const size_t piece = trib_divide_up(d->count, (size_t)r->rounds * r->n_chunks);
    const size_t whole = trib_divide_up(piece, 64) * 64;
    r->piece = whole <= most ? whole : piece;
    assert((size_t)r->rounds * r->n_chunks * r->piece >= d->count);
    return TRIB_OK;
}

/* Set the layout of the chunks in the vector, and its number of elements. */
static void lay_out(struct trib_plan *plan, const trib_desc_t *d)
{
    struct trib_run_desc *r = &plan->run.desc;
    const bool blocked = trib_coll_is_blocked(r->op.coll);

    r->total = d->count * (blocked ? (size_t)plan->comm->engine.ranks : 1);
    r->cut = blocked ? TRIB_CUT_BLOCKED : TRIB_CUT_INTERLEAVED;
    if (!r->blocks)
        return;
    r->total = plan->lengths[plan->lengths[1] > plan->lengths[0]];
    r->cut = TRIB_CUT_LISTED;
}

trib_status_t trib_plan_cut(struct trib_plan *plan, const trib_desc_t *d)
{
    if (plan->run.desc.pairs)
        return cut_pairs(plan, d);

    struct trib_run_desc *r = &plan->run.desc;
    const struct trib_comm *comm = plan->comm;
    size_t size = trib_dtype_size(d->dtype);
    const size_t count = r->blocks ? plan->kind->largest(plan) : d->count;
    /* Two ranks that do not know other blocks must cut theirs alike. */
    const bool fixed = r->blocks && r->blocks->local;
    size_t slot = chunk_of(plan, d);
    const size_t unit =
        trib_coll_sums(r->op.coll) && trib_op_is_located(r->op.op) ? 2 : 1;
    size_t most = lengthen(plan, d, piece_max(plan, slot, size)) / unit * unit;
    size_t usual = slot < comm->chunk_asked || plan->codec ? slot : comm->chunk_asked;
    size_t parts = trib_coll_is_blocked(r->op.coll) ? 1 : r->n_chunks;

    assert(size > 0 && parts > 0 && most > 0);
    lay_out(plan, d);
    if (plan->codec && trib_codec_undivided(plan->codec))
        parts = 1; /* later chunks of a round may be empty */
    size_t rounds = trib_divide_up(count, parts * most);
    size_t good = comm->one_host ? ROUNDS_GOOD_ONE_HOST : ROUNDS_GOOD;
    if (rounds < good && usual < slot) { /* large chunks would leave too few rounds */
        size_t more = trib_divide_up(count, parts * piece_max(plan, usual, size));
        rounds = more < good ? more : good;
    }
    r->piece =
        fixed ? most
              : piece_of(plan,
                         trib_divide_up(count / unit, parts * (rounds ? rounds : 1)) *
                             unit,
                         most, 64 / size);
    parts = trib_coll_is_blocked(r->op.coll) ? 1 : r->n_chunks;
    /* An empty vector has one round of empty chunks. */
    rounds = r->piece ? trib_divide_up(count, parts * r->piece) : 1;
    rounds = rounds ? rounds : 1;
    if (rounds * r->n_chunks > UINT32_MAX / 2)
        return trib_comm_fail(plan->comm, TRIB_ERR_OVERFLOW,
                              "%zu elements need too many chunks of %zu bytes (raise "
                              "TRIB_CHUNK)",
                              count, slot);
    assert(rounds > 0);
    r->rounds = (uint32_t)rounds;
    const trib_status_t st = trib_deterministic_check_cut(plan);
    if (st != TRIB_OK)
        return st;
    /* No checksum covers data that a frame of listed blocks refers to. */
    r->zero_copy = comm->cfg.zero_copy && comm->engine.size > 1 &&
                   !(r->blocks && r->check.sum) && shared_bytes(plan) >= ZERO_COPY_MIN;
    /* Without counts, both ranks of an all-to-all know a block's place and length. */
    r->place = r->zero_copy && !plan->codec && r->total * size >= PLACE_MIN &&
               (!r->blocks || (r->op.coll == TRIB_ALLTOALL && !r->blocks->local));
    r->stream = r->total * size > comm->cache_bytes;
    r->stream_undo = 2 * r->total * size > comm->cache_bytes;
    return TRIB_OK;
}
