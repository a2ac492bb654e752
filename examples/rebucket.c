/* SPDX-License-Identifier: BSD-3-Clause */
/* A vector is split into two, as frameworks do with buckets of gradients. The codec's
 * residual moves with its elements and is summed in the next step. */
#include <stdio.h>
#include <tributary.h>

enum { N = 4096, CUT = 1000 };
static trib_plan_t *make(trib_comm_t *comm, float *x, size_t count, const char *codec)
{
    trib_desc_t desc = TRIB_DESC_INIT;
    trib_plan_t *plan = NULL;
    desc.recv = x;
    desc.count = count;
    desc.codec = codec;
    return trib_plan_allreduce(comm, &desc, &plan) == TRIB_OK ? plan : NULL;
}

int main(void)
{
    trib_comm_t *comm;
    static float x[N], held[N];
    if (trib_init(NULL, &comm) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    trib_plan_t *old = make(comm, x, N, "topk:ratio=0.5");
    trib_plan_t *part[2] = {make(comm, x, CUT, "topk:ratio=1"),
                            make(comm, x + CUT, N - CUT, "topk:ratio=1")};
    for (int i = 0; i < N; i++)
        x[i] = (float)i; /* in each chunk the smaller half is held back */
    int bad = trib_plan_start(old) || trib_plan_wait(old) ||
              trib_plan_residual_get(old, 0, N, held) ||
              trib_plan_residual_set(part[0], 0, CUT, held) ||
              trib_plan_residual_set(part[1], 0, N - CUT, held + CUT);
    for (int i = 0; i < N; i++)
        x[i] = 0;
    for (int p = 0; p < 2 && !bad; p++)
        bad = trib_plan_start(part[p]) || trib_plan_wait(part[p]);
    printf("held back %g, then summed %g\n", (double)held[1], (double)x[1]);
    trib_plan_free(old), trib_plan_free(part[0]), trib_plan_free(part[1]);
    return trib_free_comm(comm) != TRIB_OK || bad;
}
