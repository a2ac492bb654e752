/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The buffers of an operation: this rank's, and those that peers have advertised to it.
 */
#ifndef PIPELINE_RUN_RUN_BUFFERS_H
#define PIPELINE_RUN_RUN_BUFFERS_H

#include "pipeline/run/engine_state.h"

/** trib_run_open - find the registered buffers and make the adverts for the peers. */
void trib_run_open(struct trib_engine *e, struct trib_run *run);

/** trib_run_open_blocks - do the same for listed blocks. The advert locates the whole
 * result. */
void trib_run_open_blocks(struct trib_engine *e, struct trib_run *run);

/** trib_run_cut_ref - reduce the location of a result to the block that a peer sends in
 * an all-to-all. */
void trib_run_cut_ref(const struct trib_engine *e, const struct trib_run *run, int peer,
                      struct trib_ref *ref);

/** trib_run_lift_view - number the bytes of a peer's block as in this rank's input;
 * return false if it has another length. An empty view stays. */
bool trib_run_lift_view(const struct trib_engine *e, const struct trib_run *run,
                        int peer, struct trib_view *view);

/** trib_run_give_back - return the memory borrowed by trib_run_open; broken: the
 * operation has failed. */
void trib_run_give_back(struct trib_engine *e, struct trib_run *run, bool broken);

/** trib_run_open_buffer - make the reference of a buffer of `bytes` bytes for peers
 * within load/store reach, by address if the memory is not registered. */
void trib_run_open_buffer(const struct trib_engine *e, const struct trib_run *run,
                          const uint8_t *ptr, size_t bytes, struct trib_ref *out);

/** trib_engine_view - return the reachable part of a peer's buffer; empty if the buffer
 * is out of reach or the engine failed. */
struct trib_view trib_engine_view(struct trib_engine *e, struct trib_link *l,
                                  const struct trib_ref *ref);

/**
 * trib_engine_stood - return true if the data read so far from a peer's memory is
 * valid.
 *
 * returns  false: the peer has withdrawn its memory, which may have changed; the engine
 *          has failed
 */
bool trib_engine_stood(struct trib_engine *e, int peer);

/**
 * trib_engine_read - copy bytes from a peer's memory by address.
 *
 * from     within the memory granted by the peer, over a link that reads
 * returns  false: the engine has failed, and the bytes are invalid
 */
bool trib_engine_read(struct trib_engine *e, int peer, uint64_t from, uint8_t *to,
                      size_t bytes);

/**
 * trib_engine_expose - make a reference to memory that a peer reads by
 * trib_engine_fetch: memory of trib_alloc, or any memory by address.
 *
 * ptr      `bytes` bytes that must not change until the peer acknowledges them
 * returns  false: the peer cannot reach the memory
 */
bool trib_engine_expose(const struct trib_engine *e, const struct trib_link *l,
                        const void *ptr, size_t bytes, struct trib_ref *out);

/* The destination of fetched bytes. */
struct trib_piece {
    uint8_t *ptr;
    size_t bytes;
};

/**
 * trib_engine_fetch - copy bytes from the memory of a peer's reference.
 *
 * ref      lo is 0; unverified, the peer may claim anything
 * at       offset of the first byte, within hi
 * returns  TRIB_ERR_UNSUPPORTED: this rank cannot reach the memory; another error: the
 *          engine has failed, and the bytes are invalid
 */
trib_status_t trib_engine_fetch(struct trib_engine *e, struct trib_link *l,
                                const struct trib_ref *ref, size_t at,
                                struct trib_piece to);

#endif
