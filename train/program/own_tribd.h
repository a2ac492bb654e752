/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tribd for the strategies that need one, of this program's own: on loopback, or on a
 * host beside those of the ranks. It ends with this process.
 */
#ifndef TRAIN_PROGRAM_OWN_TRIBD_H
#define TRAIN_PROGRAM_OWN_TRIBD_H

#include <stdbool.h>
#include <stddef.h>

#include "train/program/hosts.h"

struct own_tribd;

/**
 * own_tribd_missing - true if there is no program tribd beside this one, in the build
 * tree or in PATH; why: a sentence.
 */
bool own_tribd_missing(char *why, size_t bytes);

/**
 * own_tribd_start - start tribd, and wait until jobs find it.
 *
 * It and the ranks share a key: the file that TRIB_SERVICE_KEY names, else a new one
 * that this sets.
 * hosts    it is a process of host `host` there; NULL: on loopback
 * alone    nobody else reaches it (hosts_be_alone): unless the user has set something
 *          of the kind, nobody proves anything, and nothing is sealed
 * owner    the caller: own_tribd_end
 * errors   -1 after a sentence on standard error, and the log of tribd
 */
int own_tribd_start(const struct hosts *hosts, int host, bool alone,
                    struct own_tribd **tribd_out);

/** own_tribd_setting - the value of a setting such as TRIB_SERVICE; false: it is the
 * default. */
bool own_tribd_setting(const char *name, char *value, size_t bytes);

/** own_tribd_address - where jobs find it, as in TRIB_SERVICE. */
const char *own_tribd_address(const struct own_tribd *tribd);

/** own_tribd_auth - how ranks prove to it who they are, as in TRIB_SERVICE_AUTH; NULL:
 * as they would anyhow. */
const char *own_tribd_auth(const struct own_tribd *tribd);

/** own_tribd_end - NULL: nothing happens. */
void own_tribd_end(struct own_tribd *tribd);

#endif
