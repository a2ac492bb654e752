/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peers of every backend: which calls a peer's state allows, and the events of its
 * loss.
 */
#include "tests/harness/tribtest.h"

#include "base/error.h"
#include "base/time.h"
#include "transport/common/peer.h"

enum { SELF = 1, SIZE = 3 };

/* A backend's struct of a peer, larger than the part in common. */
struct backend_peer {
    struct trib_peer_base base;
    char more[40];
};

static struct trib_error err;
static struct backend_peer all[SIZE];
static const struct trib_peers peers = {all, sizeof(all[0]), SELF, SIZE, &err};

TEST(test_connect)
{
    static const trib_status_t wanted[] = {TRIB_OK, TRIB_OK, TRIB_ERR_PEER_LOST,
                                           TRIB_ERR_PEER_LOST, TRIB_ERR_PEER_LOST};

    for (int s = TRIB_PEER_UNKNOWN; s <= TRIB_PEER_LEFT; s++) {
        all[2].base.state = (enum trib_peer_state)s;
        assert_status(trib_peer_check_connect(&peers, 2), wanted[s]);
    }
    assert_string_equal(err.text, "peer 2 was lost or left before");
    assert_status(trib_peer_check_connect(&peers, SELF), TRIB_ERR_INVALID);
    assert_status(trib_peer_check_connect(&peers, -1), TRIB_ERR_INVALID);
    trib_error_clear(&err); /* the first message would stay */
    assert_status(trib_peer_check_connect(&peers, SIZE), TRIB_ERR_INVALID);
    assert_string_equal(err.text, "peer 3 of 3 cannot be connected");
}

TEST(test_import_and_write)
{
    static const trib_status_t wanted[] = {TRIB_ERR_INVALID, TRIB_OK,
                                           TRIB_ERR_PEER_LOST, TRIB_ERR_PEER_LOST,
                                           TRIB_ERR_PEER_LOST};

    for (int s = TRIB_PEER_UNKNOWN; s <= TRIB_PEER_LEFT; s++) {
        all[0].base.state = (enum trib_peer_state)s;
        assert_status(trib_peer_check_import(&peers, 0), wanted[s]);
        assert_status(trib_peer_check_write(all[0].base.state), wanted[s]);
    }
    trib_error_clear(&err);
    assert_status(trib_peer_check_import(&peers, SIZE), TRIB_ERR_INVALID);
    assert_non_null(strstr(err.text, "cannot import its memory"));
}

/* Sums of offset and length that wrap around are outside, too. */
TEST(test_bounds)
{
    const struct trib_write_bounds bounds = {.owner = 0, .local = 64, .remote = 32};
    static const struct {
        size_t local, remote, len;
        trib_status_t status;
    } cases[] = {
        {0, 0, 32, TRIB_OK},
        {64, 32, 0, TRIB_OK},
        {32, 0, 32, TRIB_OK},
        {33, 0, 32, TRIB_ERR_RANGE},
        {0, 1, 32, TRIB_ERR_RANGE},
        {65, 0, 0, TRIB_ERR_RANGE},
        {SIZE_MAX, 0, 2, TRIB_ERR_RANGE},
        {0, SIZE_MAX, 2, TRIB_ERR_RANGE},
        {1, 1, SIZE_MAX, TRIB_ERR_RANGE},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct trib_write w = {.local_off = cases[i].local,
                                     .remote_off = cases[i].remote,
                                     .len = cases[i].len};
        assert_status(trib_peer_check_bounds(&w, 0, &bounds, &err), cases[i].status);
    }
    const struct trib_write w = {.len = 1};
    assert_status(trib_peer_check_bounds(&w, 2, &bounds, &err), TRIB_ERR_INVALID);
    assert_status(trib_peer_check_bounds(&w, 0, NULL, &err), TRIB_ERR_INVALID);
}

TEST(test_address)
{
    struct {
        uint32_t magic;
        uint8_t rest[60];
    } sent = {.magic = 0x54726231, .rest = {7, 8, 9}}, received;
    struct trib_address address;

    trib_peer_address(&sent, sizeof(sent), &address);
    assert_ok(trib_peer_read_address(&address, 0, "test", sent.magic, &received,
                                     sizeof(received), &err));
    assert_memory_equal(&received, &sent, sizeof(sent));
    trib_error_clear(&err);
    assert_status(trib_peer_read_address(&address, 0, "test", sent.magic + 1, &received,
                                         sizeof(received), &err),
                  TRIB_ERR_INVALID);
    assert_string_equal(err.text, "peer 0: not an address of test");
    assert_int_equal(received.rest[0], 0);
    for (uint16_t len = 0; len < address.len; len++) {
        struct trib_address cut = address;
        cut.len = len;
        assert_status(trib_peer_read_address(&cut, 0, "test", sent.magic, &received,
                                             sizeof(received), &err),
                      TRIB_ERR_INVALID);
    }
}

TEST(test_loss)
{
    struct trib_peer_base p = {.state = TRIB_PEER_CONNECTED};
    struct trib_event e = {.kind = TRIB_EVENT_ARRIVED};
    const uint64_t before = trib_now_ns();
    int n_draining = 4;

    assert_true(trib_peer_is_there(&p));
    trib_peer_drain(&p, &n_draining);
    assert_int_equal(n_draining, 5);
    assert_int_equal(p.state, TRIB_PEER_DRAINING);
    assert_true(p.going_at >= before && p.going_at <= trib_now_ns());
    assert_false(trib_peer_is_there(&p));
    trib_peer_explain(&p, "process %d has %0*d", 12, 2 * TRIB_WHY_MAX, 0);
    assert_int_equal(strlen(p.why), TRIB_WHY_MAX - 1);
    trib_peer_report(&p, 2, true, &e);
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    assert_int_equal(e.peer, 2);
    assert_true(e.left);
    assert_string_equal(e.why, p.why);
}
