/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parameter store: a parameter server in tribd. Ranks push to its named vectors and
 * pull from them independently of each other. The vector's rule defines the effect of a
 * push: add, a step of SGD or Adam, elastic averaging.
 *
 *     trib_store_open(comm, &store);                          // all ranks
 *     desc.name = "layer1"; desc.count = n; desc.rule = "sgd:rate=0.1,momentum=0.9";
 *     desc.initial = x;                                       // rank 0's counts
 *     trib_store_create(store, &desc, &vector);               // all ranks
 *
 *     trib_store_pull(vector, x, NULL, &version);             // any rank, any time
 *     trib_store_push(vector, gradient, NULL, &version);
 *
 * The version of a vector is the number of pushes applied to it. A push is applied
 * completely or not at all, and a pull returns a single version (for each range
 * separately, if the vector is sharded). A lost connection is reestablished and
 * interrupted calls are repeated; no push is applied twice.
 *
 * A push or a pull may be sparse, for elements given by their indices, such as the rows
 * of an embedding used by a batch. It may also be encoded by a codec like an all-reduce
 * (docs/codecs.md), for f32, f16, bf16 and 8-bit floats.
 *
 * The vectors are kept in the tribd instances named by TRIB_SERVICE; a vector's name
 * selects one of them. A long vector is sharded: cut into ranges on several instances
 * (trib_vector_desc_t.shards), which are pushed and pulled in parallel. Each range
 * applies each push once, and has its own version. The version of the vector is the
 * lowest of these: all ranges have at least that many pushes, and some may already have
 * pushes in progress. A call that waits for a version, or for ranks that lag, waits for
 * all ranges that it reads. Snapshots are taken of each range. Elements are sent over
 * the encrypted control connections of tribd, independently of the communicator's
 * transport and order.
 *
 * Memory counts against the quotas of the job's user: each vector with the state of its
 * rule, and for each rank its longest pushed or pulled vector and its longest list of
 * indices. All memory is freed when the ranks free the store, or 10 s after the last of
 * them was lost.
 *
 * A rank is lost when its connection closes, or when for 5 s its process is stopped or
 * its host unreachable. A thread of the library sends a heartbeat to each tribd every
 * second, so a rank may make no call for minutes. A lost rank that resumes reconnects
 * in its next call, as long as its store exists.
 *
 * A tribd with a snapshot folder (its setting snapshots) writes snapshots of vectors
 * there: on request of a rank, periodically, and of all changed vectors on an orderly
 * shutdown (SIGTERM). After a shutdown or a kill -9 of a tribd, pushes and pulls of its
 * vectors fail with TRIB_ERR_PEER_LOST, and the message gives the version in the
 * snapshot. trib_store_restore continues from the snapshot or from a rank's copy. A
 * later run that opens the store with the same key can restore its vectors in the same
 * way. The pause between two periodic snapshots of a vector is at least 0.1 s and at
 * least three times the duration of the first of them.
 *
 * All ranges of a sharded vector are restored, each from its newest snapshot. One range
 * may then include later pushes than another. trib_store_state counts the pushes that
 * all ranges have. When the rank repeats its pushes from there, by their numbers, each
 * range applies those that it lacks, and none twice. For snapshots of one moment, the
 * ranks must synchronise (trib_barrier) before and after trib_store_snapshot.
 *
 * Threads: one at a time. It may differ from the communicator's thread, except for
 * trib_store_open, trib_store_create and trib_store_restore. In a forked child
 * trib_store_free frees only the child's copy; calls that need tribd return
 * TRIB_ERR_INVALID.
 */
#ifndef TRIBUTARY_STORE_H
#define TRIBUTARY_STORE_H

#include <tributary/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trib_store trib_store_t;
typedef struct trib_vector trib_vector_t;

/**
 * trib_store_open - open a store for the ranks of a communicator.
 *
 * owner    the caller frees *store_out with trib_store_free before trib_free_comm
 * thread   collective over comm: every rank calls it, in the same order as other calls
 * errors   TRIB_ERR_CONFIG: TRIB_SERVICE names no tribd; TRIB_ERR_BOOT: it cannot be
 *          reached; TRIB_ERR_UNSUPPORTED: it is an older release; TRIB_ERR_NO_RESOURCE:
 *          it rejects the job, and trib_last_error gives the reason. An error on one
 *          rank is an error on all, and the communicator is unchanged
 * paper    parameter servers: Li et al., OSDI 2014
 */
TRIB_API trib_status_t trib_store_open(trib_comm_t *comm, trib_store_t **store_out);

/* Options of a store, the same on all ranks. */
typedef struct trib_store_opts {
    size_t size; /* sizeof(trib_store_opts_t) */
    const char *key; /* key to its snapshots: 64 hexadecimal digits (openssl rand -hex
                      * 32), shared by the runs of a job and kept secret. NULL: only
                      * this run can use its snapshots, and they are deleted with it.
                      * Rank 0's key is used */
    uint64_t snapshot_pushes; /* take a snapshot of a vector after this number of
                               * pushes; 0: not by pushes */
    double snapshot_s; /* take a snapshot at this interval in seconds, if the vector has
                        * changed, and once right after creation; 0: not by time. A
                        * snapshot of an earlier run stays until the first push */
} trib_store_opts_t;

#define TRIB_STORE_OPTS_INIT \
    { \
        sizeof(trib_store_opts_t), NULL, 0, 0 \
    }

/**
 * trib_store_open_with - open a store with options.
 *
 * As trib_store_open, and also:
 * opts     NULL: all defaults. Rank 0's are used
 * errors   TRIB_ERR_INVALID: an option; TRIB_ERR_UNSUPPORTED: snapshots are requested,
 *          and a tribd has no folder for them; TRIB_ERR_BUSY: another run uses the key.
 *          Once all ranks of that run are lost, a new store can use the key
 */
TRIB_API trib_status_t trib_store_open_with(trib_comm_t *comm,
                                            const trib_store_opts_t *opts,
                                            trib_store_t **store_out);

/**
 * trib_store_free - disconnect from the store and free its handles; NULL is allowed.
 *
 * Also frees the handles of its vectors. Waits for no other rank. After a lost
 * connection it reconnects first, which takes up to 10 s if tribd does not respond: a
 * rank that only disappeared would count as lost. The vectors are deleted when all
 * ranks have disconnected.
 * errors   none
 */
TRIB_API trib_status_t trib_store_free(trib_store_t *store);

/**
 * trib_store_error - return the message of the last failed call of a store.
 *
 * Includes the calls of its vectors.
 * owner    the library; valid until the next call
 */
TRIB_API const char *trib_store_error(const trib_store_t *store);

/* Work of a store on this rank since trib_store_open. The counters only grow. */
typedef struct trib_store_stats {
    size_t size; /* sizeof(trib_store_stats_t), set by the caller */
    uint64_t pushes; /* applied pushes, including those that also pull */
    uint64_t pulls; /* separate pulls */
    uint64_t sent_bytes; /* elements, indices and encoded chunks sent to tribd */
    uint64_t received_bytes; /* elements and encoded chunks received from tribd */
    uint64_t wait_ns; /* time in pushes and pulls */
} trib_store_stats_t;

#define TRIB_STORE_STATS_INIT \
    { \
        sizeof(trib_store_stats_t), 0, 0, 0, 0, 0 \
    }

/**
 * trib_store_stats - return statistics of this rank's pushes and pulls.
 *
 * stats    initialise with TRIB_STORE_STATS_INIT
 * errors   TRIB_ERR_INVALID: its size is wrong
 */
TRIB_API trib_status_t trib_store_stats(const trib_store_t *store,
                                        trib_store_stats_t *stats);

/* A vector, the same on all ranks except for `initial` and the codecs. */
typedef struct trib_vector_desc {
    size_t size; /* sizeof(trib_vector_desc_t) */
    const char *name; /* 1 to 64 letters, digits and . _ : - + @ / % = , */
    size_t count; /* elements, at least 1 */
    trib_dtype_t dtype; /* any but TRIB_BOOL. Narrow floats are stored in float32 */
    int shards; /* limit of tribds over which the vector is sharded; 1: it stays whole;
                 * 0: one for each MiB and 65536 elements, up to the number in
                 * TRIB_SERVICE */
    const char *rule; /* NULL: "sum". See trib_store_create */
    const void *initial; /* rank 0: [count] elements; NULL: zeros. Ignored on other
                          * ranks */
    const char *push_codec; /* default codec of pushes; NULL: not encoded */
    const char *pull_codec; /* default codec of pulls; NULL: not encoded */
} trib_vector_desc_t;

#define TRIB_VECTOR_DESC_INIT \
    { \
        sizeof(trib_vector_desc_t), NULL, 0, TRIB_F32, 0, NULL, NULL, NULL, NULL \
    }

/**
 * trib_store_create - create a vector with rank 0's elements.
 *
 * A rule is one of these; parameters with a number below are optional.
 *     sum                                               x += g
 *     sgd:rate=R,momentum=0,nesterov=0,decay=0          g += decay x; v = momentum v +
 *                                                       g; x -= R v, or, with nesterov,
 *                                                       R (g + momentum v)
 *     adam:rate=R,beta1=0.9,beta2=0.999,eps=1e-8,decay=0
 *                                                       Adam, with decoupled decay; its
 *                                                       step is the version
 *     elastic:pull=A                                    x is the centre: x += A (w - x)
 * Rules compute in float64 and round stored values once. All but sum require floats.
 *
 * owner    the store: *vector_out is valid until trib_store_free
 * thread   collective over the store's communicator, by a thread that may use it
 * errors   TRIB_ERR_INVALID: a field, or a rule, with the nearest name; TRIB_ERR_CODEC,
 *          TRIB_ERR_UNSUPPORTED: a codec, as in trib_store_push; TRIB_ERR_MISMATCH:
 *          the ranks' descriptions differ; TRIB_ERR_NO_RESOURCE: more memory than the
 *          job, its user or tribd has; TRIB_ERR_PEER_LOST. An error on one rank is an
 *          error on all. Repeat the call with the same description, or use another
 *          name: some tribds may have the vector already
 * paper    elastic averaging: Zhang, Choromanska & LeCun, NeurIPS 2015; Adam: Kingma &
 *          Ba, ICLR 2015, Loshchilov & Hutter, ICLR 2019
 */
TRIB_API trib_status_t trib_store_create(trib_store_t *store,
                                         const trib_vector_desc_t *desc,
                                         trib_vector_t **vector_out);

typedef struct trib_push_opts {
    size_t size; /* sizeof(trib_push_opts_t) */
    double rate; /* replaces the rate of sgd and adam; 0: the rule's rate */
    void *result; /* NULL, or [count] elements: the vector right after this push; for
                   * elastic the pusher's own w, moved towards the centre, w -= A (w -
                   * x). May be `data`. With indices: [count], for these elements */
    const char *codec; /* "topk:ratio=0.01"; "none": none; NULL: the vector's
                        * push_codec, which does not apply with indices */
    const uint64_t *indices; /* NULL: all elements; else [count], in any order, each
                              * below the vector's count; non-NULL even if count is 0 */
    size_t count; /* number of indices */
} trib_push_opts_t;

#define TRIB_PUSH_OPTS_INIT \
    { \
        sizeof(trib_push_opts_t), 0, NULL, NULL, NULL, 0 \
    }

/**
 * trib_store_push - update a vector by its rule.
 *
 * Blocks until the push is applied. Waits for no other rank, but pushes to one vector
 * are applied one after the other. *version_out is the version right after this push.
 *
 * With opts->indices `data` holds the values of these elements. The rule applies only
 * to them; all other elements and their momentum are unchanged. PyTorch's SparseAdam
 * does the same (its step is the vector's version here), and so does its SGD for sparse
 * gradients without momentum. Values of one index are added first, in their order, and
 * the rule applies once.
 *
 * With a codec, tribd applies the decoded values. Codecs with error feedback are topk,
 * efsign, … by default, and others with ef=1. Their residual stays in `vector`, and the
 * next push with such a codec adds it; a failed push leaves it unchanged. Random
 * numbers depend on TRIB_SEED, the vector's name, the rank and the number of the push.
 * opts->result is returned without a codec.
 *
 * A push that failed may have been applied. So the next push to the vector counts as
 * its repetition: if the failed push was applied, the next one is not. Either repeat
 * the failed push, or call trib_store_wait(vector, 0, 0, NULL) first and compare
 * trib_vector_state_t.pushes.
 * data     [count] elements: a gradient, or for elastic the rank's own w
 * opts     NULL: all defaults
 * version_out NULL: not wanted
 * errors   TRIB_ERR_INVALID: an option, or an index; TRIB_ERR_CODEC: a codec's text;
 *          TRIB_ERR_UNSUPPORTED: a codec for another dtype, for pairs, for elastic, one
 *          that learns (powersgd), or whose error feedback would diverge;
 *          TRIB_ERR_NO_MEMORY, TRIB_ERR_NO_RESOURCE: no memory in the job's quota, and
 *          nothing was applied, except to ranges in other tribds, which do not apply
 *          the push again when it is repeated; TRIB_ERR_PEER_LOST, TRIB_ERR_TIMEOUT:
 *          tribd is lost, with its vectors until trib_store_restore, after which
 *          trib_store_state says whether the push was applied
 * paper    error feedback: Seide et al., Interspeech 2014; Stich et al., NeurIPS 2018
 */
TRIB_API trib_status_t trib_store_push(trib_vector_t *vector, const void *data,
                                       const trib_push_opts_t *opts,
                                       uint64_t *version_out);

typedef struct trib_pull_opts {
    size_t size; /* sizeof(trib_pull_opts_t) */
    size_t first; /* first element to pull */
    size_t count; /* elements; 0: up to the end */
    uint64_t at_least; /* wait for this version; for a version after v, pass v + 1 */
    int timeout_ms; /* limit of the wait for that version and for ranks that lag; 0: the
                     * setting timeout_ms */
    const char *codec; /* as for a push; NULL: the vector's pull_codec */
    const uint64_t *indices; /* NULL: elements given by `first` and `count`; else
                              * [count] elements in any order, also repeated; `first` is
                              * 0 */
} trib_pull_opts_t;

#define TRIB_PULL_OPTS_INIT \
    { \
        sizeof(trib_pull_opts_t), 0, 0, 0, 0, NULL, NULL \
    }

/**
 * trib_store_pull - read the current elements of a vector, or of a part of it.
 *
 * Blocks until the vector has version opts->at_least, and while a rank lags by more
 * pushes than trib_store_set_staleness allows.
 *
 * With a codec, tribd encodes the elements and the rank decodes them. The result has
 * the same bits for the same rank, version and part. Nothing compensates for the
 * rounding, so biased codecs are rejected unless they round each element independently.
 * out      the requested elements; may be partly written after an error
 * opts     NULL: all elements
 * version_out version that was read; NULL: not wanted
 * errors   as trib_store_push; TRIB_ERR_UNSUPPORTED: a biased codec; TRIB_ERR_TIMEOUT:
 *          the awaited version or rank, which trib_store_error names, did not come in
 *          time; the store stays usable
 */
TRIB_API trib_status_t trib_store_pull(trib_vector_t *vector, void *out,
                                       const trib_pull_opts_t *opts,
                                       uint64_t *version_out);

/**
 * trib_store_wait - block until a vector has a version, without reading elements.
 *
 * version  0 returns at once, with the current version in *version_out
 * timeout_ms 0: the setting timeout_ms
 * version_out at least `version`; NULL: not wanted
 * errors   as trib_store_pull
 */
TRIB_API trib_status_t trib_store_wait(trib_vector_t *vector, uint64_t version,
                                       int timeout_ms, uint64_t *version_out);

/**
 * trib_store_snapshot - write a snapshot of a vector to disk.
 *
 * Blocks until the snapshot is on the disk of the vector's tribd, with the state of the
 * rule, the version, and the number of each rank's last push. It replaces the previous
 * snapshot, which stays if this one fails. Other ranks may push during the call.
 *
 * vector   NULL: all vectors, one after the other, each with its own version
 * version_out version of the snapshot; NULL: not wanted; must be NULL without vector
 * errors   TRIB_ERR_UNSUPPORTED: tribd has no folder for snapshots;
 *          TRIB_ERR_NO_RESOURCE: no memory for a copy, or no disk space, within the
 *          quotas; TRIB_ERR_SYSTEM: a disk error, which trib_store_error describes; as
 *          trib_store_push
 */
TRIB_API trib_status_t trib_store_snapshot(trib_store_t *store, trib_vector_t *vector,
                                           uint64_t *version_out);

/* Restore from the vector's newest snapshot. */
#define TRIB_RESTORE_SNAPSHOT (-1)
/* The same, but only lost vectors; others are unchanged. */
#define TRIB_RESTORE_LOST (-2)

/**
 * trib_store_restore - restore vectors from snapshots or from a rank's copy.
 *
 * Call it after a lost tribd is available again, to roll back, or in a new run after
 * trib_store_create. All ranks return with the same version. Later pushes are undone
 * for all ranks; trib_store_state returns the number of the rank's own pushes that the
 * vector includes. Residuals stay with the rank. After an error the call may be
 * repeated, also with another source.
 *
 * vector   NULL: all vectors of the store, and each tribd that lost it before it had a
 *          vector there; not with a rank's copy
 * from     TRIB_RESTORE_SNAPSHOT, TRIB_RESTORE_LOST, or the rank whose copy is used. A
 *          copy gets the newest version known to that rank, the rule's state restarts,
 *          and the counts of ranks' pushes are 0
 * copy     [count] elements on rank `from`; ignored on other ranks
 * version_out version of the vector; NULL: not wanted; must be NULL without vector
 * thread   collective over the store's communicator, by a thread that may use it
 * errors   TRIB_ERR_NO_RESOURCE: no snapshot with this key, name and user;
 *          TRIB_ERR_MISMATCH: its file is damaged, foreign, or of another dtype, length
 *          or rule, and is kept; TRIB_ERR_PEER_LOST: a rank cannot reach tribd yet;
 *          TRIB_ERR_INVALID. An error on one rank is an error on all
 */
TRIB_API trib_status_t trib_store_restore(trib_store_t *store, trib_vector_t *vector,
                                          int from, const void *copy,
                                          uint64_t *version_out);

/* No version. */
#define TRIB_VERSION_NONE UINT64_MAX

/* A rank's local knowledge of a vector. */
typedef struct trib_vector_state {
    size_t size; /* sizeof(trib_vector_state_t), set by the caller */
    uint64_t version; /* newest version reported by tribd */
    uint64_t saved; /* version in the newest snapshot reported by tribd;
                     * TRIB_VERSION_NONE: none */
    uint64_t pushes; /* pushes of this rank applied to the vector */
    int lost; /* 1: it needs trib_store_restore */
    int reserved; /* 0 */
} trib_vector_state_t;

#define TRIB_VECTOR_STATE_INIT \
    { \
        sizeof(trib_vector_state_t), 0, 0, 0, 0, 0 \
    }

/**
 * trib_store_state - return this rank's knowledge of a vector.
 *
 * Does not communicate.
 * errors   TRIB_ERR_INVALID: the size of *state
 */
TRIB_API trib_status_t trib_store_state(const trib_vector_t *vector,
                                        trib_vector_state_t *state);

/**
 * trib_store_residual_get - copy this rank's residual of [first, first + count).
 *
 * The residual belongs to this rank and is not in snapshots. A rank saves it with the
 * rest of its own state, and passes it to trib_store_residual_set in a later run. Zeros
 * if there was no push with error feedback.
 * residual [count] elements, in the unit of the vector, whatever its dtype
 * errors   TRIB_ERR_INVALID: no such elements; TRIB_ERR_UNSUPPORTED: no codec supports
 *          the vector's dtype
 */
TRIB_API trib_status_t trib_store_residual_get(trib_vector_t *vector, size_t first,
                                               size_t count, float *residual);

/**
 * trib_store_residual_set - replace this rank's residual of [first, first + count).
 *
 * The next push with error feedback adds it.
 * residual as trib_store_residual_get, read
 * errors   as trib_store_residual_get; TRIB_ERR_NO_MEMORY
 */
TRIB_API trib_status_t trib_store_residual_set(trib_vector_t *vector, size_t first,
                                               size_t count, const float *residual);

/* No bound: pulls do not wait for other ranks. */
#define TRIB_STALE_ANY (-1)

/**
 * trib_store_set_staleness - bound the difference of ranks in pushes to a vector.
 *
 * From now on a pull of this rank blocks while another rank lags behind it by more than
 * `bound` pushes to that vector. 0: the ranks push in lockstep. Ranks that have freed
 * the store do not count. A lost rank does, because it may come back: a pull waits for
 * it until its timeout (trib_pull_opts_t.timeout_ms, 120 s by default) and fails with
 * TRIB_ERR_TIMEOUT; trib_store_error says that the rank is lost. TRIB_STALE_ANY lets
 * the other ranks continue without it. All ranks should set the same bound.
 *
 * bound    pushes; TRIB_STALE_ANY, the initial value: no bound
 * errors   TRIB_ERR_INVALID
 * paper    stale synchronous parallel: Ho et al., NeurIPS 2013
 */
TRIB_API trib_status_t trib_store_set_staleness(trib_store_t *store, int bound);

#ifdef __cplusplus
}
#endif

#endif
