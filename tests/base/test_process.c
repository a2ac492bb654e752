/* SPDX-License-Identifier: BSD-3-Clause */
/* States of a process in /proc, frozen ones and foreign /proc included. */
#include "tests/harness/tribtest.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/error.h"
#include "base/freezer.h"
#include "base/process.h"

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
    for (int i = 0; trib_process_watch_look(watch) != state; i++) {
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
    assert_int_equal(trib_process_look(&process), TRIB_PROCESS_RUNS);
    assert_true(write_file(group->folder, group->file, group->freeze));
    becomes(&watch, TRIB_PROCESS_STOPPED);
    assert_int_equal(trib_process_look(&process), TRIB_PROCESS_STOPPED);
    assert_false(trib_process_watch_dead(&watch));
    assert_true(write_file(group->folder, group->file, group->thaw));
    becomes(&watch, TRIB_PROCESS_RUNS);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(trib_process_watch_dead(&watch));
    trib_process_watch_close(&watch);
    assert_int_equal(rmdir(group->folder), 0);
}

static void test_frozen_v1(void **state)
{
    struct group group;

    (void)state;
    if (!make_group("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED",
                    &group))
        tribtest_skip("no freezer of control groups version 1 can be used here");
    freeze_child(&group);
}

static void test_frozen_v2(void **state)
{
    struct group group;

    (void)state;
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

/* A process that cpulimit slows down is stopped at each look, and runs in between. */
static void test_stopped_in_turn(void **state)
{
    struct trib_process_watch watch;
    struct trib_process process;
    const pid_t pid = fork();

    (void)state;
    if (pid == 0)
        compute_and_stop();
    trib_process_find(pid, &process);
    assert_status(trib_process_watch_open(&watch, &process, NULL), TRIB_OK);
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
    assert_int_equal(trib_process_watch_look(&watch), TRIB_PROCESS_STOPPED);
    assert_int_equal(trib_process_watch_look(&watch), TRIB_PROCESS_STOPPED);
    for (int i = 0; i < 3; i++) {
        kill(pid, SIGCONT);
        assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
        assert_int_equal(trib_process_watch_look(&watch), TRIB_PROCESS_RUNS);
        assert_int_equal(trib_process_watch_look(&watch), TRIB_PROCESS_STOPPED);
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
        trib_process_look(&process) != TRIB_PROCESS_RUNS)
        return 2;
    kill(pid, SIGSTOP);
    waitpid(pid, NULL, WUNTRACED);
    if (trib_process_look(&process) != TRIB_PROCESS_STOPPED)
        return 3;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return trib_process_look(&process) == TRIB_PROCESS_DEAD ? 0 : 4;
}

static void test_proc_of_another_namespace(void **state)
{
    int status;

    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frozen_v1),
        cmocka_unit_test(test_frozen_v2),
        cmocka_unit_test(test_stopped_in_turn),
        cmocka_unit_test(test_proc_of_another_namespace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
