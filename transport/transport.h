/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transport contract: one-sided writes of bytes, modelled on RDMA.
 *
 * A transport connects this process (peer number `self`) with its peers, numbered
 * 0..size-1. Peers write into each other's registered regions. A write completes with
 * an event at the target that carries 32 bits of immediate data.
 *
 * Every backend guarantees the following; tests/transport checks each point on every
 * backend:
 *   - ARRIVED events of one peer come in the order of its posts. When an event is
 *     delivered, the bytes of its write and of all writes posted before it, quiet ones
 *     included, are in memory.
 *   - Only events are ordered. Before its event, a write may or may not be in memory.
 *     Of two writes to one address, the older may reach memory last: over several
 *     rails, or if a backend sends long writes by another path. So before a sender
 *     writes to an address again, it must know from an answer of the peer that the last
 *     write arrived (WRITE_DONE only says that the source may change). Or it sends the
 *     value in the immediate.
 *   - Back-pressure is TRIB_ERR_NO_RESOURCE, never blocking: the caller polls and
 *     retries. Failure to register memory is another error, since polling does not
 *     help.
 *   - A dead peer yields one PEER_LOST event: about 100 ms after a clean death, and
 *     stop_timeout_ms after a stop. This holds for every connected peer, even if no
 *     write to it is pending.
 *   - A peer reported lost while its process may still run is notified before the
 *     connection ends, if it can be reached. It gets PEER_LOST with `given_up`. None of
 *     its later writes reach memory of this rank, except memory that it maps.
 *   - A write accepted with TRIB_OK reaches a peer that polls even if this rank never
 *     polls again, because it computes or waits in another transport. A quiet write
 *     goes with the next write that is not quiet. Some milliseconds may pass.
 *   - A write outside its region is refused with TRIB_ERR_RANGE.
 *   - If the job has a secret, input from an unauthenticated sender is ignored. So the
 *     first write to a peer may wait until that peer polls.
 *
 * Threads: a transport is used by one thread at a time, with two exceptions. wait() may
 * run while another thread uses the transport, and any thread may call wake().
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
struct trib_idle;
struct trib_secret;

/* Room for every candidate of "auto"; the largest is verbs with four RDMA devices per
 * rank. Frames carry blobs, so each byte of a blob adds a little to every operation. */
#define TRIB_ADDRESS_MAX 1792
#define TRIB_BLOB_MAX 240
#define TRIB_WHY_MAX 160

/* The immediate reserved for the transports' own messages. */
#define TRIB_IMM_OWN UINT32_C(0xffffffff)

/* The address of a transport. Each rank sends it to its peers once, unmodified. */
struct trib_address {
    uint16_t len;
    uint8_t bytes[TRIB_ADDRESS_MAX];
};

/* An exported region. It is sent to peers unmodified, also inside frames. */
struct trib_blob {
    uint16_t len;
    uint16_t mappable; /* peers with load/store access can map this region */
    uint8_t bytes[TRIB_BLOB_MAX];
};

enum trib_event_kind {
    TRIB_EVENT_WRITE_DONE, /* the source of the write with `token` may be changed */
    TRIB_EVENT_ARRIVED, /* a write from a peer has arrived */
    /* the connection is closed; unfinished writes to the peer are dropped without
     * WRITE_DONE */
    TRIB_EVENT_PEER_LOST,
};

struct trib_event {
    enum trib_event_kind kind;
    int peer;
    uint32_t imm; /* ARRIVED */
    bool left; /* PEER_LOST: the peer disconnected or closed its transport */
    bool given_up; /* PEER_LOST: the peer said that it has declared this rank lost */
    bool dead; /* PEER_LOST: this host's kernel reports that the process has ended */
    bool lives; /* PEER_LOST: the process still ran after its connection ended */
    bool continues; /* PEER_LOST: the peer has continued the job without this rank */
    uint64_t len; /* ARRIVED: bytes written */
    uint64_t token; /* WRITE_DONE */
    /* PEER_LOST: reason as a clause, such as "process 4711 is stopped" */
    char why[TRIB_WHY_MAX];
};

struct trib_transport_opts {
    int self;
    int size;
    const char *params; /* text after "name:"; "" for none */
    /* for backends that choose among others; set by trib_transport_open */
    const struct trib_candidate *candidates;
    const struct trib_config *cfg; /* outlives the transport */
    const struct trib_log *log; /* may be NULL */
    struct trib_error *err; /* receives error messages; may be NULL */
    /* shared heartbeats; NULL: a backend that needs heartbeats starts its own */
    struct trib_heartbeat *heartbeat;
    /* network over which the ranks bootstrapped; NULL: unknown. Read only by open */
    const struct trib_net_met *met;
    /* protects against peers that run as another user (transport/common/guard.h) and
     * outlives the transport; NULL: all peers belong to this user's own job */
    struct trib_guard *guard;
    /* secret with which peers authenticate each other, armed; NULL or not set: any
     * process that knows the address is trusted. Outlives the transport */
    const struct trib_secret *secret;
    /* set to true if open fails because this host's device lacks a feature that the
     * backend needs; may be NULL */
    bool *unfit_out;
    /* called while connect waits; may be NULL. If the caller cancels, connect fails at
     * once. Outlives the transport */
    struct trib_idle *idle;
};

/* Opaque; struct trib_transport is the first member of each backend's struct. */
struct trib_transport {
    const struct trib_transport_ops *ops;
    struct trib_error *err; /* the one passed to open; may be NULL */
};
struct trib_region; /* local registered memory */
struct trib_remote; /* an imported region of a peer */

struct trib_write {
    const struct trib_region *local;
    size_t local_off;
    const struct trib_remote *remote;
    size_t remote_off;
    size_t len; /* 0 sends the event alone; local and remote may then be NULL */
    uint32_t imm; /* any value but TRIB_IMM_OWN */
    /* no ARRIVED event at the target; may be sent with the next write to it, or by the
     * next poll */
    bool quiet;
    bool signal; /* requests a WRITE_DONE event with `token` */
    uint64_t token;
};

/* Capabilities that a rank sends to all others after it has read their addresses. */
enum {
    TRIB_CAP_MAPS = 1, /* this rank expects load/store access to all peers */
    TRIB_CAP_READS = 2, /* this rank can `read` the memory of all peers on its host */
    TRIB_CAP_BACKEND = 8, /* first bit reserved for the backend itself */
};

/* A range of a dma-buf and its mapping in this process. */
struct trib_dmabuf {
    int fd;
    size_t offset; /* within the dma-buf */
    void *ptr;
    size_t len;
};

/* How much more memory can be registered. */
struct trib_pinned_limit {
    size_t bytes; /* SIZE_MAX: limited only by the host's memory */
    /* reason for the limit, a clause such as "process 4711 may lock 64K" */
    char why[TRIB_WHY_MAX];
    const char *cure; /* how to raise the limit, a string literal */
};

/* The backend used to reach a peer. */
struct trib_route {
    const char *name; /* name of a backend, or "none" */
    char why[TRIB_WHY_MAX]; /* reason, a clause such as "same host" */
    /* the peer is treated as on another host, though it may be on this one */
    bool apart;
};

/* Properties that tests need to know of a transport opened from a text. */
enum {
    TRIB_TEXT_THREADS = 1, /* ranks are threads instead of processes */
    TRIB_TEXT_MAPS = 2, /* map() of memory from alloc returns a pointer */
    TRIB_TEXT_CMA = 4, /* other memory is reached by the kernel's cross memory attach */
    /* peers are watched by heartbeats, like peers on other hosts */
    TRIB_TEXT_REMOTE = 8,
    TRIB_TEXT_SEALED = 16, /* TRIB_SEAL=1 */
};

struct trib_transport_text {
    const char *text; /* such as "shm:ring=8+trace"; NULL ends the list */
    unsigned flags; /* TRIB_TEXT_* */
};

/*
 * A backend fills every slot. The trib_no_* functions below fill slots of operations
 * that the backend does not support.
 *
 * devices       Write one line that describes the devices on this host, or "". Needs no
 *               open transport.
 * open          Create a transport; nothing is connected yet. The backend parses its
 *               parameters before it creates anything (trib_params_parse). If that
 *               status is not TRIB_OK, open returns it.
 * address       Write the address that a peer needs to connect to this rank.
 * reach         Check if the address can be connected to, as far as this host knows.
 *               Sends nothing and takes microseconds; the error message gives the
 *               reason.
 * pinned_limit  Write how much more memory can be registered, less the amount that this
 *               process already holds. near: all peers are on this host. Called before
 *               connect.
 * caps          Read the addresses of all peers [size] and write the capabilities of
 *               this rank, which the caller sends to all peers.
 * agree         Read the capabilities of all peers [size]. After caps and agree, before
 *               the first connect, both ends of each pair make the same choices. If all
 *               ranks choose alike anyway, the caller may skip both.
 * route         Write the backend that reaches, or would reach, a peer, and the reason.
 * connect       Make `peer` reachable. Idempotent, and cheap if already connected.
 * disconnect    Disconnect from a peer cleanly: the peer gets PEER_LOST with `left`
 *               set, unless it has disconnected, too.
 * leave         Disconnect all peers whose entry in which[size] is true; NULL: all. All
 *               goodbye notices share one deadline, so several silent peers cost no
 *               more time than one. Lost peers in `which` may still run: a backend that
 *               can notifies them that the job continues without them.
 * alloc         Allocate and register zeroed, 4096-aligned memory that peers can access
 *               best.
 * alloc_user    Same for user data. The data may be copied on its way to peers that
 *               cannot access it; no peer changes its route for such memory.
 * reg           Register memory of the caller.
 * reg_dmabuf    Register memory that a device exported as a dma-buf and that is mapped
 *               at ptr; fd may be closed afterwards. A backend that needs only the
 *               mapping uses reg.
 * borrow        Register memory of the caller for one operation; peers may write to it
 *               if `written`. NULL: registering costs more than a copy.
 * give_back     End a borrow. broken: the operation has failed and writes may be in
 *               flight. Incoming writes to the memory are discarded from now on;
 *               outgoing writes send its present content. NULL if `borrow` is NULL.
 * release_pages Return the pages of memory from alloc to the kernel, although peers
 *               still map them. No rank reads the memory afterwards, and dereg follows.
 *               Without this call, dereg frees the pages once the last peer has
 *               released them.
 * export        Write the blob of a region; it is valid as long as the region.
 * import        Make a peer's exported region a target; requires connect(peer). The
 *               peer alone vouches for the length: see trib_transport_import.
 * length        Return the size of a remote region as stated by its peer. A write
 *               beyond this size is refused. For a mapped region the size has been
 *               verified.
 * stale         Return true if the peer has freed this memory. May return false
 *               although it has.
 * map           Return a pointer to the first byte of a remote region for loads and
 *               stores, or NULL. len_out may be NULL and receives the verified length.
 * reads         Return true if `read` works on any memory of the peer, registered or
 *               not, and the peer's `read` on memory of this rank. Before agree, or
 *               without it: if this rank's does.
 * read          Copy bytes from a peer's memory, whose address and length the peer has
 *               sent, to memory of the caller; block until they are copied. Only for
 *               peers for which `reads` is true. TRIB_ERR_RANGE: the peer has no such
 *               memory.
 * write         Post a write and return at once.
 * poll          Harvest up to max events without blocking. Also checks liveness.
 * event_fd      Return a descriptor that, once armed, becomes readable when a wait
 *               would end, so that one sleep can cover several transports; -1: none.
 *               wait(0) then undoes arm. Called once, before the first arm.
 * arm, wait     Sleep: the caller calls arm(), checks once more for work, then calls
 *               wait(timeout). wait returns at an arrival, at a wake() or after
 *               timeout_us; it may return spuriously. A wake during arm may be missed,
 *               so keep timeout_us at or below 1000.
 * away          Return for how many nanoseconds this process was itself recently
 *               stopped or suspended, if that was long enough for peers to declare it
 *               lost; else 0. maybe: also report gaps so short that a busy host may
 *               have caused them.
 * wake          End `peer`'s wait (after a store through map()); cheap if the peer does
 *               not sleep. peer == self ends this rank's own wait, from another thread.
 */
struct trib_transport_ops {
    const char *name;
    const char *detail; /* one line for trib-info */
    bool composite; /* combines other backends */
    bool one_process; /* its peers are threads of this process */
    bool one_host; /* its peers are on this host */
    bool nets; /* accepts net=: the networks over which peers reach it */
    bool bare; /* its traffic to other hosts cannot be encrypted (TRIB_SEAL) */
    /* texts for the conformance suite; NULL: the backend needs a device and has its own
     * test */
    const struct trib_transport_text *texts;
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
    trib_status_t (*borrow)(struct trib_transport *t, void *ptr, size_t len,
                            bool written, struct trib_region **out);
    void (*give_back)(struct trib_transport *t, struct trib_region *region,
                      bool broken);
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
    bool (*reads)(struct trib_transport *t, int peer);
    trib_status_t (*read)(struct trib_transport *t, int peer, uint64_t from, void *to,
                          size_t len);
    trib_status_t (*write)(struct trib_transport *t, int peer,
                           const struct trib_write *write);
    int (*poll)(struct trib_transport *t, struct trib_event *events, int max);
    int (*event_fd)(struct trib_transport *t);
    void (*arm)(struct trib_transport *t);
    void (*wait)(struct trib_transport *t, int timeout_us);
    void (*wake)(struct trib_transport *t, int peer);
    uint64_t (*away)(struct trib_transport *t, bool maybe);
};

/* Operations for slots that a backend does not support. */
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
bool trib_no_reads(struct trib_transport *t, int peer);
trib_status_t trib_no_read(struct trib_transport *t, int peer, uint64_t from, void *to,
                           size_t len);
int trib_no_event_fd(struct trib_transport *t);
uint64_t trib_no_away(struct trib_transport *t, bool maybe);
void trib_no_arm(struct trib_transport *t);

/**
 * trib_transports - the backends in order of preference, terminated by NULL.
 *
 * No other file knows which backends are built in.
 */
extern const struct trib_transport_ops *const trib_transports[];

/** trib_transport_find - return a backend by name; NULL if this build has none. */
const struct trib_transport_ops *trib_transport_find(const char *name);

/** trib_transport_links - return true if a backend connects processes by itself. */
static inline bool trib_transport_links(const struct trib_transport_ops *ops)
{
    return !ops->composite && !ops->one_process;
}

/* Slots of a backend that reaches peers by writes only: it neither maps nor reads peer
 * memory, and no region becomes stale. */
#define TRIB_OPS_WITHOUT_MAPS \
    .caps = trib_no_caps, .agree = trib_no_agree, \
    .release_pages = trib_no_release_pages, .stale = trib_no_stale, \
    .map = trib_no_map, .reads = trib_no_reads, .read = trib_no_read

/* Declare a backend's functions, prefix_address and so on, for the peer and memory
 * slots of these names. */
#define TRIB_TRANSPORT_PEERS(prefix) \
    trib_status_t prefix##_address(struct trib_transport *t, \
                                   struct trib_address *out); \
    trib_status_t prefix##_reach(struct trib_transport *t, int peer, \
                                 const struct trib_address *address); \
    trib_status_t prefix##_connect(struct trib_transport *t, int peer, \
                                   const struct trib_address *address)
#define TRIB_TRANSPORT_MEMORY(prefix) \
    trib_status_t prefix##_alloc(struct trib_transport *t, size_t len, void **ptr_out, \
                                 struct trib_region **region_out); \
    trib_status_t prefix##_reg(struct trib_transport *t, void *ptr, size_t len, \
                               struct trib_region **out); \
    void prefix##_dereg(struct trib_transport *t, struct trib_region *region); \
    trib_status_t prefix##_export(struct trib_transport *t, \
                                  const struct trib_region *region, \
                                  struct trib_blob *out); \
    trib_status_t prefix##_import(struct trib_transport *t, int peer, \
                                  const struct trib_blob *blob, \
                                  struct trib_remote **out)

/* A backend missing from this build. */
struct trib_absent {
    const char *name;
    /* how to get it, a clause such as "install libucx-dev and build it again" */
    const char *cure;
};

/** trib_absents - the backends missing from this build, terminated by a NULL name. */
extern const struct trib_absent trib_absents[];

/** trib_transport_absent - return the cure for a backend missing from this build; else
 * NULL. */
const char *trib_transport_absent(const char *name);

/**
 * trib_transport_check - validate all names and parameters of a text for
 * trib_transport_open, without opening anything.
 *
 * errors   as trib_transport_open for unknown names and parameters
 */
trib_status_t trib_transport_check(const char *text, struct trib_error *err);

/**
 * trib_transport_open - open a backend, wrapped by decorators, as described by a text.
 *
 * text     "shm", "loop", "shm+trace",
 *          "loop:depth=8+delay:us=50+kill:after=3,signal=9"; "auto" chooses a backend
 *          per peer
 * errors   TRIB_ERR_CONFIG for unknown names or parameters, with a message in opts->err
 */
trib_status_t trib_transport_open(const char *text,
                                  const struct trib_transport_opts *opts,
                                  struct trib_transport **out);

/**
 * trib_transport_import - import a region of a peer in which this rank will address
 * `least` bytes.
 *
 * Code that computes offsets into a peer's memory itself must use this function instead
 * of the `import` slot: a peer may claim a region shorter than required.
 *
 * errors   as import; TRIB_ERR_RANGE: the region is too short, the message names the
 *          peer. On any error *out is unchanged
 */
trib_status_t trib_transport_import(struct trib_transport *t, int peer,
                                    const struct trib_blob *blob, size_t least,
                                    struct trib_remote **out);

#endif
