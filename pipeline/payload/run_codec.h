/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The codec of a run: its properties, and those of the run's encoded chunks.
 */
#ifndef PIPELINE_PAYLOAD_RUN_CODEC_H
#define PIPELINE_PAYLOAD_RUN_CODEC_H

#include "pipeline/run/run.h"

/** trib_codec_flags - return the properties of the run's codec, as in compress/codec.h;
 * the run must have a codec. */
static inline uint32_t trib_codec_flags(const struct trib_run *run)
{
    return trib_codec_info(run->desc.codec)->flags;
}

/** trib_coded_mode - return the encode mode of data other than contributions: `sparse`
 * with a codec that selects, else the only mode. */
static inline enum trib_encode_mode trib_coded_mode(const struct trib_run *run,
                                                    enum trib_encode_mode sparse)
{
    return trib_codec_flags(run) & TRIB_CODEC_SPARSE ? sparse
                                                     : TRIB_ENCODE_CONTRIBUTION;
}

/** trib_coded_linear - return true if the run's encoded chunks add without decoding. */
bool trib_coded_linear(const struct trib_run *run);

/** trib_coded_bound - return the maximum length of an encoded chunk of the run. */
size_t trib_coded_bound(const struct trib_run *run);

#endif
