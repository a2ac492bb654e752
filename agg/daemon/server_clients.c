/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bottom of the control thread: end and free clients, publish their jobs, free the
 * server. Admission, listeners, commands and the loop call it.
 */
#include <assert.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agg/daemon/server_parts.h"
#include "base/time.h"

void server_event(struct server *s, enum trib_service_counter c)
{
    trib_metrics_event_mt(s->metrics, c, 1);
}

void server_publish(struct server *s)
{
    (void)trib_metrics_publish(s->metrics, s->jobs, trib_now_ns());
    for (int i = 0; i < s->n_clients; i++) {
        const struct client *c = s->clients[i];
        const uint32_t weight = c->job ? trib_jobs_weight(s->jobs, c->job) : 0;
        if (c->aggregator)
            aggregator_set_weight(c->aggregator, weight);
        if (c->store)
            store_job_set_weight(c->store, weight);
    }
}

const char *server_from(struct client *c)
{
    struct sockaddr_storage at = {0};
    socklen_t bytes = sizeof(at);
    char host[48], port[8];

    if (c->from[0] || !c->session)
        return c->from[0] ? c->from : "a closed connection";
    if (getpeername(trib_session_fd(c->session), (struct sockaddr *)&at, &bytes) != 0 ||
        getnameinfo((const struct sockaddr *)&at, bytes, host, sizeof(host), port,
                    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return "a closed connection";
    snprintf(c->from, sizeof(c->from), at.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s",
             host, port);
    return c->from;
}

/* Close a client's connection and end its aggregator or store; `say` goes to its ranks.
 * The client is freed once these are gone. */
void server_hang_up_saying(struct server *s, struct client *c, const char *say)
{
    assert(s->n_clients > 0);
    query_abandon(s, c);
    (void)server_from(c); /* needs the connection */
    trib_acceptor_remove(&s->acceptor, &c->base);
    trib_session_free(c->session);
    c->session = NULL;
    c->watched = 0;
    if (c->job && !c->left && !s->draining)
        trib_metrics_reason_mt(s->metrics,
                               c->lost ? c->lost : TRIB_LOST_FOR_CONNECTION);
    c->left = true;
    if (c->aggregator)
        aggregator_end(c->aggregator, say);
    if (c->store)
        store_job_end(c->store, say ? say : "the service is shutting down");
    if (!c->job)
        return;
    (void)trib_jobs_end(s->jobs, trib_now_ns(), c->job,
                        trib_now_ns() + (uint64_t)RECLAIM_MS * 1000000);
    server_publish(s);
}

void server_hang_up(struct server *s, struct client *c)
{
    server_hang_up_saying(s, c, NULL);
}

void server_free_slots(struct server *s, struct client *c)
{
    if (!c->job || c->freed)
        return;
    c->freed = true;
    (void)trib_jobs_remove(s->jobs, trib_now_ns(), c->job);
    server_publish(s);
}

/* Log the end of a job, with the aggregator's failure unless it was logged before: the
 * job may disconnect before it could be sent. */
static void say_gone(struct server *s, struct client *c)
{
    const char *why = c->aggregator && !c->said ? c->aggregator->why : "";

    trib_log(&s->log, TRIB_LOG_INFO, "tribd", "job %s has ended (from %s)%s%s",
             c->join.job, server_from(c), why[0] ? ": " : "", why);
}

void server_free_client(struct server *s, int i)
{
    assert(i >= 0 && i < s->n_clients);
    struct client *c = s->clients[i];
    if (c->join.job[0])
        say_gone(s, c);
    query_abandon(s, c);
    trib_acceptor_remove(&s->acceptor, &c->base);
    trib_session_free(c->session);
    if (c->aggregator)
        aggregator_free(c->aggregator);
    if (c->store)
        store_job_free(c->store);
    credentials_release(c->credentials);
    free(c->tree);
    if (c->job && !c->freed)
        (void)trib_jobs_remove(s->jobs, trib_now_ns(), c->job);
    free(c);
    s->clients[i] = s->clients[--s->n_clients];
}

uint64_t server_memory(const struct settings *t)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return t->memory ? (uint64_t)t->memory << 20 : (uint64_t)pages * (uint64_t)page / 2;
}

struct archive_limits server_disk(const struct settings *t)
{
    return (struct archive_limits){.disk = (uint64_t)t->disk << 20,
                                   .user_disk = (uint64_t)t->user_disk << 20,
                                   .files = t->disk_files,
                                   .user_files = t->user_disk_files};
}

void server_warn(const struct server *s)
{
    if (s->http && !trib_http_is_loopback(s->http))
        trib_log(&s->log, TRIB_LOG_WARN, "tribd",
                 "http: the names of all jobs and users can be read at %s without "
                 "authentication: restrict access with a firewall",
                 s->settings.http);
    if (geteuid() == 0)
        trib_log(
            &s->log, TRIB_LOG_WARN, "tribd",
            "this tribd runs as root, which it does not need, and jobs of all users "
            "can reach it: run it as a separate user, as tribd.service does (by hand: "
            "setpriv --reuid=tribd --regid=tribd --clear-groups tribd)");
    if (s->reached && strcmp(s->settings.auth, "none") == 0)
        trib_log(&s->log, TRIB_LOG_WARN, "tribd",
                 "auth = none: any host that reaches %s may use this service under any "
                 "name",
                 s->settings.listen);
}

bool server_close(struct server *s)
{
    if (!s)
        return true;
    for (int i = 0; i < s->n_listeners; i++)
        close(s->listeners[i]);
    while (s->n_clients > 0)
        server_free_client(s, s->n_clients - 1);
    free(s->clients);
    trib_acceptor_close(&s->acceptor);
    request_worker_stop(s->request_worker);
    ctl_server_close(s->ctl);
    trib_http_stop(s->http);
    const bool well = archive_close(s->archive); /* after HTTP: views use it */
    for (int i = 0; i < s->n_workers; i++)
        worker_stop(s->workers[i]);
    free(s->workers);
    store_turns_free(s->turns);
    trib_metrics_destroy(s->metrics);
    trib_jobs_destroy(s->jobs);
    credentials_release(s->credentials);
    const int fds[] = {s->wake_fd, s->epoll_fd, s->spare_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(s);
    return well;
}
