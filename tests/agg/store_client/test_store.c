/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stores in a tribd: pushes and pulls of several ranks and vectors against plain C,
 * refused calls, and connections that are cut anywhere.
 */
#include <math.h>

#include "build-config.h"
#include "tests/agg/store_client/store_rig.h"

enum { LONG = 70001, PUSHES = 5 };

/* All ranks push integers at once: the sum is the total, in any order. */
static void sum_of_all(const struct ranks_self *self, trib_store_t *store)
{
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    trib_pull_opts_t part = TRIB_PULL_OPTS_INIT;
    int64_t *x = malloc(LONG * sizeof(*x));
    uint64_t version = 0;

    ranks_assert(self, x);
    for (int i = 0; i < LONG; i++)
        x[i] = self->rank == 0 ? i : -1; /* only the values of rank 0 are read */
    d.name = "sum";
    d.count = LONG;
    d.dtype = TRIB_I64;
    d.initial = x;
    trib_vector_t *v = make(self, store, &d);
    for (int n = 0; n < PUSHES; n++) {
        for (int i = 0; i < LONG; i++)
            x[i] = (int64_t)i * (self->rank + 1) + n;
        need(self, store, trib_store_push(v, x, NULL, &version), "push");
    }
    ranks_assert(self, version >= PUSHES);
    ranks_ok(self, trib_barrier(self->comm));
    need(self, store, trib_store_pull(v, x, NULL, &version), "pull");
    ranks_assert(self, version == (uint64_t)(self->size * PUSHES));
    const int64_t ranks = self->size * (self->size + 1) / 2;
    for (int i = 0; i < LONG; i++)
        ranks_assert(self, x[i] == i + PUSHES * ranks * i + 10 * self->size);
    part.first = 8191 + (size_t)self->rank;
    part.count = 8193;
    need(self, store, trib_store_pull(v, x + LONG - 8193, &part, NULL), "a part");
    ranks_assert(self, memcmp(x + LONG - 8193, x + part.first, 8193 * sizeof(*x)) == 0);
    free(x);
}

/* A pull during the pushes of others returns a single version. */
static void one_version(const struct ranks_self *self, trib_store_t *store)
{
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    float *x = malloc(LONG * sizeof(*x));
    uint64_t version;

    ranks_assert(self, x);
    d.name = "ones";
    d.count = LONG;
    trib_vector_t *v = make(self, store, &d);
    trib_store_stats_t before = TRIB_STORE_STATS_INIT, after = TRIB_STORE_STATS_INIT;
    ranks_ok(self, trib_store_stats(store, &before));
    for (int n = 0; n < PUSHES; n++) {
        for (int i = 0; i < LONG; i++)
            x[i] = 1;
        need(self, store, trib_store_push(v, x, NULL, NULL), "push");
        need(self, store, trib_store_pull(v, x, NULL, &version), "pull");
        for (int i = 0; i < LONG; i++)
            ranks_assert(self, x[i] == (float)version);
    }
    const uint64_t bytes = (uint64_t)PUSHES * LONG * sizeof(*x);
    ranks_ok(self, trib_store_stats(store, &after));
    ranks_assert(self, after.pushes - before.pushes == PUSHES);
    ranks_assert(self, after.pulls - before.pulls == PUSHES);
    ranks_assert(self, after.sent_bytes - before.sent_bytes == bytes);
    ranks_assert(self, after.received_bytes - before.received_bytes == bytes);
    free(x);
}

/* Push in turns, so that plain C knows the order: SGD with momentum, and the pulled
 * result. */
static void in_turns(const struct ranks_self *self, trib_store_t *store)
{
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    trib_push_opts_t o = TRIB_PUSH_OPTS_INIT;
    float x[7], v[7] = {0}, pushed[7], got[7];

    for (int i = 0; i < 7; i++)
        x[i] = (float)i;
    d.name = "layer/1.weight";
    d.count = 7;
    d.rule = "sgd:rate=0.25,momentum=0.5";
    d.initial = x;
    trib_vector_t *vector = make(self, store, &d);
    o.result = got;
    for (int n = 0; n < 4 * self->size; n++) {
        const double rate = n % 2 ? 0.125 : 0.25;
        for (int i = 0; i < 7; i++) {
            pushed[i] = (float)(i - n) / 3;
            v[i] = (float)(0.5 * (double)v[i] + (double)pushed[i]);
        }
        for (int i = 0; i < 7; i++) /* the store does not round between the two */
            x[i] = (float)((double)x[i] - rate * (double)v[i]);
        o.rate = n % 2 ? 0.125 : 0;
        if (n % self->size == self->rank) {
            need(self, store, trib_store_push(vector, pushed, &o, NULL), "push");
            for (int i = 0; i < 7; i++)
                ranks_assert(self, fabsf(got[i] - x[i]) <= 1e-5f);
        }
        ranks_ok(self, trib_barrier(self->comm));
    }
}

/* The pushed vector moves towards the centre, in place. */
static void elastic(const struct ranks_self *self, trib_store_t *store)
{
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    trib_push_opts_t o = TRIB_PUSH_OPTS_INIT;
    double *w = malloc(LONG * sizeof(*w)), c = 0;

    ranks_assert(self, w);
    d.name = "centre";
    d.count = LONG;
    d.dtype = TRIB_F64;
    d.rule = "elastic:pull=0.5";
    trib_vector_t *v = make(self, store, &d);
    for (int r = 0; r < self->size; r++) {
        const double moved = 0.5 * ((double)r + 8 - c);
        c += moved;
        for (int i = 0; i < LONG; i++)
            w[i] = r + 8;
        o.result = w;
        if (r == self->rank) {
            need(self, store, trib_store_push(v, w, &o, NULL), "push");
            for (int i = 0; i < LONG; i++)
                ranks_assert(self, w[i] == r + 8 - moved);
        }
        ranks_ok(self, trib_barrier(self->comm));
    }
    need(self, store, trib_store_pull(v, w, NULL, NULL), "pull");
    ranks_assert(self, w[0] == c && w[LONG - 1] == c);
    free(w);
}

/* The store remains usable after each refusal. */
static void refusals(const struct ranks_self *self, trib_store_t *store)
{
    trib_push_opts_t o = TRIB_PUSH_OPTS_INIT;
    trib_pull_opts_t p = TRIB_PULL_OPTS_INIT;
    trib_vector_t *v = NULL, *other = NULL;
    float x[3] = {1, 2, 3};
    trib_vector_desc_t d = sized(trib_vector_desc_t, .name = "small", .count = 3);

    v = make(self, store, &d);
    refused(self, store, trib_store_create(store, &d, &other), TRIB_ERR_INVALID,
            "exists already");
    o.rate = 0.1;
    refused(self, store, trib_store_push(v, x, &o, NULL), TRIB_ERR_INVALID, "no rate");
    o.size = 3;
    refused(self, store, trib_store_push(v, x, &o, NULL), TRIB_ERR_INVALID,
            "trib_push_opts_t");
    refused(self, store, trib_store_push(v, NULL, NULL, NULL), TRIB_ERR_INVALID,
            "NULL");
    p.first = 2;
    p.count = 2;
    refused(self, store, trib_store_pull(v, x, &p, NULL), TRIB_ERR_INVALID,
            "range out of bounds");
    d.name = "no blanks";
    refused(self, store, trib_store_create(store, &d, &other), TRIB_ERR_INVALID,
            "a vector's name must be");
    d.name = "other";
    d.rule = "sgd:rat=1";
    const bool first = self->rank == 0;
    refused(self, store, trib_store_create(store, &d, &other), TRIB_ERR_INVALID,
            first ? "did you mean \"rate\"" : "another rank failed");
    d.rule = NULL;
    d.count = 3 + (size_t)(self->rank == self->size - 1);
    if (self->size > 1)
        refused(self, store, trib_store_create(store, &d, &other), TRIB_ERR_MISMATCH,
                d.count == 4 ? "exists with 3 elements" : "another rank failed");
    for (int i = 0; i < 3; i++)
        x[i] = (float)i;
    need(self, store, trib_store_push(v, x, NULL, NULL), "push");
}

/* In step: a pull after the k-th push returns at least k pushes of each rank. */
static void in_step(const struct ranks_self *self, trib_store_t *store)
{
    uint64_t version;
    int32_t one = 1, x;
    trib_vector_desc_t d =
        sized(trib_vector_desc_t, .name = "step", .count = 1, .dtype = TRIB_I32);

    trib_vector_t *v = make(self, store, &d);
    for (int bound = 0; bound < 3; bound++) {
        need(self, store, trib_store_set_staleness(store, bound), "a bound");
        for (int n = 1; n <= 40; n++) {
            if (n % 8 == self->rank)
                usleep(2000);
            need(self, store, trib_store_push(v, &one, NULL, NULL), "push");
            need(self, store, trib_store_pull(v, &x, NULL, &version), "pull");
            const int least = 40 * bound + n - bound;
            ranks_assert(self, x == (int32_t)version && x >= self->size * least);
        }
        ranks_ok(self, trib_barrier(self->comm));
    }
    need(self, store, trib_store_set_staleness(store, TRIB_STALE_ANY), "no bound");
    refused(self, store, trib_store_set_staleness(store, -2), TRIB_ERR_INVALID, "-2");
}

/* Rank 0 waits for versions that the last rank makes, and for one that is never
 * made. */
static void versions(const struct ranks_self *self, trib_store_t *store)
{
    trib_pull_opts_t p = TRIB_PULL_OPTS_INIT;
    const int last = self->size - 1;
    uint64_t version = 0;
    double x = 1;
    trib_vector_desc_t d =
        sized(trib_vector_desc_t, .name = "news", .count = 1, .dtype = TRIB_F64);

    trib_vector_t *v = make(self, store, &d);
    for (uint64_t n = 1; n <= 20 && self->rank == last; n++) {
        need(self, store, trib_store_push(v, &x, NULL, NULL), "push");
        usleep(500);
    }
    for (uint64_t n = 1; n <= 20 && self->rank == 0; n = version + 1) {
        p.at_least = n;
        need(self, store,
             n % 2 ? trib_store_pull(v, &x, &p, &version)
                   : trib_store_wait(v, n, 0, &version),
             "a wait");
        ranks_assert(self, version >= n && (n % 2 == 0 || x == (double)version));
    }
    p.at_least = 21;
    p.timeout_ms = 30;
    refused(self, store, trib_store_pull(v, &x, &p, NULL), TRIB_ERR_TIMEOUT,
            "version 21 was not reached within 30 ms");
    refused(self, store, trib_store_wait(v, 1, -1, NULL), TRIB_ERR_INVALID, "-1");
    need(self, store, trib_store_wait(v, 0, 1, &version), "no wait");
    /* A rank that pushes alone is too far ahead, until the others leave or push. */
    ranks_ok(self, trib_barrier(self->comm));
    if (self->size > 1 && self->rank == last) {
        p.at_least = 0;
        need(self, store, trib_store_set_staleness(store, 3), "a bound");
        refused(self, store, trib_store_pull(v, &x, &p, NULL), TRIB_ERR_TIMEOUT,
                "rank 0 0: more than 3 apart for 30 ms");
        need(self, store, trib_store_set_staleness(store, 20), "a bound");
        need(self, store, trib_store_pull(v, &x, &p, NULL), "pull");
        need(self, store, trib_store_set_staleness(store, TRIB_STALE_ANY), "no bound");
    }
}

static int walk(struct ranks_self *self)
{
    trib_store_t *store = NULL;

    ranks_ok(self, trib_store_open(self->comm, &store));
    sum_of_all(self, store);
    one_version(self, store);
    in_turns(self, store);
    elastic(self, store);
    in_step(self, store);
    versions(self, store);
    refusals(self, store);
    ranks_ok(self, trib_store_free(store));
    return 0;
}

TEST_ON(test_walk, "shm", "tcp", IF_UCX("ucx"))
{
    ranks_on_daemon(walk, *state);
}

/* A store needs a tribd. */
static int without(struct ranks_self *self)
{
    trib_store_t *store = NULL;
    int32_t x = 1;

    ranks_expect(self, trib_store_open(self->comm, &store), TRIB_ERR_CONFIG, "open");
    ranks_assert(
        self, !store && strstr(trib_last_error(self->comm), "TRIB_SERVICE is not set"));
    ranks_ok(self, trib_allreduce(self->comm, NULL, &x, 1, TRIB_I32, TRIB_SUM));
    return 0;
}

TEST(test_without)
{
    ranks_pass(.size = 2, .fn = without, .config = "transport=shm");
}

/* The tribd is killed: each rank gets the error at its next call, and the store stays
 * lost, although another tribd is available. */
static int killed(struct ranks_self *self)
{
    struct daemon_process *d = self->arg;
    trib_vector_desc_t desc = TRIB_VECTOR_DESC_INIT;
    trib_store_t *store = NULL;
    float x[5] = {1, 2, 3, 4, 5};

    ranks_ok(self, trib_store_open(self->comm, &store));
    desc.name = "x";
    desc.count = 5;
    trib_vector_t *v = make(self, store, &desc);
    need(self, store, trib_store_push(v, x, NULL, NULL), "push");
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == 0)
        kill(d->pid, SIGKILL);
    ranks_ok(self, trib_barrier(self->comm));
    const double since = ranks_seconds();
    refused(self, store, trib_store_push(v, x, NULL, NULL), TRIB_ERR_PEER_LOST,
            "is lost, and its vectors with it");
    ranks_assert(self,
                 strstr(trib_store_error(store), "vector x that this rank knows is "));
    refused(self, store, trib_store_pull(v, x, NULL, NULL), TRIB_ERR_PEER_LOST,
            "is lost, and its vectors with it");
    ranks_assert(self, ranks_seconds() - since < 5 * tribtest_slowness());
    ranks_ok(self, trib_store_free(store));
    return 0;
}

TEST(test_killed)
{
    struct daemon_process d = {.threads = 2};
    char config[160];
    int status;

    daemon_need(&d);
    snprintf(config, sizeof(config), "transport=tcp;service=127.0.0.1:%d", d.port);
    ranks_pass(.size = 2, .fn = killed, .arg = &d, .config = config, .noisy = true);
    while (!daemon_ended(&d, &status))
        usleep(1000);
    daemon_remove(d.folder);
}

/* Cut connections ------------------------------------------------------------------ */

static int pushes_through(struct ranks_self *self)
{
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    trib_push_opts_t o = TRIB_PUSH_OPTS_INIT;
    trib_store_t *store = NULL;
    int32_t *x = malloc(LONG * sizeof(*x));
    uint64_t version = 0;

    ranks_assert(self, x);
    ranks_ok(self, trib_store_open(self->comm, &store));
    d.name = "cut";
    d.count = LONG;
    d.dtype = TRIB_I32;
    trib_vector_t *v = make(self, store, &d);
    for (int n = 0; n < PUSHES; n++) {
        for (int i = 0; i < LONG; i++)
            x[i] = i + n;
        o.result = n % 2 ? x : NULL;
        need(self, store, trib_store_push(v, x, &o, NULL), "push");
    }
    ranks_ok(self, trib_barrier(self->comm));
    need(self, store, trib_store_pull(v, x, NULL, &version), "pull");
    ranks_assert(self, version == (uint64_t)(PUSHES * self->size));
    for (int i = 0; i < LONG; i++)
        ranks_assert(self, x[i] == self->size * (PUSHES * i + 10));
    free(x);
    ranks_ok(self, trib_store_free(store));
    return 0;
}

TEST(test_cut)
{
    ranks_cut(pushes_through);
}
