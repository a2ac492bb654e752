/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Aggregators sum the vectors of ranks over all transports; results are compared with a
 * plain sum. The test drives the aggregators (agg/client/agg_comm.h).
 */
#include "build-config.h"
#include "tests/agg/client/aggregators.h"
#include "tests/comm/matrix_codecs.h"
#include "tests/comm/oracle.h"

enum { LONGEST = 70000 };

struct job {
    struct aggregators aggregators;
    uint64_t seed;
    bool hosts; /* ranks of a host sum first */
};

/* An announcement may name any chunk. An aggregator refuses chunks larger than any
 * encoded chunk, because its worker also serves other jobs. */
static void refuse_chunks(struct ranks_self *self, struct trib_comm *agg_comm)
{
    const size_t slot = agg_comm->cfg.chunk > agg_comm->chunk_asked
                            ? agg_comm->cfg.chunk
                            : agg_comm->chunk_asked;
    const size_t most = TRIB_AGG_CHUNKS_PER_WORD * slot;
    const struct {
        size_t chunk;
        const char *codec;
        bool good;
    } cases[] = {
        {most, "topk:ratio=0.01", true},
        {most + 1, "topk:ratio=0.01", false},
        {(size_t)1 << 40, "topk:ratio=0.01", false},
        {SIZE_MAX, "topk:ratio=0.01", false},
        {slot, "none",
         true}, /* the job requests slots large enough for unencoded elements */
        {slot + 1, "none", false},
        {most, "none", false},
    };

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[TRIB_AGG_COMM_TEXT_MAX];
        snprintf(
            text, sizeof(text),
            "coll=allreduce count=1000000 dtype=f32 op=sum root=0 feed=0 chunk=%zu "
            "leaving=0 feedback=none quorum=all codec=%s",
            cases[i].chunk, cases[i].codec);
        const trib_status_t st =
            trib_agg_comm_announced(agg_comm, TRIB_AGG_COMM_PLANS - 1 - i, text);
        if ((st == TRIB_OK) != cases[i].good ||
            (!cases[i].good && st != TRIB_ERR_INVALID))
            ranks_die(self, "a chunk of %zu bytes, codec %s: %s", cases[i].chunk,
                      cases[i].codec, trib_status_name(st));
    }
    trib_error_clear(&agg_comm->err);
}

/* Pairs are summed by an all-reduce with sum or mean, without codec and quorum. */
static void refuse_pairs(struct ranks_self *self, struct trib_comm *agg_comm)
{
    static const struct {
        const char *coll, *rest;
        bool good;
    } cases[] = {
        {"allreduce",
         "f32 op=sum root=0 feed=0 chunk=0 leaving=0 pairs=3 feedback=none "
         "quorum=all codec=none",
         true},
        {"allreduce",
         "f16 op=mean root=0 feed=0 chunk=64 leaving=0 check=sum pairs=0 "
         "feedback=none quorum=all codec=none",
         true},
        {"reduce",
         "f32 op=sum root=0 feed=0 chunk=0 leaving=0 pairs=3 feedback=none "
         "quorum=all codec=none",
         false},
        {"allreduce",
         "f32 op=max root=0 feed=0 chunk=0 leaving=0 pairs=3 feedback=none "
         "quorum=all codec=none",
         false},
        {"allreduce",
         "bool op=sum root=0 feed=0 chunk=0 leaving=0 pairs=3 "
         "feedback=none quorum=all codec=none",
         false},
        {"allreduce",
         "f32 op=sum root=0 feed=2 chunk=0 leaving=0 pairs=3 feedback=none "
         "quorum=all codec=none",
         false},
        {"allreduce",
         "f32 op=sum root=0 feed=0 chunk=0 leaving=0 pairs=3 feedback=none "
         "quorum=all codec=bf16",
         false},
        {"allreduce",
         "f32 op=sum root=0 feed=0 chunk=0 leaving=0 pairs=3 feedback=none "
         "quorum=0.5,deadline=20ms codec=none",
         false},
        {"allreduce",
         "f32 op=sum root=0 feed=0 chunk=0 leaving=0 pairs=-1 "
         "feedback=none quorum=all codec=none",
         false},
    };

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[TRIB_AGG_COMM_TEXT_MAX];
        snprintf(text, sizeof(text), "coll=%s count=1000000 dtype=%s", cases[i].coll,
                 cases[i].rest);
        const trib_status_t st =
            trib_agg_comm_announced(agg_comm, TRIB_AGG_COMM_PLANS - 50 - i, text);
        if (st != (cases[i].good ? TRIB_OK : TRIB_ERR_PROTOCOL))
            ranks_die(self, "%s: %s", text, trib_status_name(st));
    }
    trib_error_clear(&agg_comm->err);
}

/* Ranks ---------------------------------------------------------------------------- */

struct one {
    struct oracle o;
    const struct matrix_codec *codec;
    size_t count;
    bool in_place;
    size_t chunk;
};

static void check(struct ranks_self *self, const struct one *c, const uint8_t *got)
{
    struct matrix_element e = {.hops = c->o.size + 1, .ranks = c->o.size};

    for (size_t i = 0; i < c->count; i++) {
        struct oracle_answer a = oracle_reduced(&c->o, i);
        union perf_number v = perf_number_load(c->o.dtype, got, i);
        e.magnitude = a.magnitude;
        if (c->o.op == TRIB_PROD)
            e.magnitude = fmax(a.magnitude, 256);
        if (c->codec->tolerance)
            a.tolerance += c->codec->tolerance(&e);
        if (!oracle_equal(c->o.dtype, &a, v))
            ranks_die(self,
                      "seed %llu, %d ranks, %s %s %s of %zu%s, chunk %zu: element %zu "
                      "is %.9g (%lld), not %.9g (%lld) within %.3g",
                      (unsigned long long)c->o.seed, c->o.size,
                      trib_dtype_name(c->o.dtype), trib_op_name(c->o.op),
                      c->codec->text, c->count, c->in_place ? " in place" : "",
                      c->chunk, i, v.f, (long long)v.i, a.value.f, (long long)a.value.i,
                      a.tolerance);
    }
}

static void draw(const struct job *s, uint64_t n, struct one *c)
{
    static const size_t counts[] = {0, 1, 2, 17, 1023, 4097, 30000, LONGEST};
    static const size_t chunks[] = {0, 256, 4096, 16384, 262144 /* more than a slot:
                                                                 * encoded chunks
                                                                 * only */};
    uint64_t bits = oracle_mix(n ^ oracle_mix(s->seed));

    *c = (struct one){
        .o = {.kind = (enum oracle_kind)(bits % ORACLE_KINDS),
              .seed = bits,
              .dtype = (trib_dtype_t)(bits >> 8 & 0xff) % TRIB_DTYPE_COUNT,
              .op = (trib_op_t)(bits >> 16 & 0xff) % (TRIB_PROD + 1),
              .size = s->aggregators.ranks},
        .codec = &matrix_codecs[0],
        .count = counts[(bits >> 24 & 0xff) % 8],
        .in_place = bits >> 32 & 1,
        .chunk = chunks[(bits >> 33 & 0xff) % 5],
    };
    if (!trib_op_takes(c->o.op, c->o.dtype))
        c->o.op = TRIB_BXOR;
    if (c->o.dtype <= TRIB_BF16 && n % 3 != 0)
        c->codec = &matrix_codecs[n % (unsigned)n_matrix_codecs];
    if (strcmp(c->codec->text, "none") == 0) {
        c->chunk %= 262144; /* unencoded chunks fit in a slot */
        return;
    }
    if (c->codec->tolerance)
        c->o.kind = bits & 1 ? ORACLE_EXACT : ORACLE_REALS;
    if (!c->codec->any_op)
        c->o.op = bits >> 40 & 1 ? TRIB_SUM : TRIB_MEAN;
}

/* Ranks of a host sum the elements of long vectors first, but no codec's words. */
static bool sums_first(const struct job *s, const struct one *c)
{
    return s->hosts && strcmp(c->codec->text, "none") == 0 &&
           c->count * trib_dtype_size(c->o.dtype) >= 65536;
}

static void run_one(struct ranks_self *self, struct trib_comm *agg_comm,
                    const struct one *c, uint8_t *const buffers[2])
{
    trib_plan_t *plan;
    uint8_t *recv = buffers[1], *send = c->in_place ? recv : buffers[0];
    trib_desc_t d = sized(trib_desc_t, .send = c->in_place ? NULL : send, .recv = recv,
                          .count = c->count, .dtype = c->o.dtype, .op = c->o.op,
                          .codec = c->codec->text, .chunk = c->chunk);

    if (trib_plan_create(agg_comm, TRIB_ALLREDUCE, &d, &plan) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(agg_comm));
    ranks_assert(self, !strstr(plan->why, "sum first") == !sums_first(self->arg, c));
    for (int start = 0; start < 2; start++) {
        /* A second start with error feedback would have another result. */
        if (start && c->codec->tolerance)
            break;
        oracle_fill(&c->o, self->rank, 0, c->count, send);
        if (trib_plan_start(plan) != TRIB_OK || trib_plan_wait(plan) != TRIB_OK)
            ranks_die(self, "%s", trib_last_error(agg_comm));
        check(self, c, recv);
    }
    ranks_ok(self, trib_plan_free(plan));
}

static void use(struct ranks_self *self, struct trib_comm *agg_comm)
{
    const struct job *s = self->arg;
    uint8_t *buffers[2] = {malloc(LONGEST * 8), malloc(LONGEST * 8)};

    ranks_assert(self, trib_size(agg_comm) == s->aggregators.ranks &&
                           trib_rank(agg_comm) == self->rank);
    for (uint64_t n = 0; n < 24; n++) {
        struct one c;
        draw(s, n, &c);
        run_one(self, agg_comm, &c, buffers);
    }
    free(buffers[0]);
    free(buffers[1]);
    aggregators_leave(self, &s->aggregators, agg_comm);
}

static int sums(struct ranks_self *self)
{
    struct job *s = self->arg;
    struct trib_comm *agg_comm = aggregators_join(self, &s->aggregators, self->comm);

    if (self->rank >= s->aggregators.ranks) {
        refuse_chunks(self, agg_comm);
        refuse_pairs(self, agg_comm);
        aggregators_serve(self, &s->aggregators, agg_comm);
        trib_agg_comm_dispose(agg_comm);
        return 0;
    }
    use(self, agg_comm);
    return 0;
}

static void run(const char *config, int ranks, int n, const struct trib_agg_tree *tree)
{
    struct job s = {.aggregators = {.ranks = ranks, .n = n, .tree = tree},
                    .seed = (uint64_t)ranks,
                    .hosts = strstr(config, "ranks_per_host")};

    aggregators_run(&s.aggregators,
                    (struct ranks_job){.fn = sums, .arg = &s, .config = config});
}

TEST_ON(test_star, "shm", "shm+nomap", "shm;window=1", "tcp", IF_UCX("ucx"))
{
    run(*state, 1, 1, NULL);
    run(*state, 3, 1, NULL);
    run(*state, 4, 2, NULL);
}

TEST_ON(test_tree, "shm", "tcp")
{
    static const int parent[] = {0, 0, 0}, first[] = {0, 1, 2, 3},
                     aggregators[] = {0, 1, 2}, leaf_of[] = {1, 2, 1, 2};
    static const struct trib_agg_tree tree = {3, parent, first, aggregators, leaf_of};

    run(*state, 4, 3, &tree);
}

/* The aggregators have a host of their own, or one is on a host of ranks. */
TEST_ON(test_hosts, "auto:ranks_per_host=2", "auto:ranks_per_host=3;window=1",
        "auto:ranks_per_host=2;zero_copy=0")
{
    static const int parent[] = {0, 0, 0}, first[] = {0, 1, 2, 3},
                     aggregators[] = {0, 1, 2}, leaf_of[] = {1, 1, 2, 2, 2};
    static const struct trib_agg_tree tree = {3, parent, first, aggregators, leaf_of};

    run(*state, 4, 1, NULL);
    run(*state, 5, 2, NULL);
    run(*state, 7, 3, NULL);
    run(*state, 5, 3, &tree);
}

TEST_ON(test_racks, "shm;window=3", "tcp", "shm")
{
    run(*state, 3, 3, aggregators_of_racks());
}

int main(void)
{
    matrix_codecs_find();

    return tribtest_run();
}
