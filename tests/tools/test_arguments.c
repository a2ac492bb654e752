/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/coll/arguments.h"
#include "tests/tools/parse.h"
#include "tools/common/options.h"


static int parse_coll(int argc, char **argv, FILE *err, void *args)
{
    return perf_args_parse(argc, argv, err, args);
}

static void parse(const char *line, struct perf_args *args)
{
    assert_taken(line, parse_coll, args);
}

static void assert_refused(const char *line, const char *words)
{
    struct perf_args args;

    assert_refused_by(line, parse_coll, &args, words);
}

TEST(test_defaults)
{
    struct perf_args args;

    parse("allreduce", &args);
    assert_int_equal(args.coll, TRIB_ALLREDUCE);
    assert_int_equal(args.dtype, TRIB_F32);
    assert_int_equal(args.op, TRIB_SUM);
    assert_int_equal(args.sizes.n, 12);
    assert_int_equal(args.sizes.bytes[11], 32 << 20);
    assert_int_equal(args.call, PERF_CALL_BLOCKING);
    assert_int_equal(args.ranks, 0);
    assert_int_equal(args.bind, TOOL_BIND_AUTO);
    assert_string_equal(perf_codec_text(&args), "none");
    assert_true(args.density == 1.0);
    perf_args_free(&args);
}

TEST(test_density)
{
    struct perf_args args;

    parse("allreduce --density 0.25", &args);
    assert_true(args.density == 0.25 && !args.same_blocks);
    perf_args_free(&args);
    parse("allreduce --density 0.25,same", &args);
    assert_true(args.density == 0.25 && args.same_blocks);
    perf_args_free(&args);
    assert_refused("allreduce --density 0", "above 0 and up to 1");
    assert_refused("allreduce --density 1.5", "above 0 and up to 1");
    assert_refused("allreduce --density nan", "above 0 and up to 1");
    assert_refused("allreduce --density 0.5,sam", "above 0 and up to 1");
    assert_refused("barrier --density 0.5",
                   "leave out --sizes, --dtype, --op, --density");
}

TEST(test_all)
{
    struct perf_args args;

    parse("reduce-scatter -n 3 --sizes=16,32 --dtype f64 --op max --iters 7 --warmup 0 "
          "--memory register --in-place --check --rewrite",
          &args);
    assert_int_equal(args.coll, TRIB_REDUCE_SCATTER);
    assert_int_equal(args.ranks, 3);
    assert_int_equal(args.sizes.n, 2);
    assert_int_equal(args.sizes.bytes[1], 32);
    assert_int_equal(args.dtype, TRIB_F64);
    assert_int_equal(args.op, TRIB_MAX);
    assert_int_equal(args.iters, 7);
    assert_int_equal(args.warmup, 0);
    assert_int_equal(args.memory, PERF_MEMORY_REGISTER);
    assert_true(args.in_place && args.check && args.rewrite && !args.sync);
    perf_args_free(&args);
}

/* Blocking calls do not accept a codec: naming one makes the call a plan. */
TEST(test_plan)
{
    struct perf_args args;

    parse("allreduce --codec none --bind core", &args);
    assert_int_equal(args.call, PERF_CALL_PLAN);
    assert_int_equal(args.bind, TOOL_BIND_CORE);
    perf_args_free(&args);
    parse("reduce --root 1 --op max", &args);
    assert_int_equal(args.root, 1);
    perf_args_free(&args);
    parse("broadcast", &args);
    assert_int_equal(args.root, 0);
    perf_args_free(&args);
    parse("barrier", &args);
    assert_int_equal(args.sizes.n, 1);
    assert_int_equal(args.sizes.bytes[0], 0);
    perf_args_free(&args);
}

TEST(test_refused)
{
    assert_refused("", "no collective: name one");
    assert_refused("allreduc", "did you mean allreduce?");
    assert_refused("allreduce reduce", "one collective at a time");
    assert_refused("allreduce --sises 8", "did you mean --sizes?");
    assert_refused("allreduce --zzzzzzzz", "see trib-perf --help");
    assert_refused("allreduce --dtype f33", "did you mean f32?");
    assert_refused("allreduce --dtype quaternion", "Choose from f32, f64");
    assert_refused("allreduce --op summ", "did you mean sum?");
    assert_refused("allreduce --memory mallox", "did you mean malloc?");
    assert_refused("allreduce --algorithm rink", "unknown algorithm 'rink'");
    assert_refused("allreduce --codec nonsense", "--codec 'nonsense' is invalid: ");
    assert_refused("allreduce --feedback ef14", "codec none");
    assert_refused("allreduce --codec topk --feedback ef41", "did you mean");
    assert_refused("allgather --codec topk --feedback ef14", "leave out --feedback");
    assert_refused("allreduce --sizes 10", "10 bytes are not a whole number of f32");
    assert_refused("allreduce --sizes 8,y", "'y': a size is");
    assert_refused("allreduce --iters 0", "at least 1");
    assert_refused("allreduce --iters many", "whole number");
    assert_refused("allreduce --iters", "needs a value: N");
    assert_refused("allreduce --check=yes", "takes no value");
    assert_refused("allreduce --sample 10", "such as 50ms");
    assert_refused("allreduce --chunk 0", "such as 256K");
    assert_refused("allreduce -n 0", "from 1 to 4096");
    assert_refused("allreduce --ranks=4097", "from 1 to 4096");
    assert_refused("reduce -n 2 --root 2", "the ranks are 0 to 1");
    assert_refused("barrier --sizes 8", "a barrier moves no data");
    assert_refused("barrier --op max", "a barrier moves no data");
    assert_refused("barrier --in-place", "a barrier moves no data");
    assert_refused("barrier --root 0", "barrier has no root");
    assert_refused("allreduce --root 1", "allreduce has no root");
    assert_refused("allgather -n 2 --root 0", "allgather has no root");
    assert_refused("broadcast --op max", "broadcast sums nothing: leave out --op");
    assert_refused("allgather --op sum", "allgather sums nothing");
    assert_refused("allreduce --codec none --call blocking", "use --call plan");
    assert_refused("allreduce --csv - --json -", "cannot both write");
}
