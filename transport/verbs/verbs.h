/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions shared by the files of the verbs transport. verbs_peer.h has its state;
 * README.md has the order of the files.
 */
#ifndef TRANSPORT_VERBS_VERBS_H
#define TRANSPORT_VERBS_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/op_defaults.h"
#include "transport/multirail/multirail.h"
#include "transport/open.h"
#include "transport/verbs/verbs_peer.h"

#define VERBS_LIST_MAX 32
#define VERBS_LIST_TEXT 256

/* verbs:device=LIST. */
struct verbs_list {
    bool except; /* "^…": all others */
    bool exact; /* only names, no prefixes, and not `except` */
    int n; /* 0: all devices */
    struct {
        struct verbs_port at; /* a name, or the beginning of names */
        bool prefix;
    } of[VERBS_LIST_MAX];
};

/* The parameters after "verbs:". */
struct verbs_params {
    const struct trib_transport_ops *ops; /* of the transports opened */
    /* of rails */
    enum multirail_revival (*revive)(struct trib_transport *t, int peer, bool last,
                                     char why[TRIB_WHY_MAX]);
    void (*sever)(struct trib_transport *t, int peer);
    void (*bar)(struct trib_transport *t, int peer);
    int64_t port, ports, depth, receives, rails, qps, reach_ms, watch;
    int64_t gid; /* index of the GID to use; -1: chosen for each peer */
    int64_t roce; /* RoCE version, 1 or 2; 0: chosen for each peer */
    struct verbs_list list;
    enum verbs_connect connect;
    struct verbs_traffic traffic;
    struct trib_net_ways ways;
    int64_t cache; /* MiB of the cache of registrations */
    int64_t relaxed_ordering; /* 1: registrations ask for it */
    int64_t reconnect; /* 1: connections that fail are made again */
    int64_t all_devices; /* 1: net= selects addresses to listen at, but no devices */
};

/* verbs_open.c */
/* Set *out to all parameters but `ops`. */
trib_status_t trib_verbs_parse(const struct trib_transport_opts *opts,
                               struct verbs_params *out);
void trib_verbs_close(struct trib_transport *t);
/* Open a transport on one device, whatever list `params` has. */
trib_status_t trib_verbs_open_one(const struct trib_transport_opts *opts,
                                  const struct verbs_params *params,
                                  const struct verbs_port *at,
                                  struct trib_transport **out);

/* verbs_error_text.c */
/* Return "; " and the cure for an errno of a call that creates an object of a device or
 * opens it; "" if there is no special one. */
const char *trib_verbs_errno_cure(int error);

/* verbs_multiport.c: ports of the host's devices, and rails over them */
void trib_verbs_devices(const char *params, char *text, size_t bytes);
/* The devices of a peer to try; those in this device's networks come first. */
struct verbs_choice {
    int n;
    uint8_t device[MULTIRAIL_MAX];
    struct verbs_address address[MULTIRAIL_MAX];
};
void trib_verbs_choices(const struct verbs *v, const struct trib_address *blob,
                        struct verbs_choice *out);
trib_status_t trib_verbs_open_all(const struct trib_transport_opts *opts,
                                  const struct verbs_params *params,
                                  struct trib_transport **out);

/* verbs_device.c: the device, and the objects shared by all peers */
trib_status_t trib_verbs_choose(struct verbs *v, const struct verbs_port *wanted);
/* Return the feature that devices of this kind lack, as a predicate, or NULL. */
const char *trib_verbs_missing_feature(const struct ibv_device *device);
char *trib_verbs_port_text(const struct verbs_port *port, char text[VERBS_PORT_TEXT]);
/* Return true if librdmacm has resolved an id to this transport's port. */
bool trib_verbs_is_own(const struct verbs *v, const struct rdma_cm_id *id);
/* Return true if some device can be used through librdmacm. Uses only the library and
 * the settings of `v`. */
bool trib_verbs_has_manager(struct verbs *v);
trib_status_t trib_verbs_make_queues(struct verbs *v);
void trib_verbs_free_queues(struct verbs *v);
/* Return true if a port has an address in the user's networks, net=, and a GID as
 * selected by gid= and roce=. Uses the settings of `v`, not its device. */
bool trib_verbs_port_chosen(struct verbs *v, struct ibv_context *context, uint8_t port);
/* Copy the settings that select addresses and GIDs. */
void trib_verbs_set_choice(struct verbs *v, const struct verbs_params *s);

/* verbs_traffic.c: partition, class and retries of connections */
/* Determine the partition and class of the chosen port, and all unset retries. */
trib_status_t trib_verbs_traffic_choose(struct verbs *v);
/* Get the index of a partition in the port's table. Return 0 or an errno. */
int trib_verbs_pkey_index(struct verbs *v, uint16_t pkey, uint16_t *out);
/* Return true if packets pass between a queue pair of the peer with this partition and
 * one of the local port. */
bool trib_verbs_shares_partition(struct verbs *v, uint16_t pkey);
/* librdmacm also connects ranks whose queue pairs have different partitions, because
 * each may replace its own. Return false and the reason if so. theirs: the peer's
 * setting, or 0. */
bool trib_verbs_manager_shares(struct verbs *v, struct rdma_cm_id *id, uint16_t theirs,
                               char *why, size_t bytes);
/* Set the traffic class of a new id before it resolves an address. */
bool trib_verbs_set_class(struct verbs *v, struct rdma_cm_id *id);
/* Set the attributes of a state transition that settings determine. Return 0 or an
 * errno. */
int trib_verbs_set_traffic(struct verbs *v, const struct verbs_link *link,
                           struct ibv_qp_attr *attr);
/* Return the class of a connection by GIDs; an unknown one is taken from the peer. */
uint8_t trib_verbs_common_class(const struct verbs *v, bool has_class, uint8_t peers);
/* List the port's counters that have grown since it was opened. */
void trib_verbs_trouble(struct verbs *v, char *text, size_t bytes);
/* Return what the chosen port can do: VERBS_HAS_*. */
uint8_t trib_verbs_caps(const struct verbs *v);

/* verbs_qp.c: one connection of either direction */
/* Create and destroy a queue pair for both directions. Return an errno on failure. */
int trib_verbs_try_queue_pair(struct verbs *v);
int trib_verbs_link_make(struct verbs *v, struct verbs_link *link,
                         struct verbs_peer *owner, bool outlet);
int trib_verbs_link_ready(struct verbs *v, struct verbs_link *link);
/* Post *owed receives on the SRQ, or on a queue pair if the device has no SRQ. Count
 * *owed down. Return an errno on failure. */
int trib_verbs_add_receives(struct verbs *v, struct ibv_qp *qp, uint32_t *owed);
/* Return the current MTU of this transport's port, 1 to VERBS_MTU_MAX. */
uint8_t trib_verbs_port_mtu(struct verbs *v);
bool trib_verbs_port_is_active(struct verbs *v);
/* Return true for a valid number of an MTU. */
static inline bool verbs_is_mtu(uint8_t mtu)
{
    return mtu >= 1 && mtu <= VERBS_MTU_MAX;
}
/* Return the largest valid number of an MTU up to the one that a driver reports. */
static inline uint8_t verbs_known_mtu(enum ibv_mtu mtu)
{
    if (mtu < IBV_MTU_256)
        return (uint8_t)IBV_MTU_256;
    return (uint8_t)(mtu < IBV_MTU_4096 ? mtu : IBV_MTU_4096);
}
/* sever ends the connection for both sides at once. drop also destroys its objects,
 * which may take seconds. */
void trib_verbs_link_sever(struct verbs *v, struct verbs_link *link);
void trib_verbs_link_drop(struct verbs *v, struct verbs_link *link);
void trib_verbs_link_ended(struct verbs *v, struct verbs_peer *p, bool inlet,
                           struct verbs_link *trash);
void trib_verbs_route_put(struct verbs *v, uint32_t qp_num, struct verbs_route route);
void trib_verbs_route_remove(struct verbs *v, uint32_t qp_num);
struct verbs_route trib_verbs_route_find(const struct verbs *v, uint32_t qp_num);
struct rdma_conn_param trib_verbs_conn_param(const struct verbs *v,
                                             const struct verbs_link *link,
                                             const void *data, size_t bytes);

/* verbs_gid_table.c: GIDs of the local port */
/* Return true if a local address is in the user's networks. */
bool trib_verbs_ip_chosen(const struct verbs *v, const uint8_t ip[16]);
/* Read the table for each connection: GIDs change with addresses. Return 0 or an errno;
 * ENOSYS: libibverbs is older than rdma-core 33. */
int trib_verbs_gid_table_read(struct verbs *v, struct ibv_context *context,
                              uint8_t port, struct verbs_gid_table *out);

/* verbs_oob_listener.c: incoming OOB requests. Call with `links` held, except open and
 * close. */
trib_status_t trib_verbs_oob_listener_open(struct verbs *v, int first_port, int ports);
void trib_verbs_oob_listener_close(struct verbs *v);
void trib_verbs_oob_listener_poll(struct verbs *v);
void trib_verbs_oob_fd_keep(int fd);

/* verbs_proof.c: mutual authentication by the job's secret. The listener: */
/* Put the challenge for a first request into the answer. `request`: covered by the
 * proofs; or NULL. Return false if there are no random bytes. */
bool trib_verbs_challenge(const struct verbs *v, const struct verbs_hello *hello,
                          const void *request, size_t bytes, struct trib_proof *proof,
                          struct verbs_answer *answer);
/* Do the same for a request through librdmacm; its proof comes with a second
 * request. */
bool trib_verbs_open_challenge(struct verbs *v, const struct verbs_hello *hello,
                               struct verbs_answer *answer);
/* Check the proof of a second request. Each challenge accepts one proof. */
bool trib_verbs_close_challenge(struct verbs *v, const struct verbs_hello *hello,
                                struct trib_proof *proof_out);
/* Authenticate the first `bytes` bytes of an answer, or of a reply that begins with
 * it. */
void trib_verbs_seal_answer(const struct verbs *v, const struct trib_proof *proof,
                            struct verbs_answer *answer, size_t bytes);
/* The connecting side: */
bool trib_verbs_begin_hello(const struct verbs *v, int peer, struct verbs_hello *hello,
                            struct trib_proof *proof);
/* Return true if there is no secret. */
bool trib_verbs_check_answer(const struct verbs *v, const struct trib_proof *proof,
                             const struct verbs_answer *answer, size_t bytes);

/* verbs_oob_connect.c: outgoing OOB requests. No further address is tried after
 * `until`. *answer_out receives the peer's answer, zeros if there is none. */
trib_status_t trib_verbs_oob_connect(struct verbs *v, int peer,
                                     const struct verbs_address *a, uint64_t until,
                                     char *why, size_t bytes,
                                     struct verbs_answer *answer_out);
trib_status_t trib_verbs_probe_path(struct verbs *v, int peer, uint64_t until,
                                    char *why, size_t bytes);
/* The same in two steps, for several peers whose probes are posted: wait until all are
 * acknowledged, then judge each. */
void trib_verbs_await_probes(struct verbs *v, const int *peers, int n);
trib_status_t trib_verbs_judge_probe(struct verbs *v, int peer, char *why,
                                     size_t bytes);

/* Send the last message of an OOB connection. Return false if it has ended. */
bool trib_verbs_send_ready(struct verbs *v, int peer);

/* verbs_revive.c: connecting again after a loss */
/* Take the next step, without blocking. For the owner's thread, about every 30 ms.
 * last: no rail is left, so attempts follow each other soon. */
enum multirail_revival trib_verbs_revive(struct trib_transport *t, int peer, bool last,
                                         char why[TRIB_WHY_MAX]);
/* End the connections to a peer without a notice or an event. */
void trib_verbs_sever(struct trib_transport *t, int peer);
/* Answer later requests of a peer that this rank will not be connected again. */
void trib_verbs_bar(struct trib_transport *t, int peer);

/* verbs_address.c */
/* Let the next address have one IP address less; false: it would have none. */
bool trib_verbs_shorten(struct trib_transport *t);
/* Return true for an address of a peer on another host that this host has, too, such as
 * the one of a container bridge. */
bool trib_verbs_leads_back(const struct verbs *v, const struct verbs_address *a,
                           const struct verbs_ip *ip);

/* verbs_connect.c */
/* Connect to an address of a peer. Does not change the state of the peer, so another
 * thread than the owner's may call it. */
enum verbs_attempt trib_verbs_make_outlet(struct verbs *v, int peer,
                                          const struct verbs_address *a,
                                          uint64_t until);
/* Read the devices of a peer that may be connected. */
trib_status_t trib_verbs_check_address(struct verbs *v, int peer,
                                       const struct trib_address *blob,
                                       struct verbs_choice *out);
/* Connect to the first device of a peer that it is reached over. Like make_outlet, for
 * any thread. *out is zero. */
void trib_verbs_try_devices(struct verbs *v, int peer,
                            const struct verbs_choice *choice,
                            struct verbs_outcome *out);
/* Record the peer's identity and enable posting to its outlet. */
void trib_verbs_set_connected(struct verbs *v, int peer, const struct verbs_address *a);
TRIB_TRANSPORT_PEERS(trib_verbs);

/* verbs_connect_many.c */
void trib_verbs_connect_many(struct trib_transport *t, struct trib_target *dials,
                             int n);

/* verbs_cm_thread.c */
trib_status_t trib_verbs_listen(struct verbs *v, int first_port, int ports);
trib_status_t trib_verbs_manager_start(struct verbs *v);
void trib_verbs_manager_stop(struct verbs *v);

/* verbs_events.c: asynchronous events of the device */
#define VERBS_DISAPPEARED "has disappeared"
/* Record that the device has failed for good: it is not used again. end: a literal such
 * as "has failed". Call with `links` held. */
void trib_verbs_end_device(struct verbs *v, const char *end);
trib_status_t trib_verbs_events_start(struct verbs *v);
/* Wait until the current event is handled. No effect if not started. */
void trib_verbs_events_stop(struct verbs *v);

/* verbs_liveness.c: loss of peers and disconnecting */
void trib_verbs_tick(struct verbs *v);
/* End both connections and refuse further ones. */
void trib_verbs_sever_peer(struct verbs *v, int peer, enum trib_peer_state state);
void trib_verbs_handle_async_events(struct verbs *v);
int trib_verbs_report_losses(struct verbs *v, struct trib_event *events, int max);
void trib_verbs_disconnect(struct trib_transport *t, int peer);
void trib_verbs_leave(struct trib_transport *t, const bool *which);

/* verbs_post.c */
/* Post all receives that are owed, or all of the listed peers. */
trib_status_t trib_verbs_post_receives(struct verbs *v);
trib_status_t trib_verbs_write(struct trib_transport *t, int peer,
                               const struct trib_write *write);
void trib_verbs_wake(struct trib_transport *t, int peer);
void trib_verbs_list_init(struct verbs *v);
/* Post the list of requests, if there is one. */
void trib_verbs_flush(struct verbs *v);
/* Post an empty signalled write after requests that are reported and that no signalled
 * one follows, unless the owner still posts to that peer. */
void trib_verbs_cover(struct verbs *v);
/* Send VERBS_DISCONNECT or VERBS_GIVEN_UP as the last message. */
void trib_verbs_send_last(struct verbs *v, int peer, enum verbs_control word);
bool trib_verbs_post_probe(struct verbs *v, int peer);

/* verbs_cq.c */
int trib_verbs_poll(struct trib_transport *t, struct trib_event *events, int max);
int trib_verbs_event_fd(struct trib_transport *t);
void trib_verbs_arm(struct trib_transport *t);
void trib_verbs_wait(struct trib_transport *t, int timeout_us);

/* verbs_drain.c */
void trib_verbs_drain(struct verbs *v, int peer, uint64_t until);
/* Block until everything posted to these peers is complete, or they are lost. Nothing
 * that arrives is lost. */
void trib_verbs_drain_sends(struct verbs *v, const int *peers, int n, uint64_t until);

/* verbs_mr.c */
void trib_verbs_pinned_limit(struct trib_transport *t, bool near,
                             struct trib_pinned_limit *out);
TRIB_TRANSPORT_MEMORY(trib_verbs);
/* Borrow memory for an operation through the cache of registrations. */
trib_status_t trib_verbs_borrow(struct trib_transport *t, void *ptr, size_t len,
                                bool written, struct trib_region **out);
void trib_verbs_give_back(struct trib_transport *t, struct trib_region *region,
                          bool broken);
trib_status_t trib_verbs_reg_dmabuf(struct trib_transport *t,
                                    const struct trib_dmabuf *d,
                                    struct trib_region **out);
void trib_verbs_release(struct trib_transport *t, struct trib_remote *remote);
size_t trib_verbs_length(struct trib_transport *t, const struct trib_remote *remote);
void trib_verbs_free_memory(struct verbs *v, bool deregister);

/* verbs_error_text.c: error messages */
struct verbs_status_text {
    const char *clause; /* "does not answer" */
    const char *advice; /* likely causes and what to run */
};
struct verbs_status_text trib_verbs_status_text(enum ibv_wc_status status);
/* Return true for an error after which a new connection may work. */
bool trib_verbs_is_network_error(enum ibv_wc_status status);
/* Write the reason of a failed request, with its destination and device. For the
 * owner's thread. */
void trib_verbs_explain_status(struct verbs *v, int peer, enum ibv_wc_status status,
                               char why[TRIB_WHY_MAX]);
/* Return why a peer refused, for the requesting rank. */
const char *trib_verbs_refusal_text(enum verbs_refusal refusal);
/* Log the refusal of a rank of this job. */
void trib_verbs_log_refusal(struct verbs *v, const struct verbs_hello *hello,
                            enum verbs_refusal why);
/* Write a predicate about the refusal of an unauthenticated peer. */
void trib_verbs_describe_refusal(const struct verbs_hello *hello,
                                 enum verbs_refusal why, char *text, size_t bytes);
/* Return true if a refused request did not have this job's key or secret. */
static inline bool verbs_is_foreign(enum verbs_refusal why)
{
    return why == VERBS_STRANGER || why == VERBS_OTHER_SECRET ||
           why == VERBS_NOT_PROVED;
}
/* Return true for a refusal that is no cause for a warning, or was logged before. */
static inline bool verbs_is_quiet(enum verbs_refusal why)
{
    return why == VERBS_LEFT || why == VERBS_GONE || why == VERBS_NO_DEVICE;
}
#define VERBS_END_TEXT 80
/* Write the addresses or GIDs of both ends of a peer's outlet. For the owner's
 * thread. */
void trib_verbs_end_texts(struct verbs *v, int peer, char here[VERBS_END_TEXT],
                          char there[VERBS_END_TEXT]);
char *trib_verbs_gid_text(const struct verbs_gid *gid, bool own,
                          char text[VERBS_END_TEXT]);

#endif
