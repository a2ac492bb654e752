/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of the control thread: read clients, admit, sweep, accept, wait. */
#include "agg/daemon/server.h"

#include <assert.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agg/daemon/server_parts.h"
#include "base/time.h"
#include "base/wait.h"

/* Clients -------------------------------------------------------------------------- */

/* Pass a plan to the aggregator. If its queue is full, end the connection with the
 * reason. */
static bool announce(struct server *s, struct client *c,
                     const struct trib_control_plan *plan)
{
    const trib_status_t st =
        aggregator_announce(c->aggregator, plan->number, plan->text);

    if (st == TRIB_ERR_NO_RESOURCE)
        (void)trib_session_end(c->session, st, "%d plans are queued already",
                               AGGREGATOR_PLANS_WAITING_MAX);
    if (st == TRIB_ERR_NO_RESOURCE) {
        c->lost = TRIB_LOST_FOR_PROTOCOL;
        server_hang_up(s, c);
    }
    return st == TRIB_OK || st == TRIB_ERR_NO_RESOURCE;
}

/* Mark a client with a ready session as authenticated; log use of the previous key
 * once. */
static void note_proof(struct server *s, struct client *c)
{
    const bool before = c->proven;

    assert(c->session);
    c->proven = true;
    trib_acceptor_remove(&s->acceptor, &c->base);
    if (before || !trib_session_peer(c->session).by_previous_key)
        return;
    server_event(s, TRIB_SERVICE_COUNTS_PREVIOUS_KEY);
    trib_log(&s->log, TRIB_LOG_INFO, "tribd",
             "job %s uses the previous key: deploy the new key file before clearing "
             "key_previous (from %s)",
             trib_session_job(c->session), server_from(c));
}

static void take_message(struct server *s, struct client *c,
                         const struct trib_control *m)
{
    note_proof(s, c);
    switch (m->kind) {
    case TRIB_CONTROL_JOIN:
        admit_join(s, c, &m->join);
        return;
    case TRIB_CONTROL_STORE_JOIN:
        if (c->asked)
            break;
        store_admit_join(s, c, &m->store_join);
        return;
    case TRIB_CONTROL_BLOBS:
        if (c->aggregator && aggregator_put_blobs(c->aggregator, &m->blobs))
            return;
        break;
    case TRIB_CONTROL_PLAN:
        if (c->aggregator && announce(s, c, &m->plan))
            return;
        break;
    case TRIB_CONTROL_GOODBYE:
        c->left = true;
        server_hang_up(s, c);
        return;
    default:
        break;
    }
    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "job %s: unexpected message %s (from %s)",
             trib_session_job(c->session), trib_control_name(m->kind), server_from(c));
    (void)trib_session_end(c->session, TRIB_ERR_PROTOCOL, "unexpected message %s",
                           trib_control_name(m->kind));
    c->lost = TRIB_LOST_FOR_PROTOCOL;
    server_hang_up(s, c);
}

/* Return true for a client that authenticated but sent no JOIN within IDLE_MS. */
static bool asks_for_nothing(struct client *c)
{
    if (!c->proven || c->asked)
        return false;
    if (!c->ask_by)
        c->ask_by = trib_deadline_ms(IDLE_MS);
    return trib_deadline_passed(c->ask_by);
}

static void step_client(struct server *s, struct client *c)
{
    struct trib_control m;
    trib_status_t st = TRIB_INPROGRESS;
    int taken = 0;

    assert(c->session);
    while (c->session && taken < MESSAGES_MOST && !server_holds(c) &&
           (st = trib_session_step(c->session, &m)) == TRIB_OK) {
        take_message(s, c, &m);
        taken++;
    }
    c->more = taken == MESSAGES_MOST || server_holds(c);
    if (c->session && trib_session_ready(c->session))
        note_proof(s, c);
    if (c->session && st == TRIB_INPROGRESS)
        st = query_begin(s, c);
    if (c->session && st == TRIB_INPROGRESS && asks_for_nothing(c))
        st = trib_session_end(c->session, TRIB_ERR_TIMEOUT,
                              "no JOIN received within %d ms", IDLE_MS);
    if (!c->session || st >= TRIB_OK)
        return;
    listener_log_end(s, c);
    server_hang_up(s, c);
}

/* Step a client that has input or a timeout due. A held client is deferred until its
 * worker has caught up. */
static void step_if_due(struct server *s, struct client *c, uint64_t now_ns)
{
    const bool due = c->ready || c->more || now_ns >= trib_session_due(c->session) ||
                     (c->ask_by && now_ns >= c->ask_by);

    c->ready = false;
    if (due && !server_holds(c))
        step_client(s, c);
    else
        c->more |= due;
    if (c->session && server_awaits_store(c))
        trib_session_keep_alive(c->session);
}

/* Lend the slots of a job without progress: it has no chunks in flight, so other jobs
 * may use as many. */
static void lend_slots(struct server *s, struct client *c)
{
    const uint64_t lend_ns = (uint64_t)s->settings.lend_s * 1000000000;
    const uint64_t moved_ns =
        atomic_load_explicit(&c->aggregator->moved_ns, memory_order_relaxed);
    const uint64_t now_ns = trib_now_ns();
    const bool idle = lend_ns &&
                      atomic_load(&c->aggregator->state) == AGGREGATOR_RUNS &&
                      moved_ns && now_ns > moved_ns && now_ns - moved_ns >= lend_ns;

    assert(c->job && c->session);
    if (idle == c->lends)
        return;
    c->lends = idle;
    trib_jobs_lend(s->jobs, c->job, idle);
    trib_log(&s->log, TRIB_LOG_DEBUG, "tribd", "job %s %s", c->join.job,
             idle ? "is idle: its slots are counted as free"
                  : "is active again: its slots count");
    server_publish(s);
}

static void step_aggregator(struct server *s, struct client *c)
{
    uint8_t blob[TRIB_CONTROL_BLOB_MAX];
    struct trib_control m;

    if (c->session && aggregator_get_blob(c->aggregator, &m, blob, sizeof(blob)) &&
        trib_session_send(c->session, &m) != TRIB_OK)
        server_hang_up(s, c);
    const int state = atomic_load(&c->aggregator->state);
    const bool notified = s->draining && state == AGGREGATOR_GONE;
    /* The ranks were notified, even of a job that has disconnected by now. */
    if (notified && c->aggregator->why[0] && !c->said) {
        trib_log(&s->log, TRIB_LOG_INFO, "tribd", "job %s: %s", c->join.job,
                 c->aggregator->why);
        c->said = true;
    }
    if (!c->session || (state != AGGREGATOR_FAILED && state != AGGREGATOR_GONE))
        return;
    if (state == AGGREGATOR_GONE)
        server_free_slots(s, c); /* free slots without waiting for GOODBYE */
    if (!c->over_by)
        c->over_by = trib_deadline_ms(GOODBYE_MS);
    if (notified || trib_deadline_passed(c->over_by)) {
        if (!notified)
            trib_log(&s->log, TRIB_LOG_WARN, "tribd", "job %s: %s (from %s)",
                     c->join.job, c->aggregator->why, server_from(c));
        c->said = true;
        (void)trib_session_end(c->session, TRIB_ERR_ABORTED, "%s", c->aggregator->why);
        c->lost = TRIB_LOST_FOR_FAILED;
        server_hang_up(s, c);
    }
}

static bool is_gone(const struct client *c)
{
    return !c->session && !c->store &&
           (!c->aggregator || atomic_load(&c->aggregator->state) == AGGREGATOR_GONE);
}

static void sweep_clients(struct server *s)
{
    bool changed = false;

    for (int i = 0; i < s->n_clients; i++) {
        struct client *c = s->clients[i];
        if (c->aggregator)
            step_aggregator(s, c);
        if (c->aggregator && c->session)
            lend_slots(s, c);
        if (c->store && store_admit_sweep(s, c, &changed))
            c->store = NULL;
        if (!is_gone(c))
            continue;
        changed |= c->job != 0;
        server_free_client(s, i--);
    }
    changed |= admit_waiting(s);
    if (changed)
        server_publish(s);
}

/* Running -------------------------------------------------------------------------- */

static void read_signals(struct server *s, const struct server_ear *ear)
{
    struct signalfd_siginfo info;

    while (read(ear->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (s->draining)
            continue;
        if (info.ssi_signo == SIGHUP)
            reload_begin(s, ear);
        else
            server_drain(s, info.ssi_uid, info.ssi_pid);
    }
}

static int wait_ms(const struct server *s)
{
    uint64_t due = trib_deadline_ms(TICK_MS);
    const uint64_t jobs = trib_jobs_wake_ns(s->jobs);

    if (jobs && jobs < due)
        due = jobs;
    if (trib_accept_paused(&s->acceptor.pause) && s->acceptor.pause.until < due)
        due = s->acceptor.pause.until;
    if (s->blind && due > trib_deadline_ms(BLIND_MS))
        due = trib_deadline_ms(BLIND_MS);
    if (ctl_server_due(s->ctl) < due)
        due = ctl_server_due(s->ctl);
    if (watchdog_due(&s->watchdog) < due)
        due = watchdog_due(&s->watchdog);
    if (s->draining && !s->drained && s->drain_until < due)
        due = s->drain_until;
    for (int i = 0; i < s->n_clients; i++) {
        const struct client *c = s->clients[i];
        if (c->session && c->asked_ns && *c->join_bucket + JOIN_NS < due)
            due = *c->join_bucket + JOIN_NS;
        if (c->session && server_holds(c))
            continue; /* its worker or its token ends that */
        if (c->session && c->more)
            return 0;
        if (c->session && trib_session_due(c->session) < due)
            due = trib_session_due(c->session);
        if (c->session && c->over_by && c->over_by < due)
            due = c->over_by;
    }
    return trib_deadline_left_ms(due);
}

static void step_clients(struct server *s)
{
    const uint64_t now_ns = trib_now_ns();

    for (int i = 0; i < s->n_clients; i++)
        if (s->clients[i]->session)
            step_if_due(s, s->clients[i], now_ns);
}

/* Add newly dropped log lines to the metrics. */
static void count_dropped_lines(struct server *s)
{
    const uint64_t dropped =
        atomic_load_explicit(&s->log.pace->dropped, memory_order_relaxed);

    trib_metrics_event_mt(s->metrics, TRIB_SERVICE_COUNTS_LOG_DROPPED,
                          dropped - s->log_dropped);
    s->log_dropped = dropped;
}

/* Admit requests whose token bucket allows it, oldest first. */
static void admit_due(struct server *s)
{
    struct client *c;

    while ((c = admit_next(s))) {
        if (c->asks_store)
            store_admit_due(s, c);
        else
            admit_submit(s, c);
    }
}

static void run_pass(struct server *s, const struct server_ear *ear)
{
    struct pollfd fds[3 + LISTENERS_MAX + CTL_FDS];
    const int n_listeners = trib_accept_paused(&s->acceptor.pause) ? 0 : s->n_listeners;
    nfds_t n = 0;
    uint64_t count;

    fds[n++] = (struct pollfd){.fd = ear->fd, .events = POLLIN};
    fds[n++] = (struct pollfd){.fd = s->wake_fd, .events = POLLIN};
    fds[n++] = (struct pollfd){.fd = s->epoll_fd, .events = POLLIN};
    for (int i = 0; i < n_listeners; i++)
        fds[n++] = (struct pollfd){.fd = s->listeners[i], .events = POLLIN};
    n += (nfds_t)ctl_server_poll(s->ctl, fds + n);
    assert(n <= sizeof(fds) / sizeof(*fds));
    if (trib_poll(fds, n, wait_ms(s)) < 0)
        ready_blind(s, "poll");
    else
        s->blind = false;
    const uint64_t began_ns = health_awake(&s->health);
    if (fds[1].revents)
        (void)!read(s->wake_fd, &count, sizeof(count));
    if (fds[2].revents)
        ready_note(s);
    request_worker_poll(s->request_worker);
    step_clients(s);
    admit_due(s);
    sweep_clients(s);
    for (int i = 0; i < n_listeners; i++)
        if (fds[3 + i].revents && !s->draining)
            trib_acceptor_accept(&s->acceptor, s->listeners[i]);
    for (int i = 0; i < s->n_clients; i++)
        ready_watch(s, s->clients[i]);
    ctl_server_step(s->ctl);
    watchdog_step(&s->watchdog, s->workers, s->n_workers, &s->log);
    trib_http_tend_mt(s->http);
    if (fds[0].revents)
        read_signals(s, ear);
    drain_step(s);
    trib_log_tell(&s->log, false);
    count_dropped_lines(s);
    health_done(&s->health, began_ns);
}

bool server_run(struct server *s, const struct server_ear *ear)
{
    server_publish(s);
    server_warn(s);
    credentials_warn(s->credentials, NULL, &s->settings, &s->log);
    settings_warn(&s->settings, &s->log);
    atomic_store(&s->health.state, HEALTH_READY);
    while (!s->draining || (s->n_clients > 0 && !s->gave_up))
        run_pass(s, ear);
    return drain_end(s);
}
