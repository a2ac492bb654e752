/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Daemons with folders for snapshots, which a rank kills and starts again, and stores
 * there.
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
    const char *key; /* free for the test, as is the next one */
    bool again;
};

/** snapshot_rig_open - n daemons; keeps: with folders. false: tribd was built without
 * what it needs. */
bool snapshot_rig_open(struct snapshot_rig *rig, int n, bool keeps);

/** snapshot_rig_close - end them, and remove their folders. */
void snapshot_rig_close(struct snapshot_rig *rig);

/** snapshot_rig_config - the settings of ranks that use them. */
void snapshot_rig_config(const struct snapshot_rig *rig, const char *transport,
                         char config[200]);

/** snapshot_rig_start - rank 0 starts daemon i again at its port. */
void snapshot_rig_start(const struct ranks_self *self, struct snapshot_rig *rig, int i);

/** snapshot_rig_kill - all ranks: rank 0 kills daemon i and starts it again. */
void snapshot_rig_kill(const struct ranks_self *self, struct snapshot_rig *rig, int i);

/** snapshot_rig_store - a store; pushes: a snapshot after so many. */
trib_store_t *snapshot_rig_store(const struct ranks_self *self, const char *key,
                                 uint64_t pushes);

/** snapshot_rig_need - die unless a call of the store went well. */
void snapshot_rig_need(const struct ranks_self *self, const trib_store_t *store,
                       trib_status_t st, const char *what);

/** snapshot_rig_refused - die unless a call gave that status, and its sentence has
 * these words. */
void snapshot_rig_refused(const struct ranks_self *self, const trib_store_t *store,
                          trib_status_t st, trib_status_t wanted, const char *words);

#endif
