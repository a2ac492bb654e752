/* SPDX-License-Identifier: BSD-3-Clause */
#include "tribd/server.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
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
#include "tribd/manage.h"

enum {
    CLIENTS_MAX = 1024,
    LISTENERS_MAX = 32,
    HANDSHAKE_MS = 5000,
    GOODBYE_MS = 300, /* by which a goodbye may come after the ranks have left the node */
    PATIENCE_MS = 2000,
    RECLAIM_MS = 5000, /* a job that is gone has its slots no longer than that */
    STUCK_MS = 10000,
    TICK_MS = 1000,
    USERS_MAX = 256,
    PLAN_SHARE = 8, /* of the memory, one plan may have one part of so many */
};

/* A job, or one that wants to be. */
struct client {
    struct trib_session *session; /* NULL: closed, its node is ending */
    struct trib_error err;
    struct node *node;
    uint64_t over_by; /* its node has failed: a goodbye is due by then; 0: it has not */
    uint64_t job; /* of jobs; 0: none */
    struct trib_control_join join;
    bool proven; /* who it is */
    bool asked;
    bool left; /* it said goodbye, was refused, or is known to be lost */
};

struct server {
    struct settings settings;
    struct trib_log log;
    struct trib_auth *auth;
    struct trib_jobs *jobs;
    struct trib_metrics *metrics;
    struct trib_http *http;
    struct manage *manage; /* or NULL: no socket */
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

static trib_status_t listen_at(struct server *s, const char *address, struct trib_error *err)
{
    struct trib_tcp_root root;
    int fds[TRIB_TCP_LISTENERS_MAX], n = 0;

    if (!trib_tcp_root_parse(address, &root))
        return trib_fail(err, TRIB_ERR_CONFIG, "listen: \"%s\" is not host:port", address);
    trib_status_t st = trib_tcp_listen(&root, err, fds, &n);
    for (int i = 0; st == TRIB_OK && i < n; i++) {
        if (s->n_listeners < LISTENERS_MAX)
            s->listeners[s->n_listeners++] = fds[i];
        else
            close(fds[i]);
    }
    return st;
}

static trib_status_t listen_everywhere(struct server *s, struct trib_error *err)
{
    char list[SETTINGS_TEXT_BYTES], *rest;
    trib_status_t st = TRIB_OK;

    snprintf(list, sizeof(list), "%s", s->settings.listen);
    for (char *a = strtok_r(list, ", ", &rest); a && st == TRIB_OK;
         a = strtok_r(NULL, ", ", &rest))
        st = listen_at(s, a, err);
    if (st == TRIB_OK && !s->n_listeners)
        st = trib_fail(err, TRIB_ERR_CONFIG, "listen is empty: no job could find this service");
    return st;
}

static trib_status_t open_auth(struct server *s, struct trib_error *err)
{
    static const size_t most = USERS_MAX;
    uid_t *users = calloc(most, sizeof(*users));
    char list[SETTINGS_TEXT_BYTES], *rest;
    struct trib_auth_opts opts = {
        .method = s->settings.auth, .key_file = s->settings.key, .users = users};
    trib_status_t st = users ? TRIB_OK : TRIB_ERR_NO_MEMORY;

    snprintf(list, sizeof(list), "%s", s->settings.users);
    for (char *name = strtok_r(list, ", ", &rest); name && st == TRIB_OK;
         name = strtok_r(NULL, ", ", &rest)) {
        const struct passwd *user = getpwnam(name);
        if (!user || opts.n_users == most)
            st = trib_fail(err, TRIB_ERR_CONFIG, "users: there is no user %s", name);
        else
            users[opts.n_users++] = user->pw_uid;
    }
    if (st == TRIB_OK)
        st = trib_auth_open(&opts, err, &s->auth);
    free(users);
    return st;
}

static uint64_t memory_of(const struct settings *t)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return t->memory ? (uint64_t)t->memory << 20 : (uint64_t)pages * (uint64_t)page / 2;
}

static trib_status_t open_jobs(struct server *s, struct trib_error *err)
{
    const struct settings *t = &s->settings;
    const struct trib_jobs_opts opts = {.service = {.slots = t->slots,
                                                    .jobs = t->jobs,
                                                    .queued = t->queue,
                                                    .bytes = memory_of(t)},
                                        .user = {.slots = t->user_slots},
                                        .job = {.slots = t->job_slots},
                                        .patience_ns = (uint64_t)PATIENCE_MS * 1000000};
    const struct trib_metrics_opts counted = {.start_ns = trib_now_ns(),
                                              .stuck_ns = (uint64_t)STUCK_MS * 1000000};

    trib_status_t st = trib_jobs_create(&opts, err, &s->jobs);
    if (st == TRIB_OK)
        st = trib_metrics_create(&counted, &s->metrics);
    return st;
}

static trib_status_t view(void *arg, struct trib_service_view *out)
{
    struct server *s = arg;

    return trib_metrics_view_mt(s->metrics, trib_now_ns(), out);
}

static trib_status_t open_http(struct server *s, struct trib_error *err)
{
    struct trib_tcp_root at;

    if (!s->settings.http[0])
        return TRIB_OK;
    if (!trib_tcp_root_parse(s->settings.http, &at))
        return trib_fail(err, TRIB_ERR_CONFIG, "http: \"%s\" is not host:port",
                         s->settings.http);
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

static bool manage_act(void *arg, const char *verb, const char *what, char *say, size_t bytes);

static trib_status_t open_manage(struct server *s, struct trib_error *err)
{
    const struct manage_ops ops = {manage_act, s};

    return s->settings.socket[0] ? manage_open(s->settings.socket, &ops, err, &s->manage)
                                 : TRIB_OK;
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
    trib_status_t st = open_auth(s, err);
    if (st == TRIB_OK)
        st = open_jobs(s, err);
    if (st == TRIB_OK)
        st = listen_everywhere(s, err);
    if (st == TRIB_OK)
        st = open_http(s, err);
    if (st == TRIB_OK)
        st = open_manage(s, err);
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

static void event(struct server *s, enum trib_service_counter c)
{
    trib_metrics_event_mt(s->metrics, c, 1);
}

/* What has changed: for those who look, and among those who share a thread. */
static void publish(struct server *s)
{
    (void)trib_metrics_publish(s->metrics, s->jobs, trib_now_ns());
    for (int i = 0; i < s->n_clients; i++)
        if (s->clients[i]->node && s->clients[i]->job)
            node_weigh(s->clients[i]->node, trib_jobs_weight(s->jobs, s->clients[i]->job));
}

/* The end of the conversation; the node, if any, ends, and then the client is gone. */
static void hang_up(struct server *s, struct client *c)
{
    trib_session_free(c->session);
    c->session = NULL;
    if (c->job && !c->left && !s->draining)
        event(s, TRIB_SERVICE_COUNTS_LOST);
    c->left = true;
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

    event(s, TRIB_SERVICE_COUNTS_REFUSED);
    c->left = true;
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
    node_watch(c->node, s->metrics, c->job);
    event(s, TRIB_SERVICE_COUNTS_ADMITTED);
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
        event(s, TRIB_SERVICE_COUNTS_QUEUED);
        snprintf(m.queued.text, sizeof(m.queued.text), "%s", a->text);
        if (trib_session_send(c->session, &m) != TRIB_OK)
            hang_up(s, c);
        break;
    case TRIB_JOB_FREED:
        break;
    }
}

/* What time has brought to those who wait; false: nothing. */
static bool settle(struct server *s)
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
    (void)settle(s); /* a publish follows */
    trib_jobs_ask(s->jobs, trib_now_ns(), &request, &a);
    c->job = a.id;
    answer(s, c, &a);
    publish(s);
}

static void take_message(struct server *s, struct client *c, const struct trib_control *m)
{
    c->proven = true;
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
        c->left = true;
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
    c->proven |= c->session && trib_session_ready(c->session);
    if (!c->session || st == TRIB_INPROGRESS)
        return;
    if (!c->proven)
        event(s, TRIB_SERVICE_COUNTS_UNPROVEN);
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
    if (!c->over_by)
        c->over_by = trib_deadline_ms(GOODBYE_MS);
    if (trib_deadline_passed(c->over_by)) {
        trib_log(&s->log, TRIB_LOG_WARN, "tribd", "job %s: %s", c->join.job, c->node->why);
        (void)trib_session_end(c->session, TRIB_ERR_ABORTED, "%s", c->node->why);
        hang_up(s, c);
    }
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
    changed |= settle(s);
    if (changed)
        publish(s);
}

static void take_client(struct server *s, int listener)
{
    const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct client *c;

    if (fd < 0)
        return;
    if (s->n_clients == CLIENTS_MAX || s->draining || !(c = calloc(1, sizeof(*c)))) {
        close(fd);
        return;
    }
    const struct trib_session_opts opts = {.fd = fd,
                                           .role = TRIB_CONTROL_AGGREGATOR,
                                           .auth = s->auth,
                                           .peer = "a job",
                                           .handshake_ms = HANDSHAKE_MS,
                                           .err = &c->err};
    if (trib_session_open(&opts, &c->session) != TRIB_OK) {
        free(c);
        return;
    }
    s->clients[s->n_clients++] = c;
    event(s, TRIB_SERVICE_COUNTS_CONNECTIONS);
}

/* Running --------------------------------------------------------------------------------- */

static void begin_drain(struct server *s)
{
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "draining: %d jobs", s->n_clients);
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

static void end_drain(struct server *s)
{
    if (!s->draining || s->drained || !trib_deadline_passed(s->drain_until))
        return;
    s->drained = true;
    for (int i = 0; i < s->n_clients; i++)
        if (s->clients[i]->session)
            hang_up(s, s->clients[i]);
}

/* The client of a number, or the only one of a name; NULL, and why in say. */
static struct client *named(struct server *s, const char *what, char *say, size_t bytes)
{
    struct client *found = NULL;
    int n = 0;

    for (int i = 0; i < s->n_clients; i++) {
        struct client *c = s->clients[i];
        char number[24];
        snprintf(number, sizeof(number), "%" PRIu64, c->job);
        if (!c->job || !c->session)
            continue;
        if (strcmp(number, what) == 0)
            return c;
        if (strcmp(c->join.job, what) == 0) {
            found = c;
            n++;
        }
    }
    if (n > 1)
        snprintf(say, bytes, "%d jobs have the name %.64s: say the number of one, as tribctl jobs "
                             "shows it", n, what);
    else if (n == 0)
        snprintf(say, bytes, "there is no job %.64s", what);
    return n == 1 ? found : NULL;
}

static bool kick(struct server *s, const char *what, char *say, size_t bytes)
{
    struct client *c = named(s, what, say, bytes);

    if (!c)
        return false;
    snprintf(say, bytes, "job %s was ended; its ranks go on without the service", c->join.job);
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "job %s is kicked", c->join.job);
    (void)trib_session_end(c->session, TRIB_ERR_ABORTED,
                           "who runs the service has ended the job there (tribctl kick)");
    hang_up(s, c);
    return true;
}

static bool manage_act(void *arg, const char *verb, const char *what, char *say, size_t bytes)
{
    struct server *s = arg;

    if (strcmp(verb, "kick") == 0)
        return kick(s, what, say, bytes);
    if (strcmp(verb, "drain") != 0) {
        snprintf(say, bytes, "there is no command %.64s: there are drain and kick JOB", verb);
        return false;
    }
    if (!s->draining)
        begin_drain(s);
    snprintf(say, bytes, "tribd takes no more jobs, and ends within %d ms; jobs that run: %u",
             trib_deadline_left_ms(s->drain_until), trib_jobs_view(s->jobs).held.jobs);
    return true;
}

static int wait_ms(const struct server *s)
{
    uint64_t due = trib_deadline_ms(TICK_MS);
    const uint64_t jobs = trib_jobs_wake_ns(s->jobs);

    if (jobs && jobs < due)
        due = jobs;
    if (s->draining && !s->drained && s->drain_until < due)
        due = s->drain_until;
    for (int i = 0; i < s->n_clients; i++) {
        const struct client *c = s->clients[i];
        if (c->session && trib_session_due(c->session) < due)
            due = trib_session_due(c->session);
        if (c->session && c->over_by && c->over_by < due)
            due = c->over_by;
    }
    return trib_deadline_left_ms(due);
}

/* One pass: wait, then look at all that is ready. */
static void pass(struct server *s, int stop_fd)
{
    struct pollfd fds[2 + LISTENERS_MAX + CLIENTS_MAX + MANAGE_FDS];
    const int n_listeners = s->n_listeners, n_clients = s->n_clients;
    nfds_t n = 0;
    uint64_t count;

    fds[n++] = (struct pollfd){.fd = s->draining ? -1 : stop_fd, .events = POLLIN};
    fds[n++] = (struct pollfd){.fd = s->wake_fd, .events = POLLIN};
    for (int i = 0; i < n_listeners; i++)
        fds[n++] = (struct pollfd){.fd = s->listeners[i], .events = POLLIN};
    for (int i = 0; i < n_clients; i++) {
        const struct trib_session *session = s->clients[i]->session;
        fds[n++] = (struct pollfd){.fd = session ? trib_session_fd(session) : -1,
                                   .events = session ? trib_session_events(session) : 0};
    }
    n += (nfds_t)manage_poll(s->manage, fds + n);
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
    manage_step(s->manage);
    if (fds[0].revents && !s->draining)
        begin_drain(s);
    end_drain(s);
}

void server_run(struct server *s, int stop_fd)
{
    publish(s);
    while (!s->draining || s->n_clients > 0)
        pass(s, stop_fd);
}

void server_close(struct server *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_listeners; i++)
        close(s->listeners[i]);
    for (int i = 0; i < s->n_clients; i++)
        free_client(s, s->clients[i]);
    manage_close(s->manage);
    trib_http_stop(s->http);
    for (int i = 0; i < s->n_lanes; i++)
        lane_stop(s->lanes[i]);
    free(s->lanes);
    trib_metrics_destroy(s->metrics);
    trib_jobs_destroy(s->jobs);
    trib_auth_free(s->auth);
    if (s->wake_fd >= 0)
        close(s->wake_fd);
    free(s);
}
