/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TRIB_CHECK=sum: one bit that changes between a sender and a receiver ends the
 * operation before it is summed, with the names of the rank and the chunk. Whole ranks
 * and transports are in tests/comm/test_damaged.c.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include "pipeline/payload/checksum.h"

enum { COUNT = 4000 };

static struct payload_case case_of(const char *codec, const char *transport, bool sum)
{
    return (struct payload_case){.codec = codec,
                                 .algorithm = "direct",
                                 .ranks = 2,
                                 .count = COUNT,
                                 .config = "chunk=64K",
                                 .transport = transport,
                                 .desc.check.sum = sum};
}

static void named(const struct rig *r, const char *what)
{
    const struct trib_engine *e = &rig_side(r, 1)->engine;

    assert_status((trib_status_t)e->failed, TRIB_ERR_PROTOCOL);
    engines_words(e->failure.text,
                  (const char *const[]){"rank 0 (host here", what,
                                        "damaged in transit (TRIB_CHECK=sum: CRC-32C",
                                        "to rank 1 in allreduce", NULL});
}

/* Return the first frame on a lane from rank 0 to rank 1, which has not polled yet. */
static struct trib_entry *first_entry(const struct rig *r, int lane)
{
    struct trib_engine *e = &rig_side(r, 1)->engine;

    (void)trib_engine_events(e);
    struct trib_entry *entry =
        (struct trib_entry *)(void *)e->links[0].recv[lane].slots;
    assert_true(atomic_load(&entry->position) > 0);
    return entry;
}

/* Start both ranks; rank 0 has sent only its contribution to chunk 1. */
static struct rig begin(const struct payload_case *c)
{
    struct rig r = rig_open(c);

    rig_fill(&r, 0);
    rig_start_one(&r, 0);
    rig_start_one(&r, 1);
    (void)trib_engine_progress(&rig_side(&r, 0)->engine);
    return r;
}

/* In the payload, and in fields of the header that the receiver would believe. */
TEST(test_frames)
{
    static const char *const codecs[] = {NULL, "f16", "topk:ratio=0.5", "exact"};

    for (int k = 0; k < 16; k++) {
        const struct payload_case c =
            case_of(codecs[k % 4], k & 4 ? "shm" : "loop", true);
        struct rig r = begin(&c);
        struct trib_engine *e = &rig_side(&r, 1)->engine;
        struct trib_entry *entry = first_entry(&r, TRIB_LANE_UP);
        if (k & 8)
            entry->frame.source ^= 0x40;
        else
            ((uint8_t *)(uintptr_t)trib_link_received(&e->links[0], &e->arena,
                                                      TRIB_LANE_UP, entry))[77] ^= 1;
        (void)trib_engine_progress(e);
        named(&r, "chunk 1");
        assert_int_equal(e->stats.sums, 0);
        rig_close(&r);
    }
}

/* A result on its way back. */
TEST(test_results)
{
    static const char *const codecs[] = {NULL, "f16"};

    for (int k = 0; k < 2; k++) {
        const struct payload_case c = case_of(codecs[k], "loop", true);
        struct rig r = begin(&c);
        struct trib_engine *e = &rig_side(&r, 1)->engine;
        (void)trib_engine_progress(e); /* its contribution to chunk 0 */
        (void)trib_engine_progress(&rig_side(&r, 0)->engine);
        struct trib_entry *entry = first_entry(&r, TRIB_LANE_DOWN);
        ((uint8_t *)(uintptr_t)trib_link_received(&e->links[0], &e->arena,
                                                  TRIB_LANE_DOWN, entry))[900] ^= 0x80;
        (void)trib_engine_progress(e);
        named(&r, "chunk 0");
        rig_close(&r);
    }
}

/* Elements that the receiver reads in the sender's memory: its contribution to chunk
 * 1. */
TEST(test_memory)
{
    struct payload_case c = case_of(NULL, "shm", true);

    c.desc.zero_copy = c.out_of_place = true;
    struct rig r = begin(&c);
    struct trib_engine *e = &rig_side(&r, 1)->engine;
    rig_side(&r, 0)->x[RIG_PIECE + 9] += 0.5f;
    for (int i = 0; i < 3 && !e->failed; i++)
        (void)trib_engine_progress(e);
    named(&r, "chunk 1");
    rig_close(&r);
}

/* The ADVERT frame that describes the sender's memory. */
TEST(test_adverts)
{
    struct payload_case c = case_of(NULL, "shm", true);

    c.desc.zero_copy = true;
    struct rig r = begin(&c);
    struct trib_engine *e = &rig_side(&r, 1)->engine;
    struct trib_entry *entry = first_entry(&r, TRIB_LANE_UP);
    assert_int_equal(entry->frame.kind, TRIB_FRAME_ADVERT);
    ((uint8_t *)(uintptr_t)trib_link_received(&e->links[0], &e->arena, TRIB_LANE_UP,
                                              entry))[3] ^= 2;
    (void)trib_engine_progress(e);
    named(&r, "buffers");
    rig_close(&r);
}

/* Without the check no error is reported; with it, intact frames pass. */
TEST(test_whole)
{
    const struct payload_case c = case_of(NULL, "loop", false);
    struct rig r = begin(&c);
    struct trib_engine *e = &rig_side(&r, 1)->engine;

    ((uint8_t *)(uintptr_t)trib_link_received(&e->links[0], &e->arena, TRIB_LANE_UP,
                                              first_entry(&r, TRIB_LANE_UP)))[77] ^= 1;
    rig_drive(&r);
    rig_ok(&r);
    rig_close(&r);
    for (int k = 0; k < 8; k++) {
        struct payload_case whole =
            case_of(k & 4 ? "bf16" : NULL, k & 1 ? "shm" : "loop", true);
        whole.desc.zero_copy = k & 2;
        rig_check(&whole, 2, 0);
    }
}
