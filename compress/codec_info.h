/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A codec's description for trib-info: the tables of the parser and the stages, and the
 * size of encoded chunks.
 */
#ifndef COMPRESS_CODEC_INFO_H
#define COMPRESS_CODEC_INFO_H

#include <tributary/info.h>

#include "compress/codec.h"

struct trib_codec_description; /* a trib_codec_sheet_t and its strings */

/**
 * trib_codec_description_create - describe a codec given by its text.
 *
 * chunk    bytes (TRIB_CHUNK); bounds the encoded chunks of codecs with a model
 * errors   those of trib_codec_create
 * owner    caller; free with trib_codec_description_destroy
 */
trib_status_t trib_codec_description_create(const char *text, size_t chunk,
                                            struct trib_error *err,
                                            struct trib_codec_description **out);
void trib_codec_description_destroy(struct trib_codec_description *sheet);
const trib_codec_sheet_t *trib_codec_description_get(
    const struct trib_codec_description *sheet);

#endif
