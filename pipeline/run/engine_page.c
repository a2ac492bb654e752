/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/run/engine_page.h"

#include <stdio.h>
#include <string.h>

#include "base/process.h"

trib_status_t trib_engine_page_open(struct trib_engine *e, const char *label)
{
    struct trib_process self;

    if (trib_engine_is_aggregator(e) || !trib_state_file_open(&e->page))
        return TRIB_OK;
    struct trib_state_page *page = e->page.page;
    trib_process_self(&self);
    page->version = TRIB_STATE_PAGE_VERSION;
    page->bytes = sizeof(*page);
    page->pid = self.pid;
    page->start = self.start;
    page->space = self.space;
    page->rank = e->rank;
    page->ranks = e->ranks;
    page->root_pid = e->peers[0].pid;
    (void)trib_host_name(page->host);
    snprintf(page->root_host, sizeof(page->root_host), "%s", e->peers[0].host);
    snprintf(page->label, sizeof(page->label), "%s", label);
    trib_state_set(&page->left_ns, trib_now_ns());
    trib_state_set(&page->op, 2 * (uint64_t)e->seq);
    trib_state_set(&page->left_op, 2 * (uint64_t)e->seq);
    atomic_thread_fence(memory_order_release);
    memcpy(page->magic, TRIB_STATE_PAGE_MAGIC, sizeof(page->magic));
    return TRIB_OK;
}

static void copy(char *to, size_t bytes, const char *text)
{
    snprintf(to, bytes, "%s", text ? text : "");
}

void trib_engine_page_describe(struct trib_engine *e, const struct trib_run *run)
{
    struct trib_state_page *page = e->page.page;
    const struct trib_run_desc *d = &run->desc;

    e->page_run = run;
    trib_state_text_begin(page);
    copy(page->coll, sizeof(page->coll),
         d->op.leaving ? "trib_free_comm" : trib_coll_name(d->op.coll));
    copy(page->algorithm, sizeof(page->algorithm), d->name);
    copy(page->plan, sizeof(page->plan), d->label);
    page->op_bytes = (uint64_t)d->count * d->element;
    trib_state_text_end(page);
}

void trib_engine_page_wait(struct trib_engine *e, uint64_t now, int peer,
                           const char *what)
{
    struct trib_state_page *page = e->page.page;
    const uint64_t op = atomic_load_explicit(&page->op, memory_order_relaxed);
    const uint64_t who = peer < 0 ? TRIB_STATE_ANY : (uint64_t)peer + TRIB_STATE_PEER;

    trib_state_text_begin(page);
    copy(page->what, sizeof(page->what), what);
    copy(page->phase, sizeof(page->phase),
         !e->head             ? ""
         : e->head->now.moved ? "transfer"
                              : "start");
    trib_state_text_end(page);
    trib_engine_page_count(e);
    trib_state_set(&page->since_ns, e->last_progress);
    trib_state_set(&page->polled_ns, now);
    atomic_store_explicit(&page->awaits, op << 32 | who, memory_order_release);
}

static void copy_count(_Atomic uint64_t *to, const _Atomic uint64_t *from)
{
    trib_state_set(to, atomic_load_explicit(from, memory_order_relaxed));
}

void trib_engine_page_cache(struct trib_engine *e)
{
    struct trib_state_page *page = e->page.page;

    copy_count(&page->cache_limit, &trib_cache_counts.limit);
    copy_count(&page->cache_pinned, &trib_cache_counts.pinned);
    copy_count(&page->cache_hits, &trib_cache_counts.hits);
    copy_count(&page->cache_misses, &trib_cache_counts.misses);
}

void trib_engine_page_failed(struct trib_engine *e)
{
    struct trib_state_page *page = e->page.page;

    if (!page)
        return;
    trib_state_text_begin(page);
    copy(page->what, sizeof(page->what), trib_error_text(&e->failure));
    trib_state_text_end(page);
    atomic_store_explicit(&page->failed, 1, memory_order_release);
}
