/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stores of code words: one for each chunk of a round, for a word that is used more
 * than once.
 */
#ifndef PIPELINE_PAYLOAD_WORD_STORE_H
#define PIPELINE_PAYLOAD_WORD_STORE_H

#include "pipeline/engine/chunk.h"

/* A code word that is sent several times: of the chunk's result, or of the own
 * contribution where that is both sent and summed. */
struct trib_store {
    uint8_t *bytes;
    uint32_t len;
    uint32_t round; /* rounds filled */
};

enum trib_input_role {
    TRIB_INPUT_UNUSED,
    TRIB_INPUT_CONTRIBUTION, /* to a sum */
    TRIB_INPUT_RESULT, /* handed out as it is */
};

/** trib_coded_input_role - what does t make a code word of the own contribution for? */
enum trib_input_role trib_coded_input_role(const struct trib_run *run,
                                           const struct trib_task *t);

/** trib_store_of - where the next word of t's chunk is to be made, or copied to. */
struct trib_store *trib_store_of(struct trib_run *run, const struct trib_task *t,
                                 const struct trib_chunk *c);

/** trib_store_is_sent - does a SEND take its word from the store of this chunk? */
bool trib_store_is_sent(const struct trib_run *run, uint32_t chunk);

/**
 * trib_coded_store_free - may the store of a chunk be filled for this round?
 *
 * All who take from it must be done with the rounds before: encoding a contribution
 * twice would also count its error twice.
 */
bool trib_coded_store_free(const struct trib_run *run, uint32_t chunk, uint32_t round);

/** trib_coded_store_ready - if t takes from the store: is its word there, or may it be
 * made? */
bool trib_coded_store_ready(const struct trib_run *run, const struct trib_task *t);

#endif
