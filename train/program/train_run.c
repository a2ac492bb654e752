/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The user's part of the trainer is train_step(). The rest measures a training.
 */
#include "train/program/train_run.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary.h>

#include "train/program/progress_line.h"
#include "train/program/record.h"
#include "train/program/train_comm.h"
#include "train/program/train_pace.h"
#include "train/program/train_table.h"
#include "train/program/train_texts.h"
#include "train/program/train_until.h"

enum { SLICES = 8 };

struct rank {
    const struct train_job *job;
    const struct train_args *args;
    trib_comm_t *comm;
    int rank, ranks;
    uint64_t seed;
    struct task *task;
    trib_trainer_t *trainer;
    trib_trainer_desc_t desc;
    struct train_texts texts;
    float *params, *model; /* the trainer's parameters, and the evaluated model */
    size_t step, steps, next_point;
    double loss, step_s, library_s; /* of steps only, like the counters below */
    double wire_bytes, input_bytes, input_dense_bytes;
    double untimed_update_s; /* updates before library_s was last reset */
    struct train_result *result;
    struct progress_line line;
    struct record record; /* on rank 0 */
    struct train_pace pace; /* if samples per second are wanted */
    struct train_until until; /* if all ranks stop with the first */
    float *gradient; /* of the current step, while it is recorded; else NULL */
};

/* Report a failure of this rank by itself, because other ranks may be elsewhere in the
 * run. */
static int failed(const struct rank *r, trib_status_t status, const char *sentence)
{
    if (status == TRIB_OK)
        return 0;
    fprintf(stderr, "trib-train: rank %d: %s\n", r->rank, sentence);
    return -1;
}

static int trainer_failed(const struct rank *r, trib_status_t status)
{
    return failed(r, status, trib_trainer_error(r->trainer));
}

static int comm_failed(const struct rank *r, trib_status_t status)
{
    return failed(r, status, status == TRIB_OK ? "" : trib_last_error(r->comm));
}

/* --- a step --- */

static int ready(void *arg, size_t first, size_t count)
{
    struct rank *r = arg;
    const double begin = train_seconds();

    /* From here on the sum may overwrite the gradient. */
    if (r->gradient)
        record_piece(&r->record, r->gradient, first, count);
    const trib_status_t st = trib_trainer_ready(r->trainer, first, count);
    r->library_s += train_seconds() - begin;
    return trainer_failed(r, st);
}

/* Compute the gradient and sleep for the rest of the time an accelerator would need.
 * Half of the rest is the forward pass; then slices become final one after the
 * other. */
static int slow_gradient(struct rank *r, const trib_step_t *step)
{
    const double begin = train_seconds();
    const double times = train_slowness(r->args, r->seed, r->rank, r->step);
    const int whole = r->desc.feed == TRIB_FEED_WHOLE;
    size_t end = r->task->n_params;

    r->loss = r->task->ops->gradient(r->task, step->params, step->gradient, NULL, NULL);
    const double took = 1e3 * (train_seconds() - begin);
    const double ms = (took > r->args->compute_ms ? took : r->args->compute_ms) * times;
    const double left = ms - took;

    train_sleep(whole ? left : left / 2);
    for (size_t i = SLICES; i-- > 0 && !whole;) {
        const size_t first = r->task->n_params * i / SLICES;

        train_sleep(left / 2 / SLICES);
        if (ready(r, first, end - first) != 0)
            return -1;
        end = first;
    }
    return 0;
}

static int gradient(struct rank *r, const trib_step_t *step)
{
    if (r->args->compute_ms > 0 || r->args->straggle > 0 || r->args->slow_times > 0)
        return slow_gradient(r, step);
    r->loss = r->task->ops->gradient(r->task, step->params, step->gradient,
                                     r->desc.feed == TRIB_FEED_WHOLE ? NULL : ready, r);
    return r->loss < 0 ? -1 : 0;
}

static bool is_point(const struct rank *r, size_t step)
{
    return r->job->watched && (step == r->next_point || step == r->steps);
}

/* Bytes sent by this rank; input only through the trainer's communicator. */
struct sent {
    double wire, input, input_dense;
};

static struct sent read_sent(const struct rank *r)
{
    trib_trainer_stats_t trainer = {.size = sizeof(trainer)};
    trib_stats_t comm = {.size = sizeof(comm)};

    (void)trib_trainer_stats(r->trainer, &trainer);
    (void)trib_stats(r->comm, &comm);
    return (struct sent){(double)trainer.wire_bytes, (double)comm.input_bytes,
                         (double)comm.input_dense_bytes};
}

static void count_step(struct rank *r, const struct sent *before)
{
    const struct sent after = read_sent(r);

    r->wire_bytes += after.wire - before->wire;
    r->input_bytes += after.input - before->input;
    r->input_dense_bytes += after.input_dense - before->input_dense;
    r->step++;
}

static int train_step(struct rank *r)
{
    const struct sent before = read_sent(r);
    const double begin = train_seconds();
    trib_step_t step = TRIB_STEP_INIT;

    if (trainer_failed(r, trib_trainer_begin(r->trainer, &step)))
        return -1;
    r->library_s += train_seconds() - begin;
    r->gradient = r->record.folder && is_point(r, r->step + 1) ? step.gradient : NULL;
    if (gradient(r, &step) != 0)
        return -1;
    if (r->gradient && r->desc.feed == TRIB_FEED_WHOLE)
        record_piece(&r->record, r->gradient, 0, r->task->n_params);

    const double computed = train_seconds();
    if (trainer_failed(r, trib_trainer_end(r->trainer, r->loss)))
        return -1;
    r->library_s += train_seconds() - computed;
    r->step_s += train_seconds() - begin;
    count_step(r, &before);
    train_pace_mark(&r->pace, train_seconds());
    return 0;
}

/* --- results --- */

static double update_seconds(struct rank *r)
{
    trib_trainer_stats_t stats = {.size = sizeof(stats)};

    (void)trib_trainer_stats(r->trainer, &stats);
    return 1e-9 * (double)stats.update_ns;
}

/* Evaluate a copy of the model, so that the run is not influenced. */
static int evaluate(struct rank *r, double *value_out)
{
    double both[2];

    if (trainer_failed(r, trib_trainer_settle(r->trainer, r->model)))
        return -1;
    r->task->ops->evaluate(r->task, r->model, &both[0], &both[1]);
    if (comm_failed(r, trib_allreduce(r->comm, NULL, both, 2, TRIB_F64, TRIB_SUM)))
        return -1;
    *value_out = r->job->task->lower_is_better ? exp(both[0] / both[1])
                                               : 100 * both[0] / both[1];
    return 0;
}

/* Add a point at steps 1, 2, 4, 7, 11, … (even on a logarithmic axis) and at the last
 * step. */
static int add_point(struct rank *r)
{
    struct train_result *result = r->result;
    struct train_point *point = &result->points[result->n_points];

    if (!is_point(r, r->step))
        return 0;
    r->next_point = r->step + r->step / 2 + 1;
    if (record_write(&r->record, r->step) != 0)
        return -1;
    if (result->n_points == TRAIN_POINTS_MAX)
        return 0;
    *point = (struct train_point){.step = (double)r->step,
                                  .wire_bytes = r->wire_bytes,
                                  .seconds = r->step_s,
                                  .loss = r->loss};
    result->n_points++;
    return evaluate(r, &point->value);
}

/* Set the result: the curve's last point if it is at the last step. Timed runs need no
 * result, so they only finish. */
static int finish(struct rank *r)
{
    struct train_result *result = r->result;
    const struct train_point *last = &result->points[result->n_points - 1];

    if (result->n_points > 0 && last->step >= (double)r->steps) {
        result->value = last->value;
        return 0;
    }
    if (r->job->timed_from > 0 || r->job->paced)
        return trainer_failed(r, trib_trainer_settle(r->trainer, r->model));
    return evaluate(r, &result->value);
}

/* Average the counters over the ranks. */
static int count(struct rank *r)
{
    trib_trainer_stats_t stats = {.size = sizeof(stats)};

    if (trainer_failed(r, trib_trainer_stats(r->trainer, &stats)))
        return -1;
    struct train_counts c = {.wire = r->wire_bytes,
                             .input = r->input_bytes,
                             .input_dense = r->input_dense_bytes,
                             .seconds = r->step_s,
                             .library = r->library_s - 1e-9 * (double)stats.update_ns +
                                        r->untimed_update_s,
                             .rounds = (double)stats.rounds,
                             .round_bytes = (double)stats.dense_bytes,
                             .steps = (double)r->step};
    if (comm_failed(r, trib_allreduce(r->comm, NULL, &c, sizeof(c) / sizeof(double),
                                      TRIB_F64, TRIB_MEAN)))
        return -1;
    train_result_fill(r->result, &c, r->task->n_params, r->ranks);
    if (!r->job->paced)
        return 0;
    const trib_status_t st = train_pace_rate(&r->pace, r->comm, &r->result->samples_s);

    r->result->samples_s *= (double)r->task->batch;
    return comm_failed(r, st);
}

/* Report ranks whose models differ from rank 0's, since different models would drift
 * apart. */
static int compare_models(struct rank *r)
{
    const size_t bytes = r->task->n_params * sizeof(float);
    int64_t *hashes = calloc((size_t)r->ranks, sizeof(*hashes));
    const int64_t mine = (int64_t)train_hash(r->model, bytes);

    if (!hashes ||
        comm_failed(r, trib_allgather(r->comm, &mine, hashes, 1, TRIB_I64))) {
        free(hashes);
        return -1;
    }
    r->result->hash = (uint64_t)hashes[0];
    r->result->identical = true;
    for (int i = 1; i < r->ranks; i++) {
        if (hashes[i] == hashes[0])
            continue;
        r->result->identical = false;
        if (r->rank == 0)
            fprintf(stderr, "trib-train: the model of rank %d differs from rank 0's\n",
                    i);
    }
    free(hashes);
    return 0;
}

/* --- life cycle --- */

static trib_status_t make_task(struct rank *r, struct trib_error *err)
{
    const struct task_desc data = {.data = r->args->data,
                                   .kept = r->args->kept,
                                   .rank = r->rank,
                                   .ranks = r->ranks,
                                   .batch = r->args->batch,
                                   .seed = r->seed};
    const struct task_row *row = r->job->task;
    trib_status_t st = task_create(row, &data, &r->task, err);

    if (st != TRIB_OK)
        return st;
    r->steps = r->args->steps
                   ? r->args->steps
                   : (r->args->epochs ? r->args->epochs : 3) * r->task->steps_per_epoch;
    r->params = malloc(r->task->n_params * sizeof(float));
    r->model = malloc(r->task->n_params * sizeof(float));
    if (!r->params || !r->model ||
        (r->job->paced && train_pace_open(&r->pace, r->steps) != 0))
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
    row->ops->seed(r->task, r->params, r->seed);
    r->desc.params = r->params;
    r->desc.count = r->task->n_params;
    st = train_texts_make(r->args, row, r->task, r->steps, &r->texts, &r->desc, err);
    r->desc.seed = r->seed;
    if (st != TRIB_OK || r->rank != 0)
        return st;
    st = train_files_try(r->args, err);
    return st == TRIB_OK
               ? record_open(&r->record, r->args->record, r->task->n_params, err)
               : st;
}

static int set_up(struct rank *r)
{
    struct trib_error err = {0};

    r->desc = (trib_trainer_desc_t)TRIB_TRAINER_DESC_INIT;
    make_task(r, &err);
    if (train_all_good(r->comm, &err) != 0)
        return -1;
    const trib_status_t st = trib_trainer_create(r->comm, &r->desc, &r->trainer);

    if (st != TRIB_OK)
        trib_fail(&err, st, "%s", trib_trainer_error(NULL));
    if (train_all_good(r->comm, &err) != 0)
        return -1;
    train_result_clear(r->result);
    r->next_point = r->job->first_point ? r->job->first_point : 1;
    progress_line_begin(&r->line,
                        r->rank == 0 ? r->args->progress : TRAIN_PROGRESS_NONE,
                        r->job->title);
    return 0;
}

static void show(struct rank *r)
{
    const struct progress_state state = {.step = r->step,
                                         .steps = r->steps,
                                         .loss = r->loss,
                                         .wire_bytes = r->wire_bytes,
                                         .step_ms = 1e3 * r->step_s / (double)r->step};

    progress_line_show(&r->line, &state);
}

static int run(struct rank *r)
{
    if (set_up(r) != 0)
        return -1;
    if (r->args->until_first && comm_failed(r, train_until_open(&r->until, r->comm)))
        return -1;
    train_pace_mark(&r->pace, train_seconds());
    while (r->step < r->steps && !train_until_over(&r->until)) {
        if (r->step == r->job->timed_from) {
            r->untimed_update_s = update_seconds(r);
            r->step_s = r->library_s = 0;
        }
        if (train_step(r) != 0 || add_point(r) != 0)
            return -1;
        if (r->rank == 0)
            show(r);
    }
    progress_line_end(&r->line);
    if (comm_failed(r, train_until_close(&r->until)))
        return -1;
    return count(r) != 0 || finish(r) != 0 || compare_models(r) != 0 ? -1 : 0;
}

static int clean_up(struct rank *r)
{
    int bad = comm_failed(r, trib_trainer_free(r->trainer));

    task_destroy(r->task);
    record_close(&r->record);
    train_pace_close(&r->pace);
    free(r->params);
    free(r->model);
    return bad;
}

static int train(const struct train_job *job, trib_comm_t *comm, uint64_t seed,
                 struct train_result *result)
{
    struct rank r = {.job = job,
                     .args = job->args,
                     .comm = comm,
                     .rank = trib_rank(comm),
                     .ranks = trib_size(comm),
                     .seed = seed,
                     .result = result};
    const int bad = run(&r);

    return clean_up(&r) != 0 || bad;
}

int train_rank(const struct train_job *job, int rank, const char *root,
               int (*report)(const struct train_job *job))
{
    trib_comm_t *comm;

    openblas_set_num_threads(1); /* parallelism comes from the ranks */
    if (train_init(job->args, rank, root, &comm) != 0)
        return 1;
    return train_all_seeds(job, comm, train, report);
}
