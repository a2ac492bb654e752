/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Run the code of docs/feedback.md. Rank 1 dies after a checkpoint: the others load the
 * states of all ranks into a plan of their smaller communicator, and later sums include
 * the residuals of the codecs.
 *
 *     trib-run -n 3 --grace 60 -- state FOLDER
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <tributary.h>
#include <tributary/elastic.h>

enum { N = 2000, RANKS = 3 };

static trib_comm_t *comm;
static const char *folder;
static float gradient[N];

static int fail(const char *what)
{
    printf("%s: %s\n", what, trib_last_error(comm));
    exit(3);
}

static void fill(void)
{
    for (int i = 0; i < N; i++)
        gradient[i] = 1 + (float)(i % 10);
}

static void caller(void)
{
    static float send[N], recv[N];
    const size_t n = N;
    size_t i;
    trib_desc_t desc = TRIB_DESC_INIT;
    trib_plan_t *plan;

    desc.count = N;
    desc.codec = "topk:ratio=0.1";
    desc.feedback = "ef14:caller=1";
    fill();
    if (trib_plan_allreduce(comm, &desc, &plan) != TRIB_OK)
        fail("plan");
    /* snippet docs/feedback.md: for (i = 0; i < n; i++) send[i] += gradient[i]; */
    if (trib_plan_wait(plan) != TRIB_OK)
        fail("caller=1");
    trib_plan_free(plan);
}

static void named(void)
{
    const size_t n = N;

    fill();
    /* snippet docs/feedback.md: trib_allreduce_named( */
    if (trib_progress(comm) < 0 || gradient[9] != 10)
        fail("named");
}

static char *name_of(int rank)
{
    static char path[4096];

    snprintf(path, sizeof(path), "%s/%d", folder, rank);
    return path;
}

static void save(trib_plan_t *plan)
{
    /* snippet docs/feedback.md: size_t bytes; */
    FILE *f = fopen(name_of(trib_rank(comm)), "w");
    if (!f || fwrite(state, 1, bytes, f) != bytes || fclose(f))
        fail("save");
    free(state);
}

static void *read_file(int rank, size_t *bytes_out)
{
    enum { MOST = 1 << 20 };
    FILE *f = fopen(name_of(rank), "r");
    void *bytes = malloc(MOST);

    *bytes_out = f && bytes ? fread(bytes, 1, MOST, f) : 0;
    if (f)
        fclose(f);
    return bytes;
}

/* Load the states of all former ranks into the surviving ranks. */
static void load(trib_plan_t *plan)
{
    const int savers = RANKS, rank = trib_rank(comm), ranks = trib_size(comm);
    const void *states[RANKS];
    size_t bytes[RANKS];
    int n;

    /* snippet docs/feedback.md: n = 0; */
    if (trib_progress(comm) < 0)
        fail("load");
}

static trib_plan_t *make(void)
{
    const size_t n = N;
    trib_plan_t *plan;
    /* snippet docs/feedback.md: trib_desc_t desc = TRIB_DESC_INIT; */
    return plan;
}

static double total(trib_plan_t *plan)
{
    static float held[N];
    double sum = 0;

    if (trib_plan_residual_get(plan, 0, N, held) != TRIB_OK)
        fail("residual");
    for (int i = 0; i < N; i++)
        sum += (double)held[i];
    return sum;
}

int main(int argc, char **argv)
{
    trib_comm_t *smaller;
    double before, after;

    folder = argc > 1 ? argv[1] : "/tmp";
    if (trib_init(NULL, &comm) != TRIB_OK)
        return 1;
    caller();
    named();
    fill();
    trib_plan_t *plan = make();
    before = total(plan);
    save(plan);
    if (trib_allreduce(comm, NULL, &before, 1, TRIB_F64, TRIB_SUM) != TRIB_OK)
        fail("sum");
    if (trib_rank(comm) == 1)
        raise(SIGKILL);
    fill();
    if (trib_plan_start_with(plan, NULL, gradient) == TRIB_OK &&
        trib_plan_wait(plan) == TRIB_OK)
        fail("a rank is dead");
    if (trib_comm_shrink(comm, &smaller) != TRIB_OK)
        fail("shrink");
    trib_plan_free(plan);
    trib_free_comm(comm);
    comm = smaller;
    fill();
    plan = make();
    load(plan);
    after = total(plan);
    if (trib_allreduce(comm, NULL, &after, 1, TRIB_F64, TRIB_SUM) != TRIB_OK)
        fail("sum");
    /* A mean divides the residual by the number of ranks. */
    printf("held back: %.4f before, %.4f after\n", before / RANKS,
           after / trib_size(comm));
    trib_plan_free(plan);
    return trib_free_comm(comm) != TRIB_OK ||
           fabs(before / RANKS - after / trib_size(comm)) > 1e-2 * before;
}
