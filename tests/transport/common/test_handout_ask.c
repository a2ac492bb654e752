/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asking a process for memory without a wait: one question at a time, and an owner
 * without a socket is an error and no wait.
 */
#include "tests/harness/tribtest.h"

#include <sys/socket.h>

#include "base/error.h"
#include "transport/common/handout.h"
#include "transport/common/handout_wire.h"

static struct trib_error err;
static int stalls; /* sends before which this process is to stand still */

/* This takes the place of the C library's send in this program. */
ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    if (stalls > 0) {
        stalls--;
        usleep((TRIB_HANDOUT_REQUEST_MS + 200) * 1000u);
    }
    return sendto(fd, bytes, len, flags, NULL, 0);
}

TEST(test_no_socket)
{
    const struct trib_handout_owner owner = {.name = 0, .pid = getpid()};
    struct trib_handout_call call = {.until = 0};
    struct trib_handout_fds fds;

    assert_status(trib_handout_probe(&owner, &err), TRIB_ERR_UNSUPPORTED);
    assert_true(trib_handout_step(&owner, 1, &call, &fds, &err) < 0);
    assert_int_equal(call.until, 0);
    assert_int_equal(call.fd, 0);
}

/* Opens a handout of this process; without one the test is left out. */
static struct trib_handout *open_here(struct trib_handout_owner *owner_out)
{
    struct trib_handout *handout = trib_handout_open(NULL);

    if (!handout)
        tribtest_skip("no abstract sockets here");
    *owner_out = (struct trib_handout_owner){.name = trib_handout_name(handout),
                                             .pid = getpid()};
    return handout;
}

TEST(test_one_question)
{
    struct trib_handout_owner owner;
    struct trib_handout *handout = open_here(&owner);
    struct trib_handout_call call = {.until = 0};
    struct trib_handout_fds fds;

    assert_false(trib_handout_asked(handout));
    assert_status(trib_handout_step(&owner, 4711, &call, &fds, &err), TRIB_INPROGRESS);
    assert_true(trib_handout_asked(handout));
    assert_status(trib_handout_step(&owner, 4712, &call, &fds, &err), TRIB_INPROGRESS);
    assert_int_equal(call.key, 4711);
    trib_handout_drop(&call);
    trib_handout_drop(&call); /* harmless while no request is pending */
    assert_int_equal(call.until, 0);
    trib_handout_close(handout);
}

TEST(test_unknown_key)
{
    struct trib_handout_owner owner;
    struct trib_handout *handout = open_here(&owner);
    struct trib_handout_fds fds;

    assert_ok(trib_handout_serve(handout, &err));
    trib_error_clear(&err);
    assert_status(trib_handout_ask(&owner, 4711, &fds, &err), TRIB_ERR_INVALID);
    assert_non_null(strstr(err.text, "no longer has the memory"));
    assert_ok(trib_handout_add(handout, 4711, (struct trib_handout_fds){0, -1}));
    assert_ok(trib_handout_ask(&owner, 4711, &fds, &err));
    assert_true(fds.memory > 2 && fds.bell == -1);
    close(fds.memory);
    trib_handout_close(handout);
}

/* A process that stood still between its connection and its question, while the owner
 * closed, asks again and does not call the owner dead. */
TEST(test_stalled)
{
    struct trib_handout_owner owner;
    struct trib_handout *handout = open_here(&owner);
    struct trib_handout_fds fds;

    assert_ok(trib_handout_serve(handout, &err));
    assert_ok(trib_handout_add(handout, 4711, (struct trib_handout_fds){0, -1}));
    stalls = 2;
    assert_ok(trib_handout_ask(&owner, 4711, &fds, &err));
    assert_int_equal(stalls, 0);
    close(fds.memory);
    trib_handout_close(handout);
}
