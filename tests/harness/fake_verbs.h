/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs and librdmacm in memory: queue pairs between the transports of one
 * process, a connection manager, and errors on demand. It has another trib_verbs_load,
 * so a test that is linked with it has the transport "verbs" on any machine.
 *
 * What a device would punish by a hang or by memory overwritten is counted as a
 * mistake: a queue that overflows, a state that is skipped, an event that is not
 * acknowledged. It reaches what no healthy device shows; it does not replace one
 * (tests/rxe).
 */
#ifndef TESTS_HARNESS_FAKE_VERBS_H
#define TESTS_HARNESS_FAKE_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* The fake machine. Set between fake_verbs_reset and the first use. */
struct fake_verbs_opts {
    bool no_library;
    bool no_connection_manager;
    int devices;         /* fake0, fake1, … port P of N with one IPv4 address:
                          * 127.9.N.P, to which real UDP gets, too */
    int ports;           /* of each device */
    bool port_down;
    bool address_less;   /* the addresses lead to no device */
    bool address_errors; /* no address of a peer can be resolved */
    bool other_device;   /* peers are reached over the last device */
    bool other_port;     /* … over its last port */
    bool deaf;           /* requests for connections are not answered */
    _Atomic bool late_ends; /* what is under way when a queue pair is stopped ends
                             * well */
    bool half_way;       /* what is answered cannot be established */
    int reject;          /* connections are rejected for this reason; 0: they are not */
    int reg_errno;       /* of ibv_reg_mr; 0: it works */
    bool no_iova;        /* the library has no ibv_reg_mr_iova */
    int dmabuf_errno;    /* of ibv_reg_dmabuf_mr; 0: it works; -1: an old library */
    int cq_errno;        /* of ibv_create_cq */
    int qp_errno;        /* of ibv_create_qp */
    bool memlock;        /* memory counts against this process's limit of locked
                          * memory */
    uint32_t inline_max;
    uint32_t message_max;
    int mtu;             /* of a context's ports, as it is when the context is opened;
                          * longer packets are dropped there. As enum ibv_mtu */
    int max_cqe;
    int max_srq_wr;
    int max_qp_wr;
    int srq_errno;       /* of ibv_create_srq; 0: it works */
    bool iwarp;          /* writes with an immediate are refused when they are posted */
    bool no_remote_write; /* no queue pair may be written through */
    int fork_calls;      /* counts ibv_fork_init */
    int fork_errno;      /* of ibv_fork_init */
    bool fork_unneeded;  /* the kernel copies pinned pages */
    bool no_fork_query;  /* a library without ibv_is_fork_initialized */
    bool no_gid_query;   /* a library without ibv_query_gid_table */
    bool no_rdmacm;      /* no librdmacm.so.1 */
    bool infiniband;     /* the ports' link layer; else Ethernet */
    int late_us;         /* what goes to rank late_peer over the first device is on
                          * its way for so long; 0: it is there at once */
    int late_peer;
    int lid;             /* of the first device, which the others count on from; 0:
                          * none. The next ports' begin FAKE_PORT_LIDS above */
};

#define FAKE_GIDS 16
#define FAKE_PORT_LIDS 100

/** fake_verbs_reset - forget all, and be a machine with one device. */
struct fake_verbs_opts *fake_verbs_reset(void);

/** fake_verbs_fail - the next request that is posted ends like this. */
void fake_verbs_fail(enum ibv_wc_status status);

/** fake_verbs_hold - nothing that is posted gets anywhere until the hold is lifted. */
void fake_verbs_hold(bool hold);

/**
 * fake_verbs_port - from now on a port is down, or up: nothing gets through it, and
 * every context of its device is told.
 *
 * Nothing that waits ends by itself, as on a device whose retries take long.
 */
void fake_verbs_port(int device, int port, bool up);

/** fake_verbs_async - a device event, on the nth of the contexts that are open. */
void fake_verbs_async(int context, enum ibv_event_type type);

/** fake_verbs_async_waits - an event of that context has not been read yet. */
bool fake_verbs_async_waits(int context);

/**
 * fake_verbs_gid - set the nth entry of the table of GIDs of a device's first port.
 *
 * Port P of a new device N has fe80::P:N+1 and 10.9.N.P, both first of RoCE v1 and then
 * of v2.
 * address  IPv4 or IPv6; NULL: a hole
 */
void fake_verbs_gid(int device, int n, const char *address, enum ibv_gid_type type);

/** fake_verbs_cut - all connections end, as if both processes had died. */
void fake_verbs_cut(void);

/** fake_verbs_unplug - the connection manager loses the way to every peer; it may
 * return. */
void fake_verbs_unplug(void);

/** fake_verbs_remove - the connection manager says that all devices were removed. */
void fake_verbs_remove(void);

/** fake_verbs_mistakes - how often the library was misused; each was printed. */
int fake_verbs_mistakes(void);

/** fake_verbs_live - objects that were made and not destroyed. */
int fake_verbs_live(void);

/** fake_verbs_regions - registered in a protection domain, which may be gone. */
int fake_verbs_regions(const struct ibv_pd *pd);

/** fake_verbs_pinned - bytes of all pages that are registered. */
size_t fake_verbs_pinned(void);

/** fake_verbs_posted - requests posted, and those of them that were inline or
 * signalled. */
struct fake_verbs_counts {
    int sends, inlined, signalled;
};
struct fake_verbs_counts fake_verbs_posted(void);

/** fake_verbs_carried - requests that went out by a port. */
int fake_verbs_carried(int device, int port);

#endif
