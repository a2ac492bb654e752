/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internal declarations of the fake's files: fake_fabric.c has the state that processes
 * share, fake_verbs.c is the device, fake_async.c its events, fake_memory.c its memory,
 * fake_cq.c its completion queues, fake_queues.c its queue pairs, fake_rdmacm.c the
 * connection manager. One lock guards all.
 *
 * The functions of libibverbs and librdmacm have their own names, so the same files are
 * linked into a test or into a library that stands in for both (tests/fabric).
 */
#ifndef TESTS_HARNESS_FAKE_HUB_H
#define TESTS_HARNESS_FAKE_HUB_H

#include <pthread.h>

#include "tests/harness/fake_verbs.h"
#include "transport/verbs/verbs_dl_api.h"

enum {
    FAKE_DEVICES_MAX = 8,
    FAKE_PORTS_MAX = 4,
    FAKE_HOSTS_MAX = 1024,
    FAKE_PROCESSES_MAX = 1024,
    FAKE_QPS_MAX = 1 << 21,
    FAKE_FIRST_QP = 17,
    FAKE_LISTENERS_MAX = 4096,
    FAKE_MESSAGES_MAX = 1 << 14,
    FAKE_INLINE_MAX = 512,
};

struct fake_port {
    bool is_set; /* to its first state */
    bool down;
    int carried; /* requests sent */
    uint64_t out_free, in_free; /* ns, times when the link has sent and received all */
    uint64_t draws; /* random numbers drawn */
    uint64_t counters[FAKE_COUNTERS];
    struct fake_port_opts opts;
    struct ibv_gid_entry gids[FAKE_GIDS]; /* port_num 0: a hole */
};

/* Resources of a device that are allocated, by a host or by a process. */
struct fake_usage {
    int contexts, qps;
    uint64_t pinned; /* bytes */
};

struct fake_device {
    bool is_set;
    bool is_dead; /* after a fatal error */
    struct fake_device_opts opts;
    struct fake_usage used;
};

/* Conditions that delay a request. */
struct fake_wait {
    uint64_t due; /* ns; it does not arrive before */
    uint64_t dead; /* ns; it fails then, unless a way opens. 0: not known yet */
    uint32_t naks; /* the receiver had no receive */
    bool is_lost; /* on the way: it fails when it is due */
};

/* A message from one process to another. */
enum fake_message_kind { FAKE_REQUEST, FAKE_RESULT, FAKE_CM, FAKE_EVENT };

struct fake_request {
    enum ibv_wr_opcode opcode;
    bool is_inline;
    uint32_t imm, rkey, len;
    uint64_t from, to; /* addresses */
    enum ibv_mtu mtu; /* of the path */
};

struct fake_cm_message {
    enum rdma_cm_event_type type;
    int status;
    uint32_t qp_num;
    int device; /* of a CONNECT_REQUEST's receiver */
    uint8_t port, len;
};

struct fake_event {
    enum ibv_event_type type;
    int device, port;
};

struct fake_message {
    uint32_t next; /* in a list; 0: end */
    enum fake_message_kind kind;
    int from; /* process */
    uint32_t to_id, from_id; /* numbers of queue pairs, or of ids */
    uint32_t seq; /* of the request in its send queue */
    enum ibv_wc_status status; /* RESULT */
    struct fake_wait wait;
    union {
        struct fake_request request;
        struct fake_cm_message cm;
        struct fake_event event;
    };
    uint8_t bytes[FAKE_INLINE_MAX]; /* inline or private data */
};

struct fake_list {
    uint32_t head, tail; /* rows of messages; 0: empty */
};

struct fake_process {
    pthread_mutex_t life; /* robust; its device thread holds it */
    bool ended;
    pid_t pid;
    int host;
    uint32_t bell; /* futex */
    int busy; /* its completion queues that are */
    uint64_t next_due; /* ns; UINT64_MAX: nothing waits for its time */
    struct fake_list inbox;
    struct fake_usage used[FAKE_DEVICES_MAX];
};

struct fake_listener {
    int host, process;
    uint16_t port; /* 0: a hole */
    uint32_t id;
};

struct fake_hub {
    pthread_mutex_t lock;
    struct fake_verbs_opts opts;
    int n_processes, n_listeners;
    uint32_t next_qp_num, next_id;
    uint16_t next_port;
    uint32_t free_message, n_messages; /* messages from n_messages on were never used */
    int mistakes;
    bool is_timed; /* some request took time */
    uint64_t clock, changed_at; /* ns: virtual time; real time of its last change */
    int busy, under_way; /* completion queues; messages in inboxes */
    struct fake_device devices[FAKE_HOSTS_MAX][FAKE_DEVICES_MAX];
    struct fake_port ports[FAKE_HOSTS_MAX][FAKE_DEVICES_MAX][FAKE_PORTS_MAX];
    struct fake_process processes[FAKE_PROCESSES_MAX];
    struct fake_listener listeners[FAKE_LISTENERS_MAX];
    struct fake_message messages[FAKE_MESSAGES_MAX]; /* row 0 is not used */
    struct fake_qp qps[FAKE_QPS_MAX]; /* by number */
};

extern struct fake_hub *fake_hub;
#define fake_opts (fake_hub->opts)

/* fake_fabric.c: the hub, alone or shared, and messages between processes ---------- */

/** fake_hub_reset - empty the hub; this process alone has it. */
void fake_hub_reset(void);

void fake_lock(void);
void fake_unlock(void);

/* Release the lock until the state changes; false after some seconds. */
bool fake_wait(void);
void fake_changed(void);

/* All functions below are called with the lock held. */

/* Return this process's row, and the host of this thread. */
int fake_self(void);
int fake_host(void);
bool fake_is_shared(void); /* with other processes */

/* Start the device thread, if other processes share the hub or requests take time. */
void fake_device_start(void);

/* Send a copy of a message; false: no room. To this process: it is processed now. */
bool fake_send(int process, const struct fake_message *message);
struct fake_message *fake_message(uint32_t row);
void fake_append(struct fake_list *list, uint32_t row);
/* Remove the first message of a list and free its row. */
void fake_drop(struct fake_list *list);
bool fake_has_ended(int process);
/* Raise an event in the contexts of a device, in all processes of its host. */
void fake_announce(int host, struct fake_event event);
/* Wake the device thread of a process. */
void fake_wake(int process);

/* Copy from the memory of a process; false: it has ended. */
bool fake_read(int process, void *to, uint64_t from, size_t len);

void fake_mistake(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fake_count(int objects);

/* Descriptors that count: fake_ring makes one readable once more, fake_unring less. */
int fake_bell(void);
void fake_ring(int fd);
void fake_unring(int fd);

/* fake_ports.c: devices and ports of all hosts. */

/* Return a port, from 1, or a device in its present state. */
struct fake_port *fake_port(int host, int device, int port);
struct fake_device *fake_device(int host, int device);

/* Allocate or release resources of a device; false: a limit is exceeded. */
bool fake_use(const struct ibv_context *context, struct fake_usage more);
void fake_unuse(const struct ibv_context *context, struct fake_usage less);
/* Release the resources of an ended process. */
void fake_unuse_all(struct fake_process *ended);

/* Return the row of a queue pair; its port, or NULL before it has one. */
struct fake_qp *fake_qp_row(uint32_t qp_num);
struct fake_port *fake_port_of(uint32_t qp_num);

uint16_t fake_lid(int device, int port);
void fake_set_gid(struct fake_port *at, int port, int n, const char *address,
                  enum ibv_gid_type type);
bool fake_path_is_right(const struct ibv_context *context,
                        const struct ibv_ah_attr *path);

/* fake_memory.c: return the number of domains of a context; NULL: of all. */
int fake_domains(const struct ibv_context *context);
/* Return the region that contains these bytes, or NULL. */
struct ibv_mr *fake_region(const struct ibv_pd *pd, uint32_t key, uint64_t address,
                           uint64_t len);
/** fake_memory - return a pointer to an address of a region. */
void *fake_memory(const struct ibv_mr *mr, uint64_t address);
bool fake_writable(const struct ibv_mr *mr);
/* Where the bytes of a request are. */
struct fake_source {
    int process;
    const void *bytes; /* in this process's memory; NULL: at the request's address */
    const struct ibv_mr *mr; /* of `bytes`; NULL: none */
};
/* Write the bytes of a request to an address of a region; false: its process has
 * ended. */
bool fake_put(const struct fake_source *source, const struct ibv_mr *to,
              uint64_t address, const struct fake_request *r);
void fake_memory_table(struct trib_verbs_api *api);
void fake_memory_reset(void);

/* fake_verbs.c: contexts and device events. */

/* Return the connection manager's context of a device. */
struct ibv_context *fake_shared_context(int host, int device);
int fake_device_of(const struct ibv_context *context);
int fake_host_of(const struct ibv_context *context);
struct fake_port *fake_context_port(const struct ibv_context *context, int port);
bool fake_is_iwarp(const struct ibv_context *context);
bool fake_no_srq(const struct ibv_context *context);
int fake_mtu_of(const struct ibv_context *context, int port);
bool fake_port_is_up(const struct ibv_context *context, int port);
/* Process an EVENT of this host: raise it in each context of the device. */
void fake_device_event(int host, const struct fake_event *event);
/* Set a port up or down, and raise the event. */
void fake_set_link(int host, int device, int port, bool up);
struct fake_events *fake_events_of(struct ibv_context *context);

/* fake_async.c: asynchronous events of a context. */
enum { FAKE_EVENTS_MAX = 16 };
struct fake_events {
    struct ibv_async_event of[FAKE_EVENTS_MAX]; /* not read yet */
    int n;
};
void fake_events_reset(void);
void fake_raise(struct ibv_context *context, struct ibv_async_event event);
/* An object is being destroyed: drop its events, and wait until those that were read
 * are acknowledged. */
void fake_events_forget(struct ibv_context *context, const void *object);

/* fake_cq.c: a completion, and the room that polling it frees in a send queue. */
struct fake_entry {
    struct ibv_wc wc;
    int *outstanding; /* of this send queue, or NULL */
    int covers;
};
void fake_complete(struct ibv_cq *base, const struct fake_entry *entry);
/* Something was posted whose completion goes to this queue. */
void fake_cq_posted(struct ibv_cq *base);
/* Detach the completions of a destroyed send queue; they stay in the queue. */
void fake_cq_forget(struct ibv_cq *base, const int *outstanding);
void fake_cq_ops(struct ibv_context_ops *ops);

/* fake_clock.c */

void fake_clock_reset(void);
/* Return the fabric's time in ns. */
uint64_t fake_now(void);
/* Advance virtual time if all queues are idle, and execute the due requests. */
void fake_clock_try(void);
/* Mark a completion queue busy, which stops virtual time, or idle. */
void fake_clock_busy(bool *is_busy, bool busy);
void fake_clock_ended(struct fake_process *p);

/* fake_links.c */

/* Return true if requests take time. */
bool fake_is_timed(void);
/* Send a request from one queue pair to another. */
struct fake_wait fake_travel(uint32_t from, uint32_t to, size_t bytes);
/* Return true if a queue pair still has its GID. */
bool fake_has_gid(const struct fake_qp *qp);
/* Return true if the packets of a request pass both ports and partitions. */
bool fake_can_reach(uint32_t from, uint32_t to, const struct fake_request *r);
/* A request does not arrive: true when all retries have failed. */
bool fake_gave_up(uint32_t from, struct fake_wait *wait);
/* The receiver has no receive: true when all retries have failed. */
bool fake_not_ready(uint32_t from, uint32_t to, struct fake_wait *wait);
/* Count a request that arrived. */
void fake_count_arrival(uint32_t from, uint32_t to, const struct fake_request *r);

/* fake_srq.c: receive queues */
struct fake_receive {
    uint64_t wr_id;
    struct ibv_sge sge;
};
struct fake_receives {
    struct fake_receive *ring; /* [max] */
    uint32_t head, n, max;
};
struct fake_srq {
    struct ibv_srq base;
    struct fake_receives receives;
};
void fake_receives_make(struct fake_receives *receives, uint32_t max);
void fake_receives_free(struct fake_receives *receives);
int fake_receives_post(struct fake_receives *receives, struct ibv_recv_wr *wr,
                       struct ibv_recv_wr **bad);
/* Take the first receive; false: there is none. */
bool fake_receives_take(struct fake_receives *receives, struct fake_receive *out);
int fake_post_srq_recv(struct ibv_srq *base, struct ibv_recv_wr *wr,
                       struct ibv_recv_wr **bad);

/* fake_queues.c: return true if a queue pair has this receive queue. */
bool fake_queues_use(const struct ibv_srq *srq);
/* Return a queue pair that uses a completion queue, or NULL. */
struct ibv_qp *fake_queue_pair_of(const struct ibv_cq *cq);
/* Return a queue pair of a context, or NULL. */
struct ibv_qp *fake_queue_pair(const struct ibv_context *context);
/* Break all queue pairs of a device. */
void fake_queues_break(int host, int device);
void fake_queues_ops(struct ibv_context_ops *ops);
void fake_queues_reset(void);

/* fake_requests.c */
/* Execute all requests whose time has come; return the next time, or UINT64_MAX. */
uint64_t fake_queues_run(void);
/* The same, if a time has come. */
void fake_queues_poll(void);
/* A request may have to be executed at this time; 0: none. */
void fake_queues_due(uint64_t due);
/* Process a RESULT; take over a REQUEST, which stays in its row. */
void fake_queues_result(const struct fake_message *m);
bool fake_queues_request(uint32_t row);

/* fake_places.c: device N, port P of host H has address 10.A.B.P, and 127.A.B.P between
 * threads, with A = 9 + H % 200, B = N + 8 * (H / 200). */
struct fake_place {
    int host, device; /* device -1: any, or none */
    uint8_t port;
};
struct fake_place fake_place_of(const struct sockaddr *address);
/* Write the address 10.A.B.P of a place. */
void fake_place_address(struct fake_place place, uint8_t ip[4]);
struct fake_listener *fake_find_listener(int host, uint16_t port);
void fake_remove_listener(uint32_t id);
void fake_add_listener(int host, uint32_t id, uint16_t port);

/* fake_rdmacm.c */
void fake_rdmacm_reset(void);
void fake_rdmacm_event(const struct fake_message *m);
/* End the connections to processes that have ended. */
void fake_rdmacm_check(void);

#endif
