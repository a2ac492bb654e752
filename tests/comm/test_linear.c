/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums of encoded chunks that are never decoded on the way: compared bit for bit with
 * the codec applied to the vectors of all ranks, over every algorithm, several steps,
 * error feedback, feeding in pieces, and the collectives that sum or only move.
 */
#include <math.h>

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "compress/codec.h"
#include "compress/kernels/kernels.h"
#include "tests/comm/algorithms.h"
#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

enum { COUNT = 3001, STEPS = 3 };

struct scene {
    const char *codec;
    const char *algorithm;
    trib_coll_t coll;
    trib_op_t op;
    trib_feed_t feed;
    size_t count;
    size_t chunk;
};

/* ---- the codec without ranks ----------------------------------------------------- */

struct offline {
    struct trib_codec *codec;
    size_t n;
    uint64_t seed; /* of the noise of the plan, once it was started */
    float *residual[RANKS_MAX]; /* and gradient */
    float *share;
    float *own;
    uint8_t *word[RANKS_MAX];
    uint8_t *sum;
};

static void gradient(int rank, uint32_t step, size_t n, float *x)
{
    struct oracle o = {.kind = ORACLE_REALS, .seed = 5 + step};

    oracle_fill(&o, rank, 0, n, x);
}

static void offline_open(struct ranks_self *self, struct offline *f, const char *codec,
                         bool mean, size_t n)
{
    int size = self->size;

    memset(f, 0, sizeof(*f));
    ranks_assert(self, trib_codec_create(codec, NULL, NULL, &f->codec) == TRIB_OK);
    ranks_assert(self, trib_codec_for_ranks(f->codec, size, NULL) == TRIB_OK);
    if (mean)
        trib_codec_for_mean(f->codec);
    f->n = n;
    for (int r = 0; r < size; r++) {
        f->residual[r] = calloc(n + 1, sizeof(float));
        f->word[r] = malloc(trib_codec_bound(f->codec, n) + 1);
    }
    f->share = calloc(n + 1, sizeof(float));
    f->own = calloc(n + 1, sizeof(float));
    f->sum = malloc(trib_codec_bound(f->codec, n) + 1);
}

static void offline_close(struct offline *f, int size)
{
    for (int r = 0; r < size; r++) {
        free(f->residual[r]);
        free(f->word[r]);
    }
    free(f->share);
    free(f->own);
    free(f->sum);
    trib_codec_destroy(f->codec);
}

/* Run one step of all ranks; y is the expected result. */
static void offline_step(struct ranks_self *self, struct offline *f, uint32_t step,
                         bool mean, float *y)
{
    int size = self->size;
    bool feedback = trib_codec_info(f->codec)->flags & TRIB_CODEC_FEEDBACK;
    size_t floats = trib_codec_agreed_floats(f->codec, f->n), len;
    struct trib_encoded words[RANKS_MAX];
    float *x = malloc((f->n + 1) * sizeof(*x));

    for (size_t i = 0; i < floats; i++)
        f->share[i] = -INFINITY;
    for (int r = 0; r < size; r++) {
        gradient(r, step, f->n, x);
        for (size_t i = 0; i < f->n; i++)
            f->residual[r][i] = feedback ? f->residual[r][i] + x[i] : x[i];
        trib_codec_propose(f->codec, f->residual[r], f->n, f->own);
        for (size_t i = 0; i < floats; i++)
            f->share[i] = fmaxf(f->share[i], f->own[i]);
    }
    for (int r = 0; r < size; r++) {
        struct trib_encode in = {
            .x = f->residual[r],
            .n = f->n,
            .key = {.seed = f->seed, .step = step, .stream = (uint32_t)r},
            .agreed = floats ? f->share : NULL};
        len = feedback
                  ? trib_codec_encode_kept(f->codec, &in, f->residual[r], f->word[r])
                  : trib_codec_encode(f->codec, &in, f->word[r]);
        words[r] = (struct trib_encoded){f->word[r], len};
    }
    struct trib_merge m = {
        .words = words,
        .n_words = (size_t)size,
        .n = f->n,
        .final = true,
        .ranks = mean ? (uint32_t)size : 0,
        .key = {.seed = f->seed, .step = step, .stream = TRIB_STREAM_OF_SUMS}};
    ranks_ok(self, trib_codec_merge(f->codec, &m, f->sum, &len));
    ranks_ok(self, trib_codec_decode(f->codec, f->sum, len, y, f->n));
    free(x);
}

/* ---- ranks ----------------------------------------------------------------------- */

/* The elements are fed in pieces, and are wrong before that. */
static void feed_backward(struct ranks_self *self, trib_plan_t *plan, uint32_t step,
                          size_t n, float *x)
{
    float *late = malloc(n * sizeof(*late));

    gradient(self->rank, step, n, late);
    for (size_t end = n; end;) {
        size_t piece = end < 300 ? end : 300;
        for (int i = 0; i < 100; i++)
            (void)trib_plan_test(plan);
        end -= piece;
        memcpy(x + end, late + end, piece * sizeof(*x));
        ranks_ok(self, trib_plan_ready(plan, end, piece));
    }
    free(late);
}

static bool takes_result(const struct ranks_self *self, const struct scene *s)
{
    return s->coll != TRIB_REDUCE || self->rank == 0;
}

static int sums(struct ranks_self *self)
{
    const struct scene *s = self->arg;
    size_t parts = s->coll == TRIB_REDUCE_SCATTER ? (size_t)self->size : 1;
    size_t n = s->count * parts, mine = parts > 1 ? (size_t)self->rank * s->count : 0;
    float *x = calloc(n + 1, sizeof(*x)), *y = calloc(n + 1, sizeof(*y));
    float *expected = calloc(n + 1, sizeof(*expected));
    struct offline f;

    offline_open(self, &f, s->codec, s->op == TRIB_MEAN, n);
    trib_plan_t *plan = ranks_plan(self, s->coll, .send = x, .recv = y,
                                   .count = s->count, .op = s->op, .codec = s->codec,
                                   .algorithm = s->algorithm, .chunk = s->chunk,
                                   .feed = s->feed);
    for (uint32_t step = 1; step <= STEPS; step++) {
        gradient(self->rank, s->feed ? STEPS + 1 : step, n, x);
        ranks_ok(self, trib_plan_start(plan));
        if (s->feed)
            feed_backward(self, plan, step, n, x);
        ranks_ok(self, trib_plan_wait(plan));
        f.seed = plan->run.desc.seed;
        offline_step(self, &f, step, s->op == TRIB_MEAN, expected);
        for (size_t i = 0; takes_result(self, s) && i < s->count; i++)
            if (memcmp(&y[i], &expected[mine + i], sizeof(*y)) != 0)
                ranks_die(self, "%s %s, step %u: element %zu is %.9g, not %.9g",
                          s->codec, s->algorithm, step, i, (double)y[i],
                          (double)expected[mine + i]);
    }
    ranks_ok(self, trib_plan_free(plan));
    offline_close(&f, self->size);
    free(x);
    free(y);
    free(expected);
    return 0;
}

static void run(const struct scene *s, int size, const char *config)
{
    ranks_pass(.size = size, .fn = sums, .arg = (void *)s, .config = config,
               .threads = strcmp(config, "transport=loop") == 0);
}

static const char *const codecs[] = {
    "int8:bucket=16",
    "int4:bucket=16,ef=1",
    "int16:bucket=16,round=nearest",
    "uniform-thc:bits=4,bucket=16,ef=1",
    "qsgd:shared=1,bits=5,bucket=16,ef=1",
    "terngrad:shared=1,bucket=16",
    "hadamard:block=64,ef=1+int8:bucket=16",
    "signsgd",
    "int8:bucket=16,result=requantised",
    "hadamard:block=64,ef=1+int4:bucket=16,result=requantised",
    "exact",
    "bound:abs=0.01,bucket=16",
    "bound:rel=0.01,bucket=16,ef=1",
};
enum { CODECS = sizeof(codecs) / sizeof(*codecs) };

TEST(test_allreduce)
{
    for (size_t a = 0; a < algorithms_count(false); a++) {
        for (size_t c = 0; c < CODECS; c++) {
            struct scene s = {codecs[c],
                              algorithm_at(a),
                              TRIB_ALLREDUCE,
                              (a + c) % 2 ? TRIB_MEAN : TRIB_SUM,
                              TRIB_FEED_WHOLE,
                              COUNT,
                              4096};
            run(&s, 1 + (int)((a * 2 + c) % 6), "transport=shm");
        }
    }
}

/* Chunks contain whole buckets and blocks, whatever the length, so the results equal
 * those of the vector in one piece. */
TEST(test_whole_buckets)
{
    static const char *const wide[] = {"int8", "int4:bucket=40,ef=1",
                                       "uniform-thc:bits=4,bucket=1000", "thc",
                                       "qsgd:shared=1,bucket=1024"};
    for (size_t a = 0; a < 5; a++) {
        struct scene s = {
            wide[a],         algorithm_at(a), TRIB_ALLREDUCE,       TRIB_SUM,
            TRIB_FEED_WHOLE, 40007,         a == 2 ? 32768 : 8192};
        run(&s, 3 + (int)a, "transport=shm");
        s.codec = wide[(a + 1) % 5];
        s.count = 1100;
        s.chunk = 32768;
        run(&s, 4, "transport=shm");
        s = (struct scene){wide[a],  "direct",        TRIB_REDUCE_SCATTER,
                           TRIB_SUM, TRIB_FEED_WHOLE, 128000,
                           32768};
        run(&s, 2, "transport=shm");
    }
}

/* Blocks of 64 or more, which these lengths and numbers of ranks do not split. */
TEST(test_rotated)
{
    for (size_t a = 0; a < algorithms_count(false); a++) {
        for (int size = 1; size <= 4; size *= 2) {
            struct scene s = {size > 2 ? "thc:block=64,p=1/64" : "thc:block=512,ef=0",
                              algorithm_at(a),
                              TRIB_ALLREDUCE,
                              a % 2 ? TRIB_MEAN : TRIB_SUM,
                              TRIB_FEED_WHOLE,
                              8192,
                              4096};
            run(&s, size, "transport=shm");
        }
    }
}

/* The other transports, with one slot per edge and without load/store reach. */
TEST(test_transports)
{
    static const char *const configs[] = {"transport=shm+nomap", "transport=loop",
                                          "transport=tcp", "transport=shm;window=1"};
    for (size_t k = 0; k < 4; k++) {
        for (size_t a = 0; a < algorithms_count(false); a++) {
            struct scene s = {codecs[(k + a) % CODECS], algorithm_at(a), TRIB_ALLREDUCE,
                              TRIB_SUM, TRIB_FEED_WHOLE, COUNT, 4096};
            run(&s, 4 + (int)(a % 2), configs[k]);
        }
    }
}

/* Many rounds, so that several of them are in flight for one chunk. */
TEST(test_many_rounds)
{
    for (size_t a = 0; a < algorithms_count(false); a++) {
        struct scene s = {codecs[a % CODECS], algorithm_at(a),   TRIB_ALLREDUCE,
                          TRIB_SUM,  TRIB_FEED_WHOLE, 40000,
                          512};
        run(&s, 4, "transport=shm");
        run(&s, 7, "transport=loop");
        s = (struct scene){a % 2 ? codecs[a] : "signsgd", "halving-doubling",
                           TRIB_REDUCE_SCATTER, TRIB_SUM, TRIB_FEED_WHOLE, 9600, 512};
        run(&s, 4 + (int)a, "transport=shm");
    }
}

TEST(test_fed_backward)
{
    for (size_t a = 0; a < algorithms_count(false); a++) {
        struct scene s = {codecs[a % CODECS], algorithm_at(a), TRIB_ALLREDUCE, TRIB_SUM,
                          TRIB_FEED_BACKWARD, COUNT, 1024};
        run(&s, 3, "transport=shm");
        s.count = 40000; /* ranks agree on several of its rounds at once */
        s.chunk = 512;
        run(&s, 3, "transport=loop");
    }
}

enum { ROUNDS = 32, PIECE = 1024 };

/* Agreements over a network cover many rounds of chunks at once: they take less than
 * half a frame per round. Chunks: one up and one down per round, for each of two
 * ranks. */
static int counts_frames(struct ranks_self *self)
{
    static float x[2 * ROUNDS * PIECE];
    trib_stats_t before = {.size = sizeof(before)}, after = before;
    trib_plan_t *plan;
    trib_desc_t d =
        sized(trib_desc_t, .recv = x, .count = sizeof(x) / sizeof(*x), .codec = "int8",
              .algorithm = "direct", .chunk = PIECE * sizeof(*x));

    ranks_ok(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, &d, &plan));
    ranks_ok(self, trib_stats(self->comm, &before));
    ranks_step(self, plan);
    ranks_ok(self, trib_stats(self->comm, &after));
    ranks_ok(self, trib_plan_free(plan));
    uint64_t frames = after.messages - before.messages;
    if (frames <= 2 * ROUNDS || frames >= 2 * ROUNDS + ROUNDS / 2)
        ranks_die(self, "%u frames for %d rounds", (unsigned)frames, ROUNDS);
    return 0;
}

TEST(test_agreements_are_few)
{
    static const char *const configs[] = {"transport=tcp", "transport=shm+nomap"};

    for (size_t k = 0; k < 2; k++) {
        ranks_pass(.size = 2, .fn = counts_frames, .config = configs[k]);
    }
}

TEST(test_reduce_and_scatter)
{
    static const char *const names[] = {"direct", "ring", "auto"};
    for (size_t a = 0; a < 3; a++) {
        for (size_t c = 0; c < CODECS; c++) {
            struct scene s = {codecs[c], names[a], TRIB_REDUCE_SCATTER, TRIB_SUM,
                              TRIB_FEED_WHOLE, 1600, 4096};
            run(&s, 2 + (int)(c % 3), "transport=shm");
            s.coll = TRIB_REDUCE;
            s.op = TRIB_MEAN;
            if (strcmp(names[a], "ring") == 0)
                s.algorithm = "tree";
            run(&s, 2 + (int)(c % 3), "transport=shm");
        }
    }
}

/* Fewer elements than ranks, one, none: some rounds and chunks are empty. */
TEST(test_short_vectors)
{
    static const size_t counts[] = {0, 1, 2, 15, 17, 70};
    for (size_t k = 0; k < 6; k++) {
        struct scene s = {"signsgd",
                          algorithm_at(k),
                          TRIB_ALLREDUCE,
                          TRIB_SUM,
                          TRIB_FEED_WHOLE,
                          counts[k],
                          4096};
        struct scene t = {codecs[k],
                          algorithm_at(k + 1),
                          TRIB_ALLREDUCE,
                          TRIB_SUM,
                          TRIB_FEED_WHOLE,
                          counts[k],
                          4096};
        run(&s, 4, "transport=shm");
        run(&t, 4, "transport=shm");
    }
}
