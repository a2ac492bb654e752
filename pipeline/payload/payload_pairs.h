/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chunks as (index, value) pairs. The table is in payload.h; results stay in the run
 * until the next start.
 *
 * The input of a start is a struct trib_pairs_input instead of elements; there is no
 * receive buffer. A rank keeps the encoded pairs of its chunks: they are its result. If
 * ranks forward partial sums, the next sum of a chunk gets new memory, and the old
 * memory is freed at the next start. Ranks add a partial sum at the position of the
 * rank that sent or holds it, so two ranks that exchange theirs get the same bits.
 *
 * An aggregator keeps the encoded pairs of each chunk of a round until the next round,
 * with room for the maximum length that fits a slot.
 *
 * The values of partial sums are not rounded: floats of 16 and 8 bits are sent as
 * float32.
 */
#ifndef PIPELINE_PAYLOAD_PAYLOAD_PAIRS_H
#define PIPELINE_PAYLOAD_PAYLOAD_PAIRS_H

#include "pipeline/payload/pair_sum.h"
#include "pipeline/run/engine_state.h"
#include "pipeline/run/pair_regions.h"

/* The contribution of a rank. */
struct trib_pairs_input {
    const uint64_t *indices; /* [n] ascending, each below the length of the vector */
    const uint8_t *values; /* [n] */
    size_t n;
};

/* The result of a chunk. */
struct trib_pairs_result {
    size_t at; /* offset in `results` */
    size_t bytes;
    size_t first, n; /* elements of the chunk */
};

/* The newest result. Its chunks may come from another run: trib_pairs_adopt. */
struct trib_pairs_union {
    uint32_t *at; /* [at_room] positions of an input or of a contribution */
    size_t at_room;
    struct trib_pairs_result *chunks; /* [n_chunks] by chunk number */
    size_t n_chunks;
    uint8_t *results; /* encoded pairs; the memory grows and is kept for later starts */
    size_t used;
    size_t room;
};

struct trib_pairs_state {
    struct trib_pair_sum sum;
    struct trib_pair_regions regions;
    struct trib_pairs_union all;
    size_t store; /* aggregator: bytes of each chunk of a round in all.results */
};

/** trib_pairs_prepare - create run->payload->pairs; TRIB_ERR_NO_MEMORY. Call
 * trib_pairs_dispose in any case. */
trib_status_t trib_pairs_prepare(const struct trib_engine *e, struct trib_run *run);
void trib_pairs_dispose(struct trib_run *run);

/** trib_pairs_bytes - return the memory that trib_pairs_prepare allocates for an
 * aggregator. */
uint64_t trib_pairs_bytes(const struct trib_engine *e, const struct trib_run *run);

/** trib_pairs_count_cells - count the pairs of an input for the regions of the next
 * start, and return the counts. The ranks then sum the counts in place, and the start
 * reads them. */
uint32_t *trib_pairs_count_cells(struct trib_run *run,
                                 const struct trib_pairs_input *in);

/** trib_pairs_adopt - move the newest result of a run of the same vector to this
 * run. */
void trib_pairs_adopt(struct trib_run *run, struct trib_run *from);

/** trib_pairs_count - return the number of pairs of the newest result. The run has
 * succeeded, as for the two functions below. */
size_t trib_pairs_count(const struct trib_run *run);

/** trib_pairs_get - write the pairs of the newest result, by ascending index. */
void trib_pairs_get(const struct trib_run *run, uint64_t *indices, void *values);

/** trib_pairs_dense - write the newest result as a vector, 0 where no rank had a
 * pair. */
void trib_pairs_dense(const struct trib_run *run, void *vector);

#endif
