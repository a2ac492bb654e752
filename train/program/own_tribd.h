/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tribd started by this program for strategies that need one: on loopback, or on a
 * simulated host. It ends with this process.
 */
#ifndef TRAIN_PROGRAM_OWN_TRIBD_H
#define TRAIN_PROGRAM_OWN_TRIBD_H

#include <stdbool.h>
#include <stddef.h>

#include "train/program/hosts.h"

struct own_tribd;

/** own_tribd_missing - return true if tribd is neither next to this program, nor in the
 * build tree, nor in PATH; why: an error message. */
bool own_tribd_missing(char *why, size_t bytes);

/**
 * own_tribd_start - start tribd and wait until it listens.
 *
 * tribd and the ranks share a key: the file in TRIB_SERVICE_KEY, or a generated one.
 *
 * hosts    run tribd on host number `host`; NULL: on loopback
 * alone    the network is isolated (hosts_be_alone): disable authentication and
 *          sealing, unless the user has configured them
 * owner    the caller: own_tribd_end
 * errors   -1 after an error message on standard error
 */
int own_tribd_start(const struct hosts *hosts, int host, bool alone,
                    struct own_tribd **tribd_out);

/** own_tribd_address - return the address, for TRIB_SERVICE. */
const char *own_tribd_address(const struct own_tribd *tribd);

/** own_tribd_auth - return the ranks' authentication method, for TRIB_SERVICE_AUTH;
 * NULL: the default. */
const char *own_tribd_auth(const struct own_tribd *tribd);

/** own_tribd_end - stop tribd; NULL is allowed. */
void own_tribd_end(struct own_tribd *tribd);

#endif
