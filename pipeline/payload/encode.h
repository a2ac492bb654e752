/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One code word: of the own contribution, of a sum on its way, or of a result.
 */
#ifndef PIPELINE_PAYLOAD_ENCODE_H
#define PIPELINE_PAYLOAD_ENCODE_H

#include "pipeline/payload/contribution.h"
#include "pipeline/payload/word_store.h"

/* The input of a code word. */
struct trib_word_source {
    const float *x;
    bool exact;
    bool feedback; /* what the word leaves out is kept */
    float unit;    /* x is of contributions divided by this */
    void *scratch; /* trib_encode takes the run's */
};

/** trib_encode - by the engine; dst: trib_codec_bound(c->n) bytes; returns bytes. */
uint32_t trib_encode(struct trib_engine *e, struct trib_run *run,
                     const struct trib_chunk *c, struct trib_word_source s,
                     uint8_t *dst);

/**
 * trib_coded_encode_input - the code word of the own contribution: once per operation.
 *
 * thread   any, also while another drives the engine; of one chunk one thread
 * dst      trib_codec_bound(c->n) bytes
 * returns  bytes
 */
uint32_t trib_coded_encode_input(const struct trib_engine *e,
                                 const struct trib_run *run, const struct trib_chunk *c,
                                 enum trib_input_role use,
                                 const struct trib_encode_workspace *bench,
                                 uint8_t *dst);

#endif
