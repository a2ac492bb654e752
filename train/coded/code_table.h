/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codes: which rank holds which sums of partitions. To add one, write a file with a
 * struct trib_code_ops and a row in codes.def.
 */
#ifndef TRAIN_CODED_CODE_TABLE_H
#define TRAIN_CODED_CODE_TABLE_H

#include "base/error.h"
#include "base/keyed_text.h"
#include "train/coded/code_layout.h"

struct trib_code_choice;

struct trib_code_ops {
    const struct trib_keyed_key *keys;
    const double *defaults; /* [n_keys] */
    int n_keys;
    bool mixes; /* ranks hold plain partitions and mix their gradients */

    /**
     * draw - draw a layout of the partitions for the current ranks.
     *
     * Partitions, and as many other blocks as possible, stay on their ranks.
     *
     * had      the old blocks, with the current numbers of their ranks; for the first
     *          layout: the partitions
     * errors   TRIB_ERR_UNSUPPORTED: too few ranks; TRIB_ERR_NO_MEMORY
     */
    trib_status_t (*draw)(const struct trib_code_choice *choice,
                          const struct trib_code_layout *had,
                          struct trib_code_layout *out, struct trib_error *err);
};

struct trib_code {
    const char *name;
    const char *summary;
    const struct trib_code_ops *ops;
};

/* A code with its parsed text. */
struct trib_code_choice {
    const struct trib_code *row;
    double number[TRIB_KEYED_KEYS];
    uint32_t given; /* bit k: key k is present in the text */
    uint64_t seed;
};

/**
 * trib_code_parse - parse a code's text.
 *
 * text     NULL: "rlnc"
 * errors   TRIB_ERR_INVALID with an error message in err
 */
trib_status_t trib_code_parse(const char *text, struct trib_error *err,
                              struct trib_code_choice *out);

/**
 * trib_code_place_parts - choose one rank for each partition: its current rank, or for
 * a lost partition a rank without partitions.
 *
 * Ranks without blocks are preferred over ranks with sums. holder_out: [parts].
 */
trib_status_t trib_code_place_parts(const struct trib_code_layout *had, int ranks,
                                    int *holder_out, struct trib_error *err);

#endif
