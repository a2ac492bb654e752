/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/groups.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

_Static_assert(sizeof(struct trib_rank_place) == 112, "ranks send it to each other");

#define KINDS_MAX 8

static int number_compare(int32_t a, int32_t b)
{
    return (a > b) - (a < b);
}

static int host_compare(const struct trib_rank_place *a,
                        const struct trib_rank_place *b)
{
    return strcmp(a->host, b->host);
}

static int numa_compare(const struct trib_rank_place *a,
                        const struct trib_rank_place *b)
{
    int hosts = host_compare(a, b);

    return hosts ? hosts : number_compare(a->numa, b->numa);
}

static int nic_compare(const struct trib_rank_place *a, const struct trib_rank_place *b)
{
    int hosts = host_compare(a, b);

    return hosts ? hosts : strcmp(a->nic, b->nic);
}

static bool host_known(const struct trib_rank_place *place)
{
    (void)place;
    return true;
}

static bool numa_known(const struct trib_rank_place *place)
{
    return place->numa >= 0;
}

static bool nic_known(const struct trib_rank_place *place)
{
    return place->nic[0] != '\0';
}

static const struct trib_group_kind by_host = {
    .name = "host",
    .detail = "ranks on one host",
    .compare = host_compare,
    .known = host_known,
};
static const struct trib_group_kind by_numa = {
    .name = "numa",
    .detail = "ranks on one NUMA node",
    .compare = numa_compare,
    .known = numa_known,
};
static const struct trib_group_kind by_nic = {
    .name = "nic",
    .detail = "ranks near the same network device",
    .compare = nic_compare,
    .known = nic_known,
};

const struct trib_group_kind *const trib_group_kinds[] = {&by_host, &by_numa, &by_nic,
                                                          NULL};

/* Sort key of a rank. */
struct member {
    const struct trib_group_kind *kind;
    const struct trib_rank_place *place;
    int rank;
};

static int member_compare(const void *a, const void *b)
{
    const struct member *x = a;
    const struct member *y = b;
    int places = x->kind->compare(x->place, y->place);

    return places ? places : number_compare(x->rank, y->rank);
}

/* Allocate the arrays of the groups as one block. There are at most as many groups as
 * ranks. */
static bool make_room(struct trib_groups *g)
{
    size_t size = (size_t)g->size;
    int *block = malloc((3 * size + 1) * sizeof(*block));

    if (!block)
        return false;
    g->of_rank = block;
    g->members = block + size;
    g->first = block + 2 * size;
    return true;
}

/* Number the groups in the order of their lowest ranks. */
static void number_groups(const struct member *sorted, int *lowest,
                          struct trib_groups *g)
{
    for (int i = 0; i < g->size; i++) {
        bool same =
            i > 0 && g->kind->compare(sorted[i - 1].place, sorted[i].place) == 0;
        lowest[sorted[i].rank] = same ? lowest[sorted[i - 1].rank] : sorted[i].rank;
    }
    g->n = 0;
    for (int rank = 0; rank < g->size; rank++)
        g->of_rank[rank] = lowest[rank] == rank ? g->n++ : g->of_rank[lowest[rank]];
}

static void list_members(struct trib_groups *g)
{
    memset(g->first, 0, ((size_t)g->n + 1) * sizeof(*g->first));
    for (int rank = 0; rank < g->size; rank++)
        g->first[g->of_rank[rank] + 1]++;
    g->smallest = g->size;
    g->largest = 0;
    for (int i = 0; i < g->n; i++) {
        int count = g->first[i + 1];
        g->smallest = count < g->smallest ? count : g->smallest;
        g->largest = count > g->largest ? count : g->largest;
        g->first[i + 1] += g->first[i];
    }
    /* Filling advances each group's start to its end; restore it afterwards. */
    for (int rank = 0; rank < g->size; rank++)
        g->members[g->first[g->of_rank[rank]]++] = rank;
    memmove(g->first + 1, g->first, (size_t)g->n * sizeof(*g->first));
    g->first[0] = 0;
    assert(g->first[g->n] == g->size);
}

static trib_status_t divide(const struct trib_rank_place *places, int size,
                            const struct trib_group_kind *kind, struct trib_groups *out)
{
    struct member *sorted = malloc((size_t)size * sizeof(*sorted));
    int *lowest = malloc((size_t)size * sizeof(*lowest));
    struct trib_groups g = {.kind = kind, .size = size};
    bool room = sorted && lowest && make_room(&g);

    if (room) {
        for (int rank = 0; rank < size; rank++)
            sorted[rank] = (struct member){kind, &places[rank], rank};
        qsort(sorted, (size_t)size, sizeof(*sorted), member_compare);
        number_groups(sorted, lowest, &g);
        list_members(&g);
        *out = g;
    }
    free(sorted);
    free(lowest);
    return room ? TRIB_OK : TRIB_ERR_NO_MEMORY;
}

static bool know_their_node(const struct trib_rank_place *places, int size)
{
    for (int rank = 0; rank < size; rank++)
        if (!numa_known(&places[rank]))
            return false;
    return true;
}

/*
 * Messages between hosts cost most, so leaders per host save most. On one host the cost
 * is the memory of another NUMA node; a node with a single rank needs no leader.
 */
static trib_status_t divide_auto(const struct trib_rank_place *places, int size,
                                 struct trib_groups *out)
{
    struct trib_groups hosts, nodes;
    trib_status_t status = divide(places, size, &by_host, &hosts);

    if (status != TRIB_OK)
        return status;
    *out = hosts;
    if (hosts.n > 1 || !know_their_node(places, size))
        return TRIB_OK;
    status = divide(places, size, &by_numa, &nodes);
    if (status != TRIB_OK) {
        trib_groups_free(&hosts);
        return status;
    }
    bool better = nodes.n > 1 && nodes.smallest > 1;
    trib_groups_free(better ? &hosts : &nodes);
    *out = better ? nodes : hosts;
    return TRIB_OK;
}

static trib_status_t check_places(const struct trib_rank_place *places, int size,
                                  struct trib_error *err)
{
    if (size < 1)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "groups of %d ranks: at least one is needed", size);
    for (int rank = 0; rank < size; rank++) {
        const struct trib_rank_place *p = &places[rank];
        if (!memchr(p->host, 0, sizeof(p->host)) || !memchr(p->nic, 0, sizeof(p->nic)))
            return trib_fail(err, TRIB_ERR_INVALID,
                             "rank %d sent an unterminated name of its host or network "
                             "device: does it run another version?",
                             rank);
    }
    return TRIB_OK;
}

static trib_status_t unknown_kind(const char *kind, struct trib_error *err)
{
    const char *names[KINDS_MAX + 1] = {TRIB_AUTO};
    char list[128] = TRIB_AUTO;
    size_t n = 1;

    for (; trib_group_kinds[n - 1] && n <= KINDS_MAX; n++) {
        names[n] = trib_group_kinds[n - 1]->name;
        trib_text_append(list, sizeof(list), ", %s", names[n]);
    }
    const char *nearest = trib_text_nearest(kind, names, n);
    if (nearest)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "unknown kind of groups \"%.40s\"; did you mean \"%s\"?", kind,
                         nearest);
    return trib_fail(err, TRIB_ERR_INVALID,
                     "unknown kind of groups \"%.40s\"; use one of %s", kind, list);
}

static const struct trib_group_kind *find_kind(const char *name)
{
    int i = 0;

    while (trib_group_kinds[i] && strcmp(trib_group_kinds[i]->name, name) != 0)
        i++;
    return trib_group_kinds[i];
}

trib_status_t trib_groups_make(const struct trib_rank_place *places, int size,
                               const char *kind, struct trib_error *err,
                               struct trib_groups *out)
{
    trib_status_t status = check_places(places, size, err);
    const struct trib_group_kind *k = find_kind(kind);

    if (status != TRIB_OK)
        return status;
    if (trib_text_is_auto(kind)) {
        status = divide_auto(places, size, out);
    } else {
        if (!k)
            return unknown_kind(kind, err);
        status = divide(places, size, k, out);
    }
    if (status == TRIB_ERR_NO_MEMORY)
        trib_fail(err, status, "no memory for groups of %d ranks", size);
    return status;
}

int trib_groups_unplaced(const struct trib_groups *hosts,
                         const struct trib_rank_place *places, const char *kind)
{
    const struct trib_group_kind *k = find_kind(kind);

    for (int rank = 0; k && rank < hosts->size; rank++)
        if (!k->known(&places[rank]) &&
            trib_groups_count(hosts, hosts->of_rank[rank]) > 1)
            return rank;
    return -1;
}

void trib_groups_free(struct trib_groups *groups)
{
    free(groups->of_rank);
    *groups = (struct trib_groups){0};
}
