/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Make calls fail instead of raising a signal.
 *
 * Writing to a pipe without a reader raises SIGPIPE, and writing beyond ulimit -f
 * raises SIGXFSZ; both kill an unprepared program. The library must not cause that, nor
 * change the program's handlers. The signal goes to the writing thread, so this thread
 * blocks it during the call and discards it.
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
    sigset_t before; /* previous signal mask of the thread */
    bool pending; /* was pending before, and stays pending */
};

/** trib_quiet_begin - block `signal` in this thread until trib_quiet_end. */
void trib_quiet_begin(struct trib_quiet *quiet, int signal);

/** trib_quiet_end - discard the signal if raised and restore the mask; preserves
 * errno. */
void trib_quiet_end(const struct trib_quiet *quiet);

#endif
