/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making plans: check what is asked for, choose an algorithm, cut the vector, compile.
 */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/text.h"
#include "comm/communicator.h"
#include "compress/robust_op.h"
#include "comm/configured.h"
#include "comm/locality.h"
#include "comm/plan_stats.h"
#include "comm/quorum_rule.h"
#include "pipeline/engine/run.h"
#include "pipeline/payload/check.h"
#include "pipeline/payload/partial.h"

enum {
    /* Of a vector, so that a pipeline over a network has little filling and draining;
     * on one host there is no wire that would rest: what moves data is this host's
     * cores. */
    ROUNDS_GOOD = 8,
    ROUNDS_GOOD_NEAR = 2,
    ZERO_COPY_MIN = 16384, /* bytes of a chunk: below, an OPEN costs more than it
                            * saves */
    PLACE_MIN = 262144,    /* bytes of a vector: the same where an OPEN is a message */
    AHEAD_ROUNDS = 8,      /* that ranks agree on at once: a window of them */
    AHEAD_CHUNKS = 64,     /* of these: a program is not to be long */
    AHEAD_BYTES = 1 << 20, /* of elements: what is measured before the first word */
    FED_PARTS = 16,        /* of a vector, or more, where it comes piecewise */
};

static bool sums(trib_coll_t coll)
{
    return coll == TRIB_ALLREDUCE || coll == TRIB_REDUCE || coll == TRIB_REDUCE_SCATTER;
}

static bool blocked(trib_coll_t coll)
{
    return coll == TRIB_ALLGATHER || coll == TRIB_REDUCE_SCATTER;
}

static bool has_root(trib_coll_t coll)
{
    return coll == TRIB_REDUCE || coll == TRIB_BROADCAST;
}

/*
 * The most bytes that a chunk may have. Words of a codec are shorter than their
 * elements: on a channel a chunk of them may be several slots large, and its word fits
 * into one. Elements that go as they are have a slot and no more. A stranger may have
 * announced the plan there.
 */
static size_t chunk_most(const struct trib_comm *comm, bool coded)
{
    const size_t own =
        comm->cfg.chunk > comm->chunk_asked ? comm->cfg.chunk : comm->chunk_asked;

    if (!comm->aggregators)
        return comm->chunk_asked;
    return coded ? TRIB_AGG_CHUNKS_PER_WORD * own : own;
}

static trib_status_t check_chunk(struct trib_comm *comm, trib_coll_t coll,
                                 const trib_desc_t *d)
{
    const bool coded = strcmp(trib_codec_of(comm, coll, d), "none") != 0;
    const size_t most = chunk_most(comm, coded);

    if (!d->chunk || (d->chunk >= 64 && d->chunk <= most))
        return TRIB_OK;
    return trib_comm_fail(comm, TRIB_ERR_INVALID,
                          "chunk is %zu bytes, it must be 64 to %zu, the size of %s "
                          "(raise TRIB_CHUNK)",
                          d->chunk, most,
                          comm->aggregators && coded ? "the slots that it may take"
                                                     : "a slot");
}

/* Operators that need all contributions at once have parameters of their own. */
static trib_status_t check_robust(struct trib_comm *comm, const trib_desc_t *d)
{
    const char *op = trib_op_name(d->op);

    if (d->dtype > TRIB_BF16)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "op %s is of f32, f64, f16 and bf16, dtype is %s", op,
                              trib_dtype_name(d->dtype));
    if (d->op == TRIB_TRIMMED_MEAN && !(d->parameter >= 0 && d->parameter < 0.5))
        return trib_comm_fail(
            comm, TRIB_ERR_INVALID,
            "op %s leaves out the part trib_desc_t.parameter at each end: it is "
            "%g, it must be 0 (for 0.1) to below 0.5",
            op, d->parameter);
    if (d->op == TRIB_CLIPPED_MEAN &&
        !(d->parameter > 0 &&
          d->parameter <= (d->dtype == TRIB_F64 ? DBL_MAX : (double)FLT_MAX)))
        return trib_comm_fail(
            comm, TRIB_ERR_INVALID,
            "op %s cuts elements to trib_desc_t.parameter: it is %g, it must be "
            "above 0 and finite",
            op, d->parameter);
    return TRIB_OK;
}

static trib_status_t check_desc(struct trib_comm *comm, trib_coll_t coll,
                                const trib_desc_t *d)
{
    int size = comm->engine.ranks;
    size_t bytes = trib_dtype_size(d->dtype), whole;

    if ((unsigned)coll >= TRIB_COLL_COUNT)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "collective %d does not exist",
                              (int)coll);
    if (!bytes)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "dtype %d does not exist",
                              (int)d->dtype);
    if (sums(coll) && (unsigned)d->op >= TRIB_OP_COUNT)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "op %d does not exist",
                              (int)d->op);
    if (sums(coll) && trib_robust_is(d->op) && check_robust(comm, d) != TRIB_OK)
        return TRIB_ERR_INVALID;
    if (has_root(coll) && (d->root < 0 || d->root >= size))
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "root is %d, it must be a rank: 0 to %d", d->root,
                              size - 1);
    if ((unsigned)d->feed > TRIB_FEED_BACKWARD || (d->feed && !sums(coll)) ||
        (d->feed && blocked(coll)))
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "feed %d is not for %s: only all-reduce and reduce are "
                              "fed piecewise",
                              (int)d->feed, trib_coll_name(coll));
    if (__builtin_mul_overflow(d->count, bytes, &whole) ||
        __builtin_mul_overflow(whole, blocked(coll) ? (size_t)size : 1, &whole) ||
        whole > PTRDIFF_MAX || (uint64_t)d->count >> TRIB_FRAME_COUNT_BITS)
        return trib_comm_fail(comm, TRIB_ERR_OVERFLOW,
                              "%zu elements of %zu bytes%s do not fit into memory",
                              d->count, bytes, blocked(coll) ? " for each rank" : "");
    return check_chunk(comm, coll, d);
}

/* Elements go as they are. */
static trib_status_t drop_codec(struct trib_plan *plan)
{
    trib_codec_destroy(plan->codec);
    plan->codec = NULL;
    return TRIB_OK;
}

static trib_status_t make_codec(struct trib_plan *plan, trib_coll_t coll,
                                const trib_desc_t *d)
{
    struct trib_comm *comm = plan->comm;
    const char *text = trib_codec_of(comm, coll, d);

    plan->is_exempt = comm->coded && !d->codec && !trib_configured_for(coll, d) &&
                      coll != TRIB_BARRIER;
    if (coll == TRIB_BARRIER || strcmp(text, "none") == 0)
        return TRIB_OK;
    struct trib_error err = {0};
    trib_status_t st =
        trib_codec_create(text, comm->engine.kernels, &err, &plan->codec);
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "%s", trib_error_text(&err));
    const struct trib_codec_info *info = trib_codec_info(plan->codec);
    st = trib_codec_for_ranks(plan->codec, comm->engine.ranks, &err);
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "%s", trib_error_text(&err));
    if (info->flags & TRIB_CODEC_IDENTITY)
        return drop_codec(plan);
    if (info->flags & TRIB_CODEC_MODEL && sums(coll) && coll != TRIB_ALLREDUCE)
        return trib_comm_fail(
            comm, TRIB_ERR_UNSUPPORTED,
            "codec %s learns from sums that all ranks get, which %s does "
            "not give: use allreduce, or another codec",
            info->text, trib_coll_name(coll));
    if (d->dtype > TRIB_BF16)
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED,
                              "codec %s is for floating-point elements, dtype is %s: "
                              "use codec none",
                              info->text, trib_dtype_name(d->dtype));
    if (sums(coll) && d->op != TRIB_SUM && d->op != TRIB_MEAN &&
        (!(info->flags & TRIB_CODEC_ANY_OP) || trib_robust_is(d->op)))
        return trib_comm_fail(
            comm, TRIB_ERR_UNSUPPORTED,
            "codec %s is for sum and mean, op is %s: use codec none%s", info->text,
            trib_op_name(d->op), trib_robust_is(d->op) ? "" : ", f16 or bf16");
    if (info->flags & TRIB_CODEC_MODEL && !sums(coll))
        return drop_codec(plan);
    return TRIB_OK;
}

static trib_status_t find_algorithm(struct trib_plan *plan, const char *name,
                                    const struct trib_shape *shape,
                                    const struct trib_algo **algo_out)
{
    const struct trib_algo *a = trib_algo_find(name);
    struct trib_error err = {0};

    const bool fits = a && (a->colls >> shape->coll & 1) && a->can(shape);
    if (fits && sums(shape->coll) && trib_robust_is(shape->op) &&
        !trib_algo_gathers(a, shape))
        return trib_comm_fail(
            plan->comm, TRIB_ERR_UNSUPPORTED,
            "op %s needs all contributions at one place, and algorithm %s%s "
            "passes on sums of some: %s",
            trib_op_name(shape->op), name, shape->tree ? ", a tree," : "",
            shape->tree ? "name services of one unit in TRIB_SERVICE"
                        : "use direct, flat or auto");
    if (fits) {
        snprintf(plan->why, sizeof(plan->why), "%s: asked for by name", a->name);
        *algo_out = a;
        return TRIB_OK;
    }
    if (a)
        return trib_comm_fail(
            plan->comm, TRIB_ERR_UNSUPPORTED,
            "algorithm %s cannot do %s with %d rank%s (trib-info lists "
            "what each can do)",
            name, trib_coll_name(shape->coll), shape->size,
            shape->size == 1 ? "" : "s");
    trib_status_t st = trib_settings_algorithm(name, &err);
    return trib_comm_fail(plan->comm, st, "%s", trib_error_text(&err));
}

static trib_status_t choose(struct trib_plan *plan, const struct trib_shape *shape,
                            const trib_desc_t *d, const struct trib_algo **algo_out)
{
    struct trib_comm *comm = plan->comm;
    const char *name = comm->aggregators ? trib_algo_of_aggregators()->name
                       : d->algorithm    ? d->algorithm
                                         : comm->cfg.algorithm;
    uint32_t flags = plan->codec ? trib_codec_info(plan->codec)->flags : 0;
    bool merged = sums(shape->coll) && flags & TRIB_CODEC_LINEAR; /* never encoded
                                                                   * anew */
    struct trib_choice choice = {
        .bytes = d->count * trib_dtype_size(d->dtype),
        .load_store = comm->load_store,
        .sparse = flags & TRIB_CODEC_SPARSE,
        .lossy = plan->codec && !merged,
        .oversubscribed = comm->oversubscribed,
        .one_host = comm->one_host,
        .slot_bytes = comm->cfg.chunk,
        .gathers = sums(shape->coll) && trib_robust_is(shape->op),
    };

    trib_locality_describe(comm, &choice);
    if (!trib_text_is_auto(name) &&
        !(shape->coll == TRIB_BARRIER && !d->algorithm && !comm->aggregators))
        return find_algorithm(plan, name, shape, algo_out);
    *algo_out = trib_algo_choose(shape, &choice, plan->why, sizeof(plan->why));
    if (!*algo_out)
        return trib_comm_fail(comm, TRIB_ERR_UNSUPPORTED,
                              "no algorithm for %s with %d rank%s",
                              trib_coll_name(shape->coll), shape->size,
                              shape->size == 1 ? "" : "s");
    return TRIB_OK;
}

/* Do all ranks read the sums of words where the service makes them? */
static bool sums_in_place(const struct trib_plan *plan)
{
    const struct trib_comm *comm = plan->comm;

    return comm->aggregators && comm->load_store && comm->cfg.zero_copy &&
           !comm->aggregators->tree && trib_coded_linear(&plan->run);
}

/* With a quorum a bitmap of the ranks stands behind the word. */
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

static size_t divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

/*
 * n elements or a few more, so that chunks begin with a cache line, and with a bucket
 * where the codec has such: where a chunk begins then does not show in what becomes of
 * the elements, and short vectors rather leave chunks empty. A unit larger than a chunk
 * may be is cut.
 */
static size_t piece_of(const struct trib_plan *plan, size_t n, size_t most, size_t line)
{
    size_t unit = plan->codec ? trib_codec_unit(plan->codec) : line;

    if (unit > most)
        unit = 64;
    size_t whole = divide_up(n, unit) * unit;
    return whole <= most && (n > line || plan->codec) ? whole : n;
}

/* A code word is of as many elements everywhere: what is lost does not depend on the
 * way. Where a chunk is larger than a slot, as on a channel only, its words fit into
 * one. */
static size_t chunk_of(const struct trib_plan *plan, const trib_desc_t *d)
{
    const struct trib_comm *comm = plan->comm;
    size_t slot = comm->cfg.chunk;

    if (plan->codec && comm->chunk_asked < slot)
        slot = comm->chunk_asked;
    return d->chunk && (d->chunk < slot || plan->codec) ? d->chunk : slot;
}

/* Of a chunk as peers may read it in place: as elements, and sums of words that add at
 * a service. Other words, and those of ranks, are made in slots. */
static size_t shared_bytes(const struct trib_plan *plan)
{
    const struct trib_run *run = &plan->run;

    if (!plan->codec)
        return run->desc.piece * run->desc.element;
    return plan->comm->aggregators && trib_coded_linear(run)
               ? trib_codec_sum_bound(plan->codec, run->desc.piece)
               : 0;
}

/* All ranks cut alike: only what they must agree on may be used here. */
static trib_status_t cut(struct trib_plan *plan, const trib_desc_t *d)
{
    struct trib_run_desc *r = &plan->run.desc;
    const struct trib_comm *comm = plan->comm;
    size_t size = trib_dtype_size(d->dtype);
    size_t slot = chunk_of(plan, d);
    size_t most = piece_max(plan, slot, size);
    size_t usual = slot < comm->chunk_asked || plan->codec ? slot : comm->chunk_asked;
    size_t parts = blocked(r->op.coll) ? 1 : r->n_chunks;

    r->total = d->count * (blocked(r->op.coll) ? (size_t)comm->engine.ranks : 1);
    r->cut = blocked(r->op.coll) ? TRIB_CUT_BLOCKED : TRIB_CUT_INTERLEAVED;
    if (plan->codec && trib_codec_undivided(plan->codec))
        parts = 1; /* chunks behind the first of a round may have no elements */
    size_t rounds = divide_up(d->count, parts * most);
    size_t good = comm->one_host ? ROUNDS_GOOD_NEAR : ROUNDS_GOOD;
    if (rounds < good && usual < slot) { /* of large chunks not too few */
        size_t more = divide_up(d->count, parts * piece_max(plan, usual, size));
        rounds = more < good ? more : good;
    }
    r->piece = piece_of(plan, divide_up(d->count, parts * (rounds ? rounds : 1)), most,
                        64 / size);
    parts = blocked(r->op.coll) ? 1 : r->n_chunks;
    rounds = r->piece ? divide_up(d->count, parts * r->piece) : 1; /* none without
                                                                    * elements */
    if (rounds * r->n_chunks > UINT32_MAX / 2)
        return trib_comm_fail(plan->comm, TRIB_ERR_OVERFLOW,
                              "%zu elements are more chunks of %zu bytes than can be "
                              "numbered (raise TRIB_CHUNK)",
                              d->count, slot);
    r->rounds = (uint32_t)rounds;
    r->zero_copy = comm->cfg.zero_copy && comm->engine.size > 1 &&
                   shared_bytes(plan) >= ZERO_COPY_MIN;
    r->place = r->zero_copy && !plan->codec && r->total * size >= PLACE_MIN;
    r->stream = r->total * size > comm->cache_bytes;
    r->stream_kept = 2 * r->total * size > comm->cache_bytes;
    return TRIB_OK;
}

static const struct trib_agg_tree *service_tree(const struct trib_comm *comm)
{
    return comm->aggregators ? comm->aggregators->tree : NULL;
}

static trib_status_t build(struct trib_plan *plan, const struct trib_algo *algo,
                           const struct trib_shape *shape, struct trib_schedule *out)
{
    char wrong[200] = "";
    trib_status_t st = algo->build(shape, out);

    if (st == TRIB_OK)
        st = trib_schedule_check(out, shape, wrong, sizeof(wrong));
    if (st == TRIB_OK)
        return st;
    trib_schedule_free(out);
    return trib_comm_fail(plan->comm, st, "cannot build %s for %s: %s", algo->name,
                          trib_coll_name(shape->coll), wrong);
}

/*
 * Ranks agree on a round while the one before moves. Across a network an agreement
 * takes the time of all that stands in queues before it, up to a window of chunks: so a
 * round becomes as many of the schedule's as that, but not so many that the link rests
 * while the first is measured. Those of a vector that is fed piecewise begin only when
 * they are fed, and stay a small part of it. Within load/store reach an agreement is
 * near, and what was measured is still in the cache when it is encoded.
 */
static void join_rounds(struct trib_plan *plan, struct trib_schedule *s)
{
    struct trib_run_desc *r = &plan->run.desc;
    uint32_t most =
        r->op.feed == TRIB_FEED_WHOLE ? AHEAD_ROUNDS : r->rounds / FED_PARTS;
    struct trib_schedule joined = {0};

    if (most > AHEAD_CHUNKS / r->n_chunks)
        most = AHEAD_CHUNKS / r->n_chunks;
    if (r->piece && most > AHEAD_BYTES / (r->piece * sizeof(float)))
        most = (uint32_t)(AHEAD_BYTES / (r->piece * sizeof(float)));
    if (most < 2 || plan->comm->load_store || r->cut == TRIB_CUT_BLOCKED)
        return;
    const uint32_t rounds = (uint32_t)divide_up(r->rounds, most);
    const uint32_t joins = (uint32_t)divide_up(r->rounds, rounds);
    trib_schedule_init(&joined, r->n_chunks);
    for (uint32_t i = 0; i < joins; i++)
        trib_schedule_append(&joined, s, i * r->n_chunks);
    trib_schedule_free(s);
    *s = joined;
    r->n_chunks *= joins;
    r->rounds = rounds;
}

/* The all-reduce of what is agreed on first, in as many copies as fit it into slots. */
static trib_status_t put_share_first(struct trib_plan *plan, struct trib_schedule *s)
{
    struct trib_engine *e = &plan->comm->engine;
    struct trib_run_desc *r = &plan->run.desc;
    size_t slot = plan->comm->cfg.chunk / sizeof(float);

    join_rounds(plan, s);
    size_t used =
        r->cut == TRIB_CUT_BLOCKED ? r->n_chunks : divide_up(r->total, r->piece);
    /* Of a round: chunks that have elements. */
    size_t floats = trib_codec_agreed_floats(plan->codec, r->piece) *
                    (used < r->n_chunks ? used : r->n_chunks);
    struct trib_shape shape = {.coll = TRIB_ALLREDUCE,
                               .op = trib_codec_agreement_op(plan->codec),
                               .rank = e->rank,
                               .size = e->ranks,
                               .services = e->size - e->ranks,
                               .tree = service_tree(plan->comm)};
    struct trib_choice choice = {
        .bytes = floats * sizeof(float),
        .load_store = plan->comm->load_store,
        .oversubscribed = plan->comm->oversubscribed,
        .one_host = plan->comm->one_host,
        .slot_bytes = plan->comm->cfg.chunk,
    };
    struct trib_schedule share = {0}, joined = {0};
    struct trib_locality_groups near;
    char why[200];

    trib_locality_describe(plan->comm, &choice);
    trib_status_t st = trib_locality_group(plan->comm, choice.bytes, &near, &shape);
    if (st == TRIB_OK)
        st = build(plan, trib_algo_choose(&shape, &choice, why, sizeof(why)), &shape,
                   &share);
    trib_locality_ungroup(&near);
    if (st != TRIB_OK)
        return st;
    size_t chunks = divide_up(floats, slot * share.n_chunks) * share.n_chunks;
    trib_schedule_init(&joined, r->n_chunks);
    for (uint32_t at = 0; at < chunks; at += share.n_chunks)
        trib_schedule_append(&joined, &share, r->n_chunks + at);
    trib_schedule_append(&joined, s, 0);
    trib_schedule_free(&share);
    trib_schedule_free(s);
    *s = joined;
    r->share_piece = divide_up(floats, chunks);
    r->rounds++;
    return joined.failed ? trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY,
                                          "no memory for a schedule")
                         : TRIB_OK;
}

static uint64_t parameter_digest(const struct trib_run_desc *r)
{
    return trib_robust_is(r->op.op)
               ? (uint64_t)trib_digest32(&r->parameter, sizeof(r->parameter))
               : 0;
}

/* What frames of the plan carry of codec, feedback, algorithm, chunk. */
static uint32_t digest_of(const struct trib_plan *plan)
{
    const char *algorithm = plan->run.name;
    uint32_t codec = plan->codec ? trib_codec_info(plan->codec)->digest : 0;
    const uint64_t cut[2] = {
        plan->run.desc.piece ^ parameter_digest(&plan->run.desc),
        plan->quorum[0] ? trib_digest32(plan->quorum, strlen(plan->quorum)) : 0};
    uint32_t chunk = trib_digest32(cut, plan->quorum[0] ? sizeof(cut) : sizeof(cut[0]));
    if (plan->numbered)
        return trib_frame_digest_of_plan(codec, plan->number, chunk);
    uint32_t algo = trib_digest32(algorithm, strlen(algorithm));
    uint32_t feedback = plan->codec ? plan->run.desc.feedback.digest : 0;

    return trib_frame_digest(codec, feedback, algo, chunk);
}

/* How many of each host or group lead, where that is what the algorithm is made of. */
static void tell_leaders(struct trib_plan *plan, const struct trib_algo *algo,
                         const struct trib_locality_groups *near)
{
    const size_t n = strlen(plan->why);
    char *end = plan->why + n;

    if (!near->kind || !algo->groups)
        return;
    if (strcmp(near->kind, "host") == 0)
        snprintf(end, sizeof(plan->why) - n, "; leaders of a host: %d",
                 near->groups.leaders);
    else
        snprintf(end, sizeof(plan->why) - n, "; %d group%s by %s, leaders of each: %d",
                 near->groups.n, near->groups.n == 1 ? "" : "s", near->kind,
                 near->groups.leaders);
}

static trib_status_t compile(struct trib_plan *plan, const trib_desc_t *d, bool leaving)
{
    struct trib_engine *e = &plan->comm->engine;
    struct trib_run_desc *r = &plan->run.desc;
    struct trib_shape shape = {.coll = r->op.coll,
                               .op = d->op,
                               .rank = e->rank,
                               .size = e->ranks,
                               .services = e->size - e->ranks,
                               .tree = service_tree(plan->comm),
                               .root = has_root(r->op.coll) ? d->root : 0};
    struct trib_schedule schedule = {0};
    struct trib_locality_groups near;

    const struct trib_algo *algo = NULL;
    trib_status_t st = trib_locality_group(
        plan->comm, d->count * trib_dtype_size(d->dtype), &near, &shape);
    if (st == TRIB_OK)
        st = choose(plan, &shape, d, &algo);
    if (st == TRIB_OK)
        st = build(plan, algo, &shape, &schedule);
    if (st == TRIB_OK)
        tell_leaders(plan, algo, &near);
    trib_locality_ungroup(&near);
    shape.groups = NULL;
    if (st != TRIB_OK)
        return st;
    plan->run.name = algo->name;
    r->op.leaving = leaving;
    r->codec = plan->codec;
    r->keep = plan->comm->aggregators;
    r->n_chunks = schedule.n_chunks;
    r->gathers = trib_algo_gathers(algo, &shape);
    st = trib_plan_feedback(plan, d);
    if (st == TRIB_OK)
        st = trib_plan_quorum_feedback(plan);
    if (st == TRIB_OK)
        st = cut(plan, d);
    if (st == TRIB_OK && plan->codec)
        st = trib_plan_make_model(plan);
    bool share = plan->codec && trib_codec_agreed_floats(plan->codec, r->piece) > 0;
    if (st == TRIB_OK && share && sums(shape.coll) && shape.size > 1 && d->count)
        st = put_share_first(plan, &schedule);
    if (st == TRIB_OK) {
        st = trib_program_create(&schedule, &shape, &plan->run.program);
        if (st != TRIB_OK)
            (void)trib_comm_fail(plan->comm, st, "no memory for a plan");
    }
    trib_schedule_free(&schedule);
    if (st == TRIB_OK && plan->comm->aggregators) {
        st = plan->comm->aggregators->announce(plan, d, leaving, &plan->number);
        plan->numbered = st == TRIB_OK;
    }
    if (st == TRIB_OK) {
        r->digest = digest_of(plan);
        trib_comm_lock(plan->comm);
        trib_error_clear(&plan->comm->cause);
        if (plan->run.label)
            plan->run.traced_as = trib_trace_name(&e->trace, plan->run.label);
        st = trib_run_prepare(e, &plan->run);
        if (st != TRIB_OK)
            (void)trib_comm_fail(plan->comm, st, "%s", trib_comm_cause(plan->comm, st));
        trib_comm_unlock(plan->comm);
    }
    return st;
}

static trib_status_t make(struct trib_comm *comm, trib_coll_t coll,
                          const trib_desc_t *desc, bool leaving,
                          struct trib_plan **plan_out);

/* The plan by which ranks exchange what a model learns. */
static trib_status_t make_exchange(struct trib_plan *plan)
{
    trib_desc_t desc;

    if (!plan->exchanged)
        return TRIB_OK;
    trib_plan_describe_exchange(plan, &desc);
    return make(plan->comm, TRIB_ALLREDUCE, &desc, false, &plan->exchange);
}

static trib_status_t make(struct trib_comm *comm, trib_coll_t coll,
                          const trib_desc_t *desc, bool leaving,
                          struct trib_plan **plan_out)
{
    trib_status_t st = trib_comm_ours(comm, "a plan");

    *plan_out = NULL;
    if (st == TRIB_OK)
        st = check_desc(comm, coll, desc);
    if (st != TRIB_OK)
        return st;
    struct trib_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    plan->ops = &trib_plan_own_ops;
    plan->comm = comm;
    plan->send = desc->send;
    plan->recv = desc->recv;
    plan->run.desc.count = desc->count;
    plan->run.desc.element = trib_dtype_size(desc->dtype);
    plan->run.desc.parameter = desc->parameter;
    (void)trib_check_parse(comm->cfg.check, NULL, &plan->run.desc.check); /* it was
                                                                           * looked
                                                                           * at */
    if (desc->op == TRIB_TRIMMED_MEAN && desc->parameter <= 0)
        plan->run.desc.parameter = TRIB_TRIMMED_USUAL;
    plan->run.desc.op = (struct trib_frame_op){
        .coll = coll,
        .dtype = desc->dtype,
        .op = sums(coll) ? desc->op : TRIB_SUM,
        .feed = desc->feed,
        .root = has_root(coll) ? (uint32_t)desc->root : TRIB_ROOT_NONE,
    };
    size_t size = (size_t)comm->engine.ranks, n = desc->count;
    plan->lengths[0] = coll == TRIB_REDUCE_SCATTER ? n * size : n;
    plan->lengths[1] = coll == TRIB_ALLGATHER ? n * size : n;
    st = trib_identity_make(plan, desc);
    if (st != TRIB_OK) {
        trib_plan_destroy(plan);
        return st;
    }
    const bool elsewhere = comm->hooks && comm->hooks->takes(comm, coll, desc, leaving);
    if (elsewhere)
        st = comm->hooks->plan_make(plan, coll, desc);
    else
        st = make_codec(plan, coll, desc);
    if (st == TRIB_OK && !elsewhere)
        st = trib_plan_quorum(plan, desc);
    if (st == TRIB_OK && !elsewhere)
        st = compile(plan, desc, leaving);
    if (st == TRIB_OK && !elsewhere)
        st = make_exchange(plan);
    if (st == TRIB_OK)
        st = trib_plan_stats_make(plan, leaving);
    if (st != TRIB_OK) {
        trib_plan_destroy(plan);
        return st;
    }
    *plan_out = plan;
    return TRIB_OK;
}

/* Its numbers are read, and its algorithm chosen, in the same modes on all ranks. */
trib_status_t trib_plan_make(struct trib_comm *comm, trib_coll_t coll,
                             const trib_desc_t *desc, bool leaving,
                             struct trib_plan **plan_out)
{
    fenv_t own;

    trib_fpenv_enter_all(&own);
    const trib_status_t st = make(comm, coll, desc, leaving, plan_out);
    trib_fpenv_leave_all(&own);
    return st;
}

void trib_plan_destroy(struct trib_plan *plan)
{
    if (!plan)
        return;
    trib_plan_stats_free(plan);
    if (plan->ops->destroy)
        plan->ops->destroy(plan);
    if (plan->numbered)
        plan->comm->aggregators->free_plan(plan);
    trib_run_dispose(&plan->run);
    trib_plan_destroy(plan->exchange);
    trib_plan_dispose_model(plan);
    trib_codec_destroy(plan->codec);
    free(plan);
}
