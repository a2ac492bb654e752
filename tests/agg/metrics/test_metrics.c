/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "base/minmax.h"
#include "tests/agg/metrics/sample.h"
#include "tests/harness/growth.h"

#define WRITERS 4
#define ROUNDS 200000

TEST(test_adds_up_writers)
{
    struct sample s;
    struct trib_metrics_writer *second;
    struct trib_service_view view;

    assert_true(sample_create(&s));
    assert_ok(trib_metrics_open_mt(s.metrics, 1, 1, &second));
    second->lag[0].rank = 4;
    trib_metrics_count(second, TRIB_JOB_COUNTS_CHUNKS, 2);
    trib_metrics_slots(second, 3);
    trib_metrics_lag(second, 0, 100000); /* a bound is inclusive */
    trib_metrics_lag(second, 0, 100001);
    trib_metrics_time(second, TRIB_TIME_CHUNK, UINT64_MAX / 4);
    assert_ok(trib_metrics_view_mt(s.metrics, SAMPLE_T0 + 60 * SAMPLE_S, &view));
    assert_int_equal(view.n, 3);
    assert_int_equal(view.held.slots, 448);
    assert_int_equal(view.uptime_ns, 160 * SAMPLE_S);
    const struct trib_job_view *train = &view.jobs[0];
    assert_string_equal(train->job.name, "train-7");
    assert_int_equal(train->count[TRIB_JOB_COUNTS_CHUNKS], 42);
    assert_int_equal(train->slots_used, 15);
    assert_int_equal(train->ranks, 5);
    const struct trib_histogram *lag = &train->times[TRIB_TIME_LAG];
    assert_int_equal(lag->count[0], 40); /* of rank 0 */
    assert_int_equal(lag->count[2], 1);
    assert_int_equal(lag->count[3], 41); /* of rank 1: 200 us */
    assert_int_equal(lag->count[8], 39); /* of rank 2: one took 30 ms, the others
                                          * more */
    assert_int_equal(lag->count[10], 1);
    assert_int_equal(train->times[TRIB_TIME_CHUNK].count[TRIB_TIME_BOUNDS], 1);
    assert_int_equal(view.times[TRIB_TIME_CHUNK].count[TRIB_TIME_BOUNDS], 1);
    assert_int_equal(train->n_late, 5);
    assert_int_equal(train->late[0].rank, 2); /* 6.2 s in 41 contributions */
    assert_int_equal(train->late[0].count, 41);
    assert_int_equal(train->late[1].rank, 3);
    assert_int_equal(train->late[3].rank, 4);
    assert_int_equal(train->late[4].rank, 0);
    assert_int_equal(view.jobs[2].job.position, 1);
    assert_int_equal(view.jobs[2].ranks, 0);
    assert_int_equal(view.total[TRIB_JOB_COUNTS_RECEIVED], 1000077);
    trib_service_view_free(&view);
    sample_destroy(&s);
}

/* The ranks with the latest contributions are kept, in order. */
TEST(test_latest_ranks)
{
    enum { RANKS = 4096 };
    struct sample s;
    struct trib_service_view view;

    assert_true(sample_many(&s, RANKS, &view));
    assert_int_equal(view.jobs[0].ranks, RANKS);
    assert_int_equal(view.jobs[0].n_late, TRIB_RANKS_SHOWN);
    for (uint32_t i = 0; i < TRIB_RANKS_SHOWN; i++)
        assert_int_equal(view.jobs[0].late[i].sum_ns, 1000 * (RANKS - 1 - i));
    trib_service_view_free(&view);
    sample_destroy(&s);
}

TEST(test_reasons_and_places)
{
    static struct trib_job_place place = {.transports = "shm tcp", .hosts = 1};
    struct sample s;
    struct trib_service_view view;

    assert_true(sample_create(&s));
    trib_metrics_reason_mt(s.metrics, TRIB_REFUSED_FOR_QUEUE);
    trib_metrics_reason_mt(s.metrics, TRIB_REFUSED_FOR_LIMIT);
    trib_metrics_reason_mt(s.metrics, TRIB_LOST_FOR_KICKED);
    trib_metrics_place_mt(s.metrics, 1, &place);
    place.host[0].ranks = 4;
    trib_metrics_place_mt(s.metrics, 1, &place); /* the last place counts */
    assert_ok(trib_metrics_view_mt(s.metrics, SAMPLE_T0 + 60 * SAMPLE_S, &view));
    assert_int_equal(view.events[TRIB_SERVICE_COUNTS_REFUSED], 2);
    assert_int_equal(view.events[TRIB_SERVICE_COUNTS_LOST], 1);
    assert_int_equal(view.reasons[TRIB_REFUSED_FOR_QUEUE], 1);
    assert_int_equal(view.reasons[TRIB_REFUSED_FOR_WAIT], 0);
    assert_non_null(view.jobs[0].place);
    assert_int_equal(view.jobs[0].place->host[0].ranks, 4);
    assert_null(view.jobs[1].place);
    trib_service_view_free(&view);
    trib_metrics_close_mt(s.metrics, 1);
    assert_ok(trib_metrics_view_mt(s.metrics, SAMPLE_T0 + 60 * SAMPLE_S, &view));
    assert_null(view.jobs[0].place);
    trib_service_view_free(&view);
    sample_destroy(&s);
}

TEST(test_process)
{
    struct trib_process_view p;

    trib_process_view(&p);
    assert_true(p.known);
    assert_true(p.resident_bytes > 1 << 16 && p.fds >= 3 && p.fds <= p.fds_max);
    const uint64_t now_s = (uint64_t)time(NULL);
    assert_true(p.start_ns / SAMPLE_S <= now_s && p.start_ns / SAMPLE_S + 3600 > now_s);
}

static struct trib_operation operation(uint64_t number, uint64_t moved_ns)
{
    return (struct trib_operation){.number = number,
                                   .phase = TRIB_PHASE_START,
                                   .moved_ns = moved_ns,
                                   .waits_for = 1};
}

/* A job on several threads shows the operation that has stalled longest. */
TEST(test_stuck)
{
    struct sample s;
    struct trib_metrics_writer *more[2];
    struct trib_service_view view;
    uint64_t moved_ns = SAMPLE_T0 + 50 * SAMPLE_S;

    assert_true(sample_create(&s));
    for (int i = 0; i < 2; i++)
        assert_ok(trib_metrics_open_mt(s.metrics, 1, 4, &more[i]));
    trib_metrics_operation(more[0], operation(813, moved_ns));
    trib_metrics_operation(more[1], operation(814, moved_ns + 5 * SAMPLE_S));
    assert_ok(trib_metrics_view_mt(s.metrics, moved_ns + 5 * SAMPLE_S, &view));
    assert_int_equal(view.jobs[0].operation.number, 813);
    assert_int_equal(view.jobs[0].operation.waits_for, 1);
    assert_true(view.jobs[0].stuck);
    assert_false(view.jobs[1].stuck);
    assert_string_equal(trib_job_phase_name(view.jobs[1].operation.phase), "idle");
    trib_service_view_free(&view);
    assert_ok(trib_metrics_view_mt(s.metrics, moved_ns + 5 * SAMPLE_S - 1, &view));
    assert_false(view.jobs[0].stuck);
    trib_service_view_free(&view);
    sample_destroy(&s);
}

/* Totals never fall, although jobs end. */
TEST(test_what_is_gone_counts)
{
    struct sample s;
    struct trib_service_view view;

    assert_true(sample_create(&s));
    trib_metrics_close_mt(s.metrics, 1);
    assert_true(trib_jobs_remove(s.jobs, SAMPLE_T0 + 60 * SAMPLE_S, 1));
    assert_ok(trib_metrics_publish(s.metrics, s.jobs, SAMPLE_T0 + 60 * SAMPLE_S));
    assert_ok(trib_metrics_view_mt(s.metrics, SAMPLE_T0 + 61 * SAMPLE_S, &view));
    assert_int_equal(view.n, 2);
    assert_int_equal(view.jobs[0].count[TRIB_JOB_COUNTS_RECEIVED], 77);
    assert_int_equal(view.total[TRIB_JOB_COUNTS_RECEIVED], 1000077);
    trib_service_view_free(&view);
    sample_destroy(&s);
}

TEST(test_nothing)
{
    struct trib_metrics *metrics;
    struct trib_service_view view;

    assert_ok(trib_metrics_create(&(struct trib_metrics_opts){0}, &metrics));
    assert_ok(trib_metrics_view_mt(metrics, 5, &view));
    assert_int_equal(view.n, 0);
    trib_service_view_free(&view);
    trib_metrics_destroy(metrics);
    trib_metrics_destroy(NULL);
}

/* --- threads --- */

struct stage {
    struct trib_metrics *metrics;
    struct trib_jobs *jobs;
    _Atomic int done;
};

/* Ranks 1 to 4 sum; rank 0 opens and closes another job, publishes, and checks the
 * totals. */
static int play(int rank, int size, void *arg)
{
    struct stage *stage = arg;
    struct trib_metrics_writer *w;
    struct trib_service_view view;
    uint64_t before = 0;

    if (rank) {
        if (trib_metrics_open_mt(stage->metrics, 1, 4, &w))
            return 1;
        for (uint64_t i = 0; i < ROUNDS; i++) {
            trib_metrics_count(w, TRIB_JOB_COUNTS_CHUNKS, 1);
            trib_metrics_lag(w, (uint32_t)i % 4, i);
        }
        atomic_fetch_add(&stage->done, 1);
        return 0;
    }
    for (bool last = false; !last;) {
        last = atomic_load(&stage->done) == size - 1;
        if (trib_metrics_open_mt(stage->metrics, 2, 4, &w))
            return 1;
        trib_metrics_count(w, TRIB_JOB_COUNTS_CHUNKS, 1);
        trib_metrics_close_mt(stage->metrics, 2);
        if (trib_metrics_publish(stage->metrics, stage->jobs, 10) ||
            trib_metrics_view_mt(stage->metrics, 20, &view))
            return 1;
        uint64_t now = view.total[TRIB_JOB_COUNTS_CHUNKS];
        uint64_t of_job = view.n == 1 ? view.jobs[0].count[TRIB_JOB_COUNTS_CHUNKS] : 0;
        trib_service_view_free(&view);
        if (now <= before || (last && of_job != WRITERS * ROUNDS))
            return 1;
        before = now;
    }
    return 0;
}

TEST(test_threads)
{
    struct trib_jobs_opts limits = {.service = {.slots = 8, .jobs = 1, .queued = 1}};
    struct stage stage = {0};
    struct trib_job_answer answer;

    assert_ok(trib_jobs_create(&limits, NULL, &stage.jobs));
    trib_jobs_submit(stage.jobs, 1,
                     &(struct trib_job_request){"x", "y", 1, 4, 8, 1, 0, 0}, &answer);
    assert_int_equal(answer.id, 1);
    assert_ok(trib_metrics_create(&(struct trib_metrics_opts){0}, &stage.metrics));
    assert_int_equal(tribtest_threads(1 + WRITERS, play, &stage), 0);
    trib_metrics_destroy(stage.metrics);
    trib_jobs_destroy(stage.jobs);
}

/* Return the processor time of a view of n jobs, each with the writers of two
 * threads. */
static uint64_t view_many(uint32_t n)
{
    const struct trib_jobs_limits most = {.slots = n, .jobs = n, .queued = 1};
    const struct trib_job_request request = {
        .name = "x", .user = "ana", .weight = 1, .ranks = 1, .slots = 1};
    const struct trib_metrics_opts opts = {.start_ns = 1};
    struct trib_metrics_writer *w;
    struct trib_service_view view;
    struct trib_metrics *metrics;
    struct trib_job_answer a;
    struct trib_jobs *jobs;
    uint64_t best_ns = UINT64_MAX;

    assert_ok(trib_jobs_create(&(struct trib_jobs_opts){.service = most}, NULL, &jobs));
    assert_ok(trib_metrics_create(&opts, &metrics));
    for (uint32_t i = 0; i < n; i++) {
        trib_jobs_submit(jobs, 1, &request, &a);
        assert_ok(trib_metrics_open_mt(metrics, a.id, 0, &w));
        assert_ok(trib_metrics_open_mt(metrics, a.id, 0, &w));
        trib_metrics_count(w, TRIB_JOB_COUNTS_PUSHES, i);
    }
    assert_ok(trib_metrics_publish(metrics, jobs, 1));
    for (int tries = 0; tries < 5; tries++) {
        const uint64_t from = growth_now();
        assert_ok(trib_metrics_view_mt(metrics, 1, &view));
        best_ns = trib_min(best_ns, growth_now() - from);
        assert_int_equal(view.jobs[n - 1].count[TRIB_JOB_COUNTS_PUSHES], n - 1);
        trib_service_view_free(&view);
    }
    trib_metrics_destroy(metrics);
    trib_jobs_destroy(jobs);
    return best_ns;
}

/* A view locks out the control thread. With 4000 stores it took 270 ms. */
TEST(test_view_of_many_jobs)
{
    growth_is_linear(view_many);
}
