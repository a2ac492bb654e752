/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of ranks in error messages.
 */
#ifndef BOOT_RANK_NAMES_H
#define BOOT_RANK_NAMES_H

#include <stdbool.h>

#include "base/host.h"

#define TRIB_RANK_NAME_BYTES 136

/* Process and host of a rank, if known. */
struct trib_rank_name {
    int rank;
    int pid; /* 0: unknown */
    char host[TRIB_HOST_BYTES]; /* "": unknown */
};

/** trib_rank_name_self - describe this process as `rank`. */
void trib_rank_name_self(int rank, struct trib_rank_name *out);

/** trib_rank_name_format - format "rank 2 (process 4711 on node7)"; returns text. */
char *trib_rank_name_format(const struct trib_rank_name *name,
                            char text[TRIB_RANK_NAME_BYTES]);

/**
 * trib_ranks_format - format the ranks for which `missing` is true: "rank 3" or "ranks
 * 1, 4-6".
 *
 * text     cut with "..." if longer than `bytes` (at least 32); returned
 */
char *trib_ranks_format(const bool *missing, int size, char *text, int bytes);

#endif
