/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes that a job sends to a tribd: through trib_session, which accepts the
 * handshake (without proofs), then JOIN, blobs and plans as tribd passes them to an
 * aggregator. There are no ranks: the aggregator only sees these bytes, and ends with
 * the input.
 *
 * After a first byte of 0 come messages that are valid except for a few edits
 * (edits.h), with the aggregator's own blobs as the blobs of the ranks:
 *
 *     | kind 1 | edits 1, at most 7 | edits … |
 */
#include <sched.h>
#include <sys/eventfd.h>

#include "agg/daemon/worker.h"
#include "agg/protocol/session.h"
#include "base/error.h"
#include "tests/fuzz/edits.h"
#include "tests/fuzz/nowhere.h"

unsigned fuzz_reached; /* plans that an aggregator received */

enum { SAID_MOST = 65536, MEMORY = 8 << 20, MESSAGES_MOST = 16, RANKS = 2 };

static struct trib_auth *auth;
static struct worker *worker;
static struct trib_log quiet;
static int wake_fd;

static void close_all(void)
{
    worker_stop(worker);
    trib_auth_free(auth);
    close(wake_fd);
}

static void open_all(void)
{
    const struct trib_auth_opts opts = {.method = "none"};

    trib_log_init(&quiet, TRIB_LOG_ERROR, fuzz_drop_line, NULL);
    wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    need(wake_fd >= 0 && trib_auth_open(&opts, NULL, &auth) == TRIB_OK);
    need(worker_start(NULL, &worker) == TRIB_OK);
    atexit(close_all);
}

/* Process a message as the server of tribd does. Return false if that would end the
 * connection. */
static bool take(struct aggregator **aggregator, const struct trib_control *m)
{
    struct trib_error err = {0};

    if (m->kind == TRIB_CONTROL_JOIN && !*aggregator) {
        const struct aggregator_opts opts = {.join = &m->join,
                                       .worker = worker,
                                       .wake_fd = wake_fd,
                                       .log = &quiet,
                                       .plan_memory = MEMORY};
        if (m->join.ranks > 64 || m->join.aggregators > 8 || m->join.slots > 4096 ||
            m->join.bytes > MEMORY)
            return false; /* beyond any quota */
        const trib_status_t st = aggregator_open(&opts, &err, aggregator);
        need(st == TRIB_OK || err.text[0]);
        return st == TRIB_OK;
    }
    if (m->kind == TRIB_CONTROL_BLOBS && *aggregator) {
        struct trib_control own;
        uint8_t room[TRIB_CONTROL_BLOB_MAX];
        for (int i = 0;
             i < 1000 && !aggregator_get_blob(*aggregator, &own, room, sizeof(room));
             i++)
            sched_yield(); /* its thread has started to wire up, or never does */
        return aggregator_put_blobs(*aggregator, &m->blobs);
    }
    if (m->kind != TRIB_CONTROL_PLAN || !*aggregator)
        return false;
    fuzz_reached++;
    return aggregator_announce(*aggregator, m->plan.number, m->plan.text) == TRIB_OK;
}

static void end(struct aggregator *aggregator)
{
    if (!aggregator)
        return;
    aggregator_end(aggregator, NULL);
    while (atomic_load(&aggregator->state) != AGGREGATOR_GONE)
        sched_yield();
    aggregator_free(aggregator);
}

static void converse(struct trib_session *session)
{
    struct aggregator *aggregator = NULL;
    struct trib_control m;

    while (trib_session_step(session, &m) == TRIB_OK && take(&aggregator, &m))
        ;
    end(aggregator);
}

/* Valid messages with edits -------------------------------------------------------- */

struct talk {
    struct trib_session *session;
    struct aggregator *aggregator;
    int fd;
    uint32_t plans;
    bool over;
    struct trib_control own; /* the blobs of the aggregator, once it has sent them */
    uint8_t own_bytes[TRIB_CONTROL_BLOB_MAX];
    uint8_t all[(RANKS + 1) * TRIB_CONTROL_BLOB_MAX];
};

static void make_hello(struct trib_control *m)
{
    m->kind = TRIB_CONTROL_HELLO;
    m->hello.version_min = TRIB_CONTROL_VERSION_MIN;
    m->hello.version_max = TRIB_CONTROL_VERSION_MAX;
    m->hello.methods = 1u << TRIB_AUTH_NONE;
    strcpy(m->hello.job, "a-job");
    strcpy(m->hello.library, "0.1.0");
}

static void make_join(struct trib_control *m)
{
    struct trib_control_join *j = &m->join;

    m->kind = TRIB_CONTROL_JOIN;
    strcpy(j->job, "a-job");
    strcpy(j->user, "me");
    j->ranks = RANKS;
    j->aggregators = j->weight = 1;
    j->slots = RANKS * 8 * 2;
    j->bytes = (uint64_t)j->slots * 65536;
    strcpy(j->settings,
           "transport=shm algorithm=auto leaders=0 groups=host codec=none "
           "feedback=codec quorum=all chunk=64K window=8 service= zero_copy=1");
}

/* Use the aggregator's own blob for all ranks: a poor copy of a rank, but valid. */
static void make_blobs(struct talk *t, struct trib_control *m)
{
    struct trib_control own;
    uint8_t bytes[TRIB_CONTROL_BLOB_MAX];

    for (int i = 0; t->aggregator && i < 2000; i++) {
        if (aggregator_get_blob(t->aggregator, &own, bytes, sizeof(bytes))) {
            t->own = own;
            memcpy(t->own_bytes, bytes, own.blobs.each);
            break;
        }
        sched_yield();
    }
    if (!t->own.blobs.each)
        return;
    *m = t->own;
    m->blobs.first = 0;
    m->blobs.count = m->blobs.total < RANKS + 1 ? m->blobs.total : RANKS + 1;
    m->blobs.data = (struct trib_control_bytes){t->all, m->blobs.count * m->blobs.each};
    for (uint32_t i = 0; i < m->blobs.count; i++)
        memcpy(t->all + i * m->blobs.each, t->own_bytes, m->blobs.each);
}

static void make_message(struct talk *t, unsigned kind, struct trib_control *m)
{
    memset(m, 0, sizeof(*m));
    switch (kind % 6) {
    case 0:
        make_hello(m);
        return;
    case 1:
        make_join(m);
        return;
    case 2:
        make_blobs(t, m);
        return;
    case 3:
        m->kind = TRIB_CONTROL_PLAN;
        m->plan.number = t->plans++;
        strcpy(m->plan.text,
               "coll=allreduce count=5000 dtype=f32 op=sum root=0 feed=0 chunk=0 "
               "leaving=0 feedback=none quorum=all codec=none");
        return;
    case 4:
        m->kind = TRIB_CONTROL_PLAN;
        strcpy(m->plan.text, "freed=0 ");
        return;
    default:
        m->kind = TRIB_CONTROL_ALIVE;
    }
}

/* Read to the end of the data or of the connection. */
static void hear(struct talk *t)
{
    struct trib_control m;
    trib_status_t st = TRIB_OK;

    while (!t->over && st == TRIB_OK) {
        st = trib_session_step(t->session, &m);
        if (st < 0 || (st == TRIB_OK && !take(&t->aggregator, &m)))
            t->over = true;
    }
}

static void say(struct talk *t, struct edits *all, unsigned kind, int edits)
{
    static uint8_t bytes[TRIB_CONTROL_FRAME_BYTES];
    struct trib_control m;
    struct edit e;
    size_t n;

    make_message(t, kind, &m);
    if (!m.kind || trib_control_put(&m, bytes, sizeof(bytes), &n) != TRIB_OK)
        return;
    for (int i = 0; i < edits && edits_next(all, &e); i++) {
        const size_t head = e.place & 1 ? 0 : TRIB_CONTROL_HEAD_BYTES; /* or edit the
                                                                        * payload */
        (void)edit_apply(all, &e, bytes + head, n - head);
    }
    if (write(t->fd, bytes, n) == (ssize_t)n)
        hear(t);
}

static void run_messages(struct edits *all)
{
    static struct talk t;
    struct trib_error err = {0};
    int fds[2];

    memset(&t, 0, offsetof(struct talk, own_bytes));
    need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
    const struct trib_session_opts opts = {.fd = fds[0],
                                           .role = TRIB_CONTROL_AGGREGATOR,
                                           .auth = auth,
                                           .peer = "a job",
                                           .handshake_ms = 1000,
                                           .err = &err};
    t.fd = fds[1];
    need(trib_session_open(&opts, &t.session) == TRIB_OK);
    for (int i = 0; i < MESSAGES_MOST && !t.over && all->left >= 2; i++) {
        const unsigned kind = (unsigned)edits_number(all, 1);
        say(&t, all, kind, (int)(edits_number(all, 1) % 8));
    }
    end(t.aggregator);
    trib_session_free(t.session);
    close(fds[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trib_error err = {0};
    struct trib_session *session;
    int fds[2];

    if (size == 0 || size > SAID_MOST)
        return 0;
    if (!worker)
        open_all();
    if (data[0] == 0) {
        static const uint64_t special[] = {0, 1, 2, 3, 64, 65536, UINT32_MAX, INT64_MAX,
                                           UINT64_MAX, UINT64_C(1) << 40};
        struct edits all = {.at = data + 1,
                            .left = size - 1,
                            .special = special,
                            .n_special = sizeof(special) / sizeof(*special)};
        run_messages(&all);
        return 0;
    }
    need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
    need(write(fds[1], data, size) == (ssize_t)size);
    (void)shutdown(fds[1], SHUT_WR);
    const struct trib_session_opts opts = {.fd = fds[0],
                                           .role = TRIB_CONTROL_AGGREGATOR,
                                           .auth = auth,
                                           .peer = "a job",
                                           .handshake_ms = 1000,
                                           .err = &err};
    if (trib_session_open(&opts, &session) == TRIB_OK) {
        converse(session);
        trib_session_free(session);
    }
    close(fds[1]);
    return 0;
}
