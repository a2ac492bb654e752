/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Boot: who and where are the ranks. One service: all-gather of small blobs.
 */
#ifndef BOOT_BOOT_H
#define BOOT_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

#include "base/addresses.h"
#include "base/secret.h"

struct trib_config;
struct trib_error;
struct trib_idle;
struct trib_log;

#define TRIB_BOOT_BLOB_MAX 2560
#define TRIB_BOOT_EXCHANGES 2 /* all-gathers of a start: comm/wireup.c */
#define TRIB_BOOT_PHASE_MAX 24 /* bytes of a phase's name with its NUL */

struct trib_boot_opts {
    int rank;
    int size;
    const char *root; /* text that trib_boots[].accepts took; read in open only */
    const char *launcher; /* launcher that said where to meet, "Slurm"; NULL: root is
                           * the user's */
    const struct trib_secret *secret; /* secret of the job, or NULL; copied in open. If
                                       * NULL, a secret in the text of the root
                                       * counts */
    const struct trib_config *cfg; /* read in open only */
    int (*allgather)(void *arg, const void *in, void *out, size_t bytes); /* the
                                * caller's, trib_opts_t.allgather; NULL: root counts */
    void *allgather_arg;
    bool knocks; /* a newcomer at the listener of a job that runs: rank and size do not
                  * count, and the boot takes trib_boot_ask (boot/newcomers.h) */
    struct trib_idle *idle; /* called by whatever waits; NULL: nothing is. Outlives the
                             * boot */
    const struct trib_log *log; /* may be NULL; outlives the boot */
    struct trib_error *err; /* receives sentences that name rank, host, process and
                               phase; outlives the boot */
};

struct trib_boot {
    const struct trib_boot_ops *ops;
    struct trib_net_met met; /* the connection to rank 0, if there is one */
    struct trib_secret secret; /* secret that all ranks of the job have, armed; may be
                                * unset */
};

/*
 * One thread at a time uses a boot.
 *
 * open       join. May return before the others have come
 * allgather  every rank gives `bytes` (the same on all, <= TRIB_BOOT_BLOB_MAX) and gets
 *            size * bytes, by rank. `phase` names it in errors ("address", "ready") and
 *            must be the same on all, too: TRIB_ERR_MISMATCH names who differs.
 *            Never hangs: a rank that has died is reported within 2 s, one that is
 * stopped within stop_timeout_ms and a second, ranks that just do not come after
 *            boot_timeout_ms: TRIB_ERR_PEER_LOST for the first two, TRIB_ERR_BOOT for
 * the third. All ranks get the same sentence. After an error only close is left. fail
 * say that this rank cannot go on: the present or next allgather of every other rank
 * gives an error that names this rank and carries `why` close      leave. Ranks that
 * still wait for this one get an error that says so
 */
struct trib_boot_ops {
    const char *name;
    const char *detail;
    bool (*accepts)(const char *root);
    trib_status_t (*open)(const struct trib_boot_opts *opts, struct trib_boot **out);
    trib_status_t (*allgather)(struct trib_boot *b, const char *phase, const void *in,
                               size_t bytes, void *out);
    void (*fail)(struct trib_boot *b, const char *why);
    void (*close)(struct trib_boot *b);
};

/** trib_boots - all boots in order of preference, NULL at the end. */
extern const struct trib_boot_ops *const trib_boots[];

extern const struct trib_boot_ops trib_boot_local;
extern const struct trib_boot_ops trib_boot_self;
extern const struct trib_boot_ops trib_boot_tcp;
extern const struct trib_boot_ops trib_boot_user; /* over trib_boot_opts.allgather */

/** trib_boot_is_here - true if ranks of this host alone can meet at that root. */
bool trib_boot_is_here(const char *root);

/** trib_boot_arm - ready a secret, for those that open a boot; rank 0 warns if this
 * host cannot. */
void trib_boot_arm(const struct trib_boot_opts *opts, struct trib_secret *secret);

/**
 * trib_boot_open - the first that accepts opts->root; size 1 needs no root (NULL or
 * "").
 *
 * errors   TRIB_ERR_CONFIG where rank, size and root cannot be right, TRIB_ERR_MISMATCH
 *          where another rank was told something else, TRIB_ERR_BOOT, TRIB_ERR_SYSTEM,
 *          TRIB_ERR_NO_MEMORY; the sentence is in opts->err
 */
trib_status_t trib_boot_open(const struct trib_boot_opts *opts, struct trib_boot **out);

#endif
