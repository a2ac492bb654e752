/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/metrics/metrics.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Transports and hosts of one job. */
struct place {
    uint64_t id;
    struct trib_job_place place;
    struct place *next;
};

struct trib_metrics {
    struct trib_metrics_opts opts;
    _Atomic uint64_t events[TRIB_SERVICE_COUNTERS];
    _Atomic uint64_t reasons[TRIB_SERVICE_REASONS];
    pthread_mutex_t lock; /* guards all fields below, and the list of writers */
    struct trib_metrics_writer *writers;
    struct place *places;
    uint64_t gone[TRIB_JOB_COUNTERS]; /* counts of closed writers */
    struct trib_histogram gone_times[TRIB_TIMES];
    struct trib_jobs_limits limits;
    struct trib_jobs_limits held;
    uint32_t lent;
    bool draining;
    uint32_t n;
    uint32_t n_max;
    struct trib_job *jobs;
};

const char *trib_job_phase_name(enum trib_job_phase phase)
{
    static const char *const names[] = {
        [TRIB_PHASE_IDLE] = "idle",
        [TRIB_PHASE_START] = "start",
        [TRIB_PHASE_TRANSFER] = "transfer",
    };

    assert(phase < sizeof(names) / sizeof(*names));
    return names[phase];
}

static const struct {
    enum trib_service_counter counter;
    const char *label;
} reasons[] = {
#define TRIB_METRICS_REASON(of, id, label) {TRIB_SERVICE_COUNTS_##of, label},
#include "agg/metrics/metrics.def"
};

enum trib_service_counter trib_reason_counter(enum trib_service_reason reason)
{
    assert(reason < TRIB_SERVICE_REASONS);
    return reasons[reason].counter;
}

const char *trib_reason_label(enum trib_service_reason reason)
{
    assert(reason < TRIB_SERVICE_REASONS);
    return reasons[reason].label;
}

static uint64_t load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

trib_status_t trib_metrics_create(const struct trib_metrics_opts *opts,
                                  struct trib_metrics **out)
{
    struct trib_metrics *m = calloc(1, sizeof(*m));

    *out = m;
    if (!m)
        return TRIB_ERR_NO_MEMORY;
    m->opts = *opts;
    pthread_mutex_init(&m->lock, NULL);
    return TRIB_OK;
}

void trib_metrics_destroy(struct trib_metrics *m)
{
    if (!m)
        return;
    while (m->writers) {
        struct trib_metrics_writer *w = m->writers;
        m->writers = w->next;
        free(w);
    }
    while (m->places) {
        struct place *p = m->places;
        m->places = p->next;
        free(p);
    }
    pthread_mutex_destroy(&m->lock);
    free(m->jobs);
    free(m);
}

trib_status_t trib_metrics_open_mt(struct trib_metrics *m, uint64_t id, uint32_t ranks,
                                   struct trib_metrics_writer **out)
{
    struct trib_metrics_writer *w;
    size_t bytes = sizeof(*w) + ranks * sizeof(w->lag[0]);

    bytes = (bytes + TRIB_CACHE_LINE - 1) / TRIB_CACHE_LINE * TRIB_CACHE_LINE;
    *out = w = aligned_alloc(TRIB_CACHE_LINE, bytes);
    if (!w)
        return TRIB_ERR_NO_MEMORY;
    memset(w, 0, bytes);
    w->id = id;
    w->ranks = ranks;
    for (uint32_t i = 0; i < ranks; i++)
        w->lag[i].rank = i;
    atomic_store_explicit(&w->waits_for, -1, memory_order_relaxed);
    pthread_mutex_lock(&m->lock);
    w->next = m->writers;
    m->writers = w;
    pthread_mutex_unlock(&m->lock);
    return TRIB_OK;
}

static void add_times(struct trib_histogram *to, const struct trib_metrics_writer *w)
{
    for (int k = 0; k < TRIB_TIMES; k++) {
        for (int i = 0; i <= TRIB_TIME_BOUNDS; i++)
            to[k].count[i] += load(&w->times[k].count[i]);
        to[k].sum_ns += load(&w->times[k].sum_ns);
    }
}

static void drop_place(struct trib_metrics *m, uint64_t id)
{
    for (struct place **at = &m->places; *at; at = &(*at)->next) {
        struct place *p = *at;
        if (p->id != id)
            continue;
        *at = p->next;
        free(p);
        return;
    }
}

void trib_metrics_close_mt(struct trib_metrics *m, uint64_t id)
{
    pthread_mutex_lock(&m->lock);
    for (struct trib_metrics_writer **at = &m->writers; *at;) {
        struct trib_metrics_writer *w = *at;
        if (w->id != id) {
            at = &w->next;
            continue;
        }
        for (int c = 0; c < TRIB_JOB_COUNTERS; c++)
            m->gone[c] += load(&w->count[c]);
        add_times(m->gone_times, w);
        *at = w->next;
        free(w);
    }
    drop_place(m, id);
    pthread_mutex_unlock(&m->lock);
}

void trib_metrics_place_mt(struct trib_metrics *m, uint64_t id,
                           const struct trib_job_place *place)
{
    struct place *p = malloc(sizeof(*p));

    assert(place->hosts <= TRIB_HOSTS_SHOWN);
    if (!p)
        return;
    p->id = id;
    p->place = *place;
    pthread_mutex_lock(&m->lock);
    drop_place(m, id);
    p->next = m->places;
    m->places = p;
    pthread_mutex_unlock(&m->lock);
}

void trib_metrics_reason_mt(struct trib_metrics *m, enum trib_service_reason reason)
{
    assert(reason < TRIB_SERVICE_REASONS);
    atomic_fetch_add_explicit(&m->reasons[reason], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->events[reasons[reason].counter], 1,
                              memory_order_relaxed);
}

void trib_metrics_event_mt(struct trib_metrics *m, enum trib_service_counter c,
                           uint64_t n)
{
    assert(c < TRIB_SERVICE_COUNTERS);
    atomic_fetch_add_explicit(&m->events[c], n, memory_order_relaxed);
}

/* Make room for n jobs. Reads without the lock: only the publishing thread changes
 * n_max. */
static bool make_room(struct trib_metrics *m, uint32_t n)
{
    assert(m->n <= m->n_max);
    if (n <= m->n_max)
        return true;
    struct trib_job *jobs = calloc(n, sizeof(*jobs));
    if (!jobs)
        return false;
    pthread_mutex_lock(&m->lock);
    free(m->jobs);
    m->jobs = jobs;
    m->n = 0;
    m->n_max = n;
    pthread_mutex_unlock(&m->lock);
    return true;
}

trib_status_t trib_metrics_publish(struct trib_metrics *m, struct trib_jobs *jobs,
                                   uint64_t now_ns)
{
    struct trib_jobs_view view = trib_jobs_view(jobs);

    trib_jobs_positions(jobs, now_ns);
    if (!make_room(m, view.n))
        return TRIB_ERR_NO_MEMORY;
    assert(view.n <= m->n_max);
    pthread_mutex_lock(&m->lock);
    m->limits = view.limits;
    m->held = view.held;
    m->lent = view.lent;
    m->draining = view.draining;
    m->n = view.n;
    for (uint32_t i = 0; i < view.n; i++)
        m->jobs[i] = *trib_jobs_at(&view, i);
    pthread_mutex_unlock(&m->lock);
    return TRIB_OK;
}

/* --- views --- */

/* Insert a rank into view->late, sorted by lag, if it is among the latest. */
static void add_rank(struct trib_job_view *view, struct trib_rank_lag lag)
{
    uint32_t at = view->n_late;

    assert(view->n_late <= TRIB_RANKS_SHOWN);
    while (at > 0 && view->late[at - 1].sum_ns < lag.sum_ns)
        at--;
    if (at == TRIB_RANKS_SHOWN)
        return;
    view->n_late += view->n_late < TRIB_RANKS_SHOWN;
    for (uint32_t i = view->n_late - 1; i > at; i--)
        view->late[i] = view->late[i - 1];
    view->late[at] = lag;
}

/* Show the operation that has been stalled longest. */
static void add_operation(struct trib_job_view *view,
                          const struct trib_metrics_writer *w)
{
    struct trib_operation o = {
        .number = load(&w->number),
        .phase =
            (enum trib_job_phase)atomic_load_explicit(&w->phase, memory_order_relaxed),
        .moved_ns = load(&w->moved_ns),
        .waits_for = atomic_load_explicit(&w->waits_for, memory_order_relaxed),
    };

    if (o.phase != TRIB_PHASE_IDLE && (view->operation.phase == TRIB_PHASE_IDLE ||
                                       o.moved_ns < view->operation.moved_ns))
        view->operation = o;
}

static void add_writer(struct trib_job_view *view, const struct trib_metrics_writer *w)
{
    for (int c = 0; c < TRIB_JOB_COUNTERS; c++)
        view->count[c] += load(&w->count[c]);
    add_times(view->times, w);
    view->ranks += w->ranks;
    for (uint32_t r = 0; r < w->ranks; r++)
        if (load(&w->lag[r].count))
            add_rank(view,
                     (struct trib_rank_lag){w->lag[r].rank, load(&w->lag[r].count),
                                            load(&w->lag[r].sum_ns)});
    view->slots_used += load(&w->slots_used);
    add_operation(view, w);
}

static int compare_id(const void *id, const void *row)
{
    const uint64_t a = *(const uint64_t *)id;
    const uint64_t b = ((const struct trib_job_view *)row)->job.id;

    return (a > b) - (a < b);
}

/* Return the row of a job; NULL: none. Rows are in order of the jobs' numbers. */
static struct trib_job_view *row_of(const struct trib_service_view *view, uint64_t id)
{
    return view->n ? bsearch(&id, view->jobs, view->n, sizeof(*view->jobs), compare_id)
                   : NULL;
}

/* Fill in the rows of all jobs, each with its counts and its places. */
static bool view_jobs(const struct trib_metrics *m, uint64_t now_ns,
                      struct trib_service_view *out)
{
    struct trib_job_view *row;

    for (; out->n < m->n; out->n++)
        out->jobs[out->n] = (struct trib_job_view){.job = m->jobs[out->n],
                                                   .operation = {.waits_for = -1}};
    for (const struct trib_metrics_writer *w = m->writers; w; w = w->next)
        if ((row = row_of(out, w->id)))
            add_writer(row, w);
    for (uint32_t i = 0; i < out->n; i++) {
        const struct trib_operation *o = &out->jobs[i].operation;
        out->jobs[i].stuck = o->phase != TRIB_PHASE_IDLE && now_ns > o->moved_ns &&
                             now_ns - o->moved_ns >= m->opts.stuck_ns;
    }
    for (const struct place *p = m->places; p; p = p->next) {
        if (!(row = row_of(out, p->id)))
            continue;
        row->place = malloc(sizeof(*row->place));
        if (!row->place)
            return false;
        *row->place = p->place;
    }
    return true;
}

/* The caller holds the lock. */
static bool view_all(struct trib_metrics *m, uint64_t now_ns,
                     struct trib_service_view *out)
{
    assert(!out->jobs && out->n == 0);
    out->limits = m->limits;
    out->held = m->held;
    out->lent = m->lent;
    out->draining = m->draining;
    memcpy(out->total, m->gone, sizeof(out->total));
    memcpy(out->times, m->gone_times, sizeof(out->times));
    for (const struct trib_metrics_writer *w = m->writers; w; w = w->next) {
        for (int c = 0; c < TRIB_JOB_COUNTERS; c++)
            out->total[c] += load(&w->count[c]);
        add_times(out->times, w);
    }
    out->jobs = calloc(m->n ? m->n : 1, sizeof(*out->jobs));
    return out->jobs && view_jobs(m, now_ns, out);
}

trib_status_t trib_metrics_view_mt(struct trib_metrics *m, uint64_t now_ns,
                                   struct trib_service_view *out)
{
    *out = (struct trib_service_view){
        .now_ns = now_ns,
        .uptime_ns = now_ns > m->opts.start_ns ? now_ns - m->opts.start_ns : 0};
    for (int c = 0; c < TRIB_SERVICE_COUNTERS; c++)
        out->events[c] = load(&m->events[c]);
    for (int r = 0; r < TRIB_SERVICE_REASONS; r++)
        out->reasons[r] = load(&m->reasons[r]);
    pthread_mutex_lock(&m->lock);
    bool done = view_all(m, now_ns, out);
    pthread_mutex_unlock(&m->lock);
    if (done)
        return TRIB_OK;
    trib_service_view_free(out);
    return TRIB_ERR_NO_MEMORY;
}

void trib_service_view_free(struct trib_service_view *view)
{
    for (uint32_t i = 0; i < view->n; i++)
        free(view->jobs[i].place);
    free(view->jobs);
    free(view->threads);
    free(view->snapshots.rows);
    *view = (struct trib_service_view){0};
}

void trib_metrics_name(const char *name, char out[TRIB_JOB_NAME_BYTES])
{
    size_t len = strnlen(name, TRIB_JOB_NAME_BYTES - 1);

    for (size_t i = 0; i < len; i++)
        out[i] = (name[i] >= ' ' && name[i] <= '~') || name[i] == '\n' ? name[i] : '?';
    out[len] = 0;
}
