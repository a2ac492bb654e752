/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transport contract: one-sided writes, shaped like RDMA, of bytes only.
 *
 * A transport connects this process (peer number `self`) with its peers, numbered
 * 0..size-1. Peers write into each other's registered regions. The last word about a
 * write is an event that carries 32 immediate bits.
 *
 * Every backend guarantees the following, and tests/transport checks it on all of them:
 *   - ARRIVED events of a peer's writes come in the order in which it posted these.
 *     At such an event the bytes of its write, and of all writes posted before it,
 *     quiet ones too, are in memory.
 *   - Only events are in order. Before its event a write may be in memory or not, and
 *     of two writes to one place the older may reach the memory last: over several
 *     rails, or where a backend brings long writes another way. So who writes a place
 *     again first knows that the last write has arrived, by an answer of the peer
 *     (WRITE_DONE says only that the source may change), or sends the value in the
 *     immediate.
 *   - Back-pressure is TRIB_ERR_NO_RESOURCE and not a wait: the caller polls and tries
 *     again. Memory that cannot be registered is another error, as polling does not
 *     help.
 *   - A dead peer becomes one PEER_LOST event: about 100 ms after a clean death, and
 *     stop_timeout_ms after a stop. This holds for every connected peer, even if
 *     nothing is posted to it.
 *   - A peer that is reported lost though its process may go on is told so before the
 *     connection ends, if it can still be told, and gets PEER_LOST with `given_up`.
 *     Nothing that it writes afterwards gets into memory of this rank, but for memory
 *     that it maps.
 *   - A write that was taken (TRIB_OK) gets to a peer that polls, though this rank does
 *     not poll again: it may compute, or wait in another transport. A quiet write does
 *     so with the next one that is not quiet. Some milliseconds may pass.
 *   - A write outside its region is refused with TRIB_ERR_RANGE.
 *   - If the job has a secret, nothing counts that comes from a sender that has not
 *     proved to have it. So the first write to a peer may wait until that peer polls.
 *
 * Threads: one thread at a time uses a transport. As exceptions, wait() may go on while
 * another thread uses the transport, and any thread may call wake().
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

/* Room for every candidate of "auto"; the largest is verbs with four RDMA devices of a
 * rank. Frames carry blobs, so each byte of a blob costs a little per operation. */
#define TRIB_ADDRESS_MAX 1792
#define TRIB_BLOB_MAX 240
#define TRIB_WHY_MAX 160

/* The immediate that is reserved for messages of the transports themselves. */
#define TRIB_IMM_OWN UINT32_C(0xffffffff)

/* The address of a transport. Each rank sends it to its peers unchanged, once. */
struct trib_address {
    uint16_t len;
    uint8_t bytes[TRIB_ADDRESS_MAX];
};

/* An exported region. It is sent to peers unchanged, also inside frames. */
struct trib_blob {
    uint16_t len;
    uint16_t mappable; /* a region that peers within load/store reach can map */
    uint8_t bytes[TRIB_BLOB_MAX];
};

enum trib_event_kind {
    TRIB_EVENT_WRITE_DONE, /* the source of the write with `token` may change */
    TRIB_EVENT_ARRIVED, /* a write of a peer has arrived */
    TRIB_EVENT_PEER_LOST, /* the connection with the peer is over; unfinished writes to
                           * it are dropped, without a WRITE_DONE */
};

struct trib_event {
    enum trib_event_kind kind;
    int peer;
    uint32_t imm; /* ARRIVED */
    bool left; /* PEER_LOST: the peer has left by disconnect or close */
    bool given_up; /* PEER_LOST: the peer has said that it counts this rank as lost */
    bool dead; /* PEER_LOST: this host's kernel says that the process has ended */
    bool lives; /* PEER_LOST: the process ran after its connection had ended */
    bool continues; /* PEER_LOST: the peer has continued the job without this rank */
    uint64_t len; /* ARRIVED: bytes written */
    uint64_t token; /* WRITE_DONE */
    char why[TRIB_WHY_MAX]; /* PEER_LOST: a clause, such as "process 4711 is stopped" */
};

struct trib_transport_opts {
    int self;
    int size;
    const char *params; /* text after "name:", "" for none */
    const struct trib_candidate *candidates; /* for a backend that chooses among others;
                                              * set by trib_transport_open */
    const struct trib_config *cfg; /* outlives the transport */
    const struct trib_log *log; /* may be NULL */
    struct trib_error *err; /* receives sentences; may be NULL */
    struct trib_heartbeat *heartbeat; /* heartbeats to share; NULL: a backend that
                                       * needs them has its own */
    const struct trib_net_met *met; /* where the ranks met; NULL: not known. Read in
                                     * open */
    struct trib_guard *guard; /* against peers of another user
                               * (transport/common/guard.h), which it outlives; NULL:
                               * all peers are of this user's own job */
    const struct trib_secret *secret; /* by which peers know each other, armed; NULL or
                                       * not set: anybody who knows the address is
                                       * believed. Outlives the transport */
    bool *unfit_out; /* set to true by an open that fails because this host's device
                      * cannot do what the backend needs; NULL: nobody asks */
    struct trib_idle *idle; /* called while connect waits; NULL: nothing is. When the
                             * caller gives up, connect fails at once. Outlives the
                             * transport */
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
    size_t len; /* 0 is allowed: only the event; local and remote may then be
                 * NULL */
    uint32_t imm; /* any but TRIB_IMM_OWN */
    bool quiet; /* no ARRIVED event at the target; may go out with the next write to
                 * it, or at the next poll */
    bool signal; /* wants a WRITE_DONE event with `token` */
    uint64_t token;
};

/* Capabilities that a rank tells all others after it has seen their addresses. */
enum {
    TRIB_CAP_MAPS = 1, /* this rank expects load/store reach to all peers */
    TRIB_CAP_READS = 2, /* this rank reads memory of all peers of its host by `read` */
    TRIB_CAP_BACKEND = 8, /* first of the bits that only the same backend reads */
};

/* A part of a dma-buf, and its mapping in this process. */
struct trib_dmabuf {
    int fd;
    size_t offset; /* in the dma-buf */
    void *ptr;
    size_t len;
};

/* The limit of memory that can still be registered. */
struct trib_pinned_limit {
    size_t bytes; /* SIZE_MAX: no limit but the host's memory */
    char why[TRIB_WHY_MAX]; /* limited: a clause, such as "process 4711 may lock 64K" */
    const char *cure; /* limited: what to do, a literal */
};

/* The backend by which a peer is reached. */
struct trib_route {
    const char *name; /* of a backend, or "none" */
    char why[TRIB_WHY_MAX]; /* a clause, such as "same host" */
    bool apart; /* it passes for a rank of another host, though it may be of this one */
};

/* What tests have to know of a transport that is opened by a text. */
enum {
    TRIB_TEXT_THREADS = 1, /* ranks are threads, else processes */
    TRIB_TEXT_MAPS = 2, /* map() of alloc memory gives a pointer */
    TRIB_TEXT_CMA = 4, /* other memory is reached as the kernel lets processes do it */
    TRIB_TEXT_REMOTE = 8, /* peers are watched by heartbeats, as those of other hosts */
    TRIB_TEXT_SEALED = 16, /* TRIB_SEAL=1 */
};

struct trib_transport_text {
    const char *text; /* such as "shm:ring=8+trace"; NULL ends the list */
    unsigned flags; /* TRIB_TEXT_* */
};

/*
 * A backend fills every slot; the trib_no_* below serve operations that it does not
 * have.
 *
 * devices       writes one line for people about the devices on this host now, or "".
 *               Needs no open transport.
 * open          makes a transport; nothing is connected yet. The backend reads its
 *               parameters before it makes anything (trib_params_parse), and returns
 *               that status if it is not TRIB_OK.
 * address       writes the address that a peer needs to connect to this rank.
 * reach         tells whether the address can be connected to, as far as this host
 *               knows. Connects and sends nothing, takes microseconds; the sentence of
 *               the error says why not.
 * pinned_limit  writes the memory that can still be registered, less what this process
 *               holds already. near: all peers are on this host. Comes before connect.
 * caps          gets the addresses of all peers [size], and writes the capabilities of
 *               this rank, which the caller sends to all peers.
 * agree         gets the capabilities of all peers [size]. After caps and agree, before
 *               the first connect, both ends of each pair make the same choices. A
 *               caller whose ranks choose alike anyway may leave both out.
 * route         writes the backend that reaches a peer, or would, and the reason.
 * connect       makes `peer` reachable. Idempotent, and cheap if done before.
 * disconnect    leaves a peer cleanly: the peer gets PEER_LOST with `left` set, unless
 *               it has left, too.
 * leave         disconnects all peers whose entry in which[size] is true; NULL: all.
 *               Those in `which` that were lost may still run: a backend that can
 *               tells them that the job continues without them.
 *               The farewells share one deadline, so that silent peers together cost no
 *               more time than one of them.
 * alloc         allocates zeroed, 4096-aligned memory that peers reach best, and
 *               registers it.
 * alloc_user    does the same for the user's data, which may be copied on its way to
 *               peers that cannot reach it: no peer changes its route for such memory.
 * reg           registers memory of the caller.
 * reg_dmabuf    registers memory that a device has exported as a dma-buf and that is
 *               mapped at ptr; fd may be closed afterwards. A backend that needs only
 *               the mapping uses reg.
 * borrow        registers memory of the caller for one operation; peers may write there
 *               if `written`. NULL: registering costs more than a copy.
 * give_back     ends that. broken: the operation has failed, and writes may be under
 *               way. Those into the memory go nowhere from now on, those out of it
 *               write what it has now. NULL as `borrow`.
 * release_pages gives the pages of alloc'ed memory back to the kernel, although peers
 *               still map them. Nobody reads the memory afterwards, and dereg follows.
 *               Without this call dereg frees the pages once the last peer has released
 *               them.
 * export        writes the blob of a region, which is valid as long as the region.
 * import        makes a peer's exported region a target; connect(peer) comes before.
 *               Only the peer vouches for the length: see trib_transport_import.
 * length        returns the bytes of a remote region, as its peer has told. A write
 *               beyond them is refused. A mapped region was found to have them.
 * stale         true if the peer has freed this memory. May be false though it has.
 * map           returns a pointer to the first byte of a remote region for loads and
 *               stores, or NULL; len_out, if not NULL, receives the length, which was
 *               found to be there.
 * reads         true if `read` reaches any memory of the peer, registered or not, and
 *               the peer's `read` that of this rank. Before agree, or without it: if
 *               this rank's does.
 * read          copies bytes out of a peer's memory, of which the peer has told the
 *               address and the length, to memory of the caller; returns when they are
 *               there. For peers of which `reads` is true. TRIB_ERR_RANGE: the peer has
 *               no such memory.
 * write         posts a write and returns at once.
 * poll          harvests up to max events and never blocks. Also checks liveness.
 * event_fd      returns a descriptor that, once armed, is readable when a wait would
 *               end, so that one sleep can wait for several transports; -1: none.
 *               wait(0) then ends what arm began. Called once, before the first arm.
 * arm, wait     sleep: the caller calls arm(), looks once more for work, then calls
 *               wait(timeout). wait returns at an arrival, a wake() or after
 *               timeout_us; spurious returns are allowed. A wake that comes while
 *               arming may be missed, so timeout_us should be at most 1000.
 * away          nanoseconds for which this process was itself stopped or suspended
 *               lately, if that was so long that peers may have given it up; else 0.
 *               maybe: also a time so short that a busy host may have caused it.
 * wake          ends `peer`'s wait (after a store through map()); cheap if the peer
 *               does not sleep. peer == self ends this rank's own wait, from another
 *               thread.
 */
struct trib_transport_ops {
    const char *name;
    const char *detail; /* one line for trib-info */
    bool composite; /* made of other backends */
    bool one_process; /* its peers are threads of this process */
    bool one_host; /* its peers are of this host */
    bool nets; /* takes net=: by which networks peers reach it */
    bool bare; /* what it sends to other hosts cannot be sealed (TRIB_SEAL) */
    /* by which the conformance suite tries it; NULL: it needs a device, and the suite a
     * test of its own */
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

/* Operations for the slots that a backend has no use for. */
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
 * trib_transports - the backends in order of preference, NULL at the end.
 *
 * No other file knows which backends are built in.
 */
extern const struct trib_transport_ops *const trib_transports[];

/** trib_transport_find - a backend by name; NULL: there is none in this build. */
const struct trib_transport_ops *trib_transport_find(const char *name);

/** trib_transport_links - true if a backend connects processes by itself. */
static inline bool trib_transport_links(const struct trib_transport_ops *ops)
{
    return !ops->composite && !ops->one_process;
}

/* The rows of a backend whose peers are reached by writes only: none maps or reads
 * memory of a peer, and no region becomes stale. */
#define TRIB_OPS_WITHOUT_MAPS \
    .caps = trib_no_caps, .agree = trib_no_agree, \
    .release_pages = trib_no_release_pages, .stale = trib_no_stale, \
    .map = trib_no_map, .reads = trib_no_reads, .read = trib_no_read

/* Declares the functions of a backend, prefix_address and so on, for the slots of peers
 * and of memory that have these names. */
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

/* A backend that is not in this build. */
struct trib_absent {
    const char *name;
    const char *cure; /* a clause, such as "install libucx-dev and build it again" */
};

/** trib_absents - the backends that are not in this build, a NULL name at the end. */
extern const struct trib_absent trib_absents[];

/** trib_transport_absent - the cure of a backend that this build is without; else
 * NULL. */
const char *trib_transport_absent(const char *name);

/**
 * trib_transport_check - check all names and parameters of a text for
 * trib_transport_open. Nothing is opened.
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
