/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical schedules: random groups, also of one rank or one alone, with one to
 * four leaders. */
#include "tests/harness/tribtest.h"

#include "tests/collectives/sweep.h"
#include "tests/harness/simvalues.h"

enum { RANKS_MOST = 64, LEADERS_MOST = 4 };

/* The groups of a shape, with their arrays. */
static struct {
    struct trib_shape_groups groups;
    int of_rank[RANKS_MOST];
    int leader[RANKS_MOST * LEADERS_MOST];
    int count[RANKS_MOST];
} made;

static int below(uint64_t *seed, int n)
{
    *seed = trib_sim_mix(*seed + SIM_ODD);
    return (int)(*seed % (uint64_t)n);
}

static int smallest(void)
{
    int least = RANKS_MOST;

    for (int g = 0; g < made.groups.n; g++)
        least = made.count[g] < least ? made.count[g] : least;
    return least;
}

/* Leaders anywhere in their groups, in no order. */
static void draw_leaders(int size, int leaders, uint64_t *seed)
{
    for (int g = 0; g < made.groups.n; g++)
        for (int l = 0; l < leaders; l++) {
            int *leader = &made.leader[g * leaders + l];
            bool taken = true;
            while (taken) {
                *leader = below(seed, size);
                taken = made.of_rank[*leader] != g;
                for (int k = 0; k < l; k++)
                    taken |= made.leader[g * leaders + k] == *leader;
            }
        }
}

/* Assign ranks to groups. Every group has a rank, and as many leaders as requested if
 * the smallest group has that many ranks. */
static void group(struct trib_shape *shape, int leaders)
{
    uint64_t seed = (uint64_t)(shape->size * 8 + leaders);
    int most = shape->size / leaders > 0 ? shape->size / leaders : 1;

    memset(&made, 0, sizeof(made));
    made.groups = (struct trib_shape_groups){.n = 1 + below(&seed, most < 9 ? most : 9),
                                             .of_rank = made.of_rank,
                                             .leader = made.leader};
    for (int r = 0; r < shape->size; r++) { /* the first have their leaders, others are
                                             * anywhere */
        made.of_rank[r] = r < made.groups.n * leaders ? r % made.groups.n
                                                      : below(&seed, made.groups.n);
        made.count[made.of_rank[r]]++;
    }
    made.groups.leaders = leaders < smallest() ? leaders : smallest();
    draw_leaders(shape->size, made.groups.leaders, &seed);
    shape->groups = &made.groups;
}

/* Return the number of elements that leave a group in the actual schedule. */
static uint64_t crossing(const struct trib_sim *sim, int group)
{
    uint64_t n = 0;

    for (int r = 0; r < sim->shape.size; r++)
        for (uint32_t i = 0; made.of_rank[r] == group && i < sim->lists[r].n_steps;
             i++) {
            const struct trib_step *step = &sim->lists[r].steps[i];

            if (step->op == TRIB_STEP_SEND && made.of_rank[step->peer] != group)
                n += trib_sim_chunk(sim, step->chunk);
        }
    return n;
}

static uint64_t of_group(const struct trib_sim *sim, int group)
{
    uint64_t n = 0;

    for (int l = 0; l < made.groups.leaders; l++)
        n += trib_sim_chunk(sim, (uint32_t)(group * made.groups.leaders + l));
    return n;
}

static int led_by(int rank)
{
    for (int i = 0; i < made.groups.n * made.groups.leaders; i++)
        if (made.leader[i] == rank)
            return i % made.groups.leaders;
    return -1;
}

/* Elements in the chunks of leader l of all groups. */
static uint64_t shard(const struct trib_sim *sim, int l)
{
    uint64_t n = 0;

    for (int g = 0; g < made.groups.n && l >= 0; g++)
        n += trib_sim_chunk(sim, (uint32_t)(g * made.groups.leaders + l));
    return n;
}

/* A rank gives all but its shard to leaders, and of that what other groups finish to
 * those. */
static uint64_t up_of(const struct trib_sim *sim, uint32_t rank)
{
    int group = made.of_rank[rank], l = led_by((int)rank);
    uint64_t own =
        l < 0 ? 0 : trib_sim_chunk(sim, (uint32_t)(group * made.groups.leaders + l));

    return sweep_all(sim) - shard(sim, l) + (l < 0 ? 0 : shard(sim, l) - own);
}

static void allreduce_elements(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                               uint64_t *down)
{
    int group = made.of_rank[rank], l = led_by((int)rank), n = made.groups.n;
    uint64_t own =
        l < 0 ? 0 : trib_sim_chunk(sim, (uint32_t)(group * made.groups.leaders + l));

    *up = up_of(sim, rank);
    *down = (uint64_t)(made.count[group] - 1) * shard(sim, l) + (uint64_t)(n - 1) * own;
    /* Sums of chunks that others finish, and local results to each: 2 (n - 1) / n of
     * all. */
    uint64_t out = sweep_all(sim) - of_group(sim, group) +
                   (uint64_t)(n - 1) * of_group(sim, group);
    if (crossing(sim, group) != out)
        fail_msg("%llu elements leave group %d of %d, not %llu",
                 (unsigned long long)crossing(sim, group), group, n,
                 (unsigned long long)out);
}

static void reduce_elements(const struct trib_sim *sim, uint32_t rank, uint64_t *up,
                            uint64_t *down)
{
    int l = led_by((int)rank);

    *up = up_of(sim, rank);
    *down = l < 0 || rank == (uint32_t)sim->shape.root
                ? 0
                : trib_sim_chunk(
                      sim, (uint32_t)(made.of_rank[rank] * made.groups.leaders + l));
}

TEST(test_allreduce)
{
    for (int leaders = 1; leaders <= LEADERS_MOST; leaders++)
        sweep_offloaded(
            &(struct sweep){"hierarchical", TRIB_ALLREDUCE, false, allreduce_elements},
            group, leaders);
}

TEST(test_reduce)
{
    for (int leaders = 1; leaders <= LEADERS_MOST; leaders++)
        sweep_offloaded(
            &(struct sweep){"hierarchical", TRIB_REDUCE, false, reduce_elements}, group,
            leaders);
}

/* With 16 ranks on 4 hosts whose neighbours are hosts apart, a ring moves the share of
 * all its ranks over each host's wire; the hierarchy moves one host's share. */
TEST(test_less_than_a_ring)
{
    struct trib_shape shape = {.coll = TRIB_ALLREDUCE, .size = 16};
    struct trib_sim sim = {.count = 16 * 60, .rounds = 1}, ring = sim;
    int leader[] = {0, 1, 2, 3};

    made.groups = (struct trib_shape_groups){4, 1, made.of_rank, leader, NULL};
    for (int r = 0; r < 16; r++)
        made.of_rank[r] = r % 4;
    shape.groups = &made.groups;
    assert_true(trib_sim_build(&sim, trib_algo_find("hierarchical"), &shape));
    assert_true(trib_sim_build(&ring, trib_algo_find("ring"), &shape));
    sim.rounds = ring.rounds = 1;
    for (int g = 0; g < 4; g++) {
        assert_int_equal(crossing(&sim, g), 2 * 960 * 3 / 4);
        assert_int_equal(crossing(&ring, g), 4 * 2 * 960 * 15 / 16);
    }
    trib_sim_free(&sim);
    trib_sim_free(&ring);
}

TEST(test_what_it_cannot)
{
    const struct trib_algo *algo = trib_algo_find("hierarchical");
    int of_rank[] = {0, 0, 1, 1, 1}, leader[] = {1, 0, 4, 2};
    struct trib_shape_groups g = {2, 2, of_rank, leader, NULL};
    struct trib_shape shape = {.coll = TRIB_ALLREDUCE, .size = 5};

    assert_false(algo->can(&shape)); /* no groups */
    shape.groups = &g;
    assert_true(algo->can(&shape));
    shape.aggregators = 1;
    assert_false(algo->can(&shape));
    shape.aggregators = 0;
    leader[3] = 4;
    assert_false(algo->can(&shape)); /* leads twice: more leaders than the group has
                                      * ranks */
    leader[3] = 1;
    assert_false(algo->can(&shape)); /* of another group */
    leader[3] = 5;
    assert_false(algo->can(&shape)); /* no rank */
    leader[3] = 3;
    of_rank[0] = 2;
    assert_false(algo->can(&shape)); /* there is no such group */
    of_rank[0] = 0;
    g.leaders = 0;
    assert_false(algo->can(&shape));
    g.leaders = 2;
    g.n = 0;
    assert_false(algo->can(&shape));
}

static const char *chosen(struct trib_shape *shape, struct trib_choice choice)
{
    char why[200];

    choice.slot_bytes = 256 << 10;
    return trib_algo_choose(shape, &choice, why, sizeof(why))->name;
}

/* 4 hosts of 8 ranks: long vectors. Not where there is a rank a host, or one host. */
TEST(test_choice)
{
    struct trib_shape shape = {.coll = TRIB_ALLREDUCE, .size = 32};
    struct trib_choice choice = {.bytes = 16 << 20, .near_load_store = true};
    int leader[16] = {0, 8, 16, 24};

    made.groups = (struct trib_shape_groups){4, 1, made.of_rank, leader, NULL};
    for (int r = 0; r < 32; r++)
        made.of_rank[r] = r / 8;
    assert_string_not_equal(chosen(&shape, choice), "hierarchical");
    shape.groups = &made.groups;
    choice.sharing = 8.0 * 24 / 31;
    assert_string_equal(chosen(&shape, choice),
                        "ring"); /* one leader sums for eight ranks */
    made.groups.leaders = 4;
    for (int i = 0; i < 16; i++)
        leader[i] = i / 4 * 8 + i % 4;
    assert_string_equal(chosen(&shape, choice), "hierarchical");
    choice.sharing = 0;
    assert_string_equal(chosen(&shape, choice), "hierarchical");
    choice.sharing = 8.0 * 24 / 31;
    choice.load_store = true;
    assert_string_not_equal(chosen(&shape, choice), "hierarchical");
    choice.load_store = false;
    memset(made.of_rank, 0, sizeof(made.of_rank));
    made.groups.n = 1;
    assert_string_not_equal(chosen(&shape, choice), "hierarchical");
}

/* Eight groups on two hosts: their leaders share two devices. A ring that connects the
 * groups of a host leaves the host once. */
TEST(test_groups_of_a_host)
{
    const struct trib_algo *ring = trib_algo_find("ring"),
                           *algo = trib_algo_find("hierarchical");
    struct trib_shape shape = {.coll = TRIB_ALLREDUCE, .size = 32};
    struct trib_choice choice = {.bytes = 16 << 20,
                                 .near_load_store = true,
                                 .sharing = 16.0 * 16 / 31,
                                 .slot_bytes = 1 << 18};
    int host[32], leader[8];

    for (int r = 0; r < 32; r++) {
        host[r] = r / 16;
        made.of_rank[r] = r / 16 * 4 + r % 4;
        leader[made.of_rank[r]] = r;
    }
    shape.groups = &made.groups;
    made.groups = (struct trib_shape_groups){8, 1, made.of_rank, leader, NULL};
    const double as_hosts = algo->cost(&shape, &choice);
    made.groups.host = host;
    assert_true(algo->cost(&shape, &choice) > as_hosts);
    const double of_groups = ring->cost(&shape, &choice);
    made.groups = (struct trib_shape_groups){2, 1, host, leader, NULL};
    assert_true(ring->cost(&shape, &choice) == of_groups);
}
