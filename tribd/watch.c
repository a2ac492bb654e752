/* SPDX-License-Identifier: BSD-3-Clause */
#include "tribd/watch.h"

#include <stdlib.h>

#include "base/time.h"

enum { SLOTS_NS = 100000000 }; /* between two counts of the slots in use: they are many */

/* The next frame of a rank. */
struct arrival {
    uint64_t seen_ns;  /* 0: it has not come */
    uint32_t position; /* of it, before the step */
};

struct watch {
    struct trib_metrics *metrics;
    struct trib_metrics_writer *writer;
    uint64_t id;
    int ranks;
    struct trib_engine_stats last; /* as counted */
    uint64_t sums;                 /* before the step */
    uint64_t moved_ns;
    uint64_t slots_ns;
    bool failed;
    struct arrival arrivals[]; /* of each rank */
};

struct watch *watch_open(struct trib_metrics *metrics, uint64_t id, int ranks)
{
    struct watch *w = calloc(1, sizeof(*w) + (size_t)ranks * sizeof(w->arrivals[0]));

    if (!w)
        return NULL;
    w->metrics = metrics;
    w->id = id;
    w->ranks = ranks;
    if (trib_metrics_open_mt(metrics, id, (uint32_t)ranks, &w->writer) == TRIB_OK)
        return w;
    free(w);
    return NULL;
}

void watch_close(struct watch *w)
{
    if (!w)
        return;
    trib_metrics_close_mt(w->metrics, w->id);
    free(w);
}

/* Who is late ----------------------------------------------------------------------------- */

static bool is_up(const struct trib_link *l)
{
    return l->opened && !l->lost;
}

void watch_before(struct watch *w, const struct trib_engine *e)
{
    uint64_t now = 0;

    if (!w)
        return;
    w->sums = e->stats.sums;
    for (int r = 0; r < w->ranks; r++) {
        struct trib_link *l = &e->links[r];
        struct arrival *a = &w->arrivals[r];
        a->position = l->recv[TRIB_LANE_UP].next;
        if (a->seen_ns || !is_up(l) || !trib_link_peek(l, &e->arena, TRIB_LANE_UP))
            continue;
        if (!now)
            now = trib_now_ns();
        a->seen_ns = now;
    }
}

static bool was_used(const struct watch *w, const struct trib_engine *e, int r)
{
    return e->links[r].recv[TRIB_LANE_UP].next != w->arrivals[r].position;
}

/* A chunk was summed: whose frame was not seen before has come within this step. */
static void record_lags(struct watch *w, const struct trib_engine *e)
{
    const uint64_t now = trib_now_ns();
    uint64_t first = now;

    for (int r = 0; r < w->ranks; r++)
        if (w->arrivals[r].seen_ns && w->arrivals[r].seen_ns < first)
            first = w->arrivals[r].seen_ns;
    for (int r = 0; r < w->ranks; r++) {
        const uint64_t seen = w->arrivals[r].seen_ns;
        if (!is_up(&e->links[r]))
            continue;
        trib_metrics_lag(w->writer, (uint32_t)r, (seen ? seen : now) - first);
    }
}

void watch_after(struct watch *w, const struct trib_engine *e)
{
    bool all = true, any = false;

    if (!w)
        return;
    for (int r = 0; r < w->ranks && all; r++) {
        if (!is_up(&e->links[r])) /* another service's */
            continue;
        all = was_used(w, e, r);
        any = true;
    }
    if (all && any && e->stats.sums != w->sums)
        record_lags(w, e);
    for (int r = 0; r < w->ranks; r++)
        if (was_used(w, e, r))
            w->arrivals[r].seen_ns = 0;
}

/* The only rank of which nothing has come; -1: there are several, or none. */
static int32_t awaited(const struct watch *w, const struct trib_engine *e)
{
    int32_t one = -1;

    for (int r = 0; r < w->ranks; r++) {
        if (w->arrivals[r].seen_ns || !is_up(&e->links[r]))
            continue;
        if (one >= 0)
            return -1;
        one = r;
    }
    return one;
}

/* Counters -------------------------------------------------------------------------------- */

/* Frames on their way to a rank, and frames of it that wait here. */
static uint32_t slots_of(const struct trib_engine *e, const struct trib_link *l, int lane)
{
    const struct trib_send_lane *s = &l->send[lane];
    const struct trib_recv_lane *r = &l->recv[lane];
    const uint32_t most = e->arena.window;
    uint32_t n = s->next - atomic_load_explicit(&l->my_credits[lane], memory_order_relaxed);

    n = n < most ? n : most; /* credits are a stranger's */
    if (!l->mapped) {
        const uint32_t waiting = r->arrived - r->next;
        return n + (waiting < most ? waiting : most);
    }
    for (uint32_t i = 0; i < most; i++) {
        const uint32_t position = r->next + i;
        const struct trib_cell *c =
            (const struct trib_cell *)(r->slots + trib_slot_off(l, &e->arena, position));
        n += atomic_load_explicit(&c->position, memory_order_relaxed) == position + 1;
    }
    return n;
}

static void count_slots(struct watch *w, const struct trib_engine *e, uint64_t now)
{
    uint32_t n = 0;

    if (now - w->slots_ns < SLOTS_NS)
        return;
    w->slots_ns = now;
    for (int r = 0; r < w->ranks; r++)
        for (int lane = 0; lane < TRIB_LANES && is_up(&e->links[r]); lane++)
            n += slots_of(e, &e->links[r], lane);
    trib_metrics_slots(w->writer, n);
}

static void count(struct watch *w, const struct trib_engine *e)
{
    const struct trib_engine_stats *s = &e->stats, *l = &w->last;

    trib_metrics_count(w->writer, TRIB_JOB_COUNTS_RECEIVED, s->received_bytes - l->received_bytes);
    trib_metrics_count(w->writer, TRIB_JOB_COUNTS_SENT, s->wire_bytes - l->wire_bytes);
    trib_metrics_count(w->writer, TRIB_JOB_COUNTS_DENSE,
                       s->dense_bytes - l->dense_bytes + s->received_dense_bytes -
                           l->received_dense_bytes);
    trib_metrics_count(w->writer, TRIB_JOB_COUNTS_CHUNKS, s->sums - l->sums);
    trib_metrics_count(w->writer, TRIB_JOB_COUNTS_SHORT, s->short_sums - l->short_sums);
    trib_metrics_count(w->writer, TRIB_JOB_COUNTS_OPERATIONS, s->operations - l->operations);
    trib_metrics_count(w->writer, TRIB_JOB_COUNTS_DROPPED, s->late_frames - l->late_frames);
    w->last = *s;
    if (e->failed == TRIB_ERR_PROTOCOL && !w->failed)
        trib_metrics_count(w->writer, TRIB_JOB_COUNTS_DROPPED, 1);
    w->failed = e->failed;
}

static void show_operation(struct watch *w, const struct trib_engine *e)
{
    struct trib_operation now = {
        .number = e->seq, .phase = TRIB_PHASE_IDLE, .moved_ns = w->moved_ns, .waits_for = -1};

    if (e->head && !e->failed) {
        now.phase = e->head->moved ? TRIB_PHASE_TRANSFER : TRIB_PHASE_START;
        now.waits_for = awaited(w, e);
    }
    trib_metrics_operation(w->writer, now);
}

void watch_turn(struct watch *w, struct trib_engine *e, uint64_t begin_ns, uint64_t end_ns)
{
    if (!w)
        return;
    if (end_ns != begin_ns) {
        w->moved_ns = end_ns;
        trib_metrics_count(w->writer, TRIB_JOB_COUNTS_BUSY, end_ns - begin_ns);
        count(w, e);
    }
    show_operation(w, e);
    count_slots(w, e, begin_ns);
}
