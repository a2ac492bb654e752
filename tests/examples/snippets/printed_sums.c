/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums, groups, messages, neighbours and pairs as the headers and docs/program.md print
 * them. With the number of one of these parts rank 1 dies before it, and the others
 * end.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <tributary.h>
#include <tributary/neighbors.h>
#include <tributary/send.h>
#include <tributary/sparse.h>

enum { N = 2048, TENSORS = 3 };

static trib_comm_t *comm;
static int dies_at = -1, part;
static float x[N], y[N], gradient[N];

static void begin_part(void)
{
    if (++part == dies_at && trib_rank(comm) == 1)
        raise(SIGKILL);
}

static void end_part(const char *what, double result)
{
    if (trib_progress(comm) < 0) {
        printf("ended: %s\n", trib_last_error(comm));
        exit(3);
    }
    printf("%s %g\n", what, result);
}

static void sum(void)
{
    for (int i = 0; i < 64; i++)
        x[i] = 1;
    /* snippet docs/program.md: trib_init(NULL, &comm); */
    printf("sum %g\n", (double)x[63]);
}

static void plan(void)
{
    const size_t n = N, first = 0, count = N;
    trib_plan_t *plan;

    begin_part();
    /* snippet docs/program.md: trib_desc_t desc = TRIB_DESC_INIT; */
    trib_plan_free(plan);
    end_part("plan", 1);
}

static void group(void)
{
    const size_t n = TENSORS;
    trib_tensor_t tensors[TENSORS];
    trib_group_opts_t opts = TRIB_GROUP_OPTS_INIT;
    trib_group_t *group;
    size_t i;

    begin_part();
    opts.feed = TRIB_FEED_BACKWARD;
    for (i = 0; i < n; i++) {
        tensors[i] = (trib_tensor_t)TRIB_TENSOR_INIT;
        tensors[i].name = i == 0 ? "a" : i == 1 ? "b" : "c";
        tensors[i].recv = x + 100 * i;
        tensors[i].count = 100;
    }
    for (i = 0; i < 300; i++)
        x[i] = 1;
    /* snippet include/tributary/group.h: trib_group_create(comm, tensors */
    trib_group_free(group);
    end_part("group", (double)x[299]);
}

static void message(void)
{
    const int rank = trib_rank(comm), tag = 1;
    const size_t n = N;

    begin_part();
    y[0] = -1;
    /* snippet include/tributary/send.h: if (rank == 0) */
    end_part("message", rank == 1 ? (double)y[0] : 1);
}

static void neighbors(void)
{
    const int other = 1 - trib_rank(comm);
    const double half = 0.5;
    double weight = 1;
    trib_neighbors_desc_t desc = TRIB_NEIGHBORS_DESC_INIT;
    trib_neighbors_t graph = TRIB_NEIGHBORS_INIT;
    trib_plan_t *plan;

    begin_part();
    desc.count = N;
    graph.to = graph.from = &other;
    graph.n_to = graph.n_from = trib_rank(comm) < 2;
    graph.shares = &half;
    /* snippet include/tributary/neighbors.h: trib_plan_neighbors( */
    trib_plan_free(plan);
    end_part("neighbours", weight);
}

static void pairs(void)
{
    const uint64_t indices[2] = {3, (uint64_t)(100 + trib_rank(comm))};
    const float values[2] = {1, 1};
    const size_t count = 2;
    uint64_t union_indices[8];
    float union_values[8] = {0};
    size_t n = 0;
    trib_sparse_desc_t desc = TRIB_SPARSE_DESC_INIT;
    trib_plan_t *plan;

    begin_part();
    desc.length = N;
    desc.most = 2;
    /* snippet include/tributary/sparse.h: trib_plan_sparse(comm, &desc, &plan); */
    trib_plan_free(plan);
    end_part("pairs", (double)union_values[0]);
}

int main(int argc, char **argv)
{
    dies_at = argc > 1 ? atoi(argv[1]) : -1;
    sum();
    /* No rank dies while another is still in trib_init. */
    if (trib_init(NULL, &comm) != TRIB_OK || trib_barrier(comm) != TRIB_OK)
        return 1;
    plan();
    group();
    message();
    neighbors();
    pairs();
    return trib_free_comm(comm) != TRIB_OK;
}
