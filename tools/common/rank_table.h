/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Table of the current activity of ranks: trib-run on SIGUSR1, trib-info stacks.
 */
#ifndef TOOLS_COMMON_RANK_TABLE_H
#define TOOLS_COMMON_RANK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct tool_rank_table {
    FILE *out;
    int width; /* columns of the terminal; 0: do not wrap */
    bool *seen; /* [ranks] set to true for ranks of trib_init; may be NULL */
    int ranks;
    int rows; /* rows printed so far */
    char job[400]; /* heading of the last printed row */
};

/** tool_rank_table_print - print a row for each rank of trib_ranks_each(pid). Return
 * false if that call failed. */
bool tool_rank_table_print(struct tool_rank_table *table, int pid);

/** tool_rank_table_row - print a row for a rank that has no communicator. */
void tool_rank_table_row(struct tool_rank_table *table, int rank, int pid,
                         const char *what);

/** tool_terminal_width - return the columns of the terminal; 0: not a terminal. */
int tool_terminal_width(int fd);

/** tool_bytes_text - format bytes as "1.5 GiB"; returns text. */
const char *tool_bytes_text(double bytes, char text[24]);

#endif
