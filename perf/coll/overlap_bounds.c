/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "perf/coll/overlap.h"

const char *perf_overlap_stage_name(enum perf_stage stage)
{
    static const char *const names[PERF_STAGES] = {"encode", "link", "sum", "decode"};

    return names[stage];
}

struct perf_overlap_work perf_overlap_work(double vector, int ranks, bool flat,
                                           bool coded, double wire)
{
    struct perf_overlap_work w = {.vector = vector};
    const double others = ranks - 1;

    w.of[PERF_STAGE_LINK] = wire;
    w.of[PERF_STAGE_SUM] = flat ? others * vector : others / ranks * vector;
    /* Each element of the result is decoded once. A flat schedule decodes the first
     * contribution and adds the others to it. */
    w.of[PERF_STAGE_ENCODE] = w.of[PERF_STAGE_DECODE] = coded ? vector : 0;
    return w;
}

void perf_overlap_bounds(const struct perf_overlap_work *work,
                         const struct perf_overlap_alone *alone, double us,
                         struct perf_overlap *out)
{
    const double reached = us > 0 ? work->vector / us * 1e-3 : 0;
    double longest = 0, core = work->of[PERF_STAGE_LINK] * alone->link_cpu_s;

    out->narrowest = PERF_STAGE_LINK;
    for (int s = 0; s < PERF_STAGES; s++) {
        const double took =
            work->of[s] > 0 && alone->Bps[s] > 0 ? work->of[s] / alone->Bps[s] : 0;
        out->stage_GBps[s] = took > 0 ? 1e-9 * work->vector / took : 0;
        if (s != PERF_STAGE_LINK)
            core += took;
        if (took > longest) {
            longest = took;
            out->narrowest = s;
        }
    }
    core = fmax(core, longest);
    out->bound_GBps = longest > 0 ? 1e-9 * work->vector / longest : 0;
    out->core_GBps = core > 0 ? 1e-9 * work->vector / core : 0;
    out->reached_GBps = reached;
    out->part = out->bound_GBps > 0 ? reached / out->bound_GBps : 0;
    out->core_part = out->core_GBps > 0 ? reached / out->core_GBps : 0;
}

double perf_overlap_hidden(double comm, double compute, double both)
{
    return comm > 0 ? fmin(1 - (both - compute) / comm, 1) : 0;
}

static void print_hidden(const char *where, const struct perf_hidden *h)
{
    printf("           computing %s %.2f ms, with the sum %.2f ms: %.0f %% of %.2f "
           "ms hidden\n",
           where, h->compute_us * 1e-3, h->both_us * 1e-3, 100 * h->part,
           h->comm_us * 1e-3);
}

void perf_overlap_print(const struct perf_overlap *o)
{
    const char *between = "";

    printf("           alone, GB/s of the vector:");
    for (int s = 0; s < PERF_STAGES; s++) {
        if (o->stage_GBps[s] > 0) {
            printf("%s %s %.3f", between, perf_overlap_stage_name((enum perf_stage)s),
                   o->stage_GBps[s]);
            between = ",";
        }
    }
    printf("\n           bound %.3f (%s), reached %.3f: %.0f %%; with one core for all "
           "stages %.3f: %.0f %%\n",
           o->bound_GBps, perf_overlap_stage_name((enum perf_stage)o->narrowest),
           o->reached_GBps, 100 * o->part, o->core_GBps, 100 * o->core_part);
    print_hidden("here", &o->here);
    print_hidden("elsewhere", &o->elsewhere);
}
