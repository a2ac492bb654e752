/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/train_list.h"

#include <stdio.h>

#include <tributary.h>

#include "base/text.h"
#include "train/program/compare_rows.h"
#include "train/trainer/strategy.h"

static void print_item(void *arg, const trib_item_t *item)
{
    (void)arg;
    printf("  %-12s %s\n", item->name, item->detail);
}

int train_list_main(const struct train_args *args)
{
    const struct task_row *task;
    const struct trib_strategy *strategy;
    const struct compare_row *row;

    if (args->n_words > 1) {
        fprintf(stderr, "trib-train: list: unexpected argument %s\n", args->word[1]);
        return 2;
    }
    puts("tasks");
    for (int i = 0; (task = task_at(i)); i++)
        printf("  %-12s %s\n", task->name, task->summary);
    puts("\nstrategies");
    for (int i = 0; (strategy = trib_strategy_at(i)); i++)
        printf("  %-12s %s\n", strategy->name, strategy->summary);
    puts("\ncodecs, after a + or with --codec");
    const trib_status_t st = trib_list_each(TRIB_LIST_CODECS, print_item, NULL);
    puts("\nrows of trib-train compare");
    for (int i = 0; (row = compare_row_at(i)); i++)
        printf("  %-8s %-14s %s%s%s%s%s\n", row->task, row->name,
               row->code       ? row->code
               : row->strategy ? row->strategy
                               : "sync",
               row->codec ? " " : "", row->codec ? row->codec : "",
               row->feedback ? " " : "", row->feedback ? row->feedback : "");
    puts("\nand stragglers: samples per second if some ranks are slow");
    return st != TRIB_OK;
}

const struct task_row *train_task_named(const char *name)
{
    const struct task_row *task = task_named(name);
    const char *names[TASK_ROWS_MAX];
    size_t n = 0;

    if (task)
        return task;
    for (; n < TASK_ROWS_MAX && (task = task_at((int)n)); n++)
        names[n] = task->name;
    const char *nearest = trib_text_nearest(name, names, n);

    fprintf(stderr, "trib-train: unknown task '%s'%s%s%s tasks:", name,
            nearest ? "; did you mean " : "", nearest ? nearest : "",
            nearest ? "?" : ";");
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, "%s %s", i ? "," : "", names[i]);
    fputc('\n', stderr);
    return NULL;
}
