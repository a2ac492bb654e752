/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codecs whose results are encoded again: an aggregator keeps nothing between two
 * operations, the inputs are in the results or in the state of the ranks, and all ranks
 * have the same bits.
 */
#include "pipeline/payload/error_feedback.h"

#include <math.h>

#include "tests/agg/client/aggregators.h"
#include "tests/comm/oracle.h"

enum { STEPS = 5, MOST = 40000 };

struct scene {
    const char *codec, *feedback;
    trib_dtype_t dtype;
    trib_op_t op;
    size_t count, chunk;
};

static const struct scene scenes[] = {
    {"efsign", NULL, TRIB_F32, TRIB_SUM, 5000, 4096},
    {"efsign", NULL, TRIB_F32, TRIB_MEAN, 5000, 1024},
    {"onebit", NULL, TRIB_F32, TRIB_MEAN, 30, 0},
    {"qsgd:bits=4,ef=1", NULL, TRIB_F32, TRIB_MEAN, MOST, 0},
    {"qsgd:bits=4,ef=1", NULL, TRIB_F16, TRIB_MEAN, 7001, 2048},
    {"natural", "ef14:momentum=0.9,masking=0", TRIB_F32, TRIB_SUM, 3000, 4096},
    {"hadamard+efsign", NULL, TRIB_F32, TRIB_MEAN, 6000, 4096},
    {"f8:ef=1", NULL, TRIB_BF16, TRIB_MEAN, 6000, 4096},
    {"f16", "ef14", TRIB_F32, TRIB_MEAN, 6000, 4096},
    {"topk:ratio=0.1", NULL, TRIB_F32, TRIB_MEAN, 6000, 4096},
    {"topk:ratio=0.1,result=requantised+qsgd:bits=3,bucket=64", NULL, TRIB_F32,
     TRIB_MEAN, 6000, 4096},
    {"topk:k=300,result=selected", NULL, TRIB_F32, TRIB_SUM, 6000, 4096},
    {"int8", "ef14", TRIB_F32, TRIB_MEAN, 6000, 4096},
    {"efsign", NULL, TRIB_F32, TRIB_MEAN, 1, 0},
    {"efsign", NULL, TRIB_F32, TRIB_MEAN, 0, 0},
    {"efsign", "none", TRIB_F32, TRIB_MEAN, 5000, 4096},
};
enum { SCENES = sizeof(scenes) / sizeof(scenes[0]) };

static void serve(struct ranks_self *self, struct trib_comm *agg_comm)
{
    const struct aggregators *s = self->arg;
    bool more = true;

    while (more || agg_comm->engine.head) {
        more = more && aggregators_listen(self, s, agg_comm);
        if (!trib_agg_comm_step(agg_comm))
            sched_yield();
        for (uint32_t i = 0; i < TRIB_AGG_COMM_PLANS; i++)
            ranks_assert(
                self, !trib_agg_comm_of(agg_comm)->plans[i] ||
                          !trib_feedback_of(&trib_agg_comm_of(agg_comm)->plans[i]->run)
                               ->residual);
    }
}

static void sum_up(struct ranks_self *self, trib_comm_t *comm, double *x, size_t count)
{
    trib_plan_t *plan =
        ranks_plan_on(self, comm, TRIB_ALLREDUCE, .recv = x, .count = count,
                      .dtype = TRIB_F64, .codec = "none");
    ranks_step(self, plan);
    ranks_ok(self, trib_plan_free(plan));
}

static void same_bits(struct ranks_self *self, trib_comm_t *agg_comm, const void *x,
                      size_t bytes)
{
    const double mine = (double)(oracle_hash(x, bytes) & 0xffffffff);
    double sum = mine;

    sum_up(self, agg_comm, &sum, 1);
    if (sum < mine * trib_size(agg_comm) || sum > mine * trib_size(agg_comm))
        ranks_die(self, "ranks have other bits");
}

static void use(struct ranks_self *self, trib_comm_t *agg_comm, const struct scene *s)
{
    static double came[MOST], went[MOST], momentum[MOST], most[MOST];
    const size_t size = trib_dtype_size(s->dtype);
    const int ranks = trib_size(agg_comm);
    const double beta = s->feedback && strstr(s->feedback, "momentum") ? 0.9 : 0;
    trib_plan_t *plan;
    uint8_t *x = calloc(s->count + 1, size);
    trib_desc_t d =
        sized(trib_desc_t, .recv = x, .count = s->count, .dtype = s->dtype, .op = s->op,
              .codec = s->codec, .feedback = s->feedback, .chunk = s->chunk);

    for (size_t i = 0; i < s->count; i++)
        came[i] = went[i] = momentum[i] = most[i] = 0;
    if (trib_plan_allreduce(agg_comm, &d, &plan) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(agg_comm));
    for (uint64_t step = 0; step < STEPS; step++) {
        const struct oracle o = {.kind = ORACLE_REALS,
                                 .seed = step,
                                 .dtype = s->dtype,
                                 .op = s->op,
                                 .size = ranks};
        oracle_fill(&o, self->rank, 0, s->count, x);
        for (size_t i = 0; i < s->count; i++) {
            momentum[i] = beta * momentum[i] + perf_number_load(s->dtype, x, i).f;
            came[i] += momentum[i];
        }
        ranks_step(self, plan);
        same_bits(self, agg_comm, x, s->count * size);
        for (size_t i = 0; i < s->count; i++) {
            const double got = perf_number_load(s->dtype, x, i).f;
            went[i] += self->rank ? 0 : got * (s->op == TRIB_MEAN ? ranks : 1);
            most[i] += fabs(got) * ranks + 1;
        }
    }
    for (size_t i = 0; trib_feedback_of(&plan->run)->residual && i < s->count; i++)
        went[i] += (double)trib_feedback_of(&plan->run)->residual[i];
    sum_up(self, agg_comm, came, s->count);
    sum_up(self, agg_comm, went, s->count);
    for (size_t i = 0; trib_feedback_of(&plan->run)->residual && i < s->count; i++)
        if (!(fabs(came[i] - went[i]) <=
              most[i] * (1e-5 + perf_number_epsilon(s->dtype))))
            ranks_die(self, "%s %s of %zu %s by %s: of %.6f at %zu there is %.6f",
                      trib_op_name(s->op), s->feedback ? s->feedback : "codec",
                      s->count, trib_dtype_name(s->dtype), s->codec, came[i], i,
                      went[i]);
    ranks_ok(self, trib_plan_free(plan));
    free(x);
}

static int sums(struct ranks_self *self)
{
    struct aggregators *s = self->arg;
    struct trib_comm *agg_comm = aggregators_join(self, s, self->comm);

    if (self->rank >= s->ranks) {
        serve(self, agg_comm);
        trib_agg_comm_dispose(agg_comm);
        return 0;
    }
    for (size_t k = 0; k < SCENES; k++)
        use(self, agg_comm, &scenes[k]);
    aggregators_leave(self, s, agg_comm);
    return 0;
}

static void run(const char *config, int ranks, int n, const struct trib_agg_tree *tree)
{
    struct aggregators s = {.ranks = ranks, .n = n, .tree = tree};

    aggregators_run(&s, (struct ranks_job){.fn = sums, .arg = &s, .config = config});
}

TEST_ON(test_star, "shm", "tcp", "shm+nomap;encode_threads=2")
{
    run(*state, 1, 1, NULL);
    run(*state, 2, 1, NULL);
    run(*state, 5, 1, NULL);
    run(*state, 4, 2, NULL);
}

TEST_ON(test_tree, "shm", "tcp")
{
    static const int parent[] = {0, 0, 0}, first[] = {0, 1, 2, 3},
                     aggregators[] = {0, 1, 2}, leaf_of[] = {1, 2, 1, 2, 0},
                     deep[] = {0, 0, 1}, below[] = {2, 2, 1};
    static const struct trib_agg_tree tree = {3, parent, first, aggregators, leaf_of};
    static const struct trib_agg_tree chain = {3, deep, first, aggregators, below};

    run(*state, 4, 3, &tree);
    run(*state, 5, 3, &tree);
    run(*state, 3, 3, &chain);
}

TEST_ON(test_racks, "shm", "tcp;window=1")
{
    run(*state, 3, 3, aggregators_of_racks());
}
