/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/codec_plans.h"

#include <stdlib.h>

enum { KEPT = 8 };

struct tmpi_plan {
    struct tmpi_plan *older;
    trib_plan_t *plan;
    size_t count;
};

static void free_one(struct tmpi_plan *p)
{
    trib_plan_free(p->plan);
    free(p);
}

void tmpi_plans_free(struct tmpi_attached *a)
{
    while (a->plans) {
        struct tmpi_plan *p = a->plans;
        a->plans = p->older;
        free_one(p);
    }
}

static void free_oldest(struct tmpi_attached *a)
{
    struct tmpi_plan **at = &a->plans;

    for (int i = 0; *at && i < KEPT; i++)
        at = &(*at)->older;
    while (*at) {
        struct tmpi_plan *p = *at;
        *at = p->older;
        free_one(p);
    }
}

/* Find or create the plan of this length, and move it to the front of the list. */
static trib_status_t find(struct tmpi_attached *a, size_t count, trib_plan_t **plan_out)
{
    struct tmpi_plan **at = &a->plans, *p;
    trib_desc_t d = TRIB_DESC_INIT;

    while (*at && (*at)->count != count)
        at = &(*at)->older;
    p = *at;
    if (p) {
        *at = p->older;
    } else {
        p = calloc(1, sizeof(*p));
        if (!p)
            return TRIB_ERR_NO_MEMORY;
        d.count = p->count = count;
        d.codec = tmpi_module.settings.codec;
        d.feedback = "none";
        const trib_status_t st = trib_plan_allreduce(a->comm, &d, &p->plan);
        if (st != TRIB_OK) {
            free(p);
            return st;
        }
    }
    p->older = a->plans;
    a->plans = p;
    *plan_out = p->plan;
    free_oldest(a);
    return TRIB_OK;
}

trib_status_t tmpi_codec_sum(struct tmpi_attached *a, const void *send, void *recv,
                             size_t count)
{
    trib_plan_t *plan;
    trib_status_t st = find(a, count, &plan);

    if (st == TRIB_OK)
        st = trib_plan_start_with(plan, send, recv);
    return st == TRIB_OK ? trib_plan_wait(plan) : st;
}
