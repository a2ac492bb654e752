/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stores of code words: one for each chunk of a round, for a word that is used more
 * than once.
 */
#ifndef PIPELINE_PAYLOAD_WORD_STORE_H
#define PIPELINE_PAYLOAD_WORD_STORE_H

#include "pipeline/engine/chunk.h"

/* A code word that is used several times: the chunk's result, or the input where that
 * is both sent and summed. */
struct trib_encoded_store {
    uint8_t *bytes;
    uint32_t len;
    uint32_t round; /* rounds filled */
};

enum trib_input_role {
    TRIB_INPUT_UNUSED,
    TRIB_INPUT_CONTRIBUTION, /* contribution to a sum */
    TRIB_INPUT_RESULT, /* result as it is */
};

/** trib_coded_input_role - the use of the input's code word that t makes. */
enum trib_input_role trib_coded_input_role(const struct trib_run *run,
                                           const struct trib_task *t);

/** trib_store_of - the store in which the next code word of t's chunk is made. */
struct trib_encoded_store *trib_store_of(struct trib_run *run,
                                         const struct trib_task *t,
                                         const struct trib_chunk *c);

/** trib_store_is_sent - true if a SEND takes its code word from the store of this
 * chunk. */
bool trib_store_is_sent(const struct trib_run *run, uint32_t chunk);

/**
 * trib_coded_store_free - true if the store of a chunk may be filled for this round.
 *
 * All who take from it must be done with the rounds before: encoding a contribution
 * twice would also count its error twice.
 */
bool trib_coded_store_free(const struct trib_run *run, uint32_t chunk, uint32_t round);

/** trib_coded_store_ready - true if t takes no code word from the store, or that is
 * there or may be made. */
bool trib_coded_store_ready(const struct trib_run *run, const struct trib_task *t);

#endif
