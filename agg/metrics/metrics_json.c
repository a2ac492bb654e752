/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * /status: one JSON object.
 */
#include <assert.h>
#include <jansson.h>

#include "agg/metrics/metrics.h"
#include "base/release.h"

#define NS 1e-9

static json_t *count_json(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *seconds_json(uint64_t ns)
{
    return json_real((double)ns * NS);
}

/* A counter of unit 1, or of unit NS, shown in seconds. */
static json_t *counter_json(uint64_t value, double unit)
{
    return unit < 1 ? json_real((double)value * unit) : count_json(value);
}

static void put_job_counters(json_t *o, const uint64_t *count)
{
#define TRIB_METRICS_JOB(id, name, unit, help) \
    json_object_set_new(o, #name, counter_json(count[TRIB_JOB_COUNTS_##id], unit));
#include "agg/metrics/metrics.def"
}

static json_t *events_json(const uint64_t *count)
{
    json_t *o = json_object();

#define TRIB_METRICS_SERVICE(id, name, unit, help) \
    json_object_set_new(o, #name, counter_json(count[TRIB_SERVICE_COUNTS_##id], unit));
#include "agg/metrics/metrics.def"
    return o;
}

static json_t *limits_json(const struct trib_jobs_limits *limits)
{
    json_t *o = json_object();

    json_object_set_new(o, "slots", count_json(limits->slots));
    json_object_set_new(o, "jobs", count_json(limits->jobs));
    json_object_set_new(o, "queued", count_json(limits->queued));
    json_object_set_new(o, "bytes", count_json(limits->bytes));
    return o;
}

static json_t *operation_json(const struct trib_job_view *job, uint64_t now_ns)
{
    const struct trib_operation *op = &job->operation;

    if (op->phase == TRIB_PHASE_IDLE)
        return json_null();
    json_t *o = json_object();
    json_object_set_new(o, "number", count_json(op->number));
    json_object_set_new(o, "phase", json_string(trib_job_phase_name(op->phase)));
    json_object_set_new(o, "age_s",
                        seconds_json(trib_metrics_since(op->moved_ns, now_ns)));
    json_object_set_new(o, "waits_for",
                        op->waits_for < 0 ? json_null() : json_integer(op->waits_for));
    json_object_set_new(o, "stuck", json_boolean(job->stuck));
    return o;
}

static json_t *histogram_json(const struct trib_histogram *h)
{
    json_t *counts = json_array(), *o = json_object();

    for (int i = 0; i <= TRIB_TIME_BOUNDS; i++)
        json_array_append_new(counts, count_json(h->count[i]));
    json_object_set_new(o, "counts", counts);
    json_object_set_new(o, "sum_s", seconds_json(h->sum_ns));
    return o;
}

/* "lag_seconds": {"counts": [...], "sum_s": 0.2}, … */
static void put_times(json_t *o, const struct trib_histogram *times)
{
#define TRIB_METRICS_TIME(id, name, help) \
    json_object_set_new(o, #name, histogram_json(&times[TRIB_TIME_##id]));
#include "agg/metrics/metrics.def"
}

static json_t *late_json(const struct trib_job_view *job)
{
    json_t *all = json_array();

    assert(job->n_late <= TRIB_RANKS_SHOWN);
    for (uint32_t i = 0; i < job->n_late; i++) {
        json_t *o = json_object();
        json_object_set_new(o, "rank", count_json(job->late[i].rank));
        json_object_set_new(o, "count", count_json(job->late[i].count));
        json_object_set_new(o, "sum_s", seconds_json(job->late[i].sum_ns));
        json_array_append_new(all, o);
    }
    return all;
}

static json_t *name_json(const char *name)
{
    char text[TRIB_JOB_NAME_BYTES];

    trib_metrics_name(name, text);
    return json_string(text);
}

/* The listed hosts; hosts with equal names share an entry. */
static json_t *hosts_json(const struct trib_job_place *place)
{
    json_t *all = json_array();

    for (uint32_t i = 0; i < place->hosts; i++) {
        json_t *o = json_object();
        json_object_set_new(o, "name", name_json(place->host[i].name));
        json_object_set_new(o, "ranks", count_json(place->host[i].ranks));
        json_array_append_new(all, o);
    }
    return all;
}

static void put_place(json_t *o, const struct trib_job_place *place)
{
    json_object_set_new(o, "transport",
                        place ? name_json(place->transports) : json_null());
    json_object_set_new(o, "hosts", place ? hosts_json(place) : json_null());
    json_object_set_new(o, "ranks_elsewhere",
                        place ? count_json(place->ranks_elsewhere) : json_null());
}

static json_t *reasons_json(const struct trib_service_view *view,
                            enum trib_service_counter c)
{
    json_t *o = json_object();

    for (int r = 0; r < TRIB_SERVICE_REASONS; r++)
        if (trib_reason_counter((enum trib_service_reason)r) == c)
            json_object_set_new(o, trib_reason_label((enum trib_service_reason)r),
                                count_json(view->reasons[r]));
    return o;
}

static json_t *threads_json(const struct trib_service_view *view)
{
    json_t *all = json_array();

    for (uint32_t i = 0; i < view->n_threads; i++) {
        json_t *o = json_object();
        json_object_set_new(o, "name", json_string(view->threads[i].name));
        json_object_set_new(o, "busy_seconds", seconds_json(view->threads[i].busy_ns));
        json_object_set_new(o, "passes", count_json(view->threads[i].passes));
        json_array_append_new(all, o);
    }
    return all;
}

static json_t *rdma_json(const struct trib_service_view *view)
{
    json_t *all = json_array();

    for (uint32_t i = 0; i < view->n_rdma; i++) {
        const struct trib_rdma_counters *port = &view->rdma[i];
        json_t *o = json_object(), *counters = json_object();
        for (int c = 0; c < TRIB_RDMA_COUNTERS; c++)
            if (port->has[c])
                json_object_set_new(counters,
                                    trib_rdma_counter_name((enum trib_rdma_counter)c),
                                    count_json(port->count[c]));
        json_object_set_new(o, "device", name_json(port->device));
        json_object_set_new(o, "port", json_integer(port->port));
        json_object_set_new(o, "counters", counters);
        json_array_append_new(all, o);
    }
    return all;
}

static json_t *process_json(const struct trib_process_view *p)
{
    if (!p->known)
        return json_null();
    json_t *o = json_object();
    json_object_set_new(o, "resident_bytes", count_json(p->resident_bytes));
    json_object_set_new(o, "fds", count_json(p->fds));
    json_object_set_new(o, "fds_max", count_json(p->fds_max));
    json_object_set_new(o, "cpu_s", seconds_json(p->cpu_ns));
    json_object_set_new(o, "start_s", seconds_json(p->start_ns));
    return o;
}

static json_t *job_json(const struct trib_job_view *view, uint64_t now_ns)
{
    const struct trib_job *job = &view->job;
    uint64_t wire =
        view->count[TRIB_JOB_COUNTS_RECEIVED] + view->count[TRIB_JOB_COUNTS_SENT];
    json_t *o = json_object();

    json_object_set_new(o, "id", count_json(job->id));
    json_object_set_new(o, "name", name_json(job->name));
    json_object_set_new(o, "user", name_json(job->user));
    json_object_set_new(o, "state", json_string(trib_job_state_name(job->state)));
    json_object_set_new(o, "since_s",
                        seconds_json(trib_metrics_since(job->since_ns, now_ns)));
    json_object_set_new(o, "left_s",
                        job->deadline_ns && job->deadline_ns != UINT64_MAX
                            ? seconds_json(trib_metrics_since(now_ns, job->deadline_ns))
                            : json_null());
    json_object_set_new(o, "position", count_json(job->position));
    json_object_set_new(o, "weight", count_json(job->weight));
    json_object_set_new(o, "ranks", count_json(job->ranks));
    json_object_set_new(o, "slots", count_json(job->slots));
    json_object_set_new(o, "slots_wanted", count_json(job->slots_wanted));
    json_object_set_new(o, "slots_used", count_json(view->slots_used));
    json_object_set_new(o, "bytes", count_json(trib_job_bytes(job)));
    put_job_counters(o, view->count);
    json_object_set_new(
        o, "ratio",
        wire ? json_real((double)view->count[TRIB_JOB_COUNTS_DENSE] / (double)wire)
             : json_null());
    json_object_set_new(o, "operation", operation_json(view, now_ns));
    put_times(o, view->times);
    json_object_set_new(o, "late", late_json(view));
    json_object_set_new(o, "late_left_out", count_json(view->ranks - view->n_late));
    put_place(o, view->place);
    return o;
}

static json_t *snapshots_json(const struct trib_snapshots_view *view)
{
    json_t *o = json_object(), *all = json_array();

    if (!view->known) {
        json_decref(all);
        json_decref(o);
        return json_null();
    }
    for (uint32_t i = 0; i < view->n_rows; i++) {
        json_t *row = json_object();
        json_object_set_new(row, "job", name_json(view->rows[i].job));
        json_object_set_new(row, "user", name_json(view->rows[i].user));
        json_object_set_new(row, "vector", name_json(view->rows[i].name));
        json_object_set_new(row, "version", count_json(view->rows[i].version));
        json_object_set_new(row, "bytes", count_json(view->rows[i].bytes));
        json_object_set_new(row, "age_s", count_json(view->rows[i].age_s));
        json_array_append_new(all, row);
    }
    json_object_set_new(o, "count", count_json(view->n));
    json_object_set_new(o, "bytes", count_json(view->bytes));
    json_object_set_new(o, "disk_bytes", count_json(view->disk_bytes));
    json_object_set_new(o, "disk_files", count_json(view->n_most));
    json_object_set_new(o, "failures", count_json(view->failures));
    json_object_set_new(o, "vectors_left_out", count_json(view->n - view->n_rows));
    json_object_set_new(o, "vectors", all);
    return o;
}

char *trib_metrics_json(const struct trib_service_view *view)
{
    json_t *bounds = json_array(), *jobs = json_array(), *total = json_object();
    json_t *o = json_object();

    for (int i = 0; i < TRIB_TIME_BOUNDS; i++)
        json_array_append_new(bounds, seconds_json(trib_time_bounds_ns[i]));
    for (uint32_t i = 0; i < view->n; i++)
        json_array_append_new(jobs, job_json(&view->jobs[i], view->now_ns));
    put_job_counters(total, view->total);
    put_times(total, view->times);
    json_object_set_new(o, "version", json_string(trib_release));
    json_object_set_new(o, "uptime_s", seconds_json(view->uptime_ns));
    json_object_set_new(o, "draining", json_boolean(view->draining));
    json_object_set_new(o, "limits", limits_json(&view->limits));
    json_object_set_new(o, "held", limits_json(&view->held));
    json_object_set_new(o, "lent_slots", json_integer(view->lent));
    json_object_set_new(o, "events", events_json(view->events));
    json_object_set_new(o, "total", total);
    json_object_set_new(o, "refused", reasons_json(view, TRIB_SERVICE_COUNTS_REFUSED));
    json_object_set_new(o, "lost", reasons_json(view, TRIB_SERVICE_COUNTS_LOST));
    json_object_set_new(o, "threads", threads_json(view));
    json_object_set_new(o, "rdma", rdma_json(view));
    json_object_set_new(o, "process", process_json(&view->process));
    json_object_set_new(o, "snapshots", snapshots_json(&view->snapshots));
    json_object_set_new(o, "time_bounds_s", bounds);
    json_object_set_new(o, "jobs", jobs);
    char *text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(o);
    return text;
}
