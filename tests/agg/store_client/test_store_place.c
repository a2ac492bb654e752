/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The next run of a job has the place of its earlier run, whose ranks are lost, in a
 * full tribd. It does not end the earlier run if it does not reach all tribds.
 */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "agg/protocol/session.h"
#include "agg/store_client/rank_store.h"
#include "base/error.h"
#include "base/time.h"
#include "tests/agg/store_client/snapshot_rig.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

enum {
    AT_ONCE = 128, /* stores that a user may start at once; then one in EACH_MS */
    EACH_MS = 50,
    DELAY_MS =
        4000, /* longer than another run may use the key; the lost one has 10 s */
    LONG_DELAY_MS = 11000, /* longer than tribd waits for a request */
    CROWD_MAX = 600,
};

/* The ranks end without freeing the store, as if they were killed. */
static int die_with_store(struct ranks_self *self)
{
    trib_store_t *store = snapshot_rig_store(self, KEY, 0);
    trib_vector_desc_t d = sized(trib_vector_desc_t, .name = "x", .count = 1);
    trib_vector_t *v;

    snapshot_rig_need(self, store, trib_store_create(store, &d, &v), "create");
    ranks_ok(self, trib_barrier(self->comm));
    return 0;
}

/* Start a tribd that a store and its communicator fill. */
static void open_full(struct snapshot_rig *rig, char config[200])
{
    setenv("TRIBD_JOBS", "2", 1);
    if (!snapshot_rig_open(rig, 1, true))
        tribtest_skip("built without libmicrohttpd");
    unsetenv("TRIBD_JOBS");
    snapshot_rig_config(rig, "shm", config);
}

/* The next run has the place of such a store at once, though there is no other one: a
 * communicator also takes one. */
TEST(test_place_of_a_lost_run)
{
    struct snapshot_rig rig;
    char config[200];

    open_full(&rig, config);
    for (int i = 0; i < 3; i++)
        ranks_pass(.size = 2, .fn = die_with_store, .config = config, .noisy = true);
    snapshot_rig_close(&rig);
}

/* Request other stores until a request waits for so long, and keep the connections. */
static void send_requests(const struct ranks_self *self, int port, uint64_t delay_ms)
{
    static struct trib_session *crowd[CROWD_MAX];
    static struct trib_error err;
    static struct trib_auth *auth; /* outlives the sessions */
    const struct trib_auth_opts opts = {.method = getenv("TRIB_SERVICE_AUTH"),
                                        .key_file = getenv("TRIB_SERVICE_KEY")};
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const uint64_t began_ns = trib_now_ns();

    ranks_ok(self, trib_auth_open(&opts, &err, &auth));
    for (uint64_t i = 0; i < CROWD_MAX; i++) {
        const uint64_t ms = (trib_now_ns() - began_ns) / 1000000;
        const struct trib_session_opts of = {.fd = socket(AF_INET, SOCK_STREAM, 0),
                                             .role = TRIB_CONTROL_JOB,
                                             .auth = auth,
                                             .job = "crowd",
                                             .peer = "tribd",
                                             .handshake_ms = 60000,
                                             .err = &err};
        struct trib_control join = {.kind = TRIB_CONTROL_STORE_JOIN,
                                    .store_join.ranks = 1};
        if (i >= AT_ONCE + (ms + delay_ms) / EACH_MS)
            break;
        memcpy(join.store_join.token, &i, sizeof(i));
        memcpy(join.store_join.owner, &i, sizeof(i));
        ranks_assert(self,
                     connect(of.fd, (const struct sockaddr *)&at, sizeof(at)) == 0);
        if (trib_session_open(&of, &crowd[i]) != TRIB_OK ||
            trib_session_ready_wait(crowd[i], trib_deadline_ms(60000)) != TRIB_OK ||
            trib_session_send(crowd[i], &join) != TRIB_OK)
            ranks_die(self, "request: %s", trib_error_text(&err));
    }
}

static int open_behind_crowd(struct ranks_self *self)
{
    const struct snapshot_rig *rig = self->arg;

    if (self->rank == 0)
        send_requests(self, rig->d[0].port, rig->n > 1 ? LONG_DELAY_MS : DELAY_MS);
    ranks_ok(self, trib_store_free(snapshot_rig_store(self, KEY, 0)));
    return 0;
}

/* It also gets it if tribd delays its request for longer than another run may use the
 * key, because the user has sent many. */
TEST(test_place_of_a_lost_run_after_a_delay)
{
    struct snapshot_rig rig;
    char config[200];

    open_full(&rig, config);
    ranks_pass(.size = 2, .fn = die_with_store, .config = config, .noisy = true);
    ranks_pass(.size = 2, .fn = open_behind_crowd, .arg = &rig, .config = config);
    snapshot_rig_close(&rig);
}

/* Another tribd does not wait that long for its request after the connection. */
TEST(test_place_at_another_tribd_after_a_delay)
{
    struct snapshot_rig rig;
    char config[200];

    setenv("TRIBD_JOBS", "1024", 1);
    if (!snapshot_rig_open(&rig, 2, true))
        tribtest_skip("built without libmicrohttpd");
    unsetenv("TRIBD_JOBS");
    snapshot_rig_config(&rig, "shm", config);
    ranks_pass(.size = 1, .fn = open_behind_crowd, .arg = &rig, .config = config);
    snapshot_rig_close(&rig);
}

/* Create a vector in the first shard. */
static trib_vector_t *vector_of_first(const struct ranks_self *self,
                                      trib_store_t *store)
{
    trib_vector_t *v = NULL;
    char name[2] = "a";

    do {
        trib_vector_desc_t d = sized(trib_vector_desc_t, .name = name, .count = 1);
        snapshot_rig_need(self, store, trib_store_create(store, &d, &v), "create");
        name[0]++;
    } while (v->parts[0].shard != 0);
    return v;
}

static int open_beside_killed(struct ranks_self *self)
{
    struct snapshot_rig *rig = self->arg;
    trib_store_opts_t o = sized(trib_store_opts_t, .key = KEY);
    trib_store_t *store = snapshot_rig_store(self, KEY, 0), *next;
    trib_vector_t *v = vector_of_first(self, store);
    const float one = 1;
    float x = 0;

    snapshot_rig_need(self, store, trib_store_push(v, &one, NULL, NULL), "push");
    kill(rig->d[1].pid, SIGKILL);
    shutdown(trib_session_fd(store->link->sessions[0]), SHUT_RDWR); /* lost */
    const trib_status_t st = trib_store_open_with(self->comm, &o, &next);
    snapshot_rig_need(self, store, trib_store_pull(v, &x, NULL, NULL), "pull");
    ranks_assert(self, st != TRIB_OK && x == 1);
    snapshot_rig_start(self, rig, 1);
    ranks_ok(self, trib_store_free(store));
    return 0;
}

/* The earlier run stays if the next one reaches only the first of two tribds. */
TEST(test_lost_run_beside_a_killed_tribd)
{
    struct snapshot_rig rig;
    char config[200];

    if (!snapshot_rig_open(&rig, 2, true))
        tribtest_skip("built without libmicrohttpd");
    snapshot_rig_config(&rig, "shm", config);
    ranks_pass(.size = 1, .fn = open_beside_killed, .arg = &rig, .config = config,
               .noisy = true);
    snapshot_rig_close(&rig);
}
