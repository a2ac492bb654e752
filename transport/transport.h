/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transport contract: one-sided, RDMA-shaped, bytes only.
 *
 * A transport connects this process (peer number `self`) with its peers, numbered
 * 0..size-1. Peers write into each other's registered regions; the last word about
 * a write is an event that carries 32 immediate bits.
 *
 * What every backend guarantees, and tests/transport checks on all of them:
 *   - the bytes of a write are visible before its ARRIVED event
 *   - writes to one peer arrive in the order in which they were posted
 *   - back-pressure is TRIB_ERR_NO_RESOURCE, not a wait; poll, then try again. Memory
 *     that cannot be registered is another error: polling does not help
 *   - a dead peer becomes one PEER_LOST event within about 100 ms of a clean death and
 *     stop_timeout_ms of a stop, for every connected peer, also when nothing is posted
 *   - an address outside its region is refused with TRIB_ERR_RANGE
 *   - what comes from outside counts once its sender has proved that it has the job's
 *     secret, if there is one. So the first write to a peer may wait until that peer
 *     polls
 *
 * Threads: one thread at a time uses a transport; but wait() may go on while another
 * thread uses it, and wake() may be called by any.
 */
#ifndef TRANSPORT_TRANSPORT_H
#define TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_config;
struct trib_error;
struct trib_guard;
struct trib_log;
struct trib_net_met;
struct trib_heartbeat;
struct trib_secret;

/* Room for every candidate of "auto", the largest being four RDMA devices of a rank. A
 * blob is in frames, too: it costs a little with each operation. */
#define TRIB_ADDRESS_MAX 1792
#define TRIB_BLOB_MAX 240
#define TRIB_WHY_MAX 160

/* The one immediate that no caller's write has: a transport's own words. */
#define TRIB_IMM_OWN UINT32_C(0xffffffff)

/* How to connect to a transport, to be carried to peers as it is; once for each
 * rank. */
struct trib_address {
    uint16_t len;
    uint8_t bytes[TRIB_ADDRESS_MAX];
};

/* An exported region, to be carried to peers as it is; also within frames. */
struct trib_blob {
    uint16_t len;
    uint16_t mappable; /* a region that peers within load/store reach can map */
    uint8_t bytes[TRIB_BLOB_MAX];
};

enum trib_event_kind {
    TRIB_EVENT_WRITE_DONE, /* the source of a write may change; token is the write's */
    TRIB_EVENT_ARRIVED,    /* a peer's write is here */
    TRIB_EVENT_PEER_LOST,  /* nothing more comes from or goes to this peer; writes to it
                            * that are not done are dropped, without a WRITE_DONE */
};

struct trib_event {
    enum trib_event_kind kind;
    int peer;
    uint32_t imm;   /* ARRIVED */
    bool left;      /* PEER_LOST: of its own accord, by disconnect or close */
    uint64_t len;   /* ARRIVED: bytes written */
    uint64_t token; /* WRITE_DONE */
    char why[TRIB_WHY_MAX]; /* PEER_LOST: a clause, such as "process 4711 is stopped" */
};

struct trib_transport_opts {
    int self;
    int size;
    const char *params;             /* text after "name:", "" for none */
    const struct trib_candidate *candidates; /* for a backend that chooses among others;
                                              * set by trib_transport_open */
    const struct trib_config *cfg;  /* outlives the transport */
    const struct trib_log *log;     /* may be NULL */
    struct trib_error *err;         /* receives sentences; may be NULL */
    struct trib_heartbeat *heartbeat;       /* heartbeats to share; NULL: a backend that
                                     * needs them has its own */
    const struct trib_net_met *met; /* where the ranks met; NULL: not known. Read in
                                     * open */
    struct trib_guard *guard; /* against peers of another user
                               * (transport/common/guard.h), which it outlives; NULL:
                               * all peers are of this user's own job */
    const struct trib_secret *secret; /* by which peers know each other, armed; NULL or
                                       * not set: anybody who knows the address is
                                       * believed. Outlives the transport */
};

/* Opaque; the first member of each backend's struct is struct trib_transport. */
struct trib_transport {
    const struct trib_transport_ops *ops;
    struct trib_error *err; /* as in the options it was opened with; or NULL */
};
struct trib_region; /* local registered memory */
struct trib_remote; /* a peer's region, imported */

struct trib_write {
    const struct trib_region *local;
    size_t local_off;
    const struct trib_remote *remote;
    size_t remote_off;
    size_t len;     /* 0 is allowed: only the event; local and remote may then be
                     * NULL */
    uint32_t imm;   /* any but TRIB_IMM_OWN */
    bool quiet;     /* no ARRIVED event at the target; may go out with the next write to
                     * it, or at the next poll */
    bool signal;    /* wants a WRITE_DONE event with `token` */
    uint64_t token;
};

/* What a rank tells all others after it has seen their addresses. */
enum {
    TRIB_CAP_MAPS = 1, /* load/store reach to all peers is to be expected */
    TRIB_CAP_BACKEND = 8,  /* from this bit on: for the same backend on the other
                            * side */
};

/* A part of a dma-buf, and where it is mapped here. */
struct trib_dmabuf {
    int fd;
    size_t offset; /* in the dma-buf */
    void *ptr;
    size_t len;
};

/* Memory that can still be registered. */
struct trib_pinned_limit {
    size_t bytes;           /* SIZE_MAX: no limit but the host's memory */
    char why[TRIB_WHY_MAX]; /* limited: a clause, such as "process 4711 may lock 64K" */
    const char *cure;       /* limited: what to do, a literal */
};

/* By what a peer is reached. */
struct trib_route {
    const char *name;       /* of a backend, or "none" */
    char why[TRIB_WHY_MAX]; /* a clause, such as "same host" */
    bool apart; /* it passes for a rank of another host, though it may be of this one */
};

/*
 * Every slot is filled; trib_no_* below serve those that a backend cannot do.
 *
 * devices    what it finds on this host now, for people: a line, "" for nothing to say;
 *            needs no open transport
 * open       make a transport; nothing is connected yet. Its parameters are read before
 *            anything is made (trib_params_parse): what that gives, if not TRIB_OK, it
 *            gives back
 * address    what a peer needs to connect to this one
 * reach      can this address be connected to, as far as that shows from here? Connects
 *            nothing, sends nothing, takes microseconds; the sentence says why not
 * room       memory that can still be registered, all that this process holds counted;
 *            near: where all peers are of this host. Nothing is connected yet
 * survey     the addresses of all peers [size] are known; caps_out is for all of them
 * settle     the caps of all peers [size]. Once both were called, before the first
 *            connect, the two ends of each pair make the same choices. Who knows that
 *            they do anyway can leave both out
 * route      by what a peer is, or would be, reached, and why by that
 * connect    make `peer` reachable; idempotent; cheap when done before
 * disconnect leave a peer cleanly: it gets PEER_LOST, `left` set, unless it has left,
 *            too
 * leave      disconnect all peers whose entry in which[size] is true, NULL: all. The
 *            farewells go out together, under one deadline: peers that answer nothing
 *            cost no more time than one of them
 * alloc      memory that peers reach best, zero, 4096-aligned; registered as a region
 * alloc_user the same for the user's data, which can be copied on its way to peers that
 *            cannot reach it: none of them is reached another way for its sake
 * reg        register memory of the caller
 * reg_dmabuf the same for memory that a device has exported as a dma-buf, and that is
 * mapped
 *            at ptr; fd may be closed afterwards. Who needs the mapping alone takes reg
 * discard    give the pages of memory of alloc back now, though peers still map them:
 *            nobody reads it any more; dereg follows. Not called, dereg gives them back
 *            once the last peer has released them
 * export     describe a region; the blob is valid while the region is
 * import     make a peer's exported region a target; connect(peer) came before. How
 *            long the region is the peer alone says: see trib_transport_import
 * length     bytes of a remote region, as its peer has said; a write beyond is refused,
 *            and where it is mapped they were found to be there
 * stale      has the peer freed this memory? May be false though it has
 * map        load/store reach: a pointer to the remote's first byte, or NULL; len_out,
 *            if not NULL, becomes the bytes there, which were found to be there
 * write      post a write; returns at once
 * poll       harvest up to max events, never blocks; also where liveness is looked at
 * descriptor of this transport: once armed it is readable when a wait would end, so
 * that
 *            one sleep can wait for several; -1: there is none. wait(0) then ends what
 *            arm began. Asked once, before the first arm
 * arm, wait  sleep: arm(), look once more for work, then wait(timeout); wait returns at
 *            an arrival, a wake() or after timeout_us; spurious returns are allowed.
 *            A wake that comes while arming may be missed: keep timeout_us <= 1000
 * wake       end `peer`'s wait (after a store through map()); cheap when it does not
 *            sleep. peer == self ends the own wait, from another thread
 */
struct trib_transport_ops {
    const char *name;
    const char *detail; /* one line for trib-info */
    bool composite; /* made of other backends */
    bool one_process; /* its peers are threads of this process */
    bool one_host; /* its peers are of this host */
    bool nets; /* takes net=: by which networks peers reach it */
    bool bare; /* what it sends to other hosts cannot be sealed (TRIB_SEAL) */
    void (*devices)(char *text, size_t bytes);
    trib_status_t (*open)(const struct trib_transport_opts *opts,
                          struct trib_transport **out);
    void (*close)(struct trib_transport *t);
    trib_status_t (*address)(struct trib_transport *t, struct trib_address *out);
    trib_status_t (*reach)(struct trib_transport *t, int peer,
                           const struct trib_address *address);
    void (*pinned_limit)(struct trib_transport *t, bool near,
                         struct trib_pinned_limit *out);
    trib_status_t (*caps)(struct trib_transport *t,
                            const struct trib_address *addresses, uint32_t *caps_out);
    void (*agree)(struct trib_transport *t, const uint32_t *caps);
    void (*route)(struct trib_transport *t, int peer, struct trib_route *out);
    trib_status_t (*connect)(struct trib_transport *t, int peer,
                             const struct trib_address *address);
    void (*disconnect)(struct trib_transport *t, int peer);
    void (*leave)(struct trib_transport *t, const bool *which);
    trib_status_t (*alloc)(struct trib_transport *t, size_t len, void **ptr_out,
                           struct trib_region **region_out);
    trib_status_t (*alloc_user)(struct trib_transport *t, size_t len, void **ptr_out,
                                struct trib_region **region_out);
    trib_status_t (*reg)(struct trib_transport *t, void *ptr, size_t len,
                         struct trib_region **out);
    trib_status_t (*reg_dmabuf)(struct trib_transport *t, const struct trib_dmabuf *d,
                                struct trib_region **out);
    void (*release_pages)(struct trib_transport *t, struct trib_region *region);
    void (*dereg)(struct trib_transport *t, struct trib_region *region);
    trib_status_t (*export_region)(struct trib_transport *t,
                                   const struct trib_region *region,
                                   struct trib_blob *out);
    trib_status_t (*import_region)(struct trib_transport *t, int peer,
                                   const struct trib_blob *blob,
                                   struct trib_remote **out);
    void (*release)(struct trib_transport *t, struct trib_remote *remote);
    size_t (*length)(struct trib_transport *t, const struct trib_remote *remote);
    bool (*stale)(struct trib_transport *t, const struct trib_remote *remote);
    void *(*map)(struct trib_transport *t, const struct trib_remote *remote,
                 size_t *len_out);
    trib_status_t (*write)(struct trib_transport *t, int peer,
                           const struct trib_write *write);
    int (*poll)(struct trib_transport *t, struct trib_event *events, int max);
    int (*event_fd)(struct trib_transport *t);
    void (*arm)(struct trib_transport *t);
    void (*wait)(struct trib_transport *t, int timeout_us);
    void (*wake)(struct trib_transport *t, int peer);
};

/* What a backend puts into the slots that it has no use for. */
void trib_no_devices(char *text, size_t bytes);
void trib_no_pinned_limit(struct trib_transport *t, bool near,
                          struct trib_pinned_limit *out);
trib_status_t trib_no_caps(struct trib_transport *t,
                             const struct trib_address *addresses, uint32_t *caps_out);
void trib_no_agree(struct trib_transport *t, const uint32_t *caps);
void trib_only_route(struct trib_transport *t, int peer, struct trib_route *out);
trib_status_t trib_mapped_reg_dmabuf(struct trib_transport *t,
                                     const struct trib_dmabuf *d,
                                     struct trib_region **out);
void trib_no_release_pages(struct trib_transport *t, struct trib_region *region);
bool trib_no_stale(struct trib_transport *t, const struct trib_remote *remote);
void *trib_no_map(struct trib_transport *t, const struct trib_remote *remote,
                  size_t *len_out);
int trib_no_event_fd(struct trib_transport *t);
void trib_no_arm(struct trib_transport *t);

/**
 * trib_transports - the backends in order of preference, NULL at the end.
 *
 * The only place that knows which are built in.
 */
extern const struct trib_transport_ops *const trib_transports[];

/** trib_transport_find - a backend by name; NULL: there is none in this build. */
const struct trib_transport_ops *trib_transport_find(const char *name);

/** trib_transport_links - true if a backend connects processes by itself. */
static inline bool trib_transport_links(const struct trib_transport_ops *ops)
{
    return !ops->composite && !ops->one_process;
}

/* A backend that this build is without. */
struct trib_absent {
    const char *name;
    const char *cure; /* a clause, such as "install libucx-dev and build it again" */
};

/** trib_absents - such backends, a NULL name at the end. */
extern const struct trib_absent trib_absents[];

/** trib_transport_absent - the cure of a backend that this build is without; else
 * NULL. */
const char *trib_transport_absent(const char *name);

/**
 * trib_transport_check - does trib_transport_open know all names and parameters in a
 * text? Nothing is opened.
 *
 * errors   those of trib_transport_open for unknown names and parameters
 */
trib_status_t trib_transport_check(const char *text, struct trib_error *err);

/**
 * trib_transport_open - open a backend, wrapped by decorators, from its text.
 *
 * text     "shm", "loop", "shm+trace",
 *          "loop:depth=8+delay:us=50+kill:after=3,signal=9"; "auto" chooses for each
 *          peer
 * errors   TRIB_ERR_CONFIG with a sentence in opts->err for unknown names or parameters
 */
trib_status_t trib_transport_open(const char *text,
                                  const struct trib_transport_opts *opts,
                                  struct trib_transport **out);

/**
 * trib_transport_import - import a region of a peer in which this rank will address
 * `least` bytes.
 *
 * All who compute offsets into a peer's memory by themselves import it by this call,
 * and none by the slot `import`: a peer can say that its region is shorter than it has
 * to be.
 *
 * errors   those of import; TRIB_ERR_RANGE: it is shorter, with a sentence that names
 *          the peer. In each case *out is not changed
 */
trib_status_t trib_transport_import(struct trib_transport *t, int peer,
                                    const struct trib_blob *blob, size_t least,
                                    struct trib_remote **out);

#endif
