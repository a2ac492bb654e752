/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the ranks of a job come to nodes of services. Rank 0 asks each tribd, over a control
 * connection (agg/session.h); then ranks and nodes meet as ranks do, what nodes have to say
 * coming through rank 0; then all ranks tell each other whether it went well, and make the
 * spare. What goes wrong before that end, goes wrong on all ranks, which then have no service.
 */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agg/session.h"
#include "base/time.h"
#include "base/wait.h"
#include "boot/tcp_net.h"
#include "core/service.h"

enum {
    SERVICES_MAX = 64,
    HANDSHAKE_MS = 5000,
    LOOK_NS = 500000000, /* between two looks at the control connections */
    SILENT_MS = 10000,   /* a tribd says something each second, unless it is stopped */
    WHY_MAX = 400,
};

/* Rank 0's connections, while there is a channel. */
struct sponsor {
    struct trib_comm *home;
    struct trib_auth *auth;
    int n;
    struct trib_session *sessions[SERVICES_MAX];
    char addresses[SERVICES_MAX][TRIB_CONFIG_TEXT_BYTES];
    char job[TRIB_CONTROL_JOB_MAX + 1];
    struct trib_error err;
    uint64_t looked;
};

/* What rank 0 tells the others of a step. */
struct verdict {
    int32_t status;
    int32_t services;
    char why[WHY_MAX];
};

/* The ranks' and the nodes' exchanges. */
struct meeting {
    struct trib_comm *home;
    struct sponsor *sponsor; /* rank 0 */
    int services;
    int exchanges;
    char why[WHY_MAX];
};

/* Rank 0 asks ----------------------------------------------------------------------------- */

static void free_sponsor(void *arg)
{
    struct sponsor *s = arg;
    const struct trib_control goodbye = {.kind = TRIB_CONTROL_GOODBYE,
                                         .said.text = "the job is done"};

    if (!s)
        return;
    for (int i = 0; i < s->n; i++) {
        if (trib_session_ready(s->sessions[i]))
            (void)trib_session_send_wait(s->sessions[i], trib_deadline_ms(100), &goodbye);
        trib_session_free(s->sessions[i]);
    }
    trib_auth_free(s->auth);
    free(s);
}

static void name_job(struct sponsor *s)
{
    const struct trib_comm *home = s->home;
    const struct passwd *user = getpwuid(geteuid());

    if (home->cfg.service_job[0])
        snprintf(s->job, sizeof(s->job), "%.64s", home->cfg.service_job);
    else
        snprintf(s->job, sizeof(s->job), "%.20s@%.30s:%d", user ? user->pw_name : "job",
                 home->engine.peers[0].host, (int)getpid());
}

static trib_status_t connect_to(struct sponsor *s, const char *address, int *fd_out)
{
    struct trib_tcp_root at;
    char why[160];

    if (!trib_tcp_root_parse(address, &at))
        return trib_fail(&s->err, TRIB_ERR_CONFIG,
                         "TRIB_SERVICE: \"%s\" is not host:port", address);
    *fd_out = trib_tcp_connect(&at, trib_deadline_ms(HANDSHAKE_MS), why, sizeof(why));
    if (*fd_out >= 0)
        return TRIB_OK;
    return trib_fail(&s->err, TRIB_ERR_BOOT, "no service at %s: %s", address, why);
}

static void fill_join(const struct sponsor *s, int node, struct trib_control *m)
{
    const struct trib_comm *home = s->home;
    const uint32_t ranks = (uint32_t)home->engine.ranks;
    const struct passwd *user = getpwuid(geteuid());
    struct trib_control_join *j = &m->join;

    *m = (struct trib_control){.kind = TRIB_CONTROL_JOIN};
    snprintf(j->job, sizeof(j->job), "%s", s->job);
    snprintf(j->user, sizeof(j->user), "%.64s", user ? user->pw_name : "?");
    j->ranks = ranks;
    j->nodes = (uint32_t)s->n;
    j->node = (uint32_t)node;
    j->weight = (uint32_t)home->cfg.service_weight;
    j->slots = ranks * (uint32_t)home->cfg.window * TRIB_LANES;
    j->bytes = (uint64_t)j->slots * home->cfg.chunk;
    j->deadline_ms = (uint32_t)home->cfg.service_wait_ms;
    int at = snprintf(j->settings, sizeof(j->settings), "transport=%s ",
                      home->cfg.transport);
    trib_config_same_text(&home->cfg, j->settings + at, sizeof(j->settings) - (size_t)at);
}

static trib_status_t ask(struct sponsor *s, int node)
{
    struct trib_session *session = s->sessions[node];
    const uint64_t until =
        trib_deadline_ms(HANDSHAKE_MS + s->home->cfg.service_wait_ms);
    struct trib_control m;

    trib_status_t st = trib_session_meet_wait(session, until);
    if (st != TRIB_OK)
        return st;
    fill_join(s, node, &m);
    st = trib_session_send_wait(session, until, &m);
    while (st == TRIB_OK) {
        st = trib_session_take_wait(session, until, &m);
        if (st != TRIB_OK)
            return st;
        if (m.kind == TRIB_CONTROL_ADMITTED)
            return TRIB_OK;
        if (m.kind == TRIB_CONTROL_QUEUED)
            trib_log(&s->home->log, TRIB_LOG_INFO, "service", "%s: place %u in the queue: %s",
                     s->addresses[node], m.queued.position, m.queued.text);
        else
            return trib_fail(&s->err, TRIB_ERR_NO_RESOURCE, "%s refuses: %s",
                             s->addresses[node],
                             m.kind == TRIB_CONTROL_REFUSED ? m.said.text : "no answer");
    }
    return st;
}

static trib_status_t open_session(struct sponsor *s, const char *address, int node)
{
    struct trib_session_opts opts = {.role = TRIB_CONTROL_JOB,
                                     .auth = s->auth,
                                     .job = s->job,
                                     .peer = s->addresses[node],
                                     .handshake_ms = HANDSHAKE_MS,
                                     .silent_ms = SILENT_MS,
                                     .err = &s->err};

    snprintf(s->addresses[node], sizeof(s->addresses[node]), "%s", address);
    trib_status_t st = connect_to(s, address, &opts.fd);
    if (st == TRIB_OK)
        st = trib_session_open(&opts, &s->sessions[node]);
    return st;
}

/* As many sessions as TRIB_SERVICE has addresses, all admitted. */
static trib_status_t sponsor_job(struct sponsor *s)
{
    const struct trib_config *cfg = &s->home->cfg;
    const struct trib_auth_opts auth = {.method = cfg->service_auth,
                                        .key_file = cfg->service_key};
    char list[TRIB_CONFIG_TEXT_BYTES], *rest;

    name_job(s);
    trib_status_t st = trib_auth_open(&auth, &s->err, &s->auth);
    snprintf(list, sizeof(list), "%s", cfg->service);
    for (char *a = strtok_r(list, ", ", &rest); a && st == TRIB_OK;
         a = strtok_r(NULL, ", ", &rest)) {
        if (s->n == SERVICES_MAX)
            return trib_fail(&s->err, TRIB_ERR_CONFIG,
                             "TRIB_SERVICE names more than %d services", SERVICES_MAX);
        st = open_session(s, a, s->n);
        if (st == TRIB_OK)
            s->n++;
    }
    for (int i = 0; i < s->n && st == TRIB_OK; i++) {
        st = ask(s, i);
        if (st != TRIB_OK && !s->err.status)
            (void)trib_fail(&s->err, st, "%s: %s", s->addresses[i],
                            st == TRIB_INPROGRESS ? "no answer" : trib_status_str(st));
    }
    return st;
}

/* Meeting --------------------------------------------------------------------------------- */

static trib_status_t send_blobs(struct trib_session *session, uint64_t until,
                                struct trib_control_blobs b, const uint8_t *all)
{
    const uint32_t most = TRIB_CONTROL_BLOBS_BYTES / b.each;
    trib_status_t st = TRIB_OK;

    for (b.first = 0; b.first < b.total && st == TRIB_OK; b.first += b.count) {
        struct trib_control m = {.kind = TRIB_CONTROL_BLOBS};
        b.count = b.total - b.first < most ? b.total - b.first : most;
        b.data = (struct trib_control_bytes){all + (size_t)b.first * b.each, b.count * b.each};
        m.blobs = b;
        st = trib_session_send_wait(session, until, &m);
    }
    return st;
}

/* Rank 0: each node's blob to behind the ranks', and all of them to each node. */
static trib_status_t exchange_with_nodes(struct meeting *m, uint8_t *all, size_t bytes)
{
    struct sponsor *s = m->sponsor;
    const uint32_t ranks = (uint32_t)m->home->engine.ranks;
    const uint64_t until = trib_deadline_ms(m->home->cfg.boot_timeout_ms);
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < s->n && st == TRIB_OK; i++) {
        struct trib_control c;
        st = trib_session_take_wait(s->sessions[i], until, &c);
        if (st == TRIB_INPROGRESS)
            st = trib_fail(&s->err, TRIB_ERR_TIMEOUT, "%s does not answer", s->addresses[i]);
        if (st != TRIB_OK)
            break;
        if (c.kind != TRIB_CONTROL_BLOBS || c.blobs.each != bytes || c.blobs.count != 1 ||
            c.blobs.first != ranks + (uint32_t)i)
            return trib_fail(&s->err, TRIB_ERR_PROTOCOL, "%s gives something else than what "
                             "it is to be reached by", s->addresses[i]);
        memcpy(all + (ranks + (size_t)i) * bytes, c.blobs.data.at, bytes);
    }
    const struct trib_control_blobs b = {.exchange = (uint32_t)m->exchanges,
                                         .total = ranks + (uint32_t)s->n,
                                         .each = (uint32_t)bytes};
    for (int i = 0; i < s->n && st == TRIB_OK; i++)
        st = send_blobs(s->sessions[i], until, b, all);
    return st;
}

static trib_status_t meet_nodes(void *arg, const char *phase, const void *in, size_t bytes,
                                void *out)
{
    struct meeting *m = arg;
    const size_t ranks = (size_t)m->home->engine.ranks, nodes = (size_t)m->services;
    uint8_t *all = out, *told = calloc(1, sizeof(struct verdict) + nodes * bytes);
    struct verdict v = {0};

    (void)phase;
    if (!told)
        return TRIB_ERR_NO_MEMORY;
    trib_status_t st = trib_comm_tell(m->home, TRIB_ALLGATHER, in, bytes, all);
    if (st == TRIB_OK && m->sponsor) {
        v.status = exchange_with_nodes(m, all, bytes);
        if (v.status != TRIB_OK)
            snprintf(v.why, sizeof(v.why), "%s", trib_error_text(&m->sponsor->err));
        memcpy(told, &v, sizeof(v));
        memcpy(told + sizeof(v), all + ranks * bytes, nodes * bytes);
    }
    m->exchanges++;
    if (st == TRIB_OK)
        st = trib_comm_tell(m->home, TRIB_BROADCAST, NULL, sizeof(v) + nodes * bytes, told);
    memcpy(&v, told, sizeof(v));
    memcpy(all + ranks * bytes, told + sizeof(v), nodes * bytes);
    free(told);
    if (st == TRIB_OK && v.status != TRIB_OK) {
        snprintf(m->why, sizeof(m->why), "%.*s", (int)sizeof(v.why) - 1, v.why);
        st = (trib_status_t)v.status;
    }
    return st;
}

/* A rank that could not go on takes part in what is left, so that others need not wait. */
static void stand_by(struct meeting *m)
{
    size_t bytes;

    while ((bytes = trib_meet_bytes(m->exchanges)) > 0) {
        const size_t n = (size_t)(m->home->engine.ranks + m->services);
        uint8_t *none = calloc(1, bytes), *all = calloc(n, bytes);
        const int before = m->exchanges;
        if (none && all)
            (void)meet_nodes(m, "stand by", none, bytes, all);
        free(none);
        free(all);
        if (m->exchanges == before || m->home->engine.failed)
            return;
    }
}

/* Did all ranks do well? The first sentence of those that did not, on all ranks. */
static trib_status_t agree(struct trib_comm *home, trib_status_t mine, char why[WHY_MAX])
{
    struct verdict v = {.status = mine}, *all = calloc((size_t)home->engine.ranks, sizeof(v));

    if (!all)
        return TRIB_ERR_NO_MEMORY;
    snprintf(v.why, sizeof(v.why), "%s", why);
    trib_status_t st = trib_comm_tell(home, TRIB_ALLGATHER, &v, sizeof(v), all);
    for (int r = 0; st == TRIB_OK && r < home->engine.ranks; r++) {
        if (all[r].status == TRIB_OK)
            continue;
        st = (trib_status_t)all[r].status;
        snprintf(why, WHY_MAX, "%.*s", WHY_MAX - 1, all[r].why);
    }
    free(all);
    return st;
}

/* Control connections, once there is a channel -------------------------------------------- */

/* They are kept alive; who ends one, or is silent, does not sum any more. */
static trib_status_t step_sessions(struct sponsor *s)
{
    struct trib_control m;
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < s->n; i++) {
        trib_status_t one;
        while ((one = trib_session_step(s->sessions[i], &m)) == TRIB_OK)
            continue;
        if (one != TRIB_INPROGRESS)
            st = one;
    }
    return st;
}

/* The home's lock may be held, and other threads may hold the channel's. */
static void look(void *arg)
{
    struct sponsor *s = arg;
    struct trib_comm *channel = s->home->service->channel;
    const uint64_t now = trib_now_ns();

    if (now - s->looked < LOOK_NS)
        return;
    const trib_status_t st = step_sessions(s);
    if (st != TRIB_OK) {
        if (!trib_comm_try_lock(channel))
            return; /* soon again */
        trib_engine_fail(&channel->engine, st, trib_error_text(&s->err));
        trib_comm_unlock(channel);
    }
    s->looked = now;
}

static trib_status_t announce(void *arg, uint32_t number, const char *text,
                              struct trib_error *err)
{
    struct sponsor *s = arg;
    struct trib_control m = {.kind = TRIB_CONTROL_PLAN, .plan.number = number};
    trib_status_t st = TRIB_OK;

    snprintf(m.plan.text, sizeof(m.plan.text), "%s", text);
    for (int i = 0; i < s->n && st == TRIB_OK; i++)
        st = trib_session_send_wait(s->sessions[i],
                                    trib_deadline_ms(s->home->cfg.stop_timeout_ms), &m);
    if (st == TRIB_OK)
        return st;
    (void)trib_fail(err, st, "%s", trib_error_text(&s->err));
    struct trib_service *v = s->home->service;
    if (v && v->channel) {
        trib_comm_lock(v->channel);
        trib_engine_fail(&v->channel->engine, st, trib_error_text(&s->err));
        trib_comm_unlock(v->channel);
    }
    return st;
}

/* All of it ------------------------------------------------------------------------------- */

static trib_status_t open_channel(struct meeting *m, struct trib_comm **out)
{
    struct trib_channel_opts opts = {.rank = m->home->engine.rank,
                                     .ranks = m->home->engine.ranks,
                                     .services = m->services};
    struct trib_exchange x = {meet_nodes, m};
    struct trib_error err = {0};

    if (m->sponsor)
        opts.announcer = (struct trib_announcer){announce, m->sponsor};
    trib_status_t st =
        trib_channel_open(&m->home->cfg, &m->home->log, &opts, &x, &err, out);
    if (st == TRIB_OK)
        return st;
    if (!m->why[0])
        snprintf(m->why, sizeof(m->why), "%s", trib_error_text(&err));
    stand_by(m);
    return st;
}

static trib_status_t make_service(struct meeting *m)
{
    struct trib_comm *channel = NULL, *spare = NULL;
    trib_status_t st = open_channel(m, &channel);

    st = agree(m->home, st, m->why);
    if (st == TRIB_OK)
        st = trib_split(m->home, 0, 0, &spare);
    if (st == TRIB_OK)
        st = trib_service_attach(m->home, channel, spare);
    if (st != TRIB_OK) {
        if (channel)
            trib_channel_dispose(channel);
        if (spare)
            trib_comm_dispose(spare);
        return st;
    }
    if (m->sponsor) {
        m->home->service->look = look;
        m->home->service->gone = free_sponsor;
        m->home->service->arg = m->sponsor;
    }
    return TRIB_OK;
}

trib_status_t trib_service_join(struct trib_comm *comm)
{
    struct meeting m = {.home = comm};
    struct verdict v = {0};

    if (!comm->cfg.service[0])
        return TRIB_OK;
    if (comm->engine.rank == 0) {
        m.sponsor = calloc(1, sizeof(*m.sponsor));
        if (m.sponsor) {
            m.sponsor->home = comm;
            v.status = sponsor_job(m.sponsor);
            v.services = m.sponsor->n;
            snprintf(v.why, sizeof(v.why), "%s", trib_error_text(&m.sponsor->err));
        } else {
            v.status = TRIB_ERR_NO_MEMORY;
        }
    }
    trib_status_t st = trib_comm_tell(comm, TRIB_BROADCAST, NULL, sizeof(v), &v);
    if (st == TRIB_OK && v.status == TRIB_OK && v.services > 0) {
        m.services = v.services;
        v.status = make_service(&m);
        snprintf(v.why, sizeof(v.why), "%s", m.why);
    }
    if (comm->service)
        return st;
    free_sponsor(m.sponsor);
    if (st == TRIB_OK && comm->engine.rank == 0)
        trib_log(&comm->log, TRIB_LOG_WARN, "service",
                 "%s; the ranks sum without a service", v.why[0] ? v.why : "no service");
    return comm->engine.failed ? (trib_status_t)comm->engine.failed : st;
}
