/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory that cannot be created: the error message names the call, the errno and
 * the remedy, and no signal ends the process. Limits are lowered in children.
 */
#include "tests/harness/tribtest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/error.h"
#include "base/memfd.h"

enum { BYTES = 1 << 20 };

/* The report of a child. */
struct outcome {
    trib_status_t status;
    char text[512];
};

/* Run `prepare`, then trib_memfd_create of BYTES, in a child. Return false if `prepare`
 * failed. */
static bool in_child(bool (*prepare)(void), struct outcome *out)
{
    struct outcome *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;

    assert_ptr_not_equal(shared, MAP_FAILED);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct trib_error err = {0};
        int fd;
        if (!prepare())
            _exit(77);
        shared->status = trib_memfd_create("test", BYTES, &fd, &err);
        snprintf(shared->text, sizeof(shared->text), "%s", err.text);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status)); /* no signal */
    *out = *shared;
    munmap(shared, sizeof(*shared));
    return WEXITSTATUS(status) == 0;
}

static bool small_files(void)
{
    struct rlimit limit = {BYTES - 1, BYTES - 1};
    return setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

static bool just_enough(void)
{
    struct rlimit limit = {BYTES, BYTES};
    return setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

static bool no_files(void)
{
    struct rlimit limit = {3, 3};
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* Refuses memfd_create, as the filter of a container does. */
static bool refused(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void expect(bool (*prepare)(void), const char *const *words)
{
    struct outcome got;

    if (!in_child(prepare, &got))
        tribtest_skip("the kernel does not let this process limit itself");
    assert_status(got.status, TRIB_ERR_SYSTEM);
    for (; *words; words++)
        if (!strstr(got.text, *words))
            fail_msg("\"%s\" is not in: %s", *words, got.text);
}

TEST(test_file_size)
{
    struct outcome got;

    expect(small_files, (const char *const[]){"1048576 bytes", "(1048575 bytes)",
                                              "raise ulimit -f", NULL});
    assert_true(in_child(just_enough, &got));
    assert_status(got.status, TRIB_OK);
}

TEST(test_no_descriptor)
{
    expect(no_files, (const char *const[]){"memfd_create", "Too many open files",
                                           "raise ulimit -n", NULL});
}

TEST(test_refused)
{
    expect(refused, (const char *const[]){"memfd_create", "Operation not permitted",
                                          "seccomp", NULL});
}

/* The size and the seals can no longer change, and the memory cannot be executed. */
TEST(test_seals)
{
    struct trib_error err = {0};
    struct stat st;
    int fd;

    assert_status(trib_memfd_create("test", BYTES, &fd, &err), TRIB_OK);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, BYTES);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(ftruncate(fd, 2 * BYTES), -1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
}
