/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transport contract: one-sided writes of bytes, modelled on RDMA.
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
#ifndef TRANSPORT_OPS_H
#define TRANSPORT_OPS_H

#include <tributary/status.h>

#include "transport/transport.h"

struct trib_transport_opts; /* transport/open.h */

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
 * devices       Write one line that describes the devices on this host, or "": those
 *               used with these parameters, and the reasons for others. Needs no open
 *               transport.
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
 * connect_many  Connect to peers at once, and set `tried` of those that are connected
 *               or have failed. Blocks about as long as a connect to one of them: if
 *               some do not answer, others are left to connect. The next connect to a
 *               peer that was tried returns its result, unless it is much later. A
 *               backend that connects in microseconds leaves all to connect.
 * disconnect    Disconnect from a peer cleanly: the peer gets PEER_LOST with `left`
 *               set, unless it has disconnected, too.
 * leave         Disconnect all peers whose entry in which[size] is true; NULL: all. All
 *               disconnect notices share one deadline, so several silent peers cost no
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
 * give_back     End a borrow. No outgoing write is in flight. broken: incoming writes
 *               may be, and are discarded from now on. NULL if `borrow` is NULL.
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
 * detach        Copy the sources of signalled writes to this peer that still wait in
 *               this process, and report WRITE_DONE for each. Return false if none can
 *               be copied: disconnect ends the others.
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
 * trouble       Write what devices have counted since the transport was opened, if it
 *               explains slowness: "mlx5_0 port 1: local_ack_timeout +2"; "" if
 *               nothing. Takes milliseconds.
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
    void (*devices)(const char *params, char *text, size_t bytes);
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
    void (*connect_many)(struct trib_transport *t, struct trib_target *dials, int n);
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
    bool (*detach)(struct trib_transport *t, int peer);
    int (*poll)(struct trib_transport *t, struct trib_event *events, int max);
    int (*event_fd)(struct trib_transport *t);
    void (*arm)(struct trib_transport *t);
    void (*wait)(struct trib_transport *t, int timeout_us);
    void (*wake)(struct trib_transport *t, int peer);
    uint64_t (*away)(struct trib_transport *t, bool maybe);
    void (*trouble)(struct trib_transport *t, char *text, size_t bytes);
};

#endif
