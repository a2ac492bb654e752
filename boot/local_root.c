/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_local_*: create a rendezvous for the ranks of this host, in the process that
 * starts them. The ranks use it in boot/local.c.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tributary/comm.h>

#include "base/error.h"
#include "boot/shm_rendezvous.h"
#include "boot/local_root.h"

struct trib_local {
    struct trib_rendezvous rendezvous;
    int fd;
    char root[80];
};

/* Programs and shells reuse low descriptor numbers and would close an inherited one. */
#define INHERITED_FROM 64

static void move_up(struct trib_local *local)
{
    int fd = fcntl(local->fd, F_DUPFD_CLOEXEC, INHERITED_FROM);

    if (fd < 0)
        return; /* low descriptor limit: keep the low number */
    close(local->fd);
    local->fd = fd;
}

trib_status_t trib_local_make(int ranks, trib_local_t **local_out,
                              struct trib_error *err)
{
    if (!local_out)
        return trib_fail(err, TRIB_ERR_INVALID, "trib_local_create: local_out is NULL");
    *local_out = NULL;
    if (ranks < 1 || ranks > TRIB_RENDEZVOUS_RANKS_MAX)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "trib_local_create: %d ranks cannot be, it must be 1 to %d",
                         ranks, TRIB_RENDEZVOUS_RANKS_MAX);

    struct trib_local *local = calloc(1, sizeof(*local));
    if (!local)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory in trib_local_create");
    trib_status_t status =
        trib_rendezvous_create(ranks, &local->fd, &local->rendezvous, err);
    if (status != TRIB_OK) {
        free(local);
        return status;
    }
    move_up(local);
    /* Use the numeric PID, not "self", so that threads, forks and executed programs,
     * through any wrapper, find the same file. The descriptor number also identifies an
     * inherited descriptor; the key verifies it. */
    int number = trib_process_number((int)getpid());
    snprintf(local->root, sizeof(local->root), "local:/proc/%d/fd/%d@%016" PRIx64,
             number ? number : (int)getpid(), local->fd,
             trib_rendezvous_key(&local->rendezvous));
    *local_out = local;
    return TRIB_OK;
}

const char *trib_local_root(const trib_local_t *local)
{
    return local ? local->root : "";
}

void trib_local_set_pid(trib_local_t *local, int rank, int pid)
{
    if (local && rank >= 0 && rank < local->rendezvous.ranks && pid > 0)
        trib_rendezvous_announce(&local->rendezvous, rank, pid);
}

void trib_local_inherit(trib_local_t *local)
{
    if (local)
        (void)fcntl(local->fd, F_SETFD, 0);
}

void trib_local_destroy(trib_local_t *local)
{
    if (!local)
        return;
    trib_rendezvous_close(&local->rendezvous);
    close(local->fd);
    free(local);
}
