/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "train/tasks/rows.h"

static const struct task_row table[] = {
#define TASK(name, summary, result, lower, optimizer, rate, ops, variant) \
    {name, summary, result, lower, optimizer, rate, &ops, variant},
#include "train/tasks/tasks.def"
#undef TASK
};

const struct task_row *task_at(int i)
{
    return i >= 0 && (size_t)i < sizeof(table) / sizeof(table[0]) ? &table[i] : NULL;
}

const struct task_row *task_named(const char *name)
{
    const struct task_row *row;

    for (int i = 0; (row = task_at(i)); i++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

trib_status_t task_create(const struct task_row *row, const struct task_desc *desc,
                          struct task **task_out, struct trib_error *err)
{
    struct task *task = *task_out = calloc(1, row->ops->bytes);

    if (!task)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
    task->ops = row->ops;
    task->variant = row->variant;
    task->rank = desc->rank;
    task->ranks = desc->ranks;
    const trib_status_t st = row->ops->create(task, desc, err);
    if (st != TRIB_OK) {
        task_destroy(task);
        *task_out = NULL;
    }
    return st;
}

trib_status_t task_fit_batch(struct task *task, const struct task_desc *desc, size_t n,
                             struct trib_error *err)
{
    const size_t share = n / (size_t)desc->ranks;

    task->batch = desc->batch ? desc->batch : 32;
    return share >= task->batch
               ? TRIB_OK
               : trib_fail(err, TRIB_ERR_INVALID,
                           "a batch of %zu does not fit %zu images per rank",
                           task->batch, share);
}

void task_add_part(struct task *task, const char *name, size_t count, int dims)
{
    task->parts[task->n_parts++] =
        (trib_part_t){.size = sizeof(trib_part_t), name, count, dims};
}

void task_destroy(struct task *task)
{
    if (task)
        task->ops->destroy(task);
    free(task);
}
