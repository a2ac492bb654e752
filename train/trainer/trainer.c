/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer/trainer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/coll.h>

#include "base/sized.h"
#include "base/time.h"

static const struct trib_sized step_kind = {"trib_step_t", "TRIB_STEP_INIT",
                                            sizeof(trib_step_t),
                                            TRIB_SIZED_UP_TO(trib_step_t, rate)};
static const struct trib_sized estimate_kind = {"trib_estimate_t", "TRIB_ESTIMATE_INIT",
                                                sizeof(trib_estimate_t),
                                                TRIB_SIZED_UP_TO(trib_estimate_t, cap)};
static const struct trib_sized stats_kind = {
    "trib_trainer_stats_t", "its size", sizeof(trib_trainer_stats_t),
    TRIB_SIZED_UP_TO(trib_trainer_stats_t, lost_weight)};

uint64_t trib_train_now(void)
{
    return trib_now_ns();
}

double trib_train_number(const struct trib_trainer *t, int key)
{
    return t->choice.number[key];
}

trib_status_t trib_train_alloc(struct trib_trainer *t, size_t count, float **out)
{
    void *memory = NULL;
    const trib_status_t st = trib_alloc(t->comm, count * sizeof(float), &memory);

    *out = memory;
    if (st == TRIB_OK)
        memset(memory, 0, count * sizeof(float));
    return trib_train_set_comm_error(t, st);
}

trib_status_t trib_train_calloc(struct trib_trainer *t, size_t count, float **out)
{
    *out = calloc(count, sizeof(float));
    return *out ? TRIB_OK
                : trib_fail(&t->err, TRIB_ERR_NO_MEMORY, "no memory for %zu floats",
                            count);
}

void trib_train_own_sum(struct trib_trainer *t, struct trib_train_sum **sum)
{
    assert(t->n_sums < TRIB_TRAIN_SUMS);
    t->sums[t->n_sums++] = sum;
}

trib_status_t trib_train_make_sum(struct trib_trainer *t, const char *name,
                                  size_t first, size_t count, trib_feed_t feed,
                                  struct trib_train_sum **out)
{
    const struct trib_train_sum_desc desc = {.name = name,
                                             .parts = &t->parts,
                                             .first = first,
                                             .count = count,
                                             .feed = feed,
                                             .seed = t->seed};

    trib_train_own_sum(t, out);
    return trib_train_sum_create(t->comm, &desc, &t->err, out);
}

trib_status_t trib_train_make_sum_of(struct trib_trainer *t, trib_comm_t *comm,
                                     const char *name, trib_feed_t feed,
                                     struct trib_train_sum **out)
{
    const struct trib_train_sum_desc desc = {.name = name,
                                             .parts = &t->parts,
                                             .count = t->count,
                                             .feed = feed,
                                             .seed = t->seed};

    trib_train_own_sum(t, out);
    return trib_train_sum_create(comm, &desc, &t->err, out);
}

static float **vector_at(const struct trib_trainer *t,
                         const struct trib_train_vector *v)
{
    return (float **)((char *)t->strategy + v->at);
}

static trib_status_t make_vector(struct trib_trainer *t,
                                 const struct trib_train_vector *v)
{
    float **out = vector_at(t, v);
    const trib_status_t st = v->peers ? trib_train_alloc(t, t->count, out)
                                      : trib_train_calloc(t, t->count, out);

    if (st == TRIB_OK && v->params)
        memcpy(*out, t->params, t->count * sizeof(float));
    return st;
}

trib_status_t trib_train_open_strategy(struct trib_trainer *t)
{
    const struct trib_strategy_ops *ops = t->choice.row->ops;
    trib_status_t st = TRIB_OK;

    t->strategy = calloc(1, ops->state_bytes);
    if (!t->strategy)
        return trib_fail(&t->err, TRIB_ERR_NO_MEMORY, "no memory for a strategy");
    for (int i = 0; i < ops->n_vectors && st == TRIB_OK; i++)
        if (!ops->vectors[i].when || ops->vectors[i].when(t))
            st = make_vector(t, &ops->vectors[i]);
    return st == TRIB_OK ? ops->create(t) : st;
}

static void free_strategy(struct trib_trainer *t)
{
    const struct trib_strategy_ops *ops = t->choice.row->ops;

    if (ops->destroy)
        ops->destroy(t);
    for (int i = 0; i < t->n_sums; i++)
        trib_train_sum_free(*t->sums[i]);
    for (int i = 0; i < ops->n_vectors; i++) {
        float *vector = *vector_at(t, &ops->vectors[i]);

        if (ops->vectors[i].peers)
            trib_free(t->comm, vector);
        else
            free(vector);
    }
    free(t->strategy);
}

void trib_train_release(struct trib_trainer *t)
{
    if (t->strategy)
        free_strategy(t);
    for (int i = 0; i < t->n_split; i++)
        trib_free_comm(t->split[i]);
    trib_train_optimizer_destroy(&t->optimizer);
}

void trib_train_copy_model(struct trib_trainer *t, float *out)
{
    const struct trib_strategy_ops *ops = t->choice.row->ops;
    const float *model = t->params;

    if (ops->model) {
        ops->model(t, out);
        return;
    }
    for (int i = 0; i < ops->n_vectors; i++)
        if (ops->vectors[i].model)
            model = *vector_at(t, &ops->vectors[i]);
    memcpy(out, model, t->count * sizeof(float));
}

trib_status_t trib_train_start(struct trib_trainer *t, struct trib_train_sum *sum,
                               float *vector)
{
    const uint64_t began = trib_train_now();
    const trib_status_t st = trib_train_sum_start(sum, vector);

    t->stats.wait_ns += trib_train_now() - began;
    t->stats.rounds++;
    t->stats.dense_bytes += trib_train_sum_count(sum) * sizeof(float);
    return trib_train_set_sum_error(t, sum, st);
}

trib_status_t trib_train_wait(struct trib_trainer *t, struct trib_train_sum *sum,
                              trib_train_range_fn done, void *arg)
{
    const uint64_t began = trib_train_now(), updating = t->stats.update_ns;
    const trib_status_t st = trib_train_sum_wait(sum, done, arg);

    t->stats.wait_ns += trib_train_now() - began - (t->stats.update_ns - updating);
    return trib_train_set_sum_error(t, sum, st);
}

void trib_train_update_range(struct trib_trainer *t, float *x, const float *gradient,
                             size_t first, size_t count, double rate)
{
    const uint64_t began = trib_train_now();

    trib_train_optimizer_update(&t->optimizer, x, gradient, first, count, rate);
    t->stats.update_ns += trib_train_now() - began;
}

void trib_train_update(struct trib_trainer *t, float *x, const float *gradient,
                       double rate)
{
    trib_train_update_range(t, x, gradient, 0, t->count, rate);
    trib_train_optimizer_step(&t->optimizer);
}

trib_status_t trib_train_mean(struct trib_trainer *t, const float *x, float *out)
{
    trib_desc_t desc = TRIB_DESC_INIT;
    trib_plan_t *plan;

    desc.send = x == out ? NULL : x;
    desc.recv = out;
    desc.count = t->count;
    desc.op = TRIB_MEAN;
    desc.codec = "none";
    trib_status_t st =
        trib_train_set_comm_error(t, trib_plan_allreduce(t->comm, &desc, &plan));
    if (st != TRIB_OK)
        return st;
    st = trib_plan_start(plan);
    if (st == TRIB_OK)
        st = trib_plan_wait(plan);
    trib_train_set_comm_error(t, st);
    trib_plan_free(plan);
    return st;
}

trib_status_t trib_train_split(struct trib_trainer *t, int color, trib_comm_t **out)
{
    assert(t->n_split < TRIB_TRAIN_SPLITS);
    const trib_status_t st =
        trib_train_set_comm_error(t, trib_split(t->comm, color, t->rank, out));

    if (*out)
        t->split[t->n_split++] = *out;
    return st;
}

void trib_train_unsplit(struct trib_trainer *t, trib_comm_t *comm)
{
    for (int i = 0; i < t->n_split; i++)
        if (t->split[i] == comm)
            t->split[i] = NULL;
    trib_free_comm(comm);
}

trib_status_t trib_trainer_begin(trib_trainer_t *trainer, trib_step_t *step)
{
    const struct trib_strategy_ops *ops = trainer->choice.row->ops;
    trib_step_t ours = TRIB_STEP_INIT;

    trib_error_clear(&trainer->err);
    trib_status_t st = trib_sized_fits(&step_kind, step, &trainer->err);
    if (st != TRIB_OK)
        return st;
    if (trainer->begun)
        return trib_fail(&trainer->err, TRIB_ERR_BUSY,
                         "step %llu has begun: end it first",
                         (unsigned long long)trainer->number);
    ours.number = trainer->number;
    ours.rate = trib_train_rate_at(&trainer->rate, trainer->number);
    if (ops->apart) {
        ours.params = *vector_at(trainer, &ops->vectors[0]);
        ours.gradient = *vector_at(trainer, &ops->vectors[1]);
    }
    if (ops->begin)
        st = ops->begin(trainer, &ours);
    if (st != TRIB_OK)
        return st;
    trainer->begun = true;
    trainer->begun_ns = trib_train_now();
    trib_sized_give(&step_kind, &ours, step);
    return TRIB_OK;
}

trib_status_t trib_trainer_ready(trib_trainer_t *trainer, size_t first, size_t count)
{
    const struct trib_strategy_ops *ops = trainer->choice.row->ops;

    trib_error_clear(&trainer->err);
    if (!trainer->begun || trainer->feed == TRIB_FEED_WHOLE)
        return trib_fail(&trainer->err, TRIB_ERR_INVALID, "%s",
                         trainer->begun
                             ? "this trainer's gradient becomes ready as a whole: to "
                               "mark elements, set desc.feed"
                             : "no step has begun");
    if (first > trainer->count || count > trainer->count - first)
        return trib_fail(&trainer->err, TRIB_ERR_INVALID,
                         "elements %zu to %zu of a gradient of %zu", first,
                         first + count, trainer->count);
    return ops->ready
               ? trib_train_set_comm_error(trainer, ops->ready(trainer, first, count))
               : TRIB_OK;
}

trib_status_t trib_trainer_end(trib_trainer_t *trainer, double loss)
{
    trib_error_clear(&trainer->err);
    if (!trainer->begun)
        return trib_fail(&trainer->err, TRIB_ERR_INVALID,
                         "no step has begun: call trib_trainer_begin first, also after "
                         "trib_trainer_move, which drops a step");
    trainer->begun = false;
    trainer->stats.compute_ns += trib_train_now() - trainer->begun_ns;

    const trib_status_t st = trainer->choice.row->ops->end(trainer, loss);
    if (st == TRIB_OK) {
        trainer->number++;
        trainer->stats.steps++;
    }
    return st;
}

trib_status_t trib_trainer_settle(trib_trainer_t *trainer, float *params_out)
{
    trib_error_clear(&trainer->err);
    if (trainer->begun)
        return trib_fail(&trainer->err, TRIB_ERR_BUSY, "step %llu has begun",
                         (unsigned long long)trainer->number);
    return trainer->choice.row->ops->finish(trainer,
                                            params_out ? params_out : trainer->params);
}

trib_status_t trib_trainer_stats(trib_trainer_t *trainer, trib_trainer_stats_t *stats)
{
    trib_error_clear(&trainer->err);
    const trib_status_t st = trib_sized_fits(&stats_kind, stats, &trainer->err);

    if (st != TRIB_OK)
        return st;
    trainer->stats.size = sizeof(trainer->stats);
    trainer->stats.wire_bytes =
        trib_train_wire_bytes(trainer) - trainer->wire_at_create;
    if (trainer->choice.row->ops->stats)
        trainer->choice.row->ops->stats(trainer, &trainer->stats);
    trib_sized_give(&stats_kind, &trainer->stats, stats);
    return TRIB_OK;
}

trib_status_t trib_trainer_explain(const trib_trainer_t *trainer, char *text,
                                   size_t bytes)
{
    const struct trib_trainer *t = trainer;
    char what[2048], optimizer[128], rate[128];

    if (bytes == 0)
        return TRIB_ERR_INVALID;
    t->choice.row->ops->explain(t, what, sizeof(what));
    snprintf(text, bytes, "%s: %s\noptimizer %s\nrate %s\ncodec %s\n%s%s",
             t->choice.row->name, what,
             trib_train_optimizer_print(&t->optimizer, optimizer, sizeof(optimizer)),
             trib_train_rate_print(&t->rate, rate, sizeof(rate)),
             t->codecs        ? t->codecs
             : t->parts.codec ? t->parts.codec
                              : "none",
             t->moved, t->moved[0] ? "\n" : "");
    return TRIB_OK;
}

trib_status_t trib_trainer_estimate(trib_trainer_t *trainer, size_t row,
                                    trib_estimate_t *estimate, int *chosen_out)
{
    const struct trib_strategy_ops *ops = trainer->choice.row->ops;
    trib_estimate_t ours = TRIB_ESTIMATE_INIT;
    int chosen = 0;

    trib_error_clear(&trainer->err);
    trib_status_t st = trib_sized_fits(&estimate_kind, estimate, &trainer->err);
    if (st != TRIB_OK)
        return st;
    if (!ops->estimate)
        return trib_fail(&trainer->err, TRIB_ERR_UNSUPPORTED,
                         "strategy %s makes no estimates: use pipe:width=auto",
                         trainer->choice.row->name);
    st = ops->estimate(trainer, row, &ours, &chosen);
    if (st != TRIB_OK)
        return st;
    trib_sized_give(&estimate_kind, &ours, estimate);
    if (chosen_out)
        *chosen_out = chosen;
    return TRIB_OK;
}
