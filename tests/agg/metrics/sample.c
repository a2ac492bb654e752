/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/agg/metrics/sample.h"

#include <stddef.h>

static bool ask(struct sample *s, uint64_t after_s, struct trib_job_request request,
                struct trib_job_answer *out)
{
    trib_jobs_submit(s->jobs, SAMPLE_T0 + after_s * SAMPLE_S, &request, out);
    return out->verdict == TRIB_JOB_ADMIT || out->verdict == TRIB_JOB_QUEUE;
}

static void count_train(struct trib_metrics_writer *w)
{
    trib_metrics_count(w, TRIB_JOB_COUNTS_RECEIVED, 1000000);
    trib_metrics_count(w, TRIB_JOB_COUNTS_SENT, 500000);
    trib_metrics_count(w, TRIB_JOB_COUNTS_DENSE, 6000000);
    trib_metrics_count(w, TRIB_JOB_COUNTS_CHUNKS, 40);
    trib_metrics_count(w, TRIB_JOB_COUNTS_OPERATIONS, 811);
    trib_metrics_count(w, TRIB_JOB_COUNTS_BUSY, 1500000000);
    trib_metrics_slots(w, 12);
    for (uint32_t rank = 0; rank < 4; rank++)
        for (uint64_t i = 0; i < 40; i++)
            trib_metrics_lag(w, rank, rank == 2 ? 30000000 + i : rank * 200000);
    trib_metrics_lag(w, 2, 5 * SAMPLE_S);
    trib_metrics_operation(
        w, (struct trib_operation){.number = 812,
                                   .phase = TRIB_PHASE_TRANSFER,
                                   .moved_ns = SAMPLE_T0 + 53 * SAMPLE_S,
                                   .waits_for = 2});
}

bool sample_create(struct sample *s)
{
    struct trib_jobs_opts limits = {
        .service = {.slots = 512, .jobs = 16, .queued = 16, .bytes = 1 << 30}};
    struct trib_metrics_opts opts = {.start_ns = SAMPLE_T0 - 100 * SAMPLE_S,
                                     .stuck_ns = 5 * SAMPLE_S};
    struct trib_job_answer train, evil, late;

    *s = (struct sample){0};
    if (trib_jobs_create(&limits, NULL, &s->jobs) ||
        trib_metrics_create(&opts, &s->metrics) ||
        !ask(s, 0, (struct trib_job_request){"train-7", "ana", 1, 4, 384, 65536, 0, 0},
             &train) ||
        !ask(s, 5, (struct trib_job_request){SAMPLE_EVIL, "eve", 2, 2, 64, 65536, 0, 0},
             &evil) ||
        !ask(s, 30,
             (struct trib_job_request){"late", "bob", 1, 8, 256, 65536, 90 * SAMPLE_S,
                                       0},
             &late) ||
        trib_metrics_open_mt(s->metrics, train.id, 4, &s->writers[0]) ||
        trib_metrics_open_mt(s->metrics, evil.id, 2, &s->writers[1]) ||
        trib_metrics_publish(s->metrics, s->jobs, SAMPLE_T0 + 30 * SAMPLE_S)) {
        sample_destroy(s);
        return false;
    }
    count_train(s->writers[0]);
    trib_metrics_count(s->writers[1], TRIB_JOB_COUNTS_RECEIVED, 77);
    trib_metrics_event_mt(s->metrics, TRIB_SERVICE_COUNTS_ADMITTED, 2);
    trib_metrics_event_mt(s->metrics, TRIB_SERVICE_COUNTS_QUEUED, 1);
    return true;
}

bool sample_many(struct sample *s, uint32_t ranks, struct trib_service_view *view_out)
{
    struct trib_metrics_writer *w;

    if (!sample_create(s))
        return false;
    trib_metrics_close_mt(s->metrics, 1);
    if (trib_metrics_open_mt(s->metrics, 1, ranks, &w))
        return false;
    for (uint32_t i = 0; i < ranks; i++)
        trib_metrics_lag(w, i, 1000 * ((uint64_t)i * 1009 % ranks)); /* each once */
    return !trib_metrics_view_mt(s->metrics, SAMPLE_T0 + 60 * SAMPLE_S, view_out);
}

void sample_destroy(struct sample *s)
{
    trib_metrics_destroy(s->metrics);
    trib_jobs_destroy(s->jobs);
    *s = (struct sample){0};
}
