/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/boot/boottest.h"

#include "base/sockets.h"
#include "boot/tcp/tcp_proto.h"

static trib_status_t try_open(int rank, int size, const char *root,
                              struct trib_error *err)
{
    struct trib_config cfg = {.boot_timeout_ms = 200, .stop_timeout_ms = 100};
    struct trib_boot_opts opts = {
        .rank = rank, .size = size, .root = root, .cfg = &cfg, .err = err};
    struct trib_boot *b = NULL;
    trib_status_t status = trib_boot_open(&opts, &b);

    if (status == TRIB_OK)
        b->ops->close(b);
    else
        assert_null(b);
    return status;
}

TEST(test_errors_teach)
{
    static const struct {
        int rank;
        int size;
        const char *root;
        const char *part;
    } cases[] = {
        {0, 0, NULL, "set TRIB_SIZE to 1 or more"},
        {4, 4, "localhost:1", "set TRIB_RANK to a number from 0 to 3"},
        {-1, 4, "localhost:1", "set TRIB_RANK to a number from 0 to 3"},
        {2, 4, NULL, "start the ranks with trib-run, or set TRIB_ROOT=host:port"},
        {2, 4, "", "start the ranks with trib-run, or set TRIB_ROOT=host:port"},
        {2, 4, "localhost", "it must be host:port"},
        {2, 4, "localhost:", "it must be host:port"},
        {2, 4, "localhost:0", "it must be host:port"},
        {2, 4, "localhost:65536", "it must be host:port"},
        {2, 4, "localhost:12x", "it must be host:port"},
        {2, 4, ":12", "it must be host:port"},
        {2, 4, "fe80::1:12", "it must be host:port"},
        {2, 4, "tcp://localhost:12", "it must be host:port"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct trib_error err = {0};
        assert_status(try_open(cases[i].rank, cases[i].size, cases[i].root, &err),
                      TRIB_ERR_CONFIG);
        if (!strstr(err.text, cases[i].part))
            fail_msg("case %zu: \"%s\"", i, err.text);
    }
}

TEST(test_alone)
{
    struct trib_error err = {0};
    struct trib_boot_opts opts = {.size = 1, .err = &err};
    struct trib_boot *b;
    int in = 7;
    int out = 0;

    assert_status(trib_boot_open(&opts, &b), TRIB_OK);
    assert_string_equal(b->ops->name, "self");
    assert_status(b->ops->allgather(b, "address", &in, sizeof(in), &out), TRIB_OK);
    assert_int_equal(out, 7);
    assert_status(b->ops->allgather(b, "ready", NULL, 0, NULL), TRIB_OK);
    (b->ops->fail)(b, "nobody hears it");
    b->ops->close(b);
}

TEST(test_roots)
{
    struct trib_tcp_root root;

    assert_true(trib_tcp_root_parse("node-7.example:4711", &root));
    assert_string_equal(root.host, "node-7.example");
    assert_string_equal(root.port, "4711");
    assert_true(trib_tcp_root_parse("[fe80::1%eth0]:65535", &root));
    assert_string_equal(root.host, "fe80::1%eth0");
    assert_string_equal(root.also, "");
    assert_true(trib_tcp_root_parse("node7,10.0.0.1,[fd77::1]:4711", &root));
    assert_string_equal(root.host, "node7");
    assert_string_equal(root.also, "10.0.0.1,fd77::1");
    assert_string_equal(root.port, "4711");
    assert_false(trib_tcp_root_parse("node7,:4711", &root));
    assert_false(trib_tcp_root_parse(",node7:4711", &root));
    assert_false(trib_tcp_root_parse("node7,fd77::1:4711", &root));
    assert_false(trib_tcp_root_parse("local:/proc/1/fd/3", &root));
    assert_false(trib_tcp_root_parse("", &root));
    assert_false(trib_tcp_root_parse("[]:1", &root));
    assert_false(trib_tcp_root_parse("a:+1", &root));
}

TEST(test_tables_are_full)
{
    for (size_t i = 0; trib_boots[i]; i++) {
        const struct trib_boot_ops *ops = trib_boots[i];
        assert_true(ops->name && ops->detail && ops->accepts && ops->open &&
                    ops->allgather && ops->fail && ops->close);
    }
}

TEST(test_rank_lists)
{
    bool missing[200] = {false};
    char text[64];

    missing[3] = true;
    assert_string_equal(trib_ranks_format(missing, 8, text, sizeof(text)), "rank 3");
    missing[5] = missing[6] = missing[7] = true;
    assert_string_equal(trib_ranks_format(missing, 8, text, sizeof(text)),
                        "ranks 3, 5-7");
    for (int i = 0; i < 200; i += 2)
        missing[i] = true, missing[i + 1] = false;
    trib_ranks_format(missing, 200, text, sizeof(text));
    assert_true(strlen(text) < sizeof(text));
    assert_string_equal(text + strlen(text) - 5, ", ...");
}

TEST(test_frames_round_trip)
{
    uint8_t bytes[TRIB_TCP_SMALL_BYTES];
    struct trib_tcp_frame frame;
    size_t used;
    struct trib_tcp_hello hello = {.size = 3,
                                   .who = {2, 4711, "node\x01"},
                                   .library = "1.2",
                                   .has_secret = true,
                                   .nonce = {3, 1, 4}};
    struct trib_tcp_hello hello2;
    struct trib_tcp_failure failure = {TRIB_ERR_MISMATCH, "they differ"};
    struct trib_tcp_failure failure2;
    size_t n = trib_tcp_put_hello(bytes, TRIB_TCP_HELLO, &hello);

    for (size_t part = 0; part < n; part++)
        assert_status(trib_tcp_parse(bytes, part, 0, &frame, &used), TRIB_INPROGRESS);
    assert_status(trib_tcp_parse(bytes, n, 0, &frame, &used), TRIB_OK);
    assert_int_equal(used, n);
    assert_status(trib_tcp_parse_hello(&frame, &hello2), TRIB_OK);
    assert_int_equal(hello2.size, 3);
    assert_int_equal(hello2.who.rank, 2);
    assert_int_equal(hello2.who.pid, 4711);
    assert_string_equal(hello2.who.host, "node?");
    assert_string_equal(hello2.library, "1.2");
    assert_true(hello2.has_secret);
    assert_memory_equal(hello2.nonce, hello.nonce, sizeof(hello.nonce));

    struct trib_challenge challenge = {{1}, {2}}, challenge2;
    n = trib_tcp_put_challenge(bytes, &challenge);
    assert_status(trib_tcp_parse(bytes, n, 0, &frame, &used), TRIB_OK);
    assert_status(trib_tcp_parse_challenge(&frame, &challenge2), TRIB_OK);
    assert_memory_equal(&challenge, &challenge2, sizeof(challenge));
    n = trib_tcp_put_proof(bytes, challenge.proof);
    assert_status(trib_tcp_parse(bytes, n, 0, &frame, &used), TRIB_OK);
    assert_int_equal(frame.kind, TRIB_TCP_PROOF);

    n = trib_tcp_put_fail(bytes, &failure);
    assert_status(trib_tcp_parse(bytes, n, 0, &frame, &used), TRIB_OK);
    assert_status(trib_tcp_parse_fail(&frame, &failure2), TRIB_OK);
    assert_status(failure2.status, TRIB_ERR_MISMATCH);
    assert_string_equal(failure2.text, "they differ");
    assert_status(trib_tcp_parse_hello(&frame, &hello2), TRIB_ERR_PROTOCOL);
}

TEST(test_bad_frames)
{
    static const struct {
        const char *bytes;
        size_t n;
        trib_status_t status;
    } cases[] = {
        {"G", 1, TRIB_ERR_PROTOCOL},
        {"Tric", 4, TRIB_ERR_PROTOCOL},
        {"Trib\3", 5, TRIB_ERR_UNSUPPORTED},
        {"Trib\4\1\1\0\0\0\0\0\145\0\0\0", 16, TRIB_ERR_PROTOCOL}, /* reserved */
        {"Trib\4\1\0\0\0\0\0\0\144\0\0\0", 16, TRIB_ERR_PROTOCOL}, /* hello too short */
        {"Trib\4\3\0\0\0\0\0\0\0\0\1\0", 16, TRIB_ERR_PROTOCOL}, /* blob too long */
        {"Trib\4\3\0\0\0\0\0\0\27\0\0\0", 16, TRIB_ERR_PROTOCOL}, /* invalid phase */
        {"Trib\4\4\0\0\0\0\0\0\1\0\0\0", 16, TRIB_ERR_PROTOCOL}, /* unexpected result */
        {"Trib\4\5\0\0\0\0\0\0\3\0\0\0", 16, TRIB_ERR_PROTOCOL}, /* invalid status */
        {"Trib\4\6\0\0\0\0\0\0\1\0\0\0", 16, TRIB_ERR_PROTOCOL}, /* tick with payload */
        {"Trib\4\7\0\0\0\0\0\0\60\0\0\0", 16, TRIB_INPROGRESS}, /* a challenge */
        {"Trib\4\7\0\0\0\0\0\0\57\0\0\0", 16, TRIB_ERR_PROTOCOL}, /* too short */
        {"Trib\4\10\0\0\0\0\0\0\41\0\0\0", 16, TRIB_ERR_PROTOCOL}, /* proof too long */
        {"Trib\4\11\0\0\0\0\0\0\0\0\0\0", 16, TRIB_ERR_PROTOCOL}, /* invalid kind */
        {"Trib\4\0\0\0\0\0\0\0\0\0\0\0", 16, TRIB_ERR_PROTOCOL},
        {"Trib\4\5\0\0\0\0\0\0\4\0\0\0", 16, TRIB_INPROGRESS},
    };
    struct trib_tcp_frame frame;
    size_t used;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        trib_status_t status = trib_tcp_parse((const uint8_t *)cases[i].bytes,
                                              cases[i].n, 0, &frame, &used);
        if (status != cases[i].status)
            fail_msg("case %zu: %s", i, trib_status_name(status));
    }
}
