/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/link/frame.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "collectives/schedule/coll_traits.h"

/* signature, from bit 0 up: coll 4 | leaving 1 | dtype 4 | op 4 | feed 2 | root or plan
 * 16 */
uint32_t trib_frame_signature(const struct trib_frame_op *op)
{
    assert(op->coll < 16 && op->dtype < 16 && op->op < 16 && op->feed < 4);
    return (uint32_t)op->coll | (uint32_t)(op->leaving != 0) << 4 |
           (uint32_t)op->dtype << 5 | (uint32_t)op->op << 9 | (uint32_t)op->feed << 13 |
           (op->root & 0xffffu) << TRIB_FRAME_ROOT_AT;
}

struct trib_frame_op trib_frame_op(uint32_t signature)
{
    return (struct trib_frame_op){
        .coll = (trib_coll_t)(signature & 15),
        .leaving = (int)(signature >> 4 & 1),
        .dtype = (trib_dtype_t)(signature >> 5 & 15),
        .op = (trib_op_t)(signature >> 9 & 15),
        .feed = (trib_feed_t)(signature >> 13 & 3),
        .root = signature >> TRIB_FRAME_ROOT_AT & 0xffffu,
    };
}

static bool has_root(const struct trib_frame *f)
{
    return trib_coll_has_root(trib_frame_op(f->signature).coll);
}

static void set_stamp(struct trib_frame *f, uint64_t step, uint32_t plan)
{
    f->count = trib_frame_count(f) | step << TRIB_FRAME_COUNT_BITS;
    if (has_root(f))
        return;
    f->signature &= ~(0xffffu << TRIB_FRAME_ROOT_AT);
    f->signature |= (plan & 0xffffu) << TRIB_FRAME_ROOT_AT;
}

void trib_frame_stamp(struct trib_frame *f, uint32_t step, uint32_t plan)
{
    set_stamp(f, step & 0xffffu, plan);
}

void trib_frame_take_stamp(struct trib_frame *mine, const struct trib_frame *theirs)
{
    set_stamp(mine, trib_frame_step(theirs), theirs->signature >> TRIB_FRAME_ROOT_AT);
}

static const char *call_name(const struct trib_frame_op *op)
{
    return op->leaving ? "trib_free_comm" : trib_coll_name(op->coll);
}

/* digest, from bit 31 down: codec 12 | feedback 6 | algorithm 6 | chunk size 8 */
uint32_t trib_frame_digest(uint32_t codec, uint32_t feedback, uint32_t algorithm,
                           uint32_t chunk)
{
    return codec << 20 | (feedback & 0x3f) << 14 | (algorithm & 0x3f) << 8 |
           (chunk & 0xff);
}

static void say_digest(uint32_t mine, uint32_t theirs, char *text, size_t bytes)
{
    uint32_t differ = mine ^ theirs;
    const char *const parts[] = {
        differ >> 20 ? "codec" : NULL,
        differ >> 14 & 0x3f ? "feedback" : NULL,
        differ >> 8 & 0x3f ? "algorithm" : NULL,
    };
    size_t at = 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if (parts[i] && at < bytes)
            at += (size_t)snprintf(text + at, bytes - at, "%s a different %s",
                                   at ? " and" : "has", parts[i]);
    if (at < bytes)
        snprintf(text + at, bytes - at, "%s than this rank",
                 at ? "" : "has a different chunk size, quorum or counts");
}

static void say_difference(const struct trib_frame *mine,
                           const struct trib_frame *theirs, char *text, size_t bytes)
{
    struct trib_frame_op a = trib_frame_op(mine->signature);
    struct trib_frame_op b = trib_frame_op(theirs->signature);

    if (a.coll != b.coll || a.leaving != b.leaving)
        snprintf(text, bytes, "is in %s, this rank in %s", call_name(&b),
                 call_name(&a));
    else if (trib_frame_count(mine) != trib_frame_count(theirs) &&
             trib_frame_count(mine) == TRIB_FRAME_COUNT_LISTED)
        snprintf(text, bytes, "has one count for all blocks, this rank one per block");
    else if (trib_frame_count(mine) != trib_frame_count(theirs) &&
             trib_frame_count(theirs) == TRIB_FRAME_COUNT_LISTED)
        snprintf(text, bytes, "has one count per block, this rank one for all blocks");
    else if (trib_frame_count(mine) != trib_frame_count(theirs))
        snprintf(text, bytes, "has count %" PRIu64 ", this rank %" PRIu64,
                 trib_frame_count(theirs), trib_frame_count(mine));
    else if (a.dtype != b.dtype)
        snprintf(text, bytes, "has dtype %s, this rank %s", trib_dtype_name(b.dtype),
                 trib_dtype_name(a.dtype));
    else if (a.op != b.op)
        snprintf(text, bytes, "has op %s, this rank %s", trib_op_name(b.op),
                 trib_op_name(a.op));
    else if (a.root != b.root && has_root(mine))
        snprintf(text, bytes, "has root %u, this rank %u", b.root, a.root);
    else if (a.feed != b.feed)
        snprintf(text, bytes, "feeds its input in a different order");
    else if (mine->digest != theirs->digest)
        say_digest(mine->digest, theirs->digest, text, bytes);
    else if (trib_frame_step(mine) != trib_frame_step(theirs))
        snprintf(
            text, bytes,
            "is at step %" PRIu32 " of the plan, this rank at step %" PRIu32
            " (start each plan equally often on all ranks; load states of one step)",
            trib_frame_step(theirs), trib_frame_step(mine));
    else if (a.root != b.root)
        snprintf(
            text, bytes,
            "has started a different plan, or one with a different name or seed");
    else
        snprintf(text, bytes, "is at operation %u, this rank at %u", theirs->seq,
                 mine->seq);
}

trib_status_t trib_frame_check(const struct trib_frame *mine,
                               const struct trib_frame *theirs, int self, int peer,
                               char *text, size_t bytes)
{
    if (theirs->magic != TRIB_FRAME_MAGIC || theirs->kind == 0 ||
        theirs->kind >= TRIB_FRAME_KIND_END) {
        snprintf(text, bytes,
                 "rank %d received an invalid frame from rank %d, not of protocol "
                 "version %u (magic 0x%04x, kind %u)",
                 self, peer, TRIB_FRAME_MAGIC >> 8, theirs->magic, theirs->kind);
        return TRIB_ERR_PROTOCOL;
    }
    if (trib_frame_same(mine, theirs))
        return TRIB_OK;
    struct trib_frame_op op = trib_frame_op(mine->signature);
    char how[256];
    say_difference(mine, theirs, how, sizeof(how));
    snprintf(text, bytes,
             "ranks disagree on operation %u (%s): rank %d %s (rank %d)", mine->seq,
             call_name(&op), peer, how, self);
    return TRIB_ERR_MISMATCH;
}
