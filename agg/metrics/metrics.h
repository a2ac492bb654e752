/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of the service and of its jobs, and the holdings of jobs.
 *
 *     summing threads   ─▶ writers: a block per thread and job, relaxed atomics ┐
 *     control thread    ─▶ counters of the service; publish: the table of jobs  ├▶ view
 *                          open, close: add and remove writers, under a lock ───┘
 *
 * Summing threads take no lock and never wait. A view adds up all blocks; the counters
 * of one block may be read some nanoseconds apart. Totals of the service include ended
 * jobs.
 */
#ifndef AGG_METRICS_METRICS_H
#define AGG_METRICS_METRICS_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agg/jobs/jobs.h"
#include "base/cpu.h"
#include "base/rdma_counters.h"

enum trib_job_counter {
#define TRIB_METRICS_JOB(id, name, unit, help) TRIB_JOB_COUNTS_##id,
#include "agg/metrics/metrics.def"
    TRIB_JOB_COUNTERS,
};

enum trib_service_counter {
#define TRIB_METRICS_SERVICE(id, name, unit, help) TRIB_SERVICE_COUNTS_##id,
#include "agg/metrics/metrics.def"
    TRIB_SERVICE_COUNTERS,
};

/* Why a job was refused or lost. */
enum trib_service_reason {
#define TRIB_METRICS_REASON(of, id, label) TRIB_##of##_FOR_##id,
#include "agg/metrics/metrics.def"
    TRIB_SERVICE_REASONS,
};

/* Histograms of durations: the count of values up to each bound, and above all
 * bounds. */
enum trib_time {
#define TRIB_METRICS_TIME(id, name, help) TRIB_TIME_##id,
#include "agg/metrics/metrics.def"
    TRIB_TIMES,
};

#define TRIB_TIME_BOUNDS 11
static const uint64_t trib_time_bounds_ns[TRIB_TIME_BOUNDS] = {
    10000,    30000,    100000,    300000,    1000000,    3000000,
    10000000, 30000000, 100000000, 1000000000, 10000000000};

struct trib_histogram {
    uint64_t count[TRIB_TIME_BOUNDS + 1]; /* last: above all bounds */
    uint64_t sum_ns;
};

/* Number of ranks listed individually: those with the largest total lag. */
#define TRIB_RANKS_SHOWN 8

struct trib_rank_lag {
    uint32_t rank;
    uint64_t count; /* number of contributions */
    uint64_t sum_ns;
};

enum trib_job_phase {
    TRIB_PHASE_IDLE,     /* no operation */
    TRIB_PHASE_START,    /* nothing has arrived */
    TRIB_PHASE_TRANSFER, /* contributions or results in flight */
};

/** trib_job_phase_name - return "idle", "start" or "transfer". */
const char *trib_job_phase_name(enum trib_job_phase phase);

struct trib_operation {
    uint64_t number;
    enum trib_job_phase phase;
    uint64_t moved_ns;  /* time of its last progress */
    int32_t waits_for; /* the only missing rank; -1: none or several */
};

/* --- writers --- */

/* Counters of one job in one thread, the only writer of this block. */
struct trib_metrics_writer {
    _Alignas(TRIB_CACHE_LINE) _Atomic uint64_t count[TRIB_JOB_COUNTERS];
    _Atomic uint64_t slots_used;
    _Atomic uint64_t number;
    _Atomic uint64_t moved_ns;
    _Atomic uint32_t phase;
    _Atomic int32_t waits_for;
    struct {
        _Atomic uint64_t count[TRIB_TIME_BOUNDS + 1];
        _Atomic uint64_t sum_ns;
    } times[TRIB_TIMES];
    uint64_t id;
    uint32_t ranks;
    struct trib_metrics_writer *next;
    struct {
        uint32_t rank;
        _Atomic uint64_t count;
        _Atomic uint64_t sum_ns;
    } lag[]; /* one per rank served by this thread */
};

/* Add n without an atomic read-modify-write: each counter has a single writer. */
static inline void trib_metrics_raise(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter,
                          atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/** trib_metrics_count - add n to a counter of the job. */
static inline void trib_metrics_count(struct trib_metrics_writer *w,
                                      enum trib_job_counter c, uint64_t n)
{
    trib_metrics_raise(&w->count[c], n);
}

/** trib_metrics_slots - set the number of slots that the job uses now. */
static inline void trib_metrics_slots(struct trib_metrics_writer *w, uint32_t used)
{
    atomic_store_explicit(&w->slots_used, used, memory_order_relaxed);
}

/** trib_metrics_time - record a duration in a histogram. */
static inline void trib_metrics_time(struct trib_metrics_writer *w, enum trib_time kind,
                                     uint64_t ns)
{
    uint32_t i = 0;

    while (i < TRIB_TIME_BOUNDS && ns > trib_time_bounds_ns[i])
        i++;
    trib_metrics_raise(&w->times[kind].count[i], 1);
    trib_metrics_raise(&w->times[kind].sum_ns, ns);
}

/** trib_metrics_lag - record the lag of the writer's i-th rank after the first
 * contribution to the same chunk. */
static inline void trib_metrics_lag(struct trib_metrics_writer *w, uint32_t i,
                                    uint64_t ns)
{
    assert(i < w->ranks);
    trib_metrics_time(w, TRIB_TIME_LAG, ns);
    trib_metrics_raise(&w->lag[i].count, 1);
    trib_metrics_raise(&w->lag[i].sum_ns, ns);
}

/** trib_metrics_operation - set the phase of the job's operation and its last
 * progress. */
static inline void trib_metrics_operation(struct trib_metrics_writer *w,
                                          struct trib_operation now)
{
    atomic_store_explicit(&w->number, now.number, memory_order_relaxed);
    atomic_store_explicit(&w->phase, (uint32_t)now.phase, memory_order_relaxed);
    atomic_store_explicit(&w->moved_ns, now.moved_ns, memory_order_relaxed);
    atomic_store_explicit(&w->waits_for, now.waits_for, memory_order_relaxed);
}

/* --- the service --- */

/* Number of a job's hosts that are listed by name, in order of ranks. */
#define TRIB_HOSTS_SHOWN 64
#define TRIB_PLACE_NAME_BYTES 65

struct trib_job_place {
    char transports[TRIB_PLACE_NAME_BYTES]; /* "shm", "shm tcp" */
    uint32_t hosts; /* number of listed hosts */
    uint32_t ranks_elsewhere; /* ranks on hosts that are not listed */
    struct {
        char name[TRIB_PLACE_NAME_BYTES]; /* any bytes: sent by the peer */
        uint32_t ranks;
    } host[TRIB_HOSTS_SHOWN];
};

struct trib_metrics;

struct trib_metrics_opts {
    uint64_t start_ns; /* start of the service, on the clock of all times here */
    uint64_t stuck_ns; /* an operation without progress for this long is stuck */
};

/** trib_metrics_create - create counters, all 0; errors: TRIB_ERR_NO_MEMORY. */
trib_status_t trib_metrics_create(const struct trib_metrics_opts *opts,
                                  struct trib_metrics **out);

/** trib_metrics_destroy - free the metrics and all open writers; NULL is allowed. */
void trib_metrics_destroy(struct trib_metrics *metrics);

/**
 * trib_metrics_open_mt - create a job's writer for one thread.
 *
 * ranks    number of ranks that the thread serves, numbered 0 to ranks - 1 unless the
 *          caller sets lag[].rank before counting. Writers of one job share no rank
 * owner    metrics, until trib_metrics_close_mt
 * thread   any
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_metrics_open_mt(struct trib_metrics *metrics, uint64_t id,
                                   uint32_t ranks, struct trib_metrics_writer **out);

/** trib_metrics_close_mt - close all writers of a job; no thread may use them any
 * longer. */
void trib_metrics_close_mt(struct trib_metrics *metrics, uint64_t id);

/** trib_metrics_event_mt - add n to a counter of the service that has no reasons. */
void trib_metrics_event_mt(struct trib_metrics *metrics, enum trib_service_counter c,
                           uint64_t n);

/** trib_metrics_reason_mt - count a reason, and add 1 to the counter that it splits. */
void trib_metrics_reason_mt(struct trib_metrics *metrics,
                            enum trib_service_reason reason);

/**
 * trib_metrics_place_mt - set the transports and hosts of a job's ranks; `place` is
 * copied.
 *
 * Both are unknown before the first call, after trib_metrics_close_mt, and if memory
 * for the copy is short.
 */
void trib_metrics_place_mt(struct trib_metrics *metrics, uint64_t id,
                           const struct trib_job_place *place);

/**
 * trib_metrics_publish - copy the current table of jobs for later views.
 *
 * Copies every job: call it after changes, at most a few times per second.
 *
 * thread   that of the table; waits while a view is being made
 * errors   TRIB_ERR_NO_MEMORY: views keep showing the previous table
 */
trib_status_t trib_metrics_publish(struct trib_metrics *metrics, struct trib_jobs *jobs,
                                   uint64_t now_ns);

/* --- views --- */

struct trib_job_view {
    struct trib_job job;
    uint64_t count[TRIB_JOB_COUNTERS];
    uint64_t slots_used;
    struct trib_operation operation; /* the one stalled longest */
    bool stuck;
    struct trib_histogram times[TRIB_TIMES];
    uint32_t ranks;  /* number of ranks with a lag; 0: the job has no writer */
    uint32_t n_late; /* length of `late`, latest first */
    struct trib_rank_lag late[TRIB_RANKS_SHOWN];
    struct trib_job_place *place; /* NULL: unknown */
};

/* Load of one thread of the service. */
struct trib_thread_view {
    char name[16]; /* "control", "lane0" */
    uint64_t busy_ns;
    uint64_t passes;
};

/* Process metrics from the kernel. */
struct trib_process_view {
    bool known;
    uint64_t resident_bytes;
    uint64_t fds;
    uint64_t fds_max;
    uint64_t cpu_ns;
    uint64_t start_ns; /* start of the process, since 1970 */
};

/* Newest snapshot of a vector of a store. */
struct trib_snapshot_row {
    char job[TRIB_JOB_NAME_BYTES];
    char user[TRIB_JOB_NAME_BYTES];
    char name[TRIB_JOB_NAME_BYTES]; /* name of the vector */
    uint64_t version;
    uint64_t bytes;
    uint64_t age_s;
};

struct trib_snapshots_view {
    bool known; /* false: snapshots are disabled */
    uint32_t n;
    uint32_t n_most;
    uint64_t bytes; /* total size of the files */
    uint64_t disk_bytes; /* limit of `bytes` */
    uint64_t oldest_s; /* age of the oldest */
    uint64_t failures; /* failed writes */
    uint32_t n_rows; /* bounded; 0 if memory is short */
    struct trib_snapshot_row *rows;
};

#define TRIB_RDMA_PORTS_SHOWN 16

struct trib_service_view {
    uint64_t now_ns;
    uint64_t uptime_ns;
    struct trib_jobs_limits limits;
    struct trib_jobs_limits held;
    uint32_t lent; /* slots lent by idle jobs, part of held.slots */
    bool draining;
    uint64_t events[TRIB_SERVICE_COUNTERS];
    uint64_t reasons[TRIB_SERVICE_REASONS];
    uint64_t total[TRIB_JOB_COUNTERS]; /* all jobs, including ended ones */
    struct trib_histogram times[TRIB_TIMES]; /* all jobs, including ended ones */
    uint32_t n;
    struct trib_job_view *jobs;
    struct trib_process_view process; /* filled by the caller: see trib_process_view */
    struct trib_snapshots_view snapshots; /* filled by the caller, rows by malloc */
    uint32_t n_rdma;
    struct trib_rdma_counters rdma[TRIB_RDMA_PORTS_SHOWN]; /* filled by the caller */
    uint32_t n_threads;
    struct trib_thread_view *threads; /* allocated by the caller, with malloc */
};

/**
 * trib_metrics_view_mt - return all current counters.
 *
 * owner    trib_service_view_free
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_metrics_view_mt(struct trib_metrics *metrics, uint64_t now_ns,
                                   struct trib_service_view *out);

/** trib_process_view - read the kernel's counts of this process; makes several system
 * calls. */
void trib_process_view(struct trib_process_view *out);

/** trib_reason_counter, trib_reason_label - return the counter that a reason splits,
 * and the reason's name. */
enum trib_service_counter trib_reason_counter(enum trib_service_reason reason);
const char *trib_reason_label(enum trib_service_reason reason);

/** trib_service_view_free - free the members of a view and zero it. */
void trib_service_view_free(struct trib_service_view *view);

/** trib_metrics_since - return the time from then_ns to now_ns, at least 0. */
static inline uint64_t trib_metrics_since(uint64_t then_ns, uint64_t now_ns)
{
    return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* --- renderers: pure; the caller frees the text; NULL: out of memory --- */

/** trib_metrics_text - render Prometheus text format, version 0.0.4. */
char *trib_metrics_text(const struct trib_service_view *view);

/** trib_metrics_json - render one JSON object; docs/metrics.md describes its fields. */
char *trib_metrics_json(const struct trib_service_view *view);

/**
 * trib_metrics_name - copy a name, replacing bytes other than printable ASCII and line
 * feeds by "?": both formats require UTF-8.
 */
void trib_metrics_name(const char *name, char out[TRIB_JOB_NAME_BYTES]);

#endif
