/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of a communicator and of a plan, for the files of comm/ and of what is
 * built on it.
 */
#ifndef COMM_COMMUNICATOR_H
#define COMM_COMMUNICATOR_H

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
#include "comm/clock.h"
#include "comm/identity.h"
#include "comm/plan_ops.h"
#include "pipeline/engine/engine.h"
#include "topo/calibration.h"

#define TRIB_PLAN_CACHE 64

enum { TRIB_QUORUM_TEXT_MAX = 64 };

struct trib_plan {
    const struct trib_plan_ops *ops;
    struct trib_comm *comm;
    struct trib_run run;
    struct trib_codec *codec;
    const void *send; /* buffers of the description; NULL: each start names its own */
    void *recv;
    size_t lengths[2]; /* elements of send and recv, for checks */
    void *copy; /* the input of an all-to-all in place: plan_blocks.c; or NULL */
    size_t *counts; /* arrays of a blocking call, by which it is found again:
                     * counted_calls.c; or NULL */
    char why[256]; /* the algorithm, and the reason for it */
    const char *next_algorithm; /* the second best, if its estimate is near; or NULL */
    double expected_us; /* the estimate of a start; 0: there is none */
    double expected_fixed; /* the part of it that messages take, whatever their bytes */
    double selected; /* bytes of a code word for each element of its chunk, as expected
                      * of a codec that selects; 0: not known */
    bool is_exempt; /* the configured codec is not for this operation: configured.h */
    bool is_short; /* codec auto sends it dense: plan_auto.h */
    struct trib_plan_looks *looks; /* plan_stats.c; or NULL */
    double squares; /* sum of squares of the elements fed so far, for TRIB_CHECK */
    bool has_quorum; /* aggregators would close its chunks without late ranks */
    bool plain; /* codec none, sent as words of `codec` because of the quorum */
    char quorum[TRIB_QUORUM_TEXT_MAX]; /* text, on an agg_comm; empty: all ranks */
    struct trib_identity identity;
    uint32_t starts; /* number of starts so far */
    uint32_t number; /* of the plan in its frames, on an agg_comm */
    uint64_t charged; /* bytes taken from the job's quota, on an aggregator */
    bool numbered;
    bool dropped; /* an aggregator frees it after start number last_start */
    uint32_t last_start;
    struct trib_plan_message *message; /* from rank to rank: plan_message.h; or NULL */
    struct trib_plan_neighbors *neighbors; /* plan_neighbors.c; or NULL */
    struct trib_plan_sparse *sparse; /* (index, value) pairs: plan_sparse.h; or NULL */
    struct trib_plan_notify *notify; /* plan_notify.c; NULL: nobody is told of its
                                      * end */
    struct trib_plan_scale *scale; /* plan_scale.c; or NULL */
    struct trib_plan_auto *automatic; /* codec auto: plan_auto.h; or NULL */
    struct trib_plan_asked *asked; /* the caller's description: plan_move.h; or NULL */
    struct trib_offload_plan *offload; /* offload/ runs the plan, and `run` is unused;
                                        * or NULL */
    struct trib_plan *exchange; /* sums what run.desc.model learns, or the counts of
                                 * run.desc.regions; or NULL */
    float *exchanged; /* the vector of that exchange */
};

/* The key by which a blocking call finds its plan. */
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
    struct trib_plan **slots; /* [n_slots], of which n_plans are not NULL */
    size_t n_slots, n_plans;
};

/* The thread that drives started plans. The first trib_plan_start creates it. */
struct trib_progress_thread {
    pthread_t thread;
    bool running;
    pthread_mutex_t mutex;
    pthread_cond_t work;
    bool stop; /* under mutex */
    _Atomic int active; /* 1: the thread has not seen all started plans done */
    _Atomic int callers; /* threads in trib_plan_wait, which drive the engine
                          * themselves */
};

struct trib_locality;
struct trib_gate;

struct trib_comm {
    const struct trib_comm_hooks *hooks; /* table of the object that runs some
                                          * operations; or NULL */
    struct trib_offload *offload; /* defined by offload/; NULL: no offload */
    struct trib_aggregators *aggregators; /* behind the ranks; NULL: there are none */
    struct trib_guard *guard; /* protects the transport of an agg_comm; or NULL */
    struct trib_config cfg;
    struct trib_log log;
    struct trib_log_pace log_pace; /* rate limit of log */
    struct trib_idle own_idle; /* the caller's idle function, for this communicator */
    struct trib_idle *idle; /* &own_idle; of a communicator within another one, the
                             * outer one's; NULL: there is none */
    struct trib_error err; /* of the last refused call; the caller's thread only */
    struct trib_error cause; /* the transport's or the engine's sentence; under the
                              * lock */
    struct trib_engine engine;
    _Atomic int lock; /* guards engine */
    uint64_t fp_modes; /* modes that the lock's holder had before it took the lock */
    struct trib_gate *gate; /* for the calls of several threads: gate.h; or NULL */
    pid_t pid; /* owning process; a forked child has a copy */
    const bool *own; /* false in a forked child; NULL: the kernel cannot tell */
    struct trib_progress_thread progress_thread;
    struct trib_plan_notify *notified; /* plans whose end is told, under the lock */
    bool (*tell_done)(struct trib_comm *comm); /* tells of those that are done, with the
                                                * lock, which it gives back meanwhile;
                                                * true: it must look again, as other
                                                * engines run some. NULL: there were
                                                * none */
    int n_plans; /* plans that the caller has not freed */
    uint64_t starts; /* starts and blocking calls so far: the same on all ranks */
    uint64_t identity; /* digest of the split that made it; 0: no split */
    int n_children;
    char label[32]; /* of the trace file: rank, and which split it comes from */
    bool any_traces; /* some rank keeps a trace: the same on all ranks */
    struct trib_clock rank_clock; /* beside that of rank 0 of the first communicator */
    bool is_shrunk; /* trib_comm_shrink or trib_comm_grow has made another one of it */
    uint32_t shrinks; /* calls of trib_comm_shrink that have failed */
    int members; /* ranks that were there before trib_comm_grow; 0: all */
    bool stands_in; /* a fallback_comm: its plans keep the same state as those of
                         * agg_comm */
    bool rewinds; /* trib_opts_t.rewind */
    bool coded; /* cfg.codec is not "none" */
    bool load_store; /* each rank has load/store reach to all others */
    bool oversubscribed; /* some host has more ranks than cores: the same on all
                          * ranks */
    bool one_host; /* all ranks run on this host */
    struct trib_calibration calibration; /* of the network, the same on all ranks */
    struct trib_cost_model network; /* that, if it is known */
    struct trib_locality *locality; /* ranks by host; NULL on an agg_comm */
    bool uncompressed_told; /* warned of a codec that compresses nothing */
    size_t chunk_asked; /* TRIB_CHUNK as asked for. cfg.chunk is smaller if little
                         * memory may be locked, and larger over networks if nobody has
                         * set it. */
    int window_asked; /* the same of TRIB_WINDOW; cfg.window is larger where a round
                       * trip takes long */
    bool chunk_given; /* some rank has set TRIB_CHUNK */
    uint32_t round_trip_us; /* longest of any rank to rank 0, as all ranks know it; 0:
                             * all are near, or it is not known */
    struct trib_net_met met; /* where the ranks of the first communicator met */
    struct trib_secret secret; /* shared by the ranks; or not set */
    size_t cache_bytes; /* last-level cache of this host; 0: not known */
    struct trib_named_plans named;
    struct trib_plan_cache_entry *newest;
    struct trib_plan_cache_entry cache[TRIB_PLAN_CACHE];
    uint64_t clock; /* age of cache entries */
    int n_requests; /* requests that the caller has not freed */
    struct trib_plan *leaving; /* the barrier of trib_try_free_comm; NULL: not called */
    trib_status_t leaving_status; /* its error; TRIB_OK: none so far */
    struct trib_plan_neighbors *neighbors; /* plans of neighbours, under the lock */
    int n_neighbor_plans; /* so far: the same on all ranks */
    struct trib_plan *idle_messages; /* the same of messages: plan_message.c */
    struct trib_request *idle_requests; /* kept for calls to come: requests.c */
};

/** trib_comm_claim - make this process the owner. The first call on a new
 * communicator. */
void trib_comm_claim(struct trib_comm *comm);

/** trib_comm_refuse_child - tell a forked child that it may not call this. */
trib_status_t trib_comm_refuse_child(struct trib_comm *comm, const char *call);

/** trib_comm_in_child - true in a forked child, which has a copy. One load; before
 * Linux 4.14 one system call. */
static inline bool trib_comm_in_child(const struct trib_comm *comm)
{
    return comm->own ? !*comm->own : getpid() != comm->pid;
}

/**
 * trib_comm_ours - TRIB_OK, or TRIB_ERR_INVALID and a sentence in a forked child.
 *
 * A child shares its parent's sockets, segments and devices, so using them would
 * disturb the parent. A child may only free its copy.
 */
static inline trib_status_t trib_comm_ours(struct trib_comm *comm, const char *call)
{
    return trib_comm_in_child(comm) ? trib_comm_refuse_child(comm, call) : TRIB_OK;
}

/** trib_comm_fail - note the sentence of an operation that was refused without harm. */
trib_status_t trib_comm_fail(struct trib_comm *comm, trib_status_t status,
                             const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** trib_comm_cause - the sentence why an operation of the engine or the transport gave
 * `st`.
 *
 * Call it with the lock held, and trib_error_clear(&comm->cause) before the
 * operation. */
const char *trib_comm_cause(const struct trib_comm *comm, trib_status_t st);

/**
 * trib_opts_take - options as this library has them, from those of a caller.
 *
 * theirs   NULL: all defaults. A program built with an older header passes a smaller
 *          struct
 * errors   TRIB_ERR_INVALID with a sentence in err
 */
trib_status_t trib_opts_take(const trib_opts_t *theirs, trib_opts_t *out,
                             struct trib_error *err);

/** trib_comm_set_idle - have this function called while a call of the communicator
 * waits; NULL: none. Before trib_comm_wireup. */
void trib_comm_set_idle(struct trib_comm *comm, trib_idle_fn call, void *arg);

/**
 * trib_comm_give_way - from now on have waits let go of the lock between looks, for the
 * idle function and for plans whose end is told; with the lock, or during wireup.
 */
void trib_comm_give_way(struct trib_comm *comm);

/** trib_comm_share_lock - from now on have a thread that waits let others in who want
 * the lock; once there is a transport. */
void trib_comm_share_lock(struct trib_comm *comm);

/** trib_say_error - note the sentence for trib_last_error(NULL). */
void trib_say_error(const char *text);

/* Waits until the progress thread has ended its pass, or a thread that waits lets this
 * one in. */
void trib_comm_lock_slow(struct trib_comm *comm);

/* The lock's holder computes in the default floating-point modes, so that all ranks get
 * the same bits on whatever thread the engine runs: base/fpenv.h. */
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

/** trib_progress_thread_start - see that a started plan goes on; with the lock held. */
trib_status_t trib_progress_thread_start(struct trib_comm *comm);

/** trib_progress_thread_caller_enter - the calling thread drives the engine from here
 * to trib_progress_thread_caller_leave, and the progress thread rests. Any thread,
 * without the lock. */
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

/** trib_boot_exchange - the allgather of a struct trib_exchange whose arg is a struct
 * trib_boot. */
trib_status_t trib_boot_exchange(void *arg, const char *phase, const void *in,
                                 size_t bytes, void *out);

/**
 * trib_comm_join - find rank, size and the other ranks, from opts, settings or the
 * launcher.
 *
 * comm     has cfg, log and err; receives the secret
 * boot_out receives an open struct trib_boot, which the caller closes
 * rank_out, size_out  as far as known, also after an error
 * errors   the sentence is in comm->err
 */
trib_status_t trib_comm_join(struct trib_comm *comm, const trib_opts_t *opts,
                             struct trib_boot **boot_out, int *rank_out, int *size_out);

/**
 * trib_comm_wireup - once rank and size are known: open transport and engine, and
 * exchange with all peers what each must know of the others.
 *
 * errors   the sentence is in comm->err; the caller disposes of comm
 */
trib_status_t trib_comm_wireup(struct trib_comm *comm, int rank, int size,
                               const struct trib_exchange *x);

struct trib_config_faults;

/**
 * trib_settings_check - look for settings with which trib_init or a collective would
 * fail.
 *
 * The settings have been parsed. This checks names and options, and opens nothing.
 * faults   receives a sentence for each wrong setting that has none yet
 * returns  true if there are none
 */
bool trib_settings_check(const struct trib_config *cfg,
                         struct trib_config_faults *faults);

/**
 * trib_settings_refuse - TRIB_ERR_CONFIG and a sentence for the first setting of codec,
 * feedback, quorum, check and algorithm with which a collective would fail.
 */
trib_status_t trib_settings_refuse(const struct trib_config *cfg,
                                   struct trib_error *err);

/** trib_settings_kernels - find the kernels of TRIB_CPU; TRIB_ERR_CONFIG if this CPU
 * lacks them. */
trib_status_t trib_settings_kernels(const struct trib_config *cfg,
                                    const struct trib_kernels **out,
                                    struct trib_error *err);

/** trib_settings_algorithm - TRIB_ERR_INVALID, naming the nearest name, if there is no
 * such algorithm. */
trib_status_t trib_settings_algorithm(const char *name, struct trib_error *err);

/** trib_settings_feedback - TRIB_ERR_INVALID if the text is of no feedback. */
trib_status_t trib_settings_feedback(const char *text, struct trib_error *err);

/** trib_wireup_machine - a number that ranks within load/store reach of each other
 * share. */
uint64_t trib_wireup_machine(void);

/** trib_wireup_difference - the first setting in which the texts a and b, of the form
 * "name=value name=value", differ: x receives it from a, y from b. */
void trib_wireup_difference(const char *a, const char *b, char *x, char *y,
                            size_t bytes);

/** trib_wireup_bytes - bytes that each rank gives to exchange 0, 1, … of
 * trib_comm_wireup; 0: there is no such exchange. */
size_t trib_wireup_bytes(int exchange);

/** trib_comm_drop_copy - free a forked child's copy, and tell no peer. */
void trib_comm_drop_copy(struct trib_comm *comm);

/** trib_comm_poll - look after ranks that wait for this one on another communicator:
 * comm/plan_ops.h. */
static inline void trib_comm_poll(struct trib_comm *comm)
{
    if (comm->hooks)
        comm->hooks->poll(comm);
}

/** trib_comm_fail_all - fail the communicator with this sentence; takes the lock. */
void trib_comm_fail_all(struct trib_comm *comm, trib_status_t status, const char *text);

/** trib_comm_dispose - free a communicator in any state. */
void trib_comm_dispose(struct trib_comm *comm);

/**
 * trib_comm_dispose_dup - free what trib_comm_dup made of a communicator, in any state.
 *
 * If the communicator has failed, the peers hear so by dup as well. A peer that looks
 * at dup alone would otherwise see a rank leave, and not why.
 *
 * dup  NULL: there is none
 */
void trib_comm_dispose_dup(struct trib_comm *dup, const struct trib_comm *of);

/* Three rows of trib_plan_own_ops, which have files of their own. */
trib_status_t trib_plan_own_sent(struct trib_plan *plan, const unsigned char **mask_out,
                                 size_t *sent_out);
trib_status_t trib_plan_own_state_save(struct trib_plan *plan, void *state,
                                       size_t bytes, size_t *bytes_out);
trib_status_t trib_plan_own_state_load(struct trib_plan *plan, const void *state,
                                       size_t bytes);

/** trib_plan_hold - the plan whose engine computes, which stays so until
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
 * trib_plan_notify_then - have a short function called when a start has ended and
 * trib_plan_test says so; on any thread. It must not call the plan.
 *
 * errors   as trib_plan_notify
 */
trib_status_t trib_plan_notify_then(struct trib_plan *plan, void (*then)(void *arg),
                                    void *arg);

/** trib_plan_make - make a plan that does not count as one of the caller's. */
trib_status_t trib_plan_make(struct trib_comm *comm, trib_coll_t coll,
                             const trib_desc_t *desc, bool leaving,
                             struct trib_plan **plan_out);
void trib_plan_destroy(struct trib_plan *plan);

/** trib_plan_make_outer - describe a plan that other plans run for: its maker gives it
 * a table and what that needs. */
trib_status_t trib_plan_make_outer(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *desc,
                                   struct trib_plan **plan_out);

/** trib_plan_make_own - the same for a plan that the communicator's own engine runs,
 * whatever runs others. */
trib_status_t trib_plan_make_own(struct trib_comm *comm, trib_coll_t coll,
                                 const trib_desc_t *desc, struct trib_plan **plan_out);

/**
 * trib_plan_release - TRIB_OK once nothing touches the plan any more.
 *
 * what, call  for the sentence of TRIB_ERR_BUSY: "plan", "trib_plan_free"
 */
trib_status_t trib_plan_release(struct trib_plan *plan, const char *what,
                                const char *call);

/** trib_plan_feedback - decide how the plan makes up for what its codec loses:
 * run.desc.feedback.
 *
 * errors   TRIB_ERR_INVALID, TRIB_ERR_UNSUPPORTED with a sentence */
trib_status_t trib_plan_feedback(struct trib_plan *plan, const trib_desc_t *desc);

/** trib_plan_idle - TRIB_OK if the plan does not run; else TRIB_ERR_BUSY and a
 * sentence. */
trib_status_t trib_plan_idle(struct trib_plan *plan, const char *call);

/**
 * trib_plan_make_model - make the model of a plan whose codec has one, once the vector
 * is cut.
 *
 * If ranks exchange what the model learns, plan->exchanged receives the vector of the
 * exchange. trib_plan_make then makes a second plan from trib_plan_describe_exchange.
 */
trib_status_t trib_plan_make_model(struct trib_plan *plan);
void trib_plan_describe_exchange(const struct trib_plan *plan, trib_desc_t *desc);
void trib_plan_dispose_model(struct trib_plan *plan);

/** trib_plan_tell_model - what the codec has learned, for trib_plan_explain; nothing
 * while the plan runs. */
void trib_plan_tell_model(const struct trib_plan *plan, char *text, size_t bytes);

/** trib_plan_launch - queue the plan's run, and before it the exchange that it waits
 * for. */
void trib_plan_launch(struct trib_plan *plan, const void *send, void *recv);

/** trib_plan_run - start and wait, on the caller's thread. */
trib_status_t trib_plan_run(struct trib_plan *plan, const void *send, void *recv);

/**
 * trib_comm_exchange - all-gather or broadcast control data of the ranks; blocks.
 *
 * bytes    bytes that each rank gives. For a broadcast from rank 0: all bytes, at out;
 *          in is NULL
 */
trib_status_t trib_comm_exchange(struct trib_comm *comm, trib_coll_t coll,
                                 const void *in, size_t bytes, void *out);

/** trib_comm_broadcast - control data from a rank to all; blocks. */
trib_status_t trib_comm_broadcast(struct trib_comm *comm, int root, size_t bytes,
                                  void *data);

/* A communicator that is made of another one. */
struct trib_child {
    const struct trib_config *cfg; /* copied */
    int rank, size;
    bool within; /* the parent outlives it: they share the caller's idle function */
    const char *made; /* by what, for its label */
};

/**
 * trib_comm_make_child - make a communicator whose ranks meet by an exchange of the
 * parent's.
 *
 * errors   those of trib_comm_wireup, with the sentence in err; *out has not changed
 */
trib_status_t trib_comm_make_child(struct trib_comm *parent, const struct trib_child *c,
                                   const struct trib_exchange *x,
                                   struct trib_error *err, struct trib_comm **out);

/**
 * trib_comm_survive - make a communicator of the ranks that are left; the part of
 * trib_comm_shrink that knows of no service.
 *
 * errors   those of trib_comm_shrink, with the sentence in err
 */
trib_status_t trib_comm_survive(struct trib_comm *comm, struct trib_error *err,
                                struct trib_comm **out);

/**
 * trib_comm_commit - all ranks take a communicator that they have wired up beside this
 * one, or none does; the end of trib_comm_grow. Nothing goes on in comm.
 *
 * bigger   is freed after an error
 * errors   those of trib_comm_grow, with the sentence in err
 */
trib_status_t trib_comm_commit(struct trib_comm *comm, struct trib_comm *bigger,
                               struct trib_error *err);

/** trib_comm_end_all - fail what is under way in a communicator that is over. */
void trib_comm_end_all(struct trib_comm *comm, const char *call);

/**
 * trib_comm_dup - make another communicator of the same ranks with other settings;
 * collective.
 *
 * cfg      copied; ranks must pass the same where they must agree
 */
trib_status_t trib_comm_dup(struct trib_comm *comm, const struct trib_config *cfg,
                            struct trib_comm **out);

/** trib_comm_split_within - trib_split with all ranks, for a communicator that its
 * parent outlives: they share the caller's idle function, and its answer. So does
 * trib_comm_dup. */
trib_status_t trib_comm_split_within(struct trib_comm *comm, struct trib_comm **out);

/** trib_plan_cache_find - the entry of this key, or one that may be taken for it. */
struct trib_plan_cache_entry *trib_plan_cache_find(struct trib_comm *comm,
                                                   const struct trib_plan_key *key);

/** trib_plan_cache_clear - destroy the plans of the blocking calls;
 * trib_named_plans_clear does it for those with names. */
void trib_plan_cache_clear(struct trib_comm *comm);
void trib_named_plans_clear(struct trib_comm *comm);

/** trib_named_plans_find - the plan of this name; NULL: there is none. */
struct trib_plan *trib_named_plans_find(const struct trib_comm *comm, const char *name);

/** trib_named_plans_grow - make room for one more plan with a name; false: no
 * memory. */
bool trib_named_plans_grow(struct trib_comm *comm);

/** trib_named_plans_add - take a plan whose name is new; there is room for it. */
void trib_named_plans_add(struct trib_comm *comm, struct trib_plan *plan);

/** trib_plan_make_for_call - make a plan of a call without a name, as the settings say.
 *
 * own      the communicator's own engine runs it */
trib_status_t trib_plan_make_for_call(struct trib_comm *comm,
                                      const struct trib_plan_key *key, bool own,
                                      struct trib_plan **plan_out);

/** trib_requests_clear - destroy the requests that are kept for calls to come. */
void trib_requests_clear(struct trib_comm *comm);

#endif
