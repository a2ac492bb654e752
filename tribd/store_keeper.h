/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The snapshots of one store: when one is due, its copy, and what became of it.
 *
 * A thread walks over a vector and copies it, and pushes follow behind (store_walk.h);
 * the archive's thread writes the copy. There is one at a time, so a store takes memory
 * for a copy of its longest vector.
 *
 * Threads: all of the store, but for store_keeper_step, which is one's.
 */
#ifndef TRIBD_STORE_KEEPER_H
#define TRIBD_STORE_KEEPER_H

#include "agg/protocol/control.h"
#include "tribd/archive.h"

struct store_keeper;
struct trib_metrics_writer;
struct trib_store_table;

struct store_keeper_opts {
    struct archive *archive; /* NULL: no snapshots */
    const struct trib_log *log;
    struct trib_store_table *table;
    struct trib_quota *quota;
    struct trib_metrics_writer *writer; /* or NULL */
    int wake_fd;
    uint64_t every_pushes, every_ns; /* 0: not by these */
    struct trib_snapshot_about about; /* owner, user and job */
};

/* What became of an order. */
struct store_kept {
    struct trib_control_store_snapshot what;
    uint64_t changes; /* of the vector when it was copied */
    struct trib_error err;
};

/** store_keeper_create - errors: TRIB_ERR_NO_MEMORY. */
trib_status_t store_keeper_create(const struct store_keeper_opts *opts,
                                  struct store_keeper **out);

/** store_keeper_free - wait for what is under way, and free it; NULL is allowed. */
void store_keeper_free(struct store_keeper *keeper);

/** store_keeper_idle - true if the next order may be given. */
bool store_keeper_idle(struct store_keeper *keeper);

/** store_keeper_give - carry out an order of a rank, unless another one is under way;
 * true: `out` says already why not. */
bool store_keeper_give(struct store_keeper *keeper,
                       const struct trib_control_store_snapshot *what,
                       struct store_kept *out);

/** store_keeper_step - begin what is due by itself, and end what is done; true: `out`
 * says what has ended. */
bool store_keeper_step(struct store_keeper *keeper, uint64_t now_ns,
                       struct store_kept *out);

/** store_keeper_last - write all that has changed since its last snapshot, and wait for
 * that. No other thread uses the store any more. */
void store_keeper_last(struct store_keeper *keeper);

/** store_keeper_found - note the snapshot that a vector has from before. */
void store_keeper_found(struct store_keeper *keeper, uint32_t vector);

#endif
