/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a task: bytes of its message, and processor time.
 */
#include "perf/sim/sim_rank.h"
#include "pipeline/run/chunk.h"

enum {
    /* Ethernet, IP, and TCP with timestamps, per segment. */
    SEGMENT_HEADERS = 14 + 20 + 32,
    IP_HEADERS = 20 + 32,
    TCP_HEAD = 32, /* header of the library's TCP transport before each frame */
};

static uint32_t elements(const struct sim_rank *r, const struct trib_task *t)
{
    const struct trib_run *run = &r->replay->run;

    if (trib_share_task(run, t))
        return (uint32_t)run->desc.share_piece;
    return (uint32_t)trib_run_chunk(run, t->done, t->chunk).n;
}

/* Return the bytes of n encoded elements that sum `merged` contributions. */
static double word(const struct sim_rank *r, const struct trib_task *t, double n,
                   int merged)
{
    const struct sim_words *w = &r->replay->plan->words;
    double bytes;

    if (trib_share_task(&r->replay->run, t))
        return n * sizeof(float);
    if (t->flags & TRIB_TASK_FINAL)
        bytes = w->result;
    else if (w->merged)
        bytes = w->merged[merged];
    else
        bytes = merged == 1 ? w->contribution : w->partial;
    return n * bytes + w->head;
}

static double on_wire(const struct sim_replay *replay, double payload)
{
    const double frames = replay->plan->frames;
    double bytes = payload + frames * (sizeof(struct trib_frame) + TCP_HEAD);

    if (replay->args->mtu)
        bytes += bytes / (double)(replay->args->mtu - IP_HEADERS) * SEGMENT_HEADERS;
    return bytes;
}

/* A contribution is encoded once, however many ranks it is sent to. */
static double encode_own(struct sim_rank *r, const struct trib_task *t, double n)
{
    if (!r->replay->plan->plan.codec || trib_share_task(&r->replay->run, t) ||
        r->encoded[t->chunk] > t->done)
        return 0;
    r->encoded[t->chunk] = t->done + 1;
    return n * sizeof(float) / r->replay->args->rates.encode_Bps;
}

static double send_cost(struct sim_rank *r, const struct trib_task *t, double n,
                        struct sim_message *out)
{
    const struct sim_replay *replay = r->replay;
    const struct sim_rates *rates = &replay->args->rates;
    const struct sim_words *w = &replay->plan->words;
    const int merged = t->flags & TRIB_TASK_INPUT ? 1 : r->merged[t->chunk];
    const double payload = word(r, t, n, merged);
    double s = replay->plan->frames * rates->message_s + payload / rates->copy_Bps;

    out->bytes = on_wire(replay, payload);
    out->granted = false;
    out->lane = t->lane;
    out->merged = (uint16_t)merged;
    if (t->flags & TRIB_TASK_INPUT)
        s += encode_own(r, t, n);
    else if (replay->plan->plan.codec && !w->linear &&
             !(t->flags & TRIB_TASK_FORWARD) && !(t->flags & TRIB_TASK_FINAL))
        s += n * sizeof(float) / rates->encode_Bps;
    replay->out->payload += payload;
    if (r->edges[t->neighbor].route.n)
        replay->out->far_payload += payload;
    return s;
}

static double slowed(const struct sim_rank *r, double s)
{
    return r->rank == r->replay->args->slow_rank ? s * r->replay->args->slow_by : s;
}

double sim_cost_reduce(struct sim_rank *r, const struct trib_task *t)
{
    const double n = elements(r, t);
    const struct sim_replay *replay = r->replay;
    const struct sim_rates *rates = &replay->args->rates;
    const struct sim_words *w = &replay->plan->words;
    const bool coded = replay->plan->plan.codec && !trib_share_task(&replay->run, t);
    double s = t->flags & (TRIB_TASK_INPUT | TRIB_TASK_INPUT_SENT)
                   ? coded ? encode_own(r, t, n) : 0
                   : 0;

    for (uint32_t k = 0; k < t->n_contribs; k++) {
        const struct trib_contrib *m = &r->program.contribs[t->contrib + k];
        const struct sim_lane *l = &r->edges[m->neighbor].lane[m->lane];
        const int merged = l->merged[(l->taken - 1) % replay->window];
        const double payload = word(r, t, n, merged);

        s += replay->plan->frames * rates->message_s + payload / rates->copy_Bps +
             (coded && !w->linear ? n * sizeof(float) / rates->decode_Bps
                                  : payload / rates->sum_Bps);
    }
    if (coded && t->flags & TRIB_TASK_FINISH && !w->linear)
        s += n * sizeof(float) / rates->encode_Bps;
    if (coded && t->flags & TRIB_TASK_FINISH && r->rank < replay->plan->shape.size)
        s += n * sizeof(float) / rates->decode_Bps;
    return slowed(r, s);
}

/* Return the processor time of a task; slow_by scales all of it. */
double sim_cost(struct sim_rank *r, const struct trib_task *t,
                struct sim_message *message_out)
{
    const struct sim_rates *rates = &r->replay->args->rates;
    const double n = elements(r, t);
    double s = 0;

    if (t->kind == TRIB_TASK_SEND) {
        s = send_cost(r, t, n, message_out);
    } else if (t->kind == TRIB_TASK_COPY_IN) {
        struct trib_task final = *t;
        final.flags |= TRIB_TASK_FINAL;
        s = r->replay->plan->frames * rates->message_s +
            word(r, &final, n, 1) / rates->copy_Bps;
        if (r->replay->plan->plan.codec && !trib_share_task(&r->replay->run, t) &&
            r->rank < r->replay->plan->shape.size)
            s += n * sizeof(float) / rates->decode_Bps;
    }
    return slowed(r, s);
}
