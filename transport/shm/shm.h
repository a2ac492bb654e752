/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the shm transport: what shm.c, shm_peer.c and shm_mem.c share.
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
#include "transport/transport.h"

#define SHM_NAME "shm" /* its row, and the component of its log lines */

/* A peer's segment, mapped once for all regions imported from it. */
struct shm_attached {
    struct trib_segment seg;
    unsigned refs;
    struct shm_attached *next;
};

struct shm_peer {
    enum trib_peer_state state;
    bool active; /* in shm.active[] */
    bool same_process;
    bool reads; /* its memory can be read; after agree: and it can read ours */
    bool meets; /* with a guard: nothing was imported from it since it was connected */
    /* producer: the ring for us in the peer's control segment */
    struct trib_shm_ring *out;
    uint32_t out_slots;
    uint32_t tail;
    uint32_t head_seen; /* a copy of out->head, maybe old */
    _Atomic(struct trib_shm_header *) header; /* the peer's; NULL until connected */
    _Atomic int pipe; /* own descriptor of its pipe or, with a guard, bell; -1: none
                       * yet */
    /* consumer: the ring for the peer in our control segment */
    struct trib_shm_ring *in;
    uint32_t head;

    struct trib_segment control; /* the peer's */
    struct shm_attached *attached;
    struct trib_process who;
    uint32_t handout; /* trib_handout_name of it */
    struct trib_handout_call call; /* with a guard: memory that it was asked for */
    struct trib_process_watch watch;
    uint64_t stopped_ns; /* watched in state "stopped" so far */
    bool left; /* GOING: it left us or closed; what the event will say */
    bool given_up; /* the same: it counts this rank as lost */
    bool dead; /* the same: its process has ended */
    char why[TRIB_WHY_MAX]; /* the same */
};

/* A segment of ours out of which alloc() gives memory. */
struct shm_owned {
    struct trib_segment seg;
    size_t used;
    unsigned refs; /* regions inside; +1 while it is shm.arena */
    struct shm_owned *next;
};

struct shm_region {
    uint8_t *ptr;
    size_t len;
    struct shm_owned *owned; /* NULL: the memory is not ours */
    bool allocated; /* by alloc(), not reg() */
    size_t private_len; /* allocated as memory of this process alone; 0: it was not */
    uint64_t key; /* owned NULL: of its row in trib_own_memory */
    LIST_ENTRY(shm_region) entry;
};

struct shm_remote {
    int peer;
    size_t len;
    uint8_t *ptr; /* NULL: not mappable, reached by process_vm_writev */
    uint64_t addr; /* in the peer's process, where ptr is NULL */
    struct shm_attached *attached;
    LIST_ENTRY(shm_remote) entry;
};

struct shm_done {
    uint64_t token;
    int peer;
};

/* Small regions share a segment, for each segment costs an open file. */
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
    struct trib_guard *guard; /* against peers that are not trusted; or NULL */
    uint64_t given; /* bytes that such peers handed over and that are mapped */
    struct trib_segment control;
    struct trib_handout *handout; /* of the segments, to whom /proc bars; or NULL */
    struct trib_shm_header *header;
    struct shm_peer *peers;

    /* poll */
    int *active; /* peers that are connected or attached to us */
    int n_active;
    int next; /* index into active[]: where the next poll begins */
    int n_going;
    uint32_t attached_seen;
    unsigned polls;
    struct shm_done done[SHM_DONE_SLOTS]; /* WRITE_DONE events to come */
    uint32_t done_head, done_tail;

    /* sleep */
    /* Also touched by wait(), which may run beside the other calls. */
    _Atomic bool armed;
    _Atomic bool slept; /* time has passed: the next poll looks after the peers */
    _Atomic uint32_t bell_seen;
    int pipe[2]; /* -1: the own sleep is on the futex. With a guard they are sockets,
                  * and peers are given the second: they cannot close, fill or shut the
                  * first */

    bool on_pipe; /* the own sleep is on pipe[0] */

    /* liveness */
    uint64_t stop_timeout_ns;
    uint64_t stop_check_ns; /* between two looks for stopped peers */
    uint64_t tick_at; /* coarse clock: next liveness tick; 0: now */
    uint64_t stop_looked_at;
    struct pollfd *pidfds;
    int *pidfd_peer;

    /* memory */
    struct shm_owned *owned;
    struct shm_owned *arena; /* takes small alloc()s */
    LIST_HEAD(, shm_region) regions;
    LIST_HEAD(, shm_remote) remotes;
    bool told_private; /* that trib_alloc gave memory that is not shared */
    bool agreed; /* peers[].reads are those of pairs */
    bool cma; /* process_vm_readv and _writev: not switched off and not refused so
               * far */
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

/** trib_shm_activate - from now on poll() reads this peer's ring. */
void trib_shm_activate(struct shm *shm, int peer);

/** trib_shm_peer_lost - the loss of a going peer has been reported. */
void trib_shm_peer_lost(struct shm *shm, int peer);

/** trib_shm_liveness - look after the peers if it is time to; `now` in ns. */
void trib_shm_liveness(struct shm *shm, uint64_t now);

/** trib_shm_ring - end a connected peer's sleep, or the own, if it sleeps; any
 * thread. */
void trib_shm_ring(struct shm *shm, int peer);

/** trib_shm_peer_silent - a connected peer does not do what it must: it is lost. */
/* The peer is lost: that is reported once its ring is empty. */
void trib_shm_peer_going(struct shm *shm, struct shm_peer *peer, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void trib_shm_deactivate(struct shm *shm, int peer);
void trib_shm_peer_silent(struct shm *shm, int peer, const char *why);

/* shm_guard.c */

/** trib_shm_owner - of whom a peer's memory is asked. */
struct trib_handout_owner trib_shm_owner(const struct shm *shm, int peer, int pid,
                                         uint32_t name);

/** trib_shm_guard_reach - trib_shm_reach, of a peer that the guard bars. */
trib_status_t trib_shm_guard_reach(struct shm *shm, int peer,
                                   const struct trib_shm_address *address);

/**
 * trib_shm_guard_attach - map a segment of a peer that the guard bars.
 *
 * returns  TRIB_INPROGRESS, of an aggregator's: it was asked for, and has not come yet;
 *          else as trib_segment_attach
 */
trib_status_t trib_shm_guard_attach(struct shm *shm, int peer,
                                    const struct trib_segment_id *id,
                                    struct trib_segment *out);

/** trib_shm_guard_detach - trib_segment_release of a peer's segment, of any. */
void trib_shm_guard_detach(struct shm *shm, struct trib_segment *seg, bool in_child);

/** trib_shm_guard_ring - a byte to a bell; -1: nothing. */
void trib_shm_guard_ring(int fd);

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

/** trib_shm_copy - the bytes of a write, bounds checked. */
trib_status_t trib_shm_copy(struct shm *shm, int peer, const struct trib_write *write);

/** trib_shm_free_memory - all regions and mappings; of a forked child its copies. */
void trib_shm_free_memory(struct shm *shm, bool in_child);

/* shm_cma.c */
bool trib_shm_reads(struct trib_transport *t, int peer);
trib_status_t trib_shm_read(struct trib_transport *t, int peer, uint64_t from, void *to,
                            size_t len);

/** trib_shm_may_read - true if the kernel lets this process read memory of another. */
bool trib_shm_may_read(struct shm *shm, int pid);

/** trib_shm_cma_probe - TRIB_OK: the kernel lets this process into the peer's memory
 * at the address of x. */
trib_status_t trib_shm_cma_probe(struct shm *shm, int peer,
                                 const struct trib_shm_export *x);

/** trib_shm_has_left - has the peer closed its transport, left this rank or given it
 * up? Then nothing may be written to it any more. */
static inline bool trib_shm_has_left(const struct shm_peer *p)
{
    return atomic_load(&p->header->state) == TRIB_SHM_CLOSED ||
           atomic_load(&p->out->left) != TRIB_SHM_HERE;
}

/**
 * trib_shm_cma_write - the bytes of a write to memory that is in no segment.
 *
 * errors   TRIB_ERR_PEER_LOST: the peer has ended, or trib_shm_has_left
 */
trib_status_t trib_shm_cma_write(struct shm *shm, const struct shm_remote *remote,
                                 size_t off, const void *from, size_t len);

#endif
