/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All that there is to know about a codec, for trib-info: from the tables that the
 * parser and the stages go by, and what its words take.
 */
#ifndef COMPRESS_CODEC_INFO_H
#define COMPRESS_CODEC_INFO_H

#include <tributary/info.h>

#include "compress/codec.h"

struct trib_codec_description; /* a sheet and its texts */

/**
 * trib_codec_description_create - of a codec text.
 *
 * chunk    bytes: TRIB_CHUNK, which says how large the words are that a codec that
 *          learns may have
 * errors   those of trib_codec_create
 * owner    trib_codec_description_destroy
 */
trib_status_t trib_codec_description_create(const char *text, size_t chunk,
                                            struct trib_error *err,
                                            struct trib_codec_description **out);
void trib_codec_description_destroy(struct trib_codec_description *sheet);
const trib_codec_sheet_t *trib_codec_description_get(
    const struct trib_codec_description *sheet);

#endif
