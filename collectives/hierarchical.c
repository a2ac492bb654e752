/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hierarchical: groups of near ranks, such as the ranks of a host. Leaders sum for
 * their group and exchange sums with the leaders of other groups. The traffic between
 * groups thus does not grow with the ranks of a group.
 *
 *     groups {0 1} {2 3}, one leader each, chunk 0 of 2; * finishes it
 *
 *         up   1 -> 0* <- 2 <- 3          down   1 <- 0* -> 2 -> 3
 *
 * A round has a chunk for each group and leader number. Chunk c = g * leaders + l is
 * summed in every group by its leader l, and finished by leader l of group g.
 *
 * Why it cannot deadlock. Within a group, members and leaders process the chunks in one
 * order, which ends with the group's own chunk. Between two leaders there is one chunk
 * per round in each direction. A finisher's chunk is last in its order and waits for
 * sums from earlier positions of other orders. Results follow everything that goes up,
 * again in one order.
 *
 * Leaders exchange directly. A ring of n leaders would send the same bytes and messages
 * but take 2 (n - 1) hops per chunk instead of 2. The price is a connection to the
 * leader of each group, and n - 1 senders per link.
 *
 * Sums are in rank order of the group. A finisher inserts the sums of other leaders
 * among its own group's ranks, each at the leader's rank.
 *
 *     paper      N. T. Karonis et al., "Exploiting hierarchy in parallel computer
 *                networks to optimize collective operation performance", IPDPS 2000
 *                (MPICH-G2: levels); A. Gibiansky, "Bringing HPC techniques to deep
 *                learning", 2017, and Horovod (in the host, between hosts, in the host)
 */
#include "collectives/builder.h"

#include <assert.h>
#include <math.h>

/* Supported collectives. */
#define COLLS \
    (TRIB_COLL_BIT(TRIB_ALLREDUCE) | TRIB_COLL_BIT(TRIB_REDUCE))

/* The position of a rank in the groups. */
struct place {
    const struct trib_shape *shape;
    const struct trib_shape_groups *groups;
    int group; /* of this rank */
    int lead;  /* leader number; -1: not a leader */
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

/* Return true if every leader belongs to its group and no rank leads twice. Then each
 * group has at least as many ranks as leaders. */
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

/* Return the i-th group in this group's order, which ends with the group itself. */
static int group_at(const struct place *p, int i)
{
    return (p->group + 1 + i) % p->groups->n;
}

static uint32_t leader_at(const struct place *p, int group, int l)
{
    return (uint32_t)leader_of(p->groups, group, l);
}

/* Send each leader of this group its chunks; each rank begins with a different leader.
 * STABLE: a chunk is overwritten only by a result that includes it. */
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

/* Sum a chunk of all ranks of the group and, if it is finished here, of the other
 * leaders, in one k-ary sum. */
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

/* Send the group's sums to their finishers, then finish this leader's chunk. */
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

/* Send to the other leaders first, because they forward the result. */
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

/* Receive in the leaders' sending order: their own chunk first, then the others from
 * the end of the order. */
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

/* Return how many leaders share a host's device for traffic to other hosts: a host has
 * several groups if groups are not hosts. */
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

/* Within the group a leader receives a shard of each rank and returns it; between
 * groups shards move as in `direct`. Add both: chunks overlap, but on the same
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

    /* No gain: a level has only one member. */
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
