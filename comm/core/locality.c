/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/core/locality.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tributary/topology.h>

#include "base/text.h"
#include "comm/core/communicator.h"
#include "topo/layout.h"
#include "topo/rdma.h"

struct trib_locality {
    struct trib_groups hosts;
    struct trib_groups groups; /* as selected by TRIB_GROUPS; these have leaders */
    struct trib_rank_place *places;
    struct trib_leaders_ask ask; /* complete except for the vector's size */
    bool maps;
};

static void count_device(void *arg, const struct trib_rdma_port *port)
{
    *(int *)arg += port->port == 1;
}

static const char *kind_of(const struct trib_comm *comm)
{
    static const char *const names[] = {[TRIB_GROUPS_HOST] = "host",
                                        [TRIB_GROUPS_NUMA] = "numa",
                                        [TRIB_GROUPS_NIC] = "nic",
                                        [TRIB_GROUPS_AUTO] = TRIB_AUTO};

    return names[comm->cfg.groups];
}

static bool may_use_groups(const char *algorithm)
{
    const struct trib_algo *algo = trib_algo_find(algorithm);

    return trib_text_is_auto(algorithm) || (algo && algo->groups);
}

/* Return true if reading the topology with hwloc pays off: places decide on groups and
 * on the leaders of hosts. A plan may request an algorithm other than
 * TRIB_ALGORITHM. */
static bool worth_a_look(const struct trib_comm *comm, bool bound, int ours)
{
    const int groups = comm->cfg.groups;
    const bool one_host = ours == comm->engine.size;
    int devices = 0;

    if (comm->aggregators || ours < 2)
        return false;
    if (groups == TRIB_GROUPS_NUMA || groups == TRIB_GROUPS_NIC ||
        (groups == TRIB_GROUPS_AUTO && one_host))
        return true;
    if (one_host || !bound || !may_use_groups(comm->cfg.algorithm))
        return false;
    (void)trib_rdma_each("", count_device, &devices);
    return devices > 1;
}

/* Clear values that may be wrong: the NUMA node, if there are several and only /sys was
 * read; the device, if there are several and the rank may run on any core. */
static void forget_guesses(const struct trib_layout *layout, bool bound,
                           struct trib_rank_place *place)
{
    if (strcmp(layout->machine.source, "hwloc") != 0 && layout->n_numa > 1)
        place->numa = -1;
    if (layout->n_nics == 1)
        memcpy(place->nic, layout->nics[0].name, sizeof(place->nic));
    else if (!bound)
        memset(place->nic, 0, sizeof(place->nic));
}

void trib_locality_probe(const struct trib_comm *comm, const cpu_set_t *cpus, int ours,
                         struct trib_locality_report *fact)
{
    const bool bound = CPU_COUNT(cpus) < sysconf(_SC_NPROCESSORS_ONLN);
    struct trib_layout layout;
    struct trib_rank_place place;

    fact->package = fact->numa = fact->l3 = -1;
    memset(fact->nic, 0, sizeof(fact->nic));
    if (!worth_a_look(comm, bound, ours) ||
        trib_layout_read(NULL, NULL, &layout) != TRIB_OK)
        return;
    trib_layout_bound(&layout, cpus, &place);
    forget_guesses(&layout, bound, &place);
    trib_layout_free(&layout);
    fact->package = place.package;
    fact->numa = place.numa;
    fact->l3 = place.l3;
    memcpy(fact->nic, place.nic, sizeof(fact->nic));
}

static void describe(struct trib_locality *locality,
                     const struct trib_locality_report *facts, int size)
{
    locality->maps = true;
    for (int r = 0; r < size; r++) {
        struct trib_rank_place *place = &locality->places[r];

        /* Identify a host by its lowest rank: two hosts may have the same host name. */
        snprintf(place->host, sizeof(place->host), "%d", (int)facts[r].first);
        snprintf(place->nic, sizeof(place->nic), "%.31s", facts[r].nic);
        place->package = facts[r].package;
        place->numa = facts[r].numa;
        place->l3 = facts[r].l3;
        locality->maps &= facts[r].maps != 0;
        if (r == 0 || facts[r].cores < locality->ask.cores)
            locality->ask.cores = facts[r].cores;
    }
}

/* Build the same groups on all ranks; rank 0 warns if they differ from the request. */
static trib_status_t make_groups(struct trib_comm *comm, struct trib_locality *locality,
                                 int size)
{
    const char *kind = kind_of(comm);
    const bool numa = comm->cfg.groups == TRIB_GROUPS_NUMA;
    trib_status_t st =
        trib_groups_make(locality->places, size, "host", &comm->err, &locality->hosts);

    if (st != TRIB_OK)
        return st;
    const int rank = trib_groups_unplaced(&locality->hosts, locality->places, kind);
    if (rank >= 0)
        kind = "host";
    if (rank >= 0 && comm->engine.rank == 0)
        trib_log(
            &comm->log, TRIB_LOG_WARN, "core",
            "TRIB_GROUPS=%s: rank %d (host %.64s) does not know %s, so groups fall "
            "back to hosts; bind each rank to the cores of one (trib-run --bind core) "
            "with a library built with hwloc, or set TRIB_GROUPS=host; run trib-info "
            "--topo there to list them",
            kind_of(comm), rank, comm->engine.peers[rank].host,
            numa ? "its NUMA node" : "its nearest network device");
    return trib_groups_make(locality->places, size, kind, &comm->err,
                            &locality->groups);
}

/* A group gets its share of the host's cores. Groups on one host exchange through
 * shared memory. */
static void prepare_ask(const struct trib_comm *comm, struct trib_locality *locality)
{
    const int cores = locality->ask.cores;

    assert(locality->hosts.largest > 0 && locality->groups.largest > 0);
    trib_leaders_ask_of(&locality->groups, locality->places, &locality->ask);
    locality->ask.cores =
        (int)((long)cores * locality->groups.largest / locality->hosts.largest);
    locality->ask.inside =
        trib_cost_default(locality->maps ? TRIB_COST_LOAD_STORE : TRIB_COST_NETWORK);
    if (trib_comm_knows_network(comm) &&
        locality->ask.cores >= locality->groups.largest)
        locality->ask.between = &comm->network;
    if (locality->hosts.n == 1 && locality->maps)
        locality->ask.between = locality->ask.inside;
}

trib_status_t trib_locality_make(struct trib_comm *comm,
                                 const struct trib_locality_report *facts)
{
    int size = comm->engine.ranks;
    struct trib_locality *locality = calloc(1, sizeof(*locality));

    assert(!comm->locality && !comm->aggregators);
    comm->locality = locality;
    if (locality)
        locality->places = calloc((size_t)size, sizeof(*locality->places));
    if (!locality || !locality->places)
        return trib_fail(&comm->err, TRIB_ERR_NO_MEMORY, "no memory for %d ranks",
                         size);
    describe(locality, facts, size);
    trib_status_t st = make_groups(comm, locality, size);
    if (st == TRIB_OK)
        prepare_ask(comm, locality);
    return st;
}

/* Return the lowest rank of the host of a rank or aggregator, or itself. */
static int lowest_on(const struct trib_comm *comm,
                     const struct trib_locality_report *facts, int rank)
{
    const struct trib_agg_tree *tree = comm->aggregators->tree;
    const int first = facts[rank].first, ranks = comm->engine.ranks;

    if (first < 0 || first >= rank || first >= ranks || facts[first].first != first)
        return rank;
    if (rank >= ranks)
        return first;
    const bool one_group = !tree || tree->leaf_of[first] == tree->leaf_of[rank];
    return one_group && facts[first].maps && facts[rank].maps ? first : rank;
}

trib_status_t trib_locality_hosts(struct trib_comm *comm,
                                  const struct trib_locality_report *facts)
{
    enum { LEADERS_MOST = 8 };
    const int ranks = comm->engine.ranks, size = comm->engine.size;
    struct trib_shape_hosts *h =
        calloc(1, sizeof(*h) + ((size_t)size + 2 * (size_t)ranks) * sizeof(*h->of));
    bool any = false;

    assert(comm->aggregators && !comm->aggregators->hosts);
    if (!h)
        return trib_fail(&comm->err, TRIB_ERR_NO_MEMORY, "no memory for %d ranks",
                         ranks);
    int *of = (int *)(h + 1), *place = of + size, *leaders = place + ranks;
    for (int r = 0; r < size; r++)
        of[r] = lowest_on(comm, facts, r);
    for (int r = 0; r < ranks; r++) {
        place[r] = leaders[of[r]]++; /* those counted so far */
        for (int a = ranks; a < size; a++)
            any |= place[r] > 0 && of[a] != of[r];
    }
    for (int r = ranks - 1; r >= 0; r--)
        leaders[r] = leaders[of[r]] < LEADERS_MOST ? leaders[of[r]] : LEADERS_MOST;
    *h = (struct trib_shape_hosts){of, place, leaders};
    if (any)
        comm->aggregators->hosts = h;
    else
        free(h);
    return TRIB_OK;
}

void trib_locality_free(struct trib_locality *locality)
{
    if (!locality)
        return;
    trib_groups_free(&locality->groups);
    trib_groups_free(&locality->hosts);
    free(locality->places);
    free(locality);
}

trib_status_t trib_locality_group(struct trib_comm *comm, size_t bytes,
                                  struct trib_locality_groups *out,
                                  struct trib_shape *shape)
{
    const struct trib_locality *locality = comm->locality;

    *out = (struct trib_locality_groups){0};
    if (!locality)
        return TRIB_OK;
    struct trib_leaders_ask ask = locality->ask;
    ask.bytes = bytes;
    int n = comm->cfg.leaders ? comm->cfg.leaders : trib_leaders_choose(&ask);
    if (n > locality->groups.smallest)
        n = locality->groups.smallest;
    assert(n > 0);
    struct trib_error err = {0};
    trib_status_t st = trib_leaders_appoint(&locality->groups, locality->places, n,
                                            &err, &out->leaders);
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "%s", trib_error_text(&err));
    out->groups = (struct trib_shape_groups){
        .n = locality->groups.n,
        .leaders = n,
        .of_rank = locality->groups.of_rank,
        .leader = out->leaders.rank,
        .host = locality->hosts.of_rank,
    };
    out->kind = locality->groups.kind->name;
    shape->groups = &out->groups;
    return TRIB_OK;
}

void trib_locality_ungroup(struct trib_locality_groups *groups)
{
    trib_leaders_free(&groups->leaders);
}

/* Traffic of a host's ranks to other hosts shares its network device. Simulated hosts
 * on one machine have no device. */
void trib_locality_describe(const struct trib_comm *comm, struct trib_choice *choice)
{
    const struct trib_locality *locality = comm->locality;

    choice->network = trib_comm_knows_network(comm) ? &comm->network : NULL;
    choice->delay_us = comm->round_trip_us / 2.0;
    if (!locality)
        return;
    choice->near_load_store = locality->maps;
    if (locality->hosts.n > 1 && !comm->one_host) {
        double ranks = locality->hosts.largest, size = locality->hosts.size;
        assert(size > 1);
        choice->sharing = ranks * (size - ranks) / (size - 1);
    }
}

int trib_host_of(const trib_comm_t *comm, int rank)
{
    if (!comm || rank < 0 || rank >= comm->engine.ranks)
        return -1;
    return comm->locality ? comm->locality->hosts.of_rank[rank] : 0;
}
