/* SPDX-License-Identifier: BSD-3-Clause */
/* The service's schedules: stars of one to five shards, and trees of nodes above the ranks. */
#include "tests/harness/tribtest.h"

#include "tests/collectives/sweep.h"

enum { UNITS_MOST = 7, RANKS_MOST = 64 };

/* Where its arrays are while a shape has it. */
struct tree {
    struct trib_service_tree tree;
    int parent[UNITS_MOST];
    int leaf_of[RANKS_MOST];
};

static struct tree tree;

static void serve_star(struct trib_shape *shape, int shards)
{
    shape->services = shards;
}

/* A root, under it as many leaves as there are racks of three ranks, five at most; the last one
 * below another leaf, so that ranks and leaves have the same parent. */
static void serve_tree(struct trib_shape *shape, int shards)
{
    int leaves = shape->size < 15 ? (shape->size + 2) / 3 : 5;

    tree.tree = (struct trib_service_tree){leaves + 1, tree.parent, tree.leaf_of};
    for (int u = 1; u <= leaves; u++)
        tree.parent[u] = u == leaves && u > 1 ? u - 1 : 0;
    for (int r = 0; r < shape->size; r++)
        tree.leaf_of[r] = 1 + r % leaves;
    shape->tree = &tree.tree;
    shape->services = shards * tree.tree.units;
}

static uint64_t children(const struct trib_shape *shape, int unit, bool that_get_result)
{
    uint64_t n = 0;

    for (int r = 0; r < shape->size; r++)
        n += (shape->tree ? shape->tree->leaf_of[r] : 0) == unit &&
             (!that_get_result || shape->coll == TRIB_ALLREDUCE || r == shape->root);
    for (int v = unit + 1; shape->tree && v < shape->tree->units; v++)
        n += shape->tree->parent[v] == unit &&
             (!that_get_result || children(shape, v, true) > 0);
    return n;
}

/* Of all elements each goes up once and comes down once on every edge that needs it. */
static void bytes(const struct trib_sim *sim, uint32_t rank, uint64_t *up, uint64_t *down)
{
    const struct trib_shape *shape = &sim->shape;

    *up = sweep_all(sim);
    *down = 0;
    if (rank < (uint32_t)shape->size)
        return;
    const int units = shape->tree ? shape->tree->units : 1;
    const int index = (int)rank - shape->size, unit = index % units;
    const uint64_t elements = trib_sim_chunk(sim, (uint32_t)(index / units));
    *up = unit > 0 ? elements : 0;
    *down = elements * children(shape, unit, true);
}

static void test_stars(void **state)
{
    (void)state;
    for (int shards = 1; shards <= 5; shards += 2) {
        sweep_served(&(struct sweep){"service", TRIB_ALLREDUCE, true, bytes}, serve_star, shards);
        sweep_served(&(struct sweep){"service", TRIB_REDUCE, true, bytes}, serve_star, shards);
    }
}

static void test_trees(void **state)
{
    (void)state;
    for (int shards = 1; shards <= 2; shards++) {
        sweep_served(&(struct sweep){"service", TRIB_ALLREDUCE, false, bytes}, serve_tree, shards);
        sweep_served(&(struct sweep){"service", TRIB_REDUCE, false, bytes}, serve_tree, shards);
    }
}

/* What it moves is nothing, but each rank waits for all others. */
static void test_barrier(void **state)
{
    struct trib_shape shape = {.coll = TRIB_BARRIER};
    const struct trib_algo *algo = trib_algo_find("service");

    (void)state;
    for (int p = 1; p <= 33; p++) {
        for (int with_tree = 0; with_tree < 2; with_tree++) {
            struct trib_sim sim = {.rounds = 1, .slots = 1, .window = 1};
            shape.size = p;
            shape.tree = NULL;
            (with_tree ? serve_tree : serve_star)(&shape, 1);
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

static void test_what_it_cannot(void **state)
{
    const struct trib_algo *algo = trib_algo_find("service");
    int parent[] = {0, 0, 3, 0}, leaf_of[] = {1, 2, 3};
    struct trib_service_tree t = {4, parent, leaf_of};
    struct trib_shape shape = {.coll = TRIB_ALLREDUCE, .size = 3};

    (void)state;
    assert_false(algo->can(&shape)); /* no service */
    shape.services = 1;
    assert_true(algo->can(&shape));
    shape.rank = 4;
    assert_false(algo->can(&shape));
    shape.rank = 3;
    assert_true(algo->can(&shape));
    assert_false(trib_algo_find("ring")->can(&shape));
    shape.tree = &t;
    assert_false(algo->can(&shape)); /* not a multiple of the units */
    shape.services = 8;
    assert_false(algo->can(&shape)); /* a unit before its parent */
    parent[2] = 1;
    assert_true(algo->can(&shape));
    leaf_of[1] = 4;
    assert_false(algo->can(&shape)); /* no such unit */
    leaf_of[1] = 1;
    assert_false(algo->can(&shape)); /* unit 2 has nothing to sum */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stars),
        cmocka_unit_test(test_trees),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_what_it_cannot),
    };

    tribtest_deadline(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
