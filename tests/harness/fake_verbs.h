/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs and librdmacm in memory: queue pairs between the transports of one
 * process, a connection manager, and errors on demand. It replaces trib_verbs_load,
 * so a test linked with it has the transport "verbs" on any machine.
 *
 * Errors that would hang a device or overwrite memory are counted as
 * mistakes: a queue overflow, a skipped state, an event that is not
 * acknowledged. The fake covers cases that no healthy device shows; it does not replace
 * a device (tests/rxe).
 */
#ifndef TESTS_HARNESS_FAKE_VERBS_H
#define TESTS_HARNESS_FAKE_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* The fake machine. Set it between fake_verbs_reset and the first use. */
struct fake_verbs_opts {
    int hosts;
    bool no_library;
    bool no_connection_manager;
    int devices; /* fake0, fake1, … port P of N with one IPv4 address:
                          * 127.9.N.P, which real UDP reaches, too */
    int ports; /* per device */
    bool port_down;
    int gid_loss; /* effect of a removed GID on its queue pairs: 0: none,
                          * 1: packets are lost, 2: requests fail at once with
                          * IBV_WC_LOC_QP_OP_ERR, as on soft-RoCE */
    bool down_fails; /* requests over a port that is down fail after all retries;
                          * else they wait until it is up */
    bool address_less; /* addresses belong to no device */
    bool address_errors; /* no address of a peer can be resolved */
    bool other_device; /* routes to peers use the last device */
    bool other_port; /* … over its last port */
    bool deaf; /* requests for connections are not answered */
    _Atomic bool late_ends; /* pending requests succeed when a queue pair is
                             * stopped */
    bool half_way; /* an accepted connection cannot be established */
    int reject; /* reason for rejecting connections; 0: accept them */
    int open_errno; /* of ibv_open_device; 0: succeed */
    int reg_errno; /* of ibv_reg_mr; 0: succeed */
    bool real_pages; /* writes of more than 256 bytes go to the pages that a region had
                      * when it was registered (fake_pages.h), in one process */
    int regs; /* counts registrations */
    _Atomic int relaxed_regs; /* counts those that ask for relaxed ordering */
    bool no_iova2; /* the library has no ibv_reg_mr_iova2, as before rdma-core 28 */
    bool no_iova; /* the library has no ibv_reg_mr_iova */
    int dmabuf_errno; /* of ibv_reg_dmabuf_mr; 0: succeed; -1: an old library */
    int cq_errno; /* of ibv_create_cq */
    int qp_errno; /* of ibv_create_qp */
    bool memlock; /* registered memory counts against this process's limit of
                          * locked memory */
    uint32_t inline_max;
    uint32_t message_max;
    int mtu; /* of a context's ports, set when the context is opened;
                          * longer packets are dropped there. An enum ibv_mtu */
    int max_cqe;
    int comp_vectors; /* of a context */
    int max_srq_wr;
    int max_qp_wr;
    int max_qp; /* per device and host; 0: no limit */
    int max_contexts; /* open at a time, per device and host; 0: no limit */
    uint64_t
        max_pinned; /* bytes of registered pages per device and host; 0: no limit */
    int srq_errno; /* of ibv_create_srq; 0: succeed */
    bool iwarp; /* posting a write with immediate fails */
    bool no_remote_write; /* no queue pair permits remote writes */
    int fork_calls; /* counts ibv_fork_init */
    int fork_errno; /* of ibv_fork_init */
    bool fork_unneeded; /* the kernel copies pinned pages */
    bool no_fork_query; /* a library without ibv_is_fork_initialized */
    bool no_gid_query; /* a library without ibv_query_gid_table */
    bool no_rdmacm; /* no librdmacm.so.1 */
    bool infiniband; /* the ports' link layer; else Ethernet */
    _Atomic int late_us; /* delay of messages to rank late_peer over the first device,
                          * in us; 0: none */
    int late_peer;
    uint64_t rate; /* bytes per second of each port; 0: no limit */
    uint64_t delay_us; /* from port to port */
    uint64_t retry_us; /* until a request to a destroyed queue pair fails */
    uint32_t loss_ppm; /* of a million packets that a port sends, these are lost: the
                          * request is late by a queue pair's ack timeout each time, or
                          * fails */
    uint32_t reorder_us; /* each request is late by up to this much. Those of one queue
                          * pair keep their order */
    bool virtual_time; /* the fabric's clock stands still while a rank is active, see
                          * fake_clock.c; delays then cost no time */
    uint32_t stall_ms; /* 0: 20 */
    uint64_t seed; /* of both, for each port */
    uint64_t ecn_bytes; /* a request that finds more before a port is marked; 0:
                          * none */
    int lid; /* of the first device; the others follow in sequence; 0:
                          * none. Each further port adds FAKE_PORT_LIDS */
};

#define FAKE_GIDS 16
#define FAKE_PORT_LIDS 100
#define FAKE_PKEYS 8

/* Counters of a port, named as the files in its folders counters and hw_counters. */
enum fake_counter {
    FAKE_XMIT_DATA, /* words of 4 bytes */
    FAKE_RCV_DATA,
    FAKE_XMIT_PACKETS,
    FAKE_RCV_PACKETS,
    FAKE_LINK_DOWNED,
    FAKE_HW_FIRST, /* from here on in hw_counters */
    FAKE_OUT_OF_SEQUENCE = FAKE_HW_FIRST, /* at the receiver of a lost packet */
    FAKE_PACKET_SEQ_ERR, /* … at its sender */
    FAKE_LOCAL_ACK_TIMEOUT_ERR,
    FAKE_OUT_OF_BUFFER, /* no receive, at the receiver */
    FAKE_RNR_NAK_RETRY_ERR, /* … at the sender */
    FAKE_REQ_TRANSPORT_RETRIES_EXCEEDED,
    FAKE_REQ_RNR_RETRIES_EXCEEDED,
    FAKE_RX_WRITE_REQUESTS,
    FAKE_NP_ECN_MARKED_ROCE_PACKETS, /* congested, at the receiver */
    FAKE_NP_CNP_SENT,
    FAKE_RP_CNP_HANDLED, /* … at the sender */
    FAKE_COUNTERS,
};

/* Options of one device of one host. */
struct fake_device_opts {
    char name[32]; /* first "fake0", "fake1", … */
    char pci[16]; /* its address, first 0000:10:00.0, 0000:11:00.0, … */
    int numa_node; /* -1: unknown */
    char cpus[32]; /* near it, such as "0-3"; "": all */
    bool iwarp, no_srq; /* or the machine's iwarp, srq_errno */
};

/* Options of one port of one host. */
struct fake_port_opts {
    uint8_t active_speed, active_width; /* reported, as in struct ibv_port_attr; first
                                         * 100 Gbit/s */
    uint64_t rate, delay_us; /* 0: the machine's */
    int mtu; /* 0: the machine's */
    uint16_t pkeys[FAKE_PKEYS]; /* partition table, first 0xffff alone. Two queue
                                 * pairs of one partition can exchange requests if at
                                 * least one is a full member (bit 15) */
    uint8_t roce_tos; /* default traffic class of the connection manager */
    uint32_t loss_ppm, reorder_us; /* 0: the machine's */
    uint64_t ack_timeouts; /* counter that the port reports */
};

/* A queue pair, even a destroyed one, as ibv_modify_qp set it. */
struct fake_qp {
    uint32_t number, remote; /* remote 0: it was never connected */
    int process, host, device, port; /* port 0: none yet */
    bool live, has_srq;
    enum ibv_qp_state state;
    uint16_t pkey, dlid;
    uint8_t sl, traffic_class, hop_limit, sgid_index;
    uint32_t flow_label;
    enum ibv_mtu mtu, port_mtu; /* of the path; of the port */
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
    uint32_t max_send_wr, max_recv_wr;
};

/** fake_verbs_reset - reset the fake to a machine with one device. */
struct fake_verbs_opts *fake_verbs_reset(void);

/** fake_verbs_machine - set the hub's options to those of one host with one device. */
struct fake_verbs_opts *fake_verbs_machine(void);

/** fake_verbs_begin - empty this process's tables. */
void fake_verbs_begin(void);

/** fake_hub_create - create a fabric in a file, for processes that load the fake as
 * libibverbs.so.1; set its options with fake_verbs_machine. */
bool fake_hub_create(const char *path);

/** fake_hub_open - map a fabric, to read and change it. */
bool fake_hub_open(const char *path);

/** fake_hub_attach - let this process use a fabric, as one of a host. */
bool fake_hub_attach(const char *path, int host);

/** fake_verbs_host - give the calling thread the devices of another host. Objects that
 * it opens keep their host. */
void fake_verbs_host(int host);

/** fake_verbs_device_opts - return the options of a device; change them before a
 * context is opened. */
struct fake_device_opts *fake_verbs_device_opts(int host, int device);

/** fake_verbs_port_opts - return the options of a port, from 1. */
struct fake_port_opts *fake_verbs_port_opts(int host, int device, int port);

/** fake_verbs_time - return the fabric's time in ns. */
uint64_t fake_verbs_time(void);

/** fake_verbs_counter - return the value of a counter of a port. */
uint64_t fake_verbs_counter(int host, int device, int port, enum fake_counter counter);

/** fake_verbs_counter_name - return the name of a counter's file. */
const char *fake_verbs_counter_name(enum fake_counter counter);

/** fake_verbs_qp - copy the nth queue pair that was ever made; false: no such one. */
bool fake_verbs_qp(int n, struct fake_qp *out);

/** fake_verbs_sysfs - write what Linux shows of a host's devices below `root`:
 * /sys/class/infiniband, their PCI devices, /sys/kernel/config/rdma_cm and
 * /dev/infiniband. */
bool fake_verbs_sysfs(const char *root, int host);

/** fake_verbs_fail - complete the next posted request with this status. */
void fake_verbs_fail(enum ibv_wc_status status);

/** fake_verbs_hold - delay all posted requests until the hold is lifted. */
void fake_verbs_hold(bool hold);

/**
 * fake_verbs_port - set a port down or up: a port that is down carries nothing, and
 * every context of its device gets an event.
 *
 * Pending requests do not end by themselves, as on a device with long retries.
 */
void fake_verbs_port(int device, int port, bool up);

/** fake_verbs_async - raise an event of the device, or of its port 1, on the nth open
 * context. */
void fake_verbs_async(int context, enum ibv_event_type type);

/** fake_verbs_async_of - raise an event of this completion queue, or of a queue pair or
 * the shared receive queue that uses it. */
void fake_verbs_async_of(const struct ibv_cq *cq, enum ibv_event_type type);

/** fake_verbs_async_waits - return whether that context has an unread event. */
bool fake_verbs_async_waits(int context);

/**
 * fake_verbs_gid - set the nth entry in the GID table of a device's first port.
 *
 * Port P of a new device N has fe80::P:N+1 and 10.9.N.P, each for RoCE v1, then
 * for v2.
 * address  IPv4 or IPv6; NULL: empty entry
 */
void fake_verbs_gid(int device, int n, const char *address, enum ibv_gid_type type);

/** fake_verbs_cut - end all connections, as if both processes had died. */
void fake_verbs_cut(void);

/** fake_verbs_unplug - remove the connection manager's routes to all peers; they may
 * return. */
void fake_verbs_unplug(void);

/**
 * fake_verbs_remove - have the connection manager report that all devices were removed.
 */
void fake_verbs_remove(void);

/** fake_verbs_vector - return the completion vector of the newest completion queue. */
int fake_verbs_vector(void);

/** fake_verbs_mistakes - return the number of misuses; each was printed. */
int fake_verbs_mistakes(void);

/** fake_verbs_live - return the number of objects created and not destroyed. */
int fake_verbs_live(void);

/** fake_verbs_contexts - return the number of devices that this process has open. The
 * connection manager's are not counted. */
int fake_verbs_contexts(void);

/** fake_verbs_domains - return the number of its protection domains. */
int fake_verbs_domains(void);

/** fake_verbs_regions - return the regions of a protection domain, even a freed one. */
int fake_verbs_regions(const struct ibv_pd *pd);

/** fake_verbs_pinned - return the bytes of all registered pages. */
size_t fake_verbs_pinned(void);

/** fake_verbs_refuse - refuse one send request: the one after `after` others. */
void fake_verbs_refuse(int after);

/** fake_verbs_posted - return the numbers of requests posted, inline and signaled, and
 * of calls that posted them. */
struct fake_verbs_counts {
    int sends, inlined, signalled, doorbells;
};
struct fake_verbs_counts fake_verbs_posted(void);

/** fake_verbs_carried - return the number of requests sent through a port. */
int fake_verbs_carried(int device, int port);

/* Setup and teardown of a case: the first state; no misuse, no object left. */
static inline int clean(void **state)
{
    (void)state;
    (void)fake_verbs_reset();
    return 0;
}

static inline int nothing_left(void **state)
{
    (void)state;
    return fake_verbs_mistakes() || fake_verbs_live();
}

#endif
