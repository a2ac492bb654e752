/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encodes one chunk: an input, a partial sum, or a result.
 */
#ifndef PIPELINE_PAYLOAD_ENCODE_H
#define PIPELINE_PAYLOAD_ENCODE_H

#include "pipeline/payload/contribution.h"
#include "pipeline/payload/encoded_store.h"

/* The input of an encode. */
struct trib_encode_source {
    const float *x;
    enum trib_encode_mode mode;
    bool feedback; /* keep the encoding error in the residual */
    float unit;    /* divisor of the contributions in x */
    void *scratch; /* set by trib_encode */
};

/** trib_encode - encode on the engine's thread and return the length; dst has
 * trib_codec_bound(c->n) bytes. */
uint32_t trib_encode(struct trib_engine *e, struct trib_run *run,
                     const struct trib_chunk *c, struct trib_encode_source s,
                     uint8_t *dst);

/**
 * trib_coded_encode_input - encode the input of a chunk, once per operation.
 *
 * thread   any, also while another drives the engine; one thread per chunk
 * dst      trib_codec_bound(c->n) bytes
 * returns  the length in bytes
 */
uint32_t trib_coded_encode_input(const struct trib_engine *e,
                                 const struct trib_run *run, const struct trib_chunk *c,
                                 enum trib_input_role use,
                                 const struct trib_encode_workspace *bench,
                                 uint8_t *dst);

#endif
