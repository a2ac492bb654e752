/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank whose connection to tribd was cut: the errors of others that wait for it name
 * it. A restore during which it cannot connect leaves the store unchanged. When it
 * frees the store, the others no longer wait for it. A push whose answer was lost is
 * not applied twice. A wait ends at its timeout although the connection is cut again
 * and again. A call whose connection was cut is repeated as soon as it is back.
 */
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "agg/protocol/session.h"
#include "base/time.h"
#include "tests/agg/store_client/store_rig.h"

enum { FDS_MAX = 200, SOON_MS = 400, CUTS = 8 };

/* Shut down the connection of this process to a port of 127.0.0.1. Return false if
 * there is none. */
static bool cut(int port)
{
    for (int fd = 0; fd < FDS_MAX; fd++) {
        struct sockaddr_in at;
        socklen_t bytes = sizeof(at);
        if (getpeername(fd, (struct sockaddr *)&at, &bytes) == 0 &&
            at.sin_family == AF_INET && ntohs(at.sin_port) == port)
            return shutdown(fd, SHUT_RDWR) == 0;
    }
    return false;
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
