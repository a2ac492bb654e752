/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pairs of an engine: create, describe, watch and close them.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "pipeline/p2p/p2p.h"
#include "pipeline/p2p/p2p_state.h"
#include "pipeline/payload/check.h"

/* Return the request of a pair that has waited longest; receives first. */
static const struct trib_p2p_request *oldest(const struct trib_p2p_pair *p)
{
    const struct trib_p2p_queue *const queues[] = {
        &p->receiving, &p->pulling,   &p->posted, &p->granting, &p->taken,
        &p->streaming, &p->announced, &p->fresh,  &p->flying};

    for (size_t i = 0; i < sizeof(queues) / sizeof(*queues); i++)
        if (queues[i]->head)
            return queues[i]->head;
    return NULL;
}

static void describe(const struct trib_engine *e, char *text, size_t bytes)
{
    snprintf(text, bytes, "no message");
    for (const struct trib_p2p_pair *p = trib_p2p_of(e)->list; p; p = p->next) {
        const struct trib_p2p_request *r = oldest(p);
        if (!r)
            continue;
        trib_p2p_say(r, text, bytes);
        return;
    }
}

static void close_all(struct trib_engine *e)
{
    struct trib_p2p *all = trib_p2p_of(e);

    while (all->list) {
        struct trib_p2p_pair *p = all->list;
        all->list = p->next;
        trib_p2p_drop_earlies(&p->early);
        if (!p->self)
            trib_mailbox_close(&p->box);
        free(p);
    }
    free(all);
    e->p2p = NULL;
}

static const struct trib_engine_p2p_ops ops = {
    .progress = trib_p2p_progress,
    .take_event = trib_p2p_take_event,
    .end = trib_p2p_end,
    .describe = describe,
    .close = close_all,
};

static trib_status_t make_all(struct trib_engine *e)
{
    struct trib_check check;
    struct trib_p2p *all =
        calloc(1, sizeof(*all) + (size_t)e->size * sizeof(all->of[0]));

    if (!all)
        return trib_fail(e->err, TRIB_ERR_NO_MEMORY, "no memory for messages");
    all->base.ops = &ops;
    /* cfg->check was validated at start. */
    (void)trib_check_parse(e->cfg->check, NULL, &check);
    all->checks = check.sum;
    e->p2p = &all->base;
    return TRIB_OK;
}

trib_status_t trib_p2p_open(struct trib_engine *e, int peer)
{
    trib_status_t st = e->p2p ? TRIB_OK : make_all(e);

    assert(peer >= 0 && peer < e->size);
    if (st != TRIB_OK || trib_p2p_of(e)->of[peer])
        return st;
    struct trib_p2p_pair *p = calloc(1, sizeof(*p));
    if (!p)
        return trib_fail(e->err, TRIB_ERR_NO_MEMORY, "no memory for messages");
    p->peer = peer;
    p->self = peer == e->rank;
    if (!p->self)
        st = trib_mailbox_open(&p->box, &e->links[peer], &e->arena);
    if (st != TRIB_OK) {
        free(p);
        return trib_fail(e->err, st, "no memory for messages with rank %d", peer);
    }
    p->next = trib_p2p_of(e)->list;
    trib_p2p_of(e)->list = p;
    trib_p2p_of(e)->of[peer] = p;
    return TRIB_OK;
}

size_t trib_p2p_bytes(const struct trib_engine *e)
{
    size_t bytes = 0;

    for (const struct trib_p2p_pair *p = e->p2p ? trib_p2p_of(e)->list : NULL; p;
         p = p->next)
        bytes += p->self ? 0 : trib_mailbox_bytes(&p->box);
    return bytes;
}

void trib_p2p_watch(struct trib_engine *e,
                    void (*fn)(void *arg, int peer, const struct trib_p2p_early *early),
                    void *arg)
{
    struct trib_p2p *all = trib_p2p_of(e);

    if (!all)
        return;
    all->watch = fn;
    all->watch_arg = arg;
    for (const struct trib_p2p_pair *p = all->list; p && fn; p = p->next)
        for (const struct trib_p2p_early *k = p->early.head; k; k = k->next)
            if (k->tag < 0)
                fn(arg, p->peer, k);
}
