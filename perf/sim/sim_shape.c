/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parse the topology, and make it large enough for all hosts.
 */
#include <stdlib.h>
#include <string.h>

#include "perf/sim/sim.h"

enum { MOST = 4096 };

static int up(int a, int b)
{
    return (a + b - 1) / b;
}

static bool wrong(char why[SIM_WHY], const char *text)
{
    snprintf(why, SIM_WHY,
             "--topology '%s': use star, fat-tree:HOSTS or "
             "dragonfly:CHASSIS,ROUTERS,HOSTS",
             text);
    return false;
}

static bool fat_tree(const struct sim_args *args, const char *text,
                     struct simnet_shape *out, char why[SIM_WHY])
{
    char end;

    if (sscanf(text, "%d%c", &out->down, &end) != 1 || out->down < 1 ||
        out->down > MOST)
        return wrong(why, args->topology);
    out->kind = SIMNET_FAT_TREE;
    out->up = (int)(out->down / args->oversubscribed);
    if (out->up >= 1)
        return true;
    snprintf(why, SIM_WHY,
             "--oversubscribed %g: a leaf switch of %d hosts has no uplink left",
             args->oversubscribed, out->down);
    return false;
}

static bool dragonfly(const struct sim_args *args, const char *text,
                      struct simnet_shape *out, char why[SIM_WHY])
{
    char end;

    if (sscanf(text, "%d,%d,%d%c", &out->chassis, &out->routers, &out->nodes, &end) !=
            3 ||
        out->chassis < 1 || out->routers < 1 || out->nodes < 1 || out->chassis > MOST ||
        out->routers > MOST || out->nodes > MOST)
        return wrong(why, args->topology);
    out->kind = SIMNET_DRAGONFLY;
    out->groups = up(out->hosts, out->chassis * out->routers * out->nodes);
    /* In SimGrid, traffic to another group leaves through the router with that group's
     * number. */
    if (out->groups <= out->routers)
        return true;
    snprintf(why, SIM_WHY,
             "--topology '%s': %d hosts are %d groups, so a chassis needs as many "
             "routers, not %d",
             args->topology, out->hosts, out->groups, out->routers);
    return false;
}

bool sim_shape(const struct sim_args *args, int hosts, struct simnet_shape *out,
               char why[SIM_WHY])
{
    *out = (struct simnet_shape){.hosts = hosts,
                                 .rate = args->rate,
                                 .slow_host = (int)args->slow_host,
                                 .slow_rate = args->rate / args->slow_link_by};
    if (strcmp(args->topology, "star") == 0)
        return true;
    if (strncmp(args->topology, "fat-tree:", 9) == 0)
        return fat_tree(args, args->topology + 9, out, why);
    if (strncmp(args->topology, "dragonfly:", 10) == 0)
        return dragonfly(args, args->topology + 10, out, why);
    return wrong(why, args->topology);
}
