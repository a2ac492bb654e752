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

struct trib_config;
struct trib_error;
struct trib_log;

#define TRIB_BOOT_BLOB_MAX 1024

struct trib_boot_opts {
    int rank;
    int size;
    const char *root; /* what trib_boots[].accepts said yes to */
    const struct trib_config *cfg;
    const struct trib_log *log; /* may be NULL */
    struct trib_error *err;     /* receives sentences that name rank, host, pid, phase */
};

struct trib_boot {
    const struct trib_boot_ops *ops;
};

/*
 * allgather  every rank gives `bytes` (the same on all, <= TRIB_BOOT_BLOB_MAX) and gets
 *            size * bytes, by rank. `phase` names it in errors ("address", "ready").
 *            Never hangs: a rank that dies is reported within 2 s, one that is stopped or
 *            does not come within the time limits; on one rank's failure all ranks get an
 *            error that names it (rank, host, pid where known, phase)
 *            (boot_timeout_ms for the first exchange, stop_timeout_ms afterwards once
 *            every rank has joined).
 */
struct trib_boot_ops {
    const char *name;
    const char *detail;
    bool (*accepts)(const char *root);
    trib_status_t (*open)(const struct trib_boot_opts *opts, struct trib_boot **out);
    trib_status_t (*allgather)(struct trib_boot *b, const char *phase, const void *in,
                               size_t bytes, void *out);
    void (*close)(struct trib_boot *b);
};

/** trib_boots - in order of preference, NULL at the end. */
extern const struct trib_boot_ops *const trib_boots[];

/** trib_boot_open - the first that accepts opts->root; size 1 needs no root. */
trib_status_t trib_boot_open(const struct trib_boot_opts *opts, struct trib_boot **out);

#endif
