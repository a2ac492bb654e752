/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of the shm transport, shared by its .c files.
 */
#ifndef TRANSPORT_SHM_SHM_H
#define TRANSPORT_SHM_SHM_H

#include <poll.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "base/process.h"
#include "transport/common/handout.h"
#include "transport/common/peer.h"
#include "transport/common/segment.h"
#include "transport/shm/shm_layout.h"
#include "transport/op_defaults.h"
#include "transport/open.h"

#define SHM_NAME "shm" /* transport name, and component of its log lines */

/* A segment of a peer, mapped once for all regions imported from it. */
struct shm_attached {
    struct trib_segment seg;
    unsigned refs;
    struct shm_attached *next;
};

struct shm_peer {
    enum trib_peer_state state;
    bool active; /* listed in shm.active[] */
    bool same_process;
    bool reads; /* this rank can read its memory; after agree: both ranks can */
    /* With a guard: connected, but nothing imported yet. Requests for its memory may
     * block, because no worker of the aggregator runs yet. */
    bool in_rendezvous;
    /* producer: the ring for this rank in the peer's control segment */
    struct trib_shm_ring *out;
    uint32_t out_slots;
    uint32_t tail;
    uint32_t head_seen; /* cached out->head, may be stale */
    _Atomic(struct trib_shm_header *) header; /* of the peer; NULL until connected */
    /* local descriptor of its pipe or, with a guard, of its bell; -1: none yet */
    _Atomic int pipe;
    /* consumer: the ring for the peer in this rank's control segment */
    struct trib_shm_ring *in;
    uint32_t head;

    struct trib_segment control; /* of the peer */
    struct shm_attached *attached;
    struct trib_process who;
    uint32_t handout; /* its trib_handout_name */
    /* with a guard: a request for its memory in flight */
    struct trib_handout_call call;
    struct trib_process_watch watch;
    uint64_t stopped_ns; /* time observed in state "stopped" so far */
    bool left; /* DRAINING: it disconnected or closed; goes into the event */
    bool given_up; /* DRAINING: it declared this rank lost */
    bool dead; /* DRAINING: its process has ended */
    char why[TRIB_WHY_MAX]; /* DRAINING: the reason */
};

/* A segment of this rank from which alloc() takes memory. */
struct shm_owned {
    struct trib_segment seg;
    size_t used;
    unsigned refs; /* regions inside, +1 while it is shm.arena */
    struct shm_owned *next;
};

struct shm_region {
    uint8_t *ptr;
    size_t len;
    struct shm_owned *owned; /* NULL: not in a segment of this rank */
    bool allocated; /* by alloc(), not reg() */
    /* mapped length of memory private to this process; 0: not private */
    size_t private_len;
    uint64_t key; /* if owned is NULL: key of its entry in trib_own_memory */
    LIST_ENTRY(shm_region) entry;
};

struct shm_remote {
    int peer;
    size_t len;
    uint8_t *ptr; /* NULL: not mappable, reached by process_vm_writev */
    uint64_t addr; /* in the peer's process, if ptr is NULL */
    struct shm_attached *attached;
    LIST_ENTRY(shm_remote) entry;
};

struct shm_done {
    uint64_t token;
    int peer;
};

/* Small regions share a segment, since each segment costs a file descriptor. */
#define TRIB_SHM_ARENA_LEN ((size_t)2 << 20)

#define SHM_DONE_SLOTS 1024u

struct shm {
    struct trib_transport base;
    int self;
    int size;
    uint32_t ring_slots;
    const struct trib_log *log;
    struct trib_error *err;
    struct trib_process me;
    struct trib_guard *guard; /* against untrusted peers; or NULL */
    uint64_t untrusted_bytes; /* mapped from segments of untrusted peers */
    struct trib_segment control;
    /* hands segments to peers that /proc keeps out; or NULL */
    struct trib_handout *handout;
    struct trib_shm_header *header;
    struct shm_peer *peers;

    /* poll */
    int *active; /* peers that are connected or attached to this rank */
    int n_active;
    int next; /* index into active[] at which the next poll begins */
    int n_draining;
    uint32_t attached_seen;
    unsigned polls;
    struct shm_done done[SHM_DONE_SLOTS]; /* queued WRITE_DONE events */
    uint32_t done_head, done_tail;

    /* sleep */
    /* Also accessed by wait(), which may run concurrently with other calls. */
    _Atomic bool armed;
    _Atomic bool slept; /* time has passed: the next poll checks the peers */
    _Atomic uint32_t doorbell_seen;
    /* -1: this rank sleeps on the futex. With a guard these are sockets. Peers get the
     * second one, with which they cannot close, fill or shut down the first */
    int pipe[2];

    bool on_pipe; /* this rank sleeps on pipe[0] */

    /* liveness */
    uint64_t stop_timeout_ns;
    uint64_t stop_check_ns; /* interval between checks for stopped peers */
    uint64_t tick_at; /* on the coarse clock: next liveness check; 0: now */
    uint64_t stops_checked_at;
    struct pollfd *pidfds;
    int *pidfd_peer;

    /* memory */
    struct shm_owned *owned;
    struct shm_owned *arena; /* serves small alloc()s */
    LIST_HEAD(, shm_region) regions;
    LIST_HEAD(, shm_remote) remotes;
    /* already warned that trib_alloc returned memory that is not shared */
    bool private_logged;
    bool agreed; /* peers[].reads holds for both directions */
    /* process_vm_readv and _writev are enabled and have not been refused so far */
    bool cma;
};

static inline struct shm *shm_of(struct trib_transport *t)
{
    return (struct shm *)t;
}

static inline struct trib_peers shm_peers(const struct shm *shm)
{
    return (struct trib_peers){shm->peers, sizeof(*shm->peers), shm->self, shm->size,
                               shm->err};
}

/* shm_peer.c */
TRIB_TRANSPORT_PEERS(trib_shm);
trib_status_t trib_shm_caps(struct trib_transport *t,
                            const struct trib_address *addresses, uint32_t *caps_out);
void trib_shm_agree(struct trib_transport *t, const uint32_t *caps);
void trib_shm_disconnect(struct trib_transport *t, int peer);
void trib_shm_leave(struct trib_transport *t, const bool *which);

/** trib_shm_activate - let poll() read this peer's ring from now on. */
void trib_shm_activate(struct shm *shm, int peer);

/** trib_shm_peer_lost - mark a peer as lost after its loss has been reported. */
void trib_shm_peer_lost(struct shm *shm, int peer);

/** trib_shm_liveness - check the peers if it is time; `now` in ns. */
void trib_shm_liveness(struct shm *shm, uint64_t now);

/** trib_shm_wake_peer - wake a connected peer, or this rank, if asleep; any thread. */
void trib_shm_wake_peer(struct shm *shm, int peer);

/* shm_loss.c */

/** trib_shm_peer_drain - mark a peer lost; poll() reports it once its ring is empty. */
void trib_shm_peer_drain(struct shm *shm, struct shm_peer *peer, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void trib_shm_deactivate(struct shm *shm, int peer);

/** trib_shm_peer_silent - mark a connected peer lost because it fails to respond. */
void trib_shm_peer_silent(struct shm *shm, int peer, const char *why);

/* shm_guard.c */

/** trib_shm_owner - describe the owner of a peer's memory for a request. */
struct trib_handout_owner trib_shm_owner(const struct shm *shm, int peer, int pid,
                                         uint32_t name);

/** trib_shm_guard_reach - trib_shm_reach for a peer that the guard bars. */
trib_status_t trib_shm_guard_reach(struct shm *shm, int peer,
                                   const struct trib_shm_address *address);

/**
 * trib_shm_guard_attach - map a segment of a peer that the guard bars.
 *
 * returns  on an aggregator, TRIB_INPROGRESS: requested, but not received yet; else as
 *          trib_segment_attach
 */
trib_status_t trib_shm_guard_attach(struct shm *shm, int peer,
                                    const struct trib_segment_id *id,
                                    struct trib_segment *out);

/** trib_shm_guard_detach - trib_segment_release for a segment of any peer. */
void trib_shm_guard_detach(struct shm *shm, struct trib_segment *seg, bool in_child);

/** trib_shm_guard_wake - send one byte to a bell; -1: do nothing. */
void trib_shm_guard_wake(int fd);

/* shm_mem.c */
TRIB_TRANSPORT_MEMORY(trib_shm);
trib_status_t trib_shm_alloc_user(struct trib_transport *t, size_t len, void **ptr_out,
                                  struct trib_region **region_out);
void trib_shm_release_pages(struct trib_transport *t, struct trib_region *region);
void trib_shm_release(struct trib_transport *t, struct trib_remote *remote);
size_t trib_shm_length(struct trib_transport *t, const struct trib_remote *remote);
bool trib_shm_stale(struct trib_transport *t, const struct trib_remote *remote);
void *trib_shm_map(struct trib_transport *t, const struct trib_remote *remote,
                   size_t *len_out);

/** trib_shm_copy - copy the bytes of a write after checking its bounds. */
trib_status_t trib_shm_copy(struct shm *shm, int peer, const struct trib_write *write);

/** trib_shm_free_memory - free all regions and mappings; in a forked child, its
 * copies. */
void trib_shm_free_memory(struct shm *shm, bool in_child);

/* shm_cma.c */
bool trib_shm_reads(struct trib_transport *t, int peer);
trib_status_t trib_shm_read(struct trib_transport *t, int peer, uint64_t from, void *to,
                            size_t len);

/** trib_shm_may_read - return true if the kernel lets this process read another's
 * memory. */
bool trib_shm_may_read(struct shm *shm, int pid);

/** trib_shm_cma_probe - return TRIB_OK if the kernel lets this process access the
 * peer's memory at the address of x. */
trib_status_t trib_shm_cma_probe(struct shm *shm, int peer,
                                 const struct trib_shm_export *x);

/** trib_shm_has_left - return true if the peer has closed its transport, disconnected
 * from this rank or declared it lost. Then nothing may be written to the peer any
 * longer. */
static inline bool trib_shm_has_left(const struct shm_peer *p)
{
    return atomic_load(&p->header->state) == TRIB_SHM_CLOSED ||
           atomic_load(&p->out->left) != TRIB_SHM_HERE;
}

/**
 * trib_shm_cma_write - write to peer memory outside all segments.
 *
 * errors   TRIB_ERR_PEER_LOST: the peer has ended, or trib_shm_has_left
 */
trib_status_t trib_shm_cma_write(struct shm *shm, const struct shm_remote *remote,
                                 size_t off, const void *from, size_t len);

#endif
