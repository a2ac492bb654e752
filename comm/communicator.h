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
#include "comm/identity.h"
#include "comm/plan_ops.h"
#include "pipeline/engine/engine.h"

#define TRIB_PLAN_CACHE 64

enum { TRIB_QUORUM_TEXT_MAX = 64 };

struct trib_plan {
    const struct trib_plan_ops *ops;
    struct trib_comm *comm;
    struct trib_run run;
    struct trib_codec *codec;
    const void *send;
    void *recv;
    size_t lengths[2]; /* elements of send and recv, for checks */
    char why[256];     /* of the algorithm */
    bool is_exempt; /* from the configuration's codec: configured.h */
    struct trib_plan_looks *looks; /* plan_stats.c; or NULL */
    double squares;  /* of what this start has been fed, for TRIB_CHECK */
    bool has_quorum; /* if a service does it */
    bool plain; /* codec none, in words of the codec here: the service has a quorum */
    char quorum[TRIB_QUORUM_TEXT_MAX]; /* of a channel's plan: its text; empty: all
                                        * ranks */
    struct trib_identity identity;
    uint32_t starts; /* of this plan, on its communicator */
    uint32_t number; /* of a channel's plan */
    uint64_t charged; /* of a node's plan: bytes, to its job's ledger */
    bool numbered;
    bool dropped;        /* of a node: it goes after its start number last_start */
    uint32_t last_start;
    struct trib_offload_plan *offload; /* offload/ runs it, and run is not used; or
                                        * NULL */
    struct trib_plan *exchange; /* of what run.desc.model learns, or NULL */
    float *exchanged;           /* the vector of that plan */
};

/* What the blocking calls look their plan up by. */
struct trib_plan_key {
    trib_coll_t coll;
    trib_dtype_t dtype;
    trib_op_t op;
    int root;
    size_t count;
};

struct trib_plan_cache_entry {
    struct trib_plan_key key;
    struct trib_plan *plan;
    uint64_t used;
};

/* The plans of trib_allreduce_named, by name: named_plans.c */
struct trib_named_plans {
    struct trib_plan **slots; /* [n_slots], of which n_plans are not NULL */
    size_t n_slots, n_plans;
};

/* Drives started plans. Made at the first trib_plan_start. */
struct trib_progress_thread {
    pthread_t thread;
    bool running;
    pthread_mutex_t mutex;
    pthread_cond_t work;
    bool stop;           /* under mutex */
    _Atomic int active;  /* plans started and not seen done by the driver */
    _Atomic int callers; /* threads in trib_plan_wait: they drive by themselves */
};

struct trib_locality;

struct trib_comm {
    const struct trib_comm_hooks *hooks; /* of what runs some of its operations; or
                                          * NULL */
    struct trib_offload *offload; /* that object, offload/ knows what is in it; or
                                   * NULL */
    struct trib_aggregators *aggregators; /* behind the ranks; NULL: there are none */
    struct trib_guard *guard; /* of its transport, in the channel; or NULL */
    struct trib_config cfg;
    struct trib_log log;
    struct trib_log_pace log_pace; /* of log */
    struct trib_error err;   /* of the last refused call; the caller's thread only */
    struct trib_error cause; /* what transport and engine say; under the lock */
    struct trib_engine engine;
    _Atomic int lock; /* of engine */
    uint64_t fp_modes; /* of the thread that has the lock, from before it took it */
    pid_t pid;        /* whose it is: a forked child has a copy */
    const bool *own;  /* true, and false in a forked child; NULL: the kernel has no such
                       * memory */
    struct trib_progress_thread progress_thread;
    int n_plans; /* of the caller */
    uint64_t starts;   /* of plans and blocking calls: the same on all ranks */
    uint64_t identity; /* of a communicator that was split off another one; else 0 */
    int n_children;
    char label[32]; /* of the trace file: rank, and which split it comes from */
    bool stands_in;     /* for a channel: its plans keep what those of the channel
                         * keep */
    bool coded;         /* cfg.codec is not "none" */
    bool load_store;     /* each rank has load/store reach to all others … */
    bool oversubscribed; /* … or a host more ranks than cores: the same on all ranks */
    bool one_host; /* all ranks are of this host */
    struct trib_locality *locality; /* ranks that are of one host; NULL: there are
                                     * services */
    bool uncompressed_told; /* the warning of a codec that compresses nothing was
                             * given */
    size_t chunk_asked; /* cfg.chunk is smaller where little memory may be locked, or
                         * larger over networks where nobody has set it */
    bool chunk_given; /* somebody has set it */
    struct trib_net_met met; /* where the ranks of the first communicator met */
    struct trib_secret secret; /* by which its ranks know each other; or not set */
    size_t cache_bytes; /* last-level cache of this host; 0: not known */
    struct trib_named_plans named;
    struct trib_plan_cache_entry *newest;
    struct trib_plan_cache_entry cache[TRIB_PLAN_CACHE];
    uint64_t clock; /* of cache */
};

/** trib_comm_claim - this process owns it; before all else. */
void trib_comm_claim(struct trib_comm *comm);

/** trib_comm_refuse_child - TRIB_ERR_INVALID and a sentence. */
trib_status_t trib_comm_refuse_child(struct trib_comm *comm, const char *call);

/** trib_comm_in_child - is this a forked child's copy? One load, before Linux 4.14 a
 * system call. */
static inline bool trib_comm_in_child(const struct trib_comm *comm)
{
    return comm->own ? !*comm->own : getpid() != comm->pid;
}

/**
 * trib_comm_ours - TRIB_OK, or TRIB_ERR_INVALID and a sentence in a forked child.
 *
 * A child has its parent's sockets, segments and devices: what it did with them it
 * would do to the parent. It may only free its copy.
 */
static inline trib_status_t trib_comm_ours(struct trib_comm *comm, const char *call)
{
    return trib_comm_in_child(comm) ? trib_comm_refuse_child(comm, call) : TRIB_OK;
}

/** trib_comm_fail - the sentence of an operation that was refused; nothing was
 * harmed. */
trib_status_t trib_comm_fail(struct trib_comm *comm, trib_status_t status,
                             const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** trib_comm_cause - why an operation of the engine or the transport gave `st`. Call it
 * with the lock held, and trib_error_clear(&comm->cause) before the operation. */
const char *trib_comm_cause(const struct trib_comm *comm, trib_status_t st);

/**
 * trib_opts_take - options as this library has them, from those of a caller.
 *
 * theirs   NULL: all defaults; smaller ones are of a program built with an older header
 * errors   TRIB_ERR_INVALID with a sentence in err
 */
trib_status_t trib_opts_take(const trib_opts_t *theirs, trib_opts_t *out,
                             struct trib_error *err);

/** trib_say_error - the sentence where there is no communicator:
 * trib_last_error(NULL). */
void trib_say_error(const char *text);

/* Waits for the driver to end its pass. */
void trib_comm_lock_slow(struct trib_comm *comm);

/* Whoever has the lock computes in the usual modes, so that ranks get the same bits in
 * whatever thread the engine runs: base/fpenv.h. */
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

/** trib_progress_thread_start - somebody has started a plan: see that it goes on. */
trib_status_t trib_progress_thread_start(struct trib_comm *comm);

/** trib_progress_thread_caller_enter - the calling thread drives in its place, until
 * trib_progress_thread_caller_leave. Any thread, without the lock. */
void trib_progress_thread_caller_enter(struct trib_comm *comm);
void trib_progress_thread_caller_leave(struct trib_comm *comm);
void trib_progress_thread_stop(struct trib_comm *comm);

struct trib_boot;

/* Exchanges `bytes` of every rank: through the launcher, or through another comm. */
struct trib_exchange {
    trib_status_t (*allgather)(void *arg, const char *phase, const void *in,
                               size_t bytes, void *out);
    void *arg;
};

/** trib_boot_exchange - of struct trib_exchange; arg is a struct trib_boot. */
trib_status_t trib_boot_exchange(void *arg, const char *phase, const void *in,
                                 size_t bytes, void *out);

/**
 * trib_comm_join - find rank, size and the others, from opts, settings or the launcher.
 *
 * comm     cfg, log and err are there; the sentence of an error is in err. Receives the
 *          secret
 * boot_out open; the caller closes it
 * rank, size   as far as they are known, also after an error
 */
trib_status_t trib_comm_join(struct trib_comm *comm, const trib_opts_t *opts,
                             struct trib_boot **boot_out, int *rank_out, int *size_out);

/**
 * trib_comm_wireup - everything after rank and size are known: transport, engine,
 * peers.
 *
 * errors   the sentence is in comm->err; dispose of comm
 */
trib_status_t trib_comm_wireup(struct trib_comm *comm, int rank, int size,
                               const struct trib_exchange *x);

struct trib_config_faults;

/**
 * trib_settings_check - with which settings would trib_init or a collective fail?
 *
 * They have been read well; here names and options are looked up, nothing is opened.
 * faults   each gets its sentence, unless it has one
 * returns  are there none?
 */
bool trib_settings_check(const struct trib_config *cfg,
                         struct trib_config_faults *faults);

/** trib_settings_kernels - those of TRIB_CPU; TRIB_ERR_CONFIG where this CPU lacks
 * them. */
trib_status_t trib_settings_kernels(const struct trib_config *cfg,
                                    const struct trib_kernels **out,
                                    struct trib_error *err);

/** trib_settings_algorithm - TRIB_ERR_INVALID, and the nearest name, where it is
 * none. */
trib_status_t trib_settings_algorithm(const char *name, struct trib_error *err);

/** trib_wireup_machine - the same on ranks within load/store reach of each other. */
uint64_t trib_wireup_machine(void);

/** trib_wireup_difference - the first setting in which two texts "name=value
 * name=value" differ: x of a, y of b. */
void trib_wireup_difference(const char *a, const char *b, char *x, char *y,
                            size_t bytes);

/** trib_wireup_bytes - what each rank gives to exchange 0, 1, … of trib_comm_wireup; 0:
 * that was the last. */
size_t trib_wireup_bytes(int exchange);

/** trib_comm_drop_copy - free a forked child's copy; nothing is said to anybody. */
void trib_comm_drop_copy(struct trib_comm *comm);

/** trib_comm_poll - the ranks may be waiting elsewhere for this one:
 * comm/plan_ops.h. */
static inline void trib_comm_poll(struct trib_comm *comm)
{
    if (comm->hooks)
        comm->hooks->poll(comm);
}

/** trib_comm_fail_all - the communicator fails with this sentence; the lock is not
 * held. */
void trib_comm_fail_all(struct trib_comm *comm, trib_status_t status, const char *text);

/** trib_comm_dispose - free all of it, in whatever state it is. */
void trib_comm_dispose(struct trib_comm *comm);

/* The rows of trib_plan_own_ops that have files of their own. */
trib_status_t trib_plan_own_sent(struct trib_plan *plan, const unsigned char **mask_out,
                                 size_t *sent_out);
trib_status_t trib_plan_own_state_save(struct trib_plan *plan, void *state,
                                       size_t bytes, size_t *bytes_out);
trib_status_t trib_plan_own_state_load(struct trib_plan *plan, const void *state,
                                       size_t bytes);

/** trib_plan_make - a plan that is not counted as the caller's. */
trib_status_t trib_plan_make(struct trib_comm *comm, trib_coll_t coll,
                             const trib_desc_t *desc, bool leaving,
                             struct trib_plan **plan_out);
void trib_plan_destroy(struct trib_plan *plan);

/** trib_plan_feedback - what the plan is to do about what its codec loses:
 * run.desc.feedback.
 *
 * errors   TRIB_ERR_INVALID, TRIB_ERR_UNSUPPORTED with a sentence
 */
trib_status_t trib_plan_feedback(struct trib_plan *plan, const trib_desc_t *desc);

/** trib_plan_idle - may its state be touched? TRIB_ERR_BUSY and a sentence while it
 * runs. */
trib_status_t trib_plan_idle(struct trib_plan *plan, const char *call);

/**
 * trib_plan_make_model - the model of a plan whose codec has one; the vector has been
 * cut.
 *
 * If ranks exchange what it learns, plan->exchanged is the vector of that exchange, for
 * which trib_plan_make makes a second plan as trib_plan_describe_exchange says.
 */
trib_status_t trib_plan_make_model(struct trib_plan *plan);
void trib_plan_describe_exchange(const struct trib_plan *plan, trib_desc_t *desc);
void trib_plan_dispose_model(struct trib_plan *plan);

/** trib_plan_launch - trib_run_start, and before it the exchange that it waits for. */
void trib_plan_launch(struct trib_plan *plan, const void *send, void *recv);

/** trib_plan_run - start and wait, on the caller's thread. */
trib_status_t trib_plan_run(struct trib_plan *plan, const void *send, void *recv);

/**
 * trib_comm_exchange - all-gather, or broadcast from rank 0, of what ranks must know.
 *
 * bytes    that each rank gives; broadcast: all, at out, in is NULL
 */
trib_status_t trib_comm_exchange(struct trib_comm *comm, trib_coll_t coll,
                                 const void *in, size_t bytes, void *out);

/**
 * trib_comm_dup - all ranks in another communicator, with other settings: as
 * trib_split.
 *
 * cfg      copied; the same on all ranks where they must agree
 */
trib_status_t trib_comm_dup(struct trib_comm *comm, const struct trib_config *cfg,
                            struct trib_comm **out);

/** trib_plan_cache_clear - destroy the plans of the blocking calls,
 * trib_named_plans_clear those with names. */
void trib_plan_cache_clear(struct trib_comm *comm);
void trib_named_plans_clear(struct trib_comm *comm);

#endif
