/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every collective by every algorithm that supports it, over every kind of transport,
 * dtype, op, codec, size, placement, memory and alignment, compared with a plain sum.
 *
 * test_matrix_verbs is the same program over verbs, with a device in memory.
 *
 *     test_matrix                     a sample, the same each time; --seed N: another
 *     test_matrix --long              the whole product
 *     test_matrix --every N           of either, about one case in N
 *     test_matrix --transport verbs   "sealed tcp" is tcp with TRIB_SEAL=1
 *     test_matrix --transport NAME --ranks P --case N
 *                                     one case, as a failure names it
 *
 * One job is one communicator; its ranks iterate over the same list of cases. A rank
 * that finds a wrong number exits with a message that names the case.
 */
#include <sys/mman.h>

#include "build-config.h"
#include "compress/kernels/kernels.h"
#include "tests/comm/matrix_cases.h"
#include "tests/comm/sealed.h"
#include "tests/harness/ranks.h"

/* The sample ends in time, even if every memory access is checked. With a device in
 * memory, which connects the threads of one process. */
#ifdef FAKE_VERBS
#include "comm/core/plan_struct.h"
#include "tests/harness/fake_verbs.h"
#define THREADS true
#define EVERY 16
#else
#define THREADS false
#define EVERY 10
#endif

#define HASHES 65536
#define GUARD 64 /* guard bytes around a receive buffer */
#define GUARD_BYTE 0xa5
#define VECTOR_BYTES ((size_t)65537 * 8 * RANKS_MOST + 4096)

static struct {
    uint64_t seed, only, every;
    bool whole;
    char *transport;
    int ranks;
} args = {.seed = 1, .only = UINT64_MAX, .every = EVERY};

struct rank {
    struct ranks_self *self;
    const struct job *job;
    uint8_t *send[MEMORY_KINDS];
    uint8_t *recv[MEMORY_KINDS];
    uint64_t ran, refused;
};

static void make_buffers(struct rank *r)
{
    trib_comm_t *comm = r->self->comm;
    void *p[4];

    ranks_ok(r->self, trib_alloc(comm, VECTOR_BYTES, &p[0]));
    ranks_ok(r->self, trib_alloc(comm, VECTOR_BYTES, &p[1]));
    p[2] = calloc(1, VECTOR_BYTES);
    p[3] = calloc(1, VECTOR_BYTES);
    ranks_assert(r->self, p[2] && p[3]);
    r->send[MEMORY_ALLOC] = p[0];
    r->recv[MEMORY_ALLOC] = r->recv[MEMORY_MIXED] = p[1];
    r->send[MEMORY_MALLOC] = r->send[MEMORY_MIXED] = p[2];
    r->recv[MEMORY_MALLOC] = p[3];
    for (int i = 0; i < 2; i++) {
        uint8_t **to = i ? r->recv : r->send;
        to[MEMORY_REGISTERED] = calloc(1, VECTOR_BYTES);
        ranks_assert(r->self, to[MEMORY_REGISTERED]);
        ranks_ok(r->self, trib_register(comm, to[MEMORY_REGISTERED], VECTOR_BYTES));
    }
}

static void free_buffers(struct rank *r)
{
    trib_comm_t *comm = r->self->comm;

    ranks_ok(r->self, trib_free(comm, r->send[MEMORY_ALLOC]));
    ranks_ok(r->self, trib_free(comm, r->recv[MEMORY_ALLOC]));
    ranks_ok(r->self, trib_deregister(comm, r->send[MEMORY_REGISTERED]));
    ranks_ok(r->self, trib_deregister(comm, r->recv[MEMORY_REGISTERED]));
    free(r->send[MEMORY_REGISTERED]);
    free(r->recv[MEMORY_REGISTERED]);
    free(r->send[MEMORY_MALLOC]);
    free(r->recv[MEMORY_MALLOC]);
}

/* The input and the result of one rank. Lengths are in elements. */
struct call {
    uint8_t *send; /* NULL: in place */
    uint8_t *recv;
    size_t send_n, recv_n;
    size_t result_first; /* of recv: the beginning of the result */
    size_t result_n; /* 0: this rank has none */
    uint64_t send_hash;
};

static void set_lengths(const struct one *c, int rank, struct call *k)
{
    size_t p = (size_t)c->oracle.size, n = c->count;
    bool has_result = c->pair.coll != TRIB_REDUCE || rank == c->root;

    k->send_n = c->pair.coll == TRIB_REDUCE_SCATTER ? n * p : n;
    k->recv_n = c->pair.coll == TRIB_ALLGATHER ? n * p : n;
    if (c->in_place && c->pair.coll == TRIB_REDUCE_SCATTER)
        k->recv_n = n * p;
    k->result_first =
        c->in_place && c->pair.coll == TRIB_REDUCE_SCATTER ? (size_t)rank * n : 0;
    k->result_n = !has_result ? 0 : c->pair.coll == TRIB_ALLGATHER ? n * p : n;
}

static void prepare(struct rank *r, const struct one *c, struct call *k)
{
    int rank = r->self->rank;
    size_t bytes = trib_dtype_size(c->oracle.dtype);
    const struct oracle *o = &c->oracle;

    set_lengths(c, rank, k);
    k->recv = r->recv[c->digit[AXIS_MEMORY]] + GUARD + c->offset;
    memset(k->recv - GUARD, GUARD_BYTE, k->recv_n * bytes + 2 * GUARD);
    k->send = c->in_place ? NULL : r->send[c->digit[AXIS_MEMORY]] + GUARD + c->offset;
    k->send_hash = k->send ? oracle_hash(k->send, k->send_n * bytes) : 0;
    uint8_t *input = c->in_place ? k->recv : k->send;
    if (c->pair.coll == TRIB_BROADCAST && rank != c->root)
        return;
    if (c->pair.coll == TRIB_ALLGATHER && c->in_place)
        input += (size_t)rank * c->count * bytes;
    oracle_fill(o, rank, 0, k->send_n, input);
    if (k->send)
        k->send_hash = oracle_hash(k->send, k->send_n * bytes);
    if (!c->in_place && c->pair.coll == TRIB_REDUCE && rank != c->root &&
        (c->number & 1))
        k->recv = NULL;
}

static void die(const struct rank *r, const struct one *c, const char *what)
{
    const struct oracle *o = &c->oracle;

    ranks_die(
        r->self,
        "%s --transport %s --ranks %d --seed %llu --case %llu: %s %s %s %s codec %s, "
        "count %zu, %s, %s memory, offset %zu bytes, chunk %zu, root %d, kind %d",
        what, r->job->transport, r->job->size, (unsigned long long)r->job->seed,
        (unsigned long long)c->number, names_of_colls[c->pair.coll], c->pair.algorithm,
        trib_dtype_name(o->dtype), trib_op_name(o->op), c->codec, c->count,
        c->in_place ? "in place" : "out of place", memory_names[c->digit[AXIS_MEMORY]],
        c->offset, chunks[c->digit[AXIS_CHUNK]], c->root, (int)o->kind);
}

static struct oracle_answer answer(const struct one *c, int rank, size_t i)
{
    const struct oracle *o = &c->oracle;

    switch (c->pair.coll) {
    case TRIB_BROADCAST:
        return oracle_copied(o, c->root, i);
    case TRIB_ALLGATHER:
        return oracle_copied(o, (int)(i / c->count), i % c->count);
    case TRIB_REDUCE_SCATTER:
        return oracle_reduced(o, (size_t)rank * c->count + i);
    default:
        return oracle_reduced(o, i);
    }
}

/* Return the tolerance of a codec for one element whose absolute inputs sum to
 * `magnitude`. */
static double codec_tolerance(const struct one *c, double magnitude)
{
    struct matrix_element e = {.hops = c->oracle.size + 1,
                               .magnitude = magnitude,
                               .ranks = c->oracle.size,
                               .moved_only = !trib_coll_sums(c->pair.coll)};

    if (c->oracle.op == TRIB_PROD)
        e.magnitude = fmax(magnitude, 256); /* including partial products */
    return matrix_codecs[c->digit[AXIS_CODEC]].tolerance(&e);
}

/* If all ranks have the same bits of a result (check_alike), each rank checks a
 * part. */
static void check_result(struct rank *r, const struct one *c, const struct call *k,
                         bool alike)
{
    size_t bytes = trib_dtype_size(c->oracle.dtype);
    const uint8_t *result = k->recv + k->result_first * bytes;
    size_t p = alike ? (size_t)r->self->size : 1,
           at = alike ? (size_t)r->self->rank : 0;
    size_t first = k->result_n * at / p, end = k->result_n * (at + 1) / p;
    double error = 0, signal = 0;

    for (size_t i = first; i < end; i++) {
        struct oracle_answer a = answer(c, r->self->rank, i);
        union perf_number got = perf_number_load(c->oracle.dtype, result, i);
        if (c->digit[AXIS_CODEC])
            a.tolerance += codec_tolerance(c, a.magnitude);
        if (!perf_number_is_integer(c->oracle.dtype)) {
            error += (got.f - a.value.f) * (got.f - a.value.f);
            signal += a.value.f * a.value.f;
        }
        if (oracle_equal(c->oracle.dtype, &a, got))
            continue;
        char what[200];
        snprintf(what, sizeof(what),
                 "element %zu is %.9g (%lld), not %.9g (%lld) within %.3g", i, got.f,
                 (long long)got.i, a.value.f, (long long)a.value.i, a.tolerance);
        die(r, c, what);
    }
    /* Noise that each element may have must not be in all of them. */
    const struct matrix_codec *codec = &matrix_codecs[c->digit[AXIS_CODEC]];
    double most = codec->noisy ? 0.1 * (c->oracle.size + 1) : 0.95;
    if (codec->tolerance == tolerance_unknown)
        most = codec->error < 0 ? (double)INFINITY
                                : pow(1 + 4 * codec->error, c->oracle.size + 1);
    if (c->digit[AXIS_CODEC] && k->result_n > 1000 && error > most * signal)
        die(r, c, "the normalised error is too large");
}

static void check_guards(struct rank *r, const struct one *c, const struct call *k)
{
    size_t bytes = trib_dtype_size(c->oracle.dtype);
    const uint8_t *end = k->recv ? k->recv + k->recv_n * bytes : NULL;

    for (int i = 0; end && i < GUARD; i++)
        if (k->recv[i - GUARD] != GUARD_BYTE || end[i] != GUARD_BYTE)
            die(r, c, "a byte outside the receive buffer has changed");
    if (k->send && oracle_hash(k->send, k->send_n * bytes) != k->send_hash)
        die(r, c, "the send buffer has changed");
}

/* In place as in MPI and NCCL, with pointers, in half of the cases. */
static struct call given(const struct one *c, struct call k, int rank)
{
    const size_t mine = (size_t)rank * c->count * trib_dtype_size(c->oracle.dtype);

    if (!c->in_place || c->pair.coll == TRIB_BROADCAST || oracle_mix(c->number) & 1)
        return k;
    k.send = k.recv + (c->pair.coll == TRIB_ALLGATHER ? mine : 0);
    k.recv += c->pair.coll == TRIB_REDUCE_SCATTER ? mine : 0;
    return k;
}

static trib_status_t call_blocking(trib_comm_t *comm, const struct one *c,
                                   const struct call *k)
{
    trib_dtype_t dtype = c->oracle.dtype;
    trib_op_t op = c->oracle.op;

    switch (c->pair.coll) {
    case TRIB_ALLREDUCE:
        return trib_allreduce(comm, k->send, k->recv, c->count, dtype, op);
    case TRIB_REDUCE:
        return trib_reduce(comm, k->send, k->recv, c->count, dtype, op, c->root);
    case TRIB_BROADCAST:
        return trib_broadcast(comm, k->recv, c->count, dtype, c->root);
    case TRIB_ALLGATHER:
        return trib_allgather(comm, k->send, k->recv, c->count, dtype);
    default:
        return trib_reduce_scatter(comm, k->send, k->recv, c->count, dtype, op);
    }
}

/* TRIB_ERR_UNSUPPORTED: the algorithm does not support this number of ranks. */
static trib_status_t call_plan(struct rank *r, const struct one *c,
                               const struct call *k)
{
    trib_comm_t *comm = r->self->comm;
    trib_plan_t *plan;
    trib_desc_t d =
        sized(trib_desc_t, .send = k->send, .recv = k->recv, .count = c->count,
              .dtype = c->oracle.dtype, .op = c->oracle.op, .root = c->root,
              .codec = c->codec, .algorithm = c->pair.algorithm,
              .chunk = chunks[c->digit[AXIS_CHUNK]]);

    trib_status_t st = trib_plan_create(comm, c->pair.coll, &d, &plan);
    if (st != TRIB_OK)
        return st;
    st = trib_plan_start(plan);
    while (st == TRIB_OK && (c->number & 2) && trib_plan_test(plan) == TRIB_INPROGRESS)
        sched_yield();
    if (st == TRIB_OK)
        st = trib_plan_wait(plan);
    trib_status_t freed = trib_plan_free(plan);
    return st == TRIB_OK ? freed : st;
}

static void run_case(struct rank *r, uint64_t number, uint64_t slot)
{
    struct one c;
    struct call k;

    decode(r->job, number, &c);
    c.in_place |= c.blocking && c.pair.coll == TRIB_BROADCAST;
    prepare(r, &c, &k);
    const struct call g = given(&c, k, r->self->rank);
    trib_status_t st =
        c.blocking ? call_blocking(r->self->comm, &c, &g) : call_plan(r, &c, &g);
    if (st == TRIB_ERR_UNSUPPORTED && strcmp(c.pair.algorithm, "auto") != 0) {
        r->refused++;
        return;
    }
    if (st != TRIB_OK)
        die(r, &c, trib_last_error(r->self->comm));
    r->ran++;
    bool alike = slot < HASHES && c.pair.coll != TRIB_REDUCE &&
                 c.pair.coll != TRIB_REDUCE_SCATTER;
    check_result(r, &c, &k, alike && !c.digit[AXIS_CODEC]); /* noise: check all of it */
    check_guards(r, &c, &k);
    if (alike)
        r->job->hashes[slot * RANKS_MOST + (size_t)r->self->rank] =
            oracle_hash(k.recv, k.result_n * trib_dtype_size(c.oracle.dtype));
}

/* Draw number n of a pair, dtype and op: the other axes are random. */
static bool draw(const struct job *j, uint64_t n, uint64_t *number_out)
{
    int radix[AXES], digit[AXES];
    uint64_t bits = oracle_mix(n ^ oracle_mix(j->seed + 77));

    radices(j, radix);
    uint64_t rest = n / (uint64_t)j->draws;
    digit[AXIS_PAIR] = (int)(rest % (uint64_t)j->n_pairs);
    rest /= (uint64_t)j->n_pairs;
    digit[AXIS_DTYPE] = (int)(rest % TRIB_DTYPE_COUNT);
    digit[AXIS_OP] = (int)(rest / TRIB_DTYPE_COUNT);
    for (int a = AXIS_CODEC; a < AXES; a++) {
        bits = oracle_mix(bits);
        digit[a] = (int)(bits % (uint64_t)radix[a]);
    }
    if (digit[AXIS_DTYPE] > TRIB_BF16 || (bits >> 20 & 1))
        digit[AXIS_CODEC] = 0;
    if (digit[AXIS_SIZE] >= 10 && bits >> 30 & 1)
        digit[AXIS_SIZE] -= 10; /* half of the large ones, which take the time */
    *number_out = number_of(j, digit);
    /* More dtypes and ops only run other kernels. */
    const bool rare = digit[AXIS_DTYPE] > TRIB_I64 || digit[AXIS_OP] > TRIB_PROD;
    return makes_sense(j, digit) && !(rare && bits >> 40 & 7);
}

static int walk(struct ranks_self *self)
{
    const struct job *j = self->arg;
    struct rank r = {.self = self, .job = j};
    uint64_t draws =
        (uint64_t)j->n_pairs * TRIB_DTYPE_COUNT * TRIB_OP_COUNT * (uint64_t)j->draws;
    uint64_t n = j->only != UINT64_MAX ? 1 : j->whole ? product(j) : draws;
    uint64_t number = j->only, slot = 0;

    make_buffers(&r);
    for (uint64_t i = 0; i < n; i++) {
        struct one c;
        bool wanted = true;
        /* Random: a regular step would always miss the same algorithms. */
        if (j->only == UINT64_MAX && oracle_mix(i ^ oracle_mix(j->seed)) % j->every)
            continue;
        if (j->only == UINT64_MAX && !j->whole) {
            wanted = draw(j, i, &number);
        } else if (j->only == UINT64_MAX) {
            number = i;
            decode(j, number, &c);
            wanted = makes_sense(j, c.digit);
        }
        if (wanted)
            run_case(&r, number, slot++);
        atomic_store(&self->slot->count, r.ran);
    }
    free_buffers(&r);
    ranks_say(self, "%llu cases, %llu that an algorithm cannot do",
              (unsigned long long)r.ran, (unsigned long long)r.refused);
    return 0;
}

/* Check that all ranks have the same bits if all get the result. */
static void check_alike(const struct job *j)
{
    for (uint64_t s = 0; s < HASHES; s++) {
        const uint64_t *h = &j->hashes[s * RANKS_MOST];
        for (int r = 1; r < j->size; r++)
            if (h[r] != h[0])
                fail_msg(
                    "%s, %d ranks, seed %llu: ranks 0 and %d have other bits after "
                    "the %llu-th case",
                    j->transport, j->size, (unsigned long long)j->seed, r,
                    (unsigned long long)s + 1);
    }
}

/* Settings that differ by job, so that all combine with most of the axes. */
static void settings(const struct job *j, int at, char *text, size_t bytes)
{
    static const int windows[] = {8, 2, 1, 3, 4, 5};
    const char *lower = trib_kernels_get("avx2") ? "avx2" : "auto";
    const char *const isas[] = {"auto", "auto", "auto", "c", "auto", lower};
    const bool sealed = strncmp(j->transport, SEALED, strlen(SEALED)) == 0;

    snprintf(text, bytes,
             "transport=%s;chunk=%s;window=%d;zero_copy=%d;progress=%s;cpu=%s;"
             "timeout_ms=%u;seal=%d",
             j->transport + sealed * strlen(SEALED), at == 4 ? "4K" : "64K",
             windows[at], at != 4, at % 2 ? "caller" : "thread", isas[at],
             20000 * tribtest_slowness(), sealed);
}

static void run_job(struct job *j, int at)
{
    char config[256];
    struct ranks_job job = {.size = j->size, .fn = walk, .arg = j, .config = config};
    struct ranks r;

    job.seconds = j->whole ? 3600 * 24 : 100;
    settings(j, at, config, sizeof(config));
    job.threads = THREADS || strcmp(j->transport, "loop") == 0;
    memset(j->hashes, 0, HASHES * RANKS_MOST * sizeof(*j->hashes));
    double begin = ranks_seconds();
    assert_true(ranks_start(&r, &job));
    ranks_wait(&r);
    int failed = ranks_failed(&r);
    printf("# %-9s %d ranks: %s, %.1f s\n", j->transport, j->size, r.slots[0].text,
           ranks_seconds() - begin);
    ranks_close(&r);
    assert_int_equal(failed, 0);
    check_alike(j);
}

static void run_transport(const char *transport)
{
    static const int draws[] = {2, 4, 4, 3, 2, 1};
    struct job j = {.transport = transport,
                    .seed = args.seed,
                    .only = args.only,
                    .every = args.every,
                    .whole = args.whole};

    size_t bytes = HASHES * RANKS_MOST * sizeof(*j.hashes);
    j.hashes =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(j.hashes, MAP_FAILED);
    find_pairs(&j);
    for (int i = 0; i < (int)(sizeof(rank_counts) / sizeof(*rank_counts)); i++) {
        j.size = rank_counts[i];
        j.draws = draws[i];
        if (!args.ranks || args.ranks == j.size)
            run_job(&j, i);
    }
    munmap(j.hashes, bytes);
}

static void test_transport(void **state)
{
#ifdef FAKE_VERBS
    (void)fake_verbs_reset();
#endif
    run_transport(*state);
}

static char *const everywhere[] = {
#ifdef FAKE_VERBS
    "verbs", "auto:near=shm,far=verbs,ranks_per_host=2",
#else
    "shm",
    "shm+nomap",
    "loop",
    "tcp",
#if HAVE_UCX
    "ucx",
#endif
    "auto:near=shm,far=tcp,ranks_per_host=2",
#endif
    WITH_SEALS};

static int parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char *next = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--long") == 0)
            args.whole = true;
        else if (strcmp(argv[i], "--seed") == 0)
            args.seed = strtoull(next, NULL, 10), i++;
        else if (strcmp(argv[i], "--every") == 0)
            args.every = strtoull(next, NULL, 10), i++;
        else if (strcmp(argv[i], "--case") == 0)
            args.only = strtoull(next, NULL, 10), i++;
        else if (strcmp(argv[i], "--ranks") == 0)
            args.ranks = atoi(next), i++;
        else if (strcmp(argv[i], "--transport") == 0)
            args.transport = next, i++;
        else
            return 1;
    }
    return args.every == 0;
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[sizeof(everywhere) / sizeof(*everywhere)];
    size_t n = sizeof(tests) / sizeof(*tests);

    if (parse(argc, argv)) {
        fprintf(stderr,
                "usage: %s [--long] [--every N] [--seed N] [--transport NAME] "
                "[--ranks P] [--case N]\n",
                argv[0]);
        return 2;
    }
    matrix_codecs_find();
    n = args.transport ? 1 : n;
    for (size_t i = 0; i < n; i++) {
        char *name = args.transport ? args.transport : everywhere[i];
        tests[i] = (struct CMUnitTest)cmocka_unit_test_prestate(test_transport, name);
        tests[i].name = name;
    }
    if (!args.whole)
        tribtest_deadline(900);
    printf("# seed %llu\n", (unsigned long long)args.seed);
    return _cmocka_run_group_tests("matrix", tests, n, NULL, NULL);
}
