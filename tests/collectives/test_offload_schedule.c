/* SPDX-License-Identifier: BSD-3-Clause */
/* The schedules of aggregators: stars of one to five aggregators, and trees of groups
 * above the ranks. */
#include "tests/harness/tribtest.h"

#include "tests/collectives/sweep.h"

enum { GROUPS_MOST = 7, RANKS_MOST = 64 };

/* The tree of a shape, with its arrays. */
struct tree {
    struct trib_agg_tree tree;
    int parent[GROUPS_MOST];
    int first[GROUPS_MOST + 1];
    int aggregators[4 * GROUPS_MOST];
    int leaf_of[RANKS_MOST];
};

static struct tree tree;

static void serve_star(struct trib_shape *shape, int shards)
{
    shape->aggregators = shards;
}

static void add_group(int parent, int aggregators, int *next)
{
    const int u = tree.tree.groups++;

    tree.parent[u] = parent;
    tree.first[u + 1] = tree.first[u];
    for (int i = 0; i < aggregators; i++)
        tree.aggregators[tree.first[u + 1]++] = (*next)++;
}

static int begin(const struct trib_shape *shape)
{
    int leaves = shape->size < 15 ? (shape->size + 2) / 3 : 5;

    tree.tree = (struct trib_agg_tree){0, tree.parent, tree.first, tree.aggregators,
                                       tree.leaf_of};
    for (int r = 0; r < shape->size; r++)
        tree.leaf_of[r] = 1 + r % leaves;
    return leaves;
}

/* A root, under it as many leaves as there are racks of three ranks, five at most; the
 * last one below another leaf, so that ranks and leaves have the same parent. Leaves
 * have other numbers of aggregators than the root. */
static void serve_tree(struct trib_shape *shape, int roots)
{
    int leaves = begin(shape), next = 0;

    add_group(0, roots, &next);
    for (int u = 1; u <= leaves; u++)
        add_group(u == leaves && u > 1 ? u - 1 : 0, 1 + (u + roots) % 3, &next);
    shape->tree = &tree.tree;
    shape->aggregators = next;
}

/* Aggregators of racks alone, which are the root, too; a rank sends to it without a
 * rack's. */
static void serve_racks(struct trib_shape *shape, int each)
{
    int leaves = begin(shape), next = 0;

    add_group(0, leaves * each, &next);
    next = 0;
    for (int u = 1; u <= leaves; u++)
        add_group(0, each, &next);
    if (shape->size > 6)
        tree.leaf_of[shape->size - 1] = 0;
    shape->tree = &tree.tree;
    shape->aggregators = next;
}

/* Hosts of the ranks and aggregators of a shape. */
static struct {
    struct trib_shape_hosts hosts;
    int of[RANKS_MOST + 5 * GROUPS_MOST], place[RANKS_MOST], leaders[RANKS_MOST];
} on;

/* Lay a host out from one of its ranks, if it is the lowest: up to 4 of them lead. */
static void lay_host(const struct trib_shape *shape, int lowest)
{
    int n = 0;

    for (int r = lowest; on.of[lowest] == lowest && r < shape->size; r++)
        on.place[r] = on.of[r] == lowest ? n++ : on.place[r];
    for (int r = lowest; n && r < shape->size; r++)
        if (on.of[r] == lowest)
            on.leaders[r] = n < 4 ? n : 4;
}

/* Hosts of `each` ranks, in blocks or dealt out in turn, and an aggregator on the first
 * one. Only ranks that send to the same group share a host. */
static void settle(struct trib_shape *shape, int each)
{
    const int hosts = (shape->size + each - 1) / each, blocks = shape->size % 3;

    for (int r = 0; r < shape->size + shape->aggregators; r++)
        on.of[r] = r;
    for (int r = 0; r < shape->size; r++)
        for (int q = r; q >= 0; q--)
            if ((blocks ? q / each == r / each : q % hosts == r % hosts) &&
                (!shape->tree || tree.leaf_of[q] == tree.leaf_of[r]))
                on.of[r] = q;
    if (shape->size % 2)
        on.of[shape->size] = 0;
    for (int r = 0; r < shape->size; r++)
        lay_host(shape, r);
    on.hosts = (struct trib_shape_hosts){on.of, on.place, on.leaders};
    shape->hosts = &on.hosts;
}

static void serve_hosts(struct trib_shape *shape, int each)
{
    serve_star(shape, 1 + each % 3);
    settle(shape, each);
}

static void serve_tree_of_hosts(struct trib_shape *shape, int each)
{
    (each % 2 ? serve_tree : serve_racks)(shape, 2);
    settle(shape, each);
}

/* Return true if the rank exchanges chunk c with the aggregator itself. */
static bool leads(const struct trib_shape *shape, int rank, uint32_t c, int aggregator)
{
    return !shape->hosts || on.of[shape->size + aggregator] == on.of[rank] ||
           (int)c % on.leaders[rank] == on.place[rank];
}

/* Return the aggregator that receives chunk c from a group. */
static int owner(const struct trib_shape *shape, int group, uint32_t c)
{
    const struct trib_agg_tree *t = shape->tree;

    if (!t)
        return (int)c % shape->aggregators;
    return t->aggregators[t->first[group] +
                          (int)c % (t->first[group + 1] - t->first[group])];
}

/* The aggregator above that one for chunk c, or itself if it is the root's. */
static int above(const struct trib_shape *shape, int aggregator, uint32_t c)
{
    for (int u = 1; shape->tree && u < shape->tree->groups; u++)
        if (owner(shape, u, c) == aggregator && owner(shape, 0, c) != aggregator)
            return owner(shape, shape->tree->parent[u], c);
    return aggregator;
}

/* Return true if the result of chunk c passes through the aggregator to a rank. */
static bool wants(const struct trib_shape *shape, int aggregator, uint32_t c)
{
    for (int r = 0; r < shape->size; r++) {
        int at = owner(shape, shape->tree ? shape->tree->leaf_of[r] : 0, c);
        if (shape->coll == TRIB_REDUCE && r != shape->root)
            continue;
        while (at != aggregator && at != above(shape, at, c))
            at = above(shape, at, c);
        if (at == aggregator)
            return true;
    }
    return false;
}

/* Return the number of peers that receive the result of chunk c from an aggregator, or
 * -1 if it does not handle the chunk. */
static int below(const struct trib_shape *shape, int aggregator, uint32_t c)
{
    bool part = owner(shape, 0, c) == aggregator;
    int n = 0;

    for (int r = 0; r < shape->size; r++)
        n += owner(shape, shape->tree ? shape->tree->leaf_of[r] : 0, c) == aggregator &&
             (shape->coll == TRIB_ALLREDUCE ? leads(shape, r, c, aggregator)
                                            : r == shape->root);
    for (int i = 0; i < shape->aggregators; i++)
        n += i != aggregator && above(shape, i, c) == aggregator && wants(shape, i, c);
    for (int u = 0; shape->tree && u < shape->tree->groups; u++)
        part |= owner(shape, u, c) == aggregator;
    return part ? n : -1;
}

/* Return the number of ranks of this rank's host to which it forwards the result of
 * chunk c. */
static int follow(const struct trib_shape *shape, int rank, uint32_t c)
{
    const int aggregator =
        owner(shape, shape->tree ? shape->tree->leaf_of[rank] : 0, c);
    int n = 0;

    if (!shape->hosts || shape->coll == TRIB_REDUCE ||
        !leads(shape, rank, c, aggregator))
        return 0;
    for (int r = 0; r < shape->size; r++)
        n += on.of[r] == on.of[rank] && !leads(shape, r, c, aggregator);
    return n;
}

/* On every edge that needs it, each element is sent up once and down once. */
static void bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                  uint64_t *down)
{
    const struct trib_shape *shape = &sim->shape;
    const int aggregator = (int)rank - shape->size;

    *up = aggregator < 0 ? sweep_all(sim) : 0;
    *down = 0;
    for (uint32_t c = 0; aggregator < 0 && c < sim->lists[0].n_chunks; c++)
        *down += (uint64_t)follow(shape, (int)rank, c) * trib_sim_chunk(sim, c);
    for (uint32_t c = 0; aggregator >= 0 && c < sim->lists[0].n_chunks; c++) {
        const int n = below(shape, aggregator, c);
        if (n < 0)
            continue;
        *up += above(shape, aggregator, c) == aggregator ? 0 : trib_sim_chunk(sim, c);
        *down += (uint64_t)n * trib_sim_chunk(sim, c);
    }
}

TEST(test_stars)
{
    for (int shards = 1; shards <= 5; shards += 2) {
        sweep_offloaded(&(struct sweep){"service", TRIB_ALLREDUCE, true, bytes},
                     serve_star, shards);
        sweep_offloaded(&(struct sweep){"service", TRIB_REDUCE, true, bytes},
                        serve_star, shards);
    }
}

TEST(test_trees)
{
    for (int n = 1; n <= 2; n++) {
        sweep_offloaded(&(struct sweep){"service", TRIB_ALLREDUCE, false, bytes},
                     serve_tree, n);
        sweep_offloaded(&(struct sweep){"service", TRIB_REDUCE, false, bytes},
                        serve_tree, n);
        sweep_offloaded(&(struct sweep){"service", TRIB_ALLREDUCE, false, bytes},
                     serve_racks, n);
        sweep_offloaded(&(struct sweep){"service", TRIB_REDUCE, false, bytes},
                        serve_racks, n);
    }
}

TEST(test_hosts)
{
    for (int each = 1; each <= 6; each++) {
        sweep_offloaded(&(struct sweep){"service", TRIB_ALLREDUCE, false, bytes},
                        serve_hosts, each);
        sweep_offloaded(&(struct sweep){"service", TRIB_REDUCE, false, bytes},
                        serve_hosts, each);
        sweep_offloaded(&(struct sweep){"service", TRIB_ALLREDUCE, false, bytes},
                        serve_tree_of_hosts, each);
    }
}

/* It moves nothing, but each rank waits for all others. */
TEST(test_barrier)
{
    struct trib_shape shape = {.coll = TRIB_BARRIER};
    const struct trib_algo *algo = trib_algo_find("service");

    for (int p = 1; p <= 33; p++) {
        for (int with_tree = 0; with_tree < 3; with_tree++) {
            struct trib_sim sim = {.rounds = 1, .slots = 1, .window = 1};
            shape.size = p;
            shape.tree = NULL;
            (with_tree == 2 ? serve_racks
             : with_tree    ? serve_tree
                            : serve_star)(&shape, 2);
            assert_true(trib_sim_build(&sim, algo, &shape));
            if (!trib_sim_prove(&sim))
                fail_msg("%d ranks: %s", p, sim.why);
            sim.rounds = sim.slots = sim.window = 1;
            if (!trib_sim_run(&sim))
                fail_msg("%d ranks: %s", p, sim.why);
            trib_sim_free(&sim);
        }
    }
}

TEST(test_what_it_cannot)
{
    const struct trib_algo *algo = trib_algo_find("service");
    int parent[] = {0, 0, 3, 0}, first[] = {0, 1, 2, 3, 4},
        aggregators[] = {0, 1, 2, 3}, leaf_of[] = {1, 2, 3};
    struct trib_agg_tree t = {4, parent, first, aggregators, leaf_of};
    struct trib_shape shape = {.coll = TRIB_ALLREDUCE, .size = 3};

    assert_false(algo->can(&shape)); /* no aggregator */
    shape.aggregators = 1;
    assert_true(algo->can(&shape));
    shape.rank = 4;
    assert_false(algo->can(&shape));
    shape.rank = 3;
    assert_true(algo->can(&shape));
    assert_false(trib_algo_find("ring")->can(&shape));
    shape.aggregators = 4;
    shape.tree = &t;
    assert_false(algo->can(&shape)); /* a group before its parent */
    parent[2] = 1;
    assert_true(algo->can(&shape));
    shape.aggregators = 3;
    assert_false(algo->can(&shape)); /* there is no such aggregator */
    shape.aggregators = 5;
    assert_false(algo->can(&shape)); /* one aggregator is in no group */
    shape.aggregators = 4;
    aggregators[3] = 2;
    assert_false(algo->can(&shape)); /* one is in two groups */
    aggregators[3] = 0;
    shape.aggregators = 3;
    assert_true(algo->can(&shape)); /* it is the root's, too */
    parent[3] = 1;
    assert_false(algo->can(&shape)); /* that group is not below the root */
    parent[3] = 0;
    leaf_of[1] = 4;
    assert_false(algo->can(&shape)); /* there is no such group */
    leaf_of[1] = 1;
    assert_false(algo->can(&shape)); /* group 2 has no input to sum */
    leaf_of[1] = 2;
    first[3] = 2;
    assert_false(algo->can(&shape)); /* group 2 has no aggregator */
}
