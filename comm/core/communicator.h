/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of communicators and plans, for comm/ and the layers built on it.
 */
#ifndef COMM_CORE_COMMUNICATOR_H
#define COMM_CORE_COMMUNICATOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <unistd.h>

#include <tributary.h>

#include "base/addresses.h"
#include "base/fpenv.h"
#include "base/log_pace.h"
#include "base/secret.h"
#include "collectives/collectives.h"
#include "comm/core/identity.h"
#include "comm/core/plan_kind.h"
#include "comm/core/plan_ops.h"
#include "comm/life/clock.h"
#include "pipeline/engine/engine.h"
#include "topo/calibration.h"

#define TRIB_PLAN_CACHE 64

enum { TRIB_QUORUM_TEXT_MAX = 64 };

struct trib_plan {
    const struct trib_plan_ops *ops;
    struct trib_comm *comm;
    struct trib_run run;
    const struct trib_plan_kind *kind; /* or NULL */
    void *of_kind; /* data of `kind` */
    struct trib_codec *codec;
    const void *send; /* buffers of the description; NULL: each start passes its own */
    void *recv;
    size_t lengths[2]; /* elements of send and recv, for checks */
    size_t *counts; /* count arrays of a blocking call, the key of its plan:
                     * counted_calls.c; or NULL */
    char why[256]; /* the algorithm and why it was chosen */
    const char *next_algorithm; /* the runner-up, if its estimate is close; or NULL */
    double expected_us; /* estimated time of a start; 0: no estimate */
    double expected_fixed; /* the part of expected_us that does not depend on bytes */
    double selected; /* expected encoded bytes per element, for codecs that select
                      * elements; 0: unknown */
    bool is_exempt; /* the configured codec does not apply here: configured.h */
    bool is_short; /* too short for codec auto, sent dense: plan_auto.h */
    struct trib_plan_looks *looks; /* plan_stats.c; or NULL */
    size_t most; /* pairs per rank if run.desc.pairs; 0: unknown */
    double squares; /* sum of squares of the elements fed so far, for TRIB_CHECK */
    bool has_quorum; /* aggregators may close its chunks without late ranks */
    bool plain; /* codec none in the format of `codec`, because of the quorum */
    char quorum[TRIB_QUORUM_TEXT_MAX]; /* rule, on an agg_comm; empty: all ranks */
    struct trib_identity identity;
    uint32_t starts; /* number of starts so far */
    uint32_t number; /* of the plan in its frames, on an agg_comm */
    uint64_t charged; /* bytes charged to the job's quota, on an aggregator */
    bool numbered;
    bool dropped; /* an aggregator frees the plan after start number last_start */
    uint32_t last_start;
    struct trib_plan_notify *notify; /* plan_notify.c; or NULL */
    struct trib_plan_scale *scale; /* plan_scale.c; or NULL */
    struct trib_plan_asked
        *asked; /* the caller's: plan_create.h; or NULL */
    struct trib_offload_plan *offload; /* agg/client/ runs the plan; or NULL */
    struct trib_plan *exchange; /* all-reduces the statistics of run.desc.model, or
                                 * exchanges the counts of run.desc.regions; or NULL */
    float *exchanged; /* the vector of `exchange` */
};

/* Cache key of a blocking call's plan. */
struct trib_plan_key {
    trib_coll_t coll;
    trib_dtype_t dtype;
    trib_op_t op;
    int root;
    size_t count;
};

static inline bool trib_plan_key_same(const struct trib_plan_key *a,
                                      const struct trib_plan_key *b)
{
    return a->count == b->count && a->coll == b->coll && a->dtype == b->dtype &&
           a->op == b->op && a->root == b->root;
}

struct trib_plan_cache_entry {
    struct trib_plan_key key;
    struct trib_plan *plan;
    uint64_t used;
};

/* The plans of trib_allreduce_named, hashed by name: named_plans.c. */
struct trib_named_plans {
    struct trib_plan **slots; /* [n_slots], n_plans of them not NULL */
    size_t n_slots, n_plans;
};

/* The progress thread drives started plans. The first trib_plan_start creates it. */
struct trib_progress_thread {
    pthread_t thread;
    bool running;
    pthread_mutex_t mutex;
    pthread_cond_t work;
    bool stop; /* under mutex */
    _Atomic int active; /* 1: some started plan may still be running */
    _Atomic int callers; /* threads in trib_plan_wait, which drive the engine
                          * themselves */
};

struct trib_locality;
struct trib_gate;

struct trib_comm {
    const struct trib_comm_hooks *hooks; /* operations run by another object; or NULL */
    struct trib_offload *offload; /* defined by agg/client/; NULL: no offload */
    struct trib_aggregators *aggregators; /* serving these ranks; or NULL */
    struct trib_guard *guard; /* protects the transport of an agg_comm; or NULL */
    struct trib_config cfg;
    struct trib_log log;
    struct trib_log_pace log_pace; /* rate limit of log */
    struct trib_idle own_idle; /* the caller's idle callback */
    struct trib_idle *idle; /* &own_idle, or the parent's if inner; or NULL */
    struct trib_error err; /* of the last refused call; caller's thread only */
    struct trib_error cause; /* error of the transport or engine; guarded by lock */
    struct trib_engine engine;
    _Atomic int lock; /* guards engine */
    uint64_t fp_modes; /* floating-point modes to restore when the lock is released */
    struct trib_gate *gate; /* serializes calls of several threads: gate.h; or NULL */
    pid_t pid; /* owning process; a forked child holds a copy */
    const bool *own; /* false in a forked child; NULL: the kernel cannot tell */
    struct trib_progress_thread progress_thread;
    struct trib_plan_notify *notified; /* plans with callbacks; guarded by lock */
    bool (*tell_done)(struct trib_comm *comm); /* runs callbacks of completed plans.
                                                * Called with the lock, releases it
                                                * around callbacks. Returns true if
                                                * plans run by other engines still need
                                                * polling. NULL: no plan ever had a
                                                * callback */
    int n_plans; /* plans that the caller has not freed */
    uint64_t starts; /* starts and blocking calls so far; equal on all ranks */
    uint64_t identity; /* digest of the split that created it; 0: no split */
    int n_children;
    char label[32]; /* for the trace file: rank and originating split */
    bool any_traces; /* some rank records a trace; equal on all ranks */
    struct trib_clock rank_clock; /* relative to rank 0 of the first communicator */
    bool is_shrunk; /* trib_comm_shrink or trib_comm_grow has replaced it */
    uint32_t shrinks; /* failed calls of trib_comm_shrink */
    int members; /* ranks that existed before trib_comm_grow; 0: all */
    bool stands_in; /* a fallback_comm: its plans keep the state of agg_comm's plans */
    bool rewinds; /* trib_opts_t.rewind */
    bool coded; /* cfg.codec is not "none" */
    bool load_store; /* all ranks reach each other by load/store */
    bool oversubscribed; /* some host has more ranks than cores; equal on all ranks */
    bool one_host; /* all ranks run on this host */
    struct trib_calibration calibration; /* of the network; equal on all ranks */
    struct trib_cost_model network; /* derived from calibration, if known */
    struct trib_locality *locality; /* ranks by host; NULL on an agg_comm */
    bool uncompressed_told; /* warned that the codec does not compress */
    size_t chunk_asked; /* requested TRIB_CHUNK. cfg.chunk is smaller if the memlock
                         * limit is low, and larger over networks if no rank set
                         * TRIB_CHUNK */
    int window_asked; /* requested TRIB_WINDOW; cfg.window is larger if the round trip
                       * is long */
    bool chunk_given; /* some rank has set TRIB_CHUNK */
    uint32_t round_trip_us; /* longest round trip of any rank to rank 0, equal on all
                             * ranks; 0: short or unknown */
    struct trib_net_met met; /* rendezvous of the first communicator */
    struct trib_secret secret; /* shared by the ranks; may be unset */
    size_t cache_bytes; /* last-level cache of this host; 0: unknown */
    struct trib_named_plans named;
    struct trib_plan_cache_entry *newest;
    struct trib_plan_cache_entry cache[TRIB_PLAN_CACHE];
    uint64_t clock; /* for the age of cache entries */
    int n_requests; /* requests that the caller has not freed */
    struct trib_plan *leaving; /* barrier of trib_try_free_comm; NULL: not called */
    trib_status_t leaving_status; /* first error of `leaving`; TRIB_OK: none */
    struct trib_plan_neighbors *neighbors; /* neighbour plans; guarded by lock */
    trib_plan_kind_fn kind_of; /* trib_plan_kind_of, set at wireup */
    int n_neighbor_plans; /* created so far; equal on all ranks */
    struct trib_plan *idle_messages; /* kept for reuse: plan_message.c */
    struct trib_request *idle_requests; /* kept for reuse: requests.c */
};

/** trib_comm_claim - make this process the owner. First call on a new communicator. */
void trib_comm_claim(struct trib_comm *comm);

/** trib_comm_refuse_child - fail `call` because this process is a forked child. */
trib_status_t trib_comm_refuse_child(struct trib_comm *comm, const char *call);

/** trib_comm_in_child - return true in a forked child, which holds a copy. Costs one
 * load, or one system call before Linux 4.14. */
static inline bool trib_comm_in_child(const struct trib_comm *comm)
{
    return comm->own ? !*comm->own : getpid() != comm->pid;
}

/**
 * trib_comm_ours - return TRIB_OK, or TRIB_ERR_INVALID with a message in a forked
 * child.
 *
 * A child shares its parent's sockets, segments and devices, so using them would
 * disturb the parent. A child may only free its copy.
 */
static inline trib_status_t trib_comm_ours(struct trib_comm *comm, const char *call)
{
    return trib_comm_in_child(comm) ? trib_comm_refuse_child(comm, call) : TRIB_OK;
}

/** trib_comm_fail - record the message of a refused call that had no effect. */
trib_status_t trib_comm_fail(struct trib_comm *comm, trib_status_t status,
                             const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** trib_comm_cause - return the engine's or transport's message for `st`.
 *
 * The caller holds the lock and called trib_error_clear(&comm->cause) before the
 * operation. */
const char *trib_comm_cause(const struct trib_comm *comm, trib_status_t st);

/**
 * trib_opts_take - convert the caller's options to this library's struct.
 *
 * theirs   NULL: all defaults. A program built with an older header passes a smaller
 *          struct
 * errors   TRIB_ERR_INVALID with a message in err
 */
trib_status_t trib_opts_take(const trib_opts_t *theirs, trib_opts_t *out,
                             struct trib_error *err);

/** trib_comm_set_idle - set the callback to invoke while a call on the communicator
 * waits; NULL: none. Call before trib_comm_wireup. */
void trib_comm_set_idle(struct trib_comm *comm, trib_idle_fn call, void *arg);

/**
 * trib_comm_give_way - make waits release the lock between polls, for the idle callback
 * and completion callbacks; with the lock held, or during wireup.
 */
void trib_comm_give_way(struct trib_comm *comm);

/** trib_comm_share_lock - make waiting threads yield the lock to other threads; once a
 * transport is open. */
void trib_comm_share_lock(struct trib_comm *comm);

/** trib_say_error - set the message of trib_last_error(NULL). */
void trib_say_error(const char *text);

/* Block until the progress thread ends its pass or a waiting thread yields the lock. */
void trib_comm_lock_slow(struct trib_comm *comm);

/* The lock's holder computes in the default floating-point modes, so all ranks get the
 * same bits whatever thread runs the engine: base/fpenv.h. */
static inline void trib_comm_lock(struct trib_comm *comm)
{
    if (atomic_exchange_explicit(&comm->lock, 1, memory_order_acquire))
        trib_comm_lock_slow(comm);
    comm->fp_modes = trib_fpenv_enter();
}

static inline bool trib_comm_try_lock(struct trib_comm *comm)
{
    if (atomic_exchange_explicit(&comm->lock, 1, memory_order_acquire))
        return false;
    comm->fp_modes = trib_fpenv_enter();
    return true;
}

static inline void trib_comm_unlock(struct trib_comm *comm)
{
    const uint64_t modes = comm->fp_modes;

    atomic_store_explicit(&comm->lock, 0, memory_order_release);
    trib_fpenv_leave(modes);
}

/** trib_progress_thread_start - make the progress thread drive a started plan; with the
 * lock held. */
trib_status_t trib_progress_thread_start(struct trib_comm *comm);

/** trib_progress_thread_caller_enter - drive the engine on the calling thread until
 * trib_progress_thread_caller_leave; the progress thread rests. Any thread, without the
 * lock. */
void trib_progress_thread_caller_enter(struct trib_comm *comm);
void trib_progress_thread_caller_leave(struct trib_comm *comm);
void trib_progress_thread_stop(struct trib_comm *comm);

struct trib_boot;

/* An all-gather of `bytes` from every rank, through the launcher or another
 * communicator. */
struct trib_exchange {
    trib_status_t (*allgather)(void *arg, const char *phase, const void *in,
                               size_t bytes, void *out);
    void *arg;
};

/** trib_boot_exchange - allgather of a struct trib_exchange; arg is a struct
 * trib_boot. */
trib_status_t trib_boot_exchange(void *arg, const char *phase, const void *in,
                                 size_t bytes, void *out);

/**
 * trib_comm_join - find rank, size and the other ranks from opts, settings or the
 * launcher.
 *
 * comm     has cfg, log and err; receives the secret
 * boot_out receives an open struct trib_boot, which the caller closes
 * rank_out, size_out  as far as known, even after an error
 * errors   the message is in comm->err
 */
trib_status_t trib_comm_join(struct trib_comm *comm, const trib_opts_t *opts,
                             struct trib_boot **boot_out, int *rank_out, int *size_out);

/**
 * trib_comm_wireup - open transport and engine, and exchange wireup data with all
 * peers. Rank and size are known.
 *
 * errors   the message is in comm->err; the caller disposes of comm
 */
trib_status_t trib_comm_wireup(struct trib_comm *comm, int rank, int size,
                               const struct trib_exchange *x);

struct trib_config_faults;

/**
 * trib_settings_check - find settings that would make trib_init or a collective fail.
 *
 * Checks names and options of parsed settings; opens nothing.
 * faults   receives a message for each wrong setting that has none yet
 * returns  true if all settings are valid
 */
bool trib_settings_check(const struct trib_config *cfg,
                         struct trib_config_faults *faults);

/**
 * trib_settings_refuse - check codec, feedback, quorum, check and algorithm. Return
 * TRIB_ERR_CONFIG with a message for the first that would make a collective fail.
 */
trib_status_t trib_settings_refuse(const struct trib_config *cfg,
                                   struct trib_error *err);

/** trib_settings_kernels - find the kernels of TRIB_CPU; TRIB_ERR_CONFIG if this CPU
 * lacks them. */
trib_status_t trib_settings_kernels(const struct trib_config *cfg,
                                    const struct trib_kernels **out,
                                    struct trib_error *err);

/** trib_settings_algorithm - return TRIB_ERR_INVALID, suggesting the nearest name, if
 * no algorithm has this name. */
trib_status_t trib_settings_algorithm(const char *name, struct trib_error *err);

/** trib_settings_feedback - return TRIB_ERR_INVALID if the text names no feedback. */
trib_status_t trib_settings_feedback(const char *text, struct trib_error *err);

/** trib_wireup_machine - return a number shared by ranks within load/store reach. */
uint64_t trib_wireup_machine(void);

/** trib_wireup_difference - find the first setting that differs between texts a and b,
 * both "name=value name=value". Store a's in x and b's in y. */
void trib_wireup_difference(const char *a, const char *b, char *x, char *y,
                            size_t bytes);

/** trib_wireup_bytes - return the bytes that each rank contributes to exchange 0, 1, …
 * of trib_comm_wireup; 0: no such exchange. */
size_t trib_wireup_bytes(int exchange);

/** trib_comm_drop_copy - free a forked child's copy without notifying peers. */
void trib_comm_drop_copy(struct trib_comm *comm);

/** trib_comm_poll - make progress for ranks waiting on another communicator:
 * comm/core/plan_ops.h. */
static inline void trib_comm_poll(struct trib_comm *comm)
{
    if (comm->hooks)
        comm->hooks->poll(comm);
}

/** trib_comm_fail_all - fail the communicator with this message; takes the lock. */
void trib_comm_fail_all(struct trib_comm *comm, trib_status_t status, const char *text);

/** trib_comm_dispose - free a communicator in any state. */
void trib_comm_dispose(struct trib_comm *comm);

/**
 * trib_comm_dispose_dup - free a result of trib_comm_dup, in any state.
 *
 * If `of` has failed, its error is first sent over dup. A peer that polls only dup
 * would otherwise see a disconnect without its cause.
 *
 * dup      may be NULL
 */
void trib_comm_dispose_dup(struct trib_comm *dup, const struct trib_comm *of);

/* A row of trib_plan_own_ops that is defined in a file of its own. */
trib_status_t trib_plan_own_sent(struct trib_plan *plan, const unsigned char **mask_out,
                                 size_t *sent_out);

/** trib_plan_hold - return the plan whose engine computes, and pin it until
 * trib_plan_let_go. */
static inline struct trib_plan *trib_plan_hold(struct trib_plan *plan)
{
    if (plan->ops->hold)
        plan->ops->hold(plan);
    return plan->ops->computing(plan);
}

static inline void trib_plan_let_go(const struct trib_plan *plan)
{
    if (plan->ops->let_go)
        plan->ops->let_go(plan);
}

/**
 * trib_plan_notify_then - call `then` once a start has completed, on any thread. It
 * must be short and must not call the plan.
 *
 * errors   as trib_plan_notify
 */
trib_status_t trib_plan_notify_then(struct trib_plan *plan, void (*then)(void *arg),
                                    void *arg);

/** trib_plan_make - create a plan that is not counted as the caller's. */
trib_status_t trib_plan_make(struct trib_comm *comm, trib_coll_t coll,
                             const trib_desc_t *desc, bool leaving,
                             struct trib_plan **plan_out);
void trib_plan_destroy(struct trib_plan *plan);

/* A kind of plan that sums (index, value) pairs. */
struct trib_plan_pairs {
    const struct trib_plan_kind *kind;
    void *of_kind;
    size_t most; /* pairs per rank; 0: unknown */
};

/**
 * trib_plan_make_pairs - create a plan of this kind with the table of a dense plan; the
 * kind does the rest.
 *
 * desc     an all-reduce of the vector, without codec and quorum
 */
trib_status_t trib_plan_make_pairs(struct trib_comm *comm, const trib_desc_t *desc,
                                   const struct trib_plan_pairs *pairs,
                                   struct trib_plan **plan_out);

/** trib_plan_make_outer - describe a plan that delegates to other plans; its creator
 * supplies the table and its data. */
trib_status_t trib_plan_make_outer(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *desc,
                                   struct trib_plan **plan_out);

/** trib_plan_make_own - as trib_plan_make, but on the communicator's own engine. */
trib_status_t trib_plan_make_own(struct trib_comm *comm, trib_coll_t coll,
                                 const trib_desc_t *desc, struct trib_plan **plan_out);

/**
 * trib_plan_release - return TRIB_OK once nothing accesses the plan.
 *
 * what, call  for the TRIB_ERR_BUSY message: "plan", "trib_plan_free"
 */
trib_status_t trib_plan_release(struct trib_plan *plan, const char *what,
                                const char *call);

/** trib_plan_feedback - set run.desc.feedback, the compensation for codec loss.
 *
 * errors   TRIB_ERR_INVALID, TRIB_ERR_UNSUPPORTED with a message */
trib_status_t trib_plan_feedback(struct trib_plan *plan, const trib_desc_t *desc);

/** trib_plan_idle - return TRIB_OK if the plan is not running; else TRIB_ERR_BUSY with
 * a message. */
trib_status_t trib_plan_idle(struct trib_plan *plan, const char *call);

/**
 * trib_plan_make_model - create the model of a plan whose codec has one, after the
 * vector is cut.
 *
 * If ranks exchange what the model learns, plan->exchanged receives the vector of the
 * exchange. trib_plan_make then creates a second plan from trib_plan_describe_exchange.
 */
trib_status_t trib_plan_make_model(struct trib_plan *plan);
void trib_plan_describe_exchange(const struct trib_plan *plan, trib_desc_t *desc);
void trib_plan_dispose_model(struct trib_plan *plan);

/** trib_plan_tell_model - write the codec's learned state for trib_plan_explain;
 * nothing while the plan runs. */
void trib_plan_tell_model(const struct trib_plan *plan, char *text, size_t bytes);

/** trib_plan_run - start and wait, on the caller's thread. */
trib_status_t trib_plan_run(struct trib_plan *plan, const void *send, void *recv);

/**
 * trib_comm_exchange - all-gather or broadcast control data of the ranks; blocks.
 *
 * bytes    per rank. For a broadcast from rank 0: all bytes, at out; in is NULL
 */
trib_status_t trib_comm_exchange(struct trib_comm *comm, trib_coll_t coll,
                                 const void *in, size_t bytes, void *out);

/** trib_comm_broadcast - broadcast control data from `root`; blocks. */
trib_status_t trib_comm_broadcast(struct trib_comm *comm, int root, size_t bytes,
                                  void *data);

/* A communicator created from another. */
struct trib_child {
    const struct trib_config *cfg; /* copied */
    int rank, size;
    bool within; /* the parent outlives it: they share the idle callback */
    const char *made; /* how it was created, for its label */
};

/**
 * trib_comm_make_child - create a communicator whose ranks exchange addresses over the
 * parent.
 *
 * errors   as trib_comm_wireup, with the message in err; *out is unchanged
 */
trib_status_t trib_comm_make_child(struct trib_comm *parent, const struct trib_child *c,
                                   const struct trib_exchange *x,
                                   struct trib_error *err, struct trib_comm **out);

/**
 * trib_comm_survive - create a communicator of the surviving ranks; the
 * service-independent part of trib_comm_shrink.
 *
 * errors   as trib_comm_shrink, with the message in err
 */
trib_status_t trib_comm_survive(struct trib_comm *comm, struct trib_error *err,
                                struct trib_comm **out);

/**
 * trib_comm_commit - switch all ranks to the wired-up communicator, or none; the end of
 * trib_comm_grow. comm is idle.
 *
 * bigger   freed after an error
 * errors   as trib_comm_grow, with the message in err
 */
trib_status_t trib_comm_commit(struct trib_comm *comm, struct trib_comm *bigger,
                               struct trib_error *err);

/** trib_comm_end_all - fail everything in flight in a failed communicator. */
void trib_comm_end_all(struct trib_comm *comm, const char *call);

/**
 * trib_comm_dup - create another communicator of the same ranks with other settings;
 * collective.
 *
 * cfg      copied; settings on which ranks must agree are the same on all ranks
 */
trib_status_t trib_comm_dup(struct trib_comm *comm, const struct trib_config *cfg,
                            struct trib_comm **out);

/** trib_comm_split_within - trib_split with all ranks, for a communicator that its
 * parent outlives. They share the idle callback and its result, as with
 * trib_comm_dup. */
trib_status_t trib_comm_split_within(struct trib_comm *comm, struct trib_comm **out);

/** trib_plan_cache_find - return the entry of this key, or one to reuse for it. */
struct trib_plan_cache_entry *trib_plan_cache_find(struct trib_comm *comm,
                                                   const struct trib_plan_key *key);

/** trib_plan_cache_clear - destroy the cached plans of blocking calls;
 * trib_named_plans_clear destroys the named ones. */
void trib_plan_cache_clear(struct trib_comm *comm);
void trib_named_plans_clear(struct trib_comm *comm);

/** trib_named_plans_find - return the plan of this name, or NULL. */
struct trib_plan *trib_named_plans_find(const struct trib_comm *comm, const char *name);

/** trib_named_plans_grow - make room for one more named plan; false: out of memory. */
bool trib_named_plans_grow(struct trib_comm *comm);

/** trib_named_plans_add - insert a plan with a new name; there must be room. */
void trib_named_plans_add(struct trib_comm *comm, struct trib_plan *plan);

/** trib_plan_make_for_call - create the plan of an unnamed call from the settings.
 *
 * own      run by the communicator's own engine */
trib_status_t trib_plan_make_for_call(struct trib_comm *comm,
                                      const struct trib_plan_key *key, bool own,
                                      struct trib_plan **plan_out);

/** trib_requests_clear - destroy the requests kept for reuse. */
void trib_requests_clear(struct trib_comm *comm);

#endif
