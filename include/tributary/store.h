/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The store: named vectors that live in tribd, to which ranks push and from which they
 * pull, each in its own time. A rule of the vector says what a push does: add, a step
 * of SGD or Adam, elastic averaging. So it is a parameter server.
 *
 *     trib_store_open(comm, &store);                          // all ranks
 *     desc.name = "layer1"; desc.count = n; desc.rule = "sgd:rate=0.1,momentum=0.9";
 *     desc.initial = x;                                       // rank 0's counts
 *     trib_store_create(store, &desc, &vector);               // all ranks
 *
 *     trib_store_pull(vector, x, NULL, &version);             // any rank, any time
 *     trib_store_push(vector, gradient, NULL, &version);
 *
 * A vector has a version, the number of pushes that it has taken. A push is applied
 * whole or not at all, and a pull is of one version (each range for itself, if it is
 * cut over several tribds). A connection that is lost is made anew, and what was under
 * way is done again: no push is applied twice.
 *
 * A push or a pull may be sparse: of some elements, by their indices, such as the rows
 * of an embedding that a batch has used. And it may be encoded by a codec, as an
 * all-reduce is (docs/codecs.md): of f32, f16, bf16 and 8-bit floats.
 *
 * The vectors are in the tribd that TRIB_SERVICE names, each in one of several, by its
 * name. A long one is cut into ranges over several of them (trib_vector_desc_t.shards),
 * which are pushed and pulled at once. Each range takes each push whole, once, and has
 * a version of its own; that of the vector is the lowest, so that all of it has at
 * least that many pushes, and pushes that are under way may be in some ranges already.
 * A call that waits for a version, or for ranks that are behind, waits for all ranges.
 * Snapshots are of each range. Elements cross the wire over the control connections of
 * tribd: sealed, in an order of their own, whatever the transport of the communicator.
 * Memory is of the quotas of the job's user: a vector with the state of its rule, and
 * for each rank as much as the longest vector that it has pushed or pulled, and its
 * longest list of indices. All is freed when the ranks free the store, or 10 s after
 * the last of them was lost.
 *
 * A rank is lost when its connection ends, and when its process is stopped, or its host
 * cannot be reached, for 5 s: a thread of the library tells each tribd every second
 * that the process runs, also while the rank makes no call for minutes. A lost rank
 * that goes on connects again with its next call, as long as its store exists.
 *
 * A tribd that has a folder for them (its setting snapshots) writes snapshots of
 * vectors there: when a rank asks, every so often, and of all that has changed when it
 * ends in good order (SIGTERM). After that, or a kill -9 of a tribd, each push or pull
 * of its vectors fails with TRIB_ERR_PEER_LOST and says which version is in a snapshot;
 * trib_store_restore goes on from there, or from a rank's copy. A later run that opens
 * the store with the same key restores its vectors in the same way. Between two
 * snapshots of a vector that no rank asks for there is a pause of 0.1 s, and of three
 * times as long as the last one took.
 *
 * All ranges of a vector that is cut go back, each to its newest snapshot. A range may
 * then have later pushes than another one. trib_store_state counts those that all
 * ranges have; when the rank makes its pushes again from there, by their numbers, each
 * range takes what it does not have, and none twice. Snapshots of one moment need ranks
 * that meet (trib_barrier) before and behind trib_store_snapshot.
 *
 * Threads: one at a time, which may be another one than the communicator's, except for
 * trib_store_open, trib_store_create and trib_store_restore.
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
 * trib_store_open - have a store for the ranks of a communicator.
 *
 * owner    the caller frees *store_out with trib_store_free before trib_free_comm
 * thread   collective over comm: every rank calls it, in the same order as other calls
 * errors   TRIB_ERR_CONFIG: TRIB_SERVICE names no tribd; TRIB_ERR_BOOT: it cannot be
 *          reached; TRIB_ERR_UNSUPPORTED: it is of an older release;
 *          TRIB_ERR_NO_RESOURCE: it refuses the job, which trib_last_error explains. An
 *          error on one rank is an error on all, and the communicator is as it was
 * paper    parameter servers: Li et al., OSDI 2014
 */
TRIB_API trib_status_t trib_store_open(trib_comm_t *comm, trib_store_t **store_out);

/* Options of a store, the same on all ranks. */
typedef struct trib_store_opts {
    size_t size; /* sizeof(trib_store_opts_t) */
    const char *key; /* to its snapshots: 64 hexadecimal digits (openssl rand -hex 32)
                      * that runs of one job share, and nobody else has. NULL: snapshots
                      * are of use to this run alone, and go with it. Rank 0's counts */
    uint64_t snapshot_pushes; /* a snapshot of a vector after so many pushes; 0: not by
                               * their number */
    double snapshot_s; /* a snapshot after so many seconds, if the vector has changed,
                        * and of its first elements at once; 0: not by time */
} trib_store_opts_t;

#define TRIB_STORE_OPTS_INIT \
    { \
        sizeof(trib_store_opts_t), NULL, 0, 0 \
    }

/**
 * trib_store_open_with - have a store with options.
 *
 * As trib_store_open, and
 * opts     NULL: all defaults. Rank 0's count
 * errors   TRIB_ERR_INVALID: an option; TRIB_ERR_UNSUPPORTED: it is to take snapshots,
 *          and a tribd has no folder for them; TRIB_ERR_BUSY: another run uses the key.
 *          Once all ranks of that run are lost, the new store takes the key over
 */
TRIB_API trib_status_t trib_store_open_with(trib_comm_t *comm,
                                            const trib_store_opts_t *opts,
                                            trib_store_t **store_out);

/**
 * trib_store_free - leave the store, and free its vectors' handles; NULL is allowed.
 *
 * Waits for no other rank. The vectors are gone when all ranks have left.
 * errors   none
 */
TRIB_API trib_status_t trib_store_free(trib_store_t *store);

/**
 * trib_store_error - the sentence of the last failed call of a store or of its vectors.
 *
 * owner    the library; valid until the next call
 */
TRIB_API const char *trib_store_error(const trib_store_t *store);

/* The work of a store on this rank since trib_store_open. The counters only grow. */
typedef struct trib_store_stats {
    size_t size; /* sizeof(trib_store_stats_t), set by the caller */
    uint64_t pushes; /* that are applied, also those that pull at once */
    uint64_t pulls; /* of their own */
    uint64_t sent_bytes; /* elements, indices and code words to tribd */
    uint64_t received_bytes; /* elements and code words of tribd */
    uint64_t wait_ns; /* time in pushes and pulls */
} trib_store_stats_t;

#define TRIB_STORE_STATS_INIT \
    { \
        sizeof(trib_store_stats_t), 0, 0, 0, 0, 0 \
    }

/**
 * trib_store_stats - what this rank has pushed and pulled.
 *
 * stats    begin with TRIB_STORE_STATS_INIT
 * errors   TRIB_ERR_INVALID: its size is wrong
 */
TRIB_API trib_status_t trib_store_stats(const trib_store_t *store,
                                        trib_store_stats_t *stats);

/* A vector, the same on all ranks but for `initial` and the codecs. */
typedef struct trib_vector_desc {
    size_t size; /* sizeof(trib_vector_desc_t) */
    const char *name; /* 1 to 64 letters, digits and . _ : - + @ / % = , */
    size_t count; /* elements, at least 1 */
    trib_dtype_t dtype; /* any but TRIB_BOOL. Narrow floats are kept in float32 */
    int shards; /* most tribds over which it is cut; 1: it stays whole; 0: one for each
                 * MiB and 65536 elements, if TRIB_SERVICE names so many */
    const char *rule; /* NULL: "sum". See trib_store_create */
    const void *initial; /* rank 0: [count] elements; NULL: zeros. Other ranks': not
                          * read */
    const char *push_codec; /* of pushes that name none; NULL: they go as they are */
    const char *pull_codec; /* of pulls, likewise */
} trib_vector_desc_t;

#define TRIB_VECTOR_DESC_INIT \
    { \
        sizeof(trib_vector_desc_t), NULL, 0, TRIB_F32, 0, NULL, NULL, NULL, NULL \
    }

/**
 * trib_store_create - make a vector, with rank 0's elements.
 *
 * A rule is one of these; what has a number below need not be given.
 *     sum                                               x += g
 *     sgd:rate=R,momentum=0,nesterov=0,decay=0          g += decay x; v = momentum v +
 *                                                       g; x -= R v, or, with nesterov,
 *                                                       R (g + momentum v)
 *     adam:rate=R,beta1=0.9,beta2=0.999,eps=1e-8,decay=0
 *                                                       Adam, with decoupled decay; its
 *                                                       step is the version
 *     elastic:pull=A                                    x is the centre: x += A (w - x)
 * They compute in float64 and round once what is kept. All but sum are for floats.
 *
 * owner    the store: *vector_out is valid until trib_store_free
 * thread   collective over the store's communicator, the communicator's
 * errors   TRIB_ERR_INVALID: a field, or a rule, with the nearest name; TRIB_ERR_CODEC,
 *          TRIB_ERR_UNSUPPORTED: a codec, as in trib_store_push; TRIB_ERR_MISMATCH:
 *          the ranks describe it in different ways; TRIB_ERR_NO_RESOURCE: more memory
 *          than the job, its user or tribd has; TRIB_ERR_PEER_LOST. An error on one
 *          rank is an error on all
 * paper    elastic averaging: Zhang, Choromanska & LeCun, NeurIPS 2015; Adam: Kingma &
 *          Ba, ICLR 2015, Loshchilov & Hutter, ICLR 2019
 */
TRIB_API trib_status_t trib_store_create(trib_store_t *store,
                                         const trib_vector_desc_t *desc,
                                         trib_vector_t **vector_out);

typedef struct trib_push_opts {
    size_t size; /* sizeof(trib_push_opts_t) */
    double rate; /* instead of that of sgd and adam; 0: the rule's own */
    void *result; /* NULL, or [count] elements: the vector just behind this push; of
                   * elastic the pusher's own w, which has moved towards the centre, w
                   * -= A (w - x). May be `data`. With indices: [count], of them */
    const char *codec; /* "topk:ratio=0.01"; "none": none; NULL: the vector's
                        * push_codec, which is not for indices */
    const uint64_t *indices; /* NULL: all elements; else [count], in any order, each
                              * below the vector's count. Not NULL where count is 0 */
    size_t count; /* of indices */
} trib_push_opts_t;

#define TRIB_PUSH_OPTS_INIT \
    { \
        sizeof(trib_push_opts_t), 0, NULL, NULL, NULL, 0 \
    }

/**
 * trib_store_push - have a vector changed by its rule.
 *
 * Blocks until the push is applied. Waits for no other rank, but pushes to one vector
 * follow each other through it. *version_out is that of the vector behind it.
 *
 * With opts->indices `data` has values of these elements. The rule applies to them, and
 * all others stay as they are: so does their momentum, which does not move them, as in
 * PyTorch's SparseAdam (its step is the vector's version) and, without momentum, in
 * its SGD for sparse gradients. Values of one index are added first, in their order,
 * and the rule applies once.
 *
 * With a codec, tribd applies what it decodes. What a codec with error feedback (topk,
 * efsign, … by themselves, others by ef=1) has held back stays in `vector`, and the
 * next push with such a codec adds it; a push that fails leaves it as it was. Random
 * numbers are those of TRIB_SEED, of the vector's name, the rank and the number of the
 * push. What comes back by opts->result is not encoded.
 * data     [count] elements: a gradient, or for elastic the rank's own w
 * opts     NULL: all defaults
 * version_out NULL: not wanted
 * errors   TRIB_ERR_INVALID: an option, or an index; TRIB_ERR_CODEC: a codec's text;
 *          TRIB_ERR_UNSUPPORTED: a codec for another dtype, for pairs, for elastic, one
 *          that learns (powersgd), or whose error feedback would grow;
 *          TRIB_ERR_NO_MEMORY, TRIB_ERR_NO_RESOURCE: no memory for it in the
 *          job's quota, and nothing was applied, but to ranges in other tribds, which
 *          do not take it again when it is repeated; TRIB_ERR_PEER_LOST,
 *          TRIB_ERR_TIMEOUT: tribd is lost, and its vectors until trib_store_restore,
 *          after which trib_store_state says whether the push was applied
 * paper    error feedback: Seide et al., Interspeech 2014; Stich et al., NeurIPS 2018
 */
TRIB_API trib_status_t trib_store_push(trib_vector_t *vector, const void *data,
                                       const trib_push_opts_t *opts,
                                       uint64_t *version_out);

typedef struct trib_pull_opts {
    size_t size; /* sizeof(trib_pull_opts_t) */
    size_t first; /* the first element that is wanted */
    size_t count; /* elements; 0: up to the end */
    uint64_t at_least; /* wait for this version; newer than v is v + 1 */
    int timeout_ms; /* longest wait for it and for ranks that are behind; 0: as the
                     * setting timeout_ms says */
    const char *codec; /* as of a push; NULL: the vector's pull_codec */
    const uint64_t *indices; /* NULL: as `first` and `count` say; else [count] elements
                              * in any order, also more than once; `first` is 0 */
} trib_pull_opts_t;

#define TRIB_PULL_OPTS_INIT \
    { \
        sizeof(trib_pull_opts_t), 0, 0, 0, 0, NULL, NULL \
    }

/**
 * trib_store_pull - get a vector, or a part of it, as it is now.
 *
 * Waits for opts->at_least, and for ranks that are behind by more pushes than
 * trib_store_set_staleness allows.
 *
 * With a codec, tribd encodes what it sends, and the rank decodes it: rounded, and the
 * same bits for the same rank, version and part. Nothing makes up for what is lost. So
 * codecs that are biased are refused, but those that round each element by itself.
 * out      the elements that are wanted; may be half written after an error
 * opts     NULL: all of it
 * version_out of what was pulled; NULL: not wanted
 * errors   as trib_store_push; TRIB_ERR_UNSUPPORTED: a biased codec; TRIB_ERR_TIMEOUT:
 *          what it waits for has not come, trib_store_error says what or who, and the
 *          store goes on
 */
TRIB_API trib_status_t trib_store_pull(trib_vector_t *vector, void *out,
                                       const trib_pull_opts_t *opts,
                                       uint64_t *version_out);

/**
 * trib_store_wait - wait until a vector has a version, and get nothing else.
 *
 * version  0 is there at once: *version_out says which one it has
 * timeout_ms 0: as the setting timeout_ms says
 * version_out at least `version`; NULL: not wanted
 * errors   as trib_store_pull
 */
TRIB_API trib_status_t trib_store_wait(trib_vector_t *vector, uint64_t version,
                                       int timeout_ms, uint64_t *version_out);

/**
 * trib_store_snapshot - have a vector written to disk as it is now.
 *
 * Blocks until the snapshot is on the disk of the vector's tribd, with the state of the
 * rule, the version, and the number of each rank's last push. It takes the place of the
 * one before, which stays if this one fails. Pushes of others go on meanwhile.
 *
 * vector   NULL: all of them, one after the other, each with a version of its own
 * version_out of the snapshot; NULL: not wanted, as with all of them
 * errors   TRIB_ERR_UNSUPPORTED: tribd has no folder for snapshots;
 *          TRIB_ERR_NO_RESOURCE: no memory for a copy, or no room on disk, within the
 *          quotas; TRIB_ERR_SYSTEM: the disk refuses, which trib_store_error explains;
 *          those of trib_store_push
 */
TRIB_API trib_status_t trib_store_snapshot(trib_store_t *store, trib_vector_t *vector,
                                           uint64_t *version_out);

/* The vector's newest snapshot. */
#define TRIB_RESTORE_SNAPSHOT (-1)
/* The same, of vectors that are lost; others stay as they are. */
#define TRIB_RESTORE_LOST (-2)

/**
 * trib_store_restore - go back to snapshots, or to a rank's copy.
 *
 * After a tribd was lost and is there again, or when ranks want to go back, or in a new
 * run after trib_store_create. All ranks leave with the same version. Pushes behind it
 * are gone, on all ranks; trib_store_state says how many of the rank's own pushes the
 * vector has. What a codec has held back stays with the rank. After an error the call
 * may be repeated, also with another source.
 *
 * vector   NULL: all of the store; then not a rank's copy
 * from     TRIB_RESTORE_SNAPSHOT, TRIB_RESTORE_LOST, or the rank whose copy counts. A
 *          copy has the newest version of which that rank has heard, the rule's state
 *          begins anew, and no rank has pushed
 * copy     [count] elements on rank `from`; other ranks' are not read
 * version_out of the vector; NULL: not wanted, as with all of them
 * thread   collective over the store's communicator, the communicator's
 * errors   TRIB_ERR_NO_RESOURCE: there is no snapshot with this key, name and user;
 *          TRIB_ERR_MISMATCH: its file is damaged, foreign, or of another dtype, length
 *          or rule, and stays; TRIB_ERR_PEER_LOST: tribd is not there yet;
 *          TRIB_ERR_INVALID. An error on one rank is an error on all
 */
TRIB_API trib_status_t trib_store_restore(trib_store_t *store, trib_vector_t *vector,
                                          int from, const void *copy,
                                          uint64_t *version_out);

/* No version. */
#define TRIB_VERSION_NONE UINT64_MAX

/* A rank's knowledge of a vector, without asking. */
typedef struct trib_vector_state {
    size_t size; /* sizeof(trib_vector_state_t), set by the caller */
    uint64_t version; /* the newest of which an answer has told */
    uint64_t saved; /* version in the newest snapshot of which an answer has told;
                     * TRIB_VERSION_NONE: of none */
    uint64_t pushes; /* pushes of this rank that the vector has taken */
    int lost; /* 1: it waits for trib_store_restore */
    int reserved; /* 0 */
} trib_vector_state_t;

#define TRIB_VECTOR_STATE_INIT \
    { \
        sizeof(trib_vector_state_t), 0, 0, 0, 0, 0 \
    }

/**
 * trib_store_state - what this rank knows of a vector.
 *
 * errors   TRIB_ERR_INVALID: the size of *state
 */
TRIB_API trib_status_t trib_store_state(const trib_vector_t *vector,
                                        trib_vector_state_t *state);

/**
 * trib_store_residual_get - what the rank's codecs have held back of elements [first,
 * first + count).
 *
 * It is this rank's alone, and not in snapshots: a rank saves it beside the rest of its
 * own state, and gives it back with trib_store_residual_set in a later run. Zeros where
 * no push with error feedback was made.
 * residual [count] elements, in the unit of the vector, whatever its dtype
 * errors   TRIB_ERR_INVALID: there are no such elements; TRIB_ERR_UNSUPPORTED: no codec
 *          is for the vector's dtype
 */
TRIB_API trib_status_t trib_store_residual_get(trib_vector_t *vector, size_t first,
                                               size_t count, float *residual);

/**
 * trib_store_residual_set - have the next push with error feedback add this, instead of
 * what was held back.
 *
 * residual as trib_store_residual_get, read
 * errors   as trib_store_residual_get; TRIB_ERR_NO_MEMORY
 */
TRIB_API trib_status_t trib_store_residual_set(trib_vector_t *vector, size_t first,
                                               size_t count, const float *residual);

/* Pulls wait for nobody. */
#define TRIB_STALE_ANY (-1)

/**
 * trib_store_set_staleness - bound how far ranks may be apart in pushes to a vector.
 *
 * From now on a pull of this rank waits until each other rank has made all but `bound`
 * of the pushes to that vector that this rank has made. 0: the ranks push in step.
 * Ranks that have freed the store do not count. All ranks should give the same bound.
 *
 * bound    pushes; TRIB_STALE_ANY, as it is at first: they are not bounded
 * errors   TRIB_ERR_INVALID
 * paper    stale synchronous parallel: Ho et al., NeurIPS 2013
 */
TRIB_API trib_status_t trib_store_set_staleness(trib_store_t *store, int bound);

#ifdef __cplusplus
}
#endif

#endif
