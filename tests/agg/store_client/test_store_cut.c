/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank whose connection to tribd was cut: the errors of others that wait for it name
 * it. A restore during which it cannot connect leaves the store unchanged. When it
 * frees the store, the others no longer wait for it. A push whose answer was lost is
 * not applied twice. A wait ends at its timeout although the connection is cut again
 * and again. A call whose connection was cut is repeated as soon as it is back, also if
 * the new connections are cut before the rank has joined. A call that gets no answer
 * ends at its timeout. A forked child disturbs neither its parent nor the store. A
 * restore recreates a store that has no vector yet.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "agg/protocol/session.h"
#include "base/error.h"
#include "base/time.h"
#include "tests/agg/store_client/store_rig.h"

enum { FDS_MAX = 200, SOON_MS = 400, CUTS = 8, FEW_FILES = 64 };

/* Shut down the connections of this process to a port of 127.0.0.1. Return false if
 * there are none. */
static bool cut(int port)
{
    bool found = false;

    for (int fd = 0; fd < FDS_MAX; fd++) {
        struct sockaddr_in at;
        socklen_t bytes = sizeof(at);
        if (getpeername(fd, (struct sockaddr *)&at, &bytes) == 0 &&
            at.sin_family == AF_INET && ntohs(at.sin_port) == port)
            found |= shutdown(fd, SHUT_RDWR) == 0;
    }
    return found;
}

/* Use all file descriptors, so that no connection can be opened. */
static int use_all(int used[FDS_MAX])
{
    struct rlimit most;
    int n = 0;

    getrlimit(RLIMIT_NOFILE, &most);
    most.rlim_cur = FDS_MAX;
    setrlimit(RLIMIT_NOFILE, &most);
    while ((used[n] = dup(0)) >= 0)
        n++;
    return n;
}

static void names_the_lost(const struct ranks_self *self, trib_store_t *store,
                           trib_vector_t *v)
{
    trib_pull_opts_t p = TRIB_PULL_OPTS_INIT;
    int32_t x = 1;

    p.timeout_ms = SOON_MS;
    need(self, store, trib_store_push(v, &x, NULL, NULL), "push");
    refused(self, store, trib_store_pull(v, &x, &p, NULL), TRIB_ERR_TIMEOUT,
            "rank 0 has made 2 pushes, rank 1 1: more than 0 apart for 400 ms; rank 1 "
            "is lost");
    refused(self, store, trib_store_wait(v, 9, SOON_MS, NULL), TRIB_ERR_TIMEOUT,
            "version 9 was not reached within 400 ms; rank 1 is lost");
}

/* Rank 1 cannot connect: the vector stays, and is not considered lost. */
static void unreached(const struct ranks_self *self, trib_store_t *store,
                      trib_vector_t *v)
{
    int used[FDS_MAX], n = self->rank ? use_all(used) : 0;
    trib_vector_state_t s = TRIB_VECTOR_STATE_INIT;
    uint64_t version;
    int32_t x = 0;

    refused(self, store, trib_store_restore(store, NULL, TRIB_RESTORE_LOST, NULL, NULL),
            TRIB_ERR_PEER_LOST, self->rank ? "is lost" : "another rank failed");
    while (n > 0)
        close(used[--n]);
    need(self, store, trib_store_restore(store, NULL, TRIB_RESTORE_LOST, NULL, NULL),
         "nothing to restore");
    need(self, store, trib_store_pull(v, &x, NULL, &version), "pull");
    ranks_assert(self, version == 3 && x == 3);
    need(self, store, trib_store_state(v, &s), "state");
    ranks_assert(self, !s.lost && s.pushes == (self->rank ? 1 : 2));
}

static int walk(struct ranks_self *self)
{
    const int port = ((const struct daemon_process *)self->arg)->port;
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    trib_pull_opts_t p = TRIB_PULL_OPTS_INIT;
    trib_store_t *store = NULL;
    int32_t x = 1;

    ranks_ok(self, trib_store_open(self->comm, &store));
    d.name = "x";
    d.count = 1;
    d.dtype = TRIB_I32;
    trib_vector_t *v = make(self, store, &d);
    need(self, store, trib_store_push(v, &x, NULL, NULL), "push");
    ranks_assert(self, self->rank == 0 || cut(port));
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == 0) {
        need(self, store, trib_store_set_staleness(store, 0), "a bound");
        names_the_lost(self, store, v);
        need(self, store, trib_store_set_staleness(store, TRIB_STALE_ANY), "no bound");
    }
    ranks_ok(self, trib_barrier(self->comm));
    unreached(self, store, v);
    if (self->rank == 1) {
        ranks_assert(self, cut(port));
        ranks_ok(self, trib_store_free(store));
    }
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == 0) {
        p.timeout_ms = 10 * SOON_MS;
        need(self, store, trib_store_set_staleness(store, 0), "a bound");
        need(self, store, trib_store_pull(v, &x, &p, NULL), "a pull without rank 1");
        ranks_ok(self, trib_store_free(store));
    }
    return 0;
}

static int give_up(void *arg)
{
    return *(const bool *)arg;
}

static void stop(struct daemon_process *daemon)
{
    daemon_signal(daemon, SIGSTOP);
    usleep(SOON_MS * 1000); /* its threads stop one by one */
}

static trib_store_t *begin_alone(struct ranks_self *self, trib_vector_t **out)
{
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    trib_store_t *store = NULL;

    ranks_ok(self, trib_init(&self->opts, &self->comm));
    ranks_ok(self, trib_store_open(self->comm, &store));
    d.name = "x";
    d.count = 1;
    d.dtype = TRIB_I32;
    *out = make(self, store, &d);
    return store;
}

/* tribd applies a push after the rank considers it lost. The next push counts as its
 * repetition. */
static int repeats(struct ranks_self *self)
{
    struct daemon_process *daemon = self->arg;
    trib_vector_state_t s = TRIB_VECTOR_STATE_INIT;
    trib_vector_t *v;
    trib_store_t *store = begin_alone(self, &v);
    int32_t x = 1;

    stop(daemon);
    refused(self, store, trib_store_push(v, &x, NULL, NULL), TRIB_ERR_PEER_LOST,
            "is lost");
    daemon_signal(daemon, SIGCONT);
    for (int n = 1; n <= 2; n++) {
        x = 10;
        need(self, store, trib_store_push(v, &x, NULL, NULL), "push");
        need(self, store, trib_store_state(v, &s), "state");
        need(self, store, trib_store_pull(v, &x, NULL, NULL), "pull");
        ranks_assert(self, s.pushes == (uint64_t)n && x == (n == 1 ? 1 : 11));
    }
    ranks_ok(self, trib_store_free(store));
    ranks_ok(self, trib_free_comm(self->comm));
    return 0;
}

/* The idle function aborts: this call and later ones report that. */
static int gives_up(struct ranks_self *self)
{
    struct daemon_process *daemon = self->arg;
    trib_vector_t *v;
    bool up = false;
    int32_t x = 1;

    self->opts.idle = give_up;
    self->opts.idle_arg = &up;
    trib_store_t *store = begin_alone(self, &v);
    stop(daemon);
    up = true;
    for (int n = 0; n < 2; n++)
        refused(self, store, trib_store_push(v, &x, NULL, NULL), TRIB_ERR_ABORTED,
                "idle function aborted waiting for tribd");
    daemon_signal(daemon, SIGCONT);
    ranks_ok(self, trib_store_free(store));
    (void)trib_free_comm(self->comm);
    return 0;
}

/* Cut the connection at intervals shorter than the wait below. */
static void *cut_again(void *arg)
{
    const struct daemon_process *daemon = arg;

    for (;;) {
        usleep(2 * SOON_MS * 1000);
        (void)cut(daemon->port);
    }
    return NULL;
}

/* The wait does not restart with each session. */
static int waits(struct ranks_self *self)
{
    pthread_t cutter;
    trib_vector_t *v;
    trib_store_t *store = begin_alone(self, &v);

    ranks_assert(self, pthread_create(&cutter, NULL, cut_again, self->arg) == 0);
    refused(self, store, trib_store_wait(v, 9, 3 * SOON_MS, NULL), TRIB_ERR_TIMEOUT,
            "version 9 was not reached");
    pthread_cancel(cutter);
    pthread_join(cutter, NULL);
    ranks_ok(self, trib_store_free(store));
    ranks_ok(self, trib_free_comm(self->comm));
    return 0;
}

/* A reopened session sends the request at once, not after its first ALIVE. */
static int asks_at_once(struct ranks_self *self)
{
    const int port = ((const struct daemon_process *)self->arg)->port;
    trib_vector_t *v;
    trib_store_t *store = begin_alone(self, &v);
    const uint64_t began_ns = trib_now_ns();
    int32_t x = 1;

    for (int n = 0; n < CUTS; n++) {
        ranks_assert(self, cut(port));
        need(self, store, trib_store_push(v, &x, NULL, NULL), "push");
    }
    ranks_assert(self, trib_now_ns() - began_ns <
                           (uint64_t)CUTS * TRIB_SESSION_ALIVE_MS * 1000000 / 2);
    ranks_ok(self, trib_store_free(store));
    ranks_ok(self, trib_free_comm(self->comm));
    return 0;
}

/* Connections are cut again during the handshake and before the rank has joined. The
 * first connection is of the communicator. */
static int rejoins(struct ranks_self *self)
{
    static const size_t limits[] = {SIZE_MAX, SIZE_MAX, 24,  93,
                                    208,      277,      392, SIZE_MAX};
    int port;
    const pid_t pid =
        cutting_proxy_start_at(((const struct daemon_process *)self->arg)->port, limits,
                               sizeof(limits) / sizeof(*limits), &port);
    char config[80];
    uint64_t version;
    trib_vector_t *v;
    int32_t x = 1;

    snprintf(config, sizeof(config), "transport=shm;service=127.0.0.1:%d", port);
    self->opts.config = config;
    trib_store_t *store = begin_alone(self, &v);
    ranks_assert(self, cut(port));
    need(self, store, trib_store_push(v, &x, NULL, &version), "push");
    ranks_assert(self, version == 1);
    ranks_ok(self, trib_store_free(store));
    ranks_ok(self, trib_free_comm(self->comm));
    cutting_proxy_end(pid);
    return 0;
}

static int creates(struct ranks_self *self)
{
    const int port = ((const struct daemon_process *)self->arg)->port;
    trib_vector_desc_t d =
        sized(trib_vector_desc_t, .name = "y", .count = 1, .dtype = TRIB_I32);
    trib_vector_t *v;
    trib_store_t *store = begin_alone(self, &v);

    ranks_assert(self, cut(port));
    (void)make(self, store, &d);
    ranks_ok(self, trib_store_free(store));
    (void)trib_free_comm(self->comm); /* its aggregator was cut, too */
    return 0;
}

/* The tribd is restarted before the first vector is created. */
static int begins_again(struct ranks_self *self)
{
    struct daemon_process *daemon = self->arg;
    trib_vector_desc_t d =
        sized(trib_vector_desc_t, .name = "x", .count = 1, .dtype = TRIB_I32);
    trib_store_t *store = NULL;
    trib_vector_t *v;

    ranks_ok(self, trib_init(&self->opts, &self->comm));
    ranks_ok(self, trib_store_open(self->comm, &store));
    kill(daemon->pid, SIGKILL);
    ranks_assert(self, daemon_start(daemon));
    while (!daemon_up(daemon))
        usleep(1000);
    refused(self, store, trib_store_create(store, &d, &v), TRIB_ERR_PEER_LOST,
            "no such store here");
    need(self, store, trib_store_restore(store, NULL, TRIB_RESTORE_LOST, NULL, NULL),
         "restore");
    (void)make(self, store, &d);
    ranks_ok(self, trib_store_free(store));
    (void)trib_free_comm(self->comm);
    daemon_signal(daemon, SIGKILL);
    return 0;
}

/* Lose the connections to a port without notifying tribd: they stay open. */
static void cut_silently(const struct ranks_self *self, int port)
{
    for (int fd = 0; fd < FDS_MAX; fd++) {
        struct sockaddr_in at;
        socklen_t bytes = sizeof(at);
        int ends[2];
        if (getpeername(fd, (struct sockaddr *)&at, &bytes) != 0 ||
            at.sin_family != AF_INET || ntohs(at.sin_port) != port)
            continue;
        ranks_assert(self, fcntl(fd, F_DUPFD_CLOEXEC, FDS_MAX) >= 0);
        ranks_assert(self,
                     socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
        ranks_assert(self, dup2(ends[0], fd) == fd);
        close(ends[0]);
        close(ends[1]);
    }
}

/* Ranks of stores that use all connections that they may use come back. */
static int comes_back(struct ranks_self *self)
{
    const struct daemon_process *daemon = self->arg;
    const struct rlimit few = {FEW_FILES, FEW_FILES};
    trib_store_t *stores[FEW_FILES];
    trib_vector_t *v;
    int32_t x = 1;
    int n = 0;

    ranks_assert(self, prlimit(daemon->pid, RLIMIT_NOFILE, &few, NULL) == 0);
    stores[n++] = begin_alone(self, &v);
    while (n < FEW_FILES && trib_store_open(self->comm, &stores[n]) == TRIB_OK)
        n++;
    ranks_assert(self, n > 1 && n < FEW_FILES);
    ranks_assert(self, strstr(trib_last_error(self->comm), "stores use all"));
    cut_silently(self, daemon->port);
    need(self, stores[0], trib_store_push(v, &x, NULL, NULL), "push");
    while (n > 0)
        ranks_ok(self, trib_store_free(stores[--n]));
    (void)trib_free_comm(self->comm);
    kill(daemon->pid, SIGKILL); /* it would wait for the ranks of the other stores */
    return 0;
}

/* Forked children ------------------------------------------------------------------ */

/* Calls of a child fail; freeing the store frees only its copy. */
static int call_in_child(trib_store_t *store, trib_vector_t *v)
{
    trib_vector_desc_t d = sized(trib_vector_desc_t, .name = "y", .count = 1);
    trib_vector_t *other;
    int32_t x = 8;

    const bool refuses = trib_store_push(v, &x, NULL, NULL) == TRIB_ERR_INVALID &&
                         trib_store_pull(v, &x, NULL, NULL) == TRIB_ERR_INVALID &&
                         trib_store_wait(v, 0, 0, NULL) == TRIB_ERR_INVALID &&
                         trib_store_create(store, &d, &other) == TRIB_ERR_INVALID &&
                         trib_store_snapshot(store, NULL, NULL) == TRIB_ERR_INVALID &&
                         trib_store_restore(store, NULL, TRIB_RESTORE_LOST, NULL,
                                            NULL) == TRIB_ERR_INVALID &&
                         strstr(trib_store_error(store), "is a forked child");
    return !refuses || trib_store_free(store) != TRIB_OK;
}

static int forks(struct ranks_self *self)
{
    uint64_t version;
    trib_vector_t *v;
    trib_store_t *store = begin_alone(self, &v);
    int32_t x = 1;
    int status;

    need(self, store, trib_store_push(v, &x, NULL, NULL), "push");
    const pid_t pid = fork();
    if (pid == 0)
        _exit(call_in_child(store, v));
    ranks_assert(self, waitpid(pid, &status, 0) == pid && status == 0);
    need(self, store, trib_store_pull(v, &x, NULL, &version), "pull");
    ranks_assert(self, version == 1 && x == 1);
    ranks_ok(self, trib_store_free(store));
    ranks_ok(self, trib_free_comm(self->comm));
    return 0;
}

/* A tribd that lives but does not answer pushes ------------------------------------ */

struct mute {
    int listener, port;
    struct trib_auth *auth;
    _Atomic int joins;
};

/* A communicator is refused, so that it does not wait, either. */
static void answer(struct mute *mute, struct trib_session *session,
                   const struct trib_control *m)
{
    struct trib_control out = {.kind = TRIB_CONTROL_REFUSED};

    if (m->kind == TRIB_CONTROL_STORE_JOIN) {
        out.kind = TRIB_CONTROL_STORE_JOINED;
        (void)atomic_fetch_add(&mute->joins, 1);
    } else if (m->kind == TRIB_CONTROL_STORE_OPEN) {
        out.kind = TRIB_CONTROL_STORE_VECTOR;
    } else if (m->kind != TRIB_CONTROL_JOIN) {
        return;
    }
    (void)trib_session_send(session, &out);
}

struct mute_session {
    struct mute *mute;
    struct trib_session *session;
    struct trib_error err;
};

static void *serve_mute(void *arg)
{
    struct mute_session *s = arg;
    struct trib_control m;
    trib_status_t st;

    while ((st = trib_session_take_wait(s->session, trib_deadline_ms(100), &m)) >=
           TRIB_OK)
        if (st == TRIB_OK)
            answer(s->mute, s->session, &m);
    trib_session_free(s->session);
    free(s);
    return NULL;
}

static void *be_mute(void *arg)
{
    struct mute *mute = arg;
    struct trib_session_opts opts = {.role = TRIB_CONTROL_AGGREGATOR,
                                     .auth = mute->auth,
                                     .peer = "a rank",
                                     .handshake_ms = 10000};
    pthread_t thread;

    while ((opts.fd = accept(mute->listener, NULL, NULL)) >= 0) {
        struct mute_session *s = calloc(1, sizeof(*s));
        if (!s)
            return NULL;
        s->mute = mute;
        opts.err = &s->err;
        if (trib_session_open(&opts, &s->session) != TRIB_OK ||
            pthread_create(&thread, NULL, serve_mute, s) != 0)
            return NULL;
        pthread_detach(thread);
    }
    return NULL;
}

static void start_mute(const struct ranks_self *self, struct mute *mute)
{
    const struct trib_auth_opts none = {.method = "none"};
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(at);
    struct trib_error err = {0};
    pthread_t thread;

    mute->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ranks_assert(self, bind(mute->listener, (struct sockaddr *)&at, bytes) == 0);
    ranks_assert(self, listen(mute->listener, 8) == 0);
    getsockname(mute->listener, (struct sockaddr *)&at, &bytes);
    mute->port = ntohs(at.sin_port);
    ranks_assert(self, trib_auth_open(&none, &err, &mute->auth) == TRIB_OK);
    ranks_assert(self, pthread_create(&thread, NULL, be_mute, mute) == 0);
    pthread_detach(thread);
}

static int unanswered(struct ranks_self *self)
{
    static struct mute mute; /* outlives its thread */
    char config[100];
    trib_vector_t *v;
    int32_t x = 1;

    start_mute(self, &mute);
    setenv("TRIB_SERVICE_AUTH", "none", 1);
    snprintf(config, sizeof(config), "transport=shm;timeout_ms=%d;service=127.0.0.1:%d",
             SOON_MS, mute.port);
    self->opts.config = config;
    trib_store_t *store = begin_alone(self, &v);
    refused(self, store, trib_store_push(v, &x, NULL, NULL), TRIB_ERR_TIMEOUT,
            "no answer within 400 ms");
    ranks_assert(self, atomic_load(&mute.joins) == 1);
    ranks_ok(self, trib_store_free(store));
    (void)trib_free_comm(self->comm);
    return 0;
}

/* Tests ---------------------------------------------------------------------------- */

static void on_daemon(int (*fn)(struct ranks_self *self), int size, bool bare)
{
    struct daemon_process d = {.threads = 2};
    char config[160];

    daemon_need(&d);
    snprintf(config, sizeof(config),
             "transport=shm;stop_timeout_ms=100;service=127.0.0.1:%d", d.port);
    ranks_pass(.size = size, .fn = fn, .arg = &d, .config = config, .noisy = true,
               .bare = bare);
    daemon_end(&d);
}

TEST(test_cut)
{
    on_daemon(walk, 2, false);
}

TEST(test_repeats)
{
    on_daemon(repeats, 1, true);
}

TEST(test_gives_up)
{
    on_daemon(gives_up, 1, true);
}

TEST(test_waits_once)
{
    on_daemon(waits, 1, true);
}

TEST(test_asks_at_once)
{
    on_daemon(asks_at_once, 1, true);
}

TEST(test_rejoins)
{
    on_daemon(rejoins, 1, true);
}

TEST(test_creates)
{
    on_daemon(creates, 1, true);
}

TEST(test_begins_again)
{
    on_daemon(begins_again, 1, true);
}

TEST(test_comes_back)
{
    on_daemon(comes_back, 1, true);
}

TEST(test_forks)
{
    on_daemon(forks, 1, true);
}

TEST(test_unanswered)
{
    ranks_pass(.size = 1, .fn = unanswered, .config = "transport=shm", .noisy = true,
               .bare = true);
}
