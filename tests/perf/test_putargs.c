/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/tools/parse.h"

#include "perf/put/put.h"

static int parse_put(int argc, char **argv, FILE *err, void *args)
{
    return put_args_parse(argc, argv, err, args);
}

static void assert_refused(const char *line, const char *words)
{
    struct put_args args;

    assert_refused_by(line, parse_put, &args, words);
}

TEST(test_defaults)
{
    struct put_args args;

    assert_taken("put", parse_put, &args);
    assert_null(args.listen);
    assert_null(args.remote);
    assert_null(args.transport);
    assert_int_equal(args.sizes.n, 7);
    assert_int_equal(args.sizes.bytes[6], 2 << 20);
    assert_int_equal(args.depth, 64);
    assert_int_equal(args.iters, 0);
    assert_true(args.latency && args.bandwidth);
    assert_false(args.bidirectional || args.check);
    assert_int_equal(args.bind, TOOL_BIND_AUTO);
    put_args_free(&args);
}

TEST(test_all)
{
    struct put_args args;

    assert_taken("put host1:7100 --transport tcp+delay:us=5 --sizes=8,64K --iters 9 "
                 "--depth 3 --bidirectional --bandwidth --bind core --check --csv a "
                 "--json b",
                 parse_put, &args);
    assert_string_equal(args.remote, "host1:7100");
    assert_string_equal(args.transport, "tcp+delay:us=5");
    assert_int_equal(args.sizes.n, 2);
    assert_int_equal(args.sizes.bytes[1], 65536);
    assert_int_equal(args.iters, 9);
    assert_int_equal(args.depth, 3);
    assert_true(args.bidirectional && args.bandwidth && args.check && !args.latency);
    assert_int_equal(args.bind, TOOL_BIND_CORE);
    assert_string_equal(args.csv, "a");
    assert_string_equal(args.json, "b");
    put_args_free(&args);
}

TEST(test_listen)
{
    struct trib_tcp_root where;
    struct put_args args;

    assert_taken("put --listen 7100", parse_put, &args);
    assert_string_equal(args.listen, "7100");
    assert_taken("put --listen=[::1]:7100", parse_put, &args);
    assert_true(put_listen_text("7100", &where));
    assert_string_equal(where.port, "7100");
    assert_true(put_listen_text("[::1]:7100", &where));
    assert_string_equal(where.host, "::1");
    assert_false(put_listen_text("", &where));
    assert_false(put_listen_text("0", &where));
    assert_false(put_listen_text("65536", &where));
    assert_false(put_listen_text("port", &where));
}

TEST(test_refused)
{
    assert_refused("put --sises 8", "did you mean --sizes? See trib-perf put --help");
    assert_refused("put --sizes 8,y", "'y': a size is");
    assert_refused("put --sizes 65G", "more than 64 GiB");
    assert_refused("put --iters 0", "at least 1");
    assert_refused("put --depth 0", "from 1 to 4096");
    assert_refused("put --depth 5000", "from 1 to 4096");
    assert_refused("put --bind cores", "did you mean core?");
    assert_refused("put --latency --bidirectional", "leave out --latency");
    assert_refused("put host1", "HOST:PORT");
    assert_refused("put host1:0", "HOST:PORT");
    assert_refused("put a:1 b:2", "one server at a time");
    assert_refused("put a:1 --listen 7100", "server or client");
    assert_refused("put --listen x", "[HOST:]PORT");
    assert_refused("put --listen 7100 --check", "give them to the client");
    assert_refused("put --check --listen 7100", "give them to the client");
    assert_refused("put --csv x --json x", "cannot both write to x");
    assert_refused("put --check=yes", "takes no value");
    assert_refused("put --transport", "needs a value: TEXT");
}
