/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the service knows of itself: counters of jobs and of the service, and what jobs hold.
 *
 *     threads that sum   ──▶ writers: a block for each thread and job, relaxed atomics ─┐
 *     thread of control  ──▶ counters of the service; publish: the table of jobs        ├─▶ view
 *                            open, close: writers come and go, under a lock ────────────┘
 *
 * Nobody who sums takes a lock or waits. A view adds up all blocks; what it shows of one block
 * may be of moments some nanoseconds apart. Totals of the service count jobs that are gone too.
 */
#ifndef AGG_METRICS_H
#define AGG_METRICS_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agg/jobs.h"
#include "base/cpu.h"

enum trib_job_counter {
#define TRIB_METRICS_JOB(id, name, unit, help) TRIB_JOB_COUNTS_##id,
#include "agg/metrics.def"
    TRIB_JOB_COUNTERS,
};

enum trib_service_counter {
#define TRIB_METRICS_SERVICE(id, name, unit, help) TRIB_SERVICE_COUNTS_##id,
#include "agg/metrics.def"
    TRIB_SERVICE_COUNTERS,
};

/* How long a rank's contribution to a chunk came after the first: up to so many ns, or more. */
#define TRIB_LAG_BOUNDS 5
static const uint64_t trib_lag_bounds_ns[TRIB_LAG_BOUNDS] = {100000, 1000000, 10000000,
                                                             100000000, 1000000000};

struct trib_lag {
    uint64_t count[TRIB_LAG_BOUNDS + 1]; /* the last: above all bounds */
    uint64_t sum_ns;
};

enum trib_job_phase {
    TRIB_PHASE_IDLE,     /* no operation */
    TRIB_PHASE_START,    /* nothing has arrived */
    TRIB_PHASE_TRANSFER, /* contributions or results are on their way */
};

/** trib_job_phase_name - "idle", "start", "transfer". */
const char *trib_job_phase_name(enum trib_job_phase phase);

struct trib_operation {
    uint64_t number;
    enum trib_job_phase phase;
    uint64_t moved_ns;  /* when something last moved in it */
    int32_t waits_for; /* a rank; -1: not one alone */
};

/* --- writers --- */

/* One job's block of one thread, to which that thread alone writes. */
struct trib_metrics_writer {
    _Alignas(TRIB_CACHE_LINE) _Atomic uint64_t count[TRIB_JOB_COUNTERS];
    _Atomic uint64_t slots_used;
    _Atomic uint64_t number;
    _Atomic uint64_t moved_ns;
    _Atomic uint32_t phase;
    _Atomic int32_t waits_for;
    uint64_t id;
    uint32_t ranks;
    struct trib_metrics_writer *next;
    struct {
        _Atomic uint64_t count[TRIB_LAG_BOUNDS + 1];
        _Atomic uint64_t sum_ns;
    } lag[]; /* of each rank */
};

/* One writer: no read-modify-write is needed, nor paid for. */
static inline void trib_metrics_raise(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/** trib_metrics_count - n more. */
static inline void trib_metrics_count(struct trib_metrics_writer *w, enum trib_job_counter c,
                                      uint64_t n)
{
    trib_metrics_raise(&w->count[c], n);
}

/** trib_metrics_slots - how many of its slots the job uses now. */
static inline void trib_metrics_slots(struct trib_metrics_writer *w, uint32_t used)
{
    atomic_store_explicit(&w->slots_used, used, memory_order_relaxed);
}

/** trib_metrics_lag - a contribution of a rank came so long after the first to its chunk. */
static inline void trib_metrics_lag(struct trib_metrics_writer *w, uint32_t rank, uint64_t ns)
{
    uint32_t i = 0;

    assert(rank < w->ranks);
    while (i < TRIB_LAG_BOUNDS && ns > trib_lag_bounds_ns[i])
        i++;
    trib_metrics_raise(&w->lag[rank].count[i], 1);
    trib_metrics_raise(&w->lag[rank].sum_ns, ns);
}

/** trib_metrics_operation - where the job's operation is, and when something moved in it. */
static inline void trib_metrics_operation(struct trib_metrics_writer *w,
                                          struct trib_operation now)
{
    atomic_store_explicit(&w->number, now.number, memory_order_relaxed);
    atomic_store_explicit(&w->phase, (uint32_t)now.phase, memory_order_relaxed);
    atomic_store_explicit(&w->moved_ns, now.moved_ns, memory_order_relaxed);
    atomic_store_explicit(&w->waits_for, now.waits_for, memory_order_relaxed);
}

/* --- the service --- */

struct trib_metrics;

struct trib_metrics_opts {
    uint64_t start_ns; /* of the service, on the clock of all moments */
    uint64_t stuck_ns; /* an operation in which nothing moved for so long is stuck */
};

/** trib_metrics_create - nothing counted; errors: TRIB_ERR_NO_MEMORY. */
trib_status_t trib_metrics_create(const struct trib_metrics_opts *opts,
                                  struct trib_metrics **out);

/** trib_metrics_destroy - also writers that are still open; NULL is allowed. */
void trib_metrics_destroy(struct trib_metrics *metrics);

/**
 * trib_metrics_open - a writer of a job for one thread.
 *
 * owner    metrics, until trib_metrics_close
 * thread   any
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_metrics_open_mt(struct trib_metrics *metrics, uint64_t id, uint32_t ranks,
                                   struct trib_metrics_writer **out);

/** trib_metrics_close_mt - all writers of a job, which nobody uses any more. */
void trib_metrics_close_mt(struct trib_metrics *metrics, uint64_t id);

/** trib_metrics_event_mt - n more of the service's. */
void trib_metrics_event_mt(struct trib_metrics *metrics, enum trib_service_counter c,
                           uint64_t n);

/**
 * trib_metrics_publish - the table of jobs as it is now, for views to come.
 *
 * Copies what there is of every job: after changes, and not more than some times a second.
 * thread   that of the table; waits while a view is being made
 * errors   TRIB_ERR_NO_MEMORY: views show the jobs as they were
 */
trib_status_t trib_metrics_publish(struct trib_metrics *metrics, struct trib_jobs *jobs,
                                   uint64_t now_ns);

/* --- views --- */

struct trib_job_view {
    struct trib_job job;
    uint64_t count[TRIB_JOB_COUNTERS];
    uint64_t slots_used;
    struct trib_operation operation; /* of several, the one that has not moved for longest */
    bool stuck;
    uint32_t ranks;       /* that have a lag: 0 where the job has no writer */
    struct trib_lag *lag; /* of each rank */
};

struct trib_service_view {
    uint64_t now_ns;
    uint64_t uptime_ns;
    struct trib_jobs_limits limits;
    struct trib_jobs_limits held;
    uint32_t lent; /* of the slots that are held, those of idle jobs */
    bool draining;
    uint64_t events[TRIB_SERVICE_COUNTERS];
    uint64_t total[TRIB_JOB_COUNTERS]; /* of all jobs, also those that are gone */
    uint32_t n;
    struct trib_job_view *jobs;
};

/**
 * trib_metrics_view_mt - what there is at this moment.
 *
 * owner    trib_service_view_free
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_metrics_view_mt(struct trib_metrics *metrics, uint64_t now_ns,
                                   struct trib_service_view *out);

/** trib_service_view_free - and zero it. */
void trib_service_view_free(struct trib_service_view *view);

/* --- renderers: pure; the caller frees the text; NULL: out of memory --- */

/** trib_metrics_text - the text format of Prometheus, version 0.0.4. */
char *trib_metrics_text(const struct trib_service_view *view);

/** trib_metrics_json - one object; its fields are described in docs/metrics.md. */
char *trib_metrics_json(const struct trib_service_view *view);

/**
 * trib_metrics_name - a name in which every byte but those of printable ASCII and line feeds
 * became "?": those formats know UTF-8 alone.
 */
void trib_metrics_name(const char *name, char out[TRIB_JOB_NAME_BYTES]);

#endif
