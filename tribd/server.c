/* SPDX-License-Identifier: BSD-3-Clause */
#include "tribd/server.h"

#include <errno.h>
#include <poll.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agg/http.h"
#include "agg/jobs.h"
#include "agg/metrics.h"
#include "agg/session.h"
#include "base/time.h"
#include "base/wait.h"
#include "boot/tcp_net.h"
#include "tribd/lane.h"
#include "tribd/systemd.h"
#include "tribd/who.h"

enum {
    CLIENTS_MAX = 1024,
    LISTENERS_MAX = 32,
    HANDSHAKE_MS = 5000,
    PATIENCE_MS = 2000,
    RECLAIM_MS = 5000, /* a job that is gone has its slots no longer than that */
    STUCK_MS = 10000,
    TICK_MS = 1000,
    UNHEARD_MS = 10000, /* a host that acknowledges nothing for so long is gone */
    PLAN_SHARE = 8, /* of the memory, one plan may have one part of so many */
};

/* A job, or one that wants to be. */
struct client {
    struct trib_session *session; /* NULL: closed, its node is ending */
    struct who *who;
    struct trib_error err;
    struct node *node;
    uint64_t job; /* of jobs; 0: none */
    struct trib_control_join join;
    bool asked;
};

struct server {
    struct settings settings;
    struct trib_log log;
    struct who *who; /* of the next client */
    struct trib_jobs *jobs;
    struct trib_metrics *metrics;
    struct trib_http *http;
    struct lane **lanes;
    int n_lanes;
    int wake_fd;
    int listeners[LISTENERS_MAX];
    int n_listeners;
    struct client *clients[CLIENTS_MAX];
    int n_clients;
    bool draining, drained; /* told to; and its time is up */
    uint64_t drain_until;
};

/* Opening --------------------------------------------------------------------------------- */

static trib_status_t parse_addresses(const struct settings *t,
                                     struct trib_tcp_root roots[LISTENERS_MAX], int *n_out,
                                     struct trib_error *err)
{
    char list[SETTINGS_TEXT_BYTES], *rest;
    int n = 0;

    snprintf(list, sizeof(list), "%s", t->listen);
    for (char *a = strtok_r(list, ", ", &rest); a; a = strtok_r(NULL, ", ", &rest)) {
        if (n == LISTENERS_MAX)
            return trib_fail(err, TRIB_ERR_CONFIG, "listen: more than %d addresses",
                             LISTENERS_MAX);
        if (!trib_tcp_root_parse(a, &roots[n++]))
            return trib_fail(err, TRIB_ERR_CONFIG, "listen: \"%s\" is not host:port", a);
    }
    *n_out = n;
    return n ? TRIB_OK
             : trib_fail(err, TRIB_ERR_CONFIG,
                         "listen is empty: no job could find this service");
}

static trib_status_t listen_at(struct server *s, const struct trib_tcp_root *root,
                               struct trib_error *err)
{
    int fds[TRIB_TCP_LISTENERS_MAX], n = 0;

    const int error = trib_tcp_bind(root, fds, &n);
    if (error)
        return trib_fail(err, TRIB_ERR_BOOT, "cannot listen at %s:%s: %s", root->host,
                         root->port, strerror(error));
    for (int i = 0; i < n; i++) {
        if (s->n_listeners < LISTENERS_MAX)
            s->listeners[s->n_listeners++] = fds[i];
        else
            close(fds[i]);
    }
    return TRIB_OK;
}

static trib_status_t listen_everywhere(struct server *s, struct trib_error *err)
{
    struct trib_tcp_root roots[LISTENERS_MAX];
    int n = 0;

    trib_status_t st = parse_addresses(&s->settings, roots, &n, err);
    for (int i = 0; i < n && st == TRIB_OK; i++)
        st = listen_at(s, &roots[i], err);
    return st;
}

static uint64_t memory_of(const struct settings *t)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return t->memory ? (uint64_t)t->memory << 20 : (uint64_t)pages * (uint64_t)page / 2;
}

static trib_status_t create_jobs(const struct settings *t, struct trib_error *err,
                                 struct trib_jobs **out)
{
    const struct trib_jobs_opts opts = {.service = {.slots = t->slots,
                                                    .jobs = t->jobs,
                                                    .queued = t->queue,
                                                    .bytes = memory_of(t)},
                                        .user = {.slots = t->user_slots},
                                        .job = {.slots = t->job_slots},
                                        .patience_ns = (uint64_t)PATIENCE_MS * 1000000};

    return trib_jobs_create(&opts, err, out);
}

static trib_status_t open_jobs(struct server *s, struct trib_error *err)
{
    const struct trib_metrics_opts counted = {.start_ns = trib_now_ns(),
                                              .stuck_ns = (uint64_t)STUCK_MS * 1000000};

    trib_status_t st = create_jobs(&s->settings, err, &s->jobs);
    if (st == TRIB_OK)
        st = trib_metrics_create(&counted, &s->metrics);
    return st;
}

static trib_status_t view(void *arg, struct trib_service_view *out)
{
    struct server *s = arg;

    return trib_metrics_view_mt(s->metrics, trib_now_ns(), out);
}

static trib_status_t parse_http(const struct settings *t, struct trib_tcp_root *out,
                                struct trib_error *err)
{
    return trib_tcp_root_parse(t->http, out)
               ? TRIB_OK
               : trib_fail(err, TRIB_ERR_CONFIG, "http: \"%s\" is not host:port", t->http);
}

static trib_status_t open_http(struct server *s, struct trib_error *err)
{
    struct trib_tcp_root at;

    if (!s->settings.http[0])
        return TRIB_OK;
    const trib_status_t st = parse_http(&s->settings, &at, err);
    if (st != TRIB_OK)
        return st;
    const struct trib_http_opts opts = {
        .address = at.host, .port = (uint16_t)atoi(at.port), .view = view, .arg = s};
    return trib_http_start(&opts, err, &s->http);
}

static trib_status_t start_lanes(struct server *s, struct trib_error *err)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int n = s->settings.threads ? (int)s->settings.threads : (int)(cores > 0 ? cores : 1);
    trib_status_t st = TRIB_OK;

    s->lanes = calloc((size_t)n, sizeof(*s->lanes));
    if (!s->lanes)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for %d threads", n);
    for (int i = 0; i < n && st == TRIB_OK; i++) {
        st = lane_start(i, err, &s->lanes[i]);
        s->n_lanes += st == TRIB_OK;
    }
    return st;
}

trib_status_t server_check(const struct settings *t, struct trib_error *err)
{
    struct trib_tcp_root roots[LISTENERS_MAX];
    struct trib_jobs *jobs = NULL;
    struct who *who = NULL;
    int n;

    trib_status_t st = parse_addresses(t, roots, &n, err);
    if (st == TRIB_OK && t->http[0])
        st = parse_http(t, roots, err);
    if (st == TRIB_OK)
        st = create_jobs(t, err, &jobs);
    if (st == TRIB_OK)
        st = who_open(t, err, &who);
    trib_jobs_destroy(jobs);
    who_drop(who);
    return st;
}

trib_status_t server_open(const struct settings *settings, const struct trib_log *log,
                          struct trib_error *err, struct server **out)
{
    struct server *s = calloc(1, sizeof(*s));

    *out = NULL;
    if (!s)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory");
    s->settings = *settings;
    s->log = *log;
    s->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    trib_status_t st = who_open(&s->settings, err, &s->who);
    if (st == TRIB_OK)
        st = open_jobs(s, err);
    if (st == TRIB_OK)
        st = listen_everywhere(s, err);
    if (st == TRIB_OK)
        st = open_http(s, err);
    if (st == TRIB_OK)
        st = start_lanes(s, err);
    if (st != TRIB_OK) {
        server_close(s);
        return st;
    }
    *out = s;
    return TRIB_OK;
}

/* Clients --------------------------------------------------------------------------------- */

static void publish(struct server *s)
{
    (void)trib_metrics_publish(s->metrics, s->jobs, trib_now_ns());
}

/* The end of the conversation; the node, if any, ends, and then the client is gone. */
static void hang_up(struct server *s, struct client *c)
{
    trib_session_free(c->session);
    c->session = NULL;
    if (c->node)
        node_end(c->node);
    if (c->job)
        (void)trib_jobs_end(s->jobs, trib_now_ns(), c->job,
                            trib_now_ns() + (uint64_t)RECLAIM_MS * 1000000);
    publish(s);
}

static void refuse(struct server *s, struct client *c, const char *why)
{
    struct trib_control m = {.kind = TRIB_CONTROL_REFUSED};

    snprintf(m.said.text, sizeof(m.said.text), "%s", why);
    (void)trib_session_send_wait(c->session, trib_deadline_ms(100), &m);
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "job %s is refused: %s", c->join.job, why);
    hang_up(s, c);
}

static struct lane *idlest(const struct server *s)
{
    struct lane *best = s->lanes[0];

    for (int i = 1; i < s->n_lanes; i++)
        if (lane_load(s->lanes[i]) < lane_load(best))
            best = s->lanes[i];
    return best;
}

static void admit(struct server *s, struct client *c, uint32_t slots)
{
    const struct trib_control m = {.kind = TRIB_CONTROL_ADMITTED,
                                   .admitted = {.slots = slots, .bytes = c->join.bytes}};
    const struct node_opts opts = {.join = &c->join,
                                   .lane = idlest(s),
                                   .wake_fd = s->wake_fd,
                                   .log = &s->log,
                                   .plan_memory = memory_of(&s->settings) / PLAN_SHARE};
    struct trib_error err = {0};

    if (node_open(&opts, &err, &c->node) != TRIB_OK) {
        refuse(s, c, trib_error_text(&err));
        return;
    }
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "job %s: %u ranks, %u slots", c->join.job,
             c->join.ranks, slots);
    if (trib_session_send(c->session, &m) != TRIB_OK)
        hang_up(s, c);
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
    struct trib_control m = {.kind = TRIB_CONTROL_QUEUED, .queued.position = a->position};

    switch (a->verdict) {
    case TRIB_JOB_ADMIT:
        admit(s, c, a->slots);
        break;
    case TRIB_JOB_REFUSE:
        c->job = 0;
        refuse(s, c, a->text);
        break;
    case TRIB_JOB_QUEUE:
        snprintf(m.queued.text, sizeof(m.queued.text), "%s", a->text);
        if (trib_session_send(c->session, &m) != TRIB_OK)
            hang_up(s, c);
        break;
    case TRIB_JOB_FREED:
        break;
    }
}

/* What time has brought to those who wait. */
static void settle(struct server *s)
{
    struct trib_job_answer a;

    while (trib_jobs_next(s->jobs, trib_now_ns(), &a)) {
        struct client *c = client_of(s, a.id);
        if (c)
            answer(s, c, &a);
    }
}

static void name_user(const struct client *c, char out[TRIB_JOB_NAME_BYTES])
{
    const struct trib_auth_peer peer = trib_session_peer(c->session);
    const struct passwd *user = peer.has_user ? getpwuid(peer.uid) : NULL;

    if (user)
        snprintf(out, TRIB_JOB_NAME_BYTES, "%.64s", user->pw_name);
    else if (peer.has_user)
        snprintf(out, TRIB_JOB_NAME_BYTES, "uid %u", (unsigned)peer.uid);
    else
        snprintf(out, TRIB_JOB_NAME_BYTES, "%s", trib_auth_name(peer.method));
}

static void ask(struct server *s, struct client *c)
{
    char user[TRIB_JOB_NAME_BYTES];
    const struct trib_control_join *j = &c->join;
    struct trib_job_answer a;

    if (c->asked) {
        (void)trib_session_end(c->session, TRIB_ERR_PROTOCOL, "a second JOIN");
        hang_up(s, c);
        return;
    }
    c->asked = true;
    name_user(c, user);
    const struct trib_job_request request = {
        .name = j->job,
        .user = user,
        .weight = j->weight ? j->weight : 1,
        .ranks = j->ranks,
        .slots = j->slots,
        .slot_bytes = j->slots ? j->bytes / j->slots : 0,
        .wait_ns = (uint64_t)j->deadline_ms * 1000000};
    settle(s);
    trib_jobs_ask(s->jobs, trib_now_ns(), &request, &a);
    c->job = a.id;
    answer(s, c, &a);
    publish(s);
}

static void take_message(struct server *s, struct client *c, const struct trib_control *m)
{
    switch (m->kind) {
    case TRIB_CONTROL_JOIN:
        c->join = m->join;
        ask(s, c);
        return;
    case TRIB_CONTROL_BLOBS:
        if (c->node && node_give(c->node, &m->blobs))
            return;
        break;
    case TRIB_CONTROL_PLAN:
        if (c->node && node_announce(c->node, m->plan.number, m->plan.text) == TRIB_OK)
            return;
        break;
    case TRIB_CONTROL_GOODBYE:
        hang_up(s, c);
        return;
    default:
        break;
    }
    (void)trib_session_end(c->session, TRIB_ERR_PROTOCOL, "%s is not due here",
                           trib_control_name(m->kind));
    hang_up(s, c);
}

static void step_client(struct server *s, struct client *c)
{
    struct trib_control m;
    trib_status_t st = TRIB_INPROGRESS;

    while (c->session && (st = trib_session_step(c->session, &m)) == TRIB_OK)
        take_message(s, c, &m);
    if (!c->session || st == TRIB_INPROGRESS)
        return;
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "job %s: %s",
             c->join.job[0] ? c->join.job : "?", trib_error_text(&c->err));
    hang_up(s, c);
}

static void step_node(struct server *s, struct client *c)
{
    uint8_t room[TRIB_CONTROL_BLOB_MAX];
    struct trib_control m;

    if (c->session && node_sent(c->node, &m, room, sizeof(room)) &&
        trib_session_send(c->session, &m) != TRIB_OK)
        hang_up(s, c);
    const int state = atomic_load(&c->node->state);
    if (!c->session || (state != NODE_FAILED && state != NODE_GONE))
        return;
    const bool told = s->draining && state == NODE_GONE;
    trib_log(&s->log, told ? TRIB_LOG_INFO : TRIB_LOG_WARN, "tribd", "job %s: %s",
             c->join.job, c->node->why);
    (void)trib_session_end(c->session, TRIB_ERR_ABORTED, "%s", c->node->why);
    hang_up(s, c);
}

static bool is_gone(const struct client *c)
{
    return !c->session && (!c->node || atomic_load(&c->node->state) == NODE_GONE);
}

static void free_client(struct server *s, struct client *c)
{
    trib_session_free(c->session);
    if (c->node)
        node_free(c->node);
    who_drop(c->who);
    if (c->job)
        (void)trib_jobs_leave(s->jobs, trib_now_ns(), c->job);
    if (c->join.job[0])
        trib_log(&s->log, TRIB_LOG_INFO, "tribd", "job %s is gone", c->join.job);
    free(c);
}

static void sweep_clients(struct server *s)
{
    bool changed = false;

    for (int i = 0; i < s->n_clients; i++) {
        struct client *c = s->clients[i];
        if (c->node)
            step_node(s, c);
        if (!is_gone(c))
            continue;
        free_client(s, c);
        s->clients[i--] = s->clients[--s->n_clients];
        changed = true;
    }
    settle(s);
    if (changed)
        publish(s);
}

static void take_client(struct server *s, int listener)
{
    static const unsigned unheard = UNHEARD_MS;
    const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct client *c;

    if (fd < 0)
        return;
    if (s->n_clients == CLIENTS_MAX || s->draining || !(c = calloc(1, sizeof(*c)))) {
        close(fd);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard, sizeof(unheard));
    const struct trib_session_opts opts = {.fd = fd,
                                           .role = TRIB_CONTROL_AGGREGATOR,
                                           .auth = s->who->auth,
                                           .peer = "a job",
                                           .handshake_ms = HANDSHAKE_MS,
                                           .err = &c->err};
    if (trib_session_open(&opts, &c->session) != TRIB_OK) {
        free(c);
        return;
    }
    c->who = who_hold(s->who);
    s->clients[s->n_clients++] = c;
}

/* Running --------------------------------------------------------------------------------- */

static void begin_drain(struct server *s)
{
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "draining: %d jobs", s->n_clients);
    systemd_notify("STOPPING=1");
    s->draining = true;
    s->drain_until = trib_deadline_ms((int)s->settings.drain_ms);
    trib_jobs_drain(s->jobs, true);
    for (int i = 0; i < s->n_listeners; i++)
        close(s->listeners[i]);
    s->n_listeners = 0;
    for (int i = 0; i < s->n_clients; i++) {
        if (s->clients[i]->node)
            node_drain(s->clients[i]->node);
        else
            hang_up(s, s->clients[i]);
    }
}

/* What can change, does, for those who come from now on; or nothing does, and why. */
static void reload(struct server *s, const struct server_ear *ear)
{
    struct settings *read = calloc(1, sizeof(*read));
    struct trib_error err = {0};
    struct who *who = NULL;
    char kept[256];

    systemd_reloading();
    trib_status_t st = read ? ear->load(ear->arg, read, &err) : TRIB_ERR_NO_MEMORY;
    if (st == TRIB_OK)
        st = who_open(read, &err, &who);
    if (st == TRIB_OK) {
        settings_renew(&s->settings, read, kept, sizeof(kept));
        (void)settings_level(&s->settings, &s->log.level);
        who_drop(s->who);
        s->who = who;
        trib_log(&s->log, TRIB_LOG_INFO, "tribd", "the settings are read again");
        if (kept[0])
            trib_log(&s->log, TRIB_LOG_WARN, "tribd", "%s: only a restart changes that", kept);
    } else {
        trib_log(&s->log, TRIB_LOG_WARN, "tribd", "the settings are as before: %s",
                 read ? trib_error_text(&err) : "no memory");
    }
    free(read);
    systemd_notify("READY=1");
}

static void hear(struct server *s, const struct server_ear *ear)
{
    struct signalfd_siginfo info;

    while (read(ear->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (s->draining)
            continue;
        if (info.ssi_signo == SIGHUP)
            reload(s, ear);
        else
            begin_drain(s);
    }
}

static void end_drain(struct server *s)
{
    if (!s->draining || s->drained || !trib_deadline_passed(s->drain_until))
        return;
    s->drained = true;
    for (int i = 0; i < s->n_clients; i++)
        if (s->clients[i]->session)
            hang_up(s, s->clients[i]);
}

static int wait_ms(const struct server *s)
{
    uint64_t due = trib_deadline_ms(TICK_MS);
    const uint64_t jobs = trib_jobs_wake_ns(s->jobs);

    if (jobs && jobs < due)
        due = jobs;
    if (s->draining && !s->drained && s->drain_until < due)
        due = s->drain_until;
    for (int i = 0; i < s->n_clients; i++)
        if (s->clients[i]->session && trib_session_due(s->clients[i]->session) < due)
            due = trib_session_due(s->clients[i]->session);
    return trib_deadline_left_ms(due);
}

/* One pass: wait, then look at all that is ready. */
static void pass(struct server *s, const struct server_ear *ear)
{
    struct pollfd fds[2 + LISTENERS_MAX + CLIENTS_MAX];
    const int n_listeners = s->n_listeners, n_clients = s->n_clients;
    nfds_t n = 0;
    uint64_t count;

    fds[n++] = (struct pollfd){.fd = ear->fd, .events = POLLIN};
    fds[n++] = (struct pollfd){.fd = s->wake_fd, .events = POLLIN};
    for (int i = 0; i < n_listeners; i++)
        fds[n++] = (struct pollfd){.fd = s->listeners[i], .events = POLLIN};
    for (int i = 0; i < n_clients; i++) {
        const struct trib_session *session = s->clients[i]->session;
        fds[n++] = (struct pollfd){.fd = session ? trib_session_fd(session) : -1,
                                   .events = session ? trib_session_events(session) : 0};
    }
    (void)poll(fds, n, wait_ms(s));
    if (fds[1].revents)
        (void)!read(s->wake_fd, &count, sizeof(count));
    for (int i = 0; i < n_clients; i++)
        if (s->clients[i]->session)
            step_client(s, s->clients[i]);
    sweep_clients(s);
    for (int i = 0; i < n_listeners; i++)
        if (fds[2 + i].revents)
            take_client(s, s->listeners[i]);
    if (fds[0].revents)
        hear(s, ear);
    end_drain(s);
}

void server_run(struct server *s, const struct server_ear *ear)
{
    publish(s);
    while (!s->draining || s->n_clients > 0)
        pass(s, ear);
}

void server_close(struct server *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_listeners; i++)
        close(s->listeners[i]);
    for (int i = 0; i < s->n_clients; i++)
        free_client(s, s->clients[i]);
    trib_http_stop(s->http);
    for (int i = 0; i < s->n_lanes; i++)
        lane_stop(s->lanes[i]);
    free(s->lanes);
    trib_metrics_destroy(s->metrics);
    trib_jobs_destroy(s->jobs);
    who_drop(s->who);
    if (s->wake_fd >= 0)
        close(s->wake_fd);
    free(s);
}
