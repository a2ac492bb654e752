/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/cost.h"

/*
 * Load/store: a flag travels between two cores in 0.03 to 0.2 us, a message is a
 * line written and a line polled. Network: a kernel TCP path or a slow RDMA device.
 */
static const struct trib_cost_model load_store_model = {
    .hop_us = 0.15,
    .switch_us = 3.0,
    .message_us = 0.06,
    .wire_Bps = 16e9,
    .sum_Bps = 20e9,
};

static const struct trib_cost_model network_model = {
    .hop_us = 3.0,
    .switch_us = 3.0,
    .message_us = 0.3,
    .wire_Bps = 1e9,
    .sum_Bps = 10e9,
};

const struct trib_cost_model *trib_cost_default(bool load_store)
{
    return load_store ? &load_store_model : &network_model;
}

double trib_cost_us(const struct trib_cost_model *model,
                    const struct trib_cost_work *work, bool oversubscribed)
{
    double hop_us = model->hop_us + (oversubscribed ? model->switch_us : 0.0);

    return work->hops * hop_us + work->messages * model->message_us +
           (work->up + work->down) / model->wire_Bps * 1e6 +
           work->summed / model->sum_Bps * 1e6;
}
