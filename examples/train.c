/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data-parallel training, the way most people meet all-reduce: each rank computes the
 * gradient of its own images, Tributary makes it the mean of all ranks' gradients while
 * back-propagation still runs, and every rank takes the same step.
 *
 *     trib-run -n 4 -- train --codec topk:ratio=0.01
 *
 * Read train_step() first: it is the whole idea.
 */
#include <cblas.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary.h>

#include "examples/draw.h"
#include "examples/mlp.h"
#include "examples/mnist.h"
#include "examples/record.h"
#include "examples/report.h"
#include "examples/train_options.h"

enum { ERROR_BYTES = 1280 }; /* a path and a sentence */

struct train {
    struct train_options options;
    trib_comm_t *comm;
    int rank;
    int ranks;
    struct mnist images; /* for training */
    struct mnist tests;
    uint32_t *share; /* this rank's images: no other rank has them */
    size_t share_count;
    size_t share_next;
    uint64_t epoch;
    struct mlp *mlp;
    float *inputs; /* one batch */
    uint8_t *labels;
    float *gradient; /* one vector, summed in place, in reach of the peers */
    trib_plan_t *plan; /* holds the codec's error feedback: one plan for the vector */
    struct report_state state;
    size_t next_point; /* the step behind which is evaluated and recorded */
    struct report report; /* rank 0 only */
    struct record record; /* rank 0 only */
};

/* Says what failed; every library call's status passes through here. */
static int failed(const struct train *t, trib_status_t status)
{
    if (status == TRIB_OK)
        return 0;
    fprintf(stderr, "train: %s\n", trib_last_error(t->comm));
    return -1;
}

static uint64_t wire_bytes(const struct train *t)
{
    trib_stats_t stats = {.size = sizeof(stats)};

    return trib_stats(t->comm, &stats) == TRIB_OK ? stats.wire_bytes : 0;
}

/* The images of the next batch: through the share in random order, over and over. */
static const uint32_t *next_picks(struct train *t)
{
    size_t batch = t->options.batch;

    if (t->share_next + batch > t->share_count) {
        uint64_t seed = t->options.seed + ++t->epoch * (uint64_t)t->ranks;

        draw_shuffle(t->share, t->share_count, seed + (uint64_t)t->rank);
        t->share_next = 0;
    }
    t->share_next += batch;
    return t->share + t->share_next - batch;
}

/* Rises for the first 5 % of the steps, then falls in a line to almost nothing. */
static float learning_rate(const struct train *t)
{
    size_t warm_up = t->state.steps / 20 + 1;
    size_t step = t->state.step;
    float share = step < warm_up ? (float)(step + 1) / (float)warm_up
                                 : (float)(t->state.steps - step) /
                                       (float)(t->state.steps - warm_up);

    return t->options.rate * share;
}

static int is_point(const struct train *t, size_t step)
{
    return step == t->next_point || step == t->state.steps;
}

static int gradient_ready(void *arg, size_t first, size_t count)
{
    struct train *t = arg;
    uint64_t begin = report_clock();

    /* from here on the sum may overwrite it */
    if (is_point(t, t->state.step + 1))
        record_piece(&t->record, t->gradient, first, count);

    trib_status_t status = trib_plan_ready(t->plan, first, count);

    t->state.library_ns += report_clock() - begin;
    return failed(t, status);
}

/* One step: my gradient, everyone's mean, the same update on every rank. */
static int train_step(struct train *t)
{
    uint64_t begin = report_clock();
    uint64_t sent = wire_bytes(t);
    struct mlp_batch batch = {t->options.batch, t->inputs, t->labels};

    mnist_batch(&t->images, next_picks(t), batch.count, t->inputs, t->labels);

    uint64_t start_begin = report_clock();
    if (failed(t, trib_plan_start(t->plan)))
        return -1;
    t->state.library_ns += report_clock() - start_begin;

    t->state.loss = mlp_gradient(t->mlp, &batch, t->gradient, gradient_ready, t);
    if (t->state.loss < 0.0)
        return -1;

    uint64_t wait_begin = report_clock();
    if (failed(t, trib_plan_wait(t->plan)))
        return -1;
    t->state.library_ns += report_clock() - wait_begin;

    mlp_update(t->mlp, t->gradient, learning_rate(t), t->options.momentum);
    t->state.wire_bytes += wire_bytes(t) - sent;
    t->state.step_ns += report_clock() - begin;
    t->state.step++;
    return 0;
}

/* Each rank classifies its part of the test images; the counts are summed. */
static int evaluate(struct train *t)
{
    size_t first = t->tests.count * (size_t)t->rank / (size_t)t->ranks;
    size_t end = t->tests.count * (size_t)(t->rank + 1) / (size_t)t->ranks;
    int64_t correct = 0;

    while (first < end) {
        uint32_t picks[64];
        size_t n = end - first < t->options.batch ? end - first : t->options.batch;

        n = n < 64 ? n : 64;
        for (size_t i = 0; i < n; i++)
            picks[i] = (uint32_t)(first + i);
        mnist_batch(&t->tests, picks, n, t->inputs, t->labels);

        struct mlp_batch batch = {n, t->inputs, t->labels};

        correct += (int64_t)mlp_correct(t->mlp, &batch);
        first += n;
    }
    if (failed(t, trib_allreduce(t->comm, NULL, &correct, 1, TRIB_I64, TRIB_SUM)))
        return -1;
    t->state.accuracy = (double)correct / (double)t->tests.count;
    if (t->rank == 0)
        report_point(&t->report, &t->state);
    return 0;
}

/*
 * Evaluates at the end and, if anybody looks, at steps 1, 2, 4, 7, 11, …: evenly on the
 * logarithmic axis of the plot.
 */
static int train_all(struct train *t)
{
    int watched = t->options.csv != NULL || t->options.record != NULL ||
                  t->options.progress != TRAIN_PROGRESS_NONE;

    t->next_point = watched ? 1 : t->state.steps;

    while (t->state.step < t->state.steps) {
        if (train_step(t) != 0)
            return -1;
        if (is_point(t, t->state.step)) {
            t->next_point += t->state.step / 2 + 1;
            if (record_write(&t->record, t->state.step) != 0 || evaluate(t) != 0)
                return -1;
        }
        if (t->rank == 0)
            report_step(&t->report, &t->state);
    }
    return 0;
}

/* FNV-1a over the bits of the weights. */
static uint64_t weights_hash(const struct mlp *mlp)
{
    const uint8_t *bytes = (const uint8_t *)mlp->params;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < mlp->n_params * sizeof(float); i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Replicas that differ in one bit would drift apart: name the ranks that do. */
static int compare_weights(struct train *t, struct report_result *result)
{
    int64_t *hashes = calloc((size_t)t->ranks, sizeof(*hashes));
    int64_t mine = (int64_t)weights_hash(t->mlp);

    if (hashes == NULL) {
        fprintf(stderr, "train: out of memory\n");
        return -1;
    }
    if (failed(t, trib_allgather(t->comm, &mine, hashes, 1, TRIB_I64))) {
        free(hashes);
        return -1;
    }
    result->weights_hash = (uint64_t)hashes[0];
    result->identical = 1;
    for (int r = 1; r < t->ranks; r++) {
        if (hashes[r] == hashes[0])
            continue;
        result->identical = 0;
        if (t->rank == 0)
            fprintf(stderr,
                    "train: the weights of rank %d (%016" PRIx64
                    ") differ from those of rank 0 (%016" PRIx64 ")\n",
                    r, (uint64_t)hashes[r], (uint64_t)hashes[0]);
    }
    free(hashes);
    return 0;
}

/* All ranks leave together: the lowest rank that could not go on has said why. */
static int all_good(struct train *t, int good, const char *error)
{
    int32_t lowest = good ? t->ranks : t->rank;

    if (failed(t, trib_allreduce(t->comm, NULL, &lowest, 1, TRIB_I32, TRIB_MIN)))
        return 0;
    if (lowest == t->rank)
        fprintf(stderr, "train: %s\n", error);
    return lowest == t->ranks;
}

static int load_data(struct train *t)
{
    const char *folder = t->options.data;
    char error[ERROR_BYTES] = "";
    int good = mnist_load(folder, "train", &t->images, error, ERROR_BYTES) == 0 &&
               mnist_load(folder, "t10k", &t->tests, error, ERROR_BYTES) == 0;

    t->share_count = t->images.count / (size_t)t->ranks;
    if (good && t->share_count < t->options.batch) {
        snprintf(error, sizeof(error), "a batch of %zu does not fit %zu images a rank",
                 t->options.batch, t->share_count);
        good = 0;
    }
    return all_good(t, good, error) ? 0 : -1;
}

/* Deals the images: one shuffle that all ranks know, and each rank's part of it. */
static int deal_images(struct train *t)
{
    uint32_t *all = malloc(t->images.count * sizeof(*all));

    t->share = malloc(t->share_count * sizeof(*t->share));
    if (all == NULL || t->share == NULL) {
        free(all);
        return -1;
    }
    for (size_t i = 0; i < t->images.count; i++)
        all[i] = (uint32_t)i;
    draw_shuffle(all, t->images.count, t->options.seed);
    memcpy(t->share, all + (size_t)t->rank * t->share_count,
           t->share_count * sizeof(*t->share));
    free(all);
    return 0;
}

static int alloc_memory(struct train *t)
{
    static const size_t widths[] = {MNIST_PIXELS, 512, 256, MNIST_CLASSES};

    t->inputs = malloc(t->options.batch * MNIST_PIXELS * sizeof(float));
    t->labels = malloc(t->options.batch);
    return t->inputs != NULL && t->labels != NULL && deal_images(t) == 0 &&
                   mlp_create(widths, 4, t->options.batch, &t->mlp) == 0
               ? 0
               : -1;
}

/* The gradient in memory that peers reach, and one plan that sums it at every step. */
static int make_plan(struct train *t)
{
    size_t bytes = t->mlp->n_params * sizeof(float);
    trib_desc_t desc = TRIB_DESC_INIT;
    void *memory;

    if (failed(t, trib_alloc(t->comm, bytes, &memory)))
        return -1;
    t->gradient = memory;
    desc.recv = t->gradient;
    desc.count = t->mlp->n_params;
    desc.op = TRIB_MEAN;
    desc.codec = t->options.codec;
    desc.feed = TRIB_FEED_BACKWARD;
    return failed(t, trib_plan_allreduce(t->comm, &desc, &t->plan));
}

static int set_up(struct train *t)
{
    char error[ERROR_BYTES] = "";
    trib_status_t status = trib_codec_check(t->options.codec, error, ERROR_BYTES);

    if (!all_good(t, status == TRIB_OK, error) || load_data(t) != 0)
        return -1;
    if (!all_good(t, alloc_memory(t) == 0, "out of memory"))
        return -1;

    size_t steps_per_epoch = t->share_count / t->options.batch;

    t->share_next = t->share_count;
    t->state.steps =
        t->options.steps > 0 ? t->options.steps : t->options.epochs * steps_per_epoch;
    /* Rank 0 draws the first weights; nobody else needs to know how. */
    if (t->rank == 0)
        mlp_seed(t->mlp, t->options.seed);
    if (failed(t,
               trib_broadcast(t->comm, t->mlp->params, t->mlp->n_params, TRIB_F32, 0)))
        return -1;

    int opened = t->rank != 0 ||
                 (report_open(&t->report, &t->options, error, ERROR_BYTES) == 0 &&
                  record_open(&t->record, t->options.record, t->mlp->n_params, error,
                              ERROR_BYTES) == 0);

    return all_good(t, opened, error) ? make_plan(t) : -1;
}

static int run(struct train *t)
{
    struct report_result result = {0};

    if (set_up(t) != 0 || train_all(t) != 0 || compare_weights(t, &result) != 0)
        return -1;
    result.end = t->state;
    result.ranks = t->ranks;
    result.n_params = t->mlp->n_params;
    if (t->rank == 0 && report_finish(&t->report, &t->options, &result) != 0)
        return -1;
    return result.identical ? 0 : -1;
}

static int tear_down(struct train *t)
{
    int result = 0;

    result |= failed(t, trib_plan_free(t->plan));
    mlp_destroy(t->mlp);
    mnist_free(&t->images);
    mnist_free(&t->tests);
    free(t->share);
    free(t->inputs);
    free(t->labels);
    report_close(&t->report);
    record_close(&t->record);

    trib_status_t status = trib_free_comm(t->comm); /* frees the gradient too */
    if (status != TRIB_OK) {
        fprintf(stderr, "train: leaving: %s\n", trib_last_error(NULL));
        result = -1;
    }
    return result;
}

int main(int argc, char **argv)
{
    struct train t = {0};
    int parsed = train_options_parse(argc, argv, &t.options);

    if (parsed != 0)
        return parsed > 0 ? 0 : 2;
    openblas_set_num_threads(1); /* the ranks are the parallelism */
    if (failed(&t, trib_init(NULL, &t.comm)))
        return 1;
    t.rank = trib_rank(t.comm);
    t.ranks = trib_size(t.comm);

    int result = run(&t);

    result |= tear_down(&t);
    return result != 0;
}
