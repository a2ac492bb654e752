/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A gradient with NaN or Inf: each codec treats it as in the table of docs/codecs.md,
 * on all ranks, whichever rank has it, with any algorithm, and at a tribd; the next
 * start is not affected.
 */
#include <math.h>

#include "agg/client/fallback.h"
#include "comm/core/plan_struct.h"
#include "tests/comm/algorithms.h"
#include "tests/harness/daemon.h"
#include "tests/harness/ranks.h"

enum { COUNT = 2304, CHUNK = 3072 /* bytes */, RANKS = 3, A_CHUNK = 0 /* as a span */ };
#define EVERYWHERE SIZE_MAX

enum claim {
    AS_IT_IS,  /* that element, and nothing else */
    WHOLE,     /* all elements of its span are not finite, no others */
    SOMEWHERE, /* some of its span are not finite, no others */
    DRAWN,     /* as it is, in a later start at the latest */
    VOTE,      /* no effect: it counts by its sign */
};

struct row {
    const char *codec;
    enum claim claim;
    size_t span; /* elements, counted from the beginning of a chunk */
    uint32_t warm; /* number of starts before, in which it learns */
};

static const struct row rows[] = {
    {"none", AS_IT_IS, 1, 0},
    {"exact", AS_IT_IS, 1, 0},
    {"bound:abs=0.001,bucket=64", AS_IT_IS, 1, 0},
    {"bound:rel=0.001,bucket=64,ef=1", AS_IT_IS, 1, 0},
    {"f16", AS_IT_IS, 1, 0},
    {"f16:round=random,ef=1", AS_IT_IS, 1, 0},
    {"bf16", AS_IT_IS, 1, 0},
    {"bf16:round=random,ef=1", AS_IT_IS, 1, 0},
    {"f8:bucket=64", WHOLE, 64, 0},
    {"f8:bucket=64,pack=entropy,ef=1", WHOLE, 64, 0},
    {"topk:ratio=0.01", AS_IT_IS, 1, 0},
    {"topk:ratio=0.01,ef=0", AS_IT_IS, 1, 0},
    {"topk:k=2", AS_IT_IS, 1, 0},
    {"topk+f16", AS_IT_IS, 1, 0},
    {"topk+bf16", AS_IT_IS, 1, 0},
    {"dgc:ratio=0.01", AS_IT_IS, 1, 0},
    {"dgc:k=2", AS_IT_IS, 1, 0},
    {"threshold:at=0.9", AS_IT_IS, 1, 0},
    {"randomk:ratio=0.25", DRAWN, 1, 0},
    {"randomk:k=100", DRAWN, 1, 0},
    {"blocks:block=64", AS_IT_IS, 1, 0},
    {"blocks:block=64,ratio=0.1", AS_IT_IS, 1, 0},
    {"adacomp", SOMEWHERE, A_CHUNK, 0},
    {"topk+natural", SOMEWHERE, A_CHUNK, 0},
    {"topk+qsgd:bucket=64", SOMEWHERE, A_CHUNK, 0},
    {"topk+efsign", SOMEWHERE, A_CHUNK, 0},
    {"topk+onebit", SOMEWHERE, A_CHUNK, 0},
    {"topk+int8", SOMEWHERE, A_CHUNK, 0},
    {"topk:ef=0+terngrad", SOMEWHERE, A_CHUNK, 0},
    {"topk+dither", SOMEWHERE, A_CHUNK, 0},
    {"topk+f8", SOMEWHERE, A_CHUNK, 0},
    {"qsgd:bucket=64", WHOLE, 64, 0},
    {"qsgd:bucket=64,norm=l2", WHOLE, 64, 0},
    {"qsgd:bucket=64,bits=8,ef=1", WHOLE, 64, 0},
    {"qsgd:bucket=64,pack=omega", WHOLE, 64, 0},
    {"qsgd:bucket=64,shared=1", WHOLE, 64, 0},
    {"natural:bucket=64", WHOLE, 64, 0},
    {"natural:bucket=64,round=nearest,pack=entropy,ef=1", WHOLE, 64, 0},
    {"terngrad:bucket=64", WHOLE, 64, 0},
    {"terngrad:bucket=64,shared=1", WHOLE, 64, 0},
    {"onebit:bucket=64", WHOLE, 64, 0},
    {"efsign:bucket=64", WHOLE, 64, 0},
    {"dither:bucket=64", WHOLE, 64, 0},
    {"dither:bucket=64,base=1.5,norm=l2,ef=1", WHOLE, 64, 0},
    {"signsgd", VOTE, 1, 0},
    {"int4:bucket=64", WHOLE, 64, 0},
    {"int8:bucket=64,ef=1", WHOLE, 64, 0},
    {"int8:bucket=64,result=requantised", WHOLE, 64, 0},
    {"int16:bucket=64", WHOLE, 64, 0},
    {"uniform-thc:bucket=64,ef=1", WHOLE, 64, 0},
    {"hadamard:block=64+uniform-thc:bucket=64", WHOLE, 64, 0},
    {"hadamard:block=64,ef=1+int8:bucket=64", WHOLE, 64, 0},
    {"hadamard:block=64+efsign:bucket=64", WHOLE, 64, 0},
    {"hadamard:block=64+qsgd:bucket=64", WHOLE, 64, 0},
    {"hadamard:block=64+f16", WHOLE, 64, 0},
    {"hadamard:block=64+f8:bucket=64", WHOLE, 64, 0},
    {"thc:block=64", WHOLE, 64, 0},
    {"powersgd:rank=2,columns=24", SOMEWHERE, A_CHUNK, 0},
    {"powersgd:rank=2,columns=24,ef=0", SOMEWHERE, A_CHUNK, 0},
    {"gradiveq:slice=64,kept=8,train=2,coded=1000", WHOLE, 64, 2},
    {"gradiveq:slice=64,kept=8,train=1000", AS_IT_IS, 1, 1},
    {"gradiveq:slice=64,kept=8,train=2,coded=1000+int8:bucket=8", WHOLE, 64, 2},
    {"gradiveq:slice=64,kept=8,train=2,coded=1000+int8:bucket=32", WHOLE, 256, 2},
    {"lgc:ratio=0.125,dense=1,train=1000", SOMEWHERE, A_CHUNK, 1},
    {"lgc:ratio=0.125,dense=0,train=1", SOMEWHERE, A_CHUNK, 2},
    {"lgc:ratio=0.125,dense=0,train=1,ef=0", SOMEWHERE, A_CHUNK, 2},
    {"lgc:ratio=0.125,dense=1000", AS_IT_IS, 1, 0},
    {"lgc-ps:ratio=0.125,dense=1,train=1000,innovation=0.01", SOMEWHERE, A_CHUNK, 1},
    {"lgc-ps:ratio=0.125,dense=0,train=1,innovation=0.01", SOMEWHERE, A_CHUNK, 2},
};
enum { ROWS = sizeof rows / sizeof *rows };

struct scene {
    const struct row *row;
    const char *algorithm; /* NULL: a tribd sums */
    trib_op_t op;
};

struct job {
    struct ranks_self *self;
    const struct scene *scene;
    trib_plan_t *plan;
    uint32_t step;
    float x[COUNT], y[COUNT];
};

static const char *way(const struct job *j)
{
    return j->scene->algorithm ? j->scene->algorithm : "tribd";
}

static float number(uint32_t a, uint32_t b)
{
    uint32_t h = a * 0x9e3779b9u ^ (b + 0x7f4a7c15u) * 0x85ebca6bu;

    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 13) * 0x297a2d39u;
    return (float)(int32_t)h * 0x1p-31f;
}

/* Run one start; element `at` of one rank is `bad`, unless `bad` is 0; EVERYWHERE: all
 * elements. */
static void start(struct job *j, int rank, size_t at, float bad)
{
    float theirs[COUNT];

    j->step++;
    for (size_t i = 0; i < COUNT; i++)
        j->x[i] = number(j->step + 1000u * (uint32_t)j->self->rank, (uint32_t)i);
    if (bad != 0 && rank == j->self->rank)
        for (size_t i = 0; i < COUNT; i++)
            j->x[i] = i == at || at == EVERYWHERE ? bad : j->x[i];
    ranks_step(j->self, j->plan);
    memcpy(theirs, j->y, sizeof(theirs));
    ranks_ok(j->self, trib_broadcast(j->self->comm, theirs, COUNT, TRIB_F32, 0));
    for (size_t i = 0; i < COUNT; i++)
        if (!(isnan(theirs[i]) ? isnan(j->y[i]) : theirs[i] == j->y[i]))
            ranks_die(j->self, "%s, %s: ranks 0 and %d differ at %zu: %g, %g",
                      j->scene->row->codec, way(j), j->self->rank, i,
                      (double)theirs[i], (double)j->y[i]);
}

static size_t not_finite(const float *y, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += !isfinite(y[i]);
    return count;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool same_kind(float got, float bad)
{
    return isnan(bad) ? isnan(got) : got == bad;
}

/* Return the number of elements in a chunk. */
static size_t piece_of(const struct job *j)
{
    return j->plan->ops->computing(j->plan)->run.desc.piece;
}

static bool as_claimed(const struct job *j, size_t at, float bad)
{
    const struct row *r = j->scene->row;
    const size_t piece = piece_of(j), chunk = at / piece * piece;
    const size_t span = r->span == A_CHUNK || r->span > piece ? piece : r->span;
    const size_t first = chunk + (at - chunk) / span * span;
    const size_t end = smaller(first + span, smaller(chunk + piece, COUNT));
    const size_t all = not_finite(j->y, COUNT),
                 here = not_finite(j->y + first, end - first);

    switch (r->claim) {
    case AS_IT_IS:
        return all == 1 && same_kind(j->y[at], bad);
    case WHOLE:
        return all == end - first && here == all;
    case SOMEWHERE:
        return all >= 1 && here == all;
    case DRAWN:
        return all == 0 || (all == 1 && same_kind(j->y[at], bad));
    case VOTE:
        break;
    }
    return all == 0;
}

/* Check that the next starts are not affected. */
static void clean(struct job *j)
{
    for (int i = 0; i < 2; i++) {
        start(j, 0, 0, 0);
        if (not_finite(j->y, COUNT))
            ranks_die(j->self,
                      "%s, %s: in start %d behind a bad one %zu are not finite",
                      j->scene->row->codec, way(j), i + 1, not_finite(j->y, COUNT));
    }
}

static void one(struct job *j, int rank, size_t at, float bad)
{
    const bool drawn = j->scene->row->claim == DRAWN;

    start(j, rank, at, bad);
    bool seen = not_finite(j->y, COUNT);
    if (!as_claimed(j, at, bad))
        ranks_die(j->self,
                  "%s, %s: %g at %zu of rank %d: %zu are not finite, there is %g",
                  j->scene->row->codec, way(j), (double)bad, at, rank,
                  not_finite(j->y, COUNT), (double)j->y[at]);
    for (int i = 0; drawn && !seen && i < 2000; i++) {
        start(j, 0, 0, 0);
        seen = not_finite(j->y, COUNT);
        ranks_assert(j->self, as_claimed(j, at, bad));
    }
    ranks_assert(j->self, !drawn || seen);
    clean(j);
}

/* The whole gradient is bad: every chunk shows it, in one start. */
static void all(struct job *j, int rank, float bad)
{
    const size_t piece = piece_of(j);

    start(j, rank, EVERYWHERE, bad);
    for (size_t i = 0; i < COUNT && j->scene->row->claim != VOTE; i += piece)
        if (!not_finite(j->y + i, smaller(piece, COUNT - i)))
            ranks_die(j->self,
                      "%s, %s: all of rank %d is %g, and the chunk at %zu is finite",
                      j->scene->row->codec, way(j), rank, (double)bad, i);
    clean(j);
}

static int run_scene(struct ranks_self *self)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    struct job *j = calloc(1, sizeof(*j));
    trib_desc_t d = TRIB_DESC_INIT;

    ranks_assert(self, j != NULL);
    *j = (struct job){.self = self, .scene = self->arg};
    d.send = j->x;
    d.recv = j->y;
    d.count = COUNT;
    d.op = j->scene->op;
    d.codec = j->scene->row->codec;
    d.algorithm = j->scene->algorithm;
    d.chunk = CHUNK;
    ranks_ok(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, &d, &j->plan));
    ranks_assert(self, j->scene->algorithm || j->plan->offload ||
                           strcmp(j->scene->row->codec, "none") == 0);
    for (uint32_t i = 0; i < j->scene->row->warm; i++)
        start(j, 0, 0, 0);
    for (int rank = 0; rank < self->size; rank++)
        for (int b = 0; b < 3; b++)
            one(j, rank, (size_t)(j->step * 997 + 5) % COUNT, bad[b]);
    for (int rank = 0; rank < self->size; rank++)
        all(j, rank, bad[rank % 3]);
    ranks_ok(self, trib_plan_free(j->plan));
    free(j);
    return 0;
}

static int failures;

static void run(const struct row *r, const char *algorithm, const char *config)
{
    struct scene s = {r, algorithm, (r - rows) % 2 ? TRIB_MEAN : TRIB_SUM};
    struct ranks_job job = {
        .size = RANKS, .fn = run_scene, .arg = &s, .config = config, .seconds = 60};

    failures += ranks_run(&job) != 0;
}

static bool has_claim(const char *name)
{
    const size_t length = strlen(name);
    for (int r = 0; r < ROWS; r++)
        if (strncmp(rows[r].codec, name, length) == 0 &&
            strcspn(rows[r].codec, ":+") == length)
            return true;
    return false;
}

/* A codec without a specific claim affects no other chunk. Each algorithm takes every
 * other row. */
TEST(test_codecs)
{
    for (size_t a = 0; a < algorithms_count(true); a++) {
        for (size_t r = a % 2; r < ROWS; r += 2)
            run(&rows[r], algorithm_of(a, true), NULL);
        for (size_t i = 0; i < trib_codecs_count; i++) {
            const struct row row = {trib_codecs[i].name, SOMEWHERE, A_CHUNK, 0};
            if (!has_claim(row.codec))
                run(&row, algorithm_of(a, true), NULL);
        }
    }
    assert_int_equal(failures, 0);
}

TEST(test_tribd)
{
    struct daemon_process d = {.threads = 1};
    char config[80];

    daemon_need(&d);
    snprintf(config, sizeof(config), "service=127.0.0.1:%d", d.port);
    for (int r = 0; r < ROWS; r++)
        run(&rows[r], NULL, config);
    if (failures)
        daemon_show(&d);
    daemon_end(&d);
    assert_int_equal(failures, 0);
}
