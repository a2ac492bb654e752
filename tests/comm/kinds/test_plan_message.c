/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages from rank to rank compared with the data sent: random pairs and tags, rings,
 * long ones, in every order of both ends, concurrent with collectives; refused calls,
 * mismatches, and ranks that die.
 */
#include "tests/comm/messages.h"

#include "build-config.h"
#include "tests/harness/daemon.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST_ON(test_random, "shm", "shm+nomap", "tcp", IF_UCX("ucx"))
{
    struct messages s = {.n = 150, .tags = 5, .largest = 700000};

    for (int size = 1; size <= 4; size++) {
        s.seed = 100 * (uint64_t)size;
        ranks_pass(.size = size, .fn = messages_run, .arg = &s, .config = *state);
    }
}

/* With settings that affect messages. */
TEST(test_settings)
{
    static const char *const settings[] = {"progress=caller",
                                           "check=sum",
                                           "transport=shm:cma=0",
                                           "window=1",
                                           "chunk=4096,window=2",
                                           "transport=tcp,check=sum",
                                           "transport=tcp,progress=caller",
                                           "transport=tcp,window=1,chunk=4096"};
    const struct messages s = {.seed = 7, .n = 120, .tags = 3, .largest = 200000};

    for (int k = 0; k < 8; k++)
        ranks_pass(.size = 3, .fn = messages_run, .arg = (void *)(uintptr_t)&s,
                   .config = settings[k]);
}

/* Many short messages wait for receives in the opposite order of tags. */
RANKS_TEST_ON(test_crossing, ("shm", "tcp", IF_UCX("ucx")), .size = 2)
{
    enum { N = 700 };
    const int other = 1 - self->rank;
    trib_request_t *sends[N];
    int64_t out[N], in;

    for (int k = 0; k < N; k++) {
        out[k] = 1000 * self->rank + k;
        ranks_ok(self,
                 trib_isend(self->comm, &out[k], 1, TRIB_I64, other, k, &sends[k]));
    }
    ranks_ok(self, trib_barrier(self->comm));
    for (int k = N - 1; k >= 0; k--) {
        ranks_ok(self, trib_recv(self->comm, &in, 1, TRIB_I64, other, k));
        ranks_assert(self, in == 1000 * other + k);
    }
    for (int k = 0; k < N; k++) {
        ranks_ok(self, trib_request_wait(sends[k]));
        ranks_ok(self, trib_request_free(sends[k]));
    }
    return 0;
}

/* A ring of plans: each rank forwards the message from its left, from other memory
 * each time, alternating between malloc and trib_alloc, until all messages have come
 * round. */
static int ring(struct ranks_self *self)
{
    const size_t n = *(const size_t *)self->arg;
    const int right = (self->rank + 1) % self->size;
    const int left = (self->rank + self->size - 1) % self->size;
    int32_t *x[2] = {calloc(n + 1, 4), NULL};
    void *shared;
    trib_plan_t *send, *recv;

    ranks_ok(self, trib_alloc(self->comm, (n + 1) * 4, &shared));
    x[1] = shared;
    ranks_ok(self, trib_plan_send(self->comm, x[0], n, TRIB_I32, right, 3, &send));
    ranks_ok(self, trib_plan_recv(self->comm, NULL, n, TRIB_I32, left, 3, &recv));
    for (size_t i = 0; i < n; i++)
        x[0][i] = (int32_t)i * 16 + self->rank;
    for (int round = 0; round < 3 * self->size; round++) {
        const int32_t *from = x[round % 2];
        int32_t *to = x[1 - round % 2];
        if (round == 0)
            ranks_ok(self, trib_plan_start(send));
        else
            ranks_ok(self, trib_plan_start_with(send, from, NULL));
        ranks_ok(self, trib_plan_start_with(recv, NULL, to));
        ranks_ok(self, trib_plan_wait(recv));
        while (trib_plan_test(send) == TRIB_INPROGRESS)
            ;
        ranks_ok(self, trib_plan_wait(send));
        const int whose = (self->rank + 4 * self->size - round - 1) % self->size;
        for (size_t i = 0; i < n; i++)
            if (to[i] != (int32_t)i * 16 + whose)
                ranks_die(self, "round %d, element %zu: %d", round, i, to[i]);
    }
    ranks_ok(self, trib_plan_free(send));
    ranks_ok(self, trib_plan_free(recv));
    free(x[0]);
    ranks_ok(self, trib_free(self->comm, x[1]));
    return 0;
}

TEST_ON(test_ring, "shm", "tcp", IF_UCX("ucx"))
{
    static const size_t counts[] = {0, 1, 1023, 1024, 1025, 100003, 6000001};

    for (int k = 0; k < 7; k++)
        ranks_pass(.size = 1 + k % 4, .fn = ring, .arg = (void *)(uintptr_t)&counts[k],
                   .config = *state);
}

/* A sender that is many messages ahead, of any length, and never blocks in a short one
 * that has room. */
static int ahead(struct ranks_self *self)
{
    enum { N = 2000 };
    double x[700] = {0};

    for (int k = 0; k < N; k++) {
        const size_t n = (size_t)(k * 7 % 700);
        for (size_t i = 0; i < n && self->rank == 0; i++)
            x[i] = k + (double)i;
        if (self->rank == 0)
            ranks_ok(self, trib_send(self->comm, x, n, TRIB_F64, 1, 0));
        if (self->rank == 1)
            ranks_ok(self, trib_recv(self->comm, x, n, TRIB_F64, 0, 0));
        for (size_t i = 0; i < n && self->rank == 1; i++)
            ranks_assert(self, x[i] == k + (double)i);
        if (self->rank == 1 && k % 500 == 0)
            usleep(2000);
    }
    return 0;
}

TEST_ON(test_ahead, "shm", "tcp")
{
    ranks_pass(.size = 3, .fn = ahead, .config = *state);
}

/* Both ranks send a short message before they receive. */
RANKS_TEST_ON(test_head_on, ("shm", "tcp"), .size = 2)
{
    float x[1024] = {0}, y[1024];

    ranks_ok(self, trib_barrier(self->comm));
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 1024; i++)
            x[i] = (float)(self->rank * 100 + round);
        ranks_ok(self, trib_send(self->comm, x, 1024, TRIB_F32, 1 - self->rank, 9));
        ranks_ok(self, trib_recv(self->comm, y, 1024, TRIB_F32, 1 - self->rank, 9));
        ranks_assert(self, y[1023] == (float)((1 - self->rank) * 100 + round));
    }
    return 0;
}

static void refused_arguments(struct ranks_self *self)
{
    trib_comm_t *c = self->comm;
    trib_request_t *r;
    trib_plan_t *p;
    float x = 0;

    ranks_refused(self, trib_plan_send(c, &x, 1, TRIB_F32, self->size, 0, &p),
                  TRIB_ERR_INVALID, WORDS("trib_plan_send to rank 2", "ranks 0 to 1"));
    ranks_assert(self, p == NULL);
    ranks_refused(self, trib_plan_recv(c, &x, 1, TRIB_F32, -1, 0, &p), TRIB_ERR_INVALID,
                  WORDS("from rank -1"));
    ranks_refused(self, trib_send(c, &x, 1, TRIB_F32, 0, -4), TRIB_ERR_INVALID,
                  WORDS("tag -4"));
    ranks_refused(self, trib_recv(c, &x, 1, TRIB_DTYPE_COUNT, 0, 4), TRIB_ERR_INVALID,
                  WORDS("trib_recv", "dtype"));
    ranks_refused(self, trib_isend(c, &x, SIZE_MAX / 2, TRIB_F32, 0, 4, &r),
                  TRIB_ERR_OVERFLOW, WORDS("trib_isend"));
    ranks_refused(self, trib_isend(c, &x, 1, TRIB_F32, 0, 4, NULL), TRIB_ERR_INVALID,
                  WORDS("request_out", "NULL"));
    ranks_refused(self, trib_plan_send(c, &x, 1, TRIB_F32, 0, 4, NULL),
                  TRIB_ERR_INVALID, WORDS("plan_out", "NULL"));
    ranks_refused(self, trib_send(c, NULL, 1, TRIB_F32, 0, 4), TRIB_ERR_INVALID,
                  WORDS("buffer is NULL", "trib_plan_start_with"));
    ranks_assert(self, trib_send(NULL, &x, 1, TRIB_F32, 0, 0) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_irecv(NULL, &x, 1, TRIB_F32, 0, 0, &r) == TRIB_ERR_INVALID);
    ranks_assert(self,
                 trib_plan_recv(NULL, &x, 1, TRIB_F32, 0, 0, &p) == TRIB_ERR_INVALID);
}

/* A plan of messages refuses unsupported calls with an error message. */
static int refusals(struct ranks_self *self)
{
    trib_plan_t *send, *recv;
    const unsigned char *mask;
    char text[500];
    float x = 5, y = 0;
    size_t n;

    refused_arguments(self);
    ranks_ok(self,
             trib_plan_send(self->comm, NULL, 1, TRIB_F32, 1 - self->rank, 77, &send));
    ranks_ok(self,
             trib_plan_recv(self->comm, &y, 1, TRIB_F32, 1 - self->rank, 77, &recv));
    ranks_refused(self, trib_plan_start(send), TRIB_ERR_INVALID,
                  WORDS("send of 1 f32 with tag 77", "NULL"));
    ranks_refused(self, trib_plan_start_with(send, NULL, &x), TRIB_ERR_INVALID,
                  WORDS("as send"));
    ranks_refused(self, trib_plan_ready(send, 0, 1), TRIB_ERR_INVALID,
                  WORDS("piecewise"));
    ranks_refused(self, trib_plan_state_save(send, NULL, 0, &n), TRIB_ERR_UNSUPPORTED,
                  WORDS("keeps no state"));
    ranks_refused(self, trib_plan_state_load(send, &x, 4), TRIB_ERR_UNSUPPORTED,
                  WORDS("keeps no state"));
    ranks_refused(self, trib_plan_sent(send, &mask, NULL), TRIB_ERR_UNSUPPORTED,
                  WORDS("keeps no state"));
    ranks_ok(self, trib_plan_start(recv));
    if (self->rank == 0) { /* rank 1 sends after this */
        ranks_refused(self, trib_plan_start(recv), TRIB_ERR_BUSY, WORDS("wait for it"));
        ranks_refused(self, trib_plan_free(recv), TRIB_ERR_BUSY,
                      WORDS("still running"));
        ranks_refused(self, trib_free_comm(self->comm), TRIB_ERR_BUSY,
                      WORDS("not freed"));
    }
    ranks_ok(self, trib_barrier(self->comm));
    ranks_ok(self, trib_plan_start_with(send, &x, NULL));
    ranks_ok(self, trib_plan_wait(recv));
    ranks_ok(self, trib_plan_wait(send));
    ranks_assert(self, y == 5);
    ranks_ok(self, trib_plan_explain(send, text, sizeof(text)));
    ranks_assert(self, strstr(text, "send of 1 f32 with tag 77 to rank") &&
                           strstr(text, "1 so far"));
    ranks_ok(self, trib_plan_free(send));
    ranks_ok(self, trib_plan_free(recv));
    return 0;
}

TEST_ON(test_refusals, "shm", "tcp")
{
    ranks_pass(.size = 2, .fn = refusals, .config = *state);
}

struct misfit {
    size_t count;
    trib_dtype_t dtype;
    bool late; /* the receive starts after the message was sent */
};

/* Rank 0 sends other elements than rank 1 receives: both get an error that names the
 * ranks. */
static int misfit(struct ranks_self *self)
{
    const struct misfit *m = self->arg;
    trib_status_t st = TRIB_OK;
    trib_plan_t *plan = NULL;
    void *x = calloc(1, 100000);

    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == 0)
        st = trib_plan_send(self->comm, x, m->count, m->dtype, 1, 6, &plan);
    else
        st = trib_plan_recv(self->comm, x, 50, TRIB_F32, 0, 6, &plan);
    ranks_ok(self, st);
    if (self->rank == 1 && m->late)
        usleep(20000);
    st = trib_plan_start(plan);
    if (st == TRIB_OK)
        st = trib_plan_wait(plan);
    while (st == TRIB_OK) /* a short message completes before the peer checks it */
        st = trib_barrier(self->comm);
    ranks_expect(self, st, TRIB_ERR_MISMATCH, "sizes that differ");
    char sent[40];
    snprintf(sent, sizeof(sent), "rank 0 sends %zu %s", m->count,
             trib_dtype_name(m->dtype));
    if (!ranks_has(trib_last_error(self->comm),
                   WORDS(sent, "rank 1 receives 50 f32", "tag 6")))
        ranks_die(self, "%s", trib_last_error(self->comm));
    ranks_ok(self, trib_plan_free(plan));
    free(x);
    return 0;
}

TEST_ON(test_misfit, "shm", "tcp")
{
    static const struct misfit cases[] = {
        {51, TRIB_F32, false}, {51, TRIB_F32, true},     {50, TRIB_I32, false},
        {0, TRIB_F32, true},   {20000, TRIB_F32, false}, {20000, TRIB_F32, true}};

    for (int k = 0; k < 6; k++)
        ranks_pass(.size = 2, .fn = misfit, .arg = (void *)(uintptr_t)&cases[k],
                   .config = *state, .noisy = true);
}

/* A long message is one entry of its sender and one of its receiver: the elements are
 * copied once, from memory of malloc and of trib_alloc. */
RANKS_TEST_ON(test_one_copy, ("shm"), .size = 2)
{
    enum { N = 300000 };
    float *plain = calloc(N, sizeof(*plain));
    void *shared;

    ranks_ok(self, trib_alloc(self->comm, N * sizeof(float), &shared));
    for (int k = 0; k < 2; k++) {
        trib_stats_t before = {.size = sizeof(before)}, after = before;
        float *x = k ? shared : plain;
        x[N - 1] = self->rank == 0 ? 5 : 0;
        ranks_ok(self, trib_stats(self->comm, &before));
        if (self->rank == 0)
            ranks_ok(self, trib_send(self->comm, x, N, TRIB_F32, 1, 1));
        else
            ranks_ok(self, trib_recv(self->comm, x, N, TRIB_F32, 0, 1));
        ranks_ok(self, trib_stats(self->comm, &after));
        ranks_assert(self, after.messages - before.messages == 1 && x[N - 1] == 5);
    }
    ranks_ok(self, trib_free(self->comm, shared));
    free(plain);
    return 0;
}

/* Rank 1 dies while others wait for its messages, or send to it. */
/* Starting a receive does not read a long message: the caller may first have to send a
 * message that its peer waits for. */
RANKS_TEST(test_start_reads_nothing, .size = 2,
           .config = "transport=shm,progress=caller")
{
    enum { N = 300000 };
    float *x = calloc(N, sizeof(*x));
    trib_stats_t before = {.size = sizeof(before)}, after = before;
    trib_request_t *request;

    x[N - 1] = self->rank == 0 ? 5 : 0;
    if (self->rank == 0) /* the first message connects the pair */
        ranks_ok(self, trib_send(self->comm, x, 1, TRIB_F32, 1, 2));
    else
        ranks_ok(self, trib_recv(self->comm, x, 1, TRIB_F32, 0, 2));
    if (self->rank == 0)
        ranks_ok(self, trib_isend(self->comm, x, N, TRIB_F32, 1, 1, &request));
    ranks_ok(self, trib_barrier(self->comm));
    ranks_ok(self, trib_stats(self->comm, &before));
    if (self->rank == 1)
        ranks_ok(self, trib_irecv(self->comm, x, N, TRIB_F32, 0, 1, &request));
    ranks_ok(self, trib_stats(self->comm, &after));
    ranks_assert(self, after.copied_bytes == before.copied_bytes);
    ranks_ok(self, trib_request_wait(request));
    ranks_ok(self, trib_request_free(request));
    ranks_assert(self, x[N - 1] == 5);
    free(x);
    return 0;
}

static int dies(struct ranks_self *self)
{
    const size_t n = *(const size_t *)self->arg;
    trib_status_t st = TRIB_OK;
    float *x = calloc(n + 1, sizeof(*x));
    const double begin = ranks_seconds();

    for (int k = 0; st == TRIB_OK; k++) {
        if (k == 20 && self->rank == 1)
            raise(SIGKILL);
        if (self->rank == 1)
            st = trib_send(self->comm, x, n, TRIB_F32, 0, 1);
        if (self->rank == 0)
            st = trib_recv(self->comm, x, n, TRIB_F32, 1, 1);
        if (self->rank == 1 && st == TRIB_OK)
            st = trib_recv(self->comm, x, n, TRIB_F32, 2, 1);
        if (self->rank == 2)
            st = trib_send(self->comm, x, n, TRIB_F32, 1, 1);
    }
    ranks_expect(self, st, TRIB_ERR_PEER_LOST, "a message of a dead rank");
    if (!ranks_has(trib_last_error(self->comm), WORDS("rank 1")))
        ranks_die(self, "%s", trib_last_error(self->comm));
    ranks_assert(self, ranks_seconds() - begin < 5 * tribtest_slowness());
    free(x);
    return 0;
}

TEST_ON(test_death, "shm", "tcp", IF_UCX("ucx"))
{
    static const size_t counts[] = {1, 300000};
    struct ranks r;

    for (int k = 0; k < 2; k++) {
        const struct ranks_job job = {.size = 3,
                                      .fn = dies,
                                      .arg = (void *)(uintptr_t)&counts[k],
                                      .config = *state,
                                      .noisy = true};
        assert_true(ranks_start(&r, &job));
        ranks_wait(&r);
        ranks_survived(&r, 1u << 1, "%zu elements", counts[k]);
    }
}

/* No peer answers: a receive, and a send of a message that is not short. */
static int alone(struct ranks_self *self)
{
    static float x[5000];
    trib_status_t st;

    if (self->rank == 0)
        st = trib_recv(self->comm, x, 30, TRIB_F32, 1, 8);
    else
        st = trib_send(self->comm, x, 5000, TRIB_F32, 0, 9);
    if (st != TRIB_ERR_TIMEOUT)
        ranks_die(self, "%d: %s", (int)st, trib_last_error(self->comm));
    const char *text = trib_last_error(self->comm);
    if (!ranks_has(text, WORDS("rank 0 made no progress for 400 ms",
                               "receive of 30 f32 with tag 8 from rank 1")) &&
        !ranks_has(text, WORDS("rank 1 made no progress for 400 ms",
                               "send of 5000 f32 with tag 9 to rank 0")))
        ranks_die(self, "%s", text);
    return 0;
}

TEST_ON(test_alone, "shm", "tcp")
{
    ranks_pass(.size = 2, .fn = alone, .noisy = true,
               .config = strcmp(*state, "transport=tcp")
                             ? "transport=shm,timeout_ms=400"
                             : "transport=tcp,timeout_ms=400");
}

/* With a tribd, dense vectors go through it, and messages go directly. */
TEST(test_beside_tribd)
{
    const struct messages s = {.seed = 3, .n = 100, .tags = 4, .largest = 100000};
    struct daemon_process d = {.pid = 0};
    char config[80];

    daemon_need(&d);
    snprintf(config, sizeof(config), "service=127.0.0.1:%d", d.port);
    ranks_pass(.size = 3, .fn = messages_run, .arg = (void *)(uintptr_t)&s,
               .config = config);
    daemon_end(&d);
}
