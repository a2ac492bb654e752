/* SPDX-License-Identifier: BSD-3-Clause */
/* States of a process in /proc, frozen ones and foreign /proc included. */
#include "tests/harness/tribtest.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/freezer.h"
#include "base/process.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* A control group of this test alone, of version 1 or 2. */
struct group {
    char folder[96];
    const char *file, *freeze, *thaw;
};

static bool write_file(const char *folder, const char *file, const char *text)
{
    char path[160];

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return good;
}

static bool make_group(const char *root, const char *file, const char *freeze,
                       const char *thaw, struct group *out)
{
    char path[160];

    *out = (struct group){.file = file, .freeze = freeze, .thaw = thaw};
    snprintf(out->folder, sizeof(out->folder), "%s/trib-test-%d", root, (int)getpid());
    if (mkdir(out->folder, 0755))
        return false;
    snprintf(path, sizeof(path), "%s/%s", out->folder, file);
    if (access(path, W_OK) == 0)
        return true;
    rmdir(out->folder);
    return false;
}

static void nap(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* Looks at a state as a transport does, until it is `state`. */
static void becomes(struct trib_process_watch *watch, enum trib_process_state state)
{
    for (int i = 0; trib_process_watch_query(watch) != state; i++) {
        assert_true(i < 200 * (int)tribtest_slowness());
        nap(20);
    }
}

static void freeze_child(const struct group *group)
{
    struct trib_process_watch watch;
    struct trib_process process;
    char number[16];
    pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    trib_process_find(pid, &process);
    assert_status(trib_process_watch_open(&watch, &process, NULL), TRIB_OK);
    snprintf(number, sizeof(number), "%d", (int)pid);
    assert_true(write_file(group->folder, "cgroup.procs", number));
    assert_false(trib_frozen(pid));
    assert_int_equal(trib_process_query(&process), TRIB_PROCESS_RUNS);
    assert_true(write_file(group->folder, group->file, group->freeze));
    becomes(&watch, TRIB_PROCESS_STOPPED);
    assert_int_equal(trib_process_query(&process), TRIB_PROCESS_STOPPED);
    assert_false(trib_process_watch_dead(&watch));
    assert_true(write_file(group->folder, group->file, group->thaw));
    becomes(&watch, TRIB_PROCESS_RUNS);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(trib_process_watch_dead(&watch));
    trib_process_watch_close(&watch);
    assert_int_equal(rmdir(group->folder), 0);
}

TEST(test_frozen_v1)
{
    struct group group;

    if (!make_group("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED",
                    &group))
        tribtest_skip("no freezer of control groups version 1 can be used here");
    freeze_child(&group);
}

TEST(test_frozen_v2)
{
    struct group group;

    if (!make_group("/sys/fs/cgroup", "cgroup.freeze", "1", "0", &group) &&
        !make_group("/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0", &group))
        tribtest_skip("no control groups version 2 can be made here");
    freeze_child(&group);
}

/* Computes for 30 ms, which is more than a tick, and stops itself, again and again. */
static void compute_and_stop(void)
{
    struct timespec used;

    for (long until = 30;; until += 30) {
        do
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
        while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < until);
        raise(SIGSTOP);
    }
}

/* A process that cpulimit slows down is stopped at each check, and runs in between. */
TEST(test_stopped_in_turn)
{
    struct trib_process_watch watch;
    struct trib_process process;
    const pid_t pid = fork();

    if (pid == 0)
        compute_and_stop();
    trib_process_find(pid, &process);
    assert_status(trib_process_watch_open(&watch, &process, NULL), TRIB_OK);
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
    assert_int_equal(trib_process_watch_query(&watch), TRIB_PROCESS_STOPPED);
    assert_int_equal(trib_process_watch_query(&watch), TRIB_PROCESS_STOPPED);
    for (int i = 0; i < 3; i++) {
        kill(pid, SIGCONT);
        assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
        assert_int_equal(trib_process_watch_query(&watch), TRIB_PROCESS_RUNS);
        assert_int_equal(trib_process_watch_query(&watch), TRIB_PROCESS_STOPPED);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    trib_process_watch_close(&watch);
}

/* The first process of a pid namespace that has the /proc of the one above. */
static int in_namespace(void)
{
    struct trib_process self, process;
    char text[32] = "";

    trib_process_self(&self);
    if (getpid() != 1 || readlink("/proc/self", text, sizeof(text) - 1) < 0 ||
        trib_process_number(1) != atoi(text) || !self.start)
        return 1;
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    trib_process_find(pid, &process);
    if (!process.start || process.start < self.start ||
        trib_process_number(pid) == pid ||
        trib_process_query(&process) != TRIB_PROCESS_RUNS)
        return 2;
    kill(pid, SIGSTOP);
    waitpid(pid, NULL, WUNTRACED);
    if (trib_process_query(&process) != TRIB_PROCESS_STOPPED)
        return 3;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return trib_process_query(&process) == TRIB_PROCESS_DEAD ? 0 : 4;
}

TEST(test_proc_of_another_namespace)
{
    int status;

    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWPID))
            _exit(77);
        pid = fork();
        if (pid == 0)
            _exit(in_namespace());
        waitpid(pid, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        tribtest_skip("no pid namespace can be made here");
    assert_int_equal(status, 0);
}

/* In a time namespace, whose /proc has other starts: fd leads to the process above. */
static int in_time_namespace(const struct trib_process *above, int fd)
{
    struct trib_process_watch watch;
    struct trib_process self, found;
    struct trib_error err;

    trib_process_self(&self);
    trib_process_find(above->pid, &found);
    if (!trib_process_same(&found, above) ||
        trib_process_query(above) != TRIB_PROCESS_RUNS ||
        trib_process_query(&self) != TRIB_PROCESS_RUNS)
        return 1;
    if (trib_process_watch_open(&watch, above, &err) != TRIB_OK ||
        trib_process_watch_query(&watch) != TRIB_PROCESS_RUNS)
        return 2;
    trib_process_watch_close(&watch);
    found.start += 1000; /* another process that had this number */
    if (trib_process_query(&found) != TRIB_PROCESS_DEAD)
        return 3;
    return write(fd, &self, sizeof(self)) == sizeof(self) ? 0 : 4;
}

/* Start a process in a time namespace and check both views; 77: no namespace can be
 * created. */
static int above_time_namespace(const char *offset)
{
    struct trib_process self, below, found;
    int fds[2], status;

    trib_process_self(&self);
    if (pipe(fds) || unshare(CLONE_NEWTIME) ||
        !write_file("/proc/self", "timens_offsets", offset))
        return 77;
    pid_t pid = fork();
    if (pid == 0) {
        status = in_time_namespace(&self, fds[1]);
        if (status == 0)
            pause();
        _exit(status);
    }
    close(fds[1]);
    const bool told = read(fds[0], &below, sizeof(below)) == sizeof(below);
    trib_process_find(pid, &found);
    const bool right = told && trib_process_same(&below, &found) &&
                       trib_process_query(&below) == TRIB_PROCESS_RUNS;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (!told)
        return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
    return right ? 0 : 5;
}

TEST(test_other_time_namespace)
{
    const char *const offsets[] = {"boottime 1000000 0", "boottime 77 123456789",
                                   "boottime -1 5000001", "monotonic 1000 0"};
    int status;

    for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(above_time_namespace(offsets[i]));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
            tribtest_skip("no time namespace can be made here");
        assert_int_equal(status, 0);
    }
}
