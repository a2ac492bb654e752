/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registered algorithms with which ranks sum dense vectors without aggregators, for
 * tests that iterate over cases: each case takes the next one.
 */
#ifndef TESTS_COMM_ALGORITHMS_H
#define TESTS_COMM_ALGORITHMS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "collectives/builder.h"
#include "collectives/collectives.h"

static inline bool algorithm_fits(const struct trib_algo *algo, bool groups)
{
    return (algo->colls & TRIB_COLL_BIT(TRIB_ALLREDUCE)) && !algo->aggregators &&
           !algo->merges && (groups || !algo->groups);
}

/* Return the number of algorithms; groups: include algorithms that use groups of
 * ranks. */
static inline size_t algorithms_count(bool groups)
{
    size_t n = 0;

    for (size_t i = 0; trib_algos[i]; i++)
        n += algorithm_fits(trib_algos[i], groups);
    return n;
}

static inline const char *algorithm_of(size_t number, bool groups)
{
    number %= algorithms_count(groups);
    for (size_t i = 0;; i++) {
        assert(trib_algos[i]);
        if (algorithm_fits(trib_algos[i], groups) && number-- == 0)
            return trib_algos[i]->name;
    }
}

/* Return true for "auto", and for an algorithm that has schedules of this
 * collective. */
static inline bool algorithm_does(const char *name, trib_coll_t coll)
{
    const struct trib_algo *algo = trib_algo_find(name);

    return !algo || (algo->colls & TRIB_COLL_BIT(coll) &&
                     !(algo->merges && coll == TRIB_ALLREDUCE));
}

/* Return algorithm number i, starting again after the last; without groups. */
static inline const char *algorithm_at(size_t i)
{
    return algorithm_of(i, false);
}

#endif
