/* SPDX-License-Identifier: BSD-3-Clause */
/* Admission of jobs: a JOIN waits for its user's token bucket, then for slots. A
 * STORE_JOIN that creates a store waits for the token, too. */
#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agg/daemon/job_settings.h"
#include "agg/daemon/server_parts.h"
#include "base/digest.h"
#include "base/time.h"
#include "base/token_bucket.h"

static void refuse(struct server *s, struct client *c, enum trib_service_reason reason,
                   const char *why)
{
    struct trib_control m = {.kind = TRIB_CONTROL_REFUSED};

    assert(c->session);
    trib_metrics_reason_mt(s->metrics, reason);
    c->left = true;
    snprintf(m.said.text, sizeof(m.said.text), "%s", why);
    /* Never block this thread. If the send fails, the job does not read its
     * messages. */
    (void)trib_session_send(c->session, &m);
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "job %s refused: %s (from %s)",
             c->join.job, why, server_from(c));
    server_hang_up(s, c);
}

static void admit(struct server *s, struct client *c, uint32_t slots)
{
    const struct trib_control m = {
        .kind = TRIB_CONTROL_ADMITTED,
        .admitted = {.slots = slots, .bytes = c->join.bytes}};
    const struct trib_auth_peer peer = trib_session_peer(c->session);
    const struct aggregator_opts opts = {
        .join = &c->join,
        .worker = worker_least_loaded(s->workers, s->n_workers),
        .wake_fd = s->wake_fd,
        .log = &s->log,
        .transports = s->settings.transports,
        .user = peer.has_user ? &peer.uid : NULL,
        .net = s->net,
        .plan_memory = server_memory(&s->settings) / PLAN_SHARE,
        .quota = &c->quota};
    struct trib_error err = {0};

    assert(c->job && !c->aggregator);
    trib_jobs_quota(s->jobs, c->job, &c->quota);
    const trib_status_t st = aggregator_open(&opts, &err, &c->aggregator);
    if (st != TRIB_OK) {
        const bool host = st == TRIB_ERR_NO_MEMORY || st == TRIB_ERR_SYSTEM;
        refuse(s, c, host ? TRIB_REFUSED_FOR_MEMORY : TRIB_REFUSED_FOR_INVALID,
               trib_error_text(&err));
        return;
    }
    aggregator_count(c->aggregator, s->metrics, c->job);
    server_event(s, TRIB_SERVICE_COUNTS_ADMITTED);
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "job %s: %u rank%s, %u slot%s (from %s)",
             c->join.job, c->join.ranks, c->join.ranks == 1 ? "" : "s", slots,
             slots == 1 ? "" : "s", server_from(c));
    if (trib_session_send(c->session, &m) != TRIB_OK)
        server_hang_up(s, c);
}

static struct client *client_of(struct server *s, uint64_t job)
{
    for (int i = 0; i < s->n_clients; i++)
        if (s->clients[i]->job == job && s->clients[i]->session)
            return s->clients[i];
    return NULL;
}

static void answer(struct server *s, struct client *c, const struct trib_job_answer *a)
{
    static const enum trib_service_reason reasons[] = {
        [TRIB_JOB_BY_LIMIT] = TRIB_REFUSED_FOR_LIMIT,
        [TRIB_JOB_BY_QUEUE] = TRIB_REFUSED_FOR_QUEUE,
        [TRIB_JOB_BY_WAIT] = TRIB_REFUSED_FOR_WAIT,
        [TRIB_JOB_BY_DRAIN] = TRIB_REFUSED_FOR_DRAINING,
    };
    struct trib_control m = {.kind = TRIB_CONTROL_QUEUED,
                             .queued.position = a->position};

    assert(c->session && a->cause < sizeof(reasons) / sizeof(*reasons));
    switch (a->verdict) {
    case TRIB_JOB_ADMIT:
        admit(s, c, a->slots);
        break;
    case TRIB_JOB_REFUSE:
        c->job = 0;
        refuse(s, c, reasons[a->cause], a->text);
        break;
    case TRIB_JOB_QUEUE:
        server_event(s, TRIB_SERVICE_COUNTS_QUEUED);
        snprintf(m.queued.text, sizeof(m.queued.text), "%s", a->text);
        if (trib_session_send(c->session, &m) != TRIB_OK)
            server_hang_up(s, c);
        break;
    case TRIB_JOB_FREED:
        break;
    }
}

/* Answer jobs whose state has changed with time; false: none. */
bool admit_waiting(struct server *s)
{
    struct trib_job_answer a;
    bool changed = false;

    while (trib_jobs_next(s->jobs, trib_now_ns(), &a)) {
        struct client *c = client_of(s, a.id);
        if (c)
            answer(s, c, &a);
        changed = true;
    }
    return changed;
}

void admit_name_user(const struct client *c, char out[TRIB_JOB_NAME_BYTES])
{
    const struct trib_auth_peer peer = trib_session_peer(c->session);

    snprintf(out, TRIB_JOB_NAME_BYTES, "%s",
             peer.has_user ? peer.user : trib_auth_name(peer.method));
}

/* Copy a JOIN. Its tree points into the frame but is needed until admission. */
static bool copy_join(struct client *c, const struct trib_control_join *join)
{
    c->join = *join;
    c->tree = malloc(join->tree.n + 1);
    if (c->tree && join->tree.n > 0)
        memcpy(c->tree, join->tree.at, join->tree.n);
    c->join.tree.at = c->tree;
    return c->tree;
}

void admit_submit(struct server *s, struct client *c)
{
    char user[TRIB_JOB_NAME_BYTES];
    const struct trib_control_join *j = &c->join;
    struct trib_job_answer a;

    assert(c->session && c->asked && !c->job);
    admit_name_user(c, user);
    const struct trib_job_request request = {
        .name = j->job,
        .user = user,
        .weight = j->weight ? j->weight : 1,
        .ranks = j->ranks,
        .slots = j->slots,
        .slot_bytes = j->slots ? j->bytes / j->slots : 0,
        .rank_bytes = AGGREGATOR_RANK_BYTES,
        .wait_ns = (uint64_t)j->deadline_ms * 1000000};
    (void)admit_waiting(s); /* server_publish below covers it */
    trib_jobs_submit(s->jobs, trib_now_ns(), &request, &a);
    c->job = a.id;
    answer(s, c, &a);
    server_publish(s);
}

/* Users with equal hashes share a token bucket. */
uint64_t *admit_join_bucket(struct server *s, const struct client *c)
{
    char user[TRIB_JOB_NAME_BYTES];

    admit_name_user(c, user);
    return &s->join_buckets[trib_digest(user, strlen(user)) % JOIN_USERS];
}

void admit_join(struct server *s, struct client *c,
                const struct trib_control_join *join)
{
    if (c->asked) {
        c->lost = TRIB_LOST_FOR_PROTOCOL;
        (void)trib_session_end(c->session, TRIB_ERR_PROTOCOL,
                               "a second JOIN on one connection");
        server_hang_up(s, c);
        return;
    }
    struct trib_error err = {0};
    c->asked = true;
    if (!copy_join(c, join)) {
        refuse(s, c, TRIB_REFUSED_FOR_MEMORY, "out of memory for a job");
        return;
    }
    if (!job_settings_allow(join->settings, s->settings.transports, &err)) {
        refuse(s, c, TRIB_REFUSED_FOR_INVALID, trib_error_text(&err));
        return;
    }
    c->asked_ns = trib_now_ns();
    c->join_bucket = admit_join_bucket(s, c);
}

void admit_refuse_waiting(struct server *s, struct client *c)
{
    refuse(s, c, TRIB_REFUSED_FOR_QUEUE, ADMIT_TOO_MANY);
}

/* Return the client that has waited longest for a token that is there; NULL: none. */
static struct client *find_oldest(const struct server *s, uint64_t now_ns)
{
    struct client *oldest = NULL;

    for (int i = 0; i < s->n_clients; i++) {
        struct client *c = s->clients[i];
        if (c->session && c->asked_ns && now_ns - *c->join_bucket >= JOIN_NS &&
            (!oldest || c->asked_ns < oldest->asked_ns))
            oldest = c;
    }
    return oldest;
}

/* Return true if a client that is not read has closed its connection. */
static bool has_hung_up(const struct client *c)
{
    struct pollfd end = {.fd = trib_session_fd(c->session), .events = POLLRDHUP};

    return poll(&end, 1, 0) > 0;
}

struct client *admit_next(struct server *s)
{
    const uint64_t now_ns = trib_now_ns();
    struct client *oldest;

    while ((oldest = find_oldest(s, now_ns)) && server_awaits_store(oldest) &&
           has_hung_up(oldest))
        server_hang_up(s, oldest); /* it costs no token */
    if (!oldest ||
        !trib_token_bucket_take(oldest->join_bucket, now_ns, JOIN_NS, JOINS_AT_ONCE))
        return NULL;
    assert(oldest->asked && !oldest->job);
    oldest->asked_ns = 0;
    return oldest;
}
