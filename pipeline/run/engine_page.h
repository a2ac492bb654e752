/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine publishes its state on a page that other processes read
 * (base/state_page.h). A short operation costs two stores. Only every fourth one also
 * writes the counters and its end time, because reading a clock takes longer than
 * everything else.
 */
#ifndef PIPELINE_RUN_ENGINE_PAGE_H
#define PIPELINE_RUN_ENGINE_PAGE_H

#include "base/cache_counts.h"
#include "base/time.h"
#include "pipeline/run/engine_trace.h"
#include "pipeline/run/run.h"

/** trib_engine_page_open - create the page once the peers are known. Return TRIB_OK
 * even if the system refuses a page. label: see base/state_page.h */
trib_status_t trib_engine_page_open(struct trib_engine *e, const char *label);

/** trib_engine_page_describe - write the texts of a run. */
void trib_engine_page_describe(struct trib_engine *e, const struct trib_run *run);

/** trib_engine_page_wait - write what the engine has waited for since e->last_progress,
 * and the peer it waits for, or -1. Requires a page. */
void trib_engine_page_wait(struct trib_engine *e, uint64_t now, int peer,
                           const char *what);

/** trib_engine_page_failed - write the cause of the engine's failure. */
void trib_engine_page_failed(struct trib_engine *e);

static inline void trib_engine_page_begin(struct trib_engine *e,
                                          const struct trib_run *run)
{
    struct trib_state_page *page = e->page.page;

    if (!page)
        return;
    if (e->page_run != run)
        trib_engine_page_describe(e, run);
    if (!run->short_path)
        trib_state_set(&page->begun_ns, trib_now_ns());
    atomic_store_explicit(&page->op, 2 * (uint64_t)run->now.frame.seq + 1,
                          memory_order_release);
}

/** trib_engine_page_cache - write the counts of the cache of registrations. */
void trib_engine_page_cache(struct trib_engine *e);

static inline void trib_engine_page_count(struct trib_engine *e)
{
    struct trib_state_page *page = e->page.page;

    if (atomic_load_explicit(&trib_cache_counts.limit, memory_order_relaxed))
        trib_engine_page_cache(e);
    trib_state_set(&page->operations, e->stats.operations);
    trib_state_set(&page->sent, e->stats.wire_bytes);
    trib_state_set(&page->received, e->stats.received_bytes);
}

static inline void trib_engine_page_end(struct trib_engine *e,
                                        const struct trib_run *run)
{
    struct trib_state_page *page = e->page.page;
    const uint64_t op = 2 * (uint64_t)run->now.frame.seq;

    if (!page)
        return;
    atomic_store_explicit(&page->op, op, memory_order_release);
    if (run->short_path && run->now.frame.seq % TRIB_STATE_EXACT)
        return;
    trib_engine_page_count(e);
    trib_state_set(&page->left_ns, trib_now_coarse_ns());
    trib_state_set(&page->left_op, op);
}

/** trib_engine_record_begin - record in the trace and on the page that a run begins. */
static inline void trib_engine_record_begin(struct trib_engine *e,
                                            const struct trib_run *run)
{
    trib_engine_trace_operation(e, run, TRIB_TRACE_OP_BEGIN);
    trib_engine_page_begin(e, run);
}

/** trib_engine_record_end - record that a run has ended, after the statistics were
 * updated. */
static inline void trib_engine_record_end(struct trib_engine *e,
                                          const struct trib_run *run)
{
    trib_engine_trace_operation(e, run, TRIB_TRACE_OP_END);
    trib_engine_page_end(e, run);
}

#endif
