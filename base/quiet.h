/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that fail instead of raising a signal.
 *
 * A line to a pipe that nobody reads raises SIGPIPE, a file beyond ulimit -f SIGXFSZ,
 * and both end a program that does not expect them. What the library writes must not do
 * that, and the program's handlers are not the library's to change. The signal goes to
 * the thread that writes, so this thread blocks it for the while and takes it back.
 *
 *     struct trib_quiet quiet;
 *     trib_quiet_begin(&quiet, SIGPIPE);
 *     write(…);                            now fails with EPIPE
 *     trib_quiet_end(&quiet);
 */
#ifndef BASE_QUIET_H
#define BASE_QUIET_H

#include <signal.h>
#include <stdbool.h>

struct trib_quiet {
    sigset_t signal;
    sigset_t before; /* the thread's mask */
    bool pending; /* it was pending before, and stays so */
};

/** trib_quiet_begin - this thread does not get `signal` until trib_quiet_end. */
void trib_quiet_begin(struct trib_quiet *quiet, int signal);

/** trib_quiet_end - drop the signal if it came, restore the mask; errno is kept. */
void trib_quiet_end(const struct trib_quiet *quiet);

#endif
