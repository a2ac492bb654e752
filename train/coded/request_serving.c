/* SPDX-License-Identifier: BSD-3-Clause */
/* The side of order_star.h that receives orders. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/elastic.h>
#include <tributary/send.h>

#include "train/coded/order_star_state.h"

static bool make_room(void **memory, size_t *room, size_t bytes)
{
    if (*room >= bytes && *memory)
        return true;
    void *more = realloc(*memory, bytes ? bytes : 1);
    if (!more)
        return false;
    *memory = more;
    *room = bytes;
    return true;
}

static void end(struct trib_order_star *s, trib_status_t status, const char *why)
{
    s->ended = true;
    s->end_status = status;
    snprintf(s->why, sizeof(s->why), "%s", why);
}

static void end_by_failure(struct trib_order_star *s, trib_status_t st)
{
    const char *sentence = trib_last_error(s->pair);
    char why[300];

    if (st == TRIB_ERR_ABORTED && strstr(sentence, ORDERS_END)) {
        end(s, TRIB_OK, "");
        return;
    }
    snprintf(why, sizeof(why), "rank 0, which sends the orders: %.200s", sentence);
    end(s, st, why);
}

static void receive(struct trib_order_star *s)
{
    trib_status_t st =
        trib_recv(s->pair, &s->head, sizeof(s->head), TRIB_U8, 0, TAG_HEAD);

    if (st == TRIB_OK && s->head.kind == SKIP) {
        s->skip = s->head.number;
        return;
    }
    if (st == TRIB_OK && s->head.kind == END) {
        s->head.why[sizeof(s->head.why) - 1] = '\0';
        end(s, trib_status_of_peer(s->head.status), s->head.why);
        return;
    }
    if (st == TRIB_OK && !make_room(&s->order, &s->order_room, s->head.bytes)) {
        end(s, TRIB_ERR_NO_MEMORY, "no memory for an order");
        return;
    }
    if (st == TRIB_OK)
        st = trib_recv(s->pair, s->order, s->head.bytes, TRIB_U8, 0, TAG_BODY);
    if (st == TRIB_OK)
        s->pending = true;
    else
        end_by_failure(s, st);
}

trib_status_t trib_order_star_take(struct trib_order_star *s, const void **data_out,
                                   size_t *bytes_out, struct trib_error *err)
{
    assert(s->rank != 0);
    s->number++;
    while (!s->pending && !s->ended && s->skip < s->number)
        receive(s);
    if (s->pending && s->head.number == s->number) {
        s->pending = false;
        *data_out = s->order;
        *bytes_out = s->head.bytes;
        return TRIB_OK;
    }
    if (s->pending && s->head.number < s->number) {
        end(s, TRIB_ERR_INVALID,
            "this rank skipped a call with invalid arguments, so rank 0 sends it no "
            "further orders");
        (void)trib_comm_abort(s->pair, "a call had invalid arguments");
    }
    if (s->ended && s->end_status != TRIB_OK)
        return trib_fail(err, s->end_status, "%s", s->why);
    return TRIB_INPROGRESS;
}

/* Wait until the last answer is sent; rank 0 always has a receive posted for it. */
static void end_answer(struct trib_order_star *s)
{
    if (!s->sent)
        return;
    const trib_status_t st = trib_request_wait(s->sent);

    if (st != TRIB_OK && !s->ended)
        end_by_failure(s, st);
    (void)trib_request_free(s->sent);
    s->sent = NULL;
}

void trib_order_star_await_end(struct trib_order_star *s)
{
    end_answer(s);
    while (s->pair && !s->ended && !s->pending)
        receive(s);
    if (s->pending) /* rank 0 would wait for the answer */
        (void)trib_comm_abort(s->pair, "this rank makes no further calls");
}

void *trib_order_star_room(struct trib_order_star *s, size_t bytes)
{
    end_answer(s);
    return make_room(&s->answer, &s->answer_room, bytes) ? s->answer : NULL;
}

void trib_order_star_answer(struct trib_order_star *s, size_t bytes)
{
    if (s->ended)
        return;
    const trib_status_t st =
        trib_isend(s->pair, s->answer, bytes, TRIB_U8, 0, TAG_ANSWER, &s->sent);

    if (st != TRIB_OK)
        end_by_failure(s, st);
}
