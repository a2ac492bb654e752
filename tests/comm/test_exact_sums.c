/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same bits with any algorithm, transport, number of ranks and contributing rank:
 * sums of extreme numbers by the codec "exact".
 */
#include <math.h>

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "compress/codec.h"
#include "tests/comm/algorithms.h"
#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

enum { GIVERS = 2, COUNT = 5003, STEPS = 3 };

struct scene {
    const char *algorithm;
    size_t chunk;
    int shift; /* rank (giver + shift) % ranks contributes; all others contribute
                * zeros */
    trib_coll_t coll;
    bool mean; /* then all ranks contribute */
};

/* Any exponents, NaN and infinities, and pairs that nearly cancel. */
static float hostile(int giver, uint32_t step, size_t i)
{
    const uint64_t bits =
        oracle_mix(i * 64 + step + (i % 3 ? (uint64_t)giver << 40 : 0));
    uint32_t b = (uint32_t)(bits >> 13);
    float x;

    if ((b >> 23 & 255) == 255 && i % 7)
        b ^= 1u << 29;
    if (i % 5 == 0)
        b &= 0x80ffffff; /* near the least normal numbers */
    memcpy(&x, &b, sizeof(x));
    return i % 3 == 0 && giver % 2 ? -nextafterf(x, 1) : x;
}

static void fill(const struct ranks_self *self, const struct scene *s, int rank,
                 uint32_t step, float *x)
{
    const int giver = (rank + self->size - s->shift % self->size) % self->size;

    for (size_t i = 0; i < COUNT; i++)
        x[i] = s->mean || giver < GIVERS ? hostile(giver, step, i)
               : i % 2                   ? 0.0f
                                         : -0.0f;
}

/* The result of the codec alone, which tests/compress/quantise/test_exact_sum.c
 * compares with an oracle. */
static void expect(struct ranks_self *self, const struct scene *s, uint32_t step,
                   float *y)
{
    const int n = s->mean ? self->size : GIVERS;
    struct trib_codec *codec;
    struct trib_encoded words[RANKS_MAX];
    float *x = malloc(COUNT * sizeof(*x));
    size_t len;

    ranks_assert(self, trib_codec_create("exact", NULL, NULL, &codec) == TRIB_OK);
    ranks_assert(self, trib_codec_for_ranks(codec, n, NULL) == TRIB_OK);
    for (int g = 0; g < n; g++) {
        uint8_t *word = malloc(trib_codec_bound(codec, COUNT));
        for (size_t i = 0; i < COUNT; i++)
            x[i] = hostile(g, step, i);
        const struct trib_encode in = {.x = x, .n = COUNT};
        words[g] = (struct trib_encoded){word, trib_codec_encode(codec, &in, word)};
    }
    uint8_t *sum = malloc(trib_codec_bound(codec, COUNT));
    const struct trib_merge m = {.words = words,
                                 .n_words = (size_t)n,
                                 .n = COUNT,
                                 .final = true,
                                 .ranks = s->mean ? (uint32_t)n : 0};
    ranks_ok(self, trib_codec_merge(codec, &m, sum, &len));
    ranks_ok(self, trib_codec_decode(codec, sum, len, y, COUNT));
    for (int g = 0; g < n; g++)
        free((void *)(uintptr_t)words[g].src);
    free(sum);
    free(x);
    trib_codec_destroy(codec);
}

static int sums(struct ranks_self *self)
{
    const struct scene *s = self->arg;
    float *x = malloc(COUNT * sizeof(*x)), *y = malloc(COUNT * sizeof(*y));
    float *expected = malloc(COUNT * sizeof(*expected));
    trib_plan_t *plan;
    trib_desc_t d = sized(trib_desc_t, .send = x, .recv = y, .count = COUNT,
                          .op = s->mean ? TRIB_MEAN : TRIB_SUM, .codec = "exact",
                          .algorithm = s->algorithm, .chunk = s->chunk);

    ranks_ok(self, trib_plan_create(self->comm, s->coll, &d, &plan));
    for (uint32_t step = 1; step <= STEPS; step++) {
        fill(self, s, self->rank, step, x);
        ranks_step(self, plan);
        expect(self, s, step, expected);
        for (size_t i = 0; (s->coll != TRIB_REDUCE || self->rank == 0) && i < COUNT;
             i++)
            if (memcmp(&y[i], &expected[i], sizeof(*y)) != 0)
                ranks_die(self, "%s, %d ranks, step %u: element %zu is %a, not %a",
                          s->algorithm, self->size, step, i, (double)y[i],
                          (double)expected[i]);
    }
    ranks_ok(self, trib_plan_free(plan));
    free(x);
    free(y);
    free(expected);
    return 0;
}

static void run(const struct scene *s, int size, const char *transport)
{
    const bool hosts = strcmp(s->algorithm, "hierarchical") == 0;
    char config[128];

    if (hosts && size < 3)
        return;
    snprintf(config, sizeof(config),
             hosts ? "transport=auto:near=%s,far=tcp,ranks_per_host=2;progress=thread"
                   : "transport=%s",
             transport);
    ranks_pass(.size = size, .fn = sums, .arg = (void *)(uintptr_t)s, .config = config);
}

TEST(test_sums)
{
    static const char *const transports[] = {"shm", "tcp"};

    for (size_t a = 0; a < algorithms_count(true); a++)
        for (int size = 2; size <= 5; size++)
            for (int t = 0; t < 2; t++) {
                const struct scene s = {algorithm_of(a, true), size % 2 ? 65536 : 16384,
                                        size + t, TRIB_ALLREDUCE, false};
                run(&s, size, transports[t]);
            }
}

TEST(test_means)
{
    for (size_t a = 0; a < algorithms_count(true); a++)
        for (int size = 2; size <= 5; size++) {
            const struct scene s = {algorithm_of(a, true), 0, 0, TRIB_ALLREDUCE, true};
            run(&s, size, size % 2 ? "shm" : "tcp");
        }
}

TEST(test_reduces)
{
    for (size_t a = 0; a < algorithms_count(false); a++) {
        const struct scene s = {algorithm_at(a), 32768, 1, TRIB_REDUCE, false};
        if (algorithm_does(s.algorithm, TRIB_REDUCE))
            run(&s, 3, "shm");
    }
}
