/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/sim/sim_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agg/client/offload_plan.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/plan_parts.h"
#include "comm/plan/plan_schedule.h"
#include "compress/codec.h"

enum {
    NETWORK_CHUNK = 256 << 10, /* chunk size that ranks on several hosts agree on,
                                * comm/members/wireup.c */
    USUAL_CHUNK = 64 << 10,
};

static bool fail(char why[SIM_WHY], const char *text)
{
    snprintf(why, SIM_WHY, "%s", text);
    return false;
}

/* --- encoded sizes --- */

static void take_bytes(void *arg, const trib_codec_sheet_t *sheet)
{
    *(double *)arg = sheet->bytes;
}

/* A sum of selections is sent in full, even if the codec selects from the result. */
static bool fill_in(struct sim_words *w, const struct trib_codec *codec, size_t count,
                    int ranks)
{
    struct trib_expected expected;

    if (!trib_codec_expected(codec, count, ranks, &expected))
        return true;
    w->merged = calloc((size_t)ranks + 1, sizeof(*w->merged));
    w->contribution = expected.contribution;
    w->result = expected.result;
    for (int m = 1; w->merged && m <= ranks; m++) {
        (void)trib_codec_expected(codec, count, m, &expected);
        w->merged[m] = m == 1 ? expected.contribution : expected.result;
    }
    return w->merged;
}

/* Compute the encoded bytes per element of a chunk. */
static bool measure_words(struct sim_plan *p, char why[SIM_WHY])
{
    const struct trib_codec *codec = p->plan.codec;
    struct sim_words *w = &p->words;
    const size_t n = 65536;
    double bytes = 0;

    if (!codec) {
        w->contribution = w->partial = w->result = sizeof(float);
        return true;
    }
    const struct trib_codec_info *info = trib_codec_info(codec);
    w->linear = info->flags & TRIB_CODEC_LINEAR;
    w->head = 8;
    w->contribution = (double)trib_codec_own_bound(codec, n) / (double)n;
    w->partial = w->result = (double)trib_codec_sum_bound(codec, n) / (double)n;
    if (strstr(info->text, "result=requantised"))
        w->result = w->contribution;
    if (info->flags & TRIB_CODEC_MODEL) {
        if (trib_codec_describe(p->args->codec, take_bytes, &bytes) != TRIB_OK ||
            bytes <= 0)
            return fail(why, "the encoded size of this codec is unknown");
        w->contribution = w->partial = w->result = bytes;
    }
    return fill_in(w, codec, p->desc.count, p->shape.size) ||
           fail(why, "out of memory");
}

static bool make_codec(struct sim_plan *p, char why[SIM_WHY])
{
    struct trib_error err = {0};

    if (strcmp(p->args->codec, "none") == 0)
        return true;
    if (trib_codec_create(p->args->codec, NULL, &err, &p->plan.codec) != TRIB_OK ||
        trib_codec_for_ranks(p->plan.codec, p->shape.size, &err) != TRIB_OK)
        return fail(why, trib_error_text(&err));
    if (trib_codec_info(p->plan.codec)->flags & TRIB_CODEC_IDENTITY) {
        trib_codec_destroy(p->plan.codec);
        p->plan.codec = NULL;
    }
    return true;
}

/* --- places --- */

static bool make_groups(struct sim_plan *p, char why[SIM_WHY])
{
    const trib_schedule_opts_t opts = {.ranks = p->shape.size,
                                       .ranks_per_host = (int)p->args->per_host,
                                       .leaders = (int)p->args->leaders,
                                       .bytes = p->args->bytes};
    struct trib_error err = {0};

    if (trib_drawn_make(&opts, (int)p->args->per_host, &err, &p->drawn) != TRIB_OK)
        return fail(why, trib_error_text(&err));
    p->shape.groups = &p->drawn.shape;
    p->hosts = p->drawn.hosts.n;
    return true;
}

/* Make the tree: `aggregators` at the root, one per rack. */
static bool make_tree(struct sim_plan *p, char why[SIM_WHY])
{
    enum { USUAL = 4 };
    const size_t asked = p->args->aggregators;
    const int ranks = p->shape.size, root = asked ? (int)asked : USUAL;
    const int rack = (int)p->args->rack, racks = rack ? (ranks + rack - 1) / rack : 0;
    struct trib_agg_tree *t = &p->tree;

    p->shape.aggregators = root + racks;
    p->comm->aggregators = &p->aggregators;
    p->aggregators.n = p->shape.aggregators;
    if (!racks)
        return true;
    int *at = p->tree_memory =
        calloc((size_t)(4 * (racks + 1) + root + ranks + 2), sizeof(*p->tree_memory));
    if (!at)
        return fail(why, "out of memory");
    int *parent = at, *first = at + racks + 1, *list = first + racks + 2,
        *leaf = list + root + racks;
    for (int i = 0; i < root + racks; i++)
        list[i] = i;
    for (int u = 0; u <= racks; u++)
        first[u + 1] = root + u;
    for (int r = 0; r < ranks; r++)
        leaf[r] = 1 + r / rack;
    *t = (struct trib_agg_tree){racks + 1, parent, first, list, leaf};
    p->shape.tree = p->aggregators.tree = t;
    return true;
}

int sim_plan_host(const struct sim_plan *p, int rank)
{
    return rank < p->shape.size ? p->drawn.hosts.of_rank[rank]
                                : p->hosts + rank - p->shape.size;
}

/* --- algorithm --- */

/* Return the network's figures as trib-perf calibrate would measure them: an echo,
 * bursts of messages, and long vectors in both directions at once. */
static struct trib_cost_model calibrated(const struct sim_args *args)
{
    const struct sim_rates *rates = &args->rates;
    const double headers =
        args->mtu ? (args->mtu - 52.0) / (args->mtu + 14.0) : 1; /* IP, TCP; Ethernet */

    return (struct trib_cost_model){
        .hop_us = 1e6 * (2 * rates->message_s + rates->wake_s + 2 * args->latency_s),
        .switch_us = trib_cost_default(TRIB_COST_NETWORK)->switch_us,
        .message_us = 1e6 * rates->message_s,
        .wire_Bps = fmin(args->rate * headers, rates->copy_Bps / 2),
        .sum_Bps = rates->sum_Bps,
    };
}

static const struct trib_algo *choose(const struct sim_plan *p, char *text,
                                      size_t bytes)
{
    const struct trib_codec *codec = p->plan.codec;
    const uint32_t flags = codec ? trib_codec_info(codec)->flags : 0;
    const struct trib_cost_model network = calibrated(p->args);
    struct trib_shape shape = p->shape;
    struct trib_choice choice = {
        .bytes = p->args->bytes,
        .sparse = flags & TRIB_CODEC_SPARSE,
        .lossy = codec && !(flags & TRIB_CODEC_LINEAR),
        .near_load_store = p->args->per_host > 1,
        .slot_bytes = p->comm->cfg.chunk,
        .sharing = p->args->per_host > 1 ? (double)p->args->per_host : 0,
        .network = &network,
    };

    if (p->words.merged) {
        choice.contribution = p->words.contribution / sizeof(float);
        choice.result = p->words.result / sizeof(float);
    }
    shape.aggregators = 0;
    shape.tree = NULL;
    return trib_algo_choose(&shape, &choice, text, bytes);
}

void sim_plan_choose(const struct sim_plan *p, struct sim_result *out)
{
    const struct trib_algo *algo = choose(p, out->estimates, sizeof(out->estimates));

    snprintf(out->automatic, sizeof(out->automatic), "%s", algo ? algo->name : "-");
}

static bool find_algorithm(struct sim_plan *p, char why[SIM_WHY])
{
    const char *name = p->args->algorithm;
    struct trib_error err = {0};

    if (trib_text_is_auto(name))
        return (p->algo = choose(p, NULL, 0)) || fail(why, "no algorithm supports it");
    p->algo = trib_algo_find(name);
    if (!p->algo) {
        (void)trib_settings_algorithm(name, &err);
        return fail(why, trib_error_text(&err));
    }
    if (p->algo->colls >> TRIB_ALLREDUCE & 1 && p->algo->can(&p->shape))
        return true;
    snprintf(why, SIM_WHY, "algorithm %s does not support allreduce with %d rank%s",
             name, p->shape.size, p->shape.size == 1 ? "" : "s");
    return false;
}

/* --- all --- */

static bool make_comm(struct sim_plan *p, char why[SIM_WHY])
{
    struct trib_comm *comm = p->comm = calloc(1, sizeof(*comm));

    if (!comm)
        return fail(why, "out of memory");
    comm->cfg.window = (int)p->args->window;
    comm->cfg.chunk = p->args->chunk ? p->args->chunk : NETWORK_CHUNK;
    comm->chunk_asked = p->args->chunk ? p->args->chunk : USUAL_CHUNK;
    comm->chunk_given = p->args->chunk != 0;
    comm->cfg.zero_copy = true;
    comm->engine.ranks = p->shape.size;
    p->plan.comm = comm;
    return true;
}

static void describe(struct sim_plan *p)
{
    p->desc = (trib_desc_t)TRIB_DESC_INIT;
    p->desc.count = p->args->bytes / sizeof(float);
    p->desc.dtype = TRIB_F32;
    p->desc.op = TRIB_SUM;
}

/* Use the chunk size of the service, unless --chunk gives one. */
static void service_chunk(struct sim_plan *p)
{
    struct trib_codec *codec = NULL;

    if (p->args->chunk ||
        trib_codec_create(p->args->codec, NULL, NULL, &codec) != TRIB_OK)
        return;
    p->desc.chunk = trib_offload_chunk(codec, p->args->bytes, p->shape.aggregators,
                                       p->comm->cfg.chunk, false);
    trib_codec_destroy(codec);
}

bool sim_plan_open(struct sim_plan *p, const struct sim_args *args, int ranks,
                   char why[SIM_WHY])
{
    *p = (struct sim_plan){.args = args, .frames = 1};
    p->shape =
        (struct trib_shape){.coll = TRIB_ALLREDUCE, .op = TRIB_SUM, .size = ranks};
    if (!make_comm(p, why))
        return false;
    describe(p);
    const struct trib_algo *asked = trib_algo_find(args->algorithm);
    const bool sums = asked && asked->aggregators;
    if ((args->rack || args->aggregators) && !sums)
        return fail(why, "--rack, --aggregators: this algorithm has no aggregators");
    if (args->leaders && !args->choose && asked && !asked->groups)
        return fail(why, "--leaders: this algorithm has no leaders");
    if (!make_groups(p, why) || (sums && !make_tree(p, why)) || !make_codec(p, why) ||
        !measure_words(p, why) || !find_algorithm(p, why))
        return false;
    p->n = ranks + p->shape.aggregators;
    p->comm->engine.size = p->n;
    p->plan.selected = p->words.merged ? p->words.contribution : 0;
    if (p->shape.aggregators)
        service_chunk(p);
    return true;
}

void sim_plan_coarsen(struct sim_plan *p, uint32_t frames)
{
    const struct trib_run_desc *r = &p->plan.run.desc;
    struct trib_comm *comm = p->comm;
    const int window = comm->cfg.window / (int)frames;

    p->frames = frames;
    p->desc.chunk = 0;
    comm->cfg.chunk = comm->chunk_asked = r->piece * sizeof(float) * frames;
    comm->chunk_given = true;
    comm->cfg.window = window > 1 ? window : 1;
}

/* Compile the program as comm/plan/plan_make.c does. */
bool sim_plan_program(struct sim_plan *p, int rank, struct trib_program *out,
                      char why[SIM_WHY])
{
    struct trib_plan *plan = &p->plan;
    struct trib_run_desc *r = &plan->run.desc;
    struct trib_schedule schedule = {0};
    struct trib_shape shape = p->shape;

    shape.rank = p->comm->engine.rank = rank;
    memset(r, 0, sizeof(*r));
    r->op.coll = TRIB_ALLREDUCE;
    r->op.feed = p->desc.feed;
    r->codec = plan->codec;
    r->count = p->desc.count;
    r->element = sizeof(float);
    r->name = p->algo->name;
    r->gathers = trib_algo_gathers(p->algo, &shape);
    trib_status_t st = trib_plan_build(plan, p->algo, &shape, &schedule);
    r->n_chunks = schedule.n_chunks;
    if (st == TRIB_OK)
        st = trib_plan_cut(plan, &p->desc);
    if (st == TRIB_OK && plan->codec && p->shape.size > 1 &&
        trib_codec_agreed_floats(plan->codec, r->piece) > 0)
        st = trib_plan_put_agreement_first(plan, &schedule);
    if (st != TRIB_OK)
        return fail(why, trib_error_text(&p->comm->err));
    shape.groups = NULL;
    st = trib_program_create(&schedule, &shape, out);
    trib_schedule_free(&schedule);
    return st == TRIB_OK || fail(why, "out of memory for the programs of all ranks");
}

void sim_plan_free(struct sim_plan *p)
{
    trib_codec_destroy(p->plan.codec);
    trib_drawn_free(&p->drawn);
    free(p->tree_memory);
    free(p->words.merged);
    free(p->comm);
}
