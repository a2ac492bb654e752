/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables of text or Markdown, whose columns are as wide as their widest cell.
 */
#ifndef TRAIN_PROGRAM_TEXT_GRID_H
#define TRAIN_PROGRAM_TEXT_GRID_H

#include <stdbool.h>
#include <stdio.h>

enum { TEXT_GRID_CELL_BYTES = 288, TEXT_GRID_COLUMNS_MAX = 48 };

struct text_grid_column {
    const char *group; /* stands once above neighbours that share it; NULL: none */
    const char *head;
    bool left; /* aligned */
};

struct text_grid {
    struct text_grid_column columns[TEXT_GRID_COLUMNS_MAX];
    int n_columns, n_rows;
    bool markdown; /* heads then begin with their group */

    /** cell - write a cell's text. */
    void (*cell)(const void *arg, int row, int column, char out[TEXT_GRID_CELL_BYTES]);
    const void *arg;
};

/** text_grid_print - the heads, and the rows below them; on a terminal that is too
 * narrow in parts one below the other, each with the first column. */
void text_grid_print(FILE *out, const struct text_grid *grid);

#endif
