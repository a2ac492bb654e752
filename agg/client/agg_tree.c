/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/client/agg_tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "collectives/collectives.h"

enum { RUN_MOST = 65536, DEPTH_MOST = 16 };

/* A tree and its arrays, in one block of memory. */
struct block {
    struct trib_agg_tree tree;
    int numbers[];
};

static struct block *make_block(int groups, int aggregators, int ranks)
{
    const size_t n = 2 * (size_t)groups + 1 + (size_t)aggregators + (size_t)ranks;
    struct block *b = calloc(1, sizeof(*b) + n * sizeof(b->numbers[0]));

    if (!b)
        return NULL;
    b->tree.groups = groups;
    b->tree.parent = b->numbers;
    b->tree.first = b->numbers + groups;
    b->tree.aggregators = b->numbers + 2 * groups + 1;
    b->tree.leaf_of = b->numbers + 2 * groups + 1 + aggregators;
    return b;
}

struct trib_agg_tree *trib_agg_tree_copy(const struct trib_agg_tree *tree, int ranks)
{
    const size_t groups = (size_t)tree->groups,
                 aggregators = (size_t)tree->first[tree->groups];
    struct block *b = make_block(tree->groups, (int)aggregators, ranks);

    if (!b)
        return NULL;
    int *at = b->numbers;
    memcpy(at, tree->parent, groups * sizeof(int));
    memcpy(at += groups, tree->first, (groups + 1) * sizeof(int));
    memcpy(at += groups + 1, tree->aggregators, aggregators * sizeof(int));
    memcpy(at + aggregators, tree->leaf_of, (size_t)ranks * sizeof(int));
    return &b->tree;
}

/* Bytes ---------------------------------------------------------------------------- */

struct writer {
    uint8_t *out;
    size_t bytes, n; /* n: bytes needed, may exceed `bytes` */
};

static void put(struct writer *w, int number)
{
    assert(number >= 0 && number <= UINT16_MAX);
    if (w->n + 2 <= w->bytes) {
        w->out[w->n] = (uint8_t)(number & 0xff);
        w->out[w->n + 1] = (uint8_t)(number >> 8);
    }
    w->n += 2;
}

trib_status_t trib_agg_tree_pack(const struct trib_agg_tree *tree, int ranks,
                                 uint8_t *out, size_t bytes, size_t *n_out)
{
    struct writer w = {.out = out, .bytes = bytes};

    *n_out = 0;
    if (!tree)
        return TRIB_OK;
    assert(tree->groups > 0);
    put(&w, tree->groups);
    for (int u = 0; u < tree->groups; u++) {
        put(&w, u ? tree->parent[u] : 0);
        put(&w, tree->first[u + 1] - tree->first[u]);
        for (int i = tree->first[u]; i < tree->first[u + 1]; i++)
            put(&w, tree->aggregators[i]);
    }
    for (int r = 0, n; r < ranks; r += n) {
        for (n = 1;
             n < RUN_MOST && r + n < ranks && tree->leaf_of[r + n] == tree->leaf_of[r];)
            n++;
        put(&w, n - 1);
        put(&w, tree->leaf_of[r]);
    }
    *n_out = w.n;
    return w.n <= bytes ? TRIB_OK : TRIB_ERR_OVERFLOW;
}

struct reader {
    const uint8_t *at;
    size_t left;
    bool well;
};

static int get(struct reader *r)
{
    r->well &= r->left >= 2;
    if (!r->well)
        return 0;
    const int number = r->at[0] | r->at[1] << 8;
    r->at += 2;
    r->left -= 2;
    return number;
}

/* Count the aggregators of all groups, without consuming them; -1: invalid. An
 * aggregator is in at most two groups. */
static int count_aggregators(struct reader r, int groups, int aggregators)
{
    int n = 0;

    for (int u = 0; u < groups && r.well; u++) {
        (void)get(&r);
        int of_group = get(&r);
        for (n += of_group; of_group > 0 && r.well; of_group--)
            (void)get(&r);
        r.well &= n <= 2 * aggregators;
    }
    return r.well ? n : -1;
}

static bool get_ranks(struct reader *r, int *leaf_of, int ranks)
{
    int at = 0;

    while (at < ranks && r->well) {
        int n = get(r) + 1;
        const int group = get(r);
        r->well &= n <= ranks - at;
        for (; r->well && n > 0; n--)
            leaf_of[at++] = group;
    }
    return r->well && r->left == 0;
}

static bool deep(const struct trib_agg_tree *tree)
{
    for (int u = 1; u < tree->groups; u++) {
        int depth = 0;
        for (int v = u; v > 0; v = tree->parent[v])
            depth++;
        if (depth > DEPTH_MOST)
            return true;
    }
    return false;
}

static struct block *read_tree(struct reader *r, int ranks, int aggregators)
{
    const int groups = get(r);
    const int n = r->well && groups >= 1 && groups <= aggregators + 1
                      ? count_aggregators(*r, groups, aggregators)
                      : -1;
    struct block *b = n < 0 ? NULL : make_block(groups, n, ranks);

    r->well = n >= 0;
    if (!b)
        return NULL;
    int *parent = b->numbers, *first = parent + groups, *members = first + groups + 1;
    for (int u = 0; u < groups; u++) {
        parent[u] = get(r);
        first[u + 1] = first[u] + get(r);
        for (int i = first[u]; i < first[u + 1]; i++)
            members[i] = get(r);
    }
    r->well = get_ranks(r, members + n, ranks);
    return b;
}

trib_status_t trib_agg_tree_unpack(const uint8_t *bytes, size_t n, int ranks,
                                   int aggregators, struct trib_error *err,
                                   struct trib_agg_tree **out)
{
    struct reader r = {bytes, n, true};

    *out = NULL;
    if (n == 0)
        return TRIB_OK;
    struct block *b = read_tree(&r, ranks, aggregators);
    if (!b && r.well)
        return trib_fail(err, TRIB_ERR_NO_MEMORY,
                         "no memory for a tree of %d aggregators", aggregators);
    const struct trib_shape shape = {.coll = TRIB_ALLREDUCE,
                                     .size = ranks,
                                     .aggregators = aggregators,
                                     .tree = b ? &b->tree : NULL};
    if (b && r.well && trib_algo_of_aggregators()->can(&shape) && !deep(&b->tree)) {
        *out = &b->tree;
        return TRIB_OK;
    }
    free(b);
    return trib_fail(err, TRIB_ERR_PROTOCOL,
                     "the layout of %d aggregators and %d ranks is not a tree",
                     aggregators, ranks);
}

/* Peers ----------------------------------------------------------------------- */

int trib_agg_tree_peers(const struct trib_agg_tree *tree, int ranks, int aggregators,
                        int aggregator, bool *peer)
{
    const struct trib_shape shape = {.coll = TRIB_ALLREDUCE,
                                     .rank = ranks + aggregator,
                                     .size = ranks,
                                     .aggregators = aggregators,
                                     .tree = tree};
    struct trib_schedule s;
    int n = 0;

    assert(aggregator >= 0 && aggregator < aggregators);
    memset(peer, 0, (size_t)(ranks + aggregators) * sizeof(*peer));
    if (trib_algo_of_aggregators()->build(&shape, &s) != TRIB_OK)
        return -1;
    for (uint32_t i = 0; i < s.n_steps; i++)
        peer[s.steps[i].peer] = true;
    for (int i = 0; i < ranks + aggregators; i++)
        n += peer[i];
    trib_schedule_free(&s);
    return n;
}
