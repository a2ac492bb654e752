/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/near.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/comm.h"
#include "topo/layout.h"
#include "topo/rdma.h"

struct trib_near {
    struct trib_groups hosts;
    struct trib_rank_place *places;
    struct trib_leaders_ask ask; /* of a vector without bytes */
    bool maps;
};

static void count_device(void *arg, const struct trib_rdma_port *port)
{
    *(int *)arg += port->port == 1;
}

void trib_near_place(const struct trib_comm *comm, const cpu_set_t *cpus, int ours,
                     struct trib_near_fact *fact)
{
    const char *algorithm = comm->cfg.algorithm;
    struct trib_layout layout;
    struct trib_rank_place place;
    int devices = 0;

    fact->package = fact->numa = fact->l3 = -1;
    memset(fact->nic, 0, sizeof(fact->nic));
    if (comm->channel || ours < 2 || ours == comm->engine.size ||
        CPU_COUNT(cpus) >= sysconf(_SC_NPROCESSORS_ONLN) ||
        (strcmp(algorithm, "auto") != 0 && strcmp(algorithm, "hierarchical") != 0))
        return;
    (void)trib_rdma_each("", count_device, &devices);
    if (devices < 2 || trib_layout_read(NULL, NULL, &layout) != TRIB_OK)
        return;
    trib_layout_bound(&layout, cpus, &place);
    trib_layout_free(&layout);
    fact->package = place.package;
    fact->numa = place.numa;
    fact->l3 = place.l3;
    memcpy(fact->nic, place.nic, sizeof(fact->nic));
}

static void describe(struct trib_near *near, const struct trib_near_fact *facts, int size)
{
    near->maps = true;
    for (int r = 0; r < size; r++) {
        struct trib_rank_place *place = &near->places[r];

        /* The number of a host's lowest rank is its name: two may be called the same, and one
         * may pass for two. */
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

trib_status_t trib_near_make(struct trib_comm *comm, const struct trib_near_fact *facts)
{
    int size = comm->engine.ranks;
    struct trib_near *near = calloc(1, sizeof(*near));

    comm->near = near;
    if (near)
        near->places = calloc((size_t)size, sizeof(*near->places));
    if (!near || !near->places)
        return trib_fail(&comm->err, TRIB_ERR_NO_MEMORY, "no memory for %d ranks", size);
    describe(near, facts, size);
    int cores = near->ask.cores;
    trib_status_t st =
        trib_groups_make(near->places, size, "host", &comm->err, &near->hosts);
    if (st != TRIB_OK)
        return st;
    trib_leaders_ask_of(&near->hosts, near->places, &near->ask);
    near->ask.cores = cores;
    near->ask.inside =
        trib_cost_default(near->maps ? TRIB_COST_LOAD_STORE : TRIB_COST_NETWORK);
    return TRIB_OK;
}

void trib_near_free(struct trib_near *near)
{
    if (!near)
        return;
    trib_groups_free(&near->hosts);
    free(near->places);
    free(near);
}

trib_status_t trib_near_group(struct trib_comm *comm, size_t bytes,
                              struct trib_near_groups *out, struct trib_shape *shape)
{
    const struct trib_near *near = comm->near;

    *out = (struct trib_near_groups){0};
    if (!near)
        return TRIB_OK;
    struct trib_leaders_ask ask = near->ask;
    ask.bytes = bytes;
    int n = comm->cfg.leaders ? comm->cfg.leaders : trib_leaders_choose(&ask);
    if (n > near->hosts.smallest)
        n = near->hosts.smallest;
    struct trib_error err = {0};
    trib_status_t st =
        trib_leaders_appoint(&near->hosts, near->places, n, &err, &out->leaders);
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "%s", trib_error_text(&err));
    out->groups = (struct trib_shape_groups){
        .n = near->hosts.n,
        .leaders = n,
        .of_rank = near->hosts.of_rank,
        .leader = out->leaders.rank,
    };
    shape->groups = &out->groups;
    return TRIB_OK;
}

void trib_near_ungroup(struct trib_near_groups *groups)
{
    trib_leaders_free(&groups->leaders);
}

/* Of a rank's bytes to all others those to other hosts share the device with what its neighbours
 * send. Hosts that are made out of one have no device. */
void trib_near_tell(const struct trib_comm *comm, struct trib_choice *choice)
{
    const struct trib_near *near = comm->near;

    if (!near)
        return;
    choice->near_load_store = near->maps;
    if (near->hosts.n > 1 && !comm->one_host) {
        double ranks = near->hosts.largest, size = near->hosts.size;
        choice->sharing = ranks * (size - ranks) / (size - 1);
    }
}
