/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-reduces of many rounds of tiny chunks, with ranks that pause at random: every
 * codec by every algorithm. All ranks must get the same bits in every step. The first
 * sum must be within the error of the codec (perf/coll/perf_oracle.h). The residuals
 * must equal the missing part of the sums of all steps.
 *
 *     test_rounds                     every codec by every algorithm once, with 64
 *                                     rounds
 *     test_rounds --long              with 16, 64 and 200 rounds, 2 to 5 ranks, each
 *                                     transport
 *     test_rounds --codec TEXT --algorithm NAME --transport NAME --ranks P --rounds N
 *                 --window W --seed N one or some of them, as a failure names it
 */
#include "pipeline/payload/error_feedback.h"

#include <math.h>
#include <sys/mman.h>

#include "collectives/builder.h"
#include "collectives/collectives.h"
#include "compress/codec.h"
#include "perf/coll/perf_oracle.h"
#include "tests/agg/client/aggregators.h"
#include "tests/comm/oracle.h"

enum {
    RANKS_MOST = 5,
    STEPS = 4,
    CODECS_MOST = 64,
    ELEMENTS_MOST = 1 << 18, /* of a vector: it has fewer rounds if this is exceeded */
};

struct row {
    const char *text;
    size_t chunk; /* bytes; 0: 512 */
    /* True if residuals do not contain all errors: sums are rounded again, or
     * estimated. */
    bool leaks;
    size_t most; /* elements without --long, because it is slow; 0: ELEMENTS_MOST */
};

/* These codecs need more than the first text of their row. */
static const struct row tuned[] = {
    {"none", 256, false, 0},
    {"f16", 0, false, 0},
    {"bf16:ef=1", 0, false, 0},
    {"f8:bucket=64,ef=1", 0, false, 0},
    {"topk:ratio=0.25", 0, false, 0},
    {"topk:ratio=0.1+natural", 0, false, 0},
    {"dgc:ratio=0.2", 0, false, 0},
    {"threshold:at=0.5", 0, false, 0},
    {"randomk:ratio=0.3", 0, false, 0},
    {"blocks:block=8,ratio=0.5", 0, false, 0},
    {"adacomp:bin=8", 0, false, 0},
    {"qsgd:bits=8,bucket=64", 0, false, 0},
    {"qsgd:bits=5,bucket=64,shared=1,ef=1", 0, false, 0},
    {"natural:bucket=64", 0, false, 0},
    {"dither:bits=4,bucket=64,ef=1", 0, false, 0},
    {"terngrad:bucket=64", 0, false, 0},
    {"terngrad:bucket=64,shared=1", 0, false, 0},
    {"onebit:bucket=64", 0, false, 0},
    {"efsign:bucket=64", 0, false, 0},
    {"signsgd", 128, false, 0},
    {"int4:bucket=64,ef=1", 0, false, 0},
    {"int8:bucket=64", 0, false, 0},
    {"int8:bucket=64,result=requantised", 0, true, 0},
    {"int16:bucket=64,ef=1", 0, false, 0},
    {"uniform-thc:bits=6,bucket=64,ef=1", 0, false, 0},
    {"hadamard:block=64,ef=1+int8:bucket=64", 0, false, 0},
    {"hadamard:block=64+f16", 0, false, 0},
    {"thc:block=64", 0, false, 0},
    {"exact", 0, false, 0},
    {"powersgd:rank=2", 128, false, 0},
    {"powersgd:rank=2,columns=32,ef=0", 512, true, 0},
    {"gradiveq:slice=16,kept=4,train=1,coded=9", 0, false, 0},
    {"gradiveq:slice=16,kept=8,train=1,coded=2+int8:bucket=64", 0, false, 0},
    {"lgc:ratio=0.5,dense=1,train=1", 1024, true, 1 << 14},
    {"lgc-ps:ratio=0.5,innovation=0.02,dense=1,train=1", 1024, true, 1 << 14},
};
enum { TUNED = sizeof(tuned) / sizeof(*tuned) };

/* Those, and the first text of each other row. */
static struct row rows[CODECS_MOST];
static size_t n_rows;

static const char *const transports[] = {"shm", "shm+nomap", "tcp"};
enum {
    ALGORITHMS_MOST = 32,
    TRANSPORTS = sizeof(transports) / sizeof(*transports),
};

static struct {
    bool whole;
    const char *codec, *algorithm, *transport;
    int ranks, rounds, window;
    uint64_t seed;
} args = {.seed = 1};

/* One communicator, whose ranks iterate over the codecs. */
struct job {
    struct aggregators aggregators; /* for algorithm service; others have none */
    const char *algorithm;
    const char *transport;
    int ranks, rounds, window;
    uint64_t *hashes; /* [n_rows][STEPS][RANKS_MOST], shared; 0: none */
};

struct rank {
    struct ranks_self *self;
    const struct job *job;
    trib_comm_t *comm; /* of the ranks, or agg_comm */
    uint64_t bits; /* random state of its pauses */
    bool slow;
};

static uint64_t *hash_at(const struct job *j, size_t row, int step, int rank)
{
    return &j->hashes[(row * STEPS + (size_t)step) * RANKS_MOST + (size_t)rank];
}

static void die(const struct rank *r, size_t row, const char *what)
{
    const struct job *j = r->job;

    ranks_die(r->self,
              "%s: --codec %s --algorithm %s --transport %s --ranks %d --rounds %d "
              "--window %d --seed %llu",
              what, rows[row].text, j->algorithm, j->transport, j->ranks, j->rounds,
              j->window, (unsigned long long)args.seed);
}

static void ok(const struct rank *r, size_t row, trib_status_t st)
{
    if (st != TRIB_OK)
        die(r, row, trib_last_error(r->comm));
}

/* A plan of a codec ---------------------------------------------------------------- */

struct work {
    size_t row;
    struct perf_oracle oracle;
    size_t count;
    uint32_t rounds; /* of its program */
    float *x;
    float *y;
    double *missing; /* over all steps: sums, minus results */
    trib_plan_t *plan;
};

static void make_plan(struct rank *r, struct work *w, size_t count)
{
    const struct row *row = &rows[w->row];
    trib_desc_t d = sized(trib_desc_t, .send = w->x, .recv = w->y, .count = count,
                          .codec = row->text, .chunk = row->chunk ? row->chunk : 512);

    if (!r->job->aggregators.n)
        d.algorithm = r->job->algorithm;
    ok(r, w->row, trib_plan_allreduce(r->comm, &d, &w->plan));
}

/* Return the number of elements for the requested rounds, the last of them shorter. */
static size_t count_of(struct rank *r, struct work *w)
{
    make_plan(r, w, ELEMENTS_MOST);
    const struct trib_run_desc *d = &w->plan->run.desc;
    const size_t round = d->piece * d->n_chunks, rounds = (size_t)r->job->rounds;
    const size_t most =
        rows[w->row].most && !args.whole ? rows[w->row].most : ELEMENTS_MOST;
    size_t count = rounds * round < most ? rounds * round : most;

    count -= round > 70 ? 37 : 0;
    ok(r, w->row, trib_plan_free(w->plan));
    return count;
}

static void open_work(struct rank *r, struct work *w, size_t row)
{
    *w = (struct work){.row = row};
    w->x = malloc(ELEMENTS_MOST * sizeof(*w->x));
    w->y = malloc(ELEMENTS_MOST * sizeof(*w->y));
    w->missing = calloc(ELEMENTS_MOST, sizeof(*w->missing));
    ranks_assert(r->self, w->x && w->y && w->missing);
    w->count = count_of(r, w);
    w->oracle = (struct perf_oracle){.coll = TRIB_ALLREDUCE,
                                     .dtype = TRIB_F32,
                                     .op = TRIB_SUM,
                                     .count = w->count,
                                     .rank = r->self->rank,
                                     .ranks = r->job->ranks,
                                     .loss = perf_loss_of(rows[row].text)};
    make_plan(r, w, w->count);
    w->rounds = w->plan->run.desc.rounds;
}

static void close_work(struct rank *r, struct work *w)
{
    ok(r, w->row, trib_plan_free(w->plan));
    free(w->x);
    free(w->y);
    free(w->missing);
}

/* One rank of a slow kind sleeps often, the others now and then. */
static void pause_at_random(struct rank *r)
{
    r->bits = oracle_mix(r->bits);
    if (r->bits % (r->slow ? 8 : 64) == 0)
        usleep((useconds_t)(r->bits >> 32) % 200);
    else
        sched_yield();
}

static void start_and_wait(struct rank *r, const struct work *w)
{
    trib_status_t st = trib_plan_start(w->plan);

    if (st == TRIB_OK)
        st = TRIB_INPROGRESS;
    while (st == TRIB_INPROGRESS) {
        st = trib_plan_test(w->plan);
        if (st == TRIB_INPROGRESS)
            pause_at_random(r);
    }
    ok(r, w->row, st);
}

/* Checks --------------------------------------------------------------------------- */

/* The error bound holds for the first step: later ones include residuals. */
static void check_sum(struct rank *r, const struct work *w)
{
    struct perf_verdict v;
    char text[160];

    perf_oracle_compare(&w->oracle, w->y, &v);
    if (v.wrong == 0)
        return;
    snprintf(text, sizeof(text),
             "%llu elements or ranks are wrong, of %zu elements (nmse %.3g)",
             (unsigned long long)v.wrong, w->count,
             v.error2 / fmax(v.reference2, 1e-30));
    die(r, w->row, text);
}

static void add_missing(struct work *w)
{
    struct perf_oracle o = w->oracle;
    float *theirs = malloc(w->count * sizeof(*theirs));

    for (int rank = 0; theirs && rank < o.ranks; rank++) {
        perf_oracle_fill(&o, rank, 0, w->count, theirs);
        for (size_t i = 0; i < w->count; i++)
            w->missing[i] += (double)theirs[i];
    }
    for (size_t i = 0; i < w->count; i++)
        w->missing[i] -= (double)w->y[i];
    free(theirs);
}

/* Return true if the residuals of ranks must contain all errors. An aggregator has its
 * own residuals if it encodes results again. */
static bool conserves(const struct rank *r, const struct work *w)
{
    const struct trib_codec *codec = w->plan->codec;
    uint32_t flags = codec ? trib_codec_info(codec)->flags : 0;
    bool merged = flags & (TRIB_CODEC_LINEAR | TRIB_CODEC_SPARSE);

    return codec && trib_feedback_of(&w->plan->run)->residual && !rows[w->row].leaks &&
           (merged || !r->job->aggregators.n);
}

static void check_missing(struct rank *r, struct work *w, bool mine)
{
    trib_desc_t d = TRIB_DESC_INIT;
    double *sum = calloc(w->count, sizeof(*sum));
    const double slack = 1e-4 * w->oracle.ranks * STEPS;
    trib_plan_t *plan;

    ranks_assert(r->self, sum != NULL);
    for (size_t i = 0; i < w->count; i++)
        sum[i] = (double)trib_feedback_of(&w->plan->run)->residual[i];
    d.recv = sum;
    d.count = w->count;
    d.dtype = TRIB_F64;
    d.codec = d.feedback = "none";
    ok(r, w->row, trib_plan_allreduce(r->comm, &d, &plan));
    ok(r, w->row, trib_plan_start(plan));
    ok(r, w->row, trib_plan_wait(plan));
    ok(r, w->row, trib_plan_free(plan));
    for (size_t i = 0; mine && i < w->count; i++) {
        char text[160];
        if (fabs(sum[i] - w->missing[i]) <= slack)
            continue;
        snprintf(text, sizeof(text),
                 "of element %zu %.9g is missing, the residuals have %.9g", i,
                 w->missing[i], sum[i]);
        die(r, w->row, text);
    }
    free(sum);
}

/* One rank checks the sums, which are equal on all ranks; ranks take turns. */
static void run_row(struct rank *r, size_t row)
{
    struct work w;
    bool mine = (int)(row % (size_t)r->job->ranks) == r->self->rank;

    open_work(r, &w, row);
    r->slow = (int)((row + 1) % (size_t)r->job->ranks) == r->self->rank;
    for (int step = 0; step < STEPS; step++) {
        w.oracle.seed = oracle_mix(args.seed * 1000 + row * 10 + (uint64_t)step);
        perf_oracle_fill(&w.oracle, r->self->rank, 0, w.count, w.x);
        start_and_wait(r, &w);
        *hash_at(r->job, row, step, r->self->rank) =
            oracle_hash(w.y, w.count * sizeof(*w.y));
        if (mine && step == 0)
            check_sum(r, &w);
        if (mine && conserves(r, &w))
            add_missing(&w);
    }
    if (conserves(r, &w))
        check_missing(r, &w, mine);
    close_work(r, &w);
}

/* Ranks and aggregators ------------------------------------------------------------ */

static void serve(struct ranks_self *self, struct job *j, struct trib_comm *agg_comm)
{
    struct rank r = {.self = self, .job = j, .bits = args.seed + (uint64_t)self->rank};
    bool more = true;

    while (more || agg_comm->engine.head) {
        more = more && aggregators_listen(self, &j->aggregators, agg_comm);
        if (!trib_agg_comm_step(agg_comm))
            pause_at_random(&r);
    }
    trib_agg_comm_dispose(agg_comm);
}

static bool wanted(size_t row)
{
    return !args.codec || strcmp(args.codec, rows[row].text) == 0;
}

static void walk(struct rank *r)
{
    for (size_t row = 0; row < n_rows; row++)
        if (wanted(row))
            run_row(r, row);
}

static int by_ranks(struct ranks_self *self)
{
    struct job *j = self->arg;
    struct rank r = {.self = self, .job = j, .comm = self->comm};

    r.bits = oracle_mix(args.seed + (uint64_t)self->rank);
    if (!j->aggregators.n) {
        walk(&r);
        return 0;
    }
    struct trib_comm *agg_comm = aggregators_join(self, &j->aggregators, self->comm);
    if (self->rank >= j->ranks) {
        serve(self, j, agg_comm);
        return 0;
    }
    r.comm = agg_comm;
    walk(&r);
    if (trib_free_comm(agg_comm) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(NULL));
    if (self->rank == 0)
        aggregators_tell(&j->aggregators, AGGREGATORS_GOODBYE, "-");
    return 0;
}

/* Jobs ----------------------------------------------------------------------------- */

static void check_bits(const struct job *j)
{
    for (size_t row = 0; row < n_rows; row++) {
        for (int step = 0; wanted(row) && step < STEPS; step++) {
            for (int rank = 0; rank < j->ranks; rank++) {
                const uint64_t mine = *hash_at(j, row, step, rank);
                if (mine && mine == *hash_at(j, row, step, 0))
                    continue;
                fail_msg(
                    "ranks 0 and %d have other bits after step %d: --codec %s "
                    "--algorithm %s --transport %s --ranks %d --rounds %d --window %d "
                    "--seed %llu",
                    rank, step + 1, rows[row].text, j->algorithm, j->transport,
                    j->ranks, j->rounds, j->window, (unsigned long long)args.seed);
            }
        }
    }
}

static bool can(const struct job *j)
{
    bool power = (j->ranks & (j->ranks - 1)) == 0;

    if (strcmp(j->algorithm, "halving-doubling") == 0)
        return power;
    return strcmp(j->algorithm, "hierarchical") != 0 || j->ranks > 2; /* it needs two
                                                                       * hosts */
}

/* Hierarchical has hosts of two ranks each, with tcp between them; also within them, if
 * requested. */
static void name_transport(const struct job *j, char *text, size_t bytes)
{
    if (strcmp(j->algorithm, "hierarchical") != 0)
        snprintf(text, bytes, "%s", j->transport);
    else
        snprintf(text, bytes, "auto:near=%s,far=tcp,ranks_per_host=2",
                 strcmp(j->transport, "shm") == 0 ? "shm" : "tcp");
}

static void run_job(struct job *j)
{
    size_t bytes = n_rows * STEPS * RANKS_MOST * sizeof(*j->hashes);
    char config[256], transport[64];

    if (!can(j))
        return;
    name_transport(j, transport, sizeof(transport));
    snprintf(config, sizeof(config),
             "transport=%s;chunk=4K;window=%d;progress=caller;timeout_ms=%u", transport,
             j->window, 60000 * tribtest_slowness());
    const struct ranks_job job = {.size = j->ranks + j->aggregators.n,
                                  .fn = by_ranks,
                                  .arg = j,
                                  .config = config,
                                  .seconds = args.whole ? 3600 : 300};
    j->hashes =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(j->hashes, MAP_FAILED);
    assert_true(aggregators_open(&j->aggregators));
    double begin = ranks_seconds();
    assert_int_equal(ranks_run(&job), 0);
    printf("# %s over %s, %d ranks, %d rounds, window %d: %.1f s\n", j->algorithm,
           j->transport, j->ranks, j->rounds, j->window, ranks_seconds() - begin);
    fflush(stdout);
    aggregators_close(&j->aggregators);
    check_bits(j);
    munmap(j->hashes, bytes);
}

/* A job has one aggregator, or two, each of which sums half of the chunks. */
static void run_one(const char *algorithm, int number, int ranks, int rounds)
{
    static const int windows[] = {2, 1, 3, 8};
    bool service = strcmp(algorithm, "service") == 0;
    struct job j = {.aggregators = {.ranks = ranks, .n = service ? 1 + ranks % 2 : 0},
                    .algorithm = algorithm,
                    .transport = transports[number % TRANSPORTS],
                    .ranks = args.ranks ? args.ranks : ranks,
                    .rounds = args.rounds ? args.rounds : rounds,
                    .window = args.window ? args.window : windows[number % 4]};

    j.aggregators.ranks = j.ranks;
    if (args.transport)
        j.transport = args.transport;
    if (!args.algorithm || strcmp(args.algorithm, algorithm) == 0)
        run_job(&j);
}

static void test_algorithm(void **state)
{
    const char *algorithm = *state;
    int at = 0;

    while (strcmp(trib_algos[at]->name, algorithm) != 0)
        at++;
    if (!args.whole) {
        run_one(algorithm, at, at % 2 ? 4 : 3, 32);
        return;
    }
    static const int rounds[] = {16, 64, 200};
    for (int k = 0; k < 3; k++)
        for (int ranks = 2; ranks <= RANKS_MOST; ranks++)
            for (int t = 0; t < TRANSPORTS; t++)
                run_one(algorithm, (k + ranks + at) % 4 * TRANSPORTS + t, ranks,
                        rounds[k]);
}

static bool is_tuned(const char *name)
{
    const size_t length = strlen(name);

    for (size_t row = 0; row < TUNED; row++)
        if (strncmp(tuned[row].text, name, length) == 0 &&
            strcspn(tuned[row].text, ":+") == length)
            return true;
    return false;
}

static void fill_rows(void)
{
    memcpy(rows, tuned, sizeof(tuned));
    n_rows = TUNED;
    for (size_t i = 0; i < trib_codecs_count; i++) {
        if (is_tuned(trib_codecs[i].name))
            continue;
        assert_true(n_rows < CODECS_MOST);
        rows[n_rows++] = (struct row){.text = trib_codecs[i].texts[0], .leaks = true};
    }
}

static int parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--long") == 0) {
            args.whole = true;
            continue;
        }
        if (strcmp(argv[i], "--codec") == 0)
            args.codec = next;
        else if (strcmp(argv[i], "--algorithm") == 0)
            args.algorithm = next;
        else if (strcmp(argv[i], "--transport") == 0)
            args.transport = next;
        else if (strcmp(argv[i], "--ranks") == 0)
            args.ranks = atoi(next);
        else if (strcmp(argv[i], "--rounds") == 0)
            args.rounds = atoi(next);
        else if (strcmp(argv[i], "--window") == 0)
            args.window = atoi(next);
        else if (strcmp(argv[i], "--seed") == 0)
            args.seed = strtoull(next, NULL, 10);
        else
            return 1;
        i++;
    }
    return args.ranks > RANKS_MOST;
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[ALGORITHMS_MOST];
    size_t n = 0;

    fill_rows();
    if (parse(argc, argv)) {
        fprintf(
            stderr,
            "usage: %s [--long] [--codec TEXT] [--algorithm NAME] [--transport NAME] "
            "[--ranks P] [--rounds N] [--window W] [--seed N]\n",
            argv[0]);
        return 2;
    }
    for (size_t i = 0; trib_algos[i]; i++) {
        const char *name = trib_algos[i]->name;
        if (!(trib_algos[i]->colls & TRIB_COLL_BIT(TRIB_ALLREDUCE)) ||
            trib_algos[i]->merges) /* only of pairs: test_plan_sparse */
            continue;
        assert_true(n < ALGORITHMS_MOST);
        tests[n] = (struct CMUnitTest)cmocka_unit_test_prestate(
            test_algorithm, (void *)(uintptr_t)name);
        tests[n++].name = name;
    }
    if (!args.whole)
        tribtest_deadline(600);
    return _cmocka_run_group_tests("rounds", tests, n, NULL, NULL);
}
