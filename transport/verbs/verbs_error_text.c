/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: error messages. Each status has a clause for PEER_LOST and advice for the log:
 * likely causes and what to run.
 */
#include <stdio.h>

#include "transport/verbs/verbs.h"

#define OUR_BUG "this is a mistake of Tributary's: please report it"
#define MEMORY \
    "memory was freed or unmapped while it was registered, or one of the ranks ended " \
    "a communicator that the other still uses"

static const struct verbs_status_text texts[] = {
    [IBV_WC_LOC_LEN_ERR] = {"a write was longer than the device allows", OUR_BUG},
    [IBV_WC_LOC_QP_OP_ERR] = {"the device could not carry out a request", OUR_BUG},
    [IBV_WC_LOC_EEC_OP_ERR] = {"the device could not carry out a request", OUR_BUG},
    [IBV_WC_LOC_PROT_ERR] = {"the source of a write is not registered", MEMORY},
    [IBV_WC_WR_FLUSH_ERR] =
        {"its connection was stopped by the device of this host",
         "see what was logged before, and the kernel's log (dmesg)"},
    [IBV_WC_MW_BIND_ERR] = {"a memory window could not be bound", OUR_BUG},
    [IBV_WC_BAD_RESP_ERR] = {"it answered what nobody had asked",
                             "update firmware and drivers on both hosts"},
    [IBV_WC_LOC_ACCESS_ERR] = {"this rank's own memory refused the access", MEMORY},
    [IBV_WC_REM_INV_REQ_ERR] = {"it refused a request as invalid",
                                "do both hosts run the same version?"},
    [IBV_WC_REM_ACCESS_ERR] =
        {"it refused a write: not inside of its registered memory", MEMORY},
    [IBV_WC_REM_OP_ERR] = {"its device failed in a request",
                           "see the kernel's log on its host (dmesg)"},
    [IBV_WC_RETRY_EXC_ERR] =
        {"its host does not answer any more",
         "it is down, its link is, or packets are lost: try ping and ibv_rc_pingpong "
         "between the hosts; with RoCE, UDP port 4791 must be open, the MTU the same "
         "along the way, and flow control (PFC or ECN) set up on the switches"},
    [IBV_WC_RNR_RETRY_EXC_ERR] =
        {"it took no more writes",
         "it is stopped or stuck: see what the process does; verbs:receives=N gives it "
         "more room"},
    [IBV_WC_LOC_RDD_VIOL_ERR] = {"reliable datagrams do not match", OUR_BUG},
    [IBV_WC_REM_INV_RD_REQ_ERR] = {"it refused a request for reliable datagrams",
                                   OUR_BUG},
    [IBV_WC_REM_ABORT_ERR] = {"it gave a request up",
                              "see the kernel's log on its host (dmesg)"},
    [IBV_WC_INV_EECN_ERR] = {"reliable datagrams do not match", OUR_BUG},
    [IBV_WC_INV_EEC_STATE_ERR] = {"reliable datagrams do not match", OUR_BUG},
    [IBV_WC_FATAL_ERR] = {"the device of this host has failed",
                          "see the kernel's log (dmesg) and ibv_devinfo"},
    [IBV_WC_RESP_TIMEOUT_ERR] = {"it did not respond in time",
                                 "see the kernel's log on its host (dmesg)"},
    [IBV_WC_GENERAL_ERR] = {"the device reports an error of its own kind",
                            "see the kernel's log (dmesg) on both hosts"},
    [IBV_WC_TM_ERR] = {"tag matching failed", OUR_BUG},
    [IBV_WC_TM_RNDV_INCOMPLETE] = {"tag matching failed", OUR_BUG},
};

struct verbs_status_text trib_verbs_status_text(enum ibv_wc_status status)
{
    size_t i = (size_t)status;

    if (i < sizeof(texts) / sizeof(texts[0]) && texts[i].clause)
        return texts[i];
    return (struct verbs_status_text){"the device reports an error that is not known",
                                      "see the kernel's log (dmesg) on both hosts"};
}

const char *trib_verbs_refusal_text(enum verbs_refusal refusal)
{
    switch (refusal) {
    case VERBS_WELCOME:
        return "it did not say why";
    case VERBS_STRANGER:
        return "it belongs to another job, which now uses that port";
    case VERBS_OTHER_VERSION:
        return "it has another version of Tributary: install the same everywhere";
    case VERBS_OTHER_SETTINGS:
        return "it has other settings: give all ranks the same TRIB_* settings";
    case VERBS_OTHER_DEVICE:
        return "the route leads to a port that it does not use: give both ranks "
               "devices or ports of one network with verbs:device=NAME";
    case VERBS_LEFT:
        return "it has left, or has taken this rank for lost";
    case VERBS_TWICE:
        return "it is connected with this rank already";
    case VERBS_NO_ROOM:
        return "it can make no more connections: see its log";
    case VERBS_NO_WAY:
        return "no GIDs of both ports fit together";
    case VERBS_NONSENSE:
        return "the request made no sense to it: do both hosts run the same version?";
    case VERBS_CHALLENGE:
        return "it asks for a proof twice";
    case VERBS_OTHER_SECRET:
        return "one of both has a secret and the other has none: give all ranks the "
               "same TRIB_KEY, or none";
    case VERBS_NOT_PROVED:
        return "this rank has another secret, or was late to prove it: give all ranks "
               "the same TRIB_KEY";
    }
    return "for a reason that this version does not know";
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

void trib_verbs_ends(struct verbs *v, int peer, char here[VERBS_END_TEXT],
                     char there[VERBS_END_TEXT])
{
    const struct verbs_link *out = &v->peers[peer].out;
    const struct sockaddr *from = out->id ? rdma_get_local_addr(out->id) : NULL;
    struct verbs_ip own = v->ip[0];

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
