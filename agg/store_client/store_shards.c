/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <string.h>

#include "agg/store_client/rank_store.h"
#include "base/minmax.h"
#include "base/time.h"

enum {
    REJOIN_MS = 2000, /* to rejoin lost shards when the store is freed */
    /* Pauses until tribd has read that the ranks of an earlier run left, or has freed
     * its place, in all tribds. The other ranks wait for this one, so at most that part
     * of their time limit. */
    LEAVING_MS = 2000,
    LEAVING_PART = 4,
    LEAVING_PAUSE_MS = 20, /* doubles, because requests of a user are limited */
    LEAVING_PAUSE_MAX = 320,
};

static int silent_ms(const struct trib_store *store)
{
    return trib_control_link_silent_ms(store->link);
}

bool trib_store_shard_is_lost(const struct trib_store *store, int shard)
{
    return !trib_session_ready(store->link->sessions[shard]);
}

trib_status_t trib_store_lost(struct trib_store *store, int shard, trib_status_t st)
{
    if (trib_idle_answer(&store->idle))
        return trib_store_fail(store, TRIB_ERR_ABORTED,
                               "the program's idle function aborted waiting for tribd "
                               "at %s",
                               store->job.addresses[shard]);
    return trib_store_fail(store, st, "%s", trib_error_text(&store->link->err));
}

trib_status_t trib_store_send(struct trib_store *store, int shard,
                              const struct trib_control *m)
{
    struct trib_session *session = store->link->sessions[shard];

    assert(shard >= 0 && shard < store->link->n);
    const trib_status_t st =
        trib_session_send_wait(session, trib_limit_deadline(silent_ms(store)), m);
    return st == TRIB_OK ? st : trib_store_lost(store, shard, st);
}

trib_status_t trib_store_sort(struct trib_store *store, int shard,
                              enum trib_control_kind kind, enum trib_control_kind other,
                              const struct trib_control *m)
{
    struct trib_session *session = store->link->sessions[shard];

    if (m->kind == kind || m->kind == other)
        return TRIB_OK;
    if (m->kind == TRIB_CONTROL_STORE_REFUSED)
        return trib_store_fail(store,
                               trib_status_of_peer(-(int64_t)m->store_refused.status),
                               "tribd at %s refused: %s", store->job.addresses[shard],
                               m->store_refused.text);
    if (m->kind != TRIB_CONTROL_DRAIN) {
        const trib_status_t st =
            trib_session_end(session, TRIB_ERR_PROTOCOL, "unexpected message %s",
                             trib_control_name(m->kind));
        return trib_store_lost(store, shard, st);
    }
    trib_log(&store->log, TRIB_LOG_WARN, "store",
             "tribd at %s will exit, and its vectors will be lost, except for "
             "snapshots, if enabled: pull the vectors that you need",
             store->job.addresses[shard]);
    return TRIB_INPROGRESS;
}

/* Wait for a message, at most until other tribds must receive ALIVE. */
static trib_status_t take(struct trib_store *store, int shard, uint64_t until,
                          struct trib_control *out)
{
    const uint64_t alive = trib_deadline_ms(TRIB_SESSION_ALIVE_MS);
    const trib_status_t st = trib_session_take_wait(store->link->sessions[shard],
                                                    until < alive ? until : alive, out);

    trib_store_keep_alive(store);
    return st;
}

/* Like trib_store_hear, but with a time limit of `limit_ms`; 0 means no limit. */
static trib_status_t hear(struct trib_store *store, int shard,
                          enum trib_control_kind kind, int limit_ms,
                          struct trib_control *out)
{
    const uint64_t until = trib_limit_deadline(limit_ms);
    trib_status_t st;

    do {
        st = take(store, shard, until, out);
        if (st != TRIB_OK)
            continue;
        st = trib_store_sort(store, shard, kind, kind, out);
        if (st != TRIB_INPROGRESS)
            return st;
    } while (st == TRIB_INPROGRESS && !trib_deadline_passed(until) &&
             !trib_idle_answer(&store->idle));
    if (st == TRIB_INPROGRESS)
        st = trib_session_end(store->link->sessions[shard], TRIB_ERR_TIMEOUT,
                              "no answer within %d ms", limit_ms);
    return trib_store_lost(store, shard, st);
}

trib_status_t trib_store_hear(struct trib_store *store, int shard,
                              enum trib_control_kind kind, struct trib_control *out)
{
    return hear(store, shard, kind, store->job.cfg.timeout_ms, out);
}

/* Join the store over an authenticated session. Several addresses may belong to one
 * tribd, so each uses its own token. tribd may delay the first join. The other ranks
 * wait for it meanwhile, so it has half of their time limit. */
static trib_status_t join(struct trib_store *store, int shard, bool again)
{
    struct trib_session *session = store->link->sessions[shard];
    const int limit_ms = store->job.cfg.timeout_ms;
    struct trib_control m = {.kind = TRIB_CONTROL_STORE_JOIN,
                             .store_join = {.ranks = (uint32_t)store->ranks,
                                            .rank = (uint32_t)store->rank,
                                            .again = again,
                                            .lasting = store->lasting,
                                            .every_pushes = store->every_pushes,
                                            .every_ms = store->every_ms}};

    if (store->job.cfg.seal && !trib_session_is_sealed(session))
        return trib_store_fail(store, TRIB_ERR_UNSUPPORTED,
                               "%s: auth none would send the vectors of a store to "
                               "tribd unencrypted, in spite of TRIB_SEAL=1: use auth "
                               "key or munge (for tribd and TRIB_SERVICE_AUTH)",
                               store->job.addresses[shard]);
    memcpy(m.store_join.token, store->token, sizeof(store->token));
    memcpy(m.store_join.owner, store->owner, sizeof(store->owner));
    m.store_join.token[0] ^= (uint8_t)shard;
    m.store_join.owner[0] ^= (uint8_t)shard;
    for (int i = 0; i < 4; i++)
        m.store_join.token[1 + i] ^= (uint8_t)(store->remade[shard] >> 8 * i);
    trib_status_t st = trib_store_send(store, shard, &m);
    if (st == TRIB_OK)
        st = hear(store, shard, TRIB_CONTROL_STORE_JOINED,
                  again ? limit_ms : (limit_ms + 1) / 2, &m);
    store->denied = st == TRIB_ERR_PEER_LOST && !trib_store_shard_is_lost(store, shard);
    return st;
}

/* Reconnect. The caller holds the lock, which is released during the connect.
 * *cut_out: the new connection was lost again before the rank had joined. */
static trib_status_t connect_again(struct trib_store *store, int shard, bool again,
                                   bool *cut_out)
{
    struct trib_control_link *link = store->link;
    struct trib_control_fresh fresh;

    trib_store_unlock(store);
    const trib_status_t st = trib_control_link_reconnect(link, shard, &fresh);
    trib_store_lock(store);
    *cut_out = st == TRIB_ERR_PEER_LOST && !trib_idle_answer(&store->idle);
    if (st != TRIB_OK && trib_idle_answer(&store->idle))
        return trib_store_lost(store, shard, st);
    if (st != TRIB_OK)
        return trib_store_fail(store, TRIB_ERR_PEER_LOST,
                               "tribd at %s is lost, and its vectors with it: %s",
                               store->job.addresses[shard],
                               trib_error_text(&link->err));
    trib_control_link_replace(link, shard, &fresh);
    const trib_status_t joined = join(store, shard, again);
    *cut_out = joined == TRIB_ERR_PEER_LOST && trib_store_shard_is_lost(store, shard);
    if (joined != TRIB_OK) /* so that the session does not look joined */
        (void)trib_session_end(link->sessions[shard], joined, "not joined");
    return joined;
}

static void log_reconnected(const struct trib_store *store, int shard)
{
    trib_log(&store->log, TRIB_LOG_INFO, "store",
             "tribd at %s: reconnected after the connection was lost",
             store->job.addresses[shard]);
}

/* Join again while another run uses the key: it may just have freed its store, and
 * tribd may read the goodbyes of its ranks later than this request. Only the pauses
 * count for *left_ms, because tribd may delay each request for longer. */
static trib_status_t join_after(struct trib_store *store, int shard, int *left_ms)
{
    int pause_ms = LEAVING_PAUSE_MS;
    trib_status_t st = TRIB_ERR_BUSY;
    bool cut;

    while (st == TRIB_ERR_BUSY && *left_ms > 0) {
        const int ms = trib_min(pause_ms, *left_ms);
        trib_store_unlock(store);
        const bool slept = trib_idle_sleep(&store->idle, (uint64_t)ms * 1000000);
        *left_ms -= ms;
        pause_ms = pause_ms < LEAVING_PAUSE_MAX ? 2 * pause_ms : LEAVING_PAUSE_MAX;
        trib_store_lock(store);
        trib_error_clear(&store->err);
        if (!slept)
            return trib_store_lost(store, shard, TRIB_ERR_ABORTED);
        st = connect_again(store, shard, false, &cut);
    }
    return st;
}

/* Return true if the connection was lost, also if that was not noticed yet. */
static bool was_cut(struct trib_session *session)
{
    struct trib_control m;
    trib_status_t st = TRIB_OK;

    while (st == TRIB_OK)
        st = trib_session_step(session, &m);
    return st == TRIB_ERR_PEER_LOST || st == TRIB_ERR_TIMEOUT;
}

/* Connect without the lock: it may take seconds, and the keep-alive thread must run. */
static trib_status_t connect_first(struct trib_store *store, int shard)
{
    struct trib_session *session;

    const trib_status_t st = trib_control_link_open(store->link, shard, true, &session);
    if (st != TRIB_OK)
        return trib_store_fail(store, st, "%s", trib_error_text(&store->link->err));
    trib_store_lock(store);
    trib_control_link_add(store->link, shard, session);
    trib_store_unlock(store);
    return TRIB_OK;
}

/* Join for the first time. tribd may have closed the connection, if another one delayed
 * its join for long. *left_ms: how long an earlier run may still use the key. */
static trib_status_t join_first(struct trib_store *store, int shard, bool again,
                                int *left_ms)
{
    bool cut;

    trib_store_lock(store);
    trib_status_t st = trib_store_shard_answers(store, shard)
                           ? join(store, shard, again)
                           : connect_again(store, shard, again, &cut);
    if (st == TRIB_ERR_BUSY)
        st = join_after(store, shard, left_ms);
    trib_store_unlock(store);
    return st;
}

static int leaving_ms(const struct trib_store *store)
{
    const int limit_ms = store->job.cfg.timeout_ms;

    return limit_ms ? (int)trib_min(LEAVING_MS, limit_ms / LEAVING_PART) : LEAVING_MS;
}

trib_status_t trib_store_shards_open(struct trib_store *store, bool again)
{
    int left_ms = leaving_ms(store);
    trib_status_t st =
        trib_control_link_create(&store->job, &store->log, &store->err, &store->link);

    if (st != TRIB_OK)
        return st;
    trib_control_link_set_idle(store->link, &store->idle);
    st = trib_store_alive_start(store);
    /* All are reached before the first of them ends an earlier run with this key. */
    for (int i = 0; i < store->job.n && st == TRIB_OK; i++)
        st = connect_first(store, i);
    for (int i = 0; i < store->job.n && st == TRIB_OK; i++)
        st = join_first(store, i, again, &left_ms);
    return st;
}

trib_status_t trib_store_shard_again(struct trib_store *store, int shard)
{
    trib_status_t st = TRIB_OK;
    bool cut = true;

    for (int tries = 0; cut && tries < TRIB_STORE_TRIES; tries++)
        st = connect_again(store, shard, true, &cut);
    if (st == TRIB_OK)
        log_reconnected(store, shard);
    return st;
}

bool trib_store_shard_answers(struct trib_store *store, int shard)
{
    struct trib_control m;

    while (trib_session_step(store->link->sessions[shard], &m) == TRIB_OK)
        (void)trib_store_sort(store, shard, TRIB_CONTROL_ALIVE, TRIB_CONTROL_ALIVE, &m);
    return !trib_store_shard_is_lost(store, shard);
}

void trib_store_shards_rejoin(struct trib_store *store)
{
    const uint64_t until = trib_deadline_ms(REJOIN_MS);

    if (!trib_store_alive_runs(store)) /* a forked child is not the rank */
        return;
    if (!store->job.cfg.timeout_ms || store->job.cfg.timeout_ms > REJOIN_MS)
        store->job.cfg.timeout_ms = REJOIN_MS;
    trib_store_lock(store);
    for (int i = 0; i < store->link->n && !trib_deadline_passed(until); i++)
        if (was_cut(store->link->sessions[i]))
            (void)trib_store_shard_again(store, i);
    trib_store_unlock(store);
}

trib_status_t trib_store_shard_remake(struct trib_store *store, int shard)
{
    bool cut;

    trib_store_lock(store);
    const trib_status_t st = store->rank ? trib_store_shard_again(store, shard)
                                         : connect_again(store, shard, false, &cut);
    if (store->rank == 0 && st == TRIB_OK)
        log_reconnected(store, shard);
    trib_store_unlock(store);
    return st;
}
