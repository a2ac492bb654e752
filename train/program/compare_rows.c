/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/compare_rows.h"

#include <string.h>

static const struct compare_row rows[] = {
#define ROW(task_name, row_name, ...) \
    {.task = task_name, .name = row_name, __VA_ARGS__},
#define LENGTH(task, steps, quick_steps)
#include "train/program/compare_rows.def"
#undef ROW
#undef LENGTH
};

static const struct compare_length lengths[] = {
#define ROW(...)
#define LENGTH(task, steps, quick_steps) {task, steps, quick_steps},
#include "train/program/compare_rows.def"
#undef ROW
#undef LENGTH
};

const struct compare_row *compare_row_at(int i)
{
    return i >= 0 && (size_t)i < sizeof(rows) / sizeof(rows[0]) ? &rows[i] : NULL;
}

const struct compare_length *compare_length_of(const char *task)
{
    size_t i = 0;

    while (i + 1 < sizeof(lengths) / sizeof(lengths[0]) &&
           strcmp(lengths[i].task, task) != 0)
        i++;
    return &lengths[i];
}
