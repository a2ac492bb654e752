/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/compress/vectors.h"

#include "compress/stages.h"

/* Each row can be created from its name alone and describes itself. */
TEST(test_rows)
{
    for (size_t i = 0; i < trib_codecs_count; i++) {
        const struct trib_codec_row *row = &trib_codecs[i];
        struct trib_codec *c = codec_new(row->name, NULL);
        const struct trib_codec_info *info = trib_codec_info(c);
        const char *const stages[] = {
            row->stages.transform->name, row->stages.select->name,
            row->stages.quantise->name, row->stages.pack->name};
        for (int s = 0; s < 4; s++)
            assert_string_equal(info->stages[s], stages[s]);
        /* Parameters determine whether encoded chunks can be added in any order. */
        assert_int_equal(info->flags & ~(uint32_t)TRIB_CODEC_ORDERLESS, row->flags);
        assert_true(strlen(row->grammar) > 0 && strlen(row->detail) > 0);
        assert_non_null(row->texts[0]);
        trib_codec_destroy(c);
    }
}

/* no hole for a codec to fall through */
TEST(test_slots_filled)
{
    for (size_t i = 0; i < trib_codecs_count; i++) {
        const struct trib_codec_row *row = &trib_codecs[i];
        assert_non_null(row->stages.transform->name);
        assert_non_null(row->stages.select->choose);
        assert_non_null(row->stages.select->delta);
        assert_non_null(row->stages.quantise->bytes);
        assert_non_null(row->stages.quantise->encode);
        assert_non_null(row->stages.quantise->decode);
        assert_non_null(row->stages.quantise->decode_add);
        assert_true(row->stages.quantise->delta || row->stages.quantise->error);
    }
}

static uint32_t flags_of(const char *text)
{
    struct trib_codec *c = codec_new(text, NULL);
    const uint32_t flags = trib_codec_info(c)->flags;
    trib_codec_destroy(c);
    return flags;
}

static double delta_of(const char *text)
{
    struct trib_codec *c = codec_new(text, NULL);
    const double delta = trib_codec_info(c)->delta;
    trib_codec_destroy(c);
    return delta;
}

TEST(test_flags)
{
    assert_int_equal(flags_of("none"), TRIB_CODEC_IDENTITY | TRIB_CODEC_LINEAR |
                                           TRIB_CODEC_UNBIASED | TRIB_CODEC_ANY_OP);
    assert_int_equal(flags_of("bf16"), TRIB_CODEC_ANY_OP);
    assert_int_equal(flags_of("bf16:ef=1"), TRIB_CODEC_ANY_OP | TRIB_CODEC_FEEDBACK);
    assert_int_equal(flags_of("bf16:round=random"),
                     TRIB_CODEC_UNBIASED | TRIB_CODEC_ANY_OP);
    assert_int_equal(flags_of("f8"), 0);
    assert_int_equal(flags_of("f8:round=random,ef=1"),
                     TRIB_CODEC_UNBIASED | TRIB_CODEC_FEEDBACK);
    assert_int_equal(flags_of("hadamard+f16"), 0);
    assert_int_equal(flags_of("hadamard+bf16:round=random"), TRIB_CODEC_UNBIASED);
    assert_int_equal(flags_of("hadamard+efsign"), TRIB_CODEC_FEEDBACK);
    assert_int_equal(flags_of("hadamard+qsgd"), TRIB_CODEC_UNBIASED);
    assert_int_equal(flags_of("hadamard+terngrad:shared=1"),
                     TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_ORDERLESS);
    assert_int_equal(flags_of("hadamard:ef=1+int8:round=nearest"),
                     TRIB_CODEC_LINEAR | TRIB_CODEC_AGREES | TRIB_CODEC_FEEDBACK |
                         TRIB_CODEC_ORDERLESS);
    assert_int_equal(flags_of("topk"), TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK);
    assert_int_equal(flags_of("topk:ef=0+f16"), TRIB_CODEC_SPARSE);
    assert_int_equal(flags_of("dgc"), TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK);
    assert_int_equal(flags_of("threshold"), TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK);
    assert_int_equal(flags_of("randomk"), TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK);
    assert_int_equal(flags_of("randomk:unbiased=1"),
                     TRIB_CODEC_SPARSE | TRIB_CODEC_UNBIASED);
    assert_int_equal(flags_of("randomk:unbiased=1+qsgd"),
                     TRIB_CODEC_SPARSE | TRIB_CODEC_UNBIASED);
    assert_int_equal(flags_of("randomk:unbiased=1+natural:round=nearest"),
                     TRIB_CODEC_SPARSE);
    assert_int_equal(flags_of("randomk:unbiased=1+f16"), TRIB_CODEC_SPARSE);
    assert_int_equal(flags_of("blocks"), TRIB_CODEC_SPARSE | TRIB_CODEC_UNBIASED);
    assert_int_equal(flags_of("blocks+natural"),
                     TRIB_CODEC_SPARSE | TRIB_CODEC_UNBIASED);
    assert_int_equal(flags_of("blocks+bf16"), TRIB_CODEC_SPARSE);
    assert_int_equal(flags_of("blocks:ratio=0.5"),
                     TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK);
    assert_int_equal(flags_of("adacomp"), TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK);
    assert_int_equal(flags_of("qsgd"), TRIB_CODEC_UNBIASED);
    assert_int_equal(flags_of("natural"), TRIB_CODEC_UNBIASED);
    assert_int_equal(flags_of("natural:round=nearest"), 0);
    assert_int_equal(flags_of("topk+natural"), TRIB_CODEC_SPARSE | TRIB_CODEC_FEEDBACK);
    assert_int_equal(flags_of("terngrad"), 0);
    assert_int_equal(flags_of("onebit"), TRIB_CODEC_FEEDBACK);
    assert_int_equal(flags_of("efsign:ef=0"), 0);
}

TEST(test_delta)
{
    assert_true(delta_of("none") == 1.0);
    assert_true(delta_of("topk:ratio=0.01") == 100.0);
    assert_true(delta_of("topk:k=5") == 0.0);
    assert_true(delta_of("topk+f16") == 0.0);
    assert_true(delta_of("randomk:ratio=0.01") == 100.0);
    assert_true(delta_of("randomk:ratio=0.3") == 4.0);
    assert_true(delta_of("randomk:ratio=0.3,unbiased=1") == 0.0);
    assert_true(delta_of("blocks") == 1.0);
    assert_true(delta_of("blocks:ratio=0.1") == 10.0);
    assert_true(delta_of("dgc:ratio=0.01") == 125.0);
    assert_true(delta_of("adacomp") == 0.0);
    assert_true(delta_of("threshold:at=0.1") == 0.0);
    assert_true(delta_of("threshold:at=0") == 1.0);
    assert_true(delta_of("qsgd:bits=4") == 0.0);
    assert_true(fabs(delta_of("qsgd:bits=8") - 1.008) < 1e-3);
    assert_true(delta_of("natural") == 8.0 / 7);
    assert_true(delta_of("natural:round=nearest") == 9.0 / 8);
    assert_true(fabs(delta_of("topk:ratio=0.01+natural") - 100 * 8.0 / 7) < 1e-9);
    assert_true(delta_of("topk:ratio=0.01+qsgd:bits=4") == 0.0);
    assert_true(fabs(delta_of("f8:bucket=32") - 289.0 / 288) < 1e-9);
    assert_true(fabs(delta_of("f8:bucket=32,round=random,format=e5m2") - 80.0 / 79) <
                1e-9);
    assert_true(delta_of("dither:bits=2") == 0.0);
    assert_true(delta_of("terngrad") == 0.0);
    assert_true(delta_of("onebit:bucket=64") == 64.0);
    assert_true(fabs(delta_of("dither:base=4,bits=4") - 1 / (1 - 2.25 / 4)) < 1e-6);
    /* q = sqrt(512) / 4096 */
    assert_true(fabs(delta_of("dither:base=4,bits=4,norm=l2") -
                     1 / (1 - 2.25 / 4 - 512.0 / 4096 / 4096)) < 1e-6);
    assert_true(fabs(delta_of("dither:bits=4") - 1 / (1 - 0.125)) < 1e-12);
    /* q = sqrt(512) / 64 */
    assert_true(fabs(delta_of("dither:bits=4,norm=l2") - 1 / (1 - 0.125 - 0.125)) <
                1e-12);
}

TEST(test_digest)
{
    struct trib_codec *a = codec_new("topk:ratio=0.01", NULL);
    struct trib_codec *b = codec_new("topk", NULL);
    struct trib_codec *c = codec_new("topk:ratio=0.02", NULL);
    assert_int_equal(trib_codec_info(a)->digest, trib_codec_info(b)->digest);
    assert_int_not_equal(trib_codec_info(a)->digest, trib_codec_info(c)->digest);
    trib_codec_destroy(a), trib_codec_destroy(b), trib_codec_destroy(c);
    trib_codec_destroy(NULL);
}

static size_t unit_of(const char *text)
{
    struct trib_codec *c = codec_new(text, NULL);
    const size_t unit = trib_codec_unit(c);
    trib_codec_destroy(c);
    return unit;
}

/* Buckets, rotated blocks and bins are whole in a unit. */
TEST(test_unit)
{
    assert_int_equal(unit_of("none"), 64);
    assert_int_equal(unit_of("f16"), 64);
    assert_int_equal(unit_of("topk"), 64);
    assert_int_equal(unit_of("randomk"), 64);
    assert_int_equal(unit_of("topk+qsgd:bucket=1024"),
                     64); /* buckets of selected elements */
    assert_int_equal(unit_of("signsgd"), 64);
    assert_int_equal(unit_of("qsgd"), 512);
    assert_int_equal(unit_of("qsgd:bucket=8"), 64);
    assert_int_equal(unit_of("qsgd:bucket=40,pack=entropy"), 320);
    assert_int_equal(unit_of("qsgd:bucket=96,shared=1"), 192);
    assert_int_equal(unit_of("natural:bucket=65536"), 65536);
    assert_int_equal(unit_of("f8:bucket=65528"), 65528 * 8);
    assert_int_equal(unit_of("onebit"), 512);
    assert_int_equal(unit_of("int8:bucket=1000"), 8000);
    assert_int_equal(unit_of("uniform-thc"), 512);
    assert_int_equal(unit_of("thc"), 1024);
    assert_int_equal(unit_of("exact"), 256);
    assert_int_equal(unit_of("hadamard:block=64+f16"), 64);
    assert_int_equal(unit_of("hadamard:block=64+int8:bucket=192"), 192);
    assert_int_equal(unit_of("hadamard:block=2048+onebit:bucket=8"), 2048);
    assert_int_equal(unit_of("blocks:block=24"), 192);
    assert_int_equal(unit_of("adacomp"), 64);
    assert_int_equal(unit_of("adacomp:bin=50"), 1600);
    assert_int_equal(unit_of("adacomp:bin=7"), 448);
}
