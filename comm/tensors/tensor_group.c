/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public calls of tensor groups.
 */
#include "comm/tensors/tensor_group.h"

#include <stdlib.h>

#include "comm/core/communicator.h"

#define WHOLE SIZE_MAX /* in place of a tensor index: the whole step */

static trib_status_t make(struct trib_group *g, const trib_tensor_t *tensors, size_t n,
                          const trib_group_opts_t *opts)
{
    uint32_t n_buckets;

    trib_status_t st = trib_group_take(g, tensors, n, opts);
    if (st != TRIB_OK)
        return st;
    uint32_t *assign = malloc((n + 1) * sizeof(*assign));
    st = assign && trib_buckets_assign(g, false, assign, &n_buckets)
             ? trib_buckets_form(g, assign, n_buckets)
             : trib_comm_fail(g->comm, TRIB_ERR_NO_MEMORY, "no memory for a group");
    free(assign);
    return st == TRIB_OK ? trib_cycle_make(g) : st;
}

trib_status_t trib_group_create(trib_comm_t *comm, const trib_tensor_t *tensors,
                                size_t n, const trib_group_opts_t *opts,
                                trib_group_t **group_out)
{
    if (group_out)
        *group_out = NULL;
    if (!comm)
        return TRIB_ERR_INVALID;
    trib_status_t st = trib_comm_ours(comm, "trib_group_create");
    if (st == TRIB_OK)
        st = comm->engine.failed;
    if (st != TRIB_OK)
        return st;
    struct trib_group *g = calloc(1, sizeof(*g));
    if (!group_out || (n && !tensors))
        st = trib_comm_fail(comm, TRIB_ERR_INVALID,
                            "trib_group_create needs tensors and group_out, and %s is "
                            "NULL",
                            group_out ? "tensors" : "group_out");
    else if (!g)
        st = trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a group");
    if (st == TRIB_OK) {
        g->comm = comm;
        st = make(g, tensors, n, opts);
    }
    st = trib_group_compare(comm, st == TRIB_OK ? g : NULL, st);
    if (st != TRIB_OK)
        trib_group_dispose(g);
    else
        *group_out = g;
    return st;
}

void trib_group_dispose(struct trib_group *g)
{
    if (!g)
        return;
    trib_cycle_free(g);
    if (g->comm) {
        (void)trib_plan_free(g->agree);
        trib_buckets_free(g, &g->buckets);
    }
    trib_group_notify_free(g); /* after the plans, which call it */
    for (size_t i = 0; i < g->n; i++) {
        free((char *)(uintptr_t)g->tensors[i].desc.name);
        free((char *)(uintptr_t)g->tensors[i].desc.codec);
        free((char *)(uintptr_t)g->tensors[i].desc.feedback);
    }
    free(g->tensors);
    free(g->queue);
    free(g->words);
    free(g->algorithm);
    free(g);
}

trib_status_t trib_group_free(trib_group_t *g)
{
    char text[80];

    if (!g)
        return TRIB_OK;
    const bool in_child = trib_comm_in_child(g->comm); /* a child's copy never runs */
    if (!in_child && g->step.running && !g->step.failed)
        return trib_comm_fail(g->comm, TRIB_ERR_BUSY,
                              "%s is in a step: wait for it before trib_group_free",
                              trib_group_says(g, text));
    if (!in_child && g->step.failed)
        trib_step_drain(g);
    trib_group_dispose(g);
    return TRIB_OK;
}

trib_status_t trib_group_start(trib_group_t *g)
{
    return trib_group_start_with(g, NULL, NULL);
}

trib_status_t trib_group_start_with(trib_group_t *g, const void *const *sends,
                                    void *const *recvs)
{
    char text[80];

    if (!g)
        return TRIB_ERR_INVALID;
    const trib_status_t st = trib_comm_ours(g->comm, "trib_group_start");
    if (st != TRIB_OK)
        return st;
    if (g->step.failed || g->comm->engine.failed)
        return g->step.failed ? g->step.failed : g->comm->engine.failed;
    if (g->step.running)
        return trib_comm_fail(g->comm, TRIB_ERR_BUSY,
                              "%s is in a step: wait for it before the next one",
                              trib_group_says(g, text));
    if (sends && !recvs)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "trib_group_start_with: recvs is NULL, but sends is not");
    return trib_step_begin(g, sends, recvs);
}

static trib_status_t check_group(struct trib_group *g, const char *call)
{
    return g ? trib_comm_ours(g->comm, call) : TRIB_ERR_INVALID;
}

static trib_status_t check_tensor(struct trib_group *g, size_t tensor, const char *call)
{
    char text[80];

    if (g && tensor >= g->n)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "%s: tensor %zu does not exist, %s has %zu", call, tensor,
                              trib_group_says(g, text), g->n);
    return check_group(g, call);
}

trib_status_t trib_group_ready(trib_group_t *g, size_t tensor)
{
    trib_status_t st = check_tensor(g, tensor, "trib_group_ready");

    if (st == TRIB_OK)
        st = g->step.failed;
    if (st == TRIB_OK)
        st = trib_step_mark(g, tensor);
    return st == TRIB_OK ? trib_step_drive(g, TRIB_STEP_NEWS) : st;
}

/* Return the status of a tensor or of the whole step. */
static trib_status_t state_of(const struct trib_group *g, size_t tensor)
{
    if (tensor != WHOLE ? g->tensors[tensor].done : !g->step.running)
        return TRIB_OK;
    if (g->step.failed)
        return g->step.failed;
    return g->step.running ? TRIB_INPROGRESS : TRIB_OK;
}

static trib_status_t test(struct trib_group *g, size_t tensor)
{
    trib_status_t st = state_of(g, tensor);

    if (st != TRIB_INPROGRESS)
        return st;
    st = trib_step_drive(g, TRIB_STEP_WILLING);
    return st == TRIB_OK ? state_of(g, tensor) : st;
}

trib_status_t trib_group_test(trib_group_t *g)
{
    const trib_status_t st = check_group(g, "trib_group_test");

    return st == TRIB_OK ? test(g, WHOLE) : st;
}

trib_status_t trib_group_test_tensor(trib_group_t *g, size_t tensor)
{
    const trib_status_t st = check_tensor(g, tensor, "trib_group_test_tensor");

    return st == TRIB_OK ? test(g, tensor) : st;
}

static trib_status_t refuse_unready(struct trib_group *g, size_t tensor, size_t n)
{
    char more[40] = "";

    if (n > 1)
        snprintf(more, sizeof(more), " (and %zu more)", n - 1);
    return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                          "tensor \"%s\"%s was not marked ready, so the wait would "
                          "never end: call trib_group_ready before waiting",
                          g->tensors[tensor].desc.name, more);
}

/* Refuse to wait for tensors that this rank has not marked ready. */
static trib_status_t check_ready(struct trib_group *g, size_t tensor)
{
    size_t unready = 0, n = 0;

    if (!g->step.running || g->step.failed)
        return TRIB_OK;
    if (tensor == WHOLE) {
        for (size_t i = g->n; i-- > 0 && g->step.tensors_ready < g->n;)
            if (!g->tensors[i].ready)
                unready = i, n++;
        return n ? refuse_unready(g, unready, n) : TRIB_OK;
    }
    if (g->tensors[tensor].bucket == TRIB_BUCKET_NONE)
        return g->tensors[tensor].ready ? TRIB_OK : refuse_unready(g, tensor, 1);
    const struct trib_bucket *b = &g->buckets.at[g->tensors[tensor].bucket];
    for (uint32_t i = b->n; i-- > 0;) {
        const struct trib_group_tensor *t = trib_bucket_tensor(g, b, i);
        if (!t->ready)
            unready = (size_t)(t - g->tensors), n++;
    }
    return n ? refuse_unready(g, unready, n) : TRIB_OK;
}

/* Return true if the caller may block before another bucket is started. */
static bool has_begun(const struct trib_group *g, size_t tensor)
{
    if (tensor == WHOLE || g->tensors[tensor].bucket == TRIB_BUCKET_NONE)
        return false;
    return g->buckets.at[g->tensors[tensor].bucket].started;
}

static trib_status_t wait(struct trib_group *g, size_t tensor)
{
    trib_status_t st = check_ready(g, tensor);

    while (st == TRIB_OK && (st = state_of(g, tensor)) == TRIB_INPROGRESS) {
        st = trib_step_drive(g, has_begun(g, tensor) ? TRIB_STEP_WILLING
                                                     : TRIB_STEP_BLOCKED);
        if (st == TRIB_OK && state_of(g, tensor) == TRIB_INPROGRESS)
            st = trib_step_block(g);
    }
    return st;
}

trib_status_t trib_group_wait(trib_group_t *g)
{
    const trib_status_t st = check_group(g, "trib_group_wait");

    return st == TRIB_OK ? wait(g, WHOLE) : st;
}

trib_status_t trib_group_wait_tensor(trib_group_t *g, size_t tensor)
{
    const trib_status_t st = check_tensor(g, tensor, "trib_group_wait_tensor");

    return st == TRIB_OK ? wait(g, tensor) : st;
}
