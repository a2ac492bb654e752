/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prometheus text format. The samples of a metric must be contiguous, so each metric
 * loops over all jobs. Numbers are printed as integers because a locale may use a
 * decimal comma.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agg/metrics/metrics.h"
#include "base/release.h"

#define NS 1000000000u

/* Print `value` / `per`, where `per` is a power of ten. */
static void put_number(FILE *to, uint64_t value, uint32_t per)
{
    uint64_t rest = value % per;

    fprintf(to, "%" PRIu64 "%s", value / per, rest ? "." : "");
    for (; rest; rest = rest * 10 % per)
        fputc((int)('0' + rest * 10 / per), to);
}

static void put_label(FILE *to, const char *name)
{
    char text[TRIB_JOB_NAME_BYTES];

    trib_metrics_name(name, text);
    for (const char *c = text; *c; c++) {
        if (*c == '\\' || *c == '"')
            fprintf(to, "\\%c", *c);
        else if (*c == '\n')
            fputs("\\n", to);
        else
            fputc(*c, to);
    }
}

static void put_help(FILE *to, const char *name, const char *type, const char *help)
{
    fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Print name{id="7",name="train-7",user="ana" without the closing brace. Ids of ended
 * jobs are reused, so repeated jobs add no series. */
static void put_job(FILE *to, const char *name, const struct trib_job *job)
{
    fprintf(to, "%s{id=\"%" PRIu32 "\",name=\"", name, job->label);
    put_label(to, job->name);
    fputs("\",user=\"", to);
    put_label(to, job->user);
    fputc('"', to);
}

/* Print one histogram; `job` NULL: the service, without labels. */
static void put_times(FILE *to, const char *name, const struct trib_job *job,
                      const struct trib_histogram *h)
{
    uint64_t below = 0;
    char part[96];

    for (int i = 0; i <= TRIB_TIME_BOUNDS; i++) {
        below += h->count[i];
        snprintf(part, sizeof(part), "%s_bucket", name);
        if (job)
            put_job(to, part, job);
        fprintf(to, "%s%sle=\"", job ? "" : part, job ? "," : "{");
        if (i < TRIB_TIME_BOUNDS)
            put_number(to, trib_time_bounds_ns[i], NS);
        else
            fputs("+Inf", to);
        fprintf(to, "\"} %" PRIu64 "\n", below);
    }
    for (int count = 0; count < 2; count++) {
        snprintf(part, sizeof(part), "%s_%s", name, count ? "count" : "sum");
        if (job)
            put_job(to, part, job);
        fprintf(to, "%s ", job ? "}" : part);
        put_number(to, count ? below : h->sum_ns, count ? 1 : NS);
        fputc('\n', to);
    }
}

/* --- the service --- */

static void put_gauge(FILE *to, const char *name, const char *help, uint64_t value,
                      uint32_t per)
{
    put_help(to, name, "gauge", help);
    fprintf(to, "%s ", name);
    put_number(to, value, per);
    fputc('\n', to);
}

static void put_total(FILE *to, const char *name, const char *help, uint64_t value,
                      uint32_t per)
{
    put_help(to, name, "counter", help);
    fprintf(to, "%s ", name);
    put_number(to, value, per);
    fputc('\n', to);
}

static void put_states(FILE *to, const struct trib_service_view *view)
{
    static const char name[] = "tribd_jobs";
    uint64_t n[TRIB_JOB_DRAINING + 1] = {0};

    for (uint32_t i = 0; i < view->n; i++) {
        assert(view->jobs[i].job.state <= TRIB_JOB_DRAINING);
        n[view->jobs[i].job.state]++;
    }
    put_help(to, name, "gauge", "Jobs, by state.");
    for (int s = 0; s <= TRIB_JOB_DRAINING; s++)
        fprintf(to, "%s{state=\"%s\"} %" PRIu64 "\n", name,
                trib_job_state_name((enum trib_job_state)s), n[s]);
}

/* Print a counter of the service, split by reason if it has reasons. */
static void put_event(FILE *to, const struct trib_service_view *v,
                      enum trib_service_counter c, const char *name, const char *help)
{
    bool split = false;

    assert(c < TRIB_SERVICE_COUNTERS);
    put_help(to, name, "counter", help);
    for (int r = 0; r < TRIB_SERVICE_REASONS; r++) {
        if (trib_reason_counter((enum trib_service_reason)r) != c)
            continue;
        split = true;
        fprintf(to, "%s{reason=\"%s\"} %" PRIu64 "\n", name,
                trib_reason_label((enum trib_service_reason)r), v->reasons[r]);
    }
    if (!split)
        fprintf(to, "%s %" PRIu64 "\n", name, v->events[c]);
}

static void put_threads(FILE *to, const struct trib_service_view *v)
{
    static const char busy[] = "tribd_thread_busy_seconds_total";
    static const char passes[] = "tribd_thread_passes_total";

    if (!v->n_threads)
        return;
    put_help(to, busy, "counter",
             "Busy time of the thread: its rate is the share of a core that it needs.");
    for (uint32_t i = 0; i < v->n_threads; i++) {
        fprintf(to, "%s{thread=\"%s\"} ", busy, v->threads[i].name);
        put_number(to, v->threads[i].busy_ns, NS);
        fputc('\n', to);
    }
    put_help(to, passes, "counter", "Passes of the thread's polling loop.");
    for (uint32_t i = 0; i < v->n_threads; i++)
        fprintf(to, "%s{thread=\"%s\"} %" PRIu64 "\n", passes, v->threads[i].name,
                v->threads[i].passes);
}

/* Standard names of process metrics. */
static void put_process(FILE *to, const struct trib_process_view *p)
{
    if (!p->known)
        return;
    put_gauge(to, "process_resident_memory_bytes", "Resident memory size in bytes.",
              p->resident_bytes, 1);
    put_gauge(to, "process_open_fds", "Number of open file descriptors.", p->fds, 1);
    put_gauge(to, "process_max_fds", "Maximum number of open file descriptors.",
              p->fds_max, 1);
    put_total(to, "process_cpu_seconds_total",
              "Total user and system CPU time spent in seconds.", p->cpu_ns, NS);
    put_gauge(to, "process_start_time_seconds",
              "Start time of the process since unix epoch in seconds.", p->start_ns,
              NS);
}

static void put_snapshots(FILE *to, const struct trib_snapshots_view *s)
{
    if (!s->known)
        return;
    put_gauge(to, "tribd_snapshots_held", "Snapshots on disk.", s->n, 1);
    put_gauge(to, "tribd_snapshots_limit", "Maximum number of snapshots.", s->n_most,
              1);
    put_gauge(to, "tribd_snapshots_held_bytes", "Bytes of snapshots on disk.", s->bytes,
              1);
    put_gauge(to, "tribd_snapshots_limit_bytes", "Maximum bytes of snapshots.",
              s->disk_bytes, 1);
    put_gauge(to, "tribd_snapshots_oldest_age_seconds", "Age of the oldest snapshot.",
              s->oldest_s, 1);
    put_total(to, "tribd_snapshot_failures_total",
              "Snapshots that could not be written.", s->failures, 1);
}

static void put_service(FILE *to, const struct trib_service_view *v)
{
    put_help(to, "tribd_build_info", "gauge", "Version, as a label.");
    fprintf(to, "tribd_build_info{version=\"%s\"} 1\n", trib_release);
    put_gauge(to, "tribd_uptime_seconds", "Time since the service started.",
              v->uptime_ns, NS);
    put_gauge(to, "tribd_draining", "1: no new jobs are accepted.", v->draining, 1);
    put_states(to, v);
    put_gauge(to, "tribd_jobs_limit", "Maximum number of jobs that hold slots.",
              v->limits.jobs, 1);
    put_gauge(to, "tribd_queue_limit", "Maximum number of queued jobs.",
              v->limits.queued, 1);
    put_gauge(to, "tribd_slots", "Slots of the service.", v->limits.slots, 1);
    put_gauge(to, "tribd_slots_held", "Slots that jobs hold.", v->held.slots, 1);
    put_gauge(to, "tribd_slots_lent",
              "Slots lent by idle jobs, part of tribd_slots_held; they count as free.",
              v->lent, 1);
    if (v->limits.bytes)
        put_gauge(to, "tribd_memory_limit_bytes", "Maximum memory that jobs may hold.",
                  v->limits.bytes, 1);
    put_gauge(to, "tribd_memory_held_bytes", "Memory held by jobs.", v->held.bytes, 1);
#define TRIB_METRICS_SERVICE(id, name, unit, help) \
    put_event(to, v, TRIB_SERVICE_COUNTS_##id, "tribd_" #name "_total", help);
#include "agg/metrics/metrics.def"
#define TRIB_METRICS_JOB(id, name, unit, help) \
    put_total(to, "tribd_" #name "_total", help, v->total[TRIB_JOB_COUNTS_##id], unit);
#include "agg/metrics/metrics.def"
#define TRIB_METRICS_TIME(id, name, help) \
    put_help(to, "tribd_" #name, "histogram", help); \
    put_times(to, "tribd_" #name, NULL, &v->times[TRIB_TIME_##id]);
#include "agg/metrics/metrics.def"
    put_snapshots(to, &v->snapshots);
    put_threads(to, v);
    put_process(to, &v->process);
}

/* --- jobs --- */

static void put_counters(FILE *to, const struct trib_service_view *view,
                         const char *name, enum trib_job_counter c, uint32_t per)
{
    assert(c < TRIB_JOB_COUNTERS && per > 0);
    for (uint32_t i = 0; i < view->n; i++) {
        put_job(to, name, &view->jobs[i].job);
        fputs("} ", to);
        put_number(to, view->jobs[i].count[c], per);
        fputc('\n', to);
    }
}

/* A gauge per job. */
struct gauge {
    const char *name;
    const char *help;
    uint32_t per;
    uint64_t (*of)(const struct trib_job_view *job, uint64_t now_ns);
};

static uint64_t slots_held(const struct trib_job_view *job, uint64_t now_ns)
{
    (void)now_ns;
    return job->job.slots;
}

static uint64_t slots_wanted(const struct trib_job_view *job, uint64_t now_ns)
{
    (void)now_ns;
    return job->job.slots_wanted;
}

static uint64_t slots_used(const struct trib_job_view *job, uint64_t now_ns)
{
    (void)now_ns;
    return job->slots_used;
}

static uint64_t memory_held(const struct trib_job_view *job, uint64_t now_ns)
{
    (void)now_ns;
    return trib_job_bytes(&job->job);
}

static uint64_t ranks(const struct trib_job_view *job, uint64_t now_ns)
{
    (void)now_ns;
    return job->job.ranks;
}

static uint64_t weight(const struct trib_job_view *job, uint64_t now_ns)
{
    (void)now_ns;
    return job->job.weight;
}

static uint64_t position(const struct trib_job_view *job, uint64_t now_ns)
{
    (void)now_ns;
    return job->job.position;
}

static uint64_t since(uint64_t then_ns, uint64_t now_ns)
{
    return now_ns > then_ns ? now_ns - then_ns : 0;
}

static uint64_t state_age(const struct trib_job_view *job, uint64_t now_ns)
{
    return since(job->job.since_ns, now_ns);
}

static uint64_t operation_age(const struct trib_job_view *job, uint64_t now_ns)
{
    return job->operation.phase == TRIB_PHASE_IDLE
               ? 0
               : since(job->operation.moved_ns, now_ns);
}

static uint64_t is_stuck(const struct trib_job_view *job, uint64_t now_ns)
{
    (void)now_ns;
    return job->stuck;
}

static const struct gauge gauges[] = {
    {"tribd_job_slots_held", "Slots that the job holds.", 1, slots_held},
    {"tribd_job_slots_wanted", "Slots that the job requested.", 1, slots_wanted},
    {"tribd_job_slots_used", "Slots in use.", 1, slots_used},
    {"tribd_job_memory_held_bytes", "Memory held by the job.", 1, memory_held},
    {"tribd_job_ranks", "Number of ranks.", 1, ranks},
    {"tribd_job_weight", "Weight among the jobs of the same user.", 1, weight},
    {"tribd_job_queue_position", "Position in the queue; 0: not queued.", 1, position},
    {"tribd_job_state_age_seconds", "Time in this state.", NS, state_age},
    {"tribd_job_operation_age_seconds", "Time since the operation last made progress.",
     NS, operation_age},
    {"tribd_job_stuck", "1: the operation made no progress for too long.", 1, is_stuck},
};

static void put_job_states(FILE *to, const struct trib_service_view *view)
{
    static const char name[] = "tribd_job_info";

    put_help(to, name, "gauge",
             "State of the job and phase of its operation, as labels.");
    for (uint32_t i = 0; i < view->n; i++) {
        const struct trib_job_view *job = &view->jobs[i];
        put_job(to, name, &job->job);
        fprintf(to, ",state=\"%s\",phase=\"%s\"} 1\n",
                trib_job_state_name(job->job.state),
                trib_job_phase_name(job->operation.phase));
    }
}

static void put_job_times(FILE *to, const struct trib_service_view *view,
                          const char *name, enum trib_time kind)
{
    for (uint32_t i = 0; i < view->n; i++)
        put_times(to, name, &view->jobs[i].job, &view->jobs[i].times[kind]);
}

/* Only the latest ranks: a job may have thousands. */
static void put_late_ranks(FILE *to, const struct trib_service_view *view)
{
    static const char name[] = "tribd_job_rank_lag_seconds";
    static const char *const parts[] = {"tribd_job_rank_lag_seconds_sum",
                                        "tribd_job_rank_lag_seconds_count"};

    put_help(to, name, "summary",
             "Lag after the first contribution, of the ranks with the largest total "
             "lag.");
    for (uint32_t i = 0; i < view->n; i++) {
        const struct trib_job_view *job = &view->jobs[i];
        assert(job->n_late <= TRIB_RANKS_SHOWN);
        for (uint32_t k = 0; k < job->n_late; k++) {
            for (int count = 0; count < 2; count++) {
                put_job(to, parts[count], &job->job);
                fprintf(to, ",rank=\"%" PRIu32 "\"} ", job->late[k].rank);
                put_number(to, count ? job->late[k].count : job->late[k].sum_ns,
                           count ? 1 : NS);
                fputc('\n', to);
            }
        }
    }
}

static void put_jobs(FILE *to, const struct trib_service_view *view)
{
    put_job_states(to, view);
    for (size_t g = 0; g < sizeof(gauges) / sizeof(*gauges); g++) {
        put_help(to, gauges[g].name, "gauge", gauges[g].help);
        for (uint32_t i = 0; i < view->n; i++) {
            put_job(to, gauges[g].name, &view->jobs[i].job);
            fputs("} ", to);
            put_number(to, gauges[g].of(&view->jobs[i], view->now_ns), gauges[g].per);
            fputc('\n', to);
        }
    }
#define TRIB_METRICS_JOB(id, name, unit, help) \
    put_help(to, "tribd_job_" #name "_total", "counter", help); \
    put_counters(to, view, "tribd_job_" #name "_total", TRIB_JOB_COUNTS_##id, unit);
#include "agg/metrics/metrics.def"
#define TRIB_METRICS_TIME(id, name, help) \
    put_help(to, "tribd_job_" #name, "histogram", help); \
    put_job_times(to, view, "tribd_job_" #name, TRIB_TIME_##id);
#include "agg/metrics/metrics.def"
    put_late_ranks(to, view);
}

char *trib_metrics_text(const struct trib_service_view *view)
{
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);

    if (!to)
        return NULL;
    put_service(to, view);
    if (view->n)
        put_jobs(to, view);
    bool bad = ferror(to);
    if (fclose(to) || bad) {
        free(text);
        return NULL;
    }
    return text;
}
