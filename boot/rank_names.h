/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How errors name ranks.
 */
#ifndef BOOT_RANK_NAMES_H
#define BOOT_RANK_NAMES_H

#include <stdbool.h>

#include "base/host.h"

#define TRIB_WHO_BYTES 136

/* Where a rank runs, as far as it is known. */
struct trib_who {
    int rank;
    int pid; /* 0: not known */
    char host[TRIB_HOST_BYTES]; /* "": not known */
};

/** trib_who_self - this process as `rank`. */
void trib_who_self(int rank, struct trib_who *out);

/** trib_who_format - "rank 2 (process 4711 on node7)"; returns text. */
char *trib_who_format(const struct trib_who *who, char text[TRIB_WHO_BYTES]);

/**
 * trib_ranks_format - "rank 3" or "ranks 1, 4-6": those for which `missing` is true.
 *
 * text     cut with "..." where `bytes` (at least 32) are too few; returned
 */
char *trib_ranks_format(const bool *missing, int size, char *text, int bytes);

#endif
