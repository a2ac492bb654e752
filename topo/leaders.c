/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/leaders.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Minimum gain for which more leaders are worth their messages. */
#define WORTH 1.05

/* --- number of leaders --- */

static int ceil_div(int a, int b)
{
    return (a + b - 1) / b;
}

/* True if ranks of the largest group share cores. */
static bool crowded(const struct trib_leaders_ask *ask)
{
    return ask->cores > 0 && ask->cores < ask->largest;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Up, each rank writes a shard to each leader, and a leader reads one from each rank;
 * down, the reverse. `turns`: leaders that run in turn on one core. */
static double inside_us(const struct trib_leaders_ask *ask, int leaders, int turns)
{
    const struct trib_cost_model *model =
        ask->inside ? ask->inside : trib_cost_default(TRIB_COST_LOAD_STORE);
    double ranks = ask->largest;
    double bytes = (double)ask->bytes;
    double moved = larger((ranks - 1) / leaders, 1) * bytes;
    struct trib_cost_work work = {
        .hops = 2,
        .messages = 2 * larger(ranks - 1, leaders),
        .up = moved,
        .down = moved,
        .summed = ranks * bytes / leaders * turns,
    };

    if (ask->largest < 2)
        return 0;
    return trib_cost_us(model, &work, crowded(ask));
}

/* Each leader finishes its part of the shard for the other groups' leaders. `sharing`:
 * leaders per device. On shared cores a message also costs the switch to the waiting
 * process, so short vectors favour few leaders. */
static double between_us(const struct trib_leaders_ask *ask, int leaders, int turns,
                         int sharing)
{
    const enum trib_cost_kind kind =
        crowded(ask) ? TRIB_COST_SHARED_CORES : TRIB_COST_NETWORK;
    const struct trib_cost_model *model =
        ask->between ? ask->between : trib_cost_default(kind);
    double groups = ask->groups;
    double shard = (double)ask->bytes / leaders;
    double moved = (groups - 1) / groups * shard * sharing;
    struct trib_cost_work work = {
        .hops = 2,
        .messages = 2 * (groups - 1) * larger(turns, sharing),
        .up = moved,
        .down = moved,
        .summed = shard * turns,
    };

    if (ask->groups < 2)
        return 0;
    return trib_cost_us(model, &work, crowded(ask));
}

double trib_leaders_us(const struct trib_leaders_ask *ask, int leaders)
{
    assert(leaders >= 1 && ask->groups >= 1 && ask->largest >= 1);
    int turns = ask->cores > 0 ? ceil_div(leaders, ask->cores) : 1;
    int sharing = ceil_div(leaders, ask->nics > 0 ? ask->nics : 1);

    return inside_us(ask, leaders, turns) + between_us(ask, leaders, turns, sharing);
}

int trib_leaders_choose(const struct trib_leaders_ask *ask)
{
    int step = ask->nics > 0 ? ask->nics : 1;
    double least = 0;

    assert(ask->smallest >= 1);
    if (ask->smallest <= step)
        return ask->smallest;
    for (int n = step; n <= ask->smallest; n += step) {
        double us = trib_leaders_us(ask, n);
        least = n == step || us < least ? us : least;
    }
    int n = step;
    while (trib_leaders_us(ask, n) > least * WORTH)
        n += step;
    return n;
}

/* --- devices of a group --- */

/* Compare names with numeric order: mlx5_2 before mlx5_10, so that the l-th device is
 * the same on all hosts of a kind. */
static int name_compare(const void *a, const void *b)
{
    return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

/* List each device name of a group once, sorted; names has room for one per rank. */
static int list_nics(const struct trib_groups *groups,
                     const struct trib_rank_place *places, int g, const char **names)
{
    int n = 0;
    int unique = 0;

    for (int i = groups->first[g]; i < groups->first[g + 1]; i++)
        if (places[groups->members[i]].nic[0])
            names[n++] = places[groups->members[i]].nic;
    qsort(names, (size_t)n, sizeof(*names), name_compare);
    for (int i = 0; i < n; i++)
        if (unique == 0 || strcmp(names[unique - 1], names[i]) != 0)
            names[unique++] = names[i];
    return unique;
}

static int count_nics(const struct trib_groups *groups,
                      const struct trib_rank_place *places, int g)
{
    const int *members = groups->members + groups->first[g];
    int n = 0;

    for (int i = 0; i < trib_groups_count(groups, g); i++) {
        const char *nic = places[members[i]].nic;
        int before = 0;
        while (before < i && strcmp(places[members[before]].nic, nic) != 0)
            before++;
        n += nic[0] && before == i;
    }
    return n;
}

void trib_leaders_ask_of(const struct trib_groups *groups,
                         const struct trib_rank_place *places,
                         struct trib_leaders_ask *out)
{
    *out = (struct trib_leaders_ask){
        .groups = groups->n, .smallest = groups->smallest, .largest = groups->largest};
    for (int g = 0; g < groups->n; g++) {
        int n = count_nics(groups, places, g);
        if (g == 0 || n < out->nics)
            out->nics = n;
    }
}

/* --- choice of leaders --- */

struct appointment {
    const struct trib_rank_place *places;
    const int *members; /* members of one group */
    int n_members;
    const char **nics;
    int n_nics;
    int *leaders; /* so far */
    int n;
};

/* Smaller is better; fields are compared in this order. */
struct merit {
    int other_nic;
    int same_package; /* existing leaders with the same package */
    int same_numa;
    int same_l3;
};

static int merit_compare(const struct merit *a, const struct merit *b)
{
    if (a->other_nic != b->other_nic)
        return a->other_nic - b->other_nic;
    if (a->same_package != b->same_package)
        return a->same_package - b->same_package;
    if (a->same_numa != b->same_numa)
        return a->same_numa - b->same_numa;
    return a->same_l3 - b->same_l3;
}

static struct merit weigh(const struct appointment *a, const struct trib_rank_place *p)
{
    struct merit merit = {0};

    if (a->n_nics > 0)
        merit.other_nic = strcmp(p->nic, a->nics[a->n % a->n_nics]) != 0;
    for (int i = 0; i < a->n; i++) {
        const struct trib_rank_place *leader = &a->places[a->leaders[i]];
        merit.same_package += leader->package == p->package;
        merit.same_numa += leader->numa == p->numa;
        merit.same_l3 += leader->l3 == p->l3;
    }
    return merit;
}

static bool leads(const struct appointment *a, int rank)
{
    for (int i = 0; i < a->n; i++)
        if (a->leaders[i] == rank)
            return true;
    return false;
}

/* Ranks increase, so the lowest of equals is chosen. */
static void appoint_next(struct appointment *a)
{
    struct merit best = {0};
    int rank = -1;

    for (int i = 0; i < a->n_members; i++) {
        if (leads(a, a->members[i]))
            continue;
        struct merit merit = weigh(a, &a->places[a->members[i]]);
        if (rank < 0 || merit_compare(&merit, &best) < 0) {
            best = merit;
            rank = a->members[i];
        }
    }
    assert(rank >= 0);
    a->leaders[a->n++] = rank;
}

static trib_status_t too_many(const struct trib_groups *groups, int n,
                              struct trib_error *err)
{
    int g = 0;

    if (n < 1)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "%d leaders: a group needs at least one", n);
    while (trib_groups_count(groups, g) != groups->smallest)
        g++;
    return trib_fail(
        err, TRIB_ERR_INVALID,
        "%d leaders: the group of rank %d (by %s) has %d rank%s; take at most "
        "%d leader%s",
        n, groups->members[groups->first[g]], groups->kind->name, groups->smallest,
        groups->smallest == 1 ? "" : "s", groups->smallest,
        groups->smallest == 1 ? "" : "s");
}

trib_status_t trib_leaders_appoint(const struct trib_groups *groups,
                                   const struct trib_rank_place *places, int n,
                                   struct trib_error *err, struct trib_leaders *out)
{
    if (n < 1 || n > groups->smallest)
        return too_many(groups, n, err);
    const char **nics = malloc((size_t)groups->largest * sizeof(*nics));
    int *rank = calloc((size_t)groups->n * (size_t)n, sizeof(*rank));
    if (!nics || !rank) {
        free(nics);
        free(rank);
        return trib_fail(err, TRIB_ERR_NO_MEMORY,
                         "no memory for %d leaders of %d groups", n, groups->n);
    }
    for (int g = 0; g < groups->n; g++) {
        struct appointment a = {
            .places = places,
            .members = groups->members + groups->first[g],
            .n_members = trib_groups_count(groups, g),
            .nics = nics,
            .n_nics = list_nics(groups, places, g, nics),
            .leaders = rank + (size_t)g * (size_t)n,
        };
        while (a.n < n)
            appoint_next(&a);
    }
    free(nics);
    *out = (struct trib_leaders){.n = n, .rank = rank};
    return TRIB_OK;
}

void trib_leaders_free(struct trib_leaders *leaders)
{
    free(leaders->rank);
    *leaders = (struct trib_leaders){0};
}
