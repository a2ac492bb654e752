/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that are given a descriptor, and those that are not. */
#include "tests/harness/tribtest.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"
#include "base/time.h"
#include "transport/common/handout.h"

#define KEY UINT64_C(0x1122334455667788)
#define NOBODY 65534

/* Asks as ranks of one user ask each other. */
static trib_status_t probe(uint32_t name, int pid, struct trib_error *err)
{
    return trib_handout_probe(&(struct trib_handout_owner){.name = name, .pid = pid},
                              err);
}

static trib_status_t ask(uint32_t name, uint64_t key, int pid, int *fd_out,
                         struct trib_error *err)
{
    struct trib_handout_fds fds;
    trib_status_t st = trib_handout_ask(
        &(struct trib_handout_owner){.name = name, .pid = pid}, key, &fds, err);

    if (st == TRIB_OK)
        *fd_out = fds.memory;
    return st;
}

static struct trib_handout *open_with(int *fd_out)
{
    struct trib_handout *h = trib_handout_open(NULL);

    assert_non_null(h);
    *fd_out = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(write(*fd_out, "memory", 6), 6);
    assert_ok(trib_handout_add(h, KEY, (struct trib_handout_fds){*fd_out, -1}));
    return h;
}

TEST(test_hands_out)
{
    struct trib_error err = {0};
    char text[8] = "";
    int fd, got = -1;
    struct trib_handout *h = open_with(&fd);

    assert_false(trib_handout_asked(h));
    assert_ok(probe(trib_handout_name(h), 4711, &err));
    assert_true(trib_handout_asked(h));
    assert_ok(trib_handout_serve(h, &err));
    assert_false(trib_handout_asked(h));
    assert_ok(trib_handout_serve(h, &err)); /* once more: no matter */
    for (int i = 0; i < 100; i++) {
        assert_ok(ask(trib_handout_name(h), KEY, 4711, &got, &err));
        assert_true(got > 2 && got != fd && (fcntl(got, F_GETFD) & FD_CLOEXEC));
        assert_int_equal(pread(got, text, 6, 0), 6);
        assert_string_equal(text, "memory");
        close(got);
    }
    assert_status(ask(trib_handout_name(h), KEY + 1, 4711, &got, &err),
                  TRIB_ERR_INVALID);
    assert_non_null(strstr(err.text, "process 4711 no longer has the memory"));
    trib_error_clear(&err);
    trib_handout_remove(h, KEY);
    assert_status(ask(trib_handout_name(h), KEY, 4711, &got, &err),
                  TRIB_ERR_INVALID);
    trib_handout_close(h);
    close(fd);
}

/* Its process has ended: an error at once. Many can be added and removed. */
TEST(test_gone)
{
    struct trib_error err = {0};
    int fd, got = -1;
    struct trib_handout *h = open_with(&fd);
    uint32_t name = trib_handout_name(h);

    for (uint64_t key = 1; key <= 100; key++)
        assert_ok(trib_handout_add(h, key, (struct trib_handout_fds){fd, -1}));
    for (uint64_t key = 1; key <= 100; key += 2)
        trib_handout_remove(h, key);
    assert_ok(trib_handout_serve(h, &err));
    assert_ok(ask(name, 2, 4711, &got, &err));
    close(got);
    assert_status(ask(name, 3, 4711, &got, &err), TRIB_ERR_INVALID);
    trib_handout_close(h);
    close(fd);
    trib_error_clear(&err);
    assert_status(ask(name, KEY, 4711, &got, &err), TRIB_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "cannot reach the socket from which process"));
    assert_status(probe(name, 4711, NULL), TRIB_ERR_UNSUPPORTED);
    trib_handout_close(NULL);
    assert_int_equal(trib_handout_name(NULL), 0);
    assert_false(trib_handout_asked(NULL));
}

static int connect_raw(uint32_t name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char digits[8];

    snprintf(digits, sizeof(digits), "%05x", name - 1);
    memcpy(at.sun_path + 1, digits, 5);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(
        connect(fd, (struct sockaddr *)&at, offsetof(struct sockaddr_un, sun_path) + 6),
        0);
    return fd;
}

/* A peer that sends nothing or an invalid request gets nothing, and does not block the
 * server for long. */
TEST(test_nonsense)
{
    static const struct {
        const char *bytes;
        size_t len;
    } requests[] = {
        {"", 0}, {"x", 1}, {"0123456789abcdef", 16}, {"0123456789abcdefghi", 19}};
    struct trib_error err = {0};
    int fd, got = -1;
    struct trib_handout *h = open_with(&fd);

    assert_ok(trib_handout_serve(h, &err));
    int silent = connect_raw(trib_handout_name(h));
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        char byte;
        int raw = connect_raw(trib_handout_name(h));
        (void)!send(raw, requests[i].bytes, requests[i].len, MSG_NOSIGNAL);
        assert_int_equal(recv(raw, &byte, 1, 0) > 0, 0);
        close(raw);
    }
    assert_ok(ask(trib_handout_name(h), KEY, 4711, &got, &err));
    close(got);
    close(silent);
    trib_handout_close(h); /* with one pending connection */
    close(fd);
}

/* Another user, which knows the name and the key. */
TEST(test_another_user)
{
    struct trib_error err = {0};
    int fd, got = -1, status;
    struct trib_handout *h = open_with(&fd);

    if (geteuid() != 0) {
        trib_handout_close(h);
        close(fd);
        tribtest_skip("becoming another user needs root");
    }
    assert_ok(trib_handout_serve(h, &err));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        if (setresuid(NOBODY, NOBODY, NOBODY))
            _exit(9);
        if (ask(trib_handout_name(h), KEY, 4711, &got, &err) !=
                TRIB_ERR_UNSUPPORTED ||
            !strstr(err.text, "runs as user 0, this one as 65534"))
            _exit(1);
        /* Also where it accepts a server of any user. */
        const uint64_t request[2] = {UINT64_C(0x5472696248616e64), KEY};
        int raw = connect_raw(trib_handout_name(h));
        (void)!send(raw, request, sizeof(request), MSG_NOSIGNAL);
        _exit(recv(raw, &byte, 1, 0) > 0 ? 2 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    trib_handout_close(h);
    close(fd);
}

/* A child closes its copy without a message, and the parent's copy still works. */
TEST(test_child)
{
    struct trib_error err = {0};
    int fd, got = -1, status;
    struct trib_handout *h = open_with(&fd);

    assert_ok(trib_handout_serve(h, &err));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        trib_handout_close(h);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_ok(ask(trib_handout_name(h), KEY, 4711, &got, &err));
    close(got);
    trib_handout_close(h);
    close(fd);
}
