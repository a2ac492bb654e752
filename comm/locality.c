/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/locality.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "comm/communicator.h"
#include "topo/layout.h"
#include "topo/rdma.h"

struct trib_locality {
    struct trib_groups hosts;
    struct trib_groups groups; /* those of TRIB_GROUPS, which leaders lead */
    struct trib_rank_place *places;
    struct trib_leaders_ask ask; /* of a vector without bytes */
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

/* Is it worth the time that hwloc takes? Groups are made of places, leaders of hosts
 * chosen by them. A plan may name the algorithm that TRIB_ALGORITHM does not. */
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

/* What may be wrong is not known: of several nodes, where nobody but /sys was asked; of
 * several devices, where the rank may run on any core. */
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

static void describe(struct trib_locality *near,
                     const struct trib_locality_report *facts, int size)
{
    near->maps = true;
    for (int r = 0; r < size; r++) {
        struct trib_rank_place *place = &near->places[r];

        /* The number of a host's lowest rank is its name: two may be called the same,
         * and one may pass for two. */
        snprintf(place->host, sizeof(place->host), "%d", (int)facts[r].first);
        snprintf(place->nic, sizeof(place->nic), "%.31s", facts[r].nic);
        place->package = facts[r].package;
        place->numa = facts[r].numa;
        place->l3 = facts[r].l3;
        near->maps &= facts[r].maps != 0;
        if (r == 0 || facts[r].cores < near->ask.cores)
            near->ask.cores = facts[r].cores;
    }
}

/* All ranks come to the same; rank 0 says why it is not what was asked for. */
static trib_status_t make_groups(struct trib_comm *comm, struct trib_locality *near,
                                 int size)
{
    const char *kind = kind_of(comm);
    const bool numa = comm->cfg.groups == TRIB_GROUPS_NUMA;
    trib_status_t st =
        trib_groups_make(near->places, size, "host", &comm->err, &near->hosts);

    if (st != TRIB_OK)
        return st;
    const int rank = trib_groups_unplaced(&near->hosts, near->places, kind);
    if (rank >= 0)
        kind = "host";
    if (rank >= 0 && comm->engine.rank == 0)
        trib_log(
            &comm->log, TRIB_LOG_WARN, "core",
            "TRIB_GROUPS=%s: rank %d (host %.64s) does not know %s, so hosts are the "
            "groups; bind each rank to cores of one (trib-run --bind core), with a "
            "library that has hwloc, or set TRIB_GROUPS=host; trib-info --topo there "
            "shows them",
            kind_of(comm), rank, comm->engine.peers[rank].host,
            numa ? "its NUMA node" : "a network device near it");
    return trib_groups_make(near->places, size, kind, &comm->err, &near->groups);
}

/* A group has its part of the cores of its host. Groups of one host exchange by its
 * memory. */
static void prepare_ask(struct trib_locality *near)
{
    const int cores = near->ask.cores;

    trib_leaders_ask_of(&near->groups, near->places, &near->ask);
    near->ask.cores =
        (int)((long)cores * near->groups.largest / near->hosts.largest);
    near->ask.inside =
        trib_cost_default(near->maps ? TRIB_COST_LOAD_STORE : TRIB_COST_NETWORK);
    if (near->hosts.n == 1 && near->maps)
        near->ask.between = near->ask.inside;
}

trib_status_t trib_locality_make(struct trib_comm *comm,
                                 const struct trib_locality_report *facts)
{
    int size = comm->engine.ranks;
    struct trib_locality *near = calloc(1, sizeof(*near));

    comm->locality = near;
    if (near)
        near->places = calloc((size_t)size, sizeof(*near->places));
    if (!near || !near->places)
        return trib_fail(&comm->err, TRIB_ERR_NO_MEMORY, "no memory for %d ranks",
                         size);
    describe(near, facts, size);
    trib_status_t st = make_groups(comm, near, size);
    if (st == TRIB_OK)
        prepare_ask(near);
    return st;
}

void trib_locality_free(struct trib_locality *near)
{
    if (!near)
        return;
    trib_groups_free(&near->groups);
    trib_groups_free(&near->hosts);
    free(near->places);
    free(near);
}

trib_status_t trib_locality_group(struct trib_comm *comm, size_t bytes,
                                  struct trib_locality_groups *out,
                                  struct trib_shape *shape)
{
    const struct trib_locality *near = comm->locality;

    *out = (struct trib_locality_groups){0};
    if (!near)
        return TRIB_OK;
    struct trib_leaders_ask ask = near->ask;
    ask.bytes = bytes;
    int n = comm->cfg.leaders ? comm->cfg.leaders : trib_leaders_choose(&ask);
    if (n > near->groups.smallest)
        n = near->groups.smallest;
    struct trib_error err = {0};
    trib_status_t st =
        trib_leaders_appoint(&near->groups, near->places, n, &err, &out->leaders);
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "%s", trib_error_text(&err));
    out->groups = (struct trib_shape_groups){
        .n = near->groups.n,
        .leaders = n,
        .of_rank = near->groups.of_rank,
        .leader = out->leaders.rank,
        .host = near->hosts.of_rank,
    };
    out->kind = near->groups.kind->name;
    shape->groups = &out->groups;
    return TRIB_OK;
}

void trib_locality_ungroup(struct trib_locality_groups *groups)
{
    trib_leaders_free(&groups->leaders);
}

/* Of a rank's bytes to all others those to other hosts share the device with what its
 * neighbours send. Hosts that are made out of one have no device. */
void trib_locality_describe(const struct trib_comm *comm, struct trib_choice *choice)
{
    const struct trib_locality *near = comm->locality;

    if (!near)
        return;
    choice->near_load_store = near->maps;
    if (near->hosts.n > 1 && !comm->one_host) {
        double ranks = near->hosts.largest, size = near->hosts.size;
        choice->sharing = ranks * (size - ranks) / (size - 1);
    }
}
