/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trace events of the engine. Each costs one branch while tracing is off.
 */
#ifndef PIPELINE_RUN_ENGINE_TRACE_H
#define PIPELINE_RUN_ENGINE_TRACE_H

#include "pipeline/run/engine_state.h"

/** trib_engine_trace_operation - record that a run begins or ends. */
static inline void trib_engine_trace_operation(struct trib_engine *e,
                                               const struct trib_run *run,
                                               enum trib_trace_kind kind)
{
    trib_trace_now(&e->trace, kind, -1, run->desc.traced_as, run->desc.total);
}

/** trib_engine_trace_sent - record that a frame was handed to the transport, from
 * begin_ns (of trib_trace_clock) until now. */
static inline void trib_engine_trace_sent(struct trib_engine *e, uint64_t begin_ns,
                                          int peer, const struct trib_frame *f)
{
    const struct trib_trace_event what = {
        .peer = peer, .chunk = f->chunk, .value = f->bytes};

    if (e->trace.events)
        trib_trace_span(&e->trace, TRIB_TRACE_SEND_BEGIN, begin_ns, &what);
}

/** trib_engine_trace_under_way - record the number of frames that peers have not yet
 * released, if it has changed. */
static inline void trib_engine_trace_under_way(struct trib_engine *e,
                                               const struct trib_run *run)
{
    uint32_t frames = 0;

    if (!e->trace.events)
        return;
    for (uint32_t i = 0; i < run->program.n_neighbors; i++) {
        const struct trib_link *l = &e->links[run->program.neighbors[i].peer];
        for (int lane = 0; lane < TRIB_LANES; lane++)
            frames += l->send[lane].next -
                      atomic_load_explicit(&l->my_credits[lane], memory_order_relaxed);
    }
    if (frames == e->trace.under_way)
        return;
    e->trace.under_way = frames;
    trib_trace_now(&e->trace, TRIB_TRACE_UNDER_WAY, -1, 0, frames);
}

#endif
