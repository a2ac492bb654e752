/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/run_codec.h"

#include <assert.h>

bool trib_coded_linear(const struct trib_run *run)
{
    return run->desc.codec && trib_coll_sums(run->desc.op.coll) &&
           (trib_codec_flags(run) & TRIB_CODEC_LINEAR) &&
           !(trib_codec_flags(run) & TRIB_CODEC_IDENTITY);
}

size_t trib_coded_bound(const struct trib_run *run)
{
    const struct trib_run_desc *d = &run->desc;

    assert(d->codec);
    return trib_coded_linear(run) ? trib_codec_sum_bound(d->codec, d->piece)
                                  : trib_codec_bound(d->codec, d->piece);
}
