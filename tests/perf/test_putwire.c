/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stream between the sides of trib-perf put, with untrusted peers: each ends with a
 * status and an error message within its deadline.
 */
#include "tests/harness/tribtest.h"

#include <sys/socket.h>

#include "base/error.h"
#include "base/time.h"
#include "perf/put/wire.h"

#define MAGIC 0x54726250u
#define LONG_MS 20000 /* never reached */

struct line {
    struct put_wire wire;
    struct trib_error err;
    int other;
};

static void line_open(struct line *l)
{
    int fds[2];

    memset(l, 0, sizeof(*l));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    put_wire_open(&l->wire, fds[0], "host1:7100", &l->err);
    l->other = fds[1];
}

static void line_close(struct line *l)
{
    put_wire_close(&l->wire);
    if (l->other >= 0)
        close(l->other);
}

static void hang_up(struct line *l)
{
    close(l->other);
    l->other = -1;
}

static void say(struct line *l, const void *bytes, size_t len)
{
    assert_int_equal(write(l->other, bytes, len), (ssize_t)len);
}

static void say_head(struct line *l, uint32_t kind, uint32_t len)
{
    struct put_head head = {.magic = MAGIC, .kind = kind, .len = len};

    say(l, &head, sizeof(head));
}

static void assert_said(const struct line *l, const char *words)
{
    if (strstr(l->err.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", l->err.text, words);
}

static trib_status_t hear_hello(struct line *l, bool answers, int ms)
{
    struct put_hello mine = {.version = "1.2.3", .host = "here"}, theirs;

    return put_wire_hello(&l->wire, answers, &mine, &theirs, trib_deadline_ms(ms));
}

TEST(test_conversation)
{
    struct put_phase phase = {.kind = PUT_STREAM, .n = 5, .bytes = 64}, got = {0};
    struct put_hello mine = {.version = "1", .host = "a"}, theirs;
    struct put_wire far;
    struct trib_error err = {0};
    enum put_kind kind;
    struct line l;
    uint64_t until = trib_deadline_ms(LONG_MS);

    line_open(&l);
    put_wire_open(&far, l.other, "far", &err);
    assert_ok(put_wire_send(&far, PUT_HELLO, &mine, sizeof(mine), until));
    assert_ok(put_wire_hello(&l.wire, true, &mine, &theirs, until));
    assert_string_equal(theirs.host, "a");
    assert_ok(put_wire_receive(&far, PUT_HELLO, &theirs, sizeof(theirs), until));
    assert_ok(put_wire_send(&l.wire, PUT_PHASE, &phase, sizeof(phase), until));
    assert_ok(put_wire_check(&far));
    assert_ok(put_wire_receive_any(&far, &kind, &got, until));
    assert_int_equal(kind, PUT_PHASE);
    assert_memory_equal(&got, &phase, sizeof(got));
    assert_ok(put_wire_send(&l.wire, PUT_END, NULL, 0, until));
    assert_ok(put_wire_receive_any(&far, &kind, &got, until));
    assert_int_equal(kind, PUT_END);
    line_close(&l);
}

/* Versions are named, and a hello may be longer in another version. */
TEST(test_other_version)
{
    char hello[200] = "9.9\033";
    struct line l;

    line_open(&l);
    say_head(&l, PUT_HELLO, sizeof(hello));
    say(&l, hello, sizeof(hello));
    assert_status(hear_hello(&l, true, LONG_MS), TRIB_ERR_MISMATCH);
    assert_said(&l, "host1:7100 has trib-perf 9.9?, this is 1.2.3");
    /* The peer also receives the version of this side. */
    char answer[sizeof(struct put_head) + sizeof(struct put_hello)];
    assert_int_equal(read(l.other, answer, sizeof(answer)), sizeof(answer));
    assert_string_equal(answer + sizeof(struct put_head), "1.2.3");
    line_close(&l);
}

TEST(test_strangers)
{
    static const char *const lines[] = {"GET / HTTP/1.0\r\n\r\n",
                                        "SSH-2.0-OpenSSH\r\n"};
    struct line l;

    for (int i = 0; i < 2; i++) {
        line_open(&l);
        say(&l, lines[i], strlen(lines[i]));
        hang_up(&l);
        assert_status(hear_hello(&l, true, LONG_MS), TRIB_ERR_PROTOCOL);
        assert_said(&l, "does not use the protocol of trib-perf put");
        line_close(&l);
    }
}

TEST(test_wrong_messages)
{
    static const struct {
        uint32_t kind, len;
    } wrong[] = {{PUT_READY, 0}, {PUT_RESULT, 15}, {PUT_RESULT, UINT32_MAX}, {99, 16}};
    struct put_outcome outcome;
    struct line l;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        line_open(&l);
        say_head(&l, wrong[i].kind, wrong[i].len);
        assert_status(put_wire_receive(&l.wire, PUT_RESULT, &outcome, sizeof(outcome),
                                       trib_deadline_ms(LONG_MS)),
                      TRIB_ERR_PROTOCOL);
        line_close(&l);
    }
    line_open(&l);
    say_head(&l, PUT_FAIL, PUT_SENTENCE_MAX + 1);
    assert_status(
        put_wire_receive(&l.wire, PUT_READY, NULL, 0, trib_deadline_ms(LONG_MS)),
        TRIB_ERR_PROTOCOL);
    line_close(&l);
    line_open(&l);
    struct put_head head = {.magic = MAGIC + 1, .kind = PUT_READY};
    say(&l, &head, sizeof(head));
    assert_status(
        put_wire_receive(&l.wire, PUT_READY, NULL, 0, trib_deadline_ms(LONG_MS)),
        TRIB_ERR_PROTOCOL);
    line_close(&l);
    line_open(&l);
    say_head(&l, PUT_HELLO, 8); /* no room for a version */
    assert_status(hear_hello(&l, false, LONG_MS), TRIB_ERR_PROTOCOL);
    line_close(&l);
}

/* A part of a message, then nothing. */
TEST(test_silence)
{
    struct line l;

    line_open(&l);
    say(&l, "Pbr", 3);
    assert_status(hear_hello(&l, true, 100), TRIB_ERR_TIMEOUT);
    assert_said(&l, "no answer from host1:7100");
    line_close(&l);
}

TEST(test_end)
{
    struct line l;

    line_open(&l);
    assert_ok(put_wire_check(&l.wire));
    say_head(&l, PUT_PLACE, sizeof(struct put_place));
    hang_up(&l);
    assert_ok(put_wire_check(&l.wire)); /* there is something to read */
    struct put_place place;
    assert_status(put_wire_receive(&l.wire, PUT_PLACE, &place, sizeof(place),
                                   trib_deadline_ms(LONG_MS)),
                  TRIB_ERR_PEER_LOST);
    assert_said(&l, "host1:7100 closed the connection");
    assert_status(put_wire_check(&l.wire), TRIB_ERR_PEER_LOST);
    line_close(&l);
}

/* The other side's reason for its failure is passed on, printable. */
TEST(test_failure)
{
    struct put_wire far;
    struct trib_error err = {0};
    struct line l;

    line_open(&l);
    put_wire_open(&far, l.other, "far", &err);
    put_wire_fail(&far, "no such\tdevice");
    assert_status(put_wire_check(&l.wire), TRIB_ERR_PEER_LOST);
    assert_string_equal(l.err.text, "host1:7100: no such?device");
    line_close(&l);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    return tribtest_run();
}
