/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of the stores for a result: the faster kind soon gets nearly all chunks,
 * also when the faster one changes, and a chunk that took long by chance changes
 * nothing. Both kinds leave the same bits.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include "pipeline/payload/decode.h"
#include "pipeline/run/result_store.h"

enum { CHUNK = 16384 };

/* Return how many of `chunks` bypass the cache, for the given picoseconds per element
 * of plain and of bypassing stores. */
static int past_of(struct trib_result_store *s, int chunks, uint64_t plain_ps,
                   uint64_t past_ps)
{
    int n = 0;

    for (int i = 0; i < chunks; i++) {
        const bool past = trib_result_store_past(s);
        const uint64_t ps = past ? past_ps : plain_ps;
        trib_result_store_took(s, past, CHUNK, CHUNK * ps / 1000);
        n += past;
    }
    return n;
}

TEST(test_the_faster_one_is_taken)
{
    struct trib_result_store s = {0};

    assert_int_equal(past_of(&s, 8, 400, 200), 4);
    assert_int_equal(past_of(&s, 320, 400, 200), 310);
    (void)past_of(&s, 320, 200, 600);
    assert_int_equal(past_of(&s, 320, 200, 600), 10);
    (void)past_of(&s, 320, 400, 380); /* not worth it */
    assert_int_equal(past_of(&s, 320, 400, 380), 10);
}

TEST(test_chance_changes_nothing)
{
    struct trib_result_store s = {0};

    (void)past_of(&s, 64, 400, 200);
    trib_result_store_took(&s, true, CHUNK, 5000000); /* another process ran */
    assert_int_equal(past_of(&s, 320, 400, 200), 310);
}

TEST(test_same_bits)
{
    enum { N = TRIB_PAST_CACHE_RESULT / sizeof(float) };
    const struct payload_case c = {.codec = "natural",
                                   .algorithm = "direct",
                                   .ranks = 2,
                                   .count = N,
                                   .desc.piece = CHUNK};
    struct rig r = rig_open(&c);
    struct engine_side *s = rig_side(&r, 0);
    float *y = malloc((N + 1) * sizeof(*y)), x[CHUNK], expected[CHUNK];
    uint8_t word[2 * CHUNK];

    for (size_t i = 0; i < CHUNK; i++)
        x[i] = (float)((int)((uint32_t)(i * 2654435761u) >> 8) - (1 << 23));
    const struct trib_encode in = {.x = x, .n = CHUNK, .total = N};
    const size_t len = trib_codec_encode(r.codec, &in, word);
    assert_ok(trib_codec_decode(r.codec, word, len, expected, CHUNK));
    for (size_t shift = 0; shift < 2; shift++) { /* on a cache line and off it */
        float *result = y + shift;
        trib_run_bind(&s->engine, &s->run, x, result);
        memset(result, 0xff, N * sizeof(*result));
        for (uint32_t i = 0; i < N / CHUNK; i++) {
            const struct trib_chunk chunk = trib_vector_chunk(&s->run, i / 2, i % 2);
            assert_int_equal(chunk.n, CHUNK);
            assert_ok(trib_coded_to_acc(&s->engine, &s->run, &chunk, word, len));
            assert_memory_equal(result + chunk.first, expected, sizeof(expected));
        }
    }
    const struct trib_result_store *store = &s->run.payload->result_store;
    assert_int_equal(store->chunks, 2 * (N / CHUNK));
    assert_true(store->ns[0] > 0 && store->ns[1] > 0); /* both kinds were taken */
    free(y);
    rig_close(&r);
}
