/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/link/grants.h"

#include <assert.h>
#include <stdlib.h>

#include "pipeline/link/link_words.h"

bool trib_grants_create(struct trib_grants *g, int size)
{
    assert(size > 0 && !g->queue);
    g->room = (uint32_t)size * TRIB_LANES;
    g->queue = calloc(g->room, sizeof(*g->queue));
    for (int lane = 0; lane < TRIB_LANES; lane++)
        g->free_bytes[lane] = SIZE_MAX;
    return g->queue != NULL;
}

void trib_grants_destroy(struct trib_grants *g)
{
    free(g->queue);
    g->queue = NULL;
}

void trib_grants_set(struct trib_arena *a, const uint32_t *senders)
{
    struct trib_grants *g = &a->grants;

    for (int lane = 0; lane < TRIB_LANES; lane++)
        g->free_bytes[lane] =
            !g->budget || senders[lane] < 2
                ? SIZE_MAX
                : TRIB_GRANTS_FREE * g->budget / a->window / senders[lane];
}

static void push(struct trib_grants *g, int peer, uint32_t lane)
{
    assert(g->waiting < g->room);
    g->queue[(g->first + g->waiting++) % g->room] = (uint32_t)peer * TRIB_LANES + lane;
}

static uint32_t pop(struct trib_grants *g)
{
    const uint32_t at = g->queue[g->first];

    assert(g->waiting > 0);
    g->first = (g->first + 1) % g->room;
    g->waiting--;
    return at;
}

/* Return false if the transport is full, or if this rank has not connected the link
 * yet. */
static bool post_grant(struct trib_link *l, uint32_t lane)
{
    const struct trib_write w = {.imm = trib_link_imm(LINK_IMM_GRANT, lane)};

    return l->connected && !l->lost &&
           l->transport->ops->write(l->transport, l->peer, &w) == TRIB_OK;
}

void trib_grants_pass(struct trib_arena *a, struct trib_link *links)
{
    struct trib_grants *g = &a->grants;

    for (uint32_t left = g->waiting; left > 0; left--) {
        const uint32_t at = g->queue[g->first], lane = at % TRIB_LANES;
        struct trib_link *l = &links[at / TRIB_LANES];
        struct trib_recv_lane *r = &l->recv[lane];

        if (g->given && g->budget && g->given + r->asked > g->budget)
            return;
        (void)pop(g);
        if (post_grant(l, lane)) {
            g->given += r->asked;
            r->granted = true;
        } else {
            push(g, (int)(at / TRIB_LANES), lane);
        }
    }
}

/* Events of one peer arrive in the order of its writes. The next frame of the lane is
 * therefore the one that asked. */
static void take_back(struct trib_grants *g, struct trib_recv_lane *r)
{
    const uint32_t bytes = r->granted ? r->asked : 0;

    assert(g->given >= bytes);
    g->given -= bytes;
    r->asked = 0;
    r->granted = false;
}

bool trib_grants_take(struct trib_arena *a, struct trib_link *links,
                      const struct trib_event *event)
{
    struct trib_link *l = &links[event->peer];
    const uint32_t kind = event->imm >> 24, bits = event->imm & LINK_IMM_BITS;
    const uint32_t lane = kind == LINK_IMM_FRAME ? bits : bits & 1;
    struct trib_grants *g = &a->grants;

    if (event->kind != TRIB_EVENT_ARRIVED || lane >= TRIB_LANES || l->mapped)
        return true;
    struct trib_recv_lane *r = &l->recv[lane];
    if (kind == LINK_IMM_ASK) {
        const size_t bytes = (size_t)(bits >> 1) * LINK_ASK_UNIT;
        if (r->asked || !bytes || bytes > a->slot_bytes)
            return false;
        r->asked = (uint32_t)bytes;
        push(g, event->peer, lane);
        trib_grants_pass(a, links);
    } else if (kind == LINK_IMM_FRAME && r->granted) {
        take_back(g, r);
        trib_grants_pass(a, links);
    } else if (kind == LINK_IMM_GRANT) {
        if (l->send[lane].grant != TRIB_GRANT_ASKED)
            return false;
        l->send[lane].grant = TRIB_GRANT_GIVEN;
    }
    return true;
}

void trib_grants_drop(struct trib_arena *a, struct trib_link *l, int peer)
{
    struct trib_grants *g = &a->grants;

    for (int lane = 0; lane < TRIB_LANES; lane++)
        take_back(g, &l->recv[lane]);
    for (uint32_t left = g->waiting; left > 0; left--) {
        const uint32_t at = pop(g);
        if (at / TRIB_LANES != (uint32_t)peer)
            push(g, (int)(at / TRIB_LANES), at % TRIB_LANES);
    }
}
