/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: transport for InfiniBand, RoCE and soft-RoCE. The adapter writes directly into
 * the peer's memory; the peer's CPU sees only the immediate.
 */
#include "transport/verbs/verbs.h"

#include "transport/backends.h"

static trib_status_t verbs_open(const struct trib_transport_opts *opts,
                                struct trib_transport **out)
{
    struct verbs_params params;
    trib_status_t status = trib_verbs_parse(opts, &params);

    params.ops = &trib_verbs_ops;
    params.revive = trib_verbs_revive;
    params.sever = trib_verbs_sever;
    params.bar = trib_verbs_bar;
    return status == TRIB_OK ? trib_verbs_open_all(opts, &params, out) : status;
}

static uint64_t verbs_away(struct trib_transport *t, bool maybe)
{
    return trib_heartbeat_away(verbs_of(t)->local.heartbeat, maybe);
}

static void verbs_trouble(struct trib_transport *t, char *text, size_t bytes)
{
    trib_verbs_trouble(verbs_of(t), text, bytes);
}

const struct trib_transport_ops trib_verbs_ops = {
    .name = "verbs",
    .nets = true,
    .detail = "ranks on hosts with RDMA devices (InfiniBand, RoCE); one rail per port",
    .devices = trib_verbs_devices,
    .bare = true,
    .open = verbs_open,
    .close = trib_verbs_close,
    .address = trib_verbs_address,
    .reach = trib_verbs_reach,
    .pinned_limit = trib_verbs_pinned_limit,
    TRIB_OPS_WITHOUT_MAPS,
    .route = trib_verbs_peer_route,
    .connect = trib_verbs_connect,
    .connect_many = trib_verbs_connect_many,
    .disconnect = trib_verbs_disconnect,
    .leave = trib_verbs_leave,
    .alloc = trib_verbs_alloc,
    .alloc_user = trib_verbs_alloc,
    .reg = trib_verbs_reg,
    .reg_dmabuf = trib_verbs_reg_dmabuf,
    .borrow = trib_verbs_borrow,
    .give_back = trib_verbs_give_back,
    .dereg = trib_verbs_dereg,
    .export_region = trib_verbs_export,
    .import_region = trib_verbs_import,
    .release = trib_verbs_release,
    .length = trib_verbs_length,
    .write = trib_verbs_write,
    .detach = trib_no_detach,
    .poll = trib_verbs_poll,
    .event_fd = trib_verbs_event_fd,
    .arm = trib_verbs_arm,
    .wait = trib_verbs_wait,
    .wake = trib_verbs_wake,
    .away = verbs_away,
    .trouble = verbs_trouble,
};
