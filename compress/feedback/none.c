/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules without a mechanism of their own: "none", and "codec", which resolves to ef14
 * or none by the codec's ef=.
 */
#include "compress/codec.h"
#include "compress/feedback_ops.h"

const struct trib_feedback_ops trib_feedback_none = {
    .name = "none",
    .examples = {{"none", "topk"},
                 {"none:clip=2.5", "qsgd"},
                 {"none:clip=1,warmup=10,stages=5", "topk:ratio=0.01"}},
};

extern const struct trib_feedback_ops trib_feedback_ef14;

static const struct trib_feedback_ops *chosen_for(const struct trib_codec *codec)
{
    return codec && trib_codec_info(codec)->flags & TRIB_CODEC_FEEDBACK
               ? &trib_feedback_ef14
               : &trib_feedback_none;
}

const struct trib_feedback_ops trib_feedback_codec = {
    .name = "codec",
    .examples = {{"codec", "topk"}, {"codec", "topk:ef=0"}, {"codec", "none"}},
    .takes_none = true,
    .chosen_for = chosen_for,
};
