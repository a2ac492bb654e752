/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Elements of a peer's unregistered buffer, read by address. The kernel copies them
 * once, to their final place or to memory of the run.
 *
 * A system call and its page lookup cost as much as copying many KiB. If the peer's
 * whole input is ready, the chunks of coming rounds that follow the first one are
 * therefore read with it. Their frames then move nothing.
 */
#ifndef PIPELINE_PAYLOAD_PEER_READS_H
#define PIPELINE_PAYLOAD_PEER_READS_H

#include "pipeline/run/engine_state.h"

struct trib_peer_reads;

/* A chunk in a peer's buffer. */
struct trib_peer_chunk {
    int peer;
    const struct trib_view *view; /* addressed */
    bool input; /* the buffer is the peer's input, not its results */
};

/** trib_reads_prepare - allocate the state of a run that reads contributions by
 * address; do nothing for other runs. */
trib_status_t trib_reads_prepare(struct trib_run *run);
void trib_reads_dispose(struct trib_run *run);

/** trib_reads_begin - begin an operation, with nothing read yet. */
void trib_reads_begin(struct trib_run *run);

/** trib_reads_named - return true, and set the buffer, if the elements of a frame are
 * read by address. */
bool trib_reads_named(const struct trib_neighbor *neighbor, const struct trib_frame *f,
                      struct trib_peer_chunk *out);

/**
 * trib_reads_copy_in - read a chunk, and some chunks after it, to their accumulators.
 *
 * returns  false: the chunk is not in the buffer, or the engine has failed
 */
bool trib_reads_copy_in(struct trib_engine *e, struct trib_run *run,
                        struct trib_task *t, const struct trib_chunk *c,
                        const struct trib_peer_chunk *from);

/**
 * trib_reads_contrib - return the elements of contribution i to a REDUCE, read now or
 * with an earlier round; NULL: not in the buffer, or the engine has failed.
 */
const uint8_t *trib_reads_contrib(struct trib_engine *e, struct trib_run *run,
                                  const struct trib_task *t, ptrdiff_t i,
                                  const struct trib_chunk *c,
                                  const struct trib_peer_chunk *from);

#endif
