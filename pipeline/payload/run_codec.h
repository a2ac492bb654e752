/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The codec of a run: its properties, and those of the code words that the run makes.
 */
#ifndef PIPELINE_PAYLOAD_RUN_CODEC_H
#define PIPELINE_PAYLOAD_RUN_CODEC_H

#include "pipeline/engine/run.h"

/** trib_codec_flags - the properties of the run's codec, as in compress/codec.h; the
 * run has one. */
static inline uint32_t trib_codec_flags(const struct trib_run *run)
{
    return trib_codec_info(run->desc.codec)->flags;
}

/** trib_coded_mode - the mode of what is no contribution: `sparse` with a codec that
 * selects; others know one mode alone. */
static inline enum trib_encode_mode trib_coded_mode(const struct trib_run *run,
                                                    enum trib_encode_mode sparse)
{
    return trib_codec_flags(run) & TRIB_CODEC_SPARSE ? sparse
                                                     : TRIB_ENCODE_CONTRIBUTION;
}

/** trib_coded_linear - true if the run's code words add without decoding. */
bool trib_coded_linear(const struct trib_run *run);

/** trib_coded_bound - the length of the longest code word of the run. */
size_t trib_coded_bound(const struct trib_run *run);

#endif
