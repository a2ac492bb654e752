/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/common/perf_interrupt.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

static volatile sig_atomic_t count;
static volatile time_t first_s;
static volatile pid_t passed_to;

static time_t seconds(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec;
}

static void note(int number)
{
    const int saved = errno;
    const pid_t group = passed_to;
    const bool again = count > 0 && seconds() - first_s > 1;

    if (count == 0)
        first_s = seconds();
    count = again ? 2 : 1;
    if (group > 0)
        kill(-group, again ? SIGKILL : SIGTERM);
    else if (again) {
        (void)signal(number, SIG_DFL);
        (void)raise(number);
    }
    errno = saved;
}

void perf_interrupt_watch(void)
{
    struct sigaction old, action = {.sa_handler = note, .sa_flags = SA_RESTART};

    count = 0;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        (void)sigaction(SIGINT, &action, NULL);
}

void perf_interrupt_end(void)
{
    struct sigaction old;

    if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler == note)
        (void)signal(SIGINT, SIG_DFL);
}

bool perf_interrupted(void)
{
    return count > 0;
}

void perf_interrupt_pass(pid_t group)
{
    passed_to = group;
}

void perf_interrupt_take(bool take)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    (void)sigprocmask(take ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL);
}
