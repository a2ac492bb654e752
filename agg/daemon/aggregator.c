/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/aggregator.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agg/client/agg_tree.h"
#include "agg/daemon/job_settings.h"
#include "agg/daemon/worker.h"
#include "base/fd.h"
#include "base/time.h"
#include "base/wait.h"
#include "comm/members/wireup.h"

/* Unpack the tree of aggregators above the ranks. */
static trib_status_t load_tree(struct aggregator *agg,
                               const struct trib_control_bytes *bytes,
                               struct trib_error *err)
{
    trib_status_t st = trib_agg_tree_unpack(bytes->at, bytes->n, agg->ranks,
                                            agg->aggregators, err, &agg->tree);

    if (st != TRIB_OK)
        return st;
    agg->peers = calloc((size_t)(agg->ranks + agg->aggregators), sizeof(*agg->peers));
    agg->n_peers = agg->peers
                       ? trib_agg_tree_peers(agg->tree, agg->ranks, agg->aggregators,
                                             agg->index, agg->peers)
                       : -1;
    return agg->n_peers < 0
               ? trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory for a job")
               : TRIB_OK;
}

/* Check that the slots of all peers fit the grant of the job. */
static trib_status_t fits_grant(const struct aggregator *agg,
                                const struct trib_control_join *join,
                                struct trib_error *err)
{
    const uint64_t slots =
        (uint64_t)agg->n_peers * (uint64_t)agg->cfg.window * TRIB_LANES;
    const uint64_t bytes = slots * agg->cfg.chunk;

    if (slots > join->slots)
        return trib_fail(err, TRIB_ERR_PROTOCOL,
                         "%d peer%s with window %d %s %" PRIu64 " slots; the job "
                         "requested %" PRIu32,
                         agg->n_peers, agg->n_peers == 1 ? "" : "s", agg->cfg.window,
                         agg->n_peers == 1 ? "needs" : "need", slots, join->slots);
    if (bytes > join->bytes)
        return trib_fail(err, TRIB_ERR_PROTOCOL,
                         "%" PRIu64 " slots of %zu bytes need %" PRIu64 " bytes; the "
                         "job requested %" PRIu64,
                         slots, agg->cfg.chunk, bytes, join->bytes);
    return TRIB_OK;
}

/* Rendezvous ---------------------------------------------------------------------- */

static trib_status_t meet(void *arg, const char *phase, const void *in, size_t bytes,
                          void *out)
{
    struct aggregator *agg = arg;
    const uint32_t total = (uint32_t)(agg->ranks + agg->aggregators);
    const uint64_t until = trib_limit_deadline(agg->cfg.boot_timeout_ms);
    trib_status_t st = TRIB_OK;

    (void)phase;
    pthread_mutex_lock(&agg->mutex);
    assert(!agg->blobs); /* one exchange at a time */
    agg->each = bytes;
    agg->blobs = out;
    agg->n_given = 0;
    agg->sent = false;
    memcpy(agg->blobs + (size_t)(agg->ranks + agg->index) * bytes, in, bytes);
    aggregator_wake_server(agg);
    while (agg->n_given < total && st == TRIB_OK) {
        if (atomic_load(&agg->ending))
            st = TRIB_ERR_ABORTED;
        else if (!trib_cond_wait(&agg->met, &agg->mutex, until))
            st = TRIB_ERR_TIMEOUT;
    }
    agg->blobs = NULL;
    agg->exchange++;
    pthread_mutex_unlock(&agg->mutex);
    return st;
}

bool aggregator_get_blob(struct aggregator *agg, struct trib_control *out,
                         uint8_t *blob, size_t bytes)
{
    pthread_mutex_lock(&agg->mutex);
    const bool has = agg->blobs && !agg->sent && agg->each <= bytes;
    if (has) {
        const uint32_t own = (uint32_t)(agg->ranks + agg->index);
        memcpy(blob, agg->blobs + (size_t)own * agg->each, agg->each);
        *out = (struct trib_control){
            .kind = TRIB_CONTROL_BLOBS,
            .blobs = {.exchange = agg->exchange,
                      .total = (uint32_t)(agg->ranks + agg->aggregators),
                      .first = own,
                      .count = 1,
                      .each = (uint32_t)agg->each,
                      .data = {blob, (uint32_t)agg->each}}};
        agg->sent = true;
    }
    pthread_mutex_unlock(&agg->mutex);
    return has;
}

bool aggregator_put_blobs(struct aggregator *agg, const struct trib_control_blobs *b)
{
    const uint32_t total = (uint32_t)(agg->ranks + agg->aggregators);

    pthread_mutex_lock(&agg->mutex);
    const bool fits = agg->blobs && agg->sent && b->exchange == agg->exchange &&
                      b->total == total && b->each == agg->each &&
                      b->first == agg->n_given && b->count <= total - b->first;
    if (fits) {
        memcpy(agg->blobs + (size_t)b->first * agg->each, b->data.at, b->data.n);
        agg->n_given += b->count;
        assert(agg->n_given <= total);
        if (agg->n_given == total)
            pthread_cond_signal(&agg->met);
    }
    pthread_mutex_unlock(&agg->mutex);
    return fits;
}

/* Connect to all peers now, so that a worker never waits for an unresponsive peer. */
static trib_status_t connect_peers(struct aggregator *agg, struct trib_error *err)
{
    struct trib_engine *e = &agg->comm->engine;
    trib_status_t st = TRIB_OK;

    assert(agg->peers && e->size == agg->ranks + agg->aggregators);
    trib_engine_connect_many(e, agg->peers, e->size);
    for (int r = 0; r < e->size && st == TRIB_OK && !atomic_load(&agg->ending); r++)
        if (agg->peers[r])
            st = trib_engine_connect(e, r, "its service");
    if (st != TRIB_OK)
        (void)trib_fail(err, st, "%s",
                        e->failed ? trib_error_text(&e->failure)
                                  : trib_error_text(e->err));
    return st;
}

static void *meet_ranks(void *arg)
{
    struct aggregator *agg = arg;
    const struct trib_guard guard = {.serves = true,
                                     .ranks = agg->ranks,
                                     .transports = agg->transports,
                                     .user = agg->user};
    struct trib_agg_comm_opts opts = {.rank = agg->ranks + agg->index,
                                      .ranks = agg->ranks,
                                      .aggregators = agg->aggregators,
                                      .tree = agg->tree,
                                      .memory = agg->plan_memory,
                                      .quota = agg->quota,
                                      .guard = &guard,
                                      .secret = &agg->secret};
    struct trib_exchange x = {meet, agg};
    struct trib_error err = {0};

    trib_thread_give_way(); /* low priority: it may take long */
    trib_status_t st =
        trib_agg_comm_open(&agg->cfg, &agg->log, &opts, &x, &err, &agg->comm);
    if (st == TRIB_OK)
        st = connect_peers(agg, &err);
    if (st == TRIB_OK && !atomic_load(&agg->ending)) {
        struct trib_transport *t = agg->comm->engine.transport;
        agg->descriptor = t->ops->event_fd(t);
        agg->comm->engine.notifies_later = true; /* the worker has others to step */
        aggregator_metrics_wired(agg->metrics, &agg->comm->engine);
        aggregator_set_state(agg, AGGREGATOR_RUNS);
        worker_add(agg->worker, agg);
        return NULL;
    }
    snprintf(agg->why, sizeof(agg->why), "%.390s",
             err.status ? trib_error_text(&err) : "the job has disconnected");
    if (agg->comm)
        trib_agg_comm_dispose(agg->comm);
    agg->comm = NULL;
    aggregator_set_state(agg, AGGREGATOR_GONE);
    return NULL;
}

/* Life ----------------------------------------------------------------------------- */

trib_status_t aggregator_open(const struct aggregator_opts *opts,
                              struct trib_error *err, struct aggregator **out)
{
    const struct trib_control_join *join = opts->join;
    struct aggregator *agg = calloc(1, sizeof(*agg));
    pthread_t thread;

    assert(join && opts->worker && opts->log);
    *out = NULL;
    if (!agg)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory for a job");
    agg->log = *opts->log;
    agg->worker = opts->worker;
    worker_reserve(agg->worker);
    agg->wake_fd = opts->wake_fd;
    agg->plan_memory = opts->plan_memory;
    agg->quota = opts->quota;
    agg->user = opts->user ? (int64_t)*opts->user : TRIB_GUARD_ANYBODY;
    snprintf(agg->transports, sizeof(agg->transports), "%s",
             job_settings_transports(opts->transports));
    agg->ranks = (int)join->ranks;
    agg->aggregators = (int)join->aggregators;
    agg->index = (int)join->aggregator;
    pthread_mutex_init(&agg->mutex, NULL);
    trib_cond_init(&agg->met);
    atomic_init(&agg->weight, TRIB_DRR_WEIGHT_ONE);
    trib_drr_set_weight(&agg->share, TRIB_DRR_WEIGHT_ONE);
    trib_status_t st = job_settings_load(agg, join->settings, err);
    if (st == TRIB_OK)
        job_settings_bind_to(agg, opts->net);
    if (st == TRIB_OK)
        st = load_tree(agg, &join->tree, err);
    if (st == TRIB_OK)
        st = fits_grant(agg, join, err);
    if (st == TRIB_OK) {
        errno = trib_thread_start(&thread, meet_ranks, agg);
        if (errno)
            st = trib_fail(err, TRIB_ERR_SYSTEM, "cannot start a thread: %m");
    }
    if (st != TRIB_OK) {
        aggregator_free(agg);
        return st;
    }
    pthread_detach(thread);
    *out = agg;
    return TRIB_OK;
}

void aggregator_count(struct aggregator *agg, struct trib_metrics *metrics, uint64_t id)
{
    assert(!agg->metrics && agg->peers);
    agg->metrics = aggregator_metrics_open(metrics, id, agg->ranks, agg->peers);
}

void aggregator_set_weight(struct aggregator *agg, uint32_t weight)
{
    if (weight)
        atomic_store(&agg->weight, weight);
}

void aggregator_free(struct aggregator *agg)
{
    assert(!agg->comm); /* GONE, or never opened */
    aggregator_metrics_close(agg->metrics);
    worker_release(agg->worker);
    while (agg->first) {
        struct plan_announcement *a = agg->first;
        agg->first = a->next;
        free(a);
    }
    pthread_cond_destroy(&agg->met);
    pthread_mutex_destroy(&agg->mutex);
    trib_secret_wipe(&agg->secret);
    free(agg->tree);
    free(agg->peers);
    free(agg);
}

trib_status_t aggregator_announce(struct aggregator *agg, uint32_t number,
                                  const char *text)
{
    const int state = atomic_load(&agg->state);

    /* Ignore the plan: the job will be notified soon. */
    if (state == AGGREGATOR_FAILED || state == AGGREGATOR_GONE)
        return agg->vain++ < AGGREGATOR_PLANS_WAITING_MAX ? TRIB_OK
                                                          : TRIB_ERR_NO_RESOURCE;
    struct plan_announcement *a = malloc(sizeof(*a) + strlen(text) + 1);
    if (!a)
        return TRIB_ERR_NO_MEMORY;
    a->next = NULL;
    a->number = number;
    memcpy(a->text, text, strlen(text) + 1);
    pthread_mutex_lock(&agg->mutex);
    const bool fits = atomic_load(&agg->n_announced) < AGGREGATOR_PLANS_WAITING_MAX;
    if (fits) {
        *(agg->last ? &agg->last->next : &agg->first) = a;
        agg->last = a;
        agg->behind |= atomic_fetch_add(&agg->n_announced, 1) + 1 >= AGGREGATOR_BEHIND;
    }
    pthread_mutex_unlock(&agg->mutex);
    if (!fits) {
        free(a);
        return TRIB_ERR_NO_RESOURCE;
    }
    worker_wake(agg->worker);
    return TRIB_OK;
}

bool aggregator_is_behind(struct aggregator *agg)
{
    if (atomic_load(&agg->state) != AGGREGATOR_RUNS)
        return false; /* the aggregator may wait for this very message */
    pthread_mutex_lock(&agg->mutex);
    const bool behind = agg->behind;
    pthread_mutex_unlock(&agg->mutex);
    return behind;
}

void aggregator_end(struct aggregator *agg, const char *say)
{
    pthread_mutex_lock(&agg->mutex);
    if (say)
        snprintf(agg->notice, sizeof(agg->notice), "%s", say);
    atomic_store(&agg->ending, true);
    pthread_cond_signal(&agg->met);
    pthread_mutex_unlock(&agg->mutex);
    worker_wake(agg->worker);
}

void aggregator_drain(struct aggregator *agg)
{
    atomic_store(&agg->draining, true);
    worker_wake(agg->worker);
}
