/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_local_*: a meeting place for the ranks of this host, made by what starts them.
 * They meet in boot/local.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tributary/comm.h>

#include "base/error.h"
#include "boot/board.h"
#include "boot/meeting.h"

struct trib_local {
    struct trib_board board;
    int fd;
    char root[64];
};

trib_status_t trib_local_make(int ranks, trib_local_t **local_out,
                              struct trib_error *err)
{
    if (!local_out)
        return trib_fail(err, TRIB_ERR_INVALID, "trib_local_create: local_out is NULL");
    *local_out = NULL;
    if (ranks < 1 || ranks > TRIB_BOARD_RANKS_MAX)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "trib_local_create: %d ranks cannot be, it must be 1 to %d",
                         ranks, TRIB_BOARD_RANKS_MAX);

    struct trib_local *local = calloc(1, sizeof(*local));
    if (!local)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory in trib_local_create");
    trib_status_t status = trib_board_create(ranks, &local->fd, &local->board, err);
    if (status != TRIB_OK) {
        free(local);
        return status;
    }
    /* The process' own number, not "self": threads, forks and programs that they
     * execute, through any wrapper, all find the same file. */
    snprintf(local->root, sizeof(local->root), "local:/proc/%d/fd/%d", (int)getpid(),
             local->fd);
    *local_out = local;
    return TRIB_OK;
}

const char *trib_local_root(const trib_local_t *local)
{
    return local ? local->root : "";
}

void trib_local_set_pid(trib_local_t *local, int rank, int pid)
{
    if (local && rank >= 0 && rank < local->board.ranks && pid > 0)
        trib_board_announce(&local->board, rank, pid);
}

void trib_local_destroy(trib_local_t *local)
{
    if (!local)
        return;
    trib_board_close(&local->board);
    close(local->fd);
    free(local);
}
