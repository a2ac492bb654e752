/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hierarchical: groups of near ranks, such as those of a host. Leaders sum for their
 * group, and exchange sums with the leaders of the other groups, so that what crosses
 * between groups does not grow with their ranks.
 *
 *     groups {0 1} {2 3}, one leader each, chunk 0 of 2; * finishes it
 *
 *         up   1 -> 0* <- 2 <- 3          down   1 <- 0* -> 2 -> 3
 *
 * A round has a chunk for each group and each leader number: chunk c = g * leaders + l
 * is summed in every group by its leader l, and finished by leader l of group g.
 *
 * Why it cannot dead-lock. Within a group, members and leaders go through the chunks in
 * one order that ends with the group's own; between two leaders there is one chunk a
 * round each way. A finisher, which is at the last place of its order, waits for sums
 * from earlier places of other orders; results come down behind all that goes up, and
 * in one order again.
 *
 * Sums are in the order of ranks of the group; a finisher takes the sums of other
 * leaders in among its own group's ranks, each by the leader's rank.
 *
 *     paper      N. T. Karonis et al., "Exploiting hierarchy in parallel computer
 *                networks to optimize collective operation performance", IPDPS 2000
 *                (MPICH-G2: levels); A. Gibiansky, "Bringing HPC techniques to deep
 *                learning", 2017, and Horovod (in the host, between hosts, in the host)
 */
#include "collectives/builder.h"

#include <assert.h>
#include <math.h>

/* The collectives that it builds. */
#define COLLS \
    (TRIB_COLL_BIT(TRIB_ALLREDUCE) | TRIB_COLL_BIT(TRIB_REDUCE))

/* Numbers that a builder needs again and again. */
struct place {
    const struct trib_shape *shape;
    const struct trib_shape_groups *groups;
    int group; /* own */
    int lead;  /* the number of this leader; -1: it is none */
};

static int leader_of(const struct trib_shape_groups *groups, int group, int l)
{
    return groups->leader[group * groups->leaders + l];
}

static int lead_of(const struct trib_shape_groups *groups, int rank)
{
    for (int l = 0; l < groups->leaders; l++)
        if (leader_of(groups, groups->of_rank[rank], l) == rank)
            return l;
    return -1;
}

/* Leaders are of their group, and no rank leads twice: then no group is smaller. */
static bool leaders_valid(const struct trib_shape *shape)
{
    const struct trib_shape_groups *groups = shape->groups;

    for (int i = 0; i < groups->n * groups->leaders; i++) {
        int rank = groups->leader[i];

        if (rank < 0 || rank >= shape->size ||
            groups->of_rank[rank] != i / groups->leaders ||
            lead_of(groups, rank) != i % groups->leaders)
            return false;
    }
    return true;
}

static bool can(const struct trib_shape *shape)
{
    const struct trib_shape_groups *groups = shape->groups;

    if (!trib_shape_valid(shape) || !groups || groups->n < 1 || groups->leaders < 1)
        return false;
    for (int r = 0; r < shape->size; r++)
        if (groups->of_rank[r] < 0 || groups->of_rank[r] >= groups->n)
            return false;
    return leaders_valid(shape);
}

static uint32_t chunk_of(const struct place *p, int group, int l)
{
    return (uint32_t)(group * p->groups->leaders + l);
}

/* The i-th group of this group's order; the last is its own. */
static int group_at(const struct place *p, int i)
{
    return (p->group + 1 + i) % p->groups->n;
}

static uint32_t leader_at(const struct place *p, int group, int l)
{
    return (uint32_t)leader_of(p->groups, group, l);
}

/* To each leader of the own group its chunks, beginning at another one than the
 * neighbours do. STABLE: the result that overwrites a chunk contains what was sent. */
static void contribute(const struct place *p, struct trib_schedule *s)
{
    int leaders = p->groups->leaders;

    for (int i = 0; i < p->groups->n; i++)
        for (int k = 0; k < leaders; k++) {
            int l = (p->shape->rank + k) % leaders;

            if (l != p->lead)
                trib_build_send(s, leader_at(p, p->group, l),
                                chunk_of(p, group_at(p, i), l), TRIB_STEP_STABLE,
                                TRIB_STEP_NO_DEP);
        }
}

/* Sum a chunk of all ranks of the group and, where it is finished here, of the other
 * leaders: one run, which the engine sums at once. */
static uint32_t sum_chunk(const struct place *p, struct trib_schedule *s, int group)
{
    uint32_t dep = TRIB_STEP_NO_DEP;

    for (int r = 0; r < p->shape->size; r++) {
        int of = p->groups->of_rank[r];
        bool member = of == p->group;
        bool leader = group == p->group && leader_at(p, of, p->lead) == (uint32_t)r;

        if (r != p->shape->rank && (member || leader))
            dep = trib_build_recv_reduce(s, (uint32_t)r, chunk_of(p, group, p->lead),
                                         dep);
    }
    return dep;
}

/* The sums of the group to those who finish them; then the own chunk is finished. */
static uint32_t lead_up(const struct place *p, struct trib_schedule *s)
{
    int own = p->groups->n - 1;

    for (int i = 0; i < own; i++) {
        int group = group_at(p, i);
        uint32_t dep = sum_chunk(p, s, group);

        trib_build_send(s, leader_at(p, group, p->lead), chunk_of(p, group, p->lead),
                        TRIB_STEP_STABLE, dep);
    }
    return trib_build_scale(s, p->shape, chunk_of(p, p->group, p->lead),
                            sum_chunk(p, s, p->group));
}

static void give_members(const struct place *p, struct trib_schedule *s, int group,
                         struct trib_step how)
{
    for (int i = 1; i < p->shape->size; i++) {
        uint32_t peer = trib_shape_peer(p->shape, i);

        if (p->groups->of_rank[peer] == p->group)
            trib_build_send(s, peer, chunk_of(p, group, p->lead), how.flags, how.dep);
    }
}

/* First to the other leaders, who have others to tell. */
static void lead_down(const struct place *p, struct trib_schedule *s, uint32_t done)
{
    for (int i = 0; i < p->groups->n - 1; i++)
        trib_build_send(s, leader_at(p, group_at(p, i), p->lead),
                        chunk_of(p, p->group, p->lead), TRIB_STEP_FINAL, done);
    give_members(p, s, p->group,
                 (struct trib_step){.flags = TRIB_STEP_FINAL, .dep = done});
    for (int i = p->groups->n - 2; i >= 0; i--) {
        int group = group_at(p, i);
        uint32_t got =
            trib_build_recv_copy(s, leader_at(p, group, p->lead),
                                 chunk_of(p, group, p->lead), TRIB_STEP_NO_DEP);

        give_members(p, s, group,
                     (struct trib_step){.flags = TRIB_STEP_FINAL | TRIB_STEP_FORWARD,
                                        .dep = got});
    }
}

/* In the order in which leaders give: their own chunk, then from the last of the order
 * on. */
static void collect(const struct place *p, struct trib_schedule *s)
{
    for (int i = p->groups->n - 1; i >= 0; i--)
        for (int l = 0; l < p->groups->leaders; l++)
            if (l != p->lead)
                trib_build_recv_copy(s, leader_at(p, p->group, l),
                                     chunk_of(p, group_at(p, i), l), TRIB_STEP_NO_DEP);
}

static void build_allreduce(const struct place *p, struct trib_schedule *s)
{
    contribute(p, s);
    if (p->lead >= 0)
        lead_down(p, s, lead_up(p, s));
    collect(p, s);
}

/* The finisher of a chunk sends it to the root. */
static void build_reduce(const struct place *p, struct trib_schedule *s)
{
    uint32_t root = (uint32_t)p->shape->root;

    contribute(p, s);
    if (p->lead >= 0) {
        uint32_t done = lead_up(p, s);

        if (p->shape->rank != p->shape->root)
            trib_build_send(s, root, chunk_of(p, p->group, p->lead), TRIB_STEP_FINAL,
                            done);
    }
    if (p->shape->rank != p->shape->root)
        return;
    for (uint32_t c = 0; c < s->n_chunks; c++)
        if (p->groups->leader[c] != p->shape->root)
            trib_build_recv_copy(s, (uint32_t)p->groups->leader[c], c,
                                 TRIB_STEP_NO_DEP);
}

static trib_status_t build(const struct trib_shape *shape, struct trib_schedule *out)
{
    assert(can(shape));
    if (!(COLLS & TRIB_COLL_BIT(shape->coll)))
        return TRIB_ERR_UNSUPPORTED;
    if (shape->size == 1)
        return trib_build_alone(shape, out);
    const struct trib_shape_groups *groups = shape->groups;
    const struct place p = {
        .shape = shape,
        .groups = groups,
        .group = groups->of_rank[shape->rank],
        .lead = lead_of(groups, shape->rank),
    };

    trib_schedule_init(out, (uint32_t)(groups->n * groups->leaders));
    if (shape->coll == TRIB_ALLREDUCE)
        build_allreduce(&p, out);
    else
        build_reduce(&p, out);
    return trib_build_end(out);
}

static int largest_group(const struct trib_shape *shape)
{
    int largest = 0;

    for (int g = 0; g < shape->groups->n; g++) {
        int ranks = 0;

        for (int r = 0; r < shape->size; r++)
            ranks += shape->groups->of_rank[r] == g;
        largest = ranks > largest ? ranks : largest;
    }
    return largest;
}

/* Leaders that share the device of a host for what they tell those of other hosts: a
 * host has several groups, where these are not hosts. */
static double sharing(const struct trib_shape *shape)
{
    const struct trib_shape_groups *groups = shape->groups;
    int most = 1;

    for (int h = 0; groups->host && h < groups->n; h++) {
        int n = 0;

        for (int g = 0; g < groups->n; g++)
            n += groups->host[leader_of(groups, g, 0)] == h;
        most = n > most ? n : most;
    }
    return (double)groups->leaders * most * (groups->n - most) / (groups->n - 1);
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* In the group a leader takes a shard of each rank and gives it back; between groups it
 * moves the shard as in `direct`. The two are added: chunks overlap, but on the same
 * cores. */
static double cost(const struct trib_shape *shape, const struct trib_choice *choice)
{
    const double groups = shape->groups->n, leaders = shape->groups->leaders;
    const double ranks = largest_group(shape), n = (double)choice->bytes;
    const double rounds = trib_choice_rounds(choice, n, groups * leaders);
    const bool back = shape->coll == TRIB_ALLREDUCE;
    const double near = larger((ranks - 1) / leaders, 1) * n;
    const double far = (groups - 1) / groups * n / leaders *
                       trib_choice_uneven(choice, groups - 1);
    struct trib_choice inside = *choice, outside = *choice;
    struct trib_cost_work in = {
        .hops = 2,
        .messages = (back ? 2 : 1) * larger(ranks - 1, leaders) * groups * rounds,
        .up = near,
        .down = back ? near : 0,
        .summed = ranks * n / leaders,
    };
    struct trib_cost_work between = {
        .hops = 2,
        .messages = (back ? 2 : 1) * (groups - 1) * rounds,
        .up = far,
        .down = back ? far : n / groups,
        .summed = n / leaders,
    };

    /* There is nothing to gain: a level has one member. */
    if (shape->groups->n < 2 || ranks < 2)
        return (double)INFINITY;
    inside.load_store |= choice->near_load_store;
    inside.near = choice->near_load_store;
    inside.sharing = 0;
    outside.sharing = choice->sharing > 0 ? sharing(shape) : 0;
    return trib_choice_cost(&inside, &in, 2) + trib_choice_cost(&outside, &between, 2);
}

const struct trib_algo trib_algo_hierarchical = {
    .name = "hierarchical",
    .detail =
        "sums in each host (or NUMA node: TRIB_GROUPS), then between leaders of hosts; "
        "several ranks on each of several hosts",
    .groups = true,
    .colls = COLLS,
    .can = can,
    .cost = cost,
    .build = build,
};
