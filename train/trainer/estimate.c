/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer/estimate.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"

static const struct trib_sized estimate_kind = {"trib_estimate_t", "TRIB_ESTIMATE_INIT",
                                                sizeof(trib_estimate_t),
                                                TRIB_SIZED_UP_TO(trib_estimate_t, cap)};

/* Models of all-reduce algorithms: the number of sequential messages (hops), and the
 * vectors sent in one direction over the busiest link (volume). */
static double ceil_log2(double p)
{
    return ceil(log2(p));
}

static double ring_hops(double p)
{
    return 2 * (p - 1);
}

static double two_hops(double p)
{
    return p > 1 ? 2 : 0;
}

static double one_hop(double p)
{
    return p > 1 ? 1 : 0;
}

static double tree_hops(double p)
{
    return 2 * ceil_log2(p);
}

static double shared_volume(double p)
{
    return 2 * (p - 1) / p;
}

static double flat_volume(double p)
{
    return p - 1;
}

/* Each level of the tree moves the vector up and down. */
static double tree_volume(double p)
{
    return 2 * ceil_log2(p);
}

/* A server receives p vectors and sends p. */
static double server_volume(double p)
{
    return p > 1 ? 2 * p : 0;
}

static const struct way {
    const char *name;
    double (*hops)(double p);
    double (*volume)(double p);
} ways[] = {
    {"direct", two_hops, shared_volume},
    {"ring", ring_hops, shared_volume},
    {"halving-doubling", tree_hops, shared_volume},
    {"flat", one_hop, flat_volume},
    {"tree", tree_hops, tree_volume},
    {"server", two_hops, server_volume},
};

static const struct way *way_of(const char *name)
{
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (!name || strcmp(name, ways[i].name) == 0)
            return &ways[i];
    return NULL;
}

/* 4-norm: the larger time, plus 19 % when both are equal, because rounds of one wait
 * for rounds of the other. Fitted to measurements on hosts that share cores. */
double trib_train_overlap(double a, double b)
{
    return sqrt(sqrt(a * a * a * a + b * b * b * b));
}

/* At least half of `both`: the other kind of work may hide up to half of this one. */
double trib_train_remainder(double both, double other)
{
    const double rest = pow(both, 4) - pow(other, 4);

    return fmax(rest > 0 ? sqrt(sqrt(rest)) : 0, both / 2);
}

static double communication(const trib_estimate_t *e, const struct way *way,
                            double ratio, int agreements)
{
    const double hops = way->hops(e->ranks) * (1 + (double)agreements);
    const double bytes = way->volume(e->ranks) * 4 * (double)e->count / ratio;

    return fmax(hops * e->latency + (bytes > 0 ? bytes / e->rate : 0), 0);
}

static double step_of(const trib_estimate_t *e, double wire, int width)
{
    const double own = e->compute + e->update;

    if (width < 2)
        return own + trib_train_overlap(wire, e->crowd * e->busy);
    return fmax(own + e->start,
                trib_train_overlap(wire, e->crowd * (e->busy + e->load)));
}

static bool given_well(const trib_estimate_t *e)
{
    const double least[] = {e->compute, e->update, e->start,
                            e->busy,    e->load,   e->dense};

    for (size_t i = 0; i < sizeof(least) / sizeof(least[0]); i++)
        if (!(least[i] >= 0) || !isfinite(least[i]))
            return false;
    return e->ranks >= 1 && e->count > 0 && (e->width == 1 || e->width == 2) &&
           e->agreements >= 0 && isfinite(e->latency) && e->rate > 0 && e->ratio > 0 &&
           isfinite(e->ratio) && e->crowd >= 1 && isfinite(e->crowd);
}

trib_status_t trib_train_estimate(trib_estimate_t *estimate, struct trib_error *err)
{
    trib_estimate_t e = TRIB_ESTIMATE_INIT;
    const trib_status_t st = trib_sized_take(&estimate_kind, estimate, &e, err);

    if (st != TRIB_OK)
        return st;
    const struct way *way = way_of(e.algorithm);
    if (!way)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "no model for algorithm \"%s\": use direct, ring, "
                         "halving-doubling, flat, tree or server",
                         e.algorithm);
    if (!given_well(&e))
        return trib_fail(
            err, TRIB_ERR_INVALID,
            "an estimate needs ranks and a count, a width of 1 or 2, a rate and a "
            "finite ratio above 0, a crowd of 1 or more, and no negative time except "
            "the latency");
    e.size = sizeof(e);
    e.wire = communication(&e, way, e.ratio, e.agreements);
    e.step = step_of(&e, e.wire, e.width);
    e.cap = 1 + e.ratio;
    if (e.dense <= 0)
        e.dense = e.compute + e.update + communication(&e, way, 1, 0);
    e.gain = e.dense / e.step;
    trib_sized_give(&estimate_kind, &e, estimate);
    return TRIB_OK;
}

void trib_train_link_at(const struct trib_train_link *link, double bytes, double hops,
                        double *latency_out, double *rate_out)
{
    int i = 1;

    while (i + 1 < TRIB_TRAIN_LINK_POINTS && bytes > link->bytes[i])
        i++;
    const double seconds = link->seconds[i] - link->seconds[i - 1];
    const double more = link->bytes[i] - link->bytes[i - 1];

    /* A longer sum that took no longer does not bound the rate. */
    *rate_out = seconds > 0 && more > 0 ? more / seconds : (double)INFINITY;
    *latency_out =
        hops > 0 ? (link->seconds[i - 1] - link->bytes[i - 1] / *rate_out) / hops : 0;
}

size_t trib_train_estimate_best(const trib_estimate_t *rows, const bool *may, size_t n)
{
    size_t best = n;

    for (size_t i = 0; i < n; i++)
        if (may[i] && (best == n || rows[i].step < 0.99 * rows[best].step))
            best = i;
    return best;
}
