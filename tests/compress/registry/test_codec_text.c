/* SPDX-License-Identifier: BSD-3-Clause */
/* Codec text: canonical forms, and an error message for every mistake. */
#include "tests/compress/vectors.h"

#include <locale.h>

static const struct {
    const char *text, *canonical;
} good[] = {
    {"none", "none"},
    {"bf16:ef=1", "bf16:round=nearest,ef=1"},
    {"topk", "topk:ratio=0.01,result=sums,ef=1"},
    {"topk:ratio=1e-3", "topk:ratio=0.001,result=sums,ef=1"},
    {"topk:ratio=0.1", "topk:ratio=0.1,result=sums,ef=1"},
    {"topk:ratio=1", "topk:ratio=1,result=sums,ef=1"},
    {"topk:ratio=0.333333333333", "topk:ratio=0.333333333333,result=sums,ef=1"},
    {"topk:ef=0,k=1000000", "topk:k=1000000,result=sums,ef=0"},
    {"topk:ratio=0.001+f16", "topk:ratio=0.001,result=sums,ef=1+f16:round=nearest"},
    {"topk:ratio=0.001+qsgd:bits=2",
     "topk:ratio=0.001,result=sums,ef=1+qsgd:bits=2,bucket=512,norm=max,pack=bits"},
    {"topk:result=selected", "topk:ratio=0.01,result=selected,ef=1"},
    {"dgc", "dgc:ratio=0.001,result=sums,ef=1"},
    {"dgc:k=12,ef=0+f16", "dgc:k=12,result=sums,ef=0+f16:round=nearest"},
    {"threshold", "threshold:at=0.01,result=sums,ef=1"},
    {"threshold:ef=0,at=1e-6+f16",
     "threshold:at=1e-06,result=sums,ef=0+f16:round=nearest"},
    {"randomk", "randomk:ratio=0.01,unbiased=0,result=sums,ef=1"},
    {"randomk:unbiased=1", "randomk:ratio=0.01,unbiased=1,result=sums,ef=0"},
    {"randomk:k=8,ef=0+bf16",
     "randomk:k=8,unbiased=0,result=sums,ef=0+bf16:round=nearest"},
    {"blocks", "blocks:ratio=1,block=256,result=sums,ef=0"},
    {"blocks:ratio=0.1", "blocks:ratio=0.1,block=256,result=sums,ef=1"},
    {"blocks+onebit", "blocks:ratio=1,block=256,result=sums,ef=1+onebit:bucket=512"},
    {"blocks:block=64+bf16",
     "blocks:ratio=1,block=64,result=sums,ef=0+bf16:round=nearest"},
    {"adacomp", "adacomp:bin=64,factor=2,result=sums,ef=1"},
    {"adacomp:factor=1.5,bin=500,result=sums,ef=0",
     "adacomp:bin=500,factor=1.5,result=sums,ef=0"},
    {"natural", "natural:bucket=512,round=random,pack=bits,ef=0"},
    {"topk+natural:round=nearest",
     "topk:ratio=0.01,result=sums,ef=1+natural:bucket=512,round=nearest,pack=bits"},
    {"dither:bits=3,norm=l2", "dither:base=2,bits=3,bucket=512,norm=l2,pack=bits,ef=0"},
    {"f16", "f16:round=nearest,ef=0"},
    {"bf16:round=random", "bf16:round=random,ef=0"},
    {"f8", "f8:format=e4m3,bucket=512,round=nearest,pack=bits,ef=0"},
    {"f8:bucket=32,format=e5m2",
     "f8:format=e5m2,bucket=32,round=nearest,pack=bits,ef=0"},
    {"topk+f8:round=random",
     "topk:ratio=0.01,result=sums,ef=1+f8:format=e4m3,bucket=512,round=random,"
     "pack=bits"},
    {"qsgd", "qsgd:bits=4,bucket=512,norm=max,shared=0,pack=bits,ef=0"},
    {"terngrad", "terngrad:bucket=512,clip=2.5,shared=0,pack=bits,ef=0"},
    {"onebit", "onebit:bucket=512,ef=1"},
    {"qsgd:shared=1,bits=3", "qsgd:bits=3,bucket=512,norm=max,shared=1,pack=bits,ef=0"},
    {"int8", "int8:bucket=512,round=random,result=sums,ef=0"},
    {"topk+int8", "topk:ratio=0.01,result=sums,ef=1+int8:bucket=512,round=random"},
    {"uniform-thc:bits=8", "uniform-thc:bits=8,bucket=512,round=random,ef=0"},
    {"signsgd", "signsgd:ef=0"},
    {"hadamard", "hadamard:block=1024,ef=0+uniform-thc:bits=4,bucket=512,round=random"},
    {"hadamard:ef=1,block=64",
     "hadamard:block=64,ef=1+uniform-thc:bits=4,bucket=512,round=random"},
    {"hadamard+onebit", "hadamard:block=1024,ef=1+onebit:bucket=512"},
    {"hadamard+f16:round=random", "hadamard:block=1024,ef=0+f16:round=random"},
    {"hadamard:block=4096+int8:bucket=4096",
     "hadamard:block=4096,ef=0+int8:bucket=4096,round=random,result=sums"},
    {"hadamard+terngrad:shared=1",
     "hadamard:block=1024,ef=0+terngrad:bucket=512,clip=2.5,shared=1,pack=bits"},
    {"thc", "thc:block=1024,p=1/32,ef=1"},
    {"thc:p=1/512,block=64,ef=0", "thc:block=64,p=1/512,ef=0"},
    {"exact", "exact:ef=0"},
    {"topk+efsign:bucket=64", "topk:ratio=0.01,result=sums,ef=1+efsign:bucket=64"},
    {"qsgd:norm=max,bits=8,ef=1",
     "qsgd:bits=8,bucket=512,norm=max,shared=0,pack=bits,ef=1"},
    {"qsgd:bucket=65536", "qsgd:bits=4,bucket=65536,norm=max,shared=0,pack=bits,ef=0"},
    {"terngrad:pack=entropy",
     "terngrad:bucket=512,clip=2.5,shared=0,pack=entropy,ef=0"},
};

static const struct {
    const char *text, *says;
} bad[] = {
    {"", "unknown codec \"\""},
    {"tpok", "did you mean \"topk\"?"},
    {"f17", "did you mean \"f16\"?"},
    {"zstandard", "unknown codec \"zstandard\"; use one of none, f16"},
    {"hadamard+thc", "\"thc\" already rotates; after \"+\" use one of f16"},
    {"hadamard+hadamard", "\"hadamard\" already rotates"},
    {"hadamard+signsgd", "\"signsgd\" is a vote, which cannot be rotated back"},
    {"hadamard+topk", "\"topk\" does not encode values"},
    {"hadamard+powersgd", "\"powersgd\" does not encode values"},
    {"hadamard+none", "\"none\" does not encode values"},
    {"hadamard+int8+int8", "nothing can follow \"int8\""},
    {"hadamard+int", "did you mean \"int4\"?"},
    {"hadamard:bits=4", "\"hadamard\" has no parameter \"bits\", only block, ef"},
    {"hadamard:block=100", "it must be a power of two from 64 to 4096"},
    {"hadamard+int8:ef=1", "\"int8\" has no parameter \"ef\""},
    {"hadamard:ef=1+terngrad", "error grow without bound"},
    {"hadamard+qsgd:pack=entropy", "rotated values have a fixed width; use pack=bits"},
    {"hadamard+int8:bucket=8192", "it must be a multiple of 8 from 8 to 4096"},
    {"hadamard+int8:bucket=24", "must be a multiple of the other"},
    {"thc+int8", "nothing can follow \"thc\""},
    {"topk+hadamard", "\"hadamard\" does not encode values"},
    {"topk+hadamard+int8", "\"hadamard\" does not encode values"},
    {"exact:ef=1", "the codec is lossless, so error feedback has no effect; use ef=0"},
    {"exact+f16", "nothing can follow \"exact\""},
    {"topk+exact", "\"exact\" does not encode values; after"},
    {"hadamard+exact", "\"exact\" does not encode values"},
    {"gradiveq+exact", "encodings of \"exact\" do not add; after"},
    {"terngrad:ef=1", "error grow without bound; use ef=0"},
    {"signsgd:ef=1", "error grow without bound; use ef=0"},
    {"thc:block=100", "it must be a power of two from 64 to 4096"},
    {"thc:p=1/33", "it must be 1/16 or 1/32 or 1/64"},
    {"topk:result=requantised",
     "result=requantised has no effect on float32 values; add a codec after"},
    {"randomk:result=selected", "all ranks draw the same elements"},
    {"blocks:result=selected", "omits nothing with ratio=1"},
    {"int8:result=selected", "result is \"selected\", it must be sums or requantised"},
    {"topk:result=requantised+qsgd:bits=2",
     "grow without bound; use result=sums, more bits, a smaller bucket or other"},
    {"topk:result=all", "it must be sums or requantised or selected"},
    {"topk+thc", "\"thc\" does not encode values"},
    {"topk+signsgd", "\"signsgd\" does not encode values"},
    {"topk+qsgd:shared=1", "\"qsgd\" has no parameter \"shared\""},
    {"onebit:bits=1", "\"onebit\" has no parameter \"bits\""},
    {"f8:format=e4m2", "format is \"e4m2\", it must be e4m3 or e5m2"},
    {"dither:base=1", "base is \"1\", it must be a number from 1.1 to 16"},
    {"dither:base=4,bits=7", "levels below 2^-100 of the norm; use fewer bits"},
    {"qsgd:shared=1,pack=omega", "lanes of a fixed width; use pack=bits"},
    {"qsgd:pack=zip", "pack is \"zip\", it must be bits or omega or entropy"},
    {"natural:pack=omega", "pack=omega suits small levels, and those here are large"},
    {"topk+qsgd:pack=omega", "selected values have a fixed length; use pack=bits"},
    {"none+f16", "nothing can follow \"none\""},
    {"qsgd+f16", "nothing can follow \"qsgd\""},
    {"topk+f16+f16", "nothing can follow \"f16\""},
    {"topk+topk", "\"topk\" does not encode values; after \"+\" use one of f16"},
    {"topk+none", "\"none\" does not encode values"},
    {"topk+naturel", "did you mean \"natural\"?"},
    {"topk+", "unknown codec \"\"; use one of f16"},
    {"topk++", "nothing can follow \"\""},
    {"+", "unknown codec"},
    {"a+b+c+d+e", "more than 4 parts"},
    {"none:ef=1", "\"none\" has no parameters"},
    {"topk:", "has no parameter \"\""},
    {"topk:ratio", "ratio has no value"},
    {"topk:ratio=", "it must be a number from 1e-09 to 1"},
    {"topk:ration=1", "did you mean \"ratio\"?"},
    {"topk:zzz=1", "only ratio, k, result, ef"},
    {"topk:bits=4", "has no parameter \"bits\""},
    {"topk:ratio=0.1+f16:ef=1", "\"f16\" has no parameter \"ef\""},
    {"topk:ratio=0", "ratio is \"0\""},
    {"topk:ratio=-0.1", "ratio is \"-0.1\""},
    {"topk:ratio=1.5", "ratio is \"1.5\""},
    {"topk:ratio=nan", "ratio is \"nan\""},
    {"topk:ratio=inf", "ratio is \"inf\""},
    {"topk:ratio=1e-400", "ratio is \"1e-400\""},
    {"topk:ratio=0.1x", "ratio is \"0.1x\""},
    {"topk:ratio= 0.1", "ratio is \" 0.1\""},
    {"topk:ratio=0.1,ratio=0.1", "ratio is given twice"},
    {"topk:ratio=0.1,k=3", "give ratio or k, not both"},
    {"topk:k=0", "k is \"0\", it must be a whole number from 1 to 4294967295"},
    {"topk:k=4294967296", "k is \"4294967296\""},
    {"topk:k=1.5", "k is \"1.5\""},
    {"threshold:at=-1", "at is \"-1\", it must be a number from 0 to 3e+38"},
    {"threshold:ratio=1", "only at, result, ef"},
    {"randomk:unbiased=1,ef=1", "error grow without bound; use unbiased=0 or ef=0"},
    {"randomk:unbiased=2", "unbiased is \"2\""},
    {"blocks:block=12", "block is \"12\", it must be a multiple of 8 from 8 to 65536"},
    {"blocks:k=3", "\"blocks\" has no parameter \"k\""},
    {"adacomp+f16", "nothing can follow \"adacomp\", which encodes the values"},
    {"topk+adacomp", "\"adacomp\" does not encode values"},
    {"adacomp:bin=0", "bin is \"0\", it must be a whole number from 1 to 65536"},
    {"adacomp:factor=0.5", "factor is \"0.5\", it must be a number from 1 to 100"},
    {"adacomp:ratio=0.1", "only bin, factor, result, ef"},
    {"qsgd:bits=1", "bits is \"1\", it must be a whole number from 2 to 8"},
    {"qsgd:bits=9", "bits is \"9\""},
    {"qsgd:bucket=12", "bucket is \"12\", it must be a multiple of 8 from 8 to 65536"},
    {"qsgd:norm=l2,ef=1", "error grow without bound"},
    {"dither:bits=2,norm=l2,ef=1", "error grow without bound"},
    {"topk+qsgd:norm=l2", "error grow without bound"},
    {"topk+qsgd:ef=1", "\"qsgd\" has no parameter \"ef\""},
    {"natural:round=up", "round is \"up\", it must be random or nearest"},
    {"qsgd:norm=l3", "norm is \"l3\", it must be l2 or max"},
    {"qsgd:ef=2", "ef is \"2\""},
};

TEST(test_good)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct trib_codec *c = codec_new(good[i].text, NULL);
        assert_string_equal(trib_codec_info(c)->text, good[i].canonical);
        /* the canonical text is a text, and its own canonical text */
        struct trib_codec *again = codec_new(trib_codec_info(c)->text, NULL);
        assert_string_equal(trib_codec_info(again)->text, good[i].canonical);
        assert_int_equal(trib_codec_info(again)->digest, trib_codec_info(c)->digest);
        trib_codec_destroy(again);
        trib_codec_destroy(c);
    }
}

TEST(test_bad)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct trib_error err = {0};
        struct trib_codec *c = NULL;
        assert_status(trib_codec_create(bad[i].text, NULL, &err, &c), TRIB_ERR_CODEC);
        assert_null(c);
        if (!strstr(trib_error_text(&err), bad[i].says))
            fail_msg("%s: \"%s\" does not say %s", bad[i].text, trib_error_text(&err),
                     bad[i].says);
        assert_status(trib_codec_create(bad[i].text, NULL, NULL, &c), TRIB_ERR_CODEC);
    }
}

TEST(test_null_and_long)
{
    struct trib_error err = {0};
    struct trib_codec *c = NULL;
    char text[1000];
    assert_status(trib_codec_create(NULL, NULL, &err, &c), TRIB_ERR_CODEC);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    trib_error_clear(&err);
    assert_status(trib_codec_create(text, NULL, &err, &c), TRIB_ERR_CODEC);
    assert_non_null(strstr(trib_error_text(&err), "999 characters"));
}

/* A locale with a decimal comma must not change the name of a codec. */
TEST(test_locale)
{
    static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", NULL};
    int i = 0;
    while (commas[i] && !setlocale(LC_ALL, commas[i]))
        i++;
    if (!commas[i])
        tribtest_skip("no locale with a decimal comma is installed");
    test_good(NULL);
    setlocale(LC_ALL, "C");
}
