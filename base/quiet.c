/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/quiet.h"

#include <errno.h>
#include <time.h>

void trib_quiet_begin(struct trib_quiet *quiet, int signal)
{
    sigset_t pending;

    sigemptyset(&quiet->signal);
    sigaddset(&quiet->signal, signal);
    pthread_sigmask(SIG_BLOCK, &quiet->signal, &quiet->before);
    sigpending(&pending);
    quiet->pending = sigismember(&pending, signal) == 1;
}

void trib_quiet_end(const struct trib_quiet *quiet)
{
    const struct timespec now = {0};
    int saved = errno;

    while (!quiet->pending && sigtimedwait(&quiet->signal, NULL, &now) < 0 &&
           errno == EINTR)
        continue;
    pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
    errno = saved;
}
