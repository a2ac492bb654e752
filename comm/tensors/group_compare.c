/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compare the ranks' groups, so that a difference causes an error message instead of a
 * hang. All-reduce five numbers first, and one number per tensor only if these differ.
 */
#include <stdlib.h>

#include "base/digest.h"
#include "comm/core/communicator.h"
#include "comm/tensors/tensor_group.h"

/* A number is equal on all ranks if its minimum and its negative's minimum add to 0. */
enum { OK, N, MINUS_N, DIGEST, MINUS_DIGEST, NUMBERS };

static uint64_t digest_of(const struct trib_group *g)
{
    const trib_group_opts_t *o = &g->opts;
    const uint64_t numbers[] = {
        o->op,       trib_digest(&o->parameter, sizeof(o->parameter)),
        o->feed,     o->bucket_bytes,
        o->cycle_us, o->seed};
    uint64_t digest = trib_digest(numbers, sizeof(numbers));

    if (o->algorithm)
        digest = trib_digest_seeded(o->algorithm, strlen(o->algorithm), digest);
    for (size_t i = 0; i < g->n; i++) {
        const uint64_t of = trib_group_tensor_digest(&g->tensors[i]);
        digest = trib_digest_seeded(&of, sizeof(of), digest);
    }
    return digest;
}

/* Return half of a digest, so that its negative does not overflow. */
static int64_t number_of(uint64_t digest)
{
    return (int64_t)(digest >> 1);
}

static trib_status_t smallest(trib_comm_t *comm, int64_t *numbers, size_t n)
{
    return trib_allreduce(comm, NULL, numbers, n, TRIB_I64, TRIB_MIN);
}

/* Find the first tensor that differs; all ranks have the same number. */
static trib_status_t name_difference(trib_comm_t *comm, const struct trib_group *g)
{
    const size_t n = g->n;
    int64_t *numbers = calloc(2 * n + 1, sizeof(*numbers));
    size_t i = 0;

    /* The other ranks still enter the all-reduce. */
    if (!numbers) {
        trib_comm_fail_all(comm, TRIB_ERR_NO_MEMORY, "no memory to compare groups");
        return TRIB_ERR_NO_MEMORY;
    }
    for (i = 0; i < n; i++) {
        numbers[i] = number_of(trib_group_tensor_digest(&g->tensors[i]));
        numbers[n + i] = -numbers[i];
    }
    const trib_status_t st = smallest(comm, numbers, 2 * n);
    for (i = 0; i < n && numbers[i] + numbers[n + i] == 0; i++)
        ;
    free(numbers);
    if (st != TRIB_OK)
        return st;
    if (i == n)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "the ranks pass the same tensors to trib_group_create, "
                              "but different options: op, parameter, feed, "
                              "bucket_bytes, cycle_us, algorithm or seed");
    const trib_tensor_t *t = &g->tensors[i].desc;
    return trib_comm_fail(comm, TRIB_ERR_INVALID,
                          "tensor %zu differs between ranks: on this rank it is \"%s\" "
                          "of %zu %s with priority %d and codec %s",
                          i, t->name, t->count, trib_dtype_name(t->dtype), t->priority,
                          t->codec);
}

trib_status_t trib_group_compare(trib_comm_t *comm, const struct trib_group *g,
                                 trib_status_t st)
{
    const uint64_t digest = g ? digest_of(g) : 0;
    int64_t numbers[NUMBERS] = {
        [OK] = st == TRIB_OK,
        [N] = g ? (int64_t)g->n : 0,
        [MINUS_N] = g ? -(int64_t)g->n : 0,
        [DIGEST] = number_of(digest),
        [MINUS_DIGEST] = -number_of(digest),
    };
    char why[400];

    assert(!g == (st != TRIB_OK));
    snprintf(why, sizeof(why), "%s", trib_last_error(comm));
    const trib_status_t met = smallest(comm, numbers, NUMBERS);
    if (met != TRIB_OK)
        return met;
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "%s", why);
    if (!numbers[OK])
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "another rank could not create its group; its own error "
                              "message gives the reason");
    if (numbers[N] + numbers[MINUS_N])
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "the ranks pass different numbers of tensors to "
                              "trib_group_create, from %lld to %lld",
                              (long long)numbers[N], -(long long)numbers[MINUS_N]);
    return numbers[DIGEST] + numbers[MINUS_DIGEST] ? name_difference(comm, g) : TRIB_OK;
}
