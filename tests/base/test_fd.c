/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors are above 2, also in a process that has closed 0, 1 and 2. Each case runs
 * in a child; its exit code is the line of the failure.
 */
#include "tests/harness/tribtest.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/fd.h"

#define CHECK(cond) \
    do { \
        if (!(cond)) \
            return __LINE__; \
    } while (0)

/* The line at which a case failed in a child without descriptors 0 to 2; 0: it did
 * well. */
static int without_three(int (*run)(void))
{
    int ends[2], line = -1, status;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        line = run();
        _exit(write(ends[1], &line, sizeof(line)) == (ssize_t)sizeof(line) ? 0 : 1);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], &line, sizeof(line));
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(n, (ssize_t)sizeof(line));
    return line;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static int keep(void)
{
    int fd = trib_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));

    CHECK(fd > 2 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
    CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    CHECK(!is_open(0) && !is_open(1) && !is_open(2));
    CHECK(trib_fd_keep(fd) == fd);
    errno = EACCES;
    CHECK(trib_fd_keep(-1) == -1 && errno == EACCES);
    return 0;
}

static int both_ends(void)
{
    int ends[2], pair[2];

    CHECK(trib_fd_pipe(ends, O_CLOEXEC) == 0 && ends[0] > 2 && ends[1] > 2);
    CHECK(write(ends[1], "x", 1) == 1);
    CHECK(trib_fd_pair(pair, SOCK_STREAM | SOCK_CLOEXEC) == 0 && pair[0] > 2 &&
          pair[1] > 2);
    CHECK(write(pair[0], "x", 1) == 1);
    CHECK(!is_open(0) && !is_open(1) && !is_open(2));
    return 0;
}

static int file(void)
{
    char path[] = "/tmp/test_fd.XXXXXX";
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    close(fd);
    FILE *f = trib_fd_create(path);
    CHECK(f && fileno(f) > 2 && fputs("x", f) >= 0 && fclose(f) == 0);
    unlink(path);
    CHECK(trib_fd_create("/no/such/place") == NULL && errno == ENOENT);
    return 0;
}

/* No descriptor above 2 is available: none below it is leaked either. */
static int none_left(void)
{
    struct rlimit limit = {3, 3};
    int ends[2];

    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    int fd = trib_fd_keep(eventfd(0, EFD_CLOEXEC));
    CHECK(fd == -1 && (errno == EMFILE || errno == EINVAL));
    CHECK(trib_fd_pipe(ends, O_CLOEXEC) == -1 && (errno == EMFILE || errno == EINVAL));
    CHECK(!is_open(0) && !is_open(1) && !is_open(2));
    return 0;
}

/* To the program an occupied descriptor is as a closed one. */
static int guard(void)
{
    char byte = 'x';
    int ends[2];

    CHECK(pipe2(ends, O_CLOEXEC) == 0 && ends[0] == 0 && ends[1] == 1);
    errno = EACCES;
    trib_fd_guard();
    CHECK(errno == EACCES);
    CHECK(write(1, &byte, 1) == 1 && read(0, &byte, 1) == 1);
    CHECK(is_open(2) && fcntl(2, F_GETFD) == FD_CLOEXEC);
    CHECK(write(2, &byte, 1) == -1 && errno == EBADF);
    CHECK(read(2, &byte, 1) == -1 && errno == EBADF);
    int fd = eventfd(0, EFD_CLOEXEC);
    CHECK(fd > 2);
    CHECK(dup2(1, 2) == 2 && write(2, &byte, 1) == 1);
    return 0;
}

TEST(test_keep)
{
    assert_int_equal(without_three(keep), 0);
}

TEST(test_both_ends)
{
    assert_int_equal(without_three(both_ends), 0);
}

TEST(test_file)
{
    assert_int_equal(without_three(file), 0);
}

TEST(test_none_left)
{
    assert_int_equal(without_three(none_left), 0);
}

TEST(test_guard)
{
    assert_int_equal(without_three(guard), 0);
}
