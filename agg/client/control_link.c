/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/client/control_link.h"

#include <assert.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/release.h"
#include "base/sockets.h"
#include "base/text.h"
#include "base/time.h"
#include "pipeline/link/link.h"

enum {
    HANDSHAKE_MS = 5000, /* at most */
    ALIVES = 3, /* heartbeats (one a second) that a tribd may miss before it is lost */
    MESSAGES_MOST = 16, /* per tribd and step: a tribd cannot stall the ranks */
};

/* A silent tribd counts as lost after the same time as a silent rank; 0: never. */
static int silent_ms(const struct trib_config *cfg)
{
    const int least = ALIVES * TRIB_SESSION_ALIVE_MS;

    return !cfg->stop_timeout_ms || cfg->stop_timeout_ms > least ? cfg->stop_timeout_ms
                                                                 : least;
}

/* Limit of the handshake: no longer than a silent tribd is tolerated afterwards. */
static int handshake_ms(const struct trib_config *cfg)
{
    const int silent = silent_ms(cfg);

    return silent && silent < HANDSHAKE_MS ? silent : HANDSHAKE_MS;
}

/* Look up the user of TRIB_SERVICE_USER. Return the number of users found: 0 or 1. */
static size_t find_user(const char *name, uid_t *out)
{
    struct passwd entry, *found = NULL;
    char room[4096];

    if (!name[0] || getpwnam_r(name, &entry, room, sizeof(room), &found) || !found)
        return 0;
    *out = entry.pw_uid;
    return 1;
}

static trib_status_t open_auth(const struct trib_config *cfg, struct trib_error *err,
                               struct trib_auth **out)
{
    static const char *const methods[] = {TRIB_AUTO, "munge", "key", "none"};
    uid_t user;
    const struct trib_auth_opts opts = {.method = methods[cfg->service_auth],
                                        .key_file = cfg->service_key,
                                        .users = &user,
                                        .n_users = find_user(cfg->service_user, &user)};

    return trib_auth_open(&opts, err, out);
}

trib_status_t trib_control_link_create(const struct trib_control_link_job *job,
                                       const struct trib_log *log,
                                       struct trib_error *err,
                                       struct trib_control_link **out)
{
    struct trib_control_link *s = calloc(1, sizeof(*s));

    *out = NULL;
    if (!s)
        return trib_fail(err, TRIB_ERR_NO_MEMORY,
                         "no memory for connections to aggregators");
    s->job = job;
    s->log = log;
    s->wait_ms = job->cfg.service_wait_ms;
    const trib_status_t st = open_auth(&job->cfg, err, &s->auth);
    if (st != TRIB_OK) {
        free(s);
        return st;
    }
    *out = s;
    return TRIB_OK;
}

void trib_control_link_set_idle(struct trib_control_link *s, struct trib_idle *idle)
{
    assert(s->n >= 0 && s->n <= TRIB_AGGREGATORS_MAX);
    s->idle = idle;
    for (int i = 0; i < s->n; i++)
        trib_session_set_idle(s->sessions[i], idle);
}

void trib_control_link_free(struct trib_control_link *s)
{
    const struct trib_control goodbye = {.kind = TRIB_CONTROL_GOODBYE,
                                         .said.text = "the job is done"};

    for (int i = 0; s && i < s->n; i++)
        if (trib_session_ready(s->sessions[i]))
            (void)trib_session_send_wait(s->sessions[i], trib_deadline_ms(100),
                                         &goodbye);
    trib_control_link_free_copy(s);
}

void trib_control_link_free_copy(struct trib_control_link *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n; i++) {
        trib_session_free(s->sessions[i]);
        trib_auth_free(s->renewed[i]);
    }
    trib_auth_free(s->auth);
    free(s);
}

static trib_status_t connect_to(struct trib_control_link *s, const char *address,
                                int *fd_out)
{
    struct trib_tcp_root at;
    char why[160];

    if (!trib_tcp_root_parse(address, &at))
        return trib_fail(&s->err, TRIB_ERR_CONFIG,
                         "TRIB_SERVICE: \"%s\" is not host:port, such as agg0:4700",
                         address);
    *fd_out = trib_sockets_connect(&at, trib_deadline_ms(handshake_ms(&s->job->cfg)),
                                   s->idle, why, sizeof(why));
    if (*fd_out >= 0)
        return TRIB_OK;
    return trib_fail(&s->err, TRIB_ERR_BOOT, "no service at %s: %s%s", address, why,
                     strstr(why, "refused") ? ": is tribd running there?" : "");
}

/* Add an error message if there is none. */
static trib_status_t answered(struct trib_control_link *s, const char *address,
                              trib_status_t st)
{
    if (st == TRIB_OK)
        return TRIB_OK;
    return s->err.status
               ? st
               : trib_fail(&s->err, st == TRIB_INPROGRESS ? TRIB_ERR_TIMEOUT : st,
                           "%s: %s", address,
                           st == TRIB_INPROGRESS ? "no answer" : trib_status_str(st));
}

/* Open a session with address `which` of the job. */
static trib_status_t open_session(struct trib_control_link *s, int which,
                                  const struct trib_auth *auth, bool prove,
                                  struct trib_session **out)
{
    const char *address = s->job->addresses[which];
    struct trib_session_opts opts = {.role = TRIB_CONTROL_JOB,
                                     .auth = auth,
                                     .job = s->job->name,
                                     .peer = address,
                                     .handshake_ms = handshake_ms(&s->job->cfg),
                                     .silent_ms = silent_ms(&s->job->cfg),
                                     .err = &s->err,
                                     .idle = s->idle};

    assert(which >= 0 && which < s->job->n);
    trib_error_clear(&s->err);
    trib_status_t st = connect_to(s, address, &opts.fd);
    if (st == TRIB_OK)
        st = trib_session_open(&opts, out);
    if (st != TRIB_OK)
        return st;
    if (prove)
        st = answered(s, address,
                      trib_session_ready_wait(
                          *out, trib_deadline_ms(handshake_ms(&s->job->cfg))));
    if (st != TRIB_OK)
        trib_session_free(*out);
    return st;
}

trib_status_t trib_control_link_open(struct trib_control_link *s, int which, bool prove,
                                     struct trib_session **out)
{
    return open_session(s, which, s->auth, prove, out);
}

void trib_control_link_add(struct trib_control_link *s, int which,
                           struct trib_session *session)
{
    assert(s->n < TRIB_AGGREGATORS_MAX);
    s->sessions[s->n] = session;
    s->which[s->n++] = which;
}

trib_status_t trib_control_link_connect(struct trib_control_link *s, int which,
                                        bool prove)
{
    struct trib_session *session;

    const trib_status_t st = trib_control_link_open(s, which, prove, &session);
    if (st == TRIB_OK)
        trib_control_link_add(s, which, session);
    return st;
}

/* Read the key file again. NULL: there is none, or it cannot be read now. */
static struct trib_auth *renew_auth(const struct trib_control_link *s)
{
    struct trib_auth *auth = NULL;

    if (s->job->cfg.service_key[0])
        (void)open_auth(&s->job->cfg, NULL, &auth);
    return auth;
}

/* If tribd refuses the key, the key files on both sides may have been replaced since
 * this process read its own. */
trib_status_t trib_control_link_reconnect(struct trib_control_link *s, int i,
                                          struct trib_control_fresh *out)
{
    assert(i >= 0 && i < s->n);
    const struct trib_auth *known = s->renewed[i] ? s->renewed[i] : s->auth;
    *out = (struct trib_control_fresh){0};
    trib_status_t st = open_session(s, s->which[i], known, true, &out->session);
    if (st == TRIB_ERR_CONFIG)
        out->renewed = renew_auth(s);
    if (out->renewed)
        st = open_session(s, s->which[i], out->renewed, true, &out->session);
    if (st != TRIB_OK)
        trib_auth_free(out->renewed);
    return st;
}

void trib_control_link_replace(struct trib_control_link *s, int i,
                               const struct trib_control_fresh *fresh)
{
    assert(i >= 0 && i < s->n);
    trib_session_free(s->sessions[i]);
    s->sessions[i] = fresh->session;
    if (!fresh->renewed)
        return;
    trib_auth_free(s->renewed[i]);
    s->renewed[i] = fresh->renewed;
}

int trib_control_link_silent_ms(const struct trib_control_link *s)
{
    return silent_ms(&s->job->cfg);
}

static void fill_join(const struct trib_control_link *s, int node,
                      struct trib_control *m)
{
    const struct trib_config *cfg = &s->job->cfg;
    struct trib_control_join *j = &m->join;

    *m = (struct trib_control){.kind = TRIB_CONTROL_JOIN};
    snprintf(j->job, sizeof(j->job), "%s", s->job->name);
    snprintf(j->user, sizeof(j->user), "%s", s->job->user);
    j->ranks = (uint32_t)s->job->ranks;
    j->aggregators = (uint32_t)s->n;
    j->aggregator = (uint32_t)node;
    j->weight = (uint32_t)cfg->service_weight;
    j->slots = s->job->peers[s->which[node]] * (uint32_t)cfg->window * TRIB_LANES;
    j->bytes = (uint64_t)j->slots * cfg->chunk;
    j->deadline_ms = (uint32_t)s->wait_ms;
    char key[sizeof("key= ") + TRIB_SECRET_TEXT] = "", digits[TRIB_SECRET_TEXT];
    if (s->job->secret.is_set) {
        trib_secret_format(&s->job->secret, digits);
        snprintf(key, sizeof(key), "key=%s ", digits);
    }
    int at = snprintf(j->settings, sizeof(j->settings), "%stransport=%s ", key,
                      cfg->transport);
    trib_config_same_text(cfg, j->settings + at, sizeof(j->settings) - (size_t)at);
    j->tree = (struct trib_control_bytes){s->job->tree, s->job->tree_bytes};
}

/* Refuse to send the key of TRIB_SEAL in clear, where it would protect nothing. */
static trib_status_t check_sealed(struct trib_control_link *s,
                                  const struct trib_session *session,
                                  const char *address)
{
    if (!s->job->cfg.seal || trib_session_is_sealed(session))
        return TRIB_OK;
    return trib_fail(
        &s->err, TRIB_ERR_UNSUPPORTED,
        "%s: with auth none the key of TRIB_SEAL=1 would be sent to tribd "
        "unencrypted: use auth key or munge (for tribd and TRIB_SERVICE_AUTH), or "
        "unset TRIB_SERVICE",
        address);
}

/* Ranks and aggregators exchange frames and must run the same release. A parameter
 * store requests no aggregators and may run another one. */
static trib_status_t check_release(struct trib_control_link *s,
                                   const struct trib_session *session,
                                   const char *address)
{
    const struct trib_auth_peer peer = trib_session_peer(session);

    if (strcmp(peer.release, trib_release) == 0)
        return TRIB_OK;
    return trib_fail(&s->err, TRIB_ERR_MISMATCH,
                     "tribd at %s has Tributary %s, the ranks have %s: install the "
                     "same version",
                     address, peer.release, trib_release);
}

trib_status_t trib_control_link_request(struct trib_control_link *s, int i)
{
    struct trib_session *session = s->sessions[i];
    const char *address = s->job->addresses[s->which[i]];
    const uint64_t until = trib_deadline_ms(HANDSHAKE_MS + s->wait_ms);
    struct trib_control m;

    assert(i >= 0 && i < s->n);
    trib_error_clear(&s->err);
    trib_status_t st = trib_session_ready_wait(session, until);
    if (st == TRIB_OK)
        st = check_release(s, session, address);
    if (st == TRIB_OK)
        st = check_sealed(s, session, address);
    if (st == TRIB_OK) {
        fill_join(s, i, &m);
        st = trib_session_send_wait(session, until, &m);
    }
    while (st == TRIB_OK) {
        st = trib_session_take_wait(session, until, &m);
        if (st != TRIB_OK)
            break;
        if (m.kind == TRIB_CONTROL_ADMITTED)
            return TRIB_OK;
        if (m.kind != TRIB_CONTROL_QUEUED)
            return trib_fail(&s->err, TRIB_ERR_NO_RESOURCE, "%s refuses: %s", address,
                             m.kind == TRIB_CONTROL_REFUSED ? m.said.text
                                                            : "no answer");
        if (s->log)
            trib_log(s->log, TRIB_LOG_INFO, TRIB_OFFLOAD_LOG,
                     "%s: position %u in the queue: %s", address, m.queued.position,
                     m.queued.text);
        if (trib_deadline_passed(until)) /* QUEUED does not extend the deadline */
            st = TRIB_INPROGRESS;
    }
    return answered(s, address, st);
}

trib_status_t trib_control_link_step(struct trib_control_link *s)
{
    struct trib_control m;
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < s->n; i++) {
        trib_status_t one = TRIB_OK;
        for (int n = 0; n < MESSAGES_MOST && one == TRIB_OK; n++)
            one = trib_session_step(s->sessions[i], &m);
        if (one < TRIB_OK)
            st = one;
    }
    return st;
}

bool trib_control_link_is_whole(const struct trib_control_link *s)
{
    struct pollfd ends[TRIB_AGGREGATORS_MAX];

    for (int i = 0; i < s->n; i++)
        ends[i] =
            (struct pollfd){.fd = trib_session_fd(s->sessions[i]), .events = POLLRDHUP};
    /* If poll() fails, assume that all are open: the next message will show. */
    return poll(ends, (nfds_t)s->n, 0) <= 0;
}
