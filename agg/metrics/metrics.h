/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of the service and of its jobs, and what jobs hold.
 *
 *     threads that sum  ─▶ writers: a block per thread and job, relaxed atomics ┐
 *     control thread    ─▶ counters of the service; publish: the table of jobs  ├▶ view
 *                          open, close: writers come and go, under a lock ──────┘
 *
 * Nobody who sums takes a lock or waits. A view adds up all blocks; what it shows of
 * one block may be of moments some nanoseconds apart. Totals of the service count jobs
 * that are gone too.
 */
#ifndef AGG_METRICS_METRICS_H
#define AGG_METRICS_METRICS_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agg/jobs/jobs.h"
#include "base/cpu.h"

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

/* The reason why a job was refused, or lost. */
enum trib_service_reason {
#define TRIB_METRICS_REASON(of, id, label) TRIB_##of##_FOR_##id,
#include "agg/metrics/metrics.def"
    TRIB_SERVICE_REASONS,
};

/* Times: so many came up to a bound of so many ns, or above all of them. */
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
    uint64_t count[TRIB_TIME_BOUNDS + 1]; /* the last: above all bounds */
    uint64_t sum_ns;
};

/* Ranks that are shown by themselves: those whose contributions came latest on the
 * whole. */
#define TRIB_RANKS_SHOWN 8

struct trib_rank_lag {
    uint32_t rank;
    uint64_t count; /* number of contributions */
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
    } lag[]; /* one for each rank that this thread hears of */
};

/* One writer: no read-modify-write is needed, nor paid for. */
static inline void trib_metrics_raise(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter,
                          atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/** trib_metrics_count - n more. */
static inline void trib_metrics_count(struct trib_metrics_writer *w,
                                      enum trib_job_counter c, uint64_t n)
{
    trib_metrics_raise(&w->count[c], n);
}

/** trib_metrics_slots - the number of slots that the job uses now. */
static inline void trib_metrics_slots(struct trib_metrics_writer *w, uint32_t used)
{
    atomic_store_explicit(&w->slots_used, used, memory_order_relaxed);
}

/** trib_metrics_time - something of that kind took so long. */
static inline void trib_metrics_time(struct trib_metrics_writer *w, enum trib_time kind,
                                     uint64_t ns)
{
    uint32_t i = 0;

    while (i < TRIB_TIME_BOUNDS && ns > trib_time_bounds_ns[i])
        i++;
    trib_metrics_raise(&w->times[kind].count[i], 1);
    trib_metrics_raise(&w->times[kind].sum_ns, ns);
}

/** trib_metrics_lag - a contribution of the i-th rank of the writer came so long after
 * the first to its chunk. */
static inline void trib_metrics_lag(struct trib_metrics_writer *w, uint32_t i,
                                    uint64_t ns)
{
    assert(i < w->ranks);
    trib_metrics_time(w, TRIB_TIME_LAG, ns);
    trib_metrics_raise(&w->lag[i].count, 1);
    trib_metrics_raise(&w->lag[i].sum_ns, ns);
}

/** trib_metrics_operation - the phase of the job's operation, and when something moved
 * in it. */
static inline void trib_metrics_operation(struct trib_metrics_writer *w,
                                          struct trib_operation now)
{
    atomic_store_explicit(&w->number, now.number, memory_order_relaxed);
    atomic_store_explicit(&w->phase, (uint32_t)now.phase, memory_order_relaxed);
    atomic_store_explicit(&w->moved_ns, now.moved_ns, memory_order_relaxed);
    atomic_store_explicit(&w->waits_for, now.waits_for, memory_order_relaxed);
}

/* --- the service --- */

/* Hosts of a job that are named: so many, in the order of the ranks. */
#define TRIB_HOSTS_SHOWN 64
#define TRIB_PLACE_NAME_BYTES 65

struct trib_job_place {
    char transports[TRIB_PLACE_NAME_BYTES]; /* "shm", "shm tcp" */
    uint32_t hosts; /* number of hosts that are named */
    uint32_t ranks_elsewhere; /* on hosts that are not */
    struct {
        char name[TRIB_PLACE_NAME_BYTES]; /* any bytes: hosts are strangers */
        uint32_t ranks;
    } host[TRIB_HOSTS_SHOWN];
};

struct trib_metrics;

struct trib_metrics_opts {
    uint64_t start_ns; /* start of the service, on the clock of all times here */
    uint64_t stuck_ns; /* an operation in which nothing moved for so long is stuck */
};

/** trib_metrics_create - nothing counted; errors: TRIB_ERR_NO_MEMORY. */
trib_status_t trib_metrics_create(const struct trib_metrics_opts *opts,
                                  struct trib_metrics **out);

/** trib_metrics_destroy - free it, and writers that are still open; NULL is allowed. */
void trib_metrics_destroy(struct trib_metrics *metrics);

/**
 * trib_metrics_open_mt - a writer of a job for one thread.
 *
 * ranks    how many the thread hears of: numbers 0 to ranks - 1, unless the caller
 *          writes others into lag[].rank before anything is counted. Writers of one job
 *          share no rank
 * owner    metrics, until trib_metrics_close_mt
 * thread   any
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_metrics_open_mt(struct trib_metrics *metrics, uint64_t id,
                                   uint32_t ranks, struct trib_metrics_writer **out);

/** trib_metrics_close_mt - all writers of a job, which nobody uses any more. */
void trib_metrics_close_mt(struct trib_metrics *metrics, uint64_t id);

/** trib_metrics_event_mt - n more of the service's; not of one that has reasons. */
void trib_metrics_event_mt(struct trib_metrics *metrics, enum trib_service_counter c,
                           uint64_t n);

/** trib_metrics_reason_mt - one more of the counter that has this reason. */
void trib_metrics_reason_mt(struct trib_metrics *metrics,
                            enum trib_service_reason reason);

/**
 * trib_metrics_place_mt - note the transports and the hosts of a job's ranks; its place
 * is copied.
 *
 * Before the first call, and after trib_metrics_close_mt, neither is known. Without
 * memory for a copy it stays so.
 */
void trib_metrics_place_mt(struct trib_metrics *metrics, uint64_t id,
                           const struct trib_job_place *place);

/**
 * trib_metrics_publish - the table of jobs as it is now, for views to come.
 *
 * Copies what there is of every job: after changes, and not more than some times a
 * second.
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
    struct trib_operation operation; /* the operation that has not moved for longest */
    bool stuck;
    struct trib_histogram times[TRIB_TIMES];
    uint32_t ranks;  /* number of ranks that have a lag: 0 if the job has no writer */
    uint32_t n_late; /* number of them in `late`, the latest first */
    struct trib_rank_lag late[TRIB_RANKS_SHOWN];
    struct trib_job_place *place; /* NULL: not known */
};

/* One of the service's threads, by what it has done so far. */
struct trib_thread_view {
    char name[16]; /* "control", "lane0" */
    uint64_t busy_ns;
    uint64_t passes;
};

/* The kernel's counts of this process. */
struct trib_process_view {
    bool known;
    uint64_t resident_bytes;
    uint64_t fds;
    uint64_t fds_max;
    uint64_t cpu_ns;
    uint64_t start_ns; /* start of the process, since 1970 */
};

/* A snapshot of a vector of a store. */
struct trib_snapshot_row {
    char job[TRIB_JOB_NAME_BYTES];
    char user[TRIB_JOB_NAME_BYTES];
    char name[TRIB_JOB_NAME_BYTES]; /* of the vector */
    uint64_t version;
    uint64_t bytes;
    uint64_t age_s;
};

struct trib_snapshots_view {
    bool known; /* false: the service keeps none */
    uint32_t n;
    uint32_t n_most;
    uint64_t bytes; /* of all files, on the disk */
    uint64_t disk_bytes; /* most of them */
    uint64_t oldest_s; /* age of the oldest */
    uint64_t failures; /* snapshots that could not be written */
    uint32_t n_rows; /* a bounded number; 0 without memory for them */
    struct trib_snapshot_row *rows;
};

struct trib_service_view {
    uint64_t now_ns;
    uint64_t uptime_ns;
    struct trib_jobs_limits limits;
    struct trib_jobs_limits held;
    uint32_t lent; /* number of the held slots that idle jobs lend */
    bool draining;
    uint64_t events[TRIB_SERVICE_COUNTERS];
    uint64_t reasons[TRIB_SERVICE_REASONS];
    uint64_t total[TRIB_JOB_COUNTERS]; /* counts of all jobs, also of those that are
                                        * gone */
    struct trib_histogram times[TRIB_TIMES]; /* the same */
    uint32_t n;
    struct trib_job_view *jobs;
    struct trib_process_view process; /* filled by the caller: see trib_process_view */
    struct trib_snapshots_view snapshots; /* filled by the caller, rows by malloc */
    uint32_t n_threads;
    struct trib_thread_view *threads; /* allocated by the caller, with malloc */
};

/**
 * trib_metrics_view_mt - all counters at this moment.
 *
 * owner    trib_service_view_free
 * errors   TRIB_ERR_NO_MEMORY
 */
trib_status_t trib_metrics_view_mt(struct trib_metrics *metrics, uint64_t now_ns,
                                   struct trib_service_view *out);

/** trib_process_view - the kernel's counts of this process; takes some system calls. */
void trib_process_view(struct trib_process_view *out);

/** trib_reason_counter, trib_reason_label - the counter that a reason splits, and its
 * name. */
enum trib_service_counter trib_reason_counter(enum trib_service_reason reason);
const char *trib_reason_label(enum trib_service_reason reason);

/** trib_service_view_free - free what the view owns, and zero it. */
void trib_service_view_free(struct trib_service_view *view);

/* --- renderers: pure; the caller frees the text; NULL: out of memory --- */

/** trib_metrics_text - the text format of Prometheus, version 0.0.4. */
char *trib_metrics_text(const struct trib_service_view *view);

/** trib_metrics_json - one object; its fields are described in docs/metrics.md. */
char *trib_metrics_json(const struct trib_service_view *view);

/**
 * trib_metrics_name - a name in which every byte but those of printable ASCII and line
 * feeds became "?": those formats know UTF-8 alone.
 */
void trib_metrics_name(const char *name, char out[TRIB_JOB_NAME_BYTES]);

#endif
