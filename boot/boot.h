/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Boot: bootstrap of a job. Its one service is an all-gather of small blobs.
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
#define TRIB_BOOT_EXCHANGES 2 /* all-gathers of a boot: comm/members/wireup.c */
#define TRIB_BOOT_PHASE_MAX 24 /* bytes of a phase name, with its NUL */

struct trib_boot_opts {
    int rank;
    int size;
    const char *root; /* text accepted by trib_boots[].accepts; read in open only */
    const char *launcher; /* launcher that chose the root, e.g. "Slurm"; NULL: the
                           * user did */
    const struct trib_secret *secret; /* the job's secret, or NULL; copied in open.
                                       * If NULL, a secret in the root text applies */
    const struct trib_config *cfg; /* read in open only */
    /* trib_opts_t.allgather; NULL: use root */
    int (*allgather)(void *arg, const void *in, void *out, size_t bytes);
    void *allgather_arg;
    bool is_newcomer; /* at a running job's listener: rank and size are ignored, and the
                       * boot accepts trib_boot_request (boot/newcomers.h) */
    struct trib_idle *idle; /* called while waiting; may be NULL; outlives the boot */
    const struct trib_log *log; /* may be NULL; outlives the boot */
    struct trib_error *err; /* receives error messages that name rank, host, process
                             * and phase; outlives the boot */
};

struct trib_boot {
    const struct trib_boot_ops *ops;
    struct trib_net_met met; /* the connection to rank 0, if any */
    struct trib_secret secret; /* the job's secret, armed; may be unset */
};

/*
 * A boot is used by one thread at a time.
 *
 * open       join; may return before the other ranks have joined
 * allgather  every rank passes `bytes` (equal on all, <= TRIB_BOOT_BLOB_MAX) and
 *            receives size * bytes, by rank. `phase` names the exchange in errors
 *            ("address", "ready") and must be equal on all ranks: TRIB_ERR_MISMATCH
 *            names the rank that differs. Never hangs: a dead rank is reported within 2
 *            s, a stopped one within stop_timeout_ms plus 1 s (both
 *            TRIB_ERR_PEER_LOST), a missing one after boot_timeout_ms (TRIB_ERR_BOOT).
 *            All ranks get the same error message. After an error, only close is
 *            allowed
 * fail       report that this rank failed: the current or next allgather of every other
 *            rank fails with an error that names this rank and contains `why`
 * close      disconnect; ranks still waiting for this one get an error that says so
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

/** trib_boots - all boots in order of preference, NULL-terminated. */
extern const struct trib_boot_ops *const trib_boots[];

extern const struct trib_boot_ops trib_boot_local;
extern const struct trib_boot_ops trib_boot_self;
extern const struct trib_boot_ops trib_boot_tcp;
extern const struct trib_boot_ops trib_boot_user; /* over trib_boot_opts.allgather */

/** trib_boot_is_here - return true if only ranks of this host can use the root. */
bool trib_boot_is_here(const char *root);

/** trib_boot_arm - arm the secret when opening a boot; rank 0 warns if this host
 * cannot. */
void trib_boot_arm(const struct trib_boot_opts *opts, struct trib_secret *secret);

/**
 * trib_boot_open - open the first boot that accepts opts->root; size 1 needs no root
 * (NULL or "").
 *
 * errors   TRIB_ERR_CONFIG: invalid rank, size or root; TRIB_ERR_MISMATCH: another rank
 *          has other values; TRIB_ERR_BOOT, TRIB_ERR_SYSTEM, TRIB_ERR_NO_MEMORY. The
 *          message is in opts->err
 */
trib_status_t trib_boot_open(const struct trib_boot_opts *opts, struct trib_boot **out);

#endif
