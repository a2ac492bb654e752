/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The buffers of an operation: this rank's, and those that peers have opened to it.
 */
#ifndef PIPELINE_ENGINE_RUN_BUFFERS_H
#define PIPELINE_ENGINE_RUN_BUFFERS_H

#include "pipeline/engine/engine_state.h"

/** trib_run_open - note which buffers are registered, and what the peers are told of
 * them. */
void trib_run_open(struct trib_engine *e, struct trib_run *run);

/** trib_run_give_back - end what trib_run_open has borrowed; broken: the operation has
 * failed. */
void trib_run_give_back(struct trib_engine *e, struct trib_run *run, bool broken);

/** trib_run_open_buffer - the reference by which peers within load/store reach get a
 * buffer of `bytes`; of memory that is not registered, its address. */
void trib_run_open_buffer(const struct trib_engine *e, const struct trib_run *run,
                          const uint8_t *ptr, size_t bytes, struct trib_ref *out);

/** trib_engine_view - the part of a peer's buffer that this rank reaches; empty if it
 * is out of reach or the engine failed. */
struct trib_view trib_engine_view(struct trib_engine *e, struct trib_link *l,
                                  const struct trib_ref *ref);

/**
 * trib_engine_stood - true if what was read so far of a peer's memory was what it had
 * named.
 *
 * returns  false: the peer has given up, and its memory may have changed; the engine
 *          has failed
 */
bool trib_engine_stood(struct trib_engine *e, int peer);

/**
 * trib_engine_read - copy bytes out of memory of which a peer has told the address.
 *
 * from     within what the peer has granted, by a link that reads
 * returns  false: the engine has failed, and the bytes count for nothing
 */
bool trib_engine_read(struct trib_engine *e, int peer, uint64_t from, uint8_t *to,
                      size_t bytes);

/**
 * trib_engine_expose - name memory that a peer then gets by trib_engine_fetch: of
 * trib_alloc, or by its address.
 *
 * ptr      of `bytes`, which stay as they are until the peer has said that it has them
 * returns  false: the peer cannot reach it
 */
bool trib_engine_expose(const struct trib_engine *e, const struct trib_link *l,
                        const void *ptr, size_t bytes, struct trib_ref *out);

/* The place for bytes that are fetched. */
struct trib_piece {
    uint8_t *ptr;
    size_t bytes;
};

/**
 * trib_engine_fetch - copy bytes of memory that a peer has named.
 *
 * ref      lo is 0; what it says may be wrong
 * at       of the first byte, within hi
 * returns  TRIB_ERR_UNSUPPORTED: this rank cannot reach it; another error: the engine
 *          has failed, and the bytes count for nothing
 */
trib_status_t trib_engine_fetch(struct trib_engine *e, struct trib_link *l,
                                const struct trib_ref *ref, size_t at,
                                struct trib_piece to);

#endif
