/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/coded/order_star.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tributary/elastic.h>
#include <tributary/send.h>

#include "train/coded/order_star_state.h"

/* Split the pairs one after the other, because rank 0 is in each of them. */
static trib_status_t open_pairs(struct trib_order_star *s, trib_comm_t *comm,
                                struct trib_error *err)
{
    for (int i = 1; i < s->ranks; i++) {
        const bool in = s->rank == 0 || s->rank == i;
        const trib_status_t st =
            trib_split(comm, in ? 0 : -1, s->rank, in ? &s->peers[i].pair : &s->none);
        if (st != TRIB_OK)
            return trib_fail(err, st, "%s", trib_last_error(comm));
    }
    s->pair = s->rank ? s->peers[s->rank].pair : NULL;
    return TRIB_OK;
}

/* Exchange a first message on each pair, because sends block until both ends are
 * connected. Later orders then do not block on a rank that is late from the first call
 * on. */
static trib_status_t greet(struct trib_order_star *s, struct trib_error *err)
{
    char hello = 0;
    trib_status_t st = TRIB_OK;

    if (s->rank) {
        st = trib_recv(s->pair, &hello, 1, TRIB_U8, 0, TAG_HEAD);
        return st ? trib_fail(err, st, "%s", trib_last_error(s->pair)) : TRIB_OK;
    }
    for (int i = 1; i < s->ranks && st == TRIB_OK; i++) {
        trib_comm_t *pair = s->peers[i].pair;
        st = trib_send(pair, &hello, 1, TRIB_U8, 1, TAG_HEAD);
        if (st != TRIB_OK)
            return trib_fail(err, st, "%s", trib_last_error(pair));
    }
    return TRIB_OK;
}

/* Abort the pairs: the other end may wait for this rank in its next call. */
static void give_up(struct trib_order_star *s)
{
    for (int i = 1; s && s->peers && i < s->ranks; i++)
        if (s->peers[i].pair) {
            (void)trib_comm_abort(s->peers[i].pair, "not all ranks could be connected");
            (void)trib_free_comm(s->peers[i].pair);
        }
    if (s)
        free(s->peers);
    free(s);
}

trib_status_t trib_order_star_open(trib_comm_t *comm, struct trib_error *err,
                                   struct trib_order_star **star_out)
{
    struct trib_order_star *s = calloc(1, sizeof(*s));
    int32_t well = 0;

    *star_out = NULL;
    if (s) {
        s->rank = trib_rank(comm);
        s->ranks = trib_size(comm);
        s->peers = calloc((size_t)s->ranks, sizeof(*s->peers));
        well = s->peers != NULL;
    }
    trib_status_t st = trib_allreduce(comm, NULL, &well, 1, TRIB_I32, TRIB_MIN);
    if (st != TRIB_OK)
        st = trib_fail(err, st, "%s", trib_last_error(comm));
    else if (!well)
        st = trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for orders to %d ranks",
                       trib_size(comm));
    else
        st = open_pairs(s, comm, err);
    if (st == TRIB_OK)
        st = greet(s, err);
    if (st == TRIB_OK)
        *star_out = s;
    else
        give_up(s);
    return st;
}

/* Rank 0 --------------------------------------------------------------------------- */

static void body_drop(struct trib_order_body *body)
{
    if (body && --body->users == 0)
        free(body);
}

/* Free a request that is complete, or whose communicator has failed. */
static void end_request(trib_request_t **request)
{
    if (*request)
        (void)trib_request_wait(*request);
    (void)trib_request_free(*request);
    *request = NULL;
}

static void end_requests(struct trib_order_peer *p)
{
    end_request(&p->head_sent);
    end_request(&p->body_sent);
    end_request(&p->answered);
    body_drop(p->body);
    p->body = NULL;
    p->busy = false;
}

static void lose(struct trib_order_star *s, struct trib_order_peer *p)
{
    if (!s->lost++)
        trib_fail(&s->first_loss, TRIB_ERR_PEER_LOST, "%s", trib_last_error(p->pair));
    p->lost = true;
    end_requests(p);
}

static bool send_head(struct trib_order_star *s, struct trib_order_peer *p)
{
    return trib_isend(p->pair, &p->head, sizeof(p->head), TRIB_U8, 1, TAG_HEAD,
                      &p->head_sent) == TRIB_OK ||
           (lose(s, p), false);
}

static bool make_answer_room(struct trib_order_peer *p, size_t bytes)
{
    if (p->room < bytes) {
        void *more = realloc(p->answer, bytes);
        if (!more)
            return false;
        p->answer = more;
        p->room = bytes;
    }
    return true;
}

/* Send the newest order to an idle rank. */
static void ask(struct trib_order_star *s, int rank)
{
    struct trib_order_peer *p = &s->peers[rank];

    if (p->lost || p->busy)
        return;
    end_request(&p->head_sent);
    p->head = (struct trib_order_head){
        .kind = ORDER, .number = s->number, .bytes = s->body->bytes};
    if (!send_head(s, p))
        return;
    if (trib_isend(p->pair, s->body->data, s->body->bytes, TRIB_U8, 1, TAG_BODY,
                   &p->body_sent) != TRIB_OK ||
        trib_irecv(p->pair, p->answer, s->answers[rank], TRIB_U8, 1, TAG_ANSWER,
                   &p->answered) != TRIB_OK) {
        lose(s, p);
        return;
    }
    p->body = s->body;
    p->body->users++;
    p->asked = s->number;
    p->busy = true;
}

trib_status_t trib_order_star_give(struct trib_order_star *s, const void *data,
                                   size_t bytes, const size_t *answers,
                                   struct trib_error *err)
{
    struct trib_order_body *body = malloc(sizeof(*body) + bytes);
    bool well = body != NULL;

    assert(s->rank == 0);
    s->number++;
    for (int i = 1; i < s->ranks && well; i++)
        well = s->peers[i].busy || make_answer_room(&s->peers[i], answers[i]);
    if (!well) {
        free(body);
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for an order of %zu bytes",
                         bytes);
    }
    *body = (struct trib_order_body){.users = 1, .bytes = bytes};
    memcpy(body->data, data, bytes);
    body_drop(s->body);
    s->body = body;
    s->answers = answers;
    for (int i = 1; i < s->ranks; i++)
        ask(s, i);
    return TRIB_OK;
}

/* Poll one rank; return true if it has answered the newest order. */
static bool poll_rank(struct trib_order_star *s, int rank)
{
    struct trib_order_peer *p = &s->peers[rank];
    const trib_status_t st = trib_request_test(p->answered);

    if (st == TRIB_INPROGRESS)
        return false;
    if (st != TRIB_OK) {
        lose(s, p);
        return false;
    }
    const bool fits = p->asked == s->number;
    end_requests(p);
    if (!fits) {
        s->late++;
        if (make_answer_room(p, s->answers[rank]))
            ask(s, rank);
    }
    return fits;
}

/* Back off: yield at first, then sleep 20 us and later 200 us. */
static void rest(unsigned looks)
{
    const struct timespec pause = {0, looks < 200 ? 20000 : 200000};

    if (looks < 50)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

bool trib_order_star_next(struct trib_order_star *s, int *rank_out,
                          const void **data_out)
{
    for (unsigned looks = 0;; looks++) {
        bool any = false;
        for (int i = 1; i < s->ranks; i++) {
            if (!s->peers[i].busy)
                continue;
            if (poll_rank(s, i)) {
                *rank_out = i;
                *data_out = s->peers[i].answer;
                return true;
            }
            any |= s->peers[i].busy;
        }
        if (!any)
            return false;
        rest(looks);
    }
}

void trib_order_star_skip(struct trib_order_star *s)
{
    for (int i = 1; i < s->ranks && s->rank == 0; i++) {
        struct trib_order_peer *p = &s->peers[i];
        if (p->lost || (!p->busy && p->asked == s->number))
            continue;
        end_request(&p->head_sent);
        p->head = (struct trib_order_head){.kind = SKIP, .number = s->number};
        (void)send_head(s, p);
    }
}

void trib_order_star_pass(struct trib_order_star *s)
{
    s->number++;
}

static void tell_end(struct trib_order_star *s, trib_status_t status, const char *why)
{
    for (int i = 1; i < s->ranks; i++) {
        struct trib_order_peer *p = &s->peers[i];
        if (p->lost || p->ended || !p->pair)
            continue;
        p->ended = true;
        if (p->busy && status == TRIB_OK)
            continue;
        end_request(&p->head_sent);
        p->head = (struct trib_order_head){.kind = END, .status = status};
        strncpy(p->head.why, why, sizeof(p->head.why) - 1);
        (void)send_head(s, p);
    }
}

void trib_order_star_fail(struct trib_order_star *s, trib_status_t status,
                          const char *why)
{
    if (s->rank)
        return;
    s->failed = true;
    tell_end(s, status, why);
}

int trib_order_star_lost(const struct trib_order_star *s, const char **why_out)
{
    *why_out = s->lost ? trib_error_text(&s->first_loss) : "";
    return s->lost;
}

uint64_t trib_order_star_late(const struct trib_order_star *s)
{
    return s->late;
}

/* Abort the pairs of busy ranks instead of waiting for their answers. */
static void close_as_first(struct trib_order_star *s)
{
    tell_end(s, TRIB_OK, "");
    for (int i = 1; i < s->ranks; i++) {
        struct trib_order_peer *p = &s->peers[i];
        if (p->busy)
            (void)trib_comm_abort(p->pair,
                                  s->failed ? "a call has failed" : ORDERS_END);
        end_requests(p);
        free(p->answer);
        (void)trib_free_comm(p->pair);
    }
    body_drop(s->body);
}

void trib_order_star_close(struct trib_order_star *s)
{
    if (!s)
        return;
    if (s->rank == 0) {
        close_as_first(s);
    } else {
        trib_order_star_await_end(s);
        free(s->order);
        free(s->answer);
        (void)trib_free_comm(s->peers[s->rank].pair);
    }
    free(s->peers);
    free(s);
}
