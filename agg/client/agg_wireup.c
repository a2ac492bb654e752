/* SPDX-License-Identifier: BSD-3-Clause */
/* The wireup of ranks and aggregators. Rank 0 relays the aggregators' messages, since
 * other ranks have no connection to them yet. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agg/client/agg_provider.h"
#include "base/time.h"
#include "comm/core/comm_lock.h"
#include "comm/members/wireup.h"
#include "comm/plan/exchange.h"

/* The state of one wireup. */
struct wireup_job {
    struct trib_comm *parent;
    struct trib_comm *by; /* communicator for messages between ranks */
    struct trib_agg_provider *provider;
    struct trib_control_link *control_link; /* rank 0; others: NULL */
    int aggregators;
    int exchanges; /* number of completed exchanges */
    trib_status_t answered; /* rank 0: status of the last exchange with tribd */
    char why[TRIB_AGG_WHY_MAX];
};

static trib_status_t send_blobs(struct trib_session *session, uint64_t until,
                                struct trib_control_blobs b, const uint8_t *all)
{
    const uint32_t most = TRIB_CONTROL_BLOBS_BYTES / b.each;
    trib_status_t st = TRIB_OK;

    assert(most > 0);
    for (b.first = 0; b.first < b.total && st == TRIB_OK; b.first += b.count) {
        struct trib_control m = {.kind = TRIB_CONTROL_BLOBS};
        b.count = b.total - b.first < most ? b.total - b.first : most;
        b.data = (struct trib_control_bytes){all + (size_t)b.first * b.each,
                                             b.count * b.each};
        m.blobs = b;
        st = trib_session_send_wait(session, until, &m);
    }
    return st;
}

/* Rank 0: append each aggregator's message to the ranks' messages, and send all of them
 * to every aggregator. */
static trib_status_t exchange_with_aggregators(struct wireup_job *m, uint8_t *all,
                                               size_t bytes)
{
    struct trib_control_link *s = m->control_link;
    const uint32_t ranks = (uint32_t)m->parent->engine.ranks;
    const uint64_t until = trib_limit_deadline(m->parent->cfg.boot_timeout_ms);
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < s->n && st == TRIB_OK; i++) {
        struct trib_control c;
        st = trib_session_take_wait(s->sessions[i], until, &c);
        if (st == TRIB_INPROGRESS)
            st = trib_fail(&s->err, TRIB_ERR_TIMEOUT, "%s does not answer",
                           trib_agg_provider_address(s, i));
        if (st != TRIB_OK)
            break;
        if (c.kind == TRIB_CONTROL_BLOBS && c.blobs.each != bytes)
            return trib_fail(&s->err, TRIB_ERR_MISMATCH,
                             "%s runs a different build of Tributary, with messages "
                             "of %u and not %zu bytes: install the same build",
                             trib_agg_provider_address(s, i), c.blobs.each, bytes);
        if (c.kind != TRIB_CONTROL_BLOBS || c.blobs.count != 1 ||
            c.blobs.first != ranks + (uint32_t)i)
            return trib_fail(&s->err, TRIB_ERR_PROTOCOL, "%s did not send its address",
                             trib_agg_provider_address(s, i));
        memcpy(all + (ranks + (size_t)i) * bytes, c.blobs.data.at, bytes);
    }
    const struct trib_control_blobs b = {.exchange = (uint32_t)m->exchanges,
                                         .total = ranks + (uint32_t)s->n,
                                         .each = (uint32_t)bytes};
    for (int i = 0; i < s->n && st == TRIB_OK; i++)
        st = send_blobs(s->sessions[i], until, b, all);
    return st;
}

static trib_status_t wireup_with_aggregators(void *arg, const char *phase,
                                             const void *in, size_t bytes, void *out)
{
    struct wireup_job *m = arg;
    const size_t ranks = (size_t)m->parent->engine.ranks,
                 aggregators = (size_t)m->aggregators;
    uint8_t *all = out,
            *reply = calloc(1, sizeof(struct trib_agg_verdict) + aggregators * bytes);
    struct trib_agg_verdict v = {0};

    (void)phase;
    if (!reply)
        return TRIB_ERR_NO_MEMORY;
    trib_status_t st = trib_comm_exchange(m->by, TRIB_ALLGATHER, in, bytes, all);
    if (st == TRIB_OK && m->control_link) {
        /* After a failed exchange a tribd lacks its data and cannot take part in later
         * ones. */
        if (m->answered == TRIB_OK)
            m->answered = exchange_with_aggregators(m, all, bytes);
        v.status = m->answered;
        if (v.status != TRIB_OK)
            snprintf(v.why, sizeof(v.why), "%s",
                     trib_error_text(&m->control_link->err));
        memcpy(reply, &v, sizeof(v));
        memcpy(reply + sizeof(v), all + ranks * bytes, aggregators * bytes);
    }
    m->exchanges++;
    if (st == TRIB_OK)
        st = trib_comm_exchange(m->by, TRIB_BROADCAST, NULL,
                                sizeof(v) + aggregators * bytes, reply);
    memcpy(&v, reply, sizeof(v));
    memcpy(all + ranks * bytes, reply + sizeof(v), aggregators * bytes);
    free(reply);
    if (st == TRIB_OK && v.status != TRIB_OK) {
        snprintf(m->why, sizeof(m->why), "%.*s", (int)sizeof(v.why) - 1, v.why);
        st = trib_status_of_peer(v.status);
    }
    return st;
}

/* Take part in the remaining exchanges after a failure, so that no rank waits for this
 * one. */
static void take_part(struct wireup_job *m)
{
    size_t bytes;

    while ((bytes = trib_wireup_bytes(m->exchanges)) > 0) {
        const size_t n = (size_t)(m->parent->engine.ranks + m->aggregators);
        uint8_t *none = calloc(1, bytes), *all = calloc(n, bytes);
        const int before = m->exchanges;
        if (none && all)
            (void)wireup_with_aggregators(m, "stand by", none, bytes, all);
        free(none);
        free(all);
        if (m->exchanges == before || m->by->engine.failed)
            return;
    }
}

/* Check whether all ranks succeeded. If not, all ranks receive the error message of the
 * first failed rank. */
static trib_status_t agree(struct trib_comm *by, trib_status_t mine,
                           char why[TRIB_AGG_WHY_MAX])
{
    struct trib_agg_verdict v = {.status = mine},
                            *all = calloc((size_t)by->engine.ranks, sizeof(v));

    if (!all)
        return TRIB_ERR_NO_MEMORY;
    snprintf(v.why, sizeof(v.why), "%s", why);
    trib_status_t st = trib_comm_exchange(by, TRIB_ALLGATHER, &v, sizeof(v), all);
    for (int r = 0; st == TRIB_OK && r < by->engine.ranks; r++) {
        if (all[r].status == TRIB_OK)
            continue;
        st = trib_status_of_peer(all[r].status);
        snprintf(why, TRIB_AGG_WHY_MAX, "%.*s", TRIB_AGG_WHY_MAX - 1, all[r].why);
    }
    free(all);
    return st;
}

static trib_status_t announce(void *arg, uint32_t number, const char *text,
                              struct trib_error *err)
{
    struct trib_agg_provider *w = arg;
    struct trib_control_link *s = w->control_link;
    struct trib_control m = {.kind = TRIB_CONTROL_PLAN, .plan.number = number};
    trib_status_t st = TRIB_OK;

    snprintf(m.plan.text, sizeof(m.plan.text), "%s", text);
    for (int i = 0; i < s->n && st == TRIB_OK; i++)
        st = trib_session_send_wait(
            s->sessions[i], trib_limit_deadline(w->parent->cfg.stop_timeout_ms), &m);
    if (st == TRIB_OK)
        return st;
    (void)trib_fail(err, st, "%s", trib_error_text(&s->err));
    struct trib_comm *agg_comm = w->parent->offload->agg_comm;
    if (agg_comm) {
        trib_comm_lock(agg_comm);
        trib_engine_fail(&agg_comm->engine, st, trib_error_text(&s->err));
        trib_comm_unlock(agg_comm);
    }
    return st;
}

static trib_status_t open_agg_comm(struct wireup_job *m, struct trib_comm **out)
{
    const struct trib_guard guard = {.ranks = m->parent->engine.ranks};
    struct trib_agg_comm_opts opts = {.rank = m->parent->engine.rank,
                                      .ranks = m->parent->engine.ranks,
                                      .aggregators = m->aggregators,
                                      .met = m->parent->met,
                                      .guard = &guard,
                                      .idle = m->parent->idle,
                                      .secret = &m->provider->secret};
    const struct trib_control_link_job *job = &m->provider->job;
    struct trib_agg_tree *tree;
    struct trib_exchange x = {wireup_with_aggregators, m};
    struct trib_error err = {0};

    if (m->control_link)
        opts.announcer = (struct trib_announcer){announce, m->provider};
    trib_status_t st = trib_agg_tree_unpack(job->tree, job->tree_bytes, opts.ranks,
                                            opts.aggregators, &err, &tree);
    opts.tree = tree;
    if (st == TRIB_OK)
        st = trib_agg_comm_open(&m->parent->cfg, &m->parent->log, &opts, &x, &err, out);
    free(tree);
    if (st == TRIB_OK) {
        (*out)->rewinds = m->parent->rewinds;
        return st;
    }
    if (!m->why[0])
        snprintf(m->why, sizeof(m->why), "%s", trib_error_text(&err));
    take_part(m);
    return st;
}

trib_status_t trib_agg_provider_wireup(struct trib_agg_provider *w,
                                       struct trib_comm *by, int aggregators,
                                       char why[TRIB_AGG_WHY_MAX],
                                       struct trib_comm **out)
{
    struct wireup_job m = {
        .parent = w->parent, .by = by, .provider = w, .aggregators = aggregators};

    assert(aggregators > 0);
    *out = NULL;
    if (w->parent->engine.rank == 0)
        m.control_link = w->control_link;
    trib_status_t st = open_agg_comm(&m, out);
    st = agree(by, st, m.why);
    if (st != TRIB_OK && *out)
        trib_agg_comm_dispose(*out);
    snprintf(why, TRIB_AGG_WHY_MAX, "%s", m.why);
    return st;
}
