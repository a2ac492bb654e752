/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One number of ranks: programs, platform, replay, results.
 */
#include <stdlib.h>
#include <string.h>

#include "perf/sim/sim_port.h"
#include "perf/sim/sim_rank.h"

/* --- programs --- */

static bool make_programs(struct sim_replay *replay, char why[SIM_WHY])
{
    struct sim_plan *plan = replay->plan;

    replay->total = 0;
    for (int r = 0; r < plan->n; r++) {
        struct sim_rank *rank = &replay->ranks[r];
        const struct trib_run_desc *d = &plan->plan.run.desc;

        trib_program_free(&rank->program);
        rank->rank = r;
        if (!sim_plan_program(plan, r, &rank->program, why))
            return false;
        for (uint32_t i = 0; i < rank->program.n_tasks; i++)
            replay->total += rank->program.tasks[i].kind == TRIB_TASK_SEND
                                 ? d->rounds - (d->share_piece != 0)
                                 : 0;
    }
    replay->run.desc = plan->plan.run.desc;
    return true;
}

/* Merge several rounds into one with larger chunks, if the replay would take too
 * long. */
static bool shorten(struct sim_replay *replay, char why[SIM_WHY])
{
    const double most = (double)replay->args->messages;
    const uint32_t rounds = replay->run.desc.rounds;
    const double asked = most > 0 ? replay->total / most : 1;

    if (asked <= 1 || rounds <= 1)
        return true;
    sim_plan_coarsen(replay->plan, asked < rounds ? (uint32_t)(asked + 1) : rounds);
    return make_programs(replay, why);
}

static bool make_ranks(struct sim_replay *replay, char why[SIM_WHY])
{
    replay->window = (uint32_t)replay->plan->comm->cfg.window;
    replay->left = (uint32_t)replay->plan->n;
    replay->waiting = calloc((size_t)replay->plan->n, sizeof(*replay->waiting));
    replay->busy_out = calloc((size_t)replay->plan->n, sizeof(*replay->busy_out));
    replay->busy_in = calloc((size_t)replay->plan->n, sizeof(*replay->busy_in));
    const bool ports = sim_port_make(replay);
    for (int r = 0; r < replay->plan->n; r++)
        if (!ports || !replay->waiting || !replay->busy_out || !replay->busy_in ||
            !sim_rank_make(replay, &replay->ranks[r])) {
            snprintf(why, SIM_WHY, "out of memory for the state of %d ranks",
                     replay->plan->n);
            return false;
        }
    return true;
}

/* --- results --- */

static double memory_of(const struct sim_replay *replay, const struct sim_rank *r)
{
    const struct sim_args *args = replay->args;
    const size_t slot = args->chunk ? args->chunk : 256 << 10;
    double bytes = (double)trib_arena_heads(replay->plan->n);

    for (uint32_t i = 0; i < r->program.n_neighbors; i++)
        bytes += (double)trib_link_bytes((uint32_t)args->window, slot, false);
    return bytes;
}

static void count_ranks(const struct sim_replay *replay, struct sim_result *out)
{
    const int ranks = replay->plan->shape.size;

    for (int r = 0; r < replay->plan->n; r++) {
        const struct sim_rank *rank = &replay->ranks[r];
        const int peers = (int)rank->program.n_neighbors;
        const double memory = memory_of(replay, rank);

        if (rank->cpu_s > out->cpu_s)
            out->cpu_s = rank->cpu_s;
        if (r >= ranks) {
            out->agg_peers = peers > out->agg_peers ? peers : out->agg_peers;
            out->agg_memory = memory > out->agg_memory ? memory : out->agg_memory;
            continue;
        }
        out->peers_most = peers > out->peers_most ? peers : out->peers_most;
        out->peers_mean += (double)peers / ranks;
        out->memory_most = memory > out->memory_most ? memory : out->memory_most;
        out->memory_mean += memory / ranks;
        out->time_s = rank->done_s > out->time_s ? rank->done_s : out->time_s;
        if (r == 0 || rank->done_s < out->first_s)
            out->first_s = rank->done_s;
    }
}

/* Find the links of hosts, which begin or end routes, and sum their bytes. */
static void count_links(const struct sim_replay *replay, struct sim_result *out)
{
    const int n = simnet_links(), ranks = replay->plan->shape.size;
    char *is_host = calloc((size_t)n + 1, 1), *is_up = calloc((size_t)n + 1, 1);
    double up = 0;

    for (int r = 0; is_host && is_up && r < replay->plan->n; r++)
        for (uint32_t i = 0; i < replay->ranks[r].program.n_neighbors; i++) {
            const struct simnet_route *route = &replay->ranks[r].edges[i].route;
            if (!route->n)
                continue;
            is_host[route->link[0]] = is_host[route->link[route->n - 1]] = 1;
            is_up[route->link[0]] |= r < ranks;
        }
    for (int i = 0; is_host && is_up && i < n; i++) {
        const double bytes = replay->link_bytes[i];
        double *most = is_host[i] ? &out->host_most : &out->fabric_most;

        *most = bytes > *most ? bytes : *most;
        out->fabric += is_host[i] ? 0 : bytes;
        up += is_up[i] ? bytes : 0;
    }
    out->host_mean = up / replay->plan->hosts;
    free(is_host);
    free(is_up);
}

/* Assume that the remaining messages proceed at the pace of the second half. */
static void extrapolate(const struct sim_replay *replay, struct sim_result *out)
{
    const double rest = replay->total - replay->messages;
    const double now = simnet_now();
    const double pace =
        (replay->messages - replay->half_messages) / (now - replay->half_s);
    const double scale = replay->total / replay->messages;

    out->replayed = 1 / scale;
    out->time_s = out->first_s = now + rest / pace;
    out->payload *= scale;
    out->far_payload *= scale;
    out->host_most *= scale;
    out->host_mean *= scale;
    out->fabric *= scale;
    out->fabric_most *= scale;
    out->cpu_s *= scale;
}

static void tell(const struct sim_replay *replay, struct sim_result *out)
{
    const struct trib_run_desc *d = &replay->run.desc;

    out->hosts = replay->plan->hosts + replay->plan->shape.aggregators;
    snprintf(out->algorithm, sizeof(out->algorithm), "%s", replay->plan->algo->name);
    out->chunks = d->n_chunks;
    out->rounds = d->rounds;
    out->piece = d->piece;
    out->frames = replay->plan->frames;
    out->messages = replay->total * replay->plan->frames;
    out->replayed = 1;
    count_ranks(replay, out);
    count_links(replay, out);
    if (replay->left && replay->half_s > 0)
        extrapolate(replay, out);
    else if (replay->left)
        snprintf(out->why, SIM_WHY,
                 "%u ranks wait forever: a bug in this program or in the schedule",
                 replay->left);
}

/* Extrapolation needs messages of equal size. Selections grow on their way, and
 * messages of an agreement are short. */
static bool may_extrapolate(const struct sim_replay *replay, char why[SIM_WHY])
{
    const double most = (double)replay->args->messages;
    const bool alike = !replay->plan->words.merged && !replay->run.desc.share_piece;

    if (most <= 0 || replay->total <= most || alike)
        return true;
    snprintf(why, SIM_WHY,
             "%s sends %.0f messages, more than %.0f, and messages of codec %s "
             "differ in size: raise --messages, or use 0 for all",
             replay->plan->algo->name, replay->total, most, replay->args->codec);
    return false;
}

void sim_run(const struct sim_args *args, int ranks, struct sim_result *out)
{
    struct sim_plan plan;
    struct sim_replay replay = {.args = args, .plan = &plan, .out = out};
    struct simnet_shape shape;

    *out = (struct sim_result){.ranks = ranks};
    bool well = sim_plan_open(&plan, args, ranks, out->why);
    if (well)
        sim_plan_choose(&plan, out);
    well = well && !args->choose &&
           sim_shape(args, plan.hosts + plan.shape.aggregators, &shape, out->why);
    if (well) {
        replay.ranks = calloc((size_t)plan.n, sizeof(*replay.ranks));
        well = replay.ranks && make_programs(&replay, out->why) &&
               shorten(&replay, out->why) && may_extrapolate(&replay, out->why) &&
               make_ranks(&replay, out->why);
    }
    if (well) {
        simnet_open(&shape);
        sim_rank_join(&replay);
        replay.link_bytes =
            calloc((size_t)simnet_links() + 1, sizeof(*replay.link_bytes));
        if (replay.link_bytes) {
            simnet_run(sim_replay_start, &replay);
            tell(&replay, out);
        }
    }
    sim_plan_free(&plan);
}
