/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choose a plan's algorithm, by name or by cost, and build its schedule.
 */
#include "comm/plan/plan_schedule.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "comm/core/communicator.h"
#include "comm/core/locality.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/deterministic.h"
#include "comm/plan/plan_parts.h"
#include "compress/vectors/robust_op.h"

/* Error of estimates: an algorithm that costs more by this factor is not tried. */
static const double NEXT_NEAR = 2;

/* Expected pair counts, for the choice of an algorithm. */
struct pairs_expected {
    double pairs; /* per rank: the maximum */
    double united; /* in the union, if each rank draws its indices at random */
    double contribution, result; /* encoded bytes as fractions of the vector's bytes */
};

/* Return the encoded bytes of `pairs` pairs of a vector of n elements. */
static double encoded_bytes(double pairs, double n, double element, size_t piece)
{
    enum { SHORT_MAX = 65536 }; /* elements of a chunk with 2-byte indices */
    const double list = pairs * (piece <= SHORT_MAX ? 2 : 4);

    return pairs * element + fmin(list, n / 8);
}

/*
 * Estimate the pairs that ranks send and receive.
 *
 * most     pairs per rank; 0: unknown
 * piece    elements of a chunk
 */
static struct pairs_expected pairs_expected(size_t length, size_t most, int ranks,
                                            size_t element, size_t piece)
{
    const double n = (double)length, e = (double)element;
    struct pairs_expected out = {n, n, 1, 1};

    assert(most <= length && element > 0 && ranks > 0);
    if (!most)
        return out;
    out.pairs = (double)most;
    out.united = n * -expm1(ranks * log1p(-out.pairs / n));
    out.contribution = encoded_bytes(out.pairs, n, e, piece) / (n * e);
    out.result = encoded_bytes(out.united, n, e, piece) / (n * e);
    return out;
}

trib_status_t trib_settings_algorithm(const char *name, struct trib_error *err)
{
    const char *names[32];
    size_t n = 0;

    if (trib_algo_find(name))
        return TRIB_OK;
    for (; trib_algos[n] && n < 32; n++)
        names[n] = trib_algos[n]->name;
    const char *near = trib_text_nearest(name, names, n);
    return trib_fail(err, TRIB_ERR_INVALID, "algorithm \"%s\" does not exist%s%s%s",
                     name, near ? ": did you mean \"" : " (trib-info lists them)",
                     near ? near : "", near ? "\"?" : "");
}

static trib_status_t find_algorithm(struct trib_plan *plan, const char *name,
                                    const struct trib_shape *shape, bool ordered,
                                    const struct trib_algo **algo_out)
{
    const struct trib_algo *a = trib_algo_find(name);
    struct trib_error err = {0};

    const bool fits = a && (a->colls >> shape->coll & 1) && a->can(shape);
    if (fits && trib_coll_sums(shape->coll) && trib_robust_is(shape->op) &&
        !trib_algo_gathers(a, shape))
        return trib_comm_fail(
            plan->comm, TRIB_ERR_UNSUPPORTED,
            "op %s needs all contributions in one place, and algorithm %s%s "
            "forwards partial sums: %s",
            trib_op_name(shape->op), name, shape->tree ? ", a tree," : "",
            shape->tree ? "list one level of aggregators in TRIB_SERVICE"
                        : "use direct, flat or auto");
    if (fits && plan->run.desc.pairs && !a->aggregators &&
        !trib_algo_sums_pairs(a, shape))
        return trib_comm_fail(
            plan->comm, TRIB_ERR_UNSUPPORTED,
            "algorithm %s forwards partial sums that are not (index, value) pairs: use "
            "direct, flat, doubling or auto for a sparse all-reduce",
            name);
    if (a && a->merges && shape->coll == TRIB_ALLREDUCE && !fits)
        return trib_comm_fail(plan->comm, TRIB_ERR_UNSUPPORTED,
                              "algorithm %s supports only all-reduces of (index, "
                              "value) pairs: use trib_plan_sparse (trib-info lists the "
                              "collectives of each algorithm)",
                              name);
    if (a && ordered) {
        const trib_status_t st = trib_deterministic_allows(plan, a, shape);
        if (st != TRIB_OK)
            return st;
    }
    if (fits) {
        snprintf(plan->why, sizeof(plan->why), "%s: requested by name", a->name);
        *algo_out = a;
        return TRIB_OK;
    }
    if (a)
        return trib_comm_fail(
            plan->comm, TRIB_ERR_UNSUPPORTED,
            "algorithm %s does not support %s with %d rank%s%s (trib-info lists the "
            "collectives of each algorithm)",
            name, trib_coll_name(shape->coll), shape->size, shape->size == 1 ? "" : "s",
            shape->local_counts ? " and counts known only locally" : "");
    trib_status_t st = trib_settings_algorithm(name, &err);
    return trib_comm_fail(plan->comm, st, "%s", trib_error_text(&err));
}

/* Set the expected bytes of pairs in the choice. */
static void expect_pairs(const struct trib_plan *plan, const struct trib_shape *shape,
                         const trib_desc_t *d, struct trib_choice *choice)
{
    const size_t element = trib_dtype_size(d->dtype);

    if (!plan->run.desc.pairs)
        return;
    const struct pairs_expected e = pairs_expected(
        d->count, plan->most, shape->size, element, choice->slot_bytes / element);
    choice->pairs = true;
    choice->contribution = e.contribution;
    choice->result = e.result;
}

/* Set the expected encoded bytes of a sum of selections in the choice. */
static void expect_words(struct trib_plan *plan, const struct trib_shape *shape,
                         const trib_desc_t *d, struct trib_choice *choice)
{
    const double dense = (double)trib_dtype_size(d->dtype);
    struct trib_expected words;

    if (!plan->codec || !trib_coll_sums(shape->coll) ||
        !trib_codec_expected(plan->codec, d->count, shape->size, &words))
        return;
    plan->selected = words.contribution;
    choice->contribution = words.contribution / dense;
    choice->result = words.result / dense;
}

/* Compute the modelled time of a start, and the fraction that an empty start takes. */
static void expect_times(struct trib_plan *plan, const struct trib_shape *shape,
                         const trib_desc_t *d, const struct trib_choice *choice,
                         const struct trib_algo *algo)
{
    struct trib_choice empty = *choice;

    if (plan->codec || plan->run.desc.pairs || plan->comm->aggregators)
        return;
    empty.bytes = trib_dtype_size(d->dtype);
    const double us = algo->cost(shape, choice), least = algo->cost(shape, &empty);
    if (!isfinite(us) || !(us > 0))
        return;
    assert(least >= 0);
    plan->expected_us = us;
    plan->expected_fixed = fmin(least / us, 1);
}

static void explain_words(struct trib_plan *plan, const struct trib_choice *choice)
{
    const size_t n = strlen(plan->why);
    const double bytes = (double)choice->bytes;

    if (choice->contribution > 0 && !choice->pairs)
        snprintf(plan->why + n, sizeof(plan->why) - n,
                 "; encoded: about %.3g B per contribution, %.3g B for the result",
                 bytes * choice->contribution, bytes * choice->result);
}

static void explain_network(struct trib_plan *plan)
{
    const struct trib_comm *comm = plan->comm;
    const uint32_t day = comm->calibration.measured;
    const size_t n = strlen(plan->why);

    if (comm->load_store)
        return;
    if (comm->calibration.known)
        snprintf(plan->why + n, sizeof(plan->why) - n,
                 "; network calibrated on %04u-%02u-%02u", day / 10000, day / 100 % 100,
                 day % 100);
    else if (comm->mbps)
        snprintf(plan->why + n, sizeof(plan->why) - n, "; ports of %g Gbit/s",
                 comm->mbps / 1000.0);
}

static trib_status_t asked_for(struct trib_plan *plan, const char *name,
                               const struct trib_shape *shape, const trib_desc_t *d,
                               const struct trib_choice *choice,
                               const struct trib_algo **algo_out)
{
    const bool ordered = trib_deterministic_orders(plan, shape, d->dtype);
    const trib_status_t st = find_algorithm(plan, name, shape, ordered, algo_out);

    if (st == TRIB_OK)
        expect_times(plan, shape, d, choice, *algo_out);
    return st;
}

static trib_status_t choose(struct trib_plan *plan, const struct trib_shape *shape,
                            const trib_desc_t *d, const struct trib_algo **algo_out)
{
    struct trib_comm *comm = plan->comm;
    const char *name = comm->aggregators ? trib_algo_of_aggregators()->name
                       : d->algorithm    ? d->algorithm
                                         : comm->cfg.algorithm;
    uint32_t flags = plan->codec ? trib_codec_info(plan->codec)->flags : 0;
    /* Linear encodings are never encoded again. */
    bool merged = trib_coll_sums(shape->coll) && flags & TRIB_CODEC_LINEAR;
    const bool ordered = trib_deterministic_orders(plan, shape, d->dtype);
    struct trib_choice choice = {
        .bytes = plan->run.desc.blocks
                     ? plan->kind->mean(plan) * trib_dtype_size(d->dtype)
                     : d->count * trib_dtype_size(d->dtype),
        .load_store = comm->load_store,
        .sparse = flags & TRIB_CODEC_SPARSE,
        .lossy = plan->codec && !merged,
        .oversubscribed = comm->oversubscribed,
        .one_host = comm->one_host,
        .gathers =
            ordered || (trib_coll_sums(shape->coll) && trib_robust_is(shape->op)),
    };

    expect_words(plan, shape, d, &choice);
    choice.slot_bytes = plan->codec || plan->run.desc.pairs ? trib_plan_chunk(plan, d)
                                                            : comm->cfg.chunk;
    expect_pairs(plan, shape, d, &choice);
    trib_locality_describe(comm, &choice);
    if (!trib_text_is_auto(name) &&
        !(shape->coll == TRIB_BARRIER && !d->algorithm && !comm->aggregators))
        return asked_for(plan, name, shape, d, &choice, algo_out);
    if (ordered && plan->codec)
        trib_deterministic_forget(&choice);
    *algo_out = trib_algo_choose(shape, &choice, plan->why, sizeof(plan->why));
    const struct trib_algo *next = trib_algo_next(shape, &choice, NEXT_NEAR);
    plan->next_algorithm = next ? next->name : NULL;
    explain_words(plan, &choice);
    explain_network(plan);
    if (!*algo_out)
        return trib_comm_fail(
            comm, TRIB_ERR_UNSUPPORTED, "no algorithm for %s with %d rank%s",
            trib_coll_name(shape->coll), shape->size, shape->size == 1 ? "" : "s");
    expect_times(plan, shape, d, &choice, *algo_out);
    return TRIB_OK;
}

trib_status_t trib_plan_build(struct trib_plan *plan, const struct trib_algo *algo,
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

/* Append the leaders per host or group to plan->why, if the algorithm uses leaders. */
static void explain_leaders(struct trib_plan *plan, const struct trib_algo *algo,
                            const struct trib_locality_groups *groups)
{
    const size_t n = strlen(plan->why);
    char *end = plan->why + n;

    if (!groups->kind || !algo->groups)
        return;
    if (strcmp(groups->kind, "host") == 0)
        snprintf(end, sizeof(plan->why) - n, "; leaders per host: %d",
                 groups->groups.leaders);
    else
        snprintf(end, sizeof(plan->why) - n,
                 "; %d group%s by %s, leaders per group: %d", groups->groups.n,
                 groups->groups.n == 1 ? "" : "s", groups->kind,
                 groups->groups.leaders);
}

/*
 * Return the hosts whose ranks sum before the aggregators; NULL: none. A codec's loss
 * must be the same with and without aggregators, a quorum lists contributions, robust
 * ops compare them, and TRIB_DETERMINISTIC fixes their order.
 */
static const struct trib_shape_hosts *hosts_of(const struct trib_plan *plan,
                                               const trib_desc_t *d)
{
    enum { BYTES_LEAST = 65536 }; /* the extra hop costs more than it saves below */
    const struct trib_aggregators *a = plan->comm->aggregators;
    const struct trib_run_desc *r = &plan->run.desc;

    if (!a || plan->codec || r->pairs || r->quorum.need || trib_robust_is(d->op) ||
        plan->comm->cfg.deterministic ||
        d->count * trib_dtype_size(d->dtype) < BYTES_LEAST)
        return NULL;
    return a->hosts;
}

static void explain_pairs(struct trib_plan *plan, const trib_desc_t *d)
{
    const struct pairs_expected e =
        pairs_expected(d->count, plan->most, plan->comm->engine.ranks,
                       trib_dtype_size(d->dtype), trib_plan_chunk(plan, d));
    const size_t n = strlen(plan->why);
    char *end = plan->why + n;

    if (plan->most)
        snprintf(end, sizeof(plan->why) - n,
                 "; (index, value) pairs: up to %.4g per rank, about %.4g in the union",
                 e.pairs, e.united);
    else
        snprintf(end, sizeof(plan->why) - n,
                 "; (index, value) pairs, any number of them");
}

trib_status_t trib_plan_build_schedule(struct trib_plan *plan, const trib_desc_t *d,
                                       struct trib_shape *shape,
                                       struct trib_schedule *out)
{
    const struct trib_engine *e = &plan->comm->engine;
    struct trib_run_desc *r = &plan->run.desc;
    const struct trib_algo *algo = NULL;
    struct trib_locality_groups groups;

    assert(e->size >= e->ranks);
    *shape = (struct trib_shape){.coll = r->op.coll,
                                 .op = d->op,
                                 .rank = e->rank,
                                 .size = e->ranks,
                                 .aggregators = e->size - e->ranks,
                                 .tree = trib_plan_tree(plan->comm),
                                 .hosts = hosts_of(plan, d),
                                 .root = trib_coll_has_root(r->op.coll) ? d->root : 0,
                                 .local_counts = r->blocks && r->blocks->local,
                                 .pairs = plan->run.desc.pairs};
    trib_status_t st = trib_locality_group(
        plan->comm, d->count * trib_dtype_size(d->dtype), &groups, shape);
    if (st == TRIB_OK)
        st = choose(plan, shape, d, &algo);
    if (st == TRIB_OK)
        st = trib_plan_build(plan, algo, shape, out);
    if (st == TRIB_OK)
        explain_leaders(plan, algo, &groups);
    if (st == TRIB_OK && shape->hosts)
        trib_text_append(plan->why, sizeof(plan->why), "; ranks of a host sum first");
    if (st == TRIB_OK && plan->run.desc.pairs)
        explain_pairs(plan, d);
    if (st == TRIB_OK)
        trib_deterministic_explain(plan,
                                   trib_deterministic_orders(plan, shape, d->dtype));
    trib_locality_ungroup(&groups);
    shape->groups = NULL;
    if (st != TRIB_OK)
        return st;
    assert(out->n_chunks > 0);
    plan->run.desc.name = algo->name;
    r->n_chunks = out->n_chunks;
    r->gathers = trib_algo_gathers(algo, shape);
    r->gets_whole = r->gathers || (shape->hosts && !trib_shape_is_aggregator(shape));
    for (int lane = 0; lane < TRIB_LANES; lane++)
        r->senders[lane] = trib_algo_senders(algo, shape, lane);
    return TRIB_OK;
}
