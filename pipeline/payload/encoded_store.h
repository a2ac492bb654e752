/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stores of encoded chunks: one for each chunk of a round, for encodings that are used
 * more than once.
 */
#ifndef PIPELINE_PAYLOAD_ENCODED_STORE_H
#define PIPELINE_PAYLOAD_ENCODED_STORE_H

#include "pipeline/run/chunk.h"

/* An encoded chunk with several uses: the chunk's result, or an input that is both sent
 * and summed. */
struct trib_encoded_store {
    uint8_t *bytes;
    uint32_t len;
    uint32_t round; /* number of rounds filled */
};

enum trib_input_role {
    TRIB_INPUT_UNUSED,
    TRIB_INPUT_CONTRIBUTION, /* contribution to a sum */
    TRIB_INPUT_RESULT, /* the result itself */
};

/** trib_coded_input_role - return the use of the encoded input that t produces. */
enum trib_input_role trib_coded_input_role(const struct trib_run *run,
                                           const struct trib_task *t);

/** trib_store_of - return the store for the next encoded chunk of t. */
struct trib_encoded_store *trib_store_of(struct trib_run *run,
                                         const struct trib_task *t,
                                         const struct trib_chunk *c);

/** trib_store_is_sent - return true if a SEND uses the store of this chunk. */
bool trib_store_is_sent(const struct trib_run *run, uint32_t chunk);

/**
 * trib_coded_store_free - return true if the store of a chunk may be filled for this
 * round.
 *
 * All users of the store must have finished the earlier rounds: encoding a contribution
 * twice would count its error twice.
 */
bool trib_coded_store_free(const struct trib_run *run, uint32_t chunk, uint32_t round);

/** trib_coded_store_ready - return true if t uses no store, or if its encoded chunk
 * exists or may be encoded now. */
bool trib_coded_store_ready(const struct trib_run *run, const struct trib_task *t);

#endif
