/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Means whose sums are no number of the type: sums on their way are divided by a power
 * of two, and the mean has the bits that it would have without.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include "pipeline/payload/narrow.h"

TEST(test_codes)
{
    for (uint64_t n = 1; n < 5000; n++) {
        const uint8_t code = trib_narrow_code(n);
        assert_true(trib_narrow_divisor(code) >= n);
        assert_true(code == 0 || trib_narrow_divisor(code - 1u) < n);
    }
    assert_int_equal(trib_narrow_code(UINT64_MAX), 31);
}

TEST(test_which)
{
    static const struct {
        const char *codec;
        trib_dtype_t dtype;
        trib_op_t op;
        bool narrow;
    } rows[] = {
        {NULL, TRIB_F16, TRIB_MEAN, true},   {NULL, TRIB_BF16, TRIB_MEAN, true},
        {NULL, TRIB_F32, TRIB_MEAN, false},  {NULL, TRIB_F16, TRIB_SUM, false},
        {"f16", TRIB_F32, TRIB_MEAN, true},  {"f16", TRIB_F32, TRIB_SUM, false},
        {"f8", TRIB_F32, TRIB_MEAN, false},  {"topk", TRIB_F16, TRIB_MEAN, true},
        {"topk", TRIB_F32, TRIB_MEAN, false}, {"exact", TRIB_F16, TRIB_MEAN, false},
    };

    for (size_t k = 0; k < RIG_COUNT(rows); k++) {
        const struct payload_case c = {
            .codec = rows[k].codec,
            .algorithm = "direct",
            .ranks = 2,
            .count = 100,
            .config = "chunk=64K",
            .desc.op = {.dtype = rows[k].dtype, .op = rows[k].op}};
        struct rig r = rig_open(&c);
        assert_int_equal(trib_narrow_is(&rig_side(&r, 0)->run), rows[k].narrow);
        assert_int_equal(rig_side(&r, 0)->run.payload->narrow, rows[k].narrow);
        rig_close(&r);
    }
}

static const char *const algorithms[] = {"flat", "direct", "tree", "ring",
                                         "halving-doubling"};

/* Return the largest divisor of the sums that tasks of the run send. */
static uint32_t most_divided(const struct rig *r)
{
    uint32_t most = 1;

    for (int i = 0; i < r->c.ranks; i++) {
        const struct trib_program *p = &rig_side(r, i)->run.program;
        for (uint32_t t = 0; t < p->n_tasks; t++)
            if (p->tasks[t].kind == TRIB_TASK_REDUCE &&
                trib_narrow_divisor(p->tasks[t].divided) > most)
                most = trib_narrow_divisor(p->tasks[t].divided);
    }
    return most;
}

/* Equal numbers, and numbers with a mean that is one of the type; any sum overflows. */
static void means(const struct payload_case *c)
{
    struct rig r = rig_open(c);
    const float big = c->desc.op.dtype == TRIB_BF16 ? 0x1.8p127f : 40960.0f;

    for (int step = 0; step < 2; step++) {
        for (int rank = 0; rank < c->ranks; rank++)
            for (size_t i = 0; i < c->count; i++)
                rig_put(&r, rig_input(&r, rank), i, i % 2 ? -big : big);
        for (int i = 0; i < r.engines->n; i++)
            rig_start_one(&r, i);
        rig_drive(&r);
        rig_same(&r);
        for (size_t i = 0; i < c->count; i++) {
            const float got = rig_get(&r, rig_result(&r, 0), i);
            const float want = i % 2 ? -big : big;
            if (!(got >= want && got <= want))
                fail_msg("mean of %d %s, codec %s, by %s: %g, not %g", c->ranks,
                         trib_dtype_name(c->desc.op.dtype), c->codec ? c->codec : "-",
                         c->algorithm ? c->algorithm : "aggregators", (double)got,
                         (double)want);
        }
    }
    if (c->algorithm && strcmp(c->algorithm, "ring") == 0) {
        uint32_t divided = 1; /* each rank but the last adds one contribution */
        for (int i = 0; i < c->ranks - 2; i++)
            divided = trib_narrow_divisor(trib_narrow_code(divided + 1));
        assert_int_equal(most_divided(&r), divided);
    }
    rig_close(&r);
}

TEST(test_means)
{
    static const struct {
        const char *codec;
        trib_dtype_t dtype;
    } rows[] = {
        {NULL, TRIB_F16}, {NULL, TRIB_BF16}, {"f16", TRIB_F32}, {"f16", TRIB_F16}};

    for (size_t a = 0; a < RIG_COUNT(algorithms); a++) {
        for (size_t k = 0; k < RIG_COUNT(rows); k++) {
            for (int ranks = 2; ranks <= 5; ranks++) {
                const struct payload_case c = {
                    .codec = rows[k].codec,
                    .algorithm = algorithms[a],
                    .ranks = ranks,
                    .count = ranks % 2 ? 1301 : 7,
                    .transport = k % 2 ? "shm" : "loop",
                    .desc.op = {.dtype = rows[k].dtype, .op = TRIB_MEAN}};
                const struct trib_shape shape = {
                    .coll = TRIB_ALLREDUCE, .op = TRIB_MEAN, .size = ranks};
                if (trib_algo_find(c.algorithm)->can(&shape))
                    means(&c);
            }
        }
    }
}

TEST(test_aggregators)
{
    for (int ranks = 2; ranks <= 5; ranks++) {
        const struct payload_case c = {.ranks = ranks,
                                       .aggregators = 1,
                                       .count = 2000,
                                       .desc.op = {.dtype = TRIB_F16, .op = TRIB_MEAN}};
        means(&c);
    }
}
