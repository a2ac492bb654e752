/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codes: which rank holds which sums of partitions. A new one is a file with a struct
 * trib_code_ops, and a row in codes.def.
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
    bool mixes; /* ranks have partitions as they are, and mix their gradients */

    /**
     * draw - a layout of the partitions in the ranks that there are now.
     *
     * Partitions, and as many of the blocks as possible, stay where they are.
     * had      the blocks that there were, by today's numbers of their holders; before
     *          the first layout: the partitions
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

/* A code as its text gives it. */
struct trib_code_choice {
    const struct trib_code *row;
    double number[TRIB_KEYED_KEYS];
    uint32_t given; /* bit k: the text gives key k */
    uint64_t seed;
};

/** trib_code_at - the row of number i; NULL: there are no more. */
const struct trib_code *trib_code_at(int i);

/**
 * trib_code_parse - read a code's text.
 *
 * text     NULL: "rlnc"
 * errors   TRIB_ERR_INVALID with a sentence in err
 */
trib_status_t trib_code_parse(const char *text, struct trib_error *err,
                              struct trib_code_choice *out);

/**
 * trib_code_place_parts - give each partition one holder: the one that it has, or,
 * where that is lost, a rank that has none.
 *
 * Ranks without a block come first, then those with sums.
 * holder_out [parts]
 */
trib_status_t trib_code_place_parts(const struct trib_code_layout *had, int ranks,
                                    int *holder_out, struct trib_error *err);

#endif
