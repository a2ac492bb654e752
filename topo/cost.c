/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/cost.h"

/* The time of a hop over RDMA: perftest's ib_write_lat reports 1 to 1.5 us for a few
 * bytes between adapters of 2018 and later over one switch, and a rank needs another
 * half to see and to answer a frame. Not measured with this library. */
#define PORT_HOP_US 2.0

/*
 * Load/store: a flag travels between two cores in 0.03 to 0.2 us; a message is one line
 * written and one line polled. Network: a kernel TCP path or a slow RDMA device. Shared
 * cores: 4 ranks over TCP on 2 cores; a message costs its system calls and the switch
 * to the waiting process. Bytes cost more with more peers: each peer has its own
 * socket, and may have no core when its turn comes. Sums of 2 to 16 MiB by 3, 4 and 8
 * ranks that move equal bytes took 4 to 25 % longer with 2 peers than in a tree, which
 * has fewer than 2 on average, and 15 to 75 % longer with all ranks as peers. Slow
 * network: TCP over 1 Gbit/s.
 */
static const struct trib_cost_model models[] = {
    [TRIB_COST_LOAD_STORE] =
        {
            .hop_us = 0.15,
            .switch_us = 3.0,
            .message_us = 0.06,
            .wire_Bps = 16e9,
            .sum_Bps = 20e9,
        },
    [TRIB_COST_NETWORK] =
        {
            .hop_us = 3.0,
            .switch_us = 3.0,
            .message_us = 0.3,
            .wire_Bps = 1e9,
            .sum_Bps = 10e9,
        },
    [TRIB_COST_SLOW_NETWORK] =
        {
            .hop_us = 3.0,
            .switch_us = 3.0,
            .message_us = 5.0,
            .wire_Bps = 125e6,
            .sum_Bps = 10e9,
        },
    [TRIB_COST_SHARED_CORES] =
        {
            .hop_us = 3.0,
            .message_us = 40.0,
            .wire_Bps = 1e9,
            .sum_Bps = 5e9,
            .peer = 0.15,
            .shared_cores = true,
        },
};

const struct trib_cost_model *trib_cost_default(enum trib_cost_kind kind)
{
    return &models[kind];
}

struct trib_cost_model trib_cost_of_ports(uint32_t mbps)
{
    struct trib_cost_model model = models[TRIB_COST_NETWORK];

    model.hop_us = PORT_HOP_US;
    model.wire_Bps = mbps * 1e6 / 8;
    return model;
}

double trib_cost_us(const struct trib_cost_model *model,
                    const struct trib_cost_work *work, bool oversubscribed)
{
    double hop_us = model->hop_us + (oversubscribed ? model->switch_us : 0.0);

    const double dearer = work->peers > 1 ? 1 + model->peer * (work->peers - 1) : 1;
    double all = work->messages * model->message_us +
                 (work->up + work->down) * dearer / model->wire_Bps * 1e6 +
                 work->summed / model->sum_Bps * 1e6;

    if (model->shared_cores && work->mean > 0)
        all *= work->mean;
    return work->hops * hop_us + all;
}
