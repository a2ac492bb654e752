/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps with neighbours compared with a plain simulation of all ranks: random graphs
 * and shares, which change at each step; sums are preserved; push-sum finds the mean;
 * graphs that do not match.
 */
#include <math.h>

#include "build-config.h"
#include "tests/comm/neighbor_graphs.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { STEPS = 12 };

/* Simulate one step of one element, or of the weight, on all ranks, with the rounding
 * of the library. */
static void simulate(const struct scene *s, int size, int step, bool is_float,
                     double *x)
{
    double parts[RANKS_MAX][RANKS_MAX], next[RANKS_MAX];

    for (int r = 0; r < size; r++) {
        next[r] = x[r];
        for (int p = 0; p < size; p++) {
            const double share = scene_share(s, size, step, r, p);
            parts[r][p] =
                is_float ? (double)((float)share * (float)x[r]) : share * x[r];
            next[r] = is_float ? (double)((float)next[r] - (float)parts[r][p])
                               : next[r] - parts[r][p];
        }
    }
    for (int r = 0; r < size; r++) {
        x[r] = next[r];
        for (int p = 0; p < size; p++)
            x[r] = is_float ? (double)((float)x[r] + (float)parts[p][r])
                            : x[r] + parts[p][r];
    }
}

static void check_element(struct ranks_self *self, const struct scene *s, size_t i,
                          int steps, double got, bool is_weight)
{
    double x[RANKS_MAX];

    for (int r = 0; r < self->size; r++)
        x[r] = is_weight ? 1 : scene_input(s, r, i);
    const bool is_float = !is_weight && s->dtype == TRIB_F32;
    for (int r = 0; r < self->size && is_float; r++)
        x[r] = (double)(float)x[r];
    for (int step = 0; step < steps; step++)
        simulate(s, self->size, step, is_float, x);
    const double slack = is_float ? 0 : 1e-13; /* a compiler may fuse f64 */
    if (fabs(got - x[self->rank]) > slack)
        ranks_die(self, "%s %zu after %d steps: %.17g, not %.17g",
                  is_weight ? "weight" : "element", i, steps, got, x[self->rank]);
}

static int steps(struct ranks_self *self)
{
    const struct scene *s = self->arg;
    void *x = calloc(s->count + 1, 8);
    struct graph graph;
    double weight = 1;
    trib_plan_t *plan;
    trib_neighbors_desc_t d =
        sized(trib_neighbors_desc_t, .count = s->count, .dtype = s->dtype);

    for (size_t i = 0; i < s->count; i++)
        scene_store(s, x, i, scene_input(s, self->rank, i));
    ranks_ok(self, trib_plan_neighbors(self->comm, &d, &plan));
    for (int step = 0; step < STEPS; step++) {
        scene_graph(s, self->size, self->rank, step, &graph);
        const trib_status_t st = trib_plan_start_neighbors(plan, &graph.g, x, &weight);
        if (st != TRIB_OK || trib_plan_wait(plan) != TRIB_OK)
            ranks_die(self, "step %d: %s", step, trib_last_error(self->comm));
        if (step % 5 == self->rank % 5) /* some ranks are late */
            usleep(500);
    }
    check_element(self, s, 0, STEPS, weight, true);
    for (size_t i = 0; i < s->count; i += 1 + s->count / 50)
        check_element(self, s, i, STEPS, scene_load(s, x, i), false);
    double all;
    ranks_ok(self, trib_allreduce(self->comm, &weight, &all, 1, TRIB_F64, TRIB_SUM));
    ranks_assert(self, fabs(all - self->size) < 1e-12);
    ranks_ok(self, trib_plan_free(plan));
    trib_stats_t stats = {.size = sizeof(stats)};
    ranks_ok(self, trib_stats(self->comm, &stats));
    ranks_assert(self, stats.shared_bytes == stats.slot_bytes); /* no part is left */
    free(x);
    return 0;
}

TEST_ON(test_steps, "shm", "shm+nomap", "tcp", IF_UCX("ucx"))
{
    static const size_t counts[] = {0, 1, 7, 1021, 1024, 1025, 100003};

    for (int k = 0; k < 14; k++) {
        const struct scene s = {.count = counts[k % 7],
                                .dtype = k % 2 ? TRIB_F64 : TRIB_F32,
                                .seed = (uint64_t)k + 9};
        ranks_pass(.size = 1 + k % 5, .fn = steps, .arg = (void *)(uintptr_t)&s,
                   .config = *state);
    }
}

/* The graph of SGP: one peer at distance 1, 2, 4, …; after log2(ranks) steps each rank
 * has the mean. */
static int exponential(struct ranks_self *self)
{
    enum { N = 5003 };
    const struct scene s = {.count = N, .dtype = TRIB_F64, .seed = 1};
    static double x[N];
    double weight = 1;
    trib_plan_t *plan;
    trib_neighbors_desc_t d =
        sized(trib_neighbors_desc_t, .count = N, .dtype = TRIB_F64);

    for (size_t i = 0; i < N; i++)
        x[i] = scene_input(&s, self->rank, i);
    ranks_ok(self, trib_plan_neighbors(self->comm, &d, &plan));
    for (int hop = 1; hop < self->size; hop *= 2) {
        const int to = (self->rank + hop) % self->size;
        const int from = (self->rank + self->size - hop) % self->size;
        const double half = 0.5;
        const trib_neighbors_t g = {sizeof(g), &to, &half, 1, &from, 1};
        ranks_ok(self, trib_plan_start_neighbors(plan, &g, x, &weight));
        while (trib_plan_test(plan) == TRIB_INPROGRESS)
            ;
        ranks_ok(self, trib_plan_wait(plan));
    }
    ranks_assert(self, weight == 1);
    for (size_t i = 0; i < N; i++) {
        double mean = 0;
        for (int r = 0; r < self->size; r++)
            mean += scene_input(&s, r, i) / self->size;
        ranks_assert(self, fabs(x[i] - mean) < 1e-15);
    }
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST_ON(test_exponential, "shm", "tcp")
{
    ranks_pass(.size = 4, .fn = exponential, .config = *state);
    ranks_pass(.size = 8, .fn = exponential, .config = *state);
}

enum wrong { NOT_EXPECTED, NOT_SENT, LATER, LENGTH, WRONGS };

/* Rank 0 and rank 1 disagree on an edge in step 3. */
static int misfit(struct ranks_self *self)
{
    const enum wrong wrong = *(const enum wrong *)self->arg;
    static const char *const texts[WRONGS] = {
        "rank 0 has rank 1 in `to`, and rank 1 does not have rank 0 in `from`",
        "rank 1 has rank 0 in `from`, and rank 0 does not have rank 1 in `to`",
        "rank 1 has rank 0 in `from`, and rank 0 does not have rank 1 in `to`",
        "rank 0 sends 2000 f32, rank 1 receives 1999 f32"};
    trib_neighbors_desc_t d = TRIB_NEIGHBORS_DESC_INIT;
    const int other = 1 - self->rank;
    const double half = 0.5;
    static float x[2000];
    trib_status_t st = TRIB_OK;
    trib_plan_t *plan;

    d.count = wrong == LENGTH && self->rank == 1 ? 1999 : 2000;
    ranks_ok(self, trib_plan_neighbors(self->comm, &d, &plan));
    for (int step = 1; st == TRIB_OK && step < 1000; step++) {
        trib_neighbors_t g = TRIB_NEIGHBORS_INIT;
        g.to = g.from = &other;
        g.shares = &half;
        g.n_to = self->rank == 0;
        g.n_from = self->rank == 1;
        if (step == 3 && wrong == NOT_EXPECTED)
            g.n_from = 0;
        if (step >= 3 && (wrong == NOT_SENT || (wrong == LATER && step == 3)))
            g.n_to = 0;
        st = trib_plan_start_neighbors(plan, &g, x, NULL);
        if (st == TRIB_OK)
            st = trib_plan_wait(plan);
    }
    while (st == TRIB_OK) /* a rank without neighbours finishes early */
        st = trib_barrier(self->comm);
    ranks_expect(self, st, TRIB_ERR_MISMATCH, texts[wrong]);
    if (!ranks_has(trib_last_error(self->comm), WORDS(texts[wrong])))
        ranks_die(self, "%s", trib_last_error(self->comm));
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST_ON(test_misfit, "shm", "tcp", IF_UCX("ucx"))
{
    for (enum wrong wrong = 0; wrong < WRONGS; wrong++)
        ranks_pass(.size = 2, .fn = misfit, .arg = &wrong, .config = *state,
                   .noisy = true);
}

static void refused_graphs(struct ranks_self *self, trib_plan_t *plan)
{
    const int one = 1, two[2] = {1, 1}, four = 4, three = 3, zero = 0;
    const double half[2] = {0.5, 0.5}, none = 0, much[2] = {0.5, 0.6};
    trib_neighbors_t g = {sizeof(g), &one, &none, 1, NULL, 0};
    float x[3] = {0};

    ranks_refused(self, trib_plan_start_neighbors(plan, &g, x, NULL), TRIB_ERR_INVALID,
                  WORDS("share of rank 1 is 0", "above 0"));
    g = (trib_neighbors_t){sizeof(g), two, much, 2, NULL, 0};
    ranks_refused(self, trib_plan_start_neighbors(plan, &g, x, NULL), TRIB_ERR_INVALID,
                  WORDS("1.1", "at most 1"));
    g.shares = half;
    ranks_refused(self, trib_plan_start_neighbors(plan, &g, x, NULL), TRIB_ERR_INVALID,
                  WORDS("rank 1 occurs twice in `to`"));
    g = (trib_neighbors_t){sizeof(g), NULL, NULL, 0, &four, 1};
    ranks_refused(self, trib_plan_start_neighbors(plan, &g, x, NULL), TRIB_ERR_INVALID,
                  WORDS("rank 4 in `from`", "0 to 3"));
    g.from = &zero;
    ranks_refused(self, trib_plan_start_neighbors(plan, &g, x, NULL), TRIB_ERR_INVALID,
                  WORDS("in its own `from`", "keeps"));
    g.from = &three;
    ranks_refused(self, trib_plan_start_neighbors(plan, &g, x, NULL), TRIB_ERR_INVALID,
                  WORDS("rank 3 in `from`", "peers"));
    g.from = NULL;
    ranks_refused(self, trib_plan_start_neighbors(plan, &g, x, NULL), TRIB_ERR_INVALID,
                  WORDS("NULL"));
    ranks_refused(self, trib_plan_start_neighbors(plan, NULL, x, NULL),
                  TRIB_ERR_INVALID, WORDS("graph is NULL"));
    g.n_from = 0;
    ranks_refused(self, trib_plan_start_neighbors(plan, &g, NULL, NULL),
                  TRIB_ERR_INVALID, WORDS("x is NULL"));
    ranks_refused(self, trib_plan_start(plan), TRIB_ERR_INVALID,
                  WORDS("trib_plan_start_neighbors"));
}

static int refusals(struct ranks_self *self)
{
    const int peers[2] = {1, 2}, none = 9;
    trib_plan_t *plan;
    char text[400];
    size_t n;
    trib_neighbors_desc_t d =
        sized(trib_neighbors_desc_t, .count = 3, .dtype = TRIB_BF16);

    ranks_refused(self, trib_plan_neighbors(self->comm, &d, &plan),
                  TRIB_ERR_UNSUPPORTED, WORDS("f32 and f64", "bf16"));
    d.dtype = TRIB_F32;
    d.peers = &none;
    d.n_peers = 1;
    ranks_refused(self, trib_plan_neighbors(self->comm, &d, &plan), TRIB_ERR_INVALID,
                  WORDS("rank 9 in `peers`"));
    ranks_refused(self, trib_plan_neighbors(self->comm, NULL, &plan), TRIB_ERR_INVALID,
                  WORDS("desc is NULL"));
    ranks_assert(self, trib_plan_neighbors(NULL, &d, &plan) == TRIB_ERR_INVALID);
    d.peers = NULL;
    ranks_refused(self, trib_plan_neighbors(self->comm, &d, &plan), TRIB_ERR_INVALID,
                  WORDS("n_peers is 1", "peers is NULL"));
    d.peers = peers;
    d.n_peers = 2;
    ranks_ok(self, trib_plan_neighbors(self->comm, &d, &plan));
    if (self->rank == 0)
        refused_graphs(self, plan);
    ranks_ok(self, trib_plan_explain(plan, text, sizeof(text)));
    ranks_assert(self, strstr(text, "neighbors of 3 f32") != NULL);
    ranks_refused(self, trib_plan_state_save(plan, NULL, 0, &n), TRIB_ERR_UNSUPPORTED,
                  WORDS("keeps no state"));
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_refusals)
{
    ranks_pass(.size = 4, .fn = refusals);
}
