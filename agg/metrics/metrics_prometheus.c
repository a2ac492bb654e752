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

/* Print one sample; `job` NULL: of the service, without labels. */
static void put_sample(FILE *to, const char *name, const struct trib_job *job,
                       uint64_t value, uint32_t per)
{
    if (job)
        put_job(to, name, job);
    fprintf(to, "%s ", job ? "}" : name);
    put_number(to, value, per);
    fputc('\n', to);
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
    snprintf(part, sizeof(part), "%s_sum", name);
    put_sample(to, part, job, h->sum_ns, NS);
    snprintf(part, sizeof(part), "%s_count", name);
    put_sample(to, part, job, below, 1);
}

/* --- the service --- */

static void put_value(FILE *to, const char *type, const char *name, const char *help,
                      uint64_t value, uint32_t per)
{
    put_help(to, name, type, help);
    put_sample(to, name, NULL, value, per);
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

static void put_rdma(FILE *to, const struct trib_service_view *v)
{
    static const char name[] = "tribd_rdma_port_events_total";

    if (!v->n_rdma)
        return;
    put_help(to, name, "counter",
             "Congestion and losses that RDMA ports of the host counted, for all "
             "programs.");
    for (uint32_t i = 0; i < v->n_rdma; i++) {
        const struct trib_rdma_counters *port = &v->rdma[i];
        for (int c = 0; c < TRIB_RDMA_COUNTERS; c++) {
            if (!port->has[c])
                continue;
            fprintf(to, "%s{device=\"", name);
            put_label(to, port->device);
            fprintf(to, "\",port=\"%d\",counter=\"%s\"} %" PRIu64 "\n", port->port,
                    trib_rdma_counter_name((enum trib_rdma_counter)c), port->count[c]);
        }
    }
}

static void put_service(FILE *to, const struct trib_service_view *v)
{
    put_help(to, "tribd_build_info", "gauge", "Version, as a label.");
    fprintf(to, "tribd_build_info{version=\"%s\"} 1\n", trib_release);
    put_states(to, v);
#define TRIB_METRICS_VALUE(type, name, unit, when, value, help) \
    if (when) \
        put_value(to, #type, #name, help, value, unit);
#include "agg/metrics/metrics.def"
#define TRIB_METRICS_SERVICE(id, name, unit, help) \
    put_event(to, v, TRIB_SERVICE_COUNTS_##id, "tribd_" #name "_total", help);
#include "agg/metrics/metrics.def"
#define TRIB_METRICS_JOB(id, name, unit, help) \
    put_value(to, "counter", "tribd_" #name "_total", help, \
              v->total[TRIB_JOB_COUNTS_##id], unit);
#include "agg/metrics/metrics.def"
#define TRIB_METRICS_TIME(id, name, help) \
    put_help(to, "tribd_" #name, "histogram", help); \
    put_times(to, "tribd_" #name, NULL, &v->times[TRIB_TIME_##id]);
#include "agg/metrics/metrics.def"
    put_threads(to, v);
    put_rdma(to, v);
}

/* --- jobs --- */

static uint64_t operation_age_ns(const struct trib_job_view *job, uint64_t now_ns)
{
    return job->operation.phase == TRIB_PHASE_IDLE
               ? 0
               : trib_metrics_since(job->operation.moved_ns, now_ns);
}

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

static void put_jobs(FILE *to, const struct trib_service_view *v)
{
    put_job_states(to, v);
#define EACH_JOB for (const struct trib_job_view *j = v->jobs; j < v->jobs + v->n; j++)
#define TRIB_METRICS_JOB_VALUE(name, unit, value, help) \
    put_help(to, "tribd_job_" #name, "gauge", help); \
    EACH_JOB put_sample(to, "tribd_job_" #name, &j->job, value, unit);
#include "agg/metrics/metrics.def"
#define TRIB_METRICS_JOB(id, name, unit, help) \
    put_help(to, "tribd_job_" #name "_total", "counter", help); \
    EACH_JOB put_sample(to, "tribd_job_" #name "_total", &j->job, \
                        j->count[TRIB_JOB_COUNTS_##id], unit);
#include "agg/metrics/metrics.def"
#define TRIB_METRICS_TIME(id, name, help) \
    put_help(to, "tribd_job_" #name, "histogram", help); \
    EACH_JOB put_times(to, "tribd_job_" #name, &j->job, &j->times[TRIB_TIME_##id]);
#include "agg/metrics/metrics.def"
    put_late_ranks(to, v);
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
