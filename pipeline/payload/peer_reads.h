/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Elements of which a peer has told the address, as nobody has registered its buffer:
 * one copy, by the kernel, to where they belong or to memory of the run.
 *
 * A system call and a search for the pages cost as much as the copy of many KiB. So
 * where the peer's whole input is ready, the chunks of the rounds to come are read with
 * the first one, as far as they lie behind it. Their frames then move nothing.
 */
#ifndef PIPELINE_PAYLOAD_PEER_READS_H
#define PIPELINE_PAYLOAD_PEER_READS_H

#include "pipeline/engine/engine_state.h"

struct trib_peer_reads;

/* A chunk in a buffer of a peer. */
struct trib_peer_chunk {
    int peer;
    const struct trib_view *view; /* addressed */
    bool input; /* the buffer has the peer's input, not its results */
};

/** trib_reads_prepare - allocate what a run needs for contributions that are read;
 * nothing if it reads none. */
trib_status_t trib_reads_prepare(struct trib_run *run);
void trib_reads_dispose(struct trib_run *run);

/** trib_reads_begin - an operation begins: nothing was read for it. */
void trib_reads_begin(struct trib_run *run);

/** trib_reads_named - true if the elements of a frame are read by their address, out of
 * the buffer that is noted. */
bool trib_reads_named(const struct trib_neighbor *neighbor, const struct trib_frame *f,
                      struct trib_peer_chunk *out);

/**
 * trib_reads_copy_in - read a chunk, and some of those behind it, to their
 * accumulators.
 *
 * returns  false: the chunk is not in the buffer, or the engine has failed
 */
bool trib_reads_copy_in(struct trib_engine *e, struct trib_run *run,
                        struct trib_task *t, const struct trib_chunk *c,
                        const struct trib_peer_chunk *from);

/**
 * trib_reads_contrib - the elements of contribution i to a REDUCE, read now or with
 * those of an earlier round; NULL as above.
 */
const uint8_t *trib_reads_contrib(struct trib_engine *e, struct trib_run *run,
                                  const struct trib_task *t, ptrdiff_t i,
                                  const struct trib_chunk *c,
                                  const struct trib_peer_chunk *from);

#endif
