/* SPDX-License-Identifier: BSD-3-Clause */
#include "tribd/node.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "base/token_bucket.h"
#include "base/time.h"
#include "base/wait.h"
#include "offload/agg_tree.h"
#include "transport/transport.h"
#include "tribd/worker.h"

/* A stopped peer is lost after so long, unless TRIB_STOP_TIMEOUT_MS says otherwise:
 * what it has here shall be free in 5 s, also on a busy machine, which sees late that
 * it is stopped. */
enum { STOP_MS = 2000 };

/* Announcements that wait for the lane: behind so many no more are read until few are
 * left. */
enum { BEHIND = 64, CAUGHT_UP = 16 };

/* Plans made or freed: so many at once, and one more each so often. */
enum { PLANS_AT_ONCE = NODE_WAITING_MAX, PLAN_NS = 500000 };

static void wake_server(int fd)
{
    const uint64_t one = 1;

    (void)!write(fd, &one, sizeof(one));
}

/* Once it is GONE the server may free it, and end: nothing of either is used behind the
 * store. Without a descriptor to spare the server sees it at its next tick. */
static void set_state(struct node *n, enum node_state state)
{
    const int fd = fcntl(n->wake_fd, F_DUPFD_CLOEXEC, 3);

    atomic_store(&n->state, state);
    if (fd < 0)
        return;
    wake_server(fd);
    close(fd);
}

/* Settings of strangers ------------------------------------------------------------ */

/* Names of backends alone: decorators and parameters are for tests and for one's own
 * ranks. And of backends those that bear a hostile peer, or for which the operator
 * answers. */
static trib_status_t check_transport(const char *text, size_t len,
                                     const char *transports, struct trib_error *err)
{
    char name[32];
    bool plain = len > 0;

    for (size_t i = 0; i < len; i++)
        plain &= (text[i] >= 'a' && text[i] <= 'z') || text[i] == '_';
    if (!plain)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "transport %.*s has decorators or parameters, which a service "
                         "does not take from a job",
                         (int)(len < 60 ? len : 60), text);
    snprintf(name, sizeof(name), "%.*s", (int)len, text);
    if (len < sizeof(name) && trib_guard_lists(transports, name))
        return TRIB_OK;
    return trib_fail(
        err, TRIB_ERR_CONFIG,
        "transport %s is not taken from a job: the setting transports of this tribd "
        "has %s",
        name, transports);
}

static const char *usual(const char *transports)
{
    return transports ? transports : NODE_TRANSPORTS;
}

/* A transport that jobs may have, be it one that this build is without. */
static bool known(const char *name)
{
    const struct trib_transport_ops *ops = trib_transport_find(name);

    return trib_text_is_auto(name) || (ops && trib_transport_links(ops)) ||
           trib_transport_absent(name);
}

bool node_transports(const char *list, struct trib_error *err)
{
    char copy[sizeof(((struct node *)0)->transports)], *rest;

    if (strlen(list) >= sizeof(copy) || !list[strspn(list, ", ")])
        return trib_fail(
                   err, TRIB_ERR_CONFIG,
                   "transports is %s: no job could use this service; the usual is %s",
                   list[0] ? "too long, or commas alone" : "empty",
                   NODE_TRANSPORTS) == TRIB_OK;
    snprintf(copy, sizeof(copy), "%s", list);
    for (char *name = strtok_r(copy, ", ", &rest); name;
         name = strtok_r(NULL, ", ", &rest)) {
        if (!known(name))
            return trib_fail(
                       err, TRIB_ERR_CONFIG,
                       "transports: %s is none that jobs may have; there are auto, "
                       "shm, tcp, verbs and ucx",
                       name) == TRIB_OK;
    }
    return true;
}

/* Where this process has a transport of its own, that of the job's settings is not
 * used. */
bool node_takes(const char *settings, const char *transports, struct trib_error *err)
{
    const char *own = trib_config_environment("TRIB_TRANSPORT");

    if (own && own[0] && !trib_text_is_auto(own))
        return true;
    for (; *settings; settings += strspn(settings, " ")) {
        const size_t len = strcspn(settings, " ");
        if (strncmp(settings, "transport=", 10) == 0 &&
            check_transport(settings + 10, len - 10, usual(transports), err) != TRIB_OK)
            return false;
        settings += len;
    }
    return true;
}

/* Is the word "name=…" of what ranks must agree on, and one setting alone? */
static bool takes_setting(const char *word, size_t len)
{
    const char *equals = memchr(word, '=', len);

    return equals && !memchr(word, ';', len) &&
           trib_config_is_same(word, (size_t)(equals - word));
}

/* "key=SECRET " in front of the settings: by which ranks and nodes know each other. */
static trib_status_t load_secret(struct node *n, const char **text,
                                 struct trib_error *err)
{
    const size_t digits = TRIB_SECRET_TEXT - 1;
    char why[160];

    if (strncmp(*text, "key=", 4) != 0)
        return TRIB_OK;
    if (strcspn(*text + 4, " ") != digits ||
        !trib_secret_parse(*text + 4, digits, &n->secret))
        return trib_fail(err, TRIB_ERR_PROTOCOL, "the job's key is no secret");
    if (!trib_secret_arm(&n->secret, why, sizeof(why)))
        return trib_fail(
            err, TRIB_ERR_CONFIG,
            "the job's ranks prove that they have its secret, which this service "
            "cannot: %s; install libsodium23",
            why);
    *text += 4 + digits;
    *text += strspn(*text, " ");
    return TRIB_OK;
}

/*
 * "transport=tcp algorithm=auto codec=…": the ranks' transport where this service has
 * none of its own, and what ranks must agree on. Other settings are this service's own.
 */
static trib_status_t load_settings(struct node *n, const char *text,
                                   struct trib_error *err)
{
    char list[TRIB_CONTROL_SETTINGS_MAX + 64], own[TRIB_CONFIG_TEXT_BYTES];
    size_t at = 0;

    trib_status_t st = load_secret(n, &text, err);
    if (st == TRIB_OK)
        st = trib_config_load(&n->cfg, NULL, &n->log, err);
    if (st != TRIB_OK)
        return st;
    snprintf(own, sizeof(own), "%s", n->cfg.transport);
    if (!node_takes(text, n->transports, err))
        return TRIB_ERR_CONFIG;
    while (*text) {
        const size_t len = strcspn(text, " ");
        const bool transport = strncmp(text, "transport=", 10) == 0;
        if (len && !transport && !takes_setting(text, len))
            return trib_fail(err, TRIB_ERR_CONFIG,
                             "\"%.*s\" is no setting that a service takes from a job",
                             (int)(len < 60 ? len : 60), text);
        if (len && at + len + 2 < sizeof(list) &&
            !(transport && !trib_text_is_auto(own)) &&
            strncmp(text, "service=", 8) != 0) {
            memcpy(list + at, text, len);
            at += len;
            list[at++] = ';';
        }
        text += len + strspn(text + len, " ");
    }
    list[at] = 0;
    st = trib_config_load(&n->cfg, list, &n->log, err);
    /* Slots are counted by it: a job that does not name it has what this service would
     * take, and the ranks' meeting makes no larger ones of that, as it may where nobody
     * has asked for any. */
    n->cfg.origin[TRIB_CONFIG_ROW_chunk] = TRIB_ORIGIN_API;
    if (n->cfg.origin[TRIB_CONFIG_ROW_stop_timeout_ms] == TRIB_ORIGIN_DEFAULT)
        n->cfg.stop_timeout_ms = STOP_MS;
    return st;
}

/* Data ports are where `listen` is, unless TRIB_TRANSPORT of this service says
 * where. */
static void keep_to(struct node *n, const char *net)
{
    char text[TRIB_CONFIG_TEXT_BYTES], name[32], *transport = n->cfg.transport;
    const size_t len = strcspn(transport, ":");

    snprintf(name, sizeof(name), "%.*s", (int)len, transport);
    const struct trib_transport_ops *ops = trib_transport_find(name);
    if (!net || !net[0] || !ops || !ops->nets || strchr(transport, '+') ||
        strstr(transport, "net="))
        return;
    if (snprintf(text, sizeof(text), "%s%snet=%s", transport,
                 transport[len] ? "," : ":", net) < (int)sizeof(text))
        memcpy(transport, text, sizeof(text));
}

/* Where it stands above the ranks. */
static trib_status_t load_tree(struct node *n, const struct trib_control_bytes *bytes,
                               struct trib_error *err)
{
    trib_status_t st =
        trib_agg_tree_unpack(bytes->at, bytes->n, n->ranks, n->services, err, &n->tree);

    if (st != TRIB_OK)
        return st;
    n->peers = calloc((size_t)(n->ranks + n->services), sizeof(*n->peers));
    n->n_peers = n->peers ? trib_agg_tree_peers(n->tree, n->ranks, n->services,
                                                n->index, n->peers)
                          : -1;
    return n->n_peers < 0 ? trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a job")
                          : TRIB_OK;
}

/* What it was admitted with bounds what its settings may take: the slots of all its
 * peers. */
static trib_status_t fits_grant(const struct node *n,
                                const struct trib_control_join *join,
                                struct trib_error *err)
{
    const uint64_t slots = (uint64_t)n->n_peers * (uint64_t)n->cfg.window * TRIB_LANES;
    const uint64_t bytes = slots * n->cfg.chunk;

    if (slots > join->slots)
        return trib_fail(err, TRIB_ERR_PROTOCOL,
                         "%d peer%s with window %d %s %" PRIu64
                         " slots; the job asked for "
                         "%" PRIu32,
                         n->n_peers, n->n_peers == 1 ? "" : "s", n->cfg.window,
                         n->n_peers == 1 ? "needs" : "need", slots, join->slots);
    if (bytes > join->bytes)
        return trib_fail(err, TRIB_ERR_PROTOCOL,
                         "%" PRIu64 " slots of %zu bytes need %" PRIu64
                         " bytes; the job asked "
                         "for %" PRIu64,
                         slots, n->cfg.chunk, bytes, join->bytes);
    return TRIB_OK;
}

/* Meeting -------------------------------------------------------------------------- */

static trib_status_t meet(void *arg, const char *phase, const void *in, size_t bytes,
                          void *out)
{
    struct node *n = arg;
    const uint32_t total = (uint32_t)(n->ranks + n->services);
    const uint64_t until = trib_deadline_ms(n->cfg.boot_timeout_ms);
    trib_status_t st = TRIB_OK;

    (void)phase;
    pthread_mutex_lock(&n->mutex);
    n->each = bytes;
    n->blobs = out;
    n->n_given = 0;
    n->sent = false;
    memcpy(n->blobs + (size_t)(n->ranks + n->index) * bytes, in, bytes);
    wake_server(n->wake_fd);
    while (n->n_given < total && st == TRIB_OK) {
        if (atomic_load(&n->ending))
            st = TRIB_ERR_ABORTED;
        else if (!trib_cond_wait(&n->met, &n->mutex, until))
            st = TRIB_ERR_TIMEOUT;
    }
    n->blobs = NULL;
    n->exchange++;
    pthread_mutex_unlock(&n->mutex);
    return st;
}

bool node_sent(struct node *n, struct trib_control *out, uint8_t *room, size_t bytes)
{
    pthread_mutex_lock(&n->mutex);
    const bool has = n->blobs && !n->sent && n->each <= bytes;
    if (has) {
        const uint32_t own = (uint32_t)(n->ranks + n->index);
        memcpy(room, n->blobs + (size_t)own * n->each, n->each);
        *out = (struct trib_control){
            .kind = TRIB_CONTROL_BLOBS,
            .blobs = {.exchange = n->exchange,
                      .total = (uint32_t)(n->ranks + n->services),
                      .first = own,
                      .count = 1,
                      .each = (uint32_t)n->each,
                      .data = {room, (uint32_t)n->each}}};
        n->sent = true;
    }
    pthread_mutex_unlock(&n->mutex);
    return has;
}

bool node_give(struct node *n, const struct trib_control_blobs *b)
{
    const uint32_t total = (uint32_t)(n->ranks + n->services);

    pthread_mutex_lock(&n->mutex);
    const bool fits = n->blobs && n->sent && b->exchange == n->exchange &&
                      b->total == total && b->each == n->each &&
                      b->first == n->n_given && b->count <= total - b->first;
    if (fits) {
        memcpy(n->blobs + (size_t)b->first * n->each, b->data.at, b->data.n);
        n->n_given += b->count;
        if (n->n_given == total)
            pthread_cond_signal(&n->met);
    }
    pthread_mutex_unlock(&n->mutex);
    return fits;
}

/* Links to all peers now: a lane must not wait for one that does not answer. */
static trib_status_t connect_peers(struct node *n, struct trib_error *err)
{
    struct trib_engine *e = &n->channel->engine;
    trib_status_t st = TRIB_OK;

    for (int r = 0; r < e->size && st == TRIB_OK && !atomic_load(&n->ending); r++)
        if (n->peers[r])
            st = trib_engine_connect(e, r, "its service");
    if (st != TRIB_OK)
        (void)trib_fail(err, st, "%s",
                        e->failed ? trib_error_text(&e->failure)
                                  : trib_error_text(e->err));
    return st;
}

static void *meet_ranks(void *arg)
{
    struct node *n = arg;
    const struct trib_guard guard = {.serves = true,
                                     .ranks = n->ranks,
                                     .transports = n->transports,
                                     .user = n->user};
    struct trib_agg_comm_opts opts = {.rank = n->ranks + n->index,
                                      .ranks = n->ranks,
                                      .aggregators = n->services,
                                      .tree = n->tree,
                                      .memory = n->plan_memory,
                                      .ledger = n->ledger,
                                      .guard = &guard,
                                      .secret = &n->secret};
    struct trib_exchange x = {meet, n};
    struct trib_error err = {0};

    trib_thread_give_way(); /* some jobs have ten thousands of ranks, and lanes are at
                             * work */
    trib_status_t st =
        trib_agg_comm_open(&n->cfg, &n->log, &opts, &x, &err, &n->channel);
    if (st == TRIB_OK)
        st = connect_peers(n, &err);
    if (st == TRIB_OK && !atomic_load(&n->ending)) {
        struct trib_transport *t = n->channel->engine.transport;
        n->descriptor = t->ops->event_fd(t);
        n->channel->engine.tells_later = true; /* its lane has others to step */
        watch_met(n->watch, &n->channel->engine);
        set_state(n, NODE_SERVES);
        lane_add(n->lane, n);
        return NULL;
    }
    snprintf(n->why, sizeof(n->why), "%.390s",
             err.status ? trib_error_text(&err) : "the job has left");
    if (n->channel)
        trib_agg_comm_dispose(n->channel);
    n->channel = NULL;
    set_state(n, NODE_GONE);
    return NULL;
}

/* Life ----------------------------------------------------------------------------- */

trib_status_t node_open(const struct node_opts *opts, struct trib_error *err,
                        struct node **out)
{
    const struct trib_control_join *join = opts->join;
    struct node *n = calloc(1, sizeof(*n));
    pthread_t thread;

    *out = NULL;
    if (!n)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a job");
    n->log = *opts->log;
    n->lane = opts->lane;
    lane_expect(n->lane);
    n->wake_fd = opts->wake_fd;
    n->plan_memory = opts->plan_memory;
    n->ledger = opts->ledger;
    n->user = opts->user ? (int64_t)*opts->user : TRIB_GUARD_ANYBODY;
    snprintf(n->transports, sizeof(n->transports), "%s", usual(opts->transports));
    n->ranks = (int)join->ranks;
    n->services = (int)join->nodes;
    n->index = (int)join->node;
    pthread_mutex_init(&n->mutex, NULL);
    trib_cond_init(&n->met);
    atomic_init(&n->weight, TRIB_TURNS_WEIGHT_ONE);
    trib_turns_weigh(&n->share, TRIB_TURNS_WEIGHT_ONE);
    trib_status_t st = load_settings(n, join->settings, err);
    if (st == TRIB_OK)
        keep_to(n, opts->net);
    if (st == TRIB_OK)
        st = load_tree(n, &join->tree, err);
    if (st == TRIB_OK)
        st = fits_grant(n, join, err);
    if (st == TRIB_OK) {
        errno = trib_thread_start(&thread, meet_ranks, n);
        if (errno)
            st = trib_fail(err, TRIB_ERR_SYSTEM, "cannot start a thread: %m");
    }
    if (st != TRIB_OK) {
        node_free(n);
        return st;
    }
    pthread_detach(thread);
    *out = n;
    return TRIB_OK;
}

void node_watch(struct node *n, struct trib_metrics *metrics, uint64_t id)
{
    n->watch = watch_open(metrics, id, n->ranks, n->peers);
}

void node_weigh(struct node *n, uint32_t weight)
{
    if (weight)
        atomic_store(&n->weight, weight);
}

void node_free(struct node *n)
{
    watch_close(n->watch);
    lane_forget(n->lane);
    while (n->first) {
        struct node_announcement *a = n->first;
        n->first = a->next;
        free(a);
    }
    pthread_cond_destroy(&n->met);
    pthread_mutex_destroy(&n->mutex);
    trib_secret_wipe(&n->secret);
    free(n->tree);
    free(n->peers);
    free(n);
}

trib_status_t node_announce(struct node *n, uint32_t number, const char *text)
{
    const int state = atomic_load(&n->state);

    if (state == NODE_FAILED || state == NODE_GONE) /* its job hears of that soon */
        return n->vain++ < NODE_WAITING_MAX ? TRIB_OK : TRIB_ERR_NO_RESOURCE;
    struct node_announcement *a = malloc(sizeof(*a) + strlen(text) + 1);
    if (!a)
        return TRIB_ERR_NO_MEMORY;
    a->next = NULL;
    a->number = number;
    memcpy(a->text, text, strlen(text) + 1);
    pthread_mutex_lock(&n->mutex);
    const bool fits = atomic_load(&n->n_announced) < NODE_WAITING_MAX;
    if (fits) {
        *(n->last ? &n->last->next : &n->first) = a;
        n->last = a;
        n->behind |= atomic_fetch_add(&n->n_announced, 1) + 1 >= BEHIND;
    }
    pthread_mutex_unlock(&n->mutex);
    if (!fits) {
        free(a);
        return TRIB_ERR_NO_RESOURCE;
    }
    lane_wake(n->lane);
    return TRIB_OK;
}

bool node_is_behind(struct node *n)
{
    if (atomic_load(&n->state) != NODE_SERVES)
        return false; /* what it is told now may be what it waits for */
    pthread_mutex_lock(&n->mutex);
    const bool behind = n->behind;
    pthread_mutex_unlock(&n->mutex);
    return behind;
}

void node_end(struct node *n, const char *say)
{
    pthread_mutex_lock(&n->mutex);
    if (say)
        snprintf(n->told, sizeof(n->told), "%s", say);
    atomic_store(&n->ending, true);
    pthread_cond_signal(&n->met);
    pthread_mutex_unlock(&n->mutex);
    lane_wake(n->lane);
}

void node_drain(struct node *n)
{
    atomic_store(&n->draining, true);
    lane_wake(n->lane);
}

/* On its lane ---------------------------------------------------------------------- */

static struct node_announcement *take_announcement(struct node *n)
{
    struct node_announcement *a = NULL;
    bool caught_up = false;

    if (pthread_mutex_trylock(&n->mutex) != 0)
        return NULL;
    if (n->first) {
        a = n->first;
        n->first = a->next;
        if (!n->first)
            n->last = NULL;
        caught_up = atomic_fetch_sub(&n->n_announced, 1) - 1 <= CAUGHT_UP && n->behind;
        n->behind &= !caught_up;
    }
    pthread_mutex_unlock(&n->mutex);
    if (caught_up)
        wake_server(n->wake_fd);
    return a;
}

/* A job has its plans at once, and then some each second: to make them takes the time
 * of others. */
static bool may_take(struct node *n)
{
    return trib_pace_take(&n->plans_paid, trib_now_ns(), PLAN_NS, PLANS_AT_ONCE);
}

/* One: the lane counts them, and others have their turns. */
static bool take_plan(struct node *n)
{
    struct node_announcement *a = NULL;

    if (atomic_load_explicit(&n->n_announced, memory_order_relaxed) && may_take(n))
        a = take_announcement(n);
    if (!a)
        return false;
    n->plans_taken++;
    const trib_status_t st = trib_agg_comm_take_plan(n->channel, a->number, a->text);
    if (st != TRIB_OK) {
        char why[400];
        snprintf(why, sizeof(why), "a service refuses plan %u: %.300s", a->number,
                 trib_last_error(n->channel));
        trib_engine_fail(&n->channel->engine, st, why);
    }
    free(a);
    return true;
}

bool node_step(struct node *n)
{
    struct trib_engine *e = &n->channel->engine;

    if (e->failed)
        return false;
    bool moved = take_plan(n);
    if (!e->failed) {
        watch_before(n->watch, e);
        moved |= trib_agg_comm_step(n->channel);
        watch_after(n->watch, e);
    }
    if (!e->failed)
        return moved;
    snprintf(n->why, sizeof(n->why), "%.390s", trib_error_text(&e->failure));
    set_state(n, NODE_FAILED);
    return true;
}

/* To all ranks: of what rank 0 hears on its control connection the others hear
 * nothing. */
static void tell_ranks(struct node *n, const char *why)
{
    struct trib_engine *e = &n->channel->engine;
    char text[400];

    snprintf(text, sizeof(text), "the service on host %.64s: %.300s",
             e->peers[e->rank].host, why);
    trib_engine_fail(e, TRIB_ERR_ABORTED, text);
}

void node_dispose(struct node *n)
{
    char told[sizeof(n->told)];

    pthread_mutex_lock(&n->mutex);
    memcpy(told, n->told, sizeof(told));
    pthread_mutex_unlock(&n->mutex);
    if (!n->why[0] && (told[0] || !atomic_load(&n->ending)))
        snprintf(n->why, sizeof(n->why), "%s",
                 told[0] ? told : "this service was told to end");
    if (n->why[0] && (told[0] || atomic_load(&n->draining)))
        tell_ranks(n, n->why);
    if (n->channel->engine.failed)
        trib_engine_tell_failure(&n->channel->engine);
    n->channel->engine.tells_later = false;
    trib_agg_comm_dispose(n->channel);
    n->channel = NULL;
    set_state(n, NODE_GONE);
}
