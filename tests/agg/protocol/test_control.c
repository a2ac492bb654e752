/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/protocol/control_conn.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/harness/tribtest.h"

#define NONCE " !\"#$%&'()*+,-./0123456789:;<=>?"

struct golden {
    struct trib_control message;
    const char *hex;
};

/* One message of each kind, with its bytes by agg/protocol/control.def: written by
 * hand, not generated. */
static const struct golden golden[] = {
    {{.kind = TRIB_CONTROL_HELLO,
      .hello = {.version_min = 1,
                .version_max = 3,
                .methods = 12,
                .nonce = NONCE,
                .job = "train-7",
                .library = "0.1.0"}},
     "54726243010100003600000001030c000000202122232425262728292a2b2c2d"
     "2e2f303132333435363738393a3b3c3d3e3f0700747261696e2d370500302e31"
     "2e30"},
    {{.kind = TRIB_CONTROL_WELCOME,
      .welcome = {.version = 1,
                  .method = 3,
                  .methods = 8,
                  .nonce = NONCE,
                  .library = "0.1.0"}},
     "54726243010200002d000000010308000000202122232425262728292a2b2c2d"
     "2e2f303132333435363738393a3b3c3d3e3f0500302e312e30"},
    {{.kind = TRIB_CONTROL_AUTH,
      .auth = {.step = TRIB_CONTROL_PROOF, .data = {(const uint8_t *)"abc", 3}}},
     "54726243010300000400000002616263"},
    {{.kind = TRIB_CONTROL_JOIN,
      .join = {.ranks = 4,
               .aggregators = 2,
               .aggregator = 1,
               .weight = 1,
               .slots = 64,
               .bytes = UINT64_C(1) << 32,
               .deadline_ms = 5000,
               .job = "train-7",
               .user = "ann",
               .settings = "chunk=64K",
               .tree = {(const uint8_t *)"via", 3}}},
     "54726243010400003c0000000700747261696e2d370300616e6e040000000200"
     "000001000000010000004000000000000000010000008813000009006368756e"
     "6b3d36344b766961"},
    {{.kind = TRIB_CONTROL_ADMITTED,
      .admitted = {.slots = 64, .bytes = UINT64_C(1) << 32}},
     "54726243010500000c000000400000000000000001000000"},
    {{.kind = TRIB_CONTROL_QUEUED, .queued = {.position = 2, .text = "a waits"}},
     "54726243010600000d00000002000000070061207761697473"},
    {{.kind = TRIB_CONTROL_REFUSED, .said.text = "full"},
     "547262430107000006000000040066756c6c"},
    {{.kind = TRIB_CONTROL_BLOBS,
      .blobs = {1, 6, 4, 2, 3, {(const uint8_t *)"uvwxyz", 6}}},
     "54726243010800001a0000000100000006000000040000000200000003000000"
     "75767778797a"},
    {{.kind = TRIB_CONTROL_PLAN, .plan = {.number = 7, .text = "sum f32"}},
     "54726243010900000d00000007000000070073756d20663332"},
    {{.kind = TRIB_CONTROL_PLAN_OK, .answer.number = 7},
     "54726243010a00000400000007000000"},
    {{.kind = TRIB_CONTROL_PLAN_REFUSED, .answer = {.number = 7, .text = "no"}},
     "54726243010b0000080000000700000002006e6f"},
    {{.kind = TRIB_CONTROL_DRAIN}, "54726243010c000000000000"},
    {{.kind = TRIB_CONTROL_GOODBYE, .said.text = "done"},
     "54726243010d0000060000000400646f6e65"},
    {{.kind = TRIB_CONTROL_ALIVE}, "54726243010e000000000000"},
    {{.kind = TRIB_CONTROL_ERROR, .said.text = "why"},
     "54726243010f0000050000000300776879"},
    {{.kind = TRIB_CONTROL_STORE_JOIN,
      .store_join = {.token = NONCE,
                     .ranks = 4,
                     .rank = 3,
                     .again = 1,
                     .owner = NONCE,
                     .lasting = 1,
                     .every_pushes = 7,
                     .every_ms = 260}},
     "54726243011000005600000020212223"
     "2425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f040000000300000001"
     "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f01"
     "070000000000000004010000"},
    {{.kind = TRIB_CONTROL_STORE_JOINED}, "547262430111000000000000"},
    {{.kind = TRIB_CONTROL_STORE_OPEN,
      .store_open = {.name = "w1", .dtype = 2, .count = 259, .rule = "sum"}},
     "54726243011200001200000002007731020301000000000000030073756d"},
    {{.kind = TRIB_CONTROL_STORE_VECTOR, .store_state = {5, 258, 257, 3}},
     "54726243011300001c000000050000000201000000000000"
     "01010000000000000300000000000000"},
    {{.kind = TRIB_CONTROL_STORE_PUSH,
      .store_push =
          {5, TRIB_CONTROL_PUSH_GIVE, 7, 0, 256, {(const uint8_t *)"abc", 3}}},
     "5472624301140000200000000500000002070000000000000000000000000000"
     "000001000000000000616263"},
    {{.kind = TRIB_CONTROL_STORE_PULL, .store_pull = {5, 1, 2, 3, 4, 260}},
     "547262430115000024000000050000000100000000000000"
     "020000000000000003000000000000000400000004010000"},
    {{.kind = TRIB_CONTROL_STORE_DATA,
      .store_data = {5, 256, {(const uint8_t *)"abc", 3}}},
     "54726243011600000f000000050000000001000000000000616263"},
    {{.kind = TRIB_CONTROL_STORE_DONE, .store_state = {5, 258, 257, 3}},
     "54726243011700001c000000050000000201000000000000"
     "01010000000000000300000000000000"},
    {{.kind = TRIB_CONTROL_STORE_REFUSED, .store_refused = {20, "no"}},
     "547262430118000005000000140200"
     "6e6f"},
    {{.kind = TRIB_CONTROL_STORE_INDEX,
      .store_index = {5, 258, 8, {(const uint8_t *)"abcd", 4}}},
     "54726243011900001800000005000000020100000000000008000000000000006162"
     "6364"},
    {{.kind = TRIB_CONTROL_STORE_CODEC, .store_codec = {5, 259, "bf16"}},
     "54726243011a0000120000000500000003010000000000000400626631"
     "36"},
    {{.kind = TRIB_CONTROL_STORE_SNAPSHOT,
      .store_snapshot = {5, TRIB_CONTROL_SNAPSHOT_RESTORE}},
     "54726243011b0000050000000500000002"},
};

#define N_GOLDEN (sizeof(golden) / sizeof(golden[0]))

static size_t from_hex(const char *hex, uint8_t *out)
{
    size_t n = strlen(hex) / 2;

    for (size_t i = 0; i < n; i++) {
        unsigned value = 0;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &value), 1);
        out[i] = (uint8_t)value;
    }
    return n;
}

/* Copy the message of a kind from `golden`. */
static void fill(enum trib_control_kind kind, struct trib_control *m)
{
    size_t i = 0;

    while (golden[i].message.kind != kind)
        i++;
    *m = golden[i].message;
}

static enum trib_control_role sender(enum trib_control_kind kind)
{
    return kind == TRIB_CONTROL_HELLO || kind == TRIB_CONTROL_JOIN ||
                   kind == TRIB_CONTROL_PLAN || kind == TRIB_CONTROL_STORE_JOIN ||
                   kind == TRIB_CONTROL_STORE_OPEN || kind == TRIB_CONTROL_STORE_PUSH ||
                   kind == TRIB_CONTROL_STORE_PULL ||
                   kind == TRIB_CONTROL_STORE_INDEX ||
                   kind == TRIB_CONTROL_STORE_CODEC ||
                   kind == TRIB_CONTROL_STORE_SNAPSHOT
               ? TRIB_CONTROL_JOB
               : TRIB_CONTROL_AGGREGATOR;
}

static trib_status_t read_one(const uint8_t *bytes, size_t n,
                              enum trib_control_role from, struct trib_control *out)
{
    struct trib_control_frame frame;
    trib_status_t status = trib_control_parse(bytes, n, 0, from, &frame);

    return status == TRIB_OK
               ? trib_control_get(frame.kind, frame.payload, frame.length, out)
               : status;
}

/* Messages ------------------------------------------------------------------------- */

/* Return the bytes stored separately; NULL: none. */
static struct trib_control_bytes *rest_of(struct trib_control *m)
{
    switch (m->kind) {
    case TRIB_CONTROL_AUTH:
        return &m->auth.data;
    case TRIB_CONTROL_BLOBS:
        return &m->blobs.data;
    case TRIB_CONTROL_JOIN:
        return &m->join.tree;
    case TRIB_CONTROL_STORE_PUSH:
        return &m->store_push.data;
    case TRIB_CONTROL_STORE_DATA:
        return &m->store_data.data;
    case TRIB_CONTROL_STORE_INDEX:
        return &m->store_index.data;
    default:
        return NULL;
    }
}

TEST(test_golden)
{
    uint8_t expected[256];
    uint8_t bytes[256];

    assert_int_equal(N_GOLDEN, TRIB_CONTROL_KINDS - 1);
    for (size_t i = 0; i < N_GOLDEN; i++) {
        struct trib_control m;
        struct trib_control got;
        size_t used = 0;
        size_t n = from_hex(golden[i].hex, expected);
        m = golden[i].message;
        assert_ok(trib_control_put(&m, bytes, sizeof(bytes), &used));
        assert_int_equal(used, n);
        assert_memory_equal(bytes, expected, n);
        assert_ok(read_one(expected, n, sender(m.kind), &got));
        struct trib_control_bytes *data = rest_of(&got);
        if (data) {
            const struct trib_control_bytes *sent = rest_of(&m);
            assert_int_equal(data->n, sent->n);
            assert_memory_equal(data->at, sent->at, sent->n);
            data->at = sent->at;
        }
        assert_memory_equal(&got, &m, sizeof(m));
    }
}

/* A truncated message asks for the missing bytes and never reads them. */
TEST(test_cut_at_every_byte)
{
    uint8_t bytes[256];
    struct trib_control_frame frame;
    struct trib_control m;

    for (size_t i = 0; i < N_GOLDEN; i++) {
        enum trib_control_kind kind = golden[i].message.kind;
        size_t n = from_hex(golden[i].hex, bytes);
        for (size_t cut = 0; cut < n; cut++) {
            uint8_t *exact = malloc(cut ? cut : 1);
            memcpy(exact, bytes, cut);
            assert_status(trib_control_parse(exact, cut, 0, sender(kind), &frame),
                          TRIB_INPROGRESS);
            /* A shorter credential is valid, too, and so are a shorter tree and fewer
             * elements. */
            const size_t shortest = kind == TRIB_CONTROL_JOIN          ? n - 3
                                    : kind == TRIB_CONTROL_STORE_PUSH  ? n - 3
                                    : kind == TRIB_CONTROL_STORE_DATA  ? n - 2
                                    : kind == TRIB_CONTROL_STORE_INDEX ? n - 4
                                                                       : n;
            if (cut >= TRIB_CONTROL_HEAD_BYTES && cut < shortest &&
                kind != TRIB_CONTROL_AUTH)
                assert_status(trib_control_get(kind, exact + TRIB_CONTROL_HEAD_BYTES,
                                               cut - TRIB_CONTROL_HEAD_BYTES, &m),
                              TRIB_ERR_PROTOCOL);
            free(exact);
        }
    }
}

TEST(test_malformed)
{
    static const struct {
        const char *what;
        enum trib_control_role from;
        trib_status_t status;
        const char *hex;
    } rows[] = {
        {"magic", 2, TRIB_ERR_PROTOCOL, "54726944010e000000000000"},
        {"first byte", 2, TRIB_ERR_PROTOCOL, "47"},
        {"framing", 2, TRIB_ERR_UNSUPPORTED, "5472624302"},
        {"kind 0", 2, TRIB_ERR_PROTOCOL, "547262430100000000000000"},
        {"kind 16", 2, TRIB_ERR_PROTOCOL, "547262430110000000000000"},
        {"not zero", 2, TRIB_ERR_PROTOCOL, "54726243010e000100000000"},
        {"length of ALIVE", 2, TRIB_ERR_PROTOCOL, "54726243010e000001000000"},
        {"length of ERROR", 2, TRIB_ERR_PROTOCOL, "54726243010f0000ffffffff"},
        {"length below", 2, TRIB_ERR_PROTOCOL, "54726243010f000001000000"},
        {"JOIN of an aggregator", 2, TRIB_ERR_PROTOCOL, "547262430104000039000000"},
        {"ADMITTED of a job", 1, TRIB_ERR_PROTOCOL, "54726243010500000c000000"},
        {"text beyond", 2, TRIB_ERR_PROTOCOL, "54726243010f0000050000000400776879"},
        {"text left over", 2, TRIB_ERR_PROTOCOL, "54726243010f0000050000000200776879"},
        {"escape", 2, TRIB_ERR_PROTOCOL, "54726243010f0000050000000300771b79"},
        {"zero in text", 2, TRIB_ERR_PROTOCOL, "54726243010f0000050000000300770079"},
        {"line feed", 2, TRIB_ERR_PROTOCOL, "54726243010f0000050000000300770a79"},
        {"step 0", 2, TRIB_ERR_PROTOCOL, "54726243010300000400000000616263"},
        {"step 3", 2, TRIB_ERR_PROTOCOL, "54726243010300000400000003616263"},
        {"0 slots", 2, TRIB_ERR_PROTOCOL,
         "54726243010500000c000000000000000000000001000000"},
        {"bytes below 0", 2, TRIB_ERR_PROTOCOL,
         "54726243010500000c000000400000000000000001000080"},
        {"count of blobs", 1, TRIB_ERR_PROTOCOL,
         "54726243010800001a00000001000000060000000400000003000000020000007576"
         "7778797a"},
        {"bytes of blobs", 1, TRIB_ERR_PROTOCOL,
         "54726243010800001a00000001000000060000000400000002000000020000007576"
         "7778797a"},
        {"blobs that wrap", 1, TRIB_ERR_PROTOCOL,
         "54726243010800001a00000001000000060000000400000002000000030000807576"
         "7778797a"},
    };
    uint8_t bytes[256];
    struct trib_control m;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t n = from_hex(rows[i].hex, bytes);
        trib_status_t status = read_one(bytes, n, rows[i].from, &m);
        if (status != rows[i].status)
            fail_msg("%s: %s", rows[i].what, trib_status_name(status));
    }
}

/* A message that a reader would refuse cannot be written. */
TEST(test_limits)
{
    static uint8_t bytes[TRIB_CONTROL_FRAME_BYTES];
    struct trib_control m;
    size_t used = 0;

#define REFUSED(kind, ...) \
    do { \
        fill(kind, &m); \
        __VA_ARGS__; \
        assert_status(trib_control_put(&m, bytes, sizeof(bytes), &used), \
                      TRIB_ERR_INVALID); \
    } while (0)
    REFUSED(TRIB_CONTROL_HELLO, m.hello.version_min = 4);
    REFUSED(TRIB_CONTROL_HELLO, m.hello.version_max = 256);
    REFUSED(TRIB_CONTROL_HELLO, m.hello.methods = 0);
    REFUSED(TRIB_CONTROL_HELLO, m.hello.job[0] = '\0');
    REFUSED(TRIB_CONTROL_HELLO, m.hello.job[2] = ' ');
    REFUSED(TRIB_CONTROL_HELLO, memset(m.hello.job, 'x', sizeof(m.hello.job)));
    REFUSED(TRIB_CONTROL_WELCOME, m.welcome.method = 32);
    REFUSED(TRIB_CONTROL_AUTH, m.auth.data.n = TRIB_CONTROL_AUTH_MAX + 1);
    REFUSED(TRIB_CONTROL_AUTH, m.auth.data.n = 0);
    REFUSED(TRIB_CONTROL_JOIN, m.join.ranks = 0);
    REFUSED(TRIB_CONTROL_JOIN, m.join.ranks = TRIB_CONTROL_RANKS_MAX + 1);
    REFUSED(TRIB_CONTROL_JOIN, m.join.aggregator = 2);
    REFUSED(TRIB_CONTROL_JOIN, m.join.aggregators = TRIB_CONTROL_AGGREGATORS_MAX + 1);
    REFUSED(TRIB_CONTROL_JOIN, m.join.slots = 0);
    REFUSED(TRIB_CONTROL_JOIN, m.join.bytes = UINT64_MAX);
    REFUSED(TRIB_CONTROL_JOIN, m.join.deadline_ms = 86400001);
    REFUSED(TRIB_CONTROL_JOIN, m.join.tree.n = TRIB_CONTROL_TREE_MAX + 1);
    REFUSED(TRIB_CONTROL_JOIN, memset(m.join.settings, 'x', sizeof(m.join.settings)));
    REFUSED(TRIB_CONTROL_BLOBS, m.blobs.total = 5);
    REFUSED(TRIB_CONTROL_BLOBS, m.blobs.first = UINT32_MAX);
    REFUSED(TRIB_CONTROL_BLOBS, m.blobs.each = 2);
    REFUSED(TRIB_CONTROL_BLOBS, m.blobs.each = TRIB_CONTROL_BLOB_MAX + 1;
            m.blobs.count = 1; m.blobs.data.n = TRIB_CONTROL_BLOB_MAX + 1);
    REFUSED(TRIB_CONTROL_STORE_PUSH,
            m.store_push.number = TRIB_CONTROL_PUSHES_MAX + 2);
    REFUSED(TRIB_CONTROL_STORE_DONE,
            m.store_state.version = TRIB_CONTROL_PUSHES_MAX + 1);
    REFUSED(TRIB_CONTROL_STORE_DONE,
            m.store_state.saved = TRIB_CONTROL_PUSHES_MAX + 2);
    REFUSED(TRIB_CONTROL_STORE_VECTOR, m.store_state.pushes = UINT64_MAX);
#undef REFUSED
    fill(TRIB_CONTROL_ERROR, &m);
    memcpy(m.said.text, "\033\n\377", 3);
    assert_ok(trib_control_put(&m, bytes, sizeof(bytes), &used));
    assert_memory_equal(bytes + 14, "??\377", 3);
    assert_status(trib_control_put(&m, bytes, used - 1, &used), TRIB_ERR_OVERFLOW);
}

/* The largest message of each kind is valid; one byte more is refused as soon as the
 * head arrives. */
TEST(test_oversize)
{
    static const struct {
        enum trib_control_kind kind;
        uint32_t longest;
    } rows[] = {{TRIB_CONTROL_HELLO, 130},  {TRIB_CONTROL_WELCOME, 64},
                {TRIB_CONTROL_AUTH, 1025},  {TRIB_CONTROL_JOIN, 17574},
                {TRIB_CONTROL_ERROR, 514},  {TRIB_CONTROL_PLAN, 1030},
                {TRIB_CONTROL_BLOBS, 32788}, {TRIB_CONTROL_STORE_PUSH, 32797}};
    uint8_t head[TRIB_CONTROL_HEAD_BYTES] = "TrbC\1";
    struct trib_control_frame frame;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (uint32_t seal = 0; seal <= 17; seal += 17)
            for (uint32_t more = 0; more < 2; more++) {
                uint32_t length = rows[i].longest + seal + more;
                head[5] = (uint8_t)rows[i].kind;
                for (int b = 0; b < 4; b++)
                    head[8 + b] = (uint8_t)(length >> (8 * b));
                assert_status(trib_control_parse(head, sizeof(head), seal,
                                                 sender(rows[i].kind), &frame),
                              more ? TRIB_ERR_PROTOCOL : TRIB_INPROGRESS);
            }
    assert_true(rows[7].longest + 17 + TRIB_CONTROL_HEAD_BYTES ==
                TRIB_CONTROL_FRAME_BYTES);
}

TEST(test_job_names)
{
    static const char *const good[] = {"a", "slurm-17.0", "ann@host:4/x_y",
                                       "50%,a=b+c"};
    static const char *const bad[] = {"", "a b", "a\n", "\"", "a;b", "\303\244", "a'b"};
    char longest[TRIB_CONTROL_JOB_MAX + 2];

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(trib_control_job_fits(good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(trib_control_job_fits(bad[i]));
    memset(longest, 'x', sizeof(longest));
    longest[TRIB_CONTROL_JOB_MAX] = '\0';
    assert_true(trib_control_job_fits(longest));
    longest[TRIB_CONTROL_JOB_MAX] = 'x';
    assert_false(trib_control_job_fits(longest));
}

/* Connections ---------------------------------------------------------------------- */

static struct trib_control_conn *open_conn(int *other_out)
{
    struct trib_control_conn *conn = NULL;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_ok(trib_control_conn_new(fds[0], &conn));
    *other_out = fds[1];
    return conn;
}

TEST(test_split_reads)
{
    uint8_t bytes[256];

    for (size_t i = 0; i < N_GOLDEN; i++) {
        int other;
        struct trib_control_conn *conn = open_conn(&other);
        struct trib_control_frame frame;
        enum trib_control_role from = sender(golden[i].message.kind);
        size_t n = from_hex(golden[i].hex, bytes);
        assert_status(trib_control_conn_fill(conn), TRIB_INPROGRESS);
        for (size_t b = 0; b < 2 * n; b++) {
            assert_int_equal(write(other, bytes + b % n, 1), 1);
            assert_ok(trib_control_conn_fill(conn));
            assert_status(trib_control_conn_take(conn, 0, from, &frame),
                          b % n == n - 1 ? TRIB_OK : TRIB_INPROGRESS);
        }
        assert_memory_equal(frame.head, bytes, n);
        close(other);
        trib_control_conn_free(conn);
    }
}

/* Two frames and half a third in one read; then the other half. */
TEST(test_several_at_once)
{
    uint8_t bytes[256];
    uint8_t all[768];
    int other;
    struct trib_control_conn *conn = open_conn(&other);
    struct trib_control_frame frame;
    size_t n = from_hex(golden[7].hex, bytes);

    for (size_t i = 0; i < 3; i++)
        memcpy(all + i * n, bytes, n);
    assert_int_equal(write(other, all, 2 * n + n / 2), 2 * n + n / 2);
    assert_ok(trib_control_conn_fill(conn));
    for (size_t i = 0; i < 3; i++)
        assert_status(trib_control_conn_take(conn, 0, TRIB_CONTROL_JOB, &frame),
                      i < 2 ? TRIB_OK : TRIB_INPROGRESS);
    assert_int_equal(write(other, all + n / 2, n - n / 2), n - n / 2);
    assert_ok(trib_control_conn_fill(conn));
    assert_ok(trib_control_conn_take(conn, 0, TRIB_CONTROL_JOB, &frame));
    assert_memory_equal(frame.head, bytes, n);
    close(other);
    trib_control_conn_free(conn);
}

/* A peer that does not read: bounded memory, nothing lost once it reads. */
TEST(test_back_pressure)
{
    static uint8_t data[TRIB_CONTROL_BLOBS_BYTES];
    static uint8_t got[TRIB_CONTROL_FRAME_BYTES];
    int other;
    struct trib_control_conn *conn = open_conn(&other);
    struct trib_control m = {.kind = TRIB_CONTROL_BLOBS,
                             .blobs = {1, 16, 0, 16, 2048, {data, sizeof(data)}}};
    size_t sent = 0;
    size_t read_bytes = 0;
    uint8_t *room;
    size_t used;

    while ((room = trib_control_conn_room(conn, TRIB_CONTROL_FRAME_BYTES))) {
        data[0] = (uint8_t)sent;
        assert_ok(trib_control_put(&m, room, TRIB_CONTROL_FRAME_BYTES, &used));
        trib_control_conn_add(conn, used);
        (void)trib_control_conn_flush(conn);
        assert_in_range(++sent, 1, 255);
    }
    assert_status(trib_control_conn_flush(conn), TRIB_INPROGRESS);
    assert_int_equal(trib_control_conn_events(conn), POLLIN | POLLOUT);
    for (size_t i = 0; i < sent; i++) {
        size_t have = 0;
        while (have < used) {
            ssize_t n = recv(other, got + have, used - have, MSG_DONTWAIT);
            if (n < 0)
                assert_true(trib_control_conn_flush(conn) >= 0);
            else
                have += (size_t)n;
        }
        assert_int_equal(got[32], (uint8_t)i);
        read_bytes += have;
    }
    assert_int_equal(read_bytes, sent * used);
    assert_ok(trib_control_conn_flush(conn));
    assert_int_equal(trib_control_conn_events(conn), POLLIN);
    close(other);
    trib_control_conn_free(conn);
}

/* The last messages of the peer are read before the end of the connection is
 * noticed. */
TEST(test_end)
{
    uint8_t bytes[256];
    int other;
    struct trib_control_conn *conn = open_conn(&other);
    struct trib_control_frame frame;
    size_t n = from_hex(golden[14].hex, bytes);

    assert_int_equal(write(other, bytes, n), n);
    close(other);
    uint8_t *room = trib_control_conn_room(conn, n);
    assert_non_null(room);
    memcpy(room, bytes, n);
    trib_control_conn_add(conn, n);
    assert_ok(trib_control_conn_flush(conn));
    assert_ok(trib_control_conn_fill(conn));
    assert_ok(trib_control_conn_take(conn, 0, TRIB_CONTROL_AGGREGATOR, &frame));
    assert_int_equal(frame.kind, TRIB_CONTROL_ERROR);
    assert_status(trib_control_conn_fill(conn), TRIB_ERR_PEER_LOST);
    trib_control_conn_free(conn);
    assert_status(trib_control_conn_new(-1, &conn), TRIB_ERR_SYSTEM);
    assert_int_equal(errno, EBADF);
}
