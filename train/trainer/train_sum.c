/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer/train_sum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/elastic.h>
#include <tributary/group.h>

#include "base/error.h"
#include "train/trainer/parts.h"

/* The overlap of a part with the range of a sum. */
struct piece {
    size_t first, count;
    size_t unmarked; /* elements of the current start that are not ready yet */
};

struct trib_train_sum {
    trib_comm_t *comm;
    trib_plan_t *plan; /* either plan or group is set */
    trib_group_t *group;
    trib_feed_t feed;
    size_t first, count;
    bool runs;
    uint64_t begun, ended; /* numbers of starts */
    enum trib_train_fate fate;
    size_t n; /* pieces, which are the tensors of the group */
    struct piece *pieces;
    void **buffers; /* [n] of the current start */
};

static trib_status_t taken(struct trib_train_sum *sum, trib_status_t status,
                           struct trib_error *err)
{
    if (status < 0)
        trib_fail(err, status, "%s", trib_last_error(sum->comm));
    return status;
}

static trib_status_t create_plan(struct trib_train_sum *sum,
                                 const struct trib_train_sum_desc *d,
                                 struct trib_error *err)
{
    const struct trib_train_part *part = &d->parts->part[0];
    trib_desc_t desc = TRIB_DESC_INIT;

    desc.count = d->count;
    desc.op = TRIB_MEAN;
    desc.codec = part->codec ? part->codec : d->parts->codec;
    desc.feedback = part->codec ? part->feedback : d->parts->feedback;
    desc.codec = desc.codec ? desc.codec : "none";
    desc.feed = d->feed;
    desc.name = d->name;
    desc.seed = d->seed;
    return taken(sum, trib_plan_allreduce(sum->comm, &desc, &sum->plan), err);
}

static void describe_tensor(const struct trib_train_part *part,
                            const struct piece *piece, const char *name,
                            trib_tensor_t *tensor)
{
    *tensor = (trib_tensor_t)TRIB_TENSOR_INIT;
    tensor->name = name;
    tensor->count = piece->count;
    tensor->dims = part->dims;
    tensor->codec = part->codec;
    tensor->feedback = part->feedback;
}

static trib_status_t create_group(struct trib_train_sum *sum,
                                  const struct trib_train_sum_desc *d, const size_t *of,
                                  struct trib_error *err)
{
    trib_tensor_t *tensors = calloc(sum->n, sizeof(*tensors));
    trib_group_opts_t opts = TRIB_GROUP_OPTS_INIT;

    if (!tensors)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for %zu tensors", sum->n);
    for (size_t i = 0; i < sum->n; i++)
        describe_tensor(&d->parts->part[of[i]], &sum->pieces[i],
                        d->parts->part[of[i]].name, &tensors[i]);
    opts.name = d->name;
    opts.op = TRIB_MEAN;
    opts.feed = d->feed;
    opts.codec = d->parts->codec ? d->parts->codec : "none";
    opts.feedback = d->parts->codec ? d->parts->feedback : NULL;
    opts.seed = d->seed;

    const trib_status_t st =
        trib_group_create(sum->comm, tensors, sum->n, &opts, &sum->group);
    free(tensors);
    return taken(sum, st, err);
}

/* Find the parts that overlap the range. of[i]: the part of piece i. */
static void cut_pieces(struct trib_train_sum *sum, const struct trib_train_parts *parts,
                       size_t *of)
{
    const size_t end = sum->first + sum->count;

    for (size_t p = 0; p < parts->n; p++) {
        const struct trib_train_part *part = &parts->part[p];
        const size_t first = part->first > sum->first ? part->first : sum->first;
        const size_t last =
            part->first + part->count < end ? part->first + part->count : end;
        if (first >= last)
            continue;
        of[sum->n] = p;
        sum->pieces[sum->n++] = (struct piece){.first = first, .count = last - first};
    }
}

static trib_status_t create(struct trib_train_sum *sum,
                            const struct trib_train_sum_desc *desc,
                            struct trib_error *err)
{
    const size_t most = desc->parts->n;
    size_t *of = calloc(most, sizeof(*of));

    sum->pieces = calloc(most, sizeof(*sum->pieces));
    sum->buffers = calloc(most, sizeof(*sum->buffers));
    if (!of || !sum->pieces || !sum->buffers) {
        free(of);
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for %zu parts", most);
    }
    cut_pieces(sum, desc->parts, of);
    const trib_status_t st =
        most == 1 ? create_plan(sum, desc, err) : create_group(sum, desc, of, err);
    free(of);
    return st;
}

trib_status_t trib_train_sum_create(trib_comm_t *comm,
                                    const struct trib_train_sum_desc *desc,
                                    struct trib_error *err,
                                    struct trib_train_sum **sum_out)
{
    struct trib_train_sum *sum = calloc(1, sizeof(*sum));

    *sum_out = NULL;
    if (!sum)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a sum");
    sum->comm = comm;
    sum->feed = desc->feed;
    sum->first = desc->first;
    sum->count = desc->count;

    const trib_status_t st = create(sum, desc, err);
    if (st != TRIB_OK)
        trib_train_sum_free(sum);
    else
        *sum_out = sum;
    return st;
}

trib_status_t trib_train_sum_free(struct trib_train_sum *sum)
{
    if (!sum)
        return TRIB_OK;
    if (sum->runs)
        trib_train_sum_wait(sum, NULL, NULL);

    const trib_status_t plan = trib_plan_free(sum->plan);
    const trib_status_t group = trib_group_free(sum->group);
    free(sum->pieces);
    free(sum->buffers);
    free(sum);
    return plan != TRIB_OK ? plan : group;
}

trib_status_t trib_train_sum_start(struct trib_train_sum *sum, float *vector)
{
    sum->begun++;
    for (size_t i = 0; i < sum->n; i++) {
        sum->pieces[i].unmarked = sum->pieces[i].count;
        sum->buffers[i] = vector + sum->pieces[i].first;
    }
    const trib_status_t st =
        sum->plan ? trib_plan_start_with(sum->plan, NULL, vector + sum->first)
                  : trib_group_start_with(sum->group, NULL, sum->buffers);
    sum->runs = st == TRIB_OK;
    return st;
}

/* Mark each tensor whose elements are all ready. */
static trib_status_t mark_pieces(struct trib_train_sum *sum, size_t first, size_t end)
{
    trib_status_t st = TRIB_OK;

    for (size_t i = 0; i < sum->n && st == TRIB_OK; i++) {
        struct piece *piece = &sum->pieces[i];
        const size_t from = first > piece->first ? first : piece->first;
        const size_t last = piece->first + piece->count;
        const size_t to = end < last ? end : last;

        if (from >= to)
            continue;
        piece->unmarked -= to - from < piece->unmarked ? to - from : piece->unmarked;
        if (piece->unmarked == 0)
            st = trib_group_ready(sum->group, i);
    }
    return st;
}

trib_status_t trib_train_sum_ready(struct trib_train_sum *sum, size_t first,
                                   size_t count)
{
    const size_t end = sum->first + sum->count;
    const size_t from = first > sum->first ? first : sum->first;
    const size_t to = first + count < end ? first + count : end;

    if (from >= to)
        return TRIB_OK;
    return sum->plan ? trib_plan_ready(sum->plan, from - sum->first, to - from)
                     : mark_pieces(sum, from, to);
}

/* Wait for the tensors in the order in which they are likely to complete. After the
 * first call of `done` the start cannot be rewound. */
static trib_status_t wait_group(struct trib_train_sum *sum, trib_train_range_fn done,
                                void *arg)
{
    trib_status_t st = TRIB_OK;

    for (size_t k = 0; k < sum->n && done && st == TRIB_OK; k++) {
        const size_t i = sum->feed == TRIB_FEED_BACKWARD ? sum->n - 1 - k : k;

        st = trib_group_wait_tensor(sum->group, i);
        if (st != TRIB_OK)
            break;
        sum->ended = sum->begun;
        done(arg, sum->pieces[i].first, sum->pieces[i].count);
    }
    return st == TRIB_OK ? trib_group_wait(sum->group) : st;
}

trib_status_t trib_train_sum_wait(struct trib_train_sum *sum, trib_train_range_fn done,
                                  void *arg)
{
    trib_status_t st;

    if (!sum->runs)
        return TRIB_OK;
    if (sum->group) {
        st = wait_group(sum, done, arg);
    } else {
        st = trib_plan_wait(sum->plan);
        if (st == TRIB_OK && done)
            done(arg, sum->first, sum->count);
    }
    if (st == TRIB_OK)
        sum->ended = sum->begun;
    sum->runs = false;
    return st;
}

bool trib_train_sum_runs(const struct trib_train_sum *sum)
{
    return sum->runs;
}

size_t trib_train_sum_count(const struct trib_train_sum *sum)
{
    return sum->count;
}

trib_status_t trib_train_sum_save(struct trib_train_sum *sum, void *state, size_t bytes,
                                  size_t *bytes_out)
{
    return sum->plan ? trib_plan_state_save(sum->plan, state, bytes, bytes_out)
                     : trib_group_state_save(sum->group, state, bytes, bytes_out);
}

trib_status_t trib_train_sum_load(struct trib_train_sum *sum, const void *state,
                                  size_t bytes, uint64_t ended)
{
    const trib_status_t st = sum->plan
                                 ? trib_plan_state_load(sum->plan, state, bytes)
                                 : trib_group_state_load(sum->group, state, bytes);

    if (st == TRIB_OK)
        sum->begun = sum->ended = ended;
    return st;
}

uint64_t trib_train_sum_ended(const struct trib_train_sum *sum)
{
    return sum->ended;
}

void trib_train_sum_count_from(struct trib_train_sum *sum, uint64_t ended)
{
    sum->begun = sum->ended = ended;
}

trib_comm_t *trib_train_sum_comm(const struct trib_train_sum *sum)
{
    return sum->comm;
}

/* Replace the plan or group by one that continues from start `steps` of another. */
static trib_status_t go_on(struct trib_train_sum *sum, struct trib_train_sum *from,
                           uint64_t steps)
{
    trib_plan_t *plan = NULL;
    trib_group_t *group = NULL;
    const trib_status_t st = sum->plan
                                 ? trib_plan_move(sum->comm, from ? from->plan : NULL,
                                                  NULL, NULL, steps, &plan)
                                 : trib_group_move(sum->comm, from ? from->group : NULL,
                                                   NULL, NULL, steps, &group);

    if (st != TRIB_OK)
        return st;
    trib_plan_free(sum->plan);
    trib_group_free(sum->group);
    sum->plan = plan;
    sum->group = group;
    sum->begun = sum->ended = steps;
    return TRIB_OK;
}

trib_status_t trib_train_sum_move(struct trib_train_sum *sum,
                                  struct trib_train_sum *from)
{
    int64_t most[2] = {from ? (int64_t)from->ended : -1,
                       from ? (int64_t)from->begun : -1};
    trib_status_t st = trib_allreduce(sum->comm, NULL, most, 2, TRIB_I64, TRIB_MAX);

    sum->fate = TRIB_TRAIN_WHOLE;
    if (st != TRIB_OK || most[0] < 0)
        return st;
    if (from && (int64_t)from->ended < most[0])
        sum->fate = TRIB_TRAIN_BEHIND;
    st = go_on(sum, from, (uint64_t)most[0]);
    if (st != TRIB_ERR_INVALID)
        return st;
    if (from && (int64_t)from->begun > most[0])
        sum->fate = TRIB_TRAIN_DROPPED;
    st = go_on(sum, from, (uint64_t)most[1]);
    if (st != TRIB_ERR_INVALID)
        return st;
    if (from)
        sum->fate = TRIB_TRAIN_ANEW;
    return TRIB_OK;
}

enum trib_train_fate trib_train_sum_fate(const struct trib_train_sum *sum)
{
    return sum->fate;
}

trib_status_t trib_train_sum_explain(const struct trib_train_sum *sum, char *text,
                                     size_t bytes)
{
    return sum->plan ? trib_plan_explain(sum->plan, text, bytes)
                     : trib_group_explain(sum->group, text, bytes);
}
