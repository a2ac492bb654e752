/* SPDX-License-Identifier: BSD-3-Clause */
#include "tribd/server.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/fd.h"
#include "base/pace.h"
#include "base/time.h"
#include "base/wait.h"
#include "tribd/server_parts.h"
#include "tribd/systemd.h"

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
static void hang_up_saying(struct server *s, struct client *c, const char *say)
{
    trib_session_free(c->session);
    c->session = NULL;
    if (c->job && !c->left && !s->draining)
        event(s, TRIB_SERVICE_COUNTS_LOST);
    c->left = true;
    if (c->node)
        node_end(c->node, say);
    if (c->job)
        (void)trib_jobs_end(s->jobs, trib_now_ns(), c->job,
                            trib_now_ns() + (uint64_t)RECLAIM_MS * 1000000);
    publish(s);
}

static void hang_up(struct server *s, struct client *c)
{
    hang_up_saying(s, c, NULL);
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

static void admit(struct server *s, struct client *c, uint32_t slots)
{
    const struct trib_control m = {.kind = TRIB_CONTROL_ADMITTED,
                                   .admitted = {.slots = slots, .bytes = c->join.bytes}};
    const struct node_opts opts = {.join = &c->join,
                                   .lane = lane_idlest(s->lanes, s->n_lanes),
                                   .wake_fd = s->wake_fd,
                                   .log = &s->log,
                                   .net = s->net,
                                   .plan_memory = server_memory(&s->settings) / PLAN_SHARE,
                                   .ledger = &c->ledger};
    struct trib_error err = {0};

    trib_jobs_ledger(s->jobs, c->job, &c->ledger);
    if (node_open(&opts, &err, &c->node) != TRIB_OK) {
        refuse(s, c, trib_error_text(&err));
        return;
    }
    node_watch(c->node, s->metrics, c->job);
    event(s, TRIB_SERVICE_COUNTS_ADMITTED);
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "job %s: %u rank%s, %u slot%s", c->join.job,
             c->join.ranks, c->join.ranks == 1 ? "" : "s", slots, slots == 1 ? "" : "s");
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

/* Its tree lies in the frame, and is read when it is admitted. */
static bool keep_join(struct client *c, const struct trib_control_join *join)
{
    c->join = *join;
    c->tree = malloc(join->tree.n + 1);
    if (c->tree && join->tree.n > 0)
        memcpy(c->tree, join->tree.at, join->tree.n);
    c->join.tree.at = c->tree;
    return c->tree;
}

/* The answer may be to wait. */
static void request(struct server *s, struct client *c)
{
    char user[TRIB_JOB_NAME_BYTES];
    const struct trib_control_join *j = &c->join;
    struct trib_job_answer a;

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

static const uint64_t join_ns = (uint64_t)JOIN_MS * 1000000;

/* Users of one hash share their turns. */
static uint64_t *turns_of(struct server *s, const struct client *c)
{
    char user[TRIB_JOB_NAME_BYTES];

    name_user(c, user);
    return &s->join_paid_ns[trib_digest(user, strlen(user)) % JOIN_USERS];
}

static void ask(struct server *s, struct client *c, const struct trib_control_join *join)
{
    if (c->asked) {
        (void)trib_session_end(c->session, TRIB_ERR_PROTOCOL, "a second JOIN");
        hang_up(s, c);
        return;
    }
    c->asked = true;
    if (!keep_join(c, join)) {
        refuse(s, c, "no memory for a job");
        return;
    }
    c->asked_ns = trib_now_ns();
    c->turns = turns_of(s, c);
}

/* The JOINs whose turn it is, the oldest first. */
static void let_in(struct server *s)
{
    const uint64_t now_ns = trib_now_ns();
    struct client *oldest;

    do {
        oldest = NULL;
        for (int i = 0; i < s->n_clients; i++) {
            struct client *c = s->clients[i];
            if (c->session && c->asked_ns && now_ns - *c->turns >= join_ns &&
                (!oldest || c->asked_ns < oldest->asked_ns))
                oldest = c;
        }
        if (oldest && trib_pace_take(oldest->turns, now_ns, join_ns, JOINS_AT_ONCE)) {
            oldest->asked_ns = 0;
            request(s, oldest);
        }
    } while (oldest);
}

/* Also where there is no room for it: then the connection has ended, which says so. */
static bool announce(struct server *s, struct client *c, const struct trib_control_plan *plan)
{
    const trib_status_t st = node_announce(c->node, plan->number, plan->text);

    if (st == TRIB_ERR_NO_RESOURCE)
        (void)trib_session_end(c->session, st, "%d plans wait here already", NODE_WAITING_MAX);
    if (st == TRIB_ERR_NO_RESOURCE)
        hang_up(s, c);
    return st == TRIB_OK || st == TRIB_ERR_NO_RESOURCE;
}

static void take_message(struct server *s, struct client *c, const struct trib_control *m)
{
    c->proven = true;
    switch (m->kind) {
    case TRIB_CONTROL_JOIN:
        ask(s, c, &m->join);
        return;
    case TRIB_CONTROL_BLOBS:
        if (c->node && node_give(c->node, &m->blobs))
            return;
        break;
    case TRIB_CONTROL_PLAN:
        if (c->node && announce(s, c, &m->plan))
            return;
        break;
    case TRIB_CONTROL_GOODBYE:
        c->left = true;
        hang_up(s, c);
        return;
    default:
        break;
    }
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "job %s: %s is not due here", trib_session_job(c->session),
             trib_control_name(m->kind));
    (void)trib_session_end(c->session, TRIB_ERR_PROTOCOL, "%s is not due here",
                           trib_control_name(m->kind));
    hang_up(s, c);
}

/* It has proved who it is, and keeps its place among those who may connect for nothing. */
static bool asks_for_nothing(struct client *c)
{
    if (!c->proven || c->asked)
        return false;
    if (!c->ask_by)
        c->ask_by = trib_deadline_ms(IDLE_MS);
    return trib_deadline_passed(c->ask_by);
}

/* What a client says while its lane has enough of it lies in its socket. */
static bool is_held(const struct client *c)
{
    return c->node && node_is_behind(c->node);
}

static void step_client(struct server *s, struct client *c)
{
    struct trib_control m;
    trib_status_t st = TRIB_INPROGRESS;
    int taken = 0;

    while (c->session && taken < MESSAGES_MOST && !is_held(c) &&
           (st = trib_session_step(c->session, &m)) == TRIB_OK) {
        take_message(s, c, &m);
        taken++;
    }
    c->more = taken == MESSAGES_MOST || is_held(c);
    c->proven |= c->session && trib_session_ready(c->session);
    if (c->session && st == TRIB_INPROGRESS && asks_for_nothing(c))
        st = trib_session_end(c->session, TRIB_ERR_TIMEOUT, "no JOIN has come within %d ms", IDLE_MS);
    if (!c->session || st >= TRIB_OK)
        return;
    if (!c->proven)
        event(s, TRIB_SERVICE_COUNTS_UNPROVEN);
    const bool named = c->join.job[0];
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "%s%s%s%s", named ? "job " : "", c->join.job,
             named ? ": " : "", trib_error_text(&c->err));
    hang_up(s, c);
}

/* Its node lives no more. */
static void free_slots(struct server *s, struct client *c)
{
    if (!c->job || c->freed)
        return;
    c->freed = true;
    (void)trib_jobs_leave(s->jobs, trib_now_ns(), c->job);
    publish(s);
}

static void step_node(struct server *s, struct client *c)
{
    uint8_t room[TRIB_CONTROL_BLOB_MAX];
    struct trib_control m;

    if (c->session && node_sent(c->node, &m, room, sizeof(room)) &&
        trib_session_send(c->session, &m) != TRIB_OK)
        hang_up(s, c);
    const int state = atomic_load(&c->node->state);
    const bool told = s->draining && state == NODE_GONE;
    if (told && c->node->why[0] && !c->said) { /* its job may have left by now: it was told, too */
        trib_log(&s->log, TRIB_LOG_INFO, "tribd", "job %s: %s", c->join.job, c->node->why);
        c->said = true;
    }
    if (!c->session || (state != NODE_FAILED && state != NODE_GONE))
        return;
    if (state == NODE_GONE)
        free_slots(s, c); /* they do not wait for a goodbye */
    if (!c->over_by)
        c->over_by = trib_deadline_ms(GOODBYE_MS);
    if (told || trib_deadline_passed(c->over_by)) {
        if (!told)
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
    who_drop(c->who);
    free(c->tree);
    if (c->job && !c->freed)
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
    static const unsigned unheard = UNHEARD_MS;
    const int fd =
        trib_fd_keep(accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
    struct client *c;

    if (fd < 0) {
        const int error = errno;
        if (trib_accept_failed(&s->pause, error))
            trib_log(&s->log, TRIB_LOG_WARN, "tribd",
                     "no more connections of jobs can be taken: %m; %s; tribd tries again "
                     "every %d ms",
                     trib_accept_cure(error), TRIB_ACCEPT_PAUSE_MS);
        return;
    }
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
    event(s, TRIB_SERVICE_COUNTS_CONNECTIONS);
}

/* Running --------------------------------------------------------------------------------- */

static void begin_drain(struct server *s)
{
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "draining: %d job%s", s->n_clients,
             s->n_clients == 1 ? "" : "s");
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
    struct quotas quotas;
    char kept[256];

    systemd_reloading();
    trib_status_t st = read ? ear->load(ear->arg, read, &err) : TRIB_ERR_NO_MEMORY;
    if (st == TRIB_OK)
        st = quotas_read(read, &err, &quotas);
    if (st == TRIB_OK)
        st = who_open(read, &err, &who);
    if (st == TRIB_OK) {
        quotas_apply(&quotas, s->jobs);
        publish(s); /* weights, to those that run */
        settings_renew(&s->settings, read, kept, sizeof(kept));
        (void)settings_level(&s->settings, &s->log.level);
        who_drop(s->who);
        s->who = who;
        trib_log(&s->log, TRIB_LOG_INFO, "tribd", "the settings are read again");
        server_warn(s);
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

/* "JOB", or "JOB WHY": names of jobs have no blanks. */
static bool kick(struct server *s, const char *what, char *say, size_t bytes)
{
    char name[MANAGE_LINE], text[MANAGE_LINE + 80];
    const size_t n = strcspn(what, " ");
    const char *why = what + n + strspn(what + n, " ");

    snprintf(name, sizeof(name), "%.*s", (int)n, what);
    struct client *c = named(s, name, say, bytes);
    if (!c)
        return false;
    snprintf(say, bytes, "job %s was ended; its ranks go on without the service", c->join.job);
    snprintf(text, sizeof(text), "its operator has ended the job there (tribctl kick)%s%s",
             why[0] ? ": " : "", why);
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "job %s is kicked%s%s", c->join.job,
             why[0] ? ": " : "", why);
    (void)trib_session_end(c->session, TRIB_ERR_ABORTED, "%s", text);
    hang_up_saying(s, c, text);
    return true;
}

bool server_manage(void *arg, const char *verb, const char *what, char *say, size_t bytes)
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
    if (trib_accept_paused(&s->pause) && s->pause.until < due)
        due = s->pause.until;
    if (manage_due(s->manage) < due)
        due = manage_due(s->manage);
    if (s->draining && !s->drained && s->drain_until < due)
        due = s->drain_until;
    for (int i = 0; i < s->n_clients; i++) {
        const struct client *c = s->clients[i];
        if (c->session && is_held(c))
            continue; /* its lane wakes this thread */
        if (c->session && c->more)
            return 0;
        if (c->session && trib_session_due(c->session) < due)
            due = trib_session_due(c->session);
        if (c->session && c->over_by && c->over_by < due)
            due = c->over_by;
        if (c->session && c->asked_ns && *c->turns + join_ns < due)
            due = *c->turns + join_ns;
    }
    return trib_deadline_left_ms(due);
}

/* Clients are looked at in each pass anyway: it goes on, if late, and what keeps it is told. */
static void say_blind(struct server *s)
{
    if (!s->said_blind)
        trib_log(&s->log, TRIB_LOG_ERROR, "tribd",
                 "cannot wait for jobs (poll): %m; it looks every 10 ms: raise ulimit -n, or "
                 "give the host memory");
    s->said_blind = true;
}

/* One pass: wait, then look at all that is ready. */
static void pass(struct server *s, const struct server_ear *ear)
{
    struct pollfd fds[2 + LISTENERS_MAX + CLIENTS_MAX + MANAGE_FDS];
    const int n_listeners = trib_accept_paused(&s->pause) ? 0 : s->n_listeners;
    const int n_clients = s->n_clients;
    nfds_t n = 0;
    uint64_t count;

    fds[n++] = (struct pollfd){.fd = ear->fd, .events = POLLIN};
    fds[n++] = (struct pollfd){.fd = s->wake_fd, .events = POLLIN};
    for (int i = 0; i < n_listeners; i++)
        fds[n++] = (struct pollfd){.fd = s->listeners[i], .events = POLLIN};
    for (int i = 0; i < n_clients; i++) {
        const struct trib_session *session =
            is_held(s->clients[i]) ? NULL : s->clients[i]->session;
        if (session)
            fds[n++] = (struct pollfd){.fd = trib_session_fd(session),
                                       .events = trib_session_events(session)};
    }
    n += (nfds_t)manage_poll(s->manage, fds + n);
    if (trib_poll(fds, n, wait_ms(s)) < 0)
        say_blind(s);
    if (fds[1].revents)
        (void)!read(s->wake_fd, &count, sizeof(count));
    for (int i = 0; i < n_clients; i++)
        if (s->clients[i]->session)
            step_client(s, s->clients[i]);
    let_in(s);
    sweep_clients(s);
    for (int i = 0; i < n_listeners; i++)
        if (fds[2 + i].revents)
            take_client(s, s->listeners[i]);
    manage_step(s->manage);
    trib_http_tend_mt(s->http);
    if (fds[0].revents)
        hear(s, ear);
    end_drain(s);
}

void server_run(struct server *s, const struct server_ear *ear)
{
    publish(s);
    server_warn(s);
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
    manage_close(s->manage);
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
