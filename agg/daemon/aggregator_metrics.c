/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/aggregator_metrics.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/time.h"

enum {
    SLOTS_NS = 100000000, /* between counts of used slots, which are expensive */
    AWAITED_NS = 1000000, /* between searches for the single missing rank */
};

/* The next frame of a rank. */
struct arrival {
    int rank;
    uint32_t position; /* position of the frame */
    uint32_t summed;   /* next position at the latest sum */
    uint32_t before;   /* `summed` at the sum before that */
    uint64_t seen_ns;  /* 0: the frame has not arrived, or was not checked */
};

struct aggregator_metrics {
    struct trib_metrics *metrics;
    struct trib_metrics_writer *writer;
    uint64_t id;
    int n; /* number of arrivals */
    int at; /* first arrival to check in the next step */
    struct trib_engine_stats last; /* engine counters when last added */
    uint64_t sums;                 /* sums before the step */
    uint64_t operations;           /* operations ended */
    uint64_t began_ns;             /* start of the current operation; 0: none */
    uint64_t moved_ns;
    uint64_t slots_ns;
    uint64_t awaited_ns;
    int32_t awaited; /* the missing rank, as of awaited_ns */
    bool failed;
    struct arrival arrivals[]; /* one per rank with a link here */
};

struct aggregator_metrics *aggregator_metrics_open(struct trib_metrics *metrics,
                                                   uint64_t id, int ranks,
                                                   const bool *peers)
{
    int n = 0;

    for (int r = 0; r < ranks; r++)
        n += peers[r];
    struct aggregator_metrics *w =
        calloc(1, sizeof(*w) + (size_t)n * sizeof(w->arrivals[0]));
    if (!w)
        return NULL;
    w->metrics = metrics;
    w->id = id;
    if (trib_metrics_open_mt(metrics, id, (uint32_t)n, &w->writer) != TRIB_OK) {
        free(w);
        return NULL;
    }
    for (int r = 0; r < ranks; r++) {
        if (!peers[r])
            continue;
        assert(w->n < n);
        w->writer->lag[w->n].rank = (uint32_t)r;
        w->arrivals[w->n++].rank = r;
    }
    return w;
}

void aggregator_metrics_close(struct aggregator_metrics *w)
{
    if (!w)
        return;
    trib_metrics_close_mt(w->metrics, w->id);
    free(w);
}

/* Lag of ranks -------------------------------------------------------------------- */

static bool is_up(const struct trib_link *l)
{
    return l->opened && !l->lost;
}

void aggregator_metrics_before_step(struct aggregator_metrics *w,
                                    const struct trib_engine *e)
{
    uint64_t now = 0;

    if (!w)
        return;
    w->sums = e->stats.sums;
    for (int k = 0; k < w->n && k < AGGREGATOR_METRICS_LOOKS; k++) {
        struct arrival *a = &w->arrivals[w->at];
        struct trib_link *l = &e->links[a->rank];
        const uint32_t next = l->recv[TRIB_LANE_UP].next;
        w->at = w->at + 1 < w->n ? w->at + 1 : 0;
        if (a->position != next)
            a->seen_ns = 0; /* the frame was consumed; another is next */
        a->position = next;
        if (a->seen_ns || !is_up(l) || !trib_link_peek(l, &e->arena, TRIB_LANE_UP))
            continue;
        if (!now)
            now = trib_now_ns();
        a->seen_ns = now;
    }
}

/* Return when the first frame of a rank consumed since the previous sum was seen; `now`
 * if it arrived after the rank was last checked. */
static uint64_t came_at(const struct arrival *a, uint64_t now)
{
    /* Differences, because positions wrap around. */
    const bool used = a->position - a->before < a->summed - a->before;

    return a->seen_ns && used ? a->seen_ns : now;
}

/* Record the lag of each rank after a chunk was summed. */
static void record_lags(struct aggregator_metrics *w, const struct trib_engine *e)
{
    const uint64_t now = trib_now_ns();
    uint64_t first = now;

    assert(w->writer);
    for (int i = 0; i < w->n; i++) {
        const struct arrival *a = &w->arrivals[i];
        const uint64_t at = came_at(a, now);
        if (is_up(&e->links[a->rank]) && at < first)
            first = at;
    }
    for (int i = 0; i < w->n; i++) {
        const struct arrival *a = &w->arrivals[i];
        if (is_up(&e->links[a->rank])) /* else it is linked to another aggregator */
            trib_metrics_lag(w->writer, (uint32_t)i, came_at(a, now) - first);
    }
    trib_metrics_time(w->writer, TRIB_TIME_CHUNK, now - first);
}

/* Return true if a frame of every rank was consumed since the previous sum. */
static bool all_used(struct aggregator_metrics *w, const struct trib_engine *e)
{
    bool all = true, any = false;

    for (int i = 0; i < w->n; i++) {
        struct arrival *a = &w->arrivals[i];
        const struct trib_link *l = &e->links[a->rank];
        const uint32_t next = l->recv[TRIB_LANE_UP].next;
        if (is_up(l)) {
            all &= next != a->summed;
            any = true;
        }
        a->before = a->summed;
        a->summed = next;
    }
    return all && any;
}

void aggregator_metrics_after_step(struct aggregator_metrics *w,
                                   const struct trib_engine *e)
{
    if (!w)
        return;
    if (e->stats.sums != w->sums && all_used(w, e))
        record_lags(w, e);
}

void aggregator_metrics_moved(struct aggregator_metrics *w, const struct trib_engine *e,
                              uint64_t now_ns)
{
    if (!w)
        return;
    if (e->stats.operations != w->operations) {
        w->operations = e->stats.operations;
        if (w->began_ns)
            trib_metrics_time(w->writer, TRIB_TIME_OPERATION, now_ns - w->began_ns);
        w->began_ns = 0;
    }
    if (!e->head)
        w->began_ns = 0;
    else if (!w->began_ns)
        w->began_ns = now_ns;
}

/* Return the only rank without a frame; -1: none or several. */
static int32_t awaited(const struct aggregator_metrics *w, const struct trib_engine *e)
{
    int32_t one = -1;

    for (int i = 0; i < w->n; i++) {
        const struct arrival *a = &w->arrivals[i];
        const struct trib_link *l = &e->links[a->rank];
        const bool here = a->seen_ns && a->position == l->recv[TRIB_LANE_UP].next;
        if (here || !is_up(l))
            continue;
        if (one >= 0)
            return -1;
        one = a->rank;
    }
    return one;
}

/* Hosts and transports ------------------------------------------------------------ */

static void place_rank(struct trib_job_place *p, const char *host)
{
    uint32_t i = 0;

    assert(p->hosts <= TRIB_HOSTS_SHOWN);
    while (i < p->hosts && strcmp(p->host[i].name, host) != 0)
        i++;
    if (i == TRIB_HOSTS_SHOWN) {
        p->ranks_elsewhere++;
        return;
    }
    if (i == p->hosts)
        snprintf(p->host[p->hosts++].name, sizeof(p->host[i].name), "%s", host);
    p->host[i].ranks++;
}

static void add_transport(struct trib_job_place *p, const char *name)
{
    if (!strstr(p->transports, name) &&
        strlen(p->transports) + strlen(name) + 2 < sizeof(p->transports))
        (void)trib_text_append(p->transports, sizeof(p->transports), "%s%s",
                               p->transports[0] ? " " : "", name);
}

void aggregator_metrics_wired(struct aggregator_metrics *w, const struct trib_engine *e)
{
    struct trib_job_place *p = w ? calloc(1, sizeof(*p)) : NULL;

    if (!p)
        return;
    for (int r = 0; r < e->ranks; r++)
        place_rank(p, e->peers[r].host);
    for (int i = 0; i < w->n; i++) {
        struct trib_route route = {.name = "none"};
        e->transport->ops->route(e->transport, w->arrivals[i].rank, &route);
        add_transport(p, route.name);
    }
    trib_metrics_place_mt(w->metrics, w->id, p);
    free(p);
}

/* Counters ------------------------------------------------------------------------- */

/* Return the number of frames in flight to a rank plus its frames waiting here. */
static uint32_t slots_of(const struct trib_engine *e, const struct trib_link *l,
                         int lane)
{
    const struct trib_send_lane *s = &l->send[lane];
    const struct trib_recv_lane *r = &l->recv[lane];
    const uint32_t most = e->arena.window;
    uint32_t n =
        s->next - atomic_load_explicit(&l->my_credits[lane], memory_order_relaxed);

    n = n < most ? n : most; /* the peer writes credits: clamp */
    if (!l->mapped) {
        const uint32_t waiting = r->arrived - r->next;
        return n + (waiting < most ? waiting : most);
    }
    for (uint32_t i = 0; i < most; i++) {
        const uint32_t position = r->next + i;
        const struct trib_entry *c =
            (const struct trib_entry *)(r->slots +
                                        trib_slot_off(l, &e->arena, position));
        n += atomic_load_explicit(&c->position, memory_order_relaxed) == position + 1;
    }
    return n;
}

static void count_slots(struct aggregator_metrics *w, const struct trib_engine *e,
                        uint64_t now)
{
    uint32_t n = 0;

    if (now - w->slots_ns < SLOTS_NS)
        return;
    w->slots_ns = now;
    for (int i = 0; i < w->n; i++) {
        const struct trib_link *link = &e->links[w->arrivals[i].rank];
        for (int lane = 0; lane < TRIB_LANES && is_up(link); lane++)
            n += slots_of(e, link, lane);
    }
    trib_metrics_slots(w->writer, n);
}

static void count(struct aggregator_metrics *w, const struct trib_engine *e)
{
    const struct trib_engine_stats *s = &e->stats, *l = &w->last;

    trib_metrics_count(w->writer, TRIB_JOB_COUNTS_RECEIVED,
                       s->received_bytes - l->received_bytes);
    trib_metrics_count(w->writer, TRIB_JOB_COUNTS_SENT, s->wire_bytes - l->wire_bytes);
    trib_metrics_count(w->writer, TRIB_JOB_COUNTS_DENSE,
                       s->dense_bytes - l->dense_bytes + s->received_dense_bytes -
                           l->received_dense_bytes);
    trib_metrics_count(w->writer, TRIB_JOB_COUNTS_CHUNKS, s->sums - l->sums);
    trib_metrics_count(w->writer, TRIB_JOB_COUNTS_SHORT, s->short_sums - l->short_sums);
    trib_metrics_count(w->writer, TRIB_JOB_COUNTS_OPERATIONS,
                       s->operations - l->operations);
    trib_metrics_count(w->writer, TRIB_JOB_COUNTS_DROPPED,
                       s->late_frames - l->late_frames);
    w->last = *s;
    if (e->failed == TRIB_ERR_PROTOCOL && !w->failed)
        trib_metrics_count(w->writer, TRIB_JOB_COUNTS_DROPPED, 1);
    w->failed = e->failed;
}

static void show_operation(struct aggregator_metrics *w, const struct trib_engine *e,
                           uint64_t at_ns)
{
    struct trib_operation now = {.number = e->seq,
                                 .phase = TRIB_PHASE_IDLE,
                                 .moved_ns = w->moved_ns,
                                 .waits_for = -1};

    if (e->head && !e->failed) {
        now.phase = e->head->now.moved ? TRIB_PHASE_TRANSFER : TRIB_PHASE_START;
        if (w->n <= AGGREGATOR_METRICS_LOOKS || at_ns - w->awaited_ns >= AWAITED_NS) {
            w->awaited_ns = at_ns;
            w->awaited = awaited(w, e);
        }
        now.waits_for = w->awaited;
    }
    trib_metrics_operation(w->writer, now);
}

void aggregator_metrics_turn_ends(struct aggregator_metrics *w, struct trib_engine *e,
                                  uint64_t begin_ns, uint64_t end_ns)
{
    if (!w)
        return;
    if (end_ns != begin_ns) {
        w->moved_ns = end_ns;
        trib_metrics_count(w->writer, TRIB_JOB_COUNTS_BUSY, end_ns - begin_ns);
        count(w, e);
    }
    show_operation(w, e, begin_ns);
    count_slots(w, e, begin_ns);
}
