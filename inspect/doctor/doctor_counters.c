/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of RDMA ports that show congestion and lost packets: their values at the
 * start, and a warning for those that grew while the ranks wrote to each other.
 */
#include <inttypes.h>

#include "base/text.h"
#include "inspect/doctor/doctor_parts.h"

#define CURE \
    "on RoCE, check PFC, ECN and the traffic class (docs/rdma.md); on InfiniBand, " \
    "cables and switch ports (ibdiagnet)"

void trib_doctor_counters_begin(struct trib_doctor *d)
{
    d->n_counters =
        trib_rdma_counters_all(d->folder, d->counters, TRIB_DOCTOR_COUNTED_PORTS);
    for (int i = 0; i < d->n_counters; i++) {
        const struct trib_rdma_counters *c = &d->counters[i];
        char text[320] = "";
        for (int k = 0; k < TRIB_RDMA_COUNTERS; k++)
            if (c->has[k] && c->count[k])
                trib_text_append(text, sizeof(text), "%s%s %" PRIu64, *text ? ", " : "",
                                 trib_rdma_counter_name((enum trib_rdma_counter)k),
                                 c->count[k]);
        trib_report_say(&d->report, TRIB_VERDICT_OK, "rdma counters", "",
                        "%s port %d: %s", c->device, c->port,
                        *text ? text : "no congestion, no lost packets");
    }
}

static void warn_grown(struct trib_doctor *d, const struct trib_rdma_counters *before,
                       const struct trib_rdma_counters *now)
{
    for (int k = 0; k < TRIB_RDMA_COUNTERS; k++) {
        const enum trib_rdma_counter counter = (enum trib_rdma_counter)k;
        const uint64_t growth = trib_rdma_counter_growth(before, now, counter);
        if (growth && trib_rdma_counter_is_trouble(counter))
            trib_report_say(&d->report, TRIB_VERDICT_WARN, "rdma counters", CURE,
                            "%s port %d: %s grew by %" PRIu64
                            " during this examination: %s",
                            now->device, now->port, trib_rdma_counter_name(counter),
                            growth, trib_rdma_counter_help(counter));
    }
}

void trib_doctor_counters_end(struct trib_doctor *d)
{
    struct trib_rdma_counters now;

    for (int i = 0; i < d->n_counters; i++) {
        const struct trib_rdma_counters *before = &d->counters[i];
        if (trib_rdma_counters_read(d->folder, before->device, before->port, &now))
            warn_grown(d, before, &now);
    }
}
