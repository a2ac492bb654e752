/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Immediates and tokens of a link's transport writes. Only link.c and notice.c include
 * this header.
 */
#ifndef PIPELINE_LINK_LINK_WORDS_H
#define PIPELINE_LINK_LINK_WORDS_H

#include "pipeline/link/link.h"

/* The kind of a write is in the upper 8 bits of its immediate. The comment of each kind
 * says what the lower 24 bits are. */
enum {
    LINK_IMM_FRAME = TRIB_LINK_FRAME, /* the lane */
    LINK_IMM_CREDITS = TRIB_LINK_CREDITS, /* bit 0: the lane; above it the lower bits of
                                           * the number of frames released on the
                                           * lane */
    LINK_IMM_NOTICE = 3, /* the lower bits of the notice's version */
    LINK_IMM_ADVERT = 4, /* 0 */
    LINK_IMM_MAILBOX = 5, /* 0; kinds 6 and 7 belong to mailboxes */
    LINK_IMM_WAITING = 8, /* as NOTICE, for the place of waiting notices */
    LINK_IMM_ASK = 9, /* bit 0: the lane; above it the payload of the next frame in
                       * units of LINK_ASK_UNIT bytes */
    LINK_IMM_GRANT = 10, /* the lane */
};
#define LINK_ASK_UNIT 64
#define LINK_IMM_BITS UINT32_C(0xffffff)
#define LINK_IMM_COUNT (LINK_IMM_BITS >> 1) /* credits: mask of the number of frames */

_Static_assert(TRIB_LANES == 2, "bit 0 of credits is the lane");

/* Tokens of writes with a completion event. */
enum {
    LINK_TOKEN_NOTICE,
    LINK_TOKEN_ZCOPY,
    LINK_TOKEN_REPORT,
};

static inline uint32_t trib_link_imm(uint32_t kind, uint32_t bits)
{
    return kind << 24 | (bits & LINK_IMM_BITS);
}

#endif
