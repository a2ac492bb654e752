/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Admission of ranks to a store by STORE_JOIN.
 *
 * A store is a job in the table of jobs, so that limits, quotas and tribctl apply to
 * it: one slot of 0 bytes, memory for its ranks, and vectors charged to its quota. The
 * ranks of a store know its token, a random number from rank 0. Users cannot access
 * stores of others.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "agg/daemon/server_parts.h"
#include "base/quota.h"
#include "base/time.h"

#define SUFFIX "/store"

static void refuse(struct server *s, struct client *c, trib_status_t status,
                   const char *why)
{
    struct trib_control m = {.kind = TRIB_CONTROL_STORE_REFUSED,
                             .store_refused.status = (uint32_t)-status};

    assert(status < TRIB_OK && c->session);
    c->left = true;
    snprintf(m.store_refused.text, sizeof(m.store_refused.text), "%s", why);
    (void)trib_session_send(c->session, &m);
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "store of job %s refused: %s (from %s)",
             trib_session_job(c->session), why, server_from(c));
    server_hang_up(s, c);
}

/* Compare in constant time. */
static bool same_token(const uint8_t *a, const uint8_t *b)
{
    unsigned differs = 0;

    for (int i = 0; i < TRIB_CONTROL_NONCE_BYTES; i++)
        differs |= a[i] ^ b[i];
    return !differs;
}

static void name_store(const struct client *c, char out[TRIB_JOB_NAME_BYTES])
{
    snprintf(out, TRIB_JOB_NAME_BYTES, "%.*s%s",
             (int)(TRIB_JOB_NAME_BYTES - sizeof(SUFFIX)), trib_session_job(c->session),
             SUFFIX);
}

/* Return the client that represents the store of this token; NULL: none. */
static struct client *find(struct server *s, const struct client *c,
                           const struct trib_control_store_join *join)
{
    char name[TRIB_JOB_NAME_BYTES], user[TRIB_JOB_NAME_BYTES];

    name_store(c, name);
    admit_name_user(c, user);
    for (int i = 0; i < s->n_clients; i++) {
        struct client *other = s->clients[i];
        if (other->store && !other->left && strcmp(other->join.job, name) == 0 &&
            strcmp(other->join.user, user) == 0 &&
            same_token(other->store_join.token, join->token))
            return other;
    }
    return NULL;
}

/* Return true if a client's store, which may have been kicked, has the snapshot key of
 * this request. */
static bool has_key(const struct client *other, const struct client *c,
                    const struct trib_control_store_join *join)
{
    return other->store && strcmp(other->join.user, c->join.user) == 0 &&
           same_token(other->store_join.owner, join->owner);
}

/* Return true if ranks use a store with the snapshot key of this request: two stores
 * with one key would overwrite each other's snapshots. */
static bool key_is_used(const struct server *s, const struct client *c,
                        const struct trib_control_store_join *join)
{
    for (int i = 0; i < s->n_clients; i++)
        if (has_key(s->clients[i], c, join) && !s->clients[i]->left &&
            !store_job_is_deserted(s->clients[i]->store))
            return true;
    return false;
}

/* Return the number of open files of the stores with this key, whose ranks are lost. */
static uint32_t files_of_key(const struct server *s, const struct client *c,
                             const struct trib_control_store_join *join)
{
    uint32_t files = 0;

    for (int i = 0; i < s->n_clients; i++)
        if (has_key(s->clients[i], c, join) &&
            !store_job_is_empty(s->clients[i]->store))
            files += store_job_files(s->clients[i]->store);
    return files;
}

/* End the other stores with this key, whose ranks are lost. There may be several: an
 * ended store remains until the disk has its last snapshot. Return true if one of them
 * still holds its place, which is free once its vectors are. */
static bool replace_others(const struct server *s, const struct client *c,
                           const struct trib_control_store_join *join)
{
    bool holds = false;

    for (int i = 0; i < s->n_clients; i++) {
        struct client *other = s->clients[i];
        if (other == c || !has_key(other, c, join))
            continue;
        store_job_replace(other->store);
        holds |= !other->freed;
    }
    return holds;
}

static struct trib_job_request request_of(const struct client *c,
                                          const struct trib_control_store_join *join)
{
    return (struct trib_job_request){.name = c->join.job,
                                     .user = c->join.user,
                                     .weight = 1,
                                     .ranks = join->ranks,
                                     .slots = 1,
                                     .rank_bytes = STORE_JOB_RANK_BYTES};
}

/* Return true if a new store may have a place once an earlier run with its key has
 * ended. */
static bool may_follow(const struct server *s, const struct client *c,
                       const struct trib_control_store_join *join)
{
    const struct trib_job_request request = request_of(c, join);

    for (int i = 0; i < s->n_clients; i++)
        if (has_key(s->clients[i], c, join) && !s->clients[i]->freed &&
            trib_jobs_follows(s->jobs, trib_now_ns(), &request, s->clients[i]->job))
            return true;
    return false;
}

/* Refuse a new store for lack of what an earlier run with its key holds. That run is
 * ended, and the rank asks again. */
static void refuse_full(struct server *s, struct client *c,
                        const struct trib_control_store_join *join, const char *why)
{
    const bool soon = replace_others(s, c, join);

    if (!soon)
        trib_metrics_reason_mt(s->metrics, TRIB_REFUSED_FOR_LIMIT);
    refuse(s, c, soon ? TRIB_ERR_BUSY : TRIB_ERR_NO_RESOURCE, why);
}

/* Refuse a new store for a limit which the end of an earlier run does not change. */
static void refuse_for_limit(struct server *s, struct client *c, const char *why)
{
    trib_metrics_reason_mt(s->metrics, TRIB_REFUSED_FOR_LIMIT);
    refuse(s, c, TRIB_ERR_NO_RESOURCE, why);
}

/* Refuse a rank that reconnects to an ended store; list its snapshots. */
static void refuse_lost(struct server *s, struct client *c,
                        const struct trib_control_store_join *join)
{
    char user[TRIB_JOB_NAME_BYTES], why[TRIB_CONTROL_TEXT_MAX];
    const struct archive_key key = {join->owner, user, NULL};

    admit_name_user(c, user);
    snprintf(why, sizeof(why), "%s",
             "no such store here: it has ended, the ranks use different tribds "
             "(127.0.0.1), or tribd was restarted");
    if (s->archive)
        archive_describe(s->archive, &key, why, sizeof(why));
    refuse(s, c, TRIB_ERR_PEER_LOST, why);
}

/* Hand the session over to the store; the client then has none. */
static void hand_over(struct server *s, struct client *c, struct client *to,
                      const struct trib_control_store_join *join)
{
    struct trib_session *session = c->session;

    assert(session && to->store);
    (void)server_from(c); /* needs the connection */
    ready_forget(s, c);
    const trib_status_t st =
        store_job_add(to->store, session, join->rank, credentials_hold(c->credentials));
    if (st == TRIB_OK) {
        c->session = NULL;
        return;
    }
    credentials_release(c->credentials);
    if (st == TRIB_ERR_PEER_LOST)
        refuse_lost(s, c, join);
    else
        refuse(s, c, st, "out of memory for another rank");
}

static struct trib_snapshot_about about_of(const struct client *c,
                                           const struct trib_control_store_join *join)
{
    struct trib_snapshot_about about = {.lasting = join->lasting};

    assert(c->session && c->join.user[0]);
    memcpy(about.owner, join->owner, sizeof(about.owner));
    snprintf(about.user, sizeof(about.user), "%s", c->join.user);
    snprintf(about.job, sizeof(about.job), "%s", trib_session_job(c->session));
    return about;
}

/* Create a store, represented by this client; false: refused. */
static bool make(struct server *s, struct client *c,
                 const struct trib_control_store_join *join)
{
    const struct trib_job_request request = request_of(c, join);
    const struct store_share share = {.user = c->join.user, .ranks = join->ranks};
    struct trib_job_answer a;
    struct trib_error err = {0};

    assert(!c->job && !c->store);
    (void)admit_waiting(s);
    trib_jobs_submit(s->jobs, trib_now_ns(), &request, &a);
    if (a.verdict != TRIB_JOB_ADMIT) {
        if (a.cause == TRIB_JOB_BY_WAIT && may_follow(s, c, join))
            refuse_full(s, c, join, a.text);
        else
            refuse_for_limit(s, c, a.text);
        return false;
    }
    c->job = a.id;
    trib_jobs_quota(s->jobs, c->job, &c->quota);
    const struct store_job_opts opts = {.ranks = join->ranks,
                                        .threads = store_share_threads(s, &share),
                                        .quota = &c->quota,
                                        .metrics = s->metrics,
                                        .id = c->job,
                                        .wake_fd = s->wake_fd,
                                        .archive = s->archive,
                                        .log = &s->log,
                                        .turns = s->turns,
                                        .every_pushes = join->every_pushes,
                                        .every_ms = join->every_ms,
                                        .about = about_of(c, join)};
    const trib_status_t st = store_job_open(&opts, &err, &c->store);
    if (st != TRIB_OK) {
        trib_metrics_reason_mt(s->metrics, TRIB_REFUSED_FOR_MEMORY);
        refuse(s, c, st, trib_error_text(&err));
        return false;
    }
    c->store_join = *join;
    server_event(s, TRIB_SERVICE_COUNTS_ADMITTED);
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "store %s: %u rank%s (from %s)",
             c->join.job, join->ranks, join->ranks == 1 ? "" : "s", server_from(c));
    return true;
}

/* Return true if a new store may have its files, at the latest once an earlier run with
 * its key is ended; else refuse it. */
static bool has_files(struct server *s, struct client *c,
                      const struct trib_control_store_join *join)
{
    char why[TRIB_CONTROL_TEXT_MAX], later[TRIB_CONTROL_TEXT_MAX];
    struct store_share share = {.user = c->join.user, .ranks = join->ranks};

    if (store_share_allows(s, &share, why, sizeof(why)))
        return true;
    share.freed = files_of_key(s, c, join);
    if (share.freed && store_share_allows(s, &share, later, sizeof(later)) &&
        may_follow(s, c, join))
        refuse_full(s, c, join, why);
    else
        refuse_for_limit(s, c, why);
    return false;
}

/* Refuse a request for a key that ranks of another store use. */
static bool refuse_used(struct server *s, struct client *c,
                        const struct trib_control_store_join *join)
{
    if (!key_is_used(s, c, join))
        return false;
    refuse(s, c, TRIB_ERR_BUSY,
           "a store with the same key is in use: end that run (stopped ranks lose it "
           "after 5 s), or use another key");
    return true;
}

/* Let the request wait for a token of its user, like a JOIN. One that only waits for
 * its key costs none, because the rank repeats it. */
static void join_new(struct server *s, struct client *c,
                     const struct trib_control_store_join *join)
{
    name_store(c, c->join.job);
    admit_name_user(c, c->join.user);
    if (!s->archive && (join->every_ms || join->every_pushes)) {
        refuse(s, c, TRIB_ERR_UNSUPPORTED,
               "snapshots are disabled: set \"snapshots = DIRECTORY\" in tribd.conf "
               "(or TRIBD_SNAPSHOTS) and restart");
        return;
    }
    if (refuse_used(s, c, join))
        return;
    c->store_join = *join;
    c->asks_store = true;
    c->asked_ns = trib_now_ns();
    c->join_bucket = admit_join_bucket(s, c);
}

void store_admit_due(struct server *s, struct client *c)
{
    const struct trib_control_store_join join = c->store_join;

    assert(c->asks_store && !c->asked_ns);
    if (!refuse_used(s, c, &join) && has_files(s, c, &join) && make(s, c, &join)) {
        (void)replace_others(s, c, &join);
        hand_over(s, c, c, &join);
    }
    server_publish(s);
}

void store_admit_refuse(struct server *s, struct client *c, const char *why)
{
    refuse(s, c, TRIB_ERR_NO_RESOURCE, why);
}

void store_admit_join(struct server *s, struct client *c,
                      const struct trib_control_store_join *join)
{
    struct client *holder = find(s, c, join);
    char user[TRIB_JOB_NAME_BYTES], why[TRIB_CONTROL_TEXT_MAX];
    const struct store_share share = {
        .user = user, .ranks = join->ranks, .exists = true};

    admit_name_user(c, user);
    c->asked = true;
    if (!holder && join->again)
        refuse_lost(s, c, join);
    else if (!holder)
        join_new(s, c, join);
    else if (!store_share_allows(s, &share, why, sizeof(why)))
        refuse(s, c, TRIB_ERR_NO_RESOURCE, why);
    else if (!join->again || join->ranks != holder->store_join.ranks)
        refuse(s, c, TRIB_ERR_MISMATCH, "the store exists for other ranks");
    else
        hand_over(s, c, holder, join);
}

bool store_admit_sweep(struct server *s, struct client *c, bool *changed)
{
    const bool over = store_job_reap(c->store);
    const uint64_t bytes = trib_quota_held_mt(&c->quota);

    if (!over && bytes != c->store_bytes) {
        c->store_bytes = bytes;
        *changed = true;
    }
    if (!over && store_job_is_empty(c->store)) {
        c->left = true;
        server_free_slots(s, c);
    }
    if (!over)
        return false;
    assert(!c->session);
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "store %s: %s", c->join.job,
             store_job_why(c->store));
    store_job_free(c->store);
    c->left = true;
    return true;
}
