/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks do now, as a table: trib-run at SIGUSR1, trib-info stacks.
 */
#ifndef TOOLS_RANK_TABLE_H
#define TOOLS_RANK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct tool_rank_table {
    FILE *out;
    int width; /* columns of the terminal; 0: lines are as long as they are */
    bool *seen; /* [ranks] receives true for ranks of what trib_init made; or NULL */
    int ranks;
    int rows; /* so far */
    char job[400]; /* heading of the newest row */
};

/** tool_rank_table_print - a row for each rank of trib_ranks_each(pid); false: it
 * failed. */
bool tool_rank_table_print(struct tool_rank_table *table, int pid);

/** tool_rank_table_row - a row of a rank that has no communicator. */
void tool_rank_table_row(struct tool_rank_table *table, int rank, int pid,
                         const char *what);

/** tool_terminal_width - columns of the terminal; 0: it is none. */
int tool_terminal_width(int fd);

/** tool_bytes_text - "1.5 GiB"; returns text. */
const char *tool_bytes_text(double bytes, char text[24]);

#endif
