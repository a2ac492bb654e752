/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of trib-perf agg from the counters of its workers. */
#include "perf/agg/agg.h"
#include "perf/common/sizes.h"
#include "tests/harness/tribtest.h"

#include <math.h>


TEST(jain)
{
    const double same[] = {3, 3, 3}, one[] = {5, 0, 0, 0}, half[] = {1, 1, 0, 0},
                 two[] = {1, 3};

    assert_true(agg_jain(same, 3) == 1);
    assert_true(agg_jain(one, 4) == 0.25);
    assert_true(agg_jain(half, 4) == 0.5);
    assert_true(fabs(agg_jain(two, 2) - 0.8) < 1e-12);
    assert_true(agg_jain(same, 0) == 1);
}

/* Two jobs of two workers, in the memory that they share. */
struct rig {
    struct agg_args args;
    struct agg_workers workers;
    size_t sizes[1];
    struct agg_job_result jobs[2];
    struct agg_result result;
};

static void rig_open(struct rig *r)
{
    memset(r, 0, sizeof(*r));
    r->sizes[0] = 1000;
    r->args.jobs = r->args.workers = 2;
    r->args.each.sizes = (struct perf_sizes){r->sizes, 1};
    r->args.each.check = true;
    r->args.n_codecs = 2;
    r->args.codecs[0] = "none";
    r->args.codecs[1] = "int8";
    r->args.n_weights = 2;
    r->args.weights[0] = 1;
    r->args.weights[1] = 3;
    r->workers.args = &r->args;
    r->workers.shared =
        calloc(1, sizeof(struct agg_shared) + 4 * sizeof(struct agg_worker));
    assert_non_null(r->workers.shared);
}

/* operations of 1 ms, and on worker 1 of 2 ms, in as many seconds */
static void note(struct rig *r, int job, uint64_t operations, double seconds)
{
    for (int rank = 0; rank < 2; rank++) {
        struct agg_worker *w = agg_worker_at(&r->workers, job, rank);
        w->round = 1;
        w->operations = operations;
        w->elapsed_s = seconds;
        w->cpu_s = 0.5;
        w->stride = 1;
        w->n_samples = (uint32_t)operations;
        for (uint64_t i = 0; i < operations; i++)
            w->seconds[i] = (float)(1e-3 * (rank + 1));
        w->longest_s = 1e-3 * (rank + 1);
        w->hash[(operations - 1) % AGG_HASHES] = 77;
    }
}

TEST(sums_of_a_round)
{
    struct rig r;

    rig_open(&r);
    note(&r, 0, 100, 1);
    note(&r, 1, 300, 2);
    agg_results(&r.workers, 1, 0.25, r.jobs, &r.result);
    const double GB = 400 * 2 * 1000 * 1e-9;
    assert_int_equal(r.result.operations, 400);
    assert_true(r.result.seconds == 2);
    assert_true(fabs(r.result.GBps / (GB / 2) - 1) < 1e-9);
    assert_true(fabs(r.result.workers_cpu / (2 / GB) - 1) < 1e-9);
    assert_true(fabs(r.result.tribd_cpu / (0.25 / GB) - 1) < 1e-9);
    assert_true(fabs(r.result.tribd_elements / (GB * 1e9 / 4 / 0.25) - 1) < 1e-9);
    assert_int_equal(r.result.us.n, 400);
    assert_true(fabs(r.result.us.p50 - 2000) < 0.1 &&
                fabs(r.result.us.max - 2000) < 0.1);
    /* 100 in a second with weight 1, 150 with weight 3 */
    const double x[] = {100, 50};
    assert_true(fabs(r.result.jain - agg_jain(x, 2)) < 1e-9);
    assert_true(r.result.jain_codec == 1);
    assert_int_equal(r.result.wrong, 0);
    assert_int_equal(r.result.lost + r.result.failed, 0);
    free(r.workers.shared);
}

TEST(what_is_wrong_or_lost)
{
    struct rig r;

    rig_open(&r);
    note(&r, 0, 10, 1);
    note(&r, 1, 10, 1);
    agg_worker_at(&r.workers, 0, 1)->hash[9 % AGG_HASHES] = 78; /* its last result
                                                              * differs */
    struct agg_worker *lost = agg_worker_at(&r.workers, 1, 0);
    lost->fell_back = 4;
    lost->wrong = 2;
    snprintf(lost->lost, sizeof(lost->lost), "no service");
    atomic_store(&lost->words, 2);
    agg_results(&r.workers, 1, (double)NAN, r.jobs, &r.result);
    assert_int_equal(r.jobs[0].wrong, 1);
    assert_int_equal(r.jobs[1].wrong, 2);
    assert_int_equal(r.result.wrong, 3);
    assert_int_equal(r.result.fell_back, 4);
    assert_int_equal(r.result.lost, 1);
    assert_string_equal(r.jobs[1].why, "no service");
    assert_true(isnan(r.result.tribd_cpu) && isnan(r.result.tribd_elements));
    free(r.workers.shared);
}

/* A job that failed before this round has nothing in it. */
TEST(a_job_that_failed)
{
    struct rig r;

    rig_open(&r);
    note(&r, 0, 10, 1);
    note(&r, 1, 10, 1);
    struct agg_worker *w = agg_worker_at(&r.workers, 1, 1);
    w->failed = true;
    snprintf(w->why, sizeof(w->why), "was ended");
    for (int rank = 0; rank < 2; rank++)
        agg_worker_at(&r.workers, 1, rank)->round = 0;
    agg_results(&r.workers, 1, 1, r.jobs, &r.result);
    assert_int_equal(r.result.operations, 10);
    assert_int_equal(r.result.failed, 1);
    assert_true(r.jobs[1].failed && r.jobs[1].operations == 0);
    assert_string_equal(r.jobs[1].why, "was ended");
    assert_true(r.result.jain == 0.5);
    free(r.workers.shared);
}
