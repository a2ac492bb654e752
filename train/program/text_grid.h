/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables in text or Markdown; columns are as wide as their widest cell.
 */
#ifndef TRAIN_PROGRAM_TEXT_GRID_H
#define TRAIN_PROGRAM_TEXT_GRID_H

#include <stdbool.h>
#include <stdio.h>

enum { TEXT_GRID_CELL_BYTES = 288, TEXT_GRID_COLUMNS_MAX = 48 };

struct text_grid_column {
    /* printed once above adjacent columns that share it; NULL: none */
    const char *group;
    const char *head;
    bool left; /* left-aligned */
};

struct text_grid {
    struct text_grid_column columns[TEXT_GRID_COLUMNS_MAX];
    int n_columns, n_rows;
    bool markdown; /* heads then start with their group */

    /** cell - write a cell's text. */
    void (*cell)(const void *arg, int row, int column, char out[TEXT_GRID_CELL_BYTES]);
    const void *arg;
};

/** text_grid_print - print heads and rows. On a narrow terminal the table is split, and
 * each part repeats the first column. */
void text_grid_print(FILE *out, const struct text_grid *grid);

#endif
