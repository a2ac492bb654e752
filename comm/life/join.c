/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Joining a first communicator.
 */
#include "comm/life/join.h"

#include <assert.h>

#include "boot/boot.h"
#include "boot/launcher.h"
#include "comm/core/communicator.h"

trib_status_t trib_boot_exchange(void *arg, const char *phase, const void *in,
                                 size_t bytes, void *out)
{
    struct trib_boot *b = arg;

    assert(b && bytes > 0 && bytes <= TRIB_BOOT_BLOB_MAX);
    return b->ops->allgather(b, phase, in, bytes, out);
}

/* With a caller's allgather, the launcher is not consulted. */
static trib_status_t check_allgather(const trib_opts_t *opts,
                                     struct trib_boot_opts *bopts)
{
    if (opts->root && opts->root[0])
        return trib_fail(bopts->err, TRIB_ERR_CONFIG,
                         "trib_opts_t sets both root and allgather: set only one, the "
                         "ranks rendezvous through it");
    if (bopts->rank < 0 || bopts->size < 1)
        return trib_fail(bopts->err, TRIB_ERR_CONFIG,
                         "trib_opts_t.allgather needs this rank's number and the "
                         "number of ranks: set rank_plus_1 and ranks");
    bopts->root = ""; /* TRIB_ROOT is for ranks without an allgather */
    return TRIB_OK;
}

trib_status_t trib_comm_join(struct trib_comm *comm, const trib_opts_t *opts,
                             struct trib_boot **boot_out, int *rank_out, int *size_out)
{
    int given = opts->rank_plus_1;
    struct trib_boot_opts bopts = {.rank = given ? given - 1 : comm->cfg.rank,
                                   .size = opts->ranks ? opts->ranks : comm->cfg.size,
                                   .root = opts->root ? opts->root : comm->cfg.root,
                                   .cfg = &comm->cfg,
                                   .allgather = opts->allgather,
                                   .allgather_arg = opts->allgather_arg,
                                   .idle = comm->idle,
                                   .log = &comm->log,
                                   .err = &comm->err};
    struct trib_secret secret;
    struct trib_launch launch = {.hold = -1};
    trib_status_t st = trib_secret_given(&secret, &comm->err);
    if (st == TRIB_OK && opts->allgather)
        st = check_allgather(opts, &bopts);
    else if (st == TRIB_OK)
        st = trib_launch_complete(&bopts, &launch);
    bopts.secret = secret.is_set ? &secret : &launch.secret;
    if (st == TRIB_OK)
        st = trib_boot_open(&bopts, boot_out);
    if (st == TRIB_OK)
        comm->secret = (*boot_out)->secret;
    trib_launch_release(&launch);
    trib_secret_wipe(&secret);
    trib_secret_wipe(&launch.secret);
    *rank_out = bopts.rank;
    *size_out = bopts.size;
    return st;
}
