/* SPDX-License-Identifier: BSD-3-Clause */
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
