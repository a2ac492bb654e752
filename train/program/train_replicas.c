/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The user's part of the replicator is in start, input, step and gradient, which are
 * the same for every kind. The rest measures a run.
 */
#include "train/program/train_replicas.h"

#include <cblas.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <tributary/replicator.h>

#include "train/program/progress_line.h"
#include "train/program/train_comm.h"
#include "train/program/train_table.h"
#include "train/program/train_texts.h"

enum { BATCH = 128, EPOCHS = 3 };

/* State shared by the replicas of a process. */
struct process {
    const struct train_job *job;
    const struct train_args *args;
    uint64_t seed;
    struct train_result *result; /* of replica 0 */
    /* made to check the data; the first replica takes it */
    _Atomic(struct task *) spare;
    _Atomic(struct replica *) made; /* all replicas, freed after the run */
};

struct replica {
    struct replica *next;
    const struct process *of;
    struct task *task;
    trib_trainer_t *trainer;
    struct train_texts texts;
    float *params;
    trib_stats_t before; /* statistics of its communicator at the start */
    double loss, step_s, gradient_s;
    size_t next_point;
    struct progress_line line;
};

static struct replica *own(const trib_replica_t *replica)
{
    return *(struct replica **)trib_replica_state(replica);
}

/* --- the program, in every kind --- */

static trib_status_t make_task(const struct process *p, size_t batch,
                               struct task **task_out, struct trib_error *err)
{
    const struct task_desc data = {.data = p->args->data,
                                   .kept = p->args->kept,
                                   .ranks = 1,
                                   .batch = batch,
                                   .seed = p->seed};

    return task_create(p->job->task, &data, task_out, err);
}

static int make_replica(trib_replica_t *replica, struct replica **out)
{
    struct process *p = trib_replica_arg(replica);
    struct replica *r = calloc(1, sizeof(*r));
    struct trib_error err = {0};

    *out = r;
    if (!r)
        return trib_replica_fail(replica, "out of memory");
    r->of = p;
    r->next_point = 1;
    r->next = atomic_load(&p->made);
    while (!atomic_compare_exchange_weak(&p->made, &r->next, r))
        ;
    r->task = atomic_exchange(&p->spare, NULL);
    if (!r->task &&
        make_task(p, trib_replica_batch(replica), &r->task, &err) != TRIB_OK)
        return trib_replica_fail(replica, "%s", trib_error_text(&err));
    r->params = malloc(r->task->n_params * sizeof(float));
    return r->params ? 0 : trib_replica_fail(replica, "out of memory");
}

static int start(trib_replica_t *replica)
{
    const struct process *p = trib_replica_arg(replica);
    struct replica **state = trib_replica_state(replica);
    trib_trainer_desc_t desc = TRIB_TRAINER_DESC_INIT;
    struct trib_error err = {0};

    if (trib_replica_devices(replica) > 1)
        return trib_replica_fail(replica,
                                 "devices=%d: trib-train cannot split a model across "
                                 "devices; see examples/replicator/classifier",
                                 trib_replica_devices(replica));
    if (make_replica(replica, state) != 0)
        return -1;
    struct replica *r = *state;

    p->job->task->ops->seed(r->task, r->params, p->seed);
    if (train_texts_make(p->args, p->job->task, r->task, trib_replica_steps(replica),
                         &r->texts, &desc, &err) != TRIB_OK)
        return trib_replica_fail(replica, "%s", trib_error_text(&err));
    desc.params = r->params;
    desc.count = r->task->n_params;
    desc.seed = p->seed;
    /* with shares, no piece is final before the last share */
    desc.feed = TRIB_FEED_WHOLE;
    r->before.size = sizeof(r->before);
    (void)trib_stats(trib_replica_comm(replica), &r->before);
    progress_line_begin(&r->line,
                        trib_replica_id(replica) == 0 ? p->args->progress
                                                      : TRAIN_PROGRESS_NONE,
                        p->job->title);
    return trib_replica_trainer(replica, &desc, &r->trainer);
}

static int input(trib_replica_t *replica, const trib_input_t *in, void *samples)
{
    struct replica *r = own(replica);

    for (size_t i = 0; i < in->count; i++)
        r->task->ops->sample(r->task, in->first + i,
                             (char *)samples + i * in->sample_bytes);
    return 0;
}

/* Compute the gradient of a share. With --compute-ms and --straggle each share takes
 * its part of the time. */
static int gradient(trib_replica_t *replica, const float *params, const void *samples,
                    size_t count, float *gradient, double *loss_out)
{
    struct replica *r = own(replica);
    const struct train_args *args = r->of->args;
    const double begin = train_seconds();

    *loss_out =
        r->task->ops->sample_gradient(r->task, params, samples, count, gradient);
    const double took = 1e3 * (train_seconds() - begin);
    const double least =
        args->compute_ms * (double)count / (double)trib_replica_batch(replica);
    const double times = train_slowness(args, r->of->seed, trib_replica_id(replica),
                                        trib_replica_step(replica));

    train_sleep((took > least ? took : least) * times - took);
    r->gradient_s += train_seconds() - begin;
    return 0;
}

static int record_progress(trib_replica_t *replica);

static int step(trib_replica_t *replica, void *samples)
{
    struct replica *r = own(replica);
    const double begin = train_seconds();
    const int code = trib_replica_train(replica, r->trainer, gradient, &r->loss);

    (void)samples; /* passed to gradient, share by share */
    r->step_s += train_seconds() - begin;
    return code != 0 || trib_replica_id(replica) != 0 ? code : record_progress(replica);
}

/* --- results --- */

static double evaluate(const struct replica *r, const float *params)
{
    double sum, count;

    r->task->ops->evaluate(r->task, params, &sum, &count);
    return r->of->job->task->lower_is_better ? exp(sum / count) : 100 * sum / count;
}

/* Return the bytes sent. With ordered shares the replica sends, not the trainer. */
static double wire_bytes(trib_replica_t *replica, const trib_trainer_stats_t *trainer)
{
    trib_stats_t now = {.size = sizeof(now)};

    if (trainer->wire_bytes)
        return (double)trainer->wire_bytes;
    (void)trib_stats(trib_replica_comm(replica), &now);
    return (double)(now.wire_bytes - own(replica)->before.wire_bytes);
}

/* Show the progress of replica 0, and evaluate at points of the curve. */
static int record_progress(trib_replica_t *replica)
{
    struct replica *r = own(replica);
    struct train_result *result = r->of->result;
    const uint64_t done = trib_replica_step(replica) + 1,
                   steps = trib_replica_steps(replica);
    trib_trainer_stats_t stats = {.size = sizeof(stats)};

    (void)trib_trainer_stats(r->trainer, &stats);
    const double wire = wire_bytes(replica, &stats);
    const struct progress_state state = {.step = done,
                                         .steps = steps,
                                         .loss = r->loss,
                                         .wire_bytes = wire,
                                         .step_ms = 1e3 * r->step_s / (double)done};

    progress_line_show(&r->line, &state);
    if (!r->of->job->watched || result->n_points == TRAIN_POINTS_MAX ||
        (done != r->next_point && done != steps))
        return 0;
    r->next_point = done + done / 2 + 1;
    result->points[result->n_points++] = (struct train_point){
        .step = (double)done,
        .wire_bytes = wire,
        .seconds = r->step_s,
        .value = evaluate(r, trib_replica_params(replica, r->trainer)),
        .loss = r->loss};
    return 0;
}

static int compare_models(trib_replica_t *replica)
{
    const struct replica *r = own(replica);
    const int n = trib_replica_in_sync(replica);
    const int64_t mine =
        (int64_t)train_hash(r->params, r->task->n_params * sizeof(float));
    int64_t *all = calloc((size_t)n, sizeof(*all));

    if (!all)
        return trib_replica_fail(replica, "out of memory");
    const trib_status_t st = trib_replica_all_gather(replica, &mine, all, 1, TRIB_I64);

    if (st == TRIB_OK && trib_replica_id(replica) == 0) {
        r->of->result->hash = (uint64_t)mine;
        r->of->result->identical = true;
        for (int i = 1; i < n; i++)
            r->of->result->identical &= all[i] == mine;
    }
    free(all);
    return st;
}

/* Compute means over the replicas in the group of replica 0. */
static int count(trib_replica_t *replica)
{
    const struct replica *r = own(replica);
    trib_trainer_stats_t stats = {.size = sizeof(stats)};
    trib_stats_t comm = {.size = sizeof(comm)};

    (void)trib_trainer_stats(r->trainer, &stats);
    (void)trib_stats(trib_replica_comm(replica), &comm);
    struct train_counts c = {
        .wire = wire_bytes(replica, &stats),
        .input = (double)(comm.input_bytes - r->before.input_bytes),
        .input_dense = (double)(comm.input_dense_bytes - r->before.input_dense_bytes),
        .seconds = r->step_s,
        .library = r->step_s - r->gradient_s - 1e-9 * (double)stats.update_ns,
        .rounds = (double)stats.rounds,
        .round_bytes = (double)stats.dense_bytes,
        .steps = (double)trib_replica_steps(replica)};
    const trib_status_t st = trib_replica_all_reduce(
        replica, NULL, &c, sizeof(c) / sizeof(double), TRIB_F64, TRIB_MEAN);

    if (st == TRIB_OK && trib_replica_id(replica) == 0)
        train_result_fill(r->of->result, &c, r->task->n_params,
                          trib_replica_count(replica));
    return st;
}

/* All trainers have finished, so params holds the model. */
static int finish(trib_replica_t *replica)
{
    struct replica *r = own(replica);

    progress_line_end(&r->line);
    if (trib_replica_id(replica) == 0)
        r->of->result->value = evaluate(r, r->params);
    const int code = count(replica);

    return code != 0 ? code : compare_models(replica);
}

/* --- life cycle --- */

static void free_replicas(struct process *p)
{
    struct replica *r = atomic_exchange(&p->made, NULL);

    task_destroy(atomic_exchange(&p->spare, NULL));
    while (r) {
        struct replica *next = r->next;

        task_destroy(r->task);
        free(r->params);
        free(r);
        r = next;
    }
}

static int run(struct process *p, trib_comm_t *comm)
{
    const struct train_args *args = p->args;
    const int rank = trib_rank(comm);
    trib_replicator_opts_t opts = TRIB_REPLICATOR_OPTS_INIT;
    struct task *task = NULL;
    struct trib_error err = {0};

    opts.batch = args->batch ? args->batch : BATCH;
    if (make_task(p, opts.batch, &task, &err) == TRIB_OK && rank == 0)
        train_files_try(args, &err);
    atomic_store(&p->spare, task);
    if (train_all_good(comm, &err) != 0)
        return -1;
    train_result_clear(p->result);
    opts.kind = args->kind;
    opts.sample_bytes = task->sample_bytes;
    opts.state_bytes = sizeof(struct replica *);
    opts.steps = args->steps
                     ? args->steps
                     : (args->epochs ? args->epochs : EPOCHS) * task->steps_per_epoch;
    opts.start = start;
    opts.input = input;
    opts.step = step;
    opts.finish = finish;
    opts.arg = p;
    opts.comm = comm;
    const trib_status_t st = trib_replicator_run(&opts);

    /* The error message is the same on all surviving ranks. */
    if (st != TRIB_OK && (rank == 0 || st == TRIB_ERR_PEER_LOST))
        fprintf(stderr, "trib-train: %s\n", trib_replicator_error());
    return st == TRIB_OK ? 0 : -1;
}

int train_replicas_check(const struct train_job *job)
{
    if (job->task->ops->sample)
        return -1;
    fputs("trib-train: --kind is for tasks whose samples are numbered: mlp, cnn, "
          "cnnall, cnnwide, logreg and svm\n",
          stderr);
    return 2;
}

static int train(const struct train_job *job, trib_comm_t *comm, uint64_t seed,
                 struct train_result *result)
{
    struct process p = {.job = job, .args = job->args, .seed = seed, .result = result};
    const int bad = run(&p, comm);

    free_replicas(&p);
    return bad;
}

int train_replicas_rank(const struct train_job *job, int rank, const char *root,
                        int (*report)(const struct train_job *job))
{
    trib_comm_t *comm;

    openblas_set_num_threads(1);
    if (train_init(job->args, rank, root, &comm) != 0)
        return 1;
    return train_all_seeds(job, comm, train, report);
}
