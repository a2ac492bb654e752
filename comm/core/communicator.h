/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators. Functions of other sources are in the headers next to them;
 * plan_struct.h has plans.
 */
#ifndef COMM_CORE_COMMUNICATOR_H
#define COMM_CORE_COMMUNICATOR_H

#include <stdatomic.h>
#include <sys/types.h>
#include <unistd.h>

#include <tributary.h>

#include "base/addresses.h"
#include "base/log_pace.h"
#include "base/secret.h"
#include "collectives/collectives.h"
#include "comm/core/call_cache.h"
#include "comm/core/plan_kind.h"
#include "comm/core/plan_ops.h"
#include "comm/core/progress_thread.h"
#include "comm/core/rank_clock.h"
#include "pipeline/engine/engine.h"
#include "topo/calibration.h"

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
    bool (*run_callbacks)(struct trib_comm *comm); /* runs callbacks of completed plans.
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
    bool
        is_fallback; /* a fallback_comm: its plans keep the state of agg_comm's plans */
    bool rewinds; /* trib_opts_t.rewind */
    bool coded; /* cfg.codec is not "none" */
    bool load_store; /* all ranks reach each other by load/store */
    bool oversubscribed; /* some host has more ranks than cores; equal on all ranks */
    bool one_host; /* all ranks run on this host */
    struct trib_calibration calibration; /* of the network; equal on all ranks */
    uint32_t mbps; /* lowest nominal speed between hosts, Mbit/s; 0: unknown */
    /* derived from calibration or else from mbps, if either is known */
    struct trib_cost_model network;
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

/** trib_comm_knows_network - return true if comm->network is set. */
static inline bool trib_comm_knows_network(const struct trib_comm *comm)
{
    return comm->calibration.known || comm->mbps;
}

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

/** trib_comm_fail_all - fail the communicator with this message; takes the lock. */
void trib_comm_fail_all(struct trib_comm *comm, trib_status_t status, const char *text);

#endif
