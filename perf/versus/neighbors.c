/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps of push-sum on three graphs: on a ring to one rank, to the ranks on both sides,
 * and on the exponential graph of SGP. There, step k sends to rank + 2^k.
 */
#include <stdlib.h>

#include "perf/versus/versus.h"

enum { NEXT, BOTH, EXPONENTIAL, WAYS };

struct state {
    trib_plan_t *plans[WAYS];
    void *vector;
    double weight;
    int hop; /* in the next step on the exponential graph */
};

static trib_status_t open_plans(struct versus *b)
{
    trib_neighbors_desc_t d = TRIB_NEIGHBORS_DESC_INIT;
    struct state *s = b->state = calloc(1, sizeof(*s));

    if (s == NULL)
        return TRIB_ERR_NO_MEMORY;
    s->weight = 1;
    s->hop = 1;
    trib_status_t status = versus_memory(b, b->bytes, &s->vector);
    d.count = b->bytes / sizeof(float);
    for (int way = 0; way < WAYS && status == TRIB_OK; way++)
        status = trib_plan_neighbors(b->comm, &d, &s->plans[way]);
    return status;
}

static trib_status_t run(struct versus *b, int way)
{
    struct state *s = b->state;
    const int rank = trib_rank(b->comm), ranks = trib_size(b->comm);
    const int hop = way == EXPONENTIAL ? s->hop : 1;
    const int there = (rank + hop) % ranks, back = (rank + ranks - hop % ranks) % ranks;
    const int both[] = {there, back}, others[] = {back, there};
    static const double shares[][2] = {{0.5}, {1.0 / 3, 1.0 / 3}};
    int n = way == BOTH && there != back ? 2 : 1;
    trib_neighbors_t graph = TRIB_NEIGHBORS_INIT;

    if (way == EXPONENTIAL)
        s->hop = 2 * hop < ranks ? 2 * hop : 1;
    if (there == rank)
        n = 0;
    graph.to = both;
    graph.from = others;
    graph.shares = shares[way == BOTH];
    graph.n_to = graph.n_from = (size_t)n;
    trib_status_t status =
        trib_plan_start_neighbors(s->plans[way], &graph, s->vector, &s->weight);
    return status == TRIB_OK ? trib_plan_wait(s->plans[way]) : status;
}

static void close_plans(struct versus *b)
{
    struct state *s = b->state;

    if (s == NULL)
        return;
    for (int way = 0; way < WAYS; way++)
        trib_plan_free(s->plans[way]);
    versus_memory_free(b, s->vector);
    free(s);
    b->state = NULL;
}

const struct versus_kind versus_neighbors = {
    .name = "neighbors",
    .command =
        {
            .name = "trib-perf neighbors",
            .usage =
                "usage: trib-perf neighbors [OPTION]…\n"
                "\n"
                "Compares steps of push-sum (trib_plan_neighbors) with an all-reduce "
                "of the same\n"
                "bytes. Each rank sends half of its vector to the next rank; a third "
                "to each\n"
                "neighbour; or half on the exponential graph of SGP, where step k "
                "sends to the\n"
                "rank 2^k further. A round runs each of these once, and the "
                "all-reduce twice.\n"
                "Times are of the slowest rank; ratio is the time over the time of "
                "the\n"
                "all-reduce in the same round.\n",
            .ending = "example: trib-perf neighbors -n 4 --sizes 64K,16M\n"
                      "exit code: 0 done; 1 failed; 2 wrong arguments",
            .options = versus_options,
            .n_options = VERSUS_OPTIONS,
        },
    .sizes = "4K:16M:16",
    .ways = {"next", "both sides", "exponential"},
    .n_ways = WAYS,
    .open = open_plans,
    .run = run,
    .close = close_plans,
};
