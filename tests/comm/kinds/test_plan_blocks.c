/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gather, scatter, all-to-all, scans, and the collectives with counts and offsets,
 * compared with a plain copy or sum: every dtype, odd lengths, zero counts, gaps
 * between blocks, in place, one round and many, memory that peers can or cannot access,
 * as plans and as blocking calls.
 */
#include "build-config.h"
#include "collectives/schedule/coll_traits.h"
#include "tests/comm/oracle.h"
#include "tests/harness/daemon.h"
#include "tests/harness/ranks.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define APART 40000 /* between the first numbers of two blocks */
#define RANKS 5
#define BYTES ((size_t)RANKS * 24000 * 8)
#define STEP 64 /* distance between compared elements of BYTES */
#define GUARD 0xa5

struct scene {
    trib_coll_t coll;
    const char *algorithm;
    bool counted;
};

static const struct scene scenes[] = {
    {TRIB_GATHER, "auto", false},
    {TRIB_GATHER, "flat", false},
    {TRIB_GATHER, "tree", false},
    {TRIB_GATHER, "auto", true},
    {TRIB_SCATTER, "auto", false},
    {TRIB_SCATTER, "flat", false},
    {TRIB_SCATTER, "tree", false},
    {TRIB_SCATTER, "auto", true},
    {TRIB_ALLTOALL, "direct", false},
    {TRIB_ALLTOALL, "pairwise", false},
    {TRIB_ALLTOALL, "auto", true},
    {TRIB_ALLGATHER, "auto", true},
    {TRIB_ALLGATHER, "ring", true},
    {TRIB_ALLGATHER, "direct", true},
    {TRIB_ALLGATHER, "halving-doubling", true},
    {TRIB_REDUCE_SCATTER, "ring", true},
    {TRIB_REDUCE_SCATTER, "direct", true},
    {TRIB_REDUCE_SCATTER, "halving-doubling", true},
    {TRIB_SCAN, "auto", false},
    {TRIB_SCAN, "flat", false},
    {TRIB_SCAN, "ring", false},
    {TRIB_SCAN, "doubling", false},
    {TRIB_EXSCAN, "auto", false},
    {TRIB_EXSCAN, "flat", false},
    {TRIB_EXSCAN, "ring", false},
    {TRIB_EXSCAN, "doubling", false},
};

/* One call, as known to all ranks. */
struct one {
    const struct scene *scene;
    struct oracle oracle;
    uint64_t bits;
    size_t count;
    int root;
    bool in_place;
    bool shared; /* memory from trib_alloc */
    size_t chunk;
};

/* One side of the call of a rank. */
struct side {
    uint8_t *at;
    size_t counts[RANKS], offsets[RANKS];
};

static size_t length(const struct one *c, int from, int to)
{
    const uint64_t bits = oracle_mix(c->bits ^ (uint64_t)(from * 31 + to + 7));

    if (!c->scene->counted)
        return c->count;
    return bits % 4 == 0 ? 0 : (size_t)(bits >> 8) % (c->count + 1);
}

/* Lay out the blocks of one side: in rank order or backwards, with gaps. */
static void lay_out(const struct one *c, struct side *s)
{
    const bool backwards = c->bits >> 20 & 1, packed = c->bits >> 21 & 1;
    size_t next = 0;

    for (int i = 0; i < c->oracle.size; i++) {
        const int r = backwards && !packed ? c->oracle.size - 1 - i : i;
        s->offsets[r] = next;
        next += s->counts[r] + (packed ? 0 : (size_t)r % 3);
    }
}

/* Describe the sides of a rank: the peer of each block r. */
static void describe(const struct one *c, int rank, struct side *send,
                     struct side *recv)
{
    const trib_coll_t coll = c->scene->coll;

    for (int r = 0; r < c->oracle.size; r++) {
        send->counts[r] = coll == TRIB_ALLTOALL && !c->in_place ? length(c, rank, r)
                          : coll == TRIB_ALLTOALL
                              ? length(c, rank < r ? rank : r, rank < r ? r : rank)
                              : length(c, 0, r);
        recv->counts[r] = coll == TRIB_ALLTOALL && !c->in_place ? length(c, r, rank)
                                                                : send->counts[r];
    }
    lay_out(c, send);
    lay_out(c, recv);
}

static bool is_root(const struct one *c, int rank)
{
    return !trib_coll_has_root(c->scene->coll) || rank == c->root;
}

static bool sends_all(const struct one *c, int rank)
{
    return trib_coll_traits(c->scene->coll) & TRIB_COLL_SEND_BLOCKS && is_root(c, rank);
}

static bool takes_all(const struct one *c, int rank)
{
    return trib_coll_traits(c->scene->coll) & TRIB_COLL_RECV_BLOCKS && is_root(c, rank);
}

/* Fill in the input of a rank, with the layout of its buffer. */
static void fill(const struct one *c, int rank, const struct side *send, uint8_t *to)
{
    const size_t size = trib_dtype_size(c->oracle.dtype);
    const trib_coll_t coll = c->scene->coll;

    if (sends_all(c, rank)) {
        for (int r = 0; r < c->oracle.size; r++)
            oracle_fill(&c->oracle, rank, (size_t)r * APART, send->counts[r],
                        to + send->offsets[r] * size);
        return;
    }
    if (coll == TRIB_SCATTER)
        return;
    oracle_fill(&c->oracle, rank, 0,
                trib_coll_is_blocked(coll) ? send->counts[rank] : c->count, to);
}

static void die(struct ranks_self *self, const struct one *c, const char *what)
{
    ranks_die(self,
              "%s %s%s, %s, op %s, %zu elements, root %d, %s, %s memory, chunk %zu: %s",
              trib_coll_name(c->scene->coll), c->scene->algorithm,
              c->scene->counted ? " with counts" : "", trib_dtype_name(c->oracle.dtype),
              trib_op_name(c->oracle.op), c->count, c->root,
              c->in_place ? "in place" : "out of place", c->shared ? "shared" : "plain",
              c->chunk, what);
}

static void compare(struct ranks_self *self, const struct one *c, const uint8_t *got,
                    struct oracle_answer want, size_t i)
{
    const union perf_number v = perf_number_load(c->oracle.dtype, got, 0);
    char what[120];

    if (oracle_equal(c->oracle.dtype, &want, v))
        return;
    snprintf(what, sizeof(what), "element %zu is %g (%lld), not %g (%lld)", i, v.f,
             (long long)v.i, want.value.f, (long long)want.value.i);
    die(self, c, what);
}

static void check_scan(struct ranks_self *self, const struct one *c, const uint8_t *got)
{
    const size_t size = trib_dtype_size(c->oracle.dtype);
    struct oracle some = c->oracle;

    some.size = self->rank + (c->scene->coll == TRIB_SCAN);
    /* In an exclusive scan, rank 1 gets the elements of rank 0 unchanged. */
    const bool copied = some.size == 1 && c->scene->coll == TRIB_EXSCAN;
    for (size_t i = 0; i < c->count && some.size; i++)
        compare(self, c, got + i * size,
                copied ? oracle_copied(&some, 0, i) : oracle_reduced(&some, i), i);
}

/* Check the whole receive buffer: blocks, and bytes that no call may touch. */
static void check(struct ranks_self *self, const struct one *c, const struct side *send,
                  const struct side *recv, const uint8_t *before, const uint8_t *got)
{
    const size_t size = trib_dtype_size(c->oracle.dtype);
    const int rank = self->rank;
    static _Thread_local uint8_t touched[BYTES];

    memset(touched, 0, sizeof(touched));
    for (int r = 0; r < c->oracle.size && takes_all(c, rank); r++) {
        const size_t first = trib_coll_traits(c->scene->coll) & TRIB_COLL_SEND_BLOCKS
                                 ? (size_t)rank * APART
                                 : 0;
        memset(touched + recv->offsets[r] * size, 1, recv->counts[r] * size);
        for (size_t i = 0; i < recv->counts[r]; i++)
            compare(self, c, got + (recv->offsets[r] + i) * size,
                    oracle_copied(&c->oracle, r, first + i), recv->offsets[r] + i);
    }
    if (trib_coll_traits(c->scene->coll) & TRIB_COLL_SEND_BLOCKS &&
        !takes_all(c, rank)) {
        const size_t at = c->in_place && sends_all(c, rank) ? send->offsets[rank] : 0;
        memset(touched + at * size, 1, send->counts[rank] * size);
        for (size_t i = 0; i < send->counts[rank]; i++) {
            const size_t e = (size_t)rank * APART + i;
            compare(self, c, got + (at + i) * size,
                    trib_coll_sums(c->scene->coll)
                        ? oracle_reduced(&c->oracle, e)
                        : oracle_copied(&c->oracle, c->root, e),
                    at + i);
        }
        if (c->in_place && trib_coll_sums(c->scene->coll))
            return; /* other blocks of the input may have been used for partial sums */
    }
    if (trib_coll_is_prefix(c->scene->coll)) {
        check_scan(self, c, got);
        memset(touched, 1, c->count * size);
    }
    for (size_t i = 0; i < BYTES; i++) {
        if (i % STEP == 0 && memcmp(before + i, got + i, STEP) == 0)
            i += STEP - 1; /* most of the buffer, in steps to save time */
        else if (!touched[i] && before[i] != got[i])
            die(self, c, "a byte outside of all blocks has changed");
    }
}

static trib_status_t call_blocking(trib_comm_t *comm, const struct one *c, int rank,
                                   const struct side *send, const struct side *recv,
                                   const void *from, void *to)
{
    const trib_dtype_t dtype = c->oracle.dtype;
    const trib_op_t op = c->oracle.op;

    switch (c->scene->coll) {
    case TRIB_GATHER:
        return c->scene->counted
                   ? trib_gatherv(comm, from, send->counts[rank], to, recv->counts,
                                  recv->offsets, dtype, c->root)
                   : trib_gather(comm, from, to, c->count, dtype, c->root);
    case TRIB_SCATTER:
        return c->scene->counted
                   ? trib_scatterv(comm, from, send->counts, send->offsets, to,
                                   send->counts[rank], dtype, c->root)
                   : trib_scatter(comm, from, to, c->count, dtype, c->root);
    case TRIB_ALLTOALL:
        return c->scene->counted
                   ? trib_alltoallv(comm, from, send->counts, send->offsets, to,
                                    recv->counts, recv->offsets, dtype)
                   : trib_alltoall(comm, from, to, c->count, dtype);
    case TRIB_ALLGATHER:
        return trib_allgatherv(comm, from, to, recv->counts, recv->offsets, dtype);
    case TRIB_REDUCE_SCATTER:
        return trib_reduce_scatterv(comm, from, to, send->counts, send->offsets, dtype,
                                    op);
    case TRIB_SCAN:
        return trib_scan(comm, from, to, c->count, dtype, op);
    default:
        return trib_exscan(comm, from, to, c->count, dtype, op);
    }
}

static trib_status_t call_plan(trib_comm_t *comm, const struct one *c, int rank,
                               const struct side *send, const struct side *recv,
                               const void *from, void *to)
{
    const unsigned traits = trib_coll_traits(c->scene->coll);
    trib_plan_t *plan;
    trib_desc_t d = sized(trib_desc_t, .dtype = c->oracle.dtype, .op = c->oracle.op,
                          .root = c->root,
                          .count = c->scene->counted ? send->counts[rank] : c->count,
                          .algorithm = c->scene->algorithm, .chunk = c->chunk);

    if (traits & TRIB_COLL_SEND_BLOCKS && c->scene->counted)
        d.send_counts = send->counts, d.send_offsets = send->offsets;
    if (traits & TRIB_COLL_RECV_BLOCKS && c->scene->counted)
        d.recv_counts = recv->counts, d.recv_offsets = recv->offsets;
    trib_status_t st = trib_plan_create(comm, c->scene->coll, &d, &plan);
    if (st != TRIB_OK)
        return st;
    st = trib_plan_start_with(plan, from, to);
    if (st == TRIB_OK)
        st = trib_plan_wait(plan);
    if (st == TRIB_OK && !c->in_place) { /* a plan is started several times */
        st = trib_plan_start_with(plan, from, to);
        if (st == TRIB_OK)
            st = trib_plan_wait(plan);
    }
    const trib_status_t freed = trib_plan_free(plan);
    return st == TRIB_OK ? freed : st;
}

/* In place: NULL, the same pointer, or the rank's block of the longer buffer. */
static void say_place(const struct one *c, int rank, const struct side *send,
                      const struct side *recv, void **from, void **to)
{
    const size_t size = trib_dtype_size(c->oracle.dtype);
    uint8_t *buffer = *to;

    *from = c->bits >> 30 & 1 ? buffer : NULL;
    if (c->bits >> 31 & 1 || c->scene->coll == TRIB_ALLTOALL)
        return;
    if (takes_all(c, rank)) {
        *from = buffer + recv->offsets[rank] * size;
    } else if (sends_all(c, rank)) {
        *from = buffer;
        *to = buffer + send->offsets[rank] * size;
    }
}

static void run_one(struct ranks_self *self, const struct one *c, uint8_t *const *plain,
                    uint8_t *const *shared)
{
    const size_t size = trib_dtype_size(c->oracle.dtype);
    uint8_t *in = c->shared ? shared[0] : plain[0],
            *out = c->shared ? shared[1] : plain[1];
    static _Thread_local uint8_t before[BYTES];
    struct side send, recv;
    const int rank = self->rank;
    const trib_coll_t coll = c->scene->coll;
    void *from = in, *to = out;

    describe(c, rank, &send, &recv);
    if (!c->scene->counted) { /* plans and calls without arrays have no gaps */
        for (int r = 0; r < c->oracle.size; r++)
            send.offsets[r] = recv.offsets[r] = (size_t)r * c->count;
    }
    memset(in, GUARD, BYTES);
    memset(out, GUARD, BYTES);
    if (!c->in_place)
        fill(c, rank, &send, in);
    else if (takes_all(c, rank) && coll != TRIB_ALLTOALL)
        fill(c, rank, &send, out + recv.offsets[rank] * size);
    else
        fill(c, rank, &send, out);
    if (c->in_place)
        say_place(c, rank, &send, &recv, &from, &to);
    memcpy(before, out, BYTES);
    const trib_status_t st =
        c->bits >> 40 & 1 && !c->chunk && strcmp(c->scene->algorithm, "auto") == 0
            ? call_blocking(self->comm, c, rank, &send, &recv, from, to)
            : call_plan(self->comm, c, rank, &send, &recv, from, to);
    if (st == TRIB_ERR_UNSUPPORTED)
        return; /* such as halving-doubling with some numbers of ranks */
    if (st != TRIB_OK)
        die(self, c, trib_last_error(self->comm));
    check(self, c, &send, &recv, before, out);
    atomic_fetch_add(&self->slot->count, 1);
}

static int walk(struct ranks_self *self)
{
    static const size_t sizes[] = {0, 1, 3, 7, 17, 513, 4099, 11003};
    static const size_t chunks[] = {0, 256, 4096};
    const int draws = *(const int *)self->arg;
    const size_t n_scenes = sizeof(scenes) / sizeof(scenes[0]);
    uint8_t *plain[2] = {malloc(BYTES), malloc(BYTES)}, *shared[2];

    for (int i = 0; i < 2; i++) {
        void *p;
        ranks_ok(self, trib_alloc(self->comm, BYTES, &p));
        shared[i] = p;
        ranks_assert(self, plain[i]);
    }
    for (size_t n = 0; n < n_scenes * TRIB_DTYPE_COUNT * (size_t)draws; n++) {
        const uint64_t bits = oracle_mix(n * 977 + (uint64_t)self->size);
        struct one c = {.scene = &scenes[n % n_scenes],
                        .bits = bits,
                        .count = sizes[bits % 8],
                        .root = (int)(bits >> 8) % self->size,
                        .in_place = bits >> 24 & 1,
                        .shared = bits >> 25 & 1,
                        .chunk = chunks[(bits >> 26) % 3]};
        if (bits >> 56 & 1) /* a sample of them, the same on all ranks */
            continue;
        c.oracle =
            (struct oracle){.kind = ORACLE_EXACT,
                            .seed = bits,
                            .dtype = (trib_dtype_t)(n / n_scenes % TRIB_DTYPE_COUNT),
                            .op = bits >> 50 & 1 ? TRIB_MAX : TRIB_SUM,
                            .size = self->size};
        if (c.root < 0)
            c.root += self->size;
        if (!trib_op_takes(c.oracle.op, c.oracle.dtype))
            c.oracle.op = TRIB_LOR;
        run_one(self, &c, plain, shared);
    }
    for (int i = 0; i < 2; i++) {
        free(plain[i]);
        ranks_ok(self, trib_free(self->comm, shared[i]));
    }
    return 0;
}

TEST_ON(test_all, "shm", "shm+nomap", "tcp", IF_UCX("ucx"))
{
    char config[120];
    int draws = strstr(*state, "shm") ? 2 : 1;

    snprintf(config, sizeof(config), "%s;chunk=16K", (const char *)*state);
    for (int size = 1; size <= RANKS; size++)
        ranks_pass(.size = size, .fn = walk, .arg = &draws, .config = config,
                   .seconds = 200);
}

/* With tribd, which only sums all-reduces, the ranks run these without it. */
static int with_tribd(struct ranks_self *self)
{
    float x[4096];
    trib_stats_t stats = {.size = sizeof(stats)};

    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 4096; i++)
            x[i] = (float)(self->rank + i);
        ranks_ok(self, trib_allreduce(self->comm, NULL, x, 4096, TRIB_F32, TRIB_MAX));
        ranks_assert(self, x[4095] == (float)(4095 + self->size - 1));
        const int failed = walk(self);
        if (failed)
            return failed;
    }
    ranks_ok(self, trib_stats(self->comm, &stats));
    ranks_assert(self, stats.served > 0);
    return 0;
}

TEST(test_tribd)
{
    struct daemon_process d = {.threads = 1};
    char config[160];
    int draws = 1;

    daemon_need(&d);
    snprintf(config, sizeof(config), "transport=tcp;chunk=16K;service=127.0.0.1:%d",
             d.port);
    ranks_pass(.size = 3, .fn = with_tribd, .arg = &draws, .config = config,
               .seconds = 200);
    daemon_end(&d);
}

/* Chunks of 64 KiB: long blocks are read in place. */
TEST_ON(test_long, "shm", "tcp")
{
    int draws = 3;

    ranks_pass(.size = 3, .fn = walk, .arg = &draws, .config = *state, .seconds = 200);
}
