/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compare state that ranks should share: each rank's hash, and the ranks that differ
 * from the majority.
 */
#include <assert.h>
#include <stdlib.h>

#include <tributary/elastic.h>

#include "base/digest.h"
#include "comm/core/communicator.h"
#include "comm/core/usual_hash.h"
#include "comm/plan/exchange.h"

struct hashed {
    uint64_t hash;
    int rank;
};

static int compare(const void *left, const void *right)
{
    const struct hashed *a = left, *b = right;

    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Return the most frequent hash; of a tie, the lowest rank's. The list is sorted by
 * hash, then by rank. */
static uint64_t usual_hash(const struct hashed *list, int n)
{
    int best = 0, most = 0;

    assert(n > 0);
    for (int first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && list[end].hash == list[first].hash;)
            end++;
        if (end - first < most ||
            (end - first == most && list[first].rank > list[best].rank))
            continue;
        most = end - first;
        best = first;
    }
    return list[best].hash;
}

trib_status_t trib_usual_hash(const uint64_t *all, int n, uint64_t *usual_out)
{
    struct hashed *list = malloc((size_t)n * sizeof(*list));

    if (!list)
        return TRIB_ERR_NO_MEMORY;
    for (int r = 0; r < n; r++)
        list[r] = (struct hashed){all[r], r};
    qsort(list, (size_t)n, sizeof(*list), compare);
    *usual_out = usual_hash(list, n);
    free(list);
    return TRIB_OK;
}

static trib_status_t list_different(const uint64_t *all, int size, int *ranks, int cap,
                                    int *n_out)
{
    uint64_t usual;
    int n = 0;
    const trib_status_t st = trib_usual_hash(all, size, &usual);

    if (st != TRIB_OK)
        return st;
    for (int r = 0; r < size; r++) {
        if (all[r] == usual)
            continue;
        if (n < cap)
            ranks[n] = r;
        n++;
    }
    assert(n < size);
    *n_out = n;
    return TRIB_OK;
}

uint64_t trib_hash(const void *bytes, size_t n, uint64_t before)
{
    return trib_digest_seeded(bytes, n, before);
}

trib_status_t trib_comm_same(trib_comm_t *comm, uint64_t hash, int *ranks, int cap,
                             int *n_out)
{
    if (!comm)
        return TRIB_ERR_INVALID;
    trib_status_t st = trib_comm_ours(comm, "trib_comm_same");
    if (st != TRIB_OK)
        return st;
    if (!n_out || cap < 0 || (!ranks && cap))
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "trib_comm_same: ranks or n_out is NULL, or cap is %d",
                              cap);
    uint64_t *all = malloc((size_t)comm->engine.ranks * sizeof(*all));
    st = all ? trib_comm_exchange(comm, TRIB_ALLGATHER, &hash, sizeof(hash), all)
             : TRIB_ERR_NO_MEMORY;
    if (st == TRIB_OK)
        st = list_different(all, comm->engine.ranks, ranks, cap, n_out);
    free(all);
    return st == TRIB_ERR_NO_MEMORY
               ? trib_comm_fail(comm, st, "trib_comm_same: no memory for %d ranks",
                                comm->engine.ranks)
               : st;
}
