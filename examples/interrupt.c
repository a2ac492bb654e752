/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ctrl-C ends a wait: the last rank does not enter the barrier, and a rank that gets
 * SIGINT gives up. The error message of all ranks names it.
 *
 *     cc interrupt.c $(pkg-config --cflags --libs tributary) -o interrupt
 *     trib-run -n 3 -- ./interrupt
 */
#include <signal.h>
#include <stdio.h>
#include <tributary.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

static int idle(void *arg) /* called at least every 200 us by waiting calls */
{
    (void)arg;
    return interrupted;
}

int main(void)
{
    trib_opts_t opts = TRIB_OPTS_INIT;
    trib_comm_t *comm;

    signal(SIGINT, on_signal);
    opts.idle = idle;
    if (trib_init(&opts, &comm) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    printf("process %d waits\n", (int)getpid());
    fflush(stdout);
    if (trib_rank(comm) == trib_size(comm) - 1)
        sleep(10); /* simulates a rank that still computes */
    if (trib_barrier(comm) != TRIB_OK)
        fprintf(stderr, "%s\n", trib_last_error(comm));
    return trib_free_comm(comm) != TRIB_OK;
}
