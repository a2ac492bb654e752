/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/collectives.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collectives/builder.h"

/* The rows; earlier rows win if estimates are equal. */
/* clang-format off */
#define ALGORITHMS(X) \
    X(flat) \
    X(direct) \
    X(halving_doubling) \
    X(ring) \
    X(tree) \
    X(hierarchical) \
    X(dissemination) \
    X(pairwise) \
    X(doubling) \
    X(service)
/* clang-format on */

#define DECLARE(name) extern const struct trib_algo trib_algo_##name;
ALGORITHMS(DECLARE)

#define ROW(name) &trib_algo_##name,
const struct trib_algo *const trib_algos[] = {ALGORITHMS(ROW) NULL};

const struct trib_algo *trib_algo_find(const char *name)
{
    assert(name);
    for (size_t i = 0; trib_algos[i]; i++)
        if (strcmp(trib_algos[i]->name, name) == 0)
            return trib_algos[i];
    return NULL;
}

const struct trib_algo *trib_algo_of_aggregators(void)
{
    size_t i = 0;

    while (!trib_algos[i]->aggregators)
        i++;
    return trib_algos[i];
}

bool trib_algo_gathers(const struct trib_algo *algo, const struct trib_shape *shape)
{
    return (algo->gathers && !shape->tree && !shape->hosts) || shape->size == 1;
}

uint32_t trib_algo_senders(const struct trib_algo *algo, const struct trib_shape *shape,
                           int lane)
{
    return algo->senders && shape->size > 1 ? algo->senders(shape, lane) : 1;
}

bool trib_algo_sums_pairs(const struct trib_algo *algo, const struct trib_shape *shape)
{
    assert(!algo->merges || algo->colls & TRIB_COLL_BIT(TRIB_ALLREDUCE));
    return algo->merges || trib_algo_gathers(algo, shape);
}

struct ranked {
    const struct trib_algo *algo;
    double cost_us;
};

static void rank_in(struct ranked best[2], const struct trib_algo *algo, double cost_us)
{
    if (!best[0].algo || cost_us < best[0].cost_us) {
        best[1] = best[0];
        best[0] = (struct ranked){algo, cost_us};
    } else if (!best[1].algo || cost_us < best[1].cost_us) {
        best[1] = (struct ranked){algo, cost_us};
    }
}

static void explain(const struct ranked best[2], char *why, size_t bytes)
{
    if (!why || bytes == 0)
        return;
    if (!best[0].algo)
        snprintf(why, bytes, "no algorithm can do it");
    else if (!best[1].algo)
        snprintf(why, bytes, "%s, estimated %.3g us; no alternative",
                 best[0].algo->name, best[0].cost_us);
    else
        snprintf(why, bytes, "%s, estimated %.3g us; next is %s, %.3g us",
                 best[0].algo->name, best[0].cost_us, best[1].algo->name,
                 best[1].cost_us);
}

/* Find the two cheapest algorithms for the shape. */
static void rank_all(const struct trib_shape *shape, const struct trib_choice *choice,
                     struct ranked best[2])
{
    for (size_t i = 0; trib_algos[i]; i++) {
        const struct trib_algo *algo = trib_algos[i];
        double cost_us;

        if (!algo->can(shape) || !(algo->colls & TRIB_COLL_BIT(shape->coll)))
            continue;
        if (choice->gathers && !trib_algo_gathers(algo, shape))
            continue;
        if (choice->pairs && !trib_algo_sums_pairs(algo, shape))
            continue;
        cost_us = algo->cost(shape, choice);
        /* Infinite: possible, but excluded for this codec. */
        if (isfinite(cost_us))
            rank_in(best, algo, cost_us);
    }
}

const struct trib_algo *trib_algo_choose(const struct trib_shape *shape,
                                         const struct trib_choice *choice, char *why,
                                         size_t bytes)
{
    struct ranked best[2] = {{NULL, 0.0}, {NULL, 0.0}};

    rank_all(shape, choice, best);
    explain(best, why, bytes);
    return best[0].algo;
}

const struct trib_algo *trib_algo_next(const struct trib_shape *shape,
                                       const struct trib_choice *choice, double times)
{
    struct ranked best[2] = {{NULL, 0.0}, {NULL, 0.0}};

    assert(times >= 1);
    rank_all(shape, choice, best);
    return best[1].algo && best[1].cost_us <= times * best[0].cost_us ? best[1].algo
                                                                      : NULL;
}
