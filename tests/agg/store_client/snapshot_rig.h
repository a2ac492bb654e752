/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Daemons with folders for snapshots, which a rank kills and restarts, and their
 * stores.
 */
#ifndef TESTS_AGG_STORE_CLIENT_SNAPSHOT_RIG_H
#define TESTS_AGG_STORE_CLIENT_SNAPSHOT_RIG_H

#include "tests/harness/daemon.h"
#include "tests/harness/ranks.h"

/* The daemons of a test. */
struct snapshot_rig {
    struct daemon_process d[3];
    char folder[3][DAEMON_PATH];
    int n;
    const char *key; /* for use by the test, like the next field */
    bool again;
};

/** snapshot_rig_open - start n daemons; keeps: with folders. Return false if tribd was
 * built without a dependency. */
bool snapshot_rig_open(struct snapshot_rig *rig, int n, bool keeps);

/** snapshot_rig_close - end the daemons and remove their folders. */
void snapshot_rig_close(struct snapshot_rig *rig);

/** snapshot_rig_config - write the settings of ranks that use them. */
void snapshot_rig_config(const struct snapshot_rig *rig, const char *transport,
                         char config[200]);

/** snapshot_rig_start - let rank 0 restart daemon i at its port. */
void snapshot_rig_start(const struct ranks_self *self, struct snapshot_rig *rig, int i);

/** snapshot_rig_kill - called by all ranks: rank 0 kills daemon i and restarts it. */
void snapshot_rig_kill(const struct ranks_self *self, struct snapshot_rig *rig, int i);

/** snapshot_rig_store - open a store; pushes: number of pushes between snapshots. */
trib_store_t *snapshot_rig_store(const struct ranks_self *self, const char *key,
                                 uint64_t pushes);

/** snapshot_rig_need - exit unless a call of the store succeeded. */
void snapshot_rig_need(const struct ranks_self *self, const trib_store_t *store,
                       trib_status_t st, const char *what);

/** snapshot_rig_refused - exit unless a call returned that status and its error message
 * contains these words. */
void snapshot_rig_refused(const struct ranks_self *self, const trib_store_t *store,
                          trib_status_t st, trib_status_t wanted, const char *words);

#endif
