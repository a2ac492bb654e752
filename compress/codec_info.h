/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All that there is to know about a codec, for trib-info: from the tables that the
 * parser and the stages go by, and what its words take.
 */
#ifndef COMPRESS_CODEC_INFO_H
#define COMPRESS_CODEC_INFO_H

#include <tributary/info.h>

#include "compress/codec.h"

struct trib_sheet; /* a sheet and its texts */

/**
 * trib_sheet_create - of a codec text.
 *
 * chunk    bytes: TRIB_CHUNK, which says how large the words are that a codec that
 *          learns may have
 * errors   those of trib_codec_create
 * owner    trib_sheet_destroy
 */
trib_status_t trib_sheet_create(const char *text, size_t chunk, struct trib_error *err,
                                struct trib_sheet **out);
void trib_sheet_destroy(struct trib_sheet *sheet);
const trib_codec_sheet_t *trib_sheet_get(const struct trib_sheet *sheet);

#endif
