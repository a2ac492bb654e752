/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/codec/codec_perf.h"
#include "perf/coll/arguments.h"
#include "perf/coll/measure.h"
#include "perf/coll/operation.h"
#include "perf/coll/overlap.h"
#include "perf/common/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>


enum {
    ROUNDS = 5,
    LINK_ROUNDS = 7,
    LINK_LEAST = 8 << 20, /* bytes */
    TAG = 78,
};

static const double LONGER = 1.5; /* computation time over the time of the sum */

/* Return the median over rounds of the slowest rank's seconds; sorts them. */
static trib_status_t middle(trib_comm_t *comm, double *seconds, size_t n, double *out)
{
    struct perf_summary s;
    const trib_status_t status = perf_combine(comm, TRIB_MAX, seconds, n);

    perf_summarise(seconds, n, &s);
    *out = s.p50;
    return status;
}

/* --- the link alone --- */

/* Bytes that each rank sends while it receives as many, in a message or in a sum
 * without a codec. The faster of the two is the rate of the link. */
struct link {
    trib_comm_t *comm;
    int next, before;
    char *out, *in;
    size_t bytes;
    trib_plan_t *plan; /* sums `bytes` bytes of `in` */
};

/* Send to the next rank and receive from the previous one at the same time. */
static trib_status_t pass_on(const struct link *l)
{
    trib_request_t *got = NULL, *sent = NULL;
    trib_status_t status =
        trib_irecv(l->comm, l->in, l->bytes, TRIB_U8, l->before, TAG, &got);

    if (status == TRIB_OK)
        status = trib_isend(l->comm, l->out, l->bytes, TRIB_U8, l->next, TAG, &sent);
    if (status == TRIB_OK)
        status = trib_request_wait(sent);
    if (status == TRIB_OK)
        status = trib_request_wait(got);
    trib_request_free(sent);
    trib_request_free(got);
    return status;
}

static trib_status_t sum_up(const struct link *l)
{
    const trib_status_t status = trib_plan_start(l->plan);

    return status == TRIB_OK ? trib_plan_wait(l->plan) : status;
}

typedef trib_status_t (*link_fn)(const struct link *l);

static double sent_bytes(const struct link *l)
{
    trib_stats_t stats = {.size = sizeof(stats)};

    return trib_stats(l->comm, &stats) == TRIB_OK ? (double)stats.wire_bytes : 0;
}

/* Measure one way and keep it in *out if it is faster. */
static trib_status_t measure_link(const struct link *l, link_fn move,
                                  struct perf_overlap_alone *out)
{
    double seconds[LINK_ROUNDS], cpu = HUGE_VAL, took = HUGE_VAL;
    double sent = sent_bytes(l);
    trib_status_t status = move(l); /* warm-up */

    sent = sent_bytes(l) - sent;
    if (status == TRIB_OK)
        status = perf_combine(l->comm, TRIB_MIN, &sent, 1);
    for (int i = 0; status == TRIB_OK && i < LINK_ROUNDS; i++) {
        status = trib_barrier(l->comm);
        const double before = perf_now(), used = perf_cpu_seconds();
        if (status == TRIB_OK)
            status = move(l);
        seconds[i] = perf_now() - before;
        cpu = fmin(cpu, perf_cpu_seconds() - used);
    }
    if (status == TRIB_OK)
        status = perf_combine(l->comm, TRIB_MAX, seconds, LINK_ROUNDS);
    if (status == TRIB_OK)
        status = perf_combine(l->comm, TRIB_MAX, &cpu, 1);
    for (int i = 0; status == TRIB_OK && i < LINK_ROUNDS; i++)
        took = fmin(took, seconds[i]);
    if (status != TRIB_OK || sent / took <= out->Bps[PERF_STAGE_LINK])
        return status;
    out->Bps[PERF_STAGE_LINK] = sent / took;
    out->link_cpu_s = cpu / sent;
    return status;
}

static trib_status_t measure_both(struct link *l, struct perf_overlap_alone *out)
{
    trib_desc_t desc = TRIB_DESC_INIT;

    desc.recv = l->in;
    desc.count = l->bytes / sizeof(float);
    desc.codec = "none";
    trib_status_t status = trib_plan_allreduce(l->comm, &desc, &l->plan);
    if (status == TRIB_OK)
        status = measure_link(l, pass_on, out);
    if (status == TRIB_OK)
        status = measure_link(l, sum_up, out);
    trib_plan_free(l->plan);
    return status;
}

static trib_status_t link_alone(struct perf_operation *op, double wire,
                                struct perf_overlap_alone *out)
{
    const int rank = op->oracle.rank, ranks = op->oracle.ranks;
    struct link l = {.comm = op->comm,
                     .next = (rank + 1) % ranks,
                     .before = (rank + ranks - 1) % ranks,
                     .bytes = (size_t)fmax(wire, LINK_LEAST)};
    double failed;

    l.out = calloc(1, l.bytes);
    l.in = calloc(1, l.bytes);
    failed = l.out == NULL || l.in == NULL;
    trib_status_t status = perf_combine(op->comm, TRIB_MAX, &failed, 1);
    if (status == TRIB_OK)
        status = failed > 0 ? TRIB_ERR_NO_MEMORY : measure_both(&l, out);
    free(l.out);
    free(l.in);
    return status;
}

/* --- a codec's stages alone --- */

static trib_status_t stages_alone(struct perf_operation *op,
                                  struct perf_overlap_alone *out)
{
    struct codec_stages s = {0};
    const struct codec_staged what = {.text =
                                          perf_codec_text_of(op->args, op->desc.count),
                                      .feedback = op->oracle.loss.feedback,
                                      .n = op->desc.count,
                                      .ranks = op->oracle.ranks};
    char why[512];
    trib_status_t status = trib_barrier(op->comm);
    double failed = !codec_stages_alone(&what, &s, why, sizeof(why));

    if (failed > 0)
        fprintf(stderr, "trib-perf: rank %d: %s.\n", op->oracle.rank, why);
    double slow[] = {s.encode_s, s.sum_s, s.decode_s, failed};
    if (status == TRIB_OK)
        status = perf_combine(op->comm, TRIB_MAX, slow, 4);
    if (status == TRIB_OK && slow[3] > 0)
        return TRIB_ERR_NO_MEMORY;
    const double bytes = (double)op->desc.count * sizeof(float);
    out->Bps[PERF_STAGE_ENCODE] = slow[0] > 0 ? bytes / slow[0] : 0;
    out->Bps[PERF_STAGE_SUM] = slow[1] > 0 ? bytes / slow[1] : 0;
    out->Bps[PERF_STAGE_DECODE] = slow[2] > 0 ? bytes / slow[2] : 0;
    return status;
}

/* --- during a computation --- */

struct overlap_layers {
    struct perf_operation *op;
    trib_plan_t *plan; /* fed one layer at a time */
    double turns; /* computation of a layer, in iterations */
    double nap_s; /* sleep of a layer that is computed elsewhere */
    double volatile sink;
};

/* Compute in registers: this uses a core but no memory bandwidth. */
static void compute(struct overlap_layers *b, double turns)
{
    double x = 1;

    for (double i = 0; i < turns; i++)
        x = x * 0.999999 + 1e-6;
    b->sink = x;
}

/* Sleep as the thread would while an accelerator computes. */
static void nap(double s)
{
    (void)nanosleep(&(struct timespec){(time_t)s, (long)(1e9 * (s - floor(s)))}, NULL);
}

enum layer_work { WORK_NONE, WORK_HERE, WORK_ELSEWHERE };

/* Run one step: compute each layer, then mark its part of the sum as ready. */
static trib_status_t step(struct overlap_layers *b, enum layer_work work, bool sums,
                          struct perf_timeline *line, double *seconds)
{
    const size_t n = b->op->desc.count;
    trib_status_t status = TRIB_OK;

    if (b->op->pristine != NULL)
        perf_operation_rewrite(b->op);
    status = trib_barrier(b->op->comm);
    const double before = perf_now();
    if (status == TRIB_OK && sums)
        status = trib_plan_start(b->plan);
    for (size_t i = PERF_LAYERS; i-- > 0 && status == TRIB_OK;) {
        const size_t from = i * n / PERF_LAYERS, to = (i + 1) * n / PERF_LAYERS;
        line->from_us[PERF_LAYERS - 1 - i] = 1e6 * (perf_now() - before);
        if (work == WORK_HERE)
            compute(b, b->turns);
        else if (work == WORK_ELSEWHERE)
            nap(b->nap_s);
        line->to_us[PERF_LAYERS - 1 - i] = 1e6 * (perf_now() - before);
        if (sums)
            status = trib_plan_ready(b->plan, from, to - from);
    }
    if (status == TRIB_OK && sums)
        status = trib_plan_wait(b->plan);
    *seconds = perf_now() - before;
    line->took_us = 1e6 * *seconds;
    return status;
}

/* Calibrate the iterations per layer, so that all layers take LONGER times comm_s. */
static trib_status_t choose_turns(struct overlap_layers *b, double comm_s)
{
    double pace = 0, most = comm_s;
    const double trial = 1e6;
    trib_status_t status = perf_combine(b->op->comm, TRIB_MAX, &most, 1);

    for (int i = 0; i < 3; i++) {
        const double before = perf_now();
        compute(b, trial);
        pace = fmax(pace, trial / (perf_now() - before));
    }
    b->nap_s = LONGER * most / PERF_LAYERS;
    b->turns = b->nap_s * pace;
    return status;
}

/* Return the round of median duration. */
static const struct perf_timeline *middle_line(const struct perf_timeline *lines)
{
    for (int i = 0; i < ROUNDS; i++) {
        int before = 0;
        for (int j = 0; j < ROUNDS; j++)
            before += lines[j].took_us < lines[i].took_us ||
                      (lines[j].took_us == lines[i].took_us && j < i);
        if (before == ROUNDS / 2)
            return &lines[i];
    }
    return lines;
}

static struct perf_hidden hidden_of(double sum, double compute, double both,
                                    const struct perf_timeline *lines)
{
    return (struct perf_hidden){.comm_us = 1e6 * sum,
                                .compute_us = 1e6 * compute,
                                .both_us = 1e6 * both,
                                .part = perf_overlap_hidden(sum, compute, both),
                                .timeline = *middle_line(lines)};
}

static trib_status_t take_rounds(struct overlap_layers *b, struct perf_overlap *out)
{
    static const struct {
        enum layer_work work;
        bool sums;
    } steps[] = {{WORK_NONE, true},
                 {WORK_HERE, false},
                 {WORK_HERE, true},
                 {WORK_ELSEWHERE, false},
                 {WORK_ELSEWHERE, true}};
    enum { STEPS = sizeof(steps) / sizeof(*steps) };
    double seconds[STEPS][ROUNDS], s[STEPS];
    struct perf_timeline lines[STEPS][ROUNDS];
    trib_status_t status = step(b, WORK_NONE, true, &lines[0][0], &seconds[0][0]);

    if (status == TRIB_OK)
        status = step(b, WORK_NONE, true, &lines[0][0], &seconds[0][0]);
    if (status == TRIB_OK)
        status = choose_turns(b, seconds[0][0]);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < STEPS && status == TRIB_OK; i++)
            status = step(b, steps[i].work, steps[i].sums, &lines[i][round],
                          &seconds[i][round]);
    for (int i = 0; i < STEPS && status == TRIB_OK; i++)
        status = middle(b->op->comm, seconds[i], ROUNDS, &s[i]);
    if (status != TRIB_OK)
        return status;
    out->here = hidden_of(s[0], s[1], s[2], lines[2]);
    out->elsewhere = hidden_of(s[0], s[3], s[4], lines[4]);
    return TRIB_OK;
}

static trib_status_t fed(struct perf_operation *op, struct perf_overlap *out)
{
    struct overlap_layers b = {.op = op};
    trib_desc_t desc = op->desc;

    desc.feed = TRIB_FEED_BACKWARD;
    trib_status_t status = trib_plan_allreduce(op->comm, &desc, &b.plan);
    if (status == TRIB_OK)
        status = take_rounds(&b, out);
    trib_plan_free(b.plan);
    return status;
}

/* --- all --- */

trib_status_t perf_overlap_measure(struct perf_operation *op, struct perf_result *out)
{
    const char *codec = perf_codec_text_of(op->args, op->desc.count);
    const bool coded = strcmp(codec, "none") != 0;
    const bool flat = strstr(out->explain, "algorithm  flat") != NULL;
    struct perf_overlap_alone alone = {.Bps = {0}};

    if (op->oracle.ranks < 2 || op->desc.count < PERF_LAYERS)
        return TRIB_OK;
    const struct perf_overlap_work work = perf_overlap_work(
        (double)op->bytes, op->oracle.ranks, flat, coded, out->wire_bytes);
    trib_status_t status = link_alone(op, out->wire_bytes, &alone);
    if (status == TRIB_OK)
        status = stages_alone(op, &alone);
    if (status == TRIB_OK)
        status = fed(op, &out->overlap);
    perf_overlap_bounds(&work, &alone, out->us.p50, &out->overlap);
    out->overlap.measured = status == TRIB_OK;
    return status;
}
