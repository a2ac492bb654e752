/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/p2p/matching.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say_tag(const struct trib_p2p_request *r, char *text, size_t bytes)
{
    if (r->tag < 0)
        snprintf(text, bytes, "for neighbours");
    else
        snprintf(text, bytes, "with tag %d", r->tag);
}

void trib_p2p_say(const struct trib_p2p_request *r, char *text, size_t bytes)
{
    char tag[32];

    say_tag(r, tag, sizeof(tag));
    snprintf(text, bytes, "%s of %zu %s %s %s rank %d", r->sends ? "send" : "receive",
             r->count, trib_dtype_name(r->dtype), tag, r->sends ? "to" : "from",
             r->peer);
}

void trib_p2p_say_misfit(const struct trib_p2p_request *r, int rank, unsigned dtype,
                         uint64_t count, char *text, size_t bytes)
{
    char tag[32];

    assert(!r->sends);
    say_tag(r, tag, sizeof(tag));
    snprintf(text, bytes,
             "ranks disagree on a message %s: rank %d sends %" PRIu64
             " %s, rank %d receives %zu %s",
             tag, r->peer, count, trib_dtype_name((trib_dtype_t)dtype), rank, r->count,
             trib_dtype_name(r->dtype));
}

void trib_p2p_append(struct trib_p2p_queue *q, struct trib_p2p_request *r)
{
    r->next = NULL;
    if (q->tail)
        q->tail->next = r;
    else
        q->head = r;
    q->tail = r;
    q->n++;
    assert(q->head && !q->tail->next);
}

/* Remove request r from the queue; `before` is its predecessor, or NULL. */
static struct trib_p2p_request *take(struct trib_p2p_queue *q,
                                     struct trib_p2p_request *before,
                                     struct trib_p2p_request *r)
{
    if (!r)
        return NULL;
    if (before)
        before->next = r->next;
    else
        q->head = r->next;
    if (q->tail == r)
        q->tail = before;
    assert(q->n > 0);
    q->n--;
    r->next = NULL;
    return r;
}

struct trib_p2p_request *trib_p2p_pop(struct trib_p2p_queue *q)
{
    return take(q, NULL, q->head);
}

struct trib_p2p_request *trib_p2p_take_tag(struct trib_p2p_queue *q, int tag)
{
    struct trib_p2p_request *before = NULL, *r = q->head;

    while (r && r->tag != tag) {
        before = r;
        r = r->next;
    }
    return take(q, before, r);
}

struct trib_p2p_request *trib_p2p_take_id(struct trib_p2p_queue *q, uint32_t id)
{
    struct trib_p2p_request *before = NULL, *r = q->head;

    while (r && r->id != id) {
        before = r;
        r = r->next;
    }
    return take(q, before, r);
}

struct trib_p2p_early *trib_p2p_keep(struct trib_p2p_earlies *k,
                                     const struct trib_message *m,
                                     const uint8_t *payload)
{
    const bool eager = m->kind == TRIB_MESSAGE_IS_EAGER;
    struct trib_p2p_early *e = malloc(sizeof(*e) + (eager ? m->bytes : 0));

    if (!e)
        return NULL;
    *e = (struct trib_p2p_early){.tag = m->tag,
                                 .dtype = m->dtype,
                                 .count = m->count,
                                 .send_id = m->send_id,
                                 .eager = eager};
    if (eager && m->bytes)
        memcpy(e->payload, payload, m->bytes);
    if (k->tail)
        k->tail->next = e;
    else
        k->head = e;
    k->tail = e;
    k->n++;
    k->n_eager += eager;
    return e;
}

struct trib_p2p_early *trib_p2p_take_early(struct trib_p2p_earlies *k, int tag)
{
    struct trib_p2p_early *before = NULL, *e = k->head;

    while (e && e->tag != tag) {
        before = e;
        e = e->next;
    }
    if (!e)
        return NULL;
    if (before)
        before->next = e->next;
    else
        k->head = e->next;
    if (k->tail == e)
        k->tail = before;
    assert(k->n > 0 && k->n >= k->n_eager);
    k->n--;
    k->n_eager -= e->eager;
    return e;
}

void trib_p2p_drop_early(struct trib_p2p_early *early)
{
    if (early)
        free(early->place);
    free(early);
}

void trib_p2p_drop_earlies(struct trib_p2p_earlies *k)
{
    while (k->head) {
        struct trib_p2p_early *e = k->head;
        k->head = e->next;
        trib_p2p_drop_early(e);
    }
    *k = (struct trib_p2p_earlies){.head = NULL};
}
