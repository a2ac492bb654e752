/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-shot non-blocking calls: many at once, tested and waited for in any order, mixed
 * with blocking calls and plans, on each transport and with either kind of progress.
 */
#include <sys/mman.h>

#include "build-config.h"
#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { UNDER_WAY = 24, ROUNDS = 3, LONGEST = 30011, MOST_BYTES = LONGEST * 8 * 4 + 8 };

static const size_t counts[] = {0, 1, 3, 17, 1023, 4097, LONGEST};
static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_U64, TRIB_F8_E4M3, TRIB_BF16,
                                      TRIB_BOOL};
static const trib_op_t ops[] = {TRIB_SUM, TRIB_MAX, TRIB_MIN};

/* One call: its kind follows from its number, the same on all ranks. */
struct one {
    struct oracle o;
    trib_coll_t coll;
    size_t count;
    int root;
    bool in_place;
    char *send, *recv; /* send: NULL if in place */
    trib_request_t *request;
};

static void draw(struct one *c, uint64_t n, int size)
{
    const uint64_t bits = oracle_mix(n);

    c->coll = (trib_coll_t)(bits % (TRIB_BARRIER + 1));
    c->count = counts[(bits >> 8) % 7];
    c->root = (int)((bits >> 16) % (uint64_t)size);
    c->in_place = bits >> 24 & 1 || c->coll == TRIB_BROADCAST;
    c->o = (struct oracle){.kind = ORACLE_EXACT,
                           .seed = bits,
                           .dtype = dtypes[(bits >> 32) % 5],
                           .op = ops[(bits >> 40) % 3],
                           .size = size};
}

static void fill(const struct ranks_self *self, struct one *c)
{
    const size_t bytes = trib_dtype_size(c->o.dtype), rank = (size_t)self->rank;
    char *input = c->in_place ? c->recv : c->send;
    size_t n = c->count;

    memset(c->recv, 0x5a, MOST_BYTES);
    if (c->coll == TRIB_REDUCE_SCATTER)
        n *= (size_t)self->size;
    if (c->coll == TRIB_ALLGATHER && c->in_place)
        input += rank * n * bytes;
    if (c->coll != TRIB_BROADCAST || self->rank == c->root)
        oracle_fill(&c->o, self->rank, 0, n, input);
}

static trib_status_t begin(struct ranks_self *self, struct one *c)
{
    trib_comm_t *comm = self->comm;
    const char *send = c->in_place ? NULL : c->send;

    switch (c->coll) {
    case TRIB_ALLREDUCE:
        return trib_iallreduce(comm, send, c->recv, c->count, c->o.dtype, c->o.op,
                               &c->request);
    case TRIB_REDUCE:
        return trib_ireduce(comm, send, c->recv, c->count, c->o.dtype, c->o.op, c->root,
                            &c->request);
    case TRIB_BROADCAST:
        return trib_ibroadcast(comm, c->recv, c->count, c->o.dtype, c->root,
                               &c->request);
    case TRIB_ALLGATHER:
        return trib_iallgather(comm, send, c->recv, c->count, c->o.dtype, &c->request);
    case TRIB_REDUCE_SCATTER:
        return trib_ireduce_scatter(comm, send, c->recv, c->count, c->o.dtype, c->o.op,
                                    &c->request);
    default:
        return trib_ibarrier(comm, &c->request);
    }
}

static struct oracle_answer answer(const struct ranks_self *self, const struct one *c,
                                   size_t i)
{
    if (c->coll == TRIB_BROADCAST)
        return oracle_copied(&c->o, c->root, i);
    if (c->coll == TRIB_ALLGATHER)
        return oracle_copied(&c->o, (int)(i / c->count), i % c->count);
    if (c->coll == TRIB_REDUCE_SCATTER)
        return oracle_reduced(&c->o, (size_t)self->rank * c->count + i);
    return oracle_reduced(&c->o, i);
}

static void check(struct ranks_self *self, const struct one *c, uint64_t n)
{
    const size_t bytes = trib_dtype_size(c->o.dtype);
    size_t results =
        c->coll == TRIB_ALLGATHER ? c->count * (size_t)self->size : c->count;
    const char *at = c->recv;

    if (c->coll == TRIB_BARRIER || (c->coll == TRIB_REDUCE && self->rank != c->root))
        results = 0;
    if (c->coll == TRIB_REDUCE_SCATTER && c->in_place)
        at += (size_t)self->rank * c->count * bytes;
    for (size_t i = 0; i < results; i++) {
        const struct oracle_answer a = answer(self, c, i);
        const union perf_number v = perf_number_load(c->o.dtype, at, i);
        if (!oracle_equal(c->o.dtype, &a, v))
            ranks_die(self, "call %llu, %s %s %s of %zu: element %zu is %g (%lld)",
                      (unsigned long long)n, trib_coll_name(c->coll),
                      trib_dtype_name(c->o.dtype), trib_op_name(c->o.op), c->count, i,
                      v.f, (long long)v.i);
    }
}

/* End a request in one of three ways. */
static void end(struct ranks_self *self, struct one *c, uint64_t how)
{
    trib_status_t st = TRIB_INPROGRESS;

    while (how % 3 == 0 && st == TRIB_INPROGRESS) {
        st = trib_request_test(c->request);
        sched_yield();
    }
    ranks_ok(self, trib_request_wait(c->request));
    ranks_ok(self, trib_request_test(c->request));
    if (how % 3 == 1)
        ranks_ok(self, trib_request_wait(c->request));
    ranks_ok(self, trib_request_free(c->request));
}

static int many(struct ranks_self *self)
{
    static struct one calls[UNDER_WAY];
    int64_t sum;

    for (int i = 0; i < UNDER_WAY; i++) {
        calls[i].send = malloc(MOST_BYTES);
        calls[i].recv = malloc(MOST_BYTES);
        ranks_assert(self, calls[i].send && calls[i].recv);
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (uint64_t i = 0; i < UNDER_WAY; i++) {
            draw(&calls[i], round / 2 * UNDER_WAY + i, self->size);
            fill(self, &calls[i]);
            ranks_ok(self, begin(self, &calls[i]));
            sum = self->rank;
            if (i % 7 == 3)
                ranks_ok(self,
                         trib_allreduce(self->comm, NULL, &sum, 1, TRIB_I64, TRIB_SUM));
            ranks_assert(self, i % 7 != 3 || sum == self->size * (self->size - 1) / 2);
        }
        /* Each rank uses another order; 5 and 24 have no common divisor. */
        for (uint64_t i = 0; i < UNDER_WAY; i++) {
            struct one *c =
                &calls[(i * 5 + (uint64_t)self->rank * 7 + round) % UNDER_WAY];
            end(self, c, i + (uint64_t)self->rank);
            check(self, c, (uint64_t)(c - calls));
        }
    }
    for (int i = 0; i < UNDER_WAY; i++) {
        free(calls[i].send);
        free(calls[i].recv);
    }
    return 0;
}

TEST(test_many)
{
    static const char *const configs[] = {
        "transport=shm",
        "transport=shm+nomap;progress=caller",
        "transport=tcp",
        "transport=tcp;progress=caller",
#if HAVE_UCX
        "transport=ucx",
#endif
        "transport=auto:near=shm,far=tcp,ranks_per_host=2;window=4",
    };

    for (size_t i = 0; i < sizeof(configs) / sizeof(*configs); i++) {
        for (int size = 1; size <= 4; size += i ? 3 : 1) {
            ranks_pass(.size = size, .fn = many, .config = configs[i], .seconds = 60);
        }
    }
}

static int refuses(struct ranks_self *self)
{
    _Atomic int *begun = self->arg; /* shared: rank 0 has started */
    trib_request_t *request = (void *)self, *other;
    float x[8] = {0};

    ranks_assert(self, trib_request_free(NULL) == TRIB_OK);
    ranks_assert(self, trib_request_test(NULL) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_request_wait(NULL) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_ibarrier(NULL, &request) == TRIB_ERR_INVALID && !request);
    ranks_refused(self,
                  trib_iallreduce(self->comm, NULL, x, 8, TRIB_F32, TRIB_SUM, NULL),
                  TRIB_ERR_INVALID, WORDS("allreduce", "request_out", "NULL"));
    ranks_refused(
        self, trib_iallreduce(self->comm, NULL, x, 8, TRIB_F32, TRIB_BAND, &request),
        TRIB_ERR_INVALID, WORDS("op band"));
    ranks_assert(self, !request);
    ranks_refused(
        self, trib_iallreduce(self->comm, NULL, NULL, 8, TRIB_F32, TRIB_SUM, &request),
        TRIB_ERR_INVALID, WORDS("recv is NULL"));
    ranks_assert(self, !request);
    /* Rank 1 starts later, so that the request of rank 0 is not done. */
    if (self->rank == 0) {
        ranks_ok(self,
                 trib_iallreduce(self->comm, NULL, x, 8, TRIB_F32, TRIB_SUM, &request));
        ranks_refused(self, trib_request_free(request), TRIB_ERR_BUSY,
                      WORDS("the request is still running", "trib_request_free"));
        ranks_refused(self, trib_free_comm(self->comm), TRIB_ERR_BUSY,
                      WORDS("1 request is not freed", "trib_request_free"));
        atomic_store(begun, 1);
    } else {
        while (!atomic_load(begun))
            sched_yield();
        ranks_ok(self,
                 trib_iallreduce(self->comm, NULL, x, 8, TRIB_F32, TRIB_SUM, &request));
    }
    ranks_ok(self, trib_request_wait(request));
    ranks_ok(self, trib_request_free(request));
    ranks_ok(self, trib_ibarrier(self->comm, &other));
    ranks_ok(self, trib_request_wait(other));
    ranks_ok(self, trib_request_free(other));
    return 0;
}

TEST(test_refuses)
{
    _Atomic int *begun = mmap(NULL, sizeof(*begun), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(begun != MAP_FAILED);
    ranks_pass(.size = 2, .fn = refuses, .arg = begun, .seconds = 60, .noisy = true);
    munmap(begun, sizeof(*begun));
}

/* The pool of requests for later calls is bounded, and reused. */
static int kept(struct ranks_self *self)
{
    trib_request_t *first[3], *again;
    float x[300];

    for (int round = 0; round < 2; round++) {
        for (size_t n = 1; n < 300; n++) {
            trib_request_t *request;
            for (size_t i = 0; i < n; i++)
                x[i] = (float)(self->rank + 1);
            ranks_ok(self, trib_iallreduce(self->comm, NULL, x, n, TRIB_F32, TRIB_SUM,
                                           &request));
            ranks_ok(self, trib_request_wait(request));
            ranks_ok(self, trib_request_free(request));
            for (size_t i = 0; i < n; i++)
                ranks_assert(self, (int)x[i] == self->size * (self->size + 1) / 2);
        }
    }
    for (int i = 0; i < 3; i++)
        ranks_ok(self, trib_ibarrier(self->comm, &first[i]));
    for (int i = 0; i < 3; i++) {
        ranks_ok(self, trib_request_wait(first[i]));
        ranks_ok(self, trib_request_free(first[i]));
    }
    ranks_ok(self, trib_ibarrier(self->comm, &again));
    ranks_assert(self, again == first[2]); /* the newest */
    ranks_ok(self, trib_request_wait(again));
    ranks_ok(self, trib_request_free(again));
    return 0;
}

TEST(test_kept)
{
    ranks_pass(.size = 3, .fn = kept, .seconds = 60);
}

/* A rank that calls with another count is named to all ranks by the request. */
RANKS_TEST(test_mismatch, .size = 2, .seconds = 60, .bare = true, .noisy = true)
{
    trib_request_t *request;
    float x[8] = {0};

    ranks_ok(self, trib_init(&self->opts, &self->comm));
    ranks_ok(self, trib_iallreduce(self->comm, NULL, x, self->rank ? 8 : 7, TRIB_F32,
                                   TRIB_SUM, &request));
    ranks_assert(self, trib_request_wait(request) == TRIB_ERR_MISMATCH);
    ranks_assert(self, trib_request_test(request) == TRIB_ERR_MISMATCH);
    ranks_ok(self, trib_request_free(request));
    (void)trib_free_comm(self->comm);
    return 0;
}
