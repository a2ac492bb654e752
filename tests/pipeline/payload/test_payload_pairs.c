/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chunks of pairs in a few engines, driven by hand: unions, results that stay
 * unchanged, and rejected frames.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include "pipeline/payload/payload_pairs.h"

enum { RANKS = 3, MOST = 6000 };

/* A rank gives this in one start. */
struct gift {
    uint64_t indices[MOST];
    float values[MOST];
    struct trib_pairs_input in;
};

/* Every `stride`-th element, from one that differs by rank and step. */
static void give(struct gift *g, size_t count, int rank, int step, size_t stride)
{
    g->in = (struct trib_pairs_input){g->indices, (const uint8_t *)g->values, 0};
    for (size_t i = (size_t)(rank + step) % stride; i < count; i += stride) {
        g->indices[g->in.n] = i;
        g->values[g->in.n++] = rig_given(rank, step, i);
    }
}

static void start_all(const struct rig *r, struct gift *gifts)
{
    for (int i = 0; i < RANKS; i++)
        trib_run_start(&rig_side(r, i)->engine, &rig_side(r, i)->run, &gifts[i].in,
                       NULL);
    rig_drive(r);
}

static void check_rank(const struct rig *r, int rank, int step, size_t stride)
{
    const struct trib_run *run = &rig_side(r, rank)->run;
    const size_t n = trib_pairs_count(run), count = r->c.count;
    uint64_t *indices = malloc((n + 1) * sizeof(*indices));
    float *values = malloc((n + 1) * sizeof(*values)),
          *dense = malloc((count + 1) * sizeof(*dense));
    size_t found = 0;

    assert_true(indices && values && dense);
    trib_pairs_get(run, indices, values);
    trib_pairs_dense(run, dense);
    for (size_t i = 0; i < count; i++) {
        float want = 0;
        bool there = false;
        for (int k = 0; k < RANKS; k++)
            if (i % stride == (size_t)(k + step) % stride) {
                want += rig_given(k, step, i);
                there = true;
            }
        assert_true(dense[i] == want);
        if (!there)
            continue;
        assert_int_equal(indices[found], i);
        assert_true(values[found++] == want);
    }
    assert_int_equal(found, n);
    free(indices);
    free(values);
    free(dense);
}

static struct payload_case pairs_case(const char *algorithm, size_t count)
{
    return (struct payload_case){.algorithm = algorithm,
                                 .ranks = RANKS,
                                 .count = count,
                                 .transport = count % 2 ? "loop" : "shm",
                                 .desc = {.pairs = true, .piece = 256}};
}

/* Strides from a full union to one pair of each rank; many rounds of chunks. */
TEST(test_unions)
{
    static const size_t strides[] = {1, 2, 3, 7, 100, MOST + 1};
    static const size_t counts[] = {1, 2, 255, 1024, 5003};
    struct gift *gifts = calloc(RANKS, sizeof(*gifts));

    assert_non_null(gifts);
    for (int k = 0; k < 10; k++) {
        const struct payload_case c =
            pairs_case(k % 2 ? "flat" : "direct", counts[k / 2]);
        struct rig r = rig_open(&c);
        for (int step = 0; step < 6; step++) {
            for (int i = 0; i < RANKS; i++)
                give(&gifts[i], c.count, i, step, strides[step]);
            start_all(&r, gifts);
            rig_ok(&r);
            for (int i = 0; i < RANKS; i++)
                check_rank(&r, i, step, strides[step]);
        }
        rig_close(&r);
    }
    free(gifts);
}

/* Later starts with the same number of pairs allocate no memory. */
TEST(test_memory_is_kept)
{
    struct gift *gifts = calloc(RANKS, sizeof(*gifts));
    const struct payload_case c = pairs_case("direct", 5003);
    struct rig r = rig_open(&c);
    const struct trib_pairs_state *s = rig_side(&r, 0)->run.payload->pairs;
    size_t room = 0;

    assert_non_null(gifts);
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < RANKS; i++)
            give(&gifts[i], c.count, i, step, 3);
        start_all(&r, gifts);
        rig_ok(&r);
        assert_true(step == 0 || s->all.room == room);
        room = s->all.room;
    }
    rig_close(&r);
    free(gifts);
}

/* Words of a rank whose elements are longer do not have the length that others
 * expect. */
TEST(test_wrong_words_are_refused)
{
    struct gift *gifts = calloc(RANKS, sizeof(*gifts));
    const struct payload_case c = pairs_case("direct", 1000);
    struct rig r = rig_open(&c);

    assert_non_null(gifts);
    for (int i = 0; i < RANKS; i++)
        give(&gifts[i], c.count, i, 0, 5);
    rig_side(&r, 1)->run.desc.element = 2;
    start_all(&r, gifts);
    assert_int_equal(rig_side(&r, 0)->engine.failed, TRIB_ERR_PROTOCOL);
    rig_close(&r);
    free(gifts);
}
