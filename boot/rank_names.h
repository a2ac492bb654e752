/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of ranks in errors.
 */
#ifndef BOOT_RANK_NAMES_H
#define BOOT_RANK_NAMES_H

#include <stdbool.h>

#include "base/host.h"

#define TRIB_RANK_NAME_BYTES 136

/* The place of a rank, as far as it is known. */
struct trib_rank_name {
    int rank;
    int pid; /* 0: not known */
    char host[TRIB_HOST_BYTES]; /* "": not known */
};

/** trib_rank_name_self - this process as `rank`. */
void trib_rank_name_self(int rank, struct trib_rank_name *out);

/** trib_rank_name_format - "rank 2 (process 4711 on node7)"; returns text. */
char *trib_rank_name_format(const struct trib_rank_name *name,
                            char text[TRIB_RANK_NAME_BYTES]);

/**
 * trib_ranks_format - "rank 3" or "ranks 1, 4-6": those for which `missing` is true.
 *
 * text     cut with "..." where `bytes` (at least 32) are too few; returned
 */
char *trib_ranks_format(const bool *missing, int size, char *text, int bytes);

#endif
