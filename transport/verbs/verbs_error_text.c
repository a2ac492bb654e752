/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: error messages. Each status has a clause for PEER_LOST and advice for the log:
 * likely causes and what to run.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memlock.h"
#include "transport/verbs/verbs.h"

enum { ADDRESSES_MAX = 64 };

#define OUR_BUG "this is a bug in Tributary: please report it"
#define ROUTE \
    "check ip route get and ip neigh for the peer's address; if they are right, " \
    "please report this line"
#define MEMORY \
    "memory was freed or unmapped while it was registered, or one rank freed a " \
    "communicator that the other still uses"

static const struct verbs_status_text texts[] = {
    [IBV_WC_LOC_LEN_ERR] = {"a write was longer than the device allows", OUR_BUG},
    [IBV_WC_LOC_QP_OP_ERR] = {"no route, or the device could not execute a request",
                              ROUTE},
    [IBV_WC_LOC_EEC_OP_ERR] = {"the device could not execute a request", ROUTE},
    [IBV_WC_LOC_PROT_ERR] = {"the source of a write is not registered", MEMORY},
    [IBV_WC_WR_FLUSH_ERR] = {"the device of this host stopped its connection",
                             "see earlier log lines, and the kernel log (dmesg)"},
    [IBV_WC_MW_BIND_ERR] = {"a memory window could not be bound", OUR_BUG},
    [IBV_WC_BAD_RESP_ERR] = {"it sent an unexpected response",
                             "update firmware and drivers on both hosts"},
    [IBV_WC_LOC_ACCESS_ERR] = {"access to this rank's own memory was refused", MEMORY},
    [IBV_WC_REM_INV_REQ_ERR] = {"it refused a request as invalid",
                                "do both hosts run the same version?"},
    [IBV_WC_REM_ACCESS_ERR] = {"it refused a write: outside its registered memory",
                               MEMORY},
    [IBV_WC_REM_OP_ERR] = {"its device failed to execute a request",
                           "see the kernel log on its host (dmesg)"},
    [IBV_WC_RETRY_EXC_ERR] =
        {"retries exceeded: its host no longer answers",
         "the host or its link is down, or packets are lost: try ping and "
         "ibv_rc_pingpong between the hosts; with RoCE, UDP port 4791 must be open, "
         "the MTU equal along the path, and flow control (PFC or ECN) configured on "
         "the switches; with InfiniBand, both ports in one partition (verbs:pkey)"},
    [IBV_WC_RNR_RETRY_EXC_ERR] =
        {"it no longer accepts writes",
         "it is stopped or stuck: check the process; verbs:receives=N adds receives"},
    [IBV_WC_LOC_RDD_VIOL_ERR] = {"reliable datagrams do not match", OUR_BUG},
    [IBV_WC_REM_INV_RD_REQ_ERR] = {"it refused a request for reliable datagrams",
                                   OUR_BUG},
    [IBV_WC_REM_ABORT_ERR] = {"it aborted a request",
                              "see the kernel log on its host (dmesg)"},
    [IBV_WC_INV_EECN_ERR] = {"reliable datagrams do not match", OUR_BUG},
    [IBV_WC_INV_EEC_STATE_ERR] = {"reliable datagrams do not match", OUR_BUG},
    [IBV_WC_FATAL_ERR] = {"the device of this host has failed",
                          "see the kernel log (dmesg) and ibv_devinfo"},
    [IBV_WC_RESP_TIMEOUT_ERR] = {"it did not respond in time",
                                 "see the kernel log on its host (dmesg)"},
    [IBV_WC_GENERAL_ERR] = {"the device reports a vendor-specific error",
                            "see the kernel log (dmesg) on both hosts"},
    [IBV_WC_TM_ERR] = {"tag matching failed", OUR_BUG},
    [IBV_WC_TM_RNDV_INCOMPLETE] = {"tag matching failed", OUR_BUG},
};

bool trib_verbs_is_network_error(enum ibv_wc_status status)
{
    return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_LOC_QP_OP_ERR ||
           status == IBV_WC_WR_FLUSH_ERR || status == IBV_WC_RESP_TIMEOUT_ERR;
}

struct verbs_status_text trib_verbs_status_text(enum ibv_wc_status status)
{
    size_t i = (size_t)status;

    if (i < sizeof(texts) / sizeof(texts[0]) && texts[i].clause)
        return texts[i];
    return (struct verbs_status_text){"the device reports an unknown error",
                                      "see the kernel log (dmesg) on both hosts"};
}

/* Each refusal as the requesting and as the refusing rank describe it. */
static const struct {
    const char *requester; /* after "it refused: " */
    const char *listener; /* after "requested a connection, but " */
} refusals[] = {
    [VERBS_WELCOME] = {"it gave no reason", "this rank gave no reason"},
    [VERBS_STRANGER] = {"it belongs to another job, which now uses that port",
                        "it belongs to another job"},
    [VERBS_OTHER_VERSION] = {"it uses another version of Tributary: install the same "
                             "version on all hosts",
                             "it uses another version of Tributary"},
    [VERBS_OTHER_SETTINGS] = {"it has different settings: give all ranks the same "
                              "TRIB_* settings",
                              "its TRIB_* settings are different"},
    [VERBS_OTHER_DEVICE] = {"the route leads to a port that it does not use: select "
                            "devices or ports of one network on both ranks with "
                            "verbs:device=NAME",
                            "its route leads to a port that this rank does not use"},
    [VERBS_LEFT] = {"it has disconnected, or declared this rank lost",
                    "this rank has disconnected from it, or declared it lost"},
    [VERBS_TWICE] = {"it is already connected to this rank", "it is already connected"},
    [VERBS_NO_ROOM] = {"it cannot create further connections: see its log",
                       "this rank cannot create further connections"},
    [VERBS_NO_WAY] = {"no GIDs of the two ports match",
                      "no GIDs of the two ports match"},
    [VERBS_NONSENSE] = {"it considers the request malformed: do both hosts run the "
                        "same version?",
                        "the request is malformed"},
    [VERBS_CHALLENGE] = {"it requests a second proof", "it must prove the secret"},
    [VERBS_OTHER_SECRET] = {"only one of the two has a secret: set the same TRIB_KEY "
                            "on all ranks, or on none",
                            "only one of the two has a secret (TRIB_KEY)"},
    [VERBS_OTHER_PARTITION] = {"its port is not in the partition of this rank's port, "
                               "or both are limited members: set verbs:pkey=NUMBER on "
                               "all ranks",
                               "the ports have no partition in common"},
    [VERBS_NO_DEVICE] = {"its RDMA device has failed",
                         "this rank's RDMA device has failed"},
    [VERBS_GONE] = {"it has disconnected, or declared this rank lost",
                    "this rank has disconnected from it, or declared it lost"},
    [VERBS_NOT_PROVED] = {"this rank has a different secret, or proved it too late: "
                          "set the same TRIB_KEY on all ranks",
                          "it did not prove in time that it has the secret"},
};

const char *trib_verbs_refusal_text(enum verbs_refusal refusal)
{
    const size_t i = (size_t)refusal;

    return i < sizeof(refusals) / sizeof(refusals[0])
               ? refusals[i].requester
               : "for a reason unknown to this version";
}

/* The key of a rank's request is known to its job alone. */
void trib_verbs_log_refusal(struct verbs *v, const struct verbs_hello *hello,
                            enum verbs_refusal why)
{
    assert((size_t)why < sizeof(refusals) / sizeof(refusals[0]));
    if (!verbs_is_quiet(why) && why != VERBS_NO_ROOM) /* logged already */
        trib_log(v->log, TRIB_LOG_WARN, "verbs",
                 "rank %d (process %d) requested a connection, but %s", hello->rank,
                 hello->pid, refusals[why].listener);
}

void trib_verbs_describe_refusal(const struct verbs_hello *hello,
                                 enum verbs_refusal why, char *text, size_t bytes)
{
    assert((size_t)why < sizeof(refusals) / sizeof(refusals[0]));
    snprintf(text, bytes, "requested a connection as rank %d (process %d), but %s",
             hello->rank, hello->pid, refusals[why].listener);
}

/* Show the index of local GIDs only: a peer's index is unknown. */
char *trib_verbs_gid_text(const struct verbs_gid *gid, bool own,
                          char text[VERBS_END_TEXT])
{
    char ip[VERBS_IP_TEXT];

    trib_net_text(gid->bytes, ip, sizeof(ip));
    if (own)
        snprintf(text, VERBS_END_TEXT, "GID %u (%s)", gid->index, ip);
    else
        snprintf(text, VERBS_END_TEXT, "GID %s", ip);
    return text;
}

void trib_verbs_end_texts(struct verbs *v, int peer, char here[VERBS_END_TEXT],
                          char there[VERBS_END_TEXT])
{
    const struct verbs_link *out = &v->peers[peer].out;
    const struct sockaddr *from = out->id ? rdma_get_local_addr(out->id) : NULL;
    struct verbs_ip own = v->ip[0];

    assert(peer >= 0 && peer < v->size);
    if (out->by_oob) {
        trib_verbs_gid_text(&out->path.own, true, here);
        trib_verbs_gid_text(&out->path.peer, false, there);
        return;
    }
    if (from && (from->sa_family == AF_INET || from->sa_family == AF_INET6))
        trib_net_ip(from, own.bytes);
    trib_net_text(own.bytes, here, VERBS_END_TEXT);
    trib_net_text(v->peers[peer].where.bytes, there, VERBS_END_TEXT);
}

/* Return true if this host still has the address or GID of a peer's outlet. */
static bool has_own_end(struct verbs *v, int peer)
{
    const struct verbs_link *out = &v->peers[peer].out;
    const struct sockaddr *from = out->id ? rdma_get_local_addr(out->id) : NULL;
    struct verbs_ip all[ADDRESSES_MAX], own;
    struct verbs_gid_table table;

    if (out->by_oob) {
        if (trib_verbs_gid_table_read(v, v->context, v->port_num, &table) != 0)
            return true;
        for (uint8_t i = 0; i < table.n; i++) {
            if (memcmp(table.gid[i].bytes, out->path.own.bytes, 16) == 0)
                return true;
        }
        return table.n == 0 && !out->path.global;
    }
    if (!from || (from->sa_family != AF_INET && from->sa_family != AF_INET6))
        return true;
    trib_net_ip(from, own.bytes);
    const int n = v->api.own_addresses((uint8_t(*)[16])all, ADDRESSES_MAX);
    for (int i = 0; i < n; i++) {
        if (memcmp(&all[i], &own, sizeof(own)) == 0)
            return true;
    }
    return n == ADDRESSES_MAX;
}

void trib_verbs_explain_status(struct verbs *v, int peer, enum ibv_wc_status status,
                               char why[TRIB_WHY_MAX])
{
    char here[VERBS_END_TEXT], there[VERBS_END_TEXT];

    trib_verbs_end_texts(v, peer, here, there);
    if ((status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_RETRY_EXC_ERR) &&
        !has_own_end(v, peer))
        snprintf(why, TRIB_WHY_MAX, "no route: this host no longer has %.80s", here);
    else
        snprintf(why, TRIB_WHY_MAX, "%.80s, to %.40s over %.20s",
                 trib_verbs_status_text(status).clause, there, v->label);
}

const char *trib_verbs_errno_cure(int error)
{
    switch (error) {
    case ENOMEM:
        return "; " TRIB_MEMLOCK_CURE;
    case EAGAIN: /* the kernel's answer at the limit of a cgroup */
        return "; the RDMA limit of this process's cgroup is reached: raise "
               "hca_handle and hca_object in its rdma.max";
    case EACCES:
    case EPERM:
        return "; allow this user to read and write /dev/infiniband/uverbs*";
    case ENOENT:
    case ENODEV:
        return "; load ib_uverbs, and pass /dev/infiniband to containers";
    default:
        return "";
    }
}
