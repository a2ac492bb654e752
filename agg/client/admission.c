/* SPDX-License-Identifier: BSD-3-Clause */
/* Admission: runs the steps of agg_provider.h in trib_init, and each time the ranks
 * rejoin aggregators. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agg/client/agg_provider.h"
#include "base/time.h"
#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"
#include "comm/plan/exchange.h"

enum {
    CHECK_NS = 500000000, /* between two polls of the control connections */
    PAUSE_MOST_MS = 60000, /* between two searches, at most */
    LASTING_MS = 60000, /* an agg_comm that lasted this long resets pause_ms */
    AT_ONCE_MS = 10,
};

/* Rank 0: start a search for aggregators, except the addresses in the bitmap `taken`,
 * which agg_comm already uses. */
static void search(struct trib_agg_provider *w, uint64_t taken, int pause_ms)
{
    const struct trib_discovery_opts opts = {
        .job = &w->job, .taken = taken, .check_only = taken != 0, .pause_ms = pause_ms};

    trib_discovery_close(w->discovery);
    w->discovery = NULL;
    if (!w->retry_ms || w->parent->engine.rank != 0)
        return;
    const trib_status_t st = trib_discovery_open(&opts, &w->discovery);
    if (st != TRIB_OK)
        trib_log(
            &w->parent->log, TRIB_LOG_WARN, TRIB_OFFLOAD_LOG,
            "cannot search for aggregators: %s; the job runs without them until it is "
            "restarted",
            trib_status_str(st));
}

static void search_later(struct trib_agg_provider *w)
{
    const int pause_ms = w->pause_ms;

    assert(pause_ms >= 0);
    w->pause_ms = pause_ms > PAUSE_MOST_MS / 2 ? PAUSE_MOST_MS : 2 * pause_ms;
    search(w, 0, pause_ms);
}

/* Rank 0: keep the control connections alive. If an aggregator closes its connection or
 * is silent, agg_comm has failed. The caller may hold the parent's lock, and another
 * thread may hold the lock of agg_comm. */
static void check_aggregators(void *arg)
{
    struct trib_agg_provider *w = arg;
    struct trib_control_link *s = w->control_link;
    struct trib_comm *agg_comm = w->parent->offload->agg_comm;
    const uint64_t now = trib_now_ns();

    if (!s || now - s->checked_ns < CHECK_NS)
        return;
    const trib_status_t st = trib_control_link_step(s);
    if (st != TRIB_OK) {
        if (!trib_comm_try_lock(agg_comm))
            return; /* the next call tries again */
        trib_engine_fail(&agg_comm->engine, st, trib_error_text(&s->err));
        trib_comm_unlock(agg_comm);
    }
    s->checked_ns = now;
}

/* Write to `text` which aggregators sum, and search for the ones that are missing. */
static void opened(struct trib_agg_provider *w, char *text, size_t bytes)
{
    uint64_t taken = 0;
    size_t at = 0;

    assert(w->control_link && bytes > 0);
    w->opened_ns = trib_now_ns();
    w->more = false;
    text[0] = 0;
    for (int i = 0; i < w->control_link->n && at < bytes; i++) {
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", i ? ", " : "",
                               trib_agg_provider_address(w->control_link, i));
        taken |= UINT64_C(1) << w->control_link->which[i];
    }
    if (at < bytes)
        snprintf(text + at, bytes - at, " (%d of %d) sum%s", w->control_link->n,
                 w->job.n, w->control_link->n == 1 ? "s" : "");
    if (w->control_link->n < w->job.n)
        search(w, taken, w->retry_ms);
}

/* Return true if aggregators are reachable only as a tree and a plan has a quorum.
 * Trees do not support a quorum: moving the plan to a tree would fail agg_comm at its
 * next start. */
static bool must_stay(struct trib_agg_provider *w)
{
    const bool stays = w->job.tree_bytes && trib_offload_any_quorum(w->parent->offload);

    if (stays && !w->stays)
        trib_log(
            &w->parent->log, TRIB_LOG_WARN, TRIB_OFFLOAD_LOG,
            "aggregators are reachable only as a tree, and a plan uses a quorum, "
            "which trees do not support; continuing without them (list one level in "
            "TRIB_SERVICE, or drop the quorum)");
    w->stays = stays;
    return stays;
}

static bool found(void *arg)
{
    struct trib_agg_provider *w = arg;

    if (!w->discovery || !trib_discovery_found(w->discovery) || must_stay(w))
        return false;
    w->more = w->parent->offload->agg_comm;
    return true;
}

/* Check the verdict received from rank 0: sizes are derived from its numbers, and its
 * text may lack the NUL. */
static trib_status_t check_verdict(struct trib_comm *by, struct trib_agg_verdict *v)
{
    v->why[sizeof(v->why) - 1] = 0;
    v->retry_ms = v->retry_ms > 0 ? v->retry_ms : 0;
    if (v->aggregators >= (v->status == TRIB_OK) &&
        v->aggregators <= TRIB_CONTROL_AGGREGATORS_MAX &&
        v->tree_bytes <= TRIB_CONTROL_TREE_MAX)
        return TRIB_OK;
    return trib_comm_fail(
        by, TRIB_ERR_PROTOCOL,
        "invalid message from rank 0: %d aggregators, a tree of %u bytes: do all "
        "ranks run the same version?",
        (int)v->aggregators, (unsigned)v->tree_bytes);
}

static trib_status_t open_again(void *arg, struct trib_comm **out, char *text,
                                size_t bytes)
{
    struct trib_agg_provider *w = arg;
    struct trib_comm *by = w->parent->offload->control_comm;
    struct trib_agg_verdict v = {.status = TRIB_ERR_NO_RESOURCE,
                                 .why = "no aggregator admits the job"};

    assert(!w->control_link);
    if (w->discovery) {
        w->control_link = trib_discovery_take(w->discovery, w->parent->idle);
        trib_discovery_close(w->discovery);
        w->discovery = NULL;
    }
    if (w->control_link) {
        w->control_link->job = &w->job;
        w->control_link->log = &w->parent->log;
        v = (struct trib_agg_verdict){.aggregators = w->control_link->n};
    }
    trib_status_t st = trib_comm_exchange(by, TRIB_BROADCAST, NULL, sizeof(v), &v);
    if (st == TRIB_OK)
        st = check_verdict(by, &v);
    if (st == TRIB_OK && v.status == TRIB_OK)
        v.status = trib_agg_provider_wireup(w, by, v.aggregators, v.why, out);
    st = st == TRIB_OK ? trib_status_of_peer(v.status) : st;
    snprintf(text, bytes, "%s", v.why);
    if (w->parent->engine.rank != 0)
        return st;
    if (st == TRIB_OK) {
        opened(w, text, bytes);
    } else {
        trib_control_link_free(w->control_link);
        w->control_link = NULL;
        search_later(w);
    }
    return st;
}

static void lost(void *arg)
{
    struct trib_agg_provider *w = arg;

    if (w->parent->engine.rank != 0)
        return;
    trib_control_link_free(w->control_link);
    w->control_link = NULL;
    if (w->parent->engine.failed) { /* the parent has failed: no aggregator is needed */
        trib_discovery_close(w->discovery);
        w->discovery = NULL;
        return;
    }
    if (trib_now_ns() - w->opened_ns >= LASTING_MS * UINT64_C(1000000))
        w->pause_ms = w->retry_ms;
    if (w->more)
        search(w, 0, AT_ONCE_MS);
    else
        search_later(w);
}

static void free_provider(void *arg)
{
    struct trib_agg_provider *w = arg;

    trib_discovery_close(w->discovery);
    trib_control_link_free(w->control_link);
    trib_secret_wipe(&w->secret);
    trib_secret_wipe(&w->job.secret);
    free(w);
}

/* Rank 0 asks the aggregators to admit the job and broadcasts the verdict: they sum
 * from the start, possibly later, or never. */
static trib_status_t begin(struct trib_agg_provider *w, struct trib_agg_verdict *v)
{
    struct trib_comm *comm = w->parent;
    struct trib_error err = {0};

    if (comm->engine.rank == 0) {
        struct trib_secret salt;
        v->status = trib_secret_make(&salt, &err);
        memcpy(v->salt, salt.bytes, sizeof(v->salt));
        trib_agg_provider_make_secret(w, v->salt);
        if (v->status == TRIB_OK)
            v->status = trib_agg_provider_request(w, &err);
        v->aggregators = w->control_link ? w->control_link->n : 0;
        v->retry_ms = v->status == TRIB_ERR_CONFIG ? 0 : comm->cfg.service_retry_ms;
        v->tree_bytes = w->job.tree_bytes;
        snprintf(v->why, sizeof(v->why), "%s", trib_error_text(&err));
    }
    trib_status_t st = trib_comm_exchange(comm, TRIB_BROADCAST, NULL, sizeof(*v), v);
    if (st == TRIB_OK)
        st = check_verdict(comm, v);
    if (st != TRIB_OK)
        return st;
    trib_agg_provider_make_secret(w, v->salt);
    w->retry_ms = w->pause_ms = v->retry_ms;
    w->job.tree_bytes = v->tree_bytes;
    return v->tree_bytes ? trib_comm_exchange(comm, TRIB_BROADCAST, NULL, v->tree_bytes,
                                              w->job.tree)
                         : TRIB_OK;
}

static trib_status_t attach(struct trib_agg_provider *w, struct trib_agg_verdict *v)
{
    struct trib_comm *comm = w->parent;
    struct trib_comm *agg_comm = NULL;

    const trib_status_t st = trib_offload_attach(comm);
    if (st != TRIB_OK)
        return st;
    struct trib_offload *offload = comm->offload;
    assert(offload->parent == comm && !offload->agg_comm);
    offload->provider =
        (struct trib_agg_provider_ops){.lost = lost, .free = free_provider, .arg = w};
    if (w->retry_ms)
        offload->provider.open = open_again;
    if (comm->engine.rank == 0) {
        offload->provider.check = check_aggregators;
        offload->provider.found = found;
    }
    if (v->status == TRIB_OK)
        v->status = trib_agg_provider_wireup(w, offload->control_comm, v->aggregators,
                                             v->why, &agg_comm);
    offload->agg_comm = v->status == TRIB_OK ? agg_comm : NULL;
    if (offload->agg_comm)
        w->opened_ns = trib_now_ns();
    else if (w->retry_ms)
        offload->next_poll_seq = 1;
    return comm->engine.failed;
}

trib_status_t trib_offload_join(struct trib_comm *comm)
{
    struct trib_agg_verdict v = {0};

    if (!comm->cfg.service[0])
        return TRIB_OK;
    struct trib_agg_provider *w = calloc(1, sizeof(*w));
    if (!w)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for an offload");
    w->parent = comm;
    trib_status_t st = begin(w, &v);
    if (st == TRIB_OK && (v.status == TRIB_OK || v.retry_ms))
        st = attach(w, &v);
    const bool offloads = comm->offload && comm->offload->agg_comm;
    if (st == TRIB_OK && !offloads && comm->engine.rank == 0) {
        trib_log(&comm->log, TRIB_LOG_WARN, TRIB_OFFLOAD_LOG,
                 "%s; the ranks sum without aggregators",
                 v.why[0] ? v.why : "no aggregator");
        trib_control_link_free(w->control_link);
        w->control_link = NULL;
        if (comm->offload)
            search_later(w);
    }
    if (!comm->offload)
        free_provider(w);
    else if (st == TRIB_OK && !offloads && !w->retry_ms)
        st = trib_offload_detach(comm);
    return st;
}
